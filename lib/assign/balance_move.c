/* A10: moves for load. SPDX-License-Identifier: Apache-2.0
 *
 * The large items move first, from all members that have too much, while there are members that are empty enough for
 * them. Only then the smaller ones move, which fit anywhere. A member after the other would fill the empty ones with
 * small items, and its neighbour's large one would stay. */
#include <stdlib.h>

#include "assign/balance_pass.h"

static const double usual = 0.2; /* A10's trigger */
enum { PASSES = 16, TRIES = 1000000 };

/* A move that was found. */
typedef struct {
    uint32_t item, to;
} move;

/* Returns whether the move gains enough: the receiver ends well below where the giver was. */
static bool gains(const dv_bin *a, const dv_bin *b, double size) {
    return (b->load + size) / b->weight <= dv_balance_level(a) - DV_BALANCE_MARGIN;
}

/* Returns whether both end inside the band. */
static bool fits(const dv_pass *p, const dv_bin *a, const dv_bin *b, double size) {
    return (a->load - size) / a->weight >= p->ends_at_least && (b->load + size) / b->weight <= p->ends_at_most;
}

/* Compares a move with the best so far: the one after which the fuller of the two is least full. */
static bool betters(const dv_bin *a, const dv_bin *b, double size, double *least) {
    double level = (b->load + size) / b->weight, kept = (a->load - size) / a->weight;
    if (kept > level) level = kept;
    if (*least > 0 && level >= *least) return false;
    *least = level;
    return true;
}

/* Finds the largest item of `a` after which it and the receiver are inside the band. Else, if `a` would still be too
 * full without all its smaller items, finds the best that gains. The receiver is the emptiest that may have the item,
 * or `only`. Returns whether both end inside the band. */
static bool find_item(dv_pass *p, size_t a, uint32_t only, move *found, double *least) {
    dv_deal *d = p->d;
    const dv_bin *from = &d->bins[a];
    bool is_needed = from->load - p->small[a] > p->ends_at_most * from->weight || only != DV_NO_MEMBER;
    while (p->next[a] < d->first[a + 1] && d->owners[d->lots[p->next[a]].index] != a) p->next[a]++;
    for (size_t l = p->next[a]; l < d->first[a + 1] && d->lots[l].size >= p->smallest; l++) {
        size_t i = d->lots[l].index;
        if (d->owners[i] != a || !dv_balance_may_leave(d, i)) continue;
        uint32_t b = only == DV_NO_MEMBER ? dv_pass_emptiest(p, d->tag_slots[i]) : only;
        if (b == DV_NO_MEMBER) continue;
        if (only != DV_NO_MEMBER && !dv_balance_is_open(d, b, d->items[i].tag)) continue;
        const dv_bin *to = &d->bins[b];
        if (!gains(from, to, d->sizes[i]) || dv_pass_reverses(p, i, b)) continue;
        bool is_inside = fits(p, from, to, d->sizes[i]);
        if (is_inside || (is_needed && betters(from, to, d->sizes[i], least))) *found = (move){(uint32_t)i, b};
        if (is_inside) return true;
    }
    return false;
}

/* Returns the fullest member that is not done. */
static size_t fullest_of(const dv_pass *p) {
    const dv_deal *d = p->d;
    size_t fullest = d->member_count;
    double level = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        if (p->is_done[m]) continue;
        double its = dv_balance_level(&d->bins[m]);
        if (fullest < d->member_count && (its < level || (its == level && d->bins[m].tie <= d->bins[fullest].tie)))
            continue;
        fullest = m;
        level = its;
    }
    return fullest;
}

/* Adds up the items that are too small for this turn, and not too small for later ones. */
static void sum_small(dv_pass *p) {
    const dv_deal *d = p->d;
    for (size_t m = 0; m < d->member_count; m++) {
        p->small[m] = 0;
        for (size_t l = d->first[m]; l < d->first[m + 1] && d->lots[l].size >= DV_BALANCE_DUST; l++) {
            if (d->lots[l].size < p->smallest && d->owners[d->lots[l].index] == m) p->small[m] += d->lots[l].size;
        }
    }
}

/* Empties those above the band, the fullest first. */
static void shed(dv_pass *p) {
    dv_deal *d = p->d;
    sum_small(p);
    for (size_t m = 0; m < d->member_count; m++) {
        p->is_done[m] = d->bins[m].weight <= 0 || dv_balance_level(&d->bins[m]) <= p->begins_above;
    }
    for (;;) {
        size_t a = fullest_of(p);
        if (a == d->member_count) return;
        move found = {.to = DV_NO_MEMBER};
        double least = 0;
        if (dv_balance_level(&d->bins[a]) > p->ends_at_most) {
            dv_pass_begin(p, a);
            find_item(p, a, DV_NO_MEMBER, &found, &least);
        }
        if (found.to != DV_NO_MEMBER) dv_pass_move(p, found.item, found.to);
        else p->is_done[a] = true;
    }
}

/* Gives the member one item of the fullest that has one for it. */
static bool fill_one(dv_pass *p, uint32_t b) {
    dv_deal *d = p->d;
    move found = {.to = DV_NO_MEMBER};
    double least = 0;
    if (d->bins[b].count >= d->bins[b].most) return false;
    for (size_t m = 0; m < d->member_count; m++) p->is_done[m] = m == b || d->bins[m].weight <= 0;
    for (;;) {
        size_t a = fullest_of(p);
        if (a == d->member_count || dv_balance_level(&d->bins[a]) <= dv_balance_level(&d->bins[b]) + DV_BALANCE_MARGIN)
            break;
        if (find_item(p, a, b, &found, &least)) break;
        p->is_done[a] = true;
    }
    if (found.to != DV_NO_MEMBER) dv_pass_move(p, found.item, found.to);
    return found.to != DV_NO_MEMBER;
}

/* Fills those below the band. */
static void fill(dv_pass *p) {
    dv_deal *d = p->d;
    for (size_t m = 0; m < d->member_count; m++) {
        if (d->bins[m].weight <= 0 || dv_balance_level(&d->bins[m]) >= p->begins_below) continue;
        while (dv_balance_level(&d->bins[m]) < p->ends_at_least && fill_one(p, (uint32_t)m)) continue;
    }
}

/* Takes moves back that would nearly be allowed the other way round. */
static void take_back(dv_pass *p) {
    dv_deal *d = p->d;
    for (size_t i = 0; i < d->item_count; i++) {
        uint32_t a = d->items[i].owner, b = d->owners[i];
        if (a == b || a == DV_NO_MEMBER || b == DV_NO_MEMBER || !dv_balance_is_open(d, a, d->items[i].tag)) continue;
        if ((d->bins[a].load + d->sizes[i]) / d->bins[a].weight > dv_balance_level(&d->bins[b]) + DV_BALANCE_MARGIN)
            continue;
        dv_pass_move(p, i, a);
    }
}

bool dv_balance_move(dv_deal *d) {
    double trigger = d->options->imbalance > 0 ? d->options->imbalance : usual, stop = trigger / 2;
    dv_pass p = {.d = d,
                 .begins_above = 1 + trigger,
                 .ends_at_most = 1 + stop,
                 .begins_below = 1 - (d->options->begins ? stop : trigger),
                 .ends_at_least = 1 - stop,
                 .tries = TRIES,
                 .is_done = malloc(d->member_count * sizeof(bool)),
                 .small = malloc(d->member_count * sizeof(double)),
                 .next = malloc(d->member_count * sizeof(size_t)),
                 .emptiest = malloc(d->tag_count * sizeof(uint32_t)),
                 .known = calloc(d->tag_count, sizeof(uint64_t))};
    bool ready = p.is_done != NULL && p.small != NULL && p.next != NULL && p.emptiest != NULL && p.known != NULL;
    for (size_t m = 0; m < d->member_count; m++) d->bins[m].began = d->bins[m].load;
    for (size_t n = 0, moves; ready && n < PASSES; n++) {
        dv_balance_list(d);
        for (size_t m = 0; m < d->member_count; m++) p.next[m] = d->first[m];
        moves = p.made;
        for (p.smallest = 1; p.smallest > DV_BALANCE_DUST; p.smallest /= 2) shed(&p);
        p.smallest = DV_BALANCE_DUST;
        shed(&p);
        dv_pass_exchange(&p);
        fill(&p);
        take_back(&p);
        if (p.made == moves) break;
    }
    free(p.is_done);
    free(p.small);
    free(p.next);
    free(p.emptiest);
    free(p.known);
    return ready;
}
