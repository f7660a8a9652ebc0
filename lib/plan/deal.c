/* The sticky assignment, from a plan to the same plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D18. */
#include "plan/deal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/assign.h"
#include "divvy/error.h"

/* The members and the items of one deal. */
typedef struct {
    divvy_member *members;
    uint32_t *slots; /* of the members */
    size_t member_count;
    const char **items;
    uint32_t *places; /* of the items, among the plan's */
    uint32_t *owners; /* of the items: indices of members */
    size_t item_count;
} table;

static void table_free(table *t) {
    free(t->members);
    free(t->slots);
    free((void *)t->items);
    free(t->places);
    free(t->owners);
}

static bool takes_part(const dv_plan_member *m, bool absent_too) {
    return m->leaving[0] == '\0' && (absent_too || m->absent == 0);
}

/* All who take part, and the items that nobody else has. */
static bool table_lay(table *t, const dv_plan *plan, bool absent_too) {
    enum { OUTSIDE = UINT32_MAX - 1 };
    uint32_t index_of[DV_PLAN_SLOTS];
    size_t members = plan->member_count + 1, items = plan->set->count + 1;
    *t = (table){.members = calloc(members, sizeof *t->members),
                 .slots = calloc(members, sizeof *t->slots),
                 .items = (const char **)calloc(items, sizeof *t->items),
                 .places = calloc(items, sizeof *t->places),
                 .owners = calloc(items, sizeof *t->owners)};
    if (!t->members || !t->slots || !t->items || !t->places || !t->owners) return false;
    for (size_t n = 0; n < DV_PLAN_SLOTS; n++) index_of[n] = OUTSIDE;
    for (size_t n = 0; n < plan->member_count; n++) {
        const dv_plan_member *m = &plan->members[n];
        if (!takes_part(m, absent_too)) continue;
        index_of[m->slot] = (uint32_t)t->member_count;
        t->slots[t->member_count] = m->slot;
        t->members[t->member_count++] = (divvy_member){m->key, m->weight, m->zone};
    }
    for (size_t i = 0; i < plan->set->count; i++) {
        uint32_t slot = plan->owners[i];
        uint32_t owner = slot == DV_PLAN_NO_SLOT ? UINT32_MAX : index_of[slot];
        if (owner == OUTSIDE) continue;
        t->items[t->item_count] = plan->set->names[i];
        t->places[t->item_count] = (uint32_t)i;
        t->owners[t->item_count++] = owner;
    }
    return true;
}

static int table_assign(table *t, uint32_t max_moves, bool keep_all) {
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    options.max_moves = max_moves;
    options.spread_zones = 1;
    options.keep_all = keep_all;
    int error =
        divvy_assign_sticky(t->members, t->member_count, t->items, t->item_count, t->owners, &options, t->owners);
    assert(error == 0 || error == DIVVY_ENOMEM);
    return error;
}

/* D19: lists in the plan the items that are about to get another owner. */
static int list_moved(const table *t, dv_plan *plan) {
    uint32_t *moved = malloc(DV_PLAN_MOVED_MAX * sizeof *moved);
    if (moved == NULL) return DIVVY_ENOMEM;
    free(plan->moved);
    plan->moved = moved;
    assert(plan->moved_count == 0);
    for (size_t n = 0; n < t->item_count && plan->moved_count < DV_PLAN_MOVED_MAX; n++) {
        uint32_t before = plan->owners[t->places[n]];
        if (before != DV_PLAN_NO_SLOT && before != t->slots[t->owners[n]]) moved[plan->moved_count++] = t->places[n];
    }
    return 0;
}

static bool table_differs(const table *t, const dv_plan *plan) {
    for (size_t n = 0; n < t->item_count; n++) {
        if (t->slots[t->owners[n]] != plan->owners[t->places[n]]) return true;
    }
    return false;
}

/* Returns in *balanced whether no item would move if the absent members were here. Then restarting one member after
 * the other moves nothing, whatever the weights. Without the absent member the shares of the others may round
 * otherwise. */
static int balanced_with_absent(const dv_plan *plan, bool *balanced) {
    table t;
    int error = table_lay(&t, plan, true) ? table_assign(&t, 0, false) : DIVVY_ENOMEM;
    *balanced = error == 0 && !table_differs(&t, plan);
    table_free(&t);
    return error;
}

int dv_plan_deal(dv_plan *plan) {
    uint32_t max_moves = plan->header.options.max_moves;
    bool is_open = plan->moved_count > 0;
    size_t taking_part = 0, absent = 0;
    for (size_t m = 0; m < plan->member_count; m++) {
        taking_part += takes_part(&plan->members[m], false);
        absent += plan->members[m].absent != 0;
    }
    if (taking_part == 0) return 0; /* what has no owner waits */
    if (absent > 0) {
        bool balanced;
        int error = balanced_with_absent(plan, &balanced);
        if (error != 0 || balanced) return error;
    }
    table t;
    int error = table_lay(&t, plan, false) ? table_assign(&t, max_moves, is_open) : DIVVY_ENOMEM;
    if (error == 0 && !is_open && max_moves > 0) error = list_moved(&t, plan);
    for (size_t n = 0; error == 0 && n < t.item_count; n++) plan->owners[t.places[n]] = t.slots[t.owners[n]];
    table_free(&t);
    return error;
}
