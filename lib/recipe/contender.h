/* Contender: one place in a queue of ephemeral sequential nodes. SPDX-License-Identifier: Apache-2.0
 *
 * Enter the queue, wait for those before us, hold, leave; nothing is left behind, whatever is lost on the way. Item
 * locks, locks and semaphores stand on it. docs/protocol.md, rules Q1 to Q8. */
#ifndef DV_CONTENDER_H
#define DV_CONTENDER_H

#include "client/client.h"
#include "recipe/queue.h"

typedef struct dv_contender dv_contender;

/* The events that a contender tells its owner, from the loop, never inside a call to the contender. */
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
/* Besides, learn that somebody is before us, each time that we begin to wait, before a watch is set. Leaving in that
 * call sets none. To be set right after entering. */
void dv_contender_tell_waits(dv_contender *contender, void (*waits)(void *owner, dv_contender *contender, int64_t now));
/* Returns whether it waits for the node of `other`, which may be leaving. Meant in waits(). */
bool dv_contender_waits_for(const dv_contender *contender, const dv_contender *other);
/* Leave, held or not; once. gone() follows when that is certain. */
void dv_contender_leave(dv_contender *contender);
/* While held, in place of leaving: a request of the owner's own has deleted our node, so that nothing is left to
 * delete. gone() follows. */
void dv_contender_consumed(dv_contender *contender);
/* While held: ask whether our node is still there; failed(DIVVY_ENOENT) follows if somebody has deleted it. */
void dv_contender_verify(dv_contender *contender);
/* The czxid of our node: grows from holder to holder. Meant once held. */
int64_t dv_contender_token(const dv_contender *contender);
/* The path of our node, for a guard. Meant once held. */
const char *dv_contender_path(const dv_contender *contender);

#endif
