/* kazoo's own tests of its partitioner, on ours with kazoo's preset. SPDX-License-Identifier: Apache-2.0
 *
 * Source: kazoo/tests/test_partitioner.py, whose names the tests keep. Beyond what kazoo asserts, the transitions are
 * compared one by one, and pool.c allows only those that kazoo has: no ACQUIRED -> ALLOCATING, no RELEASE ->
 * RELEASE.
 *
 * Shows kazoo's own suite, on the same real server. */
#include "lib/pool.h"

#include <string.h>

#include "divvy/assign.h"

#define BOUNDARY_MS 200

/* A member like those of kazoo's tests, which release by themselves only where the test says so. */
static dv_test_member *add(dv_test_pool *pool, const char *identifier, dv_test_member_config config) {
    config.identifier = identifier;
    config.kazoo = config.patient = true;
    config.boundary_ms = BOUNDARY_MS;
    return dv_test_pool_add(pool, &config);
}

static dv_test_member *add_plain(dv_test_pool *pool, const char *identifier) {
    return add(pool, identifier, (dv_test_member_config){0});
}

static void release(dv_test_member *m) {
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    assert_int_equal(dv_test_member_state(m), DIVVY_ALLOCATING);
}

static void expect_share(dv_test_member *m, const char *share) {
    assert_int_equal(dv_test_member_state(m), DIVVY_ACQUIRED);
    assert_string_equal(dv_test_member_share(m), share);
}

static void expect_states(dv_test_member *m, const char *states) {
    dv_test_member_drain(m);
    assert_string_equal(dv_test_member_states(m), states);
}

static int setup_three(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "%zu", 3);
    return 0;
}

static int setup_two(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "%zu", 2);
    return 0;
}

static int setup_one(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "%zu", 1);
    return 0;
}

/* A member alone acquires everything. */
TEST_OF_POOL(test_party_of_one) {
    dv_test_member *only = add(pool, NULL, (dv_test_member_config){0});
    dv_test_pool_settle(pool);
    expect_share(only, "0 1 2");
    dv_test_member_finish(only);
    expect_states(only, "ALLOCATING ACQUIRED FAILURE");
    assert_int_equal(dv_test_pool_nodes(pool), 0);
}

/* Two members divide by sorted(items)[i::n], and when one finishes the other is to release. */
TEST_IN(test_party_of_two, setup_two, dv_test_pool_teardown) {
    dv_test_pool *pool = *state;
    dv_test_member *first = add_plain(pool, "0"), *second = add_plain(pool, "1");
    dv_test_pool_settle(pool);
    expect_share(first, "0");
    expect_share(second, "1");
    dv_test_member_finish(first);
    DV_POOL_UNTIL(pool, dv_test_member_state(second) == DIVVY_RELEASE);
    assert_int_equal(dv_test_member_load(second), 0);
    dv_test_member_finish(second);
    expect_states(second, "ALLOCATING ACQUIRED RELEASE FAILURE");
    assert_int_equal(dv_test_pool_nodes(pool), 0);
}

/* A third member makes the first two release everything; after that all three have their share. */
TEST_OF_POOL(test_party_expansion) {
    dv_test_member *first = add_plain(pool, "0"), *second = add_plain(pool, "1");
    dv_test_pool_settle(pool);
    expect_share(first, "0 2");
    expect_share(second, "1");
    dv_test_member *third = add_plain(pool, "2");
    DV_POOL_UNTIL(pool, dv_test_member_state(first) == DIVVY_RELEASE && dv_test_member_state(second) == DIVVY_RELEASE);
    assert_int_equal(dv_test_member_state(third), DIVVY_ALLOCATING);
    assert_string_equal(dv_test_member_share(first), "0! 2!");
    release(first);
    release(second);
    dv_test_pool_settle(pool);
    expect_share(first, "0");
    expect_share(second, "1");
    expect_share(third, "2");
    expect_states(first, "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
    expect_states(second, "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
    expect_states(third, "ALLOCATING ACQUIRED");
}

/* A member for whom nothing is left is ACQUIRED with an empty share. */
TEST_IN(test_more_members_than_items, setup_one, dv_test_pool_teardown) {
    dv_test_pool *pool = *state;
    dv_test_member *first = add_plain(pool, "0"), *second = add_plain(pool, "1");
    dv_test_pool_settle(pool);
    expect_share(first, "0");
    expect_share(second, "");
}

/* The session's expiry is FAILURE, for good: a release changes nothing after that. */
TEST_OF_POOL(test_party_session_failure) {
    dv_test_member *m = add(pool, "0", (dv_test_member_config){.proxied = true});
    dv_test_pool_settle(pool);
    int64_t session = divvy_client_session_id(m->client);
    dv_test_member_expire(m);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), DIVVY_ESTATE);
    assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ELOST);
    assert_string_equal(dv_test_member_share(m), "");
    dv_test_member_drain(m);
    assert_int_equal(m->records[dv_test_member_last(m, DV_TEST_LOST, -1)].reason, DIVVY_REASON_SESSION);
    dv_test_pool_step_for(pool, 3 * BOUNDARY_MS);
    assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
    /* Not even on the next session, which the client has opened by itself. */
    DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_CONNECTED);
    assert_int_not_equal(divvy_client_session_id(m->client), session);
    dv_test_pool_step_for(pool, 3 * BOUNDARY_MS);
    assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
    assert_int_equal(divvy_partitioner_finish(m->partitioner, 0), DIVVY_ELOST);
}

static void lose_connection(dv_test_pool *pool, dv_test_member **members, size_t count) {
    for (size_t i = 0; i < count; i++) dv_test_member_cut(members[i]);
    for (size_t i = 0; i < count; i++) DV_POOL_UNTIL(pool, divvy_client_state(members[i]->client) == DIVVY_SUSPENDED);
    for (size_t i = 0; i < count; i++) dv_test_proxy_restore(members[i]->proxy);
    for (size_t i = 0; i < count; i++) DV_POOL_UNTIL(pool, divvy_client_state(members[i]->client) == DIVVY_CONNECTED);
}

/* A lost connection makes everybody release; they settle on the same shares, and react to a new member after it. */
TEST_OF_POOL(test_connection_loss) {
    dv_test_member *members[2];
    members[0] = add(pool, "0", (dv_test_member_config){.proxied = true});
    members[1] = add(pool, "1", (dv_test_member_config){.proxied = true});
    dv_test_pool_settle(pool);
    lose_connection(pool, members, 2);
    for (size_t i = 0; i < 2; i++) assert_int_equal(dv_test_member_load(members[i]), 0);
    for (size_t i = 0; i < 2; i++) release(members[i]);
    dv_test_pool_settle(pool);
    expect_share(members[0], "0 2");
    expect_share(members[1], "1");
    for (size_t i = 0; i < 2; i++) expect_states(members[i], "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
    dv_test_member *third = add_plain(pool, "2");
    for (size_t i = 0; i < 2; i++) DV_POOL_UNTIL(pool, dv_test_member_state(members[i]) == DIVVY_RELEASE);
    for (size_t i = 0; i < 2; i++) release(members[i]);
    dv_test_pool_settle(pool);
    expect_share(members[0], "0");
    expect_share(members[1], "1");
    expect_share(third, "2");
}

/* A member that releases while the connection is down is to release again when it is back, as with kazoo's listener. */
TEST_OF_POOL(test_release_while_suspended) {
    dv_test_member *m = add(pool, "0", (dv_test_member_config){.proxied = true});
    dv_test_pool_settle(pool);
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    release(m);
    dv_test_proxy_restore(m->proxy);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    release(m);
    dv_test_pool_settle(pool);
    expect_share(m, "0 1 2");
    expect_states(m, "ALLOCATING ACQUIRED RELEASE ALLOCATING RELEASE ALLOCATING ACQUIRED");
}

/* A member comes while the first one still waits for the lock that is to be the new member's: the first one makes way
 * by itself, and nobody deadlocks. */
TEST_IN(test_new_partitioner_during_the_lock, setup_two, dv_test_pool_teardown) {
    dv_test_pool *pool = *state;
    char *slow = dv_test_pool_block(pool, "1");
    dv_test_member *first = add_plain(pool, "0");
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "1") == 2);
    assert_int_equal(dv_test_member_load(first), 0); /* eager: nothing before everything */
    dv_test_member *second = add_plain(pool, "1");
    DV_POOL_UNTIL(pool, dv_test_member_state(first) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_state(second), DIVVY_ALLOCATING);
    dv_test_pool_unblock(pool, slow);
    dv_test_pool_settle(pool);
    expect_share(first, "0");
    expect_share(second, "1");
    expect_states(first, "ALLOCATING ACQUIRED");
    expect_states(second, "ALLOCATING ACQUIRED");
}

/* A new member that wants the lock for which the first one waits, and gets it while the first one sleeps: no deadlock,
 * and the first one never believes that it owns it. */
TEST_IN(test_new_partitioner_steals_the_lock, setup_two, dv_test_pool_teardown) {
    dv_test_pool *pool = *state;
    char *slow = dv_test_pool_block(pool, "1");
    dv_test_member *first = add_plain(pool, "0");
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "1") == 2);
    dv_test_member *second = add_plain(pool, "1");
    DV_MEMBER_UNTIL(second, dv_test_pool_queue_length(pool, "1") == 3);
    dv_test_pool_unblock(pool, slow); /* Now the first one has the lock, and does not hear of it. */
    for (int i = 0; i < 50; i++) dv_test_member_step(second);
    assert_int_equal(dv_test_member_state(second), DIVVY_ALLOCATING);
    dv_test_pool_settle(pool);
    expect_share(first, "0");
    expect_share(second, "1");
    expect_states(first, "ALLOCATING ACQUIRED");
}

/* Everything is released at the first sign of a change, long before it has settled, and nothing is created again until
 * it has: the target is void. */
TEST_OF_POOL(test_first_sign_voids_the_target) {
    dv_test_member *m = add_plain(pool, "5");
    dv_test_pool_settle(pool);
    int64_t changed_ms = dv_test_now_ms();
    dv_test_pool_join(pool, "0123456789abcdef0123456789abcdef-9", true);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    release(m);
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 1); /* its party node */
    uint64_t creates = dv_test_member_stats(m).creates;
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).creates > creates);
    assert_true(dv_test_now_ms() - changed_ms >= BOUNDARY_MS);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, "0 2");
}

/* A change that is undone before it settles costs kazoo's users a release all the same. */
TEST_OF_POOL(test_change_that_is_undone) {
    dv_test_member *m = add_plain(pool, "5");
    dv_test_pool_settle(pool);
    dv_test_pool_join(pool, "0123456789abcdef0123456789abcdef-9", true);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    dv_test_pool_leave(pool, "0123456789abcdef0123456789abcdef-9");
    release(m);
    dv_test_pool_settle(pool);
    expect_share(m, "0 1 2");
    expect_states(m, "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
}

/* A release that comes when the change has long settled ends in the new share at once, everything taken again. */
TEST_OF_POOL(test_slow_release) {
    dv_test_member *m = add_plain(pool, "5");
    dv_test_pool_settle(pool);
    int64_t token = dv_test_member_token(m, 0);
    dv_test_pool_join(pool, "0123456789abcdef0123456789abcdef-9", true);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    dv_test_pool_step_for(pool, 3 * BOUNDARY_MS);
    assert_string_equal(dv_test_member_share(m), "0! 1! 2!");
    release(m);
    assert_int_equal(dv_test_member_load(m), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, "0 2");
    assert_true(dv_test_member_token(m, 0) > token);
    expect_states(m, "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
}

/* A change seen while ALLOCATING keeps an eager member from being ACQUIRED until the change has settled. */
TEST_OF_POOL(test_change_while_allocating) {
    char *slow = dv_test_pool_block(pool, "0");
    dv_test_member *m = add_plain(pool, "5");
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "0") == 2);
    uint64_t events = dv_test_member_stats(m).watch_events;
    int64_t changed_ms = dv_test_now_ms();
    dv_test_pool_join(pool, "0123456789abcdef0123456789abcdef-9", true);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).watch_events > events); /* seen before the lock comes */
    dv_test_pool_unblock(pool, slow);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_true(dv_test_now_ms() - changed_ms >= BOUNDARY_MS);
    expect_share(m, "0 2");
    expect_states(m, "ALLOCATING ACQUIRED");
}

/* With live members of many numbers the split is what kazoo's function gives. */
TEST_IN(test_split_is_kazoos, dv_test_pool_setup, dv_test_pool_teardown) {
    dv_test_pool *pool = *state;
    enum { MEMBERS = 4, ITEMS = 10 };
    dv_test_member *members[MEMBERS];
    divvy_member names[MEMBERS];
    uint32_t owners[ITEMS];
    static const char *const identifiers[MEMBERS] = {"b", "a-1", "z", "\xc3\xa9"};
    for (size_t i = 0; i < MEMBERS; i++) {
        members[i] = add(pool, identifiers[i], (dv_test_member_config){0});
        members[i]->config.patient = false; /* releases by itself */
        names[i] = (divvy_member){identifiers[i], 1000, NULL};
    }
    dv_test_pool_settle(pool);
    assert_int_equal(divvy_assign_round_robin(names, MEMBERS, (const char *const *)pool->items, ITEMS, owners), 0);
    for (size_t i = 0; i < ITEMS; i++) assert_true(dv_test_member_owns(members[owners[i]], i));
}

TEST_EACH(setup_three, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
