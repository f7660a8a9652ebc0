/* Lock: one holder at a time, or one writer or many readers. SPDX-License-Identifier: Apache-2.0
 *
 * An acquire takes a place in the queue (contender.h), a new one each time; a release gives it up. Places that are given
 * up see to their own end. docs/protocol.md, rules K1 to K8. */
#include "recipe/lock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/container.h"
#include "testing/mutant.h"
#include "znode/ensure.h"
#include "znode/path.h"

enum {
    IDENTIFIER_BYTES_MAX = 64 * 1024,
    TRY_MS = 900,      /* a try waits for a server's answer, not for other contenders */
    MISSING_MAX = 100, /* so often the directory may vanish under one acquire */
    AUDIT_LEAST_MS = 500,
};

struct dv_lock_acquire {
    dv_callback callback; /* first; only of asynchronous ones, which are malloc'ed */
    divvy_lock *lock;
    void (*done)(divvy_lock *lock, int result, void *user); /* NULL: the caller waits */
    void *user;
    bool is_try, ended;
    int result;
};

static const dv_queue_kind *const queues[] = {
    [DIVVY_EXCLUSIVE] = &dv_lock_queue, [DIVVY_READ] = &dv_read_queue, [DIVVY_WRITE] = &dv_write_queue};

static void proceed(divvy_lock *lock, int64_t now);

/* ---- the end of an acquire ---- */

static void call_done(dv_callback *callback) {
    dv_lock_acquire *a = (dv_lock_acquire *)(void *)callback;
    a->done(a->lock, a->result, a->user);
}

static void start_done(dv_callback *callback) {
    dv_lock_acquire *a = (dv_lock_acquire *)(void *)callback;
    if (a->lock->granted == a) a->lock->granted = NULL;
}

static void release_done(dv_callback *callback) {
    dv_lock_acquire *a = (dv_lock_acquire *)(void *)callback;
    divvy_lock *lock = a->lock;
    start_done(callback);
    lock->dones_due--;
    pthread_cond_broadcast(&lock->object.client->changed); /* A destroy may wait for it. */
    dv_object_unref(&lock->object);
    free(a);
}

/* It is told even when the lock is destroyed or the client closed before, so it is the client's callback. */
static void queue_done(divvy_lock *lock, dv_lock_acquire *a) {
    a->callback = (dv_callback){.always = true, .starting = start_done, .call = call_done, .release = release_done};
    if (a->result == 0) lock->granted = a;
    lock->dones_due++;
    dv_object_ref(&lock->object);
    dv_callback_queue(lock->object.client, &a->callback);
}

static void give_place_up(divvy_lock *lock) {
    dv_lock_place *place = lock->place;
    lock->place = NULL;
    if (place && !place->failed) dv_contender_leave(place->contender);
}

/* K3: one that ends without the lock gives its place up. */
static void finish(divvy_lock *lock, int result) {
    dv_lock_acquire *a = lock->acquire;
    lock->acquire = NULL;
    dv_timer_cancel(&lock->deadline_timer);
    if (result == DIVVY_ETIMEDOUT && DV_MUTANT(timeout_leaves_place)) lock->place = NULL;
    if (result != 0) give_place_up(lock);
    a->result = result;
    a->ended = true;
    if (a->done) queue_done(lock, a);
    dv_client_changed(lock->object.client);
}

static void on_deadline(dv_timer *timer, int64_t now) {
    divvy_lock *lock = DV_CONTAINER(timer, divvy_lock, deadline_timer);
    (void)now;
    finish(lock, DIVVY_ETIMEDOUT);
}

/* ---- holding and losing ---- */

/* K6: a heartbeat asks for the oldest node of the session only, so each lock asks for its own as well. */
static void set_audit(divvy_lock *lock, int64_t now) {
    int64_t interval_ms = atomic_load(&lock->object.client->timeout_ms) / 2;
    if (interval_ms < AUDIT_LEAST_MS) interval_ms = AUDIT_LEAST_MS;
    dv_timer_set(lock->object.client, &lock->audit_timer, now + interval_ms);
}

static void on_audit(dv_timer *timer, int64_t now) {
    divvy_lock *lock = DV_CONTAINER(timer, divvy_lock, audit_timer);
    if (dv_client_connected(lock->object.client)) dv_contender_verify(lock->place->contender);
    set_audit(lock, now);
}

/* K4: first in the queue, on a session that is proven to live, and no loss of the time before is still to be told. */
static void settle(divvy_lock *lock, int64_t now) {
    if (!lock->acquire || !lock->place || !lock->place->first || lock->telling_lost) return;
    if (!dv_client_alive_at(lock->object.client, now)) return;
    atomic_store(&lock->token, dv_contender_token(lock->place->contender));
    set_audit(lock, now);
    finish(lock, 0);
}

static void let_go(divvy_lock *lock) {
    atomic_store(&lock->token, 0);
    dv_timer_cancel(&lock->audit_timer);
    give_place_up(lock);
    dv_client_changed(lock->object.client);
}

static void call_lost(dv_callback *callback) {
    divvy_lock *lock = DV_CONTAINER(callback, divvy_lock, lost_callback);
    if (!lock->mute) lock->on_lost(lock, lock->user);
}

/* A destroy that waits for what is due does not tell of a loss any more. */
static void start_lost(dv_callback *callback) {
    divvy_lock *lock = DV_CONTAINER(callback, divvy_lock, lost_callback);
    lock->mute = lock->ending;
}

static void release_lost(dv_callback *callback) {
    divvy_lock *lock = DV_CONTAINER(callback, divvy_lock, lost_callback);
    lock->telling_lost = false;
    if (lock->acquire) settle(lock, dv_client_now(lock->object.client));
}

/* K6. Told once, since nothing is held afterwards. */
static void lose(divvy_lock *lock, const char *why) {
    dv_client_log(lock->object.client, DIVVY_LOG_WARN, "the lock %s was held and is lost: %s", lock->directory, why);
    let_go(lock);
    if (!lock->on_lost) return;
    assert(!lock->telling_lost);
    lock->telling_lost = true;
    lock->lost_callback =
        (dv_callback){.object = &lock->object, .starting = start_lost, .call = call_lost, .release = release_lost};
    dv_callback_queue(lock->object.client, &lock->lost_callback);
}

/* ---- the place in the queue ---- */

static void on_first(void *owner, dv_contender *contender, int64_t now) {
    dv_lock_place *place = owner;
    (void)contender;
    place->first = true;
    if (place->lock->place == place) settle(place->lock, now);
}

/* K5: a try ends here, unless it stands behind a place of this very lock that is about to go. */
static void on_waits(void *owner, dv_contender *contender, int64_t now) {
    divvy_lock *lock = ((dv_lock_place *)owner)->lock;
    (void)now;
    lock->missing_count = 0;
    if (!lock->acquire || !lock->acquire->is_try) return;
    for (const dv_lock_place *other = lock->places; other; other = other->next) {
        if (other != lock->place && dv_contender_waits_for(contender, other->contender)) return;
    }
    finish(lock, DIVVY_EBUSY);
}

static void on_ensured(void *context, int error, int64_t now) {
    divvy_lock *lock = context;
    lock->ensuring = false;
    if (lock->acquire && !dv_session_over(error)) {
        bool again = error == 0 || error == DIVVY_ENOENT || error == DIVVY_ECONNECTION;
        if (again) proceed(lock, now); /* Without a connection the next one does. */
        else finish(lock, error);
    }
    dv_object_unref(&lock->object);
}

/* K2: the directory is made only when it is found missing, so that taking a free lock is one round trip. */
static void make_directory(divvy_lock *lock) {
    if (++lock->missing_count > MISSING_MAX) {
        finish(lock, DIVVY_ENOENT);
        return;
    }
    if (lock->ensuring) return;
    if (dv_ensure_path(lock->object.client->znode, lock->directory, lock->directory_mode, on_ensured, lock) != 0) {
        finish(lock, DIVVY_ENOMEM);
        return;
    }
    lock->ensuring = true;
    dv_object_ref(&lock->object);
}

/* Either the directory is missing, or somebody has deleted our node. */
static void on_failed(void *owner, dv_contender *contender, int error, int64_t now) {
    dv_lock_place *place = owner;
    divvy_lock *lock = place->lock;
    (void)contender, (void)now;
    place->failed = true;
    if (lock->place != place) return;
    if (atomic_load(&lock->token)) {
        lose(lock, "its node was deleted by somebody else");
        return;
    }
    lock->place = NULL;
    if (error == DIVVY_ENOENT) make_directory(lock);
    else finish(lock, error);
}

static void on_gone(void *owner, dv_contender *contender, int64_t now) {
    dv_lock_place *place = owner;
    divvy_lock *lock = place->lock;
    (void)contender, (void)now;
    dv_lock_place **link = &lock->places;
    while (*link != place) link = &(*link)->next;
    *link = place->next;
    if (lock->place == place) lock->place = NULL; /* The session took it; the next one begins anew. */
    free(place);
    dv_object_unref(&lock->object);
}

/* 0, also when there is no room for now, or an error that ends the acquire. */
static int take_place(divvy_lock *lock) {
    static const dv_contender_events events = {on_first, on_failed, on_gone};
    dv_lock_place *place = calloc(1, sizeof *place);
    if (!place) return DIVVY_ENOMEM;
    *place = (dv_lock_place){.next = lock->places, .lock = lock};
    int error = dv_contender_enter(&place->contender, lock->object.client, lock->directory, queues[lock->mode],
                                   lock->identifier, &events, place);
    if (error) {
        free(place);
        if (error != DIVVY_EBUSY) return error;
        return lock->acquire->is_try ? DIVVY_ELIMIT : 0; /* DV_SESSION_ROOM tells when to try again. */
    }
    dv_contender_tell_waits(place->contender, on_waits);
    lock->place = lock->places = place;
    dv_object_ref(&lock->object);
    return 0;
}

static bool may_take_place(const divvy_lock *lock) {
    return lock->acquire && !lock->place && !lock->ensuring && dv_client_connected(lock->object.client);
}

static void proceed(divvy_lock *lock, int64_t now) {
    (void)now;
    int error = may_take_place(lock) ? take_place(lock) : 0;
    if (error) finish(lock, error);
}

/* ---- the session ---- */

/* Destroyed, or the client ends: what was granted and not told is not held any more when it is. */
static void withdraw(divvy_lock *lock) {
    if (lock->granted) lock->granted->result = DIVVY_ECANCELED;
    lock->granted = NULL;
    if (lock->acquire) finish(lock, lock->acquire->done ? DIVVY_ECANCELED : DIVVY_ECLOSED);
    let_go(lock);
}

/* K7. Places see to themselves: on a session that is over they end, on a host's that lives on they are deleted. */
static void on_session_lost(divvy_lock *lock) {
    divvy_client *client = lock->object.client;
    if (atomic_load(&lock->token)) lose(lock, client->end_reason);
    int end = dv_client_end_error(client);
    if (lock->acquire && end) finish(lock, end);
}

static void hear(void *context, dv_session_event event, int64_t now) {
    divvy_lock *lock = context;
    switch (event) {
    case DV_SESSION_CONNECTED:
        if (atomic_load(&lock->token)) dv_contender_verify(lock->place->contender);
        proceed(lock, now);
        break;
    case DV_SESSION_PROVEN: settle(lock, now); break;
    case DV_SESSION_ROOM: proceed(lock, now); break;
    case DV_SESSION_LOST: on_session_lost(lock); break;
    case DV_SESSION_CLOSING:
    case DV_SESSION_CLOSED: withdraw(lock); break;
    case DV_SESSION_AGAIN: /* Places see to themselves. */
    case DV_SESSION_SUSPENDED:
    case DV_SESSION_OVER:
    case DV_SESSION_LINK: break;
    }
}

/* ---- life ---- */

static void release(dv_object *object) {
    divvy_lock *lock = (divvy_lock *)(void *)object;
    divvy_client *client = object->client;
    assert(!lock->places && !lock->acquire && lock->ending);
    free(lock->directory);
    free(lock->identifier);
    free(lock);
    dv_client_unref(client);
}

static int check(divvy_client *client, const divvy_lock_config *c) {
    const char *reason = NULL;
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    if (!c->path) return dv_fail(client, DIVVY_EINVAL, "lock: path is NULL");
    if (dv_path_check(c->path, &reason) != 0)
        return dv_fail(client, DIVVY_EINVAL, "lock: the path \"%.200s\" %s", c->path, reason);
    if (c->mode != DIVVY_EXCLUSIVE && c->mode != DIVVY_READ && c->mode != DIVVY_WRITE)
        return dv_fail(client, DIVVY_EINVAL, "lock: mode is %d, which is none of its values", c->mode);
    if (!c->identifier) return 0;
    if (!*c->identifier) return dv_fail(client, DIVVY_EINVAL, "lock: the identifier is empty");
    if (strlen(c->identifier) > IDENTIFIER_BYTES_MAX)
        return dv_fail(client, DIVVY_E2BIG, "lock: the identifier has %zu bytes; %d are the most",
                       strlen(c->identifier), IDENTIFIER_BYTES_MAX);
    return 0;
}

static int make(divvy_lock **out, divvy_client *client, const divvy_lock_config *c) {
    divvy_lock *lock = calloc(1, sizeof *lock);
    if (!lock) return DIVVY_ENOMEM;
    lock->directory = dv_client_path(client, c->path);
    lock->identifier = c->identifier ? strdup(c->identifier) : dv_client_default_identifier();
    if (!lock->directory || !lock->identifier) {
        free(lock->directory);
        free(lock->identifier);
        free(lock);
        return DIVVY_ENOMEM;
    }
    lock->mode = c->mode;
    lock->directory_mode = c->container ? DV_CONTAINER : DV_PERSISTENT;
    lock->on_lost = c->on_lost;
    lock->user = c->user;
    lock->deadline_timer.fire = on_deadline;
    lock->audit_timer.fire = on_audit;
    lock->listener = (dv_listener){.hear = hear, .context = lock};
    dv_object_init(&lock->object, client, release);
    dv_listen(client, &lock->listener);
    *out = lock;
    return 0;
}

int divvy_lock_create(divvy_lock **out, divvy_client *client, const divvy_lock_config *config) {
    static const divvy_lock_config defaults = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock_config c;
    if (out) *out = NULL;
    if (!out || !config) return dv_fail(client, DIVVY_EINVAL, "lock: out or config is NULL");
    int error = dv_turn_enter(client);
    if (error) return error;
    if (dv_config_copy(&c, sizeof c, &defaults, config) != 0)
        error = dv_fail(client, DIVVY_EINVAL, "lock: the config was not made with DIVVY_LOCK_CONFIG_INIT");
    if (!error) error = check(client, &c);
    if (!error) error = dv_fail_plainly(client, make(out, client, &c));
    dv_turn_end(client);
    return error;
}

/* An ending turn sends, wakes the callback thread, and on a closed client runs what is left. */
static void wait_for_dones(divvy_lock *lock) {
    divvy_client *client = lock->object.client;
    while (lock->dones_due && !dv_client_in_callback(client)) {
        dv_turn_end(client);
        dv_turn_begin(client);
        if (!lock->dones_due) break;
        if (!client->config.manual || !dv_callback_run_one(client)) pthread_cond_wait(&client->changed, &client->turn);
    }
}

void divvy_lock_destroy(divvy_lock *lock) {
    if (!lock || dv_client_forked(lock->object.client)) return;
    divvy_client *client = lock->object.client;
    dv_client_ref(client);
    dv_turn_begin(client);
    lock->ending = true;
    withdraw(lock);
    dv_unlisten(client, &lock->listener);
    wait_for_dones(lock);
    dv_object_destroy(&lock->object);
    dv_turn_end(client);
    dv_client_unref(client);
}

/* ---- acquire ---- */

static int fail(divvy_lock *lock, int error) {
    return dv_fail(lock->object.client, error, "lock %s: %s", lock->directory, divvy_strerror(error));
}

static int begin(divvy_lock *lock, dv_lock_acquire *a, int64_t timeout_ms) {
    divvy_client *client = lock->object.client;
    int64_t now = dv_client_now(client);
    int end = dv_client_end_error(client);
    if (lock->ending) return DIVVY_ESTATE;
    if (end) return end;
    if (atomic_load(&lock->token) && !dv_client_alive_at(client, now)) lose(lock, "the session's deadline has passed");
    if (atomic_load(&lock->token) || lock->acquire) return DIVVY_EALREADY;
    a->lock = lock;
    a->is_try = timeout_ms == 0;
    lock->acquire = a;
    lock->missing_count = 0;
    int error = may_take_place(lock) ? take_place(lock) : 0;
    if (error) lock->acquire = NULL;
    return error;
}

static int64_t limit_ms(int64_t timeout_ms) {
    if (timeout_ms == 0) return TRY_MS;
    return timeout_ms > DV_TIME_MAX_MS ? DV_TIME_MAX_MS : timeout_ms;
}

static bool has_ended(void *context) {
    return ((const dv_lock_acquire *)context)->ended;
}

int divvy_lock_acquire(divvy_lock *lock, int64_t timeout_ms) {
    int error = dv_lock_enter(lock);
    if (error) return error;
    divvy_client *client = lock->object.client;
    dv_lock_acquire a = {.result = 0};
    dv_client_ref(client);
    dv_object_ref(&lock->object);
    if (timeout_ms < -1) error = DIVVY_EINVAL;
    else error = dv_client_in_callback(client) ? DIVVY_EDEADLK : begin(lock, &a, timeout_ms);
    if (!error) {
        int waited = dv_client_wait(client, limit_ms(timeout_ms), has_ended, &a);
        if (!a.ended) finish(lock, waited);
        error = a.result ? a.result : waited;
    }
    if (error) fail(lock, error);
    dv_object_unref(&lock->object);
    dv_turn_end(client);
    dv_client_unref(client);
    return error;
}

int divvy_lock_try_acquire(divvy_lock *lock) {
    return divvy_lock_acquire(lock, 0);
}

int divvy_lock_acquire_async(divvy_lock *lock, int64_t timeout_ms,
                             void (*done)(divvy_lock *lock, int result, void *user), void *user) {
    int error = dv_lock_enter(lock);
    if (error) return error;
    divvy_client *client = lock->object.client;
    dv_lock_acquire *a = NULL;
    if (!done || timeout_ms < -1) error = DIVVY_EINVAL;
    else if (!(a = calloc(1, sizeof *a))) error = DIVVY_ENOMEM;
    else {
        a->done = done;
        a->user = user;
        error = begin(lock, a, timeout_ms);
    }
    if (error) {
        free(a);
        fail(lock, error);
    } else if (timeout_ms >= 0) {
        dv_timer_set(client, &lock->deadline_timer, dv_client_now(client) + limit_ms(timeout_ms));
    }
    dv_turn_end(client);
    return error;
}

/* ---- what is held ---- */

/* With the turn held. */
static bool is_held(const divvy_lock *lock) {
    divvy_client *client = lock->object.client;
    return atomic_load(&((divvy_lock *)(uintptr_t)lock)->token) && dv_client_alive_at(client, dv_client_now(client));
}

int divvy_lock_release(divvy_lock *lock) {
    int error = dv_lock_enter(lock);
    if (error) return error;
    divvy_client *client = lock->object.client;
    if (is_held(lock)) let_go(lock);
    else error = fail(lock, DIVVY_ENOTHELD);
    dv_turn_end(client);
    return error;
}

int divvy_lock_cancel(divvy_lock *lock) {
    int error = dv_lock_enter(lock);
    if (error) return error;
    divvy_client *client = lock->object.client;
    if (lock->acquire) finish(lock, DIVVY_ECANCELED);
    dv_turn_end(client);
    return 0;
}

/* Without the turn: the token is asked twice, lest the belief be that in another session than the token's. */
int64_t divvy_lock_token(const divvy_lock *l) {
    divvy_lock *lock = (divvy_lock *)(uintptr_t)l;
    if (!lock || dv_client_forked(lock->object.client)) return 0;
    divvy_client *client = lock->object.client;
    int64_t token = atomic_load(&lock->token);
    if (!token || !dv_client_alive_at(client, dv_client_now(client))) return 0;
    return atomic_load(&lock->token) == token ? token : 0;
}

int divvy_lock_held(const divvy_lock *lock) {
    return divvy_lock_token(lock) != 0;
}

const char *dv_lock_path(const divvy_lock *lock) {
    return is_held(lock) ? dv_contender_path(lock->place->contender) : NULL;
}
