/* Four letter words, by which a server tells of itself. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/word.h"

#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Waits until the socket is ready, or the time is over. */
static bool is_ready(int socket_fd, short events, int64_t until_ms) {
    struct pollfd p = {.fd = socket_fd, .events = events};
    int64_t left_ms = until_ms - now_ms();
    return left_ms > 0 && poll(&p, 1, (int)left_ms) == 1;
}

/* Reads until the server closes the connection, which ends its answer. */
static size_t read_answer(int socket_fd, char *answer, size_t answer_bytes, int64_t until_ms) {
    size_t bytes = 0;
    while (bytes < answer_bytes && is_ready(socket_fd, POLLIN, until_ms)) {
        ssize_t n = recv(socket_fd, answer + bytes, answer_bytes - bytes, 0);
        if (n <= 0) break;
        bytes += (size_t)n;
    }
    return bytes;
}

size_t dv_word_ask(const struct sockaddr *where, socklen_t where_bytes, const char *word, char *answer,
                   size_t answer_bytes, int64_t until_ms) {
    size_t bytes = 0;
    int s = socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) return 0;
    (void)connect(s, where, where_bytes); /* A failed one fails to send. */
    if (is_ready(s, POLLOUT, until_ms) && send(s, word, strlen(word), MSG_NOSIGNAL) == (ssize_t)strlen(word))
        bytes = read_answer(s, answer, answer_bytes, until_ms);
    close(s);
    return bytes;
}
