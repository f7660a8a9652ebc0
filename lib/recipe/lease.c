/* Lease: some slots of a semaphore's pool, from the queue for them to their end. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/lease.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/record.h"
#include "znode/ensure.h"
#include "znode/path.h"

static dv_lease *of_node(dv_node *node) {
    return DV_CONTAINER(node, dv_lease, node);
}

/* From which stages each is entered. */
void dv_lease_enter_stage(dv_lease *l, dv_lease_stage to) {
    enum { READ = 1u << DV_LEASE_QUEUED | 1u << DV_LEASE_READING }; /* queued: the list was requested on entering */
    static const unsigned from[] = {
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
    dv_timer_cancel(&l->doubt_timer);
    dv_admission_unwatch(l);
    if (l->place && !l->place_over) dv_contender_leave(l->place);
}

void dv_lease_leave(dv_lease *l) {
    assert(!l->node.leave_requested);
    dv_node_leave(&l->node);
}

/* Paths are made only when they are found missing; a connection or a watch's room that is missing comes by itself. */
static void on_failed(dv_node *node, int error, int64_t now) {
    const dv_lease *l = of_node(node);
    dv_acquisition *a = l->ticket->acquisition;
    (void)now;
    if (!dv_ticket_failed(l->ticket)) return;
    bool missing = error == DIVVY_ENOENT && ++a->missing_count <= DV_ACQUISITION_MISSING_MAX;
    bool comes_back =
        error == DIVVY_ECONNECTION || error == DIVVY_EQUOTA || (error == DIVVY_EBUSY && !a->acquire->is_try);
    if (missing || comes_back) {
        dv_acquisition_proceed(a);
    } else {
        snprintf(a->acquire->reason, sizeof a->acquire->reason, "%s", l->reason);
        dv_acquisition_finish(a, error == DIVVY_EBUSY ? DIVVY_ELIMIT : error);
    }
}

void dv_lease_fail_because(dv_lease *l, int error, int64_t now, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->reason, sizeof l->reason, format, arguments);
    va_end(arguments);
    dv_node_fail(&l->node, error, now);
}

/* ---- holding: docs/protocol.md, K6 ---- */

void dv_lease_verify(dv_lease *l) {
    dv_node_verify(&l->node);
}

static void on_missing(dv_node *node, int64_t now) {
    (void)now;
    dv_node_verify(node);
}

void dv_lease_hold(dv_lease *l, int64_t now) {
    if (!dv_node_made(&l->node, l->token)) return;
    dv_node_unwatch(&l->node);
    dv_timer_cancel(&l->doubt_timer);
    dv_ticket_first(l->ticket, now);
}

/* ---- the place in the queue ---- */

void dv_lease_place_consumed(dv_lease *l) {
    if (l->place && !l->place_over) dv_contender_consumed(l->place);
    l->place_over = true;
}

static void on_first(void *owner, int64_t now) {
    dv_lease *l = owner;
    l->first = true;
    assert(dv_lease_is(l, DV_LEASE_QUEUED));
    if (!l->early_list) dv_admission_read(l, false, now);
}

static void on_waits(void *owner, int64_t now) {
    const dv_lease *l = owner;
    assert(!l->node.leave_requested);
    dv_ticket_waits(l->ticket, now);
}

/* The queue's directory or our node is missing. A transaction in doubt may have deleted the node: its fate decides. */
static void on_place_failed(void *owner, int error, int64_t now) {
    dv_lease *l = owner;
    assert(l->place && !l->place_over);
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

static size_t place_cost(const dv_pool *pool) {
    enum { SLASH_MARKER_AND_SEQUENCE_BYTES = 1 + 8 + 11 };
    return dv_path_cost(pool->queue) + DV_GUID_BYTES + SLASH_MARKER_AND_SEQUENCE_BYTES;
}

static int queue_up(dv_lease *l) {
    static const dv_contender_events events = {
        .held = on_first, .failed = on_place_failed, .gone = on_place_gone, .waits = on_waits};
    assert(!l->place && l->node.watch_cost >= place_cost(l->pool));
    dv_release_watch(l->node.client, place_cost(l->pool)); /* The place reserves what it needs of that itself. */
    l->node.watch_cost -= (uint32_t)place_cost(l->pool);
    int error =
        dv_contender_enter(&l->place, l->node.client, l->pool->queue, &dv_exclusive_queue, l->record, &events, l);
    if (error) return error;
    l->node.others++;
    dv_lease_enter_stage(l, DV_LEASE_QUEUED);
    dv_admission_read_early(l);
    return 0;
}

/* ---- entering: docs/protocol.md, E1 ---- */

static void on_ensured(void *context, int error, int64_t now) {
    dv_lease *l = context;
    if (error) l->ensure_error = error;
    if (!dv_node_replied(&l->node, error, now) || l->node.under_way) return;
    error = l->ensure_error ? l->ensure_error : queue_up(l);
    if (error) dv_node_fail(&l->node, error, now);
}

static int ensure_paths(dv_lease *l) {
    const char *const paths[] = {l->pool->path, l->pool->queue};
    assert(dv_lease_is(l, DV_LEASE_ENSURING) && l->node.under_way == 0);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (dv_ensure_path(l->node.client->znode, paths[i], l->pool->mode, on_ensured, l) == 0) l->node.under_way++;
        else l->ensure_error = DIVVY_ENOMEM;
    }
    return l->node.under_way ? 0 : DIVVY_ENOMEM;
}

/* ---- its life ---- */

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    dv_lease *l = of_node(node);
    if (event != DV_SESSION_CONNECTED) return;
    bool at_head = dv_lease_is(l, DV_LEASE_READING) || dv_lease_is(l, DV_LEASE_FULL);
    if (at_head) dv_admission_read(l, false, now); /* A watch may have been missed. */
}

static void free_lease(dv_lease *l) {
    free(l->record);
    free(l);
}

static void on_gone(dv_node *node, int64_t now) {
    dv_lease *l = of_node(node);
    (void)now;
    dv_timer_cancel(&l->doubt_timer);
    dv_admission_unwatch(l);
    dv_ticket_gone(l->ticket);
    free_lease(l);
}

static size_t node_cost(const dv_pool *pool) {
    enum { SLASH_AND_FEW_TAGS_BYTES = 1 + 28 };
    return dv_path_cost(pool->path) + DV_GUID_BYTES + (pool->count > 1 ? DV_SLOT_TAGS_BYTES : SLASH_AND_FEW_TAGS_BYTES);
}

static const dv_node_kind of_queue = {.found = dv_admission_found,
                                      .not_found = dv_admission_not_found,
                                      .missing = on_missing,
                                      .hear = hear,
                                      .leaving = on_leaving,
                                      .failed = on_failed,
                                      .gone = on_gone};
static const dv_node_kind of_shortcut = {.found = dv_shortcut_found,
                                         .not_found = dv_shortcut_not_found,
                                         .missing = on_missing,
                                         .hear = hear,
                                         .leaving = on_leaving,
                                         .failed = on_failed,
                                         .gone = on_gone};

int dv_lease_enter(dv_ticket *ticket, dv_pool *pool, bool ensure) {
    bool at_once = !ensure && !ticket->acquisition->acquire->is_try && dv_shortcut_is_open(pool); /* E14 */
    dv_lease *l = calloc(1, sizeof *l);
    if (!l) return DIVVY_ENOMEM;
    *l = (dv_lease){.ticket = ticket, .pool = pool};
    l->node = (dv_node){.client = ticket->acquisition->object.client,
                        .kind = at_once ? &of_shortcut : &of_queue,
                        .directory = pool->path};
    /* The place's watch too: reserved in two steps, the first would be given back and found free without end. */
    size_t watch_cost = at_once ? 0 : 2 * dv_path_cost(pool->path) + place_cost(pool);
    l->record = dv_record_print(pool->identifier, pool->count);
    int error = l->record ? dv_node_open(&l->node, node_cost(pool), watch_cost) : DIVVY_ENOMEM;
    if (error) {
        free_lease(l);
        return error;
    }
    error = ensure ? ensure_paths(l) : at_once ? dv_shortcut_take(l) : queue_up(l);
    if (error) {
        dv_node_close(&l->node);
        free_lease(l);
        return error;
    }
    ticket->place = l;
    return 0;
}

bool dv_lease_waits_for(const dv_lease *l, const dv_lease *other) {
    if (l == other) return false;
    if (l->first) return other->node.leave_requested && other->node.stands; /* for its slots */
    return l->place && other->place && dv_contender_waits_for(l->place, other->place);
}
