/* Large sessions end in small steps, and what is too large is never sent. SPDX-License-Identifier: Apache-2.0
 *
 * Shows how large a real session may be when it ends, and what the native client writes of a request too large. */
#include "one_server.h"
#include "test_attach_host.h"

#include "client/client.h"
#include "lib/proxy.h"

enum { MANY = 5000, GROUP_MAX = 200 };

static atomic_int answers, error_of_all;

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)context;
    (void)now;
    atomic_store(&error_of_all, reply->error);
    atomic_fetch_add(&answers, 1);
}

static divvy_partitioner *join_with_many(divvy_client *client, const char *path) {
    static char names[MANY][16];
    static const char *items[MANY];
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "item-%zu", i);
        items[i] = names[i];
    }
    divvy_partitioner_config config = dv_test_partitioner_config(path, items, MANY, 0);
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    assert_true(DV_WAIT(divvy_partitioner_state(p) == DIVVY_ACQUIRED, PATIENCE_MS));
    /* With this the party is never empty, so that no directory is tidied away (P12) before its deletions are read. */
    char stray[64];
    snprintf(stray, sizeof stray, "%s/party/stray", path);
    assert_int_equal(dv_test_zk_create(truth, stray, "", 0, NULL), ZOK);
    return p;
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

typedef struct {
    int64_t zxids[MANY];
    atomic_size_t answered;
    atomic_size_t occupied;
} deletions;

static deletions found;

static void on_directory(int rc, const struct Stat *stat, const void *data) {
    size_t i = (size_t)(uintptr_t)data;
    if (rc != ZOK || stat->numChildren != 0) atomic_fetch_add(&found.occupied, 1);
    else found.zxids[i] = stat->pzxid;
    atomic_fetch_add(&found.answered, 1);
}

/* Reads the transaction in which each place was deleted: the last that changed the children of its directory. Returns
 * whether each directory could be read, and is empty: an answer may be lost with the connection of `truth`. */
static bool read_deletions(const char *path) {
    atomic_store(&found.answered, 0);
    atomic_store(&found.occupied, 0);
    dv_test_zk_exists(truth, "/", NULL); /* asks the server to catch up */
    for (size_t i = 0; i < MANY; i++) {
        char directory[64];
        snprintf(directory, sizeof directory, "%s/locks/item-%zu", path, i);
        assert_int_equal(zoo_aexists(dv_test_zk_handle(truth), directory, 0, on_directory, (void *)(uintptr_t)i), ZOK);
    }
    assert_true(DV_WAIT(atomic_load(&found.answered) == MANY, PATIENCE_MS));
    qsort(found.zxids, MANY, sizeof *found.zxids, compare);
    return atomic_load(&found.occupied) == 0;
}

static int64_t transaction_now(void) {
    struct Stat stat;
    assert_int_equal(dv_test_zk_create(truth, "/now", "", 0, NULL), ZOK);
    assert_true(dv_test_zk_exists(truth, "/now", &stat));
    assert_int_equal(dv_test_zk_delete(truth, "/now"), ZOK);
    return stat.czxid;
}

/* No transaction took more than a multi may, and all were over before `end`. */
static void check_small_steps(const char *path, int64_t begin, int64_t end) {
    assert_true(DV_WAIT(read_deletions(path), PATIENCE_MS));
    const int64_t *zxids = found.zxids;
    size_t steps = 0, most = 0, run = 0;
    for (size_t i = 0; i < MANY; i++) {
        run = i && zxids[i] == zxids[i - 1] ? run + 1 : 1;
        steps += run == 1;
        if (run > most) most = run;
    }
    assert_true(zxids[0] > begin && zxids[MANY - 1] < end);
    assert_in_range(most, 2, GROUP_MAX);
    assert_in_range(steps, MANY / GROUP_MAX, MANY / GROUP_MAX + 25);
}

/* A client that has 5,000 ephemeral nodes deletes them in multis before it closes its session: the transaction that
 * ends the session, and would have to name what is left, has nothing to delete. */
TEST(test_own_session) {
    struct Stat stat;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts();
    config.ensemble_tick_ms = HOST_TICK_MS;
    config.session_timeout_ms = 30000;
    divvy_client *client = open_connected(&config);
    divvy_partitioner *p = join_with_many(client, "/own");
    /* One node that the client knows nothing of goes with the session, and so tells of that transaction. */
    assert_int_equal(dv_test_zk_create(truth, "/tell-tale", "", 0, NULL), ZOK);
    atomic_store(&answers, 0);
    dv_client_lock(client);
    assert_int_equal(dv_znode_create(client->znode, "/tell-tale/x", "", 0, DV_EPHEMERAL, on_reply, NULL), 0);
    dv_client_unlock(client);
    assert_true(DV_WAIT(atomic_load(&answers) == 1, PATIENCE_MS));
    assert_int_equal(atomic_load(&error_of_all), 0);
    int64_t begin = transaction_now();
    divvy_client_close(client);
    /* The end of the session has been sent, not answered. */
    assert_true(DV_WAIT(dv_test_zk_exists(truth, "/tell-tale", &stat) && stat.numChildren == 0, PATIENCE_MS));
    check_small_steps("/own", begin, stat.pzxid);
    divvy_partitioner_destroy(p);
    assert_int_equal(dv_test_zk_delete_all(truth, "/own"), ZOK);
}

/* So does one on a host's session, which lives on. A node whose deletion was not answered within the two seconds
 * that its close waits is deleted all the same. */
TEST(test_session_of_a_host) {
    host h;
    host_open(&h, hosts(), 30000);
    divvy_client *client = attach_connected(&h, NULL);
    divvy_partitioner *p = join_with_many(client, "/host");
    int64_t begin = transaction_now();
    divvy_client_close(client);
    assert_true(DV_WAIT(read_deletions("/host"), PATIENCE_MS));
    check_small_steps("/host", begin, transaction_now());
    assert_int_equal(zoo_state(h.handle), ZOO_CONNECTED_STATE);
    divvy_partitioner_destroy(p);
    host_close(&h);
    assert_int_equal(dv_test_zk_delete_all(truth, "/host"), ZOK);
}

/* --- too large -------------------------------------------------------------------------------------------------- */

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    on_reply(context, &(dv_reply){.error = error}, now);
}

/* A request beyond the limits costs no byte on the wire, let alone the connection: it is refused here. */
TEST(test_never_sent) {
    enum { LARGE = DV_REQUEST_BYTES_MAX, OPS = DV_MULTI_OPS_MAX + 1 };
    static dv_op ops[OPS];
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = dv_test_proxy_address(proxy);
    config.ensemble_tick_ms = HOST_TICK_MS;
    config.session_timeout_ms = 30000;
    divvy_client *client = open_connected(&config);
    char *data = calloc(1, LARGE);
    assert_non_null(data);
    for (size_t i = 0; i < OPS; i++) ops[i] = (dv_op){.kind = DV_CHECK, .path = "/", .version = -1};
    dv_op halves[] = {{.kind = DV_CREATE, .path = "/x", .data = data, .data_bytes = DV_MULTI_BYTES_MAX / 2},
                      {.kind = DV_CREATE, .path = "/y", .data = data, .data_bytes = DV_MULTI_BYTES_MAX / 2}};
    uint64_t before = dv_test_proxy_count(proxy).request_bytes;
    for (int i = 0; i < 3; i++) {
        atomic_store(&answers, 0);
        dv_client_lock(client);
        if (i == 0) assert_int_equal(dv_znode_create(client->znode, "/x", data, LARGE, 0, on_reply, NULL), 0);
        if (i == 1) assert_int_equal(dv_znode_multi(client->znode, ops, OPS, on_multi, NULL), 0);
        if (i == 2) assert_int_equal(dv_znode_multi(client->znode, halves, 2, on_multi, NULL), 0);
        assert_int_equal(atomic_load(&answers), 0);
        dv_client_unlock(client);
        assert_true(DV_WAIT(atomic_load(&answers) == 1, PATIENCE_MS));
        assert_int_equal(atomic_load(&error_of_all), DIVVY_E2BIG);
    }
    assert_in_range(dv_test_proxy_count(proxy).request_bytes - before, 0, 2000); /* heartbeats and pings */
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    assert_int_equal(stats.connects, 1);
    assert_int_equal(stats.creates, 0);
    assert_false(dv_test_zk_exists(truth, "/x", NULL));
    free(data);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(start_server, stop_server);
