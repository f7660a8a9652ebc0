/* Whom an errand is about: the member that an operator names. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_WHOM_H
#define DV_WHOM_H

#include "pool/errand.h"

/* Finds the member that a name means, by its identifier or by its key, and notes it in the result. Where it is in the
 * party and not yet in the plan, the errand waits. It refuses where there are several, and, if it `must` be there,
 * where there is none. Returns 0 or DIVVY_ENOMEM. */
int dv_whom_find(dv_errand *errand, const char *name, bool must);
/* Returns its entry in the plan in memory; NULL: it has none. */
const dv_plan_member *dv_whom_member(const dv_errand *errand);
/* Returns how many items it has by a plan, and how many any member has. */
size_t dv_whom_load(const dv_errand *errand, const dv_plan *plan);
size_t dv_whom_load_of(const dv_plan *plan, bool is_static, const char *key);
/* Returns whether no member but this one weighs more than 0 and is there: then nobody can take its items. */
bool dv_whom_is_last(const dv_plan *plan, bool is_static, const char *key);

/* Writes the identifiers of a plan's members, sorted, as many as there is room for: "a, b, c". */
void dv_whom_list(const dv_plan *plan, char *text, size_t bytes);
/* Returns the identifier of a plan's member, which is a part of a dynamic one's key. */
const char *dv_whom_identifier(const dv_plan_member *member);

#endif
