/* The client lock, and waiting for something without it. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/threads.h"
#include "client/client.h"

/* Forks seen by this process image: a client that was opened at another count belongs to a parent. */
static atomic_uint forks;
static pthread_once_t forks_once = PTHREAD_ONCE_INIT;

static void on_fork(void) {
    atomic_fetch_add(&forks, 1);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, on_fork);
}

unsigned dv_fork_count(void) {
    pthread_once(&forks_once, watch_forks);
    return atomic_load_explicit(&forks, memory_order_relaxed);
}

bool dv_client_forked(const divvy_client *client) {
    return client->fork_count != atomic_load_explicit(&forks, memory_order_relaxed);
}

bool dv_client_in_callback(const divvy_client *client) {
    return client->in_callback && pthread_equal(client->callback_caller, pthread_self());
}

void dv_client_lock(divvy_client *client) {
    pthread_mutex_lock(&client->lock);
}

/* The earliest timer may have come before what the loop waits for; in manual mode the caller's poll must return. */
static bool loop_must_look(const divvy_client *client) {
    if (dv_timers_next_at(&client->timers) < client->sleeping_until) return true;
    return client->config.manual && client->callbacks && !client->processing;
}

void dv_client_unlock(divvy_client *client) {
    if (client->room_freed) {
        client->room_freed = client->room_requested = false;
        dv_tell_listeners(client, DV_SESSION_ROOM, dv_client_now(client));
    }
    if (client->batch) dv_batch_flush(client->batch);
    if (client->something_changed) {
        client->something_changed = false;
        pthread_cond_broadcast(&client->changed);
        if (client->processing && !client->in_process) dv_client_wake(client); /* a waiting call drives the loop */
    }
    /* No other thread runs callbacks of a closed client: the last ones of its objects run right here. */
    if (client->life == DV_CLIENT_CLOSED && client->callbacks && !client->in_callback) dv_callback_run_all(client);
    if (client->callbacks) pthread_cond_signal(&client->callback_ready);
    if (loop_must_look(client)) dv_client_wake(client);
    bool release = client->release_after_unlock;
    client->release_after_unlock = false;
    pthread_mutex_unlock(&client->lock);
    if (release) dv_client_unref(client);
}

int dv_client_enter(divvy_client *client) {
    if (!client) return dv_fail(NULL, DIVVY_EINVAL, "the object is NULL");
    if (dv_client_forked(client)) {
        return dv_fail(client, DIVVY_EFORK,
                       "this client was opened before a fork and belongs to the parent; open another one here");
    }
    dv_client_lock(client);
    return 0;
}

bool dv_client_enter_quietly(divvy_client *client) {
    if (!client || dv_client_forked(client)) return false;
    dv_client_lock(client);
    return true;
}

/* Sleeps on the condition until `deadline` of the client's clock, in slices, as the two clocks may differ. */
static void sleep_on_change(divvy_client *client, int64_t left_ms) {
    enum { SLICE_MS = 500 };
    if (left_ms < 0 || left_ms > SLICE_MS) left_ms = SLICE_MS;
    dv_condition_wait(&client->changed, &client->lock, dv_monotonic_ms() + left_ms);
}

/* One step of waiting, with the client lock held before and after. */
static void wait_step(divvy_client *client, int64_t left_ms) {
    if (client->config.manual && !client->processing) {
        client->processing = true;
        client->sleeping_until = INT64_MIN; /* nobody sleeps yet: the timers are looked at before we do */
        dv_loop_note_late(client);
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
    if (client->batch) dv_batch_flush(client->batch);
    if (loop_must_look(client)) dv_client_wake(client);
    if (client->callbacks) pthread_cond_signal(&client->callback_ready);
    sleep_on_change(client, left_ms);
}

bool dv_client_drive(divvy_client *client, int64_t deadline) {
    assert(client->config.manual);
    while (client->processing && client->life == DV_CLIENT_OPEN) {
        int64_t left_ms = deadline == INT64_MAX ? -1 : deadline - dv_client_now(client);
        if (deadline != INT64_MAX && left_ms <= 0) return false;
        sleep_on_change(client, left_ms);
    }
    if (client->processing) return false;
    client->processing = true;
    return true;
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
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    int64_t deadline = timeout_ms < 0 ? INT64_MAX : dv_client_now(client) + timeout_ms;
    bool asks = client->config.interrupted && client->life == DV_CLIENT_OPEN, asked = false;
    while (!met(context)) {
        if (over_for_us(client)) return DIVVY_ECLOSED;
        int64_t left_ms = timeout_ms < 0 ? -1 : deadline - dv_client_now(client);
        if (timeout_ms >= 0 && left_ms <= 0) return DIVVY_ETIMEDOUT;
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
    if (client->close_in_callback && client->config.manual && dv_client_claim_close(client)) {
        dv_client_unlock(client);
        dv_client_end(client);
        dv_client_lock(client);
        client->release_after_unlock = true;
        error = DIVVY_ECLOSED;
    }
    return error;
}
