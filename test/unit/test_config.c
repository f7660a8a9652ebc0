/* The init functions of the config structs: what the macros have, byte by byte. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { MORE_BYTES = 24, FILL = 0xa5 };

/* The configurations by macro, in static storage, so that the bytes between fields are zero. */
static const divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
static const divvy_partitioner_config partitioner = DIVVY_PARTITIONER_CONFIG_INIT;
static const divvy_partitioner_config kazoo = DIVVY_PARTITIONER_CONFIG_KAZOO;
static const divvy_lock_config lock = DIVVY_LOCK_CONFIG_INIT;
static const divvy_semaphore_config semaphore = DIVVY_SEMAPHORE_CONFIG_INIT;
static const divvy_registry_config registry = DIVVY_REGISTRY_CONFIG_INIT;
static const divvy_sticky_options sticky = DIVVY_STICKY_OPTIONS_INIT;
static const divvy_workers_config workers = DIVVY_WORKERS_CONFIG_INIT;
static const divvy_testing_config testing = DIVVY_TESTING_CONFIG_INIT;

/* One wrapper for each, so that a table can have them all. */
#define WRAP(name, type, function)                       \
    static void init_##name(void *config, size_t size) { \
        function((type *)config, size);                  \
    }
WRAP(client, divvy_client_config, divvy_client_config_init)
WRAP(partitioner, divvy_partitioner_config, divvy_partitioner_config_init)
WRAP(kazoo, divvy_partitioner_config, divvy_partitioner_config_init_kazoo)
WRAP(lock, divvy_lock_config, divvy_lock_config_init)
WRAP(semaphore, divvy_semaphore_config, divvy_semaphore_config_init)
WRAP(registry, divvy_registry_config, divvy_registry_config_init)
WRAP(sticky, divvy_sticky_options, divvy_sticky_options_init)
WRAP(workers, divvy_workers_config, divvy_workers_config_init)
WRAP(testing, divvy_testing_config, divvy_testing_config_init)

static const struct {
    void (*init)(void *config, size_t size);
    const void *expected;
    size_t bytes;
} table[] = {
    {init_client, &client, sizeof client},
    {init_partitioner, &partitioner, sizeof partitioner},
    {init_kazoo, &kazoo, sizeof kazoo},
    {init_lock, &lock, sizeof lock},
    {init_semaphore, &semaphore, sizeof semaphore},
    {init_registry, &registry, sizeof registry},
    {init_sticky, &sticky, sizeof sticky},
    {init_workers, &workers, sizeof workers},
    {init_testing, &testing, sizeof testing},
};

static void check(size_t i, size_t size) {
    size_t bytes = table[i].bytes, common = size < bytes ? size : bytes, said;
    unsigned char *config = malloc(bytes + 2 * MORE_BYTES);
    assert_non_null(config);
    memset(config, FILL, bytes + 2 * MORE_BYTES);
    table[i].init(config, size);
    memcpy(&said, config, sizeof said);
    assert_int_equal(said, size);
    assert_memory_equal(config + sizeof said, (const unsigned char *)table[i].expected + sizeof said,
                        common - sizeof said);
    for (size_t at = bytes; at < size; at++) assert_int_equal(config[at], 0);
    for (size_t at = size; at < bytes + 2 * MORE_BYTES; at++) assert_int_equal(config[at], FILL);
    free(config);
}

/* A function and its macro give the same bytes. */
TEST(test_same_bytes) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        check(i, table[i].bytes);
        void *config = malloc(table[i].bytes);
        assert_non_null(config);
        table[i].init(config, table[i].bytes);
        assert_memory_equal(config, table[i].expected, table[i].bytes);
        free(config);
    }
}

/* A caller with an older, shorter struct has no byte behind it written; one with a newer, longer struct has zeros. */
TEST(test_other_releases) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        for (size_t size = sizeof size; size < table[i].bytes + MORE_BYTES; size++) check(i, size);
    }
}

/* Without memory, or without room for the size, nothing is written. */
TEST(test_nothing_to_write_to) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        unsigned char small[sizeof(size_t)];
        memset(small, FILL, sizeof small);
        for (size_t size = 0; size < sizeof small; size++) table[i].init(small, size);
        for (size_t at = 0; at < sizeof small; at++) assert_int_equal(small[at], FILL);
        table[i].init(NULL, table[i].bytes);
    }
}

/* A configuration by an init function is accepted as the macro's is. */
TEST(test_is_taken) {
    divvy_testing_config config;
    divvy_testing_ensemble *ensemble;
    divvy_client *c;
    divvy_lock *l;
    divvy_testing_config_init(&config, sizeof config);
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    divvy_client_config client_config;
    divvy_client_config_init(&client_config, sizeof client_config);
    client_config.manual = 1;
    client_config.ensemble_tick_ms = 2000;
    assert_int_equal(divvy_testing_client_open(&c, ensemble, &client_config), 0);
    divvy_lock_config lock_config;
    divvy_lock_config_init(&lock_config, sizeof lock_config);
    lock_config.path = "/l";
    assert_int_equal(divvy_lock_create(&l, c, &lock_config), 0);
    assert_int_equal(divvy_lock_acquire(l, 30000), 0);
    divvy_lock_destroy(l);
    divvy_client_close(c);
    divvy_testing_ensemble_destroy(ensemble);
}
