/**
 * @file lock.h
 * Lock: one holder at a time, or one writer or many readers, in turn. SPDX-License-Identifier: Apache-2.0
 *
 * Shares its path with kazoo's Lock, WriteLock and ReadLock, which stand in the same queue, each in its turn.
 *
 * What holding means. divvy_lock_held() says yes from the moment an acquire ends with 0 until the lock is released or
 * lost, and never at or after the deadline of the session clock (docs/protocol.md, C1): before the servers can have
 * given the lock to somebody else. Work that takes longer than the answer is good for shows divvy_lock_token() to what
 * it works on, which refuses smaller tokens than it has seen, or puts divvy_lock_guard() (zookeeper.h) into its
 * transaction.
 *
 * Losing it. `on_lost` is called when the session's deadline has passed, when the session is lost, or when somebody
 * else has deleted our node: once for each time that the lock was held, unless it was released, or destroyed, or the
 * client closed, before. A deleted node is found by the session's heartbeats, or half a session timeout later at the
 * latest. The lock can be acquired again after a loss, with the same object: an acquire that ends with 0 does so after
 * that on_lost has returned.
 */
#ifndef DIVVY_LOCK_H
#define DIVVY_LOCK_H

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/** One contender for the lock at a path. Opaque. Lifetime: rules 2 and 6 of client.h. */
typedef struct divvy_lock divvy_lock;

/** The way in which a lock excludes others at its path. Plain locks and read/write locks do not belong at one path. */
enum {
    DIVVY_EXCLUSIVE, /**< waits for all DIVVY_EXCLUSIVE before it; kazoo's Lock */
    DIVVY_READ,      /**< waits for the DIVVY_WRITE before it only, so that readers share; kazoo's ReadLock */
    DIVVY_WRITE      /**< waits for everyone before it; kazoo's WriteLock */
};

/** The configuration of a lock. Initialise with DIVVY_LOCK_CONFIG_INIT, then set what differs. Copied. */
typedef struct {
    size_t size;            /**< sizeof of this struct, set by the INIT macro */
    const char *path;       /**< absolute, the same for all contenders; made, with its parents, when it is missing */
    const char *identifier; /**< what divvy_lock_contenders() and kazoo's contenders() show; NULL: host-pid-number */
    int mode;               /**< DIVVY_EXCLUSIVE (default), DIVVY_READ, DIVVY_WRITE */
    /** 1: what is missing of the path is made of container nodes, which the servers (3.5.3 and later; older ones are
     * given persistent nodes) delete within some minutes when nobody is left in them. Not where kazoo processes use the
     * path: kazoo's Lock remembers that it exists, and fails with NoNodeError when it has gone (kazoo #563). Default
     * 0 */
    int container;
    void (*on_lost)(divvy_lock *lock, void *user); /**< it was held and is no longer; may acquire again. May be NULL */
    void *user;                                    /**< handed to on_lost */
} divvy_lock_config;

#define DIVVY_LOCK_CONFIG_INIT \
    { sizeof(divvy_lock_config), NULL, NULL, DIVVY_EXCLUSIVE, 0, NULL, NULL }

/**
 * Writes the defaults of DIVVY_LOCK_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_lock_config_init(divvy_lock_config *config, size_t size);

/**
 * Makes a lock object. Sends nothing: the queue is entered by an acquire, and left after each.
 *
 * Several objects for one path may be made, in one process and on one client too; they contend with each other.
 * Ownership: `config` is copied. On success release *out with divvy_lock_destroy(). On error *out is NULL and there is
 *   nothing to release.
 * Thread: any. No callback runs inside this call.
 * Source: kazoo.recipe.lock; docs/protocol.md, rules K1 to K6 and Q1 to Q6.
 *
 * @param out    [out] the lock
 * @param client need not be connected yet
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, a path that ZooKeeper refuses or "/" without a chroot, an empty identifier, an
 *                 unknown mode, a config without its INIT macro
 *   DIVVY_E2BIG   the identifier is longer than 64 KiB
 *   DIVVY_ENOMEM  an allocation failed
 *   DIVVY_EFORK   called in the child of a fork
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
DIVVY_API int divvy_lock_create(divvy_lock **out, divvy_client *client, const divvy_lock_config *config);

/**
 * Acquires the lock, and waits for that for timeout_ms at most, however often the wait is interrupted on the way.
 *
 * Waiting contenders get it in the order in which they came. A session that is lost meanwhile does not end the wait of
 * a client of divvy_client_open(): it enters the queue again, at its end, on the next session, in what is left of the
 * time. When the call ends with an error, its place in the queue is given up: the deletion is sent, and repeated until
 * it is certain, in the background. The lock may be acquired again at once.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever; 0: try, see divvy_lock_try_acquire()
 * @return 0 when the lock is held, or
 *   DIVVY_ETIMEDOUT  the time has passed
 *   DIVVY_EQUOTA     the time has passed, and a quota of the servers kept us from the queue (DIVVY_WARN_QUOTA)
 *   DIVVY_EBUSY      timeout_ms is 0, and somebody is before us
 *   DIVVY_EALREADY   this object holds the lock; nothing changed. Locks are not re-entrant
 *   DIVVY_EINPROGRESS  another acquire of this object waits; nothing changed
 *   DIVVY_ECANCELED  divvy_lock_cancel() was called for it
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_ECLOSED    the client was closed, or the lock destroyed, meanwhile
 *   DIVVY_ELOST      the session is lost, and there is no other (attached clients)
 *   DIVVY_EAUTH      the servers refused the credentials
 *   DIVVY_EACCES     the access list of the path denies creating, reading, or deleting
 *   DIVVY_ELIMIT     no room for one more ephemeral node in the session's budget (a try: or for one more watch)
 *   DIVVY_EEXHAUSTED  the path's sequence numbers are used up (docs/protocol.md, N6): delete the path while nobody
 *                    contends
 *   DIVVY_ENOENT     the path is deleted as often as it is made; or it lies below a chroot that does not exist
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_ESTATE     the lock is being destroyed
 *   DIVVY_EINVAL     lock is NULL, or timeout_ms below -1; or the path lies below an ephemeral node
 *   DIVVY_ENOMEM     an allocation failed
 *   DIVVY_EFORK      called in the child of a fork
 */
DIVVY_API int divvy_lock_acquire(divvy_lock *lock, int64_t timeout_ms);

/**
 * Acquires the lock if nobody is before us: divvy_lock_acquire() with 0.
 *
 * Takes one round trip. Where there is no connection, no answer, or no proof yet that the session lives (attached
 * clients begin without), it waits for that, 900 ms at most, and ends with DIVVY_ETIMEDOUT.
 * Thread: any, but not inside a callback (there: divvy_lock_acquire_async() with 0).
 * @return as divvy_lock_acquire()
 */
DIVVY_API int divvy_lock_try_acquire(divvy_lock *lock);

/**
 * Begins to acquire the lock; `done` is told how it ended.
 *
 * After a return of 0 `done` is called exactly once, as a callback (rule 5 of client.h): with what divvy_lock_acquire()
 * would have returned; with DIVVY_ECANCELED also when the lock is destroyed or the client closed before. So
 * divvy_lock_destroy() outside a callback returns after it; inside one, `done` follows, and `lock` is then good for
 * comparing only. It may call anything, such as divvy_lock_release().
 * After an error `done` is not called.
 *
 * Thread: any, callbacks included.
 * @param timeout_ms as divvy_lock_acquire()
 * @param done       not NULL
 * @param user       handed to done
 * @return 0, or DIVVY_EALREADY, DIVVY_EINPROGRESS, DIVVY_ECANCELED, DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH,
 *   DIVVY_ELIMIT, DIVVY_ESTATE, DIVVY_EINVAL, DIVVY_ENOMEM, DIVVY_EFORK as divvy_lock_acquire()
 */
DIVVY_API int divvy_lock_acquire_async(divvy_lock *lock, int64_t timeout_ms,
                                       void (*done)(divvy_lock *lock, int result, void *user), void *user);

/**
 * Releases the lock. Waits for nothing: divvy_lock_held() says no at once, on_lost is not called for this ownership,
 * and the deletion of our node is sent, and repeated on later connections until it is certain.
 *
 * Thread: any, callbacks included.
 * @return 0, or
 *   DIVVY_ENOTHELD  it is not held, or was lost before; nothing changed
 *   DIVVY_EINVAL    lock is NULL
 *   DIVVY_EFORK
 */
DIVVY_API int divvy_lock_release(divvy_lock *lock);

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
 *   DIVVY_EINVAL     lock is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_lock_wait_gone(divvy_lock *lock, int64_t timeout_ms);

/**
 * Returns the number of the acquire that waits, or else of the next one, for divvy_lock_cancel(). The numbers begin
 * at 1. Each call of an acquire takes the next, whatever becomes of it, but for one that ends with DIVVY_EINPROGRESS,
 * DIVVY_EINVAL, DIVVY_EDEADLK, DIVVY_EFORK, or without memory for an asynchronous one.
 *
 * A thread that may be told to stop reads the number, then acquires; who stops it cancels that number. Such a cancel is
 * not lost when it comes before the acquire has begun, and ends no other acquire when it comes late.
 *
 * Thread: any, callbacks included.
 * @return 0 for NULL, and in the child of a fork
 */
DIVVY_API uint64_t divvy_lock_attempt_id(const divvy_lock *lock);

/**
 * Ends an acquire, in whatever thread: with DIVVY_ECANCELED. One that waits ends at once. One that has not begun ends
 * when it is called; where it is asynchronous the call returns DIVVY_ECANCELED, and `done` is not called. Otherwise
 * this does nothing, neither now nor to a later acquire; a lock that is held stays so.
 *
 * Thread: any, callbacks included.
 * @param attempt_id from divvy_lock_attempt_id(); 0: whichever waits now
 * @return 0, or DIVVY_EINVAL (lock is NULL), DIVVY_EFORK
 */
DIVVY_API int divvy_lock_cancel(divvy_lock *lock, uint64_t attempt_id);

/**
 * Returns whether the lock is held now, by the session clock. Cheap: no request, no waiting. Thread: any, callbacks
 * included.
 * @return 1 or 0; 0 for NULL, and in the child of a fork
 */
DIVVY_API int divvy_lock_held(const divvy_lock *lock);

/**
 * Returns the fencing token of what is held: greater than that of every earlier holder (of every earlier writer, in the
 * case of readers, who share). It is the czxid of our node. Thread: any, callbacks included.
 * @return 0 when divvy_lock_held() says no
 */
DIVVY_API int64_t divvy_lock_token(const divvy_lock *lock);

/**
 * Tells the path of our node in the queue, held or waiting, as the client knows paths: without the chroot.
 *
 * Thread: any, callbacks included; sends nothing.
 * @param path       [out] may be NULL; at most path_bytes with the NUL; "" where there is none
 * @param path_bytes of `path`
 * @return the bytes of the path without the NUL, also when it did not fit; 0 when there is no node now, for NULL, and
 *   in the child of a fork
 */
DIVVY_API size_t divvy_lock_node(const divvy_lock *lock, char *path, size_t path_bytes);

/**
 * Returns the identifiers of all that contend at the path, in the order of the queue: holders first, then those that
 * wait. Readers, writers and kazoo's are among them. One read for each, at most 64 under way at a time.
 *
 * Ownership: release *out with divvy_strings_free(). It is empty when nobody contends, and when there is no such path.
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
DIVVY_API int divvy_lock_contenders(divvy_lock *lock, divvy_strings **out, int64_t timeout_ms);

/**
 * Releases the lock if it is held, ends an acquire that waits (DIVVY_ECLOSED, `done`: DIVVY_ECANCELED), and releases
 * the object; NULL is allowed. Our node is deleted in the background. Outside a callback it returns when no callback of
 * the lock still runs. A `done` that is due runs before, in manual mode inside this call.
 * Thread: any, callbacks included; once, and not while another thread still calls functions on the lock, but for an
 *   acquire that waits.
 */
DIVVY_API void divvy_lock_destroy(divvy_lock *lock);

/**
 * Does the same as divvy_lock_destroy() without waiting for a callback, whatever runs, in whatever thread: for
 * finalizers, and for threads that hold a lock which a callback needs. `gone` is called once, as the last callback of
 * the lock, after those that ran or were due: then the callbacks' `user` may be freed. It is called when the client
 * closes, too. On a client that was closed before it is called inside this call, unless a callback runs.
 * Thread: as divvy_lock_destroy().
 * @param gone may be NULL; not called where the lock is NULL, and in the child of a fork
 * @param user handed to gone
 */
DIVVY_API void divvy_lock_destroy_async(divvy_lock *lock, void (*gone)(void *user), void *user);

DIVVY_EXTERN_C_END

#endif
