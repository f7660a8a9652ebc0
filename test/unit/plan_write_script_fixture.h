/* A writer of plans on a backend that a test answers step by step. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_WRITE_SCRIPT_FIXTURE_H
#define DV_TEST_PLAN_WRITE_SCRIPT_FIXTURE_H

#include "lib/fake_znode.h"
#include "lib/scarce.h"
#include "plan/writer.h"
#include "plan_fixture.h"

#define ROOT "/p/plan"
#define PARTY "/p/party"
#define READING "check /, get " ROOT ", children " PARTY

enum { NOT_DONE = -1, PZXID = 50 };

static dv_fake *fake;
static divvy_client *client;
static dv_roster *roster;
static const char *root = ROOT;
static dv_plan_memory memory;
static dv_plan_set *set;
static dv_plan_events events;
static dv_plan_sizes sizes = {DV_PLAN_INLINE_ROOT_BYTES, DV_PLAN_CHUNK_BYTES};
static dv_plan_writer *attempt;
static struct { int outcome, error, done, gone; } told;
static int64_t zxid;
static int32_t children = 1;      /* of the root, as a set of it tells */
static bool has_root, has_orphan; /* D28: it is made, or being made; something was to be made below none */

/* ---- memory runs out in the library, never in the backend, which can only refuse to send ---- */

static dv_znode_backend backend;
static const dv_znode_backend *fakes_backend;
static void (*fakes_post)(void *queue, dv_event *event);
static bool scarce, running;
static long left; /* while the library does not run */

static inline void library_runs(void) {
    running = true;
    if (scarce) scarce_after = left;
}

static inline void library_rests(void) {
    if (scarce && running) left = scarce_after;
    running = false;
    scarce_after = -1;
}

static inline int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    if (scarce_now()) return DIVVY_ENOMEM;
    library_rests();
    has_orphan |= op->kind == DV_CREATE && !has_root;
    int error = fakes_backend->submit(znode, op, watch, done, context);
    library_runs();
    return error;
}

static inline int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    if (scarce_now()) return DIVVY_ENOMEM;
    library_rests();
    has_root |= ops[0].kind == DV_CREATE && strcmp(ops[0].path, root) == 0;
    int error = fakes_backend->multi(znode, ops, count, done, context);
    library_runs();
    return error;
}

/* An answer has been made, and is about to be heard. */
static inline void post(void *queue, dv_event *event) {
    fakes_post(queue, event);
    library_runs();
}

/* Ends the scarcity. Returns whether no allocation was refused. */
static inline bool make_plentiful(void) {
    scarce = false;
    scarce_after = -1;
    return left >= 0;
}

/* ---- the attempt ---- */

static inline void on_done(void *owner, dv_plan_outcome outcome, int error, int64_t now) {
    (void)now;
    assert_ptr_equal(owner, &told);
    told.outcome = (int)outcome;
    told.error = error;
    told.done++;
}

static inline void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.gone++;
    attempt = NULL;
}

static inline dv_plan_writer *start(void) {
    static const dv_plan_writer_events heard = {on_done, on_gone};
    const dv_plan_writer_config config = {root, PARTY, &memory, roster, &events, false, &sizes, {0}};
    has_root = memory.mzxid > 0;
    told.outcome = NOT_DONE;
    told.error = told.done = told.gone = 0;
    dv_client_lock(client);
    attempt = dv_plan_writer_start(client, &config, &heard, &told);
    dv_client_unlock(client);
    return attempt;
}

static inline void begin(void) {
    assert_non_null(start());
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_run(fake);
}

static inline void expect(const char *pending) {
    assert_string_equal(dv_fake_pending(fake), pending);
}

static inline void expect_end(int outcome, int error) {
    expect("");
    assert_int_equal(told.outcome, outcome);
    assert_int_equal(told.error, error);
    assert_int_equal(told.done, 1);
    assert_int_equal(told.gone, 1);
}

/* ---- answers ---- */

static inline void answer(int error) {
    const dv_stat stat = {.czxid = 1, .mzxid = 1, .pzxid = PZXID, .ephemeral_owner = 1};
    dv_fake_answer(fake, &(dv_reply){.error = error, .stat = error ? NULL : &stat, .data = "{}", .data_bytes = 2});
    library_rests();
}

static inline void answer_multi(int error) {
    dv_stat stat = {.mzxid = ++zxid, .version = memory.version + 1, .children = children};
    const dv_reply replies[3] = {{.stat = &stat}, {.stat = &stat}, {.stat = &stat}};
    dv_fake_answer_multi(fake, error, error ? NULL : replies);
    library_rests();
}

/* The root is what the memory knows of. */
static inline void answer_root(void) {
    const dv_stat stat = {.mzxid = memory.mzxid, .version = memory.version};
    const char *text = memory.standing == DV_PLAN_GOOD ? "not looked at" : "nonsense";
    if (memory.mzxid == 0) answer(DIVVY_ENOENT);
    else dv_fake_answer(fake, &(dv_reply){.stat = &stat, .data = text, .data_bytes = strlen(text)});
    library_rests();
}

static inline void answer_reading(void) {
    expect(READING);
    answer_multi(0);
    answer_root();
    answer(0);
}

/* Answers all that comes well, until there is nothing more. */
static inline void serve_all(void) {
    for (const dv_fake_request *q; (q = dv_fake_oldest(fake)) != NULL;) {
        if (q->is_multi) answer_multi(0);
        else if (strcmp(q->ops->path, root) == 0 && q->ops->kind == DV_GET) answer_root();
        else answer(0);
    }
}

/* The next attempt has a new weight to write. */
static inline void want_weight(void) {
    events = (dv_plan_events){.weight = {"00000000007000000000071,a=2-m", 500}};
}

/* A plan has been written that is all in one node, or in chunks. */
static inline void have_plan(void) {
    begin();
    serve_all();
    expect_end(DV_PLAN_WRITTEN, 0);
    want_weight();
}

/* ---- life ---- */

static inline int set_up(void **state) {
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
    roster = dv_roster_new(client, PARTY, NULL, NULL);
    assert_int_equal(dv_roster_settle(roster, names, COUNT(names), PZXID), 0);
    dv_roster_party(roster)->set = set;
    memory = (dv_plan_memory){.standing = DV_PLAN_MISSING};
    events = (dv_plan_events){0};
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    make_plentiful();
    serve_all();
    bool clean = attempt == NULL && !has_orphan && client->listeners == NULL && !dv_fake_has_timers(fake);
    dv_roster_free(roster);
    dv_fake_close(fake);
    dv_plan_memory_clear(&memory);
    dv_plan_set_unref(set);
    sizes = (dv_plan_sizes){DV_PLAN_INLINE_ROOT_BYTES, DV_PLAN_CHUNK_BYTES};
    children = 1;
    root = ROOT;
    has_orphan = false;
    return clean ? 0 : -1;
}

#endif
