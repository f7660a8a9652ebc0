/* Random histories of pools that follow the plan: members come, go, crash, are cut off, change their weights, in all
 * kinds, while servers fail. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one history; DIVVY_TEST_RUNS=m makes so many. */
#include "plan_pool.h"

#include "lib/seed.h"

enum { ITEMS = 60, MOST = 8, HISTORIES = 24, FRESH = 8, STEPS = 60 };

static uint64_t seed;

static uint64_t random_below(uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static void random_member(pool *l, size_t n) {
    divvy_partitioner_config config;
    char identifier[32];
    member_config(l, &config);
    config.assign = DIVVY_ASSIGN_AUTO;
    config.time_boundary_ms = (int64_t)random_below(3) * 150;
    if (random_below(4) == 0) config.mode = DIVVY_EAGER;
    if (random_below(3) == 0) config.on_session_loss = DIVVY_REJOIN;
    if (random_below(3) == 0) config.max_moves = 1 + random_below(20);
    if (random_below(4) == 0) config.zone = random_below(2) ? "east" : "west";
    if (random_below(6) == 0) config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    if (config.assign == DIVVY_ASSIGN_RENDEZVOUS) config.max_moves = 0, config.zone = NULL;
    if (config.assign == DIVVY_ASSIGN_AUTO && random_below(3) == 0) {
        snprintf(identifier, sizeof identifier, "static-%zu", n % 5); /* with twins */
        config.identifier = identifier;
        config.static_membership = 1;
        config.rejoin_delay_ms = (int64_t)random_below(3) * 3000;
    }
    add(l, n, &config);
}

static void weigh(member *m) {
    int error =
        divvy_partitioner_set_weight(m->partitioner, random_below(3) == 0 ? 0 : 500 * (uint32_t)random_below(6));
    assert_true(error == 0 || error == DIVVY_EINVAL || error == DIVVY_ESTATE);
}

static void drop(pool *l, size_t n) {
    member *m = &l->members[n];
    uint64_t how = random_below(4);
    if (how == 0) crash(l, n);
    else {
        if (how == 1) divvy_partitioner_finish(m->partitioner, 0);
        if (how == 2) divvy_partitioner_leave(m->partitioner, 0, (int64_t)random_below(2) * 2000);
        forget_client(m);
    }
}

static void disturb(pool *l) {
    size_t n = random_below(MOST);
    member *m = &l->members[n];
    unsigned server = (unsigned)random_below(3);
    switch (random_below(12)) {
    case 0: divvy_testing_kill_server(l->ensemble, server); break;
    case 1: divvy_testing_lag_server(l->ensemble, server, (int64_t)random_below(800)); break;
    case 2:
    case 3: divvy_testing_heal(l->ensemble); break;
    case 4:
        if (m->client) divvy_testing_disconnect(l->ensemble, m->client, DIVVY_TESTING_NOT_APPLIED, 0);
        break;
    case 5:
        if (m->client) divvy_testing_link_client(l->ensemble, m->client, DIVVY_TESTING_LINK_DOWN);
        break;
    case 6:
        if (m->client) weigh(m);
        break;
    case 7:
        if (m->client) drop(l, n);
        break;
    default:
        if (!m->client) random_member(l, n);
        else if (random_below(4) == 0) drop(l, n);
    }
}

static void check(const pool *l) {
    owners o = look(l); /* no item has two owners */
    owners_free(&o);
}

/* Members that have failed, and twins that are fenced, have ended by then. */
static void drop_those_that_cannot(pool *l) {
    for (size_t n = 0; n < MOST; n++) {
        member *m = &l->members[n];
        if (!m->client) continue;
        bool fenced = m->warnings[DIVVY_WARN_FENCED] > 0;
        if (fenced || divvy_partitioner_state(m->partitioner) == DIVVY_FAILURE) forget_client(m);
    }
}

/* Runs a history. Returns how many plans it saw written. */
static unsigned run_history(uint64_t number) {
    pool l;
    seed = (number + 1) * 0x9e3779b97f4a7c15u;
    pool_open(&l, ITEMS);
    for (int step = 0; step < STEPS; step++) {
        disturb(&l);
        for (uint64_t i = random_below(12); i > 0; i--) {
            divvy_testing_run(l.ensemble, (int64_t)random_below(300));
            check(&l);
        }
    }
    divvy_testing_heal(l.ensemble);
    for (int i = 0; i < 300; i++) {
        divvy_testing_run(l.ensemble, 100);
        check(&l);
    }
    drop_those_that_cannot(&l);
    size_t living = 0;
    for (size_t n = 0; n < MOST; n++) living += l.members[n].client != NULL;
    if (living == 0) random_member(&l, 0);
    settle(&l);
    unsigned writes = l.plan_writes;
    pool_close(&l);
    return writes;
}

/* No item ever has two owners, whatever happens; and when it has stopped all items have one, and all members are
 * ACQUIRED. */
TEST(test_histories) {
    const char *only = getenv("DIVVY_TEST_SEED"), *more = getenv("DIVVY_TEST_RUNS");
    uint64_t count = only ? 1 : more ? strtoull(more, NULL, 10) : HISTORIES + FRESH;
    uint64_t writes = 0, fixed = more ? count : HISTORIES;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = only ? strtoull(only, NULL, 10) : dv_test_seed_of_run(i, fixed, "unit_plan_random");
        fprintf(stderr, "history %llu\n", (unsigned long long)number);
        writes += run_history(number);
    }
    if (!only) assert_true(writes > 10 * HISTORIES);
}
