/* A server and a client for bad and odd input. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_INPUT_FIXTURE_H
#define DV_TEST_INPUT_FIXTURE_H

#include "one_server.h"
#include "test_client_witness.h"

#include "znode/path.h"

static witness heard;
static divvy_client *client;

static inline divvy_partitioner_config config_for(const char *path, const char *const *items, size_t item_count) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = items;
    config.item_count = item_count;
    config.time_boundary_ms = 0;
    return config;
}

static inline divvy_partitioner *create(const divvy_partitioner_config *config) {
    divvy_partitioner *p;
    int error = divvy_partitioner_create(&p, client, config);
    if (error) fail_msg("create: %s: %s", divvy_errname(error), divvy_client_error(client));
    return p;
}

static inline void acquire(divvy_partitioner *p) {
    int error = divvy_partitioner_wait_for_acquire(p, PATIENCE_MS);
    if (error) fail_msg("wait_for_acquire: %s: %s", divvy_errname(error), divvy_client_error(client));
}

/* Everything of it is gone from ZooKeeper: its member, its locks, and the directories of its items. */
static inline void finish(divvy_partitioner *p, const char *path) {
    char below[256];
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0);
    divvy_partitioner_destroy(p);
    snprintf(below, sizeof below, "%s/locks", path);
    assert_int_equal(dv_test_zk_count(truth, below), 0);
    snprintf(below, sizeof below, "%s/party", path);
    assert_int_equal(dv_test_zk_count(truth, below), 0);
}

#define REFUSED(config, error, text)                                                      \
    do {                                                                                  \
        divvy_partitioner *p_ = (divvy_partitioner *)(void *)&heard;                      \
        ASSERT_FAILS(divvy_partitioner_create(&p_, client, config), error, client, text); \
        assert_null(p_);                                                                  \
    } while (0)

static inline int set_up(void **state) {
    start_server(state);
    divvy_client_config config = witness_config(&heard, hosts());
    config.session_timeout_ms = 60000;
    client = open_connected(&config);
    return 0;
}

static inline int tear_down(void **state) {
    divvy_client_close(client);
    witness_end(&heard);
    return stop_server(state);
}

#endif
