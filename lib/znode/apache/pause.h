/* Pauses between connections that servers close. SPDX-License-Identifier: Apache-2.0
 *
 * Without them a server that closes connections meets 6 to 15 a second of each process, without end. The native client
 * has no setting for that, but logs a line before it goes on, on its I/O thread, and holds no lock then: it is kept
 * there for a while (H10). */
#ifndef DV_PAUSE_H
#define DV_PAUSE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    unsigned servers; /* in the native client's list */
    unsigned closed;  /* connections that servers have closed since one has answered a request */
    unsigned starts;  /* each ends the pause under way */
    int max_ms;
    bool off; /* nobody waits: the native client is being closed */
} dv_pause;

void dv_pause_init(dv_pause *pause, int session_timeout_ms);
void dv_pause_destroy(dv_pause *pause);
/* Begins, or goes on, with that many servers: each gets its first try at once. Ends a pause. */
void dv_pause_start(dv_pause *pause, unsigned servers);
/* Ends a pause, and all that would follow, so that the I/O thread can be joined. */
void dv_pause_stop(dv_pause *pause);
/* A server has answered a request. Nothing else is progress: servers that close take connections, too. */
void dv_pause_answered(dv_pause *pause);
/* Returns whether the native client says by this line that a server has closed its connection. */
bool dv_pause_is_close(const char *line);
/* Counts a close. Returns for how long the next connection is to wait. */
int dv_pause_count(dv_pause *pause);
void dv_pause_wait(dv_pause *pause, int ms);

#endif
