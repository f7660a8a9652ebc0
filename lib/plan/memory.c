/* A process's memory of P/plan. SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/padded.h"
#include "divvy/error.h"
#include "plan/draft.h"
#include "plan/history.h"

bool dv_plan_memory_passed(const dv_plan_memory *memory, int64_t mzxid) {
    return mzxid < memory->newest_mzxid;
}

void dv_plan_memory_stand(dv_plan_memory *memory, dv_plan_standing standing, int64_t mzxid, int32_t version) {
    assert(standing != DV_PLAN_GOOD || memory->plan != NULL);
    memory->standing = standing;
    memory->mzxid = mzxid;
    memory->version = version;
    memory->lacks_nodes = false;
    if (mzxid > memory->newest_mzxid) memory->newest_mzxid = mzxid;
}

/* Nobody but a stranger deletes what the newest root names (D30). */
bool dv_plan_memory_count_nodes(dv_plan_memory *memory, int32_t children) {
    const dv_plan_root *root = &memory->root;
    assert(memory->standing == DV_PLAN_GOOD);
    size_t named = dv_plan_root_chunk_count(root) + (root->header.epoch[0] != '\0');
    bool lacked = memory->lacks_nodes;
    memory->lacks_nodes = children >= 0 && (size_t)children < named;
    return memory->lacks_nodes && !lacked;
}

bool dv_plan_memory_is_whole(const dv_plan_memory *memory) {
    return memory->standing == DV_PLAN_GOOD && !memory->lacks_nodes;
}

/* ---- the plan before ---- */

static size_t count_formers(const dv_plan *before, const dv_plan *plan) {
    size_t count = 0;
    for (size_t i = 0; i < plan->set->count; i++) count += before->owners[i] != plan->owners[i];
    return count;
}

static void forget_before(dv_plan_memory *memory) {
    dv_plan_free(memory->before);
    free(memory->formers);
    memory->before = NULL;
    memory->formers = NULL;
    memory->former_count = 0;
}

/* Owners are the largest part of a plan, and most do not move. */
static void shorten_before(dv_plan_memory *memory) {
    dv_plan *before = memory->before;
    const dv_plan *plan = memory->plan;
    if (!memory->is_lean || before == NULL || before->set != plan->set) return;
    size_t count = count_formers(before, plan), bytes = count * sizeof *memory->formers;
    bool is_shorter = bytes < plan->set->count * sizeof *plan->owners;
    dv_plan_former *formers = is_shorter ? malloc(bytes + 1) : NULL;
    if (formers == NULL) return;
    for (size_t i = 0; i < plan->set->count; i++) {
        if (before->owners[i] == plan->owners[i]) continue;
        formers[memory->former_count++] = (dv_plan_former){(uint32_t)i, before->owners[i]};
    }
    assert(memory->former_count == count);
    memory->formers = formers;
    free(before->owners);
    before->owners = NULL;
}

void dv_plan_memory_owners_before(const dv_plan_memory *memory, uint32_t *owners) {
    const dv_plan *before = memory->before;
    const uint32_t *from = before->owners != NULL ? before->owners : memory->plan->owners;
    memcpy(owners, from, before->set->count * sizeof *owners);
    for (size_t n = 0; n < memory->former_count; n++) owners[memory->formers[n].item] = memory->formers[n].slot;
}

/* ---- the newest ---- */

void dv_plan_memory_take(dv_plan_memory *memory, dv_plan *plan, dv_plan_root *root, int32_t version) {
    assert(plan->mzxid > 0);
    if (dv_plan_memory_passed(memory, plan->mzxid)) {
        dv_plan_free(plan);
        dv_plan_root_clear(root);
        return;
    }
    bool same = memory->plan && memory->plan->mzxid == plan->mzxid;
    if (same) dv_plan_free(memory->plan);
    else forget_before(memory);
    if (!same) memory->before = memory->plan;
    dv_plan_root_clear(&memory->root);
    memory->plan = plan;
    if (!same) shorten_before(memory);
    memory->root = *root;
    *root = (dv_plan_root){0};
    dv_plan_memory_stand(memory, DV_PLAN_GOOD, plan->mzxid, version);
}

void dv_plan_memory_recall(dv_plan_memory *memory, const char *epoch, dv_plan_text *text, const dv_stat *stat) {
    dv_plan_past *past = &memory->past;
    free(past->text.bytes);
    *past = (dv_plan_past){.text = *text, .mzxid = stat->mzxid, .written_ms = stat->mtime_ms};
    assert(strlen(epoch) < sizeof past->epoch);
    strcpy(past->epoch, epoch);
    *text = (dv_plan_text){0};
}

bool dv_plan_memory_has_past(const dv_plan_memory *memory) {
    return memory->standing == DV_PLAN_GOOD && memory->past.mzxid == memory->plan->mzxid;
}

/* D44: a text that is too long is nonsense, and not kept. */
int dv_plan_memory_take_past(dv_plan_memory *memory, const char *epoch, const dv_reply *reply) {
    assert(reply->error == 0);
    size_t count = reply->data_bytes <= DV_PLAN_HISTORY_BYTES_MAX ? reply->data_bytes : 0;
    dv_plan_text text = {.bytes = dv_padded_copy(reply->data, count), .count = count};
    if (text.bytes == NULL) return DIVVY_ENOMEM;
    dv_plan_memory_recall(memory, epoch, &text, reply->stat);
    return 0;
}

void dv_plan_memory_clear(dv_plan_memory *memory) {
    free(memory->past.text.bytes);
    forget_before(memory);
    dv_plan_free(memory->plan);
    dv_plan_root_clear(&memory->root);
    *memory = (dv_plan_memory){.is_lean = memory->is_lean};
}
