/* The sticky assignment, from a plan to the same plan. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_DEAL_H
#define DV_PLAN_DEAL_H

#include "plan/text.h"

/* Gives the items of a plan new owners where it must (docs/protocol.md, D18). `keep_all`: only items that have none.
 * 0 or DIVVY_ENOMEM. */
int dv_plan_deal(dv_plan *plan, bool keep_all);

#endif
