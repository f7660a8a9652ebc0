/* Contender: one place in a queue of ephemeral sequential nodes. SPDX-License-Identifier: Apache-2.0
 *
 * Enter the queue, wait for those before us, hold, leave; nothing is left behind, whatever is lost on the way. Item
 * locks, locks and semaphores stand on it. docs/protocol.md, rules Q1 to Q10. */
#ifndef DV_CONTENDER_H
#define DV_CONTENDER_H

#include "client/client.h"
#include "recipe/queue.h"

typedef struct dv_contender dv_contender;

/* The events that a contender tells its owner, from the loop. */
typedef struct {
    /* We are first: held from now on, until leaving, failing or the session's end. At most once. */
    void (*held)(void *owner, int64_t now);
    /* It cannot go on, and its node is gone; gone() follows. DIVVY_ENOENT: somebody deleted it, or the directory. */
    void (*failed)(void *owner, int error, int64_t now);
    /* Nothing of it is left, in ZooKeeper or here: the last call. */
    void (*gone)(void *owner, dv_contender *contender, int64_t now);
    /* Others are before us, each time before a watch is set; leaving in this call sets none. May be NULL. */
    void (*waits)(void *owner, int64_t now);
    /* In a queue that parks: our place is there. dv_contender_take() or _look() goes on, in this call or later. */
    void (*placed)(void *owner, int64_t now);
    /* In a queue that yields, for held(): one behind us has a higher preference. The owner leaves in this call. */
    void (*outranked)(void *owner, int64_t now);
} dv_contender_events;

/* Enters the queue in `parent`, which should exist. `parent` and `data` live until gone(). Returns 0; or
 * DIVVY_ELIMIT (no room for the node), DIVVY_EBUSY (none for its watch until DV_SESSION_ROOM), DIVVY_ENOMEM. */
int dv_contender_enter(dv_contender **out, divvy_client *client, const char *parent, const dv_queue_kind *kind,
                       const char *data, const dv_contender_events *events, void *owner);
/* Returns whether it waits for the node of `other`, which may be leaving. Meant in waits(). */
bool dv_contender_waits_for(const dv_contender *contender, const dv_contender *other);
bool dv_contender_is_parked(const dv_contender *contender);
/* While it is parked: nobody is before us, which the owner knows from elsewhere. held() follows in this call. */
void dv_contender_take(dv_contender *contender, int64_t now);
/* While it is parked: find out by a list. */
void dv_contender_look(dv_contender *contender);
/* Returns whether our place is there, and others are before it as far as is known. */
bool dv_contender_is_behind(const dv_contender *contender);
/* Leave, held or not; once. gone() follows when that is certain. */
void dv_contender_leave(dv_contender *contender);
/* While held, in place of leaving: a request of the owner's has deleted our node. gone() follows. */
void dv_contender_consumed(dv_contender *contender);
/* Returns whether our place is there, so that a request of the owner's own can delete it. */
bool dv_contender_stands(const dv_contender *contender);
/* While it stands, in place of leaving: a request of the owner's own is to delete it. dv_contender_taken() follows in
 * any case, when that has ended, or when the owner gives it up: then it leaves as usual. gone() follows that. */
void dv_contender_take_away(dv_contender *contender);
void dv_contender_taken(dv_contender *contender, bool deleted, int64_t now);
/* While held: checks that our node is still there; failed(DIVVY_ENOENT) follows if somebody has deleted it. */
void dv_contender_verify(dv_contender *contender);
/* Return our node's czxid, which grows from holder to holder, and its number. Meant once held or placed. */
int64_t dv_contender_token(const dv_contender *contender);
int32_t dv_contender_sequence(const dv_contender *contender);
/* The path of our node, for a guard or a delete. Meant while it stands. */
const char *dv_contender_path(const dv_contender *contender);

#endif
