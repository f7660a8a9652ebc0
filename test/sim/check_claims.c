/* The beliefs in locks and semaphores, held against the truth after each step, and at the end.
 * SPDX-License-Identifier: Apache-2.0
 *
 * S1 to S5 when a claim begins to be believed, L2 of asynchronous acquires, and after the faults L1 and L3: each
 * claim is acquired once more, all waiters get what they wait for, and then nothing is left in any queue or pool. */
#include "claims.h"

#include <stdio.h>
#include <string.h>

#include "recipe/lease.h"
#include "recipe/semaphore.h"
#include "znode/sequence.h"

/* ---- what begins to be believed ---- */

static bool exclude(const sim_claim *a, const sim_claim *b) {
    if (a == b || a->is_pool || b->is_pool || a->place != b->place) return false;
    return sim_claim_exclusive(a) || sim_claim_exclusive(b);
}

/* S2: no two clients believe in the same lock or slot at one moment. */
static void check_alone(const sim_claim *c) {
    sim_world *w = c->m->world;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        for (size_t k = 0; m->phase != SIM_ABSENT && k < m->claim_count; k++) {
            const sim_claim *other = &m->claims[k];
            int64_t token;
            char one[80], two[80];
            if (other == c || other->place != c->place || !sim_claim_believed(other, &token)) continue;
            if (exclude(c, other))
                sim_violate(w, "S2", "%s holds %s, and %s holds %s", c->m->name, sim_claim_describe(c, one, sizeof one),
                            m->name, sim_claim_describe(other, two, sizeof two));
            else if (!c->is_pool && !other->is_pool) w->coverage->claim_meetings[SIM_MET_READERS]++;
        }
    }
    sim_kazoo_check_claim(c);
}

void sim_claims_check_beside(const sim_claim *held) {
    sim_world *w = held->m->world;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        for (size_t k = 0; m->phase != SIM_ABSENT && k < m->claim_count; k++) {
            int64_t token;
            const sim_claim *c = &m->claims[k];
            if (exclude(held, c) && sim_claim_believed(c, &token)) sim_kazoo_check_claim(c);
        }
    }
}

/* S1, S3 of a lock. */
static void check_lock(const sim_claim *c, int64_t token, const sim_claim_node *own) {
    sim_world *w = c->m->world;
    sim_lock_truth *lock = &w->claims_truth->locks[c->place];
    bool exclusive = sim_claim_exclusive(c);
    char text[80];
    for (size_t i = 0; i < lock->queue.count; i++) {
        if (sim_claim_blocks(c, &lock->queue.nodes[i], own->sequence))
            sim_violate(w, "S1", "%s holds %s, and %s stands before it", c->m->name,
                        sim_claim_describe(c, text, sizeof text), lock->queue.nodes[i].name);
    }
    if (token < (exclusive ? lock->any_token : lock->exclusive_token))
        sim_violate(w, "S3", "%s holds %s with token %lld, after %lld was held", c->m->name,
                    sim_claim_describe(c, text, sizeof text), (long long)token,
                    (long long)(exclusive ? lock->any_token : lock->exclusive_token));
    if (token > lock->any_token) lock->any_token = token;
    if (exclusive && token > lock->exclusive_token) lock->exclusive_token = token;
}

/* S3 of slots: each number by itself. */
static void check_slots(const sim_claim *c, int64_t token, const sim_claim_node *own) {
    sim_world *w = c->m->world;
    sim_pool_truth *pool = &w->claims_truth->pools[c->place];
    if (!own->numbered || own->slots.count != c->count)
        sim_violate(w, "S9", "%s wants %u slots, and its lease is %s", c->m->name, c->count, own->name);
    for (uint32_t i = 0; i < own->slots.count; i++) {
        int slot = dv_slots_at(&own->slots, i);
        int shown = c->semaphore ? divvy_semaphore_slot_at(c->semaphore, i) : slot;
        if (shown != slot && shown != -1)
            sim_violate(w, "S9", "%s is told of slot %d, and its lease is %s", c->m->name, shown, own->name);
        if (slot < 0 || slot >= SIM_SLOT_NUMBERS_MAX) continue;
        if (token < pool->slot_tokens[slot])
            sim_violate(w, "S3", "%s holds slot %d with token %lld, after %lld was held", c->m->name, slot,
                        (long long)token, (long long)pool->slot_tokens[slot]);
        pool->slot_tokens[slot] = token;
    }
}

void sim_check_claim(sim_claim *c, int64_t token) {
    sim_world *w = c->m->world;
    int64_t session = divvy_client_session_id(c->m->client), believed;
    char text[80];
    if (!sim_claim_believed(c, &believed) || believed != token) return;
    const sim_claim_list *list =
        c->is_pool ? &w->claims_truth->pools[c->place].leases : &w->claims_truth->locks[c->place].queue;
    const sim_claim_node *own = sim_claim_node_of(list, token, session);
    if (!own) {
        sim_violate(w, "S1", "%s holds %s with token %lld, and its session 0x%llx has no such node", c->m->name,
                    sim_claim_describe(c, text, sizeof text), (long long)token, (unsigned long long)session);
        return;
    }
    if (own->tried) sim_claim_counts(c, own);
    if (c->is_pool) check_slots(c, token, own);
    else check_lock(c, token, own);
    if (c->is_election) sim_election_check_held(c, own);
    check_alone(c);
}

/* ---- steps ---- */

/* Counts the stages of a lease, for the coverage. */
static void look_at_stage(sim_claim *c) {
    const divvy_semaphore *s = c->semaphore;
    const dv_lease *lease = s && s->acquisition.tickets ? s->acquisition.tickets->place : NULL;
    /* The node's stages are negative: the lease's own count while that is unmade. */
    int stage = !lease ? 0 : lease->node.stage == DV_NODE_UNMADE ? (int)lease->stage : -(int)lease->node.stage;
    uint64_t *meetings = c->m->world->coverage->claim_meetings;
    if (stage == c->seen_stage) return;
    bool resolved = c->seen_stage == -(int)DV_NODE_RESOLVING;
    c->seen_stage = stage;
    meetings[SIM_MET_FULL] += stage == DV_LEASE_FULL;
    meetings[SIM_MET_RESOLVED] += resolved && stage == -(int)DV_NODE_THERE;
    meetings[SIM_MET_RESOLVED_NOTHING] += resolved && stage == DV_LEASE_READING;
}

static void look_at_admission(const sim_claim *c) {
    const dv_ticket *ticket = c->semaphore ? c->semaphore->acquisition.tickets : NULL;
    for (; ticket; ticket = ticket->next) {
        const dv_lease *lease = ticket->place;
        if (lease && lease->node.leave_requested && lease->node.stage == DV_NODE_CREATING)
            c->m->world->coverage->claim_meetings[SIM_MET_LEFT_ADMITTING]++;
    }
}

/* E7: the head is told of room. A link that is cut is noticed in time, and so is a leader
 * that is lost; where nothing but joins and leaves goes on there is neither. */
static void check_room(sim_claim *c) {
    sim_world *w = c->m->world;
    const dv_ticket *newest = c->semaphore ? c->semaphore->acquisition.tickets : NULL;
    const dv_lease *lease = newest ? newest->place : NULL;
    const sim_pool_truth *pool = &w->claims_truth->pools[c->is_pool ? c->place : 0];
    bool waits = lease && dv_lease_is(lease, DV_LEASE_FULL) && dv_client_connected(c->m->client) && !c->m->paused;
    uint64_t taken = c->count;
    for (size_t i = 0; waits && i < pool->leases.count; i++) taken += pool->leases.nodes[i].slots.count;
    bool room = waits && pool->limited && taken <= pool->limit;
    c->room_since = !room ? 0 : c->room_since ? c->room_since : w->now_ms;
    if (!room) return;
    const sim_script *s = w->script;
    int64_t limit_ms = 300 + 20 * s->client_delay_max_ms + 20 * s->server_delay_max_ms;
    if (s->profile != SIM_CHURN) limit_ms += c->m->client_config.session_timeout_ms + s->sync_limit_ticks * s->tick_ms;
    if (w->now_ms - c->room_since > limit_ms)
        sim_violate(w, "L1", "%s has waited %lld ms for %u slots of p%zu, and there was room", c->m->name,
                    (long long)(w->now_ms - c->room_since), c->count, c->place);
}

/* K6: a deletion by somebody else is found within half a timeout, with a link and servers that work. */
static void check_gone(sim_claim *c, int64_t token) {
    sim_world *w = c->m->world;
    const sim_claim_list *list =
        c->is_pool ? &w->claims_truth->pools[c->place].leases : &w->claims_truth->locks[c->place].queue;
    bool asks = token && dv_client_connected(c->m->client) && !c->m->paused && sim_claim_excused(c, token);
    bool gone = asks && !sim_claim_node_of(list, token, divvy_client_session_id(c->m->client));
    if (!gone || !c->gone_since) c->gone_since = w->now_ms;
    if (!gone) return;
    const sim_script *s = w->script;
    char text[80];
    int64_t timeout_ms = c->m->client_config.session_timeout_ms;
    int64_t limit_ms = timeout_ms / 2 + 1000 + 20 * s->client_delay_max_ms + 20 * s->server_delay_max_ms;
    if (s->profile != SIM_REPLIES) limit_ms += timeout_ms + s->sync_limit_ticks * s->tick_ms;
    if (w->now_ms - c->gone_since > limit_ms)
        sim_violate(w, "L1", "%s shows %s, whose node was deleted by somebody else %lld ms ago", c->m->name,
                    sim_claim_describe(c, text, sizeof text), (long long)(w->now_ms - c->gone_since));
}

/* L2: a process that was stopped is given its second when it goes on. */
static void check_in_time(const sim_claim *c) {
    const sim_member *m = c->m;
    int64_t now_ms = m->world->now_ms;
    char text[80];
    if (!c->acquiring || c->ends_by == INT64_MAX || now_ms <= c->ends_by + 1000 || now_ms <= m->last_paused + 1000)
        return;
    sim_violate(m->world, "L2", "an acquire of %s by %s should have ended %lld ms ago",
                sim_claim_describe(c, text, sizeof text), m->name, (long long)(now_ms - c->ends_by));
}

void sim_claims_check_step(sim_world *w, sim_member *m, bool afresh) {
    if (m->paused) m->last_paused = w->now_ms;
    for (size_t i = 0; i < m->claim_count; i++) {
        sim_claim *c = &m->claims[i];
        int64_t token = sim_claim_library_token(c);
        if (token && (afresh || token != c->seen_token)) sim_check_claim(c, token);
        c->seen_token = token;
        if (!m->paused) check_in_time(c);
        look_at_stage(c);
        if (c->is_pool) check_room(c);
        check_gone(c, token);
        if (c->is_election) sim_election_check_step(c);
        if (c->given_up) look_at_admission(c);
    }
}

/* ---- the end ---- */

static bool list_is_empty(const sim_claim_list *list, const char *where, sim_fault *f) {
    if (list->count == 0) return true;
    return sim_wrong(f, "L3", "%zu nodes are left in %s, %s of session 0x%llx among them", list->count, where,
                     list->nodes[0].name, (unsigned long long)list->nodes[0].session);
}

static bool nothing_left(const sim_world *w, sim_fault *f) {
    for (size_t i = 0; i < w->script->locks; i++) {
        if (!list_is_empty(&w->claims_truth->locks[i].queue, "a lock", f)) return false;
    }
    for (size_t i = 0; i < w->script->pools; i++) {
        if (!list_is_empty(&w->claims_truth->pools[i].leases, "a pool", f)) return false;
        if (!list_is_empty(&w->claims_truth->pools[i].queue, "a pool's queue", f)) return false;
    }
    return true;
}

/* Checks L6 for members that never had a partitioner. Watches that were given up stay until their node changes: two
 * for a pool, and for an election. */
static bool no_leaks(const sim_world *w, const sim_member *m, sim_fault *f) {
    divvy_stats stats;
    size_t crew = m->party ? 1 : 0, watches = crew + 1 + 2 * w->script->pools;
    if (w->script->theme == SIM_OF_ELECTIONS) watches += 2 * w->script->locks; /* J3, and J6 given up */
    if (m->has_partitioner || m->kazoo || m->kazoo_claim || divvy_client_stats(m->client, &stats, sizeof stats) != 0)
        return true;
    if (stats.ephemerals != crew)
        return sim_wrong(f, "L6", "%s counts %llu ephemeral nodes, and has %zu", m->name,
                         (unsigned long long)stats.ephemerals, crew);
    if (stats.watches > watches)
        return sim_wrong(f, "L6", "%s has %llu watches, and needs no more than %zu", m->name,
                         (unsigned long long)stats.watches, watches);
    return true;
}

static bool member_is_well(const sim_world *w, const sim_member *m, sim_fault *f) {
    char name[80];
    if (m->kazoo_claim && !sim_kazoo_claim_well(m->kazoo_claim))
        return sim_wrong(f, "L1", "%s is %s", m->name, sim_kazoo_claim_describe(m->kazoo_claim, name, sizeof name));
    for (size_t i = 0; m->phase == SIM_RUNS && i < m->claim_count; i++) {
        const sim_claim *c = &m->claims[i];
        if (c->last_done && !c->acquiring && !c->owns && c->is_election && !sim_election_well(c))
            return sim_wrong(f, "L1", "%s does not know that nobody leads at %s", m->name,
                             sim_claim_describe(c, name, sizeof name));
        if (c->last_done && !c->acquiring && !c->owns) continue;
        return sim_wrong(f, "L1", "%s %s %s", m->name,
                         c->acquiring ? "still waits for"
                         : c->owns    ? "has not been told of the loss of"
                                      : "has not had",
                         sim_claim_describe(c, name, sizeof name));
    }
    return no_leaks(w, m, f);
}

bool sim_claims_well(sim_world *w, sim_fault *f) {
    if (!sim_has_claims(w->script->theme)) return true;
    for (size_t i = 0; i < w->script->slots; i++) {
        if (w->members[i].phase != SIM_ABSENT && !member_is_well(w, &w->members[i], f)) return false;
    }
    return nothing_left(w, f);
}

/* Every claim may have to wait for all others, for what they do now and once more, in two places. */
int64_t sim_claims_bound_ms(const sim_world *w) {
    const sim_script *s = w->script;
    if (!sim_has_claims(s->theme)) return 0;
    int64_t turn_ms = s->hold_ms + 1000 + 20 * s->client_delay_max_ms + 20 * s->server_delay_max_ms;
    return 2 * (int64_t)(s->slots * SIM_CLAIMS_MAX) * turn_ms + 1000;
}
