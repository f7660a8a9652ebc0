/* divvy-death-watch: ends the session of a program on libdivvy when that program has ended.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rule C10 of docs/protocol.md. The library starts it, as client/death_watch.h says, with two descriptors: a socket by
 * which it is told of the session, and the pidfd of the program. It has nothing else of the program: no other
 * descriptor, no signal, no terminal, no process group, and it is nobody's child. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/threads.h"
#include "client/death_watch.h"
#include "zookeeper/watcher.h"

#ifndef SYS_close_range
#define SYS_close_range 436 /* on every architecture but alpha; kernel headers before 5.9 lack it */
#endif

/* What the program had open without close-on-exec: the native client's sockets, for example. */
static void close_the_rest(void) {
    const unsigned first = DV_DEATH_WATCH_PROCESS_FD + 1;
    if (syscall(SYS_close_range, first, ~0U, 0) == 0) return;
    long open_max = sysconf(_SC_OPEN_MAX);
    for (int fd = (int)first; fd < open_max; fd++) close(fd);
}

/* The first process ends at once, so that the program has no child that its code does not know. */
static void leave_parent(void) {
    pid_t pid = fork();
    if (pid != 0) _exit(pid < 0);
    setsid();
}

/* The session's password is in our memory. */
static void protect_memory(void) {
    prctl(PR_SET_DUMPABLE, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
}

/* Waits until the program has ended, as the kernel says. Returns false where it need not be waited for any longer: it
 * has closed its socket, and holds no session, or one that has ended by itself since. */
static bool wait_for_end(dv_watcher *watcher) {
    int64_t until_ms = -1;
    for (;;) {
        int64_t left_ms = until_ms < 0 ? -1 : until_ms - dv_monotonic_ms();
        struct pollfd fds[] = {{.fd = watcher->process_fd, .events = POLLIN},
                               {.fd = watcher->socket_fd, .events = POLLIN}};
        if (until_ms >= 0 && left_ms <= 0) return false;
        poll(fds, 2, (int)left_ms);
        dv_watcher_listen(watcher);
        if (dv_watcher_has_ended(watcher)) return dv_watcher_has_will(watcher);
        if (watcher->socket_fd >= 0) continue;
        if (!dv_watcher_has_will(watcher)) return false;
        if (until_ms < 0) until_ms = dv_monotonic_ms() + dv_watcher_patience_ms(watcher);
    }
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
    close_the_rest();
    leave_parent();
    protect_memory();
    prctl(PR_SET_NAME, "divvy-death");
    if (dv_watcher_init(&watcher, DV_DEATH_WATCH_SOCKET_FD, DV_DEATH_WATCH_PROCESS_FD) != 0) return 1;
    const char ready = DV_DEATH_WATCH_READY;
    if (send(watcher.socket_fd, &ready, 1, MSG_NOSIGNAL) != 1) return 1;
    if (wait_for_end(&watcher)) dv_watcher_execute(&watcher);
    return 0;
}
