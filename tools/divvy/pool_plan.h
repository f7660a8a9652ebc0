/* A pool's plan, for subcommands that show it. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_POOL_PLAN_H
#define DV_POOL_PLAN_H

#include "look.h"
#include "plan/memory.h"
#include "plan/reader.h"
#include "plan/roster.h"

typedef struct {
    dv_look *look;
    char *path; /* P/plan, at the servers */
    dv_plan_memory memory;
    dv_plan_reader *reader;
    bool read;
    int read_error;
} dv_pool_plan;

/* `path` is P, as it was given. 0 or DIVVY_ENOMEM. */
int dv_pool_plan_init(dv_pool_plan *plan, dv_look *look, const char *path);
/* After dv_look_close(). */
void dv_pool_plan_free(dv_pool_plan *plan);

/* plan->memory becomes what stands there now. 0, or an error. Only inside of the `ask` of dv_look_at(). */
int dv_pool_plan_read(dv_pool_plan *plan);

#endif
