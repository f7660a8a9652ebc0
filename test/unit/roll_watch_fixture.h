/* A roll watch on a backend that a test answers step by step. SPDX-License-Identifier: Apache-2.0
 *
 * Members are letters. In parties of four and more the first one is the only lookout. */
#ifndef DV_TEST_ROLL_WATCH_FIXTURE_H
#define DV_TEST_ROLL_WATCH_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_znode.h"
#include "lib/test.h"
#include "plan/roll_watch.h"
#include "roll_letters.h"

#define PARTY "/p"
#define BOUNDARY_MS 1000
#define SETTLE_MAX_MS 5000
#define WAIT_MS 5000 /* W20, beside the boundary and 20 ms for each place */

static dv_fake *fake;
static dv_roll_watch *watch;
static int64_t start;
static char own;
static bool may_listen;

static struct {
    int changed, settled, failed, gone, error;
    int64_t pzxid, settled_at;
    char names[64];
    bool stop_when_settled;
} told;

static inline int64_t elapsed(void) {
    return dv_fake_now(fake) - start;
}

static inline void on_changed(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.changed++;
}

static inline void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    assert_true(pzxid > told.pzxid);
    told.settled++;
    told.settled_at = now - start;
    told.pzxid = pzxid;
    told.names[0] = '\0';
    for (size_t i = 0; i < count; i++) strcat(told.names, names[i]);
    if (told.stop_when_settled) dv_roll_watch_stop(watch);
}

static inline void on_failed(void *owner, int error, int64_t now) {
    (void)owner, (void)now;
    told.failed++;
    told.error = error;
}

static inline void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.gone++;
    watch = NULL;
}

static inline dv_roll_role role(void *owner) {
    (void)owner;
    const char *at = strchr(told.names, own);
    return (dv_roll_role){.is_in_row = at, .may_listen = may_listen, .place = at ? (size_t)(at - told.names) : 0};
}

static inline void run_in_turn(void (*call)(dv_roll_watch *)) {
    dv_client_lock(dv_fake_client(fake));
    call(watch);
    dv_client_unlock(dv_fake_client(fake));
    dv_fake_run(fake);
}

static inline void begin_as(char letter) {
    static const dv_roll_watch_events events = {
        .watch = {.changed = on_changed, .settled = on_settled, .failed = on_failed, .gone = on_gone}, .role = role};
    const dv_patience patience = {BOUNDARY_MS, BOUNDARY_MS, SETTLE_MAX_MS};
    own = letter;
    may_listen = true;
    memset(&told, 0, sizeof told);
    start = dv_fake_now(fake);
    dv_client_lock(dv_fake_client(fake));
    watch = dv_roll_watch_start(dv_fake_client(fake), PARTY, &patience, &events, &told);
    dv_client_unlock(dv_fake_client(fake));
    assert_non_null(watch);
}

static inline void assert_pending(const char *requests) {
    assert_string_equal(dv_fake_pending(fake), requests);
}

/* The list under way is answered: each letter is a child. */
static inline void answer_list(const char *text, int64_t pzxid, int64_t mzxid) {
    letters l;
    party_of(&l, text, pzxid);
    assert_int_equal(dv_fake_oldest(fake)->ops[0].kind, DV_CHILDREN);
    dv_stat stat = {.pzxid = pzxid, .mzxid = mzxid, .children = (int32_t)l.party.count};
    dv_fake_answer(fake, &(dv_reply){.children = l.names, .child_count = l.party.count, .stat = &stat});
}

static inline void answer_exists(size_t count, int64_t pzxid, int64_t mzxid) {
    assert_int_equal(dv_fake_oldest(fake)->ops[0].kind, DV_EXISTS);
    dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.pzxid = pzxid, .mzxid = mzxid, .children = (int32_t)count}});
}

/* The get under way is answered with these data. */
static inline void answer_get(const void *data, size_t bytes, int64_t pzxid, int64_t mzxid) {
    assert_int_equal(dv_fake_oldest(fake)->ops[0].kind, DV_GET);
    dv_stat stat = {.pzxid = pzxid, .mzxid = mzxid, .version = (int32_t)mzxid};
    dv_fake_answer(fake, &(dv_reply){.data = data, .data_bytes = bytes, .stat = &stat});
}

/* The get under way is answered: a roll that a member of that place wrote, with the step from one party to another,
 * or with none where the first is NULL. */
static inline void answer_roll(const char *before, int64_t from, const char *to, int64_t pzxid, size_t place,
                               int64_t party_pzxid, int64_t mzxid) {
    letters a, b;
    dv_plan_text text;
    const dv_roll_party *first = before ? party_of(&a, before, from) : NULL;
    assert_int_equal(dv_roll_print(&text, NULL, first, party_of(&b, to, pzxid), place), 0);
    answer_get(text.bytes, text.count, party_pzxid, mzxid);
    free(text.bytes);
}

/* Returns whether a list is under way. */
static inline bool lists(void) {
    return strstr(dv_fake_pending(fake), "children! " PARTY);
}

/* Time goes on, and each exists is answered so, until the party is listed. */
static inline void list_comes(size_t count, int64_t pzxid, int64_t mzxid) {
    for (int64_t from = elapsed(); !lists(); dv_fake_advance(fake, 1)) {
        if (*dv_fake_pending(fake)) answer_exists(count, pzxid, mzxid);
        assert_true(elapsed() - from < 60000);
        if (lists()) break;
    }
}

/* The member knows a party by its own list, at pzxid 10. */
static inline void settle_first(char letter, const char *text) {
    begin_as(letter);
    list_comes(strlen(text), 10, 5);
    answer_list(text, 10, 5);
    assert_int_equal(told.settled, 1);
}

/* It listens: a lookout has written the party that it knows. */
static inline void listen_first(char letter, const char *text) {
    settle_first(letter, text);
    assert_pending("get! " PARTY);
    answer_roll(NULL, 0, text, 10, 0, 10, 20);
    assert_true(dv_roll_watch_listens(watch));
    assert_pending("");
}

static inline void roll_changes(void) {
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHANGED, true));
    assert_pending("get! " PARTY);
}

/* Reads the roll that is being written. */
static inline dv_roll written(void) {
    dv_roll roll;
    const dv_op *op = &dv_fake_oldest(fake)->ops[0];
    assert_int_equal(op->kind, DV_SET);
    assert_int_equal(dv_roll_parse(&roll, op->data, op->data_bytes, NULL), 0);
    return roll;
}

/* The last warning in the log. */
static char logged[256];

static inline void on_log(int level, const char *message, void *user) {
    (void)user;
    if (level == DIVVY_LOG_WARN) snprintf(logged, sizeof logged, "%s", message);
}

static inline int set_up(void **state) {
    (void)state;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.on_log = on_log;
    logged[0] = '\0';
    fake = dv_fake_open(&config);
    assert_int_equal(dv_fake_client(fake)->listen_from, 300); /* W18 */
    assert_int_equal(dv_fake_client(fake)->lookouts, 3);
    dv_fake_client(fake)->listen_from = 4;
    dv_fake_client(fake)->lookouts = 1;
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    if (watch) run_in_turn(dv_roll_watch_stop);
    while (dv_fake_oldest(fake)) dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ECONNECTION});
    bool clean = !watch && !dv_fake_has_timers(fake) && !dv_fake_client(fake)->listeners;
    clean = clean && !dv_fake_is_watched(fake, PARTY);
    dv_fake_close(fake);
    return clean ? 0 : -1;
}

#endif
