/* A bad line is as bad as it says: lib/line.h. SPDX-License-Identifier: Apache-2.0
 *
 * Behind it stands a listener of the test's own. Times are only bounded from below, where the machine is no excuse. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/line.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { BYTES = 32000, DELAY_MS = 500 };

typedef struct {
    int listener, client, server;
    dv_test_line *line;
} ends;

static void open_ends(ends *e, const char *ip, const dv_test_line_config *config) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    socklen_t bytes = sizeof own;
    char address[32];
    e->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(e->listener, (struct sockaddr *)&own, sizeof own) | listen(e->listener, 8), 0);
    assert_int_equal(getsockname(e->listener, (struct sockaddr *)&own, &bytes), 0);
    snprintf(address, sizeof address, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
    e->line = dv_test_line_start(address, ip, 0, config, 1);
    bool is_six = inet_pton(AF_INET6, ip, &six.sin6_addr) == 1;
    six.sin6_port = own.sin_port = htons((uint16_t)dv_test_line_port(e->line));
    e->client = socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr *to = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&own;
    assert_int_equal(connect(e->client, to, is_six ? sizeof six : sizeof own), 0);
    e->server = accept4(e->listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(e->server >= 0);
}

static void close_ends(ends *e) {
    close(e->client);
    close(e->server);
    dv_test_line_stop(e->line);
    close(e->listener);
}

static void say(int fd, char c) {
    assert_int_equal(send(fd, &c, 1, MSG_NOSIGNAL), 1);
}

static void hear(int fd, char c) {
    char got;
    assert_int_equal(recv(fd, &got, 1, 0), 1);
    assert_int_equal(got, c);
}

/* Returns how long ten pieces took. Each of them came after the delay. */
static int64_t pass_ten(int from, int to) {
    int64_t began_ms = dv_test_now_ms();
    for (char c = 'a'; c <= 'j'; c++) {
        say(from, c);
        dv_test_sleep_ms(10);
    }
    hear(to, 'a');
    assert_true(dv_test_now_ms() - began_ms >= DELAY_MS);
    for (char c = 'b'; c <= 'j'; c++) hear(to, c);
    return dv_test_now_ms() - began_ms;
}

/* Each piece comes after the delay, both ways, and none waits for the one before it. Ten that did would never take less
 * than ten times the delay; ten that do not may on a busy machine, but not each time. */
TEST(test_delay) {
    ends e;
    open_ends(&e, "127.0.0.1", &(dv_test_line_config){.delay_ms = DELAY_MS});
    for (int way = 0; way < 2; way++) {
        int from = way ? e.server : e.client, to = way ? e.client : e.server, tries = 1;
        while (pass_ten(from, to) >= 9 * DELAY_MS) assert_true(++tries < 20);
    }
    close_ends(&e);
}

/* Jitter and stalls delay, but turn nothing round. */
TEST(test_stalls) {
    enum { STALL_MS = 200 };
    ends e;
    open_ends(&e, "127.0.0.1",
              &(dv_test_line_config){
                  .jitter_ms = 5, .stall_every_ms = 20, .stall_least_ms = STALL_MS, .stall_most_ms = STALL_MS + 50});
    int stalled = 0;
    for (int i = 0; stalled < 2; i++) {
        int64_t began_ms = dv_test_now_ms();
        for (char c = 'a'; c <= 'e'; c++) say(e.client, c);
        for (char c = 'a'; c <= 'e'; c++) hear(e.server, c);
        stalled += dv_test_now_ms() - began_ms >= STALL_MS;
        assert_true(i < 1000);
    }
    close_ends(&e);
}

/* No more passes than the rate allows, and all of it does, whole. */
TEST(test_rate) {
    static unsigned char sent[BYTES], got[BYTES];
    ends e;
    open_ends(&e, "127.0.0.1", &(dv_test_line_config){.bytes_per_s = 2 * BYTES});
    for (size_t i = 0; i < BYTES; i++) sent[i] = (unsigned char)(i * 7 % 251);
    int64_t began_ms = dv_test_now_ms();
    assert_int_equal(send(e.client, sent, BYTES, MSG_NOSIGNAL), BYTES);
    assert_int_equal(recv(e.server, got, BYTES, MSG_WAITALL), BYTES);
    assert_true(dv_test_now_ms() - began_ms >= 450);
    assert_memory_equal(sent, got, BYTES);
    close_ends(&e);
}

/* A connection that is idle is closed, and counted; so are those that are cut, which are not counted as idle. */
TEST(test_idle_and_cut) {
    char byte;
    unsigned accepted, idle;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        ends e;
        int64_t began_ms = dv_test_now_ms();
        open_ends(&e, "127.0.0.1", &(dv_test_line_config){.idle_cut_ms = is_cut ? 0 : 100});
        say(e.client, 'a');
        hear(e.server, 'a');
        if (is_cut) dv_test_line_cut(e.line);
        assert_int_equal(recv(e.client, &byte, 1, 0), 0);
        assert_int_equal(recv(e.server, &byte, 1, 0), 0);
        if (!is_cut) assert_true(dv_test_now_ms() - began_ms >= 100);
        dv_test_line_count(e.line, &accepted, &idle);
        assert_int_equal(accepted, 1);
        assert_int_equal(idle, !is_cut);
        close_ends(&e);
    }
}

/* It listens on IPv6, and passes on the end of either direction by itself. */
TEST(test_ipv6) {
    char byte;
    ends e;
    open_ends(&e, "::1", &(dv_test_line_config){.delay_ms = 20});
    say(e.client, 'a');
    shutdown(e.client, SHUT_WR);
    hear(e.server, 'a');
    assert_int_equal(recv(e.server, &byte, 1, 0), 0);
    say(e.server, 'b');
    hear(e.client, 'b');
    close_ends(&e);
}
