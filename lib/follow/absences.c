/* The absences of static members, and their times: docs/protocol.md, D13. SPDX-License-Identifier: Apache-2.0 */
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

static void free_list(dv_follow_absences *all) {
    for (size_t i = 0; i < all->count; i++) free(all->list[i].key);
    free(all->list);
}

/* Takes over the entry that is known of that absence, or makes one. Returns whether there was memory. */
static bool take(dv_absence *to, dv_follow_absences *all, const dv_plan_member *m, int64_t now) {
    dv_absence *known = find(all, m);
    if (known) {
        *to = *known;
        *known = (dv_absence){0};
    } else {
        *to = (dv_absence){.key = strdup(m->key), .absent = m->absent, .due = now + m->rejoin_delay_ms};
    }
    return to->key != NULL;
}

static void on_timer(dv_timer *timer, int64_t now) {
    dv_follower *f = DV_CONTAINER(timer, dv_follower, absences.timer);
    for (size_t i = 0; i < f->absences.count; i++) f->absences.list[i].is_expired |= now >= f->absences.list[i].due;
    set_timer(f);
    f->look(f, DV_LOOK_WRITES, now);
}

void dv_follow_note_absences(dv_follower *f, int64_t now) {
    const dv_plan *plan = f->memory.plan;
    if (!plan) return;
    dv_absence *list = calloc(plan->member_count + 1, sizeof *list);
    if (!list) {
        dv_client_again(f->config.client);
        return;
    }
    size_t count = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        if (!plan->members[m].absent) continue;
        if (take(&list[count], &f->absences, &plan->members[m], now)) count++;
        else dv_client_again(f->config.client);
    }
    free_list(&f->absences);
    f->absences.list = list;
    f->absences.count = count;
    f->absences.timer.fire = on_timer;
    set_timer(f);
}

void dv_follow_stop_absences(dv_follower *f) {
    dv_timer_cancel(&f->absences.timer);
}

void dv_follow_free_absences(dv_follower *f) {
    free_list(&f->absences);
}
