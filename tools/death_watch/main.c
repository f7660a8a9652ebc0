/* divvy-death-watch: ends the session of a program on libdivvy when that program has ended.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rule C10 of docs/protocol.md. The library starts it, as client/death_watch.h says, with two descriptors: a socket by
 * which it is told of the session, and the pidfd of the program. It has nothing else of the program: no other
 * descriptor, no signal, no terminal, no process group, and it is nobody's child. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/death_watch.h"
#include "zookeeper/watcher.h"

/* The first process ends at once, so that the program has no child that its code does not know. */
static void leave_parent(void) {
    pid_t pid = fork();
    if (pid != 0) _exit(pid < 0 ? 1 : 0);
    setsid();
}

/* The session's password is in our memory. */
static void protect_memory(void) {
    prctl(PR_SET_DUMPABLE, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

int main(int argc, char **argv) {
    dv_watcher watcher;
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("divvy-death-watch %s\n", divvy_version());
        return 0;
    }
    struct pollfd process = {.fd = DV_DEATH_WATCH_PROCESS_FD, .events = POLLIN};
    if (argc > 1 || poll(&process, 1, 0) != 0) {
        fputs("divvy-death-watch: libdivvy starts this program for a client with death_watch; it is of no use alone\n",
              stderr);
        return 2;
    }
    leave_parent();
    protect_memory();
    if (dv_watcher_init(&watcher, DV_DEATH_WATCH_SOCKET_FD, DV_DEATH_WATCH_PROCESS_FD) != 0) return 1;
    dv_watcher_detach(&watcher);
    const char ready = DV_DEATH_WATCH_READY;
    if (send(watcher.socket_fd, &ready, 1, MSG_NOSIGNAL) != 1) return 1;
    if (dv_watcher_wait(&watcher)) dv_watcher_execute(&watcher);
    return 0;
}
