/* divvy plan: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_CALL_H
#define DV_PLAN_CALL_H

#include "forecast.h"
#include "item_list.h"
#include "look.h"
#include "plan/tags.h"

enum { DV_PLAN_CALL_MEMBERS_MAX = 10000 };

/* A weight that a member is to have: by --drain, --weight. */
typedef struct {
    const char *option; /* without the dashes */
    char *member;
    uint32_t weight;
} dv_plan_wish;

/* The call, as its options say. */
typedef struct {
    dv_look_options look;
    const char *path, *zone;
    int64_t members, join; /* members 0: not given */
    int64_t leave_count;   /* without --path, what --leave says */
    int64_t max_moves;     /* below 0: not given */
    dv_texts leave, drains, weights;
    const char *tags; /* of those that join */
    int64_t cap;      /* likewise; 0: none */
    const char *loads_from;
    const char *items_from;
    dv_texts items;
    int assign;      /* DV_BY_* */
    int items_order; /* DIVVY_ORDER_*; below 0: not given */
    int json, verbose;

    char tags_made[DV_TAGS_BYTES]; /* `tags`, sorted */
    dv_item_list list;
    double *loads; /* of these items; below 0: not said. NULL: none */
    dv_plan_wish *wishes;
    size_t wish_count;
} dv_plan_call;

enum { DV_BY_PLAN, DV_BY_RENDEZVOUS, DV_BY_ROUND_ROBIN, DV_BY_STICKY, DV_BY_RULES };

/* Each fills in what the forecast tells, and returns 0, or the exit code when it was told why not. */

/* Reads loads of the items from a file, "-" being stdin. *loads is malloc'ed. Returns 0, or the exit code when it was
 * told on stderr what is wrong. */
int dv_plan_loads_read(double **loads, const char *path, const dv_item_list *items);

/* For members that are made up. */
int dv_plan_model(const dv_plan_call *call, dv_forecast *forecast);

/* A live pool, as it was read. It is kept until the forecast was printed, whose items are its. */
typedef struct dv_plan_pool dv_plan_pool;

int dv_plan_pool_forecast(const dv_plan_call *call, dv_plan_pool **pool, dv_forecast *forecast);
void dv_plan_pool_free(dv_plan_pool *pool);

#endif
