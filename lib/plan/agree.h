/* The configuration that all live members carry, where they agree. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D16 and D17: a plan takes up the options and the items that all live members carry. */
#ifndef DV_PLAN_AGREE_H
#define DV_PLAN_AGREE_H

#include "plan/step.h"

/* Returns whether all live nodes carry this tag of a set. */
bool dv_plan_all_carry(const dv_plan_party *party, uint32_t tag);
/* Takes over the options that all live nodes carry. Where they differ, or one does not say, *options stay. */
void dv_plan_agree_options(const dv_plan_party *party, dv_plan_options *options);
bool dv_plan_options_equal(const dv_plan_options *a, const dv_plan_options *b);

/* Returns since when the plan deals items that somebody asked for, instead of the adopted tag's: a party's pzxid, or
 * 0. */
int64_t dv_plan_asked_at(const dv_plan *plan, const dv_plan_party *party);
/* Returns whether nodes have to be read to know whether all members came after the items were requested. Marks those
 * in `asks`, where it is not NULL. */
bool dv_plan_agree_asks(const dv_plan *plan, const dv_plan_party *party, bool *asks);
/* Returns whether all live members carry the adopted tag, and came after other items were asked for. */
bool dv_plan_returns_to_tag(const dv_plan *plan, const dv_plan_party *party);

/* Returns whether names alone say that there is something to take up. */
bool dv_plan_agree_differs(const dv_plan *plan, const dv_plan_party *party);

#endif
