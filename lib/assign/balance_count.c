/* A9: even numbers of items, under hard rules. SPDX-License-Identifier: Apache-2.0
 *
 * What a member costs grows with each item that it has above its share rounded up, and with each that it lacks below
 * its share rounded down; zones likewise, and before members. A sum of such costs is least where no path of moves, from
 * a member through others to a last one, lowers it. Each path is taken from the member that has most too much. */
#include <stdlib.h>
#include <string.h>

#include "assign/balance_path.h"
#include "divvy/assign.h"

typedef struct {
    double share; /* of all items */
    double weight;
    size_t count; /* of its items */
} group;

typedef struct {
    dv_deal *d;
    dv_paths paths;
    group *members;
    group *zones;
    bool *is_done; /* by member: no path from it helps */
} evening;

/* Costs that are compared by zones first; below 0 they are savings. */
typedef struct {
    double by_zones, by_members;
} cost;

/* Returns what one more than `count` items cost: nothing between the share rounded down and rounded up. */
static double cost_of_one(const group *g, size_t count) {
    double least = (double)(uint64_t)g->share;
    double more = (double)count + 0.5 - g->share;
    if ((double)count >= least && (double)count < g->share) return 0;
    return more / g->weight;
}

static cost cost_of_path(const evening *e, uint32_t a, uint32_t b) {
    const group *from = &e->zones[e->d->zone_of[a]], *to = &e->zones[e->d->zone_of[b]];
    cost c = {0};
    if (from != to) c.by_zones = cost_of_one(to, to->count) - cost_of_one(from, from->count - 1);
    c.by_members =
        cost_of_one(&e->members[b], e->d->bins[b].count) - cost_of_one(&e->members[a], e->d->bins[a].count - 1);
    return c;
}

static const double nothing = 1e-9; /* sums of fractions are not exact */

static int compare(cost a, cost b) {
    if (a.by_zones < b.by_zones - nothing) return -1;
    if (a.by_zones > b.by_zones + nothing) return 1;
    if (a.by_members < b.by_members - nothing) return -1;
    return a.by_members > b.by_members + nothing;
}

/* Returns whether an item fewer here and one more at another member would be better, if there were a path. */
static bool would_help(const evening *e, uint32_t a) {
    const dv_deal *d = e->d;
    for (size_t m = 0; m < d->member_count; m++) {
        if (m == a || d->bins[m].weight <= 0 || d->bins[m].count >= d->bins[m].most) continue;
        if (compare(cost_of_path(e, a, (uint32_t)m), (cost){0}) < 0) return true;
    }
    return false;
}

/* Takes the best path from the member. Returns whether one helps. */
static bool improve(evening *e, uint32_t a) {
    dv_deal *d = e->d;
    if (!would_help(e, a)) return false;
    dv_paths_from_member(&e->paths, a);
    cost best = {0};
    uint32_t to = DV_NO_MEMBER;
    for (size_t n = 1; n < e->paths.reached_count; n++) {
        uint32_t b = e->paths.reached[n];
        if (d->bins[b].count >= d->bins[b].most) continue;
        cost c = cost_of_path(e, a, b);
        if (compare(c, best) >= 0 || dv_paths_cost(&e->paths, b) > d->moves_max - d->moves) continue;
        best = c;
        to = b;
    }
    if (to != DV_NO_MEMBER) dv_paths_take(&e->paths, to);
    dv_paths_drop(&e->paths);
    if (to == DV_NO_MEMBER) return false;
    e->zones[e->d->zone_of[a]].count--;
    e->zones[e->d->zone_of[to]].count++;
    return true;
}

/* Returns the member that gains most by having an item fewer, or DV_NO_MEMBER. */
static uint32_t next_giver(const evening *e) {
    const dv_deal *d = e->d;
    uint32_t found = DV_NO_MEMBER;
    cost most = {0};
    for (size_t m = 0; m < d->member_count; m++) {
        if (e->is_done[m] || d->bins[m].weight <= 0 || d->bins[m].count == 0) continue;
        const group *zone = &e->zones[e->d->zone_of[m]];
        cost c = {cost_of_one(zone, zone->count - 1), cost_of_one(&e->members[m], d->bins[m].count - 1)};
        int order = found == DV_NO_MEMBER ? 1 : compare(c, most);
        if (order < 0 || (order == 0 && d->bins[m].tie <= d->bins[found].tie)) continue;
        found = (uint32_t)m;
        most = c;
    }
    return found;
}

static void even_out(evening *e) {
    bool has_changed = true;
    while (has_changed) {
        has_changed = false;
        memset(e->is_done, 0, e->d->member_count * sizeof *e->is_done);
        for (uint32_t a; (a = next_giver(e)) != DV_NO_MEMBER;) {
            if (improve(e, a)) has_changed = true;
            else e->is_done[a] = true;
        }
    }
}

/* Rounds what is an integer but for the error of fractions. */
static double rounded(double share) {
    double nearest = (double)(uint64_t)(share + 0.5);
    double off = share - nearest;
    return off < nothing && off > -nothing ? nearest : share;
}

/* A6: shares of the items that are on members of some weight. */
static void shares_make(evening *e) {
    dv_deal *d = e->d;
    size_t items = 0;
    double takers = 0;
    for (size_t m = 0; m < d->member_count; m++) {
        if (d->bins[m].weight <= 0) continue;
        items += d->bins[m].count;
        takers += d->bins[m].weight;
        e->zones[d->zone_of[m]].count += d->bins[m].count;
    }
    for (size_t m = 0; m < d->member_count; m++) {
        e->members[m] = (group){rounded((double)items * d->bins[m].weight / takers), d->bins[m].weight, 0};
    }
    for (size_t z = 0; z < d->zone_count; z++) {
        e->zones[z].share = rounded((double)items / (double)d->zone_count);
        e->zones[z].weight = 1;
    }
}

bool dv_balance_even_out(dv_deal *d) {
    evening e = {.d = d,
                 .members = calloc(d->member_count, sizeof *e.members),
                 .zones = calloc(d->member_count, sizeof *e.zones),
                 .is_done = malloc(d->member_count * sizeof *e.is_done)};
    bool ready = dv_paths_make(&e.paths, d) && e.members != NULL && e.zones != NULL && e.is_done != NULL;
    if (ready) {
        shares_make(&e);
        even_out(&e);
    }
    dv_paths_free(&e.paths);
    free(e.members);
    free(e.zones);
    free(e.is_done);
    return ready;
}

/* ---- without hard rules ---- */

bool dv_balance_is_free(const dv_deal *d) {
    for (size_t m = 0; m < d->member_count; m++) {
        if (d->members[m].cap > 0 && d->members[m].cap < d->item_count) return false;
    }
    for (size_t i = 0; i < d->item_count; i++) {
        if (d->items[i].tag != DV_NO_TAG || d->items[i].is_fixed) return false;
    }
    return true;
}

int dv_balance_sticky(dv_deal *d) {
    divvy_sticky_options options = DIVVY_STICKY_OPTIONS_INIT;
    options.max_moves = d->options->max_moves;
    options.keep_all = d->options->keep_all;
    options.spread_zones = 1;
    divvy_member *members = calloc(d->member_count, sizeof *members);
    const char **names = (const char **)malloc(d->item_count * sizeof *names);
    int error = members != NULL && names != NULL ? 0 : DIVVY_ENOMEM;
    for (size_t m = 0; error == 0 && m < d->member_count; m++) {
        members[m] = (divvy_member){d->members[m].identifier, d->members[m].weight, d->members[m].zone};
    }
    for (size_t i = 0; error == 0 && i < d->item_count; i++) {
        names[i] = d->items[i].name;
        d->owners[i] = d->items[i].owner;
    }
    if (error == 0) {
        error = divvy_assign_sticky(members, d->member_count, names, d->item_count, d->owners, &options, d->owners);
    }
    for (size_t i = 0; error == 0 && i < d->item_count; i++) {
        d->moves += d->items[i].owner != DV_NO_MEMBER && d->owners[i] != d->items[i].owner;
    }
    free(members);
    free((void *)names);
    return error;
}
