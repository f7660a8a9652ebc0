/* Persistent nodes of members' names: nobody is behind them. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 100 };

static void put_ghost(pool *l, const char *name, const char *data) {
    char path[200];
    snprintf(path, sizeof path, "/pool/party/%s", name);
    assert_int_equal(divvy_testing_put(l->ensemble, path, data, strlen(data), DIVVY_TESTING_PERSISTENT), 0);
}

/* A pool of three by that rule. */
static void open_three(pool *l, int assign, bool is_static) {
    pool_open(l, ITEMS);
    divvy_partitioner_config config;
    member_config(l, &config);
    config.assign = assign;
    config.static_membership = is_static;
    config.rejoin_delay_ms = is_static ? 60000 : 0;
    for (size_t n = 0; n < 3; n++) add(l, n, &config);
    settle(l);
}

static void settle_beside_ghosts(pool *l) {
    divvy_testing_run(l->ensemble, 3000);
    settle(l);
    unsigned warnings = 0; /* A member that never had to look does not know. */
    for (size_t n = 0; n < 3; n++) warnings += l->members[n].warnings[DIVVY_WARN_STRAY];
    assert_true(warnings > 0);
    assert_at_rest(l);
}

/* Where a plan decides a ghost gets nothing and moves nothing, and no plan is written because of it. A member that
 * comes later shares with those who live. */
TEST(test_beside_a_plan) {
    pool l;
    open_three(&l, DIVVY_ASSIGN_STICKY, false);
    owners before = look(&l);
    unsigned plan_writes = l.plan_writes;
    put_ghost(&l, "x,a=2-ghost", "");
    settle_beside_ghosts(&l);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), 0);
    assert_int_equal(l.plan_writes, plan_writes);
    add(&l, 3, NULL);
    settle(&l);
    owners joined = look(&l);
    for (size_t n = 0; n < 4; n++) assert_int_equal(joined.loads[n], ITEMS / 4);
    owners_free(&before);
    owners_free(&after);
    owners_free(&joined);
    pool_close(&l);
}

/* A pool begins beside ghosts, such as a restored backup leaves. */
TEST(test_there_before) {
    pool l;
    pool_open(&l, ITEMS);
    add(&l, 0, NULL);
    settle(&l);
    put_ghost(&l, "x,a=2-ghost", "");
    put_ghost(&l, "y,a=2-member-1", "{\"weight\":3000}");
    finish(&l, 0);
    for (size_t n = 0; n < 3; n++) add(&l, n, NULL);
    settle(&l);
    settle_beside_ghosts(&l);
    pool_close(&l);
}

/* A ghost of a lower level does not make names decide. */
TEST(test_of_a_lower_level) {
    pool l;
    open_three(&l, DIVVY_ASSIGN_STICKY, false);
    owners before = look(&l);
    put_ghost(&l, "x,a=0-ghost", "");
    put_ghost(&l, "y,a=1-ghost", "");
    settle_beside_ghosts(&l);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), 0);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* A ghost of a static member's identifier, newer than its node, does not take its place. */
TEST(test_of_a_static_member) {
    pool l;
    open_three(&l, DIVVY_ASSIGN_STICKY, true);
    owners before = look(&l);
    put_ghost(&l, "x,a=2-member-1", "{\"static\":true,\"rejoin_delay_ms\":60000}");
    settle_beside_ghosts(&l);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), 0);
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_FENCED], 0);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* Where names decide a ghost has no name. */
TEST(test_by_names) {
    static const int rules[] = {DIVVY_ASSIGN_RENDEZVOUS, DIVVY_ASSIGN_ROUND_ROBIN};
    for (size_t i = 0; i < 2; i++) {
        pool l;
        open_three(&l, rules[i], false);
        owners before = look(&l);
        put_ghost(&l, "x,a=1-ghost", "");
        put_ghost(&l, "y,a=2-member-1", "");
        settle_beside_ghosts(&l);
        owners after = look(&l);
        assert_int_equal(moved(&l, &before, &after), 0);
        owners_free(&before);
        owners_free(&after);
        pool_close(&l);
    }
}

/* While a plan is broken, and nobody may write another, members share by names: ghosts get nothing of that either. */
TEST(test_beside_a_broken_plan) {
    pool l;
    open_three(&l, DIVVY_ASSIGN_STICKY, false);
    put_ghost(&l, "x,a=2-ghost", "");
    settle_beside_ghosts(&l);
    assert_int_equal(divvy_testing_put(l.ensemble, "/pool/plan", "no plan", 7, DIVVY_TESTING_PERSISTENT), 0);
    divvy_testing_run(l.ensemble, 3000);
    settle(&l);
    pool_close(&l);
}

static uint64_t count_looks(const pool *l, size_t n) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(l->members[n].client, &stats, sizeof stats), 0);
    return stats.exists;
}

/* A member goes just before the plan breaks. Until the party has settled again it is listed, and each looks at it
 * once. */
TEST(test_gone_beside_a_broken_plan) {
    enum { BOUNDARY_MS = 5000, LOOKS_MOST = 20 };
    pool l;
    pool_open(&l, ITEMS);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.time_boundary_ms = BOUNDARY_MS;
    for (size_t n = 0; n < 3; n++) add(&l, n, &config);
    settle(&l);
    uint64_t before[2] = {count_looks(&l, 0), count_looks(&l, 1)}, looks = 0;
    crash(&l, 2);
    assert_int_equal(divvy_testing_put(l.ensemble, "/pool/plan", "no plan", 7, DIVVY_TESTING_PERSISTENT), 0);
    divvy_testing_run(l.ensemble, BOUNDARY_MS - 1000);
    for (size_t n = 0; n < 2; n++) {
        assert_in_range(count_looks(&l, n) - before[n], 0, LOOKS_MOST);
        looks += count_looks(&l, n) - before[n];
    }
    assert_true(looks > 0); /* They did look. */
    settle(&l);
    pool_close(&l);
}
