/* The absences of static members, and how long each may take. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rule D13. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "follow/follower.h"

static dv_absence *find(const dv_follow_absences *all, const dv_plan_member *m) {
    for (size_t i = 0; i < all->count; i++) {
        dv_absence *a = &all->list[i];
        if (a->absent == m->absent && strcmp(a->key, m->key) == 0) return a;
    }
    return NULL;
}

static void set_timer(dv_follower *f) {
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < f->absences.count; i++) {
        const dv_absence *a = &f->absences.list[i];
        if (!a->is_expired && a->due < next) next = a->due;
    }
    if (next == INT64_MAX) dv_timer_cancel(&f->absences.timer);
    else dv_timer_set(f->config.client, &f->absences.timer, next);
}

/* Entries that the plan has no more are dropped: their time runs no further. */
static void drop_unlisted(dv_follow_absences *all) {
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (all->list[i].is_listed) all->list[kept++] = all->list[i];
        else free(all->list[i].key);
    }
    assert(kept <= all->count);
    all->count = kept;
}

static bool add(dv_follow_absences *all, const dv_plan_member *m, int64_t now) {
    assert(m->absent != 0 && !find(all, m));
    dv_absence *grown = realloc(all->list, (all->count + 1) * sizeof *grown);
    if (!grown) return false;
    all->list = grown;
    char *key = strdup(m->key);
    if (!key) return false;
    all->list[all->count++] =
        (dv_absence){.key = key, .absent = m->absent, .due = now + m->rejoin_delay_ms, .is_listed = true};
    return true;
}

void dv_follow_note_absences(dv_follower *f, int64_t now) {
    const dv_plan *plan = f->memory.plan;
    dv_follow_absences *all = &f->absences;
    if (!plan) return;
    for (size_t i = 0; i < all->count; i++) all->list[i].is_listed = false;
    for (size_t m = 0; m < plan->member_count; m++) {
        if (plan->members[m].absent == 0) continue;
        dv_absence *known = find(all, &plan->members[m]);
        if (known) known->is_listed = true;
        else if (!add(all, &plan->members[m], now)) break; /* Others have the time, too. */
    }
    drop_unlisted(all);
    set_timer(f);
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, absences.timer);
    for (size_t i = 0; i < f->absences.count; i++) f->absences.list[i].is_expired |= now >= f->absences.list[i].due;
    set_timer(f);
    dv_follow_restart_rank(f);
    f->look(f, DV_LOOK_WRITES, now);
}

void dv_follow_init_absences(dv_follower *f) {
    f->absences.timer.fire = on_timer;
}

void dv_follow_stop_absences(dv_follower *f) {
    dv_timer_cancel(&f->absences.timer);
}

void dv_follow_free_absences(dv_follower *f) {
    dv_follow_stop_absences(f);
    for (size_t i = 0; i < f->absences.count; i++) free(f->absences.list[i].key);
    free(f->absences.list);
}
