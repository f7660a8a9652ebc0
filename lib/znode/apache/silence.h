/* Ends handshakes in which a server says nothing. SPDX-License-Identifier: Apache-2.0
 *
 * The native client waits for them without end (H7), and gives nobody its socket. But a connection to one of its
 * servers on which not one byte has come is such a handshake, or a very young one, of any client of the process. Where
 * it is ended, the native client sees an error, and tries the next server. */
#ifndef DV_SILENCE_H
#define DV_SILENCE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* Ends connections of this process to `servers` ("ip:port,ip:port") without a byte for silent_ms. Returns how many. */
size_t dv_silence_end(const char *servers, int silent_ms);

/* A thread that does so twice a second, unless any silence is allowed: the client is connected. */
typedef struct dv_silence dv_silence;
enum { DV_SILENCE_MIN_MS = 1000, DV_SILENCE_ANY = INT_MAX };
/* NULL when there is no memory, or no thread could be had. */
dv_silence *dv_silence_start(const char *servers, int silent_ms);
void dv_silence_allow(dv_silence *silence, int silent_ms);
/* Takes over malloc'ed other servers. Unless any silence is allowed, so much is from now on. */
void dv_silence_watch(dv_silence *silence, char *servers, int silent_ms);
/* Joins the thread. NULL is fine. */
void dv_silence_stop(dv_silence *silence);

#endif
