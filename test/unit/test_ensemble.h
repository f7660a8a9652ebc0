/* Bare users of the in-memory ensemble: operations of the seam on a client, and what became of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ENSEMBLE_H
#define DV_TEST_ENSEMBLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "testing/ensemble.h"
#include "wait.h"

#define NOT_YET 1 /* an error that is none */

/* The result of one operation. */
typedef struct {
    int error;
    int64_t at; /* of the ensemble's clock */
    char path[256], data[256];
    dv_stat stat;
    size_t count; /* of children, or of a multi's replies */
    int errors[8];
    char paths[8][256];
    divvy_testing_ensemble *ensemble;
} outcome;

typedef struct {
    dv_watch watch; /* first */
    int fired;
    dv_watch_kind kind;
    int64_t at;
    divvy_testing_ensemble *ensemble;
} seen_watch;

static inline void on_reply(void *context, const dv_reply *reply, int64_t now) {
    outcome *o = context;
    (void)now;
    assert_int_equal(o->error, NOT_YET);
    o->error = reply->error;
    o->at = o->ensemble->now;
    if (reply->path) snprintf(o->path, sizeof o->path, "%s", reply->path);
    if (reply->stat) o->stat = *reply->stat;
    if (reply->data && reply->data_bytes < sizeof o->data) memcpy(o->data, reply->data, reply->data_bytes);
    o->count = reply->child_count;
    for (size_t i = 0; i < reply->child_count && i < 8; i++)
        snprintf(o->paths[i], sizeof o->paths[i], "%s", reply->children[i]);
}

static inline void on_multi_reply(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    outcome *o = context;
    (void)now;
    assert_int_equal(o->error, NOT_YET);
    o->error = error;
    o->at = o->ensemble->now;
    o->count = count;
    for (size_t i = 0; i < count && i < 8; i++) {
        o->errors[i] = replies[i].error;
        if (replies[i].stat) o->stat = *replies[i].stat;
        if (replies[i].path) snprintf(o->paths[i], sizeof o->paths[i], "%s", replies[i].path);
    }
}

static inline void on_watch(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    seen_watch *w = (seen_watch *)(void *)watch;
    (void)now;
    w->fired++;
    w->kind = kind;
    w->at = w->ensemble->now;
}

static inline void watch_init(divvy_testing_ensemble *e, seen_watch *w) {
    *w = (seen_watch){.watch.fired = on_watch, .ensemble = e};
}

static inline divvy_testing_ensemble *ensemble_of(const divvy_client *client) {
    return ((dv_mem_client *)(void *)client->znode)->mem;
}

/* Sends an operation; the outcome is filled in later. */
static inline void ask_op(divvy_client *client, outcome *o, dv_op op, seen_watch *watch) {
    *o = (outcome){.error = NOT_YET, .ensemble = ensemble_of(client)};
    dv_client_lock(client);
    assert_int_equal(client->znode->backend->submit(client->znode, &op, watch ? &watch->watch : NULL, on_reply, o), 0);
    dv_client_unlock(client);
    assert_int_equal(o->error, NOT_YET); /* never inside the call */
}

static inline void ask_multi(divvy_client *client, outcome *o, const dv_op *ops, size_t count) {
    *o = (outcome){.error = NOT_YET, .ensemble = ensemble_of(client)};
    dv_client_lock(client);
    assert_int_equal(dv_znode_multi(client->znode, ops, count, on_multi_reply, o), 0);
    dv_client_unlock(client);
}

/* Lets time go on until it is answered. The error. */
static inline int await(outcome *o) {
    int64_t until = o->ensemble->now + 600000;
    while (o->error == NOT_YET && divvy_testing_step(o->ensemble, until) == 1) continue;
    assert_int_not_equal(o->error, NOT_YET);
    return o->error;
}

static inline dv_op op_create(const char *path, const char *data, int mode) {
    return (dv_op){.kind = DV_CREATE, .path = path, .data = data, .data_bytes = strlen(data), .mode = mode};
}
static inline dv_op op_of(dv_kind kind, const char *path) {
    return (dv_op){.kind = kind, .path = path, .version = -1};
}
static inline dv_op op_set(const char *path, const char *data, int32_t version) {
    return (dv_op){.kind = DV_SET, .path = path, .data = data, .data_bytes = strlen(data), .version = version};
}

static inline int do_op(divvy_client *client, outcome *o, dv_op op) {
    ask_op(client, o, op, NULL);
    return await(o);
}
static inline int do_create(divvy_client *client, const char *path, int mode) {
    outcome o;
    return do_op(client, &o, op_create(path, "", mode));
}

/* An ensemble without delays, unless the test wants some, and clients on it. */
static inline divvy_testing_ensemble *open_ensemble(const divvy_testing_config *config) {
    divvy_testing_config exact = DIVVY_TESTING_CONFIG_INIT;
    exact.client_delay_max_ms = exact.server_delay_max_ms = 0;
    divvy_testing_ensemble *e;
    assert_int_equal(divvy_testing_ensemble_create(&e, config ? config : &exact), 0);
    return e;
}

/* After a test that failed its clients are still there. */
static inline void close_ensemble(divvy_testing_ensemble *e) {
    if (!e->clients) divvy_testing_ensemble_destroy(e);
}

static inline divvy_client *open_client_with(divvy_testing_ensemble *e, divvy_client_config config, int server) {
    divvy_client *client;
    config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&client, e, &config), 0);
    assert_int_equal(divvy_testing_prefer(e, client, server), 0);
    assert_int_equal(divvy_client_wait_connected(client, 60000), 0);
    return client;
}

static inline divvy_client *open_client(divvy_testing_ensemble *e, int64_t timeout_ms, int server) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = timeout_ms;
    config.ensemble_tick_ms = 2000;
    return open_client_with(e, config, server);
}

/* Takes the session clock of our own away: what is left is what the native library makes of a client. To be called
 * again after each answer, which sets the clock again. */
static inline void silence_clock(divvy_client *c) {
    dv_timer_cancel(&c->beat_timer);
    dv_timer_cancel(&c->deadline_timer);
}

static inline int a_follower(const divvy_testing_ensemble *e) {
    return (divvy_testing_leader(e) + 1) % 3;
}
static inline int other_follower(const divvy_testing_ensemble *e) {
    return (divvy_testing_leader(e) + 2) % 3;
}

#endif
