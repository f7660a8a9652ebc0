/* Leaving while work goes on, and restarts in place. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 600, OLD = 4, SHARE = ITEMS / OLD, PREPARE_MS = 25000 };

static void config_of(pool *l, divvy_partitioner_config *config, int64_t prepare_ms, int64_t handover_ms) {
    member_config(l, config);
    config->prepare_timeout_ms = prepare_ms;
    config->handover_timeout_ms = handover_ms;
}

static void open_pool(pool *l, int64_t prepare_ms, int64_t handover_ms) {
    divvy_partitioner_config config;
    pool_open(l, ITEMS);
    config_of(l, &config, prepare_ms, handover_ms);
    for (size_t n = 0; n < OLD; n++) add(l, n, &config);
    settle(l);
}

static size_t count_owned(const pool *l) {
    owners o = look(l);
    size_t owned = o.owned;
    owners_free(&o);
    return owned;
}

static size_t share_of(const member *m) {
    divvy_partition *share = divvy_partitioner_partition(m->partitioner);
    size_t count = divvy_partition_count(share);
    divvy_partition_unref(share);
    return count;
}

static size_t revoked(const member *m) {
    size_t sum = 0;
    for (size_t r = 0; r < REASONS; r++) sum += m->revoked[r];
    return sum;
}

static uint64_t count_lists(const pool *l) {
    uint64_t sum = 0;
    for (size_t n = 0; n < MEMBERS_MAX; n++) {
        divvy_stats stats = {0};
        if (l->members[n].client) assert_int_equal(divvy_client_stats(l->members[n].client, &stats, sizeof stats), 0);
        sum += stats.children;
    }
    return sum;
}

static void all_prepared(const pool *l) {
    for (size_t n = 0; n < MEMBERS_MAX; n++)
        if (l->members[n].client) divvy_partitioner_prepared(l->members[n].partitioner, NULL);
}

/* Item-milliseconds without an owner, until the member has ended. */
static size_t unowned_until_ended(pool *l, const member *m) {
    size_t sum = 0;
    for (int ms = 0; ms < 60000; ms++) {
        divvy_testing_run(l->ensemble, 1);
        sum += ITEMS - count_owned(l);
        if (divvy_partitioner_state(m->partitioner) == DIVVY_FAILURE) return sum;
    }
    fail_msg("the member does not end");
    return 0;
}

/* T8: nobody stops work while the others prepare, and then items move without a gap, and without a list for each. */
TEST(test_leave_without_gap) {
    pool l;
    open_pool(&l, PREPARE_MS, 30000);
    member *m = &l.members[1];
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_int_equal(share_of(m), SHARE);
    assert_int_equal(m->leaving, SHARE);
    assert_int_equal(m->states[DIVVY_RELEASE], 0);
    assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_ACQUIRED);
    assert_int_equal(divvy_partitioner_set_weight(m->partitioner, 2000), DIVVY_ESTATE);
    uint64_t lists = count_lists(&l);
    all_prepared(&l);
    assert_true(unowned_until_ended(&l, m) <= 30 * SHARE); /* a few message delays for each */
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ECANCELED);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 10000), 0);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_true(count_lists(&l) - lists <= 12);
    forget_client(m);
    settle(&l);
    assert_at_rest(&l);
    pool_close(&l);
}

/* T8: what nobody is ready for goes after handover_timeout_ms, by a RELEASE. It is not given back before the user has
 * answered, and then goes without a list for each, as its owner has said until then that it is leaving. */
TEST(test_leave_overdue) {
    pool l;
    open_pool(&l, PREPARE_MS, 2000);
    member *m = &l.members[1];
    m->patient = true;
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
    divvy_testing_run(l.ensemble, 1500);
    assert_int_equal(m->states[DIVVY_RELEASE], 0);
    divvy_testing_run(l.ensemble, 10000);
    assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_RELEASE);
    assert_int_equal(revoked(m), SHARE);
    all_prepared(&l);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(count_owned(&l), ITEMS - SHARE);
    assert_int_equal(share_of(m), SHARE);
    uint64_t lists = count_lists(&l);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 10000), 0);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_true(count_lists(&l) - lists <= 12);
    forget_client(m);
    settle(&l);
    pool_close(&l);
}

/* Who has nothing has nothing to wait for: not for what it hands over, nor for anything else. */
TEST(test_leave_with_nothing) {
    pool l;
    divvy_partitioner_config config;
    for (int64_t handover_ms = 0; handover_ms <= 30000; handover_ms += 30000) {
        open_pool(&l, 0, handover_ms);
        config_of(&l, &config, 0, handover_ms);
        config.weight = 0;
        add(&l, OLD, &config);
        settle(&l);
        member *m = &l.members[OLD];
        assert_int_equal(share_of(m), 0);
        assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 10000), 0);
        forget_client(m);
        settle(&l);
        assert_int_equal(count_owned(&l), ITEMS);
        pool_close(&l);
    }
}

/* Without notes the items are revoked when the plan has given them to others. */
TEST(test_leave_without_notes) {
    pool l;
    open_pool(&l, 0, 0);
    member *m = &l.members[1];
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 10000), 0);
    assert_int_equal(revoked(m), SHARE);
    forget_client(m);
    settle(&l);
    pool_close(&l);
}

/* The last member, who has nobody to hand over to, ends all the same; so does one in a pool of another rule. */
TEST(test_leave_alone) {
    for (int names = 0; names < 2; names++) {
        pool l;
        divvy_partitioner_config config;
        pool_open(&l, ITEMS);
        config_of(&l, &config, 0, 30000);
        if (names) config.assign = DIVVY_ASSIGN_RENDEZVOUS;
        member *m = add(&l, 0, &config);
        settle(&l);
        assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 10000), 0);
        assert_int_equal(revoked(m), ITEMS);
        assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_FAILURE);
        pool_close(&l);
    }
}

/* All leave at once, as when a machine shuts down: each finds that nobody takes what it has, and ends. */
TEST(test_leave_together) {
    pool l;
    open_pool(&l, 0, 30000);
    int64_t began = divvy_testing_now_ms(l.ensemble);
    for (size_t n = 0; n < OLD; n++)
        assert_int_equal(divvy_partitioner_leave(l.members[n].partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
    for (size_t n = 0; n < OLD; n++)
        assert_int_equal(divvy_partitioner_leave(l.members[n].partitioner, DIVVY_LEAVE_WORKING, 10000), 0);
    assert_true(divvy_testing_now_ms(l.ensemble) - began < 5000); /* of virtual time */
    pool_close(&l);
}

/* Who hands over may end at once, by either call, and may lose its session. */
TEST(test_leave_cut_short) {
    for (int how = 0; how < 3; how++) {
        pool l;
        open_pool(&l, PREPARE_MS, 30000);
        member *m = &l.members[1];
        assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 0), DIVVY_ETIMEDOUT);
        if (how != 1) divvy_testing_run(l.ensemble, 3000);
        if (how == 0) assert_int_equal(divvy_partitioner_finish(m->partitioner, 10000), 0);
        if (how == 1) assert_int_equal(divvy_partitioner_leave(m->partitioner, 0, 10000), 0);
        if (how == 2) {
            divvy_testing_expire(l.ensemble, m->client);
            assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, 60000), DIVVY_ELOST);
        }
        assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_FAILURE);
        forget_client(m);
        all_prepared(&l);
        settle(&l);
        pool_close(&l);
    }
}

TEST(test_leave_arguments) {
    pool l;
    open_pool(&l, 0, 30000);
    member *m = &l.members[0];
    assert_int_equal(divvy_partitioner_leave(m->partitioner, 2, 0), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, DIVVY_LEAVE_WORKING, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_is_replaced(m->partitioner), 0);
    assert_int_equal(divvy_partitioner_is_replaced(NULL), 0);
    assert_int_equal(divvy_partitioner_state(m->partitioner), DIVVY_ACQUIRED);
    pool_close(&l);
}

/* ---- T9 ---- */

static member *add_static(pool *l, size_t n, int64_t prepare_ms, int64_t handover_ms) {
    static char names[OLD][16];
    divvy_partitioner_config config;
    config_of(l, &config, prepare_ms, handover_ms);
    snprintf(names[n % OLD], sizeof names[0], "static-%zu", n % OLD);
    config.identifier = names[n % OLD];
    config.static_membership = 1;
    config.rejoin_delay_ms = 60000;
    return add(l, n, &config);
}

static void open_statics(pool *l, int64_t prepare_ms, int64_t handover_ms) {
    pool_open(l, ITEMS);
    for (size_t n = 0; n < OLD; n++) add_static(l, n, prepare_ms, handover_ms);
    settle_owned(l, ITEMS);
}

/* T9: a newer process of an identifier takes over when it is prepared. No plan is written, nobody else is concerned,
 * and no queue is listed. */
TEST(test_restart_in_place) {
    pool l;
    open_statics(&l, PREPARE_MS, 30000);
    member *old = &l.members[1], *next = add_static(&l, OLD + 1, PREPARE_MS, 30000);
    l.plan_writes = 0;
    divvy_testing_run(l.ensemble, 20000);
    assert_int_equal(next->prepare, SHARE);
    assert_int_equal(old->leaving, SHARE);
    assert_int_equal(revoked(old), 0);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_int_equal(divvy_partitioner_is_replaced(old->partitioner), 1);
    assert_int_equal(divvy_partitioner_is_replaced(next->partitioner), 0);
    uint64_t lists = count_lists(&l);
    all_prepared(&l);
    size_t unowned = 0;
    for (int ms = 0; ms < 3000; ms++) {
        divvy_testing_run(l.ensemble, 1);
        unowned += ITEMS - count_owned(&l);
    }
    assert_true(unowned <= 30 * SHARE);
    assert_int_equal(share_of(old), 0);
    assert_int_equal(share_of(next), SHARE);
    assert_true(count_lists(&l) - lists <= 12);
    assert_int_equal(l.plan_writes, 0);
    for (size_t n = 0; n < OLD; n++) assert_int_equal(revoked(&l.members[n]), n == 1 ? SHARE : 0);
    finish(&l, 1);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_int_equal(l.plan_writes, 0);
    pool_close(&l);
}

/* T9: item by item, and of three the newest is the next owner of what any of them has. */
TEST(test_three_namesakes) {
    pool l;
    open_statics(&l, PREPARE_MS, 60000);
    member *old = &l.members[1], *middle = add_static(&l, OLD + 1, PREPARE_MS, 60000);
    divvy_testing_run(l.ensemble, 2000);
    divvy_partition *list = divvy_partitioner_to_prepare(middle->partitioner);
    assert_int_equal(divvy_partition_count(list), SHARE);
    for (size_t i = 0; i < SHARE / 2; i++)
        assert_int_equal(divvy_partitioner_prepared(middle->partitioner, divvy_partition_item(list, i)), 0);
    divvy_partition_unref(list);
    divvy_testing_run(l.ensemble, 2000);
    assert_int_equal(share_of(middle), SHARE / 2);
    assert_int_equal(share_of(old), SHARE / 2);
    member *newest = add_static(&l, 2 * OLD + 1, PREPARE_MS, 60000);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(share_of(middle), SHARE / 2);
    assert_int_equal(count_owned(&l), ITEMS);
    assert_int_equal(newest->prepare, SHARE);
    uint64_t lists = count_lists(&l);
    all_prepared(&l);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(share_of(newest), SHARE);
    assert_int_equal(share_of(middle) + share_of(old), 0);
    assert_true(count_lists(&l) - lists <= 12);
    pool_close(&l);
}

/* T9: if the newest goes before it is prepared, who has the items keeps them, and was not interrupted. */
TEST(test_newest_goes) {
    pool l;
    open_statics(&l, PREPARE_MS, 30000);
    member *old = &l.members[1];
    add_static(&l, OLD + 1, PREPARE_MS, 30000);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(old->leaving, SHARE);
    crash(&l, OLD + 1);
    divvy_testing_run(l.ensemble, 5000);
    assert_int_equal(revoked(old), 0);
    assert_int_equal(old->staying, SHARE);
    assert_int_equal(divvy_partitioner_is_replaced(old->partitioner), 0);
    assert_int_equal(divvy_partitioner_state(old->partitioner), DIVVY_ACQUIRED);
    pool_close(&l);
}

/* T9: after handover_timeout_ms, or without a note on either side, the older one is fenced. */
TEST(test_fenced_in_the_end) {
    for (int how = 0; how < 3; how++) {
        pool l;
        int64_t old_ms = how == 0 ? 2000 : how == 1 ? 0 : 30000, next_ms = how == 2 ? 0 : 30000;
        open_statics(&l, PREPARE_MS, old_ms);
        member *old = &l.members[1], *next = add_static(&l, OLD + 1, PREPARE_MS, next_ms);
        divvy_testing_run(l.ensemble, how == 0 ? 1500 : 1000);
        assert_int_equal(revoked(old), how == 0 ? 0 : SHARE);
        divvy_testing_run(l.ensemble, 3000);
        assert_int_equal(revoked(old), SHARE);
        all_prepared(&l);
        divvy_testing_run(l.ensemble, 2000);
        assert_int_equal(share_of(next), SHARE);
        assert_int_equal(count_owned(&l), ITEMS);
        pool_close(&l);
    }
}

/* D42 */
TEST(test_rounds_too_short) {
    for (int short_round = 0; short_round < 2; short_round++) {
        pool l;
        divvy_partitioner_config config;
        pool_open(&l, ITEMS);
        config_of(&l, &config, 0, 30000);
        config.max_moves = 10;
        config.round_timeout_ms = short_round ? 29999 : 30000;
        member *m = add(&l, 0, &config);
        divvy_testing_run(l.ensemble, 1);
        assert_int_equal(m->warnings[DIVVY_WARN_ROUND], short_round);
        pool_close(&l);
    }
}
