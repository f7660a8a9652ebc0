/* Pools that follow the sticky plan, on a real server: exact movement, static members. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Shows a plan of 10,000 items in a real server's nodes, and exact movement. */
#include "lib/pool.h"

#include <string.h>

enum { MANY = 10000, FEW = 100, DELAY_MS = 60000 };

/* The owner of an item, and its token: the czxid of the lock. */
typedef struct {
    dv_test_member *owner;
    int64_t token;
} holding;

static holding *holdings(dv_test_pool *pool) {
    holding *all = calloc(pool->item_count, sizeof *all);
    assert_non_null(all);
    for (dv_test_member *m = pool->members; m; m = m->next) {
        if (!m->partitioner || m->killed) continue;
        divvy_partition *share = divvy_partitioner_partition(m->partitioner);
        for (size_t k = 0; k < divvy_partition_count(share); k++) {
            size_t i = dv_test_member_item(m, divvy_partition_item(share, k));
            assert_null(all[i].owner);
            all[i] = (holding){m, divvy_partition_token(share, k)};
        }
        divvy_partition_unref(share);
    }
    return all;
}

/* Returns how many items have another owner. Items with the same owner are under the same lock as before, never
 * unlocked. */
static size_t moved(dv_test_pool *pool, const holding *before, const holding *after) {
    size_t count = 0;
    for (size_t i = 0; i < pool->item_count; i++) {
        if (before[i].owner == after[i].owner) assert_int_equal(before[i].token, after[i].token);
        else count++;
    }
    return count;
}

static size_t told(dv_test_pool *pool, enum dv_test_kind kind) {
    size_t count = 0;
    for (dv_test_member *m = pool->members; m; m = m->next) count += dv_test_member_count(m, kind, -1);
    return count;
}

static size_t owned(dv_test_pool *pool) {
    size_t count = 0;
    for (dv_test_member *m = pool->members; m; m = m->next) {
        divvy_partition *share = divvy_partitioner_partition(m->partitioner);
        count += divvy_partition_count(share);
        divvy_partition_unref(share);
    }
    return count;
}

/* Without a look at all locks: no member runs meanwhile, so that on a slow machine their sessions would be over. */
static holding *settle_many(dv_test_pool *pool) {
    DV_POOL_UNTIL(pool, dv_test_pool_acquired(pool) && owned(pool) == MANY);
    return holdings(pool);
}

/* Some of the locks are what their owners take them for. */
static void check_locks(dv_test_pool *pool, const holding *all) {
    for (size_t i = 0; i < MANY; i += 50) {
        int64_t czxid;
        dv_test_pool_owner(pool, pool->items[i], &czxid);
        assert_int_equal(czxid, all[i].token);
    }
}

/* 4 members become 5, with 10,000 items: exactly 2,000 move; a member goes: only what it had moves. */
TEST_OF_POOL(test_exact) {
    dv_test_pool_set_items(pool, "shard-%05zu", MANY);
    pool->unwatched = true;
    dv_test_member *members[5];
    dv_test_member_config config = {.boundary_ms = 200};
    dv_test_pool_add_many(pool, members, 0, 4, &config);
    holding *before = settle_many(pool);
    size_t revoked = told(pool, DV_TEST_REVOKED);
    dv_test_pool_add_many(pool, members + 4, 4, 1, &config);
    holding *joined = settle_many(pool);
    assert_int_equal(moved(pool, before, joined), MANY / 5);
    assert_int_equal(told(pool, DV_TEST_REVOKED) - revoked, MANY / 5);
    assert_int_equal(dv_test_member_load(members[4]), MANY / 5);
    check_locks(pool, joined);
    dv_test_member_finish(members[0]);
    holding *left = settle_many(pool);
    assert_int_equal(moved(pool, joined, left), MANY / 5);
    check_locks(pool, left);
    free(before);
    free(joined);
    free(left);
}

/* Five static members are restarted one after the other, each back within its delay: no item moves, and what the others
 * have is not even touched. */
TEST_OF_POOL(test_rolling_restart) {
    dv_test_pool_set_items(pool, "shard-%03zu", FEW);
    dv_test_member *members[5], *restarted[5];
    dv_test_member_config config = {
        .proxied = true, .boundary_ms = 100, .is_static = true, .rejoin_delay_ms = DELAY_MS};
    dv_test_pool_add_many(pool, members, 0, 5, &config);
    dv_test_pool_settle(pool);
    holding *before = holdings(pool);
    for (size_t n = 0; n < 5; n++) {
        if (n % 2) dv_test_member_kill(members[n]);
        else dv_test_member_finish(members[n]);
        dv_test_pool_step_for(pool, 300); /* it is missed by the others, and not replaced */
        dv_test_pool_add_many(pool, restarted + n, n, 1, &config);
        dv_test_pool_settle(pool);
    }
    holding *after = holdings(pool);
    for (size_t i = 0; i < FEW; i++) {
        size_t n = 0;
        while (before[i].owner != members[n]) n++;
        assert_ptr_equal(after[i].owner, restarted[n]);
    }
    assert_int_equal(told(pool, DV_TEST_REVOKED), 0);
    free(before);
    free(after);
}

/* The newer of two live static members of one identifier has the items, the older one nothing; the older one is
 * told. */
TEST_OF_POOL(test_fenced) {
    dv_test_member *members[2];
    dv_test_member_config config = {.boundary_ms = 100, .is_static = true, .rejoin_delay_ms = DELAY_MS};
    dv_test_pool_add_many(pool, members, 0, 2, &config);
    dv_test_pool_settle(pool);
    dv_test_member *twin;
    dv_test_pool_add_many(pool, &twin, 0, 1, &config);
    DV_POOL_UNTIL(pool, dv_test_member_load(twin) == 5 && dv_test_member_state(twin) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_load(members[0]), 0);
    assert_int_equal(dv_test_member_state(members[0]), DIVVY_ALLOCATING);
    assert_int_equal(dv_test_member_count(members[0], DV_TEST_WARNING, DIVVY_WARN_FENCED), 1);
    assert_int_equal(dv_test_member_load(members[1]), 5);
    assert_int_equal(dv_test_member_count(members[1], DV_TEST_REVOKED, -1), 0);
    dv_test_member_finish(twin);
    DV_POOL_UNTIL(pool, dv_test_member_load(members[0]) == 5 && dv_test_member_state(members[0]) == DIVVY_ACQUIRED);
    dv_test_member_destroy(twin);
}

/* A static member that leaves for good is not waited for. */
TEST_OF_POOL(test_leave) {
    dv_test_member *members[3];
    dv_test_member_config config = {.boundary_ms = 100, .is_static = true, .rejoin_delay_ms = DELAY_MS};
    dv_test_pool_add_many(pool, members, 0, 3, &config);
    dv_test_pool_settle(pool);
    int error = divvy_partitioner_leave(members[1]->partitioner, 0, 0);
    assert_int_equal(error, DIVVY_ETIMEDOUT); /* it goes on by itself */
    DV_POOL_UNTIL(pool, dv_test_member_state(members[1]) == DIVVY_FAILURE);
    DV_POOL_UNTIL(pool, divvy_partitioner_leave(members[1]->partitioner, 0, 0) == 0);
    dv_test_member_destroy(members[1]);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(members[0]), 5);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
