/* The invariants of safety, held against each transaction and after each step. SPDX-License-Identifier: Apache-2.0
 *
 * Belief of a member in an item: the library shows it, or the user has not stopped work on it, and the session's
 * deadline has not passed. Locks and semaphores are looked at in check_claims.c and truth_claims.c; kazoo members in
 * check_kazoo.c; registries in check_services.c and truth_services.c.
 *
 * Excused from S1 and S2 is only what no client can know of:
 *  - A node that somebody else deleted, for the belief that rests on it (sim_truth_excuse()). The servers tell nobody
 *    before the next proof of the session. L1 checks that the member finds out, S4 that the resource refuses stale
 *    writes.
 *  - An item that a note gave to a place (T6) which somebody else had deleted while it waited (works_blind). The place
 *    never was the first, so it has no turn at the resource. Its token is still greater than those before it, and
 *    smaller than those after it. The member learns of the deletion by its next heartbeat for the place.
 *  - A session that an administrator ended, from then on (sim_truth_kill()). The deadline counts on servers that keep
 *    a session for its timeout.
 *  - The gap of kazoo members: check_kazoo.c. */
#include <string.h>

#include "handovers.h"
#include "lib/item_words.h"
#include "rolls.h"
#include "watches.h"
#include "znode/sequence.h"

static int64_t session_of(const sim_member *m) {
    return m->client ? divvy_client_session_id(m->client) : 0;
}

/* Returns what dv_client_alive_at() says, without leaving a mark. */
bool sim_member_alive(const sim_member *m) {
    if (!m->client) return false;
    int64_t until = atomic_load(&m->client->alive_until);
    return until > 0 && dv_client_now(m->client) < until;
}

static bool shows(const sim_member *m, size_t item, int64_t *token) {
    const dv_item *own = m->partitioner && !m->ended ? sim_item_of(m, item) : NULL;
    if (!own || !dv_item_shown(own)) return false;
    *token = dv_contender_token(own->life.contender);
    return true;
}

bool sim_believes(sim_world *w, const sim_member *m, size_t item) {
    if (m->phase == SIM_ABSENT || !sim_member_alive(m)) return false;
    int64_t session = session_of(m), token;
    const sim_holding *h = &m->items[item];
    if (sim_truth_killed(&w->truth, session)) return false;
    if (shows(m, item, &token) && !sim_truth_excused(&w->truth, item, token)) return true;
    return h->works && h->work_session == session && !sim_truth_excused(&w->truth, item, h->work_token);
}

/* S2: no two members believe in the same item at one moment. */
static void check_alone(sim_world *w, const sim_member *m, size_t item) {
    if (!sim_believes(w, m, item)) return;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *other = &w->members[i];
        if (other != m && sim_believes(w, other, item))
            sim_violate(w, "S2", "%s and %s both believe that they own %s", m->name, other->name, w->items[item]);
    }
    sim_kazoo_check_item(m, item);
    sim_watches_check_alone(m, item);
}

/* ---- transactions ---- */

static void check_deleted_place(sim_world *w, const divvy_testing_transaction *t, size_t item) {
    bool own = !t->expired && t->session_id == t->ephemeral_owner, foreign = !t->expired && !own;
    if (foreign) {
        sim_truth_excuse(&w->truth, item, t->czxid);
        return;
    }
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->phase == SIM_ABSENT || session_of(m) != t->ephemeral_owner) continue;
        const sim_holding *h = &m->items[item];
        int64_t token = 0;
        bool shown = shows(m, item, &token) && token == t->czxid;
        bool works = h->works && h->work_token == t->czxid && h->work_session == t->ephemeral_owner;
        if (!(shown || works) || !sim_member_alive(m) || sim_truth_killed(&w->truth, t->ephemeral_owner)) continue;
        if (sim_truth_excused(&w->truth, item, t->czxid)) continue;
        sim_violate(w, own ? "S7" : "S1", "%s was deleted (%s) while %s %s and has %lld ms left", t->path,
                    own ? "by its owner" : "its session expired", m->name,
                    works ? "works on the item" : "shows the item",
                    (long long)(atomic_load(&m->client->alive_until) - dv_client_now(m->client)));
    }
}

/* S11: an ephemeral node of one's own, or an empty lock directory, which nobody owns. */
static void check_may_delete(sim_world *w, const divvy_testing_transaction *t) {
    static const char directory[] = "/pool/locks/item-";
    if (t->expired || t->session_id == t->ephemeral_owner) return;
    if (sim_is_admin(w, t->session_id)) {
        w->foreign_at = w->now_ms;
        return;
    }
    bool is_directory = strncmp(t->path, directory, sizeof directory - 1) == 0 &&
                        !strchr(t->path + sizeof directory - 1, '/') && t->ephemeral_owner == 0;
    if (!is_directory)
        sim_violate(w, "S11", "session 0x%llx deleted %s, which is not its own", (unsigned long long)t->session_id,
                    t->path);
}

/* S1: the lowest contender stays the lowest. */
static void check_created_place(sim_world *w, const divvy_testing_transaction *t, size_t item, const char *name) {
    int32_t sequence;
    if (!dv_sequence_parse(name, "__lock__", &sequence)) return;
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (!sim_believes(w, m, item)) continue;
        int64_t token = m->items[item].work_token;
        shows(m, item, &token);
        const sim_node *own = sim_truth_node(&w->truth, item, token, session_of(m));
        if (own && dv_sequence_compare(sequence, own->sequence) < 0)
            sim_violate(w, "S1", "%s stands before the place of %s, who owns %s", t->path, m->name, w->items[item]);
    }
}

/* S1 where it expired; where it was closed S24, since a member that closes it has ended, or believes in nothing. */
static void check_session_end(sim_world *w, const divvy_testing_transaction *t) {
    sim_watches_check_end(w, t);
    if (sim_truth_killed(&w->truth, t->session_id)) return;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase == SIM_ABSENT || session_of(m) != t->session_id || !sim_member_alive(m)) continue;
        sim_violate(w, t->expired ? "S1" : "S24", "session 0x%llx of %s %s with %lld ms left by its clock",
                    (unsigned long long)t->session_id, m->name, t->expired ? "expired" : "was closed",
                    (long long)(atomic_load(&m->client->alive_until) - dv_client_now(m->client)));
    }
}

/* B6: a session's paths stay within their bound. Excused: kazoo members, which have no budget, and latecomers (R3). */
static void check_budget(sim_world *w, const divvy_testing_transaction *t) {
    const sim_session *session = sim_truth_session(&w->truth, t->ephemeral_owner);
    for (size_t i = 0; session && i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase == SIM_ABSENT || m->kazoo || m->kazoo_claim || session_of(m) != session->id) continue;
        size_t limit = m->client->ephemerals.limit_bytes;
        if (session->path_bytes > limit && !m->client->latecomer_count)
            sim_violate(w, "B6", "%s has ephemeral nodes of %zu bytes of path, and %zu are allowed", m->name,
                        session->path_bytes, limit);
    }
}

void sim_check_transaction(sim_world *w, const divvy_testing_transaction *t) {
    const char *name = NULL;
    w->zxid = t->zxid;
    size_t item = t->path ? sim_item_of_path(w, t->path, &name) : SIZE_MAX;
    bool of_services = sim_services_transaction(w, t), of_plans = sim_plans_transaction(w, t);
    if (t->kind == DIVVY_TESTING_DELETE) {
        if (!of_services && !of_plans) check_may_delete(w, t);
        if (item != SIZE_MAX) check_deleted_place(w, t, item);
    }
    if (t->kind == DIVVY_TESTING_SESSION_END) check_session_end(w, t);
    if (t->kind == DIVVY_TESTING_CREATE && item != SIZE_MAX) check_created_place(w, t, item, name);
    sim_claims_transaction(w, t);
    sim_kazoo_transaction(w, t);
    sim_truth_apply(w, t);
    sim_rolls_transaction(w, t);
    sim_directories_transaction(w, t);
    if (t->kind == DIVVY_TESTING_CREATE && t->ephemeral_owner) check_budget(w, t);
}

/* ---- what is shown ---- */

/* S1, S3, S4, S5: an item that is shown and believed in from now on. */
static void check_place(sim_member *m, size_t item, int64_t token) {
    sim_world *w = m->world;
    sim_queue *q = &w->truth.queues[item];
    int64_t session = session_of(m);
    if (!sim_member_alive(m) || sim_truth_excused(&w->truth, item, token) || sim_truth_killed(&w->truth, session))
        return;
    if (!sim_truth_node(&w->truth, item, token, session)) {
        bool other = sim_truth_turn(&w->truth, item, token, session) == 0;
        sim_violate(w, other ? "S5" : "S1", "%s shows %s with token %lld, and its session 0x%llx has no such place",
                    m->name, w->items[item], (long long)token, (unsigned long long)session);
        return;
    }
    if (q->first != token)
        sim_violate(w, "S1", "%s shows %s with token %lld, and %lld stands before it", m->name, w->items[item],
                    (long long)token, (long long)q->first);
    if (token < q->shown_token)
        sim_violate(w, "S3", "%s shows %s with token %lld after %lld was shown", m->name, w->items[item],
                    (long long)token, (long long)q->shown_token);
    q->shown_token = token;
}

void sim_check_released(sim_member *m) {
    for (size_t i = 0; i < m->world->script->items; i++) {
        int64_t token;
        m->items[i].shown &= shows(m, i, &token);
    }
}

static void look_at_items(sim_member *m, bool all_anew) {
    sim_world *w = m->world;
    for (size_t i = 0; i < w->script->items; i++) {
        sim_holding *h = &m->items[i];
        int64_t token = 0;
        bool shown = shows(m, i, &token);
        bool afresh = shown && (!h->shown || all_anew);
        if (m->not_seen) h->shown = false;
        afresh |= shown && m->not_seen;
        /* Lost and gained again within one step is told as such, or shows in the generation, and it was not kept. */
        bool gained_anew = m->config.on_items ? h->gained && h->gained_token == token
                                              : m->partitioner->generation > m->seen_generation + 1;
        afresh |= shown && h->token != token;
        if (shown && h->shown && h->token != token && !gained_anew)
            sim_violate(w, "S3", "%s kept %s, and its token went from %lld to %lld", m->name, w->items[i],
                        (long long)h->token, (long long)token);
        h->shown = shown;
        h->token = token;
        if (!afresh) continue;
        check_place(m, i, token);
        check_alone(w, m, i);
    }
}

void sim_check_anew(sim_world *w) {
    int64_t before_ms = w->now_ms;
    w->now_ms = divvy_testing_now_ms(w->ensemble);
    sim_handovers_check_call(w);
    if (w->now_ms == before_ms) return;
    sim_handovers_check_anew(w);
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        m->not_seen = true;
        m->unserved_since = 0;
        for (size_t k = 0; k < m->claim_count; k++) m->claims[k].unknown_since = m->claims[k].gone_since = 0;
    }
}

/* ---- states ---- */

static bool is_legal(divvy_partition_state from, divvy_partition_state to) {
    static const bool table[4][4] = {
        [DIVVY_ALLOCATING] = {[DIVVY_ACQUIRED] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
        [DIVVY_ACQUIRED] = {[DIVVY_ALLOCATING] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
        [DIVVY_RELEASE] = {[DIVVY_ALLOCATING] = true, [DIVVY_RELEASE] = true, [DIVVY_FAILURE] = true},
    };
    return table[from][to];
}

static void count(sim_member *m, sim_transition transition) {
    m->world->coverage->transitions[transition]++;
}

static void count_failure(sim_member *m, divvy_partition_state from, int reason) {
    static const sim_transition loss[] = {SIM_ALLOCATING_FAILURE_LOSS, SIM_ACQUIRED_FAILURE_LOSS,
                                          SIM_RELEASE_FAILURE_LOSS};
    static const sim_transition finish[] = {SIM_ALLOCATING_FAILURE_FINISH, SIM_ACQUIRED_FAILURE_FINISH,
                                            SIM_RELEASE_FAILURE_FINISH};
    if (reason == DIVVY_REASON_SESSION) count(m, loss[from]);
    else if (reason == DIVVY_REASON_FINISH) count(m, finish[from]);
    else if (from == DIVVY_ALLOCATING && reason == DIVVY_REASON_TIMEOUT) count(m, SIM_ALLOCATING_FAILURE_TIMEOUT);
}

static void count_release(sim_member *m, divvy_partition_state from, int reason) {
    bool eager = m->config.mode == DIVVY_EAGER;
    switch (reason) {
    case DIVVY_REASON_SUSPEND:
        count(m, from == DIVVY_ALLOCATING ? SIM_ALLOCATING_RELEASE_SUSPEND
                 : from == DIVVY_ACQUIRED ? SIM_ACQUIRED_RELEASE_SUSPEND
                                          : SIM_RELEASE_RELEASE_SUSPEND);
        break;
    case DIVVY_REASON_SESSION:
        count(m, from == DIVVY_ALLOCATING ? SIM_ALLOCATING_RELEASE_LOSS
                 : from == DIVVY_ACQUIRED ? SIM_ACQUIRED_RELEASE_LOSS
                                          : SIM_RELEASE_RELEASE_LOSS);
        m->world->coverage->meetings[SIM_MET_REJOIN]++;
        break;
    case DIVVY_REASON_FOREIGN: count(m, SIM_ACQUIRED_RELEASE_FOREIGN); break;
    default:
        count(m, from == DIVVY_ALLOCATING ? SIM_ALLOCATING_RELEASE_MEMBERS
                 : from == DIVVY_RELEASE  ? SIM_RELEASE_RELEASE_MEMBERS
                 : eager                  ? SIM_ACQUIRED_RELEASE_EAGER
                                          : SIM_ACQUIRED_RELEASE_MEMBERS);
    }
}

/* Nothing was told of items with this change of state: the reason is where it can only be. */
static int guess_reason(const sim_member *m, divvy_partition_state to) {
    const divvy_partitioner *p = m->partitioner;
    if (!p || to == DIVVY_ACQUIRED || to == DIVVY_ALLOCATING) return -1;
    if (to == DIVVY_RELEASE && p->life == DV_LIFE_REJOINING) return DIVVY_REASON_SESSION;
    if (to == DIVVY_RELEASE) return m->config.on_suspend == DIVVY_RELEASE_ON_SUSPEND ? DIVVY_REASON_SUSPEND : -1;
    if (p->failure == DIVVY_ETIMEDOUT) return DIVVY_REASON_TIMEOUT;
    return p->failure == DIVVY_ELOST ? DIVVY_REASON_SESSION : DIVVY_REASON_FINISH;
}

/* S8, S6: each change of state is in the table, and none leaves FAILURE. */
void sim_check_told(sim_member *m, divvy_partition_state from, divvy_partition_state to) {
    sim_world *w = m->world;
    if (from != m->told_state)
        sim_violate(w, "S8", "%s was told %s -> %s, and %s before", m->name, divvy_partition_state_name(from),
                    divvy_partition_state_name(to), divvy_partition_state_name(m->told_state));
    if (!is_legal(from, to))
        sim_violate(w, from == DIVVY_FAILURE ? "S6" : "S8", "%s was told %s -> %s, which is not in the table", m->name,
                    divvy_partition_state_name(from), divvy_partition_state_name(to));
    m->told_state = to;
    int reason = m->last_reason >= 0 ? m->last_reason : guess_reason(m, to);
    m->last_reason = -1;
    if (to == DIVVY_FAILURE) count_failure(m, from, reason);
    else if (to == DIVVY_RELEASE) count_release(m, from, reason);
    else if (to == DIVVY_ACQUIRED) count(m, SIM_ALLOCATING_ACQUIRED);
    else if (from == DIVVY_RELEASE) count(m, SIM_RELEASE_ALLOCATING);
    else if (reason == DIVVY_REASON_FOREIGN) count(m, SIM_ACQUIRED_ALLOCATING_FOREIGN);
    else count(m, SIM_ACQUIRED_ALLOCATING_ADDED);
}

/* Targets that change no state are not told of; the partitioner's own notes show that one has settled. */
static void look_at_state(sim_member *m) {
    const divvy_partitioner *p = m->partitioner;
    bool same = p->state_id == m->seen_state_id,
         settled = m->seen_change && !p->change_seen && p->life < DV_LIFE_FINISHING;
    if (same && settled && p->state == DIVVY_ALLOCATING) count(m, SIM_ALLOCATING_ALLOCATING);
    if (same && settled && p->state == DIVVY_ACQUIRED) count(m, SIM_ACQUIRED_ACQUIRED);
    if (same && settled && p->state == DIVVY_RELEASE) count(m, SIM_RELEASE_RELEASE_TARGET);
    if (p->state_id < m->seen_state_id) sim_violate(m->world, "S8", "the number of %s's state went back", m->name);
    if (!same && m->seen_state == DIVVY_FAILURE) sim_violate(m->world, "S6", "%s left FAILURE", m->name);
    m->seen_state_id = p->state_id;
    m->seen_state = p->state;
    m->seen_change = p->change_seen;
}

/* ---- steps ---- */

/* A session that the administrator ended before its client knew of it. */
static void note_session(sim_member *m, int64_t id) {
    sim_truth *truth = &m->world->truth;
    const sim_session *session = sim_truth_session(truth, id);
    if (m->killed_at && (!session || session->began_ms <= m->killed_at)) sim_truth_kill(truth, id);
}

/* C: a deadline that has passed is final for its session. */
static bool look_at_clock(sim_member *m) {
    bool alive = sim_member_alive(m), came_alive = alive && !m->seen_alive;
    int64_t session = session_of(m);
    if (session != m->seen_session) note_session(m, session);
    if (session != m->seen_session && m->seen_session) m->world->given_up_at = m->world->now_ms;
    if (!alive && m->seen_alive) m->passed_session = m->seen_session;
    if (alive && session == m->passed_session)
        sim_violate(m->world, "S1", "session 0x%llx of %s came back to life after its deadline",
                    (unsigned long long)session, m->name);
    bool afresh = came_alive || session != m->seen_session;
    m->seen_alive = alive;
    m->seen_session = session;
    return afresh;
}

/* W4, where nothing but joins and leaves goes on: no churn keeps a party from settling. Excused are histories with
 * other faults, since each begins the wait again, and with kazoo members, which have no such bound. */
static void look_at_settling(sim_member *m) {
    enum { SLACK_MS = 1000 };
    sim_world *w = m->world;
    const divvy_partitioner *p = m->partitioner;
    bool served = p->state == DIVVY_FAILURE || p->life == DV_LIFE_REJOINING || (p->target_valid && !p->change_seen);
    served |= sim_plans_settled(m);
    if (served || !m->unserved_since) m->unserved_since = w->now_ms;
    int64_t interval_ms = m->config.time_boundary_ms / 2 + 100;
    if (w->now_ms - m->unserved_since >
        m->settle_max_ms + interval_ms + SLACK_MS + sim_answers_delay_ms(w) + sim_rolls_bound_ms(w))
        sim_violate(w, "L1", "%s has waited %lld ms for the party to settle, and settle_max is %lld ms", m->name,
                    (long long)(w->now_ms - m->unserved_since), (long long)m->settle_max_ms);
}

/* S21: the ensemble keeps its data. */
static void check_falls(const sim_member *m) {
    if (m->client->czxid_falls == 0) return;
    sim_violate(m->world, "S21", "%s says that tokens have fallen, and no data were lost", m->name);
}

/* S23: each item stands where its table lets it. */
static void look_at_stages(sim_member *m) {
    const divvy_partitioner *p = m->partitioner;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        dv_item_place place = dv_item_place_of(dv_item_at(p, i));
        dv_item_stage stage = dv_item_at(p, i)->life.stage;
        m->world->coverage->stands[place][stage]++;
        if (!dv_item_can_be(place, stage))
            sim_violate(m->world, "S23", "%s has %s %s, and its place is %s", m->name, dv_item_name(p, i),
                        item_stage_word(stage), item_place_word(place));
    }
}

void sim_check_step(sim_world *w) {
    bool calm = w->script->profile == SIM_CHURN && !w->script->kazoo;
    sim_handovers_note_faults(w);
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->phase == SIM_ABSENT) continue;
        bool afresh = look_at_clock(m);
        check_falls(m);
        sim_claims_check_step(w, m, afresh);
        sim_services_check_step(m);
        sim_kazoo_check_step(m);
        const divvy_partitioner *p = m->partitioner;
        if (!p) continue;
        if (afresh || m->not_seen || p->generation != m->seen_generation) {
            look_at_items(m, afresh);
            m->seen_generation = p->generation;
            m->not_seen = false;
        }
        if (p->state_id != m->seen_state_id || p->change_seen != m->seen_change) look_at_state(m);
        look_at_stages(m);
        sim_plans_check_step(m);
        sim_rolls_check_step(m);
        if (calm) look_at_settling(m);
    }
}

/* S1: an item that is told as gained is held, not revoked, and believed when the callback begins (P17). */
void sim_check_gained(sim_member *m, size_t item, int64_t token) {
    int64_t shown = 0;
    bool owns = shows(m, item, &shown) && shown == token && dv_item_owned(sim_item_of(m, item)) && sim_member_alive(m);
    if (!owns)
        sim_violate(m->world, "S1", "%s is told that it gained %s with token %lld, which it does not own now", m->name,
                    m->world->items[item], (long long)token);
}

void sim_check_work(sim_member *m, size_t item) {
    sim_holding *h = &m->items[item];
    if (h->work_session == session_of(m)) check_place(m, item, h->work_token);
    check_alone(m->world, m, item);
}

/* L3, at once: finish() has said that nothing of ours is left. Excused are clients that had a partitioner before, whose
 * nodes are counted with the same session, a session that was given up: its nodes go when it ends, and what comes late
 * (R3). */
void sim_check_gone(sim_member *m) {
    divvy_session_state state = divvy_client_state(m->client);
    if (m->partitioners > 1 || (state != DIVVY_CONNECTED && state != DIVVY_SUSPENDED)) return;
    const sim_session *session = sim_truth_session(&m->world->truth, session_of(m));
    if (session && session->pool_nodes > m->client->latecomer_count)
        sim_violate(m->world, "L3", "finish() said that all of %s is gone, and %zu nodes are there", m->name,
                    session->pool_nodes);
}
