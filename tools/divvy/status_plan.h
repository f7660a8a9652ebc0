/* A pool's plan, as far as it tells of members more than their nodes do. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_STATUS_PLAN_H
#define DV_STATUS_PLAN_H

#include <stdio.h>

#include "status_pool.h"
#include "table_json.h"

/* Fills in status->entries and the plan of each member, from status->plan. 0 or DIVVY_ENOMEM. */
int dv_status_plan_match(dv_status *status);
void dv_status_plan_clear(dv_status *status);

/* The plan as it was read, or NULL: there is none, or none that can be followed. Good until the pool is read again. */
const dv_plan *dv_status_plan(const dv_status *status);
/* Returns the member that the plan gives an item to; NULL: none, or it has no such item. */
const dv_plan_member *dv_status_plan_owner(const dv_plan *plan, const char *item);
/* Returns one word: "drained", "absent" (its place is kept), "gone" (the next plan is without it), "leaving", "left"
 * (likewise gone, in good order), "fenced", "new" (the plan does not have it yet), or "". `entry` or `member` may be
 * NULL. */
const char *dv_status_plan_state(const dv_plan_member *entry, const dv_status_member *member);
/* Writes that for people, with what the member still has to release, and for how long an absent one's items wait. */
void dv_status_plan_describe(const dv_status_entry *entry, const dv_status_member *member, char *out, size_t bytes);
/* Returns whether it has left in good order, and nothing is its: the plan names it until the next one. */
bool dv_status_plan_has_left(const dv_status_entry *entry);
/* Returns whether a page has a line for this entry besides those of the live members. */
bool dv_status_plan_shows(const dv_status *status, const dv_status_entry *entry);
/* "plan 18, join: 2 items on their way, 1 drained"; nothing where there is no plan. */
void dv_status_plan_print(const dv_status *status, FILE *to);
/* Adds "plan": an object or null. Returns whether there was memory for it. */
bool dv_status_plan_json(cJSON *json, const dv_status *status);

#endif
