/* Semaphores: acquire, wait, look, resize, release, lose. SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#define PATH "/pool/s"

enum { NEVER = 1000 };

typedef struct {
    divvy_semaphore *semaphore;
    int done, result, lost;
    uint32_t count;
} user;

typedef struct {
    user a, b;
    uint32_t limit; /* the greatest that was in force */
} users;

static void on_done(divvy_semaphore *semaphore, int result, void *context) {
    user *u = context;
    (void)semaphore;
    u->done++;
    u->result = result;
}

static void on_lost(divvy_semaphore *semaphore, void *context) {
    user *u = context;
    (void)semaphore;
    u->lost++;
}

static uint32_t held(const user *u) {
    return u->semaphore && divvy_semaphore_held(u->semaphore) ? u->count : 0;
}

/* S9, and S2 for the numbers. */
static void check(sweep *s, void *context) {
    const users *u = context;
    if (held(&u->a) + held(&u->b) > u->limit) sweep_fail(s, "more are held than the limit allows");
    if (!held(&u->a) || !held(&u->b)) return;
    for (uint32_t i = 0; i < u->a.count; i++)
        for (uint32_t k = 0; k < u->b.count; k++)
            if (divvy_semaphore_slot_at(u->a.semaphore, i) == divvy_semaphore_slot_at(u->b.semaphore, k))
                sweep_fail(s, "two hold one slot");
}

static bool is_done(sweep *s, void *context) {
    (void)s;
    return ((user *)context)->done == 1;
}

static bool is_lost(sweep *s, void *context) {
    (void)s;
    return ((user *)context)->lost == 1;
}

static int acquire(sweep *s, user *u) {
    for (;;) {
        u->done = 0;
        u->result = NEVER;
        SWEEP_DO(s, divvy_semaphore_acquire_async(u->semaphore, -1, on_done, u));
        sweep_until(s, is_done, u, SWEEP_WAIT_MS, "acquire_async");
        if (!sweep_excuses(s, u->result)) return u->result;
    }
}

static void look(sweep *s, const users *u, size_t holders, size_t contenders) {
    divvy_holders *list = NULL;
    sweep_pass(s, 10); /* until the server that is asked has heard of it */
    SWEEP_DO(s, divvy_semaphore_holders(u->a.semaphore, &list, SWEEP_WAIT_MS));
    if (divvy_holders_count(list) != holders) sweep_fail(s, "holders: %zu", divvy_holders_count(list));
    divvy_holders_free(list);
    size_t seen = contenders + 1;
    for (int tries = 0; tries < 100 && seen != contenders; tries++) { /* One that was refused comes a little later. */
        if (tries > 0) sweep_pass(s, 100);
        if (tries > 0) divvy_holders_free(list);
        SWEEP_DO(s, divvy_semaphore_contenders(u->a.semaphore, &list, SWEEP_WAIT_MS));
        seen = divvy_holders_count(list);
    }
    if (seen != contenders) sweep_fail(s, "contenders: %zu", seen);
    divvy_holders_free(list);
}

static void destroy(user *u) {
    divvy_semaphore *semaphore = u->semaphore;
    u->semaphore = NULL;
    divvy_semaphore_destroy(semaphore);
}

/* The other one wants two slots, and there is one. */
static void wait_for_room(sweep *s, users *u, bool resizes) {
    for (;;) {
        u->b.done = 0;
        SWEEP_DO(s, divvy_semaphore_acquire_async(u->b.semaphore, -1, on_done, &u->b));
        sweep_pass(s, 2000);
        if (!u->b.done) break;
        SWEEP_CHECK(s, sweep_excuses(s, u->b.result));
    }
    look(s, u, 1, 1);
    if (resizes) {
        u->limit = 3;
        SWEEP_DO(s, divvy_semaphore_resize(u->a.semaphore, 3, SWEEP_WAIT_MS));
    } else {
        SWEEP_CHECK(s, divvy_semaphore_release(u->a.semaphore) == 0);
    }
    sweep_until(s, is_done, &u->b, SWEEP_WAIT_MS, "the next in the queue");
    if (sweep_excuses(s, u->b.result)) u->b.result = acquire(s, &u->b);
    SWEEP_CHECK(s, u->b.result == 0 && divvy_semaphore_held(u->b.semaphore));
    look(s, u, resizes ? 2 : 1, 0);
    if (resizes) SWEEP_CHECK(s, divvy_semaphore_release(u->a.semaphore) == 0);
    SWEEP_CHECK(s, divvy_semaphore_release(u->b.semaphore) == 0);
}

static void lose(sweep *s, users *u) {
    u->a.lost = 0;
    SWEEP_CHECK(s, acquire(s, &u->a) == 0);
    divvy_testing_expire(s->ensemble, s->clients[0]);
    sweep_until(s, is_lost, &u->a, 3 * SWEEP_TIMEOUT_MS, "on_lost");
    SWEEP_CHECK(s, acquire(s, &u->a) == 0);
}

static void run(sweep *s, int policy, bool resizes) {
    users u = {.a.count = 1, .b.count = 2, .limit = 2};
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = PATH;
    config.limit = 2;
    config.limit_policy = policy;
    config.on_lost = on_lost;
    sweep_open(s, 0);
    sweep_open(s, 1);
    s->check = check;
    s->user = &u;
    s->empty_paths[0] = PATH;
    s->empty_paths[1] = PATH "-__lock__";
    sweep_begin(s);
    config.user = &u.a;
    SWEEP_DO(s, divvy_semaphore_create(&u.a.semaphore, s->clients[0], &config));
    config.user = &u.b;
    config.count = u.b.count;
    config.identifier = "b";
    SWEEP_DO(s, divvy_semaphore_create(&u.b.semaphore, s->clients[1], &config));
    SWEEP_DO(s, divvy_semaphore_acquire(u.a.semaphore, SWEEP_WAIT_MS));
    SWEEP_CHECK(s, divvy_semaphore_token(u.a.semaphore) > 0 && divvy_semaphore_slot(u.a.semaphore) == 0);
    wait_for_room(s, &u, resizes);
    lose(s, &u);
    destroy(&u.a);
    destroy(&u.b);
    sweep_end(s);
}

void sweep_semaphore_error(sweep *s) {
    run(s, DIVVY_LIMIT_ERROR, true);
}

void sweep_semaphore_stored(sweep *s) {
    run(s, DIVVY_LIMIT_STORED, true);
}

void sweep_semaphore_provided(sweep *s) {
    run(s, DIVVY_LIMIT_PROVIDED, false);
}
