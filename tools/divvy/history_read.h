/* The history of a pool's plan, as it stands. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HISTORY_READ_H
#define DV_HISTORY_READ_H

#include "plan/deaths.h"
#include "pool_plan.h"

typedef struct {
    const char *path; /* of the pool */
    dv_pool_plan *plan;
    bool found; /* there is a pool */
    dv_plan_history told;
    bool unreadable;    /* what stands there is no history */
    bool ends_with_it;  /* the newest change that is told is the plan's */
    int64_t planned_ms; /* when the plan was written, by the servers' clock */
    bool under_way;     /* a note says that items of the plan are still on their way */
    int64_t took_ms;    /* the plan, by all notes; -1: nothing was handed over, or not everything yet */
    dv_plan_deaths deaths;
    int64_t read_at_ms;
} dv_pool_history;

/* For dv_look_at(): fills in all but `path` and `plan` of the dv_pool_history at `context`. */
int dv_pool_history_read(dv_look *look, void *context);
/* Returns the plan, or NULL: there is none that can be followed. */
const dv_plan *dv_pool_history_plan(const dv_pool_history *h);

#endif
