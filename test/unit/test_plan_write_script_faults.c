/* Tests of the writer: refusals, broken connections, failed allocations, and garbage. SPDX-License-Identifier:
 * Apache-2.0 */
#include "plan_write_script_fixture.h"
#include "znode/request.h"

static void make_scarce(long after) {
    scarce = true;
    left = after;
}

/* A chunk whose name is taken, which cannot be by us, ends the attempt, when those under way are answered; so does any
 * other refusal, and that the root has gone. */
TEST(test_chunk_refused) {
    static const struct {
        int error, outcome, told;
    } cases[] = {{DIVVY_EEXIST, DV_PLAN_FAILED, DIVVY_EEXIST},
                 {DIVVY_EACCES, DV_PLAN_FAILED, DIVVY_EACCES},
                 {DIVVY_ENOENT, DV_PLAN_BEHIND, 0}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        sizes = (dv_plan_sizes){.inline_root_bytes = 0, .chunk_bytes = 100};
        begin();
        answer_reading();
        if (c == 0) answer(0), answer(0);
        answer_multi(0);
        answer(cases[c].error);
        assert_int_equal(told.done, 0);
        answer(0);
        answer(0);
        answer(0);
        expect_end(cases[c].outcome, cases[c].told);
    }
}

/* An epoch that cannot be made: the root has gone, or it may not be. */
TEST(test_epoch_refused) {
    have_plan();
    dv_plan_memory_stand(&memory, DV_PLAN_BROKEN, ++zxid, 9);
    static const struct {
        int error, outcome;
    } cases[] = {{DIVVY_ENOENT, DV_PLAN_BEHIND}, {DIVVY_EACCES, DV_PLAN_FAILED}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        begin();
        answer_reading();
        assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_CREATE);
        answer(cases[c].error);
        expect_end(cases[c].outcome, cases[c].outcome == DV_PLAN_FAILED ? cases[c].error : 0);
    }
}

/* A plan turns out to be broken while its epoch is read: the next one gets a new epoch, and its path takes the place of
 * the other's, which sanitizers see. */
TEST(test_broken_while_read) {
    have_plan();
    memory.past.mzxid = 0;
    begin();
    expect("check /, get " ROOT ", children " PARTY ", get " ROOT "/#1");
    answer_multi(0);
    answer_root();
    dv_client_lock(client);
    dv_plan_memory_stand(&memory, DV_PLAN_BROKEN, memory.mzxid, memory.version);
    dv_client_unlock(client);
    answer(0);
    answer(DIVVY_ENOENT);
    expect("create " ROOT "/#3");
    serve_all();
    assert_int_equal(told.gone, 1);
}

/* ---- what cannot be read ---- */

/* A refused barrier is a barrier; root, party or a member that cannot be read end the attempt. */
TEST(test_reading_refused) {
    begin();
    expect(READING);
    answer_multi(DIVVY_EACCES);
    answer(DIVVY_EACCES);
    answer(0);
    expect_end(DV_PLAN_FAILED, DIVVY_EACCES);
    begin();
    answer_multi(0);
    answer(DIVVY_ENOENT);
    answer(DIVVY_EACCES);
    expect_end(DV_PLAN_FAILED, DIVVY_EACCES);
    begin();
    answer_multi(DIVVY_EACCES);
    answer_root();
    answer(0);
    answer(DIVVY_EACCES);
    answer(0);
    expect_end(DV_PLAN_FAILED, DIVVY_EACCES);
    begin();
    answer_reading();
    answer(DIVVY_ENOENT); /* A node that was not read yet has gone: the party will settle again. */
    expect_end(DV_PLAN_UNSETTLED, 0);
}

/* D37: another party settles while the members of the one before are read. No user hears of that. */
TEST(test_settles_while_reading) {
    static const char *const names[] = {"00000000007000000000071,a=2-m"};
    begin();
    answer_reading();
    dv_client_lock(client);
    assert_int_equal(dv_roster_settle(roster, names, COUNT(names), PZXID + 1), 0);
    dv_client_unlock(client);
    serve_all();
    expect_end(DV_PLAN_UNSETTLED, 0);
}

/* Without a connection nothing is sent. A connection that goes ends the attempt, even if a new one comes at once. */
TEST(test_connection) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    begin();
    expect_end(DV_PLAN_FAILED, DIVVY_ECONNECTION);
    dv_fake_session(fake, DIVVY_CONNECTED);
    for (unsigned answered = 0; answered < 3; answered++) {
        begin();
        expect(READING);
        if (answered > 0) answer_multi(0);
        if (answered > 1) answer_root();
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_session(fake, DIVVY_CONNECTED);
        expect_end(DV_PLAN_FAILED, DIVVY_ECONNECTION);
    }
    have_plan();
    begin();
    answer_reading();
    dv_fake_session(fake, DIVVY_SUSPENDED);
    expect_end(DV_PLAN_FAILED, DIVVY_ECONNECTION);
    dv_fake_session(fake, DIVVY_CONNECTED);
    begin();
    answer_reading();
    dv_fake_session(fake, DIVVY_LOST);
    expect_end(DV_PLAN_FAILED, DIVVY_ELOST);
}

/* ---- memory ---- */

/* Memory runs out at any place: the attempt fails, or does without; what it would have collected is left to others. */
static void memory_runs_out(size_t inline_bytes, bool again) {
    unsigned failed = 0;
    bool whole = false;
    for (long n = 0; !whole; n++) {
        assert_true(n < 2000);
        sizes = (dv_plan_sizes){.inline_root_bytes = inline_bytes, .chunk_bytes = 400};
        dv_plan_memory_clear(&memory);
        dv_plan_memory_stand(&memory, DV_PLAN_MISSING, 0, 0);
        events = (dv_plan_events){0};
        if (again) have_plan();
        make_scarce(n);
        library_runs();
        bool started = start() != NULL;
        dv_fake_run(fake);
        library_rests();
        serve_all();
        whole = make_plentiful();
        if (!started) continue;
        assert_int_equal(told.done, 1);
        assert_int_equal(told.gone, 1);
        if (told.outcome == DV_PLAN_FAILED) assert_int_equal(told.error, DIVVY_ENOMEM);
        else assert_int_equal(told.outcome, DV_PLAN_WRITTEN);
        failed += told.outcome == DV_PLAN_FAILED;
        assert_true(whole || told.outcome == DV_PLAN_FAILED || inline_bytes == 0);
    }
    assert_true(failed > 10);
}

TEST(test_memory_runs_out) {
    memory_runs_out(DV_PLAN_INLINE_ROOT_BYTES, false);
    memory_runs_out(0, false);
    memory_runs_out(DV_PLAN_INLINE_ROOT_BYTES, true);
    memory_runs_out(0, true);
}

/* ---- garbage ---- */

/* Begins an attempt that finds more children below the root than this names. */
static void begin_with_garbage(uint32_t weight) {
    events.weight.weight = weight;
    begin();
    answer_reading();
    children = 9;
}

static void answer_list(void) {
    static const char *const names[] = {"0-a-0", "1-b-0", "99-c-0", "x"};
    expect("children " ROOT);
    assert_int_equal(told.outcome, DV_PLAN_WRITTEN);
    assert_int_equal(told.gone, 0);
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = 4, .stat = &(dv_stat){0}});
    library_rests();
}

/* It checks the root and its epoch with what it deletes, and ends with the first refusal, or when it is stopped. */
TEST(test_garbage) {
    have_plan();
    for (uint32_t refused = 0; refused <= 1; refused++) {
        begin_with_garbage(100 + refused);
        answer_multi(0);
        answer_list();
        expect("multi [check " ROOT "; check " ROOT "/#1; delete " ROOT "/0-a-0; delete " ROOT "/1-b-0]");
        assert_int_equal(dv_fake_oldest(fake)->ops[0].version, memory.version);
        answer_multi(refused ? DIVVY_EVERSION : 0);
        expect_end(DV_PLAN_WRITTEN, 0);
    }
    begin_with_garbage(200);
    answer_multi(0);
    dv_plan_writer_stop(attempt);
    answer_list();
    expect_end(DV_PLAN_WRITTEN, 0);
}

/* However long its paths are, a multi of what it deletes stays within what servers take, and all is deleted. */
TEST(test_long_garbage) {
    enum { CHUNKS = 300, PATH_BYTES = 1000 };
    char path[PATH_BYTES + 1], texts[CHUNKS][16];
    const char *names[CHUNKS];
    memset(path, 'x', PATH_BYTES);
    path[0] = '/';
    path[PATH_BYTES] = '\0';
    root = path;
    for (size_t n = 0; n < CHUNKS; n++) {
        snprintf(texts[n], sizeof texts[n], "0-a-%zu", n);
        names[n] = texts[n];
    }
    have_plan();
    events.weight.weight = 100;
    begin();
    for (int reading = 0; reading < 3; reading++) {
        if (dv_fake_oldest(fake)->is_multi) answer_multi(0);
        else if (dv_fake_oldest(fake)->ops->kind == DV_GET) answer_root();
        else answer(0);
    }
    children = CHUNKS + 1;
    answer_multi(0);
    assert_int_equal(dv_fake_oldest(fake)->ops->kind, DV_CHILDREN);
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = CHUNKS, .stat = &(dv_stat){0}});
    library_rests();
    size_t multis = 0, deleted = 0;
    for (const dv_fake_request *q; (q = dv_fake_oldest(fake)) != NULL; multis++) {
        size_t bytes = 0;
        for (size_t n = 0; n < q->count; n++) bytes += dv_op_bytes(&q->ops[n]);
        assert_true(bytes <= DV_MULTI_BYTES_MAX);
        deleted += q->count - 2;
        answer_multi(0);
    }
    assert_int_equal(deleted, CHUNKS);
    assert_int_equal(multis, 2);
    expect_end(DV_PLAN_WRITTEN, 0);
}

TEST(test_garbage_without_memory) {
    have_plan();
    bool whole = false;
    for (long n = 0; !whole; n++) {
        begin_with_garbage(100 + (uint32_t)n);
        make_scarce(n);
        answer_multi(0);
        if (dv_fake_oldest(fake) != NULL) answer_list();
        serve_all();
        whole = make_plentiful();
        expect_end(DV_PLAN_WRITTEN, 0);
    }
}

TEST_EACH(set_up, tear_down);
