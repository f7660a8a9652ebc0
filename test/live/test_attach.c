/* Clients on a host's handle: who hears what, and what is left of it. SPDX-License-Identifier: Apache-2.0
 *
 * Shows what the native client does on a handle that a host owns, too: its watches, answers and session events
 * reach both. */
#include "one_server.h"
#include "test_attach_host.h"

#include "lib/proxy.h"

/* Returns how many ephemeral nodes of the session are directly below the path's party and its locks. */
static size_t nodes_below(const char *path, int64_t session) {
    size_t found = 0, count = 0, places = 0;
    char name[256];
    struct Stat stat;
    snprintf(name, sizeof name, "%s/party", path);
    char **members = dv_test_zk_children(truth, name, &count);
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "%s/party/%s", path, members[i]);
        if (dv_test_zk_exists(truth, name, &stat)) found += stat.ephemeralOwner == session;
    }
    dv_test_zk_free_names(members);
    snprintf(name, sizeof name, "%s/locks", path);
    char **items = dv_test_zk_children(truth, name, &count);
    for (size_t i = 0; items && i < count; i++) {
        snprintf(name, sizeof name, "%s/locks/%s", path, items[i]);
        char **queue = dv_test_zk_children(truth, name, &places);
        for (size_t j = 0; j < places; j++) {
            snprintf(name, sizeof name, "%s/locks/%s/%s", path, items[i], queue[j]);
            if (dv_test_zk_exists(truth, name, &stat)) found += stat.ephemeralOwner == session;
        }
        dv_test_zk_free_names(queue);
    }
    dv_test_zk_free_names(items);
    return found;
}

/* --- one client ------------------------------------------------------------------------------------------------- */

/* A client on the host's session works as one with its own: same session id, its nodes are of it, and after close they
 * are gone while the host's session and its own node live on. The host sees no event of all that. */
static void check_basics(bool manual) {
    witness w;
    host h;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    assert_int_equal(zoo_create(h.handle, "/host", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), ZOK);
    divvy_client_config config = witness_config(&w, "no:such:host"); /* of no effect, like the next two */
    config.session_timeout_ms = -1;
    config.auth = "nonsense";
    config.manual = manual;
    divvy_client *client = attach_with(&h, &config);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING); /* nothing happens inside the call */
    assert_int_equal(w.state_count, 0);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_client_session_id(client), host_session(&h));
    divvy_partitioner *p = join_pool(client, "/basics", 5, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    acquire(p, 5);
    assert_int_equal(nodes_below("/basics", host_session(&h)), 6);
    if (!manual) assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS));
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    assert_int_equal(nodes_below("/basics", host_session(&h)), 0);
    assert_int_equal(zoo_state(h.handle), ZOO_CONNECTED_STATE);
    assert_true(dv_test_zk_exists(truth, "/host", NULL));
    assert_int_equal(zoo_delete(h.handle, "/host", -1), ZOK);
    assert_int_equal(atomic_load(&h.connected), 1);
    assert_int_equal(atomic_load(&h.suspended) + atomic_load(&h.node_events), 0);
    assert_true(zoo_set_watcher(h.handle, host_watcher) == host_watcher); /* It has its watcher back. */
    assert_int_equal(w.warning, 0);
    witness_end(&w);
    host_close(&h);
}

TEST(test_threaded) {
    check_basics(false);
}

/* The same in manual mode. */
TEST(test_manual) {
    check_basics(true);
}

/* An impossible attach is refused, and leaves the handle as it was. */
TEST(test_refused) {
    host h;
    divvy_client *client = (divvy_client *)(uintptr_t)1;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    ASSERT_FAILS(divvy_client_attach(NULL, h.handle, NULL), DIVVY_EINVAL, NULL, "out");
    ASSERT_FAILS(divvy_client_attach(&client, NULL, NULL), DIVVY_EINVAL, NULL, "handle");
    assert_null(client);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.size = 0;
    ASSERT_FAILS(divvy_client_attach(&client, h.handle, &config), DIVVY_EINVAL, NULL, "INIT");
    config = (divvy_client_config)DIVVY_CLIENT_CONFIG_INIT;
    config.acl = 17;
    ASSERT_FAILS(divvy_client_attach(&client, h.handle, &config), DIVVY_EINVAL, NULL, "acl");
    assert_null(client);
    config = (divvy_client_config)DIVVY_CLIENT_CONFIG_INIT;
    config.sasl_password_file = "/nobody"; /* The handle is open. */
    ASSERT_FAILS(divvy_client_attach(&client, h.handle, &config), DIVVY_EINVAL, NULL, "sasl");
    config = (divvy_client_config)DIVVY_CLIENT_CONFIG_INIT;
    config.death_watch = 1; /* The session is not the client's to end. */
    ASSERT_FAILS(divvy_client_attach(&client, h.handle, &config), DIVVY_EINVAL, NULL, "death_watch");
    assert_null(client);
    assert_true(zoo_set_watcher(h.handle, host_watcher) == host_watcher);
    client = attach_connected(&h, NULL);
    ASSERT_FAILS(divvy_client_reattach(client, NULL), DIVVY_EINVAL, client, "handle");
    ASSERT_FAILS(divvy_client_reattach(client, h.handle), DIVVY_ESTATE, client, "lost");
    ASSERT_FAILS(divvy_client_reattach(NULL, h.handle), DIVVY_EINVAL, NULL, "NULL");
    divvy_client_close(client);
    divvy_client_config own = DIVVY_CLIENT_CONFIG_INIT;
    own.hosts = hosts();
    client = open_connected(&own);
    ASSERT_FAILS(divvy_client_reattach(client, h.handle), DIVVY_EINVAL, client, "of its own");
    divvy_client_close(client);
    host_close(&h);
}

/* The access list and the budgets of the config count: with a small budget the share is short. */
TEST(test_list_and_budget) {
    host h;
    struct ACL_vector list;
    struct Stat stat;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    assert_int_equal(zoo_add_auth(h.handle, "digest", "u:sesame", 8, NULL, NULL), ZOK);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.acl = DIVVY_ACL_READABLE;
    config.ephemeral_path_bytes = 500;
    divvy_client *client = attach_connected(&h, &config);
    divvy_partitioner *p = join_pool(client, "/budget", 8, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    divvy_partition *mine = divvy_partitioner_partition(p);
    assert_true(divvy_partition_short(mine));
    assert_in_range(divvy_partition_count(mine), 1, 7);
    divvy_partition_unref(mine);
    assert_int_equal(zoo_get_acl(h.handle, "/budget/locks", &list, &stat), ZOK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.data[0].id.scheme, "digest");
    assert_string_equal(list.data[1].id.scheme, "world");
    deallocate_ACL_vector(&list);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    host_close(&h);
}

/* A handle with a chroot of its own: all paths are below it. */
TEST(test_chroot_of_the_handle) {
    host h;
    char list[128];
    assert_int_equal(dv_test_zk_create(truth, "/root", "", 0, NULL), ZOK);
    snprintf(list, sizeof list, "%s/root", hosts());
    host_open(&h, list, HOST_TIMEOUT_MS);
    divvy_client *client = attach_connected(&h, NULL);
    divvy_partitioner *p = join_pool(client, "/pool", 3, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    assert_int_equal(nodes_below("/root/pool", host_session(&h)), 4);
    assert_false(dv_test_zk_exists(truth, "/pool", NULL));
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    host_close(&h);
}

/* A handle that is not connected yet is no error: the client is connected when the handle is. */
TEST(test_not_connected_yet) {
    witness w;
    host h;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    dv_test_proxy_cut(proxy);
    host_begin(&h, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
    divvy_client_config config = witness_config(&w, NULL);
    divvy_client *client = attach_with(&h, &config);
    ASSERT_FAILS(divvy_client_wait_connected(client, 200), DIVVY_ETIMEDOUT, client, "attached");
    divvy_partitioner *p = join_pool(client, "/later", 3, DIVVY_FAIL);
    dv_test_proxy_restore(proxy);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    assert_true(DV_WAIT(witness_told(&w, "C"), PATIENCE_MS));
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(client, &stats, sizeof stats), 0);
    assert_int_equal(stats.connects, 1);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    witness_end(&w);
    assert_int_equal(atomic_load(&h.connected), 1);
    host_close(&h);
    dv_test_proxy_stop(proxy);
}

/* --- two clients ------------------------------------------------------------------------------------------------ */

/* Two clients on one handle are two members of a pool: each owns its half, each is told once of what happens to the
 * session, the host once too, and when one closes the other takes over. */
TEST(test_two_on_one_handle) {
    witness w[2];
    host h;
    divvy_client *clients[2];
    divvy_partitioner *p[2];
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
    for (int i = 0; i < 2; i++) {
        divvy_client_config config = witness_config(&w[i], NULL);
        clients[i] = attach_connected(&h, &config);
        p[i] = join_pool(clients[i], "/two", 8, DIVVY_FAIL);
    }
    assert_true(DV_WAIT(share(p[0], p[1], 8), PATIENCE_MS));
    assert_int_equal(nodes_below("/two", host_session(&h)), 10);
    dv_test_proxy_cut(proxy);
    for (int i = 0; i < 2; i++) assert_true(DV_WAIT(witness_told(&w[i], "CS"), PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    for (int i = 0; i < 2; i++) {
        divvy_stats stats;
        assert_true(DV_WAIT(witness_told(&w[i], "CSC"), PATIENCE_MS));
        assert_int_equal(divvy_client_stats(clients[i], &stats, sizeof stats), 0);
        assert_int_equal(stats.connects, 2);
    }
    assert_true(DV_WAIT(atomic_load(&h.connected) == 2, PATIENCE_MS));
    assert_int_equal(atomic_load(&h.suspended), 1);
    assert_int_equal(owned_by(p[0]) + owned_by(p[1]), 8);
    divvy_partitioner_destroy(p[0]);
    divvy_client_close(clients[0]);
    acquire(p[1], 8);
    assert_int_equal(nodes_below("/two", host_session(&h)), 9);
    divvy_partitioner_destroy(p[1]);
    divvy_client_close(clients[1]);
    for (int i = 0; i < 2; i++) witness_end(&w[i]);
    assert_int_equal(nodes_below("/two", host_session(&h)), 0);
    /* The watches that are still armed find nobody; the host's watcher is told once again. */
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(atomic_load(&h.suspended) == 2, PATIENCE_MS));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(atomic_load(&h.connected) == 3, PATIENCE_MS));
    assert_int_equal(atomic_load(&h.suspended), 2);
    assert_int_equal(dv_test_zk_delete_all(truth, "/two"), ZOK);
    /* And the handle takes clients again. */
    divvy_client *client = attach_connected(&h, NULL);
    divvy_partitioner *again = join_pool(client, "/two", 2, DIVVY_FAIL);
    acquire(again, 2);
    divvy_partitioner_destroy(again);
    divvy_client_close(client);
    host_close(&h);
    dv_test_proxy_stop(proxy);
}

/* --- the host's own business ------------------------------------------------------------------------------------ */

static void on_host_watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle;
    (void)state;
    (void)path;
    if (type != ZOO_SESSION_EVENT) atomic_fetch_add((atomic_int *)context, 1);
}

static void on_host_answer(int rc, const struct Stat *stat, const void *data) {
    host *h = (host *)(uintptr_t)data;
    if (rc == ZOK && stat) atomic_fetch_add(&h->answers, 1);
}

/* Watches of the host on the very nodes that we watch fire as they would without us, and each of its requests is
 * answered once, while two clients work and go. */
TEST(test_host_is_undisturbed) {
    enum { REQUESTS = 2000 };
    host h;
    struct Stat stat;
    struct String_vector names;
    atomic_int party_fired = 0, root_fired = 0;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    divvy_client *first = attach_connected(&h, NULL), *second = attach_connected(&h, NULL);
    divvy_partitioner *p = join_pool(first, "/busy", 4, DIVVY_FAIL);
    acquire(p, 4);
    assert_int_equal(zoo_wget_children(h.handle, "/busy/party", on_host_watch, &party_fired, &names), ZOK);
    assert_int_equal(names.count, 1);
    deallocate_String_vector(&names);
    assert_int_equal(zoo_wexists(h.handle, "/", on_host_watch, &root_fired, &stat), ZOK);
    for (int i = 0; i < REQUESTS; i++) assert_int_equal(zoo_aexists(h.handle, "/busy", 0, on_host_answer, &h), ZOK);
    divvy_partitioner *q = join_pool(second, "/busy", 4, DIVVY_FAIL);
    assert_true(DV_WAIT(share(p, q, 4), PATIENCE_MS));
    assert_true(DV_WAIT(atomic_load(&h.answers) == REQUESTS, PATIENCE_MS));
    assert_true(DV_WAIT(atomic_load(&party_fired) == 1, PATIENCE_MS));
    assert_int_equal(atomic_load(&root_fired), 0);
    /* The root is what our one watch that is always there is on: it fires for both, and ours is armed again. */
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(zoo_set(h.handle, "/", "x", 1, -1), ZOK);
        assert_true(DV_WAIT(atomic_load(&root_fired) == i, PATIENCE_MS));
        assert_int_equal(zoo_wexists(h.handle, "/", on_host_watch, &root_fired, &stat), ZOK);
    }
    divvy_partitioner_destroy(p);
    divvy_partitioner_destroy(q);
    divvy_client_close(first);
    divvy_client_close(second);
    assert_int_equal(zoo_set(h.handle, "/", "", 0, -1), ZOK);
    assert_true(DV_WAIT(atomic_load(&root_fired) == 4, PATIENCE_MS));
    assert_int_equal(atomic_load(&party_fired), 1);
    assert_int_equal(atomic_load(&h.answers), REQUESTS);
    assert_int_equal(atomic_load(&h.connected), 1);
    assert_int_equal(atomic_load(&h.suspended) + atomic_load(&h.node_events), 0);
    host_close(&h);
}

static atomic_int other_suspended, other_connected;

static void other_watcher(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle;
    (void)path;
    (void)context;
    if (type != ZOO_SESSION_EVENT) return;
    if (state == ZOO_CONNECTING_STATE) atomic_fetch_add(&other_suspended, 1);
    if (state == ZOO_CONNECTED_STATE) atomic_fetch_add(&other_connected, 1);
}

static void check_another_watcher(const char *chroot) {
    witness w;
    host h;
    char address[64];
    atomic_store(&other_suspended, 0);
    atomic_store(&other_connected, 0);
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    snprintf(address, sizeof address, "%s%s", dv_test_proxy_address(proxy), chroot);
    host_open(&h, address, HOST_TIMEOUT_MS);
    divvy_client_config config = witness_config(&w, NULL);
    divvy_client *client = attach_connected(&h, &config);
    zoo_set_watcher(h.handle, other_watcher);
    for (int i = 1; i <= 2; i++) {
        dv_test_proxy_cut(proxy);
        assert_true(DV_WAIT(atomic_load(&other_suspended) == i, PATIENCE_MS));
        assert_true(DV_WAIT(witness_told(&w, i == 1 ? "CS" : "CSCS"), PATIENCE_MS));
        dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(witness_told(&w, i == 1 ? "CSC" : "CSCSC"), PATIENCE_MS));
        /* Which of the two the client calls first is its affair. */
        assert_true(DV_WAIT(atomic_load(&other_connected) == i, PATIENCE_MS));
    }
    divvy_partitioner *p = join_pool(client, "/other", 2, DIVVY_FAIL);
    acquire(p, 2);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    witness_end(&w);
    client = attach_connected(&h, NULL); /* Again, with the host's second watcher in place. */
    divvy_client_close(client);
    assert_true(zoo_set_watcher(h.handle, host_watcher) == other_watcher);
    assert_int_equal(atomic_load(&h.connected), 1);
    assert_int_equal(atomic_load(&h.suspended), 0);
    host_close(&h);
    dv_test_proxy_stop(proxy);
}

/* The host may set another watcher afterwards: that one is called from then on, and stays; we hear of the session all
 * the same. */
TEST(test_host_sets_another_watcher) {
    check_another_watcher("");
}

/* So it is where the host may not read its root, which ZooKeeper 3.9 does not let us watch. */
TEST(test_root_is_hidden) {
    struct ACL use = {ZOO_PERM_CREATE | ZOO_PERM_DELETE, ZOO_ANYONE_ID_UNSAFE};
    struct ACL_vector acl = {1, &use};
    host h;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    assert_int_equal(zoo_create(h.handle, "/hidden", "", 0, &acl, 0, NULL, 0), ZOK);
    host_close(&h);
    check_another_watcher("/hidden");
}

TEST_GROUP(start_server, stop_server);
