/* Shared by the tests of the sticky assignment: a pool, chance, bounds of loads. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_STICKY_POOL_H
#define DV_TEST_STICKY_POOL_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign_names.h"
#include "divvy/assign.h"
#include "lib/seed.h"
#include "lib/test.h"

#define NONE UINT32_MAX

enum { ZONES_MAX = 5 };

/* A pool and how its items are dealt. The names are not its own. */
typedef struct {
    divvy_member members[MEMBERS_MAX];
    size_t member_count;
    const char *items[ITEMS_MAX];
    size_t item_count;
    uint32_t previous[ITEMS_MAX], owners[ITEMS_MAX];
    divvy_sticky_options options;
} pool;

static pool first;

/* Members of weight 1000 without a zone, items without an owner. */
static inline void pool_fill(pool *p, size_t member_count, size_t item_count) {
    p->member_count = member_count;
    p->item_count = item_count;
    for (size_t m = 0; m < member_count; m++) p->members[m] = (divvy_member){worker_names[m], 1000, NULL};
    for (size_t i = 0; i < item_count; i++) {
        p->items[i] = item_names[i];
        p->previous[i] = NONE;
    }
    p->options = (divvy_sticky_options)DIVVY_STICKY_OPTIONS_INIT;
}

static inline void pool_assign(pool *p) {
    for (size_t i = 0; i < p->item_count; i++) p->owners[i] = UNTOUCHED;
    assert_int_equal(
        divvy_assign_sticky(p->members, p->member_count, p->items, p->item_count, p->previous, &p->options, p->owners),
        0);
}

/* Makes the assigned owners the previous owners of the items. */
static inline void pool_adopt(pool *p) {
    memcpy(p->previous, p->owners, p->item_count * sizeof p->owners[0]);
}

/* --- chance, replayable --- */

static uint64_t chance_state;

static inline void chance_begin(void) {
    chance_state = dv_test_seed("unit_assign_sticky");
}

/* A number below `bound`, by Knuth's MMIX generator. */
static inline size_t chance(size_t bound) {
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(chance_state >> 33) % bound;
}

/* --- what the rules ask for, said once more and plainly --- */

static inline const char *zone_of(const pool *p, size_t m) {
    return p->options.spread_zones && p->members[m].zone != NULL ? p->members[m].zone : "";
}

static inline bool all_weigh_nothing(const pool *p) {
    for (size_t m = 0; m < p->member_count; m++) {
        if (p->members[m].weight > 0) return false;
    }
    return true;
}

/* The weight of a member's zone, or its items, those of `loads`. */
static inline uint64_t zone_sum(const pool *p, size_t of, const size_t *loads) {
    uint64_t sum = 0;
    for (size_t m = 0; m < p->member_count; m++) {
        if (strcmp(zone_of(p, m), zone_of(p, of)) == 0) sum += loads != NULL ? loads[m] : p->members[m].weight;
    }
    return sum;
}

/* Numbers the zones in which somebody weighs something; the other members get SIZE_MAX. Returns how many. */
static inline size_t zones_number(const pool *p, size_t *numbers) {
    size_t count = 0;
    for (size_t m = 0; m < p->member_count; m++) {
        numbers[m] = SIZE_MAX;
        if (zone_sum(p, m, NULL) == 0) continue;
        for (size_t other = 0; other < m; other++) {
            if (strcmp(zone_of(p, m), zone_of(p, other)) == 0) numbers[m] = numbers[other];
        }
        if (numbers[m] == SIZE_MAX) numbers[m] = count++;
    }
    return count;
}

static inline void loads_count(const pool *p, const uint32_t *owners, size_t *loads) {
    memset(loads, 0, p->member_count * sizeof *loads);
    for (size_t i = 0; i < p->item_count; i++) {
        if (owners[i] != NONE) loads[owners[i]]++;
    }
}

/* Fails unless all loads are proportional shares, rounded up or down, and those of zones as equal as can be. */
static inline void assert_balanced(const pool *p) {
    size_t loads[MEMBERS_MAX], numbers[MEMBERS_MAX];
    size_t zone_count = zones_number(p, numbers);
    loads_count(p, p->owners, loads);
    for (size_t m = 0; m < p->member_count; m++) {
        if (p->members[m].weight == 0) {
            assert_int_equal(loads[m], 0);
            continue;
        }
        uint64_t zone_items = zone_sum(p, m, loads), zone_weight = zone_sum(p, m, NULL);
        uint64_t share = zone_items * p->members[m].weight;
        uint64_t most = share / zone_weight + (share % zone_weight != 0);
        assert_in_range(loads[m], share / zone_weight, most);
        size_t room = p->item_count / zone_count;
        assert_in_range(zone_items, room, room + (p->item_count % zone_count != 0));
    }
}

/* Returns how many items that somebody had are somebody else's now. Fails if any has no owner. */
static inline size_t moves_count(const pool *p) {
    size_t moves = 0;
    for (size_t i = 0; i < p->item_count; i++) {
        assert_true(p->owners[i] < p->member_count);
        moves += p->previous[i] != NONE && p->previous[i] != p->owners[i];
    }
    return moves;
}

/* Lets a member leave; its items have no owner. */
static inline void member_leaves(pool *p) {
    uint32_t gone = (uint32_t)chance(p->member_count);
    size_t last = --p->member_count;
    p->members[gone] = p->members[last];
    for (size_t i = 0; i < p->item_count; i++) {
        if (p->previous[i] == gone) p->previous[i] = NONE;
        else if (p->previous[i] == last) p->previous[i] = gone;
    }
}

#endif
