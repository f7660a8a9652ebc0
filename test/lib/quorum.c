/* See quorum.h. SPDX-License-Identifier: Apache-2.0
 *
 * For each ordered pair of servers the relay listens on two ports, at which the first server finds the second one;
 * where the second really listens it reads from that one's zoo.cfg, as the servers choose their ports when they start.
 *
 * One thread moves all bytes and sleeps in poll(). Whenever it is awake it holds the lock, under which `held` is
 * changed. */
#include "quorum.h"

#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SERVERS DV_TEST_QUORUM_SERVERS
#define LINKS_MAX 64
#define STREAM_BYTES 65536
#define ADDRESS_BYTES 32

enum port { QUORUM, ELECTION, PORTS };
enum { DOORS = SERVERS * (SERVERS - 1) * PORTS, FIXED_FDS = 1 + DOORS };

/* Where server `from` finds a port of server `to`. Servers are counted from 0 here. */
struct door {
    int fd, from, to;
    enum port port;
    char address[ADDRESS_BYTES];
};

/* One direction of a connection between servers. */
struct stream {
    int in, out, sender, receiver;
    bool ended;
    size_t start, count;
    char bytes[STREAM_BYTES];
};

struct link {
    struct stream there, back;
    const struct door *introduces; /* `there` begins with an introduction that is still to come, else NULL */
};

struct dv_test_quorum {
    dv_test_server *server;
    char dir[256], peers[288];
    struct door doors[DOORS];
    pthread_t thread;
    int wake;

    pthread_mutex_t lock; /* guards all below */
    bool stopping;
    bool held[SERVERS][SERVERS]; /* what the first says to the second */
    struct link *links[LINKS_MAX];
    size_t link_count;
};

/* ---- addresses ---- */

static const struct door *door_of(const dv_test_quorum *quorum, int from, int to, enum port port) {
    for (size_t i = 0; i < DOORS; i++) {
        const struct door *door = &quorum->doors[i];
        if (door->from == from && door->to == to && door->port == port) return door;
    }
    dv_test_die("there is no link from server %d to %d", from + 1, to + 1);
}

static void open_door(struct door *door, int from, int to, enum port port) {
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    *door = (struct door){.from = from, .to = to, .port = port};
    door->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (door->fd < 0 || bind(door->fd, (struct sockaddr *)&own, sizeof own) || listen(door->fd, LINKS_MAX) ||
        getsockname(door->fd, (struct sockaddr *)&own, &bytes)) {
        dv_test_die("relay: no port: %s", strerror(errno));
    }
    snprintf(door->address, sizeof door->address, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
}

/* Where a server listens for its peers, by its own configuration; 0 when that is not written yet. */
static unsigned real_port(const dv_test_quorum *quorum, int number, enum port port) {
    char path[320], line[256], format[64];
    unsigned ports[PORTS] = {0};
    snprintf(path, sizeof path, "%s/%d/zoo.cfg", quorum->dir, number + 1);
    snprintf(format, sizeof format, "server.%d=127.0.0.1:%%u:%%u", number + 1);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        if (sscanf(line, format, &ports[QUORUM], &ports[ELECTION]) == PORTS) break;
#pragma GCC diagnostic pop
    }
    if (file) fclose(file);
    return ports[port];
}

/* ---- connections ---- */

static void set_up(int fd) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Takes in a connection, and closes it if the other server does not listen. */
static void open_link(dv_test_quorum *quorum, const struct door *door, int caller) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)real_port(quorum, door->to, door->port));
    int called = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct link *link = calloc(1, sizeof *link);
    if (called < 0 || !link) dv_test_die("relay: no socket or no memory");
    if (to.sin_port == 0 || quorum->link_count == LINKS_MAX || connect(called, (struct sockaddr *)&to, sizeof to)) {
        close(caller);
        close(called);
        free(link);
        return;
    }
    set_up(caller);
    set_up(called);
    link->there = (struct stream){.in = caller, .out = called, .sender = door->from, .receiver = door->to};
    link->back = (struct stream){.in = called, .out = caller, .sender = door->to, .receiver = door->from};
    link->introduces = door->port == ELECTION ? door : NULL;
    quorum->links[quorum->link_count++] = link;
}

/* While a direction is held callers stay in the kernel's queue, as if their packets went nowhere. */
static bool is_open(const dv_test_quorum *quorum, const struct door *door) {
    return !quorum->held[door->from][door->to] && !quorum->held[door->to][door->from];
}

static void accept_callers(dv_test_quorum *quorum) {
    for (size_t i = 0; i < DOORS; i++) {
        const struct door *door = &quorum->doors[i];
        for (int caller; is_open(quorum, door) && (caller = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
            open_link(quorum, door, caller);
    }
}

/* ---- bytes ---- */

static bool would_block(ssize_t result) {
    return result < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Reads what fits behind what is there; false when the connection has failed. */
static bool stream_read(struct stream *stream) {
    if (stream->ended || stream->start > 0 || stream->count == STREAM_BYTES) return true;
    ssize_t got = recv(stream->in, stream->bytes + stream->count, STREAM_BYTES - stream->count, 0);
    if (would_block(got)) return true;
    if (got < 0) return false;
    stream->ended = got == 0;
    stream->count += (size_t)got;
    return true;
}

/* Writes what the receiver takes; false when the connection has failed. */
static bool stream_write(struct stream *stream) {
    if (stream->start == stream->count) return true;
    ssize_t sent = send(stream->out, stream->bytes + stream->start, stream->count - stream->start, MSG_NOSIGNAL);
    if (would_block(sent)) return true;
    if (sent < 0) return false;
    stream->start += (size_t)sent;
    if (stream->start == stream->count) stream->start = stream->count = 0;
    return true;
}

/* A caller at the election port begins with a version and its number of 8 bytes each, a length of 4, and the address at
 * which it is called back, "127.0.0.1:" and five digits: its real one, past us. It gets the relay's, of equal length.
 * False while the introduction is not there as a whole. */
static bool introduce(dv_test_quorum *quorum, struct link *link) {
    enum { HEAD_BYTES = 20 };
    const struct door *door = link->introduces;
    const char *address = door_of(quorum, door->to, door->from, ELECTION)->address;
    size_t bytes = strlen(address);
    if (link->there.count < HEAD_BYTES + bytes) return false;
    char *given = link->there.bytes + HEAD_BYTES;
    if (link->there.bytes[HEAD_BYTES - 1] != (char)bytes || memcmp(given, "127.0.0.1:", 10) != 0)
        dv_test_die("relay: server %d introduces itself in an unknown way", door->from + 1);
    memcpy(given, address, bytes);
    link->introduces = NULL;
    return true;
}

static bool is_held(const dv_test_quorum *quorum, const struct stream *stream) {
    return quorum->held[stream->sender][stream->receiver];
}

/* Moves what may be moved; false when the connection has come to its end. */
static bool link_move(dv_test_quorum *quorum, struct link *link) {
    struct stream *streams[] = {&link->there, &link->back};
    for (size_t i = 0; i < 2; i++) {
        struct stream *stream = streams[i];
        if (is_held(quorum, stream)) continue;
        if (!stream_read(stream)) return false;
        if (i == 0 && link->introduces && !stream->ended && !introduce(quorum, link)) continue;
        if (!stream_write(stream)) return false;
        if (stream->ended && stream->count == 0) return false;
    }
    return true;
}

/* ---- the thread ---- */

/* poll() skips a negative descriptor: one whose direction is held must not wake us. */
static struct pollfd interest(const dv_test_quorum *quorum, int fd, const struct stream *from,
                              const struct stream *to) {
    struct pollfd result = {.fd = fd};
    if (!is_held(quorum, from) && !from->ended && from->start == 0 && from->count < STREAM_BYTES)
        result.events |= POLLIN;
    if (!is_held(quorum, to) && to->count > 0) result.events |= POLLOUT;
    if (!result.events) result.fd = -1;
    return result;
}

static nfds_t fill_interests(const dv_test_quorum *quorum, struct pollfd *fds) {
    fds[0] = (struct pollfd){.fd = quorum->wake, .events = POLLIN};
    for (size_t i = 0; i < DOORS; i++) {
        const struct door *door = &quorum->doors[i];
        fds[1 + i] = (struct pollfd){.fd = is_open(quorum, door) ? door->fd : -1, .events = POLLIN};
    }
    for (size_t i = 0; i < quorum->link_count; i++) {
        const struct link *link = quorum->links[i];
        fds[FIXED_FDS + 2 * i] = interest(quorum, link->there.in, &link->there, &link->back);
        fds[FIXED_FDS + 2 * i + 1] = interest(quorum, link->back.in, &link->back, &link->there);
    }
    return (nfds_t)(FIXED_FDS + 2 * quorum->link_count);
}

static void close_link(struct link *link) {
    close(link->there.in);
    close(link->back.in);
    free(link);
}

static void *relay_run(void *argument) {
    dv_test_quorum *quorum = argument;
    struct pollfd fds[FIXED_FDS + 2 * LINKS_MAX];
    pthread_mutex_lock(&quorum->lock);
    while (!quorum->stopping) {
        nfds_t count = fill_interests(quorum, fds);
        pthread_mutex_unlock(&quorum->lock);
        int ready = poll(fds, count, -1);
        pthread_mutex_lock(&quorum->lock);
        if (ready < 0 && errno != EINTR) dv_test_die("relay: poll: %s", strerror(errno));
        eventfd_t ignored;
        eventfd_read(quorum->wake, &ignored);
        size_t kept = 0;
        for (size_t i = 0; i < quorum->link_count; i++) {
            if (link_move(quorum, quorum->links[i])) quorum->links[kept++] = quorum->links[i];
            else close_link(quorum->links[i]);
        }
        quorum->link_count = kept;
        accept_callers(quorum);
    }
    while (quorum->link_count > 0) close_link(quorum->links[--quorum->link_count]);
    pthread_mutex_unlock(&quorum->lock);
    return NULL;
}

static void start_thread(dv_test_quorum *quorum) {
    sigset_t all, before; /* The test's signals are none of this thread's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&quorum->thread, NULL, relay_run, quorum);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) dv_test_die("relay: no thread: %s", strerror(error));
}

/* ---- for the tests ---- */

/* Opens all doors and writes for the tool who finds whom where. */
static void open_doors(dv_test_quorum *quorum) {
    snprintf(quorum->peers, sizeof quorum->peers, "%s.peers", quorum->dir);
    FILE *file = fopen(quorum->peers, "wxe");
    if (!file) dv_test_die("%s: %s", quorum->peers, strerror(errno));
    struct door *door = quorum->doors;
    for (int from = 0; from < SERVERS; from++) {
        for (int to = 0; to < SERVERS; to++) {
            if (to == from) continue;
            for (enum port port = QUORUM; port < PORTS; port++) open_door(door++, from, to, port);
            fprintf(file, "%d server.%d=%s:%s\n", from + 1, to + 1, door[-2].address,
                    strchr(door[-1].address, ':') + 1);
        }
    }
    if (fclose(file)) dv_test_die("%s: %s", quorum->peers, strerror(errno));
}

/* As the tool chooses: memory, unless it is as small as in some containers. */
static const char *base_folder(void) {
    struct statvfs room;
    const char *given = getenv("TMPDIR");
    if (access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &room) == 0 &&
        (uint64_t)room.f_bavail * room.f_frsize >= (uint64_t)256 << 20)
        return "/dev/shm";
    return given ? given : "/tmp";
}

dv_test_quorum *dv_test_quorum_start(int tick_ms, int sync_ticks) {
    dv_test_quorum *quorum = calloc(1, sizeof *quorum);
    if (!quorum) dv_test_die("no memory");
    /* The tool looks for the ports of its neighbours in folders of this name. */
    snprintf(quorum->dir, sizeof quorum->dir, "%s/zookeeper-local.XXXXXX", base_folder());
    if (!mkdtemp(quorum->dir)) dv_test_die("%s: %s", quorum->dir, strerror(errno));
    open_doors(quorum);
    quorum->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (quorum->wake < 0) dv_test_die("relay: eventfd: %s", strerror(errno));
    pthread_mutex_init(&quorum->lock, NULL);
    start_thread(quorum);
    char sync_text[16];
    snprintf(sync_text, sizeof sync_text, "%d", sync_ticks);
    const char *const more[] = {"--sync-limit", sync_text, "--peers", quorum->peers, "--dir", quorum->dir, NULL};
    quorum->server = dv_test_server_start_with(SERVERS, tick_ms, more);
    unlink(quorum->peers);
    return quorum;
}

static void wake(dv_test_quorum *quorum) {
    eventfd_write(quorum->wake, 1);
    pthread_mutex_unlock(&quorum->lock);
}

void dv_test_quorum_stop(dv_test_quorum *quorum) {
    if (!quorum) return;
    dv_test_server_stop(quorum->server);
    pthread_mutex_lock(&quorum->lock);
    quorum->stopping = true;
    wake(quorum);
    pthread_join(quorum->thread, NULL);
    for (size_t i = 0; i < DOORS; i++) close(quorum->doors[i].fd);
    close(quorum->wake);
    pthread_mutex_destroy(&quorum->lock);
    free(quorum);
}

dv_test_server *dv_test_quorum_server(const dv_test_quorum *quorum) {
    return quorum->server;
}

void dv_test_quorum_hold(dv_test_quorum *quorum, int sender, int receiver) {
    pthread_mutex_lock(&quorum->lock);
    quorum->held[sender - 1][receiver - 1] = true;
    wake(quorum);
}

void dv_test_quorum_part(dv_test_quorum *quorum, int one, int other) {
    pthread_mutex_lock(&quorum->lock);
    quorum->held[one - 1][other - 1] = quorum->held[other - 1][one - 1] = true;
    wake(quorum);
}

void dv_test_quorum_isolate(dv_test_quorum *quorum, int number) {
    for (int other = 1; other <= SERVERS; other++) {
        if (other != number) dv_test_quorum_part(quorum, number, other);
    }
}

void dv_test_quorum_heal(dv_test_quorum *quorum) {
    pthread_mutex_lock(&quorum->lock);
    memset(quorum->held, 0, sizeof quorum->held);
    wake(quorum);
}
