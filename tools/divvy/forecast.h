/* A forecast of the items that a change of members would move. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_FORECAST_H
#define DV_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "item_list.h"

typedef struct {
    size_t before, after; /* items */
    size_t gains, loses;
} dv_forecast_load;

typedef struct {
    const char *assign; /* by which rule */
    const dv_item_list *items;
    divvy_member *members; /* all that there ever are: those that leave, those that stay, those that join */
    size_t member_count;
    size_t leave_count, join_count;
    uint32_t *before, *after; /* for each item: who of `members` owns it */
    dv_forecast_load *loads;  /* for each member */
    size_t moves;             /* items that change owner */
    size_t floor;             /* how many have to, whatever the rule, for loads that differ by one at most */
} dv_forecast;

static inline bool dv_forecast_leaves(const dv_forecast *plan, size_t member) {
    return member < plan->leave_count;
}
static inline bool dv_forecast_joins(const dv_forecast *plan, size_t member) {
    return member >= plan->member_count - plan->join_count;
}

/* For people, and as one JSON object on one line; with each item that moves where `list`. Text to free(), NULL when an
 * allocation fails. */
char *dv_forecast_print(const dv_forecast *plan, bool list);
char *dv_forecast_json(const dv_forecast *plan, bool list);

#endif
