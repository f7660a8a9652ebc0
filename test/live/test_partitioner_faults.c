/* The faults of kazoo's partitioner, and what others do to our nodes. SPDX-License-Identifier: Apache-2.0
 *
 * Shows that each fault of kazoo's partitioner is mended on the server where kazoo shows it. */
#include "lib/pool.h"

#include <string.h>

#include "znode/path.h"

static const dv_test_member_config plain = {.boundary_ms = 50};

static dv_test_member *add(dv_test_pool *pool, const char *identifier) {
    dv_test_member_config config = plain;
    config.identifier = identifier;
    return dv_test_pool_add(pool, &config);
}

/* ---- kazoo's ---- */

/* Wherever finish() comes between the first request and the last, no node is left while the session lives on. */
TEST_OF_POOL(test_finish_at_any_step) {
    char *foreign = dv_test_pool_block(pool, "item-4");
    for (size_t steps = 0; steps < 30; steps++) {
        dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.boundary_ms = 0});
        for (size_t i = 0; i < steps; i++) {
            if (!dv_test_member_step(m)) dv_test_sleep_ms(1);
        }
        dv_test_member_finish(m);
        assert_int_equal(dv_test_member_stats(m).ephemerals, 0);
        assert_int_equal(dv_test_pool_nodes(pool), 0);
        dv_test_member_destroy(m);
    }
    dv_test_pool_unblock(pool, foreign);
}

/* destroy() at any step leaves as little, though nobody waits for it. */
TEST_OF_POOL(test_destroy_at_any_step) {
    char *foreign = dv_test_pool_block(pool, "item-4");
    for (size_t steps = 0; steps < 30; steps++) {
        dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.boundary_ms = 0});
        for (size_t i = 0; i < steps; i++) {
            if (!dv_test_member_step(m)) dv_test_sleep_ms(1);
        }
        dv_test_member_destroy(m);
        DV_POOL_UNTIL(pool, atomic_load(&m->destroyed));
        assert_int_equal(dv_test_pool_nodes(pool), 0);
    }
    dv_test_pool_unblock(pool, foreign);
}

/* Two members of one identifier divide the items like any others, and are told of each other. */
TEST_OF_POOL(test_equal_identifiers) {
    dv_test_member *members[] = {add(pool, "twin"), add(pool, "twin"), add(pool, "another")};
    dv_test_pool_settle(pool);
    for (size_t i = 0; i < 3; i++)
        assert_true(dv_test_member_count(members[i], DV_TEST_WARNING, DIVVY_WARN_IDENTIFIER) >= 1);
    dv_test_member_finish(members[0]);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(members[1]), 5);
}

/* Members without identifiers get different ones, in one process too. */
TEST_OF_POOL(test_own_identifiers) {
    dv_test_member *first = add(pool, NULL), *second = add(pool, NULL);
    assert_string_not_equal(divvy_partitioner_identifier(first->partitioner),
                            divvy_partitioner_identifier(second->partitioner));
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_count(first, DV_TEST_WARNING, -1), 0);
}

/* Items of any name are items: what ZooKeeper would refuse in a path stands encoded there. */
TEST_OF_POOL(test_odd_item_names) {
    static const char *const odd[] = {".",        "..",
                                      "a/b",      "/",
                                      "%2E",      "50%",
                                      "a b",      "\x01",
                                      "\xff\xfe", "\xf0\x9f\x98\x80",
                                      "\xc3\xa9", "zookeeper",
                                      "-",        "__lock__0000000001"};
    enum { COUNT = sizeof odd / sizeof *odd };
    dv_test_pool_use_items(pool, odd, COUNT);
    dv_test_member *first = add(pool, "a"), *second = add(pool, "b,=-c");
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_pool_directories(pool), COUNT);
    assert_int_equal(dv_test_member_count(first, DV_TEST_WARNING, -1), 0);
    assert_int_equal(dv_test_member_count(second, DV_TEST_WARNING, -1), 0);
}

/* An item whose name kazoo would write differently is given up as soon as a kazoo member is seen, before its party has
 * settled, and owned again when the last of them has gone. */
TEST_OF_POOL(test_encoded_item_beside_kazoo) {
    static const char *const items[] = {"a/b", "c", "d", "e"};
    dv_test_pool_use_items(pool, items, 4);
    dv_test_member *m =
        dv_test_pool_add(pool, &(dv_test_member_config){.identifier = "z", .boundary_ms = 400, .patient = true});
    dv_test_pool_settle(pool);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).in_flight == 0);
    uint64_t reads = dv_test_member_stats(m).children;
    dv_test_pool_join(pool, "0123456789abcdef0123456789abcdef-k", true);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    assert_int_equal(dv_test_member_stats(m).children, reads + 1); /* it takes two to settle */
    assert_string_equal(dv_test_member_share(m), "a/b! c d e");
    m->config.patient = false;
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "c e") == 0 && dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_pool_queue_length(pool, "a/b"), 0);
    assert_int_equal(dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_ITEM_NAME), 1);
    dv_test_pool_leave(pool, "0123456789abcdef0123456789abcdef-k");
    dv_test_pool_settle(pool);
}

/* A stray child of the party gets no share and is warned of, whether it is persistent, of an odd name, or looks like a
 * kazoo member that is not ephemeral. */
TEST_OF_POOL(test_strays) {
    static const char *const strays[] = {
        "stray", "0123456789abcdef0123456789abcdef-persistent", "-", "x,a=1", "x,a=-y", "x,b=1-y"};
    enum { COUNT = sizeof strays / sizeof *strays };
    for (size_t i = 0; i < COUNT; i++) dv_test_pool_join(pool, strays[i], i % 2 == 0);
    dv_test_member *members[] = {add(pool, "a"), add(pool, "b")};
    dv_test_pool_settle(pool);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(dv_test_member_load(members[i]), 5);
        assert_int_equal(dv_test_member_count(members[i], DV_TEST_WARNING, DIVVY_WARN_STRAY), 1);
    }
    for (size_t i = 0; i < COUNT; i++) dv_test_pool_leave(pool, strays[i]);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_count(members[0], DV_TEST_STATE, DIVVY_RELEASE), 0);
}

/* Returns the requests of the recipes: heartbeats are not counted. */
static uint64_t requests_of(dv_test_member *m) {
    divvy_stats stats = dv_test_member_stats(m);
    return stats.requests - stats.checks;
}

/* Members by names whose items differ settle all the same, each on its share of its own items, no item with two owners;
 * both are told, once. */
TEST_OF_POOL(test_differing_items) {
    static const char *const other[] = {"item-0", "item-1", "item-2", "item-3", "item-4", "new-0", "new-1", "new-2"};
    dv_test_member_config config = plain;
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    config.identifier = "a";
    dv_test_member *first = dv_test_pool_add(pool, &config);
    config.identifier = "b";
    config.items = other;
    config.item_count = sizeof other / sizeof *other;
    dv_test_member *second = dv_test_pool_add(pool, &config);
    DV_POOL_UNTIL(pool, dv_test_member_load(first) == 5 && dv_test_member_load(second) == 4);
    /* Both may be waiting for an item that is in both targets, for the targets were computed from different sets; yet
     * neither loops: at rest they send nothing but heartbeats. */
    uint64_t requests = requests_of(first) + requests_of(second);
    dv_test_pool_step_for(pool, 500);
    assert_int_equal(requests_of(first) + requests_of(second), requests);
    assert_int_equal(dv_test_member_count(first, DV_TEST_WARNING, DIVVY_WARN_ITEMS_DIFFER), 1);
    assert_int_equal(dv_test_member_count(second, DV_TEST_WARNING, DIVVY_WARN_ITEMS_DIFFER), 1);
}

/* Where members assign differently the least of their ways counts for all, and they are told; when the last member
 * that knows no better has gone, the pool changes over without an item unowned for long. */
TEST_OF_POOL(test_differing_assignments) {
    dv_test_member *first = add(pool, "a"), *second = add(pool, "b");
    dv_test_member_config config = plain;
    config.identifier = "c";
    config.assign = DIVVY_ASSIGN_ROUND_ROBIN;
    dv_test_member *third = dv_test_pool_add(pool, &config);
    dv_test_pool_settle(pool);
    assert_string_equal(dv_test_member_share(first), "item-0 item-3 item-6 item-9");
    assert_string_equal(dv_test_member_share(second), "item-1 item-4 item-7");
    assert_int_equal(dv_test_member_count(first, DV_TEST_WARNING, DIVVY_WARN_ASSIGN_DIFFERS), 1);
    assert_int_equal(dv_test_member_count(third, DV_TEST_WARNING, DIVVY_WARN_ASSIGN_DIFFERS), 1);
    dv_test_member_finish(third);
    dv_test_pool_settle(pool);
}

/* A function of one's own that fails is FAILURE with an error, not a thread that died. */
static int failing_func(const char *identifier, const char *const *members, size_t member_count,
                        const char *const *items, size_t item_count, uint8_t *mine, void *user) {
    (void)identifier, (void)members, (void)member_count, (void)items, (void)item_count, (void)mine, (void)user;
    return 1;
}

TEST_OF_POOL(test_failing_function) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.func = failing_func});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_EPROTO);
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 0);
}

/* ---- what others do ---- */

/* A member whose node somebody deletes joins again under a new name, warns, and goes on owning what it owned. */
TEST_OF_POOL(test_party_node_deleted) {
    dv_test_member *first = add(pool, "a"), *second = add(pool, "b");
    dv_test_pool_settle(pool);
    dv_test_member_mark(first);
    char *before = dv_test_member_party_node(first);
    dv_test_pool_leave(pool, before);
    DV_MEMBER_UNTIL(first, dv_test_member_count(first, DV_TEST_WARNING, DIVVY_WARN_NODE_GONE) == 1);
    char *after;
    DV_MEMBER_UNTIL(first, (after = dv_test_member_party_node(first)) != NULL);
    assert_string_not_equal(before, after);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_kept(first), dv_test_member_load(first));
    assert_int_equal(dv_test_member_load(first), 5);
    assert_int_equal(dv_test_member_load(second), 5);
    free(before);
    free(after);
}

static char *below(dv_test_pool *pool, const char *name) {
    char *path = dv_path_join(pool->path, name);
    assert_non_null(path);
    return path;
}

/* The party's directory may go with all nodes in it: it is made again, and watched again. */
TEST_OF_POOL(test_party_deleted) {
    char *party = below(pool, "party");
    dv_test_member *first = add(pool, "a");
    dv_test_pool_settle(pool);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(dv_test_zk_delete_all(pool->truth, party), ZOK);
        char *node;
        DV_POOL_UNTIL(pool, (node = dv_test_member_party_node(first)) != NULL);
        free(node);
    }
    dv_test_pool_settle(pool);
    dv_test_member *second = add(pool, "b");
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(second), 5);
    free(party);
}

static char *own_lock(dv_test_pool *pool, dv_test_member *m, const char *item) {
    char *queue = strdup(dv_test_pool_queue(pool, item)), *found = NULL;
    char **names = dv_test_zk_children(pool->truth, queue, NULL);
    for (char **name = names; name && *name; name++) {
        char *path = dv_path_join(queue, *name);
        struct Stat stat;
        bool own =
            dv_test_zk_exists(pool->truth, path, &stat) && stat.ephemeralOwner == divvy_client_session_id(m->client);
        if (own && !found) found = path;
        else free(path);
    }
    dv_test_zk_free_names(names);
    free(queue);
    return found;
}

/* A place that is deleted while it waits is taken again; it is owned by a node that is there, or not at all. */
TEST_OF_POOL(test_waiting_place_deleted) {
    char *foreign = dv_test_pool_block(pool, "item-3");
    dv_test_member *m = add(pool, "a");
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 9 && dv_test_pool_queue_length(pool, "item-3") == 2);
    char *place = own_lock(pool, m, "item-3");
    assert_non_null(place);
    assert_int_equal(dv_test_zk_delete(pool->truth, place), ZOK);
    free(place);
    dv_test_pool_unblock(pool, foreign);
    dv_test_pool_settle(pool);
}

/* The whole queue may go while one waits in it... */
TEST_OF_POOL(test_queue_deleted) {
    char *foreign = dv_test_pool_block(pool, "item-3");
    dv_test_member *m = add(pool, "a");
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 9 && dv_test_pool_queue_length(pool, "item-3") == 2);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).in_flight == 0);
    assert_int_equal(dv_test_zk_delete_all(pool->truth, dv_test_pool_queue(pool, "item-3")), ZOK);
    free(foreign);
    dv_test_pool_settle(pool);
}

/* ...and all queues with the directory above them, while one waits in each. */
TEST_OF_POOL(test_all_queues_deleted) {
    char *foreign[10], *locks = below(pool, "locks");
    for (size_t i = 0; i < 10; i++) foreign[i] = dv_test_pool_block(pool, pool->items[i]);
    dv_test_member *m = add(pool, "a");
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 11);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).in_flight == 0);
    assert_int_equal(dv_test_zk_delete_all(pool->truth, locks), ZOK);
    dv_test_pool_settle(pool);
    for (size_t i = 0; i < 10; i++) free(foreign[i]);
    free(locks);
}

/* ---- held locks that others delete ---- */

static void delete_lock(dv_test_pool *pool, dv_test_member *m, const char *item) {
    char *lock = own_lock(pool, m, item);
    assert_non_null(lock);
    assert_int_equal(dv_test_zk_delete(pool->truth, lock), ZOK);
    free(lock);
}

static const dv_test_record *last(dv_test_member *m, enum dv_test_kind kind) {
    size_t i = dv_test_member_last(m, kind, -1);
    assert_true(i != SIZE_MAX);
    return &m->records[i];
}

/* Somebody who deletes our party node may have deleted locks: the member looks at them then. A lock that is gone is
 * lost at once, since it may be another's already, and taken again; the rest is kept. */
TEST_OF_POOL(test_held_lock_deleted_and_taken) {
    dv_test_member *m = add(pool, "a");
    dv_test_pool_settle(pool);
    dv_test_member_mark(m);
    char *foreign = dv_test_pool_block(pool, "item-3");
    int64_t token = dv_test_member_token(m, 3);
    delete_lock(pool, m, "item-3"); /* now the foreign one owns it */
    char *node = dv_test_member_party_node(m);
    dv_test_pool_leave(pool, node);
    free(node);
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 9 && dv_test_member_state(m) == DIVVY_ALLOCATING);
    dv_test_member_drain(m);
    assert_int_equal(last(m, DV_TEST_LOST)->item, 3);
    assert_int_equal(last(m, DV_TEST_LOST)->reason, DIVVY_REASON_FOREIGN);
    assert_int_equal(dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_NODE_GONE), 2);
    dv_test_pool_unblock(pool, foreign);
    dv_test_pool_settle(pool);
    assert_true(dv_test_member_token(m, 3) > token);
    assert_int_equal(dv_test_member_kept(m), 9);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED ALLOCATING ACQUIRED");
}

/* ---- access ---- */

static void make_node(dv_test_pool *pool, const char *path, int32_t permissions) {
    struct ACL entry = {permissions, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector acl = {1, &entry};
    assert_int_equal(zoo_create(dv_test_zk_handle(pool->truth), path, "", 0, &acl, 0, NULL, 0), ZOK);
}

/* A queue in which nodes may be created but not listed is a FAILURE that says so, and leaves no node. Somebody was
 * there before, so only a list can tell that nobody is (Q9). Who may not read the directory does not renew it (Q11). */
TEST_OF_POOL(test_unreadable_queue) {
    char *locks = below(pool, "locks"), *foreign;
    make_node(pool, pool->path, ZOO_PERM_ALL);
    make_node(pool, locks, ZOO_PERM_ALL);
    make_node(pool, dv_test_pool_queue(pool, "item-3"), ZOO_PERM_CREATE | ZOO_PERM_DELETE);
    foreign = dv_test_pool_block(pool, "item-3");
    dv_test_pool_unblock(pool, foreign);
    dv_test_member *m = add(pool, "a");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    char message[300];
    assert_int_equal(divvy_partitioner_failure(m->partitioner, message, sizeof message), DIVVY_EACCES);
    assert_non_null(strstr(message, "item-3"));
    dv_test_member_finish(m); /* gives back what may have been worked on */
    assert_int_equal(dv_test_member_stats(m).ephemerals, 0);
    DV_POOL_UNTIL(pool, dv_test_pool_directories(pool) == 0); /* could be removed, hence empty */
    free(locks);
}

/* Has somebody come and go in an item's queue, lets a member own the item, and returns whether its directory is still
 * the same one. */
static bool keeps_directory(dv_test_pool *pool, const char *item) {
    struct Stat before, after;
    dv_test_pool_unblock(pool, dv_test_pool_block(pool, item));
    assert_true(dv_test_zk_exists(pool->truth, dv_test_pool_queue(pool, item), &before));
    add(pool, "a");
    dv_test_pool_settle(pool);
    assert_true(dv_test_zk_exists(pool->truth, dv_test_pool_queue(pool, item), &after));
    return before.czxid == after.czxid;
}

/* Q11: an empty directory is made again, unless somebody has set the access list of P/locks. */
TEST_OF_POOL(test_empty_directory) {
    assert_false(keeps_directory(pool, "item-3"));
}

TEST_OF_POOL(test_own_access_lists) {
    char *locks = below(pool, "locks");
    struct ACL entry = {ZOO_PERM_ALL, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector acl = {1, &entry};
    make_node(pool, pool->path, ZOO_PERM_ALL);
    make_node(pool, locks, ZOO_PERM_ALL);
    assert_int_equal(zoo_set_acl(dv_test_zk_handle(pool->truth), locks, 0, &acl), ZOK);
    assert_true(keeps_directory(pool, "item-3"));
    free(locks);
}

/* A party that may not be listed is a FAILURE, and so is a pool in which nothing may be created. */
TEST_OF_POOL(test_denied_party) {
    char *party = below(pool, "party");
    make_node(pool, pool->path, ZOO_PERM_ALL);
    make_node(pool, party, ZOO_PERM_CREATE | ZOO_PERM_DELETE);
    dv_test_member *m = add(pool, "a");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_EACCES);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).ephemerals == 0);
    assert_int_equal(dv_test_zk_delete(pool->truth, party), ZOK);
    make_node(pool, party, ZOO_PERM_READ);
    dv_test_member *other = add(pool, "b");
    DV_POOL_UNTIL(pool, dv_test_member_state(other) == DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(other->partitioner, NULL, 0), DIVVY_EACCES);
    assert_int_equal(dv_test_member_load(other), 0);
    free(party);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
