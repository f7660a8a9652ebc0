/* Tells the user of items and states: what is true when a call begins. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, P17. One callback stands in the client's queue while something differs from what the user was told
 * last. When its turn comes it tells the differences. So a slow user is told once, of nothing that has gone by then. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "base/crc32.h"
#include "partitioner/partitioner.h"

/* ---- items: docs/protocol.md, P17 ---- */

/* The news of an item that the user has yet to be told. */
typedef struct {
    bool lost, gained, revoked;
    bool leaving, staying, prepare;
} difference;

static difference compare(const dv_item *item, bool alive) {
    dv_item_stage stage = item->life.stage;
    bool revoked = stage == DV_STAGE_REVOKED, leaving = stage == DV_STAGE_LEAVING;
    int64_t told = item->told.token, now = alive && dv_item_shown(item) ? item->life.token : 0;
    bool lost = told && (now != told || (item->told.revoked && !revoked));
    bool works = item->partitioner->life != DV_LIFE_LEAVING, may_gain = now && !revoked && works;
    bool gained = may_gain && (!told || lost), known = now && !revoked && (gained || now == told);
    bool was_leaving = item->told.leaving && !lost, awaited = alive && stage == DV_STAGE_PREPARING;
    return (difference){.lost = lost || (item->told.prepare && !awaited && !now),
                        .gained = gained,
                        .revoked = now && now == told && revoked && !item->told.revoked,
                        .leaving = known && leaving && !was_leaving,
                        .staying = known && !leaving && was_leaving && works,
                        .prepare = awaited && !item->told.prepare && !now && (!told || lost)};
}

static bool is_any(difference d) {
    return d.lost || d.gained || d.revoked || d.leaving || d.staying || d.prepare;
}

static void take_from_due(divvy_partitioner *p, dv_item *item) {
    assert(item->told.link);
    *item->told.link = item->told.next_due;
    if (item->told.next_due) item->told.next_due->told.link = item->told.link;
    else p->telling.due_end = item->told.link;
    item->told.link = NULL;
    item->told.next_due = NULL;
}

void dv_report_forget(dv_item *item) {
    if (item->told.link) take_from_due(item->partitioner, item);
}

/* Past the deadline nothing is owned, told or not. Items of a closed client have been given another reason. */
static int reason_of(const dv_item *item, bool alive) {
    bool passed = !alive && item->partitioner->object.client->life < DV_CLIENT_CLOSED;
    return passed ? DIVVY_REASON_SESSION : item->told.reason;
}

/* Counts what is told with the first item that is due, by its reason, and lets those go that differ no longer. */
static void count_next(divvy_partitioner *p, bool alive, divvy_items_event *event) {
    *event = (divvy_items_event){.reason = -1, .generation = p->generation};
    for (dv_item *item = p->telling.due, *next; item; item = next) {
        next = item->told.next_due;
        difference d = compare(item, alive);
        if (!is_any(d)) {
            take_from_due(p, item);
            dv_items_prune(item);
            continue;
        }
        if (event->reason < 0) event->reason = reason_of(item, alive);
        if (event->reason != reason_of(item, alive)) continue;
        event->lost_count += d.lost;
        event->gained_count += d.gained;
        event->revoked_count += d.revoked;
        event->leaving_count += d.leaving;
        event->staying_count += d.staying;
        event->prepare_count += d.prepare;
    }
}

/* The lists of a call on its way: where the next name goes in each. */
typedef struct {
    const char **lost, **gained, **revoked, **leaving, **staying, **prepare;
    int64_t *tokens;
} lists;

static void add(lists *to, dv_item *item, difference d) {
    assert(is_any(d));
    const char *name = dv_item_name(item->partitioner, item->index);
    if (d.lost) *to->lost++ = name;
    if (d.gained) *to->gained++ = name;
    if (d.gained) *to->tokens++ = item->life.token;
    if (d.revoked) *to->revoked++ = name;
    if (d.leaving) *to->leaving++ = name;
    if (d.staying) *to->staying++ = name;
    if (d.prepare) *to->prepare++ = name;
    if (d.lost) item->told.token = 0;
    if (d.gained) item->told.token = item->life.token;
    item->told.revoked = d.revoked;
    if (d.lost || d.revoked || d.staying) item->told.leaving = false;
    if (d.leaving) item->told.leaving = true;
    if (d.lost || d.gained) item->told.prepare = false;
    if (d.prepare) item->told.prepare = true;
}

static void fill(divvy_partitioner *p, bool alive, lists to) {
    int reason = p->telling.event.reason;
    for (dv_item *item = p->telling.due, *next; item; item = next) {
        next = item->told.next_due;
        if (reason_of(item, alive) != reason) continue;
        add(&to, item, compare(item, alive));
        take_from_due(p, item);
        dv_items_prune(item);
    }
}

static void free_lists(dv_telling *t) {
    dv_names_unref(t->names);
    free((void *)t->texts);
    free(t->tokens);
    t->names = NULL;
    t->texts = NULL;
    t->tokens = NULL;
}

/* P17: makes the next call of on_items. Returns false when nothing is to be told, or there is no memory for it now. */
static bool prepare_items(divvy_partitioner *p) {
    dv_telling *t = &p->telling;
    if (!t->due) return false;
    bool alive = dv_client_alive_at(p->object.client, dv_client_now(p->object.client));
    count_next(p, alive, &t->event);
    size_t total = t->event.lost_count + t->event.gained_count + t->event.revoked_count + t->event.leaving_count +
                   t->event.staying_count + t->event.prepare_count;
    if (total == 0) return false;
    free_lists(t);
    t->texts = (const char **)(uintptr_t)calloc(total, sizeof *t->texts);
    t->tokens = calloc(t->event.gained_count + 1, sizeof *t->tokens);
    if (!t->texts || !t->tokens) {
        dv_client_again(p->object.client);
        return false;
    }
    dv_client_log(p->object.client, DIVVY_LOG_DEBUG, "%s: member %s: %zu lost, %zu gained, %zu revoked: %s", p->path,
                  p->identifier, t->event.lost_count, t->event.gained_count, t->event.revoked_count,
                  divvy_reason_name(t->event.reason));
    t->names = dv_items_of(p)->names;
    atomic_fetch_add(&t->names->refs, 1);
    lists to = {.lost = t->texts, .tokens = t->tokens};
    to.gained = to.lost + t->event.lost_count;
    to.revoked = to.gained + t->event.gained_count;
    t->event.lost = to.lost;
    t->event.gained = to.gained;
    t->event.revoked = to.revoked;
    t->event.leaving = to.leaving = to.revoked + t->event.revoked_count;
    t->event.staying = to.staying = to.leaving + t->event.leaving_count;
    t->event.prepare = to.prepare = to.staying + t->event.staying_count;
    t->event.gained_tokens = t->tokens;
    fill(p, alive, to);
    return true;
}

/* ---- states: docs/protocol.md, P17 ---- */

/* Adds a state, and cuts those that came and went: at most 4 are left. A RELEASE comes behind what it revokes. */
static void add_state(dv_telling *t, divvy_partition_state state, uint64_t id) {
    size_t i = 0;
    while (i < t->state_count && t->states[i].state != state) i++;
    bool was_due = i < t->state_count, is_told = t->told_state == state;
    if (was_due) t->state_count = state == DIVVY_RELEASE ? i : i + 1;
    else if (is_told) t->state_count = 0;
    if ((was_due || is_told) && state != DIVVY_RELEASE) return;
    assert(t->state_count < sizeof t->states / sizeof *t->states);
    t->states[t->state_count].state = state;
    t->states[t->state_count++].id = id;
}

void dv_report_told(divvy_partitioner *p, uint64_t state_id) {
    if (state_id > p->told_id) p->told_id = state_id;
    assert(p->told_id <= p->state_id);
}

static bool prepare_state(divvy_partitioner *p) {
    dv_telling *t = &p->telling;
    if (t->state_count == 0) return false;
    t->from = t->told_state;
    assert(t->told_state != t->states[0].state || t->told_state == DIVVY_RELEASE);
    t->told_state = t->states[0].state;
    dv_report_told(p, t->states[0].id);
    t->state_count--;
    memmove(t->states, t->states + 1, t->state_count * sizeof *t->states);
    return true;
}

/* ---- the calls ---- */

/* P6: items come first, so a user who is told of a RELEASE knows what it revokes. */
static bool prepare(divvy_partitioner *p) {
    dv_telling *t = &p->telling;
    t->of_items = prepare_items(p);
    if (t->of_items && !t->due && p->config.on_items) dv_report_told(p, p->state_id);
    t->ready = t->of_items || (!t->due && prepare_state(p));
    return t->ready;
}

static void starting(dv_callback *callback) {
    divvy_partitioner *p = DV_CONTAINER(callback, divvy_partitioner, telling.callback);
    assert(p->telling.queued);
    p->telling.queued = false;
    prepare(p);
}

static void queue(divvy_partitioner *p);

/* Returns whether no callback is to start now: the client is about to be closed, and tells what is due when it is. */
static bool must_stop(const divvy_client *client) {
    return client->life < DV_CLIENT_CLOSED && (client->close_in_callback || client->life == DV_CLIENT_STOPPING);
}

/* After a call: whether another one follows at once. */
static bool go_on(divvy_partitioner *p, bool more) {
    divvy_client *client = p->object.client;
    dv_client_lock(client);
    more = more && !must_stop(client);
    bool going = more && !p->object.destroyed && prepare(p);
    if (!more && !p->object.destroyed && (p->telling.due || p->telling.state_count)) queue(p);
    dv_client_unlock(client);
    return going;
}

/* Calls the user. All that came about before the first call fits one call for each reason, and four for states. */
static void call_user(dv_callback *callback) {
    enum { CALLS_MAX = DIVVY_REASON_LOAD + 1 + 4 };
    divvy_partitioner *p = DV_CONTAINER(callback, divvy_partitioner, telling.callback);
    dv_telling *t = &p->telling;
    for (int i = 1; t->ready; i++) {
        if (!t->of_items) p->config.on_state(p, t->from, t->told_state, p->config.user);
        else if (p->config.on_items) p->config.on_items(p, &t->event, p->config.user);
        t->ready = go_on(p, i < CALLS_MAX);
    }
}

static void release_call(dv_callback *callback) {
    divvy_partitioner *p = DV_CONTAINER(callback, divvy_partitioner, telling.callback);
    free_lists(&p->telling);
}

static void queue(divvy_partitioner *p) {
    if (p->telling.queued) return;
    p->telling.queued = true;
    dv_callback_queue(p->object.client, &p->telling.callback);
}

void dv_report_flush(divvy_partitioner *p) {
    if (p->telling.due) queue(p);
}

void dv_report_item(dv_item *item, int reason) {
    divvy_partitioner *p = item->partitioner;
    item->told.reason = reason;
    /* Where nobody listens nothing is noted. The log tells of items, too. */
    bool is_heard = p->config.on_items || p->object.client->config.on_log;
    if (!is_heard || item->told.link) return;
    item->told.link = p->telling.due_end;
    *p->telling.due_end = item;
    p->telling.due_end = &item->told.next_due;
}

/* P8: the state is FAILURE after a finish too, as kazoo's is. A log says what it means. */
static void log_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to) {
    bool finished = dv_partitioner_finished(p), failed = to == DIVVY_FAILURE && !finished;
    dv_client_log(p->object.client, DIVVY_LOG_INFO, "%s: member %s: %s -> %s%s%s", p->path, p->identifier,
                  divvy_partition_state_name(from), finished ? "finished" : divvy_partition_state_name(to),
                  failed ? ": " : "", failed ? p->failure_text : "");
}

void dv_report_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to) {
    log_state(p, from, to);
    dv_report_flush(p);
    if (!p->config.on_state) return;
    add_state(&p->telling, to, p->state_id);
    queue(p);
}

/* ---- gains, told together when many come at once ---- */

static void on_report(dv_event *event, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(event, divvy_partitioner, report);
    event->run = NULL;
    dv_report_flush(p);
    dv_op_end(p, now);
}

/* Events that wait in the queue may gain something, too, which is told with this one. */
void dv_report_gain(dv_item *item) {
    assert(dv_item_owned(item));
    divvy_partitioner *p = item->partitioner;
    dv_report_item(item, p->target_reason);
    if (item->told.link) dv_op_post(p, &p->report, on_report);
}

void dv_report_init(divvy_partitioner *p) {
    p->telling.due_end = &p->telling.due;
    p->told_id = p->state_id;
    p->telling.callback =
        (dv_callback){.object = &p->object, .starting = starting, .call = call_user, .release = release_call};
}

/* ---- warnings ---- */

void dv_report_warn_once(divvy_partitioner *p, int code, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    uint32_t crc = dv_crc32(0, text, strlen(text));
    if (p->said_crc[code] == crc) return;
    p->said_crc[code] = crc;
    dv_client_warn(p->object.client, code, "%s", text);
}
