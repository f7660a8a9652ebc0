/* Roll watch: docs/protocol.md, W18 to W21. SPDX-License-Identifier: Apache-2.0
 *
 * Three ways to learn of the party: it lists, as every member does at first; it listens, and settles on what the roll
 * leads to; or it stands in, that is, lists since it has waited in vain for a roll. */
#include "plan/roll_watch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "plan/roll.h"
#include "plan/roll_pen.h"

enum {
    WAIT_MS = 5000, /* W20: longer than the boundary */
    WAIT_PLACE_MS = 20,
    TURN_PLACE_MS = 100, /* W19 */
    TURN_PLACES = 10,
    LIST_SPREAD_MS = 2000,
};

struct dv_roll_watch {
    divvy_client *client;
    const char *path;
    const dv_roll_watch_events *events;
    void *owner;
    dv_patient_watch *patient; /* NULL: it has gone */
    bool is_stopped;
    unsigned under_way; /* a get, and calls that stand in the watch */

    dv_roll_role role;
    bool listens, stands_in;
    bool has_just_waited; /* in vain: the party that settles next is written at once */
    bool was_large;       /* the party that settled before */
    dv_watch watch;       /* of the roll */
    bool is_reading, is_taking;
    bool is_late;  /* the roll changed before the answer about it was taken */
    int64_t mzxid; /* of what was read last; -1: nothing */
    dv_roll_pen pen;
};

static void read_roll(dv_roll_watch *w);

static void end_if_idle(dv_roll_watch *w, int64_t now) {
    if (w->patient || w->under_way || w->pen.is_under_way) return;
    dv_znode_unwatch(w->client->znode, &w->watch);
    dv_roll_pen_stop(&w->pen);
    w->events->watch.gone(w->owner, now);
    free(w);
}

static bool is_over(const dv_roll_watch *w) {
    return w->is_stopped || !w->patient;
}

static dv_roll_party told(const dv_roll_watch *w) {
    dv_roll_party party = {NULL, 0, -1};
    if (w->patient) dv_patient_watch_told(w->patient, &party.names, &party.count, &party.pzxid);
    return party;
}

/* ---- who lists: W18 ---- */

static bool is_lookout(const dv_roll_watch *w) {
    return w->role.is_in_row && w->role.place < w->client->lookouts;
}

static bool is_large(const dv_roll_watch *w, size_t count) {
    return count >= w->client->listen_from;
}

static bool can_listen(const dv_roll_watch *w) {
    return w->role.is_in_row && w->role.may_listen && !is_lookout(w) && is_large(w, told(w).count);
}

static void begin_to_listen(dv_roll_watch *w, int64_t now) {
    w->listens = true;
    w->stands_in = w->has_just_waited = false;
    dv_patient_watch_turn(w->patient, now);
}

static void list(dv_roll_watch *w, int64_t now) {
    bool listened = w->listens;
    w->listens = w->stands_in = w->has_just_waited = false;
    dv_znode_unwatch(w->client->znode, &w->watch);
    if (listened) dv_patient_watch_turn(w->patient, now);
}

static int64_t on_defers_ms(void *context) {
    const dv_roll_watch *w = context;
    return w->listens ? WAIT_MS + (int64_t)w->role.place * WAIT_PLACE_MS : -1;
}

static void on_waited(void *context, int64_t now) {
    dv_roll_watch *w = context;
    (void)now;
    dv_client_log(w->client, DIVVY_LOG_INFO, "%s: no roll was written of its last change: lists the party", w->path);
    w->listens = false;
    w->stands_in = w->has_just_waited = true;
}

/* ---- when a party has settled ---- */

/* W19: when ours is the turn to write the roll. */
static int64_t turn_ms(const dv_roll_watch *w) {
    if (w->has_just_waited) return 0;
    return (int64_t)(w->role.place < TURN_PLACES ? w->role.place : TURN_PLACES) * TURN_PLACE_MS;
}

static void go_by_role(dv_roll_watch *w, int64_t now) {
    if (!can_listen(w)) list(w, now);
    else if (!w->is_taking) read_roll(w);
}

static void on_replaced(void *context, char **names, size_t count, int64_t pzxid) {
    dv_roll_watch *w = context;
    w->was_large = is_large(w, count);
    dv_roll_pen_keep(&w->pen, names, count, pzxid);
}

static void on_settled(void *context, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    dv_roll_watch *w = context;
    bool concerns_listeners = w->was_large || is_large(w, count);
    w->under_way++;
    w->events->watch.settled(w->owner, names, count, pzxid, now);
    w->under_way--;
    if (is_over(w)) return;
    w->role = w->events->role(w->owner);
    bool writes = concerns_listeners && told(w).pzxid == pzxid && (is_lookout(w) || w->stands_in);
    if (writes) dv_roll_pen_write(&w->pen, now + turn_ms(w), now);
    else dv_roll_pen_forget(&w->pen);
    w->has_just_waited = w->was_large = false;
    go_by_role(w, now);
}

/* ---- the roll ---- */

/* W20: settles on what the roll leads to. */
static void follow(dv_roll_watch *w, const dv_roll *roll, int64_t now) {
    const dv_roll_party from = told(w);
    char **names;
    int error = dv_roll_follow(roll, &from, &names);
    if (error == 0) {
        dv_patient_watch_learn(w->patient, names, roll->count, roll->pzxid, now);
        return;
    }
    if (error == DIVVY_EPROTO)
        dv_client_log(w->client, DIVVY_LOG_WARN, "%s: its roll does not lead to the names that it was made from",
                      w->path);
    if (!w->listens) return;
    int64_t spread_ms = (int64_t)w->role.place < LIST_SPREAD_MS ? (int64_t)w->role.place : LIST_SPREAD_MS;
    w->listens = false;
    dv_patient_watch_vouch(w->patient, roll->pzxid, now + spread_ms);
}

static void take_roll(dv_roll_watch *w, const dv_roll *roll, int64_t now) {
    if (roll->pzxid > told(w).pzxid) follow(w, roll, now);
    if (is_over(w) || w->listens || roll->pzxid != told(w).pzxid || !can_listen(w)) return;
    /* One that stands in goes on until a lookout writes, so that the wait is paid once. */
    if (!w->stands_in || roll->place < w->client->lookouts) begin_to_listen(w, now);
}

static void take(dv_roll_watch *w, const dv_reply *reply, int64_t now) {
    dv_roll roll;
    int error = dv_roll_parse(&roll, reply->data, reply->data_bytes, NULL);
    w->is_taking = true;
    w->mzxid = error == DIVVY_ENOMEM ? -1 : reply->stat->mzxid;
    dv_patient_watch_note(w->patient, reply->stat, now);
    /* A roll that is ahead of the party was written in another ensemble. */
    if (error == 0 && !is_over(w) && roll.pzxid <= reply->stat->pzxid) take_roll(w, &roll, now);
    if (error == 0) dv_roll_clear(&roll);
    w->is_taking = false;
}

static void on_read(void *context, const dv_reply *reply, int64_t now) {
    dv_roll_watch *w = context;
    assert(w->is_reading && w->under_way > 0);
    bool is_late = w->is_late;
    w->is_reading = w->is_late = false;
    if (is_over(w) || !can_listen(w)) dv_znode_unwatch(w->client->znode, &w->watch);
    else if (reply->error == 0) take(w, reply, now);
    else if (dv_outcome_unknown(reply->error)) w->mzxid = -1;
    else list(w, now); /* It finds out what is wrong. */
    if (is_late && !is_over(w) && can_listen(w)) read_roll(w);
    w->under_way--;
    end_if_idle(w, now);
}

static void on_changed(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    dv_roll_watch *w = DV_CONTAINER(watch, dv_roll_watch, watch);
    (void)kind, (void)now;
    assert(is_over(w) || can_listen(w)); /* list() takes the watch back */
    if (w->is_reading) w->is_late = true;
    else if (!is_over(w)) read_roll(w);
}

static void read_roll(dv_roll_watch *w) {
    if (w->is_reading || !dv_client_connected(w->client)) return;
    w->watch.fired = on_changed;
    if (dv_znode_get(w->client->znode, w->path, &w->watch, on_read, w) != 0) {
        w->mzxid = -1; /* The next answer of the patient watch asks again. */
        return;
    }
    w->is_reading = true;
    w->under_way++;
}

/* W21: its mzxid tells whether somebody has written the roll since. */
static bool on_asked(void *context, const dv_stat *stat, int64_t now) {
    dv_roll_watch *w = context;
    if (is_over(w)) return false;
    dv_roll_pen_go_on(&w->pen, now);
    if (can_listen(w) && stat->mzxid != w->mzxid) read_roll(w);
    return w->is_reading;
}

/* ---- its life ---- */

static void on_change(void *context, int64_t now) {
    dv_roll_watch *w = context;
    if (w->events->watch.changed && !w->is_stopped) w->events->watch.changed(w->owner, now);
}

static void on_failed(void *context, int error, int64_t now) {
    dv_roll_watch *w = context;
    w->events->watch.failed(w->owner, error, now);
}

static void on_gone(void *context, int64_t now) {
    dv_roll_watch *w = context;
    w->patient = NULL;
    dv_roll_pen_stop(&w->pen);
    end_if_idle(w, now);
}

static bool on_needs_names(void *context) {
    const dv_roll_watch *w = context;
    return w->events->watch.needs_names && w->events->watch.needs_names(w->owner);
}

static void on_seen(void *context, const char *const *names, size_t count, int64_t now) {
    dv_roll_watch *w = context;
    if (w->events->watch.seen && !w->is_stopped) w->events->watch.seen(w->owner, names, count, now);
}

static dv_roll_party on_party(void *context, size_t *place) {
    const dv_roll_watch *w = context;
    *place = w->role.is_in_row ? w->role.place : SIZE_MAX;
    return told(w);
}

static void on_pen_ended(void *context, int64_t now) {
    end_if_idle(context, now);
}

dv_roll_watch *dv_roll_watch_start(divvy_client *client, const char *path, const dv_patience *patience,
                                   const dv_roll_watch_events *events, void *owner) {
    static const dv_patient_watch_events patient = {on_change, on_settled,   on_failed, on_gone,   on_needs_names,
                                                    on_seen,   on_defers_ms, on_asked,  on_waited, on_replaced};
    static const dv_roll_pen_events pen = {on_party, on_pen_ended};
    dv_roll_watch *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    *w = (dv_roll_watch){.client = client, .path = path, .events = events, .owner = owner, .mzxid = -1};
    dv_roll_pen_init(&w->pen, client, path, &pen, w);
    w->patient = dv_patient_watch_start(client, path, patience, &patient, w);
    if (w->patient) return w;
    free(w);
    return NULL;
}

void dv_roll_watch_stop(dv_roll_watch *w) {
    w->is_stopped = true;
    dv_roll_pen_stop(&w->pen);
    if (w->patient) dv_patient_watch_stop(w->patient);
}

void dv_roll_watch_look(dv_roll_watch *w, int64_t now) {
    if (is_over(w) || told(w).pzxid < 0) return;
    w->role = w->events->role(w->owner);
    if (!can_listen(w)) list(w, now);
    else if (!w->listens) read_roll(w);
}

bool dv_roll_watch_listens(const dv_roll_watch *w) {
    return w->listens;
}

bool dv_roll_watch_stands_in(const dv_roll_watch *w) {
    return w->stands_in;
}
