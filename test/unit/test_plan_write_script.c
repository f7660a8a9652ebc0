/* Tests of plan/writer.h on a scripted backend: what is asked for, in which order, and what comes of each
 * answer. SPDX-License-Identifier: Apache-2.0 */
#include "plan_write_script_fixture.h"

/* ---- the order of things ---- */

/* The barrier goes before the root, and the root before the party, at once and on one connection. */
TEST(test_order) {
    begin();
    answer_reading();
    expect("get " PARTY "/00000000007000000000071,a=2-m, get " PARTY "/00000000007000000000072,a=2-n");
    answer(0);
    assert_int_equal(told.done, 0);
    answer(0);
    expect("multi [create " ROOT "; create " ROOT "/#1; set " ROOT "]");
    answer_multi(0);
    expect_end(DV_PLAN_WRITTEN, 0);
    assert_int_equal(memory.mzxid, zxid);
    want_weight();
    begin();
    answer_reading();
    expect("multi [set " ROOT "/#1; set " ROOT "]");
    assert_int_equal(dv_fake_oldest(fake)->ops[1].version, memory.version);
    answer_multi(0);
    expect_end(DV_PLAN_WRITTEN, 0);
}

/* Four chunks are under way at a time, and the root follows when all are there. */
TEST(test_chunks_in_flight) {
    sizes = (dv_plan_sizes){.inline_root_bytes = 0, .chunk_bytes = 100};
    begin();
    answer_reading();
    answer(0);
    answer(0);
    expect("multi [create " ROOT "; create " ROOT "/#1; set " ROOT "]");
    answer_multi(0);
    expect("create " ROOT "/1-#2-0, create " ROOT "/1-#2-1, create " ROOT "/1-#2-2, create " ROOT "/1-#2-3");
    answer(0);
    expect("create " ROOT "/1-#2-1, create " ROOT "/1-#2-2, create " ROOT "/1-#2-3, create " ROOT "/1-#2-4");
    while (!dv_fake_oldest(fake)->is_multi) {
        assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_CREATE);
        assert_true(dv_fake_oldest(fake)->ops->data_bytes <= 100);
        answer(0);
    }
    expect("multi [set " ROOT "/#1; set " ROOT "]");
    answer_multi(0);
    assert_int_equal(told.outcome, DV_PLAN_WRITTEN);
}

/* ---- the multi's answers ---- */

/* Each answer to the multi that creates the root. */
TEST(test_outcomes_of_creation) {
    static const struct {
        int error, outcome;
    } cases[] = {{DIVVY_EEXIST, DV_PLAN_BEHIND},
                 {DIVVY_ENOENT, DV_PLAN_BEHIND},
                 {DIVVY_EACCES, DV_PLAN_FAILED},
                 {DIVVY_E2BIG, DV_PLAN_FAILED},
                 {DIVVY_EPROTO, DV_PLAN_FAILED}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        begin();
        answer_reading();
        if (c == 0) answer(0), answer(0);
        answer_multi(cases[c].error);
        expect_end(cases[c].outcome, cases[c].outcome == DV_PLAN_FAILED ? cases[c].error : 0);
        assert_null(memory.plan);
    }
}

/* Each answer to the multi that sets it. */
TEST(test_outcomes_of_setting) {
    static const struct {
        int error, outcome;
    } cases[] = {{DIVVY_EVERSION, DV_PLAN_BEHIND},
                 {DIVVY_EACCES, DV_PLAN_FAILED},
                 {DIVVY_E2BIG, DV_PLAN_FAILED},
                 {DIVVY_EPROTO, DV_PLAN_FAILED}};
    have_plan();
    int64_t mzxid = memory.mzxid;
    for (size_t c = 0; c < COUNT(cases); c++) {
        begin();
        answer_reading();
        answer_multi(cases[c].error);
        if (cases[c].error == DIVVY_EACCES) answer_multi(cases[c].error); /* without the history */
        expect_end(cases[c].outcome, cases[c].outcome == DV_PLAN_FAILED ? cases[c].error : 0);
        assert_int_equal(memory.mzxid, mzxid);
        assert_int_equal(memory.standing, DV_PLAN_GOOD);
    }
}

/* ---- the history ---- */

/* The epoch child as the next commit leaves it; its data until the next call, NULL if it is only checked. */
static const char *past_of_commit(void) {
    static char text[16 * 1024 + 1];
    const dv_op *op = &dv_fake_oldest(fake)->ops[0];
    assert_true(dv_fake_oldest(fake)->is_multi && dv_fake_oldest(fake)->count == 2);
    if (op->kind != DV_SET) return NULL;
    assert_true(op->data_bytes < sizeof text);
    memcpy(text, op->data, op->data_bytes);
    text[op->data_bytes] = '\0';
    return text;
}

/* D44: a member that wrote the last plan knows the history. Any other asks for it with what it reads anyway, and goes
 * on with what stands there, or begins again if that is nonsense. */
TEST(test_history_of_others) {
    static const char theirs[] = "{\"changes\":[{\"generation\":1,\"reason\":\"create\",\"at_ms\":0,\"took_ms\":-1,"
                                 "\"moved\":0,\"joined\":{\"count\":1,\"names\":[\"them\"]},"
                                 "\"left\":{\"count\":0,\"names\":[]}}]}";
    static const char *const texts[] = {theirs, "nonsense", ""};
    have_plan();
    for (size_t i = 0; i < COUNT(texts); i++) {
        const dv_stat stat = {.mzxid = memory.mzxid, .mtime_ms = 77};
        memory.past.mzxid = 1; /* since then somebody else has written */
        begin();
        expect(READING ", get " ROOT "/#1");
        answer_multi(0);
        answer_root();
        answer(0);
        dv_fake_answer(fake, &(dv_reply){.stat = &stat, .data = texts[i], .data_bytes = strlen(texts[i])});
        const char *past = past_of_commit();
        assert_non_null(past);
        assert_int_equal(strstr(past, "\"at_ms\":77,") != NULL, i == 0);
        assert_int_equal(strstr(past, "[\"them\"]") != NULL, i == 0);
        assert_non_null(strstr(past, "\"reason\":\"weight\",\"at_ms\":0,\"took_ms\":-1,"));
        answer_multi(DIVVY_EVERSION);
        expect_end(DV_PLAN_BEHIND, 0);
    }
}

/* D44: a history that may not be read is left as it is, and one that may not be written as well. Neither keeps the plan
 * from being written. */
TEST(test_history_refused) {
    have_plan();
    for (int i = 0; i < 2; i++) {
        bool may_read = i == 1;
        memory.past.mzxid = may_read ? memory.mzxid : 1;
        events.weight.weight = i == 0 ? 500 : 600;
        begin();
        answer_multi(0);
        answer_root();
        answer(0);
        if (!may_read) answer(DIVVY_EACCES);
        if (may_read) {
            assert_non_null(past_of_commit());
            answer_multi(DIVVY_EACCES);
        }
        assert_null(past_of_commit());
        answer_multi(0);
        expect_end(DV_PLAN_WRITTEN, 0);
        assert_int_not_equal(memory.past.mzxid, memory.mzxid);
    }
}

/* "No node" may mean the root or its epoch: it is read again, and if the root is the same, there is a new epoch. */
TEST(test_no_node) {
    have_plan();
    begin();
    answer_reading();
    answer_multi(DIVVY_ENOENT);
    expect(READING);
    answer_multi(0);
    answer(DIVVY_ENOENT);
    answer(0);
    expect_end(DV_PLAN_BEHIND, 0);

    begin();
    answer_reading();
    answer_multi(DIVVY_ENOENT);
    answer_reading();
    const char *made = strchr(dv_fake_pending(fake), '#');
    assert_non_null(made);
    char commit[256];
    snprintf(commit, sizeof commit, "multi [set " ROOT "/%s; set " ROOT "]", made);
    assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_CREATE);
    answer(0);
    answer_reading(); /* It may be another root by now. */
    expect(commit);
    answer_multi(0);
    expect_end(DV_PLAN_WRITTEN, 0);
}

/* A writer that finds every epoch it makes gone again gives up. */
TEST(test_no_node_for_ever) {
    have_plan();
    begin();
    for (int n = 0; n < 20 && told.done == 0; n++) {
        const dv_fake_request *q = dv_fake_oldest(fake);
        if (q->is_multi) answer_multi(q->count > 1 ? DIVVY_ENOENT : 0);
        else if (q->ops->kind == DV_GET) answer_root();
        else answer(0);
    }
    expect_end(DV_PLAN_BEHIND, 0);
}

TEST_EACH(set_up, tear_down);
