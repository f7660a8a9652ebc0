/* Plans as members follow them: at each step, and at the end. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handovers.h"
#include "operator.h"
#include "plan/draft.h"
#include "znode/path.h"

static const dv_follower *follower_of(const sim_member *m) {
    return m->partitioner ? m->partitioner->follower : NULL;
}

static const sim_party_node *self_of(const sim_member *m) {
    const char *node = m->partitioner->membership ? dv_membership_name(m->partitioner->membership) : NULL;
    return node ? sim_party_node_named(m->world, node) : NULL;
}

/* ---- at each step ---- */

/* D48: who knows wishes and loads keeps them, though a root lacks them. */
static void check_parts(sim_member *m, const dv_plan *plan) {
    bool same_set = m->plan_set && m->plan_set == plan->set->hash;
    if ((m->plan_wishes && !plan->wishes) || (m->plan_loads && same_set && !plan->loads))
        sim_violate(m->world, "D48", "%s has forgotten the %s, which it had read", m->name,
                    plan->wishes ? "loads" : "wishes");
    m->plan_wishes = plan->wishes != NULL;
    m->plan_loads = plan->loads != NULL;
    m->plan_set = plan->set->hash;
}

/* D21, D22: what it remembers stood there, word for word; and never is an older plan followed after a newer one. */
static void check_memory(sim_member *m, const dv_follower *f) {
    sim_world *w = m->world;
    const dv_plan *plan = f->memory.plan;
    int64_t mzxid = plan ? plan->mzxid : 0;
    if (mzxid == m->plan_mzxid) return;
    if (mzxid < m->plan_mzxid)
        sim_violate(w, "D21", "%s follows the plan of 0x%llx after that of 0x%llx", m->name, (unsigned long long)mzxid,
                    (unsigned long long)m->plan_mzxid);
    m->plan_mzxid = mzxid;
    if (!plan) return;
    check_parts(m, plan);
    const sim_plan_version *v = sim_plan_at(w, mzxid);
    if (v && !v->plan && w->plans_truth->chunks_spoiled) return; /* It has read what is there no more. */
    bool same = v && v->plan && strcmp(v->plan->header.guid, plan->header.guid) == 0 && sim_plan_is_followed(v, plan);
    if (!same)
        sim_violate(w, "D22", "%s follows a plan of 0x%llx that %s", m->name, (unsigned long long)mzxid,
                    !v         ? "never stood there"
                    : !v->plan ? "is broken"
                               : "is another than stood there");
}

/* D23: a plan is broken only if nobody can read it. */
static void check_standing(sim_member *m, const dv_follower *f) {
    sim_world *w = m->world;
    if ((int)f->memory.standing == m->plan_standing && f->memory.mzxid == m->plan_found) return;
    m->plan_standing = (int)f->memory.standing;
    m->plan_found = f->memory.mzxid;
    const sim_plan_version *v = f->memory.mzxid ? sim_plan_at(w, f->memory.mzxid) : NULL;
    if (f->memory.standing == DV_PLAN_BROKEN) {
        w->coverage->plan_meetings[SIM_MET_BROKEN]++;
        if (v && v->plan && w->plans_truth->spoiled_at == 0)
            sim_violate(w, "D23", "%s takes the plan of 0x%llx for broken", m->name, (unsigned long long)v->mzxid);
    }
    w->coverage->plan_meetings[SIM_MET_NO_ROOT] += f->memory.standing == DV_PLAN_MISSING && f->memory.plan;
    w->coverage->plan_meetings[SIM_MET_NEWER] += f->memory.standing == DV_PLAN_NEWER;
}

/* D34: as whom a plan has a member whose node somebody has deleted since: by the one before it, of this session. */
static const dv_plan_member *as_before(const sim_world *w, const dv_plan *plan, const sim_party_node *self) {
    for (size_t i = 0; i < plan->member_count; i++) {
        const dv_plan_member *m = &plan->members[i];
        const sim_party_node *before = m->is_static ? NULL : sim_party_node_named(w, m->key);
        if (before && before->gone_zxid && before->session == self->session && before->life == self->life) return m;
    }
    return NULL;
}

/* D34: an ACQUIRED member's share is what the newest plan that it has read gives it. D38: one that another live node
 * has taken the place of has nothing. */
static void check_share(sim_member *m, const dv_follower *f) {
    sim_world *w = m->world;
    const divvy_partitioner *p = m->partitioner;
    const dv_plan *plan = f->memory.plan;
    if (p->state != DIVVY_ACQUIRED || !f->party.in_force || f->fence.is_unknown) return;
    if (m->hands_over) return; /* T8: it wants no more than it has */
    /* By the node that it had when the party settled: another one may be there by now. */
    const sim_party_node *self = sim_party_node_named(w, dv_roster_party(f->roster)->nodes[f->party.own].node);
    if (!self) return;
    if (sim_party_node_fenced(w, self, f->party.pzxid)) {
        sim_violate(w, "D38", "%s is ACQUIRED, and another has taken its place", m->name);
        return;
    }
    if (!plan || plan->header.generation == 0 || f->memory.standing == DV_PLAN_BROKEN) return;
    const dv_plan_member *own =
        dv_plan_find(plan, self->facts.is_static, self->facts.is_static ? self->identifier : self->node);
    if (!own) own = as_before(w, plan, self);
    if (!own || own->leaving[0]) {
        sim_violate(w, "D34", "%s is ACQUIRED, and %s the plan", m->name, own ? "leaves by" : "is not in");
        return;
    }
    if (!dv_plan_set_equal(p->dealt, plan->set)) {
        sim_violate(w, "D34", "%s is ACQUIRED, and deals with other items than the plan", m->name);
        return;
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        const dv_item *item = dv_item_dealt(p, i);
        bool wanted = item && item->life.wanted, planned = plan->owners[i] == own->slot;
        if (planned && !(item && item->life.is_first) && p->unfit == 0) {
            sim_violate(w, "D34", "%s is ACQUIRED, and does not hold the lock of %s", m->name, plan->set->names[i]);
            return;
        }
        if (wanted == planned || (item && item->too_long)) continue;
        sim_violate(w, "D34", "%s is ACQUIRED, and by the plan %s is %s", m->name, plan->set->names[i],
                    planned ? "its own" : "another's");
        return;
    }
}

/* S22: it counts as fenced exactly while another node takes its place by what the nodes of its party say. */
static void check_fence(const sim_member *m, const dv_follower *f) {
    sim_world *w = m->world;
    if (!f->party.in_force || f->fence.is_unknown) return;
    const sim_party_node *self = sim_party_node_named(w, dv_roster_party(f->roster)->nodes[f->party.own].node);
    const sim_party_node *by = self ? sim_party_node_successor(w, self, f->party.pzxid) : NULL;
    if (!self || !m->config.static_membership) return;
    if (dv_follow_is_fenced(f) != (by != NULL))
        sim_violate(w, "S22", "%s %s", m->name,
                    by ? "does not know that another has taken its place" : "counts as fenced, and nobody came later");
    else if (by) w->coverage->plan_meetings[SIM_MET_CAME_BACK] += by->czxid < self->czxid;
    if (by && by->life == m->life && by->life && divvy_partitioner_is_replaced(m->partitioner))
        sim_violate(w, "S22", "%s counts as replaced, by a node of its own", m->name);
}

/* Counts changes between a plan and a rule of names as what decides. */
static void count_change_over(sim_member *m, const dv_follower *f, bool is_fenced) {
    int rule = f->party.in_force ? 1 : f->party.names_decide ? 2 : m->plan_rule;
    uint64_t *met = m->world->coverage->plan_meetings;
    met[SIM_MET_TO_NAMES] += m->plan_rule == 1 && rule == 2;
    met[SIM_MET_TO_PLAN] += m->plan_rule == 2 && rule == 1;
    m->plan_rule = rule;
    met[SIM_MET_FENCED] += is_fenced && !m->plan_was_fenced;
    m->plan_was_fenced = is_fenced;
}

void sim_plans_check_step(sim_member *m) {
    const dv_follower *f = follower_of(m);
    sim_plan_note_requests(m);
    bool is_fenced = f && f->party.in_force && dv_follow_is_fenced(f);
    sim_handovers_check_step(m, is_fenced);
    if (!f || m->partitioner->state == DIVVY_FAILURE) return;
    count_change_over(m, f, is_fenced);
    check_memory(m, f);
    check_standing(m, f);
    const divvy_partitioner *p = m->partitioner;
    bool same = m->plan_checked_state == p->state_id && m->plan_checked_mzxid == m->plan_mzxid &&
                m->plan_checked_pzxid == f->party.pzxid && m->plan_checked_fence == f->fence.is_unknown &&
                m->plan_checked_count == p->totals.wanted;
    if (same) return;
    m->plan_checked_state = p->state_id;
    m->plan_checked_mzxid = m->plan_mzxid;
    m->plan_checked_pzxid = f->party.pzxid;
    m->plan_checked_fence = f->fence.is_unknown;
    m->plan_checked_count = p->totals.wanted;
    check_fence(m, f);
    check_share(m, f);
}

/* ---- at the end ---- */

static bool takes_part(const sim_member *m) {
    return m->phase == SIM_RUNS && (m->partitioner || m->kazoo);
}

bool sim_plan_in_force(const sim_world *w) {
    bool any = false;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (!takes_part(m)) continue;
        any = true;
        if (m->kazoo || atoi(m->partitioner->ability) < DV_LEVEL_PLAN || m->partitioner->ability[0] == 'f')
            return false;
    }
    return any;
}

bool sim_is_fenced(const sim_member *m) {
    const sim_party_node *self = m->partitioner ? self_of(m) : NULL;
    return self && sim_party_node_fenced(m->world, self, INT64_MAX - 1);
}

/* The party as it is, for a step. */
static size_t call_roll(const sim_world *w, dv_plan_node *nodes, const sim_member **members) {
    size_t count = 0;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const sim_party_node *self = takes_part(m) && m->partitioner ? self_of(m) : NULL;
        if (!self) continue;
        members[count] = m;
        nodes[count++] = (dv_plan_node){
            .node = self->node,
            .identifier = self->identifier,
            .tag = self->tag,
            .known = true,
            .is_static = self->facts.is_static,
            .weight = self->facts.weight,
            .zone = self->facts.zone,
            .rejoin_delay_ms = self->facts.rejoin_delay_ms,
            .tags = self->facts.tags,
            .cap = self->facts.cap,
            .can_balance = self->level >= DV_LEVEL_BALANCE,
            .czxid = self->czxid,
            .first_czxid = self->facts.first_czxid,
            .has_options = true,
            .options = {.max_moves = (uint32_t)m->config.max_moves, .round_timeout_ms = m->config.round_timeout_ms}};
    }
    return count;
}

static int by_node(const void *a, const void *b) {
    return strcmp(((const dv_plan_node *)a)->node, ((const dv_plan_node *)b)->node);
}

/* D36: nothing is left to be written. */
bool sim_plan_nothing_to_write(const sim_world *w, const dv_plan *plan, const dv_plan_events *events, char *text,
                               size_t bytes) {
    dv_plan_node nodes[SIM_SLOTS_MAX];
    const sim_member *members[SIM_SLOTS_MAX];
    size_t count = call_roll(w, nodes, members);
    if (count == 0) return true;
    dv_plan_party party = {
        .pzxid = INT64_MAX - 1, .nodes = nodes, .count = count, .set = members[0]->partitioner->configured};
    dv_plan *next;
    qsort(nodes, count, sizeof *nodes, by_node);
    int result = dv_plan_step(&next, plan, &party, events);
    if (result == DV_PLAN_NEXT)
        snprintf(text, bytes, "the plan is generation %llu, and another one should have been written, because of %s",
                 (unsigned long long)plan->header.generation, dv_plan_reason_text(next->header.reason));
    else if (result != DV_PLAN_NOTHING) snprintf(text, bytes, "no step from the plan that stands there: %d", result);
    if (result == DV_PLAN_NEXT) dv_plan_free(next);
    return result == DV_PLAN_NOTHING;
}

static bool is_present(const sim_world *w, const dv_plan_member *member) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const sim_party_node *self = takes_part(m) && m->partitioner ? self_of(m) : NULL;
        if (self && self->facts.is_static == member->is_static &&
            strcmp(member->is_static ? self->identifier : self->node, member->key) == 0)
            return true;
    }
    return false;
}

static bool all_requests_met(const sim_world *w, char *text, size_t bytes) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const dv_follower *f = takes_part(m) ? follower_of(m) : NULL;
        if (!f || sim_is_fenced(m)) continue;
        if (f->requests.weight.is_open || f->requests.set.is_open || f->requests.leave.is_open) {
            snprintf(text, bytes, "%s still waits for its %s", m->name,
                     f->requests.weight.is_open ? "weight"
                     : f->requests.set.is_open  ? "items"
                                                : "leave");
            return false;
        }
    }
    return true;
}

/* Returns the plan that members go by. Where somebody has deleted chunks, nobody may be able to read what all
 * remember. */
static const dv_plan *plan_there(const sim_world *w, const sim_plan_version *v) {
    if (!v || v->plan || !w->plans_truth->chunks_spoiled) return v ? v->plan : NULL;
    for (size_t i = 0; i < w->script->slots; i++) {
        const dv_follower *f = takes_part(&w->members[i]) ? follower_of(&w->members[i]) : NULL;
        if (f && f->memory.plan && f->memory.plan->mzxid == v->mzxid) return f->memory.plan;
    }
    return NULL;
}

/* D23: who comes can read it, since members write it again within a minute. Excused: a lack that other children make
 * up for in number. */
static bool can_be_read(const sim_world *w, const sim_plan_version *v) {
    struct sim_plans_truth *t = w->plans_truth;
    dv_plan *plan;
    dv_plan_root root;
    dv_plan_fault fault;
    if (!t->chunks_spoiled || sim_plan_read(t, v->text, v->bytes, &plan, &fault) == 0) {
        if (t->chunks_spoiled) dv_plan_free(plan);
        return true;
    }
    if (dv_plan_root_parse(&root, v->text, v->bytes, NULL) != 0) return false;
    size_t named = dv_plan_root_chunk_count(&root) + 1;
    dv_plan_root_clear(&root);
    return t->child_count >= named;
}

static sim_plan_rest rest_of(const sim_world *w, const dv_plan *plan) {
    sim_plan_rest rest = {.plan = plan, .mzxid = plan->mzxid, .zxid = w->zxid};
    for (size_t i = w->script->slots; i-- > 0;) {
        const sim_member *m = &w->members[i];
        rest.party[i] = takes_part(m) && m->partitioner ? self_of(m) : NULL;
        if (rest.party[i]) rest.set_hash = m->partitioner->configured->hash;
    }
    return rest;
}

/* Excused: what a member would write that knows wishes or loads of before a root without them (D48). It writes them
 * with whatever comes next (D36). */
static bool nobody_writes(const sim_world *w, const dv_plan *plan, char *text, size_t bytes) {
    static const dv_plan_events none;
    sim_plan_rest rest = rest_of(w, plan), *last = &w->plans_truth->rest;
    if (memcmp(&rest, last, sizeof rest) == 0) return true;
    if (!sim_plan_nothing_to_write(w, plan, &none, text, bytes)) return false;
    *last = rest;
    return true;
}

/* Excused: a fenced member that cannot read a plan, since somebody has deleted chunks of it. It writes for nobody, and
 * those who remember the plan follow it. */
bool sim_plan_well(const sim_world *w, sim_fault *fault) {
    const sim_plan_version *v = sim_plan_now(w);
    const dv_plan *plan = plan_there(w, v);
    if (!plan)
        return sim_wrong(fault, "L1", "all follow plans, and %s", v ? "what stands there is none" : "there is none");
    if (!can_be_read(w, v)) return sim_wrong(fault, "L1", "somebody has deleted chunks of the plan that stands there");
    for (size_t k = 0; k < plan->member_count; k++) {
        const dv_plan_member *member = &plan->members[k];
        if (!member->absent && is_present(w, member)) continue;
        if (!is_present(w, member) && !member->absent && member->leaving[0])
            continue; /* D20: alone, nothing to write */
        return sim_wrong(fault, "L1", "%s is in the plan, and %s", member->key,
                         member->absent ? "as one that is absent" : "not in the party");
    }
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const dv_follower *f = takes_part(m) ? follower_of(m) : NULL;
        if (!f || (f->memory.plan && f->memory.plan->mzxid == v->mzxid && f->memory.standing == DV_PLAN_GOOD)) continue;
        if (w->plans_truth->chunks_spoiled && sim_is_fenced(m)) continue;
        return sim_wrong(fault, "L1", "%s follows another plan than the one that stands there", m->name);
    }
    char text[sizeof fault->text];
    bool well = nobody_writes(w, plan, text, sizeof text) && all_requests_met(w, text, sizeof text) &&
                sim_loads_well(w, text, sizeof text);
    return well || sim_wrong(fault, "L1", "%s", text);
}

/* Returns the member that owns the item by the plan; SIM_NOBODY: none that takes part. SIM_NOT_DEALT: the plan has no
 * such item. SIM_OWNERLESS: nobody is to have it. */
size_t sim_plan_owner(const sim_world *w, size_t item) {
    const dv_plan *plan = plan_there(w, sim_plan_now(w));
    const char *name = w->items[item];
    const char **at =
        plan ? bsearch(&name, plan->set->names, plan->set->count, sizeof *plan->set->names, dv_name_compare) : NULL;
    if (!at) return SIM_NOT_DEALT;
    uint32_t slot = plan->owners[at - plan->set->names];
    if (slot == DV_PLAN_NO_SLOT && plan->header.is_balanced) return SIM_OWNERLESS;
    const dv_plan_member *member = slot == DV_PLAN_NO_SLOT ? NULL : dv_plan_member_at(plan, slot);
    for (size_t i = 0; member && i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const sim_party_node *self = takes_part(m) && m->partitioner ? self_of(m) : NULL;
        if (self && self->facts.is_static == member->is_static && !sim_is_fenced(m) &&
            strcmp(member->is_static ? self->identifier : self->node, member->key) == 0)
            return i;
    }
    return SIM_NOBODY;
}

/* Returns what plans add to the bound of L1 (D37): turns, rounds of moves, absences, a writer's round trips. */
int64_t sim_plans_bound_ms(const sim_world *w) {
    enum { RANK_MS = 100, MORE_RANKS = 4, LOOK_MS = 500, ROUND_TRIPS = 40, WRITES = 3, LOAD_ROUNDS = 22 };
    const sim_script *s = w->script;
    int64_t trip_ms = 2 * s->client_delay_max_ms + 4 * s->server_delay_max_ms + 2;
    int64_t write_ms = ((int64_t)s->slots + MORE_RANKS) * RANK_MS + ROUND_TRIPS * trip_ms + 2 * w->settle_max_ms;
    int64_t rounds = w->least_moves ? (int64_t)(s->items / w->least_moves + 2) : 0;
    if (s->loads && rounds < LOAD_ROUNDS) rounds = LOAD_ROUNDS;
    int64_t release_ms = 100 + 2 * s->react_ms;
    int64_t round_ms = LOOK_MS * (int64_t)(s->slots + 1) + release_ms + write_ms;
    return WRITES * write_ms + rounds * round_ms + s->rejoin_delay_max_ms + s->rejoin_delay_max_ms / 50;
}

/* D34: each member counts from when it saw it. */
int64_t sim_plans_newer_until(const sim_world *w) {
    enum { LEAST_MS = 60000, SLACK_MS = 5000 };
    const struct sim_plans_truth *t = w->plans_truth;
    if (!t->newer_at) return 0;
    int64_t since = t->newer_at > w->quiet_since ? t->newer_at : w->quiet_since;
    int64_t patience_ms = 10 * w->settle_max_ms > LEAST_MS ? 10 * w->settle_max_ms : LEAST_MS;
    return since + patience_ms + patience_ms / 100 + SLACK_MS;
}

/* Where a plan decides, that a party has settled is not seen by the target. */
bool sim_plans_settled(sim_member *m) {
    const dv_follower *f = m->partitioner->follower;
    const struct sim_plans_truth *t = m->world->plans_truth;
    int64_t pzxid = 0;
    if (!f || !f->party.in_force) return false;
    bool news = f->party.pzxid != m->plan_settled;
    m->plan_settled = f->party.pzxid;
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        if (p->czxid > pzxid) pzxid = p->czxid;
        if (p->gone_zxid > pzxid) pzxid = p->gone_zxid;
    }
    return news || f->party.pzxid >= pzxid;
}
