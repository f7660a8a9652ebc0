/* Servers for tests of the fixtures. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_FIXTURES_FIXTURE_H
#define DV_TEST_FIXTURES_FIXTURE_H

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
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/test.h"

#define TICK_MS 100
#define PATIENCE_MS 40000
#define SILENCE_MS 150

/* One server for all tests that leave it as they found it. */
static dv_test_server *shared;
static dv_test_zk *truth;

static inline unsigned open_fds(void) {
    unsigned count = 0;
    DIR *fds = opendir("/proc/self/fd");
    assert_non_null(fds);
    while (readdir(fds)) count++;
    closedir(fds);
    return count;
}

/* A plain connection to "127.0.0.1:PORT". */
static inline int dial(const char *address) {
    struct sockaddr_in target = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    target.sin_port = htons((uint16_t)strtol(strchr(address, ':') + 1, NULL, 10));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&target, sizeof target), 0);
    return fd;
}

static inline void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Returns whether something is to be read within the time, be it the end. */
static inline bool readable(int fd, int timeout_ms) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* Reads until the end, or until no more comes for the patience. */
static inline void hear(int fd, char *text, size_t text_bytes) {
    size_t length = 0;
    while (length + 1 < text_bytes && readable(fd, PATIENCE_MS)) {
        ssize_t got = recv(fd, text + length, text_bytes - 1 - length, 0);
        if (got <= 0) break;
        length += (size_t)got;
    }
    text[length] = '\0';
}

/* Returns whether the peer answers "ruok". */
static inline bool is_ok(const char *address) {
    char text[16];
    int fd = dial(address);
    say(fd, "ruok");
    hear(fd, text, sizeof text);
    close(fd);
    return strcmp(text, "imok") == 0;
}

static inline bool has_state(dv_test_zk *zk, int state) {
    return zoo_state(dv_test_zk_handle(zk)) == state;
}

static inline int set_up(void **state) {
    (void)state;
    shared = dv_test_server_start(1, TICK_MS);
    truth = dv_test_zk_open(dv_test_server_connect(shared));
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    dv_test_zk_close(truth);
    dv_test_server_stop(shared);
    return 0;
}

#endif
