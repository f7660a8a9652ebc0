/* Who the next owner is, and how long the others wait for it. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 120, STATICS = 3, LATE = STATICS, AGAIN, RESTARTS = 3 };

static size_t share_of(const member *m) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    size_t count = divvy_partition_count(share);
    divvy_partition_unref(share);
    return count;
}

static size_t revoked(const member *m) {
    size_t sum = 0;
    for (size_t r = 0; r < REASONS; r++) sum += m->revoked[r];
    return sum;
}

static member *add_static(pool *l, size_t n, const char *identifier, uint32_t weight) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.identifier = identifier;
    config.static_membership = 1;
    config.weight = weight;
    return add(l, n, &config);
}

static void crash_silently(pool *l, size_t n) {
    assert_int_equal(divvy_testing_crash_client(l->ensemble, l->members[n].client), 0);
    forget_client(&l->members[n]);
}

/* T1, D12: an owner that has read none of several nodes of the next owner's identifier finds out which is the newest,
 * and so does not wait for a process that is dead. Their names, by which they are listed, are in no order. */
TEST(test_newest_of_unread_nodes) {
    pool l;
    pool_open(&l, ITEMS);
    add_static(&l, 0, "a", 1000);
    for (size_t n = 1; n <= RESTARTS; n++) {
        add_static(&l, AGAIN, "b", 0);
        divvy_testing_run(l.ensemble, 1000);
        crash_silently(&l, AGAIN);
    }
    member *newest = add_static(&l, AGAIN, "b", 0);
    divvy_testing_run(l.ensemble, 1000);
    member *late = add_static(&l, LATE, "z", 1000);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(share_of(late), ITEMS / 2);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 500), 0);
    assert_int_equal(divvy_partitioner_set_weight(newest->partitioner, 1000), 0);
    divvy_testing_run(l.ensemble, 1000);
    assert_true(revoked(late) > 0);
    assert_true(share_of(newest) >= ITEMS / 3);
    settle(&l);
    pool_close(&l);
}
