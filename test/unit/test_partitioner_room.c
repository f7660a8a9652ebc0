/* A share that does not fit the session's budget, and the room that comes back. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

static const char *const items[] = {"one", "two", "three", "four"};
enum { ITEMS = sizeof items / sizeof *items, BOUNDARY_MS = 100 };

typedef struct {
    unsigned allocating, gained;
} heard;

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p;
    if (from == DIVVY_ACQUIRED && to == DIVVY_ALLOCATING) ((heard *)user)->allocating++;
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p;
    ((heard *)user)->gained += (unsigned)event->gained_count;
}

static size_t owned(divvy_partitioner *p) {
    size_t count = 0;
    for (size_t i = 0; i < ITEMS; i++) count += divvy_partitioner_owns(p, items[i]) == 1;
    return count;
}

/* An item that did not fit is taken, and shown, when another recipe on the client gives its room back. */
static void test_room_comes_back(int mode) {
    divvy_testing_ensemble *ensemble;
    divvy_testing_config ensemble_config = DIVVY_TESTING_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &ensemble_config), 0);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.ephemeral_path_bytes = 500;
    divvy_client *client;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &config), 0);
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    lock_config.path =
        "/a/lock/whose/path/takes/a/good/part/of/the/budget/that/this/client/has/for/all/of/its/nodes/together/so/that/"
        "not/all/items/fit/beside/it/but/all/of/them/do/alone/without/it/abcdefghijklmno";
    assert_int_equal(divvy_lock_create(&lock, client, &lock_config), 0);
    assert_int_equal(divvy_lock_acquire(lock, 10000), 0);

    heard h = {0, 0};
    divvy_partitioner_config partitioner_config = DIVVY_PARTITIONER_CONFIG_INIT;
    partitioner_config.path = "/pool";
    partitioner_config.items = items;
    partitioner_config.item_count = ITEMS;
    partitioner_config.identifier = "m";
    partitioner_config.mode = mode;
    partitioner_config.time_boundary_ms = BOUNDARY_MS;
    partitioner_config.on_state = on_state;
    partitioner_config.on_items = on_items;
    partitioner_config.user = &h;
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, client, &partitioner_config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 30000), 0);
    size_t fitting = owned(p);
    assert_in_range(fitting, 1, ITEMS - 1);
    divvy_partition *snapshot = divvy_partitioner_partition(p);
    assert_int_equal(divvy_partition_short(snapshot), 1);
    divvy_partition_unref(snapshot);

    assert_int_equal(divvy_lock_release(lock), 0);
    assert_true(divvy_testing_run(ensemble, 1000) > 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 30000), 0);
    assert_int_equal(owned(p), ITEMS);
    assert_int_equal(h.gained, ITEMS);
    assert_int_equal(h.allocating, 1);
    snapshot = divvy_partitioner_partition(p);
    assert_int_equal(divvy_partition_count(snapshot), ITEMS);
    assert_int_equal(divvy_partition_short(snapshot), 0);
    divvy_partition_unref(snapshot);

    divvy_partitioner_destroy(p);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}

TEST(test_incremental) {
    test_room_comes_back(DIVVY_INCREMENTAL);
}

TEST(test_eager) {
    test_room_comes_back(DIVVY_EAGER);
}
