/* Pools of members that follow plans, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_POOL_H
#define DV_TEST_PLAN_POOL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { MEMBERS_MAX = 16, NOBODY = -1, REASONS = DIVVY_REASON_LOAD + 1, WARNINGS = DIVVY_WARN_LOAD_UNIT + 1 };

typedef struct pool pool;

typedef struct {
    pool *pool;
    divvy_client *client; /* NULL: there is no such member */
    divvy_partitioner *partitioner;
    char identifier[32];
    bool patient; /* does not answer RELEASE */
    size_t gained[REASONS], revoked[REASONS], lost[REASONS];
    size_t leaving, staying, prepare;
    unsigned states[4], warnings[WARNINGS];
    char warned[512]; /* the last warning */
} member;

struct pool {
    divvy_testing_ensemble *ensemble;
    char **items;
    size_t count;
    member members[MEMBERS_MAX];
    unsigned plan_writes, writes; /* transactions below P/plan; all of nodes */
    int64_t settle_ms;
};

static inline void on_transaction(const divvy_testing_transaction *t, void *user) {
    pool *l = user;
    bool changes = t->kind == DIVVY_TESTING_CREATE || t->kind == DIVVY_TESTING_SET || t->kind == DIVVY_TESTING_DELETE;
    if (!changes) return;
    l->writes++;
    l->plan_writes += strcmp(t->path, "/pool/plan") == 0 && t->kind != DIVVY_TESTING_CREATE;
}

static inline void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    if (getenv("DV_SHOW")) fprintf(stderr, "warning %d: %s\n", code, message);
    if (code < WARNINGS) ((member *)user)->warnings[code]++;
    snprintf(((member *)user)->warned, sizeof((member *)user)->warned, "%s", message);
}

static inline void on_log(int level, const char *message, void *user) {
    (void)level;
    (void)user;
    if (getenv("DV_SHOW")) fprintf(stderr, "%s\n", message);
}

static inline void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    member *m = user;
    (void)from;
    m->states[to]++;
    if (to == DIVVY_RELEASE && !m->patient) divvy_partitioner_release_set(p);
}

static inline void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    member *m = user;
    (void)p;
    m->gained[event->reason] += event->gained_count;
    m->revoked[event->reason] += event->revoked_count;
    m->lost[event->reason] += event->lost_count;
    m->leaving += event->leaving_count;
    m->staying += event->staying_count;
    m->prepare += event->prepare_count;
}

/* Each message between a client and its server takes so long. */
static inline void pool_open_far(pool *l, size_t count, int64_t delay_min_ms, int64_t delay_max_ms) {
    *l = (pool){.count = count};
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.client_delay_min_ms = delay_min_ms;
    config.client_delay_max_ms = delay_max_ms;
    config.on_transaction = on_transaction;
    config.user = l;
    assert_int_equal(divvy_testing_ensemble_create(&l->ensemble, &config), 0);
    l->items = calloc(count, sizeof *l->items);
    for (size_t i = 0; i < count; i++) assert_true(asprintf(&l->items[i], "item-%05zu", i) > 0);
}

static inline void pool_open(pool *l, size_t count) {
    pool_open_far(l, count, 0, 1);
}

static inline void member_config(pool *l, divvy_partitioner_config *config) {
    *config = (divvy_partitioner_config)DIVVY_PARTITIONER_CONFIG_INIT;
    config->path = "/pool";
    config->items = (const char *const *)l->items;
    config->item_count = l->count;
    config->assign = DIVVY_ASSIGN_STICKY;
    config->time_boundary_ms = 100;
}

/* `config` NULL: member_config()'s. */
static inline member *add(pool *l, size_t n, const divvy_partitioner_config *config) {
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_partitioner_config own;
    if (config) own = *config;
    else member_config(l, &own);
    member *m = &l->members[n];
    *m = (member){.pool = l};
    client_config.manual = 1;
    client_config.on_warning = on_warning;
    client_config.on_log = on_log;
    client_config.user = m;
    assert_int_equal(divvy_testing_client_open(&m->client, l->ensemble, &client_config), 0);
    snprintf(m->identifier, sizeof m->identifier, "member-%zu", n);
    if (!own.identifier) own.identifier = m->identifier;
    own.on_state = on_state;
    own.on_items = on_items;
    own.user = m;
    int error = divvy_partitioner_create(&m->partitioner, m->client, &own);
    if (error) fprintf(stderr, "create: %s\n", divvy_client_error(m->client));
    assert_int_equal(error, 0);
    return m;
}

static inline void forget_client(member *m) {
    divvy_partitioner_destroy(m->partitioner);
    divvy_client_close(m->client);
    m->client = NULL;
}

/* Ends well: it leaves the party. */
static inline void finish(pool *l, size_t n) {
    member *m = &l->members[n];
    assert_int_equal(divvy_partitioner_finish(m->partitioner, 30000), 0);
    forget_client(m);
}

/* As by kill -9. */
static inline void crash(pool *l, size_t n) {
    member *m = &l->members[n];
    assert_int_equal(divvy_testing_crash_client(l->ensemble, m->client), 0);
    divvy_testing_expire(l->ensemble, m->client); /* without a leader it ends by itself, later */
    forget_client(m);
}

static inline void pool_close(pool *l) {
    for (size_t n = 0; n < MEMBERS_MAX; n++) {
        if (l->members[n].client) forget_client(&l->members[n]);
    }
    divvy_testing_ensemble_destroy(l->ensemble);
    for (size_t i = 0; i < l->count; i++) free(l->items[i]);
    free(l->items);
}

/* ---- who owns what ---- */

typedef struct {
    int *owners;     /* of each item: a member, or NOBODY */
    int64_t *tokens; /* of it */
    size_t owned, loads[MEMBERS_MAX];
} owners;

static inline int item_number(const char *name) {
    return atoi(strrchr(name, '-') + 1);
}

/* No item has two owners. */
static inline owners look(const pool *l) {
    owners o = {.owners = malloc(l->count * sizeof(int)), .tokens = calloc(l->count, sizeof(int64_t))};
    for (size_t i = 0; i < l->count; i++) o.owners[i] = NOBODY;
    for (size_t n = 0; n < MEMBERS_MAX; n++) {
        if (!l->members[n].client) continue;
        divvy_partition *share = divvy_partitioner_partition(l->members[n].partitioner);
        for (size_t k = 0; k < divvy_partition_count(share); k++) {
            if (divvy_partition_revoked(share, k)) continue;
            size_t i = (size_t)item_number(divvy_partition_item(share, k));
            assert_in_range(i, 0, l->count - 1);
            assert_int_equal(o.owners[i], NOBODY);
            o.owners[i] = (int)n;
            o.tokens[i] = divvy_partition_token(share, k);
            o.owned++;
            o.loads[n]++;
        }
        divvy_partition_unref(share);
    }
    return o;
}

static inline void owners_free(owners *o) {
    free(o->owners);
    free(o->tokens);
}

static inline size_t differences(const pool *l, const owners *before, const owners *after) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) count += before->owners[i] != after->owners[i];
    return count;
}

static inline size_t moved(const pool *l, const owners *before, const owners *after) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        bool same = before->owners[i] == after->owners[i];
        /* An item that stays was never unlocked. */
        if (same) assert_int_equal(before->tokens[i], after->tokens[i]);
        count += !same;
    }
    return count;
}

static inline bool all_acquired(const pool *l) {
    for (size_t n = 0; n < MEMBERS_MAX; n++) {
        if (l->members[n].client && divvy_partitioner_state(l->members[n].partitioner) != DIVVY_ACQUIRED) return false;
    }
    return true;
}

/* Lets time go on until all are ACQUIRED, own `owned` items together, and have done so for a second. How long it
 * took. */
static inline int64_t settle_owned(pool *l, size_t owned) {
    int64_t since = -1, begin = divvy_testing_now_ms(l->ensemble);
    for (int tries = 0; tries < 20000; tries++) {
        divvy_testing_run(l->ensemble, 10);
        int64_t now = divvy_testing_now_ms(l->ensemble);
        bool good = all_acquired(l);
        if (good && (since < 0 || now - since >= 1000)) {
            owners o = look(l);
            good = o.owned == owned;
            owners_free(&o);
        }
        if (!good) since = -1;
        else if (since < 0) since = now;
        else if (now - since >= 1000) return since - begin;
    }
    for (size_t n = 0; n < MEMBERS_MAX; n++) {
        if (!l->members[n].client) continue;
        divvy_partition *share = divvy_partitioner_partition(l->members[n].partitioner);
        fprintf(stderr, "member %zu: state %d, %zu items\n", n, divvy_partitioner_state(l->members[n].partitioner),
                divvy_partition_count(share));
        divvy_partition_unref(share);
    }
    fail_msg("the pool does not settle");
    return 0;
}

static inline int64_t settle(pool *l) {
    return settle_owned(l, l->count);
}

/* Nothing is left to do: in a minute no node is written. What notes say of the last moves may follow a moment later. */
static inline void assert_at_rest(pool *l) {
    divvy_testing_run(l->ensemble, 200);
    unsigned writes = l->writes;
    divvy_testing_run(l->ensemble, 60000);
    assert_int_equal(l->writes, writes);
}

#endif
