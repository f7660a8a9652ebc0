/* The texts of a plan that is to be written: its root, and the chunks that go before. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, D7 and D28. Pure: no I/O, no clock. */
#ifndef DV_PLAN_DRAFT_H
#define DV_PLAN_DRAFT_H

#include "plan/text.h"
#include "znode/znode.h"

/* A chunk to be made; both are the draft's. */
typedef struct {
    char *path;
    const char *bytes;
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

/* Drafts a plan that has its guid and its epoch. `path` is that of the root. `from` is the plan that it replaces, and
 * `from_root` its root: what they have in common is not written again. Both NULL: there is none to build upon. `sizes`
 * NULL: those of text.h. Returns 0; DIVVY_ENOMEM; or DIVVY_E2BIG: more than a root or a part of it may have. */
int dv_plan_draft_make(dv_plan_draft *out, const char *path, const dv_plan *plan, const dv_plan *from,
                       const dv_plan_root *from_root, const dv_plan_sizes *sizes);
/* Drafts a root of generation 0, which only holds the place of the plan that has the header (D28). */
int dv_plan_draft_make_place(dv_plan_draft *out, const dv_plan_header *header, const char *guid);
void dv_plan_draft_clear(dv_plan_draft *draft);

/* D27: where the root stands, its epoch, and what is written there. They live as long as the ops. */
typedef struct {
    const char *path, *epoch_path;
    const dv_plan_text *text;
    const dv_plan_text *past; /* the history, which is the epoch's data (D44); NULL: it stays as it is */
} dv_plan_commit;

enum { DV_PLAN_COMMIT_OPS_MAX = 3 };

/* The multi that makes root and epoch, or that sets the root at its version. Returns how many ops it has. */
size_t dv_plan_commit_create(dv_op *ops, const dv_plan_commit *commit);
size_t dv_plan_commit_set(dv_op *ops, const dv_plan_commit *commit, int32_t version);

/* Returns how many chunks a root names; and all of them, sorted by name. The names are the root's; the caller frees
 * the array. Returns NULL when an allocation fails. */
size_t dv_plan_root_chunk_count(const dv_plan_root *root);
const char **dv_plan_root_chunk_names(const dv_plan_root *root);

#endif
