/* Tests of plan/reader.h when an allocation fails: it is built in here, on an allocator that fails as told.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_nodes.h"
#include "recipe/fetch.h"

/* The number of the next allocation that fails, from 1 on; 0: none. */
static size_t fails_at, failed;

static bool fails(void) {
    if (fails_at == 0 || --fails_at > 0) return false;
    failed++;
    return true;
}

static void *failing_malloc(size_t bytes) {
    return fails() ? NULL : malloc(bytes);
}

static void *failing_calloc(size_t count, size_t bytes) {
    return fails() ? NULL : calloc(count, bytes);
}

static void *failing_realloc(void *memory, size_t bytes) {
    return fails() ? NULL : realloc(memory, bytes);
}

static int failing_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    return fails() ? DIVVY_ENOMEM : znode->backend->submit(znode, op, watch, done, context);
}

static int failing_get(dv_znode *znode, const char *path, dv_watch *watch, dv_reply_fn done, void *context) {
    return failing_submit(znode, &(dv_op){.kind = DV_GET, .path = path}, watch, done, context);
}

static int failing_exists(dv_znode *znode, const char *path, dv_watch *watch, dv_reply_fn done, void *context) {
    return failing_submit(znode, &(dv_op){.kind = DV_EXISTS, .path = path}, watch, done, context);
}

static int failing_fetch(dv_fetch **out, divvy_client *client, const dv_fetch_kind *kind, const char *directory,
                         const char *const *names, size_t count, void *context) {
    return fails() ? DIVVY_ENOMEM : dv_fetch_start(out, client, kind, directory, names, count, context);
}

static dv_plan *failing_copy(const dv_plan *plan) {
    return fails() ? NULL : dv_plan_copy(plan);
}

static int failing_items(dv_plan_set **out, const dv_plan_root *root, const char *text, size_t bytes,
                         dv_plan_fault *fault) {
    return fails() ? DIVVY_ENOMEM : dv_plan_items_parse(out, root, text, bytes, fault);
}

static int failing_root(dv_plan_root *out, const char *text, size_t bytes, dv_plan_fault *fault) {
    *out = (dv_plan_root){0};
    return fails() ? DIVVY_ENOMEM : dv_plan_root_parse(out, text, bytes, fault);
}

static int failing_complete(dv_plan *plan, dv_plan_root *root, dv_plan_fault *fault) {
    return fails() ? DIVVY_ENOMEM : dv_plan_complete(plan, root, fault);
}

#define malloc failing_malloc
#define calloc failing_calloc
#define realloc failing_realloc
#define dv_fetch_start failing_fetch
#define dv_znode_get failing_get
#define dv_znode_exists failing_exists
#define dv_plan_copy failing_copy
#define dv_plan_items_parse failing_items
#define dv_plan_root_parse failing_root
#define dv_plan_complete failing_complete
#include "plan/reader.c"
#undef malloc
#undef calloc
#undef realloc
#undef dv_plan_copy
#undef dv_fetch_start

static const dv_plan_reader_events plain_events = {on_changed, on_failed, on_gone};

/* A reader that waits for its timer whenever there is nothing to answer; false when it could not begin. */
static bool read_all(void) {
    memset(&heard.changed, 0, sizeof heard - offsetof(__typeof__(heard), changed));
    dv_client_lock(nodes.client);
    heard.reader = dv_plan_reader_start(nodes.client, ROOT, &heard.memory, NULL, &plain_events, &heard);
    dv_client_unlock(nodes.client);
    if (!heard.reader) return false;
    dv_fake_run(nodes.fake);
    serve_all();
    for (int rests = 0; rests < 2; rests++) {
        assert_int_equal(under_way(), 0);
        dv_fake_advance(nodes.fake, 1000);
        serve_all();
    }
    return true;
}

/* Each allocation fails in turn, for a base in chunks, a delta after it, and a root that is gone: a second later it is
 * tried again, and goes well. */
TEST_IN(test_each_allocation, set_up_nodes, tear_down_nodes) {
    writer.chunk_bytes = 100;
    dv_plan *empty = plan_of(50), *plan = next_plan(empty, 1), *next = next_plan(plan, 2);
    for (int what = 0; what < 3; what++) {
        if (what == 0) write_base(plan);
        else if (what == 1) write_delta(next);
        else put_away(ROOT);
        size_t at = 1;
        for (bool all_done = false; !all_done; at++) {
            if (what == 0) dv_plan_memory_clear(&heard.memory);
            dv_plan *before = heard.memory.plan;
            size_t failures = failed;
            fails_at = at;
            bool begun = read_all();
            all_done = failed == failures;
            fails_at = 0;
            if (begun && what < 2) assert_follows();
            if (begun && what == 2) assert_int_equal(heard.memory.standing, DV_PLAN_MISSING);
            stop_reader();
            if (begun) assert_int_equal(heard.gone, 1);
            if (what == 1 && before != heard.memory.plan) { /* Back to the plan before, for the next round. */
                dv_plan_root root = {0};
                dv_plan *old = dv_plan_copy(plan);
                dv_plan_memory_clear(&heard.memory);
                strcpy(old->header.guid, next->header.after);
                old->mzxid = 1;
                dv_plan_memory_take(&heard.memory, old, &root, 0);
            }
        }
        assert_true(at > (what == 2 ? 3 : 6));
    }
    dv_plan_free(empty);
    dv_plan_free(plan);
    dv_plan_free(next);
}
