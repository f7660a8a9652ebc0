/* The sticky assignment against an optimum that is found by another way: all small cases, and random histories.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lib/min_cost_flow.h"
#include "sticky_pool.h"

/* --- the optimum, by a network --- */

enum { MUST = 1000000 };

/* The least moves with which the zones of the set `fuller` have one item more than the others; -1: it cannot be. Items
 * flow from those who have them, through those who get them, through the zones. What a member must get earns so much
 * that nothing else counts before it; loads[member_count] are those that nobody has. */
static int64_t moves_with(const pool *p, const size_t *loads, const size_t *numbers, size_t zone_count, size_t fuller) {
    static dv_test_flow flow;
    flow.node_count = flow.edge_count = 0;
    size_t source = dv_test_flow_node(&flow), sink = dv_test_flow_node(&flow);
    size_t zones[ZONES_MAX], zone_items[ZONES_MAX], receivers[DV_TEST_FLOW_NODES];
    int64_t must = 0;
    for (size_t z = 0; z < zone_count; z++) {
        zones[z] = dv_test_flow_node(&flow);
        zone_items[z] = p->item_count / zone_count + (fuller >> z & 1);
        dv_test_flow_connect(&flow, zones[z], sink, (int64_t)zone_items[z], 0);
    }
    for (size_t m = 0; m < p->member_count; m++) {
        receivers[m] = dv_test_flow_node(&flow);
        if (numbers[m] == SIZE_MAX) continue;
        uint64_t share = (uint64_t)zone_items[numbers[m]] * p->members[m].weight, weight = zone_sum(p, m, NULL);
        dv_test_flow_connect(&flow, receivers[m], zones[numbers[m]], (int64_t)(share / weight), -MUST);
        dv_test_flow_connect(&flow, receivers[m], zones[numbers[m]], share % weight != 0, 0);
        must += (int64_t)(share / weight);
    }
    for (size_t from = 0; from <= p->member_count; from++) {
        if (loads[from] == 0) continue;
        size_t giver = dv_test_flow_node(&flow);
        dv_test_flow_connect(&flow, source, giver, (int64_t)loads[from], 0);
        for (size_t to = 0; to < p->member_count; to++) {
            bool moves = from != to && from < p->member_count;
            dv_test_flow_connect(&flow, giver, receivers[to], (int64_t)loads[from], moves);
        }
    }
    int64_t cost;
    if (dv_test_flow_send(&flow, source, sink, &cost) != (int64_t)p->item_count) return -1;
    int64_t moves = cost + must * MUST;
    return moves < MUST ? moves : -1;
}

/* The least number of moves from loads (see above) to balance. */
static size_t optimum(const pool *p, const size_t *loads) {
    if (all_weigh_nothing(p)) return 0;
    size_t numbers[MEMBERS_MAX];
    size_t zone_count = zones_number(p, numbers);
    int64_t least = -1;
    for (size_t fuller = 0; fuller < (size_t)1 << zone_count; fuller++) {
        if ((size_t)__builtin_popcountll(fuller) != p->item_count % zone_count) continue;
        int64_t moves = moves_with(p, loads, numbers, zone_count, fuller);
        if (moves >= 0 && (least < 0 || moves < least)) least = moves;
    }
    assert_true(least >= 0);
    return (size_t)least;
}

/* As many as nobody has, last. */
static void loads_with_orphans(const pool *p, const uint32_t *owners, size_t *loads) {
    loads_count(p, owners, loads);
    loads[p->member_count] = p->item_count;
    for (size_t m = 0; m < p->member_count; m++) loads[p->member_count] -= loads[m];
}

static size_t optimum_of(const pool *p, const uint32_t *owners) {
    size_t loads[MEMBERS_MAX + 1];
    loads_with_orphans(p, owners, loads);
    return optimum(p, loads);
}

/* --- all small cases --- */

/* Sanitizers make each of the millions of calls twenty times slower, and see nothing new in more items. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SMALL_ITEMS = 4 };
#else
enum { SMALL_ITEMS = 6 };
#endif
enum { SMALL_MEMBERS = 4, SMALL_LOADS = 7 * 7 * 7 * 7 * 7 };

/* Returns the optimum, which depends on the loads only: there are few of them. */
static size_t small_optimum(const pool *p, const uint32_t *owners, int *known) {
    size_t loads[MEMBERS_MAX + 1], number = 0;
    loads_with_orphans(p, owners, loads);
    for (size_t m = 0; m <= p->member_count; m++) number = number * (SMALL_ITEMS + 1) + loads[m];
    if (known[number] < 0) known[number] = (int)optimum(p, loads);
    return (size_t)known[number];
}

static bool next_previous(pool *p) {
    for (size_t i = 0; i < p->item_count; i++) {
        p->previous[i] = p->previous[i] == NONE ? 0 : p->previous[i] + 1;
        if (p->previous[i] < p->member_count) return true;
        p->previous[i] = NONE;
    }
    return false;
}

/* All previous owners. One call moves the least there is and balances; one that may move a single item moves it, and
 * then there is one less to move. That f(f(x)) = f(x), and that rounds come to an end after as many as there
 * are moves, follows: what these calls return is among the cases. */
static void check_all_previous(pool *p) {
    static int known[SMALL_LOADS];
    memset(known, -1, sizeof known);
    do {
        size_t least = small_optimum(p, p->previous, known);
        p->options.max_moves = 0;
        pool_assign(p);
        assert_int_equal(moves_count(p), least);
        assert_int_equal(small_optimum(p, p->owners, known), 0); /* Balanced: nothing is left to move. */
        if (least < 2) continue;                                 /* A limit of one would limit nothing. */
        p->options.max_moves = 1;
        pool_assign(p);
        assert_int_equal(moves_count(p), 1);
        assert_int_equal(small_optimum(p, p->owners, known), least - 1);
    } while (next_previous(p));
}

/* Up to 4 members of weights 0, 1 and 1.5 (in falling order, since members are alike but for their names), up to 6
 * items, all previous owners: the moves are the optimum, the loads the shares. */
TEST(test_all_small_cases_of_weights) {
    static const uint32_t weights[] = {1500, 1000, 0};
    for (size_t members = 1; members <= SMALL_MEMBERS; members++) {
        for (size_t light = 0; light <= members; light++) { /* how many are not of the greatest weight */
            for (size_t drained = 0; drained <= light; drained++) {
                for (size_t items = 1; items <= SMALL_ITEMS; items++) {
                    pool_fill(&first, members, items);
                    for (size_t m = 0; m < members; m++) {
                        first.members[m].weight = weights[(m + light >= members) + (m + drained >= members)];
                    }
                    check_all_previous(&first);
                }
            }
        }
    }
}

/* The same with zones: all ways to put 4 members in them, with one of another weight than the rest, or none. */
TEST(test_all_small_cases_of_zones) {
    static const char *const zones[] = {"aaaa", "aaab", "aaba", "aabb", "aabc", "abca", "abcd"};
    static const char *const names[] = {NULL, "b", "c", "d"};
    static const uint32_t last_weights[] = {1000, 2500, 0};
    for (size_t z = 0; z < COUNT(zones); z++) {
        for (size_t w = 0; w < COUNT(last_weights); w++) {
            for (size_t items = 1; items <= SMALL_ITEMS; items++) {
                pool_fill(&first, SMALL_MEMBERS, items);
                first.options.spread_zones = 1;
                first.members[SMALL_MEMBERS - 1].weight = last_weights[w];
                for (size_t m = 0; m < SMALL_MEMBERS; m++) first.members[m].zone = names[zones[z][m] - 'a'];
                check_all_previous(&first);
            }
        }
    }
}

/* --- histories --- */

enum { HISTORY_MEMBERS = 9, HISTORY_ITEMS = 60 };

static void member_joins(pool *p) {
    static const char *const zones[] = {NULL, "", "a", "b", "c"};
    static unsigned joined;
    const char *name = worker_names[joined++ % MEMBERS_MAX];
    p->members[p->member_count++] = (divvy_member){name, 1000, zones[chance(COUNT(zones))]};
}

static void set_changes(pool *p) {
    static unsigned added;
    for (size_t changes = 1 + chance(8); changes > 0; changes--) {
        if (p->item_count > 0 && chance(2)) {
            size_t gone = chance(p->item_count);
            p->items[gone] = p->items[--p->item_count];
            p->previous[gone] = p->previous[p->item_count];
        } else if (p->item_count < HISTORY_ITEMS) {
            p->items[p->item_count] = item_names[added++ % ITEMS_MAX];
            p->previous[p->item_count++] = NONE;
        }
    }
}

static void something_happens(pool *p) {
    static const uint32_t weights[] = {0, 1, 500, 1000, 1000, 1000, 2000, 3333, UINT32_MAX};
    size_t what = chance(10);
    if (what < 3 && p->member_count < HISTORY_MEMBERS) member_joins(p);
    else if (what < 6 && p->member_count > 1) member_leaves(p);
    else if (what == 6) p->members[chance(p->member_count)].weight = weights[chance(COUNT(weights))];
    else if (what == 7) p->options.spread_zones = !p->options.spread_zones;
    else if (what == 8) p->options.max_moves = chance(2) ? 0 : 1 + chance(10);
    else set_changes(p);
}

/* One round is sound: it does as much of the least movement as it may, those without an owner get one, and drained
 * members come first. Returns how many moves are left. */
static size_t check_round(pool *p) {
    size_t least = optimum_of(p, p->previous), limit = p->options.max_moves;
    pool_assign(p);
    size_t moves = moves_count(p);
    assert_int_equal(moves, limit > 0 && limit < least ? limit : least);
    assert_int_equal(optimum_of(p, p->owners), least - moves);
    if (all_weigh_nothing(p)) return 0;
    if (moves == least) {
        assert_balanced(p);
        return 0;
    }
    size_t drained = 0, from_others = 0;
    for (size_t i = 0; i < p->item_count; i++) {
        drained += p->members[p->owners[i]].weight == 0;
        from_others +=
            p->previous[i] != NONE && p->previous[i] != p->owners[i] && p->members[p->previous[i]].weight > 0;
    }
    assert_true(drained == 0 || from_others == 0);
    return least - moves;
}

/* Over random joins, leaves, weights, drains, zones and sets, some of them in the midst of rounds: every round is
 * sound, and balance comes in no more rounds than the moves fill. */
TEST(test_histories) {
    chance_begin();
    pool_fill(&first, 3, 20);
    for (size_t event = 0; event < 10000; event++) {
        something_happens(&first);
        size_t left = check_round(&first);
        pool_adopt(&first);
        if (chance(2)) continue; /* The next change comes before the rounds are through. */
        size_t limit = first.options.max_moves, rounds = limit > 0 ? (left + limit - 1) / limit : 0;
        for (size_t round = 0; round < rounds; round++) {
            assert_true(left > 0);
            left = check_round(&first);
            pool_adopt(&first);
        }
        assert_int_equal(left, 0);
        pool_assign(&first);
        assert_memory_equal(first.owners, first.previous, first.item_count * sizeof first.owners[0]);
    }
}

/* While all is to be kept nobody loses anything; what has no owner is dealt out, and costs no move later. */
TEST(test_keep_all) {
    chance_begin();
    pool_fill(&first, 3, 20);
    size_t dealt = 0, left_behind = 0;
    for (size_t event = 0; event < 1000; event++) {
        something_happens(&first);
        size_t least = optimum_of(&first, first.previous);
        for (size_t i = 0; i < first.item_count; i++) dealt += first.previous[i] == NONE;
        left_behind += least;
        first.options.keep_all = 1;
        pool_assign(&first);
        assert_int_equal(moves_count(&first), 0);
        assert_int_equal(optimum_of(&first, first.owners), least);
        first.options.keep_all = 0;
        if (chance(3) == 0) pool_assign(&first);
        pool_adopt(&first);
    }
    assert_true(dealt > 0 && left_behind > 0);
}

/* A member that is drained empties, the others take no more than its items; and nothing comes back to it. */
TEST(test_drain) {
    pool_fill(&first, 5, 103);
    pool_assign(&first);
    pool_adopt(&first);
    size_t loads[MEMBERS_MAX];
    loads_count(&first, first.owners, loads);
    first.members[2].weight = 0;
    first.options.max_moves = 10;
    size_t left = loads[2];
    for (size_t rounds = (left + 9) / 10; rounds > 0; rounds--) {
        left = check_round(&first);
        for (size_t i = 0; i < first.item_count; i++) {
            if (first.owners[i] != first.previous[i]) assert_int_equal(first.previous[i], 2);
        }
        pool_adopt(&first);
    }
    assert_int_equal(left, 0);
    assert_balanced(&first);
}

TEST_GROUP(names_setup, NULL);
