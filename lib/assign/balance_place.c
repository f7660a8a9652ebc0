/* A9: what must leave its member, and what has none. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "assign/balance_path.h"

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

/* Returns whether a member has room for the item. */
static bool has_taker(const dv_deal *d, size_t i) {
    for (size_t m = 0; m < d->member_count; m++) {
        if (dv_balance_is_open(d, m, d->items[i].tag)) return true;
    }
    return false;
}

/* A9: first those that may not stay, then those of drained members, the largest first. An item of theirs that nobody
 * may take stays, and leaves the moves to others. */
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
            size_t i = d->lots[l].index;
            if (d->owners[i] == m && has_taker(d, i)) take(d, q, i, (uint32_t)m);
        }
    }
}

/* ---- the members, the emptiest first ---- */

/* A heap. Levels only rise while items are given, so a member whose level is out of date stands too early, and sinks
 * when it is looked at. */
typedef struct {
    double level;
    uint32_t member;
} place;

typedef struct {
    place *places;
    size_t count;
} heap;

/* Decides between members of one level: fewer items for the weight, then a hash. */
static bool is_lesser(const dv_bin *a, const dv_bin *b) {
    double fuller = (double)a->count * b->weight - (double)b->count * a->weight;
    return fuller < 0 || (fuller <= 0 && a->tie > b->tie);
}

static bool is_before(const dv_deal *d, const place *a, const place *b) {
    if (a->level < b->level || a->level > b->level) return a->level < b->level;
    return is_lesser(&d->bins[a->member], &d->bins[b->member]);
}

static void sink(const dv_deal *d, heap *h, size_t at) {
    for (size_t child; (child = 2 * at + 1) < h->count; at = child) {
        if (child + 1 < h->count && is_before(d, &h->places[child + 1], &h->places[child])) child++;
        if (!is_before(d, &h->places[child], &h->places[at])) return;
        place moved = h->places[at];
        h->places[at] = h->places[child];
        h->places[child] = moved;
    }
}

static bool heap_make(const dv_deal *d, heap *h) {
    *h = (heap){.places = malloc(d->member_count * sizeof *h->places)};
    if (h->places == NULL) return false;
    for (size_t m = 0; m < d->member_count; m++) {
        const dv_bin *bin = &d->bins[m];
        if (dv_balance_is_open(d, m, DV_NO_TAG)) h->places[h->count++] = (place){dv_balance_level(bin), (uint32_t)m};
    }
    for (size_t at = h->count / 2; at > 0; at--) sink(d, h, at - 1);
    return true;
}

/* Returns the emptiest member that is not full, DV_NO_MEMBER if all are. */
static uint32_t emptiest_of(const dv_deal *d, heap *h) {
    while (h->count > 0) {
        place *top = &h->places[0];
        double level = dv_balance_level(&d->bins[top->member]);
        if (!dv_balance_is_open(d, top->member, DV_NO_TAG)) *top = h->places[--h->count];
        else if (level > top->level) top->level = level;
        else return top->member;
        sink(d, h, 0);
    }
    return DV_NO_MEMBER;
}

/* Returns whether all weigh the same, so that the emptiest member is also the least full one with an item more. */
static bool are_alike(const dv_deal *d) {
    double weight = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        if (d->bins[m].weight <= 0) continue;
        if (weight > 0 && (d->bins[m].weight < weight || d->bins[m].weight > weight)) return false;
        weight = d->bins[m].weight;
    }
    return true;
}

/* Returns the member that has the least load with the item, DV_NO_MEMBER if none may take it. */
static uint32_t best_for(const dv_deal *d, size_t i) {
    uint32_t best = DV_NO_MEMBER;
    double least = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        if (!dv_balance_is_open(d, m, d->items[i].tag)) continue;
        double level = (d->bins[m].load + d->sizes[i]) / d->bins[m].weight;
        if (best != DV_NO_MEMBER && level > least) continue;
        if (best != DV_NO_MEMBER && level >= least && !is_lesser(&d->bins[m], &d->bins[best])) continue;
        best = (uint32_t)m;
        least = level;
    }
    return best;
}

/* ---- all of it ---- */

static bool is_tight(const dv_deal *d, size_t count) {
    size_t room = 0;
    for (size_t m = 0; m < d->member_count && room < count; m++) {
        const dv_bin *bin = &d->bins[m];
        if (bin->weight > 0 && bin->most > bin->count)
            room += bin->most - bin->count < count ? bin->most - bin->count : count;
    }
    return room < count;
}

static bool give(dv_deal *d, queue *q) {
    heap h;
    if (!heap_make(d, &h)) return false;
    bool is_even = are_alike(d);
    if (is_tight(d, q->count)) {
        for (size_t n = 0; n < q->count; n++) q->items[n].rank += q->items[n].from != DV_NO_MEMBER ? d->tag_count : 0;
    }
    qsort(q->items, q->count, sizeof *q->items, by_rank);
    for (size_t n = 0; n < q->count; n++) {
        size_t i = q->items[n].index;
        uint32_t to = is_even && d->items[i].tag == DV_NO_TAG ? emptiest_of(d, &h) : best_for(d, i);
        dv_balance_put(d, i, to != DV_NO_MEMBER ? to : q->items[n].from);
    }
    free(h.places);
    return true;
}

bool dv_balance_place(dv_deal *d) {
    queue q = {.items = malloc(d->item_count * sizeof *q.items)};
    if (q.items == NULL) return false;
    if (may_move(d)) take_what_must_leave(d, &q);
    for (size_t i = 0; i < d->item_count; i++) {
        if (d->items[i].owner == DV_NO_MEMBER && !d->items[i].is_fixed) enqueue(d, &q, i, DV_NO_MEMBER);
    }
    bool ready = q.count == 0 || give(d, &q);
    free(q.items);
    return ready;
}

/* ---- room that others make ---- */

/* Takes the nearest room that the last search found, if there are moves enough. Returns whether it found any. */
static bool take_room(dv_paths *p) {
    const dv_deal *d = p->d;
    for (size_t n = p->reached_before; n < p->reached_count; n++) {
        uint32_t m = p->reached[n];
        if (d->bins[m].count >= d->bins[m].most) continue;
        if (dv_paths_cost(p, m) <= d->moves_max - d->moves) dv_paths_take(p, m);
        return true;
    }
    return false;
}

/* Members from which there is no way to room stay so, since nothing leaves them. So none is looked at twice. */
bool dv_balance_make_way(dv_deal *d) {
    bool has_room = false, is_needed = false;
    for (size_t m = 0; m < d->member_count; m++) {
        has_room = has_room || (d->bins[m].weight > 0 && d->bins[m].count < d->bins[m].most);
    }
    for (size_t i = 0; i < d->item_count; i++) {
        is_needed = is_needed || (d->owners[i] == DV_NO_MEMBER && !d->items[i].is_fixed);
    }
    if (!has_room || !is_needed || !may_move(d)) return true;
    dv_paths p;
    bool ready = dv_paths_make(&p, d);
    for (size_t i = 0; ready && i < d->item_count; i++) {
        if (d->owners[i] != DV_NO_MEMBER || d->items[i].is_fixed) continue;
        dv_paths_from_item(&p, i);
        if (take_room(&p)) dv_paths_drop(&p);
    }
    dv_paths_free(&p);
    return ready;
}
