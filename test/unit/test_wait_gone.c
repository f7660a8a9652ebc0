/* Tests of divvy_lock_wait_gone() and divvy_semaphore_wait_gone(). SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { WAIT_MS = 60000, TIMES = 60 };

static divvy_testing_ensemble *ensemble;
static divvy_client *clients[2];
static divvy_lock *locks[2];
static divvy_semaphore *pools[2];

static int make(int i) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock = DIVVY_LOCK_CONFIG_INIT;
    divvy_semaphore_config pool = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.manual = 1;
    lock.path = "/l";
    pool.path = "/s";
    if (divvy_testing_client_open(&clients[i], ensemble, &config) != 0) return -1;
    if (divvy_lock_create(&locks[i], clients[i], &lock) != 0) return -1;
    if (divvy_semaphore_create(&pools[i], clients[i], &pool) != 0) return -1;
    return divvy_client_wait_connected(clients[i], WAIT_MS);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.client_delay_max_ms = 20;
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) return -1;
    return make(0) || make(1) ? -1 : 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        divvy_lock_destroy(locks[i]);
        divvy_semaphore_destroy(pools[i]);
        divvy_client_close(clients[i]);
    }
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* Counts how often a try of another client right after the release was refused. */
static int count_refused(bool waits) {
    int refused = 0;
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(divvy_lock_acquire(locks[0], WAIT_MS), 0);
        assert_int_equal(divvy_lock_release(locks[0]), 0);
        if (waits) assert_int_equal(divvy_lock_wait_gone(locks[0], WAIT_MS), 0);
        int error = divvy_lock_try_acquire(locks[1]);
        if (error == DIVVY_EBUSY) refused++;
        else assert_int_equal(error, 0);
        if (!error) assert_int_equal(divvy_lock_release(locks[1]), 0);
        assert_int_equal(divvy_lock_wait_gone(locks[0], WAIT_MS), 0);
        assert_int_equal(divvy_lock_wait_gone(locks[1], WAIT_MS), 0);
    }
    return refused;
}

/* A try of another client right after a release is refused now and then; after the wait it never is. */
TEST(test_release) {
    assert_true(count_refused(false) > 0);
    assert_int_equal(count_refused(true), 0);
}

static size_t left_at(const char *path) {
    divvy_strings *names = divvy_testing_children(ensemble, path);
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    return count;
}

static void on_done(divvy_lock *lock, int result, void *user) {
    (void)lock;
    *(int *)user = result;
}

/* After a cancel too, and after a time that has passed; at once when nothing was ever asked for. */
TEST(test_other_ends) {
    int result = 1000;
    assert_int_equal(divvy_lock_wait_gone(locks[1], 0), 0);
    assert_int_equal(divvy_lock_acquire(locks[0], WAIT_MS), 0);
    assert_int_equal(divvy_lock_acquire(locks[1], 500), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_lock_wait_gone(locks[1], WAIT_MS), 0);
    assert_int_equal(left_at("/l"), 1);
    assert_int_equal(divvy_lock_acquire_async(locks[1], -1, on_done, &result), 0);
    while (divvy_lock_node(locks[1], NULL, 0) == 0) assert_true(divvy_client_process(clients[1], 100) >= 0);
    assert_int_equal(divvy_lock_cancel(locks[1], 0), 0);
    assert_int_equal(divvy_lock_wait_gone(locks[1], WAIT_MS), 0);
    assert_int_equal(result, DIVVY_ECANCELED);
    assert_int_equal(left_at("/l"), 1);
}

/* While it is held the wait goes on until its time has passed; while no server answers as well. */
TEST(test_not_yet) {
    assert_int_equal(divvy_lock_acquire(locks[0], WAIT_MS), 0);
    assert_int_equal(divvy_lock_wait_gone(locks[0], 300), DIVVY_ETIMEDOUT);
    assert_true(divvy_lock_held(locks[0]));
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_lock_release(locks[0]), 0);
    assert_int_equal(divvy_lock_wait_gone(locks[0], 0), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_lock_wait_gone(locks[0], 300), DIVVY_ETIMEDOUT);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_UP);
    assert_int_equal(divvy_lock_wait_gone(locks[0], WAIT_MS), 0);
    assert_int_equal(left_at("/l"), 0);
}

/* A session that is lost takes its nodes along when the servers see to it, which is told until the next acquire. */
TEST(test_lost) {
    assert_int_equal(divvy_lock_acquire(locks[0], WAIT_MS), 0);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_lock_release(locks[0]), 0);
    assert_int_equal(divvy_lock_wait_gone(locks[0], -1), DIVVY_ELOST);
    assert_int_equal(divvy_lock_wait_gone(locks[0], 0), DIVVY_ELOST);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_UP);
    assert_int_equal(divvy_lock_acquire(locks[0], WAIT_MS), 0);
    assert_int_equal(divvy_lock_release(locks[0]), 0);
    assert_int_equal(divvy_lock_wait_gone(locks[0], WAIT_MS), 0);
}

/* Nothing of a semaphore is left either, neither in the pool nor in the queue. */
TEST(test_semaphore) {
    for (int i = 0; i < TIMES; i++) {
        assert_int_equal(divvy_semaphore_acquire(pools[0], WAIT_MS), 0);
        assert_int_equal(divvy_semaphore_acquire(pools[1], 200), DIVVY_ETIMEDOUT);
        assert_int_equal(divvy_semaphore_wait_gone(pools[1], WAIT_MS), 0);
        assert_int_equal(divvy_semaphore_release(pools[0]), 0);
        assert_int_equal(divvy_semaphore_wait_gone(pools[0], WAIT_MS), 0);
        assert_int_equal(left_at("/s") + left_at("/s-__lock__"), 0);
    }
}

/* Wrong arguments are told. */
TEST(test_arguments) {
    assert_int_equal(divvy_lock_wait_gone(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_lock_wait_gone(locks[0], -2), DIVVY_EINVAL);
    assert_int_equal(divvy_semaphore_wait_gone(NULL, 0), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(NULL), "NULL"));
}

TEST_EACH(set_up, tear_down);
