/**
 * @file
 * An in-memory ZooKeeper, for tests of pools without a server. Library divvy_testing, apart from libdivvy.
 *
 * An ensemble is a few simulated servers with a leader, links between them, and links to clients. All of these can fail
 * as real ones do. Clients are opened on it by divvy_testing_client_open() and are ordinary clients then: the code of
 * libdivvy that runs on them is the code that runs on a real ZooKeeper.
 *
 * Time. With the virtual clock (the default) nothing happens but inside the calls of this header, and inside waiting
 * calls of its clients, which let time go on; all of it runs in the calling thread, the same each time for one seed.
 * Clients are in manual mode then. With the real clock a thread runs the ensemble, and clients may have threads.
 *
 * As with real servers
 *  - A read comes from the client's server. It may be old, but never older than what the session saw, and it waits
 *    behind the session's own writes.
 *  - A watch is told once, before the client can see the change. What changed while a client was away is told when it
 *    is back, unless the node came and went in between.
 *  - A session expires at the end of the tick in which its timeout ends. The timeout counts from when the leader last
 *    heard of the session. Followers tell it only when it pings them, every half tick.
 *  - A follower or a leader that is cut off answers reads until it notices, after syncLimit ticks. A new leader begins
 *    every timeout again.
 *  - What a quorum has not logged may be lost with its leader. What one survivor has logged is done.
 *  - A write that was under way when its session moved to another server is refused.
 *
 * Left out are TTL nodes, quotas of bytes, observers, reconfiguration, read-only mode, persistent watches, SASL,
 * snapshots and disks (a killed server keeps what it logged), and the wire format. Servers exchange no votes: only the
 * outcome of an election is modelled. A request that is too large ends the connection. Where a session's end would be
 * too large for real servers, the trace says so, and nothing else happens.
 *
 * Rules of life
 *  1. An ensemble outlives its clients: divvy_testing_ensemble_destroy() comes after divvy_client_close() of each.
 *  2. With the virtual clock all calls on an ensemble and on its clients come from one thread.
 *  3. Inside a callback of a client no call of this header may be made, except those that only look.
 *  4. No time may be longer than ten years: DIVVY_EINVAL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DIVVY_TESTING_H
#define DIVVY_TESTING_H

#include <stddef.h>
#include <stdint.h>

#include "divvy/client.h"
#include "divvy/export.h"

DIVVY_EXTERN_C_BEGIN

typedef struct divvy_testing_ensemble divvy_testing_ensemble;

/** The kind of a transaction. */
typedef enum {
    DIVVY_TESTING_CREATE,         /**< a node */
    DIVVY_TESTING_DELETE,         /**< a node; those of a session that ends are told one by one, before its end */
    DIVVY_TESTING_SET,            /**< a node's data */
    DIVVY_TESTING_SESSION_CREATE, /**< a session */
    DIVVY_TESTING_SESSION_END,    /**< closed by its client, or expired */
} divvy_testing_transaction_kind;

/** A transaction, in the order of the leader: the truth that all servers come to apply. */
typedef struct {
    int64_t zxid;
    int64_t at_ms; /**< the ensemble's clock when it was committed */
    divvy_testing_transaction_kind kind;
    const char *path;   /**< of the node, from the root of the ensemble; NULL for sessions. Lives during the call */
    int64_t session_id; /**< whose request it was; for an expiry: of the session that ends */
    int64_t ephemeral_owner; /**< of the node; 0: persistent */
    int64_t czxid;           /**< of the node */
    int expired;             /**< SESSION_END, and DELETE because of it: it was not asked for by the client */
} divvy_testing_transaction;

/** The releases of ZooKeeper from which on servers behave otherwise: towards clients that may not read a node, but for
 * the first. */
typedef enum {
    DIVVY_TESTING_3_4 = 30400,   /**< as 3.8, but create2 and createContainer are refused, and the connection is closed:
                                      for clients that must live with servers that are not ZooKeeper, too */
    DIVVY_TESTING_3_8 = 30800,   /**< an exists tells anyone of a node */
    DIVVY_TESTING_3_9 = 30900,   /**< an exists of such a node is refused with DIVVY_EACCES, and leaves no watch. That a
                                      node is missing is told to anyone, and can be watched */
    DIVVY_TESTING_3_9_6 = 30906, /**< and a client that connects again is not told what it has missed of such a node;
                                      nor is it told later, until it connects once more */
} divvy_testing_release;

/** The configuration of an ensemble. Begin with DIVVY_TESTING_CONFIG_INIT. Copied. */
typedef struct {
    size_t size;
    unsigned servers;         /**< 1 to 9; default 3 */
    int64_t tick_ms;          /**< tickTime; default 2000. Sessions expire at the ends of ticks; pings go every half */
    int64_t sync_limit_ticks; /**< a follower and its leader part when they do not hear of each other; default 5 */
    int64_t min_session_timeout_ms, max_session_timeout_ms; /**< 0: 2 and 20 ticks */
    int real_clock; /**< 1: CLOCK_BOOTTIME and a thread of the ensemble's own; 0: virtual */
    uint64_t seed;  /**< of everything that is left to chance: delays, elections, which server a client finds */
    /** Sequence numbers past 2147483647: 0: they stay there, but for bursts, which see negative ones, as with ZooKeeper
     * 3.8; 1: they go on from -2147483648. */
    int sequences_wrap;
    int64_t client_delay_min_ms, client_delay_max_ms; /**< for a message between client and server; default 0 and 1 */
    int64_t server_delay_min_ms, server_delay_max_ms; /**< between servers; default 0 and 1 */
    int64_t election_min_ms, election_max_ms;         /**< from the loss of a leader to the next; default 200 and 400 */
    /** Each transaction as it is committed; NULL: none is told. */
    void (*on_transaction)(const divvy_testing_transaction *transaction, void *user);
    /** Lines for a trace: connections, elections, faults, requests and answers; NULL: none. */
    void (*on_trace)(int64_t at_ms, const char *line, void *user);
    void *user;
    int release; /**< a divvy_testing_release; 0: DIVVY_TESTING_3_8. DIVVY_EINVAL for any other */
} divvy_testing_config;

#define DIVVY_TESTING_CONFIG_INIT                                                                        \
    {                                                                                                    \
        sizeof(divvy_testing_config), 3, 2000, 5, 0, 0, 0, 1, 0, 0, 1, 0, 1, 200, 400, NULL, NULL, NULL, \
            DIVVY_TESTING_3_8                                                                            \
    }

/**
 * Writes the defaults of DIVVY_TESTING_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_testing_config_init(divvy_testing_config *config, size_t size);

/**
 * Makes an ensemble; its servers are up and have a leader.
 * @param config NULL: the defaults
 * @return 0, or
 *   DIVVY_EINVAL   `out` is NULL, or a field of the config that is out of range
 *   DIVVY_ENOMEM   an allocation failed
 *   DIVVY_ESYSTEM  the system refused a thread or a lock
 */
DIVVY_API int divvy_testing_ensemble_create(divvy_testing_ensemble **out, const divvy_testing_config *config);
/** Releases an ensemble, after all its clients were closed. NULL is allowed. */
DIVVY_API void divvy_testing_ensemble_destroy(divvy_testing_ensemble *ensemble);

/**
 * Opens a client on an ensemble, as divvy_client_open() does. The hosts of `config` may be NULL, or name a chroot
 * ("/a/b"). With the virtual clock `config->manual` is to be 1, else DIVVY_EINVAL. Ends with divvy_client_close().
 */
DIVVY_API int divvy_testing_client_open(divvy_client **out, divvy_testing_ensemble *ensemble,
                                        const divvy_client_config *config);

/* ---- time; with the virtual clock only (else DIVVY_ESTATE), but for what only looks ---- */

/** Returns the ensemble's clock. The virtual one begins at 1,000,000. */
DIVVY_API int64_t divvy_testing_now_ms(const divvy_testing_ensemble *ensemble);
/** Returns the true time of the ensemble in milliseconds since 1970: what the servers' wall clocks show, unless set
 * wrong. */
DIVVY_API int64_t divvy_testing_wall_clock_ms(const divvy_testing_ensemble *ensemble);
/**
 * Lets exactly one thing happen: the next event of the ensemble, or the next work of a client. The clock goes forward
 * to it, but not beyond `until_ms`; with nothing to do before that the clock goes to `until_ms`, or on by ten years
 * where that is further.
 * @return 1 when something happened, 0 when the clock went as far as it may, or an error
 */
DIVVY_API int divvy_testing_step(divvy_testing_ensemble *ensemble, int64_t until_ms);
/** Steps until `ms` have passed. Returns the number of things that happened, or an error. */
DIVVY_API int64_t divvy_testing_run(divvy_testing_ensemble *ensemble, int64_t ms);

/* ---- faults of a client's process and link ---- */

/** The state of a link: the directions in which it works. */
typedef enum {
    DIVVY_TESTING_LINK_UP,
    DIVVY_TESTING_LINK_DOWN,        /**< nothing passes, and neither side is told: a cable is cut */
    DIVVY_TESTING_LINK_NO_REQUESTS, /**< what the client sends (or the first of two servers) is lost */
    DIVVY_TESTING_LINK_NO_REPLIES,  /**< what the server sends (or the second of two servers) is lost */
} divvy_testing_link;

/** Sets the link between a client and all servers; messages on the way over a direction that is cut are lost. As with
 * TCP, a connection that has lost a message passes nothing more in that direction until it ends. */
DIVVY_API int divvy_testing_link_client(divvy_testing_ensemble *ensemble, divvy_client *client,
                                        divvy_testing_link link);
/** The fate of a client's requests under way when its connection breaks. */
typedef enum {
    DIVVY_TESTING_NOT_APPLIED,    /**< none of them reaches the server; what the leader has ordered already stays */
    DIVVY_TESTING_APPLIED,        /**< all do, and all answers are lost */
    DIVVY_TESTING_APPLIED_LATE,   /**< writes get their place at the leader only after `late_ms`: a first read after the
                                     reconnect may not see them, though a later one does. Sooner when the session writes
                                     on a new connection: its writes keep their order, as with a real ensemble. Never
                                     when the session, or that leader, ends before */
    DIVVY_TESTING_APPLIED_BEHIND, /**< the same, but behind what the session writes on new connections meanwhile to
                                       other servers. The leader then takes the session as the first server's again,
                                       as if it heard late of a connection that the client gave up: it refuses the next
                                       write, which ends the new connection. By the leader itself: as APPLIED_LATE */
} divvy_testing_fate;
/** Breaks the connection of a client now, seen by both sides; it may connect again at once. */
DIVVY_API int divvy_testing_disconnect(divvy_testing_ensemble *ensemble, divvy_client *client, divvy_testing_fate fate,
                                       int64_t late_ms);
/** Makes the leader expire the client's session now. The client is told when it is connected, or next connects. */
DIVVY_API int divvy_testing_expire(divvy_testing_ensemble *ensemble, divvy_client *client);
/** Sends the next connections of the client to this server; -1: to any. */
DIVVY_API int divvy_testing_prefer(divvy_testing_ensemble *ensemble, divvy_client *client, int server);
/** Stops the client's process (SIGSTOP) or lets it go on. Stopped it does nothing and sends nothing, not even pings;
 * what arrives waits. With the virtual clock only, else DIVVY_ESTATE. */
DIVVY_API int divvy_testing_pause_client(divvy_testing_ensemble *ensemble, divvy_client *client, int paused);
/** Kills the client's process: it sends nothing more, its connections break, its session is left to expire. The client
 * is to be closed then, to free its memory, and tells inside that what a close tells. With the real clock
 * its threads go on, and are told that the session is lost. */
DIVVY_API int divvy_testing_crash_client(divvy_testing_ensemble *ensemble, divvy_client *client);
/** Makes the client's clock faster (or slower) by so many parts in a million from now on. */
DIVVY_API int divvy_testing_drift_client(divvy_testing_ensemble *ensemble, divvy_client *client, int parts_per_million);

/* ---- faults of servers, numbered from 0 ---- */

/** Kills a server; what it had logged stays. */
DIVVY_API int divvy_testing_kill_server(divvy_testing_ensemble *ensemble, unsigned server);
DIVVY_API int divvy_testing_start_server(divvy_testing_ensemble *ensemble, unsigned server);
/** Stops a server, as SIGSTOP does, or lets it go on. */
DIVVY_API int divvy_testing_pause_server(divvy_testing_ensemble *ensemble, unsigned server, int paused);
/** Sets the link between two servers, by direction: from `a` to `b` are requests, from `b` to `a` are replies. */
DIVVY_API int divvy_testing_link_servers(divvy_testing_ensemble *ensemble, unsigned a, unsigned b,
                                         divvy_testing_link link);
/** Delays what others send to this server by so much; 0: not at all. Its reads lag behind then. */
DIVVY_API int divvy_testing_lag_server(divvy_testing_ensemble *ensemble, unsigned server, int64_t ms);
/** Sets the wall clock of a server's machine so much ahead of the true time of the ensemble. Nodes get their times from
 * it while it leads, from now on. Links, sessions and ticks do not go by it. */
DIVVY_API int divvy_testing_set_wall_clock(divvy_testing_ensemble *ensemble, unsigned server, int64_t offset_ms);
/** Heals everything: every server and link is up, and stopped clients go on. Clients that crashed stay so. */
DIVVY_API int divvy_testing_heal(divvy_testing_ensemble *ensemble);

/* ---- as an administrator: through the leader, seen by all when a quorum has logged it ---- */

/** The kind of a node that a test puts into the tree. */
typedef enum {
    DIVVY_TESTING_PERSISTENT,
    DIVVY_TESTING_CONTAINER, /**< deleted some time after its last child has gone, looked for once a minute */
} divvy_testing_kind;
/**
 * Creates a node that anyone may use, or sets the data of the one that is there.
 * @return 0: it is on its way; DIVVY_ENOENT: no parent; DIVVY_EINVAL; DIVVY_ESTATE: there is no leader now
 */
DIVVY_API int divvy_testing_put(divvy_testing_ensemble *ensemble, const char *path, const void *data, size_t data_bytes,
                                divvy_testing_kind kind);
/** Deletes a node, whosesoever. 0, DIVVY_ENOENT, DIVVY_ENOTEMPTY, DIVVY_EINVAL, or DIVVY_ESTATE as above. */
DIVVY_API int divvy_testing_remove(divvy_testing_ensemble *ensemble, const char *path);
/** Sets the next sequence number under `path`, as after so many creates. On all servers, at once.
 * 0, DIVVY_ENOENT (also where one of them lags behind, and has it not yet) or DIVVY_EINVAL. */
DIVVY_API int divvy_testing_set_sequence(divvy_testing_ensemble *ensemble, const char *path, int32_t next);
/** Makes servers refuse the credentials of this client from its next connection on (1), or take them again (0). */
DIVVY_API int divvy_testing_refuse_auth(divvy_testing_ensemble *ensemble, divvy_client *client, int refuse);

/**
 * Limits how many nodes there may be below a path, as an operator's `setquota -N` does, where the servers enforce that
 * (ZooKeeper 3.7 and later): one more is refused with QUOTAEXCEEDED. The limits stand where ZooKeeper keeps them, too.
 * There is one such path at a time; what an administrator puts there is not limited.
 * @param nodes the limit; -1: none
 * @return 0, DIVVY_EINVAL, or DIVVY_ESTATE: the limits could not be written, but hold
 */
DIVVY_API int divvy_testing_quota(divvy_testing_ensemble *ensemble, const char *path, int64_t nodes);
/**
 * Has servers answer requests of a client by an error code of ZooKeeper's: `count` of them, after the next `skip`.
 * Requests to come count, in the order in which the client sends them; pings do not. Replaces what was set before.
 * @param code     a code of KeeperException.Code, or any other number that ends neither session nor connection
 * @param executed 0: nothing is carried out. 1: writes are, and answered so all the same; only for codes that leave
 *                 that open
 * @return 0, or DIVVY_EINVAL
 */
DIVVY_API int divvy_testing_answer(divvy_testing_ensemble *ensemble, divvy_client *client, int code, int executed,
                                   unsigned skip, unsigned count);

/* ---- looking ---- */

/** Returns the leader that has a quorum, or -1. */
DIVVY_API int divvy_testing_leader(const divvy_testing_ensemble *ensemble);
/** Returns the server that a client is connected to, or -1. */
DIVVY_API int divvy_testing_server_of(const divvy_testing_ensemble *ensemble, const divvy_client *client);
/** Returns whether there is such a node in the truth: what has been committed. */
DIVVY_API int divvy_testing_exists(const divvy_testing_ensemble *ensemble, const char *path);
/** Returns its children, sorted; NULL when there is no such node, or an allocation fails. Free them with
 * divvy_strings_free(). */
DIVVY_API divvy_strings *divvy_testing_children(const divvy_testing_ensemble *ensemble, const char *path);
/** Returns the session that an ephemeral node is of; 0: a persistent one, or none. */
DIVVY_API int64_t divvy_testing_owner(const divvy_testing_ensemble *ensemble, const char *path);

DIVVY_EXTERN_C_END

#endif
