/* What a command of the sweeps calls instead of the system and of the library. SPDX-License-Identifier: Apache-2.0 */
#include "command_world.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* While processes run, so much virtual time passes in a unit of the machine's, for all that they need. */
enum { HASTE = 100 };

static sweep *world;
static int64_t ahead_ms; /* by how much the machine's clock is ahead of the ensemble's */
static int64_t end_ms;   /* when SIGTERM comes; 0: it does not */
static bool is_child;

void sweep_command_world(sweep *s) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    world = s;
    end_ms = 0;
    ahead_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000 - divvy_testing_now_ms(s->ensemble);
}

void sweep_command_end_after(int64_t ms) {
    end_ms = divvy_testing_now_ms(world->ensemble) + ms;
}

void sweep_command_is_child(void) {
    is_child = true;
}

int sweep_client_open(divvy_client **out, const divvy_client_config *config) {
    int error = divvy_testing_client_open(out, world->ensemble, config);
    if (!error) sweep_seam_put(world, *out);
    return error;
}

int sweep_client_open_to_look(divvy_client **out, const divvy_client_config *config) {
    return sweep_client_open(out, config);
}

int sweep_client_open_watched(divvy_client **out, const divvy_client_config *config, int watch_fd) {
    (void)watch_fd;
    return sweep_client_open(out, config);
}

/* Nobody is slow to read what a command prints. */
static int answer_writers(struct pollfd *fds, nfds_t count) {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = fds[i].fd >= 0 ? (short)(fds[i].events & POLLOUT) : 0;
        ready += fds[i].revents != 0;
    }
    return ready;
}

/* Gives processes time to run. */
static void wait_for_processes(struct pollfd *fds, nfds_t count, int64_t virtual_ms) {
    int64_t ns = virtual_ms * 1000000 / HASTE;
    if (end_ms) ppoll(fds, count, &(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
}

int sweep_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (is_child) return poll(fds, count, timeout_ms);
    int ready = answer_writers(fds, count);
    if (!ready) ready = poll(fds, count, 0);
    if (ready) return ready;
    int64_t now_ms = divvy_testing_now_ms(world->ensemble);
    int64_t until_ms = now_ms + (timeout_ms < 0 ? SWEEP_WAIT_MS : timeout_ms);
    if (end_ms && until_ms > end_ms) until_ms = end_ms > now_ms ? end_ms : now_ms;
    if (divvy_testing_step(world->ensemble, until_ms) < 0) sweep_fail(world, "step");
    int64_t passed_ms = divvy_testing_now_ms(world->ensemble) - now_ms;
    if (end_ms && now_ms + passed_ms >= end_ms) {
        end_ms = INT64_MAX;
        raise(SIGTERM); /* This thread: the server's would not keep it for signalfd(2). */
    }
    wait_for_processes(fds, count, passed_ms);
    return 0;
}

/* The same, as compilers call it that know the size of the array. */
int sweep_poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t bytes) {
    (void)bytes;
    return sweep_poll(fds, count, timeout_ms);
}

/* The monotonic clock begins at the machine's, by which threads of `divvy doctor` wait for each other. */
int sweep_clock_gettime(clockid_t clock, struct timespec *out) {
    if (is_child) return clock_gettime(clock == CLOCK_BOOTTIME ? CLOCK_MONOTONIC : clock, out);
    int64_t ms = divvy_testing_now_ms(world->ensemble) + ahead_ms;
    if (clock == CLOCK_REALTIME) ms = divvy_testing_wall_clock_ms(world->ensemble);
    *out = (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    return 0;
}

/* ---- a server's four-letter words ---- */

static const char *answer_to(const char word[4]) {
    if (memcmp(word, "srvr", 4) == 0)
        return "Zookeeper version: 3.8.0-1, built on 2022-02-25 08:49 UTC\nLatency min/avg/max: 0/0.5/40\nReceived: "
               "10\n"
               "Sent: 9\nConnections: 1\nOutstanding: 0\nZxid: 0x5\nMode: standalone\nNode count: 5\n";
    if (memcmp(word, "conf", 4) == 0)
        return "clientPort=2181\ntickTime=500\nmaxClientCnxns=60\nminSessionTimeout=1000\nmaxSessionTimeout=10000\n"
               "serverId=0\n";
    return " /127.0.0.1:40000[1](queued=0,recved=2,sent=2,sid=0x1,lop=PING,est=1,to=4000,lcxid=0x1,lzxid=0x5,lresp=1,"
           "llat=0,minlat=0,avglat=0,maxlat=1)\n\n";
}

static void *serve(void *argument) {
    int listener = *(int *)argument;
    for (;;) {
        char word[4];
        int s = accept(listener, NULL, NULL);
        if (s < 0) return NULL;
        if (recv(s, word, sizeof word, MSG_WAITALL) == (ssize_t)sizeof word) {
            const char *answer = answer_to(word);
            (void)!send(s, answer, strlen(answer), MSG_NOSIGNAL);
        }
        close(s);
    }
}

int sweep_command_server(void) {
    static int listener = -1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t bytes = sizeof at;
    pthread_t thread;
    if (listener < 0) {
        listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(listener, (struct sockaddr *)&at, bytes) != 0 || listen(listener, 16) != 0) abort();
        if (pthread_create(&thread, NULL, serve, &listener) != 0) abort();
    }
    if (getsockname(listener, (struct sockaddr *)&at, &bytes) != 0) abort();
    return ntohs(at.sin_port);
}
