/* Readers of something that is replaced: grace periods end by themselves, and never too early. SPDX-License-Identifier:
 * Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>

#include "lib/test.h"
#include "partitioner/readers.h"

static dv_readers *readers;

static int set_up(void **state) {
    (void)state;
    readers = dv_readers_new();
    return readers ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    dv_readers_free(readers);
    return 0;
}

/* Where nobody looks a grace period is over at once, time and again. */
TEST(test_nobody) {
    for (int i = 0; i < 5; i++) {
        dv_readers_begin_grace(readers);
        assert_true(dv_readers_end_grace(readers));
    }
}

/* A grace period waits for readers that were inside at its beginning, not for later ones, though there is always
 * one inside. */
TEST(test_always_somebody) {
    atomic_uint *inside = dv_readers_enter(readers);
    for (int i = 0; i < 5; i++) {
        dv_readers_begin_grace(readers);
        assert_false(dv_readers_end_grace(readers));
        atomic_uint *next = dv_readers_enter(readers);
        assert_false(dv_readers_end_grace(readers));
        dv_readers_leave(inside);
        assert_true(dv_readers_end_grace(readers));
        inside = next;
    }
    dv_readers_leave(inside);
}

/* A reader that chose its counters long ago and counts itself in only now is waited for like any other. */
TEST(test_late) {
    for (int periods = 0; periods < 4; periods++) {
        atomic_uint *chosen = dv_readers_enter(readers);
        dv_readers_leave(chosen);
        for (int i = 0; i < periods; i++) {
            dv_readers_begin_grace(readers);
            assert_true(dv_readers_end_grace(readers));
        }
        atomic_fetch_add(chosen, 1);
        dv_readers_begin_grace(readers);
        assert_false(dv_readers_end_grace(readers));
        assert_false(dv_readers_end_grace(readers));
        dv_readers_leave(chosen);
        assert_true(dv_readers_end_grace(readers));
    }
}

/* ---- threads ---- */

enum { THREADS = 8, CHANGES = 2000 };

static _Atomic(int *) current;
static atomic_bool stop;
static atomic_uint looks, wrong;

static void *look(void *context) {
    while (!atomic_load(&stop)) {
        atomic_uint *inside = dv_readers_enter(readers);
        const int *value = atomic_load(&current);
        if (value[0] != value[1]) atomic_fetch_add(&wrong, 1);
        dv_readers_leave(inside);
        atomic_fetch_add(&looks, 1);
    }
    return context;
}

static int *make(int value) {
    int *made = malloc(2 * sizeof *made);
    assert_non_null(made);
    made[0] = made[1] = value;
    return made;
}

/* Threads that look all the time see nothing that was freed, and each grace period ends while they go on. */
TEST(test_threads) {
    pthread_t threads[THREADS];
    atomic_store(&current, make(0));
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, look, NULL), 0);
    while (atomic_load(&looks) < THREADS) continue;
    for (int change = 1; change <= CHANGES; change++) {
        int *old = atomic_exchange(&current, make(change));
        dv_readers_begin_grace(readers);
        while (!dv_readers_end_grace(readers)) sched_yield();
        old[0] = -1;
        old[1] = -2;
        free(old);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(wrong, 0);
    free(atomic_load(&current));
}

TEST_EACH(set_up, tear_down);
