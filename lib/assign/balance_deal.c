/* A deal by size while it is made. SPDX-License-Identifier: Apache-2.0 */
#include "assign/balance_deal.h"

#include <stdlib.h>
#include <string.h>

#include "assign/assign_internal.h"

bool dv_balance_may_leave(const dv_deal *d, size_t i) {
    if (d->items[i].is_fixed) return false;
    return d->moves < d->moves_max || d->owners[i] != d->items[i].owner;
}

void dv_balance_put(dv_deal *d, size_t i, uint32_t to) {
    uint32_t from = d->owners[i], origin = d->items[i].owner;
    if (from != DV_NO_MEMBER) {
        d->bins[from].load -= d->sizes[i];
        d->bins[from].count--;
    }
    if (to != DV_NO_MEMBER) {
        d->bins[to].load += d->sizes[i];
        d->bins[to].count++;
    }
    if (origin != DV_NO_MEMBER) d->moves = d->moves + (to != origin) - (from != origin);
    d->owners[i] = to;
}

void dv_balance_sum(dv_deal *d) {
    for (size_t m = 0; m < d->member_count; m++) {
        d->bins[m].load = 0;
        d->bins[m].count = 0;
    }
    for (size_t i = 0; i < d->item_count; i++) {
        if (d->owners[i] == DV_NO_MEMBER) continue;
        d->bins[d->owners[i]].load += d->sizes[i];
        d->bins[d->owners[i]].count++;
    }
}

static int by_size(const void *left, const void *right) {
    const dv_lot *a = left;
    const dv_lot *b = right;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

void dv_balance_list(dv_deal *d) {
    dv_balance_sum(d);
    memset(d->first, 0, (d->member_count + 2) * sizeof *d->first);
    for (size_t m = 0; m < d->member_count; m++) d->first[m + 2] = d->first[m + 1] + d->bins[m].count;
    for (size_t i = 0; i < d->item_count; i++) {
        uint32_t owner = d->owners[i];
        if (owner == DV_NO_MEMBER) continue;
        d->lots[d->first[owner + 1]++] = (dv_lot){.size = d->sizes[i], .key = d->keys[i], .index = (uint32_t)i};
    }
    for (size_t m = 0; m < d->member_count; m++) {
        qsort(d->lots + d->first[m], d->first[m + 1] - d->first[m], sizeof *d->lots, by_size);
    }
}

typedef struct {
    uint32_t tag, slot;
    size_t members; /* that have it */
} scarcity;

static int by_tag(const void *left, const void *right) {
    const scarcity *a = left;
    const scarcity *b = right;
    return (a->tag > b->tag) - (a->tag < b->tag);
}

static int by_members(const void *left, const void *right) {
    const scarcity *a = left;
    const scarcity *b = right;
    if (a->members != b->members) return a->members < b->members ? -1 : 1;
    return by_tag(left, right);
}

/* Lists what items need, each tag once, in their order; the last is DV_NO_TAG. Returns how many. */
static size_t list_tags(const dv_deal *d, scarcity *found) {
    size_t all = 0, count = 0;
    for (size_t i = 0; i < d->item_count; i++) {
        if (d->items[i].tag != DV_NO_TAG) found[all++] = (scarcity){.tag = d->items[i].tag};
    }
    qsort(found, all, sizeof *found, by_tag);
    for (size_t n = 0; n < all; n++) {
        if (count == 0 || found[count - 1].tag != found[n].tag) found[count++] = found[n];
    }
    found[count++] = (scarcity){.tag = DV_NO_TAG, .members = SIZE_MAX};
    return count;
}

/* Sorts the tags, the scarcest first, and tells where each item's stands. */
static bool tags_find(dv_deal *d) {
    scarcity *found = calloc(d->item_count + 1, sizeof *found);
    if (found == NULL) return false;
    d->tag_count = list_tags(d, found);
    for (size_t t = 0; t + 1 < d->tag_count; t++) {
        for (size_t m = 0; m < d->member_count; m++) {
            found[t].members += d->bins[m].weight > 0 && dv_balance_has_tag(d, m, found[t].tag);
        }
    }
    qsort(found, d->tag_count, sizeof *found, by_members);
    d->tags = malloc(d->tag_count * sizeof *d->tags);
    for (size_t t = 0; d->tags != NULL && t < d->tag_count; t++) {
        found[t].slot = (uint32_t)t;
        d->tags[t] = found[t].tag;
    }
    qsort(found, d->tag_count, sizeof *found, by_tag);
    for (size_t i = 0; i < d->item_count; i++) {
        scarcity needed = {.tag = d->items[i].tag};
        const scarcity *its = bsearch(&needed, found, d->tag_count, sizeof *found, by_tag);
        d->tag_slots[i] = its != NULL ? its->slot : 0;
    }
    free(found);
    return d->tags != NULL;
}

void dv_balance_deal_free(dv_deal *d) {
    free(d->bins);
    free(d->zone_of);
    free(d->sizes);
    free(d->keys);
    free(d->lots);
    free(d->first);
    free(d->tags);
    free(d->tag_slots);
}

bool dv_balance_deal_begin(dv_deal *d) {
    d->bins = calloc(d->member_count, sizeof *d->bins);
    d->sizes = malloc(d->item_count * sizeof *d->sizes);
    d->zone_of = calloc(d->member_count, sizeof *d->zone_of);
    if (d->bins == NULL || d->sizes == NULL || d->zone_of == NULL) return false;
    return dv_balance_weigh(d) && dv_balance_measure(d);
}

bool dv_balance_deal_list(dv_deal *d) {
    d->keys = malloc(d->item_count * sizeof *d->keys);
    d->lots = malloc(d->item_count * sizeof *d->lots);
    d->first = malloc((d->member_count + 2) * sizeof *d->first);
    d->tag_slots = malloc(d->item_count * sizeof *d->tag_slots);
    if (d->keys == NULL || d->lots == NULL || d->first == NULL || d->tag_slots == NULL || !tags_find(d)) return false;
    uint64_t all = 0;
    for (size_t i = 0; i < d->item_count; i++) {
        d->keys[i] = dv_assign_key('i', d->items[i].name, 0);
        all += d->keys[i];
        d->owners[i] = d->items[i].owner;
    }
    for (size_t m = 0; m < d->member_count; m++) {
        d->bins[m].most = d->members[m].cap > 0 ? d->members[m].cap : SIZE_MAX;
        d->bins[m].tie = dv_assign_mix(dv_assign_key('m', d->members[m].identifier, 0) ^ all);
    }
    dv_balance_list(d);
    return true;
}
