/* Tests of item_cap, from a member's configuration to its share (D31, A9). SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 30, CAP = 5 };

static void add_capped(pool *l, size_t n, size_t cap) {
    divvy_partitioner_config config;
    member_config(l, &config);
    config.item_cap = cap;
    add(l, n, &config);
}

static size_t load_of(const pool *l, size_t n) {
    owners o = look(l);
    size_t load = o.loads[n];
    owners_free(&o);
    return load;
}

/* A member takes no more than its cap, in whatever order they join, and the others share the rest. */
TEST(test_cap) {
    for (size_t capped = 0; capped < 3; capped++) {
        pool l;
        pool_open(&l, ITEMS);
        for (size_t n = 0; n < 3; n++) {
            add_capped(&l, n, n == capped ? CAP : 0);
            settle_owned(&l, n == 0 && capped == 0 ? CAP : ITEMS);
        }
        for (size_t n = 0; n < 3; n++) {
            if (n == capped) assert_int_equal(load_of(&l, n), CAP);
            else assert_in_range(load_of(&l, n), 12, 13);
        }
        finish(&l, capped);
        settle(&l);
        assert_at_rest(&l);
        pool_close(&l);
    }
}

/* What nobody has room for waits, and goes to the next one that has. */
TEST(test_no_room) {
    pool l;
    pool_open(&l, ITEMS);
    for (size_t n = 0; n < 3; n++) {
        add_capped(&l, n, CAP);
        settle_owned(&l, CAP * (n + 1));
    }
    assert_at_rest(&l);
    add_capped(&l, 3, 0);
    settle(&l);
    assert_int_equal(load_of(&l, 3), ITEMS - 3 * CAP);
    crash(&l, 0);
    settle(&l);
    assert_int_equal(load_of(&l, 3), ITEMS - 2 * CAP);
    pool_close(&l);
}
