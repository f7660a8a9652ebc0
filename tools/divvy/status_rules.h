/* The rules of a pool, as commands show them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_STATUS_RULES_H
#define DV_STATUS_RULES_H

#include <stdio.h>

#include "status_pool.h"
#include "table_json.h"

/* Returns whether loads, wishes, tags and caps are in force. */
bool dv_status_rules_hold(const dv_status *status);
/* Writes for what they wait: "the member m3 is of an earlier release". Returns whether they do; not where there are
 * none. *member (may be NULL) becomes that member, or NULL. */
bool dv_status_rules_wait(const dv_status *status, const dv_status_member **member, char out[DV_RULE_BYTES]);

/* Writes what an operator asked for an item, or else why the plan gives it to nobody. Returns a word for it, as
 * dv_pool_rules_why_nobody() and _why_there() do, or NULL: there is nothing to say. */
const char *dv_status_rules_why(const dv_status *status, const char *item, char out[DV_RULE_BYTES]);

/* Returns whether nobody holds an item, and a pause that is in force is why. */
bool dv_status_rules_is_paused(const dv_status *status, const dv_status_item *item);

/* Prints a line for each thing that an operator should know: what waits, and what cannot be done. */
void dv_status_rules_print(const dv_status *status, FILE *to);

/* Add to the plan's object, and to that of one of its members, what there is. Return whether there was memory. */
bool dv_status_rules_json(cJSON *plan, const dv_status *status);
bool dv_status_rules_json_member(cJSON *member, const dv_status *status, const dv_status_entry *entry);

#endif
