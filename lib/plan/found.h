/* The findings at P/plan of an attempt to write. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D25 and D26. Pure: no I/O, no clock. */
#ifndef DV_PLAN_FOUND_H
#define DV_PLAN_FOUND_H

#include "plan/memory.h"
#include "znode/znode.h"

typedef struct {
    bool has_root;
    int64_t root_mzxid;
    int32_t root_version;
    char epoch[DV_GUID_BYTES]; /* what a root that is not good says; "": nothing */
    uint64_t generation;
} dv_plan_found;

/* Takes the answer to a get of the root. Returns 0 or DIVVY_ENOMEM. */
int dv_plan_found_take(dv_plan_found *found, const dv_plan_memory *memory, const dv_reply *reply);
/* Returns whether that root is the one that the memory knows of. */
bool dv_plan_found_is_remembered(const dv_plan_found *found, const dv_plan_memory *memory);
/* Returns the epoch of the root that is there; "": it does not tell. */
const char *dv_plan_found_epoch(const dv_plan_found *found, const dv_plan_memory *memory);
/* Returns that generation, or the next above the root that is there. */
uint64_t dv_plan_found_next_generation(const dv_plan_found *found, uint64_t generation);

#endif
