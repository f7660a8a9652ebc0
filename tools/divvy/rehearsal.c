/* A rehearsal of plans: what the members of a pool would make of a change. SPDX-License-Identifier: Apache-2.0 */
#include "rehearsal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "plan/table.h"
#include "pool_rules.h"

/* ---- the party ---- */

static void free_text(const char *text) {
    free((void *)(uintptr_t)text);
}

static void clear_node(dv_plan_node *node) {
    free_text(node->node);
    free_text(node->identifier);
    free_text(node->zone);
    free_text(node->tags);
}

void dv_rehearsal_free(dv_rehearsal *r) {
    for (size_t n = 0; n < r->node_count; n++) clear_node(&r->nodes[n]);
    free(r->nodes);
    dv_plan_free(r->plan);
    dv_plan_set_unref(r->set);
    dv_loads_unref(r->loads);
}

static int make_room(dv_rehearsal *r) {
    if (r->node_count < r->node_room) return 0;
    size_t room = r->node_room * 2 + 8;
    dv_plan_node *nodes = realloc(r->nodes, room * sizeof *nodes);
    if (!nodes) return DIVVY_ENOMEM;
    r->nodes = nodes;
    r->node_room = room;
    return 0;
}

int dv_rehearsal_add(dv_rehearsal *r, const dv_plan_node *node) {
    if (make_room(r) != 0) return DIVVY_ENOMEM;
    dv_plan_node copy = *node;
    copy.node = strdup(node->node);
    copy.identifier = strdup(node->identifier);
    copy.zone = strdup(node->zone);
    copy.tags = strdup(node->tags ? node->tags : "");
    if (copy.node && copy.identifier && copy.zone && copy.tags) {
        r->nodes[r->node_count++] = copy;
        return 0;
    }
    clear_node(&copy);
    return DIVVY_ENOMEM;
}

/* It is marked as a step of its own would (D14), and is gone as soon as it owns nothing. */
int dv_rehearsal_leave(dv_rehearsal *r, bool is_static, const char *key) {
    dv_plan_member *member = dv_plan_find(r->plan, is_static, key);
    char *mark = strdup(key);
    if (!member || !mark) {
        free(mark);
        return member ? DIVVY_ENOMEM : 0;
    }
    free(member->leaving);
    member->leaving = mark;
    size_t kept = 0;
    for (size_t n = 0; n < r->node_count; n++) {
        dv_plan_node *node = &r->nodes[n];
        bool same = strcmp(is_static ? node->identifier : node->node, key) == 0;
        if (same && (!is_static || node->is_static)) clear_node(node);
        else r->nodes[kept++] = *node;
    }
    r->node_count = kept;
    return 0;
}

void dv_rehearsal_weigh(dv_rehearsal *r, bool is_static, const char *key, uint32_t weight) {
    /* An event has one weight: of several the last one is it, so that the deal knows that weights have changed. */
    for (size_t m = 0; r->weight.key && m < r->plan->member_count; m++) {
        dv_plan_member *member = &r->plan->members[m];
        if (strcmp(member->key, r->weight.key) == 0) member->weight = r->weight.weight;
    }
    if (dv_plan_find(r->plan, is_static, key)) r->weight = (dv_plan_weight){key, weight};
}

/* ---- the steps ---- */

/* Returns whether an item gets another owner; a slot may be another member's in the very next plan (D11). */
static bool owners_differ(const dv_plan *a, const dv_plan *b) {
    bool is_same[DV_PLAN_SLOTS] = {false};
    if (!a || a->set->count != b->set->count) return true;
    for (size_t n = 0; n < b->member_count; n++) {
        const dv_plan_member *now = &b->members[n], *then = dv_plan_member_at(a, now->slot);
        is_same[now->slot] = then && then->is_static == now->is_static && strcmp(then->key, now->key) == 0;
    }
    for (size_t i = 0; i < b->set->count; i++) {
        uint32_t slot = b->owners[i];
        if (a->owners[i] != slot || (slot != DV_PLAN_NO_SLOT && !is_same[slot])) return true;
    }
    return false;
}

static int step(dv_rehearsal *r) {
    const dv_plan_party party = {
        .pzxid = ++r->pzxid, .nodes = r->nodes, .count = r->node_count, .set = r->set, .options = r->options};
    const dv_plan_events events = {
        .weight = r->weight, .loads = r->plan ? r->loads : NULL, .round_over = r->plan ? r->plan->header.guid : NULL};
    dv_plan *next;
    r->weight = (dv_plan_weight){.key = NULL};
    int result = dv_plan_step(&next, r->plan, &party, &events);
    if (result != DV_PLAN_NEXT) return result;
    snprintf(next->header.guid, sizeof next->header.guid, "%zu", ++r->step_count);
    r->rounds += owners_differ(r->plan, next);
    dv_plan_free(r->plan);
    r->plan = next;
    return DV_PLAN_NEXT;
}

int dv_rehearsal_run(dv_rehearsal *r) {
    int result;
    r->rounds = 0;
    do result = step(r);
    while (result == DV_PLAN_NEXT);
    return result == DV_PLAN_NOTHING ? 0 : result;
}

/* ---- what it comes to ---- */

static int by_key(const void *left, const void *right) {
    const dv_forecast_member *const *a = left, *const *b = right;
    if ((*a)->is_static != (*b)->is_static) return (*a)->is_static ? 1 : -1;
    return strcmp((*a)->key, (*b)->key);
}

/* Finds what each slot of a plan is among the forecast's members; `sorted` are these, by key. */
static void find_slots(const dv_forecast *f, dv_forecast_member **sorted, const dv_plan *plan, uint32_t *index_of) {
    for (size_t n = 0; n < DV_PLAN_SLOTS; n++) index_of[n] = UINT32_MAX;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_forecast_member wanted = {.is_static = plan->members[n].is_static, .key = plan->members[n].key};
        const dv_forecast_member *key = &wanted;
        dv_forecast_member **found =
            bsearch((const void *)&key, (const void *)sorted, f->member_count, sizeof key, by_key);
        if (found) index_of[plan->members[n].slot] = (uint32_t)(*found - f->members);
    }
}

static void take_owners(const dv_plan *plan, const uint32_t *index_of, uint32_t *owners) {
    for (size_t i = 0; i < plan->set->count; i++)
        owners[i] = plan->owners[i] == DV_PLAN_NO_SLOT ? UINT32_MAX : index_of[plan->owners[i]];
}

static int take_facts(dv_forecast *f, const dv_plan *plan, const uint32_t *index_of, bool after) {
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *from = &plan->members[n];
        if (index_of[from->slot] == UINT32_MAX) continue;
        dv_forecast_member *to = &f->members[index_of[from->slot]];
        *(after ? &to->weight_after : &to->weight_before) = from->weight;
        to->absent = from->absent != 0;
        if (!to->zone) to->zone = strdup(from->zone);
        if (!to->zone) return DIVVY_ENOMEM;
    }
    return 0;
}

/* Sums up the load that moves; items that nobody has told a load of have the mean. */
static void weigh_moves(dv_forecast *f, const dv_loads *loads) {
    double known = 0, sum = 0, moved = 0;
    for (size_t i = 0; i < f->item_count; i++) {
        known += loads->classes[i] != DV_CLASS_NONE;
        sum += loads->classes[i] != DV_CLASS_NONE ? dv_class_size(loads->classes[i]) : 0;
    }
    double mean = known > 0 ? sum / known : 1;
    for (size_t i = 0; i < f->item_count; i++) {
        if (f->before[i] == f->after[i] || f->before[i] == UINT32_MAX || f->after[i] == UINT32_MAX) continue;
        moved += loads->classes[i] != DV_CLASS_NONE ? dv_class_size(loads->classes[i]) : mean;
    }
    f->moved_load = mean > 0 ? moved / (mean * (double)f->item_count) : 0;
}

/* Takes what loads say: shares, and how much load moves. */
static int take_shares(dv_forecast *f, const dv_plan *plan, const uint32_t *index_of, bool after) {
    f->is_ruled = f->is_ruled || plan->header.is_balanced;
    if (!plan->loads || !plan->header.is_balanced) return 0;
    double *shares = dv_plan_shares(plan);
    if (!shares) return DIVVY_ENOMEM;
    for (size_t n = 0; n < plan->member_count; n++) {
        if (index_of[plan->members[n].slot] == UINT32_MAX) continue;
        dv_forecast_member *to = &f->members[index_of[plan->members[n].slot]];
        *(after ? &to->share_after : &to->share_before) = shares[n];
    }
    f->has_loads = true;
    free(shares);
    if (after) weigh_moves(f, plan->loads);
    return 0;
}

/* Takes what nobody may have in the end, and why not. */
static int take_unowned(dv_forecast *f, const dv_plan *plan) {
    dv_pool_rules rules;
    int error = dv_pool_rules_make(&rules, plan);
    for (size_t i = 0; !error && i < plan->set->count; i++) {
        char why[DV_RULE_BYTES];
        const char *rule = dv_pool_rules_why_nobody(&rules, i, why);
        if (!rule || strcmp(rule, "paused") == 0) continue;
        if (f->unowned++ == 0 && !(f->unowned_why = strdup(why))) error = DIVVY_ENOMEM;
    }
    dv_pool_rules_clear(&rules);
    return error;
}

int dv_rehearsal_tell(dv_forecast *f, const dv_plan *before, const dv_plan *after) {
    uint32_t index_of[DV_PLAN_SLOTS];
    dv_forecast_member **sorted = (dv_forecast_member **)calloc(f->member_count + 1, sizeof *sorted);
    if (!sorted) return DIVVY_ENOMEM;
    for (size_t m = 0; m < f->member_count; m++) sorted[m] = &f->members[m];
    if (f->member_count) qsort((void *)sorted, f->member_count, sizeof *sorted, by_key);
    find_slots(f, sorted, before, index_of);
    take_owners(before, index_of, f->before);
    int error = take_facts(f, before, index_of, false);
    if (!error) error = take_shares(f, before, index_of, false);
    find_slots(f, sorted, after, index_of);
    take_owners(after, index_of, f->after);
    if (!error) error = take_facts(f, after, index_of, true);
    if (!error) error = take_shares(f, after, index_of, true);
    if (!error) error = take_unowned(f, after);
    free((void *)sorted);
    return error;
}
