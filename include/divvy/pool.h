/**
 * @file pool.h
 * The operator's hand: requests of a person or a program to a pool that others are the members of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Members of a pool follow a plan (partitioner.h). These calls change what the plan says; all members follow it by
 * themselves, in rounds if the plan limits moves. The caller needs no member of its own. Each call writes the plan as a
 * member would, and returns once the plan says what was asked. It does not wait until items are where the plan wants
 * them.
 *
 * Wishes. A pin, a move, a pause, a needed tag and an option stand in the plan until they are undone, with who asked,
 * when and why. `divvy status` and `divvy explain` show them, and the history tells of each call. An item has a pin or
 * a move, the later one.
 *
 * Who must be there. The pool must follow a plan: none of its members uses kazoo, or a release of divvy without plans.
 * Wishes need members that know them besides. While an older member is there, those that stand wait: `divvy status`
 * says so. They are in force again when it has gone.
 *
 * Twice the same. What is so already is no error, and writes nothing: `changed` of the result is 0. So a call whose
 * answer was lost may be made again.
 */
#ifndef DIVVY_POOL_H
#define DIVVY_POOL_H

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/** The outcome of a request. Initialise with DIVVY_POOL_RESULT_INIT; filled in when a call returns 0. */
typedef struct {
    size_t size;            /**< sizeof of this struct, set by the INIT macro */
    int changed;            /**< 1: the plan was changed, or would be by a dry run; 0: it said so already */
    uint64_t generation;    /**< of the plan that says so */
    size_t moves;           /**< items that have another owner by it than by the plan before, or none */
    size_t items;           /**< that the member has by it; 0 where the request is about none */
    size_t items_before;    /**< that the member had */
    uint32_t weight;        /**< of the member by it; 0 where the request is about none */
    uint32_t weight_before; /**< of the member, by the plan before */
    int absent;             /**< 1: the member that an item is to go to is not there, and the plan waits for it */
} divvy_pool_result;

#define DIVVY_POOL_RESULT_INIT \
    { sizeof(divvy_pool_result), 0, 0, 0, 0, 0, 0, 0, 0 }

/** How something is asked. Initialise with DIVVY_POOL_REQUEST_INIT, then set what differs. Copied. */
typedef struct {
    size_t size;               /**< sizeof of this struct, set by the INIT macro */
    const char *by;            /**< who asks, at most 128 bytes of UTF-8; NULL: host-pid-number */
    const char *why;           /**< for which reason, at most 512 bytes of UTF-8; NULL: not said */
    int64_t timeout_ms;        /**< -1: for ever; default 10000 */
    int dry_run;               /**< 1: nothing is written, and the result tells what would be. Default 0 */
    divvy_pool_result *result; /**< the caller's, until the call returns; NULL: not wanted */
} divvy_pool_request;

#define DIVVY_POOL_REQUEST_INIT \
    { sizeof(divvy_pool_request), NULL, NULL, 10000, 0, NULL }

enum {
    DIVVY_POOL_CONFIGURED_WEIGHT = -1 /**< for divvy_pool_set_weight(): the one that the member was started with */
};

/**
 * Writes the defaults of DIVVY_POOL_REQUEST_INIT to *request, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param request [out] caller's memory; NULL: does nothing
 * @param size    sizeof *request, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_pool_request_init(divvy_pool_request *request, size_t size);

/** Writes the defaults of DIVVY_POOL_RESULT_INIT to *result, likewise. Thread: any. */
DIVVY_API void divvy_pool_result_init(divvy_pool_result *result, size_t size);

/**
 * Gives a member another weight: of the items it gets so many as its weight is of the sum of all. 0 drains it.
 *
 * A drained member keeps running, with nothing to do. A static member keeps its weight when it restarts; any other has
 * it until it ends. divvy_partitioner_set_weight() is the same for a member of one's own.
 *
 * Ownership: all texts and `request` are copied. Thread: any, but not inside a callback; drives the loop itself in
 *   manual mode. Callbacks of the client may run in it.
 * Source: docs/protocol.md, D15, D51.
 *
 * @param path    the pool's: that of its members' divvy_partitioner_config
 * @param member  its identifier or, where several have that, its node's name in `path`/party
 * @param weight  0 to UINT32_MAX, or DIVVY_POOL_CONFIGURED_WEIGHT
 * @param request NULL: as DIVVY_POOL_REQUEST_INIT
 * @return 0 when the plan says so, or
 *   DIVVY_ENOENT     there is no pool at `path`, or it has no such member
 *   DIVVY_ESTATE     names decide, because of a member that divvy_client_error() names; nobody is in the pool; or the
 *                    member would be drained, and no other is left to take its items
 *   DIVVY_EINVAL     a NULL pointer, a path that ZooKeeper refuses or "/" without a chroot, an empty name, a weight out
 *                    of range, a `by` or `why` that is too long or not UTF-8, a request without its INIT macro; or
 *                    several members have the identifier: the message lists their nodes
 *   DIVVY_E2BIG      a name is longer than any member's, or item's
 *   DIVVY_EUNSUPPORTED  a later release of divvy wrote the plan
 *   DIVVY_EACCES     the access list denies reading the pool, or writing its plan
 *   DIVVY_ETIMEDOUT  the time has passed: no server answered, or the plan is broken, not there yet, or without the
 *                    member yet, which divvy_client_error() tells. A write may have been made
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 *   DIVVY_ELIMIT     the pool has more members than a plan can have
 *   DIVVY_ENOMEM     an allocation failed
 *   DIVVY_EFORK      called in the child of a fork
 */
DIVVY_API int divvy_pool_set_weight(divvy_client *client, const char *path, const char *member, int64_t weight,
                                    const divvy_pool_request *request);

/**
 * Has a pool no longer wait for a static member that is absent: its items are dealt to others now, and not when its
 * `rejoin_delay_ms` has passed. When it comes back it is a new member.
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D13, D51.
 *
 * @param member its identifier
 * @return as divvy_pool_set_weight(), and
 *   DIVVY_ESTATE  the member is there
 */
DIVVY_API int divvy_pool_forget(divvy_client *client, const char *path, const char *member,
                                const divvy_pool_request *request);

/**
 * Has an item go to a member, and stay with it until divvy_pool_unpin(), also over restarts of the member.
 *
 * While no member of that identifier is there the item is dealt as any other; `absent` of the result says so. Several
 * calls for one item: the last one counts. A pin takes the place of a move.
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D48, D51.
 *
 * @param item   one of the pool's
 * @param member its identifier
 * @return as divvy_pool_set_weight(), and
 *   DIVVY_ENOENT  the pool has no such item. A member that is not there is no error
 *   DIVVY_ESTATE  a member of an earlier release is there, which knows no wishes; the message names it
 *   DIVVY_ELIMIT  4,096 wishes stand in the plan
 */
DIVVY_API int divvy_pool_pin(divvy_client *client, const char *path, const char *item, const char *member,
                             const divvy_pool_request *request);

/**
 * Undoes a pin or a move of an item, which is then dealt as any other. It may stay where it is.
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D48, D51.
 *
 * @return as divvy_pool_pin(). An item that is neither pinned nor moved is no error
 */
DIVVY_API int divvy_pool_unpin(divvy_client *client, const char *path, const char *item,
                               const divvy_pool_request *request);

/**
 * Has an item go to a member, and stay with it until that member ends, or divvy_pool_unpin().
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D48, D51.
 *
 * @param member its identifier or, where several have that, its node's name in `path`/party
 * @return as divvy_pool_pin(), and
 *   DIVVY_ENOENT  the pool has no such member
 *   DIVVY_ESTATE  the member leaves
 */
DIVVY_API int divvy_pool_move(divvy_client *client, const char *path, const char *item, const char *member,
                              const divvy_pool_request *request);

/**
 * Has nobody work on an item until divvy_pool_resume(): its owner is told to release it, and it is dealt to nobody.
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D48, D51.
 *
 * @return as divvy_pool_pin()
 */
DIVVY_API int divvy_pool_pause(divvy_client *client, const char *path, const char *item,
                               const divvy_pool_request *request);

/**
 * Undoes a pause. The item goes back to the member that had it, if that is there.
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D48, D51.
 *
 * @return as divvy_pool_pin(). An item that is not paused is no error
 */
DIVVY_API int divvy_pool_resume(divvy_client *client, const char *path, const char *item,
                                const divvy_pool_request *request);

/**
 * Has items need a tag: only members that have it (`tags` of divvy_partitioner_config) own them. An item whose tag
 * nobody has is without an owner. The exact name of an item counts first, then the longest prefix.
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D48, D51.
 *
 * @param item an item of the pool; or a prefix and `*`, also one that no item has yet
 * @param tag  1 to 64 of A-Z, a-z, 0-9, "_", ".", "-"; NULL: they need none
 * @return as divvy_pool_pin(), and
 *   DIVVY_EINVAL  it is no tag
 */
DIVVY_API int divvy_pool_need(divvy_client *client, const char *path, const char *item, const char *tag,
                              const divvy_pool_request *request);

/**
 * Gives an option of a pool another value, whatever its members were started with: "max-moves" (how many items move in
 * a round; 0: all at once), "round-timeout" (how long a round may take, in milliseconds), or "imbalance-max" (how far
 * above the mean a member may be before items move for their load; 0.2 is a fifth).
 *
 * Ownership and thread: as divvy_pool_set_weight(). Source: docs/protocol.md, D16, D48, D51.
 *
 * @param name  one of the three
 * @param value a decimal number as text; NULL: what the members were started with
 * @return as divvy_pool_pin(), and
 *   DIVVY_EINVAL  there is no such option, or it cannot have that value; the message says which there are
 */
DIVVY_API int divvy_pool_set_option(divvy_client *client, const char *path, const char *name, const char *value,
                                    const divvy_pool_request *request);

DIVVY_EXTERN_C_END

#endif
