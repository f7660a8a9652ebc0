/* The deal by size: what it promises, on pools that say why. SPDX-License-Identifier: Apache-2.0 */
#include "balance_pool.h"
#include "lib/scarce.h"

static pool p;

/* Largest first, each to the emptiest: 8, 7, 6, 5, 4 come to 12, 11 and... by LPT {8}, {7, 4}, {6, 5}. */
TEST(test_items_without_an_owner_go_largest_first_to_the_emptiest) {
    static const double sizes[] = {4, 5, 6, 7, 8};
    pool_fill(&p, 3, 5);
    for (size_t i = 0; i < 5; i++) p.items[i].size = sizes[i];
    pool_deal(&p);
    assert_rules_hold(&p);
    assert_int_equal(p.result.moves, 0);
    assert_int_equal(p.owners[0], p.owners[3]);
    assert_int_equal(p.owners[1], p.owners[2]);
    assert_int_equal(count_of(&p, p.owners[4]), 1);
    assert_true(p.result.fair_share > 9.99 && p.result.fair_share < 10.01);
}

/* Zipf(1.0), 10,000 items, 100 members, from equal counts: the target of the design, on 20 seeds. */
TEST(test_zipf_takes_few_moves) {
    size_t moves[20];
    for (size_t seed = 0; seed < 20; seed++) {
        chance_from(seed + 1);
        pool_fill(&p, 100, 10000);
        for (size_t i = 0; i < p.item_count; i++) p.items[i].size = 1.0 / (double)(i + 1);
        own_equally(&p);
        pool_deal(&p);
        assert_int_equal(p.result.heavy, 13);
        moves[seed] = p.result.moves;
        for (size_t s = seed; s > 0 && moves[s - 1] > moves[s]; s--) {
            size_t more = moves[s - 1];
            moves[s - 1] = moves[s];
            moves[s] = more;
        }
        pool_adopt(&p);
        assert_true(pool_worst(&p) <= 1.25);
        pool_deal(&p);
        assert_int_equal(p.result.moves, 0);
    }
    printf("moves: median %zu, most %zu\n", moves[10], moves[19]);
    assert_true(moves[10] <= 400);
}

/* A giant's member gives its other items away, and not the giant. */
TEST(test_a_giant_shares_its_owner_with_little) {
    pool_fill(&p, 4, 41);
    p.items[0].size = 100;
    for (size_t i = 0; i < 41; i++) p.items[i].owner = (uint32_t)(i % 4);
    pool_deal(&p);
    assert_int_equal(p.result.heavy, 1);
    assert_int_equal(p.owners[0], 0);
    assert_true(count_of(&p, 0) <= 3); /* It had 11. */
    assert_true(p.result.moves <= 10);
}

/* Items that do nothing still count a twentieth of the mean, and so are spread. */
TEST(test_idle_items_do_not_go_to_one_member) {
    pool_fill(&p, 4, 44);
    for (size_t i = 4; i < 44; i++) p.items[i].size = 0;
    pool_deal(&p);
    for (size_t m = 0; m < 4; m++) assert_int_equal(count_of(&p, m), 11);
}

/* An item whose size nobody knows counts as the mean of the others. */
TEST(test_unknown_sizes_count_as_the_mean) {
    pool_fill(&p, 2, 4);
    p.items[0].size = 6;
    p.items[1].size = 2;
    p.items[2].size = -1;
    p.items[3].size = NAN;
    pool_deal(&p);
    assert_true(p.result.fair_share > 7.99 && p.result.fair_share < 8.01); /* 6 + 2 + 4 + 4 */
}

/* Two members are strong enough for a giant each, and the third is left with little: half of what a strong one has.
 * The fair share is what that one gets by its weight, and not the least item. */
TEST(test_a_weak_member_beside_giants_has_its_share) {
    static const double sizes[] = {8, 5, 1, 1};
    double levels[3];
    pool_fill(&p, 3, 4);
    p.members[0].weight = p.members[1].weight = 2000;
    for (size_t i = 0; i < 4; i++) {
        p.items[i].size = sizes[i];
        p.items[i].owner = i < 2 ? (uint32_t)i : 2;
    }
    double fair = dv_balance_loads(p.members, 3, p.items, 4, levels);
    assert_true(fabs(fair - 10.0 / 3) < 1e-9); /* Weights of 1.2, 1.2, 0.6; sizes of 4, 4, 1, 1. */
    for (size_t m = 0; m < 3; m++) assert_true(fabs(levels[m] - 1) < 1e-9);
    p.items[3].owner = NONE;
    pool_deal(&p);
    assert_int_equal(p.owners[3], 2);
}

/* Below the trigger nothing moves; above it the pool is evened out to half of it. */
TEST(test_moves_wait_for_the_trigger) {
    pool_fill(&p, 2, 30);
    for (size_t i = 0; i < 30; i++) p.items[i].owner = i < 17 ? 0 : 1; /* 1.13 */
    pool_deal(&p);
    assert_int_equal(p.result.moves, 0);
    for (size_t i = 0; i < 30; i++) p.items[i].owner = i < 19 ? 0 : 1; /* 1.27 */
    pool_deal(&p);
    assert_int_equal(p.result.moves, 3); /* 1.07 */
    assert_int_equal(p.result.moves_by_load, 3);
    for (size_t i = 0; i < 30; i++) p.items[i].owner = i < 17 ? 0 : 1;
    p.options.begins = true;
    pool_deal(&p);
    assert_int_equal(p.result.moves, 1); /* The other has 0.87, and takes until it has 0.9. */
}

/* A member that joins is filled to nine tenths of its share, and nobody else gets anything. */
TEST(test_a_member_that_joins_is_filled) {
    chance_from(1);
    pool_fill(&p, 10, 2000);
    for (size_t i = 0; i < p.item_count; i++) p.items[i].size = exp2(6 * fraction());
    pool_deal(&p);
    pool_adopt(&p);
    p.member_count = 11;
    p.members[10] = (dv_balance_member){"newcomer", "", 1000, 0, NULL};
    p.options.begins = true;
    pool_deal(&p);
    for (size_t i = 0; i < p.item_count; i++) assert_true(p.owners[i] == p.items[i].owner || p.owners[i] == 10);
    pool_adopt(&p);
    assert_true(pool_worst(&p) <= 1.1);
    assert_true(p.levels[10] >= 0.9 && p.levels[10] <= 1);
    p.options.begins = false;
    pool_deal(&p);
    assert_int_equal(p.result.moves, 0);
}

/* An item that nobody may take stays with its drained member, and the next one goes by the only move allowed. */
TEST(test_a_drained_item_that_stays_costs_no_move) {
    pool_fill(&p, 3, 4);
    for (size_t i = 0; i < 4; i++) p.items[i].owner = 0;
    p.items[0].tag = 0;
    p.items[0].size = 2;
    p.tags[0][0] = true;
    p.members[0].weight = 0;
    p.options.max_moves = 1;
    for (size_t moves = 1; moves <= 3; moves++) {
        pool_deal(&p);
        assert_rules_hold(&p);
        assert_int_equal(p.result.moves, 1);
        pool_adopt(&p);
        assert_int_equal(count_of(&p, 0), 4 - moves);
    }
    assert_int_equal(p.owners[0], 0);
    pool_deal(&p);
    assert_int_equal(p.result.moves, 0);
}

/* Drained members are emptied, and bound by max_moves, the largest first. */
TEST(test_drained_members_are_emptied) {
    pool_fill(&p, 3, 30);
    for (size_t i = 0; i < 30; i++) {
        p.items[i].owner = (uint32_t)(i % 3);
        p.items[i].size = (double)(i + 1);
    }
    p.members[1].weight = 0;
    p.options.max_moves = 4;
    pool_deal(&p);
    assert_int_equal(p.result.moves, 4);
    assert_int_equal(p.result.moves_by_load, 0);
    for (size_t i = 19; i < 30; i += 3) assert_int_not_equal(p.owners[i], 1);
    p.options.max_moves = 0;
    pool_deal(&p);
    assert_int_equal(count_of(&p, 1), 0);
    assert_rules_hold(&p);
}

/* Where all are drained nothing moves, and orphans are dealt as if all were equal. */
TEST(test_all_drained_keep_what_they_have) {
    pool_fill(&p, 2, 10);
    p.members[0].weight = p.members[1].weight = 0;
    for (size_t i = 0; i < 5; i++) p.items[i].owner = 0;
    pool_deal(&p);
    assert_int_equal(p.result.moves, 0);
    assert_int_equal(count_of(&p, 1), 5);
}

/* Zones share alike, members inside them by weight. */
TEST(test_zones_share_alike) {
    pool_fill(&p, 3, 60);
    p.members[0].zone = "a";
    p.members[1].zone = p.members[2].zone = "b";
    p.members[2].weight = 2000;
    for (size_t mode = 0; mode < 2; mode++) {
        p.options.by_count = mode == 1;
        pool_deal(&p);
        assert_int_equal(count_of(&p, 0), 30);
        assert_int_equal(count_of(&p, 1), 10);
        assert_int_equal(count_of(&p, 2), 20);
    }
}

/* An item goes only where its tag is; one that nobody has leaves it without an owner, and so it was before. */
TEST(test_tags) {
    pool_fill(&p, 3, 12);
    p.tags[1][0] = true;
    for (size_t i = 0; i < 4; i++) p.items[i].tag = 0;
    p.items[4].tag = 1;
    p.items[5].tag = 1;
    p.items[5].owner = 2;
    pool_deal(&p);
    assert_rules_hold(&p);
    assert_int_equal(p.result.ownerless, 2);
    assert_int_equal(p.result.moves, 1);
    for (size_t i = 0; i < 4; i++) assert_int_equal(p.owners[i], 1);
    assert_int_equal(count_of(&p, 0), 3);
    assert_int_equal(count_of(&p, 2), 3);
}

/* Between rounds nothing is taken, though neither tag nor cap hold. */
TEST(test_keep_all_takes_nothing) {
    pool_fill(&p, 2, 12);
    p.tags[1][0] = true;
    for (size_t i = 0; i < 11; i++) p.items[i].owner = 0;
    p.items[0].tag = 0;
    p.members[0].cap = 3;
    p.options.keep_all = true;
    pool_deal(&p);
    assert_rules_hold(&p);
    assert_int_equal(count_of(&p, 0), 11);
    assert_int_equal(p.owners[11], 1);
}

/* Caps whose sum is below the number of items: what has no room waits, and no cap is passed. */
TEST(test_caps_leave_items_waiting) {
    pool_fill(&p, 3, 20);
    for (size_t m = 0; m < 3; m++) p.members[m].cap = 4;
    for (size_t i = 0; i < 6; i++) p.items[i].owner = 0;
    for (size_t mode = 0; mode < 2; mode++) {
        p.options.by_count = mode == 1;
        pool_deal(&p);
        assert_rules_hold(&p);
        assert_int_equal(p.result.ownerless, 8);
        for (size_t m = 0; m < 3; m++) assert_int_equal(count_of(&p, m), 4);
    }
}

/* The only member with the tag is full of items that others may have: one of them makes way. */
TEST(test_a_full_member_makes_way) {
    pool_fill(&p, 2, 8);
    p.members[0].cap = 4;
    p.tags[0][0] = true;
    for (size_t i = 0; i < 7; i++) p.items[i].owner = i < 4 ? 0 : 1;
    p.items[7].tag = 0;
    for (size_t mode = 0; mode < 2; mode++) {
        p.options.by_count = mode == 1;
        pool_deal(&p);
        assert_rules_hold(&p);
        assert_int_equal(p.result.ownerless, 0);
        assert_int_equal(p.owners[7], 0);
        assert_int_equal(p.result.moves, 1);
    }
}

/* A pin holds against drain, tag, cap and load; a paused item, fixed without an owner, stays without one. */
TEST(test_pins_stay) {
    pool_fill(&p, 3, 9);
    for (size_t i = 0; i < 4; i++) {
        p.items[i].owner = 0;
        p.items[i].is_fixed = true;
    }
    p.items[0].tag = 1;
    p.items[1].size = 1000;
    p.members[0].weight = 0;
    p.members[0].cap = 2;
    p.items[8].is_fixed = true;
    for (size_t mode = 0; mode < 2; mode++) {
        p.options.by_count = mode == 1;
        pool_deal(&p);
        assert_rules_hold(&p);
        assert_int_equal(p.owners[8], NONE);
        assert_int_equal(p.result.ownerless, 0);
        assert_int_equal(count_of(&p, 0), 4);
        assert_int_equal(count_of(&p, 1), 2);
        assert_int_equal(count_of(&p, 2), 2);
    }
}

/* Pins count where they are: others get less there. */
TEST(test_pins_count) {
    pool_fill(&p, 2, 10);
    for (size_t i = 0; i < 4; i++) {
        p.items[i].owner = 0;
        p.items[i].is_fixed = true;
    }
    for (size_t mode = 0; mode < 2; mode++) {
        p.options.by_count = mode == 1;
        pool_deal(&p);
        assert_int_equal(count_of(&p, 0), 5);
    }
}

/* Sizes that no sum can hold, no size at all, no items, no members. */
TEST(test_hostile_sizes) {
    static const double sizes[] = {1e308, INFINITY, 0, 5e-324, -INFINITY, NAN, 1};
    pool_fill(&p, 3, 70);
    for (size_t i = 0; i < 70; i++) {
        p.items[i].size = sizes[i % 7];
        p.items[i].owner = i % 2 ? 0 : NONE;
    }
    pool_deal(&p);
    assert_rules_hold(&p);
    pool_adopt(&p);
    assert_true(pool_worst(&p) < 1.3);
    for (size_t i = 0; i < 70; i++) p.items[i].size = i % 2 ? 0 : -1;
    pool_deal(&p);
    assert_rules_hold(&p);
    pool_adopt(&p);
    assert_true(pool_worst(&p) < 1.11);
    p.item_count = 0;
    pool_deal(&p);
    assert_true(pool_worst(&p) <= 0);
    pool_fill(&p, 0, 3);
    pool_deal(&p);
    assert_int_equal(p.result.ownerless, 3);
    assert_true(pool_worst(&p) <= 0);
}

/* Fewer items than members: each has a member of its own. */
TEST(test_fewer_items_than_members) {
    pool_fill(&p, 8, 5);
    for (size_t i = 0; i < 5; i++) {
        p.items[i].size = exp2((double)i);
        p.items[i].owner = 2;
    }
    pool_deal(&p);
    for (size_t m = 0; m < 8; m++) assert_true(count_of(&p, m) <= 1);
    assert_int_equal(p.result.moves, 4);
}

/* Without hard rules a deal by count is that of sticky: items stay, and the least of them move. */
TEST(test_by_count_is_sticky_without_hard_rules) {
    pool_fill(&p, 4, 40);
    for (size_t i = 0; i < 40; i++) {
        p.items[i].owner = (uint32_t)(i % 3);
        p.items[i].size = exp2((double)(i % 9));
    }
    p.options.by_count = true;
    pool_deal(&p);
    assert_int_equal(p.result.moves, 10);
    for (size_t m = 0; m < 4; m++) assert_int_equal(count_of(&p, m), 10);
}

/* Random pools with all rules at once: they hold, and a second deal moves nothing, or soon does. */
TEST(test_random_pools) {
    size_t again = 0;
    const char *only = getenv("DIVVY_TEST_SEED");
    for (uint64_t run = 0; run < (only ? 1 : 3000); run++) {
        chance_from(only ? strtoull(only, NULL, 10) : dv_test_seed_of_run(run, 2000, "unit_balance"));
        pool_fill(&p, 1 + chance(8), 1 + chance(40));
        size_t hard = chance(4);
        for (size_t m = 0; m < p.member_count; m++) {
            static const uint32_t weights[] = {0, 500, 1000, 1000, 1000, 3000};
            static const char *const zones[] = {"", "a", "b"};
            p.members[m].weight = weights[chance(6)];
            p.members[m].zone = zones[hard > 1 ? chance(3) : 0];
            p.members[m].cap = hard && !chance(3) ? (uint32_t)(1 + chance(10)) : 0;
            for (size_t t = 0; t < TAGS_MAX; t++) p.tags[m][t] = chance(2);
        }
        double spread = 10 * fraction();
        for (size_t i = 0; i < p.item_count; i++) {
            p.items[i].size = chance(10) ? exp2(spread * fraction()) : (double)chance(2) - 1;
            p.items[i].owner = chance(5) ? (uint32_t)chance(p.member_count) : NONE;
            p.items[i].tag = hard && !chance(2) ? (uint32_t)chance(TAGS_MAX) : DV_NO_TAG;
            p.items[i].is_fixed = hard && !chance(8);
        }
        p.options.by_count = !chance(4);
        p.options.begins = chance(2);
        p.options.keep_all = !chance(8);
        p.options.max_moves = chance(3) ? 0 : 1 + chance(5);
        size_t rounds = 0;
        do {
            pool_deal(&p);
            assert_rules_hold(&p);
            if (p.options.max_moves == 0 && rounds > 0 && p.result.moves > 0) again++;
            pool_adopt(&p);
            p.options.begins = false;
            assert_true(++rounds <= 60);
        } while (p.result.moves > 0);
    }
    printf("second deals that moved: %zu of 3000\n", again);
}

/* Memory that runs out anywhere is an error, and nothing else. */
TEST(test_scarce) {
    for (size_t mode = 0; mode < 3; mode++) {
        pool_fill(&p, 4, 30);
        p.options.by_count = mode > 0;
        if (mode < 2) p.members[0].cap = 10;
        for (size_t i = 0; i < 25; i++) p.items[i].owner = (uint32_t)(i % 3);
        p.items[0].tag = 1;
        p.tags[1][1] = p.tags[0][1] = true;
        if (mode == 2) p.items[0].tag = DV_NO_TAG;
        int error = DIVVY_ENOMEM, failures = 0;
        for (; error == DIVVY_ENOMEM && failures < 100; failures++) {
            scarce_after = failures;
            error = dv_balance_deal(p.members, p.member_count, p.items, p.item_count, &p.options, p.owners, &p.result);
        }
        scarce_after = -1;
        assert_int_equal(error, 0);
        assert_true(failures > 6);
        assert_rules_hold(&p);
    }
    double loads = -1;
    for (int failures = 0; loads < 0; failures++) {
        assert_true(failures < 10);
        scarce_after = failures;
        loads = dv_balance_loads(p.members, p.member_count, p.items, p.item_count, p.levels);
        scarce_after = -1;
    }
}

TEST_GROUP(NULL, NULL);
