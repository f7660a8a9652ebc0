/* A pool on three servers, and one of them goes. SPDX-License-Identifier: Apache-2.0
 *
 * Shows that a pool loses nothing when a real ensemble loses a server. */
#include "lib/pool.h"

enum { SERVERS = 3, MEMBERS = 4, ITEMS = 40 };

static int find_leader(void) {
    for (int number = 1; number <= SERVERS; number++) {
        if (dv_test_server_is(dv_test_pool_server(), number, "leader")) return number;
    }
    return 0;
}

static int killed; /* the number of the server that is away */

static int setup(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "shard-%zu", ITEMS);
    return 0;
}

static int teardown(void **state) {
    if (killed) dv_test_server_restart(dv_test_pool_server(), killed);
    killed = 0;
    return dv_test_pool_teardown(state);
}

static size_t connects(dv_test_member **members) {
    size_t count = 0;
    for (size_t i = 0; i < MEMBERS; i++) count += dv_test_member_stats(members[i]).connects;
    return count;
}

/* While one server is away nobody loses anything: no state changes, no item is missing from any snapshot, every token
 * stays. The pool goes on working: a join is served by the two that are left. */
static void check_kill(dv_test_pool *pool, int number) {
    dv_test_member *members[MEMBERS + 1];
    dv_test_pool_add_many(pool, members, 0, MEMBERS, &(dv_test_member_config){.boundary_ms = 100});
    dv_test_pool_settle(pool);
    size_t before = connects(members), states[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++) {
        states[i] = dv_test_member_count(members[i], DV_TEST_STATE, -1);
        dv_test_member_mark(members[i]);
    }
    dv_test_server_kill(dv_test_pool_server(), number);
    killed = number;
    DV_POOL_UNTIL(pool, find_leader() != 0);
    for (size_t i = 0; i < MEMBERS; i++) DV_POOL_UNTIL(pool, divvy_client_state(members[i]->client) == DIVVY_CONNECTED);
    dv_test_pool_settle(pool);
    size_t kept = 0;
    for (size_t i = 0; i < MEMBERS; i++) {
        kept += dv_test_member_kept(members[i]);
        assert_int_equal(dv_test_member_count(members[i], DV_TEST_STATE, -1), states[i]);
    }
    assert_int_equal(kept, ITEMS);
    print_message("%zu of %d members had to reconnect\n", connects(members) - before, MEMBERS);
    dv_test_pool_add_many(pool, members + MEMBERS, MEMBERS, 1, &(dv_test_member_config){.boundary_ms = 100});
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_state(members[MEMBERS]), DIVVY_ACQUIRED);
}

/* A leader that is killed costs kazoo's members everything for a second or two; ours nothing. */
TEST(test_leader_killed) {
    int leader;
    DV_POOL_UNTIL(*state, (leader = find_leader()) != 0);
    check_kill(*state, leader);
}

/* Nor does the end of a follower cost anything, for any member that was connected to it. */
TEST(test_follower_killed) {
    int leader;
    DV_POOL_UNTIL(*state, (leader = find_leader()) != 0);
    check_kill(*state, leader % SERVERS + 1);
}

TEST_EACH(setup, teardown);
TEST_GROUP(dv_test_pool_group_setup_ensemble, dv_test_pool_group_teardown);
