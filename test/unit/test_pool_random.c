/* Random histories of an operator: requests to a pool whose members come and go, while connections break and servers
 * fail. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one history; DIVVY_TEST_RUNS=m makes so many. */
#include "lib/seed.h"
#include "pool/errand.h"
#include "pool_place.h"

enum { MOST = 5, HISTORIES = 16, FRESH = 6, REQUESTS = 14, PATIENCE_MS = 120000 };

/* What the operator was told that the plan says. */
typedef struct {
    place place;
    bool paused[ITEMS];
    int pinned[ITEMS]; /* a member, or NOBODY */
} history;

static uint64_t seed;

static uint64_t random_below(uint64_t below) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static void join(history *h, size_t n) {
    divvy_partitioner_config config;
    member_config(&h->place.pool, &config);
    config.on_session_loss = DIVVY_REJOIN;
    if (random_below(3) == 0) config.max_moves = 1 + random_below(9);
    add(&h->place.pool, n, &config);
}

static void disturb(history *h) {
    pool *l = &h->place.pool;
    size_t n = random_below(MOST);
    member *m = &l->members[n];
    divvy_testing_fate fate = (divvy_testing_fate)random_below(3);
    int64_t late_ms = (int64_t)random_below(300);
    switch (random_below(10)) {
    case 0: divvy_testing_kill_server(l->ensemble, (unsigned)random_below(3)); break;
    case 1: divvy_testing_lag_server(l->ensemble, (unsigned)random_below(3), (int64_t)random_below(400)); break;
    case 2: divvy_testing_heal(l->ensemble); break;
    case 3:
        if (m->client) divvy_testing_disconnect(l->ensemble, m->client, fate, late_ms);
        break;
    case 4: divvy_testing_expire(l->ensemble, h->place.client); break;
    case 5:
        if (!m->client) join(h, n);
        else if (n > 0) crash(l, n);
        break;
    default: divvy_testing_disconnect(l->ensemble, h->place.client, fate, late_ms);
    }
}

static void on_done(void *owner, int64_t now) {
    (void)now;
    *(bool *)owner = true;
}

/* Makes one request, under faults for a while. Returns its error. */
static int ask_pool(history *h, const dv_ask *ask) {
    divvy_client *client = h->place.client;
    divvy_testing_ensemble *ensemble = h->place.pool.ensemble;
    int64_t end = divvy_testing_now_ms(ensemble) + PATIENCE_MS;
    bool done = false;
    assert_int_equal(dv_client_enter(client), 0);
    dv_errand *e = dv_errand_start(client, "/pool", "/pool", ask, on_done, &done);
    dv_client_unlock(client);
    assert_non_null(e);
    for (unsigned n = 0; !done && divvy_testing_now_ms(ensemble) < end; n++) {
        if (n < 8 && random_below(3) > 0) disturb(h);
        if (n == 8) divvy_testing_heal(ensemble);
        divvy_testing_run(ensemble, (int64_t)random_below(40));
    }
    if (!done) fprintf(stderr, "waits for: %s\n", e->result.waits_for);
    assert_true(done);
    int error = e->result.error;
    if (error) assert_true(*e->result.text);
    if (error && getenv("DV_SHOW")) fprintf(stderr, "%s\n", e->result.text);
    assert_int_equal(dv_client_enter(client), 0);
    dv_errand_drop(e);
    dv_client_unlock(client);
    return error;
}

static void request(history *h) {
    size_t n = random_below(ITEMS), whose = random_below(MOST);
    const pool *l = &h->place.pool;
    char whom[32];
    int error;
    dv_ask ask = {.name = l->items[n], .by = "test", .undo = random_below(2)};
    snprintf(whom, sizeof whom, "member-%zu", whose);
    switch (random_below(4)) {
    case 0:
        ask = (dv_ask){.kind = DV_ASK_WEIGHT, .name = whom, .weight = 500 * (int64_t)random_below(4)};
        /* It may have gone, be the last that weighs anything, or be there twice: its last session still lives. */
        error = ask_pool(h, &ask);
        assert_true(error == 0 || error == DIVVY_ENOENT || error == DIVVY_ESTATE || error == DIVVY_EINVAL);
        break;
    case 1:
        ask.kind = DV_ASK_PIN;
        ask.value = whom;
        error = ask_pool(h, &ask);
        assert_true(error == 0 || (error == DIVVY_EINVAL && !ask.undo));
        if (error == 0) h->pinned[n] = ask.undo ? NOBODY : (int)whose;
        break;
    default:
        ask.kind = DV_ASK_PAUSE;
        assert_int_equal(ask_pool(h, &ask), 0);
        h->paused[n] = !ask.undo;
    }
}

/* Everything that was told holds once all is quiet: paused items are nobody's, all others have one owner, and pinned
 * ones the right one, if that is there. */
static void check(history *h) {
    const pool *l = &h->place.pool;
    size_t paused = 0;
    divvy_testing_heal(l->ensemble);
    for (size_t n = 0; n < ITEMS; n++) paused += h->paused[n];
    settle_owned(&h->place.pool, ITEMS - paused);
    owners o = look(l);
    for (size_t n = 0; n < ITEMS; n++) {
        if (h->paused[n]) assert_int_equal(o.owners[n], NOBODY);
        else if (h->pinned[n] != NOBODY && l->members[h->pinned[n]].client) assert_int_equal(o.owners[n], h->pinned[n]);
    }
    owners_free(&o);
}

static void run_history(uint64_t number) {
    history h = {.paused = {false}};
    seed = (number + 1) * 0x9e3779b97f4a7c15u;
    for (size_t n = 0; n < ITEMS; n++) h.pinned[n] = NOBODY;
    place_open(&h.place, 0);
    for (size_t n = 0; n < 3; n++) join(&h, n);
    settle(&h.place.pool);
    for (int n = 0; n < REQUESTS; n++) request(&h);
    check(&h);
    place_close(&h.place);
}

/* Whatever fails, a request comes to its end, and what it said is so when all is quiet. */
TEST(test_histories) {
    const char *only = getenv("DIVVY_TEST_SEED"), *more = getenv("DIVVY_TEST_RUNS");
    uint64_t count = only ? 1 : more ? strtoull(more, NULL, 10) : HISTORIES + FRESH, fixed = more ? count : HISTORIES;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = only ? strtoull(only, NULL, 10) : dv_test_seed_of_run(i, fixed, "unit_pool_random");
        fprintf(stderr, "history %llu\n", (unsigned long long)number);
        run_history(number);
    }
}
