/* The history beside the plan (D44), held against what the servers committed. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handover/note.h"
#include "plan/history.h"
#include "plans.h"

/* A change that a member wrote down, and when. */
typedef struct {
    dv_plan_change change;
    int64_t zxid, wall_ms;
} true_change;

/* A write of a note that tells of items that were given. */
typedef struct {
    int64_t zxid, wall_ms;
} note_write;

struct sim_past {
    true_change *changes;
    size_t count, room;
    note_write *writes;
    size_t write_count, write_room;
};

static struct sim_past *past_of(const sim_world *w) {
    struct sim_plans_truth *t = w->plans_truth;
    if (!t->past) t->past = calloc(1, sizeof *t->past);
    if (!t->past) abort();
    return t->past;
}

void sim_history_free(struct sim_past *past) {
    if (!past) return;
    free(past->changes);
    free(past->writes);
    free(past);
}

/* The last transaction's, by the leader's clock. */
static int64_t wall_ms(const sim_world *w) {
    const dv_mem *mem = w->ensemble;
    return mem->history[mem->history_count - 1]->time_ms;
}

void sim_history_note_written(sim_world *w, const divvy_testing_transaction *tx) {
    static const char notes_path[] = "/pool/notes/";
    struct sim_past *past = past_of(w);
    if (tx->kind != DIVVY_TESTING_SET || strncmp(tx->path, notes_path, sizeof notes_path - 1) != 0) return;
    const dv_mem_step *step = sim_plan_step_of(w, tx->path, DV_MEM_TXN_SET);
    dv_note note;
    if (!step->data || dv_note_parse(&note, step->data->data, step->data->bytes, NULL) != 0) return;
    bool gave = note.given_count > 0;
    dv_note_clear(&note);
    if (!gave) return;
    past->writes = sim_plans_grown(past->writes, past->write_count, &past->write_room, sizeof *past->writes);
    past->writes[past->write_count++] = (note_write){tx->zxid, wall_ms(w)};
}

/* ---- the newest change ---- */

static const dv_plan_member *same_in(const dv_plan *plan, const dv_plan_member *m) {
    return plan ? dv_plan_find(plan, m->is_static, m->key) : NULL;
}

static bool is_there(const dv_plan_member *m) {
    return m && !m->leaving[0] && !m->absent;
}

static bool joins(const dv_plan *before, const dv_plan_member *m) {
    return is_there(m) && !is_there(same_in(before, m));
}

static bool leaves(const dv_plan *after, const dv_plan_member *m) {
    const dv_plan_member *now = same_in(after, m);
    if (m->leaving[0]) return false;
    return !now || now->leaving[0] || (now->absent && !m->absent);
}

static bool is_named(const dv_plan_named *who, const dv_plan_member *m) {
    const char *dash = m->is_static ? NULL : strchr(m->key, '-');
    for (size_t n = 0; n < who->named; n++) {
        if (strcmp(who->names[n], dash ? dash + 1 : m->key) == 0) return true;
    }
    return false;
}

/* Holds the count and the names against the members of `plan` for whom that is true. */
static void check_named(sim_world *w, const dv_plan_named *who, const char *what, const dv_plan *plan,
                        const dv_plan *other, bool (*is_one)(const dv_plan *, const dv_plan_member *)) {
    size_t count = 0, unnamed = 0;
    for (size_t m = 0; plan && m < plan->member_count; m++) {
        if (!is_one(other, &plan->members[m])) continue;
        count++;
        unnamed += !is_named(who, &plan->members[m]);
    }
    if (who->count != count) sim_violate(w, "D44", "a history says that %u %s, and %zu did", who->count, what, count);
    if (who->named != (count < DV_PLAN_NAMED_MAX ? count : DV_PLAN_NAMED_MAX) || unnamed + who->named > count)
        sim_violate(w, "D44", "a history names others than those that %s", what);
}

static const char *owner_of(const dv_plan *plan, size_t item) {
    const dv_plan_member *m =
        plan->owners[item] == DV_PLAN_NO_SLOT ? NULL : dv_plan_member_at(plan, plan->owners[item]);
    return m ? m->key : "";
}

static size_t count_moved(const dv_plan *before, const dv_plan *after) {
    size_t moved = 0;
    for (size_t i = 0; before && i < before->set->count; i++) {
        const char *had = owner_of(before, i);
        for (size_t k = 0; *had && k < after->set->count; k++) {
            if (strcmp(before->set->names[i], after->set->names[k]) != 0) continue;
            moved += strcmp(had, owner_of(after, k)) != 0;
        }
    }
    return moved;
}

/* Returns the plan that it was made from; *known: that can be told. */
static const dv_plan *made_from(const sim_world *w, const sim_plan_version *v, bool *known) {
    const struct sim_plans_truth *t = w->plans_truth;
    *known = v->plan->header.after[0] == '\0';
    for (size_t i = t->count; !*known && i-- > 0;) {
        const sim_plan_version *from = &t->versions[i];
        if (strcmp(from->header.guid, v->plan->header.after) != 0 || !from->plan) continue;
        *known = true;
        return from->plan->header.generation > 0 ? from->plan : NULL;
    }
    return NULL;
}

static void check_newest(sim_world *w, const sim_plan_version *v, const dv_plan_change *c) {
    bool known;
    const dv_plan *from = made_from(w, v, &known);
    const dv_plan_header *h = &v->plan->header;
    if (c->generation != h->generation || strcmp(c->reason, dv_plan_reason_text(h->reason)) != 0)
        sim_violate(w, "D44", "a history ends with generation %llu, %s, beside %llu, %s",
                    (unsigned long long)c->generation, c->reason, (unsigned long long)h->generation,
                    dv_plan_reason_text(h->reason));
    if (c->at_ms != 0 || c->took_ms != -1) sim_violate(w, "D44", "a history tells the future");
    if (!known) return;
    check_named(w, &c->joined, "joined", v->plan, from, joins);
    check_named(w, &c->left, "left", from, v->plan, leaves);
    size_t moved = count_moved(from, v->plan);
    if (c->moved != moved)
        sim_violate(w, "D44", "a history says that %u items moved to generation %llu, and %zu did", c->moved,
                    (unsigned long long)c->generation, moved);
}

/* ---- those before ---- */

static bool same_named(const dv_plan_named *told, const dv_plan_named *truth) {
    bool same = told->count == truth->count && (told->named == 0 || told->named == truth->named);
    for (size_t n = 0; same && n < told->named; n++) same = strcmp(told->names[n], truth->names[n]) == 0;
    return same;
}

static bool is_change(const dv_plan_change *told, const true_change *truth) {
    const dv_plan_change *c = &truth->change;
    return told->generation == c->generation && strcmp(told->reason, c->reason) == 0 && told->moved == c->moved &&
           told->at_ms == truth->wall_ms && same_named(&told->joined, &c->joined) && same_named(&told->left, &c->left);
}

/* It ended with a note that somebody wrote after that plan, and that tells of something given. */
static void check_duration(sim_world *w, const true_change *truth, const dv_plan_change *told) {
    const struct sim_past *past = past_of(w);
    if (told->took_ms < 0) return;
    for (size_t n = 0; n < past->write_count; n++) {
        const note_write *one = &past->writes[n];
        int64_t after_ms = one->wall_ms > truth->wall_ms ? one->wall_ms - truth->wall_ms : 0;
        if (one->zxid > truth->zxid && after_ms == told->took_ms) return;
    }
    sim_violate(w, "D44", "generation %llu is said to have taken %lld ms, when nobody gave anything",
                (unsigned long long)told->generation, (long long)told->took_ms);
}

/* Each was written down by a member at that time, and they stand in that order. */
static void check_earlier(sim_world *w, const dv_plan_history *told) {
    const struct sim_past *past = past_of(w);
    size_t next = 0;
    for (size_t n = 0; n + 1 < told->count; n++) {
        while (next < past->count && !is_change(&told->changes[n], &past->changes[next])) next++;
        if (next == past->count) {
            sim_violate(w, "D44", "a history has a generation %llu that was not so, or not then",
                        (unsigned long long)told->changes[n].generation);
            return;
        }
        check_duration(w, &past->changes[next++], &told->changes[n]);
    }
    w->coverage->plan_meetings[SIM_MET_TOOK] += told->count > 1 && told->changes[told->count - 2].took_ms >= 0;
}

/* None is lost that could be read, but for the oldest. */
static void check_kept(sim_world *w, const sim_plan_child *child, const dv_plan_history *told) {
    dv_plan_history *before = malloc(sizeof *before);
    if (!before) abort();
    bool good = child->before && dv_plan_history_parse(before, child->before, child->before_bytes, NULL) == 0;
    size_t count = good ? before->count + 1 : 1;
    if (count > DV_PLAN_CHANGES_MAX) count = DV_PLAN_CHANGES_MAX;
    if (told->count < count) sim_violate(w, "D44", "a history has %zu changes left of %zu", told->count, count);
    w->coverage->plan_meetings[SIM_MET_TOLD] += good;
    w->coverage->plan_meetings[SIM_MET_TOLD_AGAIN] += child->before && child->before_bytes > 0 && !good;
    free(before);
}

void sim_history_check(sim_world *w, const sim_plan_version *v) {
    struct sim_past *past = past_of(w);
    const sim_plan_child *child = sim_plan_child_of(w->plans_truth, v->header.epoch);
    if (!child || v->header.generation == 0) return;
    if (child->mzxid != v->mzxid) { /* Excused, and counted: a writer that read the last plan late leaves a hole. */
        w->coverage->plan_meetings[SIM_MET_HOLE]++;
        return;
    }
    dv_plan_history *told = malloc(sizeof *told);
    dv_plan_fault fault = {.why = "is longer than it may be"};
    if (!told) abort();
    if (dv_plan_history_parse(told, child->data, child->bytes, &fault) != 0 || told->count == 0) {
        sim_violate(w, "D44", "the history of a member %s (%zu)", fault.why, fault.at);
    } else {
        const dv_plan_change *newest = &told->changes[told->count - 1];
        if (v->plan) check_newest(w, v, newest); /* Else a chunk of it is missing. */
        check_earlier(w, told);
        check_kept(w, child, told);
        past->changes = sim_plans_grown(past->changes, past->count, &past->room, sizeof *past->changes);
        past->changes[past->count++] = (true_change){*newest, v->mzxid, wall_ms(w)};
    }
    free(told);
}
