/* Rules that deal items by load, ours and those of peers. SPDX-License-Identifier: Apache-2.0
 *
 * Peers' rules are written down from their public descriptions, and from nothing else. Each runs once a minute on the
 * same smoothed loads. Items cannot be split, and members are alike, so what the rules say of that is left out. Where a
 * description leaves something open, the choice here is the one that moves less. */
#include "balance_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign/balance.h"
#include "divvy/assign.h"

/* ---- what they share ---- */

static void *need(void *memory) {
    if (memory == NULL) {
        fputs("bench_balance: no memory\n", stderr);
        exit(1);
    }
    return memory;
}

/* Fills in what each member has; returns the mean of those that are here. */
static double sum_up(const world *w, double *sums) {
    double total = 0, here = 0;
    memset(sums, 0, w->member_count * sizeof *sums);
    for (size_t i = 0; i < w->item_count; i++) {
        total += w->loads[i];
        if (w->owners[i] != NOBODY) sums[w->owners[i]] += w->loads[i];
    }
    for (size_t m = 0; m < w->member_count; m++) here += w->is_here[m];
    return total / here;
}

static uint32_t emptiest(const world *w, const double *sums) {
    uint32_t found = NOBODY;
    for (size_t m = 0; m < w->member_count; m++) {
        if (w->is_here[m] && (found == NOBODY || sums[m] < sums[found])) found = (uint32_t)m;
    }
    return found;
}

static uint32_t fullest(const world *w, const double *sums) {
    uint32_t found = NOBODY;
    for (size_t m = 0; m < w->member_count; m++) {
        if (w->is_here[m] && (found == NOBODY || sums[m] > sums[found])) found = (uint32_t)m;
    }
    return found;
}

static void put(world *w, double *sums, size_t i, uint32_t to) {
    if (w->owners[i] != NOBODY) sums[w->owners[i]] -= w->loads[i];
    sums[to] += w->loads[i];
    w->owners[i] = to;
}

static const double *sorted_loads;

static int by_load(const void *left, const void *right) {
    double a = sorted_loads[*(const uint32_t *)left], b = sorted_loads[*(const uint32_t *)right];
    return (a < b) - (a > b);
}

/* Returns the items of a member, of NOBODY, or all, the largest first; the caller frees them. */
static uint32_t *items_of(const world *w, uint32_t owner, bool all, size_t *count) {
    uint32_t *items = need(malloc(w->item_count * sizeof *items + 1));
    *count = 0;
    for (size_t i = 0; i < w->item_count; i++) {
        if (all || w->owners[i] == owner) items[(*count)++] = (uint32_t)i;
    }
    sorted_loads = w->loads;
    qsort(items, *count, sizeof *items, by_load);
    return items;
}

/* What has no owner goes to the least loaded member, the largest first: all rules that look at loads do so. */
static void place_orphans(world *w, double *sums) {
    size_t count;
    uint32_t *items = items_of(w, NOBODY, false, &count);
    for (size_t n = 0; n < count; n++) put(w, sums, items[n], emptiest(w, sums));
    free(items);
}

static double *begin(world *w, double *mean) {
    double *sums = need(malloc(w->member_count * sizeof *sums));
    *mean = sum_up(w, sums);
    place_orphans(w, sums);
    return sums;
}

/* ---- longest first, over all items: Graham, "Bounds on multiprocessing timing anomalies" (1969) ---- */

static void run_longest_first(world *w) {
    double mean, *sums = begin(w, &mean);
    if (sums[fullest(w, sums)] > mean * (1 + w->threshold) || w->has_changed) {
        size_t count;
        uint32_t *items = items_of(w, 0, true, &count);
        memset(sums, 0, w->member_count * sizeof *sums);
        for (size_t n = 0; n < count; n++) w->owners[items[n]] = NOBODY;
        for (size_t n = 0; n < count; n++) put(w, sums, items[n], emptiest(w, sums));
        free(items);
    }
    free(sums);
}

/* ---- KCL 3: its "deep dive", and "Load balancing in KCL" of the Kinesis developer guide ----
 *
 * The leader acts where a worker is further than the threshold (10 %) from the mean. From each worker above it leases
 * are taken, in any order, that together have at most 60 % of what it has above the mean (the dampening); if none is so
 * small, its smallest (overshoot is allowed). They go to the least loaded worker. */

static size_t below(world *w, size_t bound) {
    *w->chance = *w->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(*w->chance >> 33) % bound;
}

static void take_for_kcl(world *w, double *sums, uint32_t from, double wanted) {
    size_t count;
    uint32_t *items = items_of(w, from, false, &count);
    if (count == 0) {
        free(items);
        return;
    }
    uint32_t smallest = items[count - 1];
    bool took = false;
    for (size_t n = count; n > 0; n--) {
        size_t chosen = below(w, n);
        uint32_t i = items[chosen];
        items[chosen] = items[n - 1];
        if (w->loads[i] >= wanted) continue;
        wanted -= w->loads[i];
        put(w, sums, i, emptiest(w, sums));
        took = true;
    }
    if (!took && emptiest(w, sums) != from) put(w, sums, smallest, emptiest(w, sums));
    free(items);
}

static void run_kcl(world *w) {
    double mean, *sums = begin(w, &mean), *before = need(malloc(w->member_count * sizeof *before));
    memcpy(before, sums, w->member_count * sizeof *before);
    bool acts = false, has_above = false;
    for (size_t m = 0; m < w->member_count; m++) {
        if (!w->is_here[m]) continue;
        acts = acts || before[m] > mean * (1 + w->threshold) || before[m] < mean * (1 - w->threshold);
        has_above = has_above || before[m] >= mean * (1 + w->threshold);
    }
    uint32_t most = fullest(w, before);
    for (size_t m = 0; acts && m < w->member_count; m++) {
        if (!w->is_here[m]) continue;
        if (has_above ? before[m] >= mean * (1 + w->threshold) : m == most)
            take_for_kcl(w, sums, (uint32_t)m, (before[m] - mean) * 0.6);
    }
    free(before);
    free(sums);
}

/* ---- Cadence's shard manager: "Greedy load balancing mode" of its documentation ----
 *
 * Sources have more than 1.15 of the mean, destinations less than 0.9 of it; if there is none and the fullest has more
 * than 1.3 of the mean, the least loaded will do. The source is the fullest that has an eligible shard, and gives the
 * one with the greatest benefit, 2x(S - D) - 2x^2 > 0. In a pass one in a hundred shards moves at most. None moves for
 * a minute after it has moved, and none of a load below 0.01 (here: of a mean item) ever. */

/* Returns the item of the source with the greatest benefit, or NOBODY. */
static uint32_t best_for_cadence(const world *w, const double *sums, uint32_t from, uint32_t to, double least) {
    uint32_t found = NOBODY;
    double best = 0;
    for (size_t i = 0; i < w->item_count; i++) {
        double x = w->loads[i];
        if (w->owners[i] != from || x < least || w->minute - w->moved_at[i] <= 1) continue;
        double benefit = 2 * x * (sums[from] - sums[to]) - 2 * x * x;
        if (benefit <= best) continue;
        best = benefit;
        found = (uint32_t)i;
    }
    return found;
}

static void run_cadence(world *w) {
    double mean, *sums = begin(w, &mean), *left = need(malloc(w->member_count * sizeof *left));
    double least = 0.01 * mean * 100 / (double)w->item_count;
    size_t moves = (w->item_count + 99) / 100;
    bool *has_moved = need(calloc(w->item_count, sizeof *has_moved));
    while (moves > 0) {
        uint32_t to = emptiest(w, sums), found = NOBODY;
        if (sums[to] >= mean * 0.9 && sums[fullest(w, sums)] < mean * 1.3) break;
        memcpy(left, sums, w->member_count * sizeof *left);
        for (;;) {
            uint32_t from = fullest(w, left);
            if (left[from] <= mean * (1 + w->threshold)) break;
            found = best_for_cadence(w, sums, from, to, least);
            if (found != NOBODY && !has_moved[found]) break;
            found = NOBODY;
            left[from] = -1;
        }
        if (found == NOBODY) break;
        has_moved[found] = true;
        put(w, sums, found, to);
        moves--;
    }
    free(has_moved);
    free(left);
    free(sums);
}

/* ---- Dicer: its user guide, and what its algorithm says of its phases and of the desired range of loads ----
 *
 * Members shall have the mean, give or take a tenth; one that has just joined at least the mean. The hottest above, or
 * the coldest below, is relieved by the move from hottest to coldest that lowers the imbalance most, less a penalty for
 * churn: here a tenth of the load, and twice that if it moved in the last ten minutes. Where the hottest has no such
 * move, the next one is tried. */

static double outside(double load, double least, double most) {
    return load > most ? load - most : load < least ? least - load : 0;
}

/* Returns the item whose move from one to the other gains most, or NOBODY. */
static uint32_t best_for_dicer(const world *w, const double *sums, uint32_t from, uint32_t to, double mean) {
    double most = mean * (1 + w->threshold), least = mean * (1 - w->threshold), best = 0;
    double least_there = w->is_new[to] ? mean : least;
    double off = outside(sums[from], least, most) + outside(sums[to], least_there, most);
    uint32_t found = NOBODY;
    for (size_t i = 0; off > 0 && i < w->item_count; i++) {
        if (w->owners[i] != from) continue;
        double x = w->loads[i], then = outside(sums[from] - x, least, most) + outside(sums[to] + x, least_there, most);
        double gain = off - then - x * (w->minute - w->moved_at[i] <= 10 ? 0.2 : 0.1);
        if (gain <= best) continue;
        best = gain;
        found = (uint32_t)i;
    }
    return found;
}

static void run_dicer(world *w) {
    double mean, *sums = begin(w, &mean), *left = need(malloc(w->member_count * sizeof *left));
    for (size_t moves = 0; moves < w->item_count; moves++) {
        uint32_t to = emptiest(w, sums), from = NOBODY, found = NOBODY;
        for (size_t m = 0; m < w->member_count; m++) {
            if (w->is_here[m] && w->is_new[m] && sums[m] < mean) to = (uint32_t)m;
        }
        bool is_cold = sums[to] < mean * (1 - (w->is_new[to] ? 0 : w->threshold));
        memcpy(left, sums, w->member_count * sizeof *left);
        while (found == NOBODY) {
            from = fullest(w, left);
            if (from == to || left[from] <= mean * (is_cold ? 1 : 1 + w->threshold)) break;
            found = best_for_dicer(w, sums, from, to, mean);
            left[from] = -1;
        }
        if (found == NOBODY) break;
        put(w, sums, found, to);
    }
    free(left);
    free(sums);
}

/* ---- CockroachDB: "Load-based rebalancing" and the settings kv.allocator.* of its documentation ----
 *
 * Once a minute each store that is more than a tenth above the mean gives ranges away, the hottest first, to the least
 * loaded store, unless that would become overfull, until it is overfull no longer. */

static void run_cockroach(world *w) {
    double mean, *sums = begin(w, &mean), most = mean * (1 + w->threshold);
    for (size_t m = 0; m < w->member_count; m++) {
        if (!w->is_here[m] || sums[m] <= most) continue;
        size_t count;
        uint32_t *items = items_of(w, (uint32_t)m, false, &count);
        for (size_t n = 0; n < count && sums[m] > most; n++) {
            uint32_t to = emptiest(w, sums);
            if (to != m && sums[to] + w->loads[items[n]] <= most) put(w, sums, items[n], to);
        }
        free(items);
    }
    free(sums);
}

/* ---- counts alone ---- */

static void run_counts(world *w) {
    divvy_member *members = need(calloc(w->member_count, sizeof *members));
    uint32_t *at = need(malloc(w->member_count * sizeof *at)), *owners = need(malloc(w->item_count * sizeof *owners));
    uint32_t *back = need(malloc(w->member_count * sizeof *back));
    size_t here = 0;
    for (size_t m = 0; m < w->member_count; m++) {
        if (!w->is_here[m]) continue;
        members[here] = (divvy_member){w->members[m], 1000, NULL};
        back[here] = (uint32_t)m;
        at[m] = (uint32_t)here++;
    }
    for (size_t i = 0; i < w->item_count; i++) owners[i] = w->owners[i] == NOBODY ? NOBODY : at[w->owners[i]];
    if (w->has_changed && divvy_assign_sticky(members, here, w->names, w->item_count, owners, NULL, owners) == 0) {
        for (size_t i = 0; i < w->item_count; i++) w->owners[i] = back[owners[i]];
    }
    free(members);
    free(at);
    free(back);
    free(owners);
}

/* ---- ours: docs/protocol.md, A10, D19 and D47 ----
 *
 * Sizes are classes of a quarter octave. One in twenty items moves in a step, and no step by load comes within three
 * minutes of another. */

static double of_class(double load) {
    double size = 1;
    while (size < load) size *= 1.189207115002721;
    while (size > load) size /= 1.189207115002721;
    return size * 1.189207115002721 - load < load - size ? size * 1.189207115002721 : size;
}

static void run_divvy(world *w) {
    dv_balance_member *members = need(calloc(w->member_count, sizeof *members));
    dv_balance_item *items = need(calloc(w->item_count, sizeof *items));
    uint32_t *owners = need(malloc(w->item_count * sizeof *owners));
    uint32_t *at = need(malloc(w->member_count * sizeof *at)), *back = need(malloc(w->member_count * sizeof *back));
    size_t here = 0;
    for (size_t m = 0; m < w->member_count; m++) {
        if (!w->is_here[m]) continue;
        members[here] = (dv_balance_member){.identifier = w->members[m], .zone = "", .weight = 1000};
        back[here] = (uint32_t)m;
        at[m] = (uint32_t)here++;
    }
    for (size_t i = 0; i < w->item_count; i++) {
        uint32_t from = w->came_from[i];
        items[i] = (dv_balance_item){
            .name = w->names[i],
            .size = of_class(w->loads[i]),
            .owner = w->owners[i] == NOBODY ? NOBODY : at[w->owners[i]],
            .tag = DV_NO_TAG,
            .came_from = from > 0 && w->is_here[from - 1] ? at[from - 1] + 1 : 0,
        };
    }
    dv_balance_options options = {.begins = w->has_changed,
                                  .keep_all = !w->has_changed && w->minute < *w->memory,
                                  .max_moves = w->item_count / 20,
                                  .imbalance = w->threshold};
    dv_balance_result result;
    if (dv_balance_deal(members, here, items, w->item_count, &options, owners, &result) == 0) {
        for (size_t i = 0; i < w->item_count; i++) {
            uint32_t to = back[owners[i]];
            if (result.moves > 0) w->came_from[i] = w->owners[i] != NOBODY && w->owners[i] != to ? w->owners[i] + 1 : 0;
            w->owners[i] = to;
        }
        if (result.moves > 0) *w->memory = w->minute + 3;
    }
    free(members);
    free(items);
    free(owners);
    free(at);
    free(back);
}

const rule rules[RULES] = {
    {"divvy", run_divvy, 0.2, {0.1, 0.15, 0.2, 0.3, 0.4}},
    {"counts alone", run_counts, 0, {0}},
    {"longest first", run_longest_first, 0.2, {0.1, 0.2, 0.4, 0.8, 1.6}},
    {"KCL 3", run_kcl, 0.1, {0.05, 0.1, 0.2, 0.4, 0.8}},
    {"Cadence", run_cadence, 0.15, {0.05, 0.1, 0.15, 0.3, 0.6}},
    {"Dicer", run_dicer, 0.1, {0.05, 0.1, 0.2, 0.4, 0.8}},
    {"CockroachDB", run_cockroach, 0.1, {0.05, 0.1, 0.2, 0.4, 0.8}},
};
