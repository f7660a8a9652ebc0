/* The texts of a plan that is to be written: its root, and the chunks that go before. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, D7 and D28. Pure: no I/O, no clock. */
#ifndef DV_PLAN_DRAFT_H
#define DV_PLAN_DRAFT_H

#include "plan/text.h"

/* A chunk to be made; both are the draft's. */
typedef struct {
    const char *name, *bytes;
    size_t count;
} dv_plan_draft_chunk;

enum { DV_PLAN_DRAFT_TEXTS = 2 };

typedef struct {
    dv_plan_root root; /* what the memory keeps once it is written */
    dv_plan_text text; /* the root's */
    dv_plan_draft_chunk *chunks;
    size_t chunk_count;
    dv_plan_text texts[DV_PLAN_DRAFT_TEXTS]; /* which the chunks are cut from */
} dv_plan_draft;

/* `plan` has its guid and its epoch. `from` is the plan that it replaces, `from_root` the root of that: what they have
 * in common is not written again. Both NULL: there is none to build upon. 0; DIVVY_ENOMEM; or DIVVY_E2BIG: more than a
 * root or a part of it may have. */
int dv_plan_draft_make(dv_plan_draft *out, const dv_plan *plan, const dv_plan *from, const dv_plan_root *from_root);
/* Without chunks, however long it is. */
int dv_plan_draft_make_inline(dv_plan_draft *out, const dv_plan *plan);
void dv_plan_draft_clear(dv_plan_draft *draft);

/* How many chunks a root names, and all of them, sorted by name; Returns NULL when an allocation fails. The caller
 * frees it; the names are the root's. */
size_t dv_plan_root_chunk_count(const dv_plan_root *root);
const char **dv_plan_root_chunk_names(const dv_plan_root *root);

#endif
