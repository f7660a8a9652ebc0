/* Contender: one place in a queue of ephemeral sequential nodes. SPDX-License-Identifier: Apache-2.0
 *
 * Enter the queue, wait for those before us, hold, leave; nothing is left behind, whatever is lost on the way. Item
 * locks stand on it, as locks and semaphores will. docs/protocol.md, rules Q1 to Q7. */
#ifndef DV_CONTENDER_H
#define DV_CONTENDER_H

#include "client/client.h"

typedef struct dv_contender dv_contender;

/* Which nodes of a directory form the queue. */
typedef struct {
    const char *marker;            /* stands between our unique prefix and the sequence number */
    const char *const *blocked_by; /* markers of those that we wait for; NULL at the end */
} dv_queue_kind;

extern const dv_queue_kind dv_exclusive_queue;

/* What its owner hears, from the loop, never inside a call to the contender. */
typedef struct {
    /* We are first: held from now on, until leaving, failing or the session's end. At most once. */
    void (*held)(void *owner, dv_contender *contender, int64_t now);
    /* It cannot go on: DIVVY_ENOENT when the directory, or our node, was deleted by somebody; DIVVY_EACCES, ... Nothing
     * of it is left in ZooKeeper. gone() follows. */
    void (*failed)(void *owner, dv_contender *contender, int error, int64_t now);
    /* Nothing of it is left, in ZooKeeper or here: the last call. */
    void (*gone)(void *owner, dv_contender *contender, int64_t now);
} dv_contender_events;

/* Enter the queue in the directory `parent`, which should exist. `parent` and `data` live until gone().
 * 0, or DIVVY_ELIMIT (no room for one more ephemeral node), DIVVY_EBUSY (no room for one more watch just now; it comes
 * with DV_SESSION_ROOM), DIVVY_ENOMEM; then *out is NULL and nothing happens. */
int dv_contender_enter(dv_contender **out, divvy_client *client, const char *parent, const dv_queue_kind *kind,
                       const char *data, const dv_contender_events *events, void *owner);
/* Leave, held or not; once. gone() follows when that is certain. */
void dv_contender_leave(dv_contender *contender);
/* While held: ask whether our node is still there; failed(DIVVY_ENOENT) follows if somebody has deleted it. */
void dv_contender_verify(dv_contender *contender);
/* The czxid of our node: grows from holder to holder. Meant once held. */
int64_t dv_contender_token(const dv_contender *contender);
/* The path of our node, for a guard. Meant once held. */
const char *dv_contender_path(const dv_contender *contender);

#endif
