/* Users of locks and of a semaphore: acquire, hold for a while, release, again. SPDX-License-Identifier: Apache-2.0 */
#include "member.h"

#include <stdio.h>
#include <string.h>

enum { SEMAPHORE_LIMIT = 3, PAUSE_MS = 30, SLOTS_BYTES = 64 };

/* ---- locks ---- */

static void hold_lock(chaos_member *m, divvy_lock *lock, chaos_belief *belief) {
    int64_t session = divvy_client_session_id(m->client), token = divvy_lock_token(lock);
    bool held = token && divvy_lock_held(lock);
    if (held && divvy_client_session_id(m->client) == session) chaos_believe(belief, session, token, "-");
    int64_t until_ms = chaos_now_ms() + chaos_random(CHAOS_HOLD_MS);
    while (belief->held && chaos_now_ms() < until_ms && !m->stopping) {
        int64_t asked_ms = chaos_now_ms();
        if (divvy_lock_held(lock)) chaos_confirm(belief, asked_ms);
        else chaos_lose(belief);
        chaos_sleep_ms(CHAOS_POLL_MS);
    }
    /* The lock may have been lost since the last look: then it is given up as lost. */
    int64_t asked_ms = chaos_now_ms();
    if (belief->held && divvy_lock_held(lock)) chaos_confirm(belief, asked_ms);
    else if (belief->held) chaos_lose(belief);
    chaos_give_up(belief);
    divvy_lock_release(lock);
}

static void use_lock(chaos_member *m, const char *path, int mode, chaos_belief *belief) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = path;
    config.identifier = m->name;
    config.mode = mode;
    divvy_lock *lock;
    if (divvy_lock_create(&lock, m->client, &config)) {
        chaos_sleep_ms(100);
        return;
    }
    for (int round = 0; round < 20 && !m->stopping; round++) {
        int64_t asked_ms = chaos_now_ms();
        int timeout_ms = chaos_random(8) == 0 ? 0 : CHAOS_CALL_MS;
        int result = divvy_lock_acquire(lock, timeout_ms);
        chaos_log_call("lock", asked_ms, timeout_ms, result);
        if (result == 0) hold_lock(m, lock, belief);
        chaos_sleep_ms(chaos_random(PAUSE_MS));
    }
    divvy_lock_destroy(lock);
}

void *chaos_lock_run(void *argument) {
    static const char *const names[CHAOS_LOCKS] = {"l0", "l1"};
    chaos_member *m = argument;
    while (!m->stopping) {
        const char *name = names[chaos_random(CHAOS_LOCKS)];
        char path[64];
        snprintf(path, sizeof path, CHAOS_ROOT "/locks/%s", name);
        chaos_belief belief = {.kind = "lock", .object = name};
        use_lock(m, path, DIVVY_EXCLUSIVE, &belief);
    }
    return NULL;
}

void *chaos_rw_run(void *argument) {
    chaos_member *m = argument;
    while (!m->stopping) {
        bool writes = chaos_random(3) == 0;
        chaos_belief belief = {.kind = writes ? "write" : "read", .object = "rw"};
        use_lock(m, CHAOS_ROOT "/locks/rw", writes ? DIVVY_WRITE : DIVVY_READ, &belief);
    }
    return NULL;
}

/* ---- the semaphore ---- */

/* "0,2" */
static void print_slots(const divvy_semaphore *semaphore, uint32_t count, char out[SLOTS_BYTES]) {
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < count && used + 16 < SLOTS_BYTES; i++)
        used += (size_t)snprintf(out + used, SLOTS_BYTES - used, "%s%d", i ? "," : "",
                                 divvy_semaphore_slot_at(semaphore, i));
}

static void hold_slots(chaos_member *m, divvy_semaphore *semaphore, uint32_t count) {
    chaos_belief belief = {.kind = "slots", .object = "s0"};
    char slots[SLOTS_BYTES];
    int64_t session = divvy_client_session_id(m->client), token = divvy_semaphore_token(semaphore);
    print_slots(semaphore, count, slots);
    bool held = token && divvy_semaphore_held(semaphore);
    if (held && divvy_client_session_id(m->client) == session) chaos_believe(&belief, session, token, slots);
    int64_t until_ms = chaos_now_ms() + chaos_random(CHAOS_HOLD_MS);
    while (belief.held && chaos_now_ms() < until_ms && !m->stopping) {
        int64_t asked_ms = chaos_now_ms();
        if (divvy_semaphore_held(semaphore)) chaos_confirm(&belief, asked_ms);
        else chaos_lose(&belief);
        chaos_sleep_ms(CHAOS_POLL_MS);
    }
    int64_t asked_ms = chaos_now_ms();
    if (belief.held && divvy_semaphore_held(semaphore)) chaos_confirm(&belief, asked_ms);
    else if (belief.held) chaos_lose(&belief);
    chaos_give_up(&belief);
    divvy_semaphore_release(semaphore);
}

/* Every now and then the limit is changed, between 2 and 4, so that two slots at once always fit. */
static void use_semaphore(chaos_member *m, uint32_t count) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = CHAOS_ROOT "/semaphores/s0";
    config.identifier = m->name;
    config.limit = SEMAPHORE_LIMIT;
    config.count = count;
    config.limit_policy = DIVVY_LIMIT_STORED;
    divvy_semaphore *semaphore;
    if (divvy_semaphore_create(&semaphore, m->client, &config)) {
        chaos_sleep_ms(100);
        return;
    }
    for (int round = 0; round < 20 && !m->stopping; round++) {
        int64_t asked_ms = chaos_now_ms();
        int timeout_ms = chaos_random(8) == 0 ? 0 : CHAOS_CALL_MS;
        int result = divvy_semaphore_acquire(semaphore, timeout_ms);
        chaos_log_call("semaphore", asked_ms, timeout_ms, result);
        if (result == 0) hold_slots(m, semaphore, count);
        if (chaos_random(40) == 0) divvy_semaphore_resize(semaphore, (uint32_t)(2 + chaos_random(3)), CHAOS_CALL_MS);
        chaos_sleep_ms(chaos_random(PAUSE_MS));
    }
    divvy_semaphore_destroy(semaphore);
}

void *chaos_semaphore_run(void *argument) {
    chaos_member *m = argument;
    while (!m->stopping) use_semaphore(m, chaos_random(3) == 0 ? 2 : 1);
    return NULL;
}
