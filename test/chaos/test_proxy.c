/* The fault proxy breaks connections just as it says. SPDX-License-Identifier: Apache-2.0
 *
 * Behind it stands a listener of the test's own: whatever comes and goes is looked at on both ends. */
#include "lib/proxy.h"
#include "lib/wait.h"

#include "lib/test.h"
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PATIENCE_MS = 20000, SILENCE_MS = 100 };

typedef struct {
    int listener, client, server;
    dv_test_proxy *proxy;
} ends;

static int listen_anywhere(char address[32]) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&own, sizeof own) == 0 && listen(fd, 8) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &bytes), 0);
    snprintf(address, 32, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
    return fd;
}

/* A connection through the proxy, both ends of it. */
static void join(ends *e) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)strtol(strchr(dv_test_proxy_address(e->proxy), ':') + 1, NULL, 10));
    e->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(e->client, (struct sockaddr *)&to, sizeof to), 0);
    e->server = accept4(e->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(e->server >= 0);
}

static void part(ends *e) {
    close(e->client);
    close(e->server);
}

static int set_up(void **state) {
    ends *e = calloc(1, sizeof *e);
    char address[32];
    assert_non_null(e);
    e->listener = listen_anywhere(address);
    e->proxy = dv_test_proxy_start(address);
    join(e);
    *state = e;
    return 0;
}

static int tear_down(void **state) {
    ends *e = *state;
    part(e);
    dv_test_proxy_stop(e->proxy);
    close(e->listener);
    free(e);
    return 0;
}

static void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static bool is_readable(int fd, int timeout_ms) {
    struct pollfd end = {.fd = fd, .events = POLLIN};
    return poll(&end, 1, timeout_ms) == 1;
}

/* The text comes, as a whole. */
static void hear(int fd, const char *text) {
    char got[64] = "";
    size_t used = 0;
    while (used < strlen(text)) {
        assert_true(is_readable(fd, PATIENCE_MS));
        ssize_t bytes = recv(fd, got + used, sizeof got - 1 - used, 0);
        assert_true(bytes > 0);
        used += (size_t)bytes;
    }
    assert_string_equal(got, text);
}

/* The connection ends, and nothing comes before. */
static void hear_end(int fd) {
    char byte;
    assert_true(is_readable(fd, PATIENCE_MS));
    ssize_t got = recv(fd, &byte, 1, 0);
    assert_true(got == 0 || (got < 0 && errno == ECONNRESET));
}

/* Delayed bytes come as a whole, both ways, and not before their time. */
TEST(test_delay) {
    enum { DELAY_MS = 150 };
    ends *e = *state;
    dv_test_proxy_delay(e->proxy, DELAY_MS);
    int64_t began_ms = dv_test_now_ms();
    say(e->client, "request");
    hear(e->server, "request");
    assert_true(dv_test_now_ms() >= began_ms + DELAY_MS);
    say(e->server, "reply");
    hear(e->client, "reply");
    assert_true(dv_test_now_ms() >= began_ms + 2 * DELAY_MS);
    dv_test_proxy_restore(e->proxy);
    say(e->client, "more");
    hear(e->server, "more");
}

/* While requests are lost, replies come through; then the connection, which has a hole, is ended. */
TEST(test_requests_lost) {
    ends *e = *state;
    dv_test_proxy_drop_requests(e->proxy, true);
    say(e->client, "lost");
    say(e->server, "reply");
    hear(e->client, "reply");
    assert_true(DV_WAIT(dv_test_proxy_count(e->proxy).dropped_bytes == 4, PATIENCE_MS));
    assert_false(is_readable(e->server, 0));
    dv_test_proxy_drop_requests(e->proxy, false);
    hear_end(e->client);
    hear_end(e->server);
}

/* A strike before the request: the server never sees it. The next connection is well. */
TEST(test_strike_before_request) {
    ends *e = *state;
    dv_test_proxy_strike(e->proxy, DV_TEST_BEFORE_REQUEST, 1);
    say(e->client, "request");
    hear_end(e->client);
    hear_end(e->server);
    part(e);
    join(e);
    say(e->client, "again");
    hear(e->server, "again");
    assert_int_equal(dv_test_proxy_count(e->proxy).strikes, 1);
}

/* A strike before the reply: the server has the request, and the client never sees the reply. */
TEST(test_strike_before_reply) {
    ends *e = *state;
    dv_test_proxy_strike(e->proxy, DV_TEST_BEFORE_REPLY, 1);
    say(e->client, "request");
    hear(e->server, "request");
    assert_false(is_readable(e->client, 0));
    say(e->server, "reply");
    hear_end(e->client);
}

/* The server sees the end of a half-open connection and the client does not; a new connection is well. */
TEST(test_half_open) {
    ends *e = *state, fresh = *e;
    dv_test_proxy_half_open(e->proxy);
    hear_end(e->server);
    say(e->client, "into the void");
    assert_false(is_readable(e->client, SILENCE_MS));
    join(&fresh);
    say(fresh.client, "request");
    hear(fresh.server, "request");
    say(fresh.server, "reply");
    hear(fresh.client, "reply");
    assert_false(is_readable(e->client, 0));
    part(&fresh);
}

TEST_EACH(set_up, tear_down);
