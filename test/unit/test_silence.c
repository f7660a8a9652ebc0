/* Connections on which nothing ever comes are ended: docs/protocol.md, H7. SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/test.h"
#include "lib/wait.h"
#include "znode/apache/silence.h"

enum { PATIENCE_MS = 20000, LONG_MS = 3600000 };

/* A server that takes connections and says nothing, and a connection to it. */
typedef struct {
    int listening, ours, theirs;
    char address[32];
} wire;

static wire connect_wire(void) {
    wire l;
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof where;
    l.listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(l.listening, (struct sockaddr *)&where, bytes), 0);
    assert_int_equal(listen(l.listening, 1), 0);
    assert_int_equal(getsockname(l.listening, (struct sockaddr *)&where, &bytes), 0);
    l.ours = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(l.ours, (struct sockaddr *)&where, bytes), 0);
    l.theirs = accept(l.listening, NULL, NULL);
    assert_true(l.theirs >= 0);
    snprintf(l.address, sizeof l.address, "127.0.0.1:%d", ntohs(where.sin_port));
    return l;
}

static void end_wire(const wire *l) {
    close(l->ours);
    close(l->theirs);
    close(l->listening);
}

static bool is_ended(const wire *l) {
    char byte;
    return recv(l->ours, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* Only a connection to one of those servers, that old, on which nothing has come, whatever was sent. */
TEST(test_one_look) {
    wire silent = connect_wire(), other = connect_wire(), heard = connect_wire();
    char servers[128];
    struct pollfd p = {.fd = heard.ours, .events = POLLIN};
    assert_int_equal(send(silent.ours, "hello", 5, 0), 5);
    assert_int_equal(send(heard.theirs, "x", 1, 0), 1);
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    snprintf(servers, sizeof servers, "%s,%s0,%s", heard.address, other.address, silent.address);
    assert_int_equal(dv_silence_end(servers, LONG_MS), 0);
    assert_int_equal(dv_silence_end("", 0), 0);
    assert_false(is_ended(&silent));
    assert_int_equal(dv_silence_end(servers, 0), 1);
    assert_true(is_ended(&silent));
    assert_false(is_ended(&other));
    assert_false(is_ended(&heard));
    char first[40];
    snprintf(first, sizeof first, "1%s", other.address); /* No server's address is a part of another's. */
    assert_int_equal(dv_silence_end(first, 0), 0);
    assert_int_equal(dv_silence_end(other.address, 0), 1);
    end_wire(&silent);
    end_wire(&other);
    end_wire(&heard);
}

/* The thread looks while there is no connection, at the servers of the moment. */
TEST(test_while_not_connected) {
    wire l = connect_wire();
    dv_silence *s = dv_silence_start("127.0.0.1:1", 0);
    assert_non_null(s);
    dv_silence_allow(s, DV_SILENCE_ANY);
    dv_silence_watch(s, strdup(l.address), 0); /* Any silence is still allowed. */
    dv_silence_allow(s, 0);
    assert_true(DV_WAIT(is_ended(&l), PATIENCE_MS));
    dv_silence_stop(s);
    end_wire(&l);
}

/* The thread uses a shorter time as soon as it is told, as when the client closes. */
TEST(test_closing) {
    wire l = connect_wire();
    dv_silence *s = dv_silence_start(l.address, LONG_MS);
    assert_non_null(s);
    dv_silence_allow(s, DV_SILENCE_ANY);
    dv_silence_allow(s, 0);
    assert_true(DV_WAIT(is_ended(&l), PATIENCE_MS));
    dv_silence_stop(s);
    dv_silence_stop(NULL);
    end_wire(&l);
}

TEST_GROUP(NULL, NULL);
