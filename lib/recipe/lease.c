/* Lease: some slots of a semaphore's pool, from the queue for them to their end. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/lease.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/admission.h"
#include "recipe/record.h"
#include "znode/ensure.h"
#include "znode/path.h"

enum { AUDIT_LEAST_MS = 500 };

static dv_lease *of_node(dv_node *node) {
    return DV_CONTAINER(node, dv_lease, node);
}

/* From which stages each is entered. */
void dv_lease_enter_stage(dv_lease *l, dv_lease_stage to) {
    enum { READ = 1u << DV_LEASE_QUEUED | 1u << DV_LEASE_READING }; /* queued: the list was asked for on entering */
    static const unsigned from[] = {
        [DV_LEASE_ENSURING] = 1u << DV_LEASE_ENSURING,
        [DV_LEASE_QUEUED] = 1u << DV_LEASE_ENSURING,
        [DV_LEASE_READING] = READ | 1u << DV_LEASE_FULL | 1u << DV_LEASE_SETTING,
        [DV_LEASE_FULL] = READ,
        [DV_LEASE_SETTING] = READ,
    };
    assert(l->node.stage == DV_NODE_UNMADE);
    assert(from[to] & 1u << l->stage);
    (void)from;
    l->stage = to;
}

/* ---- leaving: docs/protocol.md, Q6 ---- */

static void on_leaving(dv_node *node) {
    dv_lease *l = of_node(node);
    dv_timer_cancel(&l->audit_timer);
    dv_admission_unwatch(l);
    if (l->place && !l->place_over) dv_contender_leave(l->place);
    l->place_over = true;
}

void dv_lease_leave(dv_lease *l) {
    assert(!l->node.leave_wanted);
    dv_node_leave(&l->node);
}

static void on_failed(dv_node *node, int error, int64_t now) {
    dv_lease *l = of_node(node);
    l->events->failed(l->owner, l, error, now);
}

void dv_lease_fail_because(dv_lease *l, int error, int64_t now, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->reason, sizeof l->reason, format, arguments);
    va_end(arguments);
    dv_node_fail(&l->node, error, now);
}

/* ---- holding: docs/protocol.md, K6 ---- */

static void verify(dv_lease *l) {
    if (dv_client_connected(l->node.client)) dv_node_verify(&l->node);
}

static void on_missing(dv_node *node, int64_t now) {
    (void)now;
    verify(of_node(node));
}

/* A heartbeat asks for the oldest node of the session only, so each lease asks for its own as well. */
static void set_audit(dv_lease *l, int64_t now) {
    int64_t interval_ms = atomic_load(&l->node.client->timeout_ms) / 2;
    if (interval_ms < AUDIT_LEAST_MS) interval_ms = AUDIT_LEAST_MS;
    dv_timer_set(l->node.client, &l->audit_timer, now + interval_ms);
}

static void on_audit(dv_timer *timer, int64_t now) {
    dv_lease *l = DV_CONTAINER(timer, dv_lease, audit_timer);
    if (l->node.stage != DV_NODE_THERE) {
        dv_admission_doubt(l, now);
        return;
    }
    verify(l);
    set_audit(l, now);
}

void dv_lease_hold(dv_lease *l, int64_t now) {
    if (!dv_node_made(&l->node, l->token)) return;
    dv_node_unwatch(&l->node);
    set_audit(l, now);
    l->events->admitted(l->owner, l, now);
}

/* ---- the place in the queue ---- */

void dv_lease_place_consumed(dv_lease *l) {
    if (l->place && !l->place_over) dv_contender_consumed(l->place);
    l->place_over = true;
}

static void on_first(void *owner, dv_contender *place, int64_t now) {
    dv_lease *l = owner;
    (void)place;
    l->first = true;
    assert(dv_lease_is(l, DV_LEASE_QUEUED));
    if (!l->early_list) dv_admission_read(l, false, now);
}

static void on_waits(void *owner, dv_contender *place, int64_t now) {
    dv_lease *l = owner;
    (void)place;
    if (!l->node.leave_wanted) l->events->waits(l->owner, l, now);
}

/* The queue's directory is missing, or somebody has deleted our node; while the transaction is in doubt it may itself
 * have done so, and what becomes of that decides. */
static void on_place_failed(void *owner, dv_contender *place, int error, int64_t now) {
    dv_lease *l = owner;
    assert(l->place == place && !l->place_over);
    (void)place;
    l->place_over = true;
    if (l->node.stage == DV_NODE_UNMADE) dv_node_fail(&l->node, error, now);
}

static void on_place_gone(void *owner, dv_contender *place, int64_t now) {
    dv_lease *l = owner;
    assert(l->place == place);
    (void)place;
    l->place = NULL;
    l->place_over = true;
    dv_node_other_ended(&l->node, now);
}

/* A place of ours in the queue, at the most. */
static size_t place_cost(const dv_pool *pool) {
    enum { SLASH_MARKER_AND_SEQUENCE_BYTES = 1 + 8 + 11 };
    return dv_path_cost(pool->queue) + DV_GUID_BYTES + SLASH_MARKER_AND_SEQUENCE_BYTES;
}

static int queue_up(dv_lease *l) {
    static const dv_contender_events events = {on_first, on_place_failed, on_place_gone};
    assert(!l->place && l->node.watch_cost >= place_cost(l->pool));
    dv_release_watch(l->node.client, place_cost(l->pool)); /* The place reserves what it needs of that itself. */
    l->node.watch_cost -= place_cost(l->pool);
    int error =
        dv_contender_enter(&l->place, l->node.client, l->pool->queue, &dv_exclusive_queue, l->record, &events, l);
    if (error) return error;
    l->node.others++;
    dv_contender_tell_waits(l->place, on_waits);
    dv_lease_enter_stage(l, DV_LEASE_QUEUED);
    dv_admission_read_early(l);
    return 0;
}

/* ---- entering: docs/protocol.md, E1 ---- */

static void on_ensured(void *context, int error, int64_t now) {
    dv_lease *l = context;
    assert(l->ensures_to_come > 0);
    l->ensures_to_come--;
    if (error && !l->ensure_error) l->ensure_error = error;
    if (!dv_node_replied(&l->node, error, now) || l->ensures_to_come) return;
    error = l->ensure_error ? l->ensure_error : queue_up(l);
    if (error) dv_node_fail(&l->node, error, now);
}

static int ensure_paths(dv_lease *l) {
    const char *const paths[] = {l->pool->path, l->pool->queue};
    dv_lease_enter_stage(l, DV_LEASE_ENSURING);
    assert(l->ensures_to_come == 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (dv_ensure_path(l->node.client->znode, paths[i], l->pool->mode, on_ensured, l) == 0) {
            l->ensures_to_come++;
            l->node.under_way++;
        } else {
            l->ensure_error = DIVVY_ENOMEM;
        }
    }
    return l->node.under_way ? 0 : DIVVY_ENOMEM;
}

/* ---- its life ---- */

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    dv_lease *l = of_node(node);
    if (event == DV_SESSION_OVER || event == DV_SESSION_CLOSED) dv_admission_unwatch(l);
    if (event != DV_SESSION_CONNECTED) return;
    bool at_head = dv_lease_is(l, DV_LEASE_READING) || dv_lease_is(l, DV_LEASE_FULL);
    if (at_head) dv_admission_read(l, false, now); /* A watch may have been missed. */
    else verify(l);
}

static void free_lease(dv_lease *l) {
    free(l->record);
    free(l->data);
    free(l->place_path);
    free(l);
}

static void on_gone(dv_node *node, int64_t now) {
    dv_lease *l = of_node(node);
    dv_timer_cancel(&l->audit_timer);
    dv_admission_unwatch(l);
    l->events->gone(l->owner, l, now);
    free_lease(l);
}

static size_t node_cost(const dv_pool *pool) {
    enum { SLASH_AND_FEW_TAGS_BYTES = 1 + 28 };
    return dv_path_cost(pool->path) + DV_GUID_BYTES + (pool->count > 1 ? DV_SLOT_TAGS_BYTES : SLASH_AND_FEW_TAGS_BYTES);
}

int dv_lease_enter(dv_lease **out, divvy_client *client, dv_pool *pool, bool ensure, const dv_lease_events *events,
                   void *owner) {
    static const dv_node_kind kind = {.found = dv_admission_found,
                                      .not_found = dv_admission_not_found,
                                      .missing = on_missing,
                                      .hear = hear,
                                      .leaving = on_leaving,
                                      .failed = on_failed,
                                      .gone = on_gone};
    *out = NULL;
    dv_lease *l = calloc(1, sizeof *l);
    if (!l) return DIVVY_ENOMEM;
    *l = (dv_lease){.events = events, .owner = owner, .pool = pool, .audit_timer.fire = on_audit};
    l->node = (dv_node){.client = client, .kind = &kind, .directory = pool->path, .suffix = l->tags};
    /* The place's watch too: what is reserved in two steps, and given back as the second lacks room, is found
     * free and tried again without end. */
    size_t watch_cost = 2 * dv_path_cost(pool->path) + place_cost(pool);
    l->record = dv_record_print(pool->identifier, pool->count);
    int error = l->record ? dv_node_open(&l->node, node_cost(pool), watch_cost) : DIVVY_ENOMEM;
    if (error) {
        free_lease(l);
        return error;
    }
    error = ensure ? ensure_paths(l) : queue_up(l);
    if (error) {
        dv_node_close(&l->node);
        free_lease(l);
        return error;
    }
    *out = l;
    return 0;
}

bool dv_lease_waits_for(const dv_lease *l, const dv_lease *other) {
    return l->place && other->place && l != other && dv_contender_waits_for(l->place, other->place);
}

int64_t dv_lease_token(const dv_lease *l) {
    return l->token;
}

const dv_slots *dv_lease_slots(const dv_lease *l) {
    return &l->slots;
}

const char *dv_lease_reason(const dv_lease *l) {
    return l->reason;
}
