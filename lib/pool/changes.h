/* Changes: the items that have another owner by one plan than by another. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CHANGES_H
#define DV_CHANGES_H

#include "plan/text.h"

typedef struct {
    size_t item;                     /* by its place in the set of `after` */
    const dv_plan_member *from, *to; /* NULL: nobody */
} dv_change;

/* Lists them, in the order of the items; items of both plans only. malloc'ed; NULL: an allocation failed. */
dv_change *dv_changes_list(const dv_plan *before, const dv_plan *after, size_t *count);
/* Counts them. */
size_t dv_changes_count(const dv_plan *before, const dv_plan *after);

#endif
