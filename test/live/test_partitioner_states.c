/* The table of states, row by row, and the interleavings that DESIGN.md marks. SPDX-License-Identifier: Apache-2.0
 *
 * One member whose targets the test makes up (dv_test_pool_set_target), with a boundary of 0, so that each settles with
 * the next read; locks are kept from it by foreign contenders. Whatever it hears, it hears in a step of the test's.
 *
 * Shows the table of states by the answers and watches of a real server, one at a time. */
#include "lib/pool.h"

#include <inttypes.h>
#include <string.h>

/* One of four items, "0" to "3"; the test answers RELEASE. */
static dv_test_member *add(dv_test_pool *pool, dv_test_member_config config) {
    config.identifier = "m";
    config.patient = true;
    config.func = dv_test_pool_func;
    return dv_test_pool_add(pool, &config);
}

static int release(dv_test_member *m) {
    return divvy_partitioner_release_set(m->partitioner);
}

static void expect_share(dv_test_member *m, divvy_partition_state state, const char *share) {
    assert_int_equal(dv_test_member_state(m), state);
    assert_string_equal(dv_test_member_share(m), share);
    dv_test_member_drain(m);
    assert_int_equal(dv_test_member_state(m), state);
}

/* ACQUIRED with everything. */
static dv_test_member *add_acquired(dv_test_pool *pool, dv_test_member_config config) {
    dv_test_member *m = add(pool, config);
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 4);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).in_flight == 0);
    return m;
}

/* The target settles, and all that follows from it has happened. Tells nothing but what callbacks tell. */
static void change_target(dv_test_member *m, const char *bits) {
    DV_POOL_UNTIL(m->pool, dv_test_member_stats(m).in_flight == 0);
    uint64_t reads = dv_test_member_stats(m).children;
    dv_test_pool_set_target(m->pool, bits);
    DV_POOL_UNTIL(m->pool, dv_test_member_stats(m).children > reads);
    DV_POOL_UNTIL(m->pool, dv_test_member_stats(m).in_flight == 0);
}

static void expect_queues(dv_test_pool *pool, const char *lengths) {
    char text[8] = "";
    for (size_t i = 0; i < pool->item_count; i++)
        text[i] = (char)('0' + dv_test_pool_queue_length(pool, pool->items[i]));
    assert_string_equal(text, lengths);
}

static int setup(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "%zu", 4);
    return 0;
}

/* ---- what release_set() acknowledges ---- */

/* Outside RELEASE there is nothing to acknowledge. */
TEST_OF_POOL(test_release_needs_release) {
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    assert_int_equal(release(m), DIVVY_ESTATE);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_int_equal(release(m), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, divvy_partitioner_state_id(m->partitioner)),
                     DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_finish(m->partitioner, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(release(m), DIVVY_ESTATE);
    assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
}

typedef void telling(dv_test_member *m);

static void tell_by_state(dv_test_member *m) {
    assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_RELEASE);
}

static void tell_by_state_id(dv_test_member *m) {
    assert_true(divvy_partitioner_state_id(m->partitioner) > 0);
}

static void tell_by_partition(dv_test_member *m) {
    divvy_partition_unref(divvy_partitioner_partition(m->partitioner));
}

static void tell_by_wait_change(dv_test_member *m) {
    assert_int_equal(divvy_partitioner_wait_change(m->partitioner, 0, 0), 0);
}

static void tell_by_wait_for_acquire(dv_test_member *m) {
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, 0), DIVVY_ESTATE);
}

/* A RELEASE that nobody was told of is not released, and each way of being told makes it releasable. */
TEST_OF_POOL(test_untold_release) {
    static telling *const ways[] = {tell_by_state, tell_by_state_id, tell_by_partition, tell_by_wait_change,
                                    tell_by_wait_for_acquire};
    dv_test_member *m = add_acquired(pool, (dv_test_member_config){.silent = true});
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        change_target(m, "1110");
        assert_false(dv_test_member_owns(m, 3)); /* owns() tells nothing */
        assert_int_equal(release(m), DIVVY_ESTATE);
        expect_queues(pool, "1111");
        ways[i](m);
        assert_int_equal(release(m), 0);
        DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
        expect_queues(pool, "1110");
        change_target(m, "1111");
        DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    }
}

static int released_in_callback;

static void release_on_state(dv_test_member *m, divvy_partition_state from, divvy_partition_state to) {
    (void)from;
    if (to == DIVVY_RELEASE) released_in_callback = release(m);
}

static void release_on_items(dv_test_member *m, const divvy_items_event *event) {
    if (event->revoked_count) released_in_callback = release(m);
}

/* A callback that says RELEASE, or the items that it revokes, has told of it: both may release at once. */
TEST_OF_POOL(test_release_in_callbacks) {
    dv_test_member *m = add_acquired(pool, (dv_test_member_config){0});
    m->config.on_state = release_on_state;
    released_in_callback = 1;
    change_target(m, "1110");
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_STATE, DIVVY_RELEASE) == 1);
    assert_int_equal(released_in_callback, 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    m->config.on_state = NULL;
    m->config.on_items = release_on_items;
    released_in_callback = 1;
    change_target(m, "1100");
    assert_int_equal(released_in_callback, 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, DIVVY_ACQUIRED, "0 1");
    assert_string_equal(dv_test_member_states(m),
                        "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
}

/* A release that leads straight into another RELEASE is not answered by a second call in ignorance of it. */
TEST_OF_POOL(test_second_release_is_not_acknowledged) {
    dv_test_member *m = add_acquired(pool, (dv_test_member_config){.silent = true});
    change_target(m, "0111");
    assert_string_equal(dv_test_member_share(m), "0! 1 2 3");
    change_target(m, "0011"); /* `revoked` is frozen: the user was told of "0" alone */
    assert_string_equal(dv_test_member_share(m), "0! 1 2 3");
    uint64_t first_id = divvy_partitioner_state_id(m->partitioner);
    assert_int_equal(release(m), 0);
    assert_int_equal(release(m), DIVVY_ESTATE);
    assert_int_equal(release(m), DIVVY_ESTATE);
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "0") == 0);
    expect_queues(pool, "0111");
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, first_id), DIVVY_ESTATE);
    assert_true(divvy_partitioner_state_id(m->partitioner) > first_id);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_string_equal(dv_test_member_share(m), "1! 2 3");
    assert_int_equal(release(m), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_queues(pool, "0011");
}

/* release_set_id() releases the RELEASE with that number and no other, told or not. */
TEST_OF_POOL(test_release_set_id) {
    dv_test_member *m = add_acquired(pool, (dv_test_member_config){0});
    change_target(m, "0111");
    uint64_t id = divvy_partitioner_state_id(m->partitioner);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, id - 1), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, id + 1), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, 0), DIVVY_ESTATE);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, id), 0);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, id), DIVVY_ESTATE);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
}

/* ---- the table ---- */

/* ACQUIRED, a target that only adds: ALLOCATING; an equal one: nothing is told. */
TEST_OF_POOL(test_target_adds_or_is_equal) {
    dv_test_pool_set_target(pool, "0110");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    char *foreign = dv_test_pool_block(pool, "3");
    change_target(m, "1111");
    expect_share(m, DIVVY_ALLOCATING, "0 1 2"); /* work on "0" may begin at once */
    dv_test_pool_unblock(pool, foreign);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    uint64_t id = divvy_partitioner_state_id(m->partitioner);
    size_t records = m->record_count;
    change_target(m, "1111");
    assert_int_equal(divvy_partitioner_state_id(m->partitioner), id);
    assert_int_equal(m->record_count, records);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED ALLOCATING ACQUIRED");
}

/* ALLOCATING, a target that lacks an item already shown: RELEASE of that item. */
TEST_OF_POOL(test_target_lacks_shown_while_allocating) {
    char *foreign = dv_test_pool_block(pool, "3");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 3);
    expect_share(m, DIVVY_ALLOCATING, "0 1 2");
    change_target(m, "1101");
    expect_share(m, DIVVY_RELEASE, "0 1 2!");
    assert_int_equal(release(m), 0);
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "2") == 0);
    expect_share(m, DIVVY_ALLOCATING, "0 1");
    dv_test_pool_unblock(pool, foreign);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, DIVVY_ACQUIRED, "0 1 3");
    assert_string_equal(dv_test_member_states(m), "ALLOCATING RELEASE ALLOCATING ACQUIRED");
}

/* ALLOCATING, a target without the item that is waited for: the place is given up by itself, and the rest is all. */
TEST_OF_POOL(test_target_drops_a_waiting_place) {
    char *foreign = dv_test_pool_block(pool, "3");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "3") == 2);
    change_target(m, "1110");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_queues(pool, "1111"); /* in the last one only the foreign one is left */
    int64_t czxid;
    assert_int_equal(dv_test_pool_owner(pool, "3", &czxid), dv_test_zk_session(pool->truth));
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED");
    dv_test_pool_unblock(pool, foreign);
}

/* Heartbeats are not counted. */
static uint64_t writes_of(dv_test_member *m) {
    divvy_stats stats = dv_test_member_stats(m);
    return stats.writes - stats.checks;
}

/* RELEASE, a target that wants the revoked items back: they keep node and token, and are told lost, then gained. */
TEST_OF_POOL(test_target_wants_revoked_back) {
    dv_test_member *m = add_acquired(pool, (dv_test_member_config){0});
    int64_t token = dv_test_member_token(m, 0);
    uint64_t writes = writes_of(m);
    change_target(m, "0011");
    expect_share(m, DIVVY_RELEASE, "0! 1! 2 3");
    change_target(m, "1011");
    expect_share(m, DIVVY_RELEASE, "0! 1! 2 3"); /* revoked all the same until the user has stopped */
    assert_false(dv_test_member_owns(m, 0));
    assert_int_equal(release(m), 0);
    assert_true(dv_test_member_owns(m, 0));
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, DIVVY_ACQUIRED, "0 2 3");
    int64_t czxid;
    dv_test_pool_owner(pool, "0", &czxid);
    assert_int_equal(czxid, token);
    assert_int_equal(dv_test_member_token(m, 0), token);
    assert_int_equal(writes_of(m), writes + 1); /* the delete of "1" */
    const dv_test_record *gained = &m->records[dv_test_member_last(m, DV_TEST_GAINED, -1)];
    assert_int_equal(gained->item, 0);
    assert_int_equal(gained->token, token);
    assert_int_equal(dv_test_member_count(m, DV_TEST_LOST, -1), 2);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
}

/* RELEASE, new targets: places that nobody saw come and go without the user; only revocation waits for it. */
TEST_OF_POOL(test_target_in_release_moves_unshown_places) {
    char *foreign = dv_test_pool_block(pool, "3");
    dv_test_pool_set_target(pool, "1001");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 1 && dv_test_pool_queue_length(pool, "3") == 2);
    change_target(m, "0101"); /* "1" is gained in RELEASE, "0" revoked */
    DV_POOL_UNTIL(pool, dv_test_member_owns(m, 1));
    expect_share(m, DIVVY_RELEASE, "0! 1");
    change_target(m, "0110"); /* "2" instead of the place in the queue of "3" */
    DV_POOL_UNTIL(pool, dv_test_pool_queue_length(pool, "3") == 1 && dv_test_member_owns(m, 2));
    expect_share(m, DIVVY_RELEASE, "0! 1 2");
    assert_int_equal(release(m), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, DIVVY_ACQUIRED, "1 2");
    dv_test_pool_unblock(pool, foreign);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING RELEASE ALLOCATING ACQUIRED");
}

/* Items gained in RELEASE that the next target lacks are revoked by the RELEASE after it, never taken unasked. */
TEST_OF_POOL(test_gained_and_lacking_in_release) {
    dv_test_pool_set_target(pool, "1000");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    change_target(m, "0100");
    DV_POOL_UNTIL(pool, dv_test_member_owns(m, 1));
    change_target(m, "0010");
    DV_POOL_UNTIL(pool, dv_test_member_owns(m, 2));
    expect_share(m, DIVVY_RELEASE, "0! 1 2");
    assert_int_equal(release(m), 0);
    expect_share(m, DIVVY_RELEASE, "1! 2");
    assert_int_equal(release(m), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, DIVVY_ACQUIRED, "2");
    expect_queues(pool, "0010");
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED RELEASE RELEASE ALLOCATING ACQUIRED");
}

/* A target may change while nodes of the one before are on their way in or out: what is left is the last one's. */
TEST_OF_POOL(test_targets_overtake_requests) {
    static const char *const targets[] = {"1111", "0110", "1001", "0000", "1110", "0001", "1111", "0011"};
    dv_test_pool_set_target(pool, "0000");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    m->config.patient = false;
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    for (size_t i = 0; i < 24; i++) {
        uint64_t settled = dv_test_member_stats(m).children;
        dv_test_pool_set_target(pool, targets[i % 8]);
        /* A read that was on its way may have seen the change already; then no other follows. */
        DV_POOL_UNTIL(pool, dv_test_member_stats(m).children > settled || dv_test_member_stats(m).in_flight == 0);
    }
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "2 3") == 0 && dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_member_drain(m);
    expect_queues(pool, "0011");
    assert_int_equal(dv_test_member_stats(m).ephemerals, 3);
}

/* An empty share is ACQUIRED; losing the last item is a RELEASE like any other. */
TEST_OF_POOL(test_empty_target) {
    dv_test_member *m = add_acquired(pool, (dv_test_member_config){0});
    change_target(m, "0000");
    expect_share(m, DIVVY_RELEASE, "0! 1! 2! 3!");
    assert_int_equal(release(m), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    expect_share(m, DIVVY_ACQUIRED, "");
    expect_queues(pool, "0000");
}

TEST_EACH(setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
