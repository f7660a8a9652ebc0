/* Tests of partitioner/plan_write.h on a scripted backend: what is asked for, in which order, and what comes of each
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
    expect("multi [check " ROOT "/#1; set " ROOT "]");
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
    expect("multi [check " ROOT "/#1; set " ROOT "]");
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
        expect_end(cases[c].outcome, cases[c].outcome == DV_PLAN_FAILED ? cases[c].error : 0);
        assert_int_equal(memory.mzxid, mzxid);
        assert_int_equal(memory.standing, DV_PLAN_GOOD);
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
    snprintf(commit, sizeof commit, "multi [check " ROOT "/%s; set " ROOT "]", made);
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
