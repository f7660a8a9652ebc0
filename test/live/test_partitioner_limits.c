/* Many items and small budgets. SPDX-License-Identifier: Apache-2.0
 *
 * Shows 20,000 items within the limits of a real server's requests and sessions. */
#include "lib/pool.h"

#include <stdint.h>
#include <string.h>

#define MANY 20000

static int setup_many(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool *pool = *state;
    dv_test_pool_set_items(pool, "queue-%zu", MANY);
    pool->unwatched = true;
    return 0;
}

/* Returns the requests of the recipes: heartbeats are not counted. */
static uint64_t requests_of(dv_test_member *m) {
    divvy_stats stats = dv_test_member_stats(m);
    return stats.requests - stats.checks;
}

static bool is_short(dv_test_member *m) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    bool result = divvy_partition_short(share);
    divvy_partition_unref(share);
    return result;
}

/* Every so many-th item, since each look costs round trips. */
static void check_some_owners(dv_test_pool *pool, dv_test_member **members, size_t count) {
    for (size_t i = 0; i < pool->item_count; i += 500) {
        int64_t token, owner = dv_test_pool_owner(pool, pool->items[i], &token);
        size_t owners = 0;
        for (size_t j = 0; j < count; j++) {
            if (!dv_test_member_owns(members[j], i)) continue;
            owners++;
            assert_int_equal(owner, divvy_client_session_id(members[j]->client));
            assert_int_equal(token, dv_test_member_token(members[j], i));
        }
        assert_true(owners <= 1);
        if (!owners) assert_int_equal(owner, 0);
    }
}

/* A share beyond the budget of a session is taken as far as it fits, in the order of the names, and said to be short;
 * a second member takes what is left, and then nobody is short. The last to finish removes 20,000 directories. */
TEST_IN(test_short_share, setup_many, dv_test_pool_teardown) {
    dv_test_pool *pool = *state;
    dv_test_member *members[2];
    /* A place costs some 60 bytes: a third of them does not fit. */
    dv_test_member_config config = {.boundary_ms = 50, .ephemeral_path_bytes = 800 * 1024};
    dv_test_pool_add_many(pool, members, 0, 1, &config);
    DV_POOL_UNTIL(pool, dv_test_member_state(members[0]) == DIVVY_ACQUIRED);
    size_t fits = dv_test_member_load(members[0]);
    assert_in_range(fits, MANY / 2 + 1, MANY - 1);
    assert_true(is_short(members[0]));
    dv_test_member_drain(members[0]);
    assert_int_equal(dv_test_member_count(members[0], DV_TEST_WARNING, DIVVY_WARN_SHORT), 1);
    divvy_stats stats = dv_test_member_stats(members[0]);
    assert_true(stats.ephemeral_path_bytes <= 800 * 1024 && stats.ephemeral_path_bytes > 799 * 1024);
    uint64_t requests = requests_of(members[0]);
    for (size_t i = 0; i < MANY; i += 97) assert_int_equal(dv_test_member_owns(members[0], i), i < fits);
    dv_test_pool_step_for(pool, 300);
    assert_int_equal(requests_of(members[0]), requests); /* no retry loop */
    check_some_owners(pool, members, 1);

    dv_test_pool_add_many(pool, members + 1, 1, 1, &config);
    DV_POOL_UNTIL(pool, dv_test_pool_acquired(pool) && dv_test_member_load(members[0]) == MANY / 2 &&
                            dv_test_member_load(members[1]) == MANY / 2);
    assert_false(is_short(members[0]) || is_short(members[1]));
    for (size_t i = 0; i < 2; i++) dv_test_member_drain(members[i]);
    check_some_owners(pool, members, 2);
    dv_test_member_destroy(members[1]);
    DV_POOL_UNTIL(pool, dv_test_member_state(members[0]) == DIVVY_ACQUIRED && is_short(members[0]));
    assert_in_range(dv_test_member_load(members[0]), fits - 500, fits + 500); /* names are not all of one length */
    dv_test_member_finish(members[0]);
    DV_POOL_UNTIL(pool, dv_test_pool_directories(pool) == 0);
}

/* A member that is short takes more as soon as there is room, without a change of the party. */
TEST_OF_POOL(test_room_is_used) {
    dv_test_member *m =
        dv_test_pool_add(pool, &(dv_test_member_config){.func = dv_test_pool_func, .ephemeral_path_bytes = 500});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    size_t fits = dv_test_member_load(m);
    assert_in_range(fits, 2, 7);
    assert_true(is_short(m));
    dv_test_pool_set_target(pool, "0011111111"); /* the first two go, and two others fit */
    DV_POOL_UNTIL(pool, dv_test_member_owns(m, fits + 1) && dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_load(m), fits);
    assert_true(is_short(m));
    dv_test_pool_set_target(pool, "0000000011");
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 2 && dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_false(is_short(m));
    assert_true(dv_test_member_owns(m, 8) && dv_test_member_owns(m, 9));
}

/* A window of few watched bytes makes acquisition slower, not incomplete, whether the places are free or taken. */
TEST_OF_POOL(test_small_watch_window) {
    dv_test_member *members[2];
    dv_test_member_config config = {.boundary_ms = 50, .watch_path_bytes = 600};
    dv_test_pool_add_many(pool, members, 0, 1, &config);
    dv_test_pool_settle(pool);
    dv_test_pool_add_many(pool, members + 1, 1, 1, &config);
    dv_test_pool_settle(pool);
    char *foreign[10];
    for (size_t i = 0; i < 10; i++) foreign[i] = dv_test_pool_block(pool, pool->items[i]);
    dv_test_member_finish(members[0]);
    DV_POOL_UNTIL(pool, dv_test_member_state(members[1]) == DIVVY_ALLOCATING);
    for (size_t i = 10; i-- > 0;) dv_test_pool_unblock(pool, foreign[i]);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(members[1]), 10);
    assert_true(dv_test_member_stats(members[1]).watch_path_bytes < 1000);
}

/* A budget that not even the party node fits is an error that says so. */
TEST_OF_POOL(test_no_room_at_all) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.ephemeral_path_bytes = 20});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ELIMIT);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
