/* Static members: whose place is kept, given up, or taken by another. SPDX-License-Identifier: Apache-2.0 */
#include "partitioner/partitioner.h"
#include "plan/member_data.h"
#include "plan_pool.h"

enum { ITEMS = 300, DELAY_MS = 20000 };

static member *add_static(pool *l, size_t n) {
    divvy_partitioner_config config;
    char identifier[32];
    snprintf(identifier, sizeof identifier, "member-%zu", n % 10);
    member_config(l, &config);
    config.identifier = identifier;
    config.static_membership = 1;
    config.rejoin_delay_ms = DELAY_MS;
    return add(l, n, &config);
}

static void add_statics(pool *l, size_t count) {
    pool_open(l, ITEMS);
    for (size_t n = 0; n < count; n++) add_static(l, n);
    settle(l);
}

/* A rolling restart of five, each back within its delay: nothing moves, what the others have is never unlocked, and
 * each gets its own items back. */
TEST(test_rolling_restart) {
    pool l;
    add_statics(&l, 5);
    owners before = look(&l);
    for (size_t n = 0; n < 5; n++) {
        finish(&l, n);
        settle_owned(&l, ITEMS - before.loads[n]);
        add_static(&l, n);
        settle(&l);
        owners after = look(&l);
        assert_int_equal(differences(&l, &before, &after), 0);
        for (size_t i = 0; i < ITEMS; i++) {
            if (before.owners[i] > (int)n) assert_int_equal(before.tokens[i], after.tokens[i]);
        }
        owners_free(&after);
    }
    for (size_t n = 0; n < 5; n++) assert_int_equal(l.members[n].states[DIVVY_RELEASE], 0);
    assert_at_rest(&l);
    owners_free(&before);
    pool_close(&l);
}

/* A member that does not come back loses its place when its delay is over, not before; its items go to the others. */
TEST(test_absence_ends) {
    pool l;
    add_statics(&l, 4);
    owners before = look(&l);
    crash(&l, 2);
    settle_owned(&l, ITEMS - before.loads[2]);
    divvy_testing_run(l.ensemble, DELAY_MS - 5000);
    owners waiting = look(&l);
    assert_int_equal(waiting.owned, ITEMS - before.loads[2]);
    int64_t took_ms = settle(&l);
    assert_in_range(took_ms, 1000, 6000);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), before.loads[2]);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&waiting);
    owners_free(&after);
    pool_close(&l);
}

/* Lets time go on until so many plans were written. Returns when that was. */
static int64_t wait_for_plan(pool *l, unsigned plan_writes) {
    for (int ms = 0; ms < 60000 && l->plan_writes < plan_writes; ms++) divvy_testing_run(l->ensemble, 1);
    assert_int_equal(l->plan_writes, plan_writes);
    return divvy_testing_now_ms(l->ensemble);
}

/* D13, D37: each member counts the delay of an absence from the plan that tells of it. The first of the row does not
 * write when it is over, as its process has stopped; so the second one does, in its turn, 100 ms later. */
TEST(test_second_ends_absence) {
    pool l;
    add_statics(&l, 3);
    unsigned writes = l.plan_writes;
    crash(&l, 2);
    int64_t since = wait_for_plan(&l, writes + 1);
    divvy_testing_run(l.ensemble, DELAY_MS - 1000);
    assert_int_equal(divvy_testing_pause_client(l.ensemble, l.members[0].client, true), 0);
    assert_in_range(wait_for_plan(&l, writes + 2) - since - DELAY_MS, 95, 150);
    assert_int_equal(divvy_testing_pause_client(l.ensemble, l.members[0].client, false), 0);
    settle(&l);
    pool_close(&l);
}

/* Two absences that end one after the other, while there is no connection, end by one plan. */
TEST(test_absences_end_while_cut_off) {
    enum { LONGER_MS = 3000 };
    pool l;
    add_statics(&l, 2);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.static_membership = 1;
    config.rejoin_delay_ms = DELAY_MS + LONGER_MS;
    add(&l, 2, &config);
    settle(&l);
    unsigned writes = l.plan_writes;
    crash(&l, 1);
    wait_for_plan(&l, writes + 1);
    crash(&l, 2);
    wait_for_plan(&l, writes + 2);
    divvy_testing_run(l.ensemble, DELAY_MS - 1000);
    assert_int_equal(divvy_testing_link_client(l.ensemble, l.members[0].client, DIVVY_TESTING_LINK_DOWN), 0);
    divvy_testing_run(l.ensemble, LONGER_MS + 2000);
    assert_int_equal(divvy_testing_link_client(l.ensemble, l.members[0].client, DIVVY_TESTING_LINK_UP), 0);
    wait_for_plan(&l, writes + 3);
    settle(&l);
    assert_int_equal(l.plan_writes, writes + 3);
    pool_close(&l);
}

/* The rest is balanced among those who are there while one is away, and it gets no more than it had. */
TEST(test_join_while_absent) {
    pool l;
    add_statics(&l, 3);
    owners before = look(&l);
    finish(&l, 1);
    settle_owned(&l, 200);
    add_static(&l, 3);
    settle_owned(&l, 200);
    owners joined = look(&l);
    assert_int_equal(joined.loads[0] + joined.loads[2] + joined.loads[3], 200);
    for (size_t i = 0; i < ITEMS; i++) assert_true((joined.owners[i] == NOBODY) == (before.owners[i] == 1));
    add_static(&l, 1);
    settle(&l);
    owners back = look(&l);
    for (size_t n = 0; n < 4; n++) assert_int_equal(back.loads[n], ITEMS / 4);
    owners_free(&before);
    owners_free(&joined);
    owners_free(&back);
    pool_close(&l);
}

/* leave() gives the place up at once: its items have owners before they are released, and nobody waits for it. */
TEST(test_leave) {
    pool l;
    add_statics(&l, 4);
    owners before = look(&l);
    l.plan_writes = 0;
    assert_int_equal(divvy_partitioner_leave(l.members[1].partitioner, 0, 10000), 0);
    assert_int_equal(divvy_partitioner_failure(l.members[1].partitioner, NULL, 0), DIVVY_ECANCELED);
    forget_client(&l.members[1]);
    int64_t took_ms = settle(&l);
    assert_in_range(took_ms, 0, 2000);
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), before.loads[1]);
    size_t gained = 0;
    for (size_t n = 0; n < 4; n++) gained += n == 1 ? 0 : l.members[n].gained[DIVVY_REASON_LEAVE];
    assert_int_equal(gained, before.loads[1]);
    assert_int_equal(l.plan_writes, 1);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* A dynamic member can leave like that, too; so can the last one. */
TEST(test_leave_dynamic) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 3; n++) add(&l, n, NULL);
    settle(&l);
    for (size_t n = 0; n < 3; n++) {
        assert_int_equal(divvy_partitioner_leave(l.members[n].partitioner, 0, 10000), 0);
        forget_client(&l.members[n]);
        if (n < 2) settle(&l);
    }
    add(&l, 0, NULL);
    settle(&l);
    pool_close(&l);
}

/* A member that fails while it leaves gives everything up all the same, and says why its place stays. */
TEST(test_leave_failed) {
    pool l;
    divvy_partitioner_config config;
    pool_open(&l, ITEMS);
    add(&l, 0, NULL)->patient = true;
    settle(&l);
    member_config(&l, &config);
    config.allocate_timeout_ms = 1500;
    member *m = add(&l, 1, &config);
    divvy_testing_run(l.ensemble, 500);
    assert_int_equal(divvy_testing_link_client(l.ensemble, m->client, DIVVY_TESTING_LINK_DOWN), 0);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, 0, 0), DIVVY_ETIMEDOUT);
    divvy_testing_run(l.ensemble, 1500);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_testing_link_client(l.ensemble, m->client, DIVVY_TESTING_LINK_UP), 0);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, 0, 10000), DIVVY_ECANCELED);
    assert_int_equal(divvy_partitioner_leave(m->partitioner, 0, 10000), DIVVY_ECANCELED);
    forget_client(m);
    l.members[0].patient = false;
    pool_close(&l);
}

/* A second live member of one identifier takes the place of the first, which gets nothing, is never ACQUIRED, and
 * releases all that it has. When the second has gone the first is itself again. */
TEST(test_fenced) {
    pool l;
    add_statics(&l, 3);
    owners before = look(&l);
    member *old = &l.members[1];
    unsigned acquired = old->states[DIVVY_ACQUIRED];
    member *twin = add_static(&l, 11);
    for (int i = 0; i < 200; i++) {
        divvy_testing_run(l.ensemble, 10);
        owners now = look(&l);
        owners_free(&now);
    }
    assert_int_equal(divvy_partitioner_state(twin->partitioner), DIVVY_ACQUIRED);
    assert_int_equal(divvy_partitioner_state(old->partitioner), DIVVY_ALLOCATING);
    assert_int_equal(old->states[DIVVY_ACQUIRED], acquired);
    assert_int_equal(old->states[DIVVY_RELEASE], 1);
    assert_int_equal(old->warnings[DIVVY_WARN_FENCED], 1);
    for (size_t n = 0; n < MEMBERS_MAX; n++) assert_int_equal(l.members[n].warnings[DIVVY_WARN_IDENTIFIER], 0);
    owners fenced = look(&l);
    assert_int_equal(fenced.owned, ITEMS);
    assert_int_equal(fenced.loads[1], 0);
    assert_int_equal(fenced.loads[11], before.loads[1]);
    for (size_t i = 0; i < ITEMS; i++) assert_true(before.owners[i] == 1 || before.owners[i] == fenced.owners[i]);
    assert_int_equal(divvy_partitioner_set_weight(old->partitioner, 0), 0); /* no longer its own */
    divvy_testing_run(l.ensemble, 5000);
    owners still = look(&l);
    assert_int_equal(still.loads[11], before.loads[1]);
    finish(&l, 11);
    divvy_testing_run(l.ensemble, 5000);
    assert_int_equal(divvy_partitioner_state(old->partitioner), DIVVY_ACQUIRED);
    owners_free(&before);
    owners_free(&fenced);
    owners_free(&still);
    pool_close(&l);
}

static member *add_rejoining(pool *l, size_t n) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.identifier = "member-1";
    config.static_membership = 1;
    config.rejoin_delay_ms = DELAY_MS;
    config.on_session_loss = DIVVY_REJOIN;
    return add(l, n, &config);
}

/* Stops a process until the servers have ended its session. */
static void stall(pool *l, const member *m, bool stopped) {
    assert_int_equal(divvy_testing_pause_client(l->ensemble, m->client, stopped), 0);
}

/* Two members of one identifier that are not static both get a share, and all are told so once; also where nobody else
 * comes after them. */
TEST(test_twins_told) {
    pool l;
    divvy_partitioner_config config;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 2; n++) {
        member_config(&l, &config);
        config.identifier = "twin";
        add(&l, n, &config);
    }
    settle(&l);
    for (size_t n = 0; n < 2; n++) assert_int_equal(l.members[n].warnings[DIVVY_WARN_IDENTIFIER], 1);
    pool_close(&l);
}

/* Goes on with a process that was stopped. Nothing moves, and each that came before `last` is replaced. */
static void assert_back(pool *l, const member *back, const member *last) {
    owners before = look(l);
    stall(l, back, false);
    for (int i = 0; i < 1000; i++) {
        divvy_testing_run(l->ensemble, 10);
        owners now = look(l);
        assert_int_equal(moved(l, &before, &now), 0);
        assert_false(divvy_partitioner_is_replaced(last->partitioner));
        owners_free(&now);
    }
    assert_true(divvy_partitioner_is_replaced(back->partitioner));
    owners_free(&before);
}

/* D12: two stalled processes come back, each with a younger node than their successor. That one keeps all, without an
 * interruption, and is never replaced. When it ends the one before it is the member, and then the first. */
TEST(test_stalled) {
    enum { FIRST = 1, SECOND = 11, LAST = 12, SESSION_MS = 30000 };
    pool l;
    pool_open(&l, ITEMS);
    add_static(&l, 0);
    member *first = add_rejoining(&l, FIRST);
    settle(&l);
    stall(&l, first, true);
    member *second = add_rejoining(&l, SECOND);
    divvy_testing_run(l.ensemble, SESSION_MS);
    stall(&l, second, true);
    member *last = add_rejoining(&l, LAST);
    divvy_testing_run(l.ensemble, SESSION_MS);
    unsigned plan_writes = l.plan_writes;
    assert_back(&l, second, last);
    assert_back(&l, first, last);
    assert_int_equal(l.plan_writes, plan_writes);
    assert_int_equal(last->states[DIVVY_RELEASE], 0);
    owners all = look(&l);
    assert_int_equal(all.owned, ITEMS);
    assert_int_equal(all.loads[LAST], ITEMS / 2);
    owners_free(&all);
    for (size_t n = LAST; n > FIRST; n = n == LAST ? SECOND : FIRST) {
        finish(&l, n);
        divvy_testing_run(l.ensemble, 10000);
        all = look(&l);
        assert_int_equal(all.loads[n == LAST ? SECOND : FIRST], ITEMS / 2);
        owners_free(&all);
    }
    pool_close(&l);
}

/* D31: a process never hears of its first node, as its session is lost at once, and so cannot say when that was made.
 * It still says that it came after the one that it replaces. */
TEST(test_first_node_unknown) {
    enum { FIRST = 1, SECOND = 11 };
    pool l;
    pool_open_far(&l, ITEMS, 10, 10);
    member *first = add_rejoining(&l, FIRST);
    settle(&l);
    member *second = add_rejoining(&l, SECOND);
    for (size_t count = 1; count == 1;) {
        divvy_testing_run(l.ensemble, 1);
        divvy_strings *nodes = divvy_testing_children(l.ensemble, "/pool/party");
        count = divvy_strings_count(nodes);
        divvy_strings_free(nodes);
    }
    assert_int_equal(divvy_testing_link_client(l.ensemble, second->client, DIVVY_TESTING_LINK_DOWN), 0);
    divvy_testing_expire(l.ensemble, second->client);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(divvy_testing_link_client(l.ensemble, second->client, DIVVY_TESTING_LINK_UP), 0);
    divvy_testing_run(l.ensemble, 30000);
    assert_false(divvy_partitioner_is_replaced(second->partitioner));
    assert_true(divvy_partitioner_is_replaced(first->partitioner));
    owners now = look(&l);
    assert_int_equal(now.loads[SECOND], ITEMS);
    owners_free(&now);
    pool_close(&l);
}

static void delete_node(pool *l, const member *m) {
    char node[200];
    assert_in_range(divvy_partitioner_node(m->partitioner, node, sizeof node), 1, sizeof node - 1);
    assert_int_equal(divvy_testing_remove(l->ensemble, node), 0);
    divvy_testing_run(l->ensemble, 10000);
}

/* D12, D31: a process has lived through a wipe of the servers, so the czxid of its first node is above all that are to
 * come. Its successor takes its place all the same, and keeps it, however often the old one makes its node again. */
TEST(test_servers_wiped) {
    enum { FIRST = 1, SECOND = 11 };
    pool l;
    pool_open(&l, ITEMS);
    member *first = add_rejoining(&l, FIRST);
    settle(&l);
    first->partitioner->first_czxid = INT64_MAX / 2;
    dv_member_data_set_first(first->partitioner->later_data, INT64_MAX / 2);
    divvy_testing_expire(l.ensemble, first->client);
    divvy_testing_run(l.ensemble, 100);
    settle(&l);
    member *second = add_rejoining(&l, SECOND);
    divvy_testing_run(l.ensemble, 10000);
    for (int i = 0; i < 3; i++) {
        owners now = look(&l);
        assert_int_equal(now.loads[SECOND], ITEMS);
        assert_false(divvy_partitioner_is_replaced(second->partitioner));
        assert_true(divvy_partitioner_is_replaced(first->partitioner));
        owners_free(&now);
        delete_node(&l, first);
    }
    pool_close(&l);
}

/* A static member whose session is lost and that rejoins gets the same items back. */
TEST(test_rejoin) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 3; n++) {
        divvy_partitioner_config config;
        char identifier[32];
        snprintf(identifier, sizeof identifier, "member-%zu", n);
        member_config(&l, &config);
        config.identifier = identifier;
        config.static_membership = 1;
        config.rejoin_delay_ms = DELAY_MS;
        config.on_session_loss = DIVVY_REJOIN;
        add(&l, n, &config);
    }
    settle(&l);
    owners before = look(&l);
    assert_int_equal(divvy_testing_expire(l.ensemble, l.members[0].client), 0);
    divvy_testing_run(l.ensemble, 100);
    settle(&l);
    owners after = look(&l);
    assert_int_equal(differences(&l, &before, &after), 0);
    for (size_t n = 1; n < 3; n++) assert_int_equal(l.members[n].states[DIVVY_RELEASE], 0);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}
