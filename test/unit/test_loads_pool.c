/* Tests of pools that deal by load: docs/protocol.md, D47. SPDX-License-Identifier: Apache-2.0 */
#include "lib/seed.h"
#include "loads_fixture.h"

/* A pool whose loads are uneven evens out, and then it is at rest: nothing moves back. */
TEST(test_evens_out) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    burden_first(&l, 5);
    double before = worst(&l, MEMBERS);
    assert_true(before > 2);
    unsigned plans = l.plan_writes;
    while (l.plan_writes - plans < 2 && asked[0].reads < 1000)
        run_telling(&l, TELL_MS); /* the second one moves items */
    unsigned reads = asked[0].reads;
    run_telling(&l, 170000);
    assert_int_equal(asked[0].reads, reads); /* it rests for three minutes */
    settle(&l);
    run_telling(&l, MINUTE_MS);
    assert_true(asked[0].reads > reads);
    double after = worst(&l, MEMBERS);
    if (after > 1.21) fail_msg("the fullest has %.2f of a share, %.2f before", after, before);
    size_t gained = 0;
    for (size_t n = 1; n < MEMBERS; n++) gained += l.members[n].gained[DIVVY_REASON_LOAD];
    assert_true(gained > 0);
    owners then = look(&l);
    plans = l.plan_writes;
    run_telling(&l, 12 * MINUTE_MS);
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    assert_in_range(l.plan_writes - plans, 0, 2); /* classes that have drifted */
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

/* D47: only a plan that moved items is rested after. A surge first drifts past the tenth of a share that is worth new
 * classes, and then past the fifth for which items move; these do not wait for three minutes more. */
TEST(test_surge) {
    enum { SURGE_MS = 150000 };
    pool l;
    open_members(&l, NULL, MEMBERS);
    burden_first(&l, 5);
    run_telling(&l, 10 * MINUTE_MS);
    settle(&l);
    owners then = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] *= then.owners[i] == 1 ? 2.5 : 1;
    unsigned plans = l.plan_writes;
    run_telling(&l, SURGE_MS);
    owners now = look(&l);
    assert_true(l.plan_writes - plans >= 2); /* new classes, then moves */
    assert_true(moved(&l, &then, &now) > 0);
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

static uint64_t seed;

/* Returns a factor from 0.7 to 1.3. */
static double noise(void) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return 0.7 + 0.6 * (double)(seed % 1000) / 1000;
}

/* Loads that differ forty times, each with noise of 30 %, are evened out once. Noise alone moves nothing back. */
TEST(test_noise) {
    enum { MINUTES = 40, UNEVEN = 12 };
    pool l;
    size_t late = 0;
    seed = dv_test_seed("build/test/unit_loads_pool") | 1;
    open_members(&l, NULL, MEMBERS);
    owners then = look(&l);
    for (int minute = 0; minute < MINUTES; minute++) {
        for (int told = 0; told < MINUTE_MS / TELL_MS; told++) {
            for (size_t i = 0; i < ITEMS; i++) truth[i] = ITEMS / (double)(i + 1) * noise();
            tell(&l);
            divvy_testing_run(l.ensemble, TELL_MS);
        }
        owners now = look(&l);
        late += minute < UNEVEN ? 0 : differences(&l, &then, &now);
        owners_free(&then);
        then = now;
    }
    owners_free(&then);
    for (size_t i = 0; i < ITEMS; i++) truth[i] = ITEMS / (double)(i + 1);
    assert_true(worst(&l, MEMBERS) < 1.3);
    assert_in_range(late, 0, 2);
    pool_close(&l);
}

/* The plan knows the loads: what a crash leaves is dealt by them, before any new owner has told one. */
TEST(test_crash_by_load) {
    pool l;
    bool has_heavy[MEMBERS] = {false};
    open_members(&l, NULL, MEMBERS);
    owners o = look(&l);
    for (size_t i = 0; i < l.count; i++) {
        truth[i] = has_heavy[o.owners[i]] ? 1 : 8;
        has_heavy[o.owners[i]] = true;
    }
    run_telling(&l, 3 * MINUTE_MS);
    owners now = look(&l);
    assert_int_equal(moved(&l, &o, &now), 0);
    owners_free(&o);
    owners_free(&now);
    crash(&l, 0);
    settle(&l);
    double most = 0;
    for (size_t n = 1; n < MEMBERS; n++) most = load_of(&l, n) > most ? load_of(&l, n) : most;
    assert_in_range((int)most, 22, 26); /* 68 in all; by count it would be 28 or more */
    pool_close(&l);
}

/* When the reader is gone the next one reads: what became uneven since is evened out. */
TEST(test_reader_gone) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    run_telling(&l, 3 * MINUTE_MS);
    assert_true(asked[0].reads > 0);
    crash(&l, 0);
    settle(&l);
    owners o = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] = o.owners[i] == 1 ? 6 : 1;
    owners_free(&o);
    run_telling(&l, 10 * MINUTE_MS);
    settle(&l);
    assert_true(asked[1].reads > 0);
    assert_int_equal(reads_of(2, MEMBERS), 0);
    double most = 0, sum = 0;
    for (size_t n = 1; n < MEMBERS; n++) {
        double load = load_of(&l, n);
        sum += load;
        if (load > most) most = load;
    }
    assert_true(most / (sum / (MEMBERS - 1)) < 1.21);
    divvy_strings *reports = divvy_testing_children(l.ensemble, "/pool/loads");
    assert_int_equal(divvy_strings_count(reports), MEMBERS - 1);
    divvy_strings_free(reports);
    pool_close(&l);
}

/* A member that tells another unit is passed over, with one warning that names it, and one of its own. */
TEST(test_another_unit) {
    pool l;
    divvy_partitioner_config config;
    be_even();
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < MEMBERS; n++) {
        config = base_config(&l);
        config.load_unit = n == 2 ? "req/s" : "cores";
        add(&l, n, &config);
    }
    settle(&l);
    owners then = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] = then.owners[i] == 2 ? 1000 : 1;
    /* The others begin, so the pool's unit is theirs. */
    divvy_partition *share = divvy_partitioner_partition(l.members[0].partitioner);
    assert_int_equal(divvy_partitioner_set_load(l.members[0].partitioner, divvy_partition_item(share, 0), 1), 0);
    divvy_partition_unref(share);
    divvy_testing_run(l.ensemble, 2000);
    run_telling(&l, 10 * MINUTE_MS);
    settle(&l);
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    assert_non_null(strstr(l.members[0].warned, "member-2"));
    assert_non_null(strstr(l.members[0].warned, "\"cores\", and others tell theirs in \"req/s\""));
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_LOAD_UNIT], 0);
    assert_int_equal(l.members[2].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

/* A pool whose members have all gone over to another unit takes that up. */
TEST(test_unit_changes) {
    pool l;
    divvy_partitioner_config config;
    be_even();
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 2; n++) {
        config = base_config(&l);
        config.load_unit = "cores";
        add(&l, n, &config);
    }
    settle(&l);
    run_telling(&l, MINUTE_MS);
    for (size_t n = 0; n < 2; n++) {
        config = base_config(&l);
        config.load_unit = "req/s";
        add(&l, n + 2, &config);
        finish(&l, n);
    }
    settle(&l);
    owners o = look(&l);
    for (size_t i = 0; i < l.count; i++) truth[i] = o.owners[i] == 2 ? 400 : 100;
    owners_free(&o);
    run_telling(&l, 8 * MINUTE_MS);
    settle(&l);
    double more = load_of(&l, 2), less = load_of(&l, 3);
    assert_true(more / (more + less) < 0.61 && more / (more + less) > 0.39);
    pool_close(&l);
}

/* D47: a plan that takes up another unit forgets what moved for load, which is no move: the reader goes on at once. */
TEST(test_no_rest_after_another_unit) {
    pool l;
    open_members(&l, NULL, 2);
    burden_first(&l, 5);
    run_telling(&l, 10 * MINUTE_MS);
    settle(&l);
    assert_true(l.members[1].gained[DIVVY_REASON_LOAD] > 0);
    for (size_t n = 2; n < 4; n++) {
        divvy_partitioner_config config = base_config(&l);
        config.load_unit = "req/s";
        add(&l, n, &config);
        finish(&l, n - 2);
    }
    settle(&l);
    owners o = look(&l);
    size_t counts[4] = {0};
    for (size_t i = 0; i < l.count; i++) counts[o.owners[i]]++;
    for (size_t i = 0; i < l.count; i++) truth[i] = 100.0 / (double)counts[o.owners[i]]; /* Nothing is to move. */
    unsigned plans = l.plan_writes;
    while (l.plan_writes == plans && reads_of(2, 4) < 1000) run_telling(&l, TELL_MS);
    unsigned reads = reads_of(2, 4);
    run_telling(&l, MINUTE_MS);
    assert_true(reads_of(2, 4) > reads);
    owners now = look(&l);
    assert_int_equal(moved(&l, &o, &now), 0);
    owners_free(&o);
    owners_free(&now);
    pool_close(&l);
}

/* Loads that could not be written yet give way to newer ones, by which the plan is made then. */
TEST(test_newer_loads) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    run_telling(&l, 3 * MINUTE_MS);
    is_short = true;
    unsigned plans = l.plan_writes;
    for (int factor = 20; factor >= 5; factor -= 15) {
        burden_first(&l, factor);
        run_telling(&l, 4 * MINUTE_MS);
    }
    assert_int_equal(l.plan_writes, plans);
    is_short = false;
    run_telling(&l, 15 * MINUTE_MS);
    settle(&l);
    assert_true(worst(&l, MEMBERS) < 1.21);
    pool_close(&l);
}

/* Below the floor a pool is left alone, however uneven it is. */
TEST(test_floor) {
    pool l;
    open_members(&l, NULL, 0);
    divvy_partitioner_config config = base_config(&l);
    config.load_floor = 1000;
    for (size_t n = 0; n < MEMBERS; n++) {
        config.identifier = NULL;
        add(&l, n, &config);
    }
    settle(&l);
    burden_first(&l, 5);
    owners then = look(&l);
    run_telling(&l, 8 * MINUTE_MS);
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    assert_true(asked[0].reads > 0);
    owners_free(&then);
    owners_free(&now);
    pool_close(&l);
}

/* A reader that may not list P/loads says so once, and nothing is moved while it is the first. */
TEST(test_not_readable) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    burden_first(&l, 5);
    owners then = look(&l);
    is_denied = true;
    run_telling(&l, 8 * MINUTE_MS);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    assert_non_null(strstr(l.members[0].warned, "/pool/loads may not be read"));
    owners now = look(&l);
    assert_int_equal(moved(&l, &then, &now), 0);
    owners_free(&then);
    owners_free(&now);
    is_denied = false;
    run_telling(&l, 5 * MINUTE_MS);
    settle(&l);
    assert_true(worst(&l, MEMBERS) < 1.21);
    pool_close(&l);
}

/* One that hears so when it is no longer the first says nothing. */
TEST(test_not_readable_too_late) {
    pool l;
    open_members(&l, NULL, 0);
    for (size_t n = 1; n < 3; n++) add(&l, n, NULL);
    settle(&l);
    run_telling(&l, MINUTE_MS);
    list_done = NULL;
    is_denied = is_held = true;
    run_telling(&l, MINUTE_MS);
    assert_non_null(list_done);
    is_denied = is_held = false;
    add(&l, 0, NULL);
    settle(&l);
    const dv_reply denied = {.error = DIVVY_EACCES};
    dv_client_lock(l.members[1].client);
    list_done(list_context, &denied, dv_client_now(l.members[1].client));
    dv_client_unlock(l.members[1].client);
    divvy_testing_run(l.ensemble, 100);
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_LOAD_UNIT], 0);
    pool_close(&l);
}

/* An item that is more than a share is told of once, and its owner has little else. */
TEST(test_heavy) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    truth[7] = 60;
    for (int phase = 0; phase < 5; phase++) {
        truth[8] = phase % 2 ? 1 : 3; /* so that there is something to look at */
        run_telling(&l, 4 * MINUTE_MS);
    }
    settle(&l);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_HEAVY], 1);
    assert_non_null(strstr(l.members[0].warned, "\"item-00007\""));
    owners o = look(&l);
    assert_in_range(o.loads[o.owners[7]], 1, 4);
    owners_free(&o);
    pool_close(&l);
}

/* Each member tells that all it owns has the load 1, and nothing of one item. */
static void run_telling_but(pool *l, int untold, int64_t ms) {
    for (int64_t end = divvy_testing_now_ms(l->ensemble) + ms; divvy_testing_now_ms(l->ensemble) < end;) {
        for (size_t n = 0; n < MEMBERS_MAX; n++) {
            if (!l->members[n].client) continue;
            divvy_partition *share = divvy_partitioner_partition(l->members[n].partitioner);
            for (size_t k = 0; k < divvy_partition_count(share); k++) {
                const char *item = divvy_partition_item(share, k);
                if (item_number(item) != untold) divvy_partitioner_set_load(l->members[n].partitioner, item, 1);
            }
            divvy_partition_unref(share);
        }
        divvy_testing_run(l->ensemble, TELL_MS);
    }
}

/* A reader knows by the plan of an item that nobody reports any longer: the next reader tells of it, too. */
TEST(test_heavy_by_plan) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    owners o = look(&l);
    int heavy = 0;
    while (o.owners[heavy] != 0) heavy++;
    truth[heavy] = 60;
    run_telling(&l, 4 * MINUTE_MS);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_HEAVY], 1);
    crash(&l, 0);
    settle(&l);
    run_telling_but(&l, heavy, 4 * MINUTE_MS);
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_HEAVY], 1);
    owners_free(&o);
    pool_close(&l);
}

/* But not where the plan's loads are in another unit than what is reported now. */
TEST(test_heavy_in_another_unit) {
    enum { HEAVY = 7 };
    pool l;
    divvy_partitioner_config config;
    be_even();
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 4; n++) {
        config = base_config(&l);
        config.load_unit = n < 2 ? "cores" : "req/s";
        add(&l, n, &config);
        if (n == 1) settle(&l);
        truth[HEAVY] = 60;
        if (n == 1) run_telling(&l, 4 * MINUTE_MS);
    }
    for (size_t n = 0; n < 2; n++) finish(&l, n);
    settle(&l);
    run_telling_but(&l, HEAVY, 4 * MINUTE_MS);
    for (size_t n = 2; n < 4; n++) assert_int_equal(l.members[n].warnings[DIVVY_WARN_HEAVY], 0);
    pool_close(&l);
}

/* A report that cannot be read is passed over, with a warning that names its member. The others count. */
TEST(test_broken_report) {
    pool l;
    open_members(&l, NULL, MEMBERS);
    run_telling(&l, MINUTE_MS);
    char path[200], node[200];
    assert_in_range(divvy_partitioner_node(l.members[2].partitioner, node, sizeof node), 1, sizeof node - 1);
    snprintf(path, sizeof path, "/pool/loads%.150s", strrchr(node, '/'));
    assert_int_equal(divvy_testing_put(l.ensemble, path, "{}", 2, DIVVY_TESTING_PERSISTENT), 0);
    burden_first(&l, 5);
    run_telling(&l, 8 * MINUTE_MS);
    settle(&l);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    assert_non_null(strstr(l.members[0].warned, "member-2"));
    assert_true(worst(&l, MEMBERS) < 1.3);
    pool_close(&l);
}

/* Two members begin at the same time, each with a unit of its own. The first one's becomes the pool's, by one plan. */
TEST(test_two_units_at_once) {
    pool l;
    be_even();
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 2; n++) {
        divvy_partitioner_config config = base_config(&l);
        config.load_unit = n == 0 ? "cores" : "req/s";
        add(&l, n, &config);
    }
    settle(&l);
    unsigned plans = l.plan_writes;
    tell(&l);
    divvy_testing_run(l.ensemble, 5000);
    assert_int_equal(l.plan_writes, plans + 1);
    assert_int_equal(l.members[0].warnings[DIVVY_WARN_LOAD_UNIT], 0);
    assert_int_equal(l.members[1].warnings[DIVVY_WARN_LOAD_UNIT], 1);
    pool_close(&l);
}

/* A member that begins to tell loads while a round goes on is heard when that is over. */
TEST(test_begins_in_a_round) {
    pool l;
    be_even();
    pool_open(&l, ITEMS);
    counted = &l;
    memset(asked, 0, sizeof asked);
    divvy_partitioner_config config = base_config(&l);
    config.max_moves = 1;
    for (size_t n = 0; n < 2; n++) {
        config.identifier = NULL;
        add(&l, n, &config);
        if (n == 0) settle(&l);
    }
    divvy_testing_run(l.ensemble, 2000);
    run_telling(&l, 3 * MINUTE_MS);
    settle(&l);
    run_telling(&l, 3 * MINUTE_MS);
    assert_true(asked[0].reads > 0);
    pool_close(&l);
}

/* Members that have one item each, at the most, are told of no heavy one; where there is one item more, they are. */
TEST(test_few_items) {
    for (size_t items = MEMBERS; items <= MEMBERS + 1; items++) {
        pool l;
        be_even();
        pool_open(&l, items);
        for (size_t n = 0; n < MEMBERS; n++) add(&l, n, NULL);
        settle(&l);
        truth[0] = 1000;
        run_telling(&l, 10 * MINUTE_MS);
        assert_int_equal(l.members[0].warnings[DIVVY_WARN_HEAVY], items > MEMBERS);
        pool_close(&l);
    }
}
