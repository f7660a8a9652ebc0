/* A rehearsal of plans: what the members of a pool would make of a change. SPDX-License-Identifier: Apache-2.0
 *
 * By dv_plan_step() alone. Pure: no I/O, no clock. */
#ifndef DV_REHEARSAL_H
#define DV_REHEARSAL_H

#include "forecast.h"
#include "plan/loads.h"
#include "plan/step.h"

typedef struct {
    dv_plan *plan; /* as it stands; NULL: none yet, and then the next two are those of the first one */
    dv_plan_set *set;
    dv_plan_options options;
    dv_plan_node *nodes; /* the party; their texts are ours */
    size_t node_count, node_room;
    dv_loads *loads;       /* that members tell of the items of the plan, in each step; NULL: nothing */
    dv_plan_weight weight; /* that the next step gives; key NULL: none */
    int64_t pzxid;         /* of the party for which the plan was made */
    size_t step_count;     /* that were made */
    size_t rounds;         /* of the last run: steps in which items get another owner */
} dv_rehearsal;

void dv_rehearsal_free(dv_rehearsal *rehearsal);
/* A node comes into the party; its texts are copied. 0 or DIVVY_ENOMEM. */
int dv_rehearsal_add(dv_rehearsal *rehearsal, const dv_plan_node *node);
/* A member of the plan leaves, in good order, with all its nodes. 0 or DIVVY_ENOMEM. */
int dv_rehearsal_leave(dv_rehearsal *rehearsal, bool is_static, const char *key);
/* A member of the plan has another weight. The key lives until the next run is over. */
void dv_rehearsal_weigh(dv_rehearsal *rehearsal, bool is_static, const char *key, uint32_t weight);
/* One step for all that is new, then one for each further round, until nothing is left to do. 0, DIVVY_ENOMEM, or
 * DIVVY_ELIMIT: more members than a plan can have. */
int dv_rehearsal_run(dv_rehearsal *rehearsal);

/* Fills in who owns what by two plans, the weights, zones and shares of forecast->members, whose keys are set, and what
 * has no owner in the end. 0 or DIVVY_ENOMEM. */
int dv_rehearsal_tell(dv_forecast *forecast, const dv_plan *before, const dv_plan *after);

#endif
