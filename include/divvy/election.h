/**
 * @file election.h
 * Election: of all candidates one leads, and all others know who. SPDX-License-Identifier: Apache-2.0
 *
 * An election is the lock (lock.h) of those that want to lead for as long as they live. It stands in line again after a
 * loss, tells everybody who leads, and hands leadership over on request. Its path may be shared with kazoo's Election
 * and Lock, with divvy_lock, or with Curator's LeaderLatch: see DIVVY_ELECTION_LATCH.
 *
 * What leading means. divvy_election_leads() says yes from just before `on_elected` until the leader resigns or is
 * lost, and never at or after the deadline of the session clock (docs/protocol.md, C1): before the servers can have
 * elected another. Work that takes longer than the answer is good for shows the token to what it works on, or puts
 * divvy_election_guard() (zookeeper.h) into its transaction.
 *
 * Callbacks. `on_elected` and `on_lost` take turns. A resignation ends leadership without `on_lost`, and so does a
 * close of the client; a candidate that waits hears nothing of it, `on_failed` neither. After a loss the object stands
 * again by itself, at the end of the queue, once `on_lost` has returned.
 *
 * The order of the queue decides, and nothing else. A candidate with a higher preference asks the leader to step down.
 * When the leader does, those that stand between them give their turns up, one after the other. So there is never a
 * moment with two leaders, and none in which a preferred candidate passes a leader that does not agree.
 */
#ifndef DIVVY_ELECTION_H
#define DIVVY_ELECTION_H

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/** One candidate at a path, or an observer that does not stand. Opaque. Lifetime: rules 2 and 6 of client.h. */
typedef struct divvy_election divvy_election;

/** The names of a candidate's nodes: with whom an election shares its path. */
enum {
    DIVVY_ELECTION_LOCK, /**< kazoo's Election and Lock, and divvy_lock */
    /** Curator's LeaderLatch, which takes no other names into account: all others at the path must be of this kind.
     * A LeaderLatch neither yields to a preferred candidate nor hears of requests to step down */
    DIVVY_ELECTION_LATCH
};

/** The one that leads: the first in the queue. */
typedef struct {
    int64_t token;     /**< its fencing token, the czxid of its node */
    const char *data;  /**< what it says of itself, with a NUL behind; others may have written any bytes */
    size_t data_bytes; /**< 65,536 at most; longer data are cut */
} divvy_leader;

/** The configuration of an election. Initialise with DIVVY_ELECTION_CONFIG_INIT, then set what differs. Copied. */
typedef struct {
    size_t size;      /**< sizeof of this struct, set by the INIT macro */
    const char *path; /**< absolute, the same for all candidates; made, with its parents, when it is missing */
    const char *data; /**< what others are told of this candidate, at most 64 KiB; NULL: host-pid-number */
    int names;        /**< DIVVY_ELECTION_LOCK (default) or DIVVY_ELECTION_LATCH */
    int preference;   /**< 0 (default) to 1000: a candidate asks a leader with a smaller one to step down */
    int container;    /**< 1: as in divvy_lock_config; not where kazoo or Curator use the path. Default 0 */
    /** This candidate leads. May be NULL. */
    void (*on_elected)(divvy_election *election, int64_t token, void *user);
    /** It led, and does no longer: stop the work now. May be NULL. */
    void (*on_lost)(divvy_election *election, void *user);
    /** Another one leads, or this one, or nobody (NULL). It is called first for the leader that is found, then for each
     * change; a user that is slow is told the newest only. What `leader` points to lives during the call. NULL: nobody
     * asks */
    void (*on_leader)(divvy_election *election, const divvy_leader *leader, void *user);
    /** Somebody asks this leader to step down: an operator, or a preferred candidate. `who` are the bytes that the
     * other wrote, with a NUL behind, 65,536 at most. The user decides. To agree, end the work, then call
     * divvy_election_resign(), here or later, and divvy_election_stand() to be a candidate again. The one that is
     * preferred to all others leads again then: let another object stand for it, without a preference. Called once for
     * each request. NULL: requests are not heard */
    void (*on_step_down)(divvy_election *election, const char *who, size_t who_bytes, void *user);
    /** This candidate can stand no longer, by a DIVVY_E* of divvy_lock_acquire(). May be NULL. */
    void (*on_failed)(divvy_election *election, int error, void *user);
    void *user; /**< handed to all of them */
} divvy_election_config;

#define DIVVY_ELECTION_CONFIG_INIT \
    { sizeof(divvy_election_config), NULL, NULL, DIVVY_ELECTION_LOCK, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL }

/**
 * Writes the defaults of DIVVY_ELECTION_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_election_config_init(divvy_election_config *config, size_t size);

/**
 * Makes an election object, which observes: it stands for nothing until divvy_election_stand().
 *
 * With `on_leader` it begins to follow the leader at once: one list and one read for each change of leader, and nothing
 * when other candidates come and go.
 * Ownership: `config` is copied. On success release *out with divvy_election_destroy(). On error *out is NULL and there
 *   is nothing to release.
 * Thread: any. No callback runs inside this call.
 * Source: kazoo.recipe.election, Curator's LeaderLatch; docs/protocol.md, rules J1 to J6.
 *
 * @param out    [out] the election
 * @param client need not be connected yet
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, a path that ZooKeeper refuses or "/" without a chroot, empty data, unknown names, a
 *                 preference outside of 0 to 1000, a config without its INIT macro
 *   DIVVY_E2BIG   the data are longer than 64 KiB
 *   DIVVY_ELIMIT  no room for one more watch in the session's budget
 *   DIVVY_ENOMEM  an allocation failed
 *   DIVVY_EFORK   called in the child of a fork
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
DIVVY_API int divvy_election_create(divvy_election **out, divvy_client *client, const divvy_election_config *config);

/**
 * Stands for election, at the end of the queue, until divvy_election_resign(): also after a loss, and on later
 * sessions of a client of divvy_client_open(). Sends, and waits for nothing.
 *
 * Thread: any, callbacks included.
 * @return 0; `on_elected` follows when it is this one's turn, or `on_failed`. Or
 *   DIVVY_EALREADY  it stands, or leads
 *   DIVVY_ELIMIT    no room for one more ephemeral node in the session's budget
 *   DIVVY_ESTATE    the election is being destroyed
 *   DIVVY_EINVAL    election is NULL
 *   DIVVY_ENOMEM    an allocation failed
 *   DIVVY_EFORK     called in the child of a fork
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
DIVVY_API int divvy_election_stand(divvy_election *election);

/**
 * Gives leadership up, or leaves the queue. Waits for nothing: divvy_election_leads() says no at once, neither
 * `on_lost` nor `on_elected` follows, and the deletion of the node is sent, and repeated until it is certain. Where the
 * object neither leads nor stands this does nothing.
 *
 * Thread: any, callbacks included.
 * @return 0, or DIVVY_EINVAL (election is NULL), DIVVY_EFORK
 */
DIVVY_API int divvy_election_resign(divvy_election *election);

/**
 * Returns whether this one leads now, by the session clock. Cheap: no request, no waiting. Thread: any, callbacks
 * included.
 * @return 1 or 0; 0 for NULL, and in the child of a fork
 */
DIVVY_API int divvy_election_leads(const divvy_election *election);

/**
 * Returns the fencing token of this one's leadership: greater than that of every earlier leader at the path. Thread:
 * any, callbacks included.
 * @return 0 when divvy_election_leads() says no
 */
DIVVY_API int64_t divvy_election_token(const divvy_election *election);

/**
 * Tells who leads. Waits until that was found out once; afterwards the answer is what this object knows, which follows
 * ZooKeeper by a watch, and stays as it was while there is no connection.
 *
 * Ownership: release *out with divvy_leader_free(). It is NULL when nobody leads.
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever
 * @return 0, or
 *   DIVVY_ETIMEDOUT  no answer in time
 *   DIVVY_EACCES     the access list denies reading
 *   DIVVY_ELIMIT     no room for one more watch in the session's budget
 *   DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ECLOSED  the client has ended
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_ESTATE     the election is being destroyed
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     an argument is NULL, or timeout_ms below -1
 *   DIVVY_ENOMEM     an allocation failed
 */
DIVVY_API int divvy_election_leader(divvy_election *election, divvy_leader **out, int64_t timeout_ms);

/** Releases what divvy_election_leader() returned; NULL is allowed. Thread: any. */
DIVVY_API void divvy_leader_free(divvy_leader *leader);

/**
 * Returns what all candidates say of themselves, in the order of the queue, the leader first. Those of kazoo and
 * Curator are among them. One read for each, at most 64 under way at a time.
 *
 * Ownership: release *out with divvy_strings_free(). It is empty when nobody stands, and when there is no such path.
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever
 * @return as divvy_lock_contenders()
 */
DIVVY_API int divvy_election_candidates(divvy_election *election, divvy_strings **out, int64_t timeout_ms);

/**
 * Asks the one that leads, as divvy_election_leader() tells, to step down, and waits until it does not lead. The leader
 * is told this object's `data`, and decides. The request ends with this call, and with this session at the latest.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever
 * @return 0 when that leader has gone (for whatever reason), or
 *   DIVVY_ETIMEDOUT  it leads still: it declined, needs longer, or hears no requests, as kazoo and Curator
 *   DIVVY_ENOENT     nobody leads
 *   DIVVY_EINPROGRESS  another such call on this object waits; nothing changed
 *   DIVVY_EACCES     the access list denies reading, or creating nodes at the path
 *   DIVVY_ELIMIT     no room for one more ephemeral node, or watch, in the session's budget
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ECLOSED, DIVVY_EDEADLK, DIVVY_ESTATE, DIVVY_EFORK, DIVVY_EINVAL, DIVVY_ENOMEM
 *                    as divvy_election_leader()
 */
DIVVY_API int divvy_election_ask_step_down(divvy_election *election, int64_t timeout_ms);

/**
 * Resigns, and releases the object; NULL is allowed. The node is deleted in the background. Outside a callback it
 * returns when no callback of the election still runs, and none starts afterwards.
 * Thread: any, callbacks included; once, and not while another thread still calls functions on the election.
 */
DIVVY_API void divvy_election_destroy(divvy_election *election);

/**
 * Does the same as divvy_election_destroy() without waiting for a callback, whatever runs, in whatever thread: for
 * finalizers, and for threads that hold a lock which a callback needs. `gone` is called once, as the last callback of
 * the election, after those that ran or were due: then the callbacks' `user` may be freed. It is called when the client
 * closes, too. On a client that was closed before it is called inside this call, unless a callback runs.
 * Thread: as divvy_election_destroy().
 * @param gone may be NULL; not called where the election is NULL, and in the child of a fork
 * @param user handed to gone
 */
DIVVY_API void divvy_election_destroy_async(divvy_election *election, void (*gone)(void *user), void *user);

DIVVY_EXTERN_C_END

#endif
