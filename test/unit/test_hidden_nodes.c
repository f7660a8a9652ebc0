/* Nodes that a client may not read. ZooKeeper 3.8 tells it that they exist, 3.9 does not: recipes work with both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "divvy/divvy.h"
#include "test_ensemble.h"

static const int releases[] = {DIVVY_TESTING_3_8, DIVVY_TESTING_3_9, DIVVY_TESTING_3_9_6};
enum { RELEASES = sizeof releases / sizeof *releases };

static divvy_testing_ensemble *e;
static divvy_client *c, *owner;
static outcome o;

static divvy_client *open_as(const char *auth, const char *hosts) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts;
    config.auth_scheme = auth ? "digest" : NULL;
    config.auth = auth;
    config.acl = auth ? DIVVY_ACL_CREATOR : DIVVY_ACL_OPEN;
    config.ensemble_tick_ms = 2000;
    return open_client_with(e, config, -1);
}

/* The nodes that `owner` makes are hidden from `c`. */
static void begin(int release) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.release = release;
    config.servers = 1;
    e = open_ensemble(&config);
    c = open_as(NULL, NULL);
    owner = open_as("anna:secret", NULL);
}

static void end(void) {
    divvy_client_close(c);
    divvy_client_close(owner);
    divvy_testing_ensemble_destroy(e);
}

static uint64_t requests_of(const divvy_client *client) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    return stats.requests;
}

/* A chroot that is there may be hidden: what counts is the node below it. */
TEST(test_chroot) {
    for (size_t i = 0; i < RELEASES; i++) {
        begin(releases[i]);
        assert_int_equal(do_create(owner, "/app", DV_PERSISTENT), 0);
        assert_int_equal(divvy_testing_put(e, "/app/shared", NULL, 0, DIVVY_TESTING_PERSISTENT), 0);
        divvy_client *below = open_as(NULL, "/app");
        divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
        config.path = "/shared/lock";
        divvy_lock *lock;
        assert_int_equal(divvy_lock_create(&lock, below, &config), 0);
        assert_int_equal(divvy_lock_acquire(lock, 10000), 0);
        divvy_lock_destroy(lock);
        divvy_client_close(below);
        end();
    }
}

/* A hidden child of a semaphore's pool takes a slot until it goes, and is not asked for again and again. */
TEST(test_lease) {
    for (size_t i = 0; i < RELEASES; i++) {
        begin(releases[i]);
        assert_int_equal(do_create(c, "/pool", DV_PERSISTENT), 0);
        assert_int_equal(do_create(owner, "/pool/theirs", DV_EPHEMERAL), 0);
        divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
        config.path = "/pool";
        divvy_semaphore *semaphore;
        assert_int_equal(divvy_semaphore_create(&semaphore, c, &config), 0);
        uint64_t before = requests_of(c);
        assert_int_equal(divvy_semaphore_acquire(semaphore, 60000), DIVVY_ETIMEDOUT);
        assert_in_range(requests_of(c) - before, 1, 500);
        assert_int_equal(do_op(owner, &o, op_of(DV_DELETE, "/pool/theirs")), 0);
        assert_int_equal(divvy_semaphore_acquire(semaphore, 60000), 0);
        divvy_semaphore_destroy(semaphore);
        end();
    }
}

enum { ITEMS = 4 };

static divvy_partitioner *join(divvy_client *client, const char *identifier) {
    static const char *const items[ITEMS] = {"one", "two", "three", "four"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_KAZOO;
    config.path = "/pool";
    config.items = items;
    config.item_count = ITEMS;
    config.identifier = identifier;
    config.time_boundary_ms = 100;
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    return p;
}

static size_t owned(divvy_partitioner *p) {
    divvy_partition *snapshot = divvy_partitioner_partition(p);
    size_t count = divvy_partition_count(snapshot);
    divvy_partition_unref(snapshot);
    return count;
}

static void work(divvy_partitioner *p, divvy_partitioner *hidden, int64_t ms) {
    for (int64_t until = e->now + ms; e->now < until;) {
        divvy_testing_run(e, 100);
        if (divvy_partitioner_state(p) == DIVVY_RELEASE) divvy_partitioner_release_set(p);
        if (divvy_partitioner_state(hidden) == DIVVY_RELEASE) divvy_partitioner_release_set(hidden);
    }
}

/* A hidden node of the party counts as a member: each has its share, and nobody asks for it again and again. */
TEST(test_member) {
    for (size_t i = 0; i < RELEASES; i++) {
        begin(releases[i]);
        divvy_partitioner *p = join(c, "shown");
        assert_int_equal(divvy_partitioner_wait_for_acquire(p, 30000), 0);
        assert_int_equal(owned(p), ITEMS);
        divvy_partitioner *hidden = join(owner, "hidden");
        work(p, hidden, 10000);
        assert_int_equal(owned(p), ITEMS / 2);
        assert_int_equal(owned(hidden), ITEMS / 2);
        uint64_t before = requests_of(c);
        work(p, hidden, 60000);
        assert_in_range(requests_of(c) - before, 1, 500);
        assert_int_equal(divvy_partitioner_state(p), DIVVY_ACQUIRED);
        divvy_partitioner_destroy(hidden);
        divvy_partitioner_destroy(p);
        end();
    }
}
