/* The items that are ours: docs/protocol.md, D34, D38. SPDX-License-Identifier: Apache-2.0
 *
 * Party and plan come in either order, so one function computes the target from both, and only a difference counts. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

/* T9: a member that is fenced follows the plan, too, and hands over what it has. */
static dv_follow_source choose(const dv_follower *f) {
    bool fenced = dv_follow_is_fenced(f);
    if (f->memory.standing == DV_PLAN_NEWER) return DV_FOLLOW_NOTHING;
    if (f->memory.standing == DV_PLAN_BROKEN) return fenced ? DV_FOLLOW_NOTHING : DV_FOLLOW_NAMES;
    if (dv_follow_plan(f)) return DV_FOLLOW_PLAN;
    return fenced ? DV_FOLLOW_NOTHING : DV_FOLLOW_KEEP;
}

/* ---- our entry in the plan ---- */

/* Returns our entry in the plan, unless it leaves. D34: after our node was deleted, that of the node before. */
static const dv_plan_member *own_member(const dv_follower *f) {
    if (dv_follow_is_fenced(f)) return NULL;
    const dv_plan *plan = dv_follow_plan(f);
    const dv_plan_member *m = dv_plan_member_of(plan, dv_roster_party(f->roster), f->party.own);
    if (!m && f->share.known_as) m = dv_plan_find(plan, false, f->share.known_as);
    return m && m->leaving[0] == '\0' ? m : NULL;
}

void dv_follow_forget_node(dv_follower *f) {
    free(f->share.known_as);
    f->share.known_as = NULL;
}

/* When an allocation fails, a node that is deleted costs its items a move. */
static void note_own_member(dv_follower *f) {
    const dv_plan_member *m = own_member(f);
    if (m && f->share.known_as && strcmp(m->key, f->share.known_as) == 0) return;
    dv_follow_forget_node(f);
    f->share.known_as = m && !m->is_static ? strdup(m->key) : NULL;
}

/* ---- ACQUIRED ---- */

/* P5: in eager mode each change revokes everything, so a share is complete only when no other one is to be expected. */
static bool is_of_this_party(const dv_follower *f) {
    if (!f->config.is_eager || dv_follow_plan(f)->header.pzxid >= f->party.pzxid) return true;
    return f->verdict.stands && f->verdict.pzxid == f->party.pzxid && f->verdict.mzxid == f->memory.mzxid;
}

static bool agrees(const dv_follower *f, dv_follow_source source) {
    if (source != DV_FOLLOW_PLAN) return source == DV_FOLLOW_NAMES;
    return (own_member(f) || f->requests.hands_over) && is_of_this_party(f);
}

bool dv_follow_agrees(const dv_follower *f) {
    return !f || f->party.names_decide || f->share.agrees;
}

void dv_follow_forget_agreement(dv_follower *f) {
    f->share.agrees = false;
}

/* ---- the target ---- */

static int reason_of(const dv_plan *plan) {
    static const int reasons[DV_PLAN_REASONS] = {
        [DV_PLAN_CREATE] = DIVVY_REASON_MEMBERS,    [DV_PLAN_SET] = DIVVY_REASON_SET,
        [DV_PLAN_LOSS] = DIVVY_REASON_LOSS,         [DV_PLAN_LEAVE] = DIVVY_REASON_LEAVE,
        [DV_PLAN_JOIN] = DIVVY_REASON_JOIN,         [DV_PLAN_DRAIN] = DIVVY_REASON_DRAIN,
        [DV_PLAN_WEIGHT] = DIVVY_REASON_WEIGHT,     [DV_PLAN_OPTIONS] = DIVVY_REASON_WEIGHT,
        [DV_PLAN_ABSENCE] = DIVVY_REASON_MEMBERS,   [DV_PLAN_ROUND] = DIVVY_REASON_MEMBERS,
        [DV_PLAN_OPERATOR] = DIVVY_REASON_OPERATOR, [DV_PLAN_LOAD] = DIVVY_REASON_LOAD,
    };
    return reasons[plan->header.reason];
}

static void tell_by_plan(dv_follower *f, dv_follow_target *target, int64_t now) {
    const dv_plan *plan = dv_follow_plan(f);
    const dv_plan_member *own = own_member(f);
    uint8_t *mine = calloc(plan->set->count + 1, 1);
    if (!mine) {
        dv_follow_fail(f, DIVVY_ENOMEM, DIVVY_REASON_MEMBERS, now, "no share could be computed: %s",
                       divvy_strerror(DIVVY_ENOMEM));
        return;
    }
    for (size_t i = 0; own && i < plan->set->count; i++) mine[i] = plan->owners[i] == own->slot;
    dv_follow_owners owners;
    const char **nodes = f->config.hands_over ? dv_follow_list_owners(f, own, &owners) : NULL;
    target->reason = reason_of(plan);
    target->generation = plan->header.generation;
    target->set = plan->set;
    target->mine = mine;
    target->owners = nodes ? &owners : NULL;
    f->events->target(f->owner, target, now);
    free((void *)nodes);
    free(mine);
}

static void tell_target(dv_follower *f, dv_follow_source source, bool is_settled, int64_t now) {
    dv_follow_target target = {.source = source, .is_settled = is_settled, .reason = DIVVY_REASON_MEMBERS};
    if (source == DV_FOLLOW_PLAN) {
        tell_by_plan(f, &target, now);
        return;
    }
    if (source != DV_FOLLOW_KEEP) dv_follow_forget_owners(f);
    f->events->target(f->owner, &target, now);
}

void dv_follow_apply(dv_follower *f, bool is_settled, int64_t now) {
    if (!f->party.in_force || f->fence.is_unknown) return;
    assert(f->party.own != SIZE_MAX && !f->is_stopped);
    if (f->reading.error) {
        dv_follow_fail(f, f->reading.error, DIVVY_REASON_DENIED, now, "%s cannot be read: %s", f->path,
                       divvy_strerror(f->reading.error));
        return;
    }
    dv_follow_learn(f);
    dv_follow_source source = choose(f);
    if (source == DV_FOLLOW_NAMES && !f->questions->knows_all_members(f->owner)) source = DV_FOLLOW_KEEP;
    if (dv_follow_is_fenced_by_another(f)) dv_follow_tell_fenced(f);
    if (source == DV_FOLLOW_PLAN) {
        note_own_member(f);
        if (own_member(f)) dv_follow_leave_again(f);
        dv_follow_tell(f, dv_follow_plan(f), own_member(f));
    }
    f->share.agrees = agrees(f, source);
    tell_target(f, source, is_settled, now);
}
