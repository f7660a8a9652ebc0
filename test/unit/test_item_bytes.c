/* The memory that an item takes in a member, its own or another's. SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

/* Bounds, above the name and its NUL. docs/scale.md says what they are made of. */
enum { OWN_BYTES_MAX = 612, OTHER_BYTES_MAX = 13 };
enum { FEW = 4000, MANY = 14000, ITEM_BYTES = 12, MEMBERS = 2, PATIENCE_MS = 60000 };

typedef struct {
    double bytes[MEMBERS]; /* of the member that has one item, and of the one that has all others */
} footprint;

typedef struct {
    divvy_testing_ensemble *ensemble;
    divvy_client *clients[MEMBERS];
    divvy_partitioner *partitioners[MEMBERS];
} pool;

static size_t used_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

static void join(pool *all, size_t member, const char *const *items, size_t count) {
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    client_config.session_timeout_ms = 40000;
    assert_int_equal(divvy_testing_client_open(&all->clients[member], all->ensemble, &client_config), 0);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = items;
    config.item_count = count;
    config.assign = DIVVY_ASSIGN_STICKY;
    config.item_cap = member == 0 ? 1 : 0;
    config.time_boundary_ms = 100;
    assert_int_equal(divvy_partitioner_create(&all->partitioners[member], all->clients[member], &config), 0);
}

/* Ends a member without a word to the ensemble, whose memory stays as it is. Returns the bytes that this frees. */
static size_t end(pool *all, size_t member) {
    size_t before = used_bytes();
    divvy_testing_crash_client(all->ensemble, all->clients[member]);
    divvy_partitioner_destroy(all->partitioners[member]);
    divvy_client_close(all->clients[member]);
    return before - used_bytes();
}

static footprint measure(size_t count) {
    char(*texts)[ITEM_BYTES] = calloc(count, ITEM_BYTES);
    const char **items = calloc(count, sizeof *items);
    assert_true(texts && items);
    for (size_t i = 0; i < count; i++) {
        snprintf(texts[i], ITEM_BYTES, "item-%06u", (unsigned)(i % 1000000));
        items[i] = texts[i];
    }
    pool all = {0};
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.servers = 1;
    assert_int_equal(divvy_testing_ensemble_create(&all.ensemble, &config), 0);
    for (size_t m = 0; m < MEMBERS; m++) join(&all, m, items, count);
    for (size_t m = 0; m < MEMBERS; m++)
        assert_int_equal(divvy_partitioner_wait_for_acquire(all.partitioners[m], PATIENCE_MS), 0);
    assert_true(divvy_testing_run(all.ensemble, 5000) > 0);
    for (size_t m = 0; m < MEMBERS; m++) {
        divvy_partition *snapshot = divvy_partitioner_partition(all.partitioners[m]);
        assert_int_equal(divvy_partition_count(snapshot), m == 0 ? 1 : count - 1);
        divvy_partition_unref(snapshot);
    }
    footprint taken;
    for (size_t m = 0; m < MEMBERS; m++) taken.bytes[m] = (double)end(&all, m);
    divvy_testing_ensemble_destroy(all.ensemble);
    free(texts);
    free(items);
    return taken;
}

/* An item of another member takes the name, where it stands and its owner; one of our own takes also what its place in
 * its queue, its path and what the user knows of it take. The bounds fail when either grows. */
TEST(test_bytes) {
    if (used_bytes() == 0) skip(); /* A sanitizer does not tell. */
    footprint few = measure(FEW), many = measure(MANY);
    double other = (many.bytes[0] - few.bytes[0]) / (MANY - FEW) - ITEM_BYTES;
    double own = (many.bytes[1] - few.bytes[1]) / (MANY - FEW) - ITEM_BYTES;
    print_message("above its name, an item of our own takes %.1f bytes, and another's %.1f\n", own, other);
    assert_true(other <= OTHER_BYTES_MAX);
    assert_true(own <= OWN_BYTES_MAX);
}
