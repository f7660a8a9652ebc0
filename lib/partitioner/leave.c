/* Finishing, and leaving for good: docs/protocol.md, P8, D14, T8. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/container.h"
#include "partitioner/handover.h"

/* ---- the user has stopped all work ---- */

void dv_partitioner_give_up(divvy_partitioner *p, int64_t now) {
    if (p->life < DV_LIFE_FINISHING) dv_life_enter(p, DV_LIFE_FINISHING);
    dv_timer_cancel(&p->leave_timer);
    dv_state_fail(p, DIVVY_ECANCELED, DIVVY_REASON_FINISH, now, "finished");
    dv_items_drop(p, true, now);
    assert(p->life >= DV_LIFE_FINISHING && p->totals.shown == 0);
}

static void finish(divvy_partitioner *p, int64_t now) {
    dv_partitioner_give_up(p, now);
    dv_items_tidy(p);
}

static bool everything_gone(void *context) {
    const divvy_partitioner *p = context;
    bool gone = p->totals.leaving == 0 && !p->membership && dv_handover_at_rest(p) && dv_own_loads_at_rest(p);
    return (gone && p->life == DV_LIFE_TIDIED) || p->lost_session;
}

/* Returns 0, or DIVVY_EINVAL or _EDEADLK with a message that begins with `call`. */
static int check_timeout(divvy_client *client, const char *call, int64_t timeout_ms) {
    if (timeout_ms < -1) return dv_fail(client, DIVVY_EINVAL, "%s: timeout_ms is below -1", call);
    if (timeout_ms != 0 && dv_client_in_callback(client))
        return dv_fail(client, DIVVY_EDEADLK, "%s: called in a callback with a timeout other than 0", call);
    return 0;
}

int divvy_partitioner_finish(divvy_partitioner *p, int64_t timeout_ms) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    dv_object_hold(&p->object);
    divvy_client *client = p->object.client;
    error = check_timeout(client, "finish", timeout_ms);
    if (!error) {
        finish(p, dv_client_now(client));
        error = dv_client_wait(client, timeout_ms, everything_gone, p);
        if (!error && p->lost_session) error = DIVVY_ELOST;
        if (error == DIVVY_ETIMEDOUT)
            dv_fail(client, error, "finish: not all nodes were gone after %lld ms; their deletion goes on",
                    (long long)timeout_ms);
        else if (error) dv_fail_plainly(client, error);
    }
    dv_object_let_go(&p->object);
    return error;
}

/* ---- T8: handing over ---- */

/* Revokes all that is still here. It goes when the user has released. */
static void withdraw(divvy_partitioner *p, int64_t now) {
    assert(p->life == DV_LIFE_HANDING_OVER);
    p->is_marked = p->withdrawn = true;
    dv_timer_cancel(&p->leave_timer);
    dv_state_target_settled(p, NULL, DIVVY_REASON_LEAVE, now);
    dv_leave_go_on(p, now);
}

static void on_timer(dv_timer *timer, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(timer, divvy_partitioner, leave_timer);
    if (!p->is_marked) p->leave_error = DIVVY_ECANCELED;
    withdraw(p, now);
}

void dv_leave_go_on(divvy_partitioner *p, int64_t now) {
    if (p->life == DV_LIFE_HANDING_OVER && p->is_marked && p->totals.shown == 0 && p->totals.leaving == 0)
        finish(p, now);
}

static void start_handing_over(divvy_partitioner *p, int64_t now) {
    dv_life_enter(p, DV_LIFE_HANDING_OVER);
    if (p->target_valid) dv_state_target_settled(p, NULL, p->target_reason, now); /* It drops what we lack. */
    if (p->life != DV_LIFE_HANDING_OVER) return;                                  /* Memory is short: it has failed. */
    p->leave_timer.fire = on_timer;
    if (p->config.handover_timeout_ms > 0)
        dv_timer_set(p->object.client, &p->leave_timer, now + p->config.handover_timeout_ms);
    if (!dv_follow_request_leave(p->follower, true, now)) withdraw(p, now);
}

bool dv_leave_again(void *partitioner) {
    divvy_partitioner *p = partitioner;
    if (p->life != DV_LIFE_HANDING_OVER || !p->is_marked || p->withdrawn) return false;
    p->is_marked = false;
    return true;
}

/* ---- leaving ---- */

void dv_partitioner_left(divvy_partitioner *p, int error, int64_t now) {
    p->leave_error = error == DIVVY_ESTATE ? 0 : error; /* Where no plan decides there is no place to give up. */
    if (p->life == DV_LIFE_HANDING_OVER) {
        p->is_marked = true;
        if (error) withdraw(p, now);
        else dv_leave_go_on(p, now); /* A member that has nothing may hear nothing more. */
        return;
    }
    assert(p->life == DV_LIFE_LEAVING || p->life == DV_LIFE_FAILED);
    finish(p, now);
}

/* Without a session, or after a failure, there is no plan to wait for; nor when all has been handed over. */
static void start_leaving(divvy_partitioner *p, int64_t now) {
    if (p->life == DV_LIFE_LEAVING || p->life >= DV_LIFE_FINISHING) return;
    bool waits = p->life == DV_LIFE_TAKING_PART || (p->life == DV_LIFE_HANDING_OVER && !p->is_marked);
    bool requested = p->life == DV_LIFE_HANDING_OVER;
    dv_timer_cancel(&p->leave_timer);
    if (waits) dv_life_enter(p, DV_LIFE_LEAVING);
    if (!waits) finish(p, now);
    else if (!dv_follow_request_leave(p->follower, false, now) && !requested) dv_partitioner_left(p, 0, now);
}

/* Returns 0, or why it cannot begin. */
static int start(divvy_partitioner *p, unsigned flags, int64_t now) {
    bool works = flags & DIVVY_LEAVE_WORKING;
    if (works && p->life == DV_LIFE_FAILED)
        return dv_fail(p->object.client, DIVVY_ESTATE,
                       "leave: the member has failed, and hands nothing over; stop all work, then call finish");
    if (works && p->life == DV_LIFE_TAKING_PART) start_handing_over(p, now);
    else if (!works || p->life == DV_LIFE_REJOINING) start_leaving(p, now);
    return 0;
}

/* A member that fails while work goes on keeps its places until the user calls finish(). */
static bool has_left(void *context) {
    const divvy_partitioner *p = context;
    return everything_gone(context) || p->life == DV_LIFE_FAILED;
}

static const char *what_is_missing(const divvy_partitioner *p) {
    if (p->life >= DV_LIFE_FINISHING) return "not all nodes were gone";
    if (p->is_marked) return "not all items were handed over and released";
    return "no plan without this member was written";
}

static int wait_until_left(divvy_partitioner *p, int64_t timeout_ms) {
    divvy_client *client = p->object.client;
    int error = dv_client_wait(client, timeout_ms, has_left, p);
    if (!error && p->life == DV_LIFE_FAILED)
        return dv_fail(client, p->failure,
                       "leave: the member failed before all was handed over: %s; stop all work, "
                       "then call finish",
                       p->failure_text);
    if (!error && p->lost_session) error = DIVVY_ELOST;
    if (!error && p->leave_error)
        return dv_fail(client, p->leave_error, "leave: the place in the plan could not be given up: %s",
                       divvy_strerror(p->leave_error));
    if (error == DIVVY_ETIMEDOUT)
        return dv_fail(client, error, "leave: %s after %lld ms; it goes on", what_is_missing(p), (long long)timeout_ms);
    return error ? dv_fail_plainly(client, error) : 0;
}

int divvy_partitioner_leave(divvy_partitioner *p, unsigned flags, int64_t timeout_ms) {
    int error = dv_partitioner_enter(p);
    if (error) return error;
    dv_object_hold(&p->object);
    divvy_client *client = p->object.client;
    if (flags & ~(unsigned)DIVVY_LEAVE_WORKING)
        error = dv_fail(client, DIVVY_EINVAL, "leave: unknown flags 0x%x", flags);
    if (!error) error = check_timeout(client, "leave", timeout_ms);
    if (!error) error = start(p, flags, dv_client_now(client));
    if (!error) error = wait_until_left(p, timeout_ms);
    dv_object_let_go(&p->object);
    return error;
}
