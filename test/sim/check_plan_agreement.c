/* The members' configuration, and how much of it plans have: D16, D17. SPDX-License-Identifier: Apache-2.0
 *
 * The checks know from the member itself how it is configured and when it was started, not from what its nodes say.
 * A life is one partitioner, from its creation to its end, whatever becomes of its sessions.
 *
 * Excused:
 *  - Plans of whose party one node's member is not known: its create came late, and the member has gone.
 *  - D17 after a plan that an administrator put there: nobody knows when its items were asked for.
 *  - Items that were asked for stay, though all members were started again, if one of them does not know how old its
 *    first node was (D31). Somebody deleted that node at once, or its create was never answered.
 *  - A writer that does not carry the party's one tag: it has not got those items. Somebody deleted its node, so that
 *    the party it writes for is without it. Nor has an operator, who writes all the same if such a one wrote for that
 *    party before (D51).
 *  - Items that somebody asks for, the same as before too, count from the last time. A member may ask before it has a
 *    node.
 *  - D15 where the plan was made from another than the last one. A writer that could not read the last one replaces it
 *    by the next of the one that it remembers (D26). D16 and D17 hold it against that one.
 *  - Weights that the member itself has asked for: some later plan grants a request (D15). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plans.h"
#include "recipe/membership.h"

static bool was_weight_requested(const struct sim_plans_truth *t, const char *name, uint32_t weight) {
    char request[SIM_REQUEST_BYTES];
    snprintf(request, sizeof request, "%s %u", name, weight);
    for (size_t i = 0; i < t->weight_request_count; i++) {
        if (strcmp(t->weight_requests[i], request) == 0) return true;
    }
    return t->weight_request_count == SIM_WEIGHT_REQUESTS;
}

void sim_plan_note_life(sim_world *w, sim_party_node *p) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const dv_membership *membership = m->partitioner ? m->partitioner->membership : NULL;
        if (!membership || strcmp(dv_membership_name(membership), p->node) != 0) continue;
        p->life = m->life;
        p->opened_zxid = m->opened_zxid;
        p->max_moves = m->config.max_moves;
        p->round_timeout_ms = m->config.round_timeout_ms;
    }
}

static void note_weight_request(struct sim_plans_truth *t, const char *name, uint32_t weight) {
    if (was_weight_requested(t, name, weight) || t->weight_request_count == SIM_WEIGHT_REQUESTS) return;
    snprintf(t->weight_requests[t->weight_request_count++], SIM_REQUEST_BYTES, "%s %u", name, weight);
}

void sim_plan_note_weight_request(sim_world *w, const char *name, uint32_t weight) {
    note_weight_request(w->plans_truth, name, weight);
}

void sim_plan_note_requests(sim_member *m) {
    const dv_follower *f = m->partitioner ? m->partitioner->follower : NULL;
    struct sim_plans_truth *t = m->world->plans_truth;
    if (f && f->requests.weight.is_open) note_weight_request(t, m->name, f->requests.new_weight);
    if (!f || !f->requests.set.is_open || !f->requests.new_set) return;
    t->set_requested_ms = m->world->now_ms;
    for (size_t i = 0; i < t->set_request_count; i++) {
        if (t->set_requests[i] == f->requests.new_set->crc) return;
    }
    t->set_requests =
        sim_plans_grown(t->set_requests, t->set_request_count, &t->set_request_room, sizeof *t->set_requests);
    t->set_requests[t->set_request_count++] = f->requests.new_set->crc;
}

static bool was_set_requested(const struct sim_plans_truth *t, uint32_t crc) {
    for (size_t i = 0; i < t->set_request_count; i++) {
        if (t->set_requests[i] == crc) return true;
    }
    return false;
}

/* Returns whether somebody has asked for its items in the very step that made it, be they the same as before. */
static bool was_asked_now(const struct sim_plans_truth *t, const dv_plan *plan) {
    return plan->header.asked == plan->header.pzxid && was_set_requested(t, plan->set->crc);
}

/* The plan that it was computed from, as it says. That is not the last one if its writer could not read that (D26). */
const sim_plan_version *sim_plan_made_from(const struct sim_plans_truth *t, const sim_plan_version *v) {
    const char *after = v->plan->header.after;
    for (size_t i = t->count; after[0] && i-- > 0;) {
        if (strcmp(t->versions[i].header.guid, after) == 0) return &t->versions[i];
    }
    return NULL;
}

/* ---- the party, as a whole ---- */

typedef struct {
    size_t count;
    bool known; /* the life of each of them is */
    bool same_tag, same_options;
    bool ageless; /* one of them never learned the czxid of its first node, so it counts as old (D31) */
    const sim_party_node *first;
    int64_t oldest_zxid, oldest_ms; /* when the oldest life began */
} roll;

void sim_plan_begin_of_life(const struct sim_plans_truth *t, const sim_party_node *p, int64_t *zxid, int64_t *ms) {
    *zxid = p->czxid;
    *ms = p->at_ms;
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *other = &t->party[i];
        if (other->life != p->life || other->czxid >= *zxid) continue;
        *zxid = other->czxid;
        *ms = other->at_ms;
    }
}

static roll call(const struct sim_plans_truth *t, int64_t pzxid) {
    roll r = {.known = true, .same_tag = true, .same_options = true, .oldest_zxid = INT64_MAX, .oldest_ms = INT64_MAX};
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        int64_t zxid, ms;
        if (!p->is_member || !sim_party_node_lived(p, pzxid)) continue;
        if (r.count++ == 0) r.first = p;
        r.known &= p->life != 0;
        r.same_tag &= p->tag == r.first->tag;
        r.same_options &= p->max_moves == r.first->max_moves && p->round_timeout_ms == r.first->round_timeout_ms;
        sim_plan_begin_of_life(t, p, &zxid, &ms);
        r.ageless |= p->facts.first_czxid != 0 && p->facts.first_czxid < zxid;
        if (zxid < r.oldest_zxid) r.oldest_zxid = zxid;
        if (ms < r.oldest_ms) r.oldest_ms = ms;
    }
    return r;
}

/* ---- what is checked ---- */

/* D16: the options that all carry; where they differ, those of the plan before. */
static void check_options(sim_world *w, const roll *r, const dv_plan *old, const dv_plan *new) {
    const dv_plan_options *is = &new->header.options, *was = old ? &old->header.options : is;
    size_t max_moves = r->same_options ? r->first->max_moves : was->max_moves;
    int64_t round_timeout_ms = r->same_options ? r->first->round_timeout_ms : was->round_timeout_ms;
    if (new->header.is_balanced) { /* D48: what an operator asks for counts more */
        max_moves = (size_t)dv_wishes_number(new->wishes, "max-moves", (double)max_moves, UINT32_MAX);
        round_timeout_ms =
            (int64_t)dv_wishes_number(new->wishes, "round-timeout", (double)round_timeout_ms, DV_TIME_MAX_MS);
    }
    if (is->max_moves != max_moves || is->round_timeout_ms != round_timeout_ms)
        sim_violate(w, "D16", "the plan has max_moves %u and a timeout of %lld ms, and should have %zu and %lld ms",
                    is->max_moves, (long long)is->round_timeout_ms, max_moves, (long long)round_timeout_ms);
    w->coverage->plan_meetings[SIM_MET_OPTIONS] +=
        is->max_moves != was->max_moves || is->round_timeout_ms != was->round_timeout_ms;
}

/* Only a writer that carries the tag has its items. One whose node somebody has deleted may write for a party in which
 * all others carry it. */
static bool writer_carries(const struct sim_plans_truth *t, const sim_plan_version *v, uint32_t tag) {
    enum { SESSION_DIGITS = 11, CLIENT_DIGITS = 11 }; /* N5 */
    if (v->by_operator) return false;
    for (size_t i = t->party_count; i-- > 0;) { /* the newest partitioner of that client */
        const char *client = t->party[i].node + SESSION_DIGITS, *writer = v->plan->header.guid + SESSION_DIGITS;
        if (strncmp(client, writer, CLIENT_DIGITS) == 0) return t->party[i].tag == tag;
    }
    return true;
}

/* D17: other items are those that somebody asked for; or all carry them, again or since these were asked for. */
static void check_items(sim_world *w, const roll *r, const sim_plan_version *before, const sim_plan_version *v) {
    const struct sim_plans_truth *t = w->plans_truth;
    const dv_plan *old = before->plan, *new = v->plan;
    bool agreed = r->same_tag && writer_carries(t, v, r->first->tag);
    uint32_t tag = agreed ? r->first->tag : old->header.tag;
    if (new->header.tag != tag)
        sim_violate(w, "D17", "the plan's tag is %08x, and should be %08x", new->header.tag, tag);
    if (was_set_requested(t, new->set->crc) && new->set->crc != tag) return;
    bool other = !dv_plan_set_equal(old->set, new->set), adopted = tag != old->header.tag;
    bool asked = old->set->crc != old->header.tag && !adopted;
    if (asked && before->asked_mzxid == 0) return; /* An administrator had a hand in it. */
    if (!other && adopted && new->set->crc != tag)
        sim_violate(w, "D17", "all carry the tag %08x, and the plan has other items", tag);
    if (other && !adopted && !was_set_requested(t, new->set->crc) && (!asked || r->oldest_zxid <= before->asked_pzxid))
        sim_violate(w, "D17", "the items went back to those of the tag, and some member was there before");
    bool back = other && asked && new->set->crc == tag;
    w->coverage->plan_meetings[SIM_MET_BACK] += back && !was_set_requested(t, new->set->crc);
}

/* Checks D17: members that came after other items were asked for all carry the tag's items, so the plan has those
 * again. */
static void check_return(sim_world *w, const roll *r, const sim_plan_version *before, const sim_plan_version *v) {
    const struct sim_plans_truth *t = w->plans_truth;
    const dv_plan *old = before->plan;
    bool asked = old->set->crc != old->header.tag && before->asked_mzxid > 0;
    if (!asked || !r->same_tag || r->first->tag != old->header.tag) return;
    bool same_party = old->header.pzxid == v->plan->header.pzxid;
    if (v->by_operator ? same_party : !writer_carries(t, v, old->header.tag)) return;
    if (was_asked_now(t, v->plan)) return; /* maybe by a member that has asked before it had a node */
    if (r->ageless || r->oldest_zxid <= before->asked_mzxid || r->oldest_ms <= t->set_requested_ms) return;
    if (v->plan->set->crc != old->header.tag)
        sim_violate(w, "D17", "all have been started again, with the items of the tag, and the plan has others");
}

/* D12 */
static const sim_party_node *present_node(const sim_world *w, const dv_plan_member *m, int64_t pzxid) {
    const struct sim_plans_truth *t = w->plans_truth;
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        if (!p->is_member || !p->facts.is_static || strcmp(p->identifier, m->key) != 0) continue;
        if (sim_party_node_lived(p, pzxid) && !sim_party_node_fenced(w, p, pzxid)) return p;
    }
    return NULL;
}

/* Returns a static member's configuration when a plan had it last; NULL: that is not known. */
static sim_configured *configured_then(struct sim_plans_truth *t, const char *key) {
    for (size_t i = 0; i < t->configured_count; i++) {
        if (strcmp(t->configured[i].key, key) == 0) return &t->configured[i];
    }
    return NULL;
}

/* D15: a weight stays, unless somebody sets it, or the member comes back configured with another one than before. */
static void check_weights(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    struct sim_plans_truth *t = w->plans_truth;
    for (size_t k = 0; k < v->plan->member_count; k++) {
        const dv_plan_member *m = &v->plan->members[k], *was = dv_plan_find(before->plan, m->is_static, m->key);
        const sim_configured *then = configured_then(t, m->key);
        const sim_party_node *now = present_node(w, m, v->plan->header.pzxid);
        bool plain = m->is_static && was && !m->absent && !m->leaving[0] && !was->leaving[0];
        if (!plain || !then || !now) continue;
        uint32_t weight = now->facts.weight == then->weight ? was->weight : now->facts.weight;
        if (m->weight != weight && !was_weight_requested(t, m->key, m->weight))
            sim_violate(w, "D15", "%s has the weight %u, and should have %u: it was %u, configured %u then and %u now",
                        m->key, m->weight, weight, was->weight, then->weight, now->facts.weight);
        w->coverage->plan_meetings[SIM_MET_WEIGHT] += weight != was->weight;
    }
}

void sim_plan_note_configured(sim_world *w, const sim_plan_version *v) {
    struct sim_plans_truth *t = w->plans_truth;
    const sim_plan_version *last = t->count ? &t->versions[t->count - 1] : NULL;
    /* One that does not follow the last one, since that was deleted (D26), may know of earlier starts only. */
    bool follows = v->plan && last && strcmp(v->plan->header.after, last->header.guid) == 0;
    if (v->foreign || !follows) t->configured_count = 0;
    for (size_t k = 0; !v->foreign && v->plan && k < v->plan->member_count; k++) {
        const dv_plan_member *m = &v->plan->members[k];
        const sim_party_node *now = m->is_static && !m->absent ? present_node(w, m, v->plan->header.pzxid) : NULL;
        sim_configured *then = configured_then(t, m->key);
        if (!now || (!then && t->configured_count == SIM_WEIGHT_REQUESTS)) continue;
        if (!then) then = &t->configured[t->configured_count++];
        snprintf(then->key, sizeof then->key, "%s", m->key);
        then->weight = now->facts.weight;
    }
}

void sim_plan_check_agreement(sim_world *w, const sim_plan_version *v) {
    const struct sim_plans_truth *t = w->plans_truth;
    const sim_plan_version *from = sim_plan_made_from(t, v);
    bool follows = from && from->plan && from->plan->header.generation > 0;
    roll r = call(t, v->plan->header.pzxid);
    if (r.count == 0 || !r.known) return;
    check_options(w, &r, follows ? from->plan : NULL, v->plan);
    if (!follows) return;
    check_items(w, &r, from, v);
    check_return(w, &r, from, v);
    /* The members' configurations are known as of the last plan. */
    if (from == &t->versions[t->count - 1]) check_weights(w, from, v);
}

/* Since when the items of a plan are asked for. A plan that replaces a broken one has that of the plan that it was made
 * from. It is not known of a plan that an administrator put there. */
void sim_plan_note_asked(const sim_world *w, sim_plan_version *v) {
    if (!v->plan || v->foreign || v->plan->set->crc == v->plan->header.tag) return;
    const sim_plan_version *from = sim_plan_made_from(w->plans_truth, v);
    if (!from || !from->plan || from->plan->header.generation == 0) return;
    const dv_plan *old = from->plan;
    bool same = dv_plan_set_equal(old->set, v->plan->set) && old->set->crc != old->header.tag &&
                !was_asked_now(w->plans_truth, v->plan);
    v->asked_mzxid = same ? from->asked_mzxid : v->mzxid;
    v->asked_pzxid = same ? from->asked_pzxid : v->plan->header.pzxid;
}
