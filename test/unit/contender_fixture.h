/* Contenders on a backend that a test answers step by step. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CONTENDER_FIXTURE_H
#define DV_TEST_CONTENDER_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_tree.h"
#include "lib/test.h"
#include "recipe/contender.h"

#define QUEUE "/q"
#define OURS(sequence) QUEUE "/" DV_FAKE_GUID "1__lock__000000000" #sequence
#define NOBODY 77 /* a session of somebody else */

static dv_fake *fake;
static dv_tree *tree;

/* The events that a contender's owner was told. */
typedef struct {
    dv_contender *contender; /* NULL once gone */
    int held, failed, gone, error;
    bool held_after_loss, is_lost;
} owner;

static inline void on_held(void *context, int64_t now) {
    owner *o = context;
    (void)now;
    assert_int_equal(o->failed + o->gone, 0);
    if (o->is_lost) o->held_after_loss = true;
    o->held++;
}

static inline void on_failed(void *context, int error, int64_t now) {
    owner *o = context;
    (void)now;
    assert_int_equal(o->failed + o->gone, 0);
    o->failed++;
    o->error = error;
}

static inline void on_gone(void *context, dv_contender *contender, int64_t now) {
    owner *o = context;
    (void)now;
    assert_ptr_equal(contender, o->contender);
    o->gone++;
    o->contender = NULL;
}

static const dv_contender_events events = {.held = on_held, .failed = on_failed, .gone = on_gone};

static inline int enter_as(owner *o, const char *directory, const dv_queue_kind *kind) {
    *o = (owner){.contender = NULL};
    dv_client_lock(dv_fake_client(fake));
    int error = dv_contender_enter(&o->contender, dv_fake_client(fake), directory, kind, "me", &events, o);
    dv_client_unlock(dv_fake_client(fake));
    return error;
}

static inline int enter_at(owner *o, const char *directory) {
    return enter_as(o, directory, &dv_exclusive_queue);
}

static inline void enter(owner *o) {
    assert_int_equal(enter_at(o, QUEUE), 0);
}

static inline void leave(owner *o) {
    dv_client_lock(dv_fake_client(fake));
    dv_contender_leave(o->contender);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static inline int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    tree = dv_tree_new(fake);
    dv_tree_put(tree, QUEUE, DV_PERSISTENT, 0);
    return 0;
}

static inline int set_up_connected(void **state) {
    set_up(state);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

/* Nothing of any contender may be left: no room that it took, no listener, no timer. */
static inline int tear_down(void **state) {
    (void)state;
    divvy_client *client = dv_fake_client(fake);
    dv_fake_end_latecomers(fake);
    bool clean = client->ephemeral_count == 0 && client->ephemerals.used_bytes == 0 &&
                 client->watched.used_bytes == 0 && !client->listeners;
    dv_fake_close(fake);
    dv_tree_free(tree);
    return clean ? 0 : -1;
}

static inline void answer_created(const char *path, int64_t czxid) {
    dv_fake_answer(fake, &(dv_reply){.path = path, .stat = &(dv_stat){.czxid = czxid}});
}

static inline void answer_children(const char *const *names, size_t count) {
    dv_fake_answer(fake, &(dv_reply){.children = names, .child_count = count, .stat = &(dv_stat){.pzxid = 1}});
}

static inline void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

#define ANSWER_CHILDREN(...)                                       \
    do {                                                           \
        const char *const names_[] = {__VA_ARGS__};                \
        answer_children(names_, sizeof names_ / sizeof names_[0]); \
    } while (0)
#define OWN_NAME(sequence) DV_FAKE_GUID "1__lock__000000000" #sequence

#endif
