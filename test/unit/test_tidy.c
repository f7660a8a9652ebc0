/* Directories of items that nobody needs: who deletes them, and what stays. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 450, FEWER = 100 };

static size_t count_directories(const pool *l) {
    divvy_strings *names = divvy_testing_children(l->ensemble, "/pool/locks");
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    return count;
}

static void put(pool *l, const char *path, const char *data) {
    assert_int_equal(divvy_testing_put(l->ensemble, path, data, strlen(data), DIVVY_TESTING_PERSISTENT), 0);
    divvy_testing_run(l->ensemble, 10);
}

/* Three members divide all items, and die at once; then three divide fewer. */
static void open_after_crash(pool *l, int assign) {
    divvy_partitioner_config config;
    pool_open(l, ITEMS);
    member_config(l, &config);
    config.assign = assign;
    for (size_t n = 0; n < 3; n++) add(l, n, &config);
    settle(l);
    assert_int_equal(count_directories(l), ITEMS);
    for (size_t n = 0; n < 3; n++) crash(l, n);
    config.item_count = FEWER;
    for (size_t n = 0; n < 3; n++) add(l, n, &config);
    settle_owned(l, FEWER);
}

/* A directory that the set no longer has goes within a minute or two, unless it holds something, or is no item's.
 * At rest nothing is written after that. */
TEST(test_after_a_crash) {
    pool l;
    open_after_crash(&l, DIVVY_ASSIGN_STICKY);
    put(&l, "/pool/locks/item-00400/kept", "");
    put(&l, "/pool/locks/note", "text");
    put(&l, "/pool/locks/%41", "");
    owners before = look(&l);
    divvy_testing_run(l.ensemble, 130000);
    assert_int_equal(count_directories(&l), FEWER + 3);
    assert_true(divvy_testing_exists(l.ensemble, "/pool/locks/item-00400/kept"));
    owners after = look(&l);
    assert_int_equal(moved(&l, &before, &after), 0);
    assert_at_rest(&l);
    owners_free(&before);
    owners_free(&after);
    pool_close(&l);
}

/* Where names decide they stay as long as members live, and the last that finishes takes all that are empty. */
TEST(test_last_one_finishes) {
    static const int rules[] = {DIVVY_ASSIGN_STICKY, DIVVY_ASSIGN_RENDEZVOUS};
    for (size_t i = 0; i < 2; i++) {
        pool l;
        open_after_crash(&l, rules[i]);
        put(&l, "/pool/locks/note", "text");
        for (size_t n = 0; n < 3; n++) finish(&l, n);
        assert_int_equal(count_directories(&l), 1);
        pool_close(&l);
    }
}
