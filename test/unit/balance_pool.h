/* Shared by the tests of the deal by size: a pool, chance, the hard rules. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_BALANCE_POOL_H
#define DV_TEST_BALANCE_POOL_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign/balance.h"
#include "divvy/error.h"
#include "lib/seed.h"
#include "lib/test.h"

#define NONE UINT32_MAX

enum { MEMBERS_MAX = 1000, ITEMS_MAX = 100000, TAGS_MAX = 4, NAME_BYTES = 32 };

/* A pool and how its items are dealt. The names are not its own. */
typedef struct {
    dv_balance_member members[MEMBERS_MAX];
    size_t member_count;
    bool tags[MEMBERS_MAX][TAGS_MAX];
    dv_balance_item items[ITEMS_MAX];
    size_t item_count;
    dv_balance_options options;
    uint32_t owners[ITEMS_MAX];
    dv_balance_result result;
    double levels[MEMBERS_MAX];
} pool;

static char worker_names[MEMBERS_MAX][NAME_BYTES];
static char item_names[ITEMS_MAX][NAME_BYTES];

/* Members of weight 1000 without anything else; items of size 1 without an owner. */
static inline void pool_fill(pool *p, size_t member_count, size_t item_count) {
    p->member_count = member_count;
    p->item_count = item_count;
    p->options = (dv_balance_options){.imbalance = 0.2};
    memset(p->tags, 0, member_count * sizeof p->tags[0]);
    for (size_t m = 0; m < member_count; m++) {
        if (worker_names[m][0] == '\0') snprintf(worker_names[m], NAME_BYTES, "worker-%zu", m + 1);
        p->members[m] = (dv_balance_member){worker_names[m], "", 1000, 0, p->tags[m]};
    }
    for (size_t i = 0; i < item_count; i++) {
        if (item_names[i][0] == '\0') snprintf(item_names[i], NAME_BYTES, "item-%06zu", i + 1);
        p->items[i] = (dv_balance_item){.name = item_names[i], .size = 1, .owner = NONE, .tag = DV_NO_TAG};
    }
}

static inline void pool_deal(pool *p) {
    memset(p->owners, 0xab, p->item_count * sizeof p->owners[0]);
    assert_int_equal(
        dv_balance_deal(p->members, p->member_count, p->items, p->item_count, &p->options, p->owners, &p->result), 0);
}

/* Makes the dealt owners the present ones. Where anything moved, tells from whom. */
static inline void pool_adopt(pool *p) {
    for (size_t i = 0; i < p->item_count; i++) {
        uint32_t before = p->items[i].owner;
        if (p->result.moves > 0) p->items[i].came_from = before != NONE && before != p->owners[i] ? before + 1 : 0;
        p->items[i].owner = p->owners[i];
    }
}

/* Returns the most that a member has of its share, as the items are owned. */
static inline double pool_worst(pool *p) {
    assert_true(dv_balance_loads(p->members, p->member_count, p->items, p->item_count, p->levels) >= 0);
    double worst = 0;
    for (size_t m = 0; m < p->member_count; m++) {
        if (p->members[m].weight > 0 && p->levels[m] > worst) worst = p->levels[m];
    }
    return worst;
}

static inline bool may_have(const pool *p, size_t m, size_t i) {
    return p->items[i].tag == DV_NO_TAG || p->tags[m][p->items[i].tag];
}

static inline size_t count_of(const pool *p, size_t m) {
    size_t count = 0;
    for (size_t i = 0; i < p->item_count; i++) count += p->owners[i] == m;
    return count;
}

/* Fails unless pins, tags and caps hold, and the result says what was done. Those who have too much or what they must
 * not have, because no more moves were allowed, may keep it. */
static inline void assert_rules_hold(const pool *p) {
    size_t moves = 0, ownerless = 0, weight = 0;
    for (size_t m = 0; m < p->member_count; m++) weight += p->members[m].weight;
    bool is_limited = p->options.keep_all || p->options.max_moves > 0 || weight == 0;
    for (size_t i = 0; i < p->item_count; i++) {
        uint32_t before = p->items[i].owner, after = p->owners[i];
        assert_true(after == NONE || after < p->member_count);
        moves += before != NONE && after != before;
        ownerless += after == NONE && !p->items[i].is_fixed;
        if (p->items[i].is_fixed) assert_int_equal(after, before);
        else if (after != NONE && (after != before || !is_limited)) assert_true(may_have(p, after, i));
        if (after != NONE && after != before && weight > 0) assert_true(p->members[after].weight > 0);
    }
    assert_int_equal(p->result.moves, moves);
    assert_int_equal(p->result.ownerless, ownerless);
    assert_true(p->result.moves_by_load <= moves);
    if (p->options.keep_all) assert_int_equal(moves, 0);
    if (p->options.max_moves > 0) assert_true(moves <= p->options.max_moves);
    for (size_t m = 0; m < p->member_count; m++) {
        size_t fixed = 0, before = 0, count = count_of(p, m), cap = p->members[m].cap;
        for (size_t i = 0; i < p->item_count; i++) {
            fixed += p->items[i].is_fixed && p->items[i].owner == m;
            before += p->items[i].owner == m;
        }
        size_t most = is_limited ? before : fixed;
        if (cap > 0) assert_true(count <= (cap > most ? cap : most));
    }
}

/* --- chance, replayable --- */

static uint64_t chance_state;

/* A number below `bound`, by Knuth's MMIX generator. */
static inline size_t chance(size_t bound) {
    chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(chance_state >> 33) % bound;
}

static inline double fraction(void) {
    return (double)chance(1U << 30) / (double)(1U << 30);
}

static inline void chance_from(uint64_t seed) {
    chance_state = seed * 7919 + 1;
    for (int i = 0; i < 4; i++) chance(2);
}

/* Equal counts, at random. */
static inline void own_equally(pool *p) {
    for (size_t i = 0; i < p->item_count; i++) p->items[i].owner = (uint32_t)(i % p->member_count);
    for (size_t i = p->item_count; i > 1; i--) {
        size_t other = chance(i);
        uint32_t owner = p->items[i - 1].owner;
        p->items[i - 1].owner = p->items[other].owner;
        p->items[other].owner = owner;
    }
}

#endif
