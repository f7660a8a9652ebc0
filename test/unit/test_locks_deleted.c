/* The directory of a pool's locks (P1) is deleted under its members, on the in-memory ensemble.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 60 };

static divvy_stats stats_of(const divvy_client *client) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    return stats;
}

/* Somebody deletes P/locks when so many events have happened to the ensemble since it was made. Returns whether that
 * can be done: it holds something soon. */
static bool open_and_delete(pool *l, int events) {
    pool_open_far(l, ITEMS, 5, 10);
    add(l, 0, NULL);
    add(l, 1, NULL);
    while (!divvy_testing_exists(l->ensemble, "/pool/locks")) divvy_testing_step(l->ensemble, INT64_MAX);
    for (int i = 0; i < events; i++) divvy_testing_step(l->ensemble, INT64_MAX);
    return divvy_testing_remove(l->ensemble, "/pool/locks") == 0;
}

/* It is made again, whichever answer of a member tells that it has gone: one request for it is under way at a time,
 * however many directories of items cannot be made, and no member fails. */
TEST(test_locks_deleted) {
    bool deleted = true;
    int events = 0;
    for (; deleted; events++) {
        pool l;
        deleted = open_and_delete(&l, events);
        settle_owned(&l, ITEMS);
        for (size_t n = 0; n < 2; n++) {
            assert_int_equal(divvy_partitioner_state(l.members[n].partitioner), DIVVY_ACQUIRED);
            assert_true(stats_of(l.members[n].client).exists < ITEMS);
        }
        pool_close(&l);
    }
    assert_true(events > 20);
}
