/* See expire.h. SPDX-License-Identifier: Apache-2.0
 *
 * Speaks as much of ZooKeeper's protocol as it takes: each message is a 32-bit length and then its fields, big-endian;
 * a buffer is a 32-bit length and its bytes. */
#include "expire.h"

#include "server.h"

#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_TIMEOUT_MS 2000
#define DEADLINE_MS 15000
#define SESSION_TIMEOUT_MS 10000
#define OP_CLOSE_SESSION (-11)
#define CLOSE_XID 1
#define ANSWER_BYTES_MAX 4096

/* The salt of ZooKeeperServer and the constants of java.util.Random. */
#define SERVER_SALT 0xB3415C00ULL
#define RANDOM_MULTIPLIER 0x5DEECE66DULL
#define RANDOM_INCREMENT 0xBULL
#define RANDOM_MASK ((1ULL << 48) - 1)

enum outcome {
    CLOSED,      /* the server has closed the session */
    REFUSED,     /* it does not know the session, or not with this password */
    TAKEN_OVER,  /* it gave us the session; whether it closed it we have not heard */
    NOT_REACHED, /* no answer: a server sometimes hangs up so when two connections contend for a session */
};

struct message {
    unsigned char bytes[128];
    size_t count;
};

static void put(struct message *message, uint64_t value, size_t bytes) {
    for (size_t i = bytes; i-- > 0;) message->bytes[message->count++] = (unsigned char)(value >> (8 * i));
}

static void put_int(struct message *message, int32_t value) {
    put(message, (uint32_t)value, 4);
}

static void put_long(struct message *message, int64_t value) {
    put(message, (uint64_t)value, 8);
}

static uint64_t get(const unsigned char *bytes, size_t count) {
    uint64_t result = 0;
    for (size_t i = 0; i < count; i++) result = result << 8 | bytes[i];
    return result;
}

static int32_t get_int(const unsigned char *bytes) {
    return (int32_t)get(bytes, 4);
}

/* The server gives each session the first 16 bytes of a java.util.Random that is seeded from the id. */
static void compute_password(int64_t session_id, char password[DV_TEST_PASSWORD_BYTES]) {
    uint64_t state = (((uint64_t)session_id ^ SERVER_SALT) ^ RANDOM_MULTIPLIER) & RANDOM_MASK;
    for (size_t i = 0; i < DV_TEST_PASSWORD_BYTES; i++) {
        if (i % 4 == 0) state = (state * RANDOM_MULTIPLIER + RANDOM_INCREMENT) & RANDOM_MASK;
        password[i] = (char)(unsigned char)(state >> (16 + 8 * (i % 4)));
    }
}

/* ConnectRequest and closeSession, ready to be sent in one go. */
static void put_requests(struct message *message, int64_t session_id, const char *password) {
    put_int(message, 4 + 8 + 4 + 8 + 4 + DV_TEST_PASSWORD_BYTES + 1);
    put_int(message, 0);  /* protocolVersion */
    put_long(message, 0); /* lastZxidSeen */
    put_int(message, SESSION_TIMEOUT_MS);
    put_long(message, session_id);
    put_int(message, DV_TEST_PASSWORD_BYTES);
    memcpy(message->bytes + message->count, password, DV_TEST_PASSWORD_BYTES);
    message->count += DV_TEST_PASSWORD_BYTES;
    put(message, 0, 1); /* readOnly */

    put_int(message, 4 + 4);
    put_int(message, CLOSE_XID);
    put_int(message, OP_CLOSE_SESSION);
}

static bool receive(int fd, unsigned char *bytes, size_t count) {
    while (count > 0) {
        ssize_t got = recv(fd, bytes, count, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        bytes += got;
        count -= (size_t)got;
    }
    return true;
}

/* Reads one message; false when the server has hung up or is silent. */
static bool receive_message(int fd, unsigned char bytes[ANSWER_BYTES_MAX], size_t *count) {
    unsigned char length[4];
    if (!receive(fd, length, sizeof length)) return false;
    *count = get(length, sizeof length);
    return *count <= ANSWER_BYTES_MAX && receive(fd, bytes, *count);
}

/* Reads the answers to both requests. Anything between them, such as a ping's, is none of ours. */
static enum outcome receive_outcome(int fd) {
    unsigned char bytes[ANSWER_BYTES_MAX];
    size_t count;
    /* protocolVersion, timeOut, sessionId, ...: a session that the server refuses gets a timeout of 0. */
    if (!receive_message(fd, bytes, &count) || count < 16) return NOT_REACHED;
    if (get_int(bytes + 4) <= 0) return REFUSED;
    while (receive_message(fd, bytes, &count)) {
        /* xid, zxid, err */
        if (count >= 16 && get_int(bytes) == CLOSE_XID && get_int(bytes + 12) == 0) return CLOSED;
    }
    return TAKEN_OVER;
}

/* A connection to the first address of `list`; -1 when nobody listens there. */
static int connect_to_first(const char *list) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN] = "";
    unsigned port = 0;
    if (sscanf(list, "%15[0-9.]:%u", host, &port) != 2 || port < 1 || port > 65535 ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        dv_test_die("expire: %s is not like 127.0.0.1:2181", list);
    }
    address.sin_port = htons((uint16_t)port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) dv_test_die("expire: no socket: %s", strerror(errno));
    struct timeval patience = {ANSWER_TIMEOUT_MS / 1000, (ANSWER_TIMEOUT_MS % 1000) * 1000};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    return fd;
}

static enum outcome attempt(const char *list, const struct message *requests) {
    enum outcome outcome = NOT_REACHED;
    int fd = connect_to_first(list);
    if (fd < 0) return outcome;
    if (send(fd, requests->bytes, requests->count, MSG_NOSIGNAL) == (ssize_t)requests->count) {
        outcome = receive_outcome(fd);
    }
    close(fd);
    return outcome;
}

bool dv_test_expire(const char *connect, int64_t session_id, const char *password) {
    char computed[DV_TEST_PASSWORD_BYTES];
    if (!password) {
        compute_password(session_id, computed);
        password = computed;
    }
    struct message requests = {.count = 0};
    put_requests(&requests, session_id, password);
    int64_t deadline_ms = dv_test_now_ms() + DEADLINE_MS;
    connect = dv_test_server_plain(connect);
    const char *list = connect;
    bool taken_over = false;
    while (dv_test_now_ms() < deadline_ms) {
        enum outcome outcome = attempt(list, &requests);
        if (outcome == CLOSED) return true;
        /* If it was ours before, then it was the unanswered close that has ended it. */
        if (outcome == REFUSED) return taken_over;
        if (outcome == TAKEN_OVER) taken_over = true;
        const char *comma = strchr(list, ',');
        list = comma ? comma + 1 : connect;
        dv_test_sleep_ms(5);
    }
    dv_test_die("expire: no server of %s closes session 0x%llx", connect, (unsigned long long)session_id);
}
