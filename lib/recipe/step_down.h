/* Step down: how an election's leader is asked to hand over, and how it hears of that. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, rules J5 and J6. */
#ifndef DV_STEP_DOWN_H
#define DV_STEP_DOWN_H

#include "client/client.h"

/* ---- one who asks ---- */

typedef struct dv_ask dv_ask;

typedef struct {
    void (*failed)(void *owner, dv_ask *ask, int error); /* it cannot be asked; gone() follows */
    void (*gone)(void *owner, dv_ask *ask);              /* nothing of it is left: the last call */
} dv_ask_events;

/* Asks the leader of that token until dv_ask_end(). `directory` and `who` live until gone(). Returns 0, DIVVY_ELIMIT or
 * DIVVY_ENOMEM. */
int dv_ask_start(dv_ask **out, divvy_client *client, const char *directory, int64_t token, const char *who,
                 const dv_ask_events *events, void *owner);
/* Once, and not after failed(). gone() follows. */
void dv_ask_end(dv_ask *ask);

/* ---- the leader ---- */

typedef struct dv_requests dv_requests;

/* The text that one asker has written. free() it. */
typedef struct {
    size_t bytes;
    char who[]; /* with a NUL behind */
} dv_asker;

typedef struct {
    /* Somebody asks, and has not been told before. Takes `asker`. The next one is told after dv_requests_next(). */
    void (*asked)(void *owner, dv_asker *asker, int64_t now);
    void (*ended)(void *owner, dv_requests *requests); /* the session is lost, or the directory; gone() follows */
    void (*gone)(void *owner);                         /* the last call */
} dv_requests_events;

/* Hears of requests to the leader of that token. `directory` lives until gone(). Returns NULL when an allocation
 * fails. */
dv_requests *dv_requests_start(divvy_client *client, const char *directory, int64_t token,
                               const dv_requests_events *events, void *owner);
void dv_requests_next(dv_requests *requests);
/* There is a connection, or memory, again. */
void dv_requests_again(dv_requests *requests);
/* Once, and not after ended(). gone() follows. */
void dv_requests_stop(dv_requests *requests);

#endif
