/* Many items, small budgets, and what create() refuses. SPDX-License-Identifier: Apache-2.0 */
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
    dv_test_member_config config = {.boundary_ms = 50, .watch_path_bytes = 300};
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

/* ---- what create() refuses ---- */

static divvy_client *refuser;

static void refuse(dv_test_pool *pool, const divvy_partitioner_config *config, int error) {
    divvy_partitioner *p = (divvy_partitioner *)(uintptr_t)1;
    assert_int_equal(divvy_partitioner_create(&p, refuser, config), error);
    assert_null(p);
    assert_string_not_equal(divvy_client_error(refuser), "");
    assert_false(dv_test_zk_exists(pool->truth, pool->path, NULL));
}

/* The config with one thing changed is refused with `error`. */
#define REFUSE(error, field, value)             \
    do {                                        \
        divvy_partitioner_config config = good; \
        config.field = (value);                 \
        refuse(pool, &config, error);           \
    } while (0)

static divvy_partitioner_config good_config(dv_test_pool *pool) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = pool->path;
    config.items = (const char *const *)pool->items;
    config.item_count = pool->item_count;
    return config;
}

/* A client whose one partitioner has gone, so that whatever is made now was not to be. */
static void open_refuser(dv_test_pool *pool) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){0});
    refuser = m->client;
    dv_test_member_finish(m);
    dv_test_member_destroy(m);
    DV_POOL_UNTIL(pool, atomic_load(&m->destroyed));
    assert_int_equal(dv_test_zk_delete_all(pool->truth, pool->path), ZOK);
}

/* Numbers, choices and paths that cannot be are refused, with a message, and nothing comes to be in ZooKeeper. */
TEST_OF_POOL(test_refused_numbers) {
    open_refuser(pool);
    divvy_partitioner_config good = good_config(pool);
    REFUSE(DIVVY_EINVAL, time_boundary_ms, -1);
    REFUSE(DIVVY_EINVAL, leave_boundary_ms, -2);
    REFUSE(DIVVY_EINVAL, settle_max_ms, -1);
    REFUSE(DIVVY_EINVAL, allocate_timeout_ms, -1);
    REFUSE(DIVVY_EINVAL, release_warn_ms, -1);
    REFUSE(DIVVY_EINVAL, time_boundary_ms, INT64_MAX);
    REFUSE(DIVVY_EINVAL, allocate_timeout_ms, INT64_MAX);
    REFUSE(DIVVY_EINVAL, release_warn_ms, INT64_MAX / 2);
    REFUSE(DIVVY_EINVAL, mode, 2);
    REFUSE(DIVVY_EINVAL, assign, 5);
    REFUSE(DIVVY_EINVAL, assign, DIVVY_ASSIGN_FUNC);
    REFUSE(DIVVY_EINVAL, func, dv_test_pool_func);
    REFUSE(DIVVY_EINVAL, on_suspend, -1);
    REFUSE(DIVVY_EINVAL, on_session_loss, 2);
    REFUSE(DIVVY_EINVAL, size, 0);
    REFUSE(DIVVY_EINVAL, zone, "\xff");
    REFUSE(DIVVY_EINVAL, max_moves, (size_t)UINT32_MAX + 1);
    REFUSE(DIVVY_EINVAL, rejoin_delay_ms, 1);
    REFUSE(DIVVY_EINVAL, rejoin_delay_ms, -1);
    REFUSE(DIVVY_EINVAL, round_timeout_ms, -1);
    REFUSE(DIVVY_EINVAL, static_membership, 1);
    REFUSE(DIVVY_EINVAL, item_count, 0);
    REFUSE(DIVVY_EINVAL, items, NULL);
    REFUSE(DIVVY_EINVAL, path, NULL);
    REFUSE(DIVVY_EINVAL, path, "relative");
    REFUSE(DIVVY_EINVAL, path, "/a//b");
    REFUSE(DIVVY_EINVAL, path, "/a/");
    REFUSE(DIVVY_EINVAL, path, "/a/../b");
    REFUSE(DIVVY_EINVAL, path, "/zookeeper/x");
    REFUSE(DIVVY_EINVAL, identifier, "");
    REFUSE(DIVVY_EINVAL, identifier, "a/b");
    REFUSE(DIVVY_EINVAL, identifier, "a\nb");
    REFUSE(DIVVY_EINVAL, identifier, "\xff");
}

/* So are items and identifiers. */
TEST_OF_POOL(test_refused_items) {
    open_refuser(pool);
    divvy_partitioner_config config = good_config(pool);
    const char *twice[] = {"b", "a", "b"}, *empty[] = {"a", ""}, *null[] = {"a", NULL};
    config.items = twice, config.item_count = 3;
    refuse(pool, &config, DIVVY_EINVAL);
    config.items = empty, config.item_count = 2;
    refuse(pool, &config, DIVVY_EINVAL);
    config.items = null;
    refuse(pool, &config, DIVVY_EINVAL);
    char *large = malloc(300 * 1024);
    assert_non_null(large);
    memset(large, 'x', 300 * 1024 - 1);
    large[300 * 1024 - 1] = '\0';
    const char *one[] = {large};
    config.items = one, config.item_count = 1;
    refuse(pool, &config, DIVVY_E2BIG);
    config = good_config(pool);
    large[600] = '\0';
    config.identifier = large;
    refuse(pool, &config, DIVVY_E2BIG);
    config.identifier = NULL;
    config.item_count = 1000001;
    refuse(pool, &config, DIVVY_E2BIG);
    free(large);
    divvy_partitioner *p;
    config = good_config(pool);
    assert_int_equal(divvy_partitioner_create(NULL, refuser, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_create(&p, NULL, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_create(&p, refuser, NULL), DIVVY_EINVAL);
}

/* NULL is answered as each page says. */
TEST(test_null) {
    assert_int_equal(divvy_partitioner_state(NULL), DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_state_id(NULL), 0);
    assert_int_equal(divvy_partitioner_wait_change(NULL, 0, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_release_set(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_release_set_id(NULL, 1), DIVVY_EINVAL);
    assert_null(divvy_partitioner_partition(NULL));
    assert_int_equal(divvy_partitioner_owns(NULL, "x"), 0);
    assert_int_equal(divvy_partitioner_finish(NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_leave(NULL, 0, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_failure(NULL, NULL, 0), DIVVY_EINVAL);
    assert_null(divvy_partitioner_identifier(NULL));
    assert_int_equal(divvy_partitioner_set_items(NULL, NULL, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_set_weight(NULL, 1), DIVVY_EINVAL);
    divvy_partitioner_destroy(NULL);
    assert_int_equal(divvy_partition_count(NULL), 0);
    assert_null(divvy_partition_item(NULL, 0));
    assert_int_equal(divvy_partition_short(NULL), 0);
    divvy_partition_unref(NULL);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
