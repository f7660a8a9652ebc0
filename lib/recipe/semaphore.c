/* Semaphore: a pool of slots, of which no more are held at a time than its limit says. SPDX-License-Identifier:
 * Apache-2.0
 *
 * An acquire takes a lease (lease.h), a new one each time; a release gives it up. Leases that are given up see to their
 * own end. docs/protocol.md, rules E1 to E13. */
#include "recipe/semaphore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/container.h"
#include "base/utf8.h"
#include "recipe/record.h"
#include "znode/path.h"

enum {
    IDENTIFIER_BYTES_MAX = 2048,
    TRY_MS = 900,      /* a try waits for a server's answer, not for other contenders */
    MISSING_MAX = 100, /* so often the paths may vanish under one acquire */
};
static const char QUEUE_SUFFIX[] = "-__lock__";

struct dv_semaphore_acquire {
    dv_callback callback; /* first; only of asynchronous ones, which are malloc'ed */
    divvy_semaphore *semaphore;
    void (*done)(divvy_semaphore *semaphore, int result, void *user); /* NULL: the caller waits */
    void *user;
    bool is_try, ended;
    int result;
    char reason[200]; /* of an error, where there is more to say than its name */
};

static void proceed(divvy_semaphore *s, bool ensure);

static int fail(const divvy_semaphore *s, int error, const char *reason) {
    return dv_fail(s->object.client, error, "semaphore %s: %s", s->pool.path,
                   reason && *reason ? reason : divvy_strerror(error));
}

/* ---- the end of an acquire ---- */

static void call_done(dv_callback *callback) {
    dv_semaphore_acquire *a = (dv_semaphore_acquire *)(void *)callback;
    if (a->result) fail(a->semaphore, a->result, a->reason);
    a->done(a->semaphore, a->result, a->user);
}

static void start_done(dv_callback *callback) {
    dv_semaphore_acquire *a = (dv_semaphore_acquire *)(void *)callback;
    if (a->semaphore->granted == a) a->semaphore->granted = NULL;
}

static void release_done(dv_callback *callback) {
    dv_semaphore_acquire *a = (dv_semaphore_acquire *)(void *)callback;
    divvy_semaphore *s = a->semaphore;
    start_done(callback);
    s->dones_due--;
    pthread_cond_broadcast(&s->object.client->changed); /* A destroy may wait for it. */
    dv_object_unref(&s->object);
    free(a);
}

/* It is told even when the semaphore is destroyed or the client closed before, so it is the client's callback. */
static void queue_done(divvy_semaphore *s, dv_semaphore_acquire *a) {
    a->callback = (dv_callback){.always = true, .starting = start_done, .call = call_done, .release = release_done};
    if (a->result == 0) s->granted = a;
    s->dones_due++;
    dv_object_ref(&s->object);
    dv_callback_queue(s->object.client, &a->callback);
}

static void give_up(divvy_semaphore *s) {
    dv_taken *taken = s->taken;
    s->taken = NULL;
    if (taken) dv_lease_leave(taken->lease);
}

/* E9: one that ends without slots leaves nothing behind. */
static void finish(divvy_semaphore *s, int result) {
    dv_semaphore_acquire *a = s->acquire;
    s->acquire = NULL;
    dv_timer_cancel(&s->deadline_timer);
    if (result != 0) give_up(s);
    a->result = result;
    a->ended = true;
    if (a->done) queue_done(s, a);
    dv_client_changed(s->object.client);
}

static void on_deadline(dv_timer *timer, int64_t now) {
    (void)now;
    finish(DV_CONTAINER(timer, divvy_semaphore, deadline_timer), DIVVY_ETIMEDOUT);
}

/* ---- holding and losing: docs/protocol.md, E10 ---- */

/* Admitted, on a session that is proven to live, and no loss of the time before is still to be told. */
static void settle(divvy_semaphore *s, int64_t now) {
    if (!s->acquire || !s->taken || !s->taken->admitted || s->telling_lost) return;
    if (!dv_client_alive_at(s->object.client, now)) return;
    atomic_store(&s->slot, dv_slots_at(dv_lease_slots(s->taken->lease), 0));
    atomic_store(&s->token, dv_lease_token(s->taken->lease));
    finish(s, 0);
}

static void let_go(divvy_semaphore *s) {
    atomic_store(&s->token, 0);
    give_up(s);
    dv_client_changed(s->object.client);
}

static void call_lost(dv_callback *callback) {
    divvy_semaphore *s = DV_CONTAINER(callback, divvy_semaphore, lost_callback);
    if (!s->mute) s->on_lost(s, s->user);
}

/* A destroy that waits for what is due does not tell of a loss any more. */
static void start_lost(dv_callback *callback) {
    divvy_semaphore *s = DV_CONTAINER(callback, divvy_semaphore, lost_callback);
    s->mute = s->ending;
}

static void release_lost(dv_callback *callback) {
    divvy_semaphore *s = DV_CONTAINER(callback, divvy_semaphore, lost_callback);
    s->telling_lost = false;
    if (s->acquire) settle(s, dv_client_now(s->object.client));
}

/* Told once, since nothing is held afterwards. */
static void lose(divvy_semaphore *s, const char *why) {
    dv_client_log(s->object.client, DIVVY_LOG_WARN, "slots of %s were held and are lost: %s", s->pool.path, why);
    let_go(s);
    if (!s->on_lost) return;
    assert(!s->telling_lost);
    s->telling_lost = true;
    s->lost_callback =
        (dv_callback){.object = &s->object, .starting = start_lost, .call = call_lost, .release = release_lost};
    dv_callback_queue(s->object.client, &s->lost_callback);
}

/* ---- the lease ---- */

static void on_admitted(void *owner, dv_lease *lease, int64_t now) {
    dv_taken *taken = owner;
    (void)lease;
    taken->admitted = true;
    if (taken->semaphore->taken == taken) settle(taken->semaphore, now);
}

/* A try ends here, unless it stands behind a lease of this very object that is about to go. */
static void on_waits(void *owner, dv_lease *lease, int64_t now) {
    divvy_semaphore *s = ((dv_taken *)owner)->semaphore;
    (void)now;
    s->missing_count = 0;
    if (!s->acquire || !s->acquire->is_try) return;
    for (const dv_taken *other = s->all; other; other = other->next) {
        if (dv_lease_waits_for(lease, other->lease)) return;
    }
    finish(s, DIVVY_EBUSY);
}

/* Paths are made only when they are found missing; a connection or a watch's room that is missing comes by itself. */
static void on_failed(void *owner, dv_lease *lease, int error, int64_t now) {
    dv_taken *taken = owner;
    divvy_semaphore *s = taken->semaphore;
    (void)now;
    if (s->taken != taken) return;
    s->taken = NULL;
    if (atomic_load(&s->token)) {
        lose(s, "the node was deleted by somebody else");
    } else if (error == DIVVY_ENOENT && ++s->missing_count <= MISSING_MAX) {
        proceed(s, true);
    } else if (error == DIVVY_ECONNECTION || (error == DIVVY_EBUSY && !s->acquire->is_try)) {
        proceed(s, s->missing_count > 0);
    } else {
        snprintf(s->acquire->reason, sizeof s->acquire->reason, "%s", dv_lease_reason(lease));
        finish(s, error == DIVVY_EBUSY ? DIVVY_ELIMIT : error);
    }
}

static void on_gone(void *owner, dv_lease *lease, int64_t now) {
    dv_taken *taken = owner;
    divvy_semaphore *s = taken->semaphore;
    (void)lease, (void)now;
    dv_taken **link = &s->all;
    while (*link != taken) link = &(*link)->next;
    *link = taken->next;
    if (s->taken == taken) s->taken = NULL; /* The session took it; the next one begins anew. */
    free(taken);
    dv_object_unref(&s->object);
}

/* 0, also when there is no room for now, or an error that ends the acquire. */
static int take(divvy_semaphore *s, bool ensure) {
    static const dv_lease_events events = {on_admitted, on_waits, on_failed, on_gone};
    dv_taken *taken = calloc(1, sizeof *taken);
    if (!taken) return DIVVY_ENOMEM;
    *taken = (dv_taken){.next = s->all, .semaphore = s};
    int error = dv_lease_enter(&taken->lease, s->object.client, &s->pool, ensure, &events, taken);
    if (error) {
        free(taken);
        if (error != DIVVY_EBUSY) return error;
        return s->acquire->is_try ? DIVVY_ELIMIT : 0; /* DV_SESSION_ROOM tells when to try again. */
    }
    s->taken = s->all = taken;
    dv_object_ref(&s->object);
    return 0;
}

static bool may_take(const divvy_semaphore *s) {
    return s->acquire && !s->taken && dv_client_connected(s->object.client);
}

static void proceed(divvy_semaphore *s, bool ensure) {
    int error = may_take(s) ? take(s, ensure) : 0;
    if (error) finish(s, error);
}

/* ---- the session ---- */

/* Destroyed, or the client ends: what was granted and not told is not held any more when it is. */
static void withdraw(divvy_semaphore *s) {
    if (s->granted) s->granted->result = DIVVY_ECANCELED;
    s->granted = NULL;
    if (s->acquire) finish(s, s->acquire->done ? DIVVY_ECANCELED : DIVVY_ECLOSED);
    let_go(s);
}

/* Leases see to themselves: on a session that is over they end, on a host's that lives on they are deleted. */
static void on_session_lost(divvy_semaphore *s) {
    divvy_client *client = s->object.client;
    if (atomic_load(&s->token)) lose(s, client->end_reason);
    give_up(s);
    int end = dv_client_end_error(client);
    if (s->acquire && end) finish(s, end);
}

static void hear(void *context, dv_session_event event, int64_t now) {
    divvy_semaphore *s = context;
    switch (event) {
    case DV_SESSION_CONNECTED:
    case DV_SESSION_ROOM: proceed(s, s->missing_count > 0); break;
    case DV_SESSION_PROVEN: settle(s, now); break;
    case DV_SESSION_LOST: on_session_lost(s); break;
    case DV_SESSION_CLOSING:
    case DV_SESSION_CLOSED: withdraw(s); break;
    case DV_SESSION_AGAIN:
    case DV_SESSION_SUSPENDED:
    case DV_SESSION_OVER:
    case DV_SESSION_LINK: break;
    }
}

/* ---- life ---- */

static void free_semaphore(divvy_semaphore *s) {
    free(s->pool.path);
    free(s->pool.queue);
    free(s->pool.identifier);
    dv_judged_clear(&s->pool.judged);
    free(s);
}

static void release(dv_object *object) {
    divvy_semaphore *s = (divvy_semaphore *)(void *)object;
    divvy_client *client = object->client;
    assert(!s->all && !s->acquire && s->ending);
    free_semaphore(s);
    dv_client_unref(client);
}

static int check_identifier(const divvy_client *client, const char *identifier) {
    if (!*identifier) return dv_fail(client, DIVVY_EINVAL, "semaphore: the identifier is empty");
    if (strlen(identifier) > IDENTIFIER_BYTES_MAX)
        return dv_fail(client, DIVVY_E2BIG, "semaphore: the identifier has %zu bytes; %d are the most",
                       strlen(identifier), IDENTIFIER_BYTES_MAX);
    if (!dv_is_utf8(identifier)) return dv_fail(client, DIVVY_EINVAL, "semaphore: the identifier is not UTF-8");
    return 0;
}

static int check(divvy_client *client, const divvy_semaphore_config *c) {
    const char *reason = NULL;
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    if (!c->path) return dv_fail(client, DIVVY_EINVAL, "semaphore: path is NULL");
    if (dv_path_check(c->path, &reason) != 0)
        return dv_fail(client, DIVVY_EINVAL, "semaphore: the path \"%.200s\" %s", c->path, reason);
    if (strcmp(c->path, "/") == 0) return dv_fail(client, DIVVY_EINVAL, "semaphore: \"/\" cannot be a pool");
    if (c->limit < 1 || c->limit > INT32_MAX)
        return dv_fail(client, DIVVY_EINVAL, "semaphore: limit is %u; it may be 1 to %d", c->limit, INT32_MAX);
    if (c->count < 1 || c->count > INT32_MAX)
        return dv_fail(client, DIVVY_EINVAL, "semaphore: count is %u; it may be 1 to %d", c->count, INT32_MAX);
    if (c->limit_policy < DIVVY_LIMIT_ERROR || c->limit_policy > DIVVY_LIMIT_PROVIDED)
        return dv_fail(client, DIVVY_EINVAL, "semaphore: limit_policy is %d, which is none of its values",
                       c->limit_policy);
    return c->identifier ? check_identifier(client, c->identifier) : 0;
}

static int make(divvy_semaphore **out, divvy_client *client, const divvy_semaphore_config *c) {
    divvy_semaphore *s = calloc(1, sizeof *s);
    if (!s) return DIVVY_ENOMEM;
    s->pool = (dv_pool){.path = dv_client_path(client, c->path),
                        .mode = c->container ? DV_CONTAINER : DV_PERSISTENT,
                        .identifier = c->identifier ? strdup(c->identifier) : dv_client_default_identifier(),
                        .limit = c->limit,
                        .count = c->count,
                        .policy = c->limit_policy};
    if (s->pool.path && asprintf(&s->pool.queue, "%s%s", s->pool.path, QUEUE_SUFFIX) < 0) s->pool.queue = NULL;
    if (!s->pool.queue || !s->pool.identifier) {
        free_semaphore(s);
        return DIVVY_ENOMEM;
    }
    s->on_lost = c->on_lost;
    s->user = c->user;
    s->deadline_timer.fire = on_deadline;
    s->listener = (dv_listener){.hear = hear, .context = s};
    dv_object_init(&s->object, client, release);
    dv_listen(client, &s->listener);
    *out = s;
    return 0;
}

int divvy_semaphore_create(divvy_semaphore **out, divvy_client *client, const divvy_semaphore_config *config) {
    static const divvy_semaphore_config defaults = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore_config c;
    if (out) *out = NULL;
    if (!out || !config) return dv_fail(client, DIVVY_EINVAL, "semaphore: out or config is NULL");
    int error = dv_turn_enter(client);
    if (error) return error;
    if (dv_config_copy(&c, sizeof c, &defaults, config) != 0)
        error = dv_fail(client, DIVVY_EINVAL, "semaphore: the config was not made with DIVVY_SEMAPHORE_CONFIG_INIT");
    if (!error) error = check(client, &c);
    if (!error) error = dv_fail_plainly(client, make(out, client, &c));
    dv_turn_end(client);
    return error;
}

/* An ending turn sends, wakes the callback thread, and on a closed client runs what is left. */
static void wait_for_dones(divvy_semaphore *s) {
    divvy_client *client = s->object.client;
    while (s->dones_due && !dv_client_in_callback(client)) {
        dv_turn_end(client);
        dv_turn_begin(client);
        if (!s->dones_due) break;
        if (!client->config.manual || !dv_callback_run_one(client)) pthread_cond_wait(&client->changed, &client->turn);
    }
}

void divvy_semaphore_destroy(divvy_semaphore *s) {
    if (!s || dv_client_forked(s->object.client)) return;
    divvy_client *client = s->object.client;
    dv_client_ref(client);
    dv_turn_begin(client);
    s->ending = true;
    withdraw(s);
    dv_unlisten(client, &s->listener);
    wait_for_dones(s);
    dv_object_destroy(&s->object);
    dv_turn_end(client);
    dv_client_unref(client);
}

/* ---- acquire ---- */

static int begin(divvy_semaphore *s, dv_semaphore_acquire *a, int64_t timeout_ms) {
    divvy_client *client = s->object.client;
    int end = dv_client_end_error(client);
    if (s->ending) return DIVVY_ESTATE;
    if (end) return end;
    if (atomic_load(&s->token) && !dv_client_alive_at(client, dv_client_now(client)))
        lose(s, "the session's deadline has passed");
    if (atomic_load(&s->token) || s->acquire) return DIVVY_EALREADY;
    a->semaphore = s;
    a->is_try = timeout_ms == 0;
    s->acquire = a;
    s->missing_count = 0;
    int error = may_take(s) ? take(s, false) : 0;
    if (error) s->acquire = NULL;
    return error;
}

static int64_t limit_ms(int64_t timeout_ms) {
    if (timeout_ms == 0) return TRY_MS;
    return timeout_ms > DV_TIME_MAX_MS ? DV_TIME_MAX_MS : timeout_ms;
}

static bool has_ended(void *context) {
    return ((const dv_semaphore_acquire *)context)->ended;
}

static int enter(divvy_semaphore *s) {
    return dv_turn_enter(s ? s->object.client : NULL);
}

int divvy_semaphore_acquire(divvy_semaphore *s, int64_t timeout_ms) {
    int error = enter(s);
    if (error) return error;
    divvy_client *client = s->object.client;
    dv_semaphore_acquire a = {.result = 0};
    dv_client_ref(client);
    dv_object_ref(&s->object);
    if (timeout_ms < -1) error = DIVVY_EINVAL;
    else error = dv_client_in_callback(client) ? DIVVY_EDEADLK : begin(s, &a, timeout_ms);
    if (!error) {
        int waited = dv_client_wait(client, limit_ms(timeout_ms), has_ended, &a);
        if (!a.ended) finish(s, waited);
        error = a.result ? a.result : waited;
    }
    if (error) fail(s, error, a.reason);
    dv_object_unref(&s->object);
    dv_turn_end(client);
    dv_client_unref(client);
    return error;
}

int divvy_semaphore_try_acquire(divvy_semaphore *s) {
    return divvy_semaphore_acquire(s, 0);
}

int divvy_semaphore_acquire_async(divvy_semaphore *s, int64_t timeout_ms,
                                  void (*done)(divvy_semaphore *semaphore, int result, void *user), void *user) {
    int error = enter(s);
    if (error) return error;
    divvy_client *client = s->object.client;
    dv_semaphore_acquire *a = NULL;
    if (!done || timeout_ms < -1) error = DIVVY_EINVAL;
    else if (!(a = calloc(1, sizeof *a))) error = DIVVY_ENOMEM;
    else {
        a->done = done;
        a->user = user;
        error = begin(s, a, timeout_ms);
    }
    if (error) {
        free(a);
        fail(s, error, NULL);
    } else if (timeout_ms >= 0) {
        dv_timer_set(client, &s->deadline_timer, dv_client_now(client) + limit_ms(timeout_ms));
    }
    dv_turn_end(client);
    return error;
}

/* ---- what is held ---- */

int divvy_semaphore_release(divvy_semaphore *s) {
    int error = enter(s);
    if (error) return error;
    divvy_client *client = s->object.client;
    if (divvy_semaphore_held(s)) let_go(s);
    else error = fail(s, DIVVY_ENOTHELD, NULL);
    dv_turn_end(client);
    return error;
}

int divvy_semaphore_cancel(divvy_semaphore *s) {
    int error = enter(s);
    if (error) return error;
    divvy_client *client = s->object.client;
    if (s->acquire) finish(s, DIVVY_ECANCELED);
    dv_turn_end(client);
    return 0;
}

/* Without the turn: the token is asked twice, lest the belief be that in another session than the token's, or the slot
 * that of another lease. */
static int64_t look(const divvy_semaphore *semaphore, int *slot) {
    divvy_semaphore *s = (divvy_semaphore *)(uintptr_t)semaphore;
    if (!s || dv_client_forked(s->object.client)) return 0;
    divvy_client *client = s->object.client;
    int64_t token = atomic_load(&s->token);
    *slot = atomic_load(&s->slot);
    if (!token || !dv_client_alive_at(client, dv_client_now(client))) return 0;
    return atomic_load(&s->token) == token ? token : 0;
}

int divvy_semaphore_held(const divvy_semaphore *s) {
    int slot;
    return look(s, &slot) != 0;
}

int64_t divvy_semaphore_token(const divvy_semaphore *s) {
    int slot;
    return look(s, &slot);
}

int divvy_semaphore_slot(const divvy_semaphore *s) {
    int slot;
    return look(s, &slot) ? slot : -1;
}

int divvy_semaphore_slot_at(const divvy_semaphore *semaphore, uint32_t i) {
    divvy_semaphore *s = (divvy_semaphore *)(uintptr_t)semaphore;
    if (!s || dv_turn_enter(s->object.client) != 0) return -1;
    divvy_client *client = s->object.client;
    int slot = divvy_semaphore_held(s) ? dv_slots_at(dv_lease_slots(s->taken->lease), i) : -1;
    dv_turn_end(client);
    return slot;
}
