/* Tests of assignments: odd shapes of pools, and bad arguments. SPDX-License-Identifier: Apache-2.0 */
#include "assign_fixture.h"

/* Members of one identifier share as any others do. */
TEST(test_equal_identifiers_share) {
    for (size_t f = 0; f < COUNT(both); f++) {
        pool_fill(&first, 4, 101);
        for (size_t m = 0; m < 4; m++) first.members[m].identifier = "same";
        pool_assign(&first, both[f]);
        assert_balanced(&first);
    }
}

/* Without items there is nothing to do, with members or without any. */
TEST(test_zero_items) {
    pool_fill(&first, 3, 0);
    for (size_t f = 0; f < COUNT(both); f++) {
        first.owners[0] = UNTOUCHED;
        assert_int_equal(both[f](first.members, 3, first.items, 0, first.owners), 0);
        assert_int_equal(both[f](first.members, 0, first.items, 0, first.owners), 0);
        assert_int_equal(first.owners[0], UNTOUCHED);
    }
}

/* A single member has everything. */
TEST(test_one_member) {
    pool_fill(&first, 1, 100);
    for (size_t f = 0; f < COUNT(both); f++) {
        pool_assign(&first, both[f]);
        for (size_t i = 0; i < first.item_count; i++) assert_int_equal(first.owners[i], 0);
    }
}

/* With more members than items nobody has two. */
TEST(test_more_members_than_items) {
    pool_fill(&first, MEMBERS_MAX, 10);
    for (size_t f = 0; f < COUNT(both); f++) {
        pool_assign(&first, both[f]);
        assert_balanced(&first);
    }
}

/* The largest pools that the library is meant for are dealt like small ones, on an ordinary stack. */
TEST(test_large_pool) {
    pool_fill(&first, MEMBERS_MAX, ITEMS_MAX);
    for (size_t f = 0; f < COUNT(both); f++) {
        pool_assign(&first, both[f]);
        assert_balanced(&first);
    }
}

/* Each bad argument is refused, and the owners stay as they were. */
TEST(test_bad_arguments) {
    const divvy_member members[] = {{.identifier = "a"}, {.identifier = "b"}};
    const divvy_member nameless[] = {{.identifier = "a"}, {.identifier = NULL}};
    const char *const items[] = {"x", "y"};
    const char *const itemless[] = {"x", NULL};
    for (size_t f = 0; f < COUNT(both); f++) {
        uint32_t owners[2] = {UNTOUCHED, UNTOUCHED};
        assert_int_equal(both[f](NULL, 2, items, 2, owners), DIVVY_EINVAL);
        assert_int_equal(both[f](members, 2, NULL, 2, owners), DIVVY_EINVAL);
        assert_int_equal(both[f](members, 2, items, 2, NULL), DIVVY_EINVAL);
        assert_int_equal(both[f](nameless, 2, items, 2, owners), DIVVY_EINVAL);
        assert_int_equal(both[f](members, 2, itemless, 2, owners), DIVVY_EINVAL);
        assert_int_equal(both[f](members, 0, items, 2, owners), DIVVY_EINVAL);
        assert_int_equal(both[f](members, UINT32_MAX, items, 2, owners), DIVVY_EINVAL);
        assert_int_equal(owners[0], UNTOUCHED);
        assert_int_equal(owners[1], UNTOUCHED);
    }
}

TEST_GROUP(names_setup, NULL);
