/* The row of those who write plans, and our turn in it: docs/protocol.md, D37. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "follow/follower.h"

enum {
    RANK_MS = 100,    /* between the attempts of two members */
    CREATE_RANKS = 4, /* more, for a member that knows nothing of what was before */
    BACKOFF_MS = 200, /* after a failure, then twice as long each time, up to: */
    BACKOFF_MAX_MS = 30000,
};

/* ---- the row ---- */

static bool stands_before(const dv_plan_node *a, const dv_plan_node *b) {
    int order = strcmp(a->identifier, b->identifier);
    return order ? order < 0 : strcmp(a->node, b->node) < 0;
}

static bool leaves(const dv_plan *plan, const dv_plan_node *node) {
    const dv_plan_member *m = dv_plan_find(plan, false, node->node);
    if (!m) m = dv_plan_find(plan, true, node->identifier);
    return m && strcmp(m->leaving, node->node) == 0;
}

static bool somebody_leaves(const dv_plan *plan) {
    for (size_t m = 0; plan && m < plan->member_count; m++) {
        if (plan->members[m].leaving[0]) return true;
    }
    return false;
}

/* An identifier counts once: but for one, its static nodes are fenced, and they may not have been read. */
size_t dv_follow_rank_of(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    const char *own = party->nodes[f->party.own].identifier;
    bool some_leave = somebody_leaves(f->memory.plan);
    size_t rank = 0;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *node = &party->nodes[n];
        bool counts = !node->is_ghost && !node->is_repeat && strcmp(node->identifier, own) < 0;
        rank += counts && !(some_leave && leaves(f->memory.plan, node));
    }
    return rank;
}

/* One that leaves, or that another has taken the place of, does not write for others. */
bool dv_follow_has_rank(const dv_follower *f) {
    const dv_plan_node *own = &dv_roster_party(f->roster)->nodes[f->party.own];
    return !dv_follow_is_fenced(f) && !(f->memory.plan && leaves(f->memory.plan, own));
}

bool dv_follow_is_first(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    if (!dv_follow_has_rank(f)) return false;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_node *node = &party->nodes[n];
        /* First, as the rest takes long in a large party. */
        if (!stands_before(node, &party->nodes[f->party.own])) continue;
        const dv_plan_member *m = dv_plan_member_of(f->memory.plan, party, n);
        if (m && strcmp(m->leaving, node->node) != 0) return false;
    }
    return true;
}

/* ---- our turn ---- */

/* Others may know of a plan or of owners that we do not, unless nobody has ever owned anything. */
static bool waits_for_others(const dv_follower *f) {
    bool knows_nothing = !f->memory.plan && !f->first.by_rule && dv_roster_party(f->roster)->count > 1;
    return knows_nothing && !(f->memory.standing == DV_PLAN_MISSING && f->questions->is_never_used(f->owner));
}

/* D37: returns whether no plan is to be written yet, as too few are here for a pool that begins. */
static bool lacks_members(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    const dv_plan *plan = dv_follow_plan(f);
    size_t live = 0;
    if (f->first.by_rule) return false;
    for (size_t n = 0; n < party->count; n++) {
        if (plan && dv_plan_member_of(plan, party, n)) return false;
        live += !party->nodes[n].is_ghost;
    }
    return live < f->config.min_members;
}

static int64_t members_due(dv_follower *f, int64_t now) {
    dv_follow_rank *r = &f->rank;
    if (!lacks_members(f)) r->alone_since = 0;
    else if (r->alone_since == 0) r->alone_since = now;
    return r->alone_since ? r->alone_since + f->config.min_members_wait_ms : now;
}

bool dv_follow_waits_for_members(const dv_follower *f, int64_t now) {
    return f->rank.alone_since && now < f->rank.alone_since + f->config.min_members_wait_ms && lacks_members(f);
}

/* Another pair starts the wait again. But a party that keeps changing must not put the first plan off for ever. */
int64_t dv_follow_turn(dv_follower *f, bool is_urgent, int64_t now) {
    dv_follow_rank *r = &f->rank;
    bool same_plan = r->is_known && r->mzxid == f->memory.mzxid, same = same_plan && r->pzxid == f->party.pzxid;
    int64_t at = now + (int64_t)(dv_follow_rank_of(f) + (waits_for_others(f) ? CREATE_RANKS : 0)) * RANK_MS;
    bool keeps = same || (same_plan && !f->memory.plan && r->at < at);
    if (!keeps) r->at = at;
    r->is_known = true;
    r->pzxid = f->party.pzxid;
    r->mzxid = f->memory.mzxid;
    if (is_urgent && r->at > now) r->at = now;
    int64_t due = members_due(f, now);
    if (due < r->at) due = r->at;
    return due > r->retry_at ? due : r->retry_at;
}

void dv_follow_restart_rank(dv_follower *f) {
    f->rank.is_known = false;
}

/* ---- times ---- */

static void on_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, rank.timer);
    f->look(f, DV_LOOK_FENCE | DV_LOOK_WRITES, now);
}

void dv_follow_write_at(dv_follower *f, int64_t at) {
    f->rank.timer.fire = on_timer;
    dv_timer_set(f->config.client, &f->rank.timer, at);
}

void dv_follow_write_no_more(dv_follower *f) {
    dv_timer_cancel(&f->rank.timer);
}

void dv_follow_try_later(dv_follower *f, int64_t now) {
    dv_follow_rank *r = &f->rank;
    r->backoff_ms = r->backoff_ms == 0 ? BACKOFF_MS : 2 * r->backoff_ms;
    if (r->backoff_ms > BACKOFF_MAX_MS) r->backoff_ms = BACKOFF_MAX_MS;
    r->retry_at = now + r->backoff_ms;
    if (f->party.in_force) dv_follow_write_at(f, r->retry_at);
}

void dv_follow_forget_failures(dv_follower *f) {
    f->rank.backoff_ms = f->rank.retry_at = 0;
}
