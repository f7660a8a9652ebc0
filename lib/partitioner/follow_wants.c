/* The contents of the next plan beside the party: wishes of users, absences that took too long, the end of a round.
 * SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D13 to D15. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "partitioner/follower.h"

static const char *own_node(const dv_follower *f) {
    return dv_roster_party(f->people)->nodes[f->own].node;
}

/* Returns our key in a plan. D12: a static member's key is its identifier, another's the name of its node. */
static const char *own_key(const dv_follower *f) {
    return f->p->config.static_membership ? f->p->identifier_node : own_node(f);
}

/* ---- gathering ---- */

static bool add_expired(dv_wants *asked, const dv_follower *f) {
    asked->expired = calloc(f->absence_count + 1, sizeof *asked->expired);
    if (!asked->expired) return false;
    asked->events.expired = asked->expired;
    for (size_t i = 0; i < f->absence_count; i++) {
        const dv_absence *a = &f->absences[i];
        if (!a->expired) continue;
        char *key = strdup(a->key);
        if (!key) return false;
        asked->expired[asked->events.expired_count++] = (dv_plan_expiry){.key = key, .absent = a->absent};
    }
    return true;
}

static bool add_wishes(dv_wants *asked, const dv_follower *f) {
    bool weight = f->want_weight.open && !dv_follow_is_fenced(f); /* else it would be another's */
    if (weight) {
        asked->key = strdup(own_key(f));
        if (!asked->key) return false;
        asked->weight = (dv_plan_weight){.key = asked->key, .weight = f->weight};
        asked->events.weights = &asked->weight;
        asked->events.weight_count = 1;
        asked->weight_number = f->want_weight.number;
    }
    if (f->want_set.open) {
        asked->events.set = dv_plan_set_ref(f->set);
        asked->set_number = f->want_set.number;
    }
    if (f->want_leave.open) {
        assert(f->p->life == DV_LIFE_HANDING_OVER || f->p->life == DV_LIFE_LEAVING);
        asked->leaving = strdup(own_node(f));
        if (!asked->leaving) return false;
        asked->leaving_nodes[0] = asked->leaving;
        asked->events.leaving = asked->leaving_nodes;
        asked->events.leaving_count = 1;
        asked->leave_number = f->want_leave.number;
    }
    asked->urgent = weight || f->want_set.open || f->want_leave.open;
    return true;
}

static void add_round(dv_wants *asked, const dv_follower *f) {
    assert(!asked->events.round_over);
    if (!f->memory.plan || !f->round_over[0] || strcmp(f->round_over, f->memory.plan->header.guid) != 0) return;
    memcpy(asked->round_over, f->round_over, sizeof asked->round_over);
    asked->events.round_over = asked->round_over;
}

dv_wants *dv_wants_new(const dv_follower *f) {
    dv_wants *asked = calloc(1, sizeof *asked);
    if (!asked) return NULL;
    if (add_expired(asked, f) && add_wishes(asked, f)) {
        add_round(asked, f);
        return asked;
    }
    dv_wants_free(asked);
    return NULL;
}

bool dv_wants_anything(const dv_wants *asked) {
    return asked->urgent || asked->events.expired_count > 0 || asked->events.round_over != NULL;
}

void dv_wants_free(dv_wants *asked) {
    if (!asked) return;
    for (size_t i = 0; i < asked->events.expired_count; i++) free((char *)(uintptr_t)asked->expired[i].key);
    free(asked->expired);
    free(asked->key);
    free(asked->leaving);
    dv_plan_set_unref(asked->events.set);
    free(asked);
}

/* ---- wishes ---- */

static void open_want(dv_want *want) {
    want->open = true;
    want->number++;
}

static bool fulfil(dv_want *want, unsigned number) {
    assert(number <= want->number);
    bool now = want->open && number != 0 && want->number == number;
    if (now) want->open = false;
    return now;
}

void dv_follow_fulfilled(dv_follower *f, const dv_wants *asked, int64_t now) {
    assert(asked->set_number == 0 || asked->events.set);
    if (fulfil(&f->want_weight, asked->weight_number)) {
        free(f->weight_node);
        f->weight_node = f->in_force ? strdup(own_node(f)) : NULL;
    }
    if (fulfil(&f->want_set, asked->set_number)) {
        dv_plan_set_unref(f->set);
        f->set = NULL;
    }
    if (fulfil(&f->want_leave, asked->leave_number)) dv_partitioner_left(f->p, 0, now);
}

void dv_follow_refuse_leave(dv_follower *f, int error, int64_t now) {
    bool concerned = f->want_leave.open || f->p->life == DV_LIFE_HANDING_OVER;
    assert(!concerned || f->p->life == DV_LIFE_HANDING_OVER || f->p->life == DV_LIFE_LEAVING);
    f->want_leave.open = false;
    if (concerned) dv_partitioner_left(f->p, error, now);
}

/* Others may be allowed to write, so that what is wanted stays; but a set that no plan has room for would stand in the
 * way of all plans to come. */
void dv_follow_refused(dv_follower *f, int error, int64_t now) {
    if (dv_outcome_unknown(error) || dv_session_over(error)) return;
    if (error == DIVVY_E2BIG && f->want_set.open) {
        f->want_set.open = false;
        dv_plan_set_unref(f->set);
        f->set = NULL;
    }
    dv_follow_refuse_leave(f, error, now);
}

void dv_follow_want_weight(divvy_partitioner *p, uint32_t weight, int64_t now) {
    dv_follower *f = p->follower;
    f->weight = weight;
    open_want(&f->want_weight);
    dv_follow_evaluate(f, now);
}

void dv_follow_want_set(divvy_partitioner *p, dv_plan_set *set, int64_t now) {
    assert(set);
    dv_follower *f = p->follower;
    dv_plan_set_ref(set);
    dv_plan_set_unref(f->set);
    f->set = set;
    f->asked_count = set->count;
    f->asked_hash = set->hash;
    open_want(&f->want_set);
    dv_follow_evaluate(f, now);
}

bool dv_follow_want_leave(divvy_partitioner *p, int64_t now) {
    assert(p->life == DV_LIFE_HANDING_OVER || p->life == DV_LIFE_LEAVING);
    dv_follower *f = p->follower;
    if (!f || !f->in_force || f->stopped) return false;
    open_want(&f->want_leave);
    dv_follow_evaluate(f, now);
    return true;
}

/* T8: a plan that somebody made from an older one does not know that we leave. */
void dv_follow_leave_again(dv_follower *f) {
    if (!f->want_leave.open && dv_leave_is_open_again(f->p)) open_want(&f->want_leave);
}

/* D15: the weight of a member that is not static goes with its node. */
void dv_follow_note_node(dv_follower *f) {
    if (!f->weight_node || f->p->config.static_membership || strcmp(f->weight_node, own_node(f)) == 0) return;
    free(f->weight_node);
    f->weight_node = NULL;
    if (!f->want_weight.open) open_want(&f->want_weight);
}

/* ---- D13: absences ---- */

static dv_absence *find_absence(const dv_follower *f, const dv_plan_member *m) {
    for (size_t i = 0; i < f->absence_count; i++) {
        dv_absence *a = &f->absences[i];
        if (a->absent == m->absent && strcmp(a->key, m->key) == 0) return a;
    }
    return NULL;
}

static void set_absence_timer(dv_follower *f) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < f->absence_count; i++) {
        const dv_absence *a = &f->absences[i];
        if (!a->expired && a->due < next) next = a->due;
    }
    if (next == INT64_MAX) dv_timer_cancel(&f->absence_timer);
    else dv_timer_set(f->p->object.client, &f->absence_timer, next);
}

/* Entries that the plan has no more are dropped: their time runs no further. */
static void drop_unlisted(dv_follower *f) {
    size_t kept = 0;
    for (size_t i = 0; i < f->absence_count; i++) {
        if (f->absences[i].listed) f->absences[kept++] = f->absences[i];
        else free(f->absences[i].key);
    }
    assert(kept <= f->absence_count);
    f->absence_count = kept;
}

static bool add_absence(dv_follower *f, const dv_plan_member *m, int64_t now) {
    assert(m->absent != 0 && !find_absence(f, m));
    dv_absence *grown = realloc(f->absences, (f->absence_count + 1) * sizeof *grown);
    if (!grown) return false;
    f->absences = grown;
    char *key = strdup(m->key);
    if (!key) return false;
    f->absences[f->absence_count++] =
        (dv_absence){.key = key, .absent = m->absent, .due = now + m->rejoin_delay_ms, .listed = true};
    return true;
}

void dv_follow_note_absences(dv_follower *f, int64_t now) {
    const dv_plan *plan = f->memory.plan;
    if (!plan) return;
    for (size_t i = 0; i < f->absence_count; i++) f->absences[i].listed = false;
    for (size_t m = 0; m < plan->member_count; m++) {
        if (plan->members[m].absent == 0) continue;
        dv_absence *known = find_absence(f, &plan->members[m]);
        if (known) known->listed = true;
        else if (!add_absence(f, &plan->members[m], now)) break; /* Others have the time, too. */
    }
    drop_unlisted(f);
    set_absence_timer(f);
}

void dv_follow_absence_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, absence_timer);
    for (size_t i = 0; i < f->absence_count; i++) f->absences[i].expired |= now >= f->absences[i].due;
    set_absence_timer(f);
    f->rank_known = false; /* There is something new to write, so the wait by rank starts again. */
    dv_follow_evaluate(f, now);
}

void dv_follow_free_wants(dv_follower *f) {
    for (size_t i = 0; i < f->absence_count; i++) free(f->absences[i].key);
    free(f->absences);
    dv_plan_set_unref(f->set);
    free(f->weight_node);
}
