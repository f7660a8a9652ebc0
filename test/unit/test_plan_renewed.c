/* Items without an owner are taken without a list: docs/protocol.md, Q11. SPDX-License-Identifier: Apache-2.0 */
#include "plan_pool.h"

enum { ITEMS = 2000, OLD = 4, GAINED = ITEMS / OLD / (OLD - 1), IN_A_MULTI = 200 };

static divvy_stats stats_of(const pool *l, size_t n) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(l->members[n].client, &stats, sizeof stats), 0);
    return stats;
}

static void open_settled(pool *l) {
    pool_open(l, ITEMS);
    for (size_t n = 0; n < OLD; n++) add(l, n, NULL);
    settle(l);
}

static void crash_all(pool *l) {
    for (size_t n = 0; n < OLD; n++) crash(l, n);
}

static char *queue_of(char *out, size_t bytes, size_t item, const char *node) {
    snprintf(out, bytes, "/pool/locks/item-%05zu%s", item, node);
    return out;
}

/* Q11: after a crash nobody lists a queue, and one multi takes 200 items. Two seconds of heartbeats are among it. */
TEST(test_crash_lists_no_queue) {
    pool l;
    open_settled(&l);
    divvy_stats before[OLD], stats;
    for (size_t n = 0; n < OLD; n++) before[n] = stats_of(&l, n);
    crash(&l, 0);
    settle(&l);
    for (size_t n = 1; n < OLD; n++) {
        stats = stats_of(&l, n);
        assert_true(stats.children - before[n].children <= 4);
        assert_in_range(stats.deletes - before[n].deletes, GAINED,
                        GAINED + 3); /* of directories, and of a plan's texts */
        assert_true(stats.requests - before[n].requests <= 30);
    }
    assert_at_rest(&l);
    pool_close(&l);
}

/* Lets a member crash, and counts the requests of the others in the next seconds. `lost` is how many items it had. */
static size_t count_requests_of_crash(uint32_t weight, size_t *lost) {
    enum { SECONDS_MS = 5000, MANY = 10000 };
    pool l;
    size_t before = 0, after = 0;
    pool_open(&l, MANY);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    divvy_partitioner_config config;
    member_config(&l, &config);
    config.weight = weight;
    add(&l, OLD, &config);
    settle(&l);
    owners o = look(&l);
    *lost = o.loads[OLD];
    owners_free(&o);
    for (size_t n = 0; n < OLD; n++) before += stats_of(&l, n).requests;
    crash(&l, OLD);
    divvy_testing_run(l.ensemble, SECONDS_MS);
    for (size_t n = 0; n < OLD; n++) after += stats_of(&l, n).requests;
    o = look(&l);
    assert_int_equal(o.owned, MANY);
    owners_free(&o);
    pool_close(&l);
    return after - before;
}

/* Makes a pool of members that hand nothing over, and returns the lists that they ask for in a crash, or in a join. */
static size_t count_lists_without_handovers(int mode, bool joins) {
    pool l;
    size_t lists = 0;
    divvy_partitioner_config config;
    pool_open(&l, ITEMS);
    member_config(&l, &config);
    config.mode = mode;
    config.handover_timeout_ms = 0;
    for (size_t n = 0; n < OLD; n++) add(&l, n, &config);
    settle(&l);
    for (size_t n = 1; n < OLD; n++) lists -= stats_of(&l, n).children;
    if (joins) add(&l, OLD, &config);
    else crash(&l, 0);
    settle(&l);
    for (size_t n = 1; n < (joins ? OLD + 1 : OLD); n++) lists += stats_of(&l, n).children;
    pool_close(&l);
    return lists;
}

/* Q11: where nothing is handed over nobody lists a queue after a crash. Of eager members only the newcomer does, the
 * queues of those items that the others entered again before they knew of the plan. */
TEST(test_others_list_no_queue) {
    assert_in_range(count_lists_without_handovers(DIVVY_INCREMENTAL, false), 1, 4 * OLD);
    assert_in_range(count_lists_without_handovers(DIVVY_EAGER, false), 1, 4 * OLD);
    assert_in_range(count_lists_without_handovers(DIVVY_EAGER, true), 1, ITEMS / 4);
}

/* L5: what a crash costs beyond one of a member that had nothing. */
TEST(test_crash_costs_few_requests) {
    size_t none = 1, lost = 0;
    size_t still = count_requests_of_crash(0, &none), moving = count_requests_of_crash(1000, &lost);
    assert_int_equal(none, 0);
    assert_true(lost >= 2000);
    print_message("%zu requests for %zu items, and %zu without\n", moving, lost, still);
    assert_true(moving <= still + lost / IN_A_MULTI + 7 * OLD + 4);
}

/* Q11: nor does anybody where all start again, and each directory is there: its numbers begin again. */
TEST(test_restart_lists_no_queue) {
    pool l;
    open_settled(&l);
    owners first = look(&l);
    crash_all(&l);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    owners second = look(&l);
    for (size_t i = 0; i < ITEMS; i++) assert_true(second.tokens[i] > first.tokens[i]);
    for (size_t n = 0; n < OLD; n++) {
        divvy_stats stats = stats_of(&l, n);
        assert_true(stats.children <= 3);
        assert_true(stats.requests <= 40 + 2 * ITEMS / OLD / IN_A_MULTI);
    }
    owners_free(&first);
    owners_free(&second);
    pool_close(&l);
}

/* Q11: a queue where somebody stands stays as it is. Its item waits, and all others are owned. */
TEST(test_taken_queue) {
    pool l;
    char path[64];
    open_settled(&l);
    crash_all(&l);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(divvy_testing_put(l.ensemble, queue_of(path, sizeof path, 7, "/x__lock__0000000000"), "", 0,
                                       DIVVY_TESTING_PERSISTENT),
                     0);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    divvy_testing_run(l.ensemble, 10000);
    owners o = look(&l);
    assert_int_equal(o.owned, ITEMS - 1);
    assert_int_equal(o.owners[7], NOBODY);
    owners_free(&o);
    assert_int_equal(divvy_testing_remove(l.ensemble, queue_of(path, sizeof path, 7, "/x__lock__0000000000")), 0);
    settle(&l);
    pool_close(&l);
}

/* Q11: a directory whose data were set keeps them, and its item is owned as by Q1. */
TEST(test_directory_with_data) {
    pool l;
    char path[64];
    open_settled(&l);
    crash_all(&l);
    divvy_testing_run(l.ensemble, 3000);
    assert_int_equal(
        divvy_testing_put(l.ensemble, queue_of(path, sizeof path, 9, ""), "mine", 4, DIVVY_TESTING_PERSISTENT), 0);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    divvy_strings *places = divvy_testing_children(l.ensemble, path);
    assert_int_equal(divvy_strings_count(places), 1);
    assert_non_null(strstr(divvy_strings_get(places, 0), "__lock__0000000001"));
    divvy_strings_free(places);
    pool_close(&l);
}

/* Q11: nobody sees a directory missing while it is made again. */
TEST(test_directories_never_missing) {
    enum { FEW = 40, AT_ONCE_MS = 3000 };
    pool l;
    char path[64];
    pool_open(&l, FEW);
    for (size_t n = 0; n < OLD; n++) add(&l, n, NULL);
    settle(&l);
    crash(&l, 0);
    int64_t until_ms = divvy_testing_now_ms(l.ensemble) + AT_ONCE_MS;
    while (divvy_testing_now_ms(l.ensemble) < until_ms) {
        divvy_testing_step(l.ensemble, until_ms);
        for (size_t i = 0; i < FEW; i++)
            assert_true(divvy_testing_exists(l.ensemble, queue_of(path, sizeof path, i, "")));
    }
    settle(&l);
    pool_close(&l);
}

/* Q11: who is to take items from a live owner renews nothing, which would be refused. */
TEST(test_join_renews_nothing) {
    pool l;
    open_settled(&l);
    add(&l, OLD, NULL);
    settle(&l);
    divvy_stats stats = stats_of(&l, OLD);
    assert_int_equal(stats.deletes, 0);
    pool_close(&l);
}

/* Q11 and T6: an item that was taken so is handed over by its number, as any other. */
TEST(test_handed_over_after) {
    pool l;
    open_settled(&l);
    crash(&l, 0);
    settle(&l);
    divvy_stats before = stats_of(&l, 1);
    add(&l, 0, NULL);
    settle(&l);
    assert_true(stats_of(&l, 0).children <= 4);
    assert_true(stats_of(&l, 1).children - before.children <= 4);
    pool_close(&l);
}
