/* When the next plan is written, and by us. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D36, D37. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "partitioner/follower.h"
#include "partitioner/handover.h"
#include "plan/agree.h"

enum {
    RANK_MS = 100,    /* between the attempts of two members */
    CREATE_RANKS = 4, /* more, for who knows nothing of what was before */
    BACKOFF_MS = 200, /* after a failure, then twice as long each time, up to: */
    BACKOFF_MAX_MS = 30000,
    NEWER_MIN_MS = 60000, /* a plan of a later release whose members have gone */
};

typedef enum { NOTHING, ASK, WRITE, WAIT } need;

/* ---- the rank of a writer ---- */

static bool stands_before(const dv_plan_node *a, const dv_plan_node *b) {
    int order = strcmp(a->identifier, b->identifier);
    return order ? order < 0 : strcmp(a->node, b->node) < 0;
}

size_t dv_follow_rank(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->people);
    const dv_plan_node *own = &party->nodes[f->own];
    size_t rank = 0;
    for (size_t n = 0; n < party->count; n++) rank += !party->nodes[n].is_ghost && stands_before(&party->nodes[n], own);
    for (size_t m = 0; f->memory.plan && m < f->memory.plan->member_count; m++) {
        const char *leaving = f->memory.plan->members[m].leaving;
        size_t at = leaving[0] ? dv_roster_find(f->people, leaving) : SIZE_MAX;
        if (at != SIZE_MAX && stands_before(&party->nodes[at], own)) rank--;
    }
    return rank;
}

/* One that leaves, or that another has taken the place of, does not write for others. */
static bool has_rank(const dv_follower *f) {
    if (dv_follow_is_fenced(f)) return false;
    const dv_plan_party *party = dv_roster_party(f->people);
    const dv_plan_member *m = f->memory.plan ? dv_plan_member_of(f->memory.plan, party, f->own) : NULL;
    return !m || strcmp(m->leaving, party->nodes[f->own].node) != 0;
}

bool dv_follow_is_first(const dv_follower *f) {
    const dv_plan_party *party = dv_roster_party(f->people);
    if (!has_rank(f)) return false;
    for (size_t n = 0; n < party->count; n++) {
        const dv_plan_member *m = dv_plan_member_of(f->memory.plan, party, n);
        bool stays = m && strcmp(m->leaving, party->nodes[n].node) != 0;
        if (stays && stands_before(&party->nodes[n], &party->nodes[f->own])) return false;
    }
    return true;
}

/* D37: others may know of a plan or of owners that we do not, unless nobody has ever owned anything. */
static bool waits_for_others(const dv_follower *f) {
    bool knows_nothing = !f->memory.plan && !f->rule_owners && dv_roster_party(f->people)->count > 1;
    return knows_nothing && !(f->memory.standing == DV_PLAN_MISSING && f->p->never_used);
}

static int64_t rank_ms(const dv_follower *f) {
    return (int64_t)(dv_follow_rank(f) + (waits_for_others(f) ? CREATE_RANKS : 0)) * RANK_MS;
}

/* D37: finds when our rank may write, for this pair of party and plan; another pair starts the wait again. But where
 * there is no plan at all a party that keeps changing must not put the first one off for ever. */
static void find_rank(dv_follower *f, const dv_wants *asked, int64_t now) {
    bool same_plan = f->rank_known && f->rank_mzxid == f->memory.mzxid, same = same_plan && f->rank_pzxid == f->pzxid;
    int64_t at = now + rank_ms(f);
    bool keeps = same || (same_plan && !f->memory.plan && f->rank_at < at);
    if (!keeps) f->rank_at = at;
    f->rank_known = true;
    f->rank_pzxid = f->pzxid;
    f->rank_mzxid = f->memory.mzxid;
    if (asked->urgent && f->rank_at > now) f->rank_at = now;
}

void dv_follow_try_later(dv_follower *f, int64_t now) {
    f->backoff_ms = f->backoff_ms == 0 ? BACKOFF_MS : 2 * f->backoff_ms;
    if (f->backoff_ms > BACKOFF_MAX_MS) f->backoff_ms = BACKOFF_MAX_MS;
    f->retry_at = now + f->backoff_ms;
    if (!f->stopped && f->in_force) dv_timer_set(f->p->object.client, &f->write_timer, f->retry_at);
}

/* ---- what there is to do ---- */

/* D34: nobody is left who follows it, or they would have written one that we can follow. */
static bool is_orphaned_newer(dv_follower *f, int64_t now) {
    int64_t patience_ms = 10 * f->p->config.settle_max_ms;
    if (patience_ms < NEWER_MIN_MS) patience_ms = NEWER_MIN_MS;
    int64_t due = f->newer_since + patience_ms;
    if (now >= due) return true;
    dv_timer_set(f->p->object.client, &f->write_timer, due);
    return false;
}

bool dv_follow_learn(dv_follower *f) {
    const dv_plan *plan = f->memory.plan;
    if (f->memory.standing != DV_PLAN_GOOD || plan->header.generation == 0) return false;
    if (plan->header.pzxid != f->pzxid || plan->header.pzxid >= plan->mzxid) return false;
    dv_roster_learn(f->people, plan);
    return true;
}

/* By a step on what is known: the one who writes computes it again from what it reads. */
static need what_to_do(dv_follower *f, const dv_wants *asked, int64_t now) {
    const dv_plan_party *party = dv_roster_party(f->people);
    if (f->memory.standing == DV_PLAN_UNREAD) return WAIT;
    if (f->memory.standing == DV_PLAN_NEWER) return is_orphaned_newer(f, now) ? WRITE : WAIT;
    if (!dv_follow_prepare_first(f)) return WRITE;
    if (f->memory.standing != DV_PLAN_GOOD) return WRITE;
    const dv_plan *plan = f->memory.plan;
    if (plan->header.pzxid > f->pzxid && plan->header.pzxid < plan->mzxid) return WAIT; /* another party settles yet */
    if (dv_follow_learn(f)) { /* A step would change nothing. */
        if (!dv_wants_anything(asked) && !dv_plan_agree_differs(plan, party)) return NOTHING;
    }
    dv_plan *next;
    int result = dv_plan_step(&next, plan, party, &asked->events);
    dv_plan_free(next);
    if (result == DV_PLAN_NOTHING) return NOTHING;
    return result == DV_PLAN_ASK ? ASK : WRITE; /* An error is the attempt's to tell. */
}

static void conclude(dv_follower *f, int64_t pzxid, const dv_wants *asked, int64_t now) {
    assert(f->memory.standing != DV_PLAN_UNREAD);
    f->verdict = true;
    f->verdict_pzxid = pzxid;
    f->verdict_mzxid = f->memory.mzxid;
    dv_timer_cancel(&f->write_timer);
    f->backoff_ms = f->retry_at = 0;
    dv_follow_fulfilled(f, asked, now);
    if (!f->agrees) dv_follow_apply(f, false, now);
}

static bool verdict_stands(const dv_follower *f) {
    return f->verdict && f->verdict_pzxid == f->pzxid && f->verdict_mzxid == f->memory.mzxid;
}

/* ---- asking ---- */

static void on_asked(void *context, int error, int64_t now) {
    dv_follower *f = context;
    assert(f->asking);
    divvy_partitioner *p = f->p;
    f->asking = false;
    if (!f->stopped) {
        if (error && error != DIVVY_ECANCELED) dv_follow_try_later(f, now);
        dv_follow_evaluate(f, now);
    }
    dv_op_end(p, now);
}

/* Returns whether answers are awaited. */
static bool ask(dv_follower *f, int64_t now) {
    assert(!f->asking && !f->attempt);
    int asked = dv_roster_ask(f->people, f->memory.plan, DV_ROSTER_NEEDED, on_asked, f);
    if (asked < 0) dv_follow_try_later(f, now);
    if (asked <= 0) return asked < 0;
    f->asking = true;
    dv_op_begin(f->p);
    return true;
}

/* ---- writing ---- */

static void warn_of_failure(dv_follower *f, int error) {
    if (dv_outcome_unknown(error) || dv_session_over(error)) return;
    dv_report_warn_once(f->p, DIVVY_WARN_PLAN,
                        "%s: member %s cannot write the next plan: %s; until somebody does, items of members that "
                        "have gone wait for an owner",
                        f->path, f->p->identifier, divvy_strerror(error));
}

static void on_attempt_done(void *owner, dv_plan_outcome outcome, int error, int64_t now) {
    dv_follower *f = owner;
    assert(f->attempt && f->asked && !f->attempt_done);
    f->attempt_done = true;
    if (f->stopped) return;
    switch (outcome) {
    case DV_PLAN_WRITTEN:
        f->verdict = false;
        f->backoff_ms = f->retry_at = 0;
        dv_follow_note_absences(f, now);
        dv_follow_fulfilled(f, f->asked, now);
        dv_follow_apply(f, false, now);
        dv_follow_watch_round(f, now);
        break;
    case DV_PLAN_NEEDLESS:
        /* D34: a later release's plan that came during the attempt is waited for, which is no verdict. */
        if (f->memory.standing != DV_PLAN_NEWER) conclude(f, f->attempt_pzxid, f->asked, now);
        break;
    case DV_PLAN_BEHIND: /* If that is no news to the reader, there is nothing to be heard of it: so look again. */
        if (f->reader) dv_plan_reader_look(f->reader, now);
        dv_follow_try_later(f, now);
        break;
    /* D37: it settles, and that is heard; unless it has settled while the attempt went on. */
    case DV_PLAN_UNSETTLED: f->unsettled = f->pzxid == f->attempt_pzxid; break;
    case DV_PLAN_FAILED:
        warn_of_failure(f, error);
        dv_follow_refused(f, error, now);
        dv_follow_try_later(f, now);
        break;
    }
}

static void on_attempt_gone(void *owner, int64_t now) {
    dv_follower *f = owner;
    assert(f->attempt && f->asked);
    divvy_partitioner *p = f->p;
    f->attempt = NULL;
    dv_wants_free(f->asked);
    f->asked = NULL;
    dv_follow_evaluate(f, now);
    dv_op_end(p, now);
}

/* Takes `asked` over. */
static void start_attempt(dv_follower *f, dv_wants *asked, int64_t now) {
    assert(!f->attempt && !f->asked);
    static const dv_plan_writer_events events = {on_attempt_done, on_attempt_gone};
    int64_t planned = f->memory.plan ? f->memory.plan->mzxid : 0;
    const dv_plan_writer_config config = {.path = f->path,
                                          .party_path = f->p->party_path,
                                          .memory = &f->memory,
                                          .people = f->people,
                                          .events = &asked->events,
                                          .over_newer = f->memory.standing == DV_PLAN_NEWER,
                                          .sizes = f->p->plan_sizes,
                                          .handed = {planned, dv_give_ended_ms(f->p, planned)}};
    f->attempt = dv_plan_writer_start(f->p->object.client, &config, &events, f);
    if (!f->attempt) {
        dv_wants_free(asked);
        dv_follow_try_later(f, now);
        return;
    }
    f->asked = asked;
    f->attempt_done = false;
    f->attempt_pzxid = f->pzxid;
    dv_op_begin(f->p);
}

/* ---- all of it ---- */

static bool can_write(const dv_follower *f) {
    const divvy_partitioner *p = f->p;
    return !f->stopped && f->in_force && !f->fence_unknown && !f->unsettled && !f->attempt && !f->asking &&
           p->life != DV_LIFE_REJOINING && p->state != DIVVY_FAILURE && dv_client_connected(p->object.client);
}

/* Takes `asked` over. */
static void evaluate(dv_follower *f, dv_wants *asked, int64_t now) {
    need what = WAIT;
    bool ours = asked->urgent || has_rank(f);
    if (ours && (!verdict_stands(f) || dv_wants_anything(asked))) what = what_to_do(f, asked, now);
    if (what == NOTHING) conclude(f, f->pzxid, asked, now);
    if (what == ASK || what == WRITE) {
        find_rank(f, asked, now);
        int64_t at = f->rank_at > f->retry_at ? f->rank_at : f->retry_at;
        if (now < at) {
            dv_timer_set(f->p->object.client, &f->write_timer, at);
        } else if (what == WRITE || !ask(f, now)) {
            start_attempt(f, asked, now);
            return;
        }
    }
    dv_wants_free(asked);
}

void dv_follow_evaluate(dv_follower *f, int64_t now) {
    if (!can_write(f)) return;
    dv_wants *asked = dv_wants_new(f);
    if (asked) evaluate(f, asked, now);
    else dv_follow_try_later(f, now);
}

void dv_follow_write_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, write_timer);
    dv_follow_ask_again(f, now);
    dv_follow_evaluate(f, now);
}
