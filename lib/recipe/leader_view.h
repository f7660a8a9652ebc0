/* Leader view: who is the first in an election's queue, told each time that it changes. SPDX-License-Identifier:
 * Apache-2.0
 *
 * docs/protocol.md, rule J3. */
#ifndef DV_LEADER_VIEW_H
#define DV_LEADER_VIEW_H

#include "client/client.h"
#include "divvy/election.h"

typedef struct dv_leader_view dv_leader_view;

/* One leader, as it was read. Shared by reference, with the client lock held. */
typedef struct {
    divvy_leader shown;
    unsigned refs;
    int preference; /* J4 */
} dv_leader;

/* Heard from the loop, never inside a call to the view. */
typedef struct {
    void (*changed)(void *owner, int64_t now); /* another one leads than was told, or it is known for the first time */
    void (*gone)(void *owner, int64_t now);    /* the last call */
} dv_leader_view_events;

/* Begins to follow, when there is a connection. `directory` lives until gone(). Returns 0, DIVVY_ELIMIT (no room for
 * its watch) or DIVVY_ENOMEM. */
int dv_leader_view_start(dv_leader_view **out, divvy_client *client, const char *directory,
                         const dv_leader_view_events *events, void *owner);
/* Once. gone() follows; it comes by itself when the client is closed. */
void dv_leader_view_stop(dv_leader_view *view);
/* Returns whether it was found out who leads, and in *leader who does, NULL for nobody. */
bool dv_leader_view_known(const dv_leader_view *view, dv_leader **leader);
/* Returns why it cannot be read, or 0. */
int dv_leader_view_error(const dv_leader_view *view);

dv_leader *dv_leader_ref(dv_leader *leader); /* NULL is allowed in both */
void dv_leader_unref(dv_leader *leader);

#endif
