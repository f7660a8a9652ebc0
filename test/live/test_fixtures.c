/* The fixtures of the live tests do what they promise. SPDX-License-Identifier: Apache-2.0 */
#include "lib/expire.h"
#include "lib/proxy.h"
#include "lib/server.h"
#include "lib/wait.h"
#include "lib/zk.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TICK_MS 100
#define PATIENCE_MS 40000
#define SILENCE_MS 150
#define PENDING 1000

/* One server for all tests that leave it as they found it. */
static dv_test_server *shared;
static dv_test_zk *truth;

/* --- helpers ---------------------------------------------------------------------------------------------------- */

/* Whether a process that has not ended mentions `text` in its command line. */
static bool a_process_mentions(const char *text) {
    bool found = false;
    DIR *proc = opendir("/proc");
    assert_non_null(proc);
    for (struct dirent *entry; !found && (entry = readdir(proc));) {
        char path[300], line[16384];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        FILE *file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (!file) continue;
        /* A process that has ended, and that nobody has reaped, has an empty command line. */
        size_t length = fread(line, 1, sizeof line, file);
        fclose(file);
        found = memmem(line, length, text, strlen(text)) != NULL;
    }
    closedir(proc);
    return found;
}

static unsigned open_fds(void) {
    unsigned count = 0;
    DIR *fds = opendir("/proc/self/fd");
    assert_non_null(fds);
    while (readdir(fds)) count++;
    closedir(fds);
    return count;
}

/* A plain connection to "127.0.0.1:PORT". */
static int dial(const char *address) {
    struct sockaddr_in target = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    target.sin_port = htons((uint16_t)strtol(strchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&target, sizeof target), 0);
    return fd;
}

static void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Whether something is to be read within the time, be it the end. */
static bool readable(int fd, int timeout_ms) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* Reads until the end, or until no more comes for the patience. */
static void hear(int fd, char *text, size_t text_bytes) {
    size_t length = 0;
    while (length + 1 < text_bytes && readable(fd, PATIENCE_MS)) {
        ssize_t got = recv(fd, text + length, text_bytes - 1 - length, 0);
        if (got <= 0) break;
        length += (size_t)got;
    }
    text[length] = '\0';
}

/* Whether the peer answers "ruok". */
static bool is_ok(const char *address) {
    char text[16];
    int fd = dial(address);
    say(fd, "ruok");
    hear(fd, text, sizeof text);
    close(fd);
    return strcmp(text, "imok") == 0;
}

static void note_string(int rc, const char *value, const void *data) {
    (void)value;
    atomic_store((atomic_int *)(uintptr_t)data, rc);
}

static int create_later(dv_test_zk *zk, const char *path, atomic_int *rc) {
    atomic_store(rc, PENDING);
    return zoo_acreate(dv_test_zk_handle(zk), path, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, note_string, rc);
}

static bool has_state(dv_test_zk *zk, int state) {
    return zoo_state(dv_test_zk_handle(zk)) == state;
}

static int64_t owner_of(const char *path) {
    struct Stat stat = {0};
    return dv_test_zk_exists(truth, path, &stat) ? stat.ephemeralOwner : 0;
}

/* --- the server ------------------------------------------------------------------------------------------------- */

/* A stopped server leaves neither a process nor its folder. */
static void test_server_leaves_nothing(void **state) {
    (void)state;
    char dir[256];
    unsigned fds = open_fds();
    dv_test_server *server = dv_test_server_start(1, TICK_MS);
    assert_true(is_ok(dv_test_server_address(server, 1)));
    snprintf(dir, sizeof dir, "%s", dv_test_server_dir(server));
    assert_int_equal(access(dir, F_OK), 0);
    assert_true(a_process_mentions(dir));
    dv_test_server_stop(server);
    assert_int_equal(access(dir, F_OK), -1);
    assert_false(a_process_mentions(dir));
    assert_int_equal(open_fds(), fds);
}

/* The servers of a test program that is killed go with it, even while nobody has reaped it. */
static void test_server_goes_with_its_parent(void **state) {
    (void)state;
    char dir[256] = "";
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dv_test_server *server = dv_test_server_start(1, TICK_MS);
        const char *name = dv_test_server_dir(server);
        if (write(ends[1], name, strlen(name)) > 0) raise(SIGKILL);
        _exit(1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], dir, sizeof dir - 1);
    assert_true(got > 0);
    close(ends[0]);
    assert_true(DV_WAIT(access(dir, F_OK) != 0 && !a_process_mentions(dir), PATIENCE_MS));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A paused server accepts and is silent; resumed, it answers what it was asked during the pause. */
static void test_server_pauses(void **state) {
    (void)state;
    char text[16];
    dv_test_server_pause(shared, 1);
    int fd = dial(dv_test_server_address(shared, 1));
    say(fd, "ruok");
    assert_false(readable(fd, SILENCE_MS));
    dv_test_server_resume(shared, 1);
    hear(fd, text, sizeof text);
    close(fd);
    assert_string_equal(text, "imok");
}

/* A server killed and restarted has the same port, the same nodes and the same sessions. */
static void test_server_restarts(void **state) {
    (void)state;
    dv_test_zk *zk = dv_test_zk_open(dv_test_server_connect(shared));
    int64_t session = dv_test_zk_session(zk);
    assert_int_equal(dv_test_zk_create(zk, "/restart", "kept", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(zk, "/restart/own", NULL, ZOO_EPHEMERAL, NULL), ZOK);
    dv_test_server_kill(shared, 1);
    assert_true(DV_WAIT(!has_state(zk, ZOO_CONNECTED_STATE), PATIENCE_MS));
    dv_test_server_restart(shared, 1);
    assert_true(DV_WAIT(has_state(zk, ZOO_CONNECTED_STATE), PATIENCE_MS));
    assert_int_equal(dv_test_zk_session(zk), session);
    assert_int_equal(owner_of("/restart/own"), session);
    dv_test_zk_close(zk);
    assert_false(dv_test_zk_exists(truth, "/restart/own", NULL));
    assert_int_equal(dv_test_zk_delete_all(truth, "/restart"), ZOK);
}

/* An ensemble of three serves on three addresses, goes on without one of them, and comes back when all were killed. */
static void test_server_ensemble(void **state) {
    (void)state;
    char connect[128];
    dv_test_server *server = dv_test_server_start(3, TICK_MS);
    snprintf(connect, sizeof connect, "%s,%s,%s", dv_test_server_address(server, 1), dv_test_server_address(server, 2),
             dv_test_server_address(server, 3));
    assert_string_equal(dv_test_server_connect(server), connect);
    dv_test_zk *zk = dv_test_zk_open(connect);
    assert_int_equal(dv_test_zk_create(zk, "/a", "x", 0, NULL), ZOK);
    for (int number = 1; number <= 3; number++) {
        dv_test_server_kill(server, number);
        assert_true(dv_test_zk_exists(zk, "/a", NULL));
        dv_test_server_restart(server, number);
    }
    dv_test_server_kill(server, DV_TEST_SERVER_ALL);
    dv_test_server_restart(server, DV_TEST_SERVER_ALL);
    assert_true(dv_test_zk_exists(zk, "/a", NULL));
    dv_test_zk_close(zk);
    dv_test_server_stop(server);
}

/* --- the proxy -------------------------------------------------------------------------------------------------- */

/* Bytes pass both ways unchanged and are counted, and an end of a connection passes too. */
static void test_proxy_passes(void **state) {
    (void)state;
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
static void test_proxy_cuts(void **state) {
    (void)state;
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
static void test_proxy_freezes(void **state) {
    (void)state;
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

/* What a client sent through a frozen proxy before it gave up arrives after the thaw: a write that comes late. */
static void test_proxy_delivers_late(void **state) {
    (void)state;
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
static void test_proxy_drops_replies(void **state) {
    (void)state;
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
static void test_proxy_keeps_no_holed_stream(void **state) {
    (void)state;
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
static void test_proxy_outlives_its_server(void **state) {
    (void)state;
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
static void test_proxy_passes_much(void **state) {
    (void)state;
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
static void test_proxy_under_fire(void **state) {
    (void)state;
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

/* --- expiry ----------------------------------------------------------------------------------------------------- */

/* A session expired while its client is cut off has lost its nodes at once; healed, the client is told. */
static void expire_behind_a_cut(const char *path, bool know_password) {
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    clientid_t id = *zoo_client_id(dv_test_zk_handle(zk));
    assert_int_equal(dv_test_zk_create(zk, path, NULL, ZOO_EPHEMERAL, NULL), ZOK);
    dv_test_proxy_cut(proxy);
    assert_int_equal(owner_of(path), id.client_id);
    assert_true(dv_test_expire(dv_test_server_connect(shared), id.client_id, know_password ? id.passwd : NULL));
    assert_false(dv_test_zk_exists(truth, path, NULL));
    assert_false(has_state(zk, ZOO_EXPIRED_SESSION_STATE));
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(has_state(zk, ZOO_EXPIRED_SESSION_STATE), PATIENCE_MS));
    dv_test_zk_close(zk);
    dv_test_proxy_stop(proxy);
}

/* Expiry with the password that the native client tells. */
static void test_expire_with_password(void **state) {
    (void)state;
    expire_behind_a_cut("/expire-known", true);
}

/* Expiry by the session's id alone. */
static void test_expire_without_password(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) expire_behind_a_cut("/expire-computed", false);
}

/* A session that is not there, or a wrong password, is reported and does no harm. */
static void test_expire_refuses(void **state) {
    (void)state;
    const char *connect = dv_test_server_connect(shared);
    char password[DV_TEST_PASSWORD_BYTES] = "wrong";
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(shared, 1));
    dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
    int64_t session = dv_test_zk_session(zk);
    assert_int_equal(dv_test_zk_create(zk, "/refuse", NULL, ZOO_EPHEMERAL, NULL), ZOK);
    dv_test_proxy_cut(proxy);
    assert_false(dv_test_expire(connect, session, password));
    assert_false(dv_test_expire(connect, session + 12345, NULL));
    assert_int_equal(owner_of("/refuse"), session);
    dv_test_proxy_restore(proxy);
    assert_true(dv_test_zk_exists(zk, "/refuse", NULL));
    assert_int_equal(dv_test_zk_session(zk), session);
    dv_test_zk_close(zk);
    assert_false(dv_test_expire(connect, session, NULL));
    dv_test_proxy_stop(proxy);
}

/* In an ensemble a session is expired by way of any server, and all servers know. */
static void test_expire_in_an_ensemble(void **state) {
    (void)state;
    dv_test_server *server = dv_test_server_start(3, TICK_MS);
    dv_test_zk *other = dv_test_zk_open(dv_test_server_connect(server));
    for (int number = 1; number <= 3; number++) {
        dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, number));
        dv_test_zk *zk = dv_test_zk_open(dv_test_proxy_address(proxy));
        assert_int_equal(dv_test_zk_create(zk, "/own", NULL, ZOO_EPHEMERAL, NULL), ZOK);
        dv_test_proxy_cut(proxy);
        assert_true(dv_test_expire(dv_test_server_address(server, 1 + number % 3), dv_test_zk_session(zk), NULL));
        assert_false(dv_test_zk_exists(other, "/own", NULL));
        dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(has_state(zk, ZOO_EXPIRED_SESSION_STATE), PATIENCE_MS));
        dv_test_zk_close(zk);
        dv_test_proxy_stop(proxy);
    }
    dv_test_zk_close(other);
    dv_test_server_stop(server);
}

/* --- the look at the truth -------------------------------------------------------------------------------------- */

/* Nodes are created, listed in order, read, and deleted as a whole. */
static void test_zk_reads_and_writes(void **state) {
    (void)state;
    size_t count;
    int bytes;
    struct Stat stat;
    char *created;
    assert_null(dv_test_zk_children(truth, "/zk", NULL));
    assert_null(dv_test_zk_get(truth, "/zk", NULL, NULL));
    assert_int_equal(dv_test_zk_create(truth, "/zk", "data", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/zk", "data", 0, NULL), ZNODEEXISTS);
    assert_int_equal(dv_test_zk_create(truth, "/zk/b", NULL, 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/zk/b/deep", "", 0, NULL), ZOK);
    assert_int_equal(dv_test_zk_create(truth, "/zk/a-", NULL, ZOO_SEQUENCE, &created), ZOK);
    assert_string_equal(created, "/zk/a-0000000001");
    free(created);

    char **names = dv_test_zk_children(truth, "/zk", &count);
    assert_int_equal(count, 2);
    assert_string_equal(names[0], "a-0000000001");
    assert_string_equal(names[1], "b");
    assert_null(names[2]);
    dv_test_zk_free_names(names);

    assert_int_equal(dv_test_zk_set(truth, "/zk", "other data"), ZOK);
    char *data = dv_test_zk_get(truth, "/zk", &bytes, &stat);
    assert_string_equal(data, "other data");
    assert_int_equal(bytes, 10);
    assert_int_equal(stat.version, 1);
    free(data);
    data = dv_test_zk_get(truth, "/zk/b", &bytes, NULL);
    assert_string_equal(data, "");
    assert_int_equal(bytes, -1);
    free(data);

    assert_int_equal(dv_test_zk_delete(truth, "/zk"), ZNOTEMPTY);
    assert_int_equal(dv_test_zk_delete_all(truth, "/zk"), ZOK);
    assert_int_equal(dv_test_zk_delete_all(truth, "/zk"), ZOK);
    assert_false(dv_test_zk_exists(truth, "/zk", NULL));
}

/* A wait ends when its condition holds, and at the deadline when it does not. */
static void test_wait(void **state) {
    (void)state;
    int asked = 0;
    assert_true(DV_WAIT(++asked == 3, PATIENCE_MS));
    assert_int_equal(asked, 3);
    int64_t before_ms = dv_test_now_ms();
    assert_false(DV_WAIT(asked == 4, 20));
    assert_true(dv_test_now_ms() - before_ms >= 20);
    assert_true(DV_WAIT(true, 0));
}

static int set_up(void **state) {
    (void)state;
    shared = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(dv_test_server_connect(shared));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(shared);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_server_leaves_nothing),
        cmocka_unit_test(test_server_goes_with_its_parent),
        cmocka_unit_test(test_server_pauses),
        cmocka_unit_test(test_server_restarts),
        cmocka_unit_test(test_server_ensemble),
        cmocka_unit_test(test_zk_reads_and_writes),
        cmocka_unit_test(test_proxy_passes),
        cmocka_unit_test(test_proxy_cuts),
        cmocka_unit_test(test_proxy_freezes),
        cmocka_unit_test(test_proxy_delivers_late),
        cmocka_unit_test(test_proxy_drops_replies),
        cmocka_unit_test(test_proxy_keeps_no_holed_stream),
        cmocka_unit_test(test_proxy_outlives_its_server),
        cmocka_unit_test(test_proxy_passes_much),
        cmocka_unit_test(test_proxy_under_fire),
        cmocka_unit_test(test_expire_with_password),
        cmocka_unit_test(test_expire_without_password),
        cmocka_unit_test(test_expire_refuses),
        cmocka_unit_test(test_expire_in_an_ensemble),
    };
    return cmocka_run_group_tests_name("fixtures", tests, set_up, tear_down);
}
