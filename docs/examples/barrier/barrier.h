/* Barrier: N members wait until all of them are there, and later until all have left.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The worked example of docs/write-a-recipe.md: a recipe on the library's inside, in the house's style.
 *
 * Rule 1 (enter). A member keeps an ephemeral node <guid>-member below the path, and watches the path's children.
 * Rule 2 (open). A member that sees N members at once creates the persistent node `ready`. A member passes when it has
 *    seen `ready`, or has created it. So a slow member passes even if others have left before it looked.
 * Rule 3 (leave). A member deletes its node, and is done when it sees no member. It deletes `ready` before that.
 *
 * A path serves one round: the next one has another path. Lifetime: rules 2 and 6 of client.h. */
#ifndef BARRIER_H
#define BARRIER_H

#include <divvy/client.h>

/** One member's part in a barrier. Opaque. */
typedef struct barrier barrier;

/**
 * Enter the barrier at `path`, whose missing parents are created. Returns at once; the node is made in the background.
 *
 * Ownership: `path` is copied. On success release *out with barrier_destroy(). On error *out is NULL.
 * Thread: any. No callback runs inside this call.
 * Source: "Double Barriers" of ZooKeeper's recipes.
 *
 * @param out     [out] the barrier
 * @param client  need not be connected yet
 * @param path    absolute, the same for all
 * @param members for how many to wait; at least 1, the same for all
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, a path that ZooKeeper refuses, no members
 *   DIVVY_ELIMIT  the session's budget of ephemeral nodes is used up
 *   DIVVY_ENOMEM, DIVVY_EFORK
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
int barrier_enter(barrier **out, divvy_client *client, const char *path, size_t members);

/**
 * Wait until all members are there. May be called again after DIVVY_ETIMEDOUT: the member stays inside.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever; 0: only look
 * @return 0 when all were there at once, or
 *   DIVVY_ETIMEDOUT  not yet
 *   DIVVY_ELOST      the session was lost: the member is no longer inside
 *   DIVVY_ENOENT     somebody else deleted the path
 *   DIVVY_EACCES     the access list denies creating or reading
 *   DIVVY_EAUTH, DIVVY_ECLOSED, DIVVY_EDEADLK, DIVVY_EFORK, DIVVY_EINVAL, DIVVY_ENOMEM
 */
int barrier_wait(barrier *b, int64_t timeout_ms);

/**
 * Leave, and wait until all members have left. May be called again after DIVVY_ETIMEDOUT.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @return as barrier_wait(), or
 *   DIVVY_ESTATE  barrier_wait() has not ended with 0 yet: to give up, call barrier_destroy()
 */
int barrier_leave(barrier *b, int64_t timeout_ms);

/**
 * Leave in the background and release the object; NULL is allowed. Thread: any.
 * A member that has passed and does not wait in barrier_leave() may leave `ready` behind.
 */
void barrier_destroy(barrier *b);

#endif
