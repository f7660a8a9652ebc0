/* The deal by size. SPDX-License-Identifier: Apache-2.0 */
#include "assign/balance.h"

#include <stdlib.h>
#include <string.h>

#include "assign/balance_deal.h"
#include "divvy/error.h"

/* A move for load may bring back what a hard rule took, so that there are fewer than before. */
static void report(const dv_deal *d, size_t moves_before, dv_balance_result *result) {
    *result = (dv_balance_result){.fair_share = d->fair,
                                  .moves = d->moves,
                                  .moves_by_load = d->moves > moves_before ? d->moves - moves_before : 0,
                                  .heavy = d->heavy};
    for (size_t i = 0; i < d->item_count; i++) {
        result->ownerless += d->owners[i] == DV_NO_MEMBER && !d->items[i].is_fixed;
    }
}

int dv_balance_deal(const dv_balance_member *members, size_t member_count, const dv_balance_item *items,
                    size_t item_count, const dv_balance_options *options, uint32_t *owners, dv_balance_result *result) {
    *result = (dv_balance_result){0};
    for (size_t i = 0; i < item_count && member_count == 0; i++) {
        owners[i] = DV_NO_MEMBER;
        result->ownerless += !items[i].is_fixed;
    }
    if (item_count == 0 || member_count == 0) return 0;
    dv_deal d = {.members = members,
                 .member_count = member_count,
                 .items = items,
                 .item_count = item_count,
                 .options = options,
                 .owners = owners,
                 .moves_max = options->keep_all         ? 0
                              : options->max_moves == 0 ? SIZE_MAX
                                                        : options->max_moves};
    bool ready = dv_balance_deal_begin(&d), is_counted = options->by_count && dv_balance_is_free(&d);
    size_t moves = 0;
    if (ready && is_counted) {
        ready = dv_balance_sticky(&d) == 0;
    } else if (ready) {
        ready = dv_balance_deal_list(&d) && dv_balance_place(&d) && dv_balance_make_way(&d);
        moves = d.moves;
        if (ready && d.moves_max > 0) ready = options->by_count ? dv_balance_even_out(&d) : dv_balance_move(&d);
    }
    if (ready) report(&d, options->by_count ? d.moves : moves, result);
    dv_balance_deal_free(&d);
    return ready ? 0 : DIVVY_ENOMEM;
}

double dv_balance_loads(const dv_balance_member *members, size_t member_count, const dv_balance_item *items,
                        size_t item_count, double *loads) {
    dv_deal d = {.members = members, .member_count = member_count, .items = items, .item_count = item_count};
    if (member_count > 0) memset(loads, 0, member_count * sizeof *loads);
    if (item_count == 0 || member_count == 0) return 0;
    bool ready = dv_balance_deal_begin(&d);
    for (size_t i = 0; ready && i < item_count; i++) {
        if (items[i].owner != DV_NO_MEMBER) d.bins[items[i].owner].load += d.sizes[i];
    }
    for (size_t m = 0; ready && m < member_count; m++) {
        if (d.bins[m].weight > 0) loads[m] = dv_balance_level(&d.bins[m]);
        else loads[m] = d.bins[m].load;
    }
    double fair = d.fair;
    dv_balance_deal_free(&d);
    return ready ? fair : -1;
}
