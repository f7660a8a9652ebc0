/* The members and items of a plan as a deal takes them. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D18, D48, D49. Pure: no I/O, no clock. */
#ifndef DV_PLAN_TABLE_H
#define DV_PLAN_TABLE_H

#include "assign/balance.h"
#include "divvy/assign.h"
#include "plan/loads.h"
#include "plan/text.h"
#include "plan/wish.h"

/* The members and the items of one deal. */
typedef struct {
    divvy_member *members;
    uint32_t *slots; /* of the members */
    size_t member_count;
    const char **items;
    uint32_t *places; /* of the items, among the plan's */
    uint32_t *owners; /* of the items: indices of members; UINT32_MAX: nobody */
    size_t item_count;
} dv_plan_table;

/* Lays out all who take part, absent members too if `absent_too`, and the items that nobody else has. `holds`, by item
 * (NULL: nothing is held), leaves out what is paused, and with `without_pinned` what is pinned. Returns false when an
 * allocation fails; the table is to be freed then too. */
bool dv_plan_table_lay(dv_plan_table *t, const dv_plan *plan, bool absent_too, const uint8_t *holds,
                       bool without_pinned);
void dv_plan_table_free(dv_plan_table *t);
/* Returns the identifier of a member, which is in its key. */
const char *dv_plan_identifier(const dv_plan_member *member);
/* Returns the slot of an item's owner by the table, or DV_PLAN_NO_SLOT. */
uint32_t dv_plan_table_owner(const dv_plan_table *t, size_t item);
/* Returns whether an item's owner is another than the plan's. */
bool dv_plan_table_differs(const dv_plan_table *t, const dv_plan *plan);

/* The same with tags, caps and sizes. */
typedef struct {
    dv_balance_member *members;
    dv_balance_item *items;
    const char **tags; /* that items need, each once; the texts are the plan's */
    size_t tag_count;
    bool *has; /* by member, then by tag */
} dv_plan_balance;

/* Returns false when an allocation fails; it is to be freed then too. */
bool dv_plan_balance_lay(dv_plan_balance *b, const dv_plan_table *t, const dv_plan *plan, const uint8_t *holds);
void dv_plan_balance_free(dv_plan_balance *b);

/* Returns each member's load as a part of its fair share, by place in the plan: 1.0 is even; 0 for those that do not
 * take part. The caller frees it. NULL: an allocation failed. */
double *dv_plan_shares(const dv_plan *plan);

#endif
