/* The rules of a pool, as divvy serve remembers them: loads, tags, caps, operators' wishes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_RULES_H
#define DV_SERVE_RULES_H

#include "serve_pool.h"

/* Takes over what the rules say of the plan's item of that number. 0 or DIVVY_ENOMEM. */
int dv_serve_rules_item(dv_serve_item *item, const dv_pool_rules *rules, size_t number);
/* Takes over that they say nothing of an item. */
void dv_serve_rules_forget(dv_serve_item *item);
/* Takes over share, tags and cap of a member. `entry` NULL: the plan does not have it. 0 or DIVVY_ENOMEM. */
int dv_serve_rules_member(dv_serve_member *member, const dv_pool_rules *rules, const dv_plan_member *entry);

#endif
