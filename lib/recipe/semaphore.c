/* Semaphore: a pool of slots, held up to its limit. SPDX-License-Identifier: Apache-2.0
 *
 * An acquire takes a new lease (lease.h), a release gives it up. acquisition.c has the parts that a lock has as well.
 * docs/protocol.md, rules E1 to E15. */
#include "recipe/semaphore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/utf8.h"

enum { IDENTIFIER_BYTES_MAX = 2048 };
static const char QUEUE_SUFFIX[] = "-__lock__";

static divvy_semaphore *semaphore_of(dv_acquisition *acquisition) {
    return (divvy_semaphore *)(void *)acquisition;
}

/* ---- the lease ---- */

static int enter_queue(dv_ticket *ticket, bool ensure) {
    return dv_lease_enter(ticket, &semaphore_of(ticket->acquisition)->pool, ensure);
}

static void leave_queue(dv_ticket *ticket) {
    dv_lease_leave(ticket->place);
}

static bool waits_for(const dv_ticket *ticket, const dv_ticket *other) {
    return dv_lease_waits_for(ticket->place, other->place);
}

/* Stores the slot before the token: a thread that reads the token finds the slot that goes with it. */
static int64_t hold(const dv_ticket *ticket) {
    const dv_lease *lease = ticket->place;
    atomic_store(&semaphore_of(ticket->acquisition)->slot, dv_slots_at(&lease->slots, 0));
    return lease->token;
}

static void verify(const dv_ticket *ticket) {
    dv_lease_verify(ticket->place);
}

/* ---- what the user hears ---- */

static void tell_done(dv_acquire *acquire) {
    void (*done)(divvy_semaphore *, int, void *) = (void (*)(divvy_semaphore *, int, void *))acquire->done;
    done(semaphore_of(acquire->acquisition), acquire->result, acquire->user);
}

static void tell_lost(dv_acquisition *a) {
    void (*on_lost)(divvy_semaphore *, void *) = (void (*)(divvy_semaphore *, void *))a->on_lost;
    on_lost(semaphore_of(a), a->user);
}

/* ---- life ---- */

static void free_semaphore(dv_acquisition *a) {
    divvy_semaphore *s = semaphore_of(a);
    free(s->pool.path);
    free(s->pool.queue);
    free(s->pool.identifier);
    dv_judged_clear(&s->pool.judged);
    free(s);
}

static const dv_acquisition_kind kind = {.name = "semaphore",
                                         .enter = enter_queue,
                                         .leave = leave_queue,
                                         .waits_for = waits_for,
                                         .hold = hold,
                                         .verify = verify,
                                         .tell_done = tell_done,
                                         .tell_lost = tell_lost,
                                         .free = free_semaphore};

static int check_identifier(const divvy_client *client, const char *identifier) {
    int error = dv_client_check_text(client, "semaphore", "identifier", identifier, IDENTIFIER_BYTES_MAX);
    if (error) return error;
    if (!dv_is_utf8(identifier)) return dv_fail(client, DIVVY_EINVAL, "semaphore: the identifier is not UTF-8");
    return 0;
}

static int check(divvy_client *client, const divvy_semaphore_config *c) {
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    bool is_root = c->path && strcmp(c->path, "/") == 0;
    if (is_root) return dv_fail(client, DIVVY_EINVAL, "semaphore: \"/\" cannot be a pool");
    int error = dv_client_check_directory(client, "semaphore", c->path);
    if (error) return error;
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
        free_semaphore(&s->acquisition);
        return DIVVY_ENOMEM;
    }
    dv_acquisition_init(&s->acquisition, client, &kind, DV_RECIPE_SEMAPHORE, s->pool.path, (void (*)(void))c->on_lost,
                        c->user);
    *out = s;
    return 0;
}

int divvy_semaphore_create(divvy_semaphore **out, divvy_client *client, const divvy_semaphore_config *config) {
    static const divvy_semaphore_config defaults = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore_config c;
    if (out) *out = NULL;
    if (!out || !config) return dv_fail(client, DIVVY_EINVAL, "semaphore: out or config is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    if (dv_config_copy(&c, sizeof c, &defaults, config) != 0)
        error = dv_fail(client, DIVVY_EINVAL, "semaphore: the config was not made with DIVVY_SEMAPHORE_CONFIG_INIT");
    if (!error) error = check(client, &c);
    if (!error) error = dv_fail_plainly(client, make(out, client, &c));
    dv_client_unlock(client);
    return error;
}

void divvy_semaphore_destroy(divvy_semaphore *s) {
    if (s) dv_acquisition_destroy(&s->acquisition, NULL);
}

void divvy_semaphore_destroy_async(divvy_semaphore *s, void (*gone)(void *user), void *user) {
    if (s) dv_acquisition_destroy(&s->acquisition, &(dv_farewell){gone, user});
}

/* ---- acquire, release ---- */

int divvy_semaphore_acquire(divvy_semaphore *s, int64_t timeout_ms) {
    int error = dv_semaphore_enter(s);
    return error ? error : dv_acquisition_acquire(&s->acquisition, timeout_ms);
}

int divvy_semaphore_try_acquire(divvy_semaphore *s) {
    return divvy_semaphore_acquire(s, 0);
}

int divvy_semaphore_acquire_async(divvy_semaphore *s, int64_t timeout_ms,
                                  void (*done)(divvy_semaphore *semaphore, int result, void *user), void *user) {
    int error = dv_semaphore_enter(s);
    return error ? error : dv_acquisition_acquire_async(&s->acquisition, timeout_ms, (void (*)(void))done, user);
}

int divvy_semaphore_release(divvy_semaphore *s) {
    int error = dv_semaphore_enter(s);
    return error ? error : dv_acquisition_release(&s->acquisition);
}

int divvy_semaphore_wait_gone(divvy_semaphore *s, int64_t timeout_ms) {
    int error = dv_semaphore_enter(s);
    return error ? error : dv_acquisition_wait_gone(&s->acquisition, timeout_ms);
}

uint64_t divvy_semaphore_attempt_id(const divvy_semaphore *s) {
    return s ? dv_acquisition_attempt(&s->acquisition) : 0;
}

int divvy_semaphore_cancel(divvy_semaphore *s, uint64_t attempt_id) {
    int error = dv_semaphore_enter(s);
    return error ? error : dv_acquisition_cancel(&s->acquisition, attempt_id);
}

/* ---- what is held ---- */

int64_t divvy_semaphore_token(const divvy_semaphore *s) {
    return s ? dv_acquisition_token(&s->acquisition) : 0;
}

int divvy_semaphore_held(const divvy_semaphore *s) {
    return divvy_semaphore_token(s) != 0;
}

/* Without the client lock: the token is read before and after, so that the slot is not that of another lease. */
int divvy_semaphore_slot(const divvy_semaphore *semaphore) {
    divvy_semaphore *s = (divvy_semaphore *)(uintptr_t)semaphore;
    int64_t token = divvy_semaphore_token(s);
    int slot = token ? atomic_load(&s->slot) : -1;
    return token && divvy_semaphore_token(s) == token ? slot : -1;
}

int divvy_semaphore_slot_at(const divvy_semaphore *semaphore, uint32_t i) {
    divvy_semaphore *s = (divvy_semaphore *)(uintptr_t)semaphore;
    if (!s || !dv_client_enter_quietly(s->acquisition.object.client)) return -1;
    dv_acquisition *a = &s->acquisition;
    int slot = dv_acquisition_is_held(a) ? dv_slots_at(&((const dv_lease *)a->ticket->place)->slots, i) : -1;
    dv_client_unlock(a->object.client);
    return slot;
}
