/* Acquisition: a lock, or slots of a semaphore, requested, held and lost. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/acquisition.h"

#include <assert.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/container.h"

enum {
    TRY_MS = 900, /* a try waits for a server's answer, not for other contenders */
    AUDIT_LEAST_MS = 500,
};

int dv_acquisition_fail(const dv_acquisition *a, int error, const char *reason) {
    return dv_fail(a->object.client, error, "%s %s: %s", a->kind->name, a->path,
                   reason && *reason ? reason : dv_client_why(a->object.client, error));
}

/* ---- metrics ---- */

static dv_recipe_metrics *metrics_of(const dv_acquisition *a) {
    return &a->object.client->metrics.recipes[a->recipe];
}

static void count_requested(dv_acquisition *a, int64_t now) {
    a->requested_at = now;
    metrics_of(a)->waiting++;
}

static void count_answered(const dv_acquisition *a, int result) {
    dv_recipe_metrics *metrics = metrics_of(a);
    assert(metrics->waiting > 0);
    metrics->waiting--;
    if (result == 0) dv_histogram_add_ms(&metrics->waits, a->held_since - a->requested_at);
    else metrics->failed++;
}

static void count_held(dv_acquisition *a, int64_t now) {
    a->held_since = now;
    metrics_of(a)->held++;
}

static void count_let_go(const dv_acquisition *a) {
    dv_recipe_metrics *metrics = metrics_of(a);
    assert(metrics->held > 0);
    metrics->held--;
    dv_histogram_add_ms(&metrics->holds, dv_client_now(a->object.client) - a->held_since);
}

/* ---- the end of an acquire ---- */

static void call_done(dv_callback *callback) {
    dv_acquire *acquire = (dv_acquire *)(void *)callback;
    if (acquire->result) dv_acquisition_fail(acquire->acquisition, acquire->result, acquire->reason);
    acquire->acquisition->kind->tell_done(acquire);
}

static void start_done(dv_callback *callback) {
    dv_acquire *acquire = (dv_acquire *)(void *)callback;
    if (acquire->acquisition->granted == acquire) acquire->acquisition->granted = NULL;
}

static void release_done(dv_callback *callback) {
    dv_acquire *acquire = (dv_acquire *)(void *)callback;
    dv_acquisition *a = acquire->acquisition;
    assert(a->granted != acquire);
    free(acquire);
    dv_object_told_done(&a->object);
}

static void queue_done(dv_acquisition *a, dv_acquire *acquire) {
    assert(acquire->ended && acquire->done && a->acquire != acquire);
    acquire->callback = (dv_callback){.starting = start_done, .call = call_done, .release = release_done};
    if (acquire->result == 0) a->granted = acquire;
    dv_object_tell_done(&a->object, &acquire->callback);
}

static void give_up(dv_acquisition *a) {
    dv_ticket *ticket = a->ticket;
    a->ticket = NULL;
    if (ticket) a->kind->leave(ticket);
}

/* Q6: an acquire that ends with nothing leaves nothing behind. */
void dv_acquisition_finish(dv_acquisition *a, int result) {
    dv_acquire *acquire = a->acquire;
    assert(acquire && !acquire->ended);
    count_answered(a, result);
    a->acquire = NULL;
    a->attempt++;
    dv_timer_cancel(&a->deadline_timer);
    if (result != 0) give_up(a);
    acquire->result = result;
    acquire->ended = true;
    if (acquire->done) queue_done(a, acquire);
    dv_client_changed(a->object.client);
}

/* Returns why the time has passed. B12: what kept us from the queue, rather than others in it, may be a quota. */
static int late_result(const dv_acquisition *a) {
    bool queued = a->ticket && (a->ticket->first || a->ticket->waits);
    bool refused = !queued && dv_client_quota_refuses(a->object.client, a->path, a->requested_at);
    return refused ? DIVVY_EQUOTA : DIVVY_ETIMEDOUT;
}

static void on_deadline(dv_timer *timer, int64_t now) {
    dv_acquisition *a = DV_CONTAINER(timer, dv_acquisition, deadline_timer);
    (void)now;
    dv_acquisition_finish(a, late_result(a));
}

/* ---- holding and losing ---- */

/* K6: a heartbeat checks the oldest node of the session only, so each acquisition checks its own as well. */
static void set_audit(dv_acquisition *a, int64_t now) {
    int64_t interval_ms = atomic_load(&a->object.client->timeout_ms) / 2;
    if (interval_ms < AUDIT_LEAST_MS) interval_ms = AUDIT_LEAST_MS;
    dv_timer_set(a->object.client, &a->audit_timer, now + interval_ms);
}

static void verify(const dv_acquisition *a) {
    assert(a->ticket && a->ticket->first);
    if (dv_client_connected(a->object.client)) a->kind->verify(a->ticket);
}

static void on_audit(dv_timer *timer, int64_t now) {
    dv_acquisition *a = DV_CONTAINER(timer, dv_acquisition, audit_timer);
    verify(a);
    set_audit(a, now);
}

/* K4: it is our turn, the session is proven to live, and no loss of the time before is still to be told. */
static void settle(dv_acquisition *a, int64_t now) {
    if (!a->acquire || !a->ticket || !a->ticket->first || a->telling_lost) return;
    if (!dv_client_alive_at(a->object.client, now)) return;
    assert(atomic_load(&a->token) == 0);
    set_audit(a, now);
    int64_t token = a->kind->hold(a->ticket);
    atomic_store(&a->token, token);
    dv_client_step(a->object.client, "holds %s token=%lld", a->path, (long long)token);
    count_held(a, now);
    dv_acquisition_finish(a, 0);
}

static void let_go(dv_acquisition *a) {
    int64_t token = atomic_exchange(&a->token, 0);
    if (token) dv_client_step(a->object.client, "ends %s token=%lld", a->path, (long long)token);
    if (token) count_let_go(a);
    dv_timer_cancel(&a->audit_timer);
    give_up(a);
    dv_client_changed(a->object.client);
}

static void call_lost(dv_callback *callback) {
    dv_acquisition *a = DV_CONTAINER(callback, dv_acquisition, lost_callback);
    if (!a->mute) a->kind->tell_lost(a);
}

/* A destroy that waits for what is due no longer tells of a loss. */
static void start_lost(dv_callback *callback) {
    dv_acquisition *a = DV_CONTAINER(callback, dv_acquisition, lost_callback);
    assert(a->telling_lost);
    a->mute = a->ending;
}

static void release_lost(dv_callback *callback) {
    dv_acquisition *a = DV_CONTAINER(callback, dv_acquisition, lost_callback);
    assert(a->telling_lost);
    a->telling_lost = false;
    if (a->acquire) settle(a, dv_client_now(a->object.client));
}

/* K6. The user is told once, since nothing is held afterwards. */
static void lose(dv_acquisition *a, const char *why) {
    assert(atomic_load(&a->token) != 0);
    dv_client_log(a->object.client, DIVVY_LOG_WARN, "the %s %s was held and is lost: %s", a->kind->name, a->path, why);
    metrics_of(a)->lost++;
    let_go(a);
    if (!a->on_lost) return;
    assert(!a->telling_lost);
    a->telling_lost = true;
    a->lost_callback =
        (dv_callback){.object = &a->object, .starting = start_lost, .call = call_lost, .release = release_lost};
    dv_callback_queue(a->object.client, &a->lost_callback);
}

/* ---- tickets ---- */

void dv_ticket_first(void *context, int64_t now) {
    dv_ticket *ticket = context;
    assert(!ticket->first);
    ticket->first = true;
    if (ticket->acquisition->ticket == ticket) settle(ticket->acquisition, now);
}

void dv_ticket_waits(void *context, int64_t now) {
    dv_ticket *ticket = context;
    dv_acquisition *a = ticket->acquisition;
    (void)now;
    assert(!ticket->first);
    a->missing_count = 0;
    ticket->waits = true;
    if (!a->acquire || !a->acquire->is_try) return;
    for (const dv_ticket *other = a->tickets; other; other = other->next) {
        if (other != a->ticket && a->kind->waits_for(ticket, other)) return;
    }
    dv_acquisition_finish(a, DIVVY_EBUSY);
}

void dv_ticket_yield(void *context, int64_t now) {
    dv_ticket *ticket = context;
    dv_acquisition *a = ticket->acquisition;
    (void)now;
    assert(a->ticket == ticket && !ticket->first && a->acquire);
    give_up(a);
    dv_acquisition_proceed(a);
}

bool dv_ticket_failed(dv_ticket *ticket) {
    dv_acquisition *a = ticket->acquisition;
    if (a->ticket != ticket) return false;
    a->ticket = NULL;
    if (atomic_load(&a->token)) lose(a, "its node was deleted by somebody else");
    return a->acquire != NULL;
}

void dv_ticket_gone(dv_ticket *ticket) {
    dv_acquisition *a = ticket->acquisition;
    dv_ticket **link = &a->tickets;
    while (*link != ticket) link = &(*link)->next;
    *link = ticket->next;
    if (a->ticket == ticket) a->ticket = NULL; /* The session took it; another ticket begins on the next session. */
    free(ticket);
    dv_client_changed(a->object.client);
    dv_object_unref(&a->object);
}

/* Returns 0, also when there is no room for now, or an error that ends the acquire. */
static int take(dv_acquisition *a) {
    assert(a->acquire && !a->ticket && atomic_load(&a->token) == 0);
    dv_ticket *ticket = calloc(1, sizeof *ticket);
    if (!ticket) return DIVVY_ENOMEM;
    *ticket = (dv_ticket){.next = a->tickets, .acquisition = a};
    int error = a->kind->enter(ticket, a->missing_count > 0);
    if (error) {
        free(ticket);
        if (error != DIVVY_EBUSY) return error;
        return a->acquire->is_try ? DIVVY_ELIMIT : 0; /* DV_SESSION_ROOM tells when to try again. */
    }
    a->ticket = a->tickets = ticket;
    a->left_behind = false;
    dv_object_ref(&a->object);
    return 0;
}

static bool may_take(const dv_acquisition *a) {
    return a->acquire && !a->ticket && !a->waits_for_path && dv_client_connected(a->object.client);
}

void dv_acquisition_proceed(dv_acquisition *a) {
    int error = may_take(a) ? take(a) : 0;
    if (error) dv_acquisition_finish(a, error);
}

/* ---- the session ---- */

/* The object is destroyed, or the client ends: a grant that its caller was not told yet is reported as a failure. */
static void withdraw(dv_acquisition *a) {
    if (a->granted) a->granted->result = DIVVY_ECANCELED;
    a->granted = NULL;
    if (a->acquire) dv_acquisition_finish(a, a->acquire->done ? DIVVY_ECANCELED : DIVVY_ECLOSED);
    let_go(a);
    assert(!a->acquire && !a->ticket && atomic_load(&a->token) == 0);
}

/* K6. Places see to themselves: on a session that is over they end, on a host's that lives on they are deleted. */
static void on_session_lost(dv_acquisition *a) {
    divvy_client *client = a->object.client;
    if (atomic_load(&a->token)) lose(a, client->end_reason);
    give_up(a);
    int end = dv_client_end_error(client);
    if (a->acquire && end) dv_acquisition_finish(a, end);
}

/* Their places end with the session, and hear of it after us. */
static void note_left_behind(dv_acquisition *a) {
    if (a->tickets) a->left_behind = true;
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    dv_acquisition *a = DV_CONTAINER(listener, dv_acquisition, listener);
    switch (event) {
    case DV_SESSION_CONNECTED:
        if (atomic_load(&a->token)) verify(a);
        dv_acquisition_proceed(a);
        break;
    case DV_SESSION_ROOM: dv_acquisition_proceed(a); break;
    case DV_SESSION_PROVEN: settle(a, now); break;
    case DV_SESSION_LOST: on_session_lost(a); break;
    case DV_SESSION_CLOSING: withdraw(a); break;
    case DV_SESSION_CLOSED:
        note_left_behind(a);
        withdraw(a);
        break;
    case DV_SESSION_OVER: note_left_behind(a); break;
    case DV_SESSION_AGAIN: /* Places see to themselves. */
    case DV_SESSION_SUSPENDED:
    case DV_SESSION_LINK: break;
    }
}

/* ---- life ---- */

static void release(dv_object *object) {
    dv_acquisition *a = (dv_acquisition *)(void *)object;
    assert(!a->tickets && !a->acquire && a->ending);
    a->kind->free(a);
}

void dv_acquisition_init(dv_acquisition *a, divvy_client *client, const dv_acquisition_kind *kind, dv_recipe recipe,
                         const char *path, void (*on_lost)(void), void *user) {
    a->kind = kind;
    a->recipe = recipe;
    a->path = path;
    a->on_lost = on_lost;
    a->user = user;
    a->audit_timer.fire = on_audit;
    a->attempt = 1;
    a->deadline_timer.fire = on_deadline;
    a->listener = (dv_listener){.hear = hear};
    dv_object_init(&a->object, client, release);
    dv_listen(client, &a->listener);
    metrics_of(a)->used = true;
}

static void leave(dv_object *object, bool waits) {
    dv_acquisition *a = (dv_acquisition *)(void *)object;
    (void)waits;
    a->ending = true;
    withdraw(a);
    dv_unlisten(object->client, &a->listener);
}

void dv_acquisition_destroy(dv_acquisition *a, const dv_farewell *farewell) {
    dv_object_end(&a->object, leave, farewell);
}

/* ---- acquire ---- */

static int why_not(dv_acquisition *a) {
    divvy_client *client = a->object.client;
    int end = dv_client_end_error(client);
    if (a->ending) return DIVVY_ESTATE;
    if (end) return end;
    if (atomic_load(&a->token) && !dv_client_alive_at(client, dv_client_now(client)))
        lose(a, "the session's deadline has passed");
    if (atomic_load(&a->token)) return DIVVY_EALREADY;
    return a->attempt_canceled ? DIVVY_ECANCELED : 0;
}

static int start(dv_acquisition *a, dv_acquire *acquire, int64_t timeout_ms) {
    divvy_client *client = a->object.client;
    acquire->acquisition = a;
    acquire->is_try = timeout_ms == 0;
    a->acquire = acquire;
    a->missing_count = 0;
    int error = may_take(a) ? take(a) : 0;
    if (error) a->acquire = NULL;
    else count_requested(a, dv_client_now(client));
    return error;
}

/* One that cannot begin has had its number all the same: a cancel that comes late is for nobody else. */
static int begin(dv_acquisition *a, dv_acquire *acquire, int64_t timeout_ms) {
    if (a->acquire) return a->ending ? DIVVY_ESTATE : DIVVY_EINPROGRESS;
    int error = why_not(a);
    if (!error) error = start(a, acquire, timeout_ms);
    a->attempt_canceled = false;
    if (error) a->attempt++;
    return error;
}

static int64_t limit_ms(int64_t timeout_ms) {
    if (timeout_ms == 0) return TRY_MS;
    return timeout_ms > DV_TIME_MAX_MS ? DV_TIME_MAX_MS : timeout_ms;
}

static bool has_ended(void *context) {
    return ((const dv_acquire *)context)->ended;
}

int dv_acquisition_acquire(dv_acquisition *a, int64_t timeout_ms) {
    divvy_client *client = a->object.client;
    dv_acquire acquire = {.result = 0};
    int error;
    dv_object_hold(&a->object);
    if (timeout_ms < -1) error = DIVVY_EINVAL;
    else error = dv_client_in_callback(client) ? DIVVY_EDEADLK : begin(a, &acquire, timeout_ms);
    if (!error) {
        int waited = dv_client_wait(client, limit_ms(timeout_ms), has_ended, &acquire);
        if (!acquire.ended) dv_acquisition_finish(a, waited == DIVVY_ETIMEDOUT ? late_result(a) : waited);
        error = acquire.result ? acquire.result : waited;
    }
    if (error) dv_acquisition_fail(a, error, acquire.reason);
    dv_object_let_go(&a->object);
    return error;
}

int dv_acquisition_begin(dv_acquisition *a, int64_t timeout_ms, void (*done)(void), void *user) {
    divvy_client *client = a->object.client;
    dv_acquire *acquire = NULL;
    int error;
    if (!done || timeout_ms < -1) error = DIVVY_EINVAL;
    else if (!(acquire = calloc(1, sizeof *acquire))) error = DIVVY_ENOMEM;
    else {
        acquire->done = done;
        acquire->user = user;
        error = begin(a, acquire, timeout_ms);
    }
    if (error) free(acquire);
    else if (timeout_ms >= 0) dv_timer_set(client, &a->deadline_timer, dv_client_now(client) + limit_ms(timeout_ms));
    return error;
}

int dv_acquisition_acquire_async(dv_acquisition *a, int64_t timeout_ms, void (*done)(void), void *user) {
    int error = dv_acquisition_begin(a, timeout_ms, done, user);
    if (error) dv_acquisition_fail(a, error, NULL);
    dv_client_unlock(a->object.client);
    return error;
}

/* ---- what is held ---- */

bool dv_acquisition_is_held(const dv_acquisition *acquisition) {
    dv_acquisition *a = (dv_acquisition *)(uintptr_t)acquisition;
    return atomic_load(&a->token) && dv_client_alive_at(a->object.client, dv_client_now(a->object.client));
}

int dv_acquisition_release(dv_acquisition *a) {
    divvy_client *client = a->object.client;
    int error = dv_acquisition_is_held(a) ? 0 : dv_acquisition_fail(a, DIVVY_ENOTHELD, NULL);
    if (!error) let_go(a);
    dv_client_unlock(client);
    return error;
}

static bool is_gone(void *context) {
    const dv_acquisition *a = context;
    return !a->tickets && !a->acquire;
}

int dv_acquisition_wait_gone(dv_acquisition *a, int64_t timeout_ms) {
    dv_object_hold(&a->object);
    int error = timeout_ms < -1 ? DIVVY_EINVAL : dv_client_wait(a->object.client, timeout_ms, is_gone, a);
    if (!error && a->left_behind) error = DIVVY_ELOST;
    if (error) dv_acquisition_fail(a, error, NULL);
    dv_object_let_go(&a->object);
    return error;
}

void dv_acquisition_give_up(dv_acquisition *a) {
    if (a->acquire) dv_acquisition_finish(a, DIVVY_ECANCELED);
    let_go(a);
}

int dv_acquisition_cancel(dv_acquisition *a, uint64_t attempt) {
    divvy_client *client = a->object.client;
    bool meant = attempt == 0 || attempt == a->attempt;
    if (meant && a->acquire) dv_acquisition_finish(a, DIVVY_ECANCELED);
    else if (attempt == a->attempt) a->attempt_canceled = true;
    dv_client_unlock(client);
    return 0;
}

uint64_t dv_acquisition_attempt(const dv_acquisition *acquisition) {
    divvy_client *client = acquisition->object.client;
    if (!dv_client_enter_quietly(client)) return 0;
    uint64_t attempt = acquisition->attempt;
    dv_client_unlock(client);
    return attempt;
}

/* The token is read twice, so that the belief is not that in another session than the token's. */
int64_t dv_acquisition_token(const dv_acquisition *acquisition) {
    dv_acquisition *a = (dv_acquisition *)(uintptr_t)acquisition;
    divvy_client *client = a->object.client;
    if (dv_client_forked(client)) return 0;
    int64_t token = atomic_load(&a->token);
    if (!token || !dv_client_alive_at(client, dv_client_now(client))) return 0;
    return atomic_load(&a->token) == token ? token : 0;
}
