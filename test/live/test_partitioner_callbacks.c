/* The calls that are allowed in callbacks and beside them, and the end of objects.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows callbacks on threads of their own, and ends inside them. */
#include "lib/pool.h"

#include <stdint.h>
#include <string.h>

/* Shared by the hooks of the running test; each test sets it. */
static struct {
    atomic_int entered, go, left, returned;
    int results[8];
    dv_test_member *other;
} shared;

static int setup(void **state) {
    memset(&shared, 0, sizeof shared);
    return dv_test_pool_setup(state);
}

static void await(atomic_int *flag) {
    if (!DV_WAIT(atomic_load(flag), DV_TEST_PATIENCE_MS)) dv_test_die("waited in vain");
}

/* Stays in the first callback until the test lets it go. */
static void block_on_items(dv_test_member *m, const divvy_items_event *event) {
    (void)m, (void)event;
    if (atomic_exchange(&shared.entered, 1)) return;
    await(&shared.go);
    atomic_store(&shared.left, 1);
}

/* ---- calls inside callbacks ---- */

static void call_what_waits(dv_test_member *m, divvy_partition_state from, divvy_partition_state to) {
    (void)from;
    if (to != DIVVY_ACQUIRED || atomic_load(&shared.left)) return;
    divvy_partitioner *p = m->partitioner;
    shared.results[0] = divvy_partitioner_wait_change(p, divvy_partitioner_state_id(p), 100);
    shared.results[1] = divvy_partitioner_wait_for_acquire(p, 0);
    shared.results[2] = divvy_partitioner_finish(p, 100);
    shared.results[3] = divvy_client_process(m->client, 0);
    shared.results[4] = divvy_partitioner_release_set(p);
    shared.results[5] = divvy_partitioner_wait_change(p, divvy_partitioner_state_id(p), -1);
    atomic_store(&shared.left, 1);
}

static void check_waiting_calls(dv_test_pool *pool, bool threaded) {
    dv_test_member *m =
        dv_test_pool_add(pool, &(dv_test_member_config){.threaded = threaded, .on_state = call_what_waits});
    DV_POOL_UNTIL(pool, atomic_load(&shared.left));
    assert_int_equal(shared.results[0], DIVVY_EDEADLK);
    assert_int_equal(shared.results[1], 0); /* nothing to wait for */
    assert_int_equal(shared.results[2], DIVVY_EDEADLK);
    assert_int_equal(shared.results[3], threaded ? DIVVY_ESTATE : DIVVY_EDEADLK);
    assert_int_equal(shared.results[4], DIVVY_ESTATE);
    assert_int_equal(shared.results[5], DIVVY_EDEADLK);
    assert_int_equal(dv_test_member_state(m), DIVVY_ACQUIRED); /* the refused finish() did nothing */
    assert_int_equal(dv_test_member_load(m), 10);
}

/* A call that would wait inside a callback says so at once and does nothing, in both modes. */
TEST(test_waiting_calls_in_callbacks) {
    check_waiting_calls(*state, false);
}

TEST(test_waiting_calls_in_threaded_callbacks) {
    check_waiting_calls(*state, true);
}

static void finish_at_once(dv_test_member *m, divvy_partition_state from, divvy_partition_state to) {
    (void)from;
    if (to != DIVVY_ACQUIRED) return;
    shared.results[0] = divvy_partitioner_finish(m->partitioner, 0);
    shared.results[1] = divvy_partitioner_state(m->partitioner);
}

/* finish() with a timeout of 0 may be called in a callback; the deletes follow. */
TEST_OF_POOL(test_finish_in_callback) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.on_state = finish_at_once});
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_STATE, DIVVY_FAILURE) == 1);
    assert_int_equal(shared.results[0], DIVVY_ETIMEDOUT);
    assert_int_equal(shared.results[1], DIVVY_FAILURE);
    DV_POOL_UNTIL(pool, divvy_partitioner_finish(m->partitioner, 0) == 0);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
    dv_test_member_drain(m);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED FAILURE");
}

static void release_at_once(dv_test_member *m, divvy_partition_state from, divvy_partition_state to) {
    (void)from;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(m->partitioner);
}

/* Threaded members that release in their callbacks divide, join and leave with nobody polling. */
TEST_OF_POOL(test_threaded_pool) {
    dv_test_member *members[5];
    dv_test_member_config config = {.threaded = true, .patient = true, .boundary_ms = 50, .on_state = release_at_once};
    dv_test_pool_add_many(pool, members, 0, 3, &config);
    dv_test_pool_settle(pool);
    dv_test_pool_add_many(pool, members + 3, 3, 2, &config);
    dv_test_pool_settle(pool);
    assert_int_equal(divvy_partitioner_finish(members[0]->partitioner, DV_TEST_PATIENCE_MS), 0);
    dv_test_member_destroy(members[1]);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_pool_nodes(pool), 10 + 3);
}

/* ---- destroy ---- */

static void destroy_in_callback(dv_test_member *m, const divvy_items_event *event) {
    (void)event;
    divvy_partitioner *p = m->partitioner; /* the test takes it away once we have entered */
    if (!atomic_exchange(&shared.entered, 1)) divvy_partitioner_destroy(p);
}

static void check_destroy_in_callback(dv_test_pool *pool, bool threaded) {
    dv_test_member *m =
        dv_test_pool_add(pool, &(dv_test_member_config){.threaded = threaded, .on_items = destroy_in_callback});
    while (!threaded && !atomic_load(&shared.entered)) divvy_client_process(m->client, 10);
    await(&shared.entered);
    m->partitioner = NULL;
    DV_POOL_UNTIL(pool, atomic_load(&m->destroyed));
    size_t items = dv_test_member_count(m, DV_TEST_GAINED, -1);
    dv_test_pool_step_for(pool, 100); /* pool.c fails on a callback that comes now */
    assert_int_equal(dv_test_member_count(m, DV_TEST_GAINED, -1), items);
    assert_int_equal(m->records[m->record_count - 1].kind, DV_TEST_DESTROYED);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
}

/* Destroyed inside its own callback it goes when that returns; on_destroyed is the last that is heard of it. */
TEST(test_destroy_in_callback) {
    check_destroy_in_callback(*state, false);
}

TEST(test_destroy_in_threaded_callback) {
    check_destroy_in_callback(*state, true);
}

static void *destroy_later(void *partitioner) {
    divvy_partitioner_destroy(partitioner);
    atomic_store(&shared.returned, 1);
    return NULL;
}

/* Destroyed in another thread while a callback of it runs: destroy waits for the callback, and no other comes. */
TEST_OF_POOL(test_destroy_waits_for_a_callback) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.threaded = true, .on_items = block_on_items});
    await(&shared.entered);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, destroy_later, m->partitioner), 0);
    m->partitioner = NULL;
    dv_test_sleep_ms(150);
    assert_false(atomic_load(&shared.returned));
    assert_false(atomic_load(&shared.left));
    atomic_store(&shared.go, 1);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&shared.left));
    size_t records = dv_test_member_count(m, DV_TEST_GAINED, -1) + dv_test_member_count(m, DV_TEST_STATE, -1);
    DV_POOL_UNTIL(pool, atomic_load(&m->destroyed));
    assert_int_equal(dv_test_member_count(m, DV_TEST_GAINED, -1) + dv_test_member_count(m, DV_TEST_STATE, -1), records);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
}

/* It waits for its own callbacks only, not for those of another partitioner of the client. */
TEST_OF_POOL(test_destroy_does_not_wait_for_others) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.threaded = true, .on_items = block_on_items});
    await(&shared.entered);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    static const char *const items[] = {"x"};
    char path[100];
    snprintf(path, sizeof path, "%s/other", pool->path);
    config.path = path;
    config.items = items;
    config.item_count = 1;
    divvy_partitioner *other;
    assert_int_equal(divvy_partitioner_create(&other, m->client, &config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(other, DV_TEST_PATIENCE_MS), 0); /* the loop is not held up */
    divvy_partitioner_destroy(other);
    assert_false(atomic_load(&shared.left));
    atomic_store(&shared.go, 1);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
}

/* A slow callback holds up neither the state nor the release: the locks are given back on the way. Its user is told of
 * what stands then, not of what came and went (P17). */
TEST_OF_POOL(test_slow_callback_holds_up_nothing) {
    dv_test_member *m = dv_test_pool_add(
        pool, &(dv_test_member_config){.threaded = true, .func = dv_test_pool_func, .on_items = block_on_items});
    await(&shared.entered);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, DV_TEST_PATIENCE_MS), 0);
    dv_test_pool_set_target(pool, "0000000001");
    assert_true(DV_WAIT(dv_test_member_state(m) == DIVVY_RELEASE, DV_TEST_PATIENCE_MS));
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, DV_TEST_PATIENCE_MS), 0);
    assert_int_equal(dv_test_pool_nodes(pool), 2);
    assert_false(atomic_load(&shared.left));
    atomic_store(&shared.go, 1);
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_STATE, DIVVY_ACQUIRED) == 1);
    assert_int_equal(dv_test_member_count(m, DV_TEST_STATE, DIVVY_RELEASE), 0);
}

static void release_late(dv_test_member *m, const divvy_items_event *event) {
    block_on_items(m, event);
    if (event->gained_count) return;                  /* in as many pieces as it liked */
    size_t i = (size_t)atomic_load(&shared.returned); /* callbacks come one at a time */
    if (i < 8) shared.results[i] = divvy_partitioner_release_set(m->partitioner);
    atomic_fetch_add(&shared.returned, 1);
}

/* A callback that comes late tells of its own RELEASE, not of the one in force by then: released is what was told. */
TEST_OF_POOL(test_late_callback_tells_of_its_own) {
    dv_test_member *m = dv_test_pool_add(
        pool, &(dv_test_member_config){
                  .threaded = true, .patient = true, .func = dv_test_pool_func, .on_items = release_late});
    await(&shared.entered);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, DV_TEST_PATIENCE_MS), 0);
    dv_test_pool_set_target(pool, "0111111111");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    uint64_t reads = dv_test_member_stats(m).children;
    dv_test_pool_set_target(pool, "0011111111");
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).children > reads && dv_test_member_stats(m).in_flight == 0);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0); /* of "item-0"; now "item-1" is revoked */
    assert_false(dv_test_member_owns(m, 1));
    atomic_store(&shared.go, 1);
    /* P17: lost "item-0", which is too late to release; revoked "item-1": released; lost "item-1" */
    assert_true(DV_WAIT(atomic_load(&shared.returned) == 3, DV_TEST_PATIENCE_MS));
    for (size_t i = 0; i < 3; i++) assert_int_equal(shared.results[i], i == 1 ? 0 : DIVVY_ESTATE);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_load(m), 8);
}

/* ---- ends in any order ---- */

/* A snapshot is good when its partitioner and client are gone. */
TEST_OF_POOL(test_snapshot_outlives_all) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){0});
    dv_test_pool_settle(pool);
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    divvy_partition *again = divvy_partitioner_partition(m->partitioner);
    int64_t token = divvy_partition_token(share, 9);
    dv_test_member_destroy(m);
    divvy_client_close(m->client);
    m->client = NULL;
    assert_int_equal(divvy_partition_count(share), 10);
    for (size_t i = 0; i < 10; i++) assert_string_equal(divvy_partition_item(share, i), pool->items[i]);
    assert_int_equal(divvy_partition_token(share, 9), token);
    assert_int_equal(divvy_partition_generation(share), divvy_partition_generation(again));
    assert_null(divvy_partition_item(share, 10));
    assert_int_equal(divvy_partition_token(share, 10), 0);
    assert_int_equal(divvy_partition_revoked(share, 10), 0);
    divvy_partition_unref(share);
    assert_string_equal(divvy_partition_item(again, 0), "item-0");
    divvy_partition_unref(again);
}

static void check_destroy_after_close(dv_test_pool *pool, bool threaded) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.threaded = threaded});
    dv_test_pool_settle(pool);
    divvy_client_close(m->client);
    m->client = NULL;
    divvy_partitioner *p = m->partitioner;
    assert_int_equal(dv_test_pool_nodes(pool), 0); /* deleted, not left to the session */
    assert_int_equal(divvy_partitioner_state(p), DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(p, NULL, 0), DIVVY_ECLOSED);
    assert_int_equal(divvy_partitioner_release_set(p), DIVVY_ECLOSED);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 100), DIVVY_ECLOSED);
    assert_int_equal(divvy_partitioner_wait_change(p, 1, 100), DIVVY_ECLOSED);
    assert_int_equal(divvy_partitioner_finish(p, 100), DIVVY_ECLOSED);
    assert_int_equal(dv_test_member_load(m), 0);
    assert_string_equal(dv_test_member_share(m), "");
    assert_non_null(divvy_partitioner_identifier(p));
    dv_test_member_destroy(m);
    assert_true(atomic_load(&m->destroyed));
}

/* The client may be closed first: from then on calls say so, and destroy still ends with on_destroyed. */
TEST(test_destroy_after_close) {
    check_destroy_after_close(*state, false);
}

TEST(test_destroy_after_threaded_close) {
    check_destroy_after_close(*state, true);
}

static void close_in_callback(dv_test_member *m, divvy_partition_state from, divvy_partition_state to) {
    (void)from;
    if (to == DIVVY_ACQUIRED) divvy_client_close(m->client);
    if (to == DIVVY_ACQUIRED) atomic_store(&shared.left, 1);
}

/* Closed in a callback that runs inside a waiting call: the call ends, and so does the client. */
TEST_OF_POOL(test_close_in_callback_of_a_wait) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.on_state = close_in_callback});
    char *foreign = dv_test_pool_block(pool, "item-0");
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, 100), DIVVY_ETIMEDOUT);
    dv_test_pool_unblock(pool, foreign);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, DV_TEST_PATIENCE_MS), DIVVY_ECLOSED);
    m->client = NULL;
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ECLOSED);
    assert_int_equal(divvy_partitioner_wait_change(m->partitioner, 0, 0), DIVVY_ECLOSED);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
    dv_test_member_destroy(m);
}

/* The same on the callback thread of a threaded client. */
TEST_OF_POOL(test_close_in_threaded_callback) {
    dv_test_member *m =
        dv_test_pool_add(pool, &(dv_test_member_config){.threaded = true, .on_state = close_in_callback});
    await(&shared.left);
    m->client = NULL;
    assert_true(DV_WAIT(divvy_partitioner_failure(m->partitioner, NULL, 0) == DIVVY_ECLOSED, DV_TEST_PATIENCE_MS));
    assert_true(DV_WAIT(dv_test_pool_nodes(pool) == 0, DV_TEST_PATIENCE_MS));
    dv_test_member_destroy(m);
    assert_true(DV_WAIT(atomic_load(&m->destroyed), DV_TEST_PATIENCE_MS));
}

static void *wait_in_thread(void *member) {
    dv_test_member *m = member;
    atomic_store(&shared.entered, 1);
    shared.results[0] = divvy_partitioner_wait_for_acquire(m->partitioner, -1);
    return NULL;
}

/* A thread that waits while the client is closed is told so. */
TEST_OF_POOL(test_close_ends_waits) {
    char *foreign = dv_test_pool_block(pool, "item-0");
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.threaded = true});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, m), 0);
    await(&shared.entered);
    dv_test_sleep_ms(50);
    divvy_client_close(m->client);
    m->client = NULL;
    pthread_join(thread, NULL);
    assert_true(shared.results[0] == DIVVY_ECLOSED || shared.results[0] == DIVVY_ESTATE);
    dv_test_pool_unblock(pool, foreign);
}

TEST_EACH(setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
