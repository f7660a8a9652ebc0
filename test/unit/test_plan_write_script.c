/* Tests of partitioner/plan_write.h on a scripted backend: what is asked for, in which order, and what comes of each
 * answer. SPDX-License-Identifier: Apache-2.0 */
#include "lib/fake_znode.h"
#include "lib/scarce.h"
#include "plan/draft.h"
#include "plan/garbage.h"
#include "plan/writer.h"
#include "plan_fixture.h"

#define ROOT "/p/plan"
#define PARTY "/p/party"
#define READING "check /, get " ROOT ", children " PARTY

enum { NOT_DONE = -1, PZXID = 50 };

static dv_fake *fake;
static divvy_client *client;
static dv_roster *people;
static dv_plan_memory memory;
static dv_plan_set *set;
static dv_plan_events events;
static dv_plan_writer *attempt;
static struct { int outcome, error, done, gone; } told;
static int64_t zxid;

/* ---- memory runs out in the library, never in the backend, which can only refuse to send ---- */

static dv_znode_backend backend;
static const dv_znode_backend *fakes_backend;
static void (*fakes_post)(void *queue, dv_event *event);
static bool scarce, running;
static long left; /* while the library does not run */

static void library_runs(void) {
    running = true;
    if (scarce) scarce_after = left;
}

static void library_rests(void) {
    if (scarce && running) left = scarce_after;
    running = false;
    scarce_after = -1;
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    if (scarce_now()) return DIVVY_ENOMEM;
    library_rests();
    int error = fakes_backend->submit(znode, op, watch, done, context);
    library_runs();
    return error;
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    if (scarce_now()) return DIVVY_ENOMEM;
    library_rests();
    int error = fakes_backend->multi(znode, ops, count, done, context);
    library_runs();
    return error;
}

/* An answer has been made, and is about to be heard. */
static void post(void *queue, dv_event *event) {
    fakes_post(queue, event);
    library_runs();
}

static void make_scarce(long after) {
    scarce = true;
    left = after;
}

/* Whether it did not come to that. */
static bool make_plentiful(void) {
    scarce = false;
    scarce_after = -1;
    return left >= 0;
}

/* ---- the attempt ---- */

static void on_done(void *owner, dv_plan_outcome outcome, int error, int64_t now) {
    (void)now;
    assert_ptr_equal(owner, &told);
    told.outcome = (int)outcome;
    told.error = error;
    told.done++;
}

static void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.gone++;
    attempt = NULL;
}

static dv_plan_writer *start(void) {
    static const dv_plan_writer_events heard = {on_done, on_gone};
    const dv_plan_writer_config config = {ROOT, PARTY, &memory, people, &events, false};
    told.outcome = NOT_DONE;
    told.error = told.done = told.gone = 0;
    dv_turn_begin(client);
    attempt = dv_plan_writer_start(client, &config, &heard, &told);
    dv_turn_end(client);
    return attempt;
}

static void begin(void) {
    assert_non_null(start());
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_run(fake);
}

static void expect(const char *pending) {
    assert_string_equal(dv_fake_pending(fake), pending);
}

static void expect_end(int outcome, int error) {
    expect("");
    assert_int_equal(told.outcome, outcome);
    assert_int_equal(told.error, error);
    assert_int_equal(told.done, 1);
    assert_int_equal(told.gone, 1);
}

/* ---- answers ---- */

static void answer(int error) {
    const dv_stat stat = {.czxid = 1, .mzxid = 1, .pzxid = PZXID, .ephemeral_owner = 1};
    dv_fake_answer(fake, &(dv_reply){.error = error, .stat = error ? NULL : &stat, .data = "{}", .data_bytes = 2});
    library_rests();
}

static void answer_multi(int error) {
    dv_stat stat = {.mzxid = ++zxid, .version = memory.version + 1, .children = 1};
    const dv_reply replies[3] = {{.stat = &stat}, {.stat = &stat}, {.stat = &stat}};
    dv_fake_answer_multi(fake, error, error ? NULL : replies);
    library_rests();
}

/* The root is what the memory knows of. */
static void answer_root(void) {
    const dv_stat stat = {.mzxid = memory.mzxid, .version = memory.found_version};
    const char *text = memory.standing == DV_PLAN_GOOD ? "not looked at" : "nonsense";
    if (memory.mzxid == 0) answer(DIVVY_ENOENT);
    else dv_fake_answer(fake, &(dv_reply){.stat = &stat, .data = text, .data_bytes = strlen(text)});
    library_rests();
}

static void answer_reading(void) {
    expect(READING);
    answer_multi(0);
    answer_root();
    answer(0);
}

/* Whatever comes is answered well, until there is nothing more. */
static void serve_all(void) {
    for (const dv_fake_request *q; (q = dv_fake_oldest(fake)) != NULL;) {
        if (q->is_multi) answer_multi(0);
        else if (strcmp(q->ops->path, ROOT) == 0 && q->ops->kind == DV_GET) answer_root();
        else answer(0);
    }
}

/* The next attempt has a new weight to write. */
static void want_weight(void) {
    static const dv_plan_weight weight = {"00000000007000000000071,a=2-m", 500};
    events = (dv_plan_events){.weights = &weight, .weight_count = 1};
}

/* A plan has been written that is all in one node, or in chunks. */
static void have_plan(void) {
    begin();
    serve_all();
    expect_end(DV_PLAN_WRITTEN, 0);
    want_weight();
}

/* ---- the order of things ---- */

/* The barrier goes before the root, and the root before the party, at once and on one connection. */
static void test_order(void **state) {
    (void)state;
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
static void test_chunks_in_flight(void **state) {
    (void)state;
    dv_plan_inline_root_bytes = 0;
    dv_plan_chunk_bytes = 100;
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

/* A chunk whose name is taken, which cannot be by us, ends the attempt, when those under way are answered; so does any
 * other refusal, and that the root has gone. */
static void test_chunk_refused(void **state) {
    (void)state;
    static const struct {
        int error, outcome, told;
    } cases[] = {{DIVVY_EEXIST, DV_PLAN_FAILED, DIVVY_EEXIST},
                 {DIVVY_EACCES, DV_PLAN_FAILED, DIVVY_EACCES},
                 {DIVVY_ENOENT, DV_PLAN_BEHIND, 0}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        dv_plan_inline_root_bytes = 0;
        dv_plan_chunk_bytes = 100;
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

/* ---- the multi's answers ---- */

/* Each answer to the multi that creates the root. */
static void test_outcomes_of_creation(void **state) {
    (void)state;
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
static void test_outcomes_of_setting(void **state) {
    (void)state;
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
static void test_no_node(void **state) {
    (void)state;
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
static void test_no_node_for_ever(void **state) {
    (void)state;
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

/* An epoch that cannot be made: the root has gone, or it may not be. */
static void test_epoch_refused(void **state) {
    (void)state;
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

/* ---- what cannot be read ---- */

/* A refused barrier is a barrier; root, party or a member that cannot be read end the attempt. */
static void test_reading_refused(void **state) {
    (void)state;
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
    answer(DIVVY_ENOENT); /* Who was not read yet has gone: the party will settle again. */
    expect_end(DV_PLAN_UNSETTLED, 0);
}

/* Without a connection nothing is sent; a connection that goes ends the attempt, even if another one comes at once. */
static void test_connection(void **state) {
    (void)state;
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
        dv_plan_inline_root_bytes = inline_bytes;
        dv_plan_chunk_bytes = 400;
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

static void test_memory_runs_out(void **state) {
    (void)state;
    memory_runs_out(DV_PLAN_INLINE_ROOT_BYTES, false);
    memory_runs_out(0, false);
    memory_runs_out(DV_PLAN_INLINE_ROOT_BYTES, true);
    memory_runs_out(0, true);
}

/* ---- garbage ---- */

static int collected;

static void on_collected(void *context, int64_t now) {
    (void)now;
    assert_ptr_equal(context, &collected);
    collected++;
}

static dv_plan_garbage *collect(void) {
    collected = 0;
    dv_turn_begin(client);
    dv_plan_garbage *garbage =
        dv_plan_garbage_new(client, ROOT, &memory.root, memory.version, on_collected, &collected);
    if (garbage != NULL && !dv_plan_garbage_collect(garbage)) {
        dv_plan_garbage_free(garbage);
        garbage = NULL;
    }
    dv_turn_end(client);
    return garbage;
}

static void answer_list(void) {
    static const char *const names[] = {"0-a-0", "1-b-0", "2-c-0", "x"};
    expect("children " ROOT);
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = 4, .stat = &(dv_stat){0}});
    library_rests();
}

/* It checks the root and its epoch with what it deletes, and ends with the first refusal. */
static void test_garbage(void **state) {
    (void)state;
    have_plan();
    for (int refused = 0; refused <= 1; refused++) {
        dv_plan_garbage *garbage = collect();
        answer_list();
        expect("multi [check " ROOT "; check " ROOT "/#1; delete " ROOT "/0-a-0; delete " ROOT "/1-b-0]");
        assert_int_equal(dv_fake_oldest(fake)->ops[0].version, memory.version);
        answer_multi(refused ? DIVVY_EVERSION : 0);
        expect("");
        assert_int_equal(collected, 1);
        dv_plan_garbage_free(garbage);
    }
    dv_plan_garbage *garbage = collect();
    dv_plan_garbage_stop(garbage);
    answer_list();
    expect("");
    assert_int_equal(collected, 1);
    dv_plan_garbage_free(garbage);
}

static void test_garbage_without_memory(void **state) {
    (void)state;
    have_plan();
    bool whole = false;
    for (long n = 0; !whole; n++) {
        make_scarce(n);
        library_runs();
        dv_plan_garbage *garbage = collect();
        library_rests();
        if (garbage != NULL) answer_list();
        serve_all();
        whole = make_plentiful();
        assert_int_equal(collected, garbage != NULL);
        dv_plan_garbage_free(garbage);
    }
}

/* ---- life ---- */

static int set_up(void **state) {
    (void)state;
    static const char *const names[] = {"00000000007000000000071,a=2-m", "00000000007000000000072,a=2-n"};
    fake = dv_fake_open(NULL);
    client = dv_fake_client(fake);
    dv_fake_session(fake, DIVVY_CONNECTED);
    fakes_backend = client->znode->backend;
    backend = *fakes_backend;
    backend.submit = submit;
    backend.multi = multi;
    client->znode->backend = &backend;
    fakes_post = client->znode->sink.post;
    client->znode->sink.post = post;
    zxid = 1000;
    set = numbered_set("i", 20);
    people = dv_roster_new(client, PARTY, NULL, NULL);
    assert_int_equal(dv_roster_settle(people, names, COUNT(names), PZXID), 0);
    dv_roster_party(people)->set = set;
    dv_roster_party(people)->options = (dv_plan_options){.algorithm = DV_PLAN_ALGORITHM};
    memory = (dv_plan_memory){.standing = DV_PLAN_MISSING};
    events = (dv_plan_events){0};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    make_plentiful();
    serve_all();
    bool clean = attempt == NULL && client->listeners == NULL && !dv_fake_has_timers(fake);
    dv_roster_free(people);
    dv_fake_close(fake);
    dv_plan_memory_clear(&memory);
    dv_plan_set_unref(set);
    dv_plan_inline_root_bytes = DV_PLAN_INLINE_ROOT_BYTES;
    dv_plan_chunk_bytes = DV_PLAN_CHUNK_BYTES;
    return clean ? 0 : -1;
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_order),
        TEST(test_chunks_in_flight),
        TEST(test_chunk_refused),
        TEST(test_outcomes_of_creation),
        TEST(test_outcomes_of_setting),
        TEST(test_no_node),
        TEST(test_no_node_for_ever),
        TEST(test_epoch_refused),
        TEST(test_reading_refused),
        TEST(test_connection),
        TEST(test_memory_runs_out),
        TEST(test_garbage),
        TEST(test_garbage_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
