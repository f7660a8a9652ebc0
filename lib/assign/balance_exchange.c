/* A10: exchanges, where no single move helps. SPDX-License-Identifier: Apache-2.0
 *
 * Two items that are each too large for the emptiest member may stand together. Then x goes to a member that gives a
 * smaller y away, back or to the emptiest. */
#include "assign/balance_pass.h"

uint32_t dv_pass_emptiest(dv_pass *p, uint32_t slot) {
    const dv_deal *d = p->d;
    if (p->known[slot] == p->turn) return p->emptiest[slot];
    uint32_t best = DV_NO_MEMBER;
    double least = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        if (m == p->giver || !dv_balance_is_open(d, m, d->tags[slot])) continue;
        double level = dv_balance_level(&d->bins[m]);
        if (best != DV_NO_MEMBER && (level > least || (level == least && d->bins[m].tie <= d->bins[best].tie)))
            continue;
        best = (uint32_t)m;
        least = level;
    }
    p->known[slot] = p->turn;
    p->emptiest[slot] = best;
    return best;
}

bool dv_pass_reverses(const dv_pass *p, size_t i, uint32_t to) {
    const dv_deal *d = p->d;
    uint32_t owner = d->items[i].owner;
    if (owner == DV_NO_MEMBER || d->items[i].came_from != (uint64_t)to + 1) return false;
    const dv_bin *from = &d->bins[owner], *back = &d->bins[to];
    return (back->began + d->sizes[i]) / back->weight > from->began / from->weight - DV_BALANCE_MARGIN;
}

typedef struct {
    uint32_t item, to;
} move;

/* Two moves: x goes from a to b, y from b to c. */
typedef struct {
    move x, y;
    double level; /* of the fullest of the three afterwards */
} exchange;

static double higher(double a, double b) {
    return a > b ? a : b;
}

/* Looks at one pair of items. */
static void try_pair(dv_pass *p, size_t a, size_t x, size_t b, size_t y, exchange *best) {
    const dv_deal *d = p->d;
    const dv_bin *bins = d->bins;
    double kept = (bins[a].load - d->sizes[x]) / bins[a].weight;
    double level = (bins[b].load + d->sizes[x] - d->sizes[y]) / bins[b].weight;
    if (level >= best->level) return;
    uint32_t slot = d->tag_slots[y], to = dv_pass_emptiest(p, slot);
    if (to != b && to != DV_NO_MEMBER && !dv_pass_reverses(p, y, to)) {
        double its = (bins[to].load + d->sizes[y]) / bins[to].weight, most = higher(higher(kept, level), its);
        if (most < best->level) *best = (exchange){{(uint32_t)x, (uint32_t)b}, {(uint32_t)y, to}, most};
    }
    if (!dv_balance_has_tag(d, a, d->tags[slot]) || dv_pass_reverses(p, y, (uint32_t)a)) return;
    double most = higher(level, kept + d->sizes[y] / bins[a].weight);
    if (most < best->level) *best = (exchange){{(uint32_t)x, (uint32_t)b}, {(uint32_t)y, (uint32_t)a}, most};
}

enum { TRIED = 32 };

/* Tries to give x to b, which gives one of its own away: one that is just large enough, or one of the next ones. */
static void try_exchange(dv_pass *p, size_t a, size_t x, size_t b, exchange *best) {
    const dv_deal *d = p->d;
    double needed = d->bins[b].load + d->sizes[x] - best->level * d->bins[b].weight;
    size_t from = d->first[b], to = d->first[b + 1];
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (d->lots[middle].size > needed) from = middle + 1;
        else to = middle;
    }
    for (size_t tried = 0; from > d->first[b] && tried < TRIED && p->tries > 0; tried++) {
        size_t y = d->lots[--from].index;
        if (d->sizes[y] >= d->sizes[x]) return;
        if (d->owners[y] != b || d->sizes[y] < DV_BALANCE_DUST || !dv_balance_may_leave(d, y)) continue;
        p->tries--;
        try_pair(p, a, x, b, y, best);
    }
}

/* Finds an exchange for a member that no single move helps. */
static bool exchange_of(dv_pass *p, size_t a) {
    dv_deal *d = p->d;
    exchange best = {.level = dv_balance_level(&d->bins[a]) - 2 * DV_BALANCE_MARGIN};
    double before = best.level;
    size_t tried = 0;
    dv_pass_begin(p, a);
    for (size_t l = d->first[a + 1]; l > d->first[a] && tried < TRIED; l--) {
        size_t x = d->lots[l - 1].index;
        if (d->owners[x] != a || d->sizes[x] < DV_BALANCE_DUST || !dv_balance_may_leave(d, x)) continue;
        tried++;
        for (size_t b = 0; b < d->member_count && p->tries > 0; b++) {
            if (b == a || d->bins[b].weight <= 0 || !dv_balance_has_tag(d, b, d->items[x].tag)) continue;
            p->tries--;
            if (!dv_pass_reverses(p, x, (uint32_t)b)) try_exchange(p, a, x, b, &best);
        }
    }
    if (best.level >= before || d->moves_max - d->moves < 2) return false;
    dv_pass_move(p, best.y.item, best.y.to);
    dv_pass_move(p, best.x.item, best.x.to);
    return true;
}

void dv_pass_exchange(dv_pass *p) {
    dv_deal *d = p->d;
    for (size_t m = 0; m < d->member_count; m++) {
        while (d->bins[m].weight > 0 && dv_balance_level(&d->bins[m]) > p->begins_above && exchange_of(p, m)) continue;
    }
}
