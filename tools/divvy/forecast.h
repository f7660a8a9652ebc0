/* A forecast of the items that a change of members would move. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_FORECAST_H
#define DV_FORECAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *name;     /* what it is called */
    bool is_static; /* its key in the plan, where there is one */
    char *key;
    char *zone;
    uint32_t weight_before, weight_after;
    double share_before, share_after; /* of the load, by its fair share; only where there are loads */
    bool leaves, joins, absent;
    size_t before, after; /* items */
    size_t gains, loses;
} dv_forecast_member;

typedef struct {
    const char *assign;          /* by which rule */
    const char *path;            /* of the pool; NULL: of none */
    uint64_t generation;         /* of its plan */
    bool unsettled;              /* that is still being carried out, or does not have all of the party yet */
    const char *const *items;    /* sorted bytewise */
    dv_forecast_member *members; /* all that there ever are */
    uint32_t *before, *after;    /* for each item: who of `members` owns it; UINT32_MAX: nobody */
    size_t member_count, item_count;
    uint32_t max_moves; /* at a time; 0: no limit */
    size_t rounds;      /* in which it comes about */

    bool is_ruled;     /* loads, wishes, tags or caps have a say: then nobody knows the floor */
    bool has_loads;    /* the deal is by load, and so are the balances */
    double moved_load; /* of all, from 0 to 1 */
    size_t unowned;    /* items that no member may have in the end, but for paused ones */
    char *unowned_why; /* the first of them */

    size_t moves; /* items that change owner */
    size_t given; /* items that had no owner, and get one */
    size_t floor; /* how many have to, for loads that follow the weights */
    double balance_before,
        balance_after; /* the most that a member has, of its share by weight; 0: nobody has a share */
} dv_forecast;

/* Makes room for so many. 0 or DIVVY_ENOMEM; dv_forecast_free() in each case. */
int dv_forecast_init(dv_forecast *forecast, size_t member_count, const char *const *items, size_t item_count);
void dv_forecast_free(dv_forecast *forecast);

/* Computes all that follows from who owned what and owns it: loads, moves, floor and balance. 0 or DIVVY_ENOMEM. */
int dv_forecast_count(dv_forecast *forecast);

/* For people, and as one JSON object on one line; with each item that moves where `list`. Text to free(), NULL when an
 * allocation fails. */
char *dv_forecast_print(const dv_forecast *forecast, bool list);
char *dv_forecast_json(const dv_forecast *forecast, bool list);

#endif
