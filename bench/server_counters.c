/* A server's counters. SPDX-License-Identifier: Apache-2.0 */
#include "server_counters.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_BYTES = 256, ANSWER_BYTES = 4096 };

/* The zxid's upper half is the leader's epoch, the lower half counts the transactions of that epoch. */
static const uint64_t COUNTER_MASK = 0xffffffff;

static int dial(const char *hosts) {
    char host[HOST_BYTES];
    size_t host_bytes = strcspn(hosts, ",/");
    if (host_bytes >= sizeof host) return -1;
    memcpy(host, hosts, host_bytes);
    host[host_bytes] = '\0';
    char *colon = strrchr(host, ':');
    if (!colon) return -1;
    *colon = '\0';

    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *addresses;
    if (getaddrinfo(host, colon + 1, &hints, &addresses) != 0) return -1;
    int fd = -1;
    for (struct addrinfo *a = addresses; a && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(addresses);
    return fd;
}

static int ask(char answer[ANSWER_BYTES], const char *hosts, const char *word) {
    int fd = dial(hosts);
    if (fd < 0) return -1;
    size_t length = 0;
    if (send(fd, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word)) {
        ssize_t got;
        while (length < ANSWER_BYTES - 1 && (got = read(fd, answer + length, ANSWER_BYTES - 1 - length)) > 0)
            length += (size_t)got;
    }
    close(fd);
    answer[length] = '\0';
    return length ? 0 : -1;
}

int server_counters_read(server_counters *out, const char *hosts) {
    char answer[ANSWER_BYTES];
    if (ask(answer, hosts, "srvr") != 0) return -1;
    const char *received = strstr(answer, "\nReceived: "), *zxid = strstr(answer, "\nZxid: 0x");
    if (!received || !zxid) return -1;
    out->packets = strtoll(received + strlen("\nReceived: "), NULL, 10);
    out->transactions = (int64_t)(strtoull(zxid + strlen("\nZxid: 0x"), NULL, 16) & COUNTER_MASK);
    return 0;
}
