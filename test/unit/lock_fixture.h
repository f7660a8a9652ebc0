/* Shared by the tests of divvy/lock.h on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_LOCK_FIXTURE_H
#define DV_TEST_LOCK_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/lock.h"
#include "lib/fake_tree.h"
#include "lib/test.h"
#include "recipe/lock.h"

#define PATH "/l"
#define NOBODY 77  /* a session of somebody else */
#define NEVER 1000 /* of `done`: not called yet */
#define OURS(attempt, sequence) PATH "/" DV_FAKE_GUID #attempt "__lock__000000000" #sequence

static dv_fake *fake;
static dv_tree *tree;

/* The user of a lock, and what it was told. */
typedef struct {
    divvy_lock *lock;
    int done, result, lost;
    bool acquires_when_lost, destroys_when_lost, releases_when_done, destroys_when_done;
    int said_when_lost; /* by that acquire */
} holder;

static inline void on_done(divvy_lock *lock, int result, void *user);

static inline void on_lost(divvy_lock *lock, void *user) {
    holder *h = user;
    assert_ptr_equal(lock, h->lock);
    assert_false(divvy_lock_held(lock));
    h->lost++;
    if (h->acquires_when_lost) {
        assert_int_equal(divvy_lock_acquire(lock, -1), DIVVY_EDEADLK);
        h->said_when_lost = divvy_lock_acquire_async(lock, -1, on_done, h);
    }
    if (h->destroys_when_lost) divvy_lock_destroy(lock);
}

static inline void on_done(divvy_lock *lock, int result, void *user) {
    holder *h = user;
    assert_ptr_equal(lock, h->lock);
    h->done++;
    h->result = result;
    if (h->releases_when_done && result == 0) assert_int_equal(divvy_lock_release(lock), 0);
    if (h->destroys_when_done) {
        divvy_lock_destroy(lock);
        h->lock = NULL;
    }
}

static inline int create(holder *h, const char *path, int mode) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = path;
    config.identifier = "me";
    config.mode = mode;
    config.on_lost = on_lost;
    config.user = h;
    *h = (holder){.result = NEVER, .said_when_lost = NEVER};
    return divvy_lock_create(&h->lock, dv_fake_client(fake), &config);
}

static inline void make(holder *h, int mode) {
    assert_int_equal(create(h, PATH, mode), 0);
}

static inline void ask(holder *h, int64_t timeout_ms) {
    h->result = NEVER;
    assert_int_equal(divvy_lock_acquire_async(h->lock, timeout_ms, on_done, h), 0);
    dv_fake_run(fake);
}

static inline void serve(void) {
    dv_tree_serve_all(tree);
}

static inline void hold(holder *h) {
    ask(h, -1);
    serve();
    assert_int_equal(h->result, 0);
    assert_true(divvy_lock_held(h->lock));
}

static inline void destroy(holder *h) {
    divvy_lock_destroy(h->lock);
    h->lock = NULL;
    dv_fake_run(fake);
}

static inline size_t owned(void) {
    return dv_tree_owned(tree, NULL);
}

static inline int set_up_offline(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    tree = dv_tree_new(fake);
    dv_tree_put(tree, PATH, DV_PERSISTENT, 0);
    return 0;
}

static inline int set_up(void **state) {
    set_up_offline(state);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

/* Nothing may be left: no room that it took, no listener, no timer. */
static inline int tear_down(void **state) {
    (void)state;
    divvy_client *client = dv_fake_client(fake);
    dv_fake_run(fake);
    serve();
    dv_fake_end_latecomers(fake);
    bool clean = client->ephemeral_count == 0 && client->ephemerals.used_bytes == 0 &&
                 client->watched.used_bytes == 0 && !client->listeners && !dv_fake_has_timers(fake);
    dv_fake_close(fake);
    dv_tree_free(tree);
    return clean ? 0 : -1;
}

static inline void answer_error(int error) {
    dv_fake_answer(fake, &(dv_reply){.error = error});
}

#endif
