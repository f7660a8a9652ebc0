/* A member whose set of items is replaced by hand, as a plan would. SPDX-License-Identifier: Apache-2.0
 *
 * On the in-memory ensemble, in virtual time. The fixture checks all that on_items tells: gained and lost in turn
 * for each item, tokens that grow, and nothing revoked that is not there. */
#ifndef DV_TEST_ITEMS_SET_FIXTURE_H
#define DV_TEST_ITEMS_SET_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "partitioner/partitioner.h"

enum { ITEMS_MAX = 16, BOUNDARY_MS = 100, PATIENCE_MS = 30000 };

typedef struct {
    char name[16];
    bool shown, revoked;
    int64_t token, last_token;
    int gained_reason, revoked_reason, lost_reason;
} heard_item;

typedef struct {
    divvy_client *client;
    divvy_partitioner *p;
    heard_item items[ITEMS_MAX];
    size_t item_count;
    unsigned releases, failures, warnings[DIVVY_WARN_LATE + 1];
} member;

static divvy_testing_ensemble *ensemble;

static inline heard_item *heard(member *m, const char *name) {
    for (size_t i = 0; i < m->item_count; i++) {
        if (strcmp(m->items[i].name, name) == 0) return &m->items[i];
    }
    assert_true(m->item_count < ITEMS_MAX);
    heard_item *item = &m->items[m->item_count++];
    snprintf(item->name, sizeof item->name, "%s", name);
    return item;
}

static inline void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p;
    for (size_t i = 0; i < event->lost_count; i++) {
        heard_item *item = heard(user, event->lost[i]);
        assert_true(item->shown);
        item->shown = item->revoked = false;
        item->lost_reason = event->reason;
    }
    for (size_t i = 0; i < event->gained_count; i++) {
        heard_item *item = heard(user, event->gained[i]);
        assert_false(item->shown);
        assert_true(event->gained_tokens[i] >= item->last_token);
        item->shown = true;
        item->token = item->last_token = event->gained_tokens[i];
        item->gained_reason = event->reason;
    }
    for (size_t i = 0; i < event->revoked_count; i++) {
        heard_item *item = heard(user, event->revoked[i]);
        assert_true(item->shown && !item->revoked);
        item->revoked = true;
        item->revoked_reason = event->reason;
    }
}

static inline void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p;
    (void)from;
    ((member *)user)->releases += to == DIVVY_RELEASE;
    ((member *)user)->failures += to == DIVVY_FAILURE;
}

static inline void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    (void)message;
    if (code <= DIVVY_WARN_LATE) ((member *)user)->warnings[code]++;
}

static inline void run(int64_t ms) {
    assert_true(divvy_testing_run(ensemble, ms) >= 0);
}

static inline int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    return divvy_testing_ensemble_create(&ensemble, &config);
}

static inline int tear_down(void **state) {
    (void)state;
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* "a b c" as its words. */
typedef struct {
    char text[256];
    const char *names[ITEMS_MAX];
    size_t count;
} words;

static inline void split(words *w, const char *text) {
    snprintf(w->text, sizeof w->text, "%s", text);
    w->count = 0;
    for (char *word = strtok(w->text, " "); word; word = strtok(NULL, " ")) w->names[w->count++] = word;
}

static inline divvy_client *open_client(member *m) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.manual = 1;
    config.on_warning = m ? on_warning : NULL;
    config.user = m;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    return client;
}

/* A member of the pool that has acquired its share of `items`. */
static inline void join(member *m, const char *identifier, const char *items, divvy_partitioner_config config) {
    words w;
    split(&w, items);
    *m = (member){0};
    m->client = open_client(m);
    config.path = "/pool";
    config.identifier = identifier;
    config.items = w.names;
    config.item_count = w.count;
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    config.time_boundary_ms = BOUNDARY_MS;
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = m;
    assert_int_equal(divvy_partitioner_create(&m->p, m->client, &config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->p, PATIENCE_MS), 0);
    run(1);
}

static inline void join_plainly(member *m, const char *identifier, const char *items) {
    join(m, identifier, items, (divvy_partitioner_config)DIVVY_PARTITIONER_CONFIG_INIT);
}

/* Releases what is revoked, and goes on until the share is acquired and told. */
static inline void release(member *m) {
    assert_int_equal(divvy_partitioner_release_set(m->p), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->p, PATIENCE_MS), 0);
    run(1);
}

static inline void leave(member *m) {
    divvy_partitioner_destroy(m->p);
    divvy_client_close(m->client);
}

/* As a plan would: the set `items` is dealt from now on, and `mine` is the share. */
static inline int deal(member *m, const char *items, const char *mine) {
    words w, share;
    split(&w, items);
    split(&share, mine);
    dv_client_lock(m->client);
    dv_plan_set *set;
    assert_int_equal(dv_items_make_set(&set, m->client, "test", m->p->locks_path, w.names, w.count), 0);
    uint8_t target[ITEMS_MAX] = {0};
    for (size_t i = 0; i < set->count; i++) {
        for (size_t s = 0; s < share.count; s++) target[i] |= strcmp(set->names[i], share.names[s]) == 0;
    }
    int error = dv_items_use(m->p, set);
    if (!error) error = dv_items_need(m->p, target);
    if (!error) dv_state_target_settled(m->p, target, DIVVY_REASON_FOREIGN, dv_client_now(m->client));
    dv_plan_set_unref(set);
    dv_client_unlock(m->client);
    return error;
}

/* Asserts the items in the snapshot, "a b* c": revoked ones with a star. */
static inline void assert_snapshot(member *m, const char *expected) {
    divvy_partition *snapshot = divvy_partitioner_partition(m->p);
    char text[256] = "";
    for (size_t i = 0; i < divvy_partition_count(snapshot); i++) {
        const char *name = divvy_partition_item(snapshot, i);
        bool revoked = divvy_partition_revoked(snapshot, i);
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s%s", i ? " " : "", name, revoked ? "*" : "");
        assert_int_equal(divvy_partitioner_owns(m->p, name), !revoked);
        assert_true(heard(m, name)->shown);
        assert_int_equal(heard(m, name)->revoked, revoked);
        assert_int_equal(heard(m, name)->token, divvy_partition_token(snapshot, i));
    }
    assert_string_equal(text, expected);
    divvy_partition_unref(snapshot);
}

/* The names in the table, dealt or to be given up yet. */
static inline void assert_table(member *m, const char *expected) {
    char text[256] = "";
    for (size_t i = 0; i < dv_item_count(m->p); i++) {
        size_t at = strlen(text);
        snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "", dv_item_name(m->p, i));
        assert_ptr_equal(dv_item_find(m->p, dv_item_name(m->p, i)), dv_item_at(m->p, i));
        assert_int_equal(dv_item_at(m->p, i)->index, i);
    }
    assert_string_equal(text, expected);
}

static inline size_t places(const char *item) {
    char path[64];
    snprintf(path, sizeof path, "/pool/locks/%s", item);
    divvy_strings *names = divvy_testing_children(ensemble, path);
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    return count;
}

#endif
