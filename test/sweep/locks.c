/* Locks: acquire, wait, list, release, cancel, lose. SPDX-License-Identifier: Apache-2.0 */
#include "scenarios.h"

#define PATH "/pool/l"

enum { NEVER = 1000 };

typedef struct {
    divvy_lock *lock;
    int done, result, lost;
} user;

typedef struct {
    user a, b;
    bool shared;
} users;

static void on_done(divvy_lock *lock, int result, void *context) {
    user *u = context;
    (void)lock;
    u->done++;
    u->result = result;
}

static void on_lost(divvy_lock *lock, void *context) {
    user *u = context;
    (void)lock;
    u->lost++;
}

/* S2: no two clients hold an exclusive lock at one moment. */
static void check(sweep *s, void *context) {
    const users *u = context;
    bool first = u->a.lock && divvy_lock_held(u->a.lock), second = u->b.lock && divvy_lock_held(u->b.lock);
    if (sweep_is_spoilt(s, "belief")) second = true;
    if (first && second && !u->shared) sweep_fail(s, "two hold the lock");
}

static bool is_done(sweep *s, void *context) {
    return ((user *)context)->done == 1 && !sweep_is_spoilt(s, "hang");
}

static bool is_lost(sweep *s, void *context) {
    (void)s;
    return ((user *)context)->lost == 1;
}

/* Begins, and waits for the end; again when it failed for what we made fail. */
static int acquire(sweep *s, user *u, int64_t timeout_ms) {
    for (;;) {
        u->done = 0;
        u->result = NEVER;
        SWEEP_DO(s, divvy_lock_acquire_async(u->lock, timeout_ms, on_done, u));
        sweep_until(s, is_done, u, SWEEP_WAIT_MS, "acquire_async");
        if (!sweep_excuses(s, u->result)) return u->result;
    }
}

static void list(sweep *s, divvy_lock *lock, size_t wanted) {
    divvy_strings *names = NULL;
    sweep_pass(s, 10); /* until the server that is asked has heard of it */
    size_t seen = wanted + 1;
    for (int tries = 0; tries < 100 && seen != wanted; tries++) { /* One that was refused comes a little later. */
        if (tries > 0) sweep_pass(s, 100);
        divvy_strings_free(names);
        SWEEP_DO(s, divvy_lock_contenders(lock, &names, SWEEP_WAIT_MS));
        seen = divvy_strings_count(names);
    }
    if (seen != wanted) sweep_fail(s, "contenders: %zu", seen);
    divvy_strings_free(names);
}

static void destroy(user *u) {
    divvy_lock *lock = u->lock;
    u->lock = NULL;
    divvy_lock_destroy(lock);
}

/* The other one waits until the first has released. */
static void pass_on(sweep *s, users *u) {
    for (;;) {
        u->b.done = 0;
        SWEEP_DO(s, divvy_lock_acquire_async(u->b.lock, -1, on_done, &u->b));
        sweep_pass(s, 2000);
        if (!u->b.done) break;
        SWEEP_CHECK(s, sweep_excuses(s, u->b.result));
    }
    list(s, u->a.lock, 2);
    int64_t token = divvy_lock_token(u->a.lock);
    SWEEP_CHECK(s, divvy_lock_held(u->a.lock) && token > 0);
    SWEEP_CHECK(s, divvy_lock_release(u->a.lock) == 0);
    SWEEP_CHECK(s, !divvy_lock_held(u->a.lock));
    sweep_until(s, is_done, &u->b, SWEEP_WAIT_MS, "the next in the queue");
    if (sweep_excuses(s, u->b.result)) u->b.result = acquire(s, &u->b, -1);
    SWEEP_CHECK(s, u->b.result == 0 && divvy_lock_held(u->b.lock) && divvy_lock_token(u->b.lock) > token);
    SWEEP_CHECK(s, divvy_lock_release(u->b.lock) == 0);
}

/* The session goes; on_lost comes once, and the lock can be had again. */
static void lose(sweep *s, users *u) {
    u->a.lost = 0;
    SWEEP_CHECK(s, acquire(s, &u->a, SWEEP_WAIT_MS) == 0);
    SWEEP_CHECK(s, divvy_lock_held(u->a.lock));
    divvy_testing_expire(s->ensemble, s->clients[0]);
    sweep_until(s, is_lost, &u->a, 3 * SWEEP_TIMEOUT_MS, "on_lost");
    SWEEP_CHECK(s, !divvy_lock_held(u->a.lock));
    SWEEP_CHECK(s, acquire(s, &u->a, SWEEP_WAIT_MS) == 0);
    SWEEP_CHECK(s, u->a.lost == 1);
}

static void run(sweep *s, int mode) {
    users u = {.shared = mode == DIVVY_READ};
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = PATH;
    config.mode = mode;
    config.on_lost = on_lost;
    sweep_open(s, 0);
    sweep_open(s, 1);
    s->check = check;
    s->user = &u;
    s->empty_paths[0] = PATH;
    sweep_begin(s);
    config.user = &u.a;
    SWEEP_DO(s, divvy_lock_create(&u.a.lock, s->clients[0], &config));
    config.user = &u.b;
    config.identifier = "b";
    SWEEP_DO(s, divvy_lock_create(&u.b.lock, s->clients[1], &config));
    SWEEP_DO(s, divvy_lock_acquire(u.a.lock, SWEEP_WAIT_MS));
    if (u.shared) {
        SWEEP_DO(s, divvy_lock_acquire(u.b.lock, SWEEP_WAIT_MS));
        list(s, u.b.lock, 2);
        SWEEP_CHECK(s, divvy_lock_release(u.b.lock) == 0 && divvy_lock_release(u.a.lock) == 0);
    } else {
        pass_on(s, &u);
    }
    lose(s, &u);
    destroy(&u.a);
    destroy(&u.b);
    sweep_end(s);
}

void sweep_lock_exclusive(sweep *s) {
    run(s, DIVVY_EXCLUSIVE);
}

void sweep_lock_read(sweep *s) {
    run(s, DIVVY_READ);
}

void sweep_lock_write(sweep *s) {
    run(s, DIVVY_WRITE);
}
