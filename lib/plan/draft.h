/* The root and the chunks of a plan to be written. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D7 and D28. Pure: no I/O, no clock. */
#ifndef DV_PLAN_DRAFT_H
#define DV_PLAN_DRAFT_H

#include "plan/text.h"

/* A part that is made of new chunks. */
typedef struct {
    const dv_plan_part *part; /* of the draft's root */
    dv_plan_text text;
} dv_plan_draft_part;

enum { DV_PLAN_DRAFT_PARTS = 5 };

typedef struct {
    dv_plan_root root; /* what the memory keeps once it is written */
    dv_plan_text text; /* the root's */
    dv_plan_draft_part parts[DV_PLAN_DRAFT_PARTS];
    size_t part_count, chunk_count;
} dv_plan_draft;

/* A chunk to be made; both are the draft's. */
typedef struct {
    const char *name, *bytes;
    size_t count;
} dv_plan_draft_chunk;

/* Drafts a plan that has its guid and epoch. It builds upon `from`, the plan that it replaces, and its root; both NULL:
 * upon none. `sizes` NULL: those of text.h. Returns 0; DIVVY_ENOMEM; or DIVVY_E2BIG, above the limits of D9. */
int dv_plan_draft_make(dv_plan_draft *out, const dv_plan *plan, const dv_plan *from, const dv_plan_root *from_root,
                       const dv_plan_sizes *sizes);
dv_plan_draft_chunk dv_plan_draft_chunk_at(const dv_plan_draft *draft, size_t n);
/* D28: prints a root of generation 0, in the place of the plan with that header. Returns 0 or DIVVY_ENOMEM. */
int dv_plan_draft_place(dv_plan_text *out, const dv_plan_header *header, const char *guid);
void dv_plan_draft_clear(dv_plan_draft *draft);

/* Returns how many chunks a root names; and all of them, sorted by name. The names are the root's; the caller frees
 * the array. Returns NULL when an allocation fails. */
size_t dv_plan_root_chunk_count(const dv_plan_root *root);
const char **dv_plan_root_chunk_names(const dv_plan_root *root);

#endif
