/* An ensemble in memory and a client for bad and odd input. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_INPUT_FIXTURE_H
#define DV_TEST_INPUT_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/partitioner_config.h"
#include "lib/test.h"
#include "znode/path.h"

#define PATIENCE_MS 40000 /* of the virtual clock */

static divvy_testing_ensemble *ensemble;
static divvy_client *client;

static inline divvy_partitioner_config config_for(const char *path, const char *const *items, size_t item_count) {
    return dv_test_partitioner_config(path, items, item_count, 0);
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

/* Returns the number of the children; 0 also when there is no such node. */
static inline size_t children_of(const char *path) {
    divvy_strings *names = divvy_testing_children(ensemble, path);
    size_t count = divvy_strings_count(names);
    divvy_strings_free(names);
    return count;
}

/* Everything of it is gone from ZooKeeper: its member, its locks, and the directories of its items. */
static inline void finish(divvy_partitioner *p, const char *path) {
    char below[256];
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0);
    divvy_partitioner_destroy(p);
    snprintf(below, sizeof below, "%s/locks", path);
    assert_int_equal(children_of(below), 0);
    snprintf(below, sizeof below, "%s/party", path);
    assert_int_equal(children_of(below), 0);
}

/* Asserts that `call` returned `error`, and that its message, of `client`, is about `text`. */
#define ASSERT_FAILS(call, error, client, text)                                                        \
    do {                                                                                               \
        int got_ = (call);                                                                             \
        if (got_ != (error)) fail_msg("%s: %s instead of %s", #call, divvy_errname(got_), #error);     \
        if (!strstr(divvy_client_error(client), text) || !*divvy_client_error(client))                 \
            fail_msg("%s: the message \"%s\" has no \"%s\"", #call, divvy_client_error(client), text); \
    } while (0)

#define REFUSED(config, error, text)                                                      \
    do {                                                                                  \
        divvy_partitioner *p_ = (divvy_partitioner *)(void *)&ensemble;                   \
        ASSERT_FAILS(divvy_partitioner_create(&p_, client, config), error, client, text); \
        assert_null(p_);                                                                  \
    } while (0)

static inline divvy_client *open_client(const divvy_client_config *base) {
    divvy_client *opened;
    divvy_client_config config = *base;
    config.manual = 1;
    config.session_timeout_ms = 30000;
    assert_int_equal(divvy_testing_client_open(&opened, ensemble, &config), 0);
    assert_int_equal(divvy_client_wait_connected(opened, PATIENCE_MS), 0);
    return opened;
}

static inline int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    config.servers = 1;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    client = open_client(&client_config);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

#endif
