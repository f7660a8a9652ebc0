/* A host program's handle, and what its watcher is told, for the tests of attached clients.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ATTACH_HOST_H
#define DV_TEST_ATTACH_HOST_H

#include <divvy/zookeeper.h>

#include "test_client_witness.h"

#define HOST_TICK_MS 100
#define HOST_TIMEOUT_MS 8000

/* Session events by what they say, and node events. Counted on the native client's thread. */
typedef struct {
    zhandle_t *handle;
    atomic_int connected, suspended, expired, other_states, node_events, answers;
} host;

static inline void host_watcher(zhandle_t *handle, int type, int state, const char *path, void *context) {
    host *h = context; /* Its own context, whichever watcher stands before it. */
    (void)handle;
    (void)path;
    if (type != ZOO_SESSION_EVENT) atomic_fetch_add(&h->node_events, 1);
    else if (state == ZOO_CONNECTED_STATE) atomic_fetch_add(&h->connected, 1);
    else if (state == ZOO_CONNECTING_STATE) atomic_fetch_add(&h->suspended, 1);
    else if (state == ZOO_EXPIRED_SESSION_STATE) atomic_fetch_add(&h->expired, 1);
    else atomic_fetch_add(&h->other_states, 1);
}

static inline void host_drop_line(const char *line) {
    (void)line;
}

static inline void host_begin(host *h, const char *address, int timeout_ms) {
    memset(h, 0, sizeof *h);
    h->handle = dv_test_zk_init(address, host_watcher, timeout_ms, h, host_drop_line);
    assert_non_null(h->handle);
    zoo_set_servers_resolution_delay(h->handle, -1);
}

static inline void host_open(host *h, const char *address, int timeout_ms) {
    host_begin(h, address, timeout_ms);
    assert_true(DV_WAIT(atomic_load(&h->connected) == 1, PATIENCE_MS));
}

static inline void host_close(host *h) {
    assert_int_equal(atomic_load(&h->other_states), 0);
    zookeeper_close(h->handle);
    h->handle = NULL;
}

static inline int64_t host_session(const host *h) {
    return zoo_client_id(h->handle)->client_id;
}

/* The tick of the servers is told, as an attached client owns nothing before it could be proven that the session lives,
 * and that takes longer the longer a tick may be. */
static inline divvy_client *attach_with(host *h, const divvy_client_config *config) {
    divvy_client *client;
    divvy_client_config with_tick = DIVVY_CLIENT_CONFIG_INIT;
    if (config) with_tick = *config;
    if (!with_tick.ensemble_tick_ms) with_tick.ensemble_tick_ms = HOST_TICK_MS;
    int error = divvy_client_attach(&client, h->handle, &with_tick);
    if (error) fail_msg("attach: %s: %s", divvy_errname(error), divvy_client_error(NULL));
    assert_non_null(client);
    return client;
}

static inline divvy_client *attach_connected(host *h, const divvy_client_config *config) {
    divvy_client *client = attach_with(h, config);
    int error = divvy_client_wait_connected(client, PATIENCE_MS);
    if (error) fail_msg("wait_connected: %s: %s", divvy_errname(error), divvy_client_error(client));
    return client;
}

/* A partitioner without a boundary on the items "a", "b", ... */
static inline divvy_partitioner *join_pool(divvy_client *client, const char *path, size_t item_count, int on_loss) {
    static const char *const items[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    assert_true(item_count <= sizeof items / sizeof items[0]);
    divvy_partitioner_config config = dv_test_partitioner_config(path, items, item_count, 0);
    config.on_session_loss = on_loss;
    divvy_partitioner *p;
    int error = divvy_partitioner_create(&p, client, &config);
    if (error) fail_msg("partitioner: %s: %s", divvy_errname(error), divvy_client_error(client));
    return p;
}

static inline size_t owned_by(divvy_partitioner *p) {
    divvy_partition *mine = divvy_partitioner_partition(p);
    size_t count = 0;
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        count += (size_t)divvy_partitioner_owns(p, divvy_partition_item(mine, i));
    divvy_partition_unref(mine);
    return count;
}

/* One look at a member of a pool, with the answer to a RELEASE. */
static inline divvy_partition_state pool_step(divvy_partitioner *p) {
    divvy_partition_state now = divvy_partitioner_state(p);
    if (now == DIVVY_RELEASE) divvy_partitioner_release_set(p);
    return now;
}

/* Steps both, as either may wait for what the other is to release. Returns whether they share so many items. */
static inline bool share(divvy_partitioner *p, divvy_partitioner *q, size_t count) {
    divvy_partition_state one = pool_step(p), other = pool_step(q);
    if (one != DIVVY_ACQUIRED || other != DIVVY_ACQUIRED) return false;
    return owned_by(p) > 0 && owned_by(q) > 0 && owned_by(p) + owned_by(q) == count;
}

static inline void acquire(divvy_partitioner *p, size_t count) {
    assert_true(DV_WAIT(pool_step(p) == DIVVY_ACQUIRED && owned_by(p) == count, PATIENCE_MS));
}

#endif
