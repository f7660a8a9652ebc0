/* The loop: events, timers and callbacks, one at a time; and waiting for them. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <limits.h>
#include <poll.h>

#include "base/threads.h"
#include "client/client.h"

/* The numbers of events, and of callbacks, that run before callers of the public functions get the lock in between. */
enum { EVENTS_A_TURN = 64, CALLBACKS_A_RUN = 256 };

static int run_timers(divvy_client *client, int64_t now) {
    int count = 0;
    for (; dv_timers_next_at(&client->timers) <= now; count++) {
        dv_timer *timer = client->timers.first;
        dv_timer_cancel(timer);
        timer->fire(timer, now);
    }
    return count;
}

/* C5: a session given up is ended, lest it come back and keep nodes of ours alive. After a loss a new one is opened. */
static void close_session(divvy_client *client) {
    const dv_znode_backend *backend = client->znode->backend;
    backend->close(client->znode);
    dv_client_lock(client);
    dv_loop_drain(client);
    if (client->life == DV_CLIENT_OPEN && client->state == DIVVY_LOST) {
        int error = backend->reopen(client->znode);
        if (error == 0) {
            dv_session_reopened(client);
        } else {
            dv_client_log(client, DIVVY_LOG_ERROR, "no new session can be opened: %s", divvy_strerror(error));
            dv_session_reopen_later(client, dv_client_now(client));
        }
    }
    dv_client_unlock(client);
}

/* Timers before each event: what a deadline ends must have ended before anything else is believed. */
static int run_turn(divvy_client *client) {
    int count = 0;
    dv_client_lock(client);
    assert(client->life < DV_CLIENT_CLOSED);
    count += run_timers(client, dv_client_now(client));
    dv_event *event;
    for (int i = 0; i < EVENTS_A_TURN && client->fate != DV_FATE_TO_CLOSE && (event = dv_events_take(client)); i++) {
        int64_t now = dv_client_now(client);
        count += run_timers(client, now);
        client->event_count++;
        event->run(event, now);
        count++;
    }
    dv_session_revive(client, dv_client_now(client));
    bool to_close = client->fate == DV_FATE_TO_CLOSE;
    if (to_close) dv_fate_enter(client, DV_FATE_BURIED);
    dv_client_unlock(client);
    if (to_close) close_session(client);
    return count + to_close;
}

static int run_callbacks(divvy_client *client) {
    int count = 0;
    dv_client_lock(client);
    while (count < CALLBACKS_A_RUN && !client->close_in_callback && dv_callback_run_one(client)) count++;
    bool left = client->callbacks != NULL;
    dv_client_unlock(client);
    if (left) dv_client_wake(client);
    return count;
}

int dv_loop_run_due(divvy_client *client) {
    dv_message said;
    dv_message_begin(&said);
    dv_client_clear_wake(client);
    int count = run_turn(client);
    if (client->config.manual) count += run_callbacks(client);
    if (dv_events_any(client)) dv_client_wake(client);
    dv_message_end(&said);
    return count;
}

static int64_t deadline_of(const divvy_client *client, int64_t timeout_ms) {
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    return timeout_ms < 0 ? INT64_MAX : dv_client_now(client) + timeout_ms;
}

/* Returns the time until then; -1: it is INT64_MAX, and never comes. */
static int64_t left_until(const divvy_client *client, int64_t deadline) {
    if (deadline == INT64_MAX) return -1;
    int64_t left_ms = deadline - dv_client_now(client);
    return left_ms > 0 ? left_ms : 0;
}

static int64_t earlier(int64_t a_ms, int64_t b_ms) {
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static int64_t until_next_timer(const divvy_client *client) {
    return left_until(client, dv_timers_next_at(&client->timers));
}

void dv_loop_sleep(divvy_client *client, int64_t timeout_ms) {
    dv_client_lock(client);
    int64_t wait_ms = earlier(timeout_ms, until_next_timer(client));
    client->sleeping_until = dv_timers_next_at(&client->timers);
    if (client->life >= DV_CLIENT_STOPPING) wait_ms = 0; /* The wake for that may have been taken in already. */
    dv_client_unlock(client);
    if (client->znode->backend->sleep) {
        client->znode->backend->sleep(client->znode, wait_ms);
        return;
    }
    struct pollfd fd = {.fd = client->wake_fd, .events = POLLIN};
    poll(&fd, 1, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
}

static bool has_reached(divvy_client *client, dv_client_life life) {
    dv_client_lock(client);
    bool reached = client->life >= life;
    dv_client_unlock(client);
    return reached;
}

void *dv_loop_thread(void *context) {
    divvy_client *client = context;
    while (!has_reached(client, DV_CLIENT_STOPPING)) {
        if (dv_loop_run_due(client) == 0) dv_loop_sleep(client, -1);
    }
    return NULL;
}

void dv_loop_drain(divvy_client *client) {
    do { /* A request made by an event may fail at once; another event tells it. */
        for (dv_event *event; (event = dv_events_take(client));) event->run(event, dv_client_now(client));
        if (client->znode) dv_batch_flush(client->znode);
    } while (dv_events_any(client));
}

int divvy_client_fd(const divvy_client *client) {
    return client && client->config.manual ? client->wake_fd : -1;
}

int64_t divvy_client_next_deadline(const divvy_client *c) {
    divvy_client *client = (divvy_client *)(uintptr_t)c;
    if (!dv_client_enter_quietly(client)) return -1;
    int64_t left_ms = client->callbacks || dv_events_any(client) ? 0 : until_next_timer(client);
    /* The caller is going to sleep until then: an earlier timer set meanwhile must wake it. */
    client->sleeping_until = dv_timers_next_at(&client->timers);
    dv_client_unlock(client);
    return left_ms;
}

/* ---- waiting ---- */

/* Sleeps on the condition until `deadline` of the client's clock, in slices, as the two clocks may differ. */
static void sleep_on_change(divvy_client *client, int64_t left_ms) {
    enum { SLICE_MS = 500 };
    if (left_ms < 0 || left_ms > SLICE_MS) left_ms = SLICE_MS;
    dv_condition_wait(&client->changed, &client->lock, dv_monotonic_ms() + left_ms);
}

/* Warns of a loop that is driven late. A connected client always has a timer, its next heartbeat, to tell by. */
static void note_late(divvy_client *client) {
    enum { LATE_LEAST_MS = 100 };
    if (!client->clock.timeout_ms || client->end_error || !client->timers.first) return;
    int64_t now = dv_client_now(client), late_ms = now - client->timers.first->at;
    int64_t bound_ms = dv_clock_heartbeat_ms(&client->clock);
    bool was_late = client->late;
    client->late = late_ms > (bound_ms > LATE_LEAST_MS ? bound_ms : LATE_LEAST_MS);
    if (!client->late || was_late) return;
    int64_t left_ms = atomic_load(&client->alive_until) - now;
    if (left_ms > 0)
        dv_client_warn(client, DIVVY_WARN_LATE,
                       "divvy_client_process() came %lld ms late: the session, and all that it holds, would have been "
                       "lost %lld ms from now",
                       (long long)late_ms, (long long)left_ms);
    else
        dv_client_warn(client, DIVVY_WARN_LATE,
                       "divvy_client_process() came %lld ms late: the session, and all that it held, is lost",
                       (long long)late_ms);
}

/* One step of waiting, with the client lock held before and after. */
static void wait_step(divvy_client *client, int64_t left_ms) {
    if (client->config.manual && !client->processing) {
        client->processing = true;
        client->sleeping_until = INT64_MIN; /* nobody sleeps yet: the timers are looked at before we do */
        note_late(client);
        dv_client_unlock(client);
        if (dv_loop_run_due(client) == 0) dv_loop_sleep(client, left_ms);
        dv_client_lock(client);
        assert(client->processing);
        client->processing = false;
        client->sleeping_until = INT64_MAX; /* the poller of our descriptor does not know the new timers */
        dv_client_changed(client);
        return;
    }
    /* Send what this turn asked for before waiting for its effect. */
    if (client->znode) dv_batch_flush(client->znode);
    dv_client_wake_early(client);
    if (client->callbacks) pthread_cond_signal(&client->callback_ready);
    sleep_on_change(client, left_ms);
}

/* Returns whether the client is over for this caller. Only the closing thread still waits for the last deletes. */
static bool over_for_us(const divvy_client *client) {
    if (client->life == DV_CLIENT_OPEN)
        return client->close_in_callback && client->config.manual; /* we have to do it */
    return client->life == DV_CLIENT_CLOSED || !pthread_equal(client->closer, pthread_self());
}

/* Asks the user, without the client lock: much may have changed when this returns. */
static bool is_interrupted(divvy_client *client) {
    dv_message said;
    dv_client_unlock(client);
    dv_message_begin(&said);
    bool interrupted = client->config.interrupted(client, client->config.user) != 0;
    dv_message_end(&said);
    dv_client_lock(client);
    return interrupted;
}

static int wait_until(divvy_client *client, int64_t timeout_ms, bool (*met)(void *context), void *context) {
    enum { ASK_MS = 50 };
    int64_t deadline = deadline_of(client, timeout_ms);
    bool asks = client->config.interrupted && client->life == DV_CLIENT_OPEN, asked = false;
    while (!met(context)) {
        if (over_for_us(client)) return DIVVY_ECLOSED;
        int64_t left_ms = left_until(client, deadline);
        if (left_ms == 0) return DIVVY_ETIMEDOUT;
        if (dv_client_in_callback(client)) return DIVVY_EDEADLK;
        asked = asks && !asked; /* Between two steps; what is waited for is looked at after each. */
        if (asked && is_interrupted(client)) return met(context) ? 0 : DIVVY_EINTERRUPTED;
        if (!asked) wait_step(client, asks && (left_ms < 0 || left_ms > ASK_MS) ? ASK_MS : left_ms);
    }
    return 0;
}

int dv_client_wait(divvy_client *client, int64_t timeout_ms, bool (*met)(void *context), void *context) {
    client->waiters++; /* A close in another thread does not free the client under us. */
    int error = wait_until(client, timeout_ms, met, context);
    assert(client->waiters > 0);
    client->waiters--;
    dv_client_changed(client);
    return dv_client_close_as_asked(client) ? DIVVY_ECLOSED : error;
}

bool dv_client_close_as_asked(divvy_client *client) {
    if (!client->config.manual || !client->close_in_callback || client->in_callback) return false;
    if (!dv_client_claim_close(client)) return false;
    dv_client_unlock(client);
    dv_client_end(client);
    dv_client_lock(client);
    client->release_after_unlock = true;
    return true;
}

/* ---- manual mode ---- */

/* Waits until this thread may drive the loop. Returns DIVVY_ETIMEDOUT at the deadline. */
static int wait_to_drive(divvy_client *client, int64_t deadline) {
    int64_t left_ms = -1;
    assert(client->config.manual);
    client->waiters++; /* A close in another thread does not free the client under us. */
    while (client->processing && client->life == DV_CLIENT_OPEN && (left_ms = left_until(client, deadline)) != 0)
        sleep_on_change(client, left_ms);
    client->waiters--;
    if (client->life != DV_CLIENT_OPEN) {
        dv_client_changed(client);
        return dv_fail_plainly(client, DIVVY_ECLOSED);
    }
    return client->processing ? DIVVY_ETIMEDOUT : 0;
}

int divvy_client_process(divvy_client *client, int64_t timeout_ms) {
    if (timeout_ms < -1) return dv_fail(client, DIVVY_EINVAL, "process: timeout_ms is below -1");
    int error = dv_client_enter(client);
    if (error) return error;
    if (!client->config.manual) error = dv_fail(client, DIVVY_ESTATE, "process: the client is not in manual mode");
    else if (dv_client_in_callback(client)) error = dv_fail(client, DIVVY_EDEADLK, "process: called in a callback");
    else if (client->in_process) error = dv_fail(client, DIVVY_ESTATE, "process: another thread is in this call");
    int64_t deadline = deadline_of(client, timeout_ms);
    if (!error) error = wait_to_drive(client, deadline);
    if (error) {
        dv_client_unlock(client);
        return error == DIVVY_ETIMEDOUT ? 0 : error;
    }
    client->processing = client->in_process = true;
    note_late(client);
    dv_client_ref(client);
    dv_client_unlock(client);

    int count;
    while ((count = dv_loop_run_due(client)) == 0) {
        int64_t left_ms = left_until(client, deadline);
        if (left_ms == 0 || has_reached(client, DV_CLIENT_CLOSING)) break;
        dv_loop_sleep(client, left_ms);
    }
    dv_client_lock(client);
    assert(client->processing && client->in_process);
    client->processing = client->in_process = false;
    dv_client_changed(client);
    bool closed_here = client->close_in_callback && dv_client_claim_close(client);
    bool closing = client->life >= DV_CLIENT_CLOSING;
    dv_client_unlock(client);
    if (closed_here) dv_client_shut_down(client);
    dv_client_unref(client);
    return closing ? dv_fail(NULL, DIVVY_ECLOSED, "process: the client was closed meanwhile") : count;
}
