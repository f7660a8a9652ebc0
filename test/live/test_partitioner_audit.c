/* Locks that somebody deletes under their holder: docs/protocol.md, P13. SPDX-License-Identifier: Apache-2.0
 *
 * Shows nodes that a stranger deletes on a real server while connections are down. */
#include "lib/pool.h"

#include <string.h>

#include "znode/path.h"

static const dv_test_member_config proxied = {.identifier = "a", .boundary_ms = 50, .proxied = true};

/* Deletes all nodes in the queue of an item, the directory stays. */
static void clear_queue(dv_test_pool *pool, const char *item) {
    char *locks = dv_path_join(pool->path, "locks"), *queue = dv_path_join(locks, item);
    char **names = dv_test_zk_children(pool->truth, queue, NULL);
    for (size_t i = 0; names && names[i]; i++) {
        char *path = dv_path_join(queue, names[i]);
        assert_int_equal(dv_test_zk_delete(pool->truth, path), ZOK);
        free(path);
    }
    dv_test_zk_free_names(names);
    free(queue);
    free(locks);
}

/* The lock of one item is gone: the item is lost without a RELEASE, and gained again with another token; others
 * stay. */
static void expect_one_lost_and_gained(dv_test_pool *pool, dv_test_member *m, size_t item, int64_t token) {
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_NODE_GONE) >= 1 &&
                            dv_test_member_count(m, DV_TEST_LOST, -1) == 1);
    dv_test_pool_settle(pool);
    assert_true(dv_test_member_token(m, item) > token);
    assert_int_equal(dv_test_member_kept(m), 9);
    assert_int_equal(dv_test_member_count(m, DV_TEST_REVOKED, -1), 0);
    const dv_test_record *lost = &m->records[dv_test_member_last(m, DV_TEST_LOST, -1)];
    assert_int_equal(lost->item, item);
    assert_int_equal(lost->reason, DIVVY_REASON_FOREIGN);
}

/* A lock that was deleted while the connection was away is found out when it is back. */
TEST_OF_POOL(test_found_on_reconnect) {
    dv_test_member *m = dv_test_pool_add(pool, &proxied);
    dv_test_pool_settle(pool);
    dv_test_member_mark(m);
    int64_t token = dv_test_member_token(m, 3);
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_SUSPENDED);
    clear_queue(pool, "item-3");
    dv_test_proxy_restore(m->proxy);
    expect_one_lost_and_gained(pool, m, 3, token);
}

/* Somebody deletes a member's party node and a lock of its. The member finds the second loss through the first. */
TEST_OF_POOL(test_found_with_party_node) {
    dv_test_member *m = dv_test_pool_add(pool, &proxied);
    dv_test_pool_settle(pool);
    dv_test_member_mark(m);
    int64_t token = dv_test_member_token(m, 7);
    clear_queue(pool, "item-7");
    char *node = dv_test_member_party_node(m);
    dv_test_pool_leave(pool, node);
    free(node);
    expect_one_lost_and_gained(pool, m, 7, token);
}

/* When all of a pool's nodes are deleted under two live members, all items are lost, and then owned once again. */
TEST_OF_POOL(test_pool_deleted) {
    dv_test_member *members[2];
    dv_test_pool_add_many(pool, members, 0, 2, &(dv_test_member_config){.boundary_ms = 50});
    dv_test_pool_settle(pool);
    size_t loads[2] = {dv_test_member_load(members[0]), dv_test_member_load(members[1])};
    assert_int_equal(dv_test_zk_delete_all(pool->truth, pool->path), ZOK);
    pool->unwatched = true; /* Until each has noticed, S1 cannot hold: the truth was taken away. */
    for (size_t i = 0; i < 2; i++) DV_POOL_UNTIL(pool, dv_test_member_count(members[i], DV_TEST_LOST, -1) >= loads[i]);
    pool->unwatched = false;
    dv_test_pool_settle(pool);
}

/* A stray that looks like a kazoo member takes an item with a slash from us until it is looked at, and never again. */
TEST_OF_POOL(test_stray_is_judged_once) {
    static const char *const items[] = {"a", "b/c"};
    dv_test_pool_use_items(pool, items, 2);
    dv_test_member *m = dv_test_pool_add(pool, &proxied);
    dv_test_pool_settle(pool);
    dv_test_pool_join(pool, "0123456789abcdef0123456789abcdef-stray", false);
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_REVOKED, -1) == 1);
    dv_test_pool_settle(pool);
    dv_test_member_mark(m);
    for (int i = 0; i < 2; i++) { /* Each new connection reads the party again, as the minute's audit does. */
        uint64_t reads = dv_test_member_stats(m).children;
        dv_test_member_cut(m);
        DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_SUSPENDED);
        dv_test_proxy_restore(m->proxy);
        DV_POOL_UNTIL(pool, dv_test_member_stats(m).children > reads && dv_test_member_stats(m).in_flight == 0);
    }
    assert_int_equal(dv_test_member_kept(m), 2);
    assert_int_equal(dv_test_member_count(m, DV_TEST_REVOKED, -1), 1);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
