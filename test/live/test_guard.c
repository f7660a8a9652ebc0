/* Guards in the user's own transactions. SPDX-License-Identifier: Apache-2.0
 *
 * Shows transactions of a host's own handle, which a real server refuses once the guard's node has gone. */
#include "one_server.h"
#include "test_attach_host.h"

#include "lib/proxy.h"

/* The user's transaction: the guard, then a node. The answer to the whole, and to the guard. */
static int commit(zhandle_t *handle, const zoo_op_t *guard, const char *path, int *guard_answer) {
    zoo_op_t ops[2] = {*guard};
    zoo_op_result_t results[2];
    memset(results, 0, sizeof results);
    zoo_create_op_init(&ops[1], path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    int rc = zoo_multi(handle, 2, ops, results);
    if (guard_answer) *guard_answer = results[0].err;
    return rc;
}

static bool is_zero(const zoo_op_t *op) {
    bool zero = true;
    for (size_t i = 0; i < sizeof *op; i++) zero = zero && ((const unsigned char *)op)[i] == 0;
    return zero;
}

static void check_not_held(divvy_client *client, divvy_partitioner *p, const char *item) {
    zoo_op_t op;
    memset(&op, 0xff, sizeof op);
    ASSERT_FAILS(divvy_partitioner_guard(p, item, &op), DIVVY_ENOTHELD, client, item);
    assert_true(is_zero(&op));
    divvy_guard_end(&op);
}

/* In a transaction on the host's own handle the guard of an item that is owned passes; once the place is gone the same
 * guard fails with ZNONODE, nothing of the transaction is done, and a new guard is refused. It outlives partitioner
 * and client. */
TEST(test_passes_while_held) {
    host h;
    zoo_op_t guard, second;
    int answer = 1;
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    divvy_client *client = attach_connected(&h, NULL);
    divvy_partitioner *p = join_pool(client, "/guarded", 3, DIVVY_FAIL);
    acquire(p, 3);
    assert_int_equal(divvy_partitioner_guard(p, "b", &guard), 0);
    assert_int_equal(divvy_partitioner_guard(p, "b", &second), 0);
    assert_int_equal(commit(h.handle, &guard, "/done-1", &answer), ZOK);
    assert_int_equal(answer, ZOK);
    assert_int_equal(commit(h.handle, &guard, "/done-2", &answer), ZOK);                  /* as often as one likes */
    assert_int_equal(commit(dv_test_zk_handle(truth), &second, "/done-3", &answer), ZOK); /* on any handle */
    assert_true(dv_test_zk_exists(truth, "/done-3", NULL));
    divvy_guard_end(&second);
    assert_true(is_zero(&second));
    assert_int_equal(divvy_partitioner_finish(p, PATIENCE_MS), 0);
    check_not_held(client, p, "b");
    assert_int_equal(commit(h.handle, &guard, "/not-done", &answer), ZNONODE);
    assert_int_equal(answer, ZNONODE);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    assert_int_equal(commit(h.handle, &guard, "/not-done", &answer), ZNONODE);
    assert_false(dv_test_zk_exists(truth, "/not-done", NULL));
    divvy_guard_end(&guard);
    host_close(&h);
}

/* Somebody deletes the place, and we believe for a moment more: the guard knows better. */
TEST(test_fails_though_believed) {
    zoo_op_t guard;
    int answer;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts();
    config.ensemble_tick_ms = HOST_TICK_MS;
    config.manual = 1; /* so that it does not hear of it meanwhile */
    divvy_client *client = open_connected(&config);
    divvy_partitioner *p = join_pool(client, "/believed", 1, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    assert_int_equal(dv_test_zk_delete_all(truth, "/believed/locks/a"), ZOK);
    assert_int_equal(divvy_partitioner_owns(p, "a"), 1);
    assert_int_equal(divvy_partitioner_guard(p, "a", &guard), 0);
    assert_int_equal(commit(dv_test_zk_handle(truth), &guard, "/not-done", &answer), ZNONODE);
    assert_int_equal(answer, ZNONODE);
    assert_false(dv_test_zk_exists(truth, "/not-done", NULL));
    divvy_guard_end(&guard);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
}

/* The path of a client with a chroot of ours is from the root of ZooKeeper: for a handle without a chroot. */
TEST(test_chroot) {
    zoo_op_t guard;
    char list[128];
    snprintf(list, sizeof list, "%s/app/one", hosts());
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = list;
    config.ensemble_tick_ms = HOST_TICK_MS;
    divvy_client *client = open_connected(&config);
    divvy_partitioner *p = join_pool(client, "/pool", 1, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_guard(p, "a", &guard), 0);
    assert_int_equal(strncmp(guard.check_op.path, "/app/one/pool/locks/a/", 22), 0);
    assert_int_equal(guard.check_op.version, 0);
    assert_int_equal(commit(dv_test_zk_handle(truth), &guard, "/done-in-chroot", NULL), ZOK);
    divvy_guard_end(&guard);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    /* And of one on a handle with a chroot it is from there. */
    host h;
    host_open(&h, list, HOST_TIMEOUT_MS);
    client = attach_connected(&h, NULL);
    p = join_pool(client, "/pool", 1, DIVVY_FAIL);
    acquire(p, 1);
    assert_int_equal(divvy_partitioner_guard(p, "a", &guard), 0);
    assert_int_equal(strncmp(guard.check_op.path, "/pool/locks/a/", 14), 0);
    assert_int_equal(commit(h.handle, &guard, "/done-in-chroot", NULL), ZOK);
    assert_true(dv_test_zk_exists(truth, "/app/one/done-in-chroot", NULL));
    divvy_guard_end(&guard);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    host_close(&h);
}

/* An item that is not held has no guard: not acquired yet, of another member, unknown, NULL. A revoked item has one
 * until it is released. */
TEST(test_not_held) {
    zoo_op_t guard;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts();
    config.ensemble_tick_ms = HOST_TICK_MS;
    divvy_client *client = open_connected(&config), *other = open_connected(&config);
    divvy_partitioner *p = join_pool(client, "/mine", 2, DIVVY_FAIL);
    ASSERT_FAILS(divvy_partitioner_guard(NULL, "a", &guard), DIVVY_EINVAL, NULL, "NULL");
    ASSERT_FAILS(divvy_partitioner_guard(p, NULL, &guard), DIVVY_EINVAL, client, "NULL");
    ASSERT_FAILS(divvy_partitioner_guard(p, "a", NULL), DIVVY_EINVAL, client, "NULL");
    divvy_guard_end(NULL);
    acquire(p, 2);
    check_not_held(client, p, "no-such-item");
    divvy_partitioner *q = join_pool(other, "/mine", 2, DIVVY_FAIL);
    check_not_held(other, q, "a");
    assert_true(DV_WAIT(divvy_partitioner_state(p) == DIVVY_RELEASE, PATIENCE_MS));
    const char *revoked = divvy_partitioner_owns(p, "a") ? "b" : "a";
    assert_int_equal(divvy_partitioner_owns(p, revoked), 0);
    check_not_held(other, q, revoked);
    assert_int_equal(divvy_partitioner_guard(p, revoked, &guard), 0); /* for the last words of its work */
    assert_int_equal(commit(dv_test_zk_handle(truth), &guard, "/last-words", NULL), ZOK);
    assert_int_equal(divvy_partitioner_release_set(p), 0);
    check_not_held(client, p, revoked);
    assert_true(DV_WAIT(divvy_partitioner_owns(q, revoked), PATIENCE_MS));
    assert_int_equal(commit(dv_test_zk_handle(truth), &guard, "/not-done", NULL), ZNONODE);
    divvy_guard_end(&guard);
    divvy_partitioner_destroy(p);
    divvy_partitioner_destroy(q);
    divvy_client_close(client);
    divvy_client_close(other);
}

/* A lock has a guard from its acquire to its release. */
TEST(test_lock) {
    zoo_op_t guard;
    divvy_lock *lock;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts();
    config.ensemble_tick_ms = HOST_TICK_MS;
    divvy_client *client = open_connected(&config);
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    lock_config.path = "/locked";
    assert_int_equal(divvy_lock_create(&lock, client, &lock_config), 0);
    ASSERT_FAILS(divvy_lock_guard(NULL, &guard), DIVVY_EINVAL, NULL, "NULL");
    ASSERT_FAILS(divvy_lock_guard(lock, NULL), DIVVY_EINVAL, client, "NULL");
    ASSERT_FAILS(divvy_lock_guard(lock, &guard), DIVVY_ENOTHELD, client, "/locked");
    assert_true(is_zero(&guard));
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    assert_int_equal(divvy_lock_guard(lock, &guard), 0);
    assert_int_equal(commit(dv_test_zk_handle(truth), &guard, "/done-locked", NULL), ZOK);
    assert_int_equal(divvy_lock_release(lock), 0);
    assert_true(DV_WAIT(commit(dv_test_zk_handle(truth), &guard, "/not-done", NULL) == ZNONODE ||
                            (dv_test_zk_delete(truth, "/not-done"), false),
                        PATIENCE_MS)); /* The node goes soon after the release has returned. */
    divvy_guard_end(&guard);
    ASSERT_FAILS(divvy_lock_guard(lock, &guard), DIVVY_ENOTHELD, client, "/locked");
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

/* Past the deadline there is no guard, though no event has told of anything. */
TEST(test_past_the_deadline) {
    zoo_op_t guard;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = dv_test_proxy_address(proxy);
    config.ensemble_tick_ms = HOST_TICK_MS;
    config.session_timeout_ms = 3000;
    config.manual = 1;
    divvy_client *client = open_connected(&config);
    divvy_partitioner *p = join_pool(client, "/deadline", 1, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_guard(p, "a", &guard), 0);
    divvy_guard_end(&guard);
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(divvy_client_time_left_ms(client) == 0, PATIENCE_MS)); /* and nothing of it runs */
    assert_int_equal(divvy_partitioner_owns(p, "a"), 0);
    check_not_held(client, p, "a");
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(start_server, stop_server);
