/* The findings at P/plan of an attempt to write. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D25 and D26. */
#include "plan/found.h"

#include <assert.h>
#include <string.h>

#include "divvy/error.h"

/* Looks into a root that cannot be followed: it may tell at least its epoch and its generation. */
static int look_into_root(dv_plan_found *found, const dv_reply *reply) {
    dv_plan_root root;
    int error = dv_plan_root_parse(&root, reply->data, reply->data_bytes, NULL);
    if (error != 0) return error == DIVVY_ENOMEM ? error : 0;
    memcpy(found->epoch, root.header.epoch, sizeof found->epoch);
    found->generation = root.header.generation;
    dv_plan_root_clear(&root);
    return 0;
}

int dv_plan_found_take(dv_plan_found *found, const dv_plan_memory *memory, const dv_reply *reply) {
    *found = (dv_plan_found){.has_root = reply->error == 0};
    if (!found->has_root) return 0;
    found->root_mzxid = reply->stat->mzxid;
    found->root_version = reply->stat->version;
    return memory->standing == DV_PLAN_GOOD ? 0 : look_into_root(found, reply);
}

bool dv_plan_found_is_remembered(const dv_plan_found *found, const dv_plan_memory *memory) {
    if (memory->standing == DV_PLAN_UNREAD) return false;
    if (!found->has_root) return memory->standing == DV_PLAN_MISSING && memory->mzxid == 0;
    return memory->mzxid == found->root_mzxid && memory->version == found->root_version;
}

const char *dv_plan_found_epoch(const dv_plan_found *found, const dv_plan_memory *memory) {
    assert(found->has_root);
    return memory->standing == DV_PLAN_GOOD ? memory->root.header.epoch : found->epoch;
}

uint64_t dv_plan_found_next_generation(const dv_plan_found *found, uint64_t generation) {
    if (found->generation >= generation) generation = found->generation + 1;
    if (generation > DV_PLAN_INTEGER_MAX) generation = 1;
    assert(generation > found->generation || generation == 1);
    return generation;
}
