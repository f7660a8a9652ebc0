/* Pools whose members are started again, configured otherwise: docs/protocol.md, D13, D16, D17. On the in-memory
 * ensemble, in virtual time. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ALL = 14, CONFIGURED = 12, MEMBERS = 3 };

typedef struct {
    char text[600];
    int code;
} told;

static told last;

static void on_told(divvy_client *client, int code, const char *message, void *user) {
    on_warning(client, code, message, user);
    last.code = code;
    snprintf(last.text, sizeof last.text, "%s", message);
}

/* A member with the first `items` of all. */
static member *start(pool *l, size_t n, size_t items, size_t max_moves) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.item_count = items;
    config.max_moves = max_moves;
    config.round_timeout_ms = 5000;
    config.on_session_loss = DIVVY_REJOIN;
    return add(l, n, &config);
}

static void start_all(pool *l, size_t items) {
    pool_open(l, ALL);
    for (size_t n = 0; n < MEMBERS; n++) start(l, n, items, 0);
    settle_owned(l, items);
}

static int ask_for_all(member *m) {
    return divvy_partitioner_set_items(m->partitioner, (const char *const *)m->pool->items, ALL);
}

/* Items that were asked for are divided until all members have been started again; whether they are all stopped before,
 * or killed, or one after the other. All are warned before, but for the one that asked. */
TEST(test_items_after_restart) {
    for (int way = 0; way < 3; way++) {
        pool l;
        start_all(&l, CONFIGURED);
        assert_int_equal(ask_for_all(&l.members[1]), 0);
        settle_owned(&l, ALL);
        for (size_t n = 0; n < MEMBERS; n++)
            assert_int_equal(l.members[n].warnings[DIVVY_WARN_ITEMS_DIFFER], n == 1 ? 0 : 1);
        for (size_t n = 0; way == 0 && n < MEMBERS; n++) finish(&l, n);
        for (size_t n = 0; n < MEMBERS; n++) {
            if (way == 1) finish(&l, n);
            if (way == 2) crash(&l, n);
            start(&l, n, CONFIGURED, 0);
            if (way == 1 && n + 1 < MEMBERS) settle_owned(&l, ALL);
        }
        settle_owned(&l, CONFIGURED);
        divvy_testing_run(l.ensemble, 60000); /* P12: the directories of the items that went are deleted */
        assert_at_rest(&l);
        pool_close(&l);
    }
}

/* A lost session is no restart: what was asked for stays, though all nodes are newer. */
TEST(test_items_after_loss) {
    pool l;
    start_all(&l, CONFIGURED);
    assert_int_equal(ask_for_all(&l.members[0]), 0);
    settle_owned(&l, ALL);
    for (int times = 0; times < 2; times++) {
        for (size_t n = 0; n < MEMBERS; n++) assert_int_equal(divvy_testing_expire(l.ensemble, l.members[n].client), 0);
        divvy_testing_run(l.ensemble, 20000);
        settle_owned(&l, ALL);
    }
    divvy_strings *party = divvy_testing_children(l.ensemble, "/pool/party");
    for (size_t i = 0; i < divvy_strings_count(party); i++) {
        char *path;
        assert_true(asprintf(&path, "/pool/party/%s", divvy_strings_get(party, i)) > 0);
        assert_int_equal(divvy_testing_remove(l.ensemble, path), 0); /* made again on the same session */
        free(path);
    }
    divvy_strings_free(party);
    settle_owned(&l, ALL);
    assert_at_rest(&l);
    pool_close(&l);
}

static size_t count_party(const pool *l) {
    divvy_strings *party = divvy_testing_children(l->ensemble, "/pool/party");
    size_t count = divvy_strings_count(party);
    divvy_strings_free(party);
    return count;
}

/* D31: a member whose first node was made, and never answered for, was there all the same: its session's loss is no
 * restart, and what was asked for in between stays. */
TEST(test_items_after_unanswered_join) {
    pool l;
    pool_open(&l, ALL);
    start(&l, 0, CONFIGURED, 0);
    settle_owned(&l, CONFIGURED);
    member *late = start(&l, 1, CONFIGURED, 0);
    int64_t until = divvy_testing_now_ms(l.ensemble) + 5000;
    while (count_party(&l) < 2) assert_true(divvy_testing_step(l.ensemble, until) >= 0);
    assert_int_equal(divvy_testing_link_client(l.ensemble, late->client, DIVVY_TESTING_LINK_NO_REPLIES), 0);
    divvy_testing_run(l.ensemble, 2000);
    assert_int_equal(ask_for_all(&l.members[0]), 0);
    divvy_testing_run(l.ensemble, 2000);
    finish(&l, 0);
    assert_int_equal(divvy_testing_expire(l.ensemble, late->client), 0);
    assert_int_equal(divvy_testing_link_client(l.ensemble, late->client, DIVVY_TESTING_LINK_UP), 0);
    divvy_testing_run(l.ensemble, 10000);
    settle_owned(&l, ALL);
    pool_close(&l);
}

static void remove_node_of(pool *l, const member *m) {
    divvy_strings *party = divvy_testing_children(l->ensemble, "/pool/party");
    size_t removed = 0;
    for (size_t i = 0; i < divvy_strings_count(party); i++) {
        char path[300];
        if (!strstr(divvy_strings_get(party, i), m->identifier)) continue;
        snprintf(path, sizeof path, "/pool/party/%s", divvy_strings_get(party, i));
        assert_int_equal(divvy_testing_remove(l->ensemble, path), 0);
        removed++;
    }
    assert_int_equal(removed, 1);
    divvy_strings_free(party);
}

/* Likewise where somebody deletes that node before its member has found it: on the same session it makes the next one,
 * and cannot know whether that is its first. */
TEST(test_items_after_unanswered_join_that_was_deleted) {
    pool l;
    pool_open(&l, ALL);
    start(&l, 0, CONFIGURED, 0);
    settle_owned(&l, CONFIGURED);
    member *late = start(&l, 1, CONFIGURED, 0);
    int64_t until = divvy_testing_now_ms(l.ensemble) + 5000, session;
    while (count_party(&l) < 2) assert_true(divvy_testing_step(l.ensemble, until) >= 0);
    assert_int_equal(divvy_testing_link_client(l.ensemble, late->client, DIVVY_TESTING_LINK_NO_REPLIES), 0);
    session = divvy_client_session_id(late->client);
    divvy_testing_run(l.ensemble, 1000);
    assert_int_equal(ask_for_all(&l.members[0]), 0);
    divvy_testing_run(l.ensemble, 1000);
    remove_node_of(&l, late);
    assert_int_equal(divvy_testing_link_client(l.ensemble, late->client, DIVVY_TESTING_LINK_UP), 0);
    divvy_testing_disconnect(l.ensemble, late->client, DIVVY_TESTING_APPLIED, 0);
    settle_owned(&l, ALL);
    assert_int_equal(count_party(&l), 2);
    assert_int_equal(divvy_client_session_id(late->client), session);
    finish(&l, 0);
    divvy_testing_run(l.ensemble, 10000);
    settle_owned(&l, ALL);
    pool_close(&l);
}

/* Counts the writes of the plan while a member joins: with max_moves 1, one for each item that moves. */
static unsigned count_writes_of_join(pool *l, size_t n, size_t max_moves) {
    unsigned before = l->plan_writes;
    start(l, n, ALL, max_moves);
    divvy_testing_run(l->ensemble, 20000); /* all rounds */
    settle(l);
    return l->plan_writes - before;
}

/* max_moves is the pool's when the last member that is configured otherwise has gone; until then each is warned. */
TEST(test_options_after_restart) {
    pool l;
    start_all(&l, ALL);
    for (size_t n = 0; n < MEMBERS; n++) {
        assert_int_equal(l.members[n].warnings[DIVVY_WARN_ASSIGN_DIFFERS], 0);
        finish(&l, n);
        start(&l, n, ALL, 1);
        settle(&l);
        assert_int_equal(l.members[n].warnings[DIVVY_WARN_ASSIGN_DIFFERS], n + 1 < MEMBERS);
    }
    assert_in_range(count_writes_of_join(&l, MEMBERS, 1), 3, 20);
    for (size_t n = 0; n <= MEMBERS; n++) {
        finish(&l, n);
        start(&l, n, ALL, 0);
        settle(&l);
    }
    assert_in_range(count_writes_of_join(&l, MEMBERS + 1, 0), 1, 2);
    assert_at_rest(&l);
    pool_close(&l);
}

static member *start_as(pool *l, size_t n, const char *identifier, bool is_static, uint32_t weight) {
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_partitioner_config config;
    member_config(l, &config);
    config.identifier = identifier;
    config.static_membership = is_static;
    config.rejoin_delay_ms = is_static ? 20000 : 0;
    config.weight = weight;
    config.on_state = on_state;
    config.on_items = on_items;
    member *m = &l->members[n];
    *m = (member){.pool = l};
    config.user = m;
    client_config.manual = 1;
    client_config.on_warning = on_told;
    client_config.user = m;
    assert_int_equal(divvy_testing_client_open(&m->client, l->ensemble, &client_config), 0);
    assert_int_equal(divvy_partitioner_create(&m->partitioner, m->client, &config), 0);
    return m;
}

/* D13: a member that joins is warned of a place that is kept, and one that has that place's identifier, but is not
 * static, is told so. Members that were there before are not. */
TEST(test_place_kept) {
    pool l;
    pool_open(&l, ALL);
    start_as(&l, 0, "d1", true, 1000);
    member *witness = start_as(&l, 1, "d2", true, 1000);
    settle(&l);
    finish(&l, 0);
    settle_owned(&l, ALL / 2);
    member *other = start_as(&l, 2, "d3", false, 1000);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(other->warnings[DIVVY_WARN_ABSENT], 1);
    assert_non_null(strstr(last.text, "\"d1\" for 20.0 s: its 7 items have no owner"));
    assert_null(strstr(last.text, "same identifier"));
    member *impostor = start_as(&l, 0, "d1", false, 1000);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(impostor->warnings[DIVVY_WARN_ABSENT], 1);
    assert_non_null(strstr(last.text, "same identifier"));
    settle(&l);
    assert_int_equal(witness->warnings[DIVVY_WARN_ABSENT], 0);
    assert_int_equal(other->warnings[DIVVY_WARN_ABSENT], 1);
    pool_close(&l);
}

/* D15: another configured weight of a static member counts after a restart. A drain outlives one with the same weight,
 * and the member is told of it then. */
TEST(test_weight_after_restart) {
    pool l;
    pool_open(&l, ALL);
    member *m = start_as(&l, 0, "d1", true, 1000);
    start_as(&l, 1, "d2", true, 1000);
    settle(&l);
    finish(&l, 0);
    m = start_as(&l, 0, "d1", true, 6000);
    divvy_testing_run(l.ensemble, 3000);
    settle(&l);
    owners heavy = look(&l);
    assert_int_equal(heavy.loads[0], 12);
    assert_int_equal(m->warnings[DIVVY_WARN_WEIGHT], 0);
    assert_int_equal(divvy_partitioner_set_weight(m->partitioner, 0), 0);
    divvy_testing_run(l.ensemble, 3000);
    finish(&l, 0);
    m = start_as(&l, 0, "d1", true, 6000);
    divvy_testing_run(l.ensemble, 3000);
    settle(&l);
    owners drained = look(&l);
    assert_int_equal(drained.loads[0], 0);
    assert_int_equal(m->warnings[DIVVY_WARN_WEIGHT], 1);
    assert_non_null(strstr(last.text, "was set to 0"));
    owners_free(&heavy);
    owners_free(&drained);
    pool_close(&l);
}
