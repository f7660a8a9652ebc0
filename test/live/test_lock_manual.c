/* Tests of locks in manual mode, on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows waiting calls of one thread on real sockets, asleep in the kernel. */
#include "lock_fixture.h"

/* Manual mode: waiting calls drive the loop themselves, and two clients in one thread hand the lock to each other. */
TEST(test_manual) {
    divvy_client *a = open_client(30000, 1), *b = open_client(30000, 1);
    divvy_lock *one = make(a, "/manual", DIVVY_EXCLUSIVE, NULL), *other = make(b, "/manual", DIVVY_EXCLUSIVE, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(divvy_lock_acquire(one, PATIENCE_MS), 0);
        assert_int_equal(divvy_lock_try_acquire(other), DIVVY_EBUSY);
        assert_int_equal(divvy_lock_release(one), 0);
        assert_int_equal(divvy_lock_acquire(other, PATIENCE_MS), 0);
        assert_int_equal(divvy_lock_release(other), 0);
    }
    divvy_lock_destroy(one);
    divvy_lock_destroy(other);
    divvy_client_close(a);
    divvy_client_close(b);
    assert_int_equal(nodes("/manual"), 0);
}

static int64_t own_processor_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Manual mode: a call that waits sleeps meanwhile, and leaves the processor to others. */
TEST(test_manual_waits_at_rest) {
    divvy_client *a = open_client(30000, 0), *b = open_client(30000, 1);
    divvy_lock *held = make(a, "/rest", DIVVY_EXCLUSIVE, NULL), *lock = make(b, "/rest", DIVVY_EXCLUSIVE, NULL);
    assert_int_equal(divvy_lock_acquire(held, PATIENCE_MS), 0);
    assert_int_equal(divvy_lock_acquire(lock, 50), DIVVY_ETIMEDOUT); /* has set a watch, and timers */
    int64_t before_ms = own_processor_ms();
    assert_int_equal(divvy_lock_acquire(lock, 1000), DIVVY_ETIMEDOUT);
    assert_in_range(own_processor_ms() - before_ms, 0, 150);
    divvy_lock_destroy(held);
    divvy_lock_destroy(lock);
    divvy_client_close(a);
    divvy_client_close(b);
}

TEST_GROUP(start_server, stop_server);

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "hold") == 0) return hold(argv[2], argv[3]);
    return dv_test_run();
}
