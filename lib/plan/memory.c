/* A process's memory of P/plan. SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/padded.h"
#include "divvy/error.h"
#include "plan/history.h"

bool dv_plan_memory_passed(const dv_plan_memory *memory, int64_t mzxid) {
    return mzxid < memory->newest_mzxid;
}

void dv_plan_memory_stand(dv_plan_memory *memory, dv_plan_standing standing, int64_t mzxid, int32_t version) {
    assert(standing != DV_PLAN_GOOD || memory->plan != NULL);
    memory->standing = standing;
    memory->mzxid = mzxid;
    memory->version = version;
    if (mzxid > memory->newest_mzxid) memory->newest_mzxid = mzxid;
}

void dv_plan_memory_take(dv_plan_memory *memory, dv_plan *plan, dv_plan_root *root, int32_t version) {
    assert(plan->mzxid > 0);
    if (dv_plan_memory_passed(memory, plan->mzxid)) {
        dv_plan_free(plan);
        dv_plan_root_clear(root);
        return;
    }
    bool same = memory->plan && memory->plan->mzxid == plan->mzxid;
    dv_plan_free(same ? memory->plan : memory->before);
    if (!same) memory->before = memory->plan;
    dv_plan_root_clear(&memory->root);
    memory->plan = plan;
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
    dv_plan_free(memory->plan);
    dv_plan_free(memory->before);
    dv_plan_root_clear(&memory->root);
    *memory = (dv_plan_memory){0};
}
