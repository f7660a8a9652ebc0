/* Verdicts, and attempts to write a plan: docs/protocol.md, D25, D34, D36, D37. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "follow/follower.h"

enum { NEWER_MIN_MS = 60000 /* a plan of a later release whose members have gone */ };

typedef enum { NOTHING, ASK, WRITE, WAIT } need;

/* ---- what there is to do ---- */

/* D34: nobody is left who follows it, or they would have written one that we can follow. */
static bool is_orphaned_newer(dv_follower *f, int64_t now) {
    int64_t patience_ms = 10 * f->config.settle_max_ms;
    if (patience_ms < NEWER_MIN_MS) patience_ms = NEWER_MIN_MS;
    int64_t due = f->reading.newer_since + patience_ms;
    if (now >= due) return true;
    dv_follow_write_at(f, due);
    return false;
}

/* By a step on what is known: the one who writes computes it again from what it reads. */
static need what_to_do(dv_follower *f, const dv_follow_changes *changes, int64_t now) {
    const dv_plan_party *party = dv_roster_party(f->roster);
    if (f->memory.standing == DV_PLAN_UNREAD) return WAIT;
    if (f->memory.standing == DV_PLAN_NEWER) return is_orphaned_newer(f, now) ? WRITE : WAIT;
    if (!dv_follow_prepare_first(f)) return WRITE;
    if (!dv_plan_memory_is_whole(&f->memory)) return WRITE;
    const dv_plan *plan = f->memory.plan;
    if (dv_follow_is_ahead(f, plan)) return WAIT;
    if (dv_follow_learn(f)) { /* A step would change nothing. */
        if (!dv_follow_has_changes(changes) && !dv_plan_agree_differs(plan, party)) return NOTHING;
    }
    dv_plan *next;
    int result = dv_plan_step(&next, plan, party, &changes->events);
    dv_plan_free(next);
    if (result == DV_PLAN_NOTHING) return NOTHING;
    return result == DV_PLAN_ASK ? ASK : WRITE; /* An error is the attempt's to tell. */
}

/* ---- the verdict ---- */

static void conclude(dv_follower *f, int64_t pzxid, const dv_follow_changes *changes, int64_t now) {
    assert(f->memory.standing != DV_PLAN_UNREAD);
    f->verdict = (dv_follow_verdict){.stands = true, .pzxid = pzxid, .mzxid = f->memory.mzxid};
    dv_follow_forget_failures(f);
    dv_follow_used_loads(f, changes);
    dv_follow_fulfil(f, changes, now);
    if (!f->share.agrees) dv_follow_apply(f, false, now);
}

/* It comes only where no node of the plan is missing, and is forgotten when the reader tells that one is. */
static bool verdict_stands(const dv_follower *f) {
    return f->verdict.stands && f->verdict.pzxid == f->party.pzxid && f->verdict.mzxid == f->memory.mzxid;
}

void dv_follow_forget_verdict(dv_follower *f) {
    f->verdict.stands = false;
}

/* ---- asking ---- */

static void on_asked(void *context, int error, int64_t now) {
    dv_follower *f = context;
    assert(f->attempt.asking);
    f->attempt.asking = false;
    if (!f->is_stopped) {
        if (error && error != DIVVY_ECANCELED) dv_follow_try_later(f, now);
        dv_follow_evaluate(f, now);
    }
    dv_follow_end(f, now);
}

/* Returns whether answers are awaited, or will be. */
static bool ask(dv_follower *f, int64_t now) {
    assert(!f->attempt.asking && !f->attempt.writer);
    int asked = dv_roster_ask(f->roster, f->memory.plan, DV_ROSTER_NEEDED, on_asked, f);
    if (asked < 0) dv_follow_try_later(f, now);
    if (asked <= 0) return asked < 0;
    f->attempt.asking = true;
    dv_follow_begin(f);
    return true;
}

/* ---- writing ---- */

static void warn_of_failure(const dv_follower *f, int error) {
    if (dv_outcome_unknown(error) || dv_session_over(error)) return;
    dv_follow_warn(f, DIVVY_WARN_PLAN,
                   "%s: member %s cannot write the next plan: %s; until somebody does, items of members that "
                   "have gone wait for an owner",
                   f->path, f->config.identifier, divvy_strerror(error));
}

static void on_written(dv_follower *f, int64_t now) {
    dv_follow_forget_verdict(f);
    dv_follow_forget_failures(f);
    dv_follow_note_absences(f, now);
    dv_follow_used_loads(f, f->attempt.changes);
    dv_follow_fulfil(f, f->attempt.changes, now);
    dv_follow_apply(f, false, now);
    dv_follow_watch_round(f, now);
    dv_follow_watch_loads(f, now);
}

static void on_done(void *owner, dv_plan_outcome outcome, int error, int64_t now) {
    dv_follower *f = owner;
    dv_follow_attempt *a = &f->attempt;
    assert(a->writer && a->changes && !a->is_done);
    a->is_done = true;
    if (f->is_stopped) return;
    switch (outcome) {
    case DV_PLAN_WRITTEN: on_written(f, now); break;
    case DV_PLAN_NEEDLESS:
        /* D34: a later release's plan that came during the attempt is waited for, which is no verdict. */
        if (f->memory.standing != DV_PLAN_NEWER) conclude(f, a->pzxid, a->changes, now);
        break;
    case DV_PLAN_BEHIND: /* The reader may know it already, and then tells nothing: so look again. */
        if (f->reading.reader) dv_plan_reader_look(f->reading.reader, now);
        dv_follow_try_later(f, now);
        break;
    /* D37: it settles, and that is heard; unless it has settled while the attempt went on. */
    case DV_PLAN_UNSETTLED: a->is_unsettled = f->party.pzxid == a->pzxid; break;
    case DV_PLAN_FAILED:
        warn_of_failure(f, error);
        dv_follow_refuse(f, error, now);
        dv_follow_try_later(f, now);
        break;
    }
}

static void on_gone(void *owner, int64_t now) {
    dv_follower *f = owner;
    assert(f->attempt.writer && f->attempt.changes);
    f->attempt.writer = NULL;
    dv_follow_free_changes(f->attempt.changes);
    f->attempt.changes = NULL;
    dv_follow_evaluate(f, now);
    dv_follow_end(f, now);
}

/* Takes `changes` over. */
static void start_attempt(dv_follower *f, dv_follow_changes *changes, int64_t now) {
    assert(!f->attempt.writer && !f->attempt.changes);
    static const dv_plan_writer_events events = {on_done, on_gone};
    int64_t planned = f->memory.plan ? f->memory.plan->mzxid : 0;
    const dv_plan_writer_config config = {.path = f->path,
                                          .party_path = f->config.party_path,
                                          .memory = &f->memory,
                                          .roster = f->roster,
                                          .events = &changes->events,
                                          .over_newer = f->memory.standing == DV_PLAN_NEWER,
                                          .sizes = f->config.sizes,
                                          .handed = {planned, f->questions->handed_over_ms(f->owner, planned)}};
    f->attempt.writer = dv_plan_writer_start(f->config.client, &config, &events, f);
    if (!f->attempt.writer) {
        dv_follow_free_changes(changes);
        dv_follow_try_later(f, now);
        return;
    }
    f->attempt.changes = changes;
    f->attempt.is_done = false;
    f->attempt.pzxid = f->party.pzxid;
    dv_follow_begin(f);
}

void dv_follow_allow_attempts(dv_follower *f) {
    f->attempt.is_unsettled = false;
}

void dv_follow_stop_attempt(dv_follower *f) {
    if (f->attempt.writer) dv_plan_writer_stop(f->attempt.writer);
}

/* ---- all of it ---- */

static bool can_write(const dv_follower *f) {
    const dv_follow_attempt *a = &f->attempt;
    return f->party.in_force && !f->fence.is_unknown && !a->is_unsettled && !a->writer && !a->asking &&
           dv_client_connected(f->config.client);
}

/* Takes `changes` over. */
static void evaluate(dv_follower *f, dv_follow_changes *changes, int64_t now) {
    need what = WAIT;
    bool ours = changes->is_urgent || dv_follow_has_rank(f);
    if (ours && (!verdict_stands(f) || dv_follow_has_changes(changes))) what = what_to_do(f, changes, now);
    if (what == NOTHING) conclude(f, f->party.pzxid, changes, now);
    if (what == ASK || what == WRITE) {
        int64_t at = dv_follow_turn(f, changes->is_urgent, now);
        if (now < at) {
            dv_follow_write_at(f, at);
        } else if (what == WRITE || !ask(f, now)) {
            start_attempt(f, changes, now);
            return;
        }
    }
    dv_follow_free_changes(changes);
}

void dv_follow_evaluate(dv_follower *f, int64_t now) {
    if (!can_write(f)) return;
    dv_follow_changes *changes = dv_follow_collect(f);
    if (changes) evaluate(f, changes, now);
    else dv_follow_try_later(f, now);
}
