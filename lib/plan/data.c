/* The sticky plan in memory. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32.h"
#include "base/padded.h"
#include "divvy/error.h"
#include "plan/loads.h"
#include "plan/wish.h"

/* ---- sets ---- */

static uint64_t fnv(const char *bytes, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

dv_plan_set *dv_plan_set_make(const char *const *names, size_t count) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += strlen(names[i]) + 1;
    dv_plan_set *set = calloc(1, sizeof *set);
    if (set == NULL) return NULL;
    set->references = 1;
    set->names = (const char **)calloc(count + 1, sizeof *set->names);
    set->block = malloc(bytes + 1);
    if (set->names == NULL || set->block == NULL) {
        dv_plan_set_unref(set);
        return NULL;
    }
    char *to = set->block;
    for (size_t i = 0; i < count; i++) {
        size_t name_bytes = strlen(names[i]) + 1;
        set->names[i] = memcpy(to, names[i], name_bytes);
        assert(i == 0 || strcmp(set->names[i - 1], set->names[i]) < 0);
        to += name_bytes;
    }
    set->count = count;
    set->block_bytes = bytes;
    set->crc = dv_crc32(0, set->block, bytes);
    set->hash = fnv(set->block, bytes);
    return set;
}

dv_plan_set *dv_plan_set_ref(dv_plan_set *set) {
    assert(set->references > 0);
    set->references++;
    return set;
}

void dv_plan_set_unref(dv_plan_set *set) {
    assert(set == NULL || set->references > 0);
    if (set == NULL || --set->references > 0) return;
    free((void *)set->names);
    free(set->block);
    free(set);
}

size_t dv_plan_set_find(const dv_plan_set *set, const char *name, size_t from) {
    assert(from <= set->count);
    size_t step = 1, low = from, high = from;
    while (high < set->count && strcmp(set->names[high], name) < 0) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    if (high > set->count) high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(set->names[middle], name) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

bool dv_plan_set_has(const dv_plan_set *set, const char *name) {
    size_t at = dv_plan_set_find(set, name, 0);
    return at < set->count && strcmp(set->names[at], name) == 0;
}

bool dv_plan_set_equal(const dv_plan_set *a, const dv_plan_set *b) {
    return a == b || (a->count == b->count && a->block_bytes == b->block_bytes &&
                      memcmp(a->block, b->block, a->block_bytes) == 0);
}

/* ---- members ---- */

void dv_plan_member_clear(dv_plan_member *member) {
    free(member->key);
    free(member->zone);
    free(member->leaving);
    free(member->tags);
}

static bool member_copy(dv_plan_member *to, const dv_plan_member *from) {
    *to = *from;
    to->key = strdup(from->key);
    to->zone = strdup(from->zone);
    to->leaving = strdup(from->leaving);
    to->tags = strdup(from->tags != NULL ? from->tags : "");
    if (to->key != NULL && to->zone != NULL && to->leaving != NULL && to->tags != NULL) return true;
    dv_plan_member_clear(to);
    return false;
}

bool dv_plan_member_equal(const dv_plan_member *a, const dv_plan_member *b) {
    return a->slot == b->slot && a->is_static == b->is_static && a->weight == b->weight &&
           a->rejoin_delay_ms == b->rejoin_delay_ms && a->absent == b->absent && strcmp(a->key, b->key) == 0 &&
           a->says_configured == b->says_configured && a->configured == b->configured &&
           strcmp(a->zone, b->zone) == 0 && strcmp(a->leaving, b->leaving) == 0 && strcmp(a->tags, b->tags) == 0 &&
           a->cap == b->cap;
}

bool dv_plan_add_member(dv_plan *plan, const dv_plan_member *member) {
    if (plan->member_count == plan->member_room) {
        size_t room = plan->member_room * 2 + 4;
        dv_plan_member *members = realloc(plan->members, room * sizeof *members);
        if (members == NULL) return false;
        plan->members = members;
        plan->member_room = room;
    }
    assert(plan->member_count < plan->member_room);
    if (!member_copy(&plan->members[plan->member_count], member)) return false;
    plan->member_count++;
    return true;
}

static int by_slot(const void *left, const void *right) {
    const dv_plan_member *a = left;
    const dv_plan_member *b = right;
    return (a->slot > b->slot) - (a->slot < b->slot);
}

void dv_plan_sort_members(dv_plan *plan) {
    if (plan->member_count > 1) qsort(plan->members, plan->member_count, sizeof *plan->members, by_slot);
}

dv_plan_member *dv_plan_member_at(const dv_plan *plan, uint32_t slot) {
    const dv_plan_member key = {.slot = slot};
    if (plan->member_count == 0) return NULL;
    return bsearch(&key, plan->members, plan->member_count, sizeof key, by_slot);
}

size_t dv_plan_owner_width(const dv_plan *plan) {
    uint32_t numbers = plan->member_count > 0 ? plan->members[plan->member_count - 1].slot + 2 : 1;
    size_t width = 1;
    for (uint32_t power = DV_PLAN_DIGITS; power < numbers; power *= DV_PLAN_DIGITS) width++;
    assert(width <= DV_PLAN_WIDTH_MAX);
    return width;
}

dv_plan_member *dv_plan_find(const dv_plan *plan, bool is_static, const char *key) {
    for (size_t m = 0; m < plan->member_count; m++) {
        dv_plan_member *member = &plan->members[m];
        if (member->is_static == is_static && strcmp(member->key, key) == 0) return member;
    }
    return NULL;
}

/* ---- plans ---- */

dv_plan *dv_plan_make(dv_plan_set *set) {
    dv_plan *plan = set != NULL ? calloc(1, sizeof *plan) : NULL;
    if (plan == NULL) {
        dv_plan_set_unref(set);
        return NULL;
    }
    plan->set = set;
    plan->owners = malloc((set->count + 1) * sizeof *plan->owners);
    if (plan->owners == NULL) {
        dv_plan_free(plan);
        return NULL;
    }
    for (size_t i = 0; i < set->count; i++) plan->owners[i] = DV_PLAN_NO_SLOT;
    return plan;
}

dv_plan *dv_plan_copy(const dv_plan *plan) {
    dv_plan *copy = dv_plan_make(dv_plan_set_ref(plan->set));
    if (copy == NULL) return NULL;
    copy->header = plan->header;
    copy->mzxid = plan->mzxid;
    copy->loads = dv_loads_ref(plan->loads);
    copy->wishes = dv_wishes_ref(plan->wishes);
    memcpy(copy->owners, plan->owners, plan->set->count * sizeof *plan->owners);
    bool complete = true;
    for (size_t m = 0; complete && m < plan->member_count; m++) {
        complete = dv_plan_add_member(copy, &plan->members[m]);
    }
    copy->moved = (void *)dv_padded_copy(plan->moved, plan->moved_count * sizeof *copy->moved);
    if (!complete || copy->moved == NULL) {
        dv_plan_free(copy);
        return NULL;
    }
    copy->moved_count = plan->moved_count;
    return copy;
}

void dv_plan_free(dv_plan *plan) {
    if (plan == NULL) return;
    for (size_t m = 0; m < plan->member_count; m++) dv_plan_member_clear(&plan->members[m]);
    free(plan->members);
    free(plan->owners);
    free(plan->moved);
    dv_loads_unref(plan->loads);
    dv_wishes_unref(plan->wishes);
    dv_plan_set_unref(plan->set);
    free(plan);
}

const char *dv_plan_reason_text(dv_plan_reason reason) {
    static const char *const texts[DV_PLAN_REASONS] = {"create", "set",      "loss",    "leave",   "join", "drain",
                                                       "weight", "operator", "options", "absence", "load", "round"};
    assert(reason < DV_PLAN_REASONS);
    return texts[reason];
}

/* ---- the root ---- */

void dv_plan_part_clear(dv_plan_part *part) {
    free(part->text);
    free(part->chunks);
    *part = (dv_plan_part){0};
}

int dv_plan_part_copy(dv_plan_part *to, const dv_plan_part *from) {
    *to = (dv_plan_part){.bytes = from->bytes, .chunk_count = from->chunk_count};
    if (from->text != NULL) to->text = dv_padded_copy(from->text, from->bytes);
    else to->chunks = (void *)dv_padded_copy(from->chunks, from->chunk_count * sizeof *from->chunks);
    return to->text != NULL || to->chunks != NULL ? 0 : DIVVY_ENOMEM;
}

bool dv_plan_part_equal(const dv_plan_part *a, const dv_plan_part *b) {
    if (a->text != NULL || b->text != NULL)
        return a->text != NULL && b->text != NULL && a->bytes == b->bytes && memcmp(a->text, b->text, a->bytes) == 0;
    bool equal = a->chunk_count == b->chunk_count;
    for (size_t n = 0; equal && n < a->chunk_count; n++) {
        const dv_plan_chunk *x = &a->chunks[n], *y = &b->chunks[n];
        equal = x->bytes == y->bytes && x->crc == y->crc && strcmp(x->name, y->name) == 0;
    }
    return equal;
}

void dv_plan_root_clear(dv_plan_root *root) {
    dv_plan_part_clear(&root->items);
    dv_plan_part_clear(&root->base);
    dv_plan_part_clear(&root->loads);
    dv_plan_part_clear(&root->wishes);
    for (size_t d = 0; d < root->delta_count; d++) dv_plan_part_clear(&root->deltas[d].part);
    free(root->deltas);
    free(root->moved);
    *root = (dv_plan_root){0};
}
