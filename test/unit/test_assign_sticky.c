/* The sticky assignment: promises, fixed vectors, the ends of the range. SPDX-License-Identifier: Apache-2.0 */
#include "sticky_pool.h"

static pool second;

/* --- what is promised --- */

/* From balance a join moves floor(K/(M+1)) items, a leave none but the leaver's, and loads stay within one. */
TEST(test_joins_and_leaves_are_exact) {
    static const size_t item_counts[] = {1, 2, 7, 64, 99, 100, 997};
    for (size_t c = 0; c < COUNT(item_counts); c++) {
        size_t items = item_counts[c];
        pool_fill(&first, 1, items);
        pool_assign(&first);
        for (size_t members = 1; members < 40; members++) {
            pool_adopt(&first);
            first.members[first.member_count++] = (divvy_member){worker_names[members], 1000, NULL};
            pool_assign(&first);
            assert_int_equal(moves_count(&first), items / (members + 1));
            assert_balanced(&first);
        }
        while (first.member_count > 1) {
            pool_adopt(&first);
            member_leaves(&first);
            pool_assign(&first);
            assert_int_equal(moves_count(&first), 0);
            assert_balanced(&first);
        }
    }
    pool_fill(&first, 4, 10000);
    pool_assign(&first);
    pool_adopt(&first);
    first.members[first.member_count++] = (divvy_member){worker_names[4], 1000, NULL};
    pool_assign(&first);
    assert_int_equal(moves_count(&first), 2000);
}

/* Where all weigh nothing, nothing moves; items without an owner go to those who have least, zones or not. */
TEST(test_all_weights_zero) {
    pool_fill(&first, 4, 20);
    for (size_t m = 0; m < 4; m++) first.members[m].weight = 0;
    for (size_t i = 0; i < 12; i++) first.previous[i] = 1;
    pool_assign(&first);
    size_t loads[MEMBERS_MAX];
    loads_count(&first, first.owners, loads);
    assert_int_equal(moves_count(&first), 0);
    assert_int_equal(loads[1], 12);
    for (size_t m = 0; m < 4; m++) assert_in_range(loads[m], 2, m == 1 ? 12 : 3);
    pool_adopt(&first);
    pool_assign(&first);
    assert_memory_equal(first.owners, first.previous, first.item_count * sizeof first.owners[0]);
}

/* The only member of a zone takes as much as the two of the other; without a zone is a zone too, and NULL is "". */
TEST(test_zones_share_alike) {
    pool_fill(&first, 3, 21);
    first.members[0].zone = "a";
    first.members[2].zone = "";
    size_t loads[MEMBERS_MAX];
    first.options.spread_zones = 1;
    pool_assign(&first);
    loads_count(&first, first.owners, loads);
    assert_in_range(loads[0], 10, 11);
    assert_balanced(&first);
    pool_adopt(&first);
    first.options.spread_zones = 0;
    pool_assign(&first);
    assert_int_equal(moves_count(&first), loads[0] - 7);
    assert_balanced(&first);
}

/* Loads follow weights, the largest and the smallest beside each other included. */
TEST(test_weights) {
    static const uint32_t weights[] = {UINT32_MAX, UINT32_MAX - 1, UINT32_MAX / 3, 1, 0};
    pool_fill(&first, COUNT(weights), ITEMS_MAX);
    for (size_t m = 0; m < COUNT(weights); m++) first.members[m].weight = weights[m];
    pool_assign(&first);
    assert_balanced(&first);
    pool_fill(&first, 3, 100);
    first.members[1].weight = 500;
    first.members[2].weight = 2500;
    pool_assign(&first);
    size_t loads[MEMBERS_MAX];
    loads_count(&first, first.owners, loads);
    assert_int_equal(loads[0], 25); /* 25, 12.5, 62.5 */
    assert_in_range(loads[1], 12, 13);
    assert_in_range(loads[2], 62, 63);
}

/* Many pools of one item and the same ten members do not all burden the same one. */
TEST(test_ties_spread) {
    size_t chosen[10] = {0};
    for (size_t i = 0; i < 1000; i++) {
        pool_fill(&first, 10, 1);
        first.items[0] = item_names[i];
        pool_assign(&first);
        chosen[first.owners[0]]++;
    }
    for (size_t m = 0; m < 10; m++) assert_in_range(chosen[m], 50, 150);
}

/* --- the same everywhere --- */

/* Draws what sticky_reference.py draws. Few names, so that equal ones are common; two of them have one FNV-1a hash. */
static const char *name_by_chance(size_t distinct_percent, const char *prefix, size_t index, char *space) {
    static const char *const few[] = {"a",           "b",        "",         "zo\xc3\xab", "5nr7f1oj3v0",
                                      "3i72bi44o5M", "worker-1", "worker-2", "x",          "item-000001"};
    if (chance(100) >= distinct_percent) return few[chance(COUNT(few))];
    snprintf(space, NAME_BYTES, "%s-%zu", prefix, index);
    return space;
}

static void pool_fill_by_chance(pool *p) {
    static const uint32_t weights[] = {0, 1000, 1000, 1000, 500, 2500, 1, UINT32_MAX};
    static const char *const zones[] = {NULL, "a", "b", "\xc3\xb6"};
    static char member_space[9][NAME_BYTES], item_space[40][NAME_BYTES];
    p->member_count = 1 + chance(9);
    p->item_count = chance(40);
    size_t distinct_percent = chance(101), owned_percent = chance(101), kept_weights = 1 + chance(8);
    for (size_t m = 0; m < p->member_count; m++) {
        const char *identifier = name_by_chance(distinct_percent, "member", m, member_space[m]);
        uint32_t weight = weights[chance(kept_weights)];
        p->members[m] = (divvy_member){identifier, weight, zones[chance(COUNT(zones))]};
    }
    for (size_t i = 0; i < p->item_count; i++) {
        p->items[i] = name_by_chance(distinct_percent, "item", i, item_space[i]);
        uint32_t owner = (uint32_t)chance(p->member_count);
        p->previous[i] = owner;
        if (chance(100) >= owned_percent) p->previous[i] = NONE;
    }
    p->options = (divvy_sticky_options)DIVVY_STICKY_OPTIONS_INIT;
    p->options.max_moves = chance(8);
    p->options.spread_zones = (int)chance(2);
}

/* It assigns today what the independent implementation in Python assigned when the rules were written. */
TEST(test_never_changes) {
    static const uint64_t digests[] = {0x8c8798dd929e6de7, 0x36f28e77d07376bb, 0x89fe1fd0e22419bf};
    uint64_t digest = 0xcbf29ce484222325U;
    chance_state = 7;
    for (size_t c = 0; c < COUNT(digests) * 1000; c++) {
        pool_fill_by_chance(&first);
        pool_assign(&first);
        for (size_t i = 0; i < first.item_count; i++) digest = (digest ^ first.owners[i]) * 0x100000001b3U;
        if ((c + 1) % 1000 == 0) assert_int_equal(digest, digests[c / 1000]);
    }
}

/* The order of both arrays changes nothing, and the owners may be written over the previous ones. */
TEST(test_order_changes_nothing) {
    chance_begin();
    for (int round = 0; round < 1000; round++) {
        pool_fill_by_chance(&first);
        for (size_t m = 0; m < first.member_count; m++) first.members[m].identifier = worker_names[m];
        for (size_t i = 0; i < first.item_count; i++) first.items[i] = item_names[i];
        pool_assign(&first);
        second = first;
        size_t member_at[9], item_at[40]; /* of the second, where they are in the first */
        for (size_t m = 0; m < second.member_count; m++) {
            size_t other = chance(m + 1);
            member_at[m] = member_at[other];
            member_at[other] = m;
        }
        for (size_t i = 0; i < second.item_count; i++) {
            size_t other = chance(i + 1);
            item_at[i] = item_at[other];
            item_at[other] = i;
        }
        for (size_t m = 0; m < second.member_count; m++) second.members[m] = first.members[member_at[m]];
        for (size_t i = 0; i < second.item_count; i++) {
            second.items[i] = first.items[item_at[i]];
            second.previous[i] = NONE;
            for (size_t m = 0; m < second.member_count; m++) {
                if (first.previous[item_at[i]] == member_at[m]) second.previous[i] = (uint32_t)m;
            }
        }
        assert_int_equal(divvy_assign_sticky(second.members, second.member_count, second.items, second.item_count,
                                             second.previous, &second.options, second.previous),
                         0);
        for (size_t i = 0; i < second.item_count; i++) {
            assert_int_equal(member_at[second.previous[i]], first.owners[item_at[i]]);
        }
    }
}

/* --- the ends of the range --- */

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void timed(const char *what) {
    double from = now_ms();
    pool_assign(&first);
    print_message("%zu items, %zu members, %s: %.1f ms, %zu moved\n", first.item_count, first.member_count, what,
                  now_ms() - from, moves_count(&first));
    assert_balanced(&first);
}

/* The largest pools that the library is meant for are dealt like small ones, on an ordinary stack. */
TEST(test_large_pool) {
    pool_fill(&first, 1000, ITEMS_MAX);
    timed("first plan");
    pool_adopt(&first);
    timed("nothing to do");
    assert_int_equal(moves_count(&first), 0);
    first.members[first.member_count++] = (divvy_member){worker_names[1000], 1000, NULL};
    timed("join");
    assert_int_equal(moves_count(&first), ITEMS_MAX / 1001);
    pool_adopt(&first);
    chance_state = 1;
    member_leaves(&first);
    timed("leave");
    assert_int_equal(moves_count(&first), 0);
    static const char *const zones[] = {"a", "b", "c"};
    for (size_t m = 0; m < first.member_count; m++) {
        first.members[m].zone = zones[m % 3];
        first.members[m].weight = (uint32_t)(500 + m);
    }
    first.options.spread_zones = 1;
    timed("other weights and zones");
    for (size_t i = 0; i < ITEMS_MAX; i++) first.previous[i] = 0;
    timed("all from one");
}

/* Without items there is nothing to do; a single member has everything; with more members than items nobody has two. */
TEST(test_few) {
    pool_fill(&first, 3, 0);
    first.owners[0] = UNTOUCHED;
    assert_int_equal(divvy_assign_sticky(first.members, 3, first.items, 0, first.previous, NULL, first.owners), 0);
    assert_int_equal(divvy_assign_sticky(first.members, 0, first.items, 0, NULL, NULL, first.owners), 0);
    assert_int_equal(first.owners[0], UNTOUCHED);
    pool_fill(&first, 1, 100);
    pool_assign(&first);
    assert_balanced(&first);
    pool_fill(&first, 1000, 10);
    pool_assign(&first);
    assert_balanced(&first);
}

/* Members of one identifier, and items of one name, are different ones. */
TEST(test_equal_names) {
    pool_fill(&first, 4, 101);
    for (size_t m = 0; m < 4; m++) first.members[m].identifier = "same";
    for (size_t i = 0; i < 101; i++) first.items[i] = "same";
    for (size_t i = 0; i < 70; i++) first.previous[i] = i % 2;
    pool_assign(&first);
    assert_int_equal(moves_count(&first), 35 - 26 + 35 - 25);
    assert_balanced(&first);
}

/* Without options the defaults hold, and without previous owners nothing has one. */
TEST(test_left_out) {
    pool_fill(&first, 3, 50);
    pool_assign(&first);
    second = first;
    assert_int_equal(divvy_assign_sticky(second.members, 3, second.items, 50, NULL, NULL, second.owners), 0);
    assert_memory_equal(second.owners, first.owners, 50 * sizeof first.owners[0]);
}

/* Each bad argument is refused, and the owners stay as they were. */
TEST(test_bad_arguments) {
    const divvy_member members[] = {{.identifier = "a"}, {.identifier = "b"}};
    const divvy_member nameless[] = {{.identifier = "a"}, {.identifier = NULL}};
    const char *const items[] = {"x", "y"};
    const char *const itemless[] = {"x", NULL};
    const uint32_t none[] = {NONE, NONE}, nobody[] = {0, 2};
    divvy_sticky_options o = DIVVY_STICKY_OPTIONS_INIT;
    const divvy_sticky_options sizeless = {0};
    struct {
        divvy_sticky_options known;
        size_t unknown;
    } newer = {{.size = sizeof newer}, 0};
    uint32_t owners[2] = {UNTOUCHED, UNTOUCHED};
    assert_int_equal(divvy_assign_sticky(NULL, 2, items, 2, none, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, 2, NULL, 2, none, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, 2, items, 2, none, &o, NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(nameless, 2, items, 2, none, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, 2, itemless, 2, none, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, 0, items, 2, none, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, UINT32_MAX, items, 2, none, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, 2, items, 2, nobody, &o, owners), DIVVY_EINVAL);
    assert_int_equal(divvy_assign_sticky(members, 2, items, 2, none, &sizeless, owners), DIVVY_EINVAL);
    newer.unknown = 1;
    assert_int_equal(divvy_assign_sticky(members, 2, items, 2, none, &newer.known, owners), DIVVY_EINVAL);
    assert_int_equal(owners[0], UNTOUCHED);
    assert_int_equal(owners[1], UNTOUCHED);
    newer.unknown = 0;
    assert_int_equal(divvy_assign_sticky(members, 2, items, 2, none, &newer.known, owners), 0);
}

TEST_GROUP(names_setup, NULL);
