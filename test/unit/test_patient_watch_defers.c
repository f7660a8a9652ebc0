/* Tests of recipe/patient_watch.h where others tell of the children: when it asks all the same.
 * SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, W20 and W21. */
#include "patient_watch_fixture.h"

#define DEFER_MS 700
#define LEAST_AUDIT_MS 8000 /* W21: 10 s, give or take a fifth */
#define AUDIT_SPREAD_MS 4000

static int64_t defer_ms; /* what the owner says */
static uint32_t random_value;
static int waited, asked_stats;
static bool learns, stop_when_asked;
static dv_znode_backend backend;

static int64_t defers_ms(void *owner) {
    (void)owner;
    return defer_ms;
}

static bool on_asked(void *owner, const dv_stat *stat, int64_t now) {
    (void)owner, (void)stat, (void)now;
    asked_stats++;
    if (stop_when_asked) dv_patient_watch_stop(watch);
    return learns;
}

static void on_waited(void *owner, int64_t now) {
    (void)owner, (void)now;
    waited++;
    defer_ms = -1;
}

static void on_replaced(void *owner, char **names, size_t count, int64_t pzxid) {
    (void)owner, (void)count, (void)pzxid;
    free(names);
}

static int draw(dv_znode *znode, void *bytes, size_t count) {
    (void)znode;
    assert_int_equal(count, sizeof random_value);
    memcpy(bytes, &random_value, count);
    return 0;
}

static bool asks_stat(void) {
    const char *pending = dv_fake_pending(fake);
    if (*pending) assert_string_equal(pending, "exists " PARTY);
    return *pending;
}

static void answer_stat(int64_t pzxid, int count) {
    assert_true(asks_stat());
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.pzxid = pzxid, .children = count}});
}

/* Nothing is asked until exactly `ms` later; then there is a look. */
static void look_comes_in(int64_t ms) {
    dv_fake_advance(fake, ms - 1);
    assert_string_equal(dv_fake_pending(fake), "");
    dv_fake_advance(fake, 1);
    assert_true(asks_stat());
}

/* Settled with "ab" of pzxid 10, and from then on told by others. */
static void begin_deferring(void) {
    static const dv_patient_watch_events events = {.changed = on_changed,
                                                   .settled = on_settled,
                                                   .failed = on_failed,
                                                   .gone = on_gone,
                                                   .defers_ms = defers_ms,
                                                   .asked = on_asked,
                                                   .waited = on_waited,
                                                   .replaced = on_replaced};
    const dv_patience patience = {BOUNDARY_MS, LEAVE_BOUNDARY_MS, SETTLE_MAX_MS};
    divvy_client *client = dv_fake_client(fake);
    backend = *client->znode->backend;
    backend.random = draw;
    client->znode->backend = &backend;
    memset(&told, 0, sizeof told);
    defer_ms = -1;
    waited = asked_stats = 0;
    learns = stop_when_asked = false;
    start = dv_fake_now(fake);
    dv_client_lock(client);
    watch = dv_patient_watch_start(client, PARTY, &patience, &events, &told);
    dv_client_unlock(client);
    while (!told.settled) {
        assert_true(elapsed() <= SETTLE_MAX_MS);
        if (strcmp(dv_fake_pending(fake), "exists " PARTY) == 0) answer_stat(10, 2);
        else if (*dv_fake_pending(fake)) answer("ab", 10);
        else dv_fake_advance(fake, 1);
    }
    defer_ms = DEFER_MS;
    dv_client_lock(client);
    dv_patient_watch_turn(watch, dv_fake_now(fake));
    dv_client_unlock(client);
    dv_fake_run(fake);
}

/* W21: who is told by others looks by itself after 8 to 12 s, as chance has it, and takes no watch. */
TEST(test_audit) {
    static const uint32_t draws[] = {0, 1, AUDIT_SPREAD_MS / 2, AUDIT_SPREAD_MS, AUDIT_SPREAD_MS + 1};
    random_value = draws[0];
    begin_deferring();
    assert_false(dv_fake_is_watched(fake, PARTY));
    for (size_t i = 0; i < sizeof draws / sizeof *draws; i++) {
        int64_t last_ms = draws[i] % (AUDIT_SPREAD_MS + 1);
        random_value = draws[(i + 1) % (sizeof draws / sizeof *draws)]; /* of the audit after this one */
        look_comes_in(LEAST_AUDIT_MS + last_ms);
        answer_stat(10, 2);
    }
    assert_int_equal(told.changed, 0);
    assert_int_equal(waited, 0);
}

/* W20: a change that it sees itself is waited for by a boundary and as long as its owner defers; then it asks the owner
 * no longer, and lists. */
TEST(test_waits_in_vain) {
    random_value = AUDIT_SPREAD_MS;
    begin_deferring();
    look_comes_in(LEAST_AUDIT_MS + AUDIT_SPREAD_MS);
    answer_stat(11, 3);
    assert_int_equal(told.changed, 1);
    look_comes_in(BOUNDARY_MS + DEFER_MS);
    assert_int_equal(waited, 0);
    answer_stat(11, 3);
    assert_int_equal(waited, 1);
    answer("abc", 11);
    assert_int_equal(told.settled, 2);
    assert_string_equal(told.names, "abc");
}

/* W20: as long as they do not stand still, it waits for the longest that settling may take, and not for ever. */
TEST(test_restless) {
    random_value = AUDIT_SPREAD_MS;
    begin_deferring();
    look_comes_in(LEAST_AUDIT_MS + AUDIT_SPREAD_MS);
    answer_stat(11, 3);
    int64_t changed_at = elapsed();
    for (int64_t pzxid = 12; waited == 0; pzxid++) {
        assert_true(pzxid < 20);
        dv_fake_advance(fake, BOUNDARY_MS + DEFER_MS);
        if (asks_stat()) answer_stat(pzxid, 3);
    }
    assert_in_range(elapsed() - changed_at, SETTLE_MAX_MS + DEFER_MS, SETTLE_MAX_MS + 2 * BOUNDARY_MS + 2 * DEFER_MS);
}

/* W20: an owner that is about to learn of the change has its time once more. */
TEST(test_about_to_learn) {
    random_value = AUDIT_SPREAD_MS;
    begin_deferring();
    look_comes_in(LEAST_AUDIT_MS + AUDIT_SPREAD_MS);
    answer_stat(11, 3);
    learns = true;
    look_comes_in(BOUNDARY_MS + DEFER_MS);
    answer_stat(11, 3);
    assert_int_equal(waited, 0);
    char **names = malloc(sizeof *names);
    names[0] = NULL;
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_learn(watch, names, 0, 11, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.pzxid, 11);
    assert_string_equal(told.names, "");
}

/* An owner that learns of one change and defers no longer has the next change, which is known, looked at at once. */
TEST(test_learned_while_not_deferring) {
    random_value = AUDIT_SPREAD_MS;
    begin_deferring();
    look_comes_in(LEAST_AUDIT_MS + AUDIT_SPREAD_MS);
    answer_stat(12, 3);
    defer_ms = -1;
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_learn(watch, calloc(1, sizeof(char *)), 0, 11, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    assert_true(asks_stat());
}

/* An owner may stop the watch as it learns, though a later change is known: it hears nothing of that. */
TEST(test_stop_when_learned) {
    random_value = AUDIT_SPREAD_MS;
    begin_deferring();
    look_comes_in(LEAST_AUDIT_MS + AUDIT_SPREAD_MS);
    answer_stat(12, 3);
    told.stop_when_settled = true;
    char **names = malloc(sizeof *names);
    names[0] = NULL;
    dv_client_lock(dv_fake_client(fake));
    dv_patient_watch_learn(watch, names, 0, 11, dv_fake_now(fake));
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.gone, 1);
}

/* An owner may stop the watch as it takes an answer in, and is told nothing of what else that shows. */
TEST(test_stop_when_asked) {
    random_value = AUDIT_SPREAD_MS;
    begin_deferring();
    look_comes_in(LEAST_AUDIT_MS + AUDIT_SPREAD_MS);
    stop_when_asked = true;
    answer_stat(11, 3);
    dv_fake_run(fake);
    assert_int_equal(told.changed, 0);
    assert_int_equal(told.gone, 1);
}

TEST_EACH(set_up, tear_down);
