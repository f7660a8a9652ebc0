/* The shares of a deal by size: weights, sizes, lambda. SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "assign/assign_internal.h"
#include "assign/balance_deal.h"

/* ---- weights ---- */

typedef struct {
    const char *zone;
    size_t member;
} place;

static int by_zone(const void *left, const void *right) {
    const place *a = left;
    const place *b = right;
    int order = strcmp(a->zone, b->zone);
    return order != 0 ? order : (a->member > b->member) - (a->member < b->member);
}

/* A6: all weights 0 count as all 1. */
static double weight_of(const dv_deal *d, size_t m, bool all_are_zero) {
    return all_are_zero ? 1 : d->members[m].weight;
}

/* A6: zones share alike, members inside them by weight; the mean of those above 0 becomes 1. */
bool dv_balance_weigh(dv_deal *d) {
    place *places = calloc(d->member_count, sizeof *places);
    if (places == NULL) return false;
    uint64_t total = 0;
    size_t takers = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        places[m] = (place){.zone = d->members[m].zone != NULL ? d->members[m].zone : "", .member = m};
        total += d->members[m].weight;
    }
    if (total == 0) d->moves_max = 0;
    qsort(places, d->member_count, sizeof *places, by_zone);
    for (size_t from = 0, to; from < d->member_count; from = to) {
        double sum = 0;
        for (to = from; to < d->member_count && strcmp(places[to].zone, places[from].zone) == 0; to++) {
            sum += weight_of(d, places[to].member, total == 0);
        }
        if (sum <= 0) continue;
        for (size_t p = from; p < to; p++) {
            double weight = weight_of(d, places[p].member, total == 0);
            d->zone_of[places[p].member] = (uint32_t)d->zone_count;
            d->bins[places[p].member].weight = weight / sum;
            takers += weight > 0;
        }
        d->zone_count++;
    }
    for (size_t m = 0; m < d->member_count; m++) d->bins[m].weight *= (double)takers / (double)d->zone_count;
    free(places);
    return true;
}

/* ---- sizes ---- */

enum { LEAST_PART = 20 }; /* of the mean: what an idle item counts, so that not all of them go to one member */

/* Not a number is not known. */
static bool is_known(double size) {
    return size >= 0;
}

/* Fills in what each item counts, in parts of the largest. Returns how much of the caller's unit a part is. */
static double count_sizes(dv_deal *d) {
    double largest = 0, sum = 0;
    size_t known = 0;
    if (d->options != NULL && d->options->by_count) {
        for (size_t i = 0; i < d->item_count; i++) d->sizes[i] = 1;
        return 1;
    }
    for (size_t i = 0; i < d->item_count; i++) {
        if (is_known(d->items[i].size) && d->items[i].size > largest) largest = d->items[i].size;
    }
    if (largest > DBL_MAX) largest = DBL_MAX;
    for (size_t i = 0; i < d->item_count; i++) {
        double size = d->items[i].size;
        if (!is_known(size)) continue;
        sum += size < largest ? size / largest : largest > 0;
        known++;
    }
    double mean = sum > 0 ? sum / (double)known : 1;
    for (size_t i = 0; i < d->item_count; i++) {
        double size = d->items[i].size;
        d->sizes[i] = !is_known(size) || sum <= 0 ? mean : size < largest ? size / largest : 1;
        if (d->sizes[i] < mean / LEAST_PART) d->sizes[i] = mean / LEAST_PART;
    }
    return largest > 0 ? largest : 1;
}

static int descending(const void *left, const void *right) {
    const double *a = left;
    const double *b = right;
    return (*a < *b) - (*a > *b);
}

static const double nothing = 1e-9; /* sums of weights are not exact */

/* A10: solves sum(min(x, lambda * strongest)) = lambda * takers. Items of fewer than the members leave nothing to
 * share: then the least of them is the share. */
static double fair_share(dv_deal *d, const double *sizes, double takers, double strongest) {
    double rest = 0, left = takers, fair = 0;
    for (size_t i = d->item_count; i > 0; i--) rest += sizes[i - 1]; /* the small ones first: they add up exactly */
    for (size_t i = 0; i < d->item_count; i++) {
        if (left <= nothing || sizes[i] * left < rest * strongest) break;
        if (i + 1 == d->item_count) return sizes[i] / strongest;
        rest -= sizes[i];
        left -= strongest;
        d->heavy++;
    }
    fair = left > nothing ? rest / left : 0;
    return fair > 0 ? fair : sizes[d->item_count - 1] / strongest;
}

/* A10: lambda, and each item in parts of it. */
bool dv_balance_measure(dv_deal *d) {
    double takers = 0, strongest = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        takers += d->bins[m].weight;
        if (d->bins[m].weight > strongest) strongest = d->bins[m].weight;
    }
    double *sorted = malloc(d->item_count * sizeof *sorted);
    if (sorted == NULL) return false;
    double unit = count_sizes(d);
    memcpy(sorted, d->sizes, d->item_count * sizeof *sorted);
    qsort(sorted, d->item_count, sizeof *sorted, descending);
    double fair = fair_share(d, sorted, takers, strongest);
    free(sorted);
    for (size_t i = 0; i < d->item_count; i++) {
        d->sizes[i] /= fair;
        if (d->sizes[i] > strongest) d->sizes[i] = strongest;
    }
    d->fair = fair * unit;
    return true;
}
