/* Tests of races that random histories found in locks and semaphores, each made to happen: an object destroyed while
 * its loss is still to be told, and a place in the queue that somebody deletes under an admission. On an in-memory
 * ensemble in virtual time; what is checked in every step: semaphore_fixture.h. SPDX-License-Identifier: Apache-2.0 */
#include "semaphore_fixture.h"

/* --- destroyed before the loss was told -------------------------------------------------------------------------- */

typedef struct {
    int lost, done, result;
} heard;

static void hear_lock_lost(divvy_lock *lock, void *context) {
    (void)lock;
    ((heard *)context)->lost++;
}

static void hear_done(heard *h, int result) {
    h->done++;
    h->result = result;
}

static void hear_lock_done(divvy_lock *lock, int result, void *context) {
    (void)lock;
    hear_done(context, result);
}

static void hear_slots_lost(divvy_semaphore *semaphore, void *context) {
    (void)semaphore;
    ((heard *)context)->lost++;
}

static void hear_slots_done(divvy_semaphore *semaphore, int result, void *context) {
    (void)semaphore;
    hear_done(context, result);
}

/* The process stands still until its session is over, and goes on; its loop has not run yet. */
static void oversleep(void) {
    assert_int_equal(divvy_testing_pause_client(ensemble, clients[0], 1), 0);
    run(3 * SESSION_MS);
    assert_int_equal(divvy_testing_pause_client(ensemble, clients[0], 0), 0);
}

/* The loss of a lock is found by release() and stands in the queue of callbacks; an acquire that a destroy cancels
 * comes after it there. The destroy runs what it waits for, and the loss is not told. */
TEST(test_lock_destroyed_before_the_loss_is_told) {
    heard h = {.result = NEVER};
    divvy_lock *lock;
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = "/locks/l";
    config.identifier = "me";
    config.on_lost = hear_lock_lost;
    config.user = &h;
    assert_int_equal(divvy_lock_create(&lock, clients[0], &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, 5000), 0);
    oversleep();
    assert_int_equal(divvy_lock_release(lock), DIVVY_ENOTHELD);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, hear_lock_done, &h), 0);
    assert_int_equal(h.lost, 0); /* It is still to be told. */
    divvy_lock_destroy(lock);
    assert_int_equal(h.done, 1);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    assert_int_equal(h.lost, 0);
    run(3 * SESSION_MS);
    assert_int_equal(h.lost, 0);
}

/* Likewise the loss of slots. */
TEST(test_semaphore_destroyed_before_the_loss_is_told) {
    heard h = {.result = NEVER};
    divvy_semaphore *semaphore;
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = "/pools/other";
    config.identifier = "me";
    config.limit = 2;
    config.on_lost = hear_slots_lost;
    config.user = &h;
    assert_int_equal(divvy_semaphore_create(&semaphore, clients[0], &config), 0);
    assert_int_equal(divvy_semaphore_acquire(semaphore, 5000), 0);
    oversleep();
    assert_int_equal(divvy_semaphore_release(semaphore), DIVVY_ENOTHELD);
    assert_int_equal(divvy_semaphore_acquire_async(semaphore, -1, hear_slots_done, &h), 0);
    assert_int_equal(h.lost, 0);
    divvy_semaphore_destroy(semaphore);
    assert_int_equal(h.done, 1);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    assert_int_equal(h.lost, 0);
    run(3 * SESSION_MS);
    assert_int_equal(h.lost, 0);
}

/* --- a place deleted under an admission -------------------------------------------------------------------------- */

static void find_place(char path[sizeof nodes->path]) {
    path[0] = '\0';
    for (size_t i = 0; i < node_count; i++) {
        if (!nodes[i].leases) memcpy(path, nodes[i].path, sizeof nodes->path);
    }
}

/* The head of the queue is connected again and finds room; meanwhile somebody deletes its place, and a moment later the
 * pool's version changes. Whichever of both the transaction meets first, the queue is entered again, and the slot is
 * had: no acquire ends with an error that its header does not know. Tried with many distances between the two. */
static void deleted_under_the_head(int64_t before_ms, int64_t between_ms) {
    user *a = make(0, 1), *b = make(1, 1);
    hold(b);
    assert_true(ask(a, -1));
    run(500);
    char place[sizeof nodes->path];
    find_place(place);
    assert_true(place[0]);
    let_go(b);
    divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_NOT_APPLIED, 0);
    run(before_ms);
    if (divvy_testing_exists(ensemble, place)) divvy_testing_remove(ensemble, place);
    run(between_ms);
    assert_int_equal(divvy_testing_put(ensemble, POOL, "1", 1, DIVVY_TESTING_PERSISTENT), 0);
    run(SESSION_MS);
    CLAIM(a->result == 0, "%lld and %lld ms: the acquire ended with \"%s\"", (long long)before_ms,
          (long long)between_ms, a->reason);
    destroy(a);
    destroy(b);
    run(500);
    user_count = 0;
}

/* As set_up(), with messages that take their time, so that much is under way at once. */
static int set_up_slow(void **state) {
    (void)state;
    seed = random_state = 1;
    client_delay_max_ms = 25;
    open_clients();
    run(500);
    return 0;
}

static int tear_down_slow(void **state) {
    client_delay_max_ms = 1;
    return tear_down(state);
}

TEST_IN(test_place_deleted_under_an_admission, set_up_slow, tear_down_slow) {
    for (int64_t before_ms = 10; before_ms < 90; before_ms++) {
        for (int64_t between_ms = 0; between_ms < 30; between_ms += 3) deleted_under_the_head(before_ms, between_ms);
    }
}

TEST_EACH(set_up, tear_down);
