/* Tests of the numbers of acquires, and of cancels by them. SPDX-License-Identifier: Apache-2.0 */
#include "unit/lock_fixture.h"

#include "divvy/semaphore.h"

static int acquire(holder *h, int64_t timeout_ms) {
    h->result = NEVER;
    int error = divvy_lock_acquire_async(h->lock, timeout_ms, on_done, h);
    dv_fake_run(fake);
    return error;
}

static void cancel(holder *h, uint64_t attempt) {
    assert_int_equal(divvy_lock_cancel(h->lock, attempt), 0);
    dv_fake_run(fake);
}

/* A cancel that comes before its acquire ends that one, whether it waits or calls back, and no other. Nothing is
 * sent. */
TEST(test_cancel_before) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 1);
    cancel(&h, 1);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 1);
    assert_int_equal(divvy_lock_acquire(h.lock, -1), DIVVY_ECANCELED);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 2);
    cancel(&h, 2);
    assert_int_equal(acquire(&h, -1), DIVVY_ECANCELED);
    assert_int_equal(h.done, 0);
    assert_string_equal(dv_fake_pending(fake), "");
    hold(&h);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 4);
    destroy(&h);
}

/* A cancel that comes late is for nobody, and neither is one for an attempt that is far ahead. Without a number it ends
 * the one that waits, and where none waits nothing. */
TEST(test_cancel_of_others) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    dv_tree_put(tree, PATH "/x__lock__", DV_EPHEMERAL | DV_SEQUENTIAL, NOBODY);
    cancel(&h, 0);
    cancel(&h, 2);
    ask(&h, -1);
    serve();
    assert_int_equal(divvy_lock_attempt_id(h.lock), 1);
    cancel(&h, 2);
    assert_int_equal(h.result, NEVER);
    cancel(&h, 1);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    ask(&h, -1);
    cancel(&h, 1);
    assert_int_equal(h.result, NEVER);
    cancel(&h, 0);
    assert_int_equal(h.result, DIVVY_ECANCELED);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 3);
    destroy(&h);
}

/* A call that is refused has its number, so that its late cancel spares the next; one beside another that waits has
 * none, and leaves a cancel to be. */
TEST(test_refused_calls_count) {
    holder h;
    make(&h, DIVVY_EXCLUSIVE);
    hold(&h);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 2);
    assert_int_equal(acquire(&h, -1), DIVVY_EALREADY);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 3);
    cancel(&h, 2);
    assert_true(divvy_lock_held(h.lock));
    assert_int_equal(divvy_lock_release(h.lock), 0);
    ask(&h, -1);
    assert_int_equal(acquire(&h, -1), DIVVY_EINPROGRESS);
    assert_int_equal(divvy_lock_attempt_id(h.lock), 3);
    serve();
    assert_true(divvy_lock_held(h.lock));
    cancel(&h, 4);
    assert_int_equal(acquire(&h, -1), DIVVY_EALREADY); /* It held; the cancel was for this one all the same. */
    assert_int_equal(divvy_lock_release(h.lock), 0);
    hold(&h);
    destroy(&h);
}

/* A semaphore counts in the same way. */
TEST(test_semaphore) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *s;
    config.path = "/s";
    assert_int_equal(divvy_semaphore_create(&s, dv_fake_client(fake), &config), 0);
    assert_int_equal(divvy_semaphore_attempt_id(s), 1);
    assert_int_equal(divvy_semaphore_cancel(s, 2), 0);
    assert_int_equal(divvy_semaphore_cancel(s, 1), 0);
    assert_int_equal(divvy_semaphore_acquire(s, -1), DIVVY_ECANCELED);
    assert_int_equal(divvy_semaphore_attempt_id(s), 2);
    assert_int_equal(divvy_semaphore_attempt_id(NULL) + divvy_lock_attempt_id(NULL), 0);
    assert_string_equal(dv_fake_pending(fake), "");
    divvy_semaphore_destroy(s);
}

TEST_EACH(set_up, tear_down);
