/* What a change of members would move. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_PRINT_H
#define DV_PLAN_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "item_list.h"

typedef struct {
    size_t before, after; /* items */
    size_t gains, loses;
} dv_plan_load;

typedef struct {
    const char *assign; /* by which rule */
    const dv_item_list *items;
    divvy_member *members; /* all that there ever are: those that leave, those that stay, those that join */
    size_t member_count;
    size_t leave_count, join_count;
    uint32_t *before, *after; /* for each item: who of `members` owns it */
    dv_plan_load *loads;      /* for each member */
    size_t moves;             /* items that change owner */
    size_t floor;             /* how many have to, whatever the rule, for loads that differ by one at most */
} dv_plan;

static inline bool dv_plan_leaves(const dv_plan *plan, size_t member) {
    return member < plan->leave_count;
}
static inline bool dv_plan_joins(const dv_plan *plan, size_t member) {
    return member >= plan->member_count - plan->join_count;
}

/* For people, and as one JSON object on one line; with each item that moves where `list`. Text to free(), NULL when
 * memory is out. */
char *dv_plan_print(const dv_plan *plan, bool list);
char *dv_plan_json(const dv_plan *plan, bool list);

#endif
