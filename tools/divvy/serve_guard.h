/* The guard of divvy serve: bounds on connections, and the checks on a request's headers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_GUARD_H
#define DV_SERVE_GUARD_H

#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* REQUEST, ANSWER: a connection is ended that sends no whole request, or does not take its answer, for so long. */
enum { DV_SERVE_CONNECTIONS_MAX = 128, DV_SERVE_REQUEST_MS = 5000, DV_SERVE_ANSWER_MS = 30000 };

typedef enum { DV_SERVE_ASKING, DV_SERVE_ANSWERED, DV_SERVE_STREAMING } dv_serve_phase;

/* One connection. */
typedef struct {
    int fd; /* -1: this place is free */
    dv_serve_phase phase;
    int64_t since_ms; /* by CLOCK_MONOTONIC */
} dv_serve_peer;

typedef struct {
    pthread_mutex_t lock;
    dv_serve_peer peers[DV_SERVE_CONNECTIONS_MAX];
} dv_serve_guard;

void dv_serve_guard_init(dv_serve_guard *guard);

/* For MHD_OPTION_NOTIFY_CONNECTION: keeps the connection's place in the guard at `cls`. */
void dv_serve_guard_notify(void *cls, struct MHD_Connection *connection, void **place,
                           enum MHD_ConnectionNotificationCode code);
void dv_serve_guard_phase(dv_serve_guard *guard, struct MHD_Connection *connection, dv_serve_phase phase);
/* Ends the connections whose time is over. To be called now and then, by any thread. */
void dv_serve_guard_sweep(dv_serve_guard *guard);

/* Returns 0, or the status that the request is refused with: another method, a body, a foreign Host, a foreign page
 * that asks for more than the page itself. `loopback`: the Host has to be this machine's. */
unsigned dv_serve_guard_judge(struct MHD_Connection *connection, const char *url, const char *method, bool loopback);

#endif
