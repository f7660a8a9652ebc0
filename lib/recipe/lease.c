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

/* ---- the end ---- */

static void free_lease(dv_lease *l) {
    free(l->record);
    free(l->node);
    free(l->data);
    free(l->place_path);
    free(l);
}

/* The lease ends only when neither a reply nor its place in the queue can still call back. */
static void end_if_idle(dv_lease *l, int64_t now) {
    if (l->stage != DV_LEASE_ENDED || l->under_way || l->place) return;
    dv_unlisten(l->client, &l->listener);
    dv_own_node_remove(l->client, &l->own);
    dv_timer_cancel(&l->audit_timer);
    dv_admission_unwatch(l);
    dv_release_watch(l->client, l->watch_cost);
    dv_release_ephemeral(l->client, l->ephemeral_cost);
    l->events->gone(l->owner, l, now);
    free_lease(l);
}

/* From which stages each is entered. What was held is only left, and nothing comes back from leaving or from the
 * end. */
void dv_lease_enter_stage(dv_lease *l, dv_lease_stage to) {
    enum {
        ASKED = 1u << DV_LEASE_ADMITTING | 1u << DV_LEASE_RESOLVING,
        READ = 1u << DV_LEASE_QUEUED | 1u << DV_LEASE_READING, /* queued: the list was asked for on entering */
        ANY = ~0u >> 1,
    };
    static const unsigned from[] = {
        [DV_LEASE_ENSURING] = 1u << DV_LEASE_ENSURING,
        [DV_LEASE_QUEUED] = 1u << DV_LEASE_ENSURING,
        [DV_LEASE_READING] = READ | 1u << DV_LEASE_FULL | 1u << DV_LEASE_SETTING | ASKED,
        [DV_LEASE_FULL] = READ,
        [DV_LEASE_SETTING] = READ,
        [DV_LEASE_ADMITTING] = READ,
        [DV_LEASE_RESOLVING] = ASKED,
        [DV_LEASE_HELD] = ASKED,
        [DV_LEASE_LEAVING] = ANY & ~(1u << DV_LEASE_ENDED),
        [DV_LEASE_ENDED] = ANY,
    };
    assert(from[to] & 1u << l->stage);
    l->stage = to;
}

static void end(dv_lease *l, int64_t now) {
    dv_lease_enter_stage(l, DV_LEASE_ENDED);
    end_if_idle(l, now);
}

/* ---- leaving: docs/protocol.md, E9 ---- */

static void go_on_leaving(dv_lease *l, int64_t now);

static void on_deleted(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    /* Nobody else ever makes a node of this name, so deleting it a second time can hit nothing else. */
    l->node_there = dv_outcome_unknown(reply->error);
    if (reply->error && reply->error != DIVVY_ENOENT && !l->node_there && !dv_session_over(reply->error))
        dv_client_log(l->client, DIVVY_LOG_ERROR, "%s cannot be deleted and stays until the session ends: %s", l->node,
                      divvy_strerror(reply->error));
    dv_lease_still_at_work(l, reply->error, now);
}

static void send_delete(dv_lease *l) {
    if (!l->node_there || l->under_way || !dv_client_can_delete(l->client)) return;
    if (dv_batch_delete(l->client->batch, l->node, on_deleted, l) == 0) l->under_way++;
    else dv_client_again(l->client);
}

static void go_on_leaving(dv_lease *l, int64_t now) {
    send_delete(l); /* It comes back here on a reply, on a link, when connected, or when there may be memory again. */
    if (!l->node_there && !l->under_way && !l->place) end(l, now);
}

static void start_leaving(dv_lease *l) {
    dv_lease_enter_stage(l, DV_LEASE_LEAVING);
    dv_own_node_remove(l->client, &l->own);
    dv_timer_cancel(&l->audit_timer);
    dv_admission_unwatch(l);
    if (l->place && !l->place_over) dv_contender_leave(l->place);
    l->place_over = true;
}

void dv_lease_begin_leaving(dv_lease *l, int64_t now) {
    start_leaving(l);
    go_on_leaving(l, now);
}

/* Something is always still to come here, so that gone() is never told inside this call. */
void dv_lease_leave(dv_lease *l) {
    assert(!l->leave_wanted);
    l->leave_wanted = true;
    if (l->stage == DV_LEASE_ADMITTING || l->stage == DV_LEASE_RESOLVING) return; /* Once it is known what is there. */
    if (l->stage == DV_LEASE_ENDED) return;
    assert(l->under_way || l->place || l->node_there);
    start_leaving(l);
    send_delete(l);
}

bool dv_lease_still_at_work(dv_lease *l, int error, int64_t now) {
    assert(l->under_way > 0);
    l->under_way--;
    if (dv_session_over(error)) dv_lease_enter_stage(l, DV_LEASE_ENDED);
    if (l->stage == DV_LEASE_ENDED) end_if_idle(l, now);
    else if (l->stage == DV_LEASE_LEAVING) go_on_leaving(l, now);
    else return true;
    return false;
}

void dv_lease_fail(dv_lease *l, int error, int64_t now) {
    bool told = l->leave_wanted;
    l->leave_wanted = true;
    start_leaving(l);
    if (!told) l->events->failed(l->owner, l, error, now);
    go_on_leaving(l, now);
}

void dv_lease_fail_because(dv_lease *l, int error, int64_t now, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->reason, sizeof l->reason, format, arguments);
    va_end(arguments);
    dv_lease_fail(l, error, now);
}

/* ---- holding: docs/protocol.md, E10 ---- */

static void verify(dv_lease *l);

static void on_verified(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!dv_lease_still_at_work(l, reply->error, now) || reply->error != DIVVY_ENOENT) return;
    assert(l->stage == DV_LEASE_HELD);
    l->node_there = false;
    dv_lease_fail(l, DIVVY_ENOENT, now);
}

static void verify(dv_lease *l) {
    if (l->stage != DV_LEASE_HELD || l->under_way || !dv_client_connected(l->client)) return;
    if (dv_znode_exists(l->client->znode, l->node, NULL, on_verified, l) == 0) l->under_way++;
}

static void on_missing(dv_own_node *own, int64_t now) {
    (void)now;
    verify(DV_CONTAINER(own, dv_lease, own));
}

/* A heartbeat asks for the oldest node of the session only, so each lease asks for its own as well. */
static void set_audit(dv_lease *l, int64_t now) {
    int64_t interval_ms = atomic_load(&l->client->timeout_ms) / 2;
    if (interval_ms < AUDIT_LEAST_MS) interval_ms = AUDIT_LEAST_MS;
    dv_timer_set(l->client, &l->audit_timer, now + interval_ms);
}

static void on_audit(dv_timer *timer, int64_t now) {
    dv_lease *l = DV_CONTAINER(timer, dv_lease, audit_timer);
    if (l->stage != DV_LEASE_HELD) {
        dv_admission_doubt(l, now);
        return;
    }
    verify(l);
    set_audit(l, now);
}

void dv_lease_hold(dv_lease *l, int64_t now) {
    l->node_there = true;
    if (l->leave_wanted) {
        dv_lease_begin_leaving(l, now);
        return;
    }
    dv_lease_enter_stage(l, DV_LEASE_HELD);
    dv_release_watch(l->client, l->watch_cost);
    l->watch_cost = 0;
    l->own.path = l->node;
    dv_own_node_add(l->client, &l->own);
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
    assert(l->stage == DV_LEASE_QUEUED);
    if (!l->early_list) dv_admission_read(l, false, now);
}

static void on_waits(void *owner, dv_contender *place, int64_t now) {
    dv_lease *l = owner;
    (void)place;
    if (!l->leave_wanted) l->events->waits(l->owner, l, now);
}

/* The queue's directory is missing, or somebody has deleted our node; while the transaction is in doubt it may itself
 * have done so, and what becomes of that decides. */
static void on_place_failed(void *owner, dv_contender *place, int error, int64_t now) {
    dv_lease *l = owner;
    (void)place;
    l->place_over = true;
    if (l->stage == DV_LEASE_ADMITTING || l->stage == DV_LEASE_RESOLVING) return;
    if (l->stage < DV_LEASE_ADMITTING) dv_lease_fail(l, error, now);
}

static void on_place_gone(void *owner, dv_contender *place, int64_t now) {
    dv_lease *l = owner;
    (void)place;
    l->place = NULL;
    l->place_over = true;
    if (l->stage == DV_LEASE_LEAVING) go_on_leaving(l, now);
    else end_if_idle(l, now);
}

/* A place of ours in the queue, at the most. */
static size_t place_cost(const dv_pool *pool) {
    enum { SLASH_MARKER_AND_SEQUENCE_BYTES = 1 + 8 + 11 };
    return dv_path_cost(pool->queue) + DV_GUID_BYTES + SLASH_MARKER_AND_SEQUENCE_BYTES;
}

static int queue_up(dv_lease *l) {
    static const dv_contender_events events = {on_first, on_place_failed, on_place_gone};
    dv_release_watch(l->client, place_cost(l->pool)); /* The place reserves what it needs of that itself. */
    l->watch_cost -= place_cost(l->pool);
    int error = dv_contender_enter(&l->place, l->client, l->pool->queue, &dv_exclusive_queue, l->record, &events, l);
    if (error) return error;
    dv_contender_tell_waits(l->place, on_waits);
    dv_lease_enter_stage(l, DV_LEASE_QUEUED);
    dv_admission_read_early(l);
    return 0;
}

/* ---- entering: docs/protocol.md, E1 ---- */

static void on_ensured(void *context, int error, int64_t now) {
    dv_lease *l = context;
    l->ensures_to_come--;
    if (error && !l->ensure_error) l->ensure_error = error;
    if (!dv_lease_still_at_work(l, error, now) || l->ensures_to_come) return;
    error = l->ensure_error ? l->ensure_error : queue_up(l);
    if (error) dv_lease_fail(l, error, now);
}

static int ensure_paths(dv_lease *l) {
    const char *const paths[] = {l->pool->path, l->pool->queue};
    dv_lease_enter_stage(l, DV_LEASE_ENSURING);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        if (dv_ensure_path(l->client->znode, paths[i], l->pool->mode, on_ensured, l) == 0) {
            l->ensures_to_come++;
            l->under_way++;
        } else {
            l->ensure_error = DIVVY_ENOMEM;
        }
    }
    return l->under_way ? 0 : DIVVY_ENOMEM;
}

static void hear(void *context, dv_session_event event, int64_t now) {
    dv_lease *l = context;
    bool at_head = l->stage == DV_LEASE_READING || l->stage == DV_LEASE_FULL;
    if (event == DV_SESSION_OVER || event == DV_SESSION_CLOSED) {
        dv_admission_unwatch(l);
        end(l, now); /* The servers delete what is ours; replies under way come as errors right after this. */
    } else if (event == DV_SESSION_CONNECTED) {
        if (at_head) dv_admission_read(l, false, now); /* A watch may have been missed. */
        else if (l->stage == DV_LEASE_HELD) verify(l);
        else if (l->stage == DV_LEASE_LEAVING) go_on_leaving(l, now);
    } else if ((event == DV_SESSION_LINK || event == DV_SESSION_AGAIN) && l->stage == DV_LEASE_LEAVING) {
        go_on_leaving(l, now);
    }
}

static size_t node_cost(const dv_pool *pool) {
    enum { SLASH_AND_FEW_TAGS_BYTES = 1 + 28 };
    return dv_path_cost(pool->path) + DV_GUID_BYTES + (pool->count > 1 ? DV_SLOT_TAGS_BYTES : SLASH_AND_FEW_TAGS_BYTES);
}

int dv_lease_enter(dv_lease **out, divvy_client *client, dv_pool *pool, bool ensure, const dv_lease_events *events,
                   void *owner) {
    *out = NULL;
    dv_lease *l = calloc(1, sizeof *l);
    if (!l) return DIVVY_ENOMEM;
    *l = (dv_lease){.client = client,
                    .events = events,
                    .owner = owner,
                    .pool = pool,
                    .own.missing = on_missing,
                    .audit_timer.fire = on_audit,
                    .listener = {.hear = hear, .context = l}};
    l->ephemeral_cost = node_cost(pool);
    /* The place's watch too: what is reserved in two steps, and given back for want of the second, is found free and
     * tried again without end. */
    l->watch_cost = 2 * dv_path_cost(pool->path) + place_cost(pool);
    l->record = dv_record_print(pool->identifier, pool->count);
    int error = l->record ? dv_reserve_node(client, l->ephemeral_cost, l->watch_cost) : DIVVY_ENOMEM;
    if (error) {
        free_lease(l);
        return error;
    }
    dv_listen(client, &l->listener);
    error = ensure ? ensure_paths(l) : queue_up(l);
    if (error) {
        dv_unlisten(client, &l->listener);
        dv_release_watch(client, l->watch_cost);
        dv_release_ephemeral(client, l->ephemeral_cost);
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
