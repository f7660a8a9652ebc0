/* Tests of the proxy, on real servers. SPDX-License-Identifier: Apache-2.0
 *
 * Shows that the proxy breaks connections as its page says; all tests of faults stand on it. */
#include "fixtures_fixture.h"
#define PENDING 1000

static void note_string(int rc, const char *value, const void *data) {
    (void)value;
    atomic_store((atomic_int *)(uintptr_t)data, rc);
}

static int create_later(dv_test_zk *zk, const char *path, atomic_int *rc) {
    atomic_store(rc, PENDING);
    return zoo_acreate(dv_test_zk_handle(zk), path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, note_string, rc);
}

/* --- the proxy -------------------------------------------------------------------------------------------------- */

/* Bytes pass both ways unchanged and are counted, and an end of a connection passes too. */
TEST(test_proxy_passes) {
    char text[4096];
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    int fd = dial(dv_test_proxy_address(proxy));
    say(fd, "srvr");
    hear(fd, text, sizeof text);
    assert_non_null(strstr(text, "Mode: standalone"));
    close(fd);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).open == 0, PATIENCE_MS));
    struct dv_test_proxy_counts counts = dv_test_proxy_count(proxy);
    assert_int_equal(counts.accepted, 1);
    assert_int_equal(counts.refused, 0);
    assert_int_equal(counts.request_bytes, 4);
    assert_int_equal(counts.reply_bytes, strlen(text));
    assert_int_equal(counts.dropped_bytes, 0);
    dv_test_proxy_stop(proxy);
}

/* A cut breaks the client's connection and refuses new ones; once restored, it has its session again. */
TEST(test_proxy_cuts) {
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    int64_t session = dv_test_zk_session(zk);
    dv_test_proxy_cut(proxy);
    assert_int_equal(dv_test_proxy_count(proxy).open, 0);
    assert_true(DV_WAIT(!has_state(zk, ZOO_CONNECTED_STATE), PATIENCE_MS));
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).refused >= 2, PATIENCE_MS));
    assert_int_equal(dv_test_proxy_count(proxy).accepted, 1);
    assert_false(has_state(zk, ZOO_CONNECTED_STATE));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(has_state(zk, ZOO_CONNECTED_STATE), PATIENCE_MS));
    assert_int_equal(dv_test_zk_session(zk), session);
    assert_int_equal(dv_test_proxy_count(proxy).accepted, 2);
    dv_test_zk_close(zk);
    dv_test_proxy_stop(proxy);
}

/* Nothing passes a frozen proxy, neither for an old connection nor for a new one, until it thaws. */
TEST(test_proxy_freezes) {
    char text[16];
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    int before = dial(dv_test_proxy_address(proxy));
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).open == 1, PATIENCE_MS));
    dv_test_proxy_freeze(proxy);
    int after = dial(dv_test_proxy_address(proxy));
    say(before, "ruok");
    say(after, "ruok");
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).open == 2, PATIENCE_MS));
    assert_false(readable(before, SILENCE_MS));
    assert_false(readable(after, SILENCE_MS));
    assert_int_equal(dv_test_proxy_count(proxy).request_bytes, 0);
    dv_test_proxy_thaw(proxy);
    hear(before, text, sizeof text);
    assert_string_equal(text, "imok");
    hear(after, text, sizeof text);
    assert_string_equal(text, "imok");
    close(before);
    close(after);
    dv_test_proxy_stop(proxy);
}

/* A request that a client sent through a frozen proxy before it gave up arrives after the thaw: a write that comes
 * late. */
TEST(test_proxy_delivers_late) {
    atomic_int rc;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    dv_test_proxy_freeze(proxy);
    assert_int_equal(create_later(zk, "/late", &rc), ZOK);
    assert_false(DV_WAIT(atomic_load(&rc) != PENDING, SILENCE_MS));
    assert_false(dv_test_zk_exists(truth, "/late", NULL));
    dv_test_proxy_thaw(proxy);
    assert_true(DV_WAIT(atomic_load(&rc) == ZOK, PATIENCE_MS));
    assert_int_equal(dv_test_zk_delete(truth, "/late"), ZOK);
    dv_test_zk_close(zk);
    dv_test_proxy_stop(proxy);
}

/* With replies dropped a create is carried out, and after the cut the client knows only that it does not know. */
TEST(test_proxy_drops_replies) {
    atomic_int rc;
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    int64_t session = dv_test_zk_session(zk);
    dv_test_proxy_drop_replies(proxy, true);
    assert_int_equal(create_later(zk, "/unknown", &rc), ZOK);
    assert_true(DV_WAIT(dv_test_zk_exists(truth, "/unknown", NULL), PATIENCE_MS));
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).dropped_bytes > 0, PATIENCE_MS));
    assert_int_equal(atomic_load(&rc), PENDING);
    dv_test_proxy_cut(proxy);
    assert_true(DV_WAIT(atomic_load(&rc) != PENDING, PATIENCE_MS));
    assert_int_equal(atomic_load(&rc), ZCONNECTIONLOSS);
    dv_test_proxy_restore(proxy);
    assert_true(dv_test_zk_exists(zk, "/unknown", NULL));
    assert_int_equal(dv_test_zk_session(zk), session);
    assert_int_equal(dv_test_zk_delete(zk, "/unknown"), ZOK);
    dv_test_zk_close(zk);
    dv_test_proxy_stop(proxy);
}

/* A connection that has lost a reply ends when replies pass again. */
TEST(test_proxy_keeps_no_holed_stream) {
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    int untouched = dial(dv_test_proxy_address(proxy));
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).open == 2, PATIENCE_MS));
    atomic_int rc;
    dv_test_proxy_drop_replies(proxy, true);
    assert_int_equal(create_later(zk, "/holed", &rc), ZOK);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).dropped_bytes > 0, PATIENCE_MS));
    dv_test_proxy_drop_replies(proxy, false);
    assert_true(DV_WAIT(atomic_load(&rc) == ZCONNECTIONLOSS, PATIENCE_MS));
    assert_true(dv_test_zk_exists(zk, "/holed", NULL));
    assert_false(readable(untouched, 0));
    assert_int_equal(dv_test_zk_delete(truth, "/holed"), ZOK);
    close(untouched);
    dv_test_zk_close(zk);
    dv_test_proxy_stop(proxy);
}

/* A proxy whose server is down closes its clients' connections, and serves again when the server does. */
TEST(test_proxy_outlives_its_server) {
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_server_kill(shared, 1);
    assert_false(is_ok(dv_test_proxy_address(proxy)));
    dv_test_server_restart(shared, 1);
    assert_true(is_ok(dv_test_proxy_address(proxy)));
    dv_test_proxy_stop(proxy);
}

/* A listener in place of a server, with little room for what arrives, so that the proxy must send it in parts. */
static int listen_narrow(char address[32]) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    int room = 4096;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    snprintf(address, 32, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
    return fd;
}

static char much_at(size_t i) {
    return (char)('a' + i % 23);
}

/* Sends `total` bytes on one end and reads them on the other as they come, and compares. */
static void pass_much(int from, int to, size_t total) {
    static char part[100000];
    size_t sent = 0, received = 0;
    while (received < total) {
        size_t length = total - sent < sizeof part ? total - sent : sizeof part;
        for (size_t i = 0; i < length; i++) part[i] = much_at(sent + i);
        ssize_t put = length ? send(from, part, length, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (put > 0) sent += (size_t)put;
        if (put > 0 && sent < total) continue;
        assert_true(readable(to, PATIENCE_MS));
        ssize_t got = recv(to, part, 30011, 0);
        assert_true(got > 0);
        for (size_t i = 0; i < (size_t)got; i++) assert_int_equal(part[i], much_at(received + i));
        received += (size_t)got;
    }
}

/* Much passes whole to a slow reader. One side's end passes too, while the other may still answer. */
TEST(test_proxy_passes_much) {
    enum { MUCH = 8000000 };
    char address[32], text[16] = "";
    int listener = listen_narrow(address);
    dv_test_proxy *proxy = dv_test_proxy_start(address);
    int client = dial(dv_test_proxy_address(proxy));
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(server >= 0);
    pass_much(client, server, MUCH);
    assert_int_equal(dv_test_proxy_count(proxy).request_bytes, MUCH);
    pass_much(server, client, MUCH);
    assert_int_equal(dv_test_proxy_count(proxy).reply_bytes, MUCH);

    assert_int_equal(shutdown(client, SHUT_WR), 0);
    assert_true(readable(server, PATIENCE_MS));
    assert_int_equal(recv(server, text, sizeof text, 0), 0);
    say(server, "bye");
    assert_true(readable(client, PATIENCE_MS));
    assert_int_equal(recv(client, text, sizeof text, 0), 3);
    assert_string_equal(text, "bye");
    assert_int_equal(shutdown(server, SHUT_WR), 0);
    assert_true(DV_WAIT(dv_test_proxy_count(proxy).open == 0, PATIENCE_MS));
    close(client);
    close(server);
    close(listener);
    dv_test_proxy_stop(proxy);
}

static atomic_bool hammering;

static void *hammer(void *argument) {
    char byte;
    while (atomic_load(&hammering)) {
        int fd = dial(argument);
        (void)!send(fd, "ruok", 4, MSG_NOSIGNAL);
        if (readable(fd, 1)) (void)!recv(fd, &byte, 1, 0);
        close(fd);
    }
    return NULL;
}

/* Faults change while clients come and go, and from several threads; in the end it works, and leaves no descriptor. */
TEST(test_proxy_under_fire) {
    enum { THREADS = 3, ROUNDS = 100 };
    pthread_t threads[THREADS];
    /* Our own client may still be on its way back to a server that another test has restarted: then it has no socket.
     */
    assert_true(DV_WAIT(has_state(truth, ZOO_CONNECTED_STATE), PATIENCE_MS));
    unsigned fds = open_fds();
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    atomic_store(&hammering, true);
    for (int i = 0; i < THREADS; i++) {
        char *address = (char *)(uintptr_t)dv_test_proxy_address(proxy);
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, address), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        dv_test_proxy_freeze(proxy);
        dv_test_proxy_thaw(proxy);
        dv_test_proxy_drop_replies(proxy, true);
        dv_test_proxy_drop_replies(proxy, false);
        dv_test_proxy_cut(proxy);
        assert_int_equal(dv_test_proxy_count(proxy).open, 0);
        dv_test_proxy_restore(proxy);
    }
    atomic_store(&hammering, false);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_true(is_ok(dv_test_proxy_address(proxy)));
    dv_test_proxy_stop(proxy);
    assert_int_equal(open_fds(), fds);
}

TEST_GROUP(set_up, tear_down);
