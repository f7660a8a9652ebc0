/* Tests of min_members: a pool that begins waits for its members (D37). SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 30, WAIT_MS = 60000 };

static void add_waiting(pool *l, size_t n, size_t min_members) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.min_members = min_members;
    config.min_members_wait_ms = WAIT_MS;
    add(l, n, &config);
}

static size_t owned(const pool *l) {
    owners o = look(l);
    size_t count = o.owned;
    owners_free(&o);
    return count;
}

static void assert_nothing_for(pool *l, int64_t ms) {
    divvy_testing_run(l->ensemble, ms);
    assert_int_equal(owned(l), 0);
    assert_int_equal(l->plan_writes, 0);
}

/* Items are dealt once, when all are there: nobody hands anything over. */
TEST(test_waits_for_all) {
    pool l;
    pool_open(&l, ITEMS);
    add_waiting(&l, 0, 3);
    assert_nothing_for(&l, 20000);
    add_waiting(&l, 1, 3);
    assert_nothing_for(&l, 20000);
    add_waiting(&l, 2, 3);
    assert_true(settle(&l) < 5000);
    assert_int_equal(l.plan_writes, 1);
    for (size_t n = 0; n < 3; n++) {
        assert_int_equal(l.members[n].leaving, 0);
        assert_int_equal(l.members[n].states[DIVVY_RELEASE], 0);
    }
    /* The pool has begun: who comes and goes now changes it at once. */
    finish(&l, 2);
    finish(&l, 1);
    assert_true(settle(&l) < 5000);
    pool_close(&l);
}

/* It waits no longer than it is told to, and a user's request is no reason to begin. */
TEST(test_waits_no_longer) {
    pool l;
    pool_open(&l, ITEMS);
    add_waiting(&l, 0, 3);
    divvy_testing_run(l.ensemble, 10000);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 500), 0);
    assert_nothing_for(&l, WAIT_MS - 10000 - 1000);
    assert_in_range(settle(&l), 0, 5000);
    assert_int_equal(l.plan_writes, 1);
    pool_close(&l);
}

/* A pool whose members have all gone begins again like a new one. */
TEST(test_begins_again) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 2; n++) add_waiting(&l, n, 2);
    settle(&l);
    finish(&l, 0);
    crash(&l, 1);
    divvy_testing_run(l.ensemble, 5000);
    l.plan_writes = 0;
    add_waiting(&l, 2, 2);
    assert_nothing_for(&l, 30000);
    add_waiting(&l, 3, 2);
    assert_in_range(settle(&l), 0, 5000);
    pool_close(&l);
}

/* A member that leaves during the wait has no place to give up, and is not kept waiting. */
TEST(test_leaves_meanwhile) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 2; n++) add_waiting(&l, n, 3);
    divvy_testing_run(l.ensemble, 5000);
    int64_t begin = divvy_testing_now_ms(l.ensemble);
    assert_int_equal(divvy_partitioner_leave(l.members[0].partitioner, 0, 30000), 0);
    assert_true(divvy_testing_now_ms(l.ensemble) - begin < 2000);
    forget_client(&l.members[0]);
    assert_nothing_for(&l, 10000);
    pool_close(&l);
}

/* A member that is told of no number begins as ever, for all. */
TEST(test_one_does_not_wait) {
    pool l;
    pool_open(&l, ITEMS);
    add_waiting(&l, 0, 3);
    divvy_testing_run(l.ensemble, 5000);
    add_waiting(&l, 1, 0);
    assert_in_range(settle(&l), 0, 5000);
    pool_close(&l);
}
