/* A9: what must leave its member, and what has none. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "assign/balance_deal.h"

/* An item that is to be placed. */
typedef struct {
    size_t rank; /* of its tag, the scarcest first */
    double size;
    uint64_t key;
    uint32_t index;
    uint32_t from; /* a drained member, which keeps it where nobody else may take it */
} waiting;

typedef struct {
    waiting *items;
    size_t count;
    bool is_tight; /* not all of them have room: those without an owner go first */
} queue;

static int by_rank(const void *left, const void *right) {
    const waiting *a = left;
    const waiting *b = right;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    if (a->key != b->key) return a->key < b->key ? -1 : 1;
    return (a->index > b->index) - (a->index < b->index);
}

static void enqueue(dv_deal *d, queue *q, size_t i, uint32_t from) {
    q->items[q->count++] =
        (waiting){.rank = d->tag_slots[i], .size = d->sizes[i], .key = d->keys[i], .index = (uint32_t)i, .from = from};
}

static bool may_move(const dv_deal *d) {
    return d->moves < d->moves_max;
}

/* Takes the item from its member, if that may be. */
static bool take(dv_deal *d, queue *q, size_t i, uint32_t from) {
    if (!may_move(d) || d->items[i].is_fixed) return false;
    dv_balance_put(d, i, DV_NO_MEMBER);
    enqueue(d, q, i, from);
    return true;
}

/* A9: from a member above its cap those items leave that stand together in the order of sizes and weigh as nearly as
 * can be what it has too much; a member without too much gives the smallest. */
static void take_above_cap(dv_deal *d, queue *q, size_t m) {
    dv_bin *bin = &d->bins[m];
    size_t count = 0, above = bin->count - bin->most, from = 0;
    dv_lot *lots = d->lots + d->first[m];
    for (size_t l = 0; l < d->first[m + 1] - d->first[m]; l++) {
        if (d->owners[lots[l].index] == m && !d->items[lots[l].index].is_fixed) lots[count++] = lots[l];
    }
    if (above > count) above = count;
    double excess = bin->load - bin->weight, sum = 0, best = -1;
    for (size_t l = 0; l < count; l++) {
        sum += lots[l].size - (l >= above ? lots[l - above].size : 0);
        double off = sum > excess ? sum - excess : excess - sum;
        if (l + 1 < above || (best >= 0 && off > best)) continue;
        best = off;
        from = l + 1 - above;
    }
    for (size_t l = from; l < from + above; l++) take(d, q, lots[l].index, DV_NO_MEMBER);
}

/* A9: first those that may not stay, then those of drained members, the largest first. */
static void take_what_must_leave(dv_deal *d, queue *q) {
    for (size_t i = 0; i < d->item_count; i++) {
        uint32_t owner = d->owners[i];
        if (owner != DV_NO_MEMBER && !dv_balance_has_tag(d, owner, d->items[i].tag)) take(d, q, i, DV_NO_MEMBER);
    }
    for (size_t m = 0; m < d->member_count && may_move(d); m++) {
        if (d->bins[m].count > d->bins[m].most) take_above_cap(d, q, m);
    }
    for (size_t m = 0; m < d->member_count && may_move(d); m++) {
        if (d->bins[m].weight > 0) continue;
        for (size_t l = d->first[m]; l < d->first[m + 1]; l++) {
            if (d->owners[d->lots[l].index] == m) take(d, q, d->lots[l].index, (uint32_t)m);
        }
    }
}

/* Returns the member that has the least load with the item, DV_NO_MEMBER if none may take it. */
static uint32_t best_for(const dv_deal *d, size_t i) {
    uint32_t best = DV_NO_MEMBER;
    double least = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        const dv_bin *bin = &d->bins[m];
        if (!dv_balance_is_open(d, m, d->items[i].tag)) continue;
        double level = (bin->load + d->sizes[i]) / bin->weight;
        if (best != DV_NO_MEMBER) {
            if (level > least) continue;
            const dv_bin *other = &d->bins[best];
            double fuller = (double)bin->count * other->weight - (double)other->count * bin->weight;
            if (level == least && (fuller > 0 || (fuller == 0 && bin->tie <= other->tie))) continue;
        }
        best = (uint32_t)m;
        least = level;
    }
    return best;
}

static bool is_tight(const dv_deal *d, size_t count) {
    size_t room = 0;
    for (size_t m = 0; m < d->member_count && room < count; m++) {
        const dv_bin *bin = &d->bins[m];
        if (bin->weight > 0 && bin->most > bin->count)
            room += bin->most - bin->count < count ? bin->most - bin->count : count;
    }
    return room < count;
}

static void give(dv_deal *d, queue *q) {
    if (is_tight(d, q->count)) {
        for (size_t n = 0; n < q->count; n++) q->items[n].rank += q->items[n].from != DV_NO_MEMBER ? d->tag_count : 0;
    }
    qsort(q->items, q->count, sizeof *q->items, by_rank);
    for (size_t n = 0; n < q->count; n++) {
        uint32_t to = best_for(d, q->items[n].index);
        dv_balance_put(d, q->items[n].index, to != DV_NO_MEMBER ? to : q->items[n].from);
    }
}

bool dv_balance_place(dv_deal *d) {
    queue q = {.items = malloc(d->item_count * sizeof *q.items)};
    if (q.items == NULL) return false;
    if (may_move(d)) take_what_must_leave(d, &q);
    for (size_t i = 0; i < d->item_count; i++) {
        if (d->items[i].owner == DV_NO_MEMBER && !d->items[i].is_fixed) enqueue(d, &q, i, DV_NO_MEMBER);
    }
    give(d, &q);
    free(q.items);
    return true;
}
