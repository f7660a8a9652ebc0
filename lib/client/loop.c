/* The loop: one queue of events, a heap of timers, one piece of work after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/client.h"

/* The numbers of events, and of callbacks, that run before callers of the public functions get the lock in between. */
enum { EVENTS_A_TURN = 64, CALLBACKS_A_RUN = 256 };

/* Where a backend has a clock of its own nobody waits for the descriptor. */
static bool has_waiters(const divvy_client *client) {
    return !client->znode || !client->znode->backend->sleep;
}

void dv_client_wake(divvy_client *client) {
    if (!has_waiters(client)) return;
    uint64_t one = 1;
    while (write(client->wake_fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void dv_client_post(void *context, dv_event *event) {
    assert(event->run);
    divvy_client *client = context;
    event->next = NULL;
    pthread_mutex_lock(&client->queue_mutex);
    bool was_empty = client->events == NULL;
    *client->events_end = event;
    client->events_end = &event->next;
    pthread_mutex_unlock(&client->queue_mutex);
    if (was_empty) dv_client_wake(client);
}

static dv_event *take_event(divvy_client *client) {
    pthread_mutex_lock(&client->queue_mutex);
    dv_event *event = client->events;
    if (event) {
        client->events = event->next;
        if (!client->events) client->events_end = &client->events;
    }
    pthread_mutex_unlock(&client->queue_mutex);
    return event;
}

static bool has_events(divvy_client *client) {
    pthread_mutex_lock(&client->queue_mutex);
    bool some = client->events != NULL;
    pthread_mutex_unlock(&client->queue_mutex);
    return some;
}

void dv_timer_set(divvy_client *client, dv_timer *timer, int64_t at) {
    assert(timer->fire);
    dv_timer_cancel(timer);
    dv_timers_add(&client->timers, timer, at);
}

static int run_timers(divvy_client *client, int64_t now) {
    int count = 0;
    for (; dv_timers_next_at(&client->timers) <= now; count++) {
        dv_timer *timer = client->timers.first;
        dv_timer_cancel(timer);
        timer->fire(timer, now);
    }
    return count;
}

/* C5: a session given up is ended, lest it come back and keep nodes of ours alive, or ask servers that refuse it again
 * and again. After a loss a new one is opened. */
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
    for (int i = 0; i < EVENTS_A_TURN && client->fate != DV_FATE_TO_CLOSE && (event = take_event(client)); i++) {
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

static void clear_wake(divvy_client *client) {
    if (!has_waiters(client)) return;
    uint64_t count;
    while (read(client->wake_fd, &count, sizeof count) < 0 && errno == EINTR) continue;
}

int dv_loop_run_due(divvy_client *client) {
    dv_message said;
    dv_message_begin(&said);
    clear_wake(client);
    int count = run_turn(client);
    if (client->config.manual) count += run_callbacks(client);
    if (has_events(client)) dv_client_wake(client);
    dv_message_end(&said);
    return count;
}

static int64_t earlier(int64_t a_ms, int64_t b_ms) {
    return a_ms < 0 || (b_ms >= 0 && b_ms < a_ms) ? b_ms : a_ms;
}

static int64_t until_next_timer(const divvy_client *client) {
    if (!client->timers.first) return -1;
    int64_t left_ms = client->timers.first->at - dv_client_now(client);
    return left_ms > 0 ? left_ms : 0;
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

void *dv_loop_thread(void *context) {
    divvy_client *client = context;
    for (;;) {
        dv_client_lock(client);
        bool stopping = client->life >= DV_CLIENT_STOPPING;
        dv_client_unlock(client);
        if (stopping) return NULL;
        if (dv_loop_run_due(client) == 0) dv_loop_sleep(client, -1);
    }
}

void dv_loop_drain(divvy_client *client) {
    do { /* A request made by an event may fail at once; another event tells it. */
        for (dv_event *event; (event = take_event(client));) event->run(event, dv_client_now(client));
        if (client->batch) dv_batch_flush(client->batch);
    } while (has_events(client));
}

int divvy_client_fd(const divvy_client *client) {
    return client && client->config.manual ? client->wake_fd : -1;
}

int64_t divvy_client_next_deadline(const divvy_client *c) {
    divvy_client *client = (divvy_client *)(uintptr_t)c;
    if (!dv_client_enter_quietly(client)) return -1;
    int64_t left_ms = client->callbacks || has_events(client) ? 0 : until_next_timer(client);
    /* The caller is going to sleep until then: an earlier timer set meanwhile must wake it. */
    client->sleeping_until = dv_timers_next_at(&client->timers);
    dv_client_unlock(client);
    return left_ms;
}

/* A client that is connected always has a timer, its next heartbeat: so the first one says when we were to be
 * called. */
void dv_loop_note_late(divvy_client *client) {
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

static bool is_closing(divvy_client *client) {
    dv_client_lock(client);
    bool closing = client->life >= DV_CLIENT_CLOSING;
    dv_client_unlock(client);
    return closing;
}

int divvy_client_process(divvy_client *client, int64_t timeout_ms) {
    if (timeout_ms < -1) return dv_fail(client, DIVVY_EINVAL, "process: timeout_ms is below -1");
    int error = dv_client_enter(client);
    if (error) return error;
    if (!client->config.manual) error = dv_fail(client, DIVVY_ESTATE, "process: the client is not in manual mode");
    else if (dv_client_in_callback(client)) error = dv_fail(client, DIVVY_EDEADLK, "process: called in a callback");
    else if (client->in_process) error = dv_fail(client, DIVVY_ESTATE, "process: another thread is in this call");
    else if (client->life != DV_CLIENT_OPEN) error = dv_fail_plainly(client, DIVVY_ECLOSED);
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    int64_t deadline = timeout_ms < 0 ? INT64_MAX : dv_client_now(client) + timeout_ms;
    if (error || !dv_client_drive(client, deadline)) {
        dv_client_unlock(client);
        return error;
    }
    client->in_process = true;
    dv_loop_note_late(client);
    dv_client_ref(client);
    dv_client_unlock(client);

    int count;
    while ((count = dv_loop_run_due(client)) == 0) {
        int64_t left_ms = timeout_ms < 0 ? -1 : deadline - dv_client_now(client);
        if ((timeout_ms >= 0 && left_ms <= 0) || is_closing(client)) break;
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
