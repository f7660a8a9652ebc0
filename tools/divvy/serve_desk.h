/* The desk of divvy serve: questions of pages that need more of ZooKeeper than what is followed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A thread of its own answers one after the other, so that a slow answer holds up neither pages nor looks. Equal
 * questions are one, and an answer is told again while it is fresh. Who asks waits as a suspended connection. */
#ifndef DV_SERVE_DESK_H
#define DV_SERVE_DESK_H

#include <stdbool.h>

#include "serve_examine.h"

struct MHD_Connection;

/* QUESTIONS: that are kept, with their answers. WAITERS: connections that wait. PATIENCE: nobody waits for longer. */
enum { DV_SERVE_QUESTIONS_MAX = 32, DV_SERVE_WAITERS_MAX = 64, DV_SERVE_PATIENCE_MS = 20000 };

typedef struct dv_serve_desk dv_serve_desk;

/* Starts the thread. Returns NULL when it was told what is wrong. `serve` outlives the desk. */
dv_serve_desk *dv_serve_desk_start(struct dv_serve *serve);
/* Ends what is under way, lets all go on who wait, and takes no question from now on. Before the daemon stops. */
void dv_serve_desk_close(dv_serve_desk *desk);
/* After the daemon has stopped. NULL is allowed. */
void dv_serve_desk_free(dv_serve_desk *desk);

/* Returns whether there is an answer, with a text to be freed. Otherwise the connection is suspended, and the same call
 * has an answer when it goes on. Only the thread of the daemon calls it. */
bool dv_serve_desk_ask(dv_serve_desk *desk, struct MHD_Connection *connection, const dv_serve_question *asked,
                       dv_serve_answer *out);
/* The connection's request is over, or the connection is. */
void dv_serve_desk_leave(dv_serve_desk *desk, struct MHD_Connection *connection);
/* Lets those go on who have waited for too long. To be called now and then, by any thread. */
void dv_serve_desk_sweep(dv_serve_desk *desk);

#endif
