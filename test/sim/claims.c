/* Locks and semaphores of a member, and their users. SPDX-License-Identifier: Apache-2.0
 *
 * Each claim has a user who acquires, holds, releases, gives up and destroys at random times, asynchronously; waiting
 * calls are events of the script. He holds every answer of the library against what the headers promise. */
#include "claims.h"

#include <stdio.h>
#include <string.h>

#include "recipe/lock.h"
#include "recipe/semaphore.h"

static sim_random *chance_of(sim_claim *c) {
    return &c->m->claim_random;
}

static void met(const sim_claim *c, sim_claim_meeting what) {
    c->m->world->coverage->claim_meetings[what]++;
}

const char *sim_claim_describe(const sim_claim *c, char *buffer, size_t bytes) {
    static const char *const modes[] = {"lock", "read lock", "write lock"};
    if (c->is_election) snprintf(buffer, bytes, "the election l%zu, p=%d", c->place, c->preference);
    else if (c->is_pool) snprintf(buffer, bytes, "%u slots of p%zu", c->count, c->place);
    else snprintf(buffer, bytes, "the %s l%zu", modes[c->mode], c->place);
    return buffer;
}

bool sim_claim_exclusive(const sim_claim *c) {
    return !c->is_pool && c->mode != DIVVY_READ;
}

int64_t sim_claim_library_token(const sim_claim *c) {
    if (c->lock) return atomic_load(&c->lock->acquisition.token);
    return c->semaphore ? atomic_load(&c->semaphore->acquisition.token) : 0;
}

bool sim_claim_exists(const sim_claim *c) {
    return c->lock || c->semaphore;
}

void sim_claim_say(const sim_claim *c, const char *what, int result) {
    char text[80];
    if (!c->m->world->trace) return;
    sim_trace(c->m->world, "%s: %s, %s: %s", c->m->name, sim_claim_describe(c, text, sizeof text), what,
              result ? divvy_strerror(result) : "well");
}

void sim_claim_wrong(const sim_claim *c, const char *what, int result) {
    char text[80];
    sim_violate(c->m->world, "S8", "%s: %s: %s, and was told \"%s\"", c->m->name,
                sim_claim_describe(c, text, sizeof text), what, divvy_strerror(result));
}

/* ---- both kinds alike ---- */

static int64_t token_of(const sim_claim *c) {
    return c->is_pool ? divvy_semaphore_token(c->semaphore) : divvy_lock_token(c->lock);
}

static int let_go(sim_claim *c) {
    if (c->is_election) return sim_election_let_go(c);
    return c->is_pool ? divvy_semaphore_release(c->semaphore) : divvy_lock_release(c->lock);
}

static int cancel(sim_claim *c) {
    if (c->is_election) return sim_election_let_go(c);
    return c->is_pool ? divvy_semaphore_cancel(c->semaphore, 0) : divvy_lock_cancel(c->lock, 0);
}

/* ---- life of the object ---- */

static void on_lock_lost(divvy_lock *lock, void *user);
static void on_slots_lost(divvy_semaphore *semaphore, void *user);

static void create(sim_claim *c) {
    char path[32];
    int error;
    if (c->is_election) {
        error = sim_election_create(c);
    } else if (c->is_pool) {
        divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
        snprintf(path, sizeof path, "/sem/p%zu", c->place);
        config.path = path;
        config.identifier = c->m->name;
        config.limit = c->limit;
        config.count = c->count;
        config.limit_policy = c->policy;
        config.on_lost = on_slots_lost;
        config.user = c;
        error = divvy_semaphore_create(&c->semaphore, c->m->client, &config);
    } else {
        divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
        snprintf(path, sizeof path, "/locks/l%zu", c->place);
        config.path = path;
        config.identifier = c->m->name;
        config.mode = c->mode;
        config.on_lost = on_lock_lost;
        config.user = c;
        error = divvy_lock_create(&c->lock, c->m->client, &config);
    }
    if (error) sim_claim_wrong(c, "it cannot be made", error);
    c->seen_token = 0;
}

/* Destroys the claim, whether it holds or waits. Inside a callback what is due comes afterwards. */
static void destroy(sim_claim *c) {
    divvy_lock *lock = c->lock;
    divvy_semaphore *semaphore = c->semaphore;
    if (c->acquiring || c->waits) met(c, SIM_MET_DESTROYED_WAITING);
    sim_claim_say(c, "is destroyed", 0);
    c->given_up |= c->acquiring || c->waits;
    c->owns = c->works = false;
    c->lock = NULL;
    c->semaphore = NULL;
    if (c->is_election) {
        sim_election_destroy(c);
        return;
    }
    divvy_lock_destroy(lock);
    divvy_semaphore_destroy(semaphore);
}

/* ---- how an acquire ends ---- */

/* Returns whether the header knows of such an end. */
static bool is_legal_end(const sim_claim *c, int result) {
    const sim_script *s = c->m->world->script;
    switch (result) {
    case DIVVY_EQUOTA:
    case DIVVY_ETIMEDOUT: return c->ends_by < INT64_MAX;
    case DIVVY_EBUSY: return c->is_try;
    case DIVVY_ECANCELED: return c->given_up;
    case DIVVY_ECLOSED: return c->given_up && c->waits;
    case DIVVY_EDIFFERS:
    case DIVVY_E2BIG: return c->is_pool;
    case DIVVY_ELIMIT: return s->small_budgets;
    case DIVVY_EEXHAUSTED: return s->sequence_ends;
    case DIVVY_ESTATE: return c->is_pool && c->count > 1 && s->kazoo_claims;
    default: return false;
    }
}

/* Returns whether it would end so again. */
static bool is_final(int result) {
    static const int results[] = {DIVVY_EDIFFERS, DIVVY_E2BIG, DIVVY_ELIMIT, DIVVY_EEXHAUSTED, DIVVY_ESTATE};
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (result == results[i]) return true;
    }
    return false;
}

static void count_end(const sim_claim *c, int result) {
    if (result == DIVVY_ETIMEDOUT) met(c, SIM_MET_TIMED_OUT);
    if (result == DIVVY_EBUSY) met(c, SIM_MET_BUSY);
    if (result == DIVVY_ECANCELED) met(c, SIM_MET_CANCELED);
    if (result == DIVVY_EEXHAUSTED) met(c, SIM_MET_NUMBERS_ENDED);
    if (result == DIVVY_EDIFFERS || result == DIVVY_E2BIG) met(c, SIM_MET_OTHER_LIMIT);
}

static void count_grant(const sim_claim *c) {
    static const sim_claim_meeting modes[] = {SIM_MET_EXCLUSIVE, SIM_MET_READ, SIM_MET_WRITE};
    met(c, !c->is_pool ? modes[c->mode] : c->count > 1 ? SIM_MET_SLOTS : SIM_MET_SLOT);
}

static int64_t some_hold(sim_claim *c) {
    const sim_script *s = c->m->world->script;
    bool long_held = !c->m->world->healed && sim_chance(chance_of(c), 4);
    return c->m->world->now_ms + sim_between(chance_of(c), 1, long_held ? 6 * s->timeout_ms : s->hold_ms);
}

void sim_claim_ended(sim_claim *c, int result) {
    sim_world *w = c->m->world;
    bool early = c->lost_early;
    c->act_at = w->now_ms + 1;
    c->lost_early = false;
    sim_claim_say(c, "the acquire ended", result);
    if (result != 0) {
        count_end(c, result);
        if (w->healed && !c->given_up && is_final(result)) c->last_done = true;
        if (!is_legal_end(c, result)) sim_claim_wrong(c, "the acquire ended", result);
        return;
    }
    if (!sim_claim_exists(c)) sim_claim_wrong(c, "the acquire ended well after it was destroyed", result);
    if (c->owns && sim_claim_exists(c))
        sim_claim_wrong(c, "the acquire ended, and its last loss has not been told", result);
    if (early || !sim_claim_exists(c)) return;
    count_grant(c);
    if (c->began_ms + 10 * w->script->client_delay_max_ms + 30 < w->now_ms) met(c, SIM_MET_HANDED_OVER);
    if (w->healed) c->last_done = true;
    c->owns = true;
    c->act_at = some_hold(c);
    c->work_token = token_of(c);
    if (!c->work_token) return; /* Its time passed, and on_lost is due. */
    c->works = true;
    c->work_session = divvy_client_session_id(c->m->client);
    sim_check_claim(c, c->work_token);
}

static void maybe_destroy_inside(sim_claim *c) {
    if (!c->destroys_inside || !sim_claim_exists(c) || c->calls || !sim_chance(chance_of(c), 30)) return;
    met(c, SIM_MET_DESTROYED_INSIDE);
    destroy(c);
}

void sim_claim_done(sim_claim *c, int result) {
    if (!c->acquiring) {
        sim_claim_wrong(c, "done was called a second time", result);
        return;
    }
    c->acquiring = false;
    sim_claim_ended(c, result);
    if (c->m->phase != SIM_ABSENT) maybe_destroy_inside(c);
}

static void on_lock_done(divvy_lock *lock, int result, void *user) {
    (void)lock;
    sim_claim_done(user, result);
}

static void on_slots_done(divvy_semaphore *semaphore, int result, void *user) {
    (void)semaphore;
    sim_claim_done(user, result);
}

void sim_claim_lost(sim_claim *c) {
    sim_claim_say(c, "is lost", 0);
    if (!sim_claim_exists(c)) sim_claim_wrong(c, "on_lost came after a destroy", 0);
    bool closing = c->m->phase == SIM_ABSENT; /* A close may tell of a loss that came before it. */
    if (!c->owns && !c->waits && !closing) sim_claim_wrong(c, "on_lost came, and nothing was held", 0);
    if (!c->owns) c->lost_early = true;
    met(c, SIM_MET_CLAIM_LOST);
    if (c->owns && c->works && sim_claim_excused(c, c->work_token)) met(c, SIM_MET_CLAIM_FOREIGN);
    c->owns = c->works = false;
    if (c->is_election && sim_claim_exists(c)) sim_election_stands_again(c);
    if (!c->acquiring && !c->waits) c->act_at = c->m->world->now_ms + sim_between(chance_of(c), 1, 300);
    if (c->m->phase != SIM_ABSENT) maybe_destroy_inside(c);
}

static void on_lock_lost(divvy_lock *lock, void *user) {
    (void)lock;
    sim_claim_lost(user);
}

static void on_slots_lost(divvy_semaphore *semaphore, void *user) {
    (void)semaphore;
    sim_claim_lost(user);
}

/* ---- what the user does without being told ---- */

static int64_t some_timeout(sim_claim *c) {
    sim_random *r = chance_of(c);
    uint32_t draw = sim_below(r, 100);
    if (draw < 25) return -1;
    if (draw < 45) return 0;
    return draw < 65 ? sim_between(r, 1, 50) : sim_between(r, 10, 2 * c->m->world->script->timeout_ms);
}

static int start(sim_claim *c, int64_t timeout_ms) {
    if (c->is_election) return divvy_election_stand(c->election);
    return c->is_pool ? divvy_semaphore_acquire_async(c->semaphore, timeout_ms, on_slots_done, c)
                      : divvy_lock_acquire_async(c->lock, timeout_ms, on_lock_done, c);
}

static void begin(sim_claim *c, int64_t timeout_ms) {
    sim_world *w = c->m->world;
    if (c->is_election) timeout_ms = -1;
    c->acquiring = true;
    c->given_up = false;
    c->is_try = timeout_ms == 0;
    c->began_ms = w->now_ms;
    c->ends_by = timeout_ms < 0 ? INT64_MAX : w->now_ms + (timeout_ms ? timeout_ms : SIM_TRY_MS);
    int error = start(c, timeout_ms);
    sim_trace(w, "%s: acquires %s%zu within %lld ms: %s", c->m->name, c->is_pool ? "p" : "l", c->place,
              (long long)timeout_ms, divvy_strerror(error));
    c->act_at = w->now_ms + sim_between(chance_of(c), 1, w->script->timeout_ms);
    if (!error) return;
    c->acquiring = false;
    if (w->healed && error == DIVVY_ELIMIT) c->last_done = true;
    if (error != DIVVY_ELIMIT || !w->script->small_budgets) sim_claim_wrong(c, "an acquire cannot begin", error);
}

/* It is not re-entrant, and says so at once. */
static void acquire_again(sim_claim *c) {
    bool waits = c->lock ? c->lock->acquisition.acquire != NULL : c->semaphore->acquisition.acquire != NULL;
    if (!waits && !token_of(c)) return;
    int error = start(c, 100);
    met(c, SIM_MET_ALREADY);
    int expected = waits && !c->is_election ? DIVVY_EINPROGRESS : DIVVY_EALREADY;
    if (error != expected) sim_claim_wrong(c, "a second acquire began", error);
}

static void release(sim_claim *c) {
    bool held = sim_claim_exists(c) && token_of(c) != 0;
    c->works = false;
    int error = let_go(c);
    sim_claim_say(c, "released", error);
    if (held && error) sim_claim_wrong(c, "it was held, and released", error);
    if (!held && !c->is_election && error != DIVVY_ENOTHELD) sim_claim_wrong(c, "it was not held, and released", error);
    if (!error) c->owns = false;
    else met(c, SIM_MET_NOT_HELD);
}

static void act_acquiring(sim_claim *c) {
    sim_random *r = chance_of(c);
    bool healed = c->m->world->healed;
    uint32_t draw = sim_below(r, 100);
    c->act_at = c->m->world->now_ms + sim_between(r, 1, c->m->world->script->timeout_ms);
    if (!healed && draw < 25) {
        c->given_up = true;
        cancel(c);
    } else if (!healed && draw < 35 && !c->calls) {
        destroy(c);
    } else if (draw < 45) {
        acquire_again(c);
    }
}

static void act_owning(sim_claim *c) {
    sim_random *r = chance_of(c);
    uint32_t draw = sim_below(r, 100);
    if (draw < 8) acquire_again(c);
    if (draw > 92 && !c->calls) destroy(c);
    else release(c);
    c->act_at = c->m->world->now_ms + sim_between(r, 1, 500);
    if (c->owns && sim_claim_exists(c) && draw % 2 == 0)
        begin(c, some_timeout(c)); /* on_lost is due, and comes first */
    if (c->owns) return;
    bool at_once = draw >= 40 && draw < 70 && sim_claim_exists(c) && !c->m->world->healed;
    if (at_once) begin(c, draw < 50 ? 0 : some_timeout(c));
}

static void act(sim_claim *c) {
    sim_world *w = c->m->world;
    c->act_at = w->now_ms + sim_between(chance_of(c), 1, 1000);
    if (c->waits) return;
    if (!sim_claim_exists(c)) {
        if (!c->acquiring) create(c); /* else its done is due */
    } else if (c->acquiring) {
        act_acquiring(c);
    } else if (c->owns) {
        act_owning(c);
    } else if (w->healed && c->last_done) {
        c->act_at = INT64_MAX;
    } else if (w->healed) {
        begin(c, -1);
    } else if (sim_chance(chance_of(c), 5)) {
        release(c);
    } else {
        begin(c, some_timeout(c));
    }
}

void sim_claims_act(sim_member *m) {
    for (size_t i = 0; i < m->claim_count; i++) {
        if (m->phase == SIM_RUNS && m->claims[i].act_at <= m->world->now_ms) act(&m->claims[i]);
    }
}

int64_t sim_claims_next(const sim_member *m) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; m->phase == SIM_RUNS && i < m->claim_count; i++) {
        if (m->claims[i].act_at < next) next = m->claims[i].act_at;
    }
    return next;
}

/* ---- the process ---- */

static void draw_claim(sim_claim *c, const sim_script *s, sim_random *r) {
    c->is_pool = s->pools > 0 && sim_chance(r, 50);
    c->destroys_inside = sim_chance(r, 15);
    c->place = sim_below(r, (uint32_t)(c->is_pool ? s->pools : s->locks));
    c->mode = DIVVY_EXCLUSIVE;
    if (!c->is_pool) {
        if (c->place % 2) c->mode = sim_chance(r, 60) ? DIVVY_READ : DIVVY_WRITE;
        return;
    }
    c->limit = s->limits[c->place];
    c->count = s->kazoo_claims || sim_chance(r, 60) ? 1 : 1 + sim_below(r, c->limit + (sim_chance(r, 10) ? 2 : 0));
    c->policy = (int)SIM_ONE_OF(r, DIVVY_LIMIT_ERROR, DIVVY_LIMIT_ERROR, DIVVY_LIMIT_STORED, DIVVY_LIMIT_PROVIDED);
    if (!s->kazoo_claims && sim_chance(r, 15)) c->limit = 1 + sim_below(r, 8);
}

void sim_claims_draw(sim_member *m, sim_random *r) {
    m->claim_count = 1 + sim_below(r, SIM_CLAIMS_MAX);
    m->claim_random = sim_random_of(sim_draw(r), 11);
    for (size_t i = 0; i < m->claim_count; i++) {
        sim_claim *c = &m->claims[i];
        char text[80];
        *c = (sim_claim){.m = m};
        draw_claim(c, m->world->script, r);
        if (m->world->script->theme == SIM_OF_ELECTIONS) sim_election_draw(c, r);
        c->act_at = m->world->now_ms + 1 + sim_below(r, 200);
        sim_trace(m->world, "%s uses %s, limit %u, policy %d%s", m->name, sim_claim_describe(c, text, sizeof text),
                  c->limit, c->policy, c->destroys_inside ? ", destroys inside" : "");
    }
}

void sim_claims_give_up(sim_member *m) {
    for (size_t i = 0; i < m->claim_count; i++) {
        sim_claim *c = &m->claims[i];
        if (!sim_claim_exists(c) || c->waits || c->calls) continue;
        if (c->owns) {
            release(c);
        } else if (c->acquiring && sim_chance(chance_of(c), 50)) {
            c->given_up = true;
            cancel(c);
        } else if (c->acquiring) {
            destroy(c);
        }
    }
}

void sim_claims_destroy(sim_member *m) {
    for (size_t i = 0; i < m->claim_count; i++) {
        if (sim_claim_exists(&m->claims[i])) destroy(&m->claims[i]);
    }
}

void sim_claims_stop(sim_member *m) {
    for (size_t i = 0; i < m->claim_count; i++) {
        sim_claim *c = &m->claims[i];
        c->works = c->owns = false;
        c->given_up |= c->acquiring;
    }
}

/* The client is closed: every acquire has ended, and been told. */
void sim_claims_closed(sim_member *m) {
    for (size_t i = 0; i < m->claim_count; i++) {
        if (m->claims[i].acquiring) sim_claim_wrong(&m->claims[i], "done was never called", 0);
    }
    m->claim_count = 0;
}

void sim_claims_heal(sim_world *w) {
    for (size_t i = 0; i < w->script->slots; i++) {
        for (size_t k = 0; k < w->members[i].claim_count; k++) w->members[i].claims[k].act_at = w->now_ms;
    }
}
