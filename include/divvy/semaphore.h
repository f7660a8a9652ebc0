/**
 * @file semaphore.h
 * Semaphore: a pool of numbered slots. No more of them are held at a time than its limit says.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shares its path with kazoo's Semaphore. All acquires stand in one queue, first come, first served. One transaction
 * admits the head, so that the limit is never passed. Slots have numbers from 0: two holders never have the same one at
 * the same time (kazoo's holders have none). An object gets the slots that it had before, where they are free. While
 * nobody stands in the queue it gets them without entering it, in one round trip instead of two.
 *
 * The limit stands in the pool, for all to see, and all are to agree on it; divvy_semaphore_resize() changes it while
 * the pool is in use. A limit that becomes lower takes no slot from anybody: nobody is admitted until there is room
 * below it.
 *
 * What holding means. divvy_semaphore_held() says yes from the moment an acquire ends with 0 until the slots are
 * released or lost, and never at or after the deadline of the session clock (docs/protocol.md, C1): before the servers
 * can have given them to somebody else. Work that takes longer than the answer is good for shows
 * divvy_semaphore_token() and the slot's number to what it works on, which refuses smaller tokens than it has seen for
 * that slot.
 *
 * Losing it. `on_lost` is called when the session's deadline has passed, when the session is lost, or when somebody
 * else has deleted our node: once for each time that slots were held, unless they were released, or the object
 * destroyed, or the client closed, before. A deleted node is found by the session's heartbeats, or half a session
 * timeout later at the latest. Slots can be acquired again after a loss, with the same object: an acquire that ends
 * with 0 does so after that on_lost has returned.
 */
#ifndef DIVVY_SEMAPHORE_H
#define DIVVY_SEMAPHORE_H

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/** One user of a semaphore at a path. Opaque. Lifetime: rules 2 and 6 of client.h. */
typedef struct divvy_semaphore divvy_semaphore;

/** The behaviour when the pool has a limit already. A pool without a limit is given ours. */
enum {
    DIVVY_LIMIT_ERROR,   /**< another limit is an error, as with kazoo; checked until the pool's was found to be ours
                              once: from then on it may change, by divvy_semaphore_resize() */
    DIVVY_LIMIT_STORED,  /**< the pool's is taken */
    DIVVY_LIMIT_PROVIDED /**< ours is written by each acquire, for a configuration that may have changed since */
};

/** The configuration of a semaphore. Initialise with DIVVY_SEMAPHORE_CONFIG_INIT, then set what differs. Copied. */
typedef struct {
    size_t size;            /**< sizeof of this struct, set by the INIT macro */
    const char *path;       /**< absolute, not "/", the same for all; made, with its parents, when it is missing. The
                                 queue stands beside it, at the same path with "-__lock__" */
    const char *identifier; /**< what divvy_semaphore_holders() shows; UTF-8; NULL: host-pid-number */
    uint32_t limit;         /**< slots of the pool, 1 to INT32_MAX; default 1 */
    uint32_t count;         /**< slots that an acquire takes, all or nothing; default 1 */
    int limit_policy;       /**< DIVVY_LIMIT_ERROR (default), _STORED, _PROVIDED */
    /** 1: what is missing of the path is made of container nodes, which the servers (3.5.3 and later; older ones are
     * given persistent nodes) delete within some minutes when nobody is left in them. The pool's limit goes with it.
     * Not where kazoo processes use the path: kazoo's Lock remembers that it exists, and fails with NoNodeError when it
     * has gone (kazoo #563). Default 0 */
    int container;
    void (*on_lost)(divvy_semaphore *semaphore, void *user); /**< slots were held and are no longer. May be NULL */
    void *user;                                              /**< handed to on_lost */
} divvy_semaphore_config;

#define DIVVY_SEMAPHORE_CONFIG_INIT \
    { sizeof(divvy_semaphore_config), NULL, NULL, 1, 1, DIVVY_LIMIT_ERROR, 0, NULL, NULL }

/**
 * Writes the defaults of DIVVY_SEMAPHORE_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_semaphore_config_init(divvy_semaphore_config *config, size_t size);

/**
 * Makes a semaphore object. Sends nothing: the queue is entered by an acquire.
 *
 * Several objects for one path may be made, in one process and on one client too; each holds slots of its own.
 * Ownership: `config` is copied. On success release *out with divvy_semaphore_destroy(). On error *out is NULL and
 * there
 *   is nothing to release.
 * Thread: any. No callback runs inside this call.
 * Source: the semaphore of Consul's guide, and kazoo.recipe.lock.Semaphore; docs/protocol.md, rules E1 to E15.
 *
 * @param out    [out] the semaphore
 * @param client need not be connected yet
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, a path that ZooKeeper refuses or "/", an identifier that is empty or not UTF-8, a
 *                 limit or a count out of range, an unknown policy, a config without its INIT macro
 *   DIVVY_E2BIG   the identifier is longer than 2048 bytes
 *   DIVVY_ENOMEM  an allocation failed
 *   DIVVY_EFORK   called in the child of a fork
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
DIVVY_API int divvy_semaphore_create(divvy_semaphore **out, divvy_client *client, const divvy_semaphore_config *config);

/**
 * Acquires `count` slots, all of them or none, and waits for that for timeout_ms at most, however often the wait is
 * interrupted on the way.
 *
 * They are given in the order in which contenders came to the queue: nobody overtakes one who waits for more slots. One
 * that tried without the queue, in vain, comes to it a round trip later (docs/protocol.md, E14). A session that is lost
 * meanwhile does not end the wait of a client of divvy_client_open(): it enters the queue again, at its end, on the
 * next session, in what is left of the time. When the call ends with an error, whatever stands of ours in the pool and
 * in the queue is given up: the deletion is sent, and repeated until it is certain, in the background. Slots may be
 * acquired again at once.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever; 0: try, see divvy_semaphore_try_acquire()
 * @return 0 when the slots are held, or
 *   DIVVY_ETIMEDOUT  the time has passed
 *   DIVVY_EQUOTA     the time has passed, and a quota of the servers kept us from the queue (DIVVY_WARN_QUOTA)
 *   DIVVY_EBUSY      timeout_ms is 0, and too few slots are free, or somebody is before us
 *   DIVVY_EALREADY   this object holds slots; nothing changed
 *   DIVVY_EINPROGRESS  another acquire of this object waits; nothing changed
 *   DIVVY_EDIFFERS   the pool has another limit (DIVVY_LIMIT_ERROR); divvy_client_error() tells both numbers
 *   DIVVY_E2BIG      `count` is more than the pool's limit, which may have been lowered while we waited; likewise
 *   DIVVY_ELIMIT     no room for one more ephemeral node in the session's budget (a try: or for watches)
 *   DIVVY_EEXHAUSTED  the sequence numbers of the queue are used up (docs/protocol.md, N6): delete it while nobody
 *                    contends
 *   DIVVY_EPROTO     the data of the pool are not empty, and no number
 *   DIVVY_ESTATE     `count` is more than 1 while a kazoo process holds or waits, as it would count ours as one; or the
 *                    semaphore is being destroyed
 *   DIVVY_ECANCELED  divvy_semaphore_cancel() was called for it
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_ECLOSED    the client was closed, or the semaphore destroyed, meanwhile
 *   DIVVY_ELOST      the session is lost, and there is no other (attached clients)
 *   DIVVY_EAUTH      the servers refused the credentials
 *   DIVVY_EACCES     the access list of the path denies creating, reading, writing, or deleting
 *   DIVVY_ENOENT     the path is deleted as often as it is made; or it lies below a chroot that does not exist
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EINVAL     semaphore is NULL, or timeout_ms below -1; or the path lies below an ephemeral node
 *   DIVVY_ENOMEM     an allocation failed
 *   DIVVY_EFORK      called in the child of a fork
 */
DIVVY_API int divvy_semaphore_acquire(divvy_semaphore *semaphore, int64_t timeout_ms);

/**
 * Acquires slots if they are free and nobody is before us: divvy_semaphore_acquire() with 0. Nothing is left behind.
 *
 * Takes two round trips. Where there is no connection, no answer, or no proof yet that the session lives (attached
 * clients begin without), it waits for that, 900 ms at most, and ends with DIVVY_ETIMEDOUT.
 * Thread: any, but not inside a callback (there: divvy_semaphore_acquire_async() with 0).
 * @return as divvy_semaphore_acquire()
 */
DIVVY_API int divvy_semaphore_try_acquire(divvy_semaphore *semaphore);

/**
 * Begins to acquire slots; `done` is told how it ended.
 *
 * After a return of 0 `done` is called exactly once, as a callback (rule 5 of client.h): with what
 * divvy_semaphore_acquire() would have returned; with DIVVY_ECANCELED also when the semaphore is destroyed or the
 * client closed before. So divvy_semaphore_destroy() outside a callback returns after it; inside one, `done` follows,
 * and `semaphore` is then good for comparing only. It may call anything, such as divvy_semaphore_release(); in it
 * divvy_client_error() tells more of an error. After an error of this call `done` is not called.
 *
 * Thread: any, callbacks included.
 * @param timeout_ms as divvy_semaphore_acquire()
 * @param done       not NULL
 * @param user       handed to done
 * @return 0, or DIVVY_EALREADY, DIVVY_EINPROGRESS, DIVVY_ECANCELED, DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH,
 *   DIVVY_ELIMIT, DIVVY_ESTATE, DIVVY_EINVAL, DIVVY_ENOMEM, DIVVY_EFORK as divvy_semaphore_acquire()
 */
DIVVY_API int divvy_semaphore_acquire_async(divvy_semaphore *semaphore, int64_t timeout_ms,
                                            void (*done)(divvy_semaphore *semaphore, int result, void *user),
                                            void *user);

/**
 * Releases the slots. Waits for nothing: divvy_semaphore_held() says no at once, on_lost is not called for this
 * ownership, and the deletion of our node is sent, and repeated on later connections until it is certain.
 *
 * Thread: any, callbacks included.
 * @return 0, or
 *   DIVVY_ENOTHELD  none are held, or they were lost before; nothing changed
 *   DIVVY_EINVAL    semaphore is NULL
 *   DIVVY_EFORK
 */
DIVVY_API int divvy_semaphore_release(divvy_semaphore *semaphore);

/**
 * Waits until no node of this object is left at the servers: after a release, a cancel, or an acquire that failed. Then
 * a try of another client finds it free, unless others contend. Where nothing is left it returns at once; while it is
 * held, or acquired, it waits for the end of that too.
 *
 * Thread: any, but not inside a callback, unless nothing is left; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever; the deletion goes on in any case
 * @return 0, also when a node stays because the access list denies its deletion (the log tells that), or
 *   DIVVY_ETIMEDOUT  not yet
 *   DIVVY_ELOST      the session was lost with a node on it, and nothing was acquired since: the servers delete it
 *                    when the session's timeout has passed, at the latest
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_ECLOSED    the client was closed meanwhile
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     semaphore is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_semaphore_wait_gone(divvy_semaphore *semaphore, int64_t timeout_ms);

/**
 * Returns the number of the acquire that waits, or else of the next one, for divvy_semaphore_cancel(). The numbers
 * begin at 1. Each call of an acquire takes the next, whatever becomes of it, but for one that ends with
 * DIVVY_EINPROGRESS, DIVVY_EINVAL, DIVVY_EDEADLK, DIVVY_EFORK, or without memory for an asynchronous one.
 *
 * A thread that may be told to stop reads the number, then acquires; who stops it cancels that number. Such a cancel is
 * not lost when it comes before the acquire has begun, and ends no other acquire when it comes late.
 *
 * Thread: any, callbacks included.
 * @return 0 for NULL, and in the child of a fork
 */
DIVVY_API uint64_t divvy_semaphore_attempt_id(const divvy_semaphore *semaphore);

/**
 * Ends an acquire, in whatever thread: with DIVVY_ECANCELED. One that waits ends at once. One that has not begun ends
 * when it is called; where it is asynchronous the call returns DIVVY_ECANCELED, and `done` is not called. Otherwise
 * this does nothing, neither now nor to a later acquire; slots that are held stay so.
 *
 * Thread: any, callbacks included.
 * @param attempt_id from divvy_semaphore_attempt_id(); 0: whichever waits now
 * @return 0, or DIVVY_EINVAL (semaphore is NULL), DIVVY_EFORK
 */
DIVVY_API int divvy_semaphore_cancel(divvy_semaphore *semaphore, uint64_t attempt_id);

/**
 * Returns whether slots are held now, by the session clock. Cheap: no request, no waiting. Thread: any, callbacks
 * included.
 * @return 1 or 0; 0 for NULL, and in the child of a fork
 */
DIVVY_API int divvy_semaphore_held(const divvy_semaphore *semaphore);

/**
 * Returns the fencing token of what is held: greater than that of every earlier holder of these slots. It is the czxid
 * of our node. Thread: any, callbacks included.
 * @return 0 when divvy_semaphore_held() says no
 */
DIVVY_API int64_t divvy_semaphore_token(const divvy_semaphore *semaphore);

/**
 * Returns the number of the slot that is held, the lowest where several are. Thread: any, callbacks included.
 * @return -1 when divvy_semaphore_held() says no
 */
DIVVY_API int divvy_semaphore_slot(const divvy_semaphore *semaphore);

/**
 * Returns the number of the i-th slot that is held, from the lowest. Several slots stand side by side where the pool
 * has such.
 * Thread: any, callbacks included.
 * @return -1 when divvy_semaphore_held() says no, or i is not below the count
 */
DIVVY_API int divvy_semaphore_slot_at(const divvy_semaphore *semaphore, uint32_t i);

/**
 * Changes the limit of the pool, for all that use it, by compare-and-set. The head of the queue is woken.
 *
 * From then on this object's own limit is the new one too. No slot is taken from a holder. A waiting acquire that wants
 * more slots than the new limit ends with DIVVY_E2BIG when its turn has come.
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param limit      1 to INT32_MAX
 * @param timeout_ms -1: for ever
 * @return 0 when the limit stands in the pool, or
 *   DIVVY_ESTATE     a kazoo process holds or waits: it would go on with the old limit
 *   DIVVY_ETIMEDOUT  no answer in time; the change may still come about
 *   DIVVY_EPROTO     the data of the pool are not empty, and no number
 *   DIVVY_EACCES     the access list denies it
 *   DIVVY_ENOENT     the chroot of an attached client's handle does not exist
 *   DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ECLOSED  the client has ended
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     semaphore is NULL, limit is 0 or above INT32_MAX, or timeout_ms below -1; or the path lies below
 *                    an ephemeral node
 *   DIVVY_ENOMEM     an allocation failed
 */
DIVVY_API int divvy_semaphore_resize(divvy_semaphore *semaphore, uint32_t limit, int64_t timeout_ms);

/** The holders of a semaphore's slots, and those that wait for some. Opaque, immutable. */
typedef struct divvy_holders divvy_holders;

/**
 * Returns the holders of slots now, in the order of their tokens. Only the identifier of kazoo's holders is known.
 *
 * Ownership: release *out with divvy_holders_free(). It is empty when nobody holds, and when there is no such path.
 * Records that cannot be understood are left out and counted: divvy_holders_skipped(). One read for each, at most 64
 * under way at a time.
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever
 * @return 0, or
 *   DIVVY_ETIMEDOUT  no answer in time
 *   DIVVY_EACCES     the access list denies reading
 *   DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ECLOSED  the client has ended
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     an argument is NULL, or timeout_ms below -1
 *   DIVVY_ENOMEM     an allocation failed
 */
DIVVY_API int divvy_semaphore_holders(divvy_semaphore *semaphore, divvy_holders **out, int64_t timeout_ms);

/** Returns the waiting acquires in the order of the queue, with the one that is being admitted. Otherwise as
 * divvy_semaphore_holders(). */
DIVVY_API int divvy_semaphore_contenders(divvy_semaphore *semaphore, divvy_holders **out, int64_t timeout_ms);

/** Returns the number of entries; 0 for NULL. */
DIVVY_API size_t divvy_holders_count(const divvy_holders *holders);
/** Returns how many more there are whose records could not be understood; 0 for NULL. */
DIVVY_API size_t divvy_holders_skipped(const divvy_holders *holders);
/** Returns the i-th one's identifier; NULL past the end. Strings live until divvy_holders_free(). */
DIVVY_API const char *divvy_holders_identifier(const divvy_holders *holders, size_t i);
/** Returns its host; "" when not known, NULL past the end. */
DIVVY_API const char *divvy_holders_host(const divvy_holders *holders, size_t i);
/** Returns its process; 0 when not known, and past the end. */
DIVVY_API int64_t divvy_holders_pid(const divvy_holders *holders, size_t i);
/** Returns since when it holds, or waits, by its own clock: "2026-01-31T12:00:00Z"; "" when not known, NULL past the
 * end. */
DIVVY_API const char *divvy_holders_time(const divvy_holders *holders, size_t i);
/** Returns its slot, the lowest where it has several; -1 when it has no number (kazoo), for contenders, and past the
 * end. */
DIVVY_API int divvy_holders_slot(const divvy_holders *holders, size_t i);
/** Returns how many slots it holds, or wants; 0 past the end. */
DIVVY_API uint32_t divvy_holders_slots(const divvy_holders *holders, size_t i);
/** Returns its token; for contenders the czxid of its node in the queue. 0 past the end. */
DIVVY_API int64_t divvy_holders_token(const divvy_holders *holders, size_t i);
/** Releases the list; NULL is allowed. */
DIVVY_API void divvy_holders_free(divvy_holders *holders);

/**
 * Releases the slots if they are held, ends an acquire that waits (DIVVY_ECLOSED, `done`: DIVVY_ECANCELED), and
 * releases the object; NULL is allowed. Our nodes are deleted in the background. Outside a callback it returns when no
 * callback of the semaphore still runs. A `done` that is due runs before, in manual mode inside this call.
 * Thread: any, callbacks included; once, and not while another thread still calls functions on the semaphore, but for
 *   an acquire that waits.
 */
DIVVY_API void divvy_semaphore_destroy(divvy_semaphore *semaphore);

/**
 * Does the same as divvy_semaphore_destroy() without waiting for a callback, whatever runs, in whatever thread: for
 * finalizers, and for threads that hold a lock which a callback needs. `gone` is called once, as the last callback of
 * the semaphore, after those that ran or were due: then the callbacks' `user` may be freed. It is called when the
 * client closes, too. On a client that was closed before it is called inside this call, unless a callback runs.
 * Thread: as divvy_semaphore_destroy().
 * @param gone may be NULL; not called where the semaphore is NULL, and in the child of a fork
 * @param user handed to gone
 */
DIVVY_API void divvy_semaphore_destroy_async(divvy_semaphore *semaphore, void (*gone)(void *user), void *user);

DIVVY_EXTERN_C_END

#endif
