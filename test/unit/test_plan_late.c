/* Owners and next owners that are late, and how long the others wait for them. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 120 };

static size_t share_of(const member *m) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    size_t count = divvy_partition_count(share);
    divvy_partition_unref(share);
    return count;
}

static uint64_t count_lists(const pool *l, size_t n) {
    divvy_stats stats = {0};
    assert_int_equal(divvy_client_stats(l->members[n].client, &stats, sizeof stats), 0);
    return stats.children;
}

/* T2: a next owner waits for an owner that reads the plan late, and does not list each queue, which it would stand in
 * behind that one. */
TEST(test_late_owner) {
    enum { OLD = 4, DELAY_MS = 5, LATE_MS = 700, SHARE = ITEMS / (OLD + 1) };
    pool l;
    pool_open_far(&l, ITEMS, DELAY_MS, DELAY_MS);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    member *next = add(&l, OLD, NULL);
    unsigned written = l.plan_writes;
    for (int ms = 0; l.plan_writes == written && ms < 5000; ms++) divvy_testing_run(l.ensemble, 1);
    for (size_t n = 0; n < OLD; n++)
        assert_int_equal(divvy_testing_pause_client(l.ensemble, l.members[n].client, 1), 0);
    divvy_testing_run(l.ensemble, LATE_MS);
    for (size_t n = 0; n < OLD; n++)
        assert_int_equal(divvy_testing_pause_client(l.ensemble, l.members[n].client, 0), 0);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(share_of(next), SHARE);
    assert_in_range(count_lists(&l, OLD), 0, 4);
    settle(&l);
    pool_close(&l);
}

/* T2: nor does it wait for more than a second for one that says nothing, since it does not have the item. */
TEST(test_silent_owner) {
    enum { PREPARE_MS = 60000, SHARE = ITEMS / 3 };
    pool l;
    divvy_partitioner_config config;
    pool_open(&l, ITEMS);
    add(&l, 0, NULL);
    settle(&l);
    member_config(&l, &config);
    config.prepare_timeout_ms = PREPARE_MS;
    add(&l, 1, &config);
    divvy_testing_run(l.ensemble, 2000);
    member *next = add(&l, 2, NULL);
    divvy_testing_run(l.ensemble, 2000);
    assert_int_equal(share_of(next), SHARE);
    pool_close(&l);
}

/* A member that leaves keeps its note for a moment: a next owner that reads late what it was given needs no list. */
TEST(test_slow_next_owner) {
    enum { OLD = 3, DELAY_MS = 5, SLOW_MS = 60, SHARE = ITEMS / OLD };
    pool l;
    pool_open_far(&l, ITEMS, DELAY_MS, DELAY_MS);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    member *m = &l.members[0], *next = &l.members[1];
    uint64_t lists = count_lists(&l, 1);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
    for (int ms = 0; m->states[DIVVY_RELEASE] == 0 && ms < 5000; ms++) divvy_testing_run(l.ensemble, 1);
    assert_int_equal(divvy_testing_pause_client(l.ensemble, next->client, 1), 0);
    divvy_testing_run(l.ensemble, SLOW_MS);
    assert_int_equal(divvy_testing_pause_client(l.ensemble, next->client, 0), 0);
    int64_t began = divvy_testing_now_ms(l.ensemble);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 1000), 0);
    assert_true(divvy_testing_now_ms(l.ensemble) - began <= 100);
    forget_client(m);
    settle(&l);
    assert_int_equal(share_of(next), ITEMS / (OLD - 1));
    assert_in_range(count_lists(&l, 1) - lists, 0, 4);
    pool_close(&l);
}
