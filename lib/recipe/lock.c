/* Lock: one holder at a time, or one writer or many readers. SPDX-License-Identifier: Apache-2.0
 *
 * An acquire takes a place in the queue, a release gives it up (acquisition.c). docs/protocol.md, rules K1 to K6. */
#include "recipe/lock.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "znode/ensure.h"

enum { IDENTIFIER_BYTES_MAX = 64 * 1024 };

static const dv_queue_kind *const queues[] = {
    [DIVVY_EXCLUSIVE] = &dv_lock_queue, [DIVVY_READ] = &dv_read_queue, [DIVVY_WRITE] = &dv_write_queue};

static const dv_recipe recipes[] = {
    [DIVVY_EXCLUSIVE] = DV_RECIPE_LOCK, [DIVVY_READ] = DV_RECIPE_READ_LOCK, [DIVVY_WRITE] = DV_RECIPE_WRITE_LOCK};

static divvy_lock *lock_of(dv_acquisition *acquisition) {
    return (divvy_lock *)(void *)acquisition;
}

/* ---- the directory ---- */

static void on_ensured(void *context, int error, int64_t now) {
    dv_acquisition *a = context;
    (void)now;
    a->waits_for_path = false;
    if (a->acquire && !dv_session_over(error)) {
        if (error == DIVVY_EQUOTA) a->missing_count = 0; /* B12: as long as it takes */
        bool again = error == 0 || error == DIVVY_ENOENT || error == DIVVY_ECONNECTION || error == DIVVY_EQUOTA;
        if (again) dv_acquisition_proceed(a); /* Without a connection the next one does. */
        else dv_acquisition_finish(a, error);
    }
    dv_object_unref(&a->object);
}

/* K2: the directory is made only when it is found missing, so that taking a free lock is one round trip. */
static void make_directory(divvy_lock *lock) {
    dv_acquisition *a = &lock->acquisition;
    if (++a->missing_count > DV_ACQUISITION_MISSING_MAX) {
        dv_acquisition_finish(a, DIVVY_ENOENT);
        return;
    }
    if (a->waits_for_path) return;
    if (dv_ensure_path(a->object.client->znode, lock->directory, lock->directory_mode, on_ensured, a) != 0) {
        dv_acquisition_finish(a, DIVVY_ENOMEM);
        return;
    }
    a->waits_for_path = true;
    dv_object_ref(&a->object);
}

/* ---- the place in the queue ---- */

/* Either the directory is missing, or somebody has deleted our node. */
static void on_failed(void *owner, int error, int64_t now) {
    dv_ticket *ticket = owner;
    dv_acquisition *a = ticket->acquisition;
    (void)now;
    if (!dv_ticket_failed(ticket)) return;
    if (error == DIVVY_ENOENT) make_directory(lock_of(a));
    else dv_acquisition_finish(a, error);
}

static void on_gone(void *owner, dv_contender *contender, int64_t now) {
    (void)contender, (void)now;
    dv_ticket_gone(owner);
}

static int enter_queue(dv_ticket *ticket, bool ensure) {
    static const dv_contender_events events = {.held = dv_ticket_first,
                                               .failed = on_failed,
                                               .gone = on_gone,
                                               .waits = dv_ticket_waits,
                                               .outranked = dv_ticket_yield};
    divvy_lock *lock = lock_of(ticket->acquisition);
    dv_contender *contender;
    (void)ensure; /* K2: the directory is made only when it is found missing. */
    int error = dv_contender_enter(&contender, lock->acquisition.object.client, lock->directory, &lock->queue,
                                   lock->identifier, &events, ticket);
    if (!error) ticket->place = contender;
    return error;
}

static void leave_queue(dv_ticket *ticket) {
    dv_contender_leave(ticket->place);
}

static bool waits_for(const dv_ticket *ticket, const dv_ticket *other) {
    return dv_contender_waits_for(ticket->place, other->place);
}

/* ---- holding ---- */

static int64_t hold(const dv_ticket *ticket) {
    return dv_contender_token(ticket->place);
}

static void verify(const dv_ticket *ticket) {
    dv_contender_verify(ticket->place);
}

/* ---- what the user hears ---- */

static void tell_done(dv_acquire *acquire) {
    void (*done)(divvy_lock *, int, void *) = (void (*)(divvy_lock *, int, void *))acquire->done;
    done(lock_of(acquire->acquisition), acquire->result, acquire->user);
}

static void tell_lost(dv_acquisition *a) {
    void (*on_lost)(divvy_lock *, void *) = (void (*)(divvy_lock *, void *))a->on_lost;
    on_lost(lock_of(a), a->user);
}

/* ---- life ---- */

static void free_lock(dv_acquisition *a) {
    divvy_lock *lock = lock_of(a);
    free(lock->directory);
    free(lock->identifier);
    free(lock);
}

#define KIND(what)                                                                                        \
    {                                                                                                     \
        .name = (what), .enter = enter_queue, .leave = leave_queue, .waits_for = waits_for, .hold = hold, \
        .verify = verify, .tell_done = tell_done, .tell_lost = tell_lost, .free = free_lock,              \
    }
static const dv_acquisition_kind lock_kind = KIND("lock"), election_kind = KIND("election");

static int check(divvy_client *client, const divvy_lock_config *c) {
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    int error = dv_client_check_directory(client, "lock", c->path);
    if (error) return error;
    if (c->mode != DIVVY_EXCLUSIVE && c->mode != DIVVY_READ && c->mode != DIVVY_WRITE)
        return dv_fail(client, DIVVY_EINVAL, "lock: mode is %d, which is none of its values", c->mode);
    if (!c->identifier) return 0;
    return dv_client_check_text(client, "lock", "identifier", c->identifier, IDENTIFIER_BYTES_MAX);
}

static int make(divvy_lock **out, divvy_client *client, const divvy_lock_config *c, const dv_acquisition_kind *kind,
                const dv_queue_kind *queue) {
    divvy_lock *lock = calloc(1, sizeof *lock);
    if (!lock) return DIVVY_ENOMEM;
    lock->directory = dv_client_path(client, c->path);
    lock->identifier = c->identifier ? strdup(c->identifier) : dv_client_default_identifier();
    if (!lock->directory || !lock->identifier) {
        free_lock(&lock->acquisition);
        return DIVVY_ENOMEM;
    }
    lock->queue = *queue;
    lock->directory_mode = c->container ? DV_CONTAINER : DV_PERSISTENT;
    dv_recipe recipe = kind == &election_kind ? DV_RECIPE_ELECTION : recipes[c->mode];
    dv_acquisition_init(&lock->acquisition, client, kind, recipe, lock->directory, (void (*)(void))c->on_lost, c->user);
    *out = lock;
    return 0;
}

int divvy_lock_create(divvy_lock **out, divvy_client *client, const divvy_lock_config *config) {
    static const divvy_lock_config defaults = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock_config c;
    if (out) *out = NULL;
    if (!out || !config) return dv_fail(client, DIVVY_EINVAL, "lock: out or config is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    if (dv_config_copy(&c, sizeof c, &defaults, config) != 0)
        error = dv_fail(client, DIVVY_EINVAL, "lock: the config was not made with DIVVY_LOCK_CONFIG_INIT");
    if (!error) error = check(client, &c);
    if (!error) error = dv_fail_plainly(client, make(out, client, &c, &lock_kind, queues[c.mode]));
    dv_client_unlock(client);
    return error;
}

int dv_lock_create_for_election(divvy_lock **out, divvy_client *client, const divvy_lock_config *c,
                                const char *marker) {
    const dv_queue_kind queue = {.blocked_by = dv_election_markers, .alone = true, .yields = true};
    int error = make(out, client, c, &election_kind, &queue);
    if (error) return error;
    assert(strlen(marker) < sizeof(*out)->marker);
    strcpy((*out)->marker, marker);
    (*out)->queue.marker = (*out)->marker; /* Places may outlive the election, and not the lock. */
    return 0;
}

void divvy_lock_destroy(divvy_lock *lock) {
    if (lock) dv_acquisition_destroy(&lock->acquisition, NULL);
}

void divvy_lock_destroy_async(divvy_lock *lock, void (*gone)(void *user), void *user) {
    if (lock) dv_acquisition_destroy(&lock->acquisition, &(dv_farewell){gone, user});
}

/* ---- acquire, release ---- */

int divvy_lock_acquire(divvy_lock *lock, int64_t timeout_ms) {
    int error = dv_lock_enter(lock);
    return error ? error : dv_acquisition_acquire(&lock->acquisition, timeout_ms);
}

int divvy_lock_try_acquire(divvy_lock *lock) {
    return divvy_lock_acquire(lock, 0);
}

int divvy_lock_acquire_async(divvy_lock *lock, int64_t timeout_ms,
                             void (*done)(divvy_lock *lock, int result, void *user), void *user) {
    int error = dv_lock_enter(lock);
    return error ? error : dv_acquisition_acquire_async(&lock->acquisition, timeout_ms, (void (*)(void))done, user);
}

int divvy_lock_release(divvy_lock *lock) {
    int error = dv_lock_enter(lock);
    return error ? error : dv_acquisition_release(&lock->acquisition);
}

int divvy_lock_wait_gone(divvy_lock *lock, int64_t timeout_ms) {
    int error = dv_lock_enter(lock);
    return error ? error : dv_acquisition_wait_gone(&lock->acquisition, timeout_ms);
}

uint64_t divvy_lock_attempt_id(const divvy_lock *lock) {
    return lock ? dv_acquisition_attempt(&lock->acquisition) : 0;
}

int divvy_lock_cancel(divvy_lock *lock, uint64_t attempt_id) {
    int error = dv_lock_enter(lock);
    return error ? error : dv_acquisition_cancel(&lock->acquisition, attempt_id);
}

/* ---- what is held ---- */

int64_t divvy_lock_token(const divvy_lock *lock) {
    return lock ? dv_acquisition_token(&lock->acquisition) : 0;
}

int divvy_lock_held(const divvy_lock *lock) {
    return divvy_lock_token(lock) != 0;
}

static const char *own_path(const dv_acquisition *a) {
    return a->ticket && dv_contender_stands(a->ticket->place) ? dv_contender_path(a->ticket->place) : NULL;
}

size_t divvy_lock_node(const divvy_lock *lock, char *path, size_t path_bytes) {
    if (path && path_bytes) *path = '\0';
    if (!lock || !dv_client_enter_quietly(lock->acquisition.object.client)) return 0;
    divvy_client *client = lock->acquisition.object.client;
    size_t bytes = dv_client_show_path(client, own_path(&lock->acquisition), path, path_bytes);
    dv_client_unlock(client);
    return bytes;
}

int dv_lock_list(divvy_lock *lock, const dv_listing_kind *kind, divvy_strings **out, int64_t timeout_ms) {
    divvy_client *client = lock->acquisition.object.client;
    dv_object_hold(&lock->acquisition.object);
    int error = !out || timeout_ms < -1 ? DIVVY_EINVAL : 0;
    if (!error) error = dv_client_in_callback(client) ? DIVVY_EDEADLK : 0;
    if (!error) error = dv_listing_wait(client, lock->directory, kind, out, timeout_ms);
    if (error)
        dv_fail(client, error, "%s contenders: %s: %s", lock->acquisition.kind->name, lock->directory,
                dv_client_why(client, error));
    dv_object_let_go(&lock->acquisition.object);
    return error;
}

int divvy_lock_contenders(divvy_lock *lock, divvy_strings **out, int64_t timeout_ms) {
    static const dv_listing_kind contenders = {.choose = dv_queue_contenders, .take = dv_listing_add_data};
    if (out) *out = NULL;
    int error = dv_lock_enter(lock);
    return error ? error : dv_lock_list(lock, &contenders, out, timeout_ms);
}

const char *dv_lock_path(const divvy_lock *lock) {
    const dv_acquisition *a = &lock->acquisition;
    return dv_acquisition_is_held(a) ? dv_contender_path(a->ticket->place) : NULL;
}
