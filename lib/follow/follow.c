/* The follower as its host sees it, and the order in which it goes by its news. SPDX-License-Identifier: Apache-2.0 */
#include "follow/follow.h"

#include <assert.h>
#include <stdlib.h>

#include "follow/follower.h"
#include "znode/path.h"

static void look(dv_follower *f, unsigned what, int64_t now) {
    if (what & DV_LOOK_FENCE && dv_follow_ask_fence_again(f, now)) {
        dv_follow_apply(f, true, now);
        dv_follow_evaluate(f, now);
    }
    if (what & (DV_LOOK_TARGET | DV_LOOK_SETTLED)) dv_follow_apply(f, what & DV_LOOK_SETTLED, now);
    if (what & DV_LOOK_ROUND) dv_follow_watch_round(f, now);
    if (what & DV_LOOK_ROUND) dv_follow_watch_loads(f, now);
    if (what & DV_LOOK_WRITES) dv_follow_evaluate(f, now);
}

/* ---- life ---- */

dv_follower *dv_follow_new(const dv_follow_config *config, const dv_follow_events *events,
                           const dv_follow_questions *questions, void *owner) {
    dv_follower *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->config = *config;
    f->events = events;
    f->questions = questions;
    f->owner = owner;
    f->look = look;
    f->memory.is_lean = true;
    f->is_stopped = true;
    f->path = dv_path_join(config->path, "plan");
    f->roster = dv_roster_new(config->client, config->party_path, events->ghost, owner);
    if (dv_follow_init_loads(f) && f->path && f->roster) return f;
    dv_follow_free(f);
    return NULL;
}

void dv_follow_free(dv_follower *f) {
    if (!f) return;
    assert(f->is_stopped && dv_follow_at_rest(f));
    dv_follow_free_absences(f);
    dv_follow_free_requests(f);
    dv_follow_free_loads(f);
    dv_follow_free_first(f);
    dv_follow_forget_node(f);
    dv_roster_free(f->roster);
    dv_plan_memory_clear(&f->memory);
    free(f->path);
    free(f);
}

bool dv_follow_at_rest(const dv_follower *f) {
    return !f || (!f->reading.reader && !f->attempt.writer && !f->attempt.asking && f->fence.under_way == 0 &&
                  !f->next_owners.under_way && f->round.under_way == 0 && !f->loads.reading);
}

/* ---- P/plan ---- */

static void on_changed(void *owner, int64_t now) {
    dv_follower *f = owner;
    dv_follow_reading *r = &f->reading;
    if (f->is_stopped) return;
    dv_follow_forget_verdict(f);
    /* A look that shows nothing new must not make a writer that cannot write try at once. */
    if (r->seen_mzxid != f->memory.mzxid || r->seen_standing != f->memory.standing) dv_follow_forget_failures(f);
    r->seen_mzxid = f->memory.mzxid;
    r->seen_standing = f->memory.standing;
    if (f->memory.standing != DV_PLAN_NEWER) r->newer_since = 0;
    else if (r->newer_since == 0) r->newer_since = now;
    dv_follow_note_absences(f, now);
    look(f, DV_LOOK_TARGET | DV_LOOK_ROUND | DV_LOOK_WRITES, now);
}

/* It matters only where a plan decides: among kazoo members nobody needs it. */
static void on_failed(void *owner, int error, int64_t now) {
    dv_follower *f = owner;
    f->reading.error = error;
    if (!f->is_stopped) look(f, DV_LOOK_TARGET, now);
}

static void on_gone(void *owner, int64_t now) {
    dv_follower *f = owner;
    assert(f->reading.reader);
    f->reading.reader = NULL;
    dv_follow_end(f, now);
}

void dv_follow_start(dv_follower *f, int64_t now) {
    static const dv_plan_reader_events events = {on_changed, on_failed, on_gone};
    if (!f) return;
    dv_follow_reading *r = &f->reading;
    assert(!r->reader);
    f->is_stopped = false;
    dv_follow_tell_again(f);
    r->error = 0;
    r->reader = dv_plan_reader_start(f->config.client, f->path, &f->memory, f->config.configured, &events, f);
    if (r->reader) dv_follow_begin(f);
    else r->error = DIVVY_ENOMEM;
    dv_follow_note_absences(f, now); /* Their times have run on. */
}

static void lose_force(dv_follower *f, bool names_decide) {
    dv_follow_lose_force(f, names_decide);
    dv_follow_forget_agreement(f);
    dv_follow_restart_rank(f);
    dv_follow_write_no_more(f);
    dv_follow_stop_round(f);
    dv_follow_stop_loads(f);
    f->events->no_plan(f->owner);
}

void dv_follow_stop(dv_follower *f) {
    if (!f || f->is_stopped) return;
    f->is_stopped = true;
    dv_follow_forget_node(f);
    dv_follow_forget_leave(f);
    lose_force(f, f->party.names_decide);
    assert(!f->party.in_force && !f->rank.timer.link);
    dv_follow_stop_absences(f);
    f->reading.left_mzxid = f->memory.newest_mzxid;
    if (f->reading.reader) dv_plan_reader_stop(f->reading.reader);
    dv_follow_stop_attempt(f);
}

/* ---- the party ---- */

/* P7: our node is newer than all that we knew when we joined again, unless servers were restored from a backup. */
static void forget_other_ensemble(dv_follower *f, int64_t now) {
    dv_follow_reading *r = &f->reading;
    if (!f->party.in_force || f->party.pzxid > r->left_mzxid) return;
    dv_plan_memory_clear(&f->memory);
    r->left_mzxid = 0;
    if (r->reader) dv_plan_reader_look(r->reader, now);
}

bool dv_follow_settled(dv_follower *f, const dv_follow_party *party, int64_t now) {
    if (!f) return false;
    assert(!f->is_stopped);
    if (!party->all_follow_plans) {
        lose_force(f, true);
        dv_follow_refuse_leave(f, DIVVY_ESTATE, now);
        return false;
    }
    int error = dv_follow_take_party(f, party);
    if (error) {
        dv_follow_fail(f, error, DIVVY_REASON_MEMBERS, now, "the party cannot be used: %s", divvy_strerror(error));
        return true;
    }
    dv_follow_forget_first(f);
    forget_other_ensemble(f, now);
    dv_follow_allow_attempts(f);
    dv_follow_forget_failures(f);
    if (!f->party.in_force) { /* Somebody deleted our node: it is made again, and the party settles again. */
        lose_force(f, false);
        return true;
    }
    dv_follow_note_node(f);
    dv_follow_ask_fence(f, now);
    look(f, DV_LOOK_SETTLED | DV_LOOK_ROUND | DV_LOOK_WRITES, now);
    return true;
}

void dv_follow_connected(dv_follower *f, int64_t now) {
    if (!f || f->is_stopped) return;
    dv_follow_forget_failures(f);
    dv_follow_note_absences(f, now);
    look(f, DV_LOOK_FENCE, now);
    if (f->next_owners.are_unread) look(f, DV_LOOK_TARGET, now);
    look(f, DV_LOOK_ROUND | DV_LOOK_WRITES, now);
}

bool dv_follow_is_first_of(const dv_follower *f, const dv_plan_set *set) {
    if (!f || !f->party.in_force || f->fence.is_unknown || !f->share.agrees || dv_follow_is_fenced(f)) return false;
    bool divides = f->memory.standing == DV_PLAN_GOOD && f->memory.plan && dv_plan_set_equal(set, f->memory.plan->set);
    return divides && dv_client_connected(f->config.client) && dv_follow_is_first(f);
}
