/* The plan that is to be written next, from what is remembered of P/plan. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_COMPOSE_H
#define DV_PLAN_COMPOSE_H

#include "plan/memory.h"
#include "plan/step.h"

/* docs/protocol.md, D26. Returns as dv_plan_step(). The root that stands there is the one that the memory knows of. */
int dv_plan_compose(dv_plan **next, const dv_plan_memory *memory, const dv_plan_party *party,
                    const dv_plan_events *events);

#endif
