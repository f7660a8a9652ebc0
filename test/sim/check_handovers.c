/* Handovers as members go about them: S16, S18 when something changes, L7 and L8 again and again.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Excused:
 *  - S18 of what a member does in a waiting call, whose steps are not looked at; and of the first of two plans
 *    that come within one step, since a step may hold several answers.
 *  - S16 of an item that was taken in a waiting call, though no time went on in it. Messages without a delay take no
 *    time, so the place may have looked at its queue in between (T6). S1 holds all the same.
 *  - L8 of the time before a step in which a plan came and went: somebody restored one that gives the item back.
 *  - L7 and L8 where is_calm() says no, and waits_for_session() yes. */
#include <stdlib.h>
#include <string.h>

#include "handovers.h"
#include "partitioner/handover.h"
#include "znode/path.h"

enum { LOOK_MS = 40, SLACK_MS = 1000, PATIENCE_MAX_MS = 1000 };

static struct sim_handovers *handovers_of(const sim_world *w) {
    return w->plans_truth->handovers;
}

static sim_hand *hand_of(const sim_member *m) {
    return &handovers_of(m->world)->hands[m->slot];
}

static size_t item_at(const divvy_partitioner *p, size_t i) {
    return sim_item_of_name(dv_item_name(p, i));
}

static void meet(const sim_member *m, sim_plan_meeting meeting) {
    m->world->coverage->plan_meetings[meeting]++;
}

/* A few messages each way. */
static int64_t bound_ms(const sim_world *w) {
    enum { TRIPS = 20, LEAST_MS = 500 };
    return sim_answers_delay_ms(w) + LEAST_MS +
           TRIPS * (2 * w->script->client_delay_max_ms + 4 * w->script->server_delay_max_ms);
}

/* ---- who decides ---- */

static const dv_plan *plan_of(const dv_follower *f) {
    const dv_plan *plan = f->memory.plan;
    return plan && plan->header.generation > 0 ? plan : NULL;
}

/* Who is fenced follows the plan, too, as one that gives it nothing (T9). */
static bool is_followed(const dv_follower *f) {
    return f && f->party.in_force && !f->fence.is_unknown && plan_of(f) && f->memory.standing != DV_PLAN_BROKEN &&
           f->memory.standing != DV_PLAN_NEWER;
}

/* Returns whether the plan in force gives the member that item of its set. */
static bool gives(const dv_follower *f, uint32_t number) {
    const dv_plan *plan = plan_of(f);
    const dv_plan_member *own = dv_plan_member_of(plan, dv_roster_party(f->roster), f->party.own);
    if (!own && f->share.known_as) own = dv_plan_find(plan, false, f->share.known_as);
    return own && own->leaving[0] == '\0' && plan->owners[number] == own->slot;
}

/* A member learns what its own new node says by a read, which may come late. */
static bool knows_itself(const dv_follower *f) {
    const dv_plan_party *party = f ? dv_roster_party(f->roster) : NULL;
    return party && f->party.own < party->count && party->nodes[f->party.own].known;
}

/* Two plans, one behind the other, may have come within one step. */
static bool has_between(const sim_world *w, int64_t after, int64_t before) {
    const struct sim_plans_truth *t = w->plans_truth;
    for (size_t i = t->count; i-- > 0;) {
        if (t->versions[i].mzxid > after && t->versions[i].mzxid < before) return true;
    }
    return false;
}

/* The member has nothing of an item that is not in its table. */
static void forget_absent(const sim_member *m, sim_hand *h) {
    for (size_t item = 0; item < m->world->script->items; item++) {
        if (sim_item_of(m, item)) continue;
        h->was_away[item] = h->left[item] = false;
        h->away_ms[item] = 0;
    }
}

/* T4: since when its plans give away what it shows. Returns whether the plan is another. */
static bool follow_plan(sim_member *m, sim_hand *h, bool is_fenced) {
    const divvy_partitioner *p = m->partitioner;
    const dv_follower *f = p->follower;
    bool followed = is_followed(f), decides = followed && !is_fenced;
    bool known = followed && dv_plan_set_equal(p->dealt, plan_of(f)->set);
    int64_t mzxid = plan_of(f) ? plan_of(f)->mzxid : 0;
    bool same = !h->unseen && h->plan_mzxid == mzxid && h->plan_decided == decides && h->generation == p->generation &&
                h->self_known == knows_itself(f);
    bool is_other = h->plan_mzxid != mzxid;
    bool undecided = !decides && f->party.in_force && (f->fence.is_unknown || !plan_of(f));
    if (same || undecided || (followed && !known)) return is_other;
    h->skipped = is_other && has_between(m->world, h->plan_mzxid, mzxid);
    if (h->skipped) h->skipped_ms = m->world->now_ms;
    h->plan_mzxid = mzxid;
    if (is_other) h->plan_ms = m->world->now_ms;
    h->plan_decided = decides;
    h->self_known = knows_itself(f);
    h->generation = p->generation;
    forget_absent(m, h);
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *own = dv_item_at(p, i);
        size_t item = item_at(p, i);
        bool mine = decides && own->dealt && gives(f, own->number);
        h->was_away[item] = h->away_ms[item] != 0;
        if (h->left[item] && own->life.stage != DV_STAGE_LEAVING && mine && dv_item_shown(own) &&
            own->life.stage != DV_STAGE_REVOKED)
            meet(m, SIM_MET_GONE_BACK);
        h->left[item] = own->life.stage == DV_STAGE_LEAVING;
        if (followed && own->dealt && !mine && dv_item_shown(own)) {
            int64_t late_ms = h->unseen && own->give.since ? dv_client_now(m->client) - own->give.since : 0;
            if (!h->away_ms[item]) h->away_ms[item] = m->world->now_ms - late_ms;
        } else {
            h->away_ms[item] = 0;
        }
    }
    return is_other;
}

/* ---- S18: who is told to stop ---- */

static bool is_of_target(int reason) {
    switch (reason) {
    case DIVVY_REASON_SESSION:
    case DIVVY_REASON_SUSPEND:
    case DIVVY_REASON_FINISH:
    case DIVVY_REASON_FOREIGN:
    case DIVVY_REASON_TIMEOUT:
    case DIVVY_REASON_DENIED: return false;
    default: return true;
    }
}

/* Returns the note of the one live member of its party to which the plan gives the item; NULL: nobody, or several have
 * the identifier. */
static const sim_note *note_of_next_owner(const sim_member *m, const dv_item *own) {
    const sim_world *w = m->world;
    const struct sim_plans_truth *t = w->plans_truth;
    const dv_follower *f = m->partitioner->follower;
    uint32_t slot = plan_of(f)->owners[own->number];
    const dv_plan_member *to = slot == DV_PLAN_NO_SLOT ? NULL : dv_plan_member_at(plan_of(f), slot);
    const sim_party_node *found = NULL;
    for (size_t i = 0; to && i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        if (!p->is_member || !sim_party_node_lived(p, f->party.pzxid)) continue;
        if (strcmp(to->is_static ? p->identifier : p->node, to->key) != 0) continue;
        if (found) return NULL;
        found = p;
    }
    return found && found->facts.is_static == to->is_static ? sim_note_of_node(w, found->node) : NULL;
}

static bool can_wait(const sim_member *m, const dv_item *own) {
    const divvy_partitioner *p = m->partitioner;
    return p->handover && dv_handover_can(p) && own->dealt && own->life.is_first && p->target_valid &&
           (own->plain || !p->kazoo_seen) && !m->world->script->small_budgets;
}

/* It may have heard that its next owner is ready, or of the plan before, and then of this plan, within one step. */
static void check_revoked_item(sim_member *m, const sim_hand *h, const dv_item *own, size_t item, bool is_other) {
    sim_world *w = m->world;
    const dv_follower *f = m->partitioner->follower;
    if (own->dealt && gives(f, own->number) && m->partitioner->target_valid) {
        if (is_other && (!h->was_away[item] || sim_is_ready_lately(w, item, w->now_ms - bound_ms(w)))) return;
        sim_violate(w, "S18", "%s is told to release %s, and by its plan that is its own", m->name, w->items[item]);
        return;
    }
    if (!can_wait(m, own) || (is_other && h->skipped)) return;
    const sim_note *next = note_of_next_owner(m, own);
    int64_t away_ms = h->away_ms[item] ? h->away_ms[item] : w->now_ms;
    if (!next || !next->stands) return;
    if (next->ready[item] || next->ready_ms[item] >= away_ms) return;
    if (dv_client_now(m->client) - own->give.since >= m->config.handover_timeout_ms &&
        w->now_ms - away_ms >= m->config.handover_timeout_ms * 9 / 10) {
        meet(m, SIM_MET_OVERDUE);
        return;
    }
    sim_violate(w, "S18", "%s is told to release %s after %lld ms, and %s is not ready for it", m->name, w->items[item],
                (long long)(w->now_ms - away_ms), next->node);
}

static void check_revoked(sim_member *m, sim_hand *h, bool is_other, bool is_fenced) {
    const divvy_partitioner *p = m->partitioner;
    bool entered = p->state_id != h->state_id && p->state == DIVVY_RELEASE;
    h->state_id = p->state_id;
    if (!entered || h->unseen || !is_followed(p->follower) || is_fenced || p->config.mode == DIVVY_EAGER ||
        p->life != DV_LIFE_TAKING_PART)
        return;
    if (!dv_plan_set_equal(p->dealt, plan_of(p->follower)->set)) return;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *own = dv_item_at(p, i);
        if (own->life.stage == DV_STAGE_REVOKED && is_of_target(own->told.reason))
            check_revoked_item(m, h, own, item_at(p, i), is_other);
    }
}

/* ---- S16: who takes by number is right ---- */

static void check_taken(sim_member *m, const dv_item *own, size_t item) {
    sim_world *w = m->world;
    int64_t session = divvy_client_session_id(m->client), token = dv_contender_token(own->life.contender);
    int32_t sequence = dv_contender_sequence(own->life.contender);
    meet(m, SIM_MET_BY_NUMBER);
    if (!sim_given_to(w, item, sequence, token))
        sim_violate(w, "S16", "%s takes %s at %d with token %lld, and no note gives it that", m->name, w->items[item],
                    sequence, (long long)token);
    bool excused = sim_truth_excused(&w->truth, item, token) || sim_session_touched(w, session) || !sim_member_alive(m);
    if (!excused && w->truth.queues[item].first != token)
        sim_violate(w, "S16", "%s takes %s by its number, and %lld stands before its token %lld", m->name,
                    w->items[item], (long long)w->truth.queues[item].first, (long long)token);
}

/* Looked at as long as something is waited for. */
static void follow_places(sim_member *m, sim_hand *h) {
    const divvy_partitioner *p = m->partitioner;
    if (p->totals.wanted_first == p->totals.wanted && h->parked_count == 0) return;
    h->parked_count = 0;
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *own = dv_item_at(p, i);
        size_t item = item_at(p, i);
        int64_t token = own->life.contender && dv_contender_stands(own->life.contender)
                            ? dv_contender_token(own->life.contender)
                            : 0;
        bool parked = token && dv_contender_is_parked(own->life.contender);
        bool waited = token && h->parked[item] == token;
        if (waited && own->life.is_first) check_taken(m, own, item);
        if (waited && !own->life.is_first && !parked) h->by_list[item] = token;
        if (token && own->life.is_first && h->by_list[item] == token) {
            meet(m, SIM_MET_BY_LIST);
            h->by_list[item] = 0;
        }
        h->parked[item] = parked ? token : 0;
        h->parked_count += parked || (token && h->by_list[item] == token);
    }
}

/* ---- L7: no gap; L8: no dead wait ---- */

/* Its server has the leader: proofs come as they should. */
static bool is_heard(const sim_member *m) {
    int64_t left_ms = atomic_load(&m->client->alive_until) - dv_client_now(m->client);
    return left_ms > m->client_config.session_timeout_ms / 2;
}

/* Short ones count as well: what was lost on a link stays lost until the servers notice it. */
void sim_handovers_note_faults(sim_world *w) {
    if (w->undo_count || divvy_testing_leader(w->ensemble) < 0) handovers_of(w)->calm_ms = w->now_ms;
}

/* Without faults for a session timeout, or for syncLimit ticks and an election, however short the last one was. Until
 * then a server that was cut off answers reads, what was on its way to its leader is lost, and a client keeps a dead
 * connection. Excused for good are small budgets, as members without room for a watch list; pools with kazoo members;
 * and sessions that somebody else has deleted a node of. */
static bool is_calm(const sim_member *m, const sim_hand *h) {
    const sim_world *w = m->world;
    const struct sim_handovers *all = handovers_of(w);
    const sim_script *s = w->script;
    int64_t quiet_ms = s->sync_limit_ticks * s->tick_ms + s->election_max_ms + SLACK_MS;
    /* A connection whose server was started again is given up after that, too. */
    if (quiet_ms < m->client_config.session_timeout_ms) quiet_ms = m->client_config.session_timeout_ms;
    bool quiet = !all->calm_ms || w->now_ms >= all->calm_ms + quiet_ms;
    return quiet && h->awake_ms && w->now_ms >= h->awake_ms + SLACK_MS && !s->small_budgets && !s->kazoo &&
           m->phase == SIM_RUNS && !m->ended && is_heard(m) &&
           !sim_session_touched(w, divvy_client_session_id(m->client));
}

/* Returns for how long that has held. */
static int64_t lasts(const sim_world *w, int64_t *since, bool holds) {
    if (!holds) *since = 0;
    else if (!*since) *since = w->now_ms;
    return holds ? w->now_ms - *since : 0;
}

static bool has_place(const sim_world *w, size_t item, int64_t session) {
    const sim_queue *q = &w->truth.queues[item];
    for (size_t i = 0; i < q->count; i++) {
        if (q->nodes[i].contends && q->nodes[i].session == session) return true;
    }
    return false;
}

/* The owner's place has gone, and its note says leaving until its session ends: somebody has deleted the place, or the
 * owner closed its client without a connection when places had been deleted, and the note was still to come. */
static bool waits_for_session(sim_world *w, const dv_item *own) {
    const sim_note *owner = own->take.owner ? sim_note_of_node(w, dv_path_last(own->take.owner->path)) : NULL;
    if (!owner || !dv_contender_is_parked(own->life.contender)) return false;
    return sim_session_touched(w, owner->session) || (owner->stands && !sim_member_of_session(w, owner->session));
}

/* `own` is NULL for an item that is not in the member's table. Excused: what may have come late (R3). */
static void check_given_up(sim_member *m, sim_hand *h, const dv_item *own, size_t item) {
    sim_world *w = m->world;
    int64_t session = divvy_client_session_id(m->client);
    bool gave_up = (!own || !own->life.contender) && !m->client->latecomer_count;
    bool stale = gave_up && has_place(w, item, session);
    if (lasts(w, &h->stale_ms[item], stale) > bound_ms(w))
        sim_violate(w, "L7", "%s has given up %s for %lld ms, and its place stands", m->name, w->items[item],
                    (long long)(w->now_ms - h->stale_ms[item]));
}

static void check_gap(sim_member *m, sim_hand *h, const dv_item *own, size_t item) {
    sim_world *w = m->world;
    int64_t limit_ms = bound_ms(w);
    bool first = own->life.wanted && !dv_item_shown(own) && own->life.contender &&
                 dv_contender_stands(own->life.contender) &&
                 w->truth.queues[item].first == dv_contender_token(own->life.contender) && !waits_for_session(w, own);
    if (lasts(w, &h->idle_ms[item], first) > limit_ms)
        sim_violate(w, "L7", "%s is to have %s, is the first for %lld ms, and has not noticed", m->name, w->items[item],
                    (long long)(w->now_ms - h->idle_ms[item]));
}

/* One that has gone, or is cut off, does not write its note again when the items have changed. */
static bool is_ready_now(const sim_member *m, const sim_note *next, size_t item) {
    return next->stands && next->ready[item] && next->set_hash == m->partitioner->dealt->hash;
}

static void check_owner(sim_member *m, const dv_item *own, size_t item) {
    sim_world *w = m->world;
    const sim_note *next = own->give.next ? sim_note_of_node(w, dv_path_last(own->give.next->path)) : NULL;
    if (!dv_item_kept(own) || m->partitioner->state == DIVVY_RELEASE || !own->give.next) return;
    int64_t away_ms = w->now_ms - hand_of(m)->away_ms[item];
    if (!hand_of(m)->away_ms[item] || away_ms <= bound_ms(w)) return;
    if (w->now_ms - hand_of(m)->plan_ms <= bound_ms(w)) return; /* It may be another next owner. */
    /* The node of a static next owner is known by the party, which may settle long after the plan has come. */
    if (own->give.next->standing == DV_NOTE_UNREAD && own->give.next->reading) return;
    if (!next)
        sim_violate(w, "L8", "%s keeps %s for %s, which has no note", m->name, w->items[item],
                    dv_path_last(own->give.next->path));
    else if (is_ready_now(m, next, item) && w->now_ms - next->ready_ms[item] > bound_ms(w))
        sim_violate(w, "L8", "%s keeps %s, and %s is ready for it since %lld ms", m->name, w->items[item], next->node,
                    (long long)(w->now_ms - next->ready_ms[item]));
}

/* T4 is a matter of the member's clock alone, whatever its links are. */
static void check_patience(sim_member *m, const dv_item *own, size_t item) {
    sim_world *w = m->world;
    int64_t since_ms = hand_of(m)->away_ms[item], limit_ms = m->config.handover_timeout_ms;
    if (dv_item_kept(own) && m->partitioner->follower->party.names_decide && m->partitioner->state != DIVVY_RELEASE)
        sim_violate(w, "L8", "%s keeps %s for another, and a rule of names decides", m->name, w->items[item]);
    if (!dv_item_kept(own) || !since_ms || m->partitioner->state == DIVVY_RELEASE || m->paused) return;
    if (since_ms < m->last_paused) since_ms = m->last_paused;
    if (since_ms < hand_of(m)->skipped_ms) since_ms = hand_of(m)->skipped_ms; /* It was its own in between, perhaps. */
    if (w->now_ms - since_ms > limit_ms + limit_ms / 50 + SLACK_MS)
        sim_violate(w, "L8", "%s keeps %s for another for %lld ms, and its patience is %lld ms", m->name,
                    w->items[item], (long long)(w->now_ms - since_ms), (long long)limit_ms);
}

static void check_next_owner(sim_member *m, sim_hand *h, const dv_item *own, size_t item) {
    sim_world *w = m->world;
    const divvy_partitioner *p = m->partitioner;
    const sim_note *owner = own->take.owner ? sim_note_of_node(w, dv_path_last(own->take.owner->path)) : NULL;
    if (own->life.contender && dv_contender_is_parked(own->life.contender)) {
        bool waits =
            owner && ((owner->stands && owner->leaving[item]) || w->now_ms - owner->leaving_ms[item] <= bound_ms(w));
        if (!waits)
            sim_violate(w, "L8", "%s waits for a note to give it %s, and nobody says that it is leaving", m->name,
                        w->items[item]);
    }
    bool lacks = own->life.wanted && !own->life.contender && p->ready && p->totals.leaving == 0 && p->unfit == 0;
    int64_t prepare_ms = m->config.prepare_timeout_ms;
    if (lasts(w, &h->absent_ms[item], lacks) > prepare_ms + prepare_ms / 50 + PATIENCE_MAX_MS + bound_ms(w))
        sim_violate(w, "L8", "%s has not asked for %s for %lld ms", m->name, w->items[item],
                    (long long)(w->now_ms - h->absent_ms[item]));
    bool untold = m->config.on_items && own->life.stage == DV_STAGE_PREPARING && !m->items[item].prepares &&
                  !m->items[item].gained;
    if (lasts(w, &h->untold_ms[item], untold) > bound_ms(w))
        sim_violate(w, "L8", "%s is to prepare %s for %lld ms, and its user was not told", m->name, w->items[item],
                    (long long)(w->now_ms - h->untold_ms[item]));
}

/* Keeps those of `but`, which may be NULL. An item that has left the member's table, and comes back, waits again. */
static void forget_waits(sim_hand *h, const bool *but) {
    for (size_t i = 0; i < SIM_ITEMS_MAX; i++) {
        if (!but) h->stale_ms[i] = 0;
        if (!but || !but[i]) h->idle_ms[i] = h->absent_ms[i] = h->untold_ms[i] = 0;
    }
}

static void look(sim_member *m, sim_hand *h) {
    sim_world *w = m->world;
    const divvy_partitioner *p = m->partitioner;
    if (w->now_ms < h->looked_ms + LOOK_MS) return;
    h->looked_ms = w->now_ms;
    bool calm = is_calm(m, h) && p->life == DV_LIFE_TAKING_PART && p->target_valid;
    bool looked_at[SIM_ITEMS_MAX] = {false};
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const dv_item *own = dv_item_at(p, i);
        size_t item = item_at(p, i);
        check_patience(m, own, item);
        if (!calm) continue;
        looked_at[item] = true;
        check_gap(m, h, own, item);
        check_owner(m, own, item);
        check_next_owner(m, h, own, item);
    }
    for (size_t i = 0; calm && i < w->script->items; i++) check_given_up(m, h, sim_item_of(m, i), i);
    forget_waits(h, calm ? looked_at : NULL);
}

/* ---- steps ---- */

/* T5: the answer to a write that was carried out is lost with the connection. */
static void follow_answer(sim_member *m, sim_hand *h) {
    const dv_note_departures *writes = m->partitioner->handover->writes;
    if (writes && writes->next) meet(m, SIM_MET_IN_A_LINE);
    if (!h->answer_due) return;
    if (!writes) h->answer_due = false;
    else if (!dv_client_connected(m->client)) {
        meet(m, SIM_MET_ANSWER_LOST);
        h->answer_due = false;
    }
}

/* A place that waited before the call may have looked at its queue in it (T6). */
void sim_handovers_check_call(sim_world *w) {
    for (size_t i = 0; i < w->script->slots; i++)
        memset(handovers_of(w)->hands[i].parked, 0, sizeof handovers_of(w)->hands[i].parked);
}

void sim_handovers_check_anew(sim_world *w) {
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_hand *h = &handovers_of(w)->hands[i];
        memset(h->by_list, 0, sizeof h->by_list);
        forget_waits(h, NULL);
        h->unseen = true;
    }
}

void sim_handovers_check_step(sim_member *m, bool is_fenced) {
    sim_world *w = m->world;
    sim_hand *h = hand_of(m);
    const divvy_partitioner *p = m->partitioner;
    if (!p || p->state == DIVVY_FAILURE || !p->follower) return;
    if (h->life != m->life) *h = (sim_hand){.life = m->life, .state_id = p->state_id};
    bool awake = dv_client_connected(m->client) && !m->paused && !m->callback_runs;
    h->awake_ms = !awake ? 0 : h->awake_ms ? h->awake_ms : w->now_ms;
    check_revoked(m, h, follow_plan(m, h, is_fenced), is_fenced);
    h->unseen = false;
    if (!p->handover) return;
    follow_answer(m, h);
    follow_places(m, h);
    look(m, h);
}
