/* A death watch: ends the session of a process that has ended. SPDX-License-Identifier: Apache-2.0
 *
 * Rule C10 of docs/protocol.md. This is the watch's own side, in a process of its own with one thread. The other is
 * client/death_watch.h. */
#ifndef DV_WATCHER_H
#define DV_WATCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "client/will.h"

typedef struct {
    int socket_fd;    /* wills come by it; -1: it has closed */
    int process_fd;   /* the process that is watched */
    char *message;    /* the newest will, locked in memory, and not inherited by a fork */
    size_t bytes;     /* 0: none was told, or the last one holds no session */
    int64_t ended_ms; /* when the process was seen to have ended, by CLOCK_BOOTTIME; 0: it lives */
} dv_watcher;

/* Takes both descriptors, which it never closes. Returns 0, or -1 with errno set. */
int dv_watcher_init(dv_watcher *watcher, int socket_fd, int process_fd);

/* Takes in what was told up to now. Waits for nothing. */
void dv_watcher_listen(dv_watcher *watcher);

/* Returns whether the process has ended; then all that it told has been taken in. Waits for nothing. */
bool dv_watcher_has_ended(dv_watcher *watcher);

/* Returns whether there is a session to be ended when the process has. */
static inline bool dv_watcher_has_will(const dv_watcher *watcher) {
    return watcher->bytes > 0;
}

/* Lets go of all other descriptors of this process; 0 to 2 are /dev/null from now on. */
void dv_watcher_detach(const dv_watcher *watcher);

/* Waits until the process has ended, as the kernel says. Returns false where it need not be waited for any longer: it
 * has closed its socket, and there is no session to be ended, or one that has ended by itself since. */
bool dv_watcher_wait(dv_watcher *watcher);

/* Ends the session, if there is one and the process has ended, after the delay of the will. The caller knows that
 * nothing is left that ran under the process. When a server says that the session has ended, writes that
 * down in the pools of the will (D45). Returns then, or when twice the timeout has passed. Forgets the will. */
void dv_watcher_execute(dv_watcher *watcher);

#endif
