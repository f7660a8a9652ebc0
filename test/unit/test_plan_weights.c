/* Weights, zones, rounds and sets in pools that follow the plan. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 600 };

/* Shares are in proportion to weights; a weight that is set while the pool works takes effect by one plan, and is told
 * as what it is: a weight, or a drain. */
TEST(test_weights) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.weight = 2000;
    add(&l, 0, &config);
    add(&l, 1, NULL);
    add(&l, 2, NULL);
    settle(&l);
    owners before = look(&l);
    assert_int_equal(before.loads[0], 300);
    assert_int_equal(before.loads[1], 150);
    l.plan_writes = 0;
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 1000), 0);
    settle(&l);
    owners equal = look(&l);
    assert_int_equal(moved(&l, &before, &equal), 100);
    assert_int_equal(l.members[0].revoked[DIVVY_REASON_WEIGHT], 100);
    assert_int_equal(l.plan_writes, 1);
    assert_int_equal(divvy_partitioner_set_weight(l.members[1].partitioner, 0), 0);
    settle(&l);
    owners drained = look(&l);
    assert_int_equal(drained.loads[1], 0);
    assert_int_equal(l.members[1].revoked[DIVVY_REASON_DRAIN], 200);
    assert_int_equal(moved(&l, &equal, &drained), 200);
    assert_int_equal(divvy_partitioner_set_weight(l.members[1].partitioner, 0), 0); /* what it is already */
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 0), 0);
    settle(&l);
    assert_int_equal(l.plan_writes, 3);
    assert_int_equal(divvy_partitioner_set_weight(l.members[2].partitioner, 0), 0);
    settle(&l);
    owners none = look(&l); /* the last one keeps everything: a drain of all must not begin a storm */
    assert_int_equal(none.loads[2], ITEMS);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&equal);
    owners_free(&drained);
    owners_free(&none);
    pool_close(&l);
}

/* A weight that was set before there is any plan, or anybody in the party, is not forgotten. The last one of two
 * counts. */
TEST(test_weight_set_early) {
    pool l;
    pool_open(&l, ITEMS);
    add(&l, 0, NULL);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 7), 0);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 3000), 0);
    for (size_t n = 1; n < 4; n++) add(&l, n, NULL);
    settle(&l);
    owners o = look(&l);
    assert_int_equal(o.loads[0], ITEMS / 2);
    owners_free(&o);
    pool_close(&l);
}

/* The weight that was set for a member that is not static is set again for its next node. */
TEST(test_weight_after_loss) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.on_session_loss = DIVVY_REJOIN;
    add(&l, 0, &config);
    add(&l, 1, NULL);
    settle(&l);
    assert_int_equal(divvy_partitioner_set_weight(l.members[0].partitioner, 2000), 0);
    settle(&l);
    assert_int_equal(divvy_testing_expire(l.ensemble, l.members[0].client), 0);
    divvy_testing_run(l.ensemble, 100);
    settle(&l);
    owners o = look(&l);
    assert_int_equal(o.loads[0], 400);
    owners_free(&o);
    assert_at_rest(&l);
    pool_close(&l);
}

/* Items are spread over zones first: two members of one zone have together what the one of the other has. */
TEST(test_zones) {
    pool l;
    pool_open(&l, ITEMS);
    static const char *const zones[] = {"east", "east", "west"};
    for (size_t n = 0; n < 3; n++) {
        divvy_partitioner_config config;
        member_config(&l, &config);
        config.zone = zones[n];
        add(&l, n, &config);
    }
    settle(&l);
    owners o = look(&l);
    assert_int_equal(o.loads[0], 150);
    assert_int_equal(o.loads[1], 150);
    assert_int_equal(o.loads[2], 300);
    owners_free(&o);
    pool_close(&l);
}

static unsigned writes_until_settled(pool *l) {
    unsigned before = l->plan_writes;
    settle(l);
    for (int i = 0; i < 20; i++) { /* until a minute has brought no further round */
        unsigned writes = l->plan_writes;
        divvy_testing_run(l->ensemble, 10000);
        settle(l);
        if (l->plan_writes == writes) break;
    }
    return l->plan_writes - before;
}

/* With max_moves a join goes in rounds, each begun when the moved items of the one before have arrived: ceil(n / max)
 * writes, with never more than so many items on their way. Orphans are not counted. */
TEST(test_rounds) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.max_moves = 40;
    for (size_t n = 0; n < 3; n++) add(&l, n, &config);
    settle(&l);
    owners before = look(&l);
    l.plan_writes = 0;
    add(&l, 3, &config);
    for (int i = 0; i < 3000; i++) {
        divvy_testing_run(l.ensemble, 10);
        owners o = look(&l);
        assert_true(o.owned >= ITEMS - 40);
        owners_free(&o);
    }
    settle(&l);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), ITEMS / 4);
    assert_int_equal(l.plan_writes, 4); /* 150 by 40 */
    crash(&l, 0);
    settle(&l);
    assert_int_equal(l.plan_writes, 5);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* A member that does not release holds a round up until round_timeout_ms, and no longer. */
TEST(test_round_timeout) {
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.max_moves = 100;
    config.round_timeout_ms = 30000;
    for (size_t n = 0; n < 2; n++) add(&l, n, &config);
    settle(&l);
    l.members[0].patient = true;
    l.plan_writes = 0;
    add(&l, 2, &config);
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(l.plan_writes, 1);
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(l.plan_writes, 2);
    l.members[0].patient = false;
    assert_int_equal(divvy_partitioner_release_set(l.members[0].partitioner), 0);
    writes_until_settled(&l);
    owners o = look(&l);
    for (size_t n = 0; n < 3; n++) assert_int_equal(o.loads[n], 200);
    owners_free(&o);
    pool_close(&l);
}

/* A member whose options are not the plan's is told so, and goes by the plan's. */
TEST(test_options_differ) {
    pool l;
    pool_open(&l, ITEMS);
    add(&l, 0, NULL);
    settle(&l);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.max_moves = 5;
    add(&l, 1, &config);
    settle(&l);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_ASSIGN_DIFFERS], 0);
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_ASSIGN_DIFFERS], 1);
    owners o = look(&l);
    assert_int_equal(o.loads[1], ITEMS / 2);
    owners_free(&o);
    pool_close(&l);
}
