/* Changes: the items that have another owner by one plan than by another. SPDX-License-Identifier: Apache-2.0 */
#include "pool/changes.h"

#include <stdlib.h>
#include <string.h>

/* Slots change hands (D6), so members are compared. */
static bool is_same(const dv_plan_member *a, const dv_plan_member *b) {
    if (a == b) return true;
    return a && b && a->is_static == b->is_static && strcmp(a->key, b->key) == 0;
}

static const dv_plan_member *owner_of(const dv_plan *plan, size_t item) {
    return plan->owners[item] == DV_PLAN_NO_SLOT ? NULL : dv_plan_member_at(plan, plan->owners[item]);
}

/* Both sets are sorted, so one walk finds the items of both. Returns how many changes there are. */
static size_t walk(const dv_plan *before, const dv_plan *after, dv_change *changes) {
    size_t old = 0, count = 0;
    if (before == after) return 0;
    for (size_t i = 0; i < after->set->count; i++) {
        int order = 1;
        while (old < before->set->count && (order = strcmp(before->set->names[old], after->set->names[i])) < 0) old++;
        if (old == before->set->count || order != 0) continue;
        const dv_plan_member *from = owner_of(before, old), *to = owner_of(after, i);
        if (is_same(from, to)) continue;
        if (changes) changes[count] = (dv_change){i, from, to};
        count++;
    }
    return count;
}

size_t dv_changes_count(const dv_plan *before, const dv_plan *after) {
    return walk(before, after, NULL);
}

dv_change *dv_changes_list(const dv_plan *before, const dv_plan *after, size_t *count) {
    dv_change *changes = calloc(after->set->count + 1, sizeof *changes);
    *count = changes ? walk(before, after, changes) : 0;
    return changes;
}
