/* See proxy.h. SPDX-License-Identifier: Apache-2.0
 *
 * One thread owns all connections and sleeps in poll(). It holds the lock whenever it is awake. A caller changes
 * `faults` under the lock, wakes the thread, and waits until it has acted on the change. */
#include "proxy.h"

#include "wait.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINKS_MAX 256
#define STREAM_BYTES 65536
#define FIXED_FDS 2

/* One direction of a connection. */
struct stream {
    char bytes[STREAM_BYTES];
    size_t start;
    size_t count;
    int64_t due_ms;   /* what is there is not passed on before this time */
    bool read_ended;  /* the sender will send no more */
    bool write_ended; /* and the receiver has been told */
};

/* A client's connection and ours to the server on its behalf. */
struct link {
    int client;
    int server;
    struct stream requests;
    struct stream replies;
    bool holed;     /* bytes have been dropped */
    bool struck;    /* it ends with the next reply */
    bool half_open; /* the server's side is closed, and the client is not told */
};

struct faults {
    bool cut;
    bool frozen;
    bool drop_requests;
    bool drop_replies;
    int delay_ms;
    enum dv_test_strike strike;
    unsigned strikes; /* so many are still to come */
};

struct dv_test_proxy {
    pthread_t thread;
    int listener;
    int wake;
    char address[32];
    struct sockaddr_in upstream;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t acted;
    struct faults faults;
    bool stopping;
    uint64_t changes;       /* asked for */
    uint64_t changes_acted; /* in force */
    struct dv_test_proxy_counts counts;
    struct link *links[LINKS_MAX];
    size_t link_count;
};

/* --- connections ------------------------------------------------------------------------------------------------ */

static void link_close(struct link *link) {
    close(link->client);
    if (link->server >= 0) close(link->server);
    free(link);
}

/* Closes every connection, or only those that have lost bytes. */
static void close_links(dv_test_proxy *proxy, bool only_holed) {
    size_t kept = 0;
    for (size_t i = 0; i < proxy->link_count; i++) {
        if (only_holed && !proxy->links[i]->holed) {
            proxy->links[kept++] = proxy->links[i];
        } else {
            link_close(proxy->links[i]);
        }
    }
    proxy->link_count = kept;
}

static void set_nodelay(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Takes in a client. If nobody listens upstream, the connection to there fails in the next turn, and with it all. */
static void open_link(dv_test_proxy *proxy, int client) {
    int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct link *link = calloc(1, sizeof *link);
    if (server < 0 || !link) dv_test_die("proxy: no socket or no memory");
    const struct sockaddr *upstream = (const struct sockaddr *)&proxy->upstream;
    if (connect(server, upstream, sizeof proxy->upstream) && errno != EINPROGRESS) {
        close(client);
        close(server);
        free(link);
        proxy->counts.refused++;
        return;
    }
    set_nodelay(client);
    set_nodelay(server);
    link->client = client;
    link->server = server;
    proxy->links[proxy->link_count++] = link;
    proxy->counts.accepted++;
}

static void accept_clients(dv_test_proxy *proxy) {
    for (;;) {
        int client = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (client < 0 && errno == EAGAIN) return;
        if (client < 0) dv_test_die("proxy: accept: %s", strerror(errno));
        if (proxy->faults.cut || proxy->link_count == LINKS_MAX) {
            close(client);
            proxy->counts.refused++;
        } else {
            open_link(proxy, client);
        }
    }
}

/* --- bytes ------------------------------------------------------------------------------------------------------ */

static bool would_block(ssize_t result) {
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Reads once what fits; false when the connection has failed. */
static bool stream_read(struct stream *stream, int from, int delay_ms) {
    if (stream->read_ended || stream->count > 0) return true;
    ssize_t got = recv(from, stream->bytes, sizeof stream->bytes, 0);
    if (would_block(got)) return true;
    if (got < 0) return false;
    stream->start = 0;
    stream->count = (size_t)got;
    stream->read_ended = got == 0;
    stream->due_ms = delay_ms > 0 ? dv_test_now_ms() + delay_ms : 0;
    return true;
}

static bool is_due(const struct stream *stream) {
    return stream->due_ms == 0 || dv_test_now_ms() >= stream->due_ms;
}

/* Writes what the receiver takes; false when the connection has failed. */
static bool stream_write(struct stream *stream, int to, uint64_t *bytes) {
    if (!is_due(stream)) return true;
    if (stream->count > 0) {
        ssize_t sent = send(to, stream->bytes + stream->start, stream->count, MSG_NOSIGNAL);
        if (would_block(sent)) return true;
        if (sent < 0) return false;
        stream->start += (size_t)sent;
        stream->count -= (size_t)sent;
        *bytes += (uint64_t)sent;
    }
    if (stream->read_ended && stream->count == 0 && !stream->write_ended) {
        shutdown(to, SHUT_WR);
        stream->write_ended = true;
    }
    return true;
}

static void drop(dv_test_proxy *proxy, struct link *link, struct stream *stream) {
    if (stream->count == 0) return;
    proxy->counts.dropped_bytes += stream->count;
    stream->count = 0;
    link->holed = true;
}

/* Returns whether a strike ends the connection now: with the request that has come, or with the reply to one. */
static bool is_struck(dv_test_proxy *proxy, struct link *link) {
    struct faults *faults = &proxy->faults;
    if (link->struck) return link->replies.count > 0;
    if (faults->strikes == 0 || link->requests.count == 0) return false;
    faults->strikes--;
    proxy->counts.strikes++;
    link->struck = faults->strike == DV_TEST_BEFORE_REPLY;
    return faults->strike == DV_TEST_BEFORE_REQUEST;
}

/* Takes what the client of a half-open connection sends, and drops it. */
static bool half_open_move(dv_test_proxy *proxy, struct link *link) {
    if (!stream_read(&link->requests, link->client, 0)) return false;
    proxy->counts.dropped_bytes += link->requests.count;
    link->requests.count = 0;
    return !link->requests.read_ended;
}

/* Moves what can be moved; false when the connection has come to its end. */
static bool link_move(dv_test_proxy *proxy, struct link *link) {
    int delay_ms = proxy->faults.delay_ms;
    if (link->half_open) return half_open_move(proxy, link);
    if (!stream_read(&link->requests, link->client, delay_ms)) return false;
    if (!stream_read(&link->replies, link->server, delay_ms)) return false;
    if (is_struck(proxy, link)) return false;
    if (proxy->faults.drop_requests) drop(proxy, link, &link->requests);
    if (proxy->faults.drop_replies) drop(proxy, link, &link->replies);
    if (!stream_write(&link->requests, link->server, &proxy->counts.request_bytes)) return false;
    if (!stream_write(&link->replies, link->client, &proxy->counts.reply_bytes)) return false;
    return !(link->requests.write_ended && link->replies.write_ended);
}

/* poll() reports a hang-up whether asked or not, and would do so for ever for a side that we no longer read from. */
static bool side_is_dead(const struct pollfd *side, const struct stream *from_side) {
    return (side->revents & (POLLERR | POLLNVAL)) || ((side->revents & POLLHUP) && from_side->read_ended);
}

static void move_links(dv_test_proxy *proxy, const struct pollfd *fds) {
    size_t kept = 0;
    for (size_t i = 0; i < proxy->link_count; i++) {
        struct link *link = proxy->links[i];
        const struct pollfd *client = &fds[2 * i], *server = &fds[2 * i + 1];
        bool lives = true;
        if (client->revents || server->revents || link->requests.due_ms || link->replies.due_ms) {
            lives = link_move(proxy, link) && !side_is_dead(client, &link->requests) &&
                    !side_is_dead(server, &link->replies);
        }
        if (lives) {
            proxy->links[kept++] = link;
        } else {
            link_close(link);
        }
    }
    proxy->link_count = kept;
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* Returns the events to wait for on one side of a link. poll() skips a negative descriptor: a frozen link must not
 * wake us. */
static struct pollfd side_interest(int fd, bool frozen, const struct stream *from_side, const struct stream *to_side) {
    struct pollfd result = {.fd = frozen ? -1 : fd};
    if (!from_side->read_ended && from_side->count == 0) result.events |= POLLIN;
    if (to_side->count > 0 && is_due(to_side)) result.events |= POLLOUT;
    return result;
}

static nfds_t fill_interest(const dv_test_proxy *proxy, struct pollfd *fds) {
    fds[0] = (struct pollfd){.fd = proxy->wake, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
    bool frozen = proxy->faults.frozen;
    for (size_t i = 0; i < proxy->link_count; i++) {
        const struct link *link = proxy->links[i];
        fds[FIXED_FDS + 2 * i] = side_interest(link->client, frozen, &link->requests, &link->replies);
        fds[FIXED_FDS + 2 * i + 1] = side_interest(link->server, frozen, &link->replies, &link->requests);
    }
    return (nfds_t)(FIXED_FDS + 2 * proxy->link_count);
}

/* For how long poll() may sleep: until the first delayed bytes are due. */
static int sleep_ms(const dv_test_proxy *proxy) {
    int64_t now_ms = dv_test_now_ms(), least_ms = INT64_MAX;
    for (size_t i = 0; i < proxy->link_count && !proxy->faults.frozen; i++) {
        const struct stream *streams[] = {&proxy->links[i]->requests, &proxy->links[i]->replies};
        for (size_t k = 0; k < 2; k++) {
            int64_t left_ms = streams[k]->due_ms - now_ms;
            bool waits = streams[k]->due_ms && (streams[k]->count > 0 || streams[k]->read_ended) && left_ms > 0;
            if (waits && left_ms < least_ms) least_ms = left_ms;
        }
    }
    return least_ms == INT64_MAX ? -1 : (int)least_ms;
}

/* Puts the faults asked for in force. */
static void act_on_changes(dv_test_proxy *proxy) {
    if (proxy->faults.cut) close_links(proxy, false);
    if (!proxy->faults.drop_replies && !proxy->faults.drop_requests) close_links(proxy, true);
    proxy->changes_acted = proxy->changes;
    pthread_cond_broadcast(&proxy->acted);
}

static void *proxy_run(void *argument) {
    dv_test_proxy *proxy = argument;
    struct pollfd fds[FIXED_FDS + 2 * LINKS_MAX];
    pthread_mutex_lock(&proxy->lock);
    while (!proxy->stopping) {
        act_on_changes(proxy);
        nfds_t count = fill_interest(proxy, fds);
        int timeout_ms = sleep_ms(proxy);
        pthread_mutex_unlock(&proxy->lock);
        int ready = poll(fds, count, timeout_ms);
        pthread_mutex_lock(&proxy->lock);
        if (ready < 0 && errno != EINTR) dv_test_die("proxy: poll: %s", strerror(errno));
        eventfd_t ignored;
        eventfd_read(proxy->wake, &ignored);
        /* After a change, links that poll() saw as ready may no longer be allowed to move. */
        if (ready < 0 || proxy->changes != proxy->changes_acted) continue;
        move_links(proxy, fds + FIXED_FDS);
        if (fds[1].revents) accept_clients(proxy);
    }
    close_links(proxy, false);
    pthread_mutex_unlock(&proxy->lock);
    return NULL;
}

/* --- for the tests ---------------------------------------------------------------------------------------------- */

static struct sockaddr_in parse_address(const char *text) {
    struct sockaddr_in result = {.sin_family = AF_INET};
    char host[INET_ADDRSTRLEN];
    const char *colon = strrchr(text, ':');
    long port = colon ? strtol(colon + 1, NULL, 10) : 0;
    if (colon) snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    if (port < 1 || port > 65535 || inet_pton(AF_INET, host, &result.sin_addr) != 1) {
        dv_test_die("proxy: %s is not an address like 127.0.0.1:2181", text);
    }
    result.sin_port = htons((uint16_t)port);
    return result;
}

static void open_listener(dv_test_proxy *proxy) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 || bind(proxy->listener, (struct sockaddr *)&own, sizeof own) ||
        listen(proxy->listener, LINKS_MAX) || getsockname(proxy->listener, (struct sockaddr *)&own, &bytes)) {
        dv_test_die("proxy: no port: %s", strerror(errno));
    }
    snprintf(proxy->address, sizeof proxy->address, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
}

dv_test_proxy *dv_test_proxy_start(const char *upstream) {
    dv_test_proxy *proxy = calloc(1, sizeof *proxy);
    if (!proxy) dv_test_die("no memory");
    proxy->upstream = parse_address(upstream);
    open_listener(proxy);
    proxy->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (proxy->wake < 0) dv_test_die("proxy: eventfd: %s", strerror(errno));
    pthread_mutex_init(&proxy->lock, NULL);
    pthread_cond_init(&proxy->acted, NULL);
    /* The test's signals are none of this thread's business. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&proxy->thread, NULL, proxy_run, proxy);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) dv_test_die("proxy: no thread: %s", strerror(error));
    return proxy;
}

void dv_test_proxy_stop(dv_test_proxy *proxy) {
    if (!proxy) return;
    pthread_mutex_lock(&proxy->lock);
    proxy->stopping = true;
    proxy->changes++;
    eventfd_write(proxy->wake, 1);
    pthread_mutex_unlock(&proxy->lock);
    pthread_join(proxy->thread, NULL);
    close(proxy->listener);
    close(proxy->wake);
    pthread_cond_destroy(&proxy->acted);
    pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

const char *dv_test_proxy_address(const dv_test_proxy *proxy) {
    return proxy->address;
}

/* Call with the lock held, after a change of the faults; unlocks. */
static void finish_change(dv_test_proxy *proxy) {
    uint64_t change = ++proxy->changes;
    eventfd_write(proxy->wake, 1);
    while (proxy->changes_acted < change) pthread_cond_wait(&proxy->acted, &proxy->lock);
    pthread_mutex_unlock(&proxy->lock);
}

void dv_test_proxy_cut(dv_test_proxy *proxy) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.cut = true;
    finish_change(proxy);
}

void dv_test_proxy_restore(dv_test_proxy *proxy) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults = (struct faults){0};
    finish_change(proxy);
}

void dv_test_proxy_freeze(dv_test_proxy *proxy) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.frozen = true;
    finish_change(proxy);
}

void dv_test_proxy_thaw(dv_test_proxy *proxy) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.frozen = false;
    finish_change(proxy);
}

void dv_test_proxy_drop_replies(dv_test_proxy *proxy, bool on) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.drop_replies = on;
    finish_change(proxy);
}

void dv_test_proxy_drop_requests(dv_test_proxy *proxy, bool on) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.drop_requests = on;
    finish_change(proxy);
}

void dv_test_proxy_delay(dv_test_proxy *proxy, int delay_ms) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.delay_ms = delay_ms;
    finish_change(proxy);
}

void dv_test_proxy_strike(dv_test_proxy *proxy, enum dv_test_strike strike, unsigned count) {
    pthread_mutex_lock(&proxy->lock);
    proxy->faults.strike = strike;
    proxy->faults.strikes = count;
    finish_change(proxy);
}

void dv_test_proxy_half_open(dv_test_proxy *proxy) {
    pthread_mutex_lock(&proxy->lock);
    for (size_t i = 0; i < proxy->link_count; i++) {
        struct link *link = proxy->links[i];
        if (link->half_open) continue;
        close(link->server);
        link->server = -1;
        link->half_open = true;
        link->requests.count = link->replies.count = 0;
    }
    finish_change(proxy);
}

struct dv_test_proxy_counts dv_test_proxy_count(dv_test_proxy *proxy) {
    pthread_mutex_lock(&proxy->lock);
    struct dv_test_proxy_counts counts = proxy->counts;
    counts.open = (unsigned)proxy->link_count;
    pthread_mutex_unlock(&proxy->lock);
    return counts;
}
