/* Servers that enforce quotas: docs/protocol.md, B12.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows a real server that enforces quotas, and its word about it. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "lib/wait.h"
#include "one_server.h"

#define LIMITS "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%d"

#define UNTIL(condition) assert_true(DV_WAIT(condition, 60000))

enum { FIRST_RELEASE = 30700, ITEMS = 8 };

static const char *const items[ITEMS] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
static atomic_int failures;
static atomic_bool quota_told, quota_warned;
static char quota_warning[512]; /* of the first one, once it is `quota_warned` */

static int start_strict_server(void **state) {
    setenv("JDK_JAVA_OPTIONS", "-Dzookeeper.enforceQuota=true", 1);
    int error = start_server(state);
    unsetenv("JDK_JAVA_OPTIONS");
    return error;
}

static bool enforces(void) {
    char version[32];
    return dv_test_server_release(server, version, sizeof version) >= FIRST_RELEASE;
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    if (code != DIVVY_WARN_QUOTA || atomic_exchange(&quota_told, true)) return;
    snprintf(quota_warning, sizeof quota_warning, "%s", message);
    atomic_store(&quota_warned, true);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    failures += to == DIVVY_FAILURE;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

static divvy_client *open_client(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.hosts = hosts();
    config.ensemble_tick_ms = TICK_MS;
    config.on_warning = on_warning;
    assert_int_equal(divvy_client_open(&client, &config), 0);
    assert_int_equal(divvy_client_wait_connected(client, 30000), 0);
    return client;
}

static divvy_partitioner *join(divvy_client *client, const char *identifier) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = ITEMS;
    config.identifier = identifier;
    config.time_boundary_ms = 100;
    config.on_state = on_state;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    return p;
}

static int owned(divvy_partitioner *p) {
    int count = 0;
    for (int i = 0; i < ITEMS; i++) count += divvy_partitioner_owns(p, items[i]) != 0;
    return count;
}

static void limit(const char *path, int nodes) {
    char node[128], limits[96];
    snprintf(limits, sizeof limits, LIMITS, nodes);
    snprintf(node, sizeof node, "/zookeeper/quota%s/zookeeper_limits", path);
    assert_int_equal(dv_test_zk_set(truth, node, limits), ZOK);
}

static void make_quota(const char *path, int nodes) {
    char node[128], limits[96];
    snprintf(limits, sizeof limits, LIMITS, nodes);
    assert_int_equal(dv_test_zk_create(truth, path, "", 0, NULL), ZOK);
    snprintf(node, sizeof node, "/zookeeper/quota%s", path);
    assert_int_equal(dv_test_zk_create(truth, node, "", 0, NULL), ZOK);
    snprintf(node, sizeof node, "/zookeeper/quota%s/zookeeper_limits", path);
    assert_int_equal(dv_test_zk_create(truth, node, limits, 0, NULL), ZOK);
    snprintf(node, sizeof node, "/zookeeper/quota%s/zookeeper_stats", path);
    assert_int_equal(dv_test_zk_create(truth, node, "count=0,bytes=0", 0, NULL), ZOK);
}

static bool own_it_all(divvy_partitioner *p, divvy_partitioner *q) {
    return owned(p) == ITEMS / 2 && owned(q) == ITEMS / 2;
}

/* A pool that comes to its quota fails nowhere and keeps what it owns; when the quota is raised, who joined works.
 * The warning names the quota's path and limit. A server asks for the nodes that stand when a request comes in, so that
 * those under way may pass the limit: only one that is passed already is sure to refuse. */
TEST_IN(test_quota, start_strict_server, stop_server) {
    make_quota("/pool", 1000);
    divvy_client *clients[2] = {open_client(), open_client()};
    divvy_partitioner *p = join(clients[0], "first");
    UNTIL(owned(p) == ITEMS);
    limit("/pool", 5);
    divvy_partitioner *q = join(clients[1], "second");
    if (enforces()) {
        UNTIL(atomic_load(&quota_warned));
        assert_non_null(strstr(quota_warning, "the quota of /pool (count=-1,bytes=-1=;byteHardLimit=-1;"
                                              "countHardLimit=5) is used up"));
        assert_int_equal(owned(p), ITEMS);
        assert_int_equal(owned(q), 0);
    }
    limit("/pool", 1000);
    UNTIL(own_it_all(p, q));
    assert_int_equal(failures, 0);
    divvy_partitioner_destroy(p);
    divvy_partitioner_destroy(q);
    for (int i = 0; i < 2; i++) divvy_client_close(clients[i]);
}
