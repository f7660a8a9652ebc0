/* Following the sticky plan: what is heard, and what comes of it. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D31, D34, D36 to D38, D42. */
#include "partitioner/follow.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "partitioner/follower.h"
#include "partitioner/handover.h"
#include "znode/path.h"

static dv_follower *follower_of(const divvy_partitioner *p) {
    return p->follower;
}

/* ---- life ---- */

int dv_follow_init(divvy_partitioner *p, divvy_client *client) {
    if (strtol(p->ability, NULL, 10) != DV_LEVEL_PLAN) return 0;
    dv_follower *f = p->follower = calloc(1, sizeof *f);
    if (!f) return DIVVY_ENOMEM;
    f->p = p;
    f->stopped = true;
    f->path = dv_path_join(p->path, "plan");
    f->people = dv_roster_new(client, p->party_path, dv_members_note_ghost, p);
    f->write_timer.fire = dv_follow_write_timer;
    f->absence_timer.fire = dv_follow_absence_timer;
    f->round.timer.fire = dv_follow_round_timer;
    if (f->path && f->people) return 0;
    dv_follow_free(p);
    return DIVVY_ENOMEM;
}

void dv_follow_free(divvy_partitioner *p) {
    dv_follower *f = follower_of(p);
    if (!f) return;
    assert(dv_follow_at_rest(p));
    dv_timer_cancel(&f->write_timer);
    dv_timer_cancel(&f->absence_timer);
    dv_follow_stop_round(f);
    dv_follow_free_wants(f);
    dv_follow_free_rule(f);
    dv_follow_forget_first(f);
    dv_roster_free(f->people);
    dv_plan_memory_clear(&f->memory);
    free(f->known_as);
    free(f->path);
    free(f);
    p->follower = NULL;
}

bool dv_follow_at_rest(const divvy_partitioner *p) {
    const dv_follower *f = follower_of(p);
    return !f || (!f->reader && !f->attempt && !f->asking && f->fence_asks == 0 && !f->taker_asked &&
                  f->round.under_way == 0);
}

/* ---- P/plan ---- */

static void on_plan_changed(void *owner, int64_t now) {
    dv_follower *f = owner;
    if (f->stopped) return;
    f->verdict = false;
    /* A look that shows nothing new must not make a writer that cannot write try at once. */
    if (f->seen_mzxid != f->memory.mzxid || f->seen_standing != f->memory.standing) f->backoff_ms = f->retry_at = 0;
    f->seen_mzxid = f->memory.mzxid;
    f->seen_standing = f->memory.standing;
    if (f->memory.standing != DV_PLAN_NEWER) f->newer_since = 0;
    else if (f->newer_since == 0) f->newer_since = now;
    dv_follow_note_absences(f, now);
    dv_follow_apply(f, false, now);
    dv_follow_watch_round(f, now);
    dv_follow_evaluate(f, now);
}

/* It matters only where a plan decides: among kazoo members nobody needs it. */
static void on_plan_failed(void *owner, int error, int64_t now) {
    dv_follower *f = owner;
    f->read_error = error;
    if (!f->stopped) dv_follow_apply(f, false, now);
}

static void on_reader_gone(void *owner, int64_t now) {
    dv_follower *f = owner;
    assert(f->reader);
    divvy_partitioner *p = f->p;
    f->reader = NULL;
    dv_op_end(p, now);
}

void dv_follow_start(divvy_partitioner *p) {
    static const dv_plan_reader_events events = {on_plan_changed, on_plan_failed, on_reader_gone};
    dv_follower *f = follower_of(p);
    if (!f) return;
    assert(!f->reader);
    f->stopped = f->joined_told = f->weight_told = false;
    f->read_error = 0;
    f->reader = dv_plan_reader_start(p->object.client, f->path, &f->memory, p->configured, &events, f);
    if (f->reader) dv_op_begin(p);
    else f->read_error = DIVVY_ENOMEM;
    dv_follow_note_absences(f, dv_client_now(p->object.client)); /* Their times have run on. */
}

static void lose_force(dv_follower *f) {
    f->in_force = f->fence_unknown = f->agrees = f->verdict = f->rank_known = false;
    dv_timer_cancel(&f->write_timer);
    dv_follow_stop_round(f);
    dv_handover_no_plan(f->p);
}

void dv_follow_stop(divvy_partitioner *p) {
    dv_follower *f = follower_of(p);
    if (!f || f->stopped) return;
    f->stopped = true;
    free(f->known_as);
    f->known_as = NULL;
    f->want_leave.open = false; /* A stop does not wait for it. */
    lose_force(f);
    assert(!f->in_force && !f->write_timer.link);
    dv_timer_cancel(&f->absence_timer);
    f->left_mzxid = f->memory.newest_mzxid;
    if (f->reader) dv_plan_reader_stop(f->reader);
    if (f->attempt) dv_plan_writer_stop(f->attempt);
}

/* ---- D38: of live static members of one identifier only the last process counts ---- */

static void on_namesakes_read(void *context, int error, int64_t now) {
    dv_follower *f = context;
    assert(f->fence_asks > 0);
    divvy_partitioner *p = f->p;
    f->fence_asks--;
    /* The answer may be about a party that is no longer the settled one. Or a node has gone, and another party will
     * settle. */
    bool decided = error == 0 && f->in_force && f->fence_unknown;
    if (decided) {
        f->fence_unknown = false;
        dv_follow_apply(f, true, now);
        dv_follow_watch_round(f, now);
        dv_follow_evaluate(f, now);
    } else if (error && error != DIVVY_ECANCELED && error != DIVVY_ENOENT && f->fence_unknown) {
        dv_follow_try_later(f, now);
    }
    dv_op_end(p, now);
}

/* Asks whether another live node has a static member's identifier. The settled party counts once the answer is
 * known. */
static void ask_namesakes(dv_follower *f, int64_t now) {
    assert(f->in_force && f->own != SIZE_MAX);
    f->fence_unknown = false;
    if (!f->p->config.static_membership) return;
    int asked = dv_roster_ask_namesakes(f->people, f->own, on_namesakes_read, f);
    if (asked == 0) return;
    f->fence_unknown = true;
    if (asked < 0) {
        dv_follow_try_later(f, now);
        return;
    }
    f->fence_asks++;
    dv_op_begin(f->p);
}

void dv_follow_ask_again(dv_follower *f, int64_t now) {
    if (!f->in_force || !f->fence_unknown || f->fence_asks) return;
    ask_namesakes(f, now);
    if (f->fence_unknown) return;
    dv_follow_apply(f, true, now);
    dv_follow_evaluate(f, now);
}

/* ---- the party ---- */

/* Takes the members' nodes over to `people`, strays left out. */
static int settle_people(dv_follower *f, int64_t pzxid) {
    const divvy_partitioner *p = f->p;
    const char **nodes = (const char **)(uintptr_t)malloc((p->party.count + 1) * sizeof *nodes);
    if (!nodes) return DIVVY_ENOMEM;
    size_t count = 0;
    for (size_t i = 0; i < p->party.count; i++) {
        if (p->party.members[i].kind == DV_DIVVY) nodes[count++] = p->party.members[i].node;
    }
    int error = dv_roster_settle(f->people, nodes, count, pzxid);
    free(nodes);
    if (error) return error;
    dv_plan_party *party = dv_roster_party(f->people);
    party->set = p->configured;
    party->options = (dv_plan_options){.algorithm = DV_PLAN_ALGORITHM,
                                       .max_moves = (uint32_t)p->config.max_moves,
                                       .spread_zones = true, /* D16: without zones it says nothing */
                                       .round_timeout_ms = p->config.round_timeout_ms};
    dv_follow_forget_first(f);
    return 0;
}

static bool all_follow_plans(const divvy_partitioner *p) {
    for (size_t i = 0; i < p->party.count; i++) {
        const dv_member *m = &p->party.members[i];
        if (m->kind == DV_KAZOO || (m->kind == DV_DIVVY && m->level < DV_LEVEL_PLAN)) return false;
    }
    return true;
}

/* Our own node was made after all that we knew when we joined again; unless the servers were restored from a backup:
 * then nothing that we remember is worth anything, and newer than all that is to come. */
static void forget_other_ensemble(dv_follower *f, int64_t pzxid, int64_t now) {
    if (f->own == SIZE_MAX || pzxid > f->left_mzxid) return;
    dv_plan_memory_clear(&f->memory);
    f->left_mzxid = 0;
    if (f->reader) dv_plan_reader_look(f->reader, now);
}

bool dv_follow_settled(divvy_partitioner *p, int64_t pzxid, int64_t now) {
    dv_follower *f = follower_of(p);
    if (!f) return false;
    assert(!f->stopped && p->state != DIVVY_FAILURE);
    f->names_rule = !all_follow_plans(p);
    if (f->names_rule) {
        lose_force(f);
        dv_follow_refuse_leave(f, DIVVY_ESTATE, now);
        if (dv_items_use(p, p->configured) != 0)
            dv_state_fail(p, DIVVY_ENOMEM, DIVVY_REASON_MEMBERS, now, "out of memory");
        return false;
    }
    int error = settle_people(f, pzxid);
    if (error) {
        dv_state_fail(p, error, DIVVY_REASON_MEMBERS, now, "the party cannot be used: %s", divvy_strerror(error));
        return true;
    }
    f->own = dv_roster_find(f->people, dv_membership_name(p->membership));
    forget_other_ensemble(f, pzxid, now);
    f->verdict = f->unsettled = false;
    f->backoff_ms = f->retry_at = 0;
    f->pzxid = pzxid;
    if (f->own == SIZE_MAX) { /* Somebody deleted our node: it is made again, and the party settles again. */
        lose_force(f);
        return true;
    }
    f->in_force = true;
    dv_follow_note_node(f);
    ask_namesakes(f, now);
    dv_follow_apply(f, true, now);
    dv_follow_watch_round(f, now);
    dv_follow_evaluate(f, now);
    return true;
}

void dv_follow_connected(divvy_partitioner *p, int64_t now) {
    dv_follower *f = follower_of(p);
    if (!f || f->stopped) return;
    f->backoff_ms = f->retry_at = 0;
    dv_follow_ask_again(f, now);
    if (f->taker_unread) dv_follow_apply(f, false, now);
    dv_follow_watch_round(f, now);
    dv_follow_evaluate(f, now);
}

bool dv_follow_names_rule(const divvy_partitioner *p) {
    const dv_follower *f = follower_of(p);
    return !f || f->names_rule;
}

bool dv_follow_is_replaced(const divvy_partitioner *p) {
    const dv_follower *f = follower_of(p);
    return f && f->in_force && !f->fence_unknown && dv_follow_is_replaced_by_another(f);
}

bool dv_follow_is_dynamic(const divvy_partitioner *p, const char *node) {
    const dv_follower *f = follower_of(p);
    return f && f->memory.plan && dv_plan_find(f->memory.plan, false, node);
}

bool dv_follow_agrees(const divvy_partitioner *p) {
    const dv_follower *f = follower_of(p);
    return !f || f->names_rule || f->agrees;
}

bool dv_follow_sweeps(const divvy_partitioner *p) {
    const dv_follower *f = follower_of(p);
    if (!f || f->stopped || !f->in_force || f->fence_unknown || !f->agrees || dv_follow_is_fenced(f)) return false;
    bool divides =
        f->memory.standing == DV_PLAN_GOOD && f->memory.plan && dv_plan_set_equal(p->dealt, f->memory.plan->set);
    return divides && p->state == DIVVY_ACQUIRED && dv_client_connected(p->object.client) && dv_follow_is_first(f);
}
