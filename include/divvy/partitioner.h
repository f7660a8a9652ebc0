/**
 * @file partitioner.h
 * Partitioner: divide a set of items among the members of a pool; each item has one owner.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All members are given the same path and the same items, which divvy_partitioner_set_items() can change. Each holds a
 * lock for every item of its share, so whatever members believe of each other, no two work on one item. kazoo's
 * SetPartitioner processes may be members too.
 *
 * The loop, incremental mode (what need not move is never interrupted):
 *
 *     while (!stopping) {
 *         uint64_t state_id = divvy_partitioner_state_id(p);  // first: a change from here on ends the wait below
 *         divvy_partition_state state = divvy_partitioner_state(p);
 *         if (state == DIVVY_FAILURE) break;
 *         divvy_partition *mine = divvy_partitioner_partition(p);
 *         tell each job to stop that `mine` lacks, or has under another token, or shows as revoked;
 *         if (state == DIVVY_RELEASE && all that were told to stop have ended)
 *             divvy_partitioner_release_set_id(p, state_id);
 *         start a job for each item of `mine` that is not revoked and has none;
 *         divvy_partition_unref(mine);
 *         divvy_partitioner_wait_change(p, state_id, 100);
 *     }
 *     stop all jobs, and wait until they have ended;
 *     divvy_partitioner_finish(p, 5000);
 *
 * A job is work on one item, in a thread or a process, under the token that it began with. Before each piece of work it
 * asks divvy_partitioner_owns_token(). divvy_partitioner_owns() would not do: it may say 1 for a later ownership of the
 * item, under which another job has begun already. Three rules make jobs safe:
 *   - Stop what a snapshot lacks, or has under another token, as well as what it shows as revoked. An item can be lost
 *     without a RELEASE of its own. And with DIVVY_REJOIN the loss of a session is a RELEASE with an empty snapshot.
 *   - Confirm a RELEASE when all of these jobs have ended, and not before: their items may come back at once.
 *   - In manual mode go on calling divvy_client_process() until the last job has ended, at a graceful stop too.
 * With a thread for each item workers.h does all of this. docs/examples: thread_pool.c has few threads for many items,
 * epoll_threads.c an event loop. One thread that works in slices has nothing to stop: incremental_loop.c.
 *
 * kazoo's loop works unchanged, see docs/examples/kazoo_loop.c. The algorithm stands in docs/protocol.md.
 *
 * Lifetime: rules 1 to 7 of client.h, and
 *  8. A partitioner is made by divvy_partitioner_create() and ends with divvy_partitioner_destroy(), called once.
 *  9. A snapshot (divvy_partition) is immutable and lives until divvy_partition_unref(), also after its partitioner.
 * 10. on_destroyed is the last callback of a partitioner; after it `user` is no longer touched. Where the client is
 *     closed before the destroy, the end of its items and DIVVY_FAILURE are told before.
 */
#ifndef DIVVY_PARTITIONER_H
#define DIVVY_PARTITIONER_H

#include "divvy/client.h"
#include "divvy/partition.h"
#include "divvy/partitioner_config.h"

DIVVY_EXTERN_C_BEGIN

/**
 * Joins the pool at `config->path` and begins to claim a share of its items.
 *
 * Sends nothing itself: work starts with the client's next turn. The new object is in DIVVY_ALLOCATING; later states
 * are reported to `config->on_state`.
 *
 * Ownership: `config` and all it points to are copied. On success release *out with divvy_partitioner_destroy(). On
 *   error *out is NULL and there is nothing to release.
 * Thread: any. No callback runs inside this call.
 * Source: kazoo.recipe.partitioner.SetPartitioner; docs/protocol.md, rules P1 to P13, P15, P17.
 *
 * @param out    [out] the partitioner
 * @param client need not be connected yet
 * @return 0, or
 *   DIVVY_EINVAL       a NULL pointer, a config without its INIT macro, a path that is not absolute or that ZooKeeper
 *                      refuses, no items, an empty or a repeated item, a negative time or one over ten years, an
 *                      unknown choice, an identifier that is empty or cannot stand in a node's name, DIVVY_ASSIGN_FUNC
 *                      without a function or the reverse, a zone that is no UTF-8, static_membership without an
 *                      identifier, rejoin_delay_ms without static_membership, max_moves above 4294967295,
 *                      DIVVY_ORDER_NUMERIC with an item that is no decimal number, and weight, zone, max_moves,
 *                      static_membership, tags, item_cap or min_members with an assignment that is no plan; a
 *                      load_unit, a load_interval_ms, a load_floor, tags, an item_cap or a min_members that is none
 *   DIVVY_E2BIG        an item whose lock's path is longer than 64 KiB, an identifier or a zone over 512 bytes, more
 *                      than 1,000,000 items
 *   DIVVY_ENOMEM       allocation failed; nothing changed
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH, DIVVY_EACCES  the client has ended
 *   DIVVY_EFORK        called in the child of a fork
 */
DIVVY_API int divvy_partitioner_create(divvy_partitioner **out, divvy_client *client,
                                       const divvy_partitioner_config *config);

/**
 * Returns the state now. A caller that sees DIVVY_RELEASE here has been told of it, and may release it.
 * Thread: any.
 * @return DIVVY_FAILURE for NULL, and once the client is closed
 */
DIVVY_API divvy_partition_state divvy_partitioner_state(const divvy_partitioner *p);

/**
 * Returns a number that grows with each entry into a state, so that two states of one name are told apart. After this
 * call the user has been told of the state. Thread: any.
 * @return 0 for NULL
 */
DIVVY_API uint64_t divvy_partitioner_state_id(const divvy_partitioner *p);

/**
 * Waits until the state's number differs from since_state_id. After this call the user has been told of the state.
 *
 * No change is missed if the number was read before all else that was looked at: a change after that ends the wait at
 * once. Items that are gained in DIVVY_ALLOCATING do not change the number. So wait no longer than these may lie idle:
 * 100 ms costs ten short turns a second. A signal ends the wait only where `interrupted` of the client's config says
 * so.
 *
 * Thread: any; drives the loop itself in manual mode.
 * @param since_state_id from divvy_partitioner_state_id()
 * @param timeout_ms     -1: for ever; 0: only look
 * @return 0, or
 *   DIVVY_ETIMEDOUT  the number was the same until the time was over
 *   DIVVY_ECLOSED    the client was closed
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     p is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_partitioner_wait_change(divvy_partitioner *p, uint64_t since_state_id, int64_t timeout_ms);

/**
 * Waits until the share is complete. After this call the user has been told of the state.
 *
 * Thread: any; drives the loop itself in manual mode.
 * @return 0 in DIVVY_ACQUIRED, or
 *   DIVVY_ETIMEDOUT  still DIVVY_ALLOCATING when the time was over
 *   DIVVY_ESTATE     DIVVY_RELEASE or DIVVY_FAILURE: see divvy_partitioner_state()
 *   DIVVY_ECLOSED    the client was closed
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     p is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_partitioner_wait_for_acquire(divvy_partitioner *p, int64_t timeout_ms);

/**
 * Says that work has ended on all items that are revoked or were lost. Takes effect before it returns; the locks are
 * given back by themselves. The next state is DIVVY_ALLOCATING, or DIVVY_RELEASE again with a new number when more must
 * go.
 *
 * Only a RELEASE that the user was told of is released: by divvy_partitioner_state(), _state_id(), a wait,
 * _partition(), or a started on_state or on_items. So a second call cannot release items that nobody stopped working
 * on. Thread: any. When several threads share a partitioner, use divvy_partitioner_release_set_id().
 * @return 0, or
 *   DIVVY_ESTATE  not in DIVVY_RELEASE, or in one that nobody was told of: look at the state again
 *   DIVVY_ECLOSED  the client was closed
 *   DIVVY_EFORK    called in the child of a fork
 *   DIVVY_EINVAL   p is NULL
 */
DIVVY_API int divvy_partitioner_release_set(divvy_partitioner *p);

/**
 * Does the same for several threads: releases the RELEASE with this number and no other.
 * @param state_id from divvy_partitioner_state_id(), read before work was stopped
 * @return as divvy_partitioner_release_set(); DIVVY_ESTATE also when the state has another number now
 */
DIVVY_API int divvy_partitioner_release_set_id(divvy_partitioner *p, uint64_t state_id);

/**
 * Returns a snapshot of what is owned now. After this call the user has been told of the state.
 *
 * Ownership: release with divvy_partition_unref(). Empty in DIVVY_FAILURE and past the session's deadline.
 * Thread: any.
 * @return NULL for NULL, and when allocation failed
 */
DIVVY_API divvy_partition *divvy_partitioner_partition(divvy_partitioner *p);

/**
 * Returns whether `item` is ours, not revoked, and the session within its deadline. A cheap check before each piece of
 * work. Sends nothing, takes no lock. For work that goes on while items come and go, as in threads of your own, use
 * divvy_partitioner_owns_token(). Thread: any.
 * @return 1 or 0; 0 for NULL, for an unknown item and in the child of a fork
 */
DIVVY_API int divvy_partitioner_owns(const divvy_partitioner *p, const char *item);

/**
 * Returns whether `item` is ours under this very token, not revoked, and the session within its deadline.
 *
 * A worker asks with the token that its work began with. divvy_partitioner_owns() is not enough for it: after a lost
 * session and a rejoin, or after a release, the item may be ours again under a newer token. Others may have worked on
 * the item between the two ownerships, and a new worker of ours may have begun. Thread: any; as cheap.
 * @param token from divvy_partition_token() or divvy_items_event.gained_tokens
 * @return 1 or 0; 0 for NULL, for an unknown item, a token that is not positive, and in the child of a fork
 */
DIVVY_API int divvy_partitioner_owns_token(const divvy_partitioner *p, const char *item, int64_t token);

/**
 * Says that this member is ready to work on an item that was told as `prepare`. It then asks for the item, and the
 * present owner lets it go. An item that is not to be prepared now is passed over, since it may be ours, or another's,
 * already.
 *
 * Thread: any.
 * Source: docs/protocol.md, T2.
 * @param item NULL: all that were told, or seen by divvy_partitioner_to_prepare(), so far
 * @return 0, or
 *   DIVVY_ENOENT   the pool has no such item, as far as this member knows
 *   DIVVY_ECLOSED  the client was closed
 *   DIVVY_EFORK    called in the child of a fork
 *   DIVVY_EINVAL   p is NULL
 */
DIVVY_API int divvy_partitioner_prepared(divvy_partitioner *p, const char *item);

/**
 * Returns a snapshot of the items that the user should prepare for now, for programs that poll. These items are not
 * ours yet, and have no tokens. divvy_partitioner_prepared(p, NULL) then means them, too.
 *
 * Ownership: release with divvy_partition_unref(). Empty without prepare_timeout_ms.
 * Thread: any.
 * @return NULL for NULL, and when allocation failed
 */
DIVVY_API divvy_partition *divvy_partitioner_to_prepare(divvy_partitioner *p);

/**
 * Releases everything, leaves the party, and ends in DIVVY_FAILURE. Work on all items must have stopped before the
 * call. The last member to leave a pool without kazoo members also removes the empty lock directories. A static member
 * keeps its place in the plan: see divvy_partitioner_leave().
 *
 * Thread: any; drives the loop itself in manual mode.
 * @param timeout_ms for how long to wait for the deletes; they go on by themselves afterwards
 * @return 0 when all of ours is gone from ZooKeeper, or
 *   DIVVY_ETIMEDOUT  not all deletes were confirmed in time
 *   DIVVY_ELOST      the session is lost: the servers delete the nodes
 *   DIVVY_ECLOSED    the client was closed
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback with a timeout_ms other than 0
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     p is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_partitioner_finish(divvy_partitioner *p, int64_t timeout_ms);

/** Flags of divvy_partitioner_leave(). */
enum {
    DIVVY_LEAVE_WORKING = 1 /**< work goes on: each item stays until its next owner is ready for it */
};

/**
 * Ends, and gives up the place in the plan. The plan deals this member's items to others first, so that these wait in
 * the queues when the items are released. Then it goes on as divvy_partitioner_finish(). A static member keeps its
 * place after finish(), for a process that comes back within rejoin_delay_ms; this call gives it up at once. Where no
 * plan decides it is finish().
 *
 * Without flags work on all items must have stopped before the call, as with finish(): once the plan is written, the
 * items go.
 *
 * With DIVVY_LEAVE_WORKING work goes on, and the items are handed over. The member gains nothing from now on. Its items
 * are leaving, and are revoked when their next owners are ready; the user answers each RELEASE as always. The member
 * ends in DIVVY_FAILURE when nothing is left. After handover_timeout_ms from the call, or when the plan cannot be
 * written, it revokes what is left at once. Where no plan decides, or with handover_timeout_ms 0, all is revoked as
 * soon as others may have it. Call it again without flags, or finish(), to end at once: then work must have stopped.
 *
 * Thread: any; drives the loop itself in manual mode. Without on_state another thread has to answer RELEASE, or the
 * caller does, between calls with a timeout_ms of 0.
 * Source: docs/protocol.md, D14, T8.
 * @param flags      0 or DIVVY_LEAVE_WORKING
 * @param timeout_ms for how long to wait; what is not done then goes on by itself, unless divvy_partitioner_finish() or
 *                   divvy_partitioner_destroy() end it: a place that was not given up by then is kept
 * @return 0 when the place is given up and all of ours is gone from ZooKeeper, or
 *   DIVVY_ETIMEDOUT  not yet
 *   DIVVY_EACCES and others: the plan cannot be written; the member has finished all the same, and its place stays
 *   DIVVY_ECANCELED  the member failed by allocate_timeout_ms before, or no plan was written within
 *                    handover_timeout_ms; likewise
 *   DIVVY_ELOST      the session is lost: the servers delete the nodes; the place may not have been given up
 *   DIVVY_ECLOSED    the client was closed
 *   DIVVY_ESTATE     with DIVVY_LEAVE_WORKING: the member has failed; stop all work, then call finish()
 *   another error    with DIVVY_LEAVE_WORKING: the member failed meanwhile, by divvy_partitioner_failure(); likewise
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback with a timeout_ms other than 0
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     p is NULL, timeout_ms below -1, or flags has others
 */
DIVVY_API int divvy_partitioner_leave(divvy_partitioner *p, unsigned flags, int64_t timeout_ms);

/**
 * Returns 1 if another live member has the identifier of this static one, and was created later: for a restart in
 * place. That member takes over, item by item, what this one has; this one gains nothing while the other lives. A
 * process that is replaced, and owns nothing more, can finish: nothing moves. So can one that stalled, lost its
 * session, and comes back beside its successor.
 *
 * Thread: any. Source: docs/protocol.md, D38, T9.
 * @return 0 for NULL, and for a member that is not static
 */
DIVVY_API int divvy_partitioner_is_replaced(const divvy_partitioner *p);

/**
 * Returns why the partitioner is in DIVVY_FAILURE.
 * @param message [out] may be NULL; at most message_bytes with the NUL
 * @return the error (DIVVY_ECANCELED after finish() and leave()), 0 when it has not failed, DIVVY_EINVAL for NULL,
 *   DIVVY_EFORK in the child of a fork
 */
DIVVY_API int divvy_partitioner_failure(const divvy_partitioner *p, char *message, size_t message_bytes);

/**
 * Returns the identifier of this member, the generated one where none was given.
 * Ownership: lives as long as the partitioner. Thread: any.
 * @return NULL for NULL
 */
DIVVY_API const char *divvy_partitioner_identifier(const divvy_partitioner *p);

/**
 * Returns whether our own node is in the pool's party now, as far as this process knows: not before it is made, nor
 * from the loss of the session until it is made again. Thread: any, callbacks included; sends nothing.
 * @return 1 or 0; 0 for NULL, and in the child of a fork
 */
DIVVY_API int divvy_partitioner_joined(const divvy_partitioner *p);

/** Tells the path of our node in the pool's party; otherwise as divvy_party_node() of party.h. */
DIVVY_API size_t divvy_partitioner_node(const divvy_partitioner *p, char *path, size_t path_bytes);

/**
 * Asks for another set of items to be divided, by all members, from now on.
 *
 * Goes where all members follow plans (DIVVY_ASSIGN_AUTO or _STICKY, no kazoo members): the set stands in the plan, so
 * one call at any member changes it for all, at one moment. Items that are in both sets stay where they are; new ones
 * are dealt out; those that are gone are revoked, with DIVVY_REASON_SET, and are still locked until their owners
 * release them. The call only asks: the plan follows. The last one of several calls counts; while the party cannot
 * follow plans it waits.
 *
 * What members are configured with stays as it is; those that join later follow the plan, too. They are warned if their
 * set differs (DIVVY_WARN_ITEMS_DIFFER); this member, whose user asked, is not. A set that shall last belongs in the
 * configuration as well: a plan takes up the configured set once all live members have it, if it differs from the last
 * one taken up, or if all members were started after this call; and where a member does not follow plans each goes by
 * its configuration. A lost session (DIVVY_REJOIN) is no start.
 *
 * Ownership: all is copied. Thread: any.
 * @param items at least one, no empty, no repeated one; up to 1,000,000; in any order
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, no items, an empty or a repeated item; with DIVVY_ORDER_NUMERIC one that is no number
 *   DIVVY_E2BIG   more than 1,000,000 items, or one whose lock's path is longer than 64 KiB
 *   DIVVY_ESTATE  the members divide by a rule of names now, because one of them does not follow plans or this one does
 *                 not: then each goes by its own configuration, which never changes while it lives; or this one has
 *                 failed, finished, or leaves
 *   DIVVY_ENOMEM  allocation failed; nothing changed
 *   DIVVY_ECLOSED, DIVVY_EFORK
 * Source: docs/protocol.md, rules D17 and D20.
 */
DIVVY_API int divvy_partitioner_set_items(divvy_partitioner *p, const char *const *items, size_t item_count);

/**
 * Changes this member's weight. The plan that contains it is written in the background, at once or, where none decides,
 * as soon as one does; what moves then is told with DIVVY_REASON_WEIGHT or _DRAIN. The last one of several calls
 * counts.
 *
 * A static member's weight outlives a restart, as it is the plan's: config.weight counts when the member is new to the
 * plan, or when it differs from the weight at the member's last start. Another member's is set again when its session
 * is lost and it rejoins (DIVVY_REJOIN). An administrator may change it too (`divvy drain`); what was said last counts.
 * When all weigh nothing, nothing is taken from anyone.
 *
 * Thread: any. Sends nothing itself: work starts with the client's next turn.
 * Source: docs/protocol.md, D15.
 * @param weight 1000 is usual; 0: drained, its items go to others
 * @return 0: it is on its way, or
 *   DIVVY_EINVAL  NULL, or a member with an assignment that is no plan (see config.assign)
 *   DIVVY_ESTATE  the member has failed, finished, or leaves
 *   DIVVY_ECLOSED, DIVVY_EFORK
 */
DIVVY_API int divvy_partitioner_set_weight(divvy_partitioner *p, uint32_t weight);

/**
 * Tells how much work one item is now, so that the pool can deal by load: in the unit of config.load_unit, such as
 * requests a second, or cores of processor time.
 *
 * Call it as often as you like, for each item that this member owns. The value holds until the next one. Sends nothing
 * itself. The library smooths the values (half-life: a minute), and tells the pool of them at most each
 * config.load_interval_ms. An item that is not ours now is passed over. So is a load that is told after the member has
 * failed or finished.
 *
 * A pool where nobody calls this deals by count and weight alone, and sends nothing for loads.
 *
 * Thread: any.
 * Source: docs/protocol.md, D46.
 * @param load a finite number >= 0
 * @return 0, or
 *   DIVVY_EINVAL  NULL (where p is, divvy_client_error(NULL) says so); a load that is negative, infinite or not a
 *                 number; or a member with an assignment that is no plan (see config.assign)
 *   DIVVY_ENOENT  the pool has no such item, as far as this member knows
 *   DIVVY_ENOMEM  allocation failed; the load is as it was
 *   DIVVY_ECLOSED, DIVVY_EFORK
 */
DIVVY_API int divvy_partitioner_set_load(divvy_partitioner *p, const char *item, double load);

/**
 * Leaves in the background and releases the object. Locks of items still shown are given back now: stop work before.
 * Thread: any. Rule 6 of client.h. @param p NULL is allowed
 */
DIVVY_API void divvy_partitioner_destroy(divvy_partitioner *p);

/** Does so without waiting, as divvy_lock_destroy_async() of lock.h. `gone` takes the place of on_destroyed. */
DIVVY_API void divvy_partitioner_destroy_async(divvy_partitioner *p, void (*gone)(void *user), void *user);

DIVVY_EXTERN_C_END

#endif
