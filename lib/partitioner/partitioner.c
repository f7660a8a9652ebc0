/* The partitioner's public face. SPDX-License-Identifier: Apache-2.0 */
#include "partitioner/handover.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/path.h"

static divvy_partitioner *mutable(const divvy_partitioner *p) {
    return (divvy_partitioner *)(uintptr_t)p;
}

static bool enter_quietly(divvy_partitioner *p) {
    return dv_client_enter_quietly(p ? p->object.client : NULL);
}

static void leave(divvy_partitioner *p) {
    dv_client_unlock(p->object.client);
}

/* ---- what files tell those above them ---- */

static void on_ended(divvy_partitioner *p, int64_t now) {
    dv_session_rejoin(p, now);
    dv_leave_go_on(p, now);
}

static void on_failed(divvy_partitioner *p, int error, int reason, const char *text, int64_t now) {
    dv_state_fail(p, error, reason, now, "%s", text);
}

static void on_may_claim(divvy_partitioner *p, int64_t now) {
    dv_items_claim(p, now);
    dv_state_check_complete(p, now);
}

static void on_handover_changed(divvy_partitioner *p, int64_t now) {
    dv_state_handover(p, now);
    dv_take_update(p, now);
    dv_items_claim(p, now);
    dv_state_reconsider(p, now);
}

static const dv_partitioner_events events = {.ended = on_ended,
                                             .failed = on_failed,
                                             .locks_gone = dv_members_connected,
                                             .may_claim = on_may_claim,
                                             .place_changed = dv_state_check_complete,
                                             .item_lost = dv_state_item_lost,
                                             .handover_changed = on_handover_changed,
                                             .left = dv_partitioner_left};

/* ---- life ---- */

static void free_parts(divvy_partitioner *p) {
    dv_handover_free(p);
    dv_own_loads_free(p);
    dv_follow_free(p->follower);
    dv_partitioner_free_config(p);
}

static void call_destroyed(dv_callback *callback) {
    const divvy_partitioner *p = DV_CONTAINER(callback, divvy_partitioner, destroyed);
    p->config.on_destroyed(p->config.user);
}

static void release_destroyed(dv_callback *callback) {
    free(DV_CONTAINER(callback, divvy_partitioner, destroyed));
}

static void release(dv_object *object) {
    divvy_partitioner *p = (divvy_partitioner *)(void *)object;
    divvy_client *client = p->object.client;
    assert(p->totals.leaving == 0 && !p->membership && !p->watch);
    dv_unlisten(client, &p->listener);
    dv_timer_cancel(&p->state_timer);
    dv_timer_cancel(&p->leave_timer);
    dv_timer_cancel(&p->audit_timer);
    dv_timer_cancel(&p->collect_timer);
    dv_partitioner_metrics_stop(p);
    divvy_partition_unref(p->snapshot);
    dv_members_free(&p->party);
    free_parts(p);
    if (p->config.on_destroyed) dv_callback_queue(client, &p->destroyed);
    else free(p);
}

/* D42 */
static void warn_of_rounds(divvy_partitioner *p) {
    const divvy_partitioner_config *c = &p->config;
    if (!p->handover || c->max_moves == 0 || c->round_timeout_ms >= c->handover_timeout_ms) return;
    dv_client_warn(p->object.client, DIVVY_WARN_ROUND,
                   "%s: a round of %zu moves ends after round_timeout_ms, %lld ms, though an item may take "
                   "handover_timeout_ms, %lld ms: more would be on their way at a time; set round_timeout_ms to more",
                   p->path, c->max_moves, (long long)c->round_timeout_ms, (long long)c->handover_timeout_ms);
}

int divvy_partitioner_create(divvy_partitioner **out, divvy_client *client, const divvy_partitioner_config *config) {
    if (out) *out = NULL;
    if (!out || !config) return dv_fail(client, DIVVY_EINVAL, "partitioner: out or config is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    error = dv_client_end_error(client);
    if (error) dv_fail(client, error, "partitioner: the client has ended: %s", dv_client_why(client, error));
    divvy_partitioner *p = error ? NULL : calloc(1, sizeof *p);
    if (!error && !p) error = dv_fail_plainly(client, DIVVY_ENOMEM);
    if (p) p->events = &events;
    if (!error) error = dv_partitioner_configure(p, client, config);
    if (!error && dv_plan_host_init(p, client) != 0) error = dv_fail_plainly(client, DIVVY_ENOMEM);
    if (!error && dv_handover_init(p, client) != 0) error = dv_fail_plainly(client, DIVVY_ENOMEM);
    if (error) {
        if (p) free_parts(p);
        free(p);
        dv_client_unlock(client);
        return error;
    }
    dv_object_init(&p->object, client, release);
    dv_partitioner_metrics_init(p);
    dv_report_init(p);
    p->destroyed = (dv_callback){.call = call_destroyed, .release = release_destroyed};
    p->listener = (dv_listener){.hear = dv_partitioner_hear};
    dv_listen(client, &p->listener);
    assert(p->life == DV_LIFE_TAKING_PART && p->state == DIVVY_ALLOCATING);
    int64_t now = dv_client_now(client);
    dv_state_init(p, now);
    dv_audit_now(p, now);
    warn_of_rounds(p);
    dv_members_start(p, now);
    *out = p;
    dv_client_unlock(client);
    return 0;
}

static void end(dv_object *object, bool waits) {
    divvy_partitioner *p = (divvy_partitioner *)(void *)object;
    if (p->life < DV_LIFE_FINISHING) dv_life_enter(p, DV_LIFE_TIDIED); /* Only finish() tidies. */
    dv_partitioner_give_up(p, dv_client_now(object->client));
    dv_partitioner_metrics_stop(p);
    if (!waits) p->config.on_destroyed = NULL;
}

void divvy_partitioner_destroy(divvy_partitioner *p) {
    if (p) dv_object_end(&p->object, end, NULL);
}

void divvy_partitioner_destroy_async(divvy_partitioner *p, void (*gone)(void *user), void *user) {
    if (p) dv_object_end(&p->object, end, &(dv_farewell){gone, user});
}

/* ---- states ---- */

/* P6: a user who is shown the state has been told of it. */
static void tell(divvy_partitioner *p) {
    dv_report_told(p, p->state_id);
}

divvy_partition_state divvy_partitioner_state(const divvy_partitioner *c) {
    divvy_partitioner *p = mutable(c);
    if (!enter_quietly(p)) return DIVVY_FAILURE;
    tell(p);
    divvy_partition_state state = p->state;
    leave(p);
    return state;
}

uint64_t divvy_partitioner_state_id(const divvy_partitioner *c) {
    divvy_partitioner *p = mutable(c);
    if (!enter_quietly(p)) return 0;
    tell(p);
    uint64_t state_id = p->state_id;
    leave(p);
    return state_id;
}

typedef struct {
    const divvy_partitioner *p;
    uint64_t since;
} change_wait;

static bool has_changed(void *context) {
    const change_wait *wait = context;
    return wait->p->state_id != wait->since;
}

static bool has_ended_allocating(void *context) {
    return ((const divvy_partitioner *)context)->state != DIVVY_ALLOCATING;
}

static int wait_for(divvy_partitioner *p, const char *call, int64_t timeout_ms, bool (*met)(void *), void *context) {
    divvy_client *client = p->object.client;
    if (timeout_ms < -1) return dv_fail(client, DIVVY_EINVAL, "%s: timeout_ms is below -1", call);
    int error = dv_client_wait(client, timeout_ms, met, context);
    tell(p);
    if (error == 0) return 0;
    return dv_fail(client, error, "%s: %s; the state is %s", call, divvy_strerror(error),
                   divvy_partition_state_name(p->state));
}

int divvy_partitioner_wait_change(divvy_partitioner *p, uint64_t since_state_id, int64_t timeout_ms) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    dv_object_hold(&p->object);
    change_wait wait = {p, since_state_id};
    error = wait_for(p, "wait_change", timeout_ms, has_changed, &wait);
    dv_object_let_go(&p->object);
    return error;
}

int divvy_partitioner_wait_for_acquire(divvy_partitioner *p, int64_t timeout_ms) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    dv_object_hold(&p->object);
    error = wait_for(p, "wait_for_acquire", timeout_ms, has_ended_allocating, p);
    if (error == 0 && p->state != DIVVY_ACQUIRED)
        error = dv_fail(p->object.client, DIVVY_ESTATE, "wait_for_acquire: the state is %s%s%s",
                        divvy_partition_state_name(p->state), p->state == DIVVY_FAILURE ? ": " : "",
                        p->state == DIVVY_FAILURE ? p->failure_text : "");
    dv_object_let_go(&p->object);
    return error;
}

int divvy_partitioner_release_set(divvy_partitioner *p) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    error = dv_state_release(p, p->told_id, dv_client_now(p->object.client));
    leave(p);
    return error;
}

int divvy_partitioner_release_set_id(divvy_partitioner *p, uint64_t state_id) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    error = dv_state_release(p, state_id, dv_client_now(p->object.client));
    leave(p);
    return error;
}

int divvy_partitioner_failure(const divvy_partitioner *c, char *message, size_t message_bytes) {
    divvy_partitioner *p = mutable(c);
    if (message && message_bytes) *message = '\0';
    if (!enter_quietly(p)) return p ? DIVVY_EFORK : DIVVY_EINVAL;
    int error = p->failure;
    if (message && message_bytes) snprintf(message, message_bytes, "%s", p->failure_text);
    leave(p);
    return error;
}

const char *divvy_partitioner_identifier(const divvy_partitioner *p) {
    return p ? p->identifier : NULL;
}

int divvy_partitioner_joined(const divvy_partitioner *p) {
    return divvy_partitioner_node(p, NULL, 0) > 0;
}

size_t divvy_partitioner_node(const divvy_partitioner *c, char *path, size_t path_bytes) {
    divvy_partitioner *p = mutable(c);
    if (path && path_bytes) *path = '\0';
    if (!enter_quietly(p)) return 0;
    const char *own = p->membership ? dv_membership_path(p->membership) : NULL;
    size_t bytes = dv_client_show_path(p->object.client, own, path, path_bytes);
    leave(p);
    return bytes;
}

/* ---- what is owned ---- */

divvy_partition *divvy_partitioner_partition(divvy_partitioner *p) {
    if (!enter_quietly(p)) return NULL;
    tell(p);
    divvy_partition *snapshot = dv_snapshot_take(p);
    leave(p);
    return snapshot;
}

/* The client lock is not taken: the table is read as by all who do not hold it, the rest are single atomic values. */
static int64_t believed_token(const divvy_partitioner *p, const char *item) {
    if (!p || !item || dv_client_forked(p->object.client)) return 0;
    return dv_items_believed_token(p, item);
}

int divvy_partitioner_owns(const divvy_partitioner *p, const char *item) {
    return believed_token(p, item) > 0;
}

int divvy_partitioner_owns_token(const divvy_partitioner *p, const char *item, int64_t token) {
    return token > 0 && believed_token(p, item) == token;
}

/* ---- handovers ---- */

divvy_partition *divvy_partitioner_to_prepare(divvy_partitioner *p) {
    if (!enter_quietly(p)) return NULL;
    divvy_partition *snapshot = dv_snapshot_take_prepare(p);
    if (snapshot) dv_take_seen(p);
    leave(p);
    return snapshot;
}

int divvy_partitioner_prepared(divvy_partitioner *p, const char *item) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    dv_item *one = item ? dv_item_find(p, item) : NULL;
    if (item && !dv_items_have(p, item))
        error = dv_fail(p->object.client, DIVVY_ENOENT, "prepared: the pool has no item \"%.200s\"", item);
    else if (!item || one) dv_take_prepared(p, one);
    dv_handover_changed(p);
    leave(p);
    return error;
}

int divvy_partitioner_is_replaced(const divvy_partitioner *c) {
    divvy_partitioner *p = mutable(c);
    if (!enter_quietly(p)) return 0;
    bool replaced = dv_follow_is_replaced(p->follower);
    leave(p);
    return replaced;
}

/* ---- loads ---- */

int divvy_partitioner_set_load(divvy_partitioner *p, const char *item, double load) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    divvy_client *client = p->object.client;
    dv_item *one = item ? dv_item_find(p, item) : NULL;
    if (!item) error = dv_fail(client, DIVVY_EINVAL, "set_load: the item is NULL");
    else if (!dv_load_is_good(load))
        error = dv_fail(client, DIVVY_EINVAL,
                        "set_load: a load is a finite number from 0 up, and that of \"%.200s\" is %g", item, load);
    else if (!p->follower)
        error = dv_fail(client, DIVVY_EINVAL, "set_load: loads go with DIVVY_ASSIGN_AUTO or _STICKY only");
    else if (!dv_items_have(p, item))
        error = dv_fail(client, DIVVY_ENOENT, "set_load: the pool has no item \"%.200s\"", item);
    else if (one && dv_own_loads_set(one, load, dv_client_now(client)) != 0)
        error = dv_fail_plainly(client, DIVVY_ENOMEM);
    leave(p);
    return error;
}

/* ---- later releases ---- */

/* Says why a member can no longer ask for something of a plan. */
static const char *why_not(const divvy_partitioner *p) {
    if (p->life == DV_LIFE_HANDING_OVER || p->life == DV_LIFE_LEAVING) return "leaves";
    return dv_partitioner_finished(p) ? "has finished" : "has failed";
}

/* Checks that this member can ask a plan for a set that all divide. Returns 0 or DIVVY_ESTATE. */
static int check_can_set(divvy_partitioner *p) {
    divvy_client *client = p->object.client;
    if (p->life >= DV_LIFE_HANDING_OVER) return dv_fail(client, DIVVY_ESTATE, "set_items: the member %s", why_not(p));
    if (!p->follower)
        return dv_fail(client, DIVVY_ESTATE,
                       "set_items: this member goes by a rule of names, and so by the items it was made with; make "
                       "members with DIVVY_ASSIGN_AUTO or _STICKY, or again with other items");
    if (dv_follow_names_decide(p->follower))
        return dv_fail(
            client, DIVVY_ESTATE,
            "set_items: a member of %s does not follow plans (kazoo's, or one with another choice of assign), "
            "so each goes by the items it was made with; end that member, or make all again with other items",
            p->path);
    return 0;
}

int divvy_partitioner_set_items(divvy_partitioner *p, const char *const *items, size_t item_count) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    divvy_client *client = p->object.client;
    dv_plan_set *set = NULL;
    error = dv_items_make_set(&set, client, "set_items", p->locks_path, items, item_count);
    if (!error) error = dv_partitioner_check_order(p, client, "set_items", set);
    if (!error) error = check_can_set(p);
    if (!error) dv_follow_request_set(p->follower, set, dv_client_now(client));
    dv_plan_set_unref(set);
    leave(p);
    return error;
}

int divvy_partitioner_set_weight(divvy_partitioner *p, uint32_t weight) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    divvy_client *client = p->object.client;
    if (!p->follower)
        error = dv_fail(client, DIVVY_EINVAL, "set_weight: weights go with DIVVY_ASSIGN_AUTO or _STICKY only");
    else if (p->life >= DV_LIFE_HANDING_OVER)
        error = dv_fail(client, DIVVY_ESTATE, "set_weight: the member %s", why_not(p));
    else dv_follow_request_weight(p->follower, weight, dv_client_now(client));
    leave(p);
    return error;
}
