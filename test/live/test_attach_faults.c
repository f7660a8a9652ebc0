/* Clients on a host's handle when links, sessions and handles end. SPDX-License-Identifier: Apache-2.0
 *
 * Shows how the native client ends requests, watches and sessions of a shared handle; the ensemble in memory has no
 * such handle. */
#include "one_server.h"
#include "test_attach_host.h"

#include "client/client.h"
#include "lib/expire.h"
#include "lib/proxy.h"

/* A tick that is more than it is, so that the deadline comes long before the expiry. */
enum { LOSS_TIMEOUT_MS = 12000, LOSS_TICK_MS = 2300 };

/* --- close with requests under way ------------------------------------------------------------------------------ */

static atomic_int ended, unanswered;

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)context;
    (void)now;
    if (reply->error == DIVVY_ECANCELED) atomic_fetch_add(&unanswered, 1);
    atomic_fetch_add(&ended, 1);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    on_reply(context, &(dv_reply){.error = error}, now);
}

static void never_fires(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)watch;
    (void)kind;
    (void)now;
    abort();
}

/* Reads with watches, creates and multis, more than may be under way at once. */
static void ask(divvy_client *client, int count, dv_watch *watches) {
    static const dv_op ops[] = {{.kind = DV_CHECK, .path = "/", .version = -1},
                                {.kind = DV_CREATE, .path = "/asked-", .mode = DV_EPHEMERAL | DV_SEQUENTIAL}};
    dv_client_lock(client);
    for (int i = 0; i < count; i++) {
        watches[i].fired = never_fires;
        if (i % 4 == 0) assert_int_equal(dv_znode_exists(client->znode, "/none", &watches[i], on_reply, NULL), 0);
        if (i % 4 == 1) assert_int_equal(dv_znode_children(client->znode, "/", NULL, on_reply, NULL), 0);
        if (i % 4 == 2) assert_int_equal(dv_znode_multi(client->znode, ops, 2, on_multi, NULL), 0);
        if (i % 4 == 3) assert_int_equal(dv_znode_get(client->znode, "/", NULL, on_reply, NULL), 0);
    }
    dv_client_unlock(client);
}

static size_t children_with(const char *path, const char *prefix) {
    size_t found = 0, count;
    char **names = dv_test_zk_children(truth, path, &count);
    for (size_t i = 0; names && i < count; i++) found += strncmp(names[i], prefix, strlen(prefix)) == 0;
    dv_test_zk_free_names(names);
    return found;
}

/* Closed while nobody answers, it ends in bounded time, and each request once. The answers that come later, by the
 * thawed link or by the host's close, and the watches that fire later, find nobody and no freed memory; and nodes that
 * come to be later are deleted. */
TEST(test_close_without_answers) {
    enum { COUNT = 3000 };
    static dv_watch watches[COUNT];
    for (int thawed = 0; thawed <= 1; thawed++) {
        host h;
        memset(watches, 0, sizeof watches);
        atomic_store(&ended, 0);
        atomic_store(&unanswered, 0);
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        host_open(&h, dv_test_proxy_address(proxy), 20000);
        divvy_client *client = attach_connected(&h, NULL), *other = attach_connected(&h, NULL);
        dv_test_proxy_freeze(proxy);
        ask(client, COUNT, watches);
        int64_t began_ms = dv_test_now_ms();
        divvy_client_close(client);
        assert_true(dv_test_now_ms() - began_ms < 2000 + 500 + 10000); /* a slow machine has its time */
        assert_int_equal(atomic_load(&ended), COUNT);
        assert_int_equal(atomic_load(&unanswered), COUNT);
        if (thawed) {
            dv_test_proxy_thaw(proxy);
            assert_true(DV_WAIT(zoo_exists(h.handle, "/", 0, NULL) == ZOK, PATIENCE_MS)); /* behind all of ours */
            assert_int_equal(dv_test_zk_create(truth, "/none", "", 0, NULL), ZOK);
            assert_int_equal(zoo_delete(h.handle, "/none", -1), ZOK); /* It has heard of the first watch by then. */
            char *last = NULL;
            assert_int_equal(dv_test_zk_create(truth, "/count-", "", ZOO_EPHEMERAL | ZOO_SEQUENCE, &last), ZOK);
            assert_true(strtol(last + 7, NULL, 10) >= DV_IN_FLIGHT_MAX / 4); /* The creates were carried out, late, */
            free(last);
            assert_true(DV_WAIT(children_with("/", "asked-") == 0, PATIENCE_MS)); /* and their nodes deleted. */
        }
        divvy_client_close(other);
        host_close(&h);
        dv_test_proxy_stop(proxy);
    }
}

/* Answers that come in time are waited for, so that a host which closes its handle next leaves nothing behind. */
TEST(test_close_waits_for_answers) {
    enum { COUNT = 800 };
    static dv_watch watches[COUNT];
    host h;
    host_open(&h, hosts(), 20000);
    divvy_client *client = attach_connected(&h, NULL);
    atomic_store(&ended, 0);
    ask(client, COUNT, watches);
    divvy_client_close(client);
    assert_int_equal(atomic_load(&ended), COUNT);
    host_close(&h);
}

/* Closed while the link is down, on a session that lives on: its nodes are deleted as soon as the host's handle is
 * connected again, so that nobody waits for items that nobody owns. The handle may even take new clients before
 * that. */
static void check_closed_while_down(bool next_client) {
    host h;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), 30000);
    divvy_client *client = attach_connected(&h, NULL), *next = NULL;
    divvy_partitioner *p = join_pool(client, "/down", 8, DIVVY_FAIL);
    acquire(p, 8);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_SUSPENDED, PATIENCE_MS));
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    if (next_client) next = attach_with(&h, NULL);
    assert_int_equal(children_with("/down/party", ""), 1);
    assert_int_equal(children_with("/down/locks/a", ""), 1);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(atomic_load(&h.connected) == 2, PATIENCE_MS));
    assert_int_equal(atomic_load(&h.expired), 0);
    assert_true(DV_WAIT(children_with("/down/party", "") == 0, PATIENCE_MS));
    for (const char *item = "a\0b\0c\0d\0e\0f\0g\0h\0"; *item; item += 2) {
        char path[32];
        snprintf(path, sizeof path, "/down/locks/%s", item);
        assert_true(DV_WAIT(children_with(path, "") == 0, PATIENCE_MS));
    }
    if (!next) next = attach_with(&h, NULL);
    p = join_pool(next, "/down", 8, DIVVY_FAIL);
    acquire(p, 8);
    divvy_partitioner_destroy(p);
    divvy_client_close(next);
    assert_int_equal(children_with("/down/party", ""), 0);
    assert_int_equal(atomic_load(&h.suspended), 1);
    host_close(&h);
    dv_test_proxy_stop(proxy);
}

TEST(test_closed_while_down) {
    check_closed_while_down(false);
    check_closed_while_down(true);
}

/* Closed while down, and then the host closes too, or its session expires: nothing is left to settle. */
TEST(test_closed_while_down_for_good) {
    for (int expired = 0; expired <= 1; expired++) {
        host h;
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        host_open(&h, dv_test_proxy_address(proxy), 30000);
        divvy_client *client = attach_connected(&h, NULL);
        divvy_partitioner *p = join_pool(client, "/good", 8, DIVVY_FAIL);
        acquire(p, 8);
        clientid_t id = *zoo_client_id(h.handle);
        dv_test_proxy_cut(proxy);
        assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_SUSPENDED, PATIENCE_MS));
        divvy_partitioner_destroy(p);
        divvy_client_close(client);
        assert_true(dv_test_expire(hosts(), id.client_id, id.passwd));
        if (expired) {
            dv_test_proxy_restore(proxy);
            assert_true(DV_WAIT(atomic_load(&h.expired) == 1, PATIENCE_MS));
        }
        host_close(&h);
        dv_test_proxy_stop(proxy);
    }
}

/* Opened and closed many times over, with traffic, by several threads at once. */
static void *come_and_go(void *context) {
    host *h = context;
    for (int i = 0; i < 30; i++) {
        divvy_client *client;
        divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
        config.manual = i % 3 == 0;
        if (divvy_client_attach(&client, h->handle, &config) != 0) return NULL;
        divvy_party *party;
        if (i % 2) divvy_client_wait_connected(client, PATIENCE_MS);
        if (divvy_party_join(&party, client, "/crowd", NULL, DIVVY_PARTY) == 0) {
            divvy_strings *members;
            if (i % 3 == 1 && divvy_party_members(party, &members, PATIENCE_MS) == 0) divvy_strings_free(members);
            divvy_party_destroy(party);
        }
        divvy_client_close(client);
    }
    return context;
}

TEST(test_coming_and_going) {
    enum { THREADS = 4 };
    host h;
    pthread_t threads[THREADS];
    host_open(&h, hosts(), 20000);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &h), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
    }
    assert_true(zoo_set_watcher(h.handle, host_watcher) == host_watcher);
    assert_int_equal(atomic_load(&h.connected), 1);
    assert_int_equal(atomic_load(&h.suspended), 0);
    assert_int_equal(dv_test_zk_count(truth, "/crowd"), 0);
    host_close(&h);
}

/* --- the end of a session --------------------------------------------------------------------------------------- */

static void expire(host *h, dv_test_proxy *proxy) {
    clientid_t id = *zoo_client_id(h->handle);
    dv_test_proxy_cut(proxy);
    assert_true(dv_test_expire(hosts(), id.client_id, id.passwd));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(atomic_load(&h->expired) == 1, PATIENCE_MS));
}

/* The host's session expires: the host is told once, the clients are lost and stay so. Its handle is closed at once;
 * on a new one the same clients and objects go on: with DIVVY_REJOIN the same partitioner comes back with a share, and
 * without it a new one can be made. */
static void check_reattach(bool manual) {
    witness w;
    host h, next;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
    divvy_client_config config = witness_config(&w, NULL);
    config.manual = manual;
    divvy_client *client = attach_connected(&h, &config);
    divvy_partitioner *back = join_pool(client, "/back", 4, DIVVY_REJOIN);
    divvy_partitioner *gone = join_pool(client, "/gone", 4, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(back, PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(gone, PATIENCE_MS), 0);
    expire(&h, proxy);
    ASSERT_FAILS(divvy_client_attach(&(divvy_client *){NULL}, h.handle, NULL), DIVVY_ELOST, NULL, "expired");
    if (manual) {
        assert_int_equal(divvy_client_state(client) == DIVVY_LOST, false); /* It has not been told yet. */
        ASSERT_FAILS(divvy_client_reattach(client, h.handle), DIVVY_ESTATE, client, "not lost");
    }
    host_close(&h); /* at once: nothing of ours still touches it */
    if (manual) divvy_client_process(client, 100);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    assert_int_equal(owned_by(back) + owned_by(gone), 0);
    ASSERT_FAILS(divvy_client_wait_connected(client, 0), DIVVY_ELOST, client, "expired");
    host_begin(&next, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS); /* need not be connected yet */
    assert_int_equal(divvy_client_reattach(client, next.handle), 0);
    ASSERT_FAILS(divvy_client_reattach(client, next.handle), DIVVY_ESTATE, client, "not lost");
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_client_session_id(client), host_session(&next));
    assert_int_equal(divvy_partitioner_state(gone), DIVVY_FAILURE);
    assert_int_equal(divvy_partitioner_failure(gone, NULL, 0), DIVVY_ELOST);
    assert_int_equal(divvy_partitioner_state(back), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(back), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(back, PATIENCE_MS), 0);
    assert_int_equal(owned_by(back), 4);
    divvy_partitioner *another = join_pool(client, "/gone", 4, DIVVY_FAIL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(another, PATIENCE_MS), 0);
    divvy_partitioner_destroy(back);
    divvy_partitioner_destroy(gone);
    divvy_partitioner_destroy(another);
    if (!manual) assert_true(DV_WAIT(strncmp(witness_states(&w), "CSL", 3) == 0, PATIENCE_MS));
    divvy_client_close(client);
    witness_end(&w);
    assert_int_equal(zoo_state(next.handle), ZOO_CONNECTED_STATE);
    assert_int_equal(atomic_load(&next.connected), 1);
    host_close(&next);
    dv_test_proxy_stop(proxy);
}

TEST(test_reattach) {
    check_reattach(false);
}

TEST(test_reattach_manual) {
    check_reattach(true);
}

/* From the callback that tells of the loss, as a host may do it that keeps a spare handle. */
static void reattach_at_once(witness *w, divvy_client *client, divvy_session_state state) {
    host *spare = w->user;
    if (state == DIVVY_LOST) witness_expect(w, divvy_client_reattach(client, spare->handle) == 0, client);
}

TEST(test_reattach_in_a_callback) {
    witness w;
    host h, spare;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
    host_open(&spare, hosts(), HOST_TIMEOUT_MS);
    divvy_client_config config = witness_config(&w, NULL);
    w.on_session = reattach_at_once;
    w.user = &spare;
    divvy_client *client = attach_connected(&h, &config), *other = attach_connected(&h, NULL);
    expire(&h, proxy);
    assert_true(DV_WAIT(divvy_client_session_id(client) == host_session(&spare), PATIENCE_MS));
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_true(DV_WAIT(divvy_client_state(other) == DIVVY_LOST, PATIENCE_MS));
    divvy_client_close(other); /* on the old handle, which is still there */
    host_close(&h);
    divvy_client_close(client);
    witness_end(&w);
    host_close(&spare);
    dv_test_proxy_stop(proxy);
}

/* Closed instead: the expired handle may be closed before the client. */
TEST(test_closed_after_expiry) {
    for (int host_first = 0; host_first <= 1; host_first++) {
        host h;
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
        host_open(&h, dv_test_proxy_address(proxy), HOST_TIMEOUT_MS);
        divvy_client *client = attach_connected(&h, NULL);
        divvy_partitioner *p = join_pool(client, "/last", 4, DIVVY_REJOIN);
        assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
        expire(&h, proxy);
        if (host_first) host_close(&h);
        divvy_client_close(client);
        if (!host_first) host_close(&h);
        divvy_partitioner_destroy(p);
        dv_test_proxy_stop(proxy);
    }
}

static void check_lost_but_alive(bool released_at_once) {
    witness w;
    host h;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), LOSS_TIMEOUT_MS);
    divvy_client_config config = witness_config(&w, NULL);
    config.ensemble_tick_ms = LOSS_TICK_MS;
    divvy_client *client = attach_connected(&h, &config);
    divvy_partitioner *p = join_pool(client, "/alive", 4, DIVVY_REJOIN);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    int64_t session = host_session(&h);
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    assert_int_equal(owned_by(p), 0);
    if (released_at_once) assert_int_equal(divvy_partitioner_release_set(p), 0);
    assert_int_equal(atomic_load(&h.expired), 0);
    dv_test_proxy_thaw(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_CONNECTED, PATIENCE_MS));
    assert_int_equal(host_session(&h), session);
    assert_int_equal(atomic_load(&h.expired), 0);
    assert_true(DV_WAIT(pool_step(p) == DIVVY_ACQUIRED && owned_by(p) == 4, PATIENCE_MS));
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    witness_end(&w);
    host_close(&h);
    dv_test_proxy_stop(proxy);
}

/* The deadline passes before a server says anything, and the session lives: what was owned is lost all the same, its
 * nodes are deleted on that very session, and then the client goes on there. */
TEST(test_lost_but_alive) {
    check_lost_but_alive(false);
}

/* So it does where the member was released before its nodes could be deleted: it takes part again after that. */
TEST(test_lost_but_alive_and_released) {
    check_lost_but_alive(true);
}

/* Lost by the clock, and the host moves the client to another handle though the session lives: there all goes on.
 * The nodes of the old one go with it, or, if the host keeps it, are deleted when it is connected again. */
static void check_moved(bool kept) {
    host h, next;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), LOSS_TIMEOUT_MS);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.ensemble_tick_ms = LOSS_TICK_MS;
    divvy_client *client = attach_connected(&h, &config);
    divvy_partitioner *p = join_pool(client, "/moved", 4, DIVVY_REJOIN);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, PATIENCE_MS), 0);
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    ASSERT_FAILS(divvy_client_reattach(client, h.handle), DIVVY_ESTATE, client, "goes on");
    host_open(&next, hosts(), LOSS_TIMEOUT_MS);
    assert_int_equal(divvy_client_reattach(client, next.handle), 0);
    if (kept) {
        dv_test_proxy_thaw(proxy);
    } else {
        host_close(&h);
        dv_test_proxy_stop(proxy);
    }
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_true(DV_WAIT(pool_step(p) == DIVVY_ACQUIRED && owned_by(p) == 4, PATIENCE_MS));
    assert_true(DV_WAIT(children_with("/moved/party", "") == 1, PATIENCE_MS));
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    if (kept) {
        assert_int_equal(atomic_load(&h.expired), 0);
        assert_int_equal(zoo_state(h.handle), ZOO_CONNECTED_STATE);
        host_close(&h);
        dv_test_proxy_stop(proxy);
    }
    host_close(&next);
}

TEST(test_moved_from_a_live_session) {
    check_moved(false);
    check_moved(true);
}

TEST_GROUP(start_server, stop_server);
