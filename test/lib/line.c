/* See line.h. SPDX-License-Identifier: Apache-2.0
 *
 * One thread owns the connections and sleeps in poll(). Each piece that it reads is given the time at which it is due,
 * never before that of the piece in front of it. */
#include "line.h"

#include "server.h"
#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OPEN_MAX = 64, PIECE_BYTES = 1400, WAY_BYTES_MAX = 256 * 1024, FIXED_FDS = 2 };

typedef struct piece {
    struct piece *next;
    int64_t due_ms;
    size_t start, count;
    char bytes[PIECE_BYTES];
} piece;

/* One direction of a connection. */
typedef struct {
    piece *first, **end;
    size_t bytes;
    int64_t due_ms;        /* of the last piece */
    int64_t free_ms;       /* until then the rate is used up */
    int64_t next_stall_ms; /* a stall begins then */
    bool read_ended;       /* the sender will send no more */
    bool write_ended;      /* and the receiver has been told */
} way;

typedef struct {
    int fds[2];  /* the client's, the server's */
    way ways[2]; /* from the client, from the server */
    int64_t used_ms;
} connection;

struct dv_test_line {
    pthread_t thread;
    int listener, wake, port;
    struct sockaddr_in upstream;
    dv_test_line_config config;
    uint64_t random;
    connection *open[OPEN_MAX]; /* the thread's */
    size_t open_count;
    pthread_mutex_t lock; /* guards what follows */
    bool stopping, cutting;
    unsigned accepted, idle;
};

/* ---- time and chance ---- */

/* Returns 0 to most. */
static int draw(dv_test_line *line, int most) {
    line->random = line->random * 6364136223846793005u + 1442695040888963407u;
    return most > 0 ? (int)((line->random >> 33) % ((uint64_t)most + 1)) : 0;
}

static int64_t due_time(dv_test_line *line, way *w, size_t bytes, int64_t now_ms) {
    const dv_test_line_config *c = &line->config;
    int64_t due_ms = now_ms;
    if (c->bytes_per_s) {
        if (w->free_ms < now_ms) w->free_ms = now_ms;
        w->free_ms += (int64_t)bytes * 1000 / c->bytes_per_s;
        due_ms = w->free_ms;
    }
    due_ms += c->delay_ms + draw(line, c->jitter_ms);
    if (c->stall_every_ms && due_ms >= w->next_stall_ms) {
        if (w->next_stall_ms) due_ms += c->stall_least_ms + draw(line, c->stall_most_ms - c->stall_least_ms);
        w->next_stall_ms = due_ms + draw(line, 2 * c->stall_every_ms);
    }
    if (due_ms < w->due_ms) due_ms = w->due_ms;
    w->due_ms = due_ms;
    return due_ms;
}

/* ---- connections ---- */

static void close_connection(connection *l) {
    for (int i = 0; i < 2; i++) {
        close(l->fds[i]);
        for (piece *p; (p = l->ways[i].first); free(p)) l->ways[i].first = p->next;
    }
    free(l);
}

static void close_all(dv_test_line *line) {
    while (line->open_count) close_connection(line->open[--line->open_count]);
}

static void accept_one(dv_test_line *line) {
    int client = accept4(line->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
    if (client < 0) return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool served = server >= 0 && line->open_count < OPEN_MAX &&
                  connect(server, (const struct sockaddr *)&line->upstream, sizeof line->upstream) == 0;
    if (!served) {
        if (server >= 0) close(server);
        close(client);
        return;
    }
    connection *l = calloc(1, sizeof *l);
    if (!l) dv_test_die("line: no memory");
    *l = (connection){.fds = {client, server}, .used_ms = dv_test_now_ms()};
    for (int i = 0; i < 2; i++) {
        l->ways[i].end = &l->ways[i].first;
        setsockopt(l->fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    line->open[line->open_count++] = l;
    pthread_mutex_lock(&line->lock);
    line->accepted++;
    pthread_mutex_unlock(&line->lock);
}

/* ---- bytes ---- */

static bool is_due(const way *w, int64_t now_ms) {
    return w->first ? w->first->due_ms <= now_ms : w->read_ended && !w->write_ended;
}

static bool takes_more(const way *w) {
    return !w->read_ended && w->bytes < WAY_BYTES_MAX;
}

/* Reads all that has come. Returns false when the connection has failed. */
static bool take(dv_test_line *line, way *w, int fd, int64_t now_ms) {
    while (takes_more(w)) {
        piece *p = malloc(sizeof *p);
        if (!p) dv_test_die("line: no memory");
        ssize_t got = recv(fd, p->bytes, sizeof p->bytes, MSG_DONTWAIT);
        if (got <= 0) free(p);
        if (got < 0) return errno == EAGAIN || errno == EINTR;
        if (got == 0) {
            w->read_ended = true;
            return true;
        }
        p->next = NULL;
        p->start = 0;
        p->count = (size_t)got;
        p->due_ms = due_time(line, w, p->count, now_ms);
        *w->end = p;
        w->end = &p->next;
        w->bytes += p->count;
    }
    return true;
}

/* Writes what is due. Returns false when the connection has failed, or has come to its end. */
static bool give(way *w, int fd, int64_t now_ms) {
    while (w->first && w->first->due_ms <= now_ms) {
        piece *p = w->first;
        ssize_t sent = send(fd, p->bytes + p->start, p->count, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        p->start += (size_t)sent;
        p->count -= (size_t)sent;
        w->bytes -= (size_t)sent;
        if (p->count) return true;
        w->first = p->next;
        if (!w->first) w->end = &w->first;
        free(p);
    }
    if (!w->first && w->read_ended && !w->write_ended) {
        shutdown(fd, SHUT_WR);
        w->write_ended = true;
    }
    return true;
}

/* Returns false when the connection is to be closed. */
static bool serve(dv_test_line *line, connection *l, const struct pollfd *fds, int64_t now_ms) {
    int idle_ms = line->config.idle_cut_ms;
    if (fds[0].revents | fds[1].revents) l->used_ms = now_ms;
    if (idle_ms && now_ms - l->used_ms >= idle_ms) {
        pthread_mutex_lock(&line->lock);
        line->idle++;
        pthread_mutex_unlock(&line->lock);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        if ((fds[i].revents & POLLIN) && !take(line, &l->ways[i], l->fds[i], now_ms)) return false;
        bool hung = (fds[i].revents & POLLHUP) && l->ways[i].read_ended;
        if (hung || (fds[i].revents & (POLLERR | POLLNVAL))) return false;
    }
    for (int i = 0; i < 2; i++) {
        if (!give(&l->ways[i], l->fds[1 - i], now_ms)) return false;
    }
    return !(l->ways[0].write_ended && l->ways[1].write_ended);
}

static void serve_all(dv_test_line *line, const struct pollfd *fds) {
    int64_t now_ms = dv_test_now_ms();
    size_t kept = 0;
    for (size_t i = 0; i < line->open_count; i++) {
        connection *l = line->open[i];
        if (serve(line, l, fds + 2 * i, now_ms)) line->open[kept++] = l;
        else close_connection(l);
    }
    line->open_count = kept;
}

/* ---- the thread ---- */

/* Fills in what to wait for, and returns for how long. */
static int fill(const dv_test_line *line, struct pollfd *fds, int64_t now_ms) {
    int64_t until_ms = now_ms + 60000;
    fds[0] = (struct pollfd){.fd = line->wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = line->listener, .events = POLLIN};
    for (size_t i = 0; i < line->open_count; i++) {
        const connection *l = line->open[i];
        for (int k = 0; k < 2; k++) {
            const way *from = &l->ways[k], *to = &l->ways[1 - k];
            short events = (short)((takes_more(from) ? POLLIN : 0) | (is_due(to, now_ms) ? POLLOUT : 0));
            fds[FIXED_FDS + 2 * i + (size_t)k] = (struct pollfd){.fd = l->fds[k], .events = events};
            if (from->first && from->first->due_ms > now_ms && from->first->due_ms < until_ms)
                until_ms = from->first->due_ms;
        }
        int64_t idle_ms = line->config.idle_cut_ms;
        if (idle_ms && l->used_ms + idle_ms < until_ms) until_ms = l->used_ms + idle_ms;
    }
    return until_ms > now_ms ? (int)(until_ms - now_ms) : 0;
}

static void *run(void *argument) {
    dv_test_line *line = argument;
    struct pollfd fds[FIXED_FDS + 2 * OPEN_MAX];
    for (bool goes_on = true; goes_on;) {
        size_t count = FIXED_FDS + 2 * line->open_count;
        int timeout_ms = fill(line, fds, dv_test_now_ms());
        if (poll(fds, count, timeout_ms) < 0 && errno != EINTR) dv_test_die("line: poll: %s", strerror(errno));
        eventfd_t ignored;
        eventfd_read(line->wake, &ignored);
        serve_all(line, fds + FIXED_FDS);
        if (fds[1].revents) accept_one(line);
        pthread_mutex_lock(&line->lock);
        if (line->cutting || line->stopping) close_all(line);
        line->cutting = false;
        goes_on = !line->stopping;
        pthread_mutex_unlock(&line->lock);
    }
    return NULL;
}

/* ---- for the tests ---- */

static void open_listener(dv_test_line *line, const char *ip, int port) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    bool is_six = strchr(ip, ':') != NULL;
    struct sockaddr *own = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    socklen_t bytes = is_six ? sizeof six : sizeof four;
    int on = 1;
    line->listener = socket(own->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(line->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bool known = inet_pton(own->sa_family, ip, is_six ? (void *)&six.sin6_addr : (void *)&four.sin_addr) == 1;
    if (!known || line->listener < 0 || bind(line->listener, own, bytes) || listen(line->listener, OPEN_MAX) ||
        getsockname(line->listener, own, &bytes))
        dv_test_die("line: no port %d at %s: %s", port, ip, strerror(errno));
    line->port = ntohs(is_six ? six.sin6_port : four.sin_port);
}

dv_test_line *dv_test_line_start(const char *upstream, const char *ip, int port, const dv_test_line_config *config,
                                 uint64_t seed) {
    dv_test_line *line = calloc(1, sizeof *line);
    unsigned upstream_port;
    if (!line) dv_test_die("line: no memory");
    if (sscanf(upstream, "127.0.0.1:%u", &upstream_port) != 1) dv_test_die("line: no address: %s", upstream);
    line->upstream = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)upstream_port)};
    line->upstream.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    line->config = *config;
    line->random = seed;
    open_listener(line, ip, port);
    line->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (line->wake < 0) dv_test_die("line: eventfd: %s", strerror(errno));
    pthread_mutex_init(&line->lock, NULL);
    sigset_t all, before; /* The test's signals are none of this thread's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&line->thread, NULL, run, line);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) dv_test_die("line: no thread: %s", strerror(error));
    return line;
}

void dv_test_line_stop(dv_test_line *line) {
    if (!line) return;
    pthread_mutex_lock(&line->lock);
    line->stopping = true;
    pthread_mutex_unlock(&line->lock);
    eventfd_write(line->wake, 1);
    pthread_join(line->thread, NULL);
    close(line->listener);
    close(line->wake);
    pthread_mutex_destroy(&line->lock);
    free(line);
}

void dv_test_line_cut(dv_test_line *line) {
    pthread_mutex_lock(&line->lock);
    line->cutting = true;
    pthread_mutex_unlock(&line->lock);
    eventfd_write(line->wake, 1);
}

int dv_test_line_port(const dv_test_line *line) {
    return line->port;
}

void dv_test_line_count(dv_test_line *line, unsigned *accepted, unsigned *idle) {
    pthread_mutex_lock(&line->lock);
    *accepted = line->accepted;
    *idle = line->idle;
    pthread_mutex_unlock(&line->lock);
}
