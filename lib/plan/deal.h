/* The sticky assignment, from a plan to the same plan. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_DEAL_H
#define DV_PLAN_DEAL_H

#include "plan/text.h"

/* Gives the items of a plan new owners where it must (docs/protocol.md, D18, D19): while it lists moved items, only
 * those that have none. Returns 0 or DIVVY_ENOMEM. */
int dv_plan_deal(dv_plan *plan);

#endif
