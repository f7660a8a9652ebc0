/* The conditions that each plan of a member must meet. SPDX-License-Identifier: Apache-2.0
 *
 * The rules are those of docs/protocol.md. The checks never ask which member writes. They hold each plan against the
 * one that it replaces, and against the party as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "operator.h"
#include "znode/path.h"

enum { DRIFT_PARTS = 100 }; /* clocks of members go wrong by less than one in so many */

static struct sim_plans_truth *truth_of(const sim_world *w) {
    return w->plans_truth;
}

static bool guid_is_known(const struct sim_plans_truth *t, const char *guid) {
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->versions[i].header.guid, guid) == 0) return true;
    }
    return guid[0] == '\0';
}

/* Returns whether an ensemble of its own wrote it: D10. */
bool sim_plan_is_restored(const sim_plan_version *v) {
    return v->plan->header.pzxid >= v->mzxid;
}

/* D10, D25, D26: computed from the very plan that it replaces, and for no earlier party. */
static void check_order(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    const dv_plan_header *new = &v->plan->header;
    if (!before || !before->plan || before->now_broken ||
        before->plan->header.generation == 0) { /* which only holds the place: D28 */
        if (!guid_is_known(truth_of(w), new->after))
            sim_violate(w, "D26", "plan %s was made after %s, which never stood there", new->guid, new->after);
        return;
    }
    const dv_plan_header *old = &before->plan->header;
    if (strcmp(new->after, old->guid) != 0)
        sim_violate(w, "D26", "generation %llu was written over %s, and made from %s",
                    (unsigned long long)new->generation, old->guid, new->after[0] ? new->after : "nothing");
    if (new->generation != old->generation + 1)
        sim_violate(w, "D20", "generation %llu follows on %llu", (unsigned long long)new->generation,
                    (unsigned long long)old->generation);
    if (old->pzxid > new->pzxid && !sim_plan_is_restored(before))
        sim_violate(w, "D10", "the plan of party 0x%llx was replaced by one of party 0x%llx",
                    (unsigned long long)old->pzxid, (unsigned long long)new->pzxid);
}

/* D27: of a root that was deleted and made again meanwhile no epoch is left. */
static void check_epoch(sim_world *w, const sim_plan_version *v) {
    if (!sim_plan_child_of(truth_of(w), v->header.epoch))
        sim_violate(w, "D27", "the epoch %s of a plan is not there", v->header.epoch);
}

static bool holds_items(const dv_plan *plan, uint32_t slot) {
    for (size_t i = 0; i < plan->set->count; i++) {
        if (plan->owners[i] == slot) return true;
    }
    return false;
}

static const dv_plan_member *marked(const dv_plan *plan, const char *node) {
    for (size_t m = 0; plan && m < plan->member_count; m++) {
        if (strcmp(plan->members[m].leaving, node) == 0) return &plan->members[m];
    }
    return NULL;
}

/* D12, D14: all that lived are in the plan, once, but for those that leave; and all of them follow plans (P3). */
static void check_present(sim_world *w, const dv_plan *before, const sim_plan_version *v) {
    const struct sim_plans_truth *t = truth_of(w);
    int64_t pzxid = v->plan->header.pzxid;
    if (sim_party_level(w, pzxid) < DV_LEVEL_PLAN)
        sim_violate(w, "P3", "a plan was written for party 0x%llx, in which not all follow plans",
                    (unsigned long long)pzxid);
    for (size_t i = 0; i < t->party_count; i++) {
        const sim_party_node *p = &t->party[i];
        if (!p->is_member || !sim_party_node_lived(p, pzxid) || sim_party_node_fenced(w, p, pzxid)) continue;
        const dv_plan_member *was = marked(before, p->node), *is = marked(v->plan, p->node);
        if (was && !is) sim_violate(w, "D14", "%s lives, and is no longer marked as one that leaves", p->node);
        if (was || is) continue;
        const dv_plan_member *m =
            dv_plan_find(v->plan, p->facts.is_static, p->facts.is_static ? p->identifier : p->node);
        if (!m || m->absent)
            sim_violate(w, "D12", "%s was in the party, and is %s the plan", p->node, m ? "absent in" : "not in");
    }
}

/* D12 to D14: nobody else is in the plan. */
static void check_strangers(sim_world *w, const sim_plan_version *v) {
    const struct sim_plans_truth *t = truth_of(w);
    int64_t pzxid = v->plan->header.pzxid;
    for (size_t k = 0; k < v->plan->member_count; k++) {
        const dv_plan_member *m = &v->plan->members[k];
        bool lives = false;
        for (size_t i = 0; !lives && i < t->party_count; i++) {
            const sim_party_node *p = &t->party[i];
            lives = p->facts.is_static == m->is_static && sim_party_node_lived(p, pzxid) &&
                    strcmp(m->is_static ? p->identifier : p->node, m->key) == 0;
        }
        if (m->leaving[0] && holds_items(v->plan, m->slot)) sim_violate(w, "D14", "%s leaves, and has items", m->key);
        if (!lives && !m->absent && !m->leaving[0])
            sim_violate(w, "D13", "%s is in the plan as one that is present, and was not in the party", m->key);
    }
}

/* D13: no absent member goes before its time. */
static void check_patience(sim_world *w, const dv_plan *before, const sim_plan_version *v) {
    struct sim_plans_truth *t = truth_of(w);
    if (t->chunks_spoiled) return; /* Entries may have been written in plans that only members could read. */
    for (size_t k = 0; before && k < before->member_count; k++) {
        const dv_plan_member *m = &before->members[k];
        if (!m->is_static || m->rejoin_delay_ms == 0 || m->leaving[0] || dv_plan_find(v->plan, true, m->key)) continue;
        if (m->absent && sim_operator_forgets(w, m->key)) continue;
        if (!m->absent) {
            sim_violate(w, "D13", "%s was taken out of the plan before it was absent", m->key);
            return;
        }
        for (size_t i = 0; i < t->absence_count; i++) {
            const sim_absence *a = &t->absences[i];
            int64_t waited_ms = v->at_ms - a->since_ms;
            if (a->absent != m->absent || strcmp(a->key, m->key) != 0) continue;
            if (waited_ms + waited_ms / DRIFT_PARTS + 1 < m->rejoin_delay_ms)
                sim_violate(w, "D13", "%s was given up after %lld ms of absence, and had %lld ms", m->key,
                            (long long)waited_ms, (long long)m->rejoin_delay_ms);
        }
    }
}

void sim_plan_note_absences(sim_world *w, const sim_plan_version *v) {
    struct sim_plans_truth *t = truth_of(w);
    for (size_t k = 0; k < v->plan->member_count; k++) {
        const dv_plan_member *m = &v->plan->members[k];
        bool known = m->absent == 0;
        for (size_t i = 0; !known && i < t->absence_count; i++)
            known = t->absences[i].absent == m->absent && strcmp(t->absences[i].key, m->key) == 0;
        if (known) continue;
        t->absences = sim_plans_grown(t->absences, t->absence_count, &t->absence_room, sizeof *t->absences);
        sim_absence *a = &t->absences[t->absence_count++];
        *a = (sim_absence){.absent = m->absent, .since_ms = v->at_ms};
        snprintf(a->key, sizeof a->key, "%s", m->key);
        w->coverage->plan_meetings[SIM_MET_ABSENT]++;
    }
}

/* ---- L5: how much moves ---- */

static bool survives(const dv_plan *before, const dv_plan *after, uint32_t slot) {
    const dv_plan_member *m = dv_plan_member_at(before, slot);
    const dv_plan_member *n = m ? dv_plan_find(after, m->is_static, m->key) : NULL;
    return n && n->slot == slot && !m->leaving[0] && !n->leaving[0];
}

/* Items that are in both plans, taken from somebody who could have kept them, and not by an operator. */
static size_t count_moves(const dv_plan *before, const dv_plan *after) {
    size_t moves = 0;
    for (size_t i = 0, j = 0; i < before->set->count; i++) {
        while (j < after->set->count && strcmp(after->set->names[j], before->set->names[i]) < 0) j++;
        if (j == after->set->count || strcmp(after->set->names[j], before->set->names[i]) != 0) continue;
        uint32_t from = before->owners[i];
        if (sim_is_placed(before, after, after->set->names[j])) continue;
        if (from != DV_PLAN_NO_SLOT && after->owners[j] != from && survives(before, after, from)) moves++;
    }
    return moves;
}

static bool all_alike(const dv_plan *plan) {
    for (size_t m = 0; m < plan->member_count; m++) {
        const dv_plan_member *one = &plan->members[m];
        if (one->absent || one->zone[0] || one->weight == 0 || one->weight != plan->members[0].weight) return false;
    }
    return true;
}

/* Returns the least number of moves with equal weights and no other limit: members give what they have above k / n, or
 * above one more. */
static size_t least_moves(const dv_plan *before, const dv_plan *after) {
    size_t members = 0, over = 0, larger = 0;
    for (size_t m = 0; m < after->member_count; m++) members += after->members[m].leaving[0] == '\0';
    if (members == 0) return 0;
    size_t share = before->set->count / members, rest = before->set->count % members;
    for (size_t m = 0; m < before->member_count; m++) {
        uint32_t slot = before->members[m].slot;
        size_t load = 0;
        for (size_t i = 0; i < before->set->count; i++) load += before->owners[i] == slot;
        if (!survives(before, after, slot) || load <= share) continue;
        over += load - share;
        larger++;
    }
    return over - (larger < rest ? larger : rest);
}

static bool deals(const dv_plan *plan, const char *name) {
    return plan->set->count &&
           bsearch(&name, plan->set->names, plan->set->count, sizeof *plan->set->names, dv_name_compare);
}

/* P2: a ghost is nobody's node, whatever its data say. */
static bool is_node_of(const sim_party_node *p, const dv_plan_member *m) {
    return p->is_member && p->facts.is_static == m->is_static &&
           strcmp(m->is_static ? p->identifier : p->node, m->key) == 0;
}

static bool lived(const struct sim_plans_truth *t, const dv_plan_member *m, int64_t zxid) {
    for (size_t k = 0; k < t->party_count; k++) {
        if (is_node_of(&t->party[k], m) && sim_party_node_lived(&t->party[k], zxid)) return true;
    }
    return false;
}

/* D42: who has gone is not waited for. It may have come back since; another node of its identifier is no return. */
static bool was_gone(const struct sim_plans_truth *t, const dv_plan_member *m, int64_t pzxid) {
    if (!lived(t, m, pzxid)) return true;
    for (size_t k = 0; k < t->party_count; k++) {
        const sim_party_node *p = &t->party[k];
        if (is_node_of(p, m) && p->gone_zxid > pzxid && !lived(t, m, p->gone_zxid)) return true;
    }
    return false;
}

static bool has_arrived(const sim_world *w, const dv_plan *plan, size_t moved, const dv_plan *after) {
    const struct sim_plans_truth *t = truth_of(w);
    const char *name = plan->set->names[plan->moved[moved]];
    const dv_plan_member *m = dv_plan_member_at(plan, plan->owners[plan->moved[moved]]);
    /* An item that is no longer dealt, or is paused, or whose owner goes, is no longer on its way. */
    if (!m || !survives(plan, after, m->slot) || !deals(after, name) || sim_is_paused(after, name)) return true;
    if (was_gone(t, m, plan->header.pzxid)) return true;
    const sim_queue *q = &w->truth.queues[atoi(name + 5)];
    for (size_t k = 0; k < t->party_count; k++) {
        if (!is_node_of(&t->party[k], m)) continue;
        for (size_t o = 0; o < q->owner_count; o++) {
            if (q->owners[o].session == t->party[k].session) return true;
        }
    }
    return false;
}

/* D19: whether all that the plan before had moved has reached its new owners, as far as these are there. */
static bool round_is_over(const sim_world *w, const sim_plan_version *before, const dv_plan *after) {
    for (size_t i = 0; i < before->plan->moved_count; i++) {
        if (!has_arrived(w, before->plan, i, after)) return false;
    }
    return true;
}

/* Somebody may have put it there again since. */
static int64_t first_written_at(const sim_world *w, const sim_plan_version *v) {
    const struct sim_plans_truth *t = truth_of(w);
    for (size_t i = 0; i < t->count; i++) {
        if (strcmp(t->versions[i].header.guid, v->header.guid) == 0) return t->versions[i].at_ms;
    }
    return v->at_ms;
}

static void check_rounds(sim_world *w, const sim_plan_version *before, const sim_plan_version *v, size_t moves) {
    const dv_plan_options *o = &v->plan->header.options; /* D16: what it takes up counts at once */
    int64_t waited_ms = v->at_ms - first_written_at(w, before);
    bool is_round = o->max_moves > 0 || (v->plan->header.is_balanced && before->plan->moved_count > 0); /* D50 */
    if (!is_round || moves == 0) return;
    w->coverage->plan_meetings[SIM_MET_ROUND]++;
    if (o->max_moves > 0 && moves > o->max_moves) {
        sim_violate(w, "D19", "%zu items were moved at once, and %u are allowed", moves, o->max_moves);
    } else if (before->plan->moved_count > 0 && !round_is_over(w, before, v->plan)) {
        w->coverage->plan_meetings[SIM_MET_ROUND_TIMEOUT]++;
        if (waited_ms + waited_ms / DRIFT_PARTS + 1 < before->plan->header.options.round_timeout_ms)
            sim_violate(w, "D19", "%zu items were moved while others were on their way, for %lld ms", moves,
                        (long long)waited_ms);
    }
}

static void check_moves(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    const dv_plan *old = before->plan, *new = v->plan;
    if (old->header.generation == 0) return;
    size_t moves = count_moves(old, new);
    check_rounds(w, before, v, moves);
    bool plain = all_alike(old) && all_alike(new) && old->members[0].weight == new->members[0].weight;
    if (old->header.is_balanced || new->header.is_balanced) return;
    if (!plain || old->header.options.max_moves || new->header.options.max_moves) return;
    if (!dv_plan_set_equal(old->set, new->set)) return;
    size_t least = least_moves(old, new);
    if (moves != least)
        sim_violate(w, "L5", "generation %llu moved %zu items, and %zu were enough",
                    (unsigned long long)new->header.generation, moves, least);
    w->coverage->plan_meetings[SIM_MET_LEAST]++;
}

/* D20: a plan that changes nothing is not written, unless somebody has deleted nodes of the one before (D23). */
static void check_need(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    if (before && before->plan && !before->now_broken && sim_plan_child_of(truth_of(w), before->header.epoch) &&
        before->plan->header.generation > 0 && sim_plans_equal(before->plan, v->plan))
        sim_violate(w, "D20", "generation %llu was written, and says what was there",
                    (unsigned long long)v->plan->header.generation);
}

void sim_plan_check_written(sim_world *w, const sim_plan_version *before, const sim_plan_version *v) {
    const dv_plan *old = before && !before->now_broken ? before->plan : NULL;
    check_order(w, before, v);
    check_epoch(w, v);
    if (v->plan->header.generation == 0) return;
    check_present(w, old, v);
    check_strangers(w, v);
    check_patience(w, old, v);
    check_need(w, before, v);
    sim_plan_check_agreement(w, v);
    const sim_plan_version *from = sim_plan_made_from(truth_of(w), v);
    bool known = from && from->plan && from->plan->header.generation > 0;
    if (known || v->plan->header.after[0] == '\0') sim_wishes_check(w, known ? from : NULL, v);
    if (old && v->plan->member_count && old->member_count) check_moves(w, before, v);
}
