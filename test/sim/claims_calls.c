/* Waiting calls on locks, semaphores and elections, as events of the script. SPDX-License-Identifier: Apache-2.0 */
#include "claims.h"

static int acquire(sim_claim *c, int64_t timeout_ms) {
    if (timeout_ms == 0)
        return c->is_pool ? divvy_semaphore_try_acquire(c->semaphore) : divvy_lock_try_acquire(c->lock);
    return c->is_pool ? divvy_semaphore_acquire(c->semaphore, timeout_ms) : divvy_lock_acquire(c->lock, timeout_ms);
}

static sim_claim *choose(sim_member *m, uint32_t choice, bool (*suits)(const sim_claim *)) {
    for (size_t i = 0; i < m->claim_count; i++) {
        sim_claim *c = &m->claims[(choice + i) % m->claim_count];
        if (sim_claim_exists(c) && !c->waits && !c->calls && suits(c)) return c;
    }
    return NULL;
}

static bool is_idle(const sim_claim *c) {
    return !c->acquiring && !c->owns && !c->is_election;
}

static bool is_semaphore(const sim_claim *c) {
    return c->is_pool;
}

static bool is_any(const sim_claim *c) {
    (void)c;
    return true;
}

static void check_duration(sim_claim *c, const char *what, int64_t began_ms, int64_t timeout_ms) {
    sim_world *w = c->m->world;
    sim_check_anew(w);
    if (w->now_ms > began_ms + timeout_ms + 1000)
        sim_violate(w, "L2", "%s with a timeout of %lld ms took %lld ms", what, (long long)timeout_ms,
                    (long long)(w->now_ms - began_ms));
}

void sim_claims_acquire(sim_member *m, const sim_event *e) {
    sim_claim *c = choose(m, e->b, is_idle);
    if (!c) return;
    int64_t timeout_ms = e->d % 4 == 0 ? 0 : 1 + e->c % 1200, began_ms = m->world->now_ms;
    c->waits = true;
    c->given_up = c->lost_early = false;
    c->is_try = timeout_ms == 0;
    c->began_ms = began_ms;
    c->ends_by = began_ms + timeout_ms;
    int result = acquire(c, timeout_ms);
    check_duration(c, "an acquire", began_ms, timeout_ms ? timeout_ms : SIM_TRY_MS);
    sim_claim_ended(c, result);
    c->waits = false;
    sim_user_plan(m);
}

void sim_claims_resize(sim_member *m, const sim_event *e) {
    sim_claim *c = choose(m, e->b, is_semaphore);
    if (!c || m->world->script->kazoo_claims) return;
    int64_t timeout_ms = e->c % 400, began_ms = m->world->now_ms;
    c->calls = true;
    int result = divvy_semaphore_resize(c->semaphore, 1 + e->d % 8, timeout_ms);
    c->calls = false;
    sim_claim_say(c, "is given another limit", result);
    if (result && result != DIVVY_ETIMEDOUT && result != DIVVY_EQUOTA)
        sim_claim_wrong(c, "the limit cannot be changed", result);
    check_duration(c, "a resize", began_ms, timeout_ms);
}

void sim_claims_look(sim_member *m, const sim_event *e) {
    sim_claim *c = choose(m, e->b, is_any);
    if (!c) return;
    int64_t timeout_ms = e->c % 400, began_ms = m->world->now_ms;
    divvy_strings *names = NULL;
    divvy_holders *holders = NULL;
    c->calls = true;
    int result = c->is_election ? sim_election_look(c, e, &names, timeout_ms)
                 : !c->is_pool  ? divvy_lock_contenders(c->lock, &names, timeout_ms)
                 : e->d % 2     ? divvy_semaphore_holders(c->semaphore, &holders, timeout_ms)
                                : divvy_semaphore_contenders(c->semaphore, &holders, timeout_ms);
    c->calls = false;
    bool ended = result == DIVVY_ESTATE && c->is_election && !c->election; /* while the call waited */
    if (result && result != DIVVY_ETIMEDOUT && !ended) sim_claim_wrong(c, "nobody can be listed", result);
    if (divvy_holders_skipped(holders)) sim_claim_wrong(c, "a record cannot be understood", 0);
    divvy_strings_free(names);
    divvy_holders_free(holders);
    check_duration(c, "a list", began_ms, timeout_ms);
}
