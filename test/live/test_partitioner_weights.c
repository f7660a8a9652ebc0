/* Weights, zones and rounds of pools that follow the sticky plan, on a real server. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Shows plans that change often, and what they leave in a real server. */
#include "lib/pool.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 4 };

static dv_test_member_config quick(void) {
    return (dv_test_member_config){.boundary_ms = 100};
}

static bool have_loads(dv_test_pool *pool, dv_test_member **members, size_t count, const size_t *loads) {
    if (!dv_test_pool_acquired(pool)) return false;
    for (size_t n = 0; n < count; n++) {
        if (dv_test_member_load(members[n]) != loads[n]) return false;
    }
    return true;
}

#define EXPECT_LOADS(pool, members, ...)                                                        \
    do {                                                                                        \
        const size_t loads_[] = {__VA_ARGS__};                                                  \
        DV_POOL_UNTIL(pool, have_loads(pool, members, sizeof loads_ / sizeof *loads_, loads_)); \
        dv_test_pool_check_owners(pool, true);                                                  \
    } while (0)

static uint64_t generation(dv_test_pool *pool) {
    char path[128];
    snprintf(path, sizeof path, "%s/plan", pool->path);
    char *text = dv_test_zk_get(pool->truth, path, NULL, NULL);
    assert_non_null(text);
    const char *at = strstr(text, "\"generation\":");
    assert_non_null(at);
    uint64_t number = strtoull(at + strlen("\"generation\":"), NULL, 10);
    free(text);
    return number;
}

static size_t told(dv_test_member *member, enum dv_test_kind kind, int reason) {
    size_t count = 0;
    for (size_t i = 0; i < member->record_count; i++) {
        count += member->records[i].kind == kind && member->records[i].reason == reason;
    }
    return count;
}

/* Shares are in proportion to the weights that members came with; one that is set at run time moves just the
 * difference, for that reason; 0 takes all of it away, and the member stays. */
TEST_OF_POOL(test_weights) {
    dv_test_pool_set_items(pool, "item-%02zu", 60);
    dv_test_member *members[3];
    dv_test_member_config config = quick();
    dv_test_pool_add_many(pool, members, 0, 2, &config);
    config.weight = 2000;
    dv_test_pool_add_many(pool, members + 2, 2, 1, &config);
    EXPECT_LOADS(pool, members, 15, 15, 30);

    for (size_t n = 0; n < 3; n++) dv_test_member_mark(members[n]);
    assert_int_equal(divvy_partitioner_set_weight(members[2]->partitioner, 500), 0);
    EXPECT_LOADS(pool, members, 24, 24, 12);
    assert_int_equal(dv_test_member_kept(members[0]), 15);
    assert_int_equal(dv_test_member_kept(members[1]), 15);
    assert_int_equal(dv_test_member_kept(members[2]), 12);
    assert_int_equal(told(members[2], DV_TEST_REVOKED, DIVVY_REASON_WEIGHT), 18);

    for (size_t n = 0; n < 3; n++) dv_test_member_mark(members[n]);
    uint64_t before = generation(pool);
    assert_int_equal(divvy_partitioner_set_weight(members[0]->partitioner, 0), 0);
    EXPECT_LOADS(pool, members, 0, 40, 20);
    assert_int_equal(generation(pool), before + 1);
    assert_int_equal(dv_test_member_kept(members[1]), 24);
    assert_int_equal(dv_test_member_kept(members[2]), 12);
    assert_int_equal(told(members[0], DV_TEST_REVOKED, DIVVY_REASON_DRAIN), 24);
    assert_int_equal(divvy_partitioner_state(members[0]->partitioner), DIVVY_ACQUIRED);

    /* The others go: what is drained takes what nobody else can. */
    dv_test_member_finish(members[1]);
    dv_test_member_finish(members[2]);
    EXPECT_LOADS(pool, members, 60);
}

/* All ask at once: each weight gets into a plan, by any writer. */
TEST_OF_POOL(test_weights_at_once) {
    dv_test_pool_set_items(pool, "item-%02zu", 60);
    dv_test_member *members[MEMBERS];
    dv_test_member_config config = quick();
    dv_test_pool_add_many(pool, members, 0, MEMBERS, &config);
    EXPECT_LOADS(pool, members, 15, 15, 15, 15);
    for (uint32_t n = 0; n < MEMBERS; n++) {
        assert_int_equal(divvy_partitioner_set_weight(members[n]->partitioner, 100 * (n + 1)), 0);
    }
    EXPECT_LOADS(pool, members, 6, 12, 18, 24);
}

/* Items are spread evenly over the zones first, then inside each. */
TEST_OF_POOL(test_zones) {
    dv_test_pool_set_items(pool, "item-%02zu", 24);
    dv_test_member *members[MEMBERS];
    dv_test_member_config config = quick();
    config.zone = "west";
    dv_test_pool_add_many(pool, members, 0, 3, &config);
    config.zone = "\xc3\xb6stlich"; /* any UTF-8 is a name */
    dv_test_pool_add_many(pool, members + 3, 3, 1, &config);
    EXPECT_LOADS(pool, members, 4, 4, 4, 12);
    dv_test_member_mark(members[0]);
    dv_test_member_finish(members[1]);
    DV_POOL_UNTIL(pool, dv_test_pool_acquired(pool) && dv_test_member_load(members[0]) == 6);
    assert_int_equal(dv_test_member_load(members[2]), 6);
    assert_int_equal(dv_test_member_load(members[3]), 12);
    assert_int_equal(dv_test_member_kept(members[0]), 4);
}

/* Notes the least number of items that three members have owned together at any time. Always returns true. */
static bool note_least(dv_test_member **members, size_t *least) {
    size_t owned = 0;
    for (size_t n = 0; n < 3; n++) owned += dv_test_member_load(members[n]);
    if (owned < *least) *least = owned;
    return true;
}

/* With a limit a join moves no more items at a time, and takes as many plans as it needs; all of them move in the
 * end. */
TEST_OF_POOL(test_rounds) {
    dv_test_pool_set_items(pool, "item-%02zu", 40);
    dv_test_member *members[3];
    dv_test_member_config config = quick();
    config.max_moves = 3;
    dv_test_pool_add_many(pool, members, 0, 2, &config);
    EXPECT_LOADS(pool, members, 20, 20);
    uint64_t before = generation(pool);
    size_t revoked =
        dv_test_member_count(members[0], DV_TEST_REVOKED, -1) + dv_test_member_count(members[1], DV_TEST_REVOKED, -1);
    dv_test_pool_add_many(pool, members + 2, 2, 1, &config);
    size_t least = 40;
    DV_POOL_UNTIL(pool,
                  note_least(members, &least) && dv_test_pool_acquired(pool) && dv_test_member_load(members[2]) == 13);
    dv_test_pool_settle(pool); /* 13, 13 and 14 */
    assert_true(least >= 40 - 3);
    assert_int_equal(generation(pool), before + 5); /* 3 + 3 + 3 + 3 + 1 */
    revoked = dv_test_member_count(members[0], DV_TEST_REVOKED, -1) +
              dv_test_member_count(members[1], DV_TEST_REVOKED, -1) - revoked;
    assert_int_equal(revoked, 13);
}

/* A plan of chunks that changes often leaves no more in ZooKeeper than it needs: items, a base, at most 16 deltas, the
 * epoch. */
TEST_OF_POOL(test_tidy) {
    dv_test_pool_set_items(pool, "item-%04zu", 2000);
    pool->unwatched = true;
    dv_test_member *members[2];
    dv_test_member_config config = quick();
    dv_test_pool_add_many(pool, members, 0, 2, &config);
    dv_test_pool_settle(pool);
    char path[128];
    snprintf(path, sizeof path, "%s/plan", pool->path);
    uint64_t before = generation(pool);
    for (uint32_t n = 1; n <= 30; n++) {
        assert_int_equal(divvy_partitioner_set_weight(members[n % 2]->partitioner, 1000 + n), 0);
        DV_POOL_UNTIL(pool, generation(pool) == before + n);
        /* One write's garbage may not be collected yet. */
        assert_in_range(dv_test_zk_count(pool->truth, path), 3, 1 + 1 + 1 + 16 + 3);
    }
    DV_POOL_UNTIL(pool, dv_test_pool_acquired(pool) &&
                            dv_test_member_load(members[0]) + dv_test_member_load(members[1]) == 2000);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
