/* What members are configured with, and what plans have of it: D16, D17. SPDX-License-Identifier: Apache-2.0
 *
 * What a member is configured with, and when it was started, is known here from the member itself, not from what its
 * nodes say. A life is one partitioner, from its creation to its end, whatever becomes of its sessions. */
#include <stdlib.h>
#include <string.h>

#include "plans.h"
#include "recipe/membership.h"

void sim_plan_note_life(sim_world *w, sim_person *p) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        const dv_membership *membership = m->partitioner ? m->partitioner->membership : NULL;
        if (!membership || strcmp(dv_membership_name(membership), p->node) != 0) continue;
        p->life = m->life;
        p->max_moves = m->config.max_moves;
        p->round_timeout_ms = m->config.round_timeout_ms;
    }
}

void sim_plan_note_wish(sim_member *m) {
    const dv_follower *f = m->partitioner ? m->partitioner->follower : NULL;
    if (!f || !f->want_set.open || !f->set) return;
    struct sim_plans_truth *t = m->world->plans_truth;
    t->wished_ms = m->world->now_ms;
    for (size_t i = 0; i < t->wish_count; i++) {
        if (t->wishes[i] == f->set->crc) return;
    }
    t->wishes = sim_plans_grown(t->wishes, t->wish_count, &t->wish_room, sizeof *t->wishes);
    t->wishes[t->wish_count++] = f->set->crc;
}

static bool was_wished(const struct sim_plans_truth *t, uint32_t crc) {
    for (size_t i = 0; i < t->wish_count; i++) {
        if (t->wishes[i] == crc) return true;
    }
    return false;
}

/* ---- the party, as a whole ---- */

typedef struct {
    size_t count;
    bool known; /* the life of each of them is */
    bool same_tag, same_options;
    const sim_person *first;
    int64_t oldest_zxid, oldest_ms; /* when the oldest life began */
} roll;

static void begin_of_life(const struct sim_plans_truth *t, const sim_person *p, int64_t *zxid, int64_t *ms) {
    *zxid = p->czxid;
    *ms = p->at_ms;
    for (size_t i = 0; i < t->people_count; i++) {
        const sim_person *other = &t->people[i];
        if (other->life != p->life || other->czxid >= *zxid) continue;
        *zxid = other->czxid;
        *ms = other->at_ms;
    }
}

static roll call(const struct sim_plans_truth *t, int64_t pzxid) {
    roll r = {.known = true, .same_tag = true, .same_options = true, .oldest_zxid = INT64_MAX, .oldest_ms = INT64_MAX};
    for (size_t i = 0; i < t->people_count; i++) {
        const sim_person *p = &t->people[i];
        int64_t zxid, ms;
        if (!p->is_member || !sim_person_lived(p, pzxid)) continue;
        if (r.count++ == 0) r.first = p;
        r.known &= p->life != 0;
        r.same_tag &= p->tag == r.first->tag;
        r.same_options &= p->max_moves == r.first->max_moves && p->round_timeout_ms == r.first->round_timeout_ms;
        begin_of_life(t, p, &zxid, &ms);
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
    if (is->max_moves != max_moves || is->round_timeout_ms != round_timeout_ms)
        sim_violate(w, "D16", "the plan has max_moves %u and a timeout of %lld ms, and should have %zu and %lld ms",
                    is->max_moves, (long long)is->round_timeout_ms, max_moves, (long long)round_timeout_ms);
    w->coverage->plan_meetings[SIM_MET_OPTIONS] +=
        is->max_moves != was->max_moves || is->round_timeout_ms != was->round_timeout_ms;
}

/* D17: other items are those that somebody asked for; or all carry them, anew or since these were asked for. */
static void check_items(sim_world *w, const roll *r, const sim_plan_version *before, const sim_plan_version *v) {
    const struct sim_plans_truth *t = w->plans_truth;
    const dv_plan *old = before->plan, *new = v->plan;
    uint32_t tag = r->same_tag ? r->first->tag : old->header.tag;
    if (new->header.tag != tag)
        sim_violate(w, "D17", "the plan's tag is %08x, and should be %08x", new->header.tag, tag);
    if (was_wished(t, new->set->crc) && new->set->crc != tag) return;
    bool other = !dv_plan_set_equal(old->set, new->set), adopted = tag != old->header.tag;
    bool asked = old->set->crc != old->header.tag && !adopted;
    if (asked && before->asked_mzxid == 0) return; /* An administrator had a hand in it. */
    if (!other && adopted && new->set->crc != tag)
        sim_violate(w, "D17", "all carry the tag %08x, and the plan has other items", tag);
    if (other && !adopted && !was_wished(t, new->set->crc) && (!asked || r->oldest_zxid <= before->asked_pzxid))
        sim_violate(w, "D17", "the items went back to those of the tag, and some member was there before");
    bool back = other && asked && new->set->crc == tag;
    w->coverage->plan_meetings[SIM_MET_BACK] += back && !was_wished(t, new->set->crc);
}

/* Who came after the items were asked for is configured with others, and so are all: they count. */
static void check_return(sim_world *w, const roll *r, const sim_plan_version *before, const sim_plan_version *v) {
    const struct sim_plans_truth *t = w->plans_truth;
    const dv_plan *old = before->plan;
    bool asked = old->set->crc != old->header.tag && before->asked_mzxid > 0;
    if (!asked || !r->same_tag || r->first->tag != old->header.tag) return;
    if (r->oldest_zxid <= before->asked_mzxid || r->oldest_ms <= t->wished_ms) return;
    if (v->plan->set->crc != old->header.tag)
        sim_violate(w, "D17", "all have been started again, with the items of the tag, and the plan has others");
}

void sim_plan_check_agreement(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    bool follows = before && before->plan && !before->now_broken && before->plan->header.generation > 0;
    roll r = call(w->plans_truth, v->plan->header.pzxid);
    if (r.count == 0 || !r.known) return;
    check_options(w, &r, follows ? before->plan : NULL, v->plan);
    if (!follows) return;
    check_items(w, &r, before, v);
    check_return(w, &r, before, v);
}

/* Since when the items of a plan are asked for. It is not known of a plan that an administrator put there, or deleted. */
void sim_plan_note_asked(const sim_plan_version *before, sim_plan_version *v) {
    if (!v->plan || v->foreign || v->plan->set->crc == v->plan->header.tag) return;
    bool same = before && before->plan && dv_plan_set_equal(before->plan->set, v->plan->set);
    if (same && before->plan->set->crc != before->plan->header.tag) {
        v->asked_mzxid = before->asked_mzxid;
        v->asked_pzxid = before->asked_pzxid;
    } else if (before && before->plan && before->plan->header.generation > 0) {
        v->asked_mzxid = v->mzxid;
        v->asked_pzxid = v->plan->header.pzxid;
    }
}
