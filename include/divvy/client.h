/**
 * @file client.h
 * The client: one ZooKeeper session and the loop on which all recipes run. SPDX-License-Identifier: Apache-2.0
 *
 * Lifetime rules
 *  1. A client is made by divvy_client_open() and ends with divvy_client_close(), called exactly once.
 *  2. Objects made on a client (partitioner, party) hold a reference to it: they may be destroyed before or after
 *     divvy_client_close(), which ends their work: a partitioner is in DIVVY_FAILURE with DIVVY_ECLOSED from then on,
 *     and calls that would need a server return DIVVY_ECLOSED.
 *  3. Strings and structs that a call takes are copied before it returns, unless its page says otherwise.
 *  4. Every public function may be called from any thread and from any callback of divvy. A waiting call inside a
 *     callback returns DIVVY_EDEADLK at once. One outside ends with DIVVY_EINTERRUPTED when `interrupted` of the
 *     client's config says so.
 *  5. Callbacks of one client are serialised: at most one runs at a time, and divvy holds none of its locks while one
 *     runs. In threaded mode they run on one thread of the client's; in manual mode inside divvy_client_process(), and
 *     in calls that wait, of the caller. In both modes the last ones run inside divvy_client_close().
 *  6. After the destroying call of an object has returned (outside a callback), no callback of that object runs.
 *     Inside a callback the destroying call returns at once, and the object goes when the callback returns. Each
 *     destroying call has a form that never waits (divvy_lock_destroy_async()), and calls back last of all.
 *  7. A client does not survive a fork: in the child every call returns DIVVY_EFORK. Fork before opening, or exec.
 *  8. A configuration begins with its size. Fields that an older header lacks count as their defaults. What a newer
 *     header has besides must be zero, as the library does not know it: else DIVVY_EINVAL.
 */
#ifndef DIVVY_CLIENT_H
#define DIVVY_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "divvy/error.h"

DIVVY_EXTERN_C_BEGIN

/** One ZooKeeper session with its loop. Opaque. */
typedef struct divvy_client divvy_client;

/** State of the session. */
typedef enum {
    DIVVY_CONNECTING,  /**< no server has answered yet; after a loss: a new session is being opened */
    DIVVY_CONNECTED,   /**< a server serves the session */
    DIVVY_SUSPENDED,   /**< the link is down; the session may live on at the servers */
    DIVVY_LOST,        /**< the session is over, or must be taken as over by its deadline, which is final for it. (It
                            has none before anything could be held on it.) A client of divvy_client_open() then opens a
                            new session by itself. An attached one waits for divvy_client_reattach(); on a session that
                            lives on it waits until its nodes are deleted */
    DIVVY_AUTH_FAILED, /**< final: the servers refused the credentials, or demand some that were not given; or the tick
                            was told too small, the chroot cannot be made, or sessions end with their connections (B9 of
                            docs/protocol.md). All calls then return the error that divvy_client_wait_connected() has
                            for that, also where they list DIVVY_EAUTH alone */
    DIVVY_CLOSED       /**< divvy_client_close() was called; final */
} divvy_session_state;

/** The rights of others on the nodes that the client creates. */
enum {
    DIVVY_ACL_AUTO,    /**< DIVVY_ACL_CREATOR with credentials (auth, or SASL), else DIVVY_ACL_OPEN */
    DIVVY_ACL_OPEN,    /**< anyone may do anything */
    DIVVY_ACL_CREATOR, /**< only who authenticates as we do; needs credentials, or a certificate (TLS) that the
                            servers are told to take for a name */
    DIVVY_ACL_READABLE /**< as DIVVY_ACL_CREATOR, and anyone may read; needs credentials */
};

/** Importance of a log line, as given to `on_log`. */
enum { DIVVY_LOG_ERROR = 1, DIVVY_LOG_WARN, DIVVY_LOG_INFO, DIVVY_LOG_DEBUG };

/** Codes of `on_warning`. A warning is given once for each new situation, not once for each event. */
enum divvy_warning {
    DIVVY_WARN_ITEMS_DIFFER = 1, /**< a member was configured with other items than another, or than its pool divides */
    DIVVY_WARN_ASSIGN_DIFFERS,   /**< members of the pool were configured with different assignments */
    DIVVY_WARN_STRAY,            /**< a child of the party that is no member, or is persistent: delete it */
    DIVVY_WARN_SHORT,            /**< the share does not fit the limits of the session; what fits is taken */
    DIVVY_WARN_ITEM_NAME,        /**< no lock can have the item's name, or none of a kazoo member that is present */
    DIVVY_WARN_SLOW_RELEASE,     /**< a RELEASE has not been answered for release_warn_ms, or twice that, ... */
    DIVVY_WARN_IDENTIFIER,       /**< another live member goes by the same identifier */
    DIVVY_WARN_NODE_GONE,        /**< a node of ours was deleted by somebody else; it is made again */
    DIVVY_WARN_SESSION,          /**< the session's timeout is not what was asked for, or is short for the tick */
    DIVVY_WARN_PLAN,     /**< the pool's plan cannot be followed, or written: broken, of a later release, denied */
    DIVVY_WARN_FENCED,   /**< a live member has the identifier of this static one, and came later: it gets nothing */
    DIVVY_WARN_ABSENT,   /**< on joining: a place is kept for a static member that is gone; its items have no owner */
    DIVVY_WARN_WEIGHT,   /**< on joining: the plan's weight of this static member counts, and not the configured one */
    DIVVY_WARN_LATE,     /**< manual mode: divvy_client_process() came late, while the session runs out */
    DIVVY_WARN_ROUND,    /**< max_moves: a round may end before the handovers in it; set round_timeout_ms to more */
    DIVVY_WARN_TLS,      /**< TLS: a server is not used, for its certificate, or as it does not speak TLS; says why */
    DIVVY_WARN_TOKENS,   /**< tokens have fallen: the servers' data were wiped or restored; see docs/fencing.md */
    DIVVY_WARN_QUOTA,    /**< a quota refuses what a recipe needs: names its path and limits; it is tried again */
    DIVVY_WARN_ANSWER,   /**< the servers throttle, or give an answer that is not known: names it; it is tried again */
    DIVVY_WARN_HEAVY,    /**< one item is more work than a fair share: no deal evens that out; split it, if you can */
    DIVVY_WARN_LOAD_UNIT /**< loads are passed over: of another unit than the pool's, or not to be read; says which */
};

/**
 * How to open a client. Initialise with DIVVY_CLIENT_CONFIG_INIT, then set what differs.
 * Everything but `user` is copied by divvy_client_open().
 */
typedef struct {
    size_t size;                /**< sizeof of this struct, set by the INIT macro */
    const char *hosts;          /**< "h1:2181,h2:2181/chroot"; NULL: $DIVVY_CONNECT, else 127.0.0.1:2181. A port left
                                     out is 2181. The chroot stands once, behind the last host, without a comma,
                                     semicolon or space; a missing one is created. IPv6: "[::1]:2181" */
    int64_t session_timeout_ms; /**< asked of the servers, which may give another; default 10000, 100 to 3600000. The
                                     least that can own something is (tick / 2 + 121) / 0.64; 5 ticks are comfortable */
    /** tickTime of the servers, as their zoo.cfg has it; 0: $DIVVY_ENSEMBLE_TICK_MS. Needed: without it no deadline is
     * safe. Larger than it is costs time, and is safe; smaller than it is can give one thing two owners
     * (docs/protocol.md, C3). Where the server answers the four letter word "conf", the client compares, and ends a
     * session whose tick was told too small: DIVVY_AUTH_FAILED, with the reason in divvy_client_error(). Elsewhere
     * only the log says that nobody did. One value for the whole ensemble. 1 to 3600000. On observers that follow the
     * leader the clock holds as on followers. Behind an observer master (observerMasterPort) no value is safe: such
     * observers are not supported */
    int64_t ensemble_tick_ms;
    int manual;                  /**< 1: no thread of ours runs the loop; the caller runs divvy_client_process(), in
                                     time: all that is held is lost when it does not come */
    const char *auth_scheme;     /**< "digest", or NULL for none. Digest credentials travel in clear text */
    const char *auth;            /**< "user:password", 4096 bytes at most; never printed by us */
    int acl;                     /**< DIVVY_ACL_AUTO, _OPEN, _CREATOR, _READABLE */
    size_t ephemeral_path_bytes; /**< budget for the paths of ephemeral nodes; 0: 1 MiB, which is the most */
    size_t watch_path_bytes;     /**< budget for watched paths; 0: 512 KiB, which is the most. Half is for places that
                                    wait in queues; an acquire that needs more than half is refused, DIVVY_ELIMIT */
    /** Each change of state, but for the one to DIVVY_CLOSED */
    void (*on_session)(divvy_client *client, divvy_session_state state, void *user);
    /** DIVVY_WARN_*; the message lives during the call. NULL: warnings are lines of `on_log`, with their names */
    void (*on_warning)(divvy_client *client, int code, const char *message, void *user);
    /** Lines of ours and of the native client's; the message lives during the call. At most 1000 lines wait for a
     * callback that does not return; then lines are dropped, and a line says how many. NULL: none is written
     * anywhere */
    void (*on_log)(int level, const char *message, void *user);
    /** 1: each request and each answer too is a line to `on_log`, DIVVY_LOG_DEBUG: its kind and path and how it ended;
     * no data and no credentials. For a look at what happens, not for every day. The in-memory ensemble of testing.h
     * has its own trace */
    int log_requests;
    void *user; /**< handed to the callbacks */

    /**
     * TLS to the servers: PEM files of the CA (or CAs) that their certificates come from, of the client's certificate
     * with its chain, and of its key. All three, or none. With none of the four fields the environment names the files:
     * $DIVVY_TLS_CA_FILE, _CERTIFICATE_FILE, _KEY_FILE, _KEY_PASSWORD_FILE; without these too it is plain text. Needs a
     * native client that was built with OpenSSL (docs/secure.md); hosts names the servers' secureClientPort. The files
     * are read again at each connection, so a certificate is renewed by renaming a new file over the old one; no
     * session is lost by that.
     *
     * divvy checks a server's certificate, and that it is for the host name, or the address, in `hosts`, before it
     * takes the server into its list, and again after a connection was lost; a server that does not pass is not used
     * (DIVVY_WARN_TLS). Each connection after that is checked by the native client: for the CA, not for the name. So
     * the CA must sign nothing but what may stand in for a server.
     *
     * OpenSSL's default store of CAs must be empty, or tls_ca_file itself, as the native client trusts it too:
     * start the program with SSL_CERT_FILE=tls_ca_file and SSL_CERT_DIR=/nonexistent in its environment
     */
    const char *tls_ca_file;
    const char *tls_certificate_file; /**< see tls_ca_file */
    const char *tls_key_file;         /**< see tls_ca_file. Not readable by others, or anyone can be this client */
    /** A file with the key's password on its only line; NULL: the key has none. Read by divvy_client_open(). divvy
     * wipes its copies; the native client has one of its own that it never wipes */
    const char *tls_key_password_file;

    /**
     * SASL: who the client is, for the servers. "DIGEST-MD5", or "GSSAPI" (Kerberos); NULL with sasl_user: DIGEST-MD5;
     * NULL without: no SASL. Needs a native client that was built with Cyrus SASL (docs/secure.md). Not together with
     * TLS: the native client's functions can do one of the two. A refusal is DIVVY_AUTH_FAILED, within two seconds
     */
    const char *sasl_mechanism;
    const char *sasl_user; /**< DIGEST-MD5: the user's name */
    /** DIGEST-MD5: a file with the password on its only line. Read by divvy_client_open(), and wiped from memory when
     * the client is closed, as each connection needs it */
    const char *sasl_password_file;
    const char *sasl_service; /**< the servers' service name; NULL: "zookeeper" */
    /** the name by which the servers go; NULL: "zk-sasl-md5" with DIGEST-MD5, as all ZooKeepers do; with GSSAPI the
     * address of each, whose name Kerberos looks up, unless krb5.conf says rdns = false */
    const char *sasl_host;

    /** 1: every resource that is worked on checks tokens (docs/fencing.md), so that two owners for a while do no harm;
     * 0: $DIVVY_TOKENS_CHECKED, where 1 says the same. Only for servers that end a session with its connection, as
     * ClickHouse Keeper does: without it the client refuses them, by DIVVY_AUTH_FAILED and DIVVY_EUNSUPPORTED
     * (docs/protocol.md, B9) */
    int tokens_checked;

    /** Asked by each call that waits, in its thread, whether to go on: when it begins to wait, and every 50 ms at least
     * from then on. Not 0: the call ends with DIVVY_EINTERRUPTED, as it ends when its time has passed: an acquire gives
     * its place up, a leave goes on in the background. For a flag that a signal handler or another thread sets, or what
     * an interpreter has for that. Several threads may be inside it at a time. It holds no lock of divvy's; it may call
     * divvy, but nothing that waits, and must not destroy what is waited for. divvy_client_process() and
     * divvy_client_close() do not ask. NULL: nothing but its end ends a wait, and no thread wakes up to ask */
    int (*interrupted)(divvy_client *client, void *user);

    /** 1: a death watch. The program divvy-death-watch is started beside this one, and ends the session when this
     * process has ended, however it did: then what it held has its next owner at once, and not after the session
     * timeout. Ask for it only where nothing works on after the process, such as its children or what reads its output:
     * those would work beside the next owner (docs/fencing.md). The program is the library's own, without a descriptor
     * or signal of this one. It dies with the container or machine, and then the session takes its time. Refused by
     * divvy_client_attach(), since that session is the host's. 0: no death watch */
    int death_watch;

    /** How long the death watch waits before it ends the session: for writes that had left the process, where the store
     * that they go to checks no tokens. Less than session_timeout_ms, since the session ends by then; 0: not at all */
    int64_t failover_delay_ms;

    /** 1: each step that the client takes is a line to `on_log`, DIVVY_LOG_DEBUG: what it asks and is answered, with
     * the names of a list, until when it believes in its session, and what it holds from when to when. For a replay
     * against the rules of docs/protocol.md (docs/testing.md). A line has "step", the client's time in ms, its session,
     * then what happened; any release may write other lines. No data and no credentials */
    int log_steps;
} divvy_client_config;

#define DIVVY_CLIENT_CONFIG_INIT                                                                                     \
    {                                                                                                                \
        sizeof(divvy_client_config), NULL, 10000, 0, 0, NULL, NULL, DIVVY_ACL_AUTO, 0, 0, NULL, NULL, NULL, 0, NULL, \
            NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 0, 0, 0                                   \
    }

/**
 * Writes the defaults of DIVVY_CLIENT_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_client_config_init(divvy_client_config *config, size_t size);

/** The work of a client since it was opened, in numbers. All but the last block only grow. Later releases add figures
 *  at the end only. */
typedef struct {
    uint64_t requests;             /**< requests sent; a multi is one */
    uint64_t creates;              /**< nodes asked to be created, those inside a multi counted singly */
    uint64_t deletes;              /**< likewise */
    uint64_t sets;                 /**< likewise */
    uint64_t checks;               /**< likewise */
    uint64_t writes;               /**< creates + deletes + sets + checks */
    uint64_t multis;               /**< multi requests */
    uint64_t reads;                /**< exists + get + children */
    uint64_t exists;               /**< single reads, by kind */
    uint64_t gets;                 /**< single reads, by kind */
    uint64_t children;             /**< single reads, by kind */
    uint64_t bytes_sent;           /**< of paths and data in requests, without the protocol's own framing */
    uint64_t bytes_received;       /**< of names and data in answers, likewise */
    uint64_t watch_events;         /**< watches that fired, and that somebody still waited for */
    uint64_t session_events;       /**< changes of the session's state */
    uint64_t events;               /**< all that the loop was given */
    uint64_t connects;             /**< connections that were established */
    uint64_t failed;               /**< requests that ended without an answer of a server */
    uint64_t round_trips;          /**< answers in round_trip_total_us */
    uint64_t round_trip_total_us;  /**< sum over all answers; divide by round_trips for the mean */
    uint64_t round_trip_max_us;    /**< the longest */
    uint64_t in_flight;            /**< now: requests without an answer */
    uint64_t watches;              /**< now: armed watches */
    uint64_t watch_path_bytes;     /**< now: their paths, against the budget */
    uint64_t ephemerals;           /**< now: ephemeral nodes we have, or may have */
    uint64_t ephemeral_path_bytes; /**< now: their paths, against the budget */
} divvy_stats;

/**
 * Opens a session. Returns at once; it does not wait for a server. With `death_watch` it waits until that watches this
 * process: a few milliseconds, and 10 s at most.
 *
 * Host names are resolved in the background, again after each disconnect. In threaded mode two threads of ours and two
 * of the native client's are started, all with all signals blocked.
 *
 * Ownership: `config` is copied. On success end *out with divvy_client_close(). On error *out is NULL and there is
 *   nothing to release.
 * Thread: any. No callback runs inside this call. divvy_client_error(NULL) tells more on failure.
 *
 * @param out    [out] the client
 * @param config NULL: all defaults
 * @return 0, or
 *   DIVVY_EINVAL       out is NULL, a config without its INIT macro, a variable of the environment that is malformed;
 *                      hosts, chroot or credentials malformed, a time out of range, an unknown acl, credentials without
 *                      a scheme or the reverse, an acl that needs credentials without them; the servers' tick is not
 *                      known, or the session timeout can hold nothing on such ticks (the message names the least that
 *                      can);
 *                      death_watch neither 0 nor 1; failover_delay_ms negative, or not below session_timeout_ms;
 *                      TLS: one of its files is missing, or cannot be read or used, or their names or the password
 *                      have a comma, or OpenSSL would trust other CAs too; SASL: the user or the password file is
 *                      missing, or cannot be read
 *   DIVVY_EUNSUPPORTED a scheme other than "digest"; TLS with a native client that was built without OpenSSL;
 *                      SASL with one that was built without Cyrus SASL, or with another mechanism; TLS and SASL;
 *                      death_watch on a kernel without pidfds (Linux before 5.3)
 *   DIVVY_ENOMEM       allocation failed
 *   DIVVY_ESYSTEM      no thread or no descriptor could be had; the death watch cannot be started, or says nothing
 */
DIVVY_API int divvy_client_open(divvy_client **out, const divvy_client_config *config);

/**
 * Waits until a server serves the session.
 *
 * Thread: any; drives the loop itself in manual mode.
 * @param timeout_ms -1: for ever; 0: only look
 * @return 0 when connected, or
 *   DIVVY_ETIMEDOUT  no server answered in time; divvy_client_error() says which addresses were tried
 *   DIVVY_ERESOLVE   the time is over and no host name could be resolved
 *   DIVVY_EAUTH      the servers refused the credentials, or demand others (docs/protocol.md, H9); the message says
 *                    what gives them
 *   DIVVY_EACCES     the chroot does not exist and may not be created
 *   DIVVY_EUNSUPPORTED  the server ends a session with its connection (tokens_checked)
 *   DIVVY_ELOST      the session is lost, and there will be no other (attached clients)
 *   DIVVY_ECLOSED    the client was closed during the call
 *   DIVVY_EINTERRUPTED  the config's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     client is NULL, or timeout_ms below -1; or ensemble_tick_ms is below the server's tickTime
 */
DIVVY_API int divvy_client_wait_connected(divvy_client *client, int64_t timeout_ms);

/**
 * Waits up to timeout_ms for something to do, then does all that is due, callbacks included. For manual mode.
 *
 * Everything hangs on this call: it sends the heartbeats and reads the answers. When it does not come for
 * divvy_client_time_left_ms(), the session is lost, and with it every item, lock, slot and service. That happens most
 * easily at a graceful stop, while the thread that drives the loop joins its workers: it drives the loop until they
 * have ended, see docs/threading.md. A call that comes later than a heartbeat's interval (a tenth of the timeout, up to
 * half as much again, and at least 100 ms) after divvy_client_next_deadline() gives DIVVY_WARN_LATE, with by how much;
 * once, until a call has come in time. A call that waits drives the loop too, and is judged likewise.
 *
 * Thread: one at a time; other threads may call any other function while it runs.
 * @param timeout_ms -1: until there is something; 0: do not wait
 * @return the number of events and timers handled and callbacks run, 0 when the time passed without any, or
 *   DIVVY_ESTATE     the client is not in manual mode, or another thread is inside this call
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_ECLOSED    the client was closed
 *   DIVVY_EFORK      called in the child of a fork
 *   DIVVY_EINVAL     client is NULL, or timeout_ms below -1
 */
DIVVY_API int divvy_client_process(divvy_client *client, int64_t timeout_ms);

/**
 * Returns a descriptor that is readable when divvy_client_process() has work. For manual mode. Poll it for reading
 * together with divvy_client_next_deadline(); never read from it or close it. It stays open until the client is closed
 * and all that was made on it is destroyed: no other descriptor has its number before.
 * @return the descriptor; -1 in threaded mode or for NULL
 */
DIVVY_API int divvy_client_fd(const divvy_client *client);

/**
 * Returns the time to the latest call of divvy_client_process() that is in time, in milliseconds: the timeout for
 * poll(2). For manual mode. Ask again after each call of a divvy function.
 * @return 0: due now; -1: no timer runs
 */
DIVVY_API int64_t divvy_client_next_deadline(const divvy_client *client);

/**
 * Returns the state of the session. Thread: any.
 * @return DIVVY_CLOSED for NULL
 */
DIVVY_API divvy_session_state divvy_client_state(const divvy_client *client);

/**
 * Names a state of the session as its constant does, without the prefix: "CONNECTED". Ownership: static. Thread: any.
 * @return the name; "unknown" for any other number, never NULL
 */
DIVVY_API const char *divvy_session_state_name(divvy_session_state state);

/**
 * Names a code of `on_warning`, of this header or of registry.h, as its constant does, without the prefix: "STRAY" for
 * DIVVY_WARN_STRAY. Ownership: static. Thread: any.
 * @return the name; "unknown" for any other number, never NULL
 */
DIVVY_API const char *divvy_warning_name(int code);

/**
 * Returns for how many milliseconds the session is certainly alive, by the session clock (docs/protocol.md, rules C1 to
 * C5). The caller may work for so long on what it owns, whatever the servers do. A program that needs time to stop its
 * work begins to stop that much earlier. Thread: any; no request is sent.
 * @return 0 when the session is lost, was never
 * established, or client is NULL
 */
DIVVY_API int64_t divvy_client_time_left_ms(const divvy_client *client);

/** Returns the session's id as the servers know it; 0 before the first connection and for NULL. Thread: any. */
DIVVY_API int64_t divvy_client_session_id(const divvy_client *client);

/**
 * Tells what the client has done so far.
 *
 * Writes `size` bytes: figures that only the caller knows become zero, figures that only the library knows are left
 * out.
 * Thread: any.
 * @param out  [out] caller's memory; its contents need not be set before
 * @param size sizeof *out, as the caller knows it
 * @return 0, or
 *   DIVVY_EINVAL  client or out is NULL, or size is 0
 *   DIVVY_EFORK   called in the child of a fork
 */
DIVVY_API int divvy_client_stats(const divvy_client *client, divvy_stats *out, size_t size);

/**
 * Returns what went wrong in the thread's last call that returned an error: what, where, why. At most 511 bytes.
 *
 * Calls that return nothing, as those that destroy, close or free, and those that return what they look up, leave it as
 * it was, whatever runs inside them. A callback begins with none; but in the `done` of an asynchronous call that has
 * failed, and in an election's `on_failed`, it says why. What is said in a callback is forgotten when that returns, so
 * that a callback inside a call of the thread (manual mode) does not change it.
 *
 * Ownership: the string belongs to the thread and is good until its next divvy call, or the end of the callback.
 * @param client the client, or NULL for calls that had none (divvy_client_open())
 * @return "" when the thread's last error was not of this client
 */
DIVVY_API const char *divvy_client_error(const divvy_client *client);

/**
 * Ends the session. Nodes of ours that are still there are deleted (in batches, waiting up to 2 s for a server that
 * answers), objects made on the client end their work, requests under way end with DIVVY_ECANCELED, threads are
 * joined, descriptors closed.
 *
 * What has come about is told, all of it, before the client has ended: a partitioner's last items and DIVVY_FAILURE,
 * losses, the ends of asynchronous calls, leaders and services that were found, states of the session, warnings, log
 * lines. Only objects that were destroyed tell nothing more. What is held is given back by this call, which is no loss.
 *
 * Thread: any, once. Inside a callback of this client it returns at once and the client ends when the callback
 *   returns. Outside it returns when nothing of the client still runs; the last callbacks run in the calling thread,
 *   which must hold no lock that they take.
 * @param client NULL is allowed. In the child of a fork nothing is done, and the memory is not released
 */
DIVVY_API void divvy_client_close(divvy_client *client);

/** Returns the version of the library, "major.minor.patch". Static. */
DIVVY_API const char *divvy_version(void);

/** A list of strings that a call returned. Opaque, immutable. */
typedef struct divvy_strings divvy_strings;
/** Returns the number of strings; 0 for NULL. */
DIVVY_API size_t divvy_strings_count(const divvy_strings *strings);
/** Returns the i-th string, or NULL past the end; lives until divvy_strings_free(). */
DIVVY_API const char *divvy_strings_get(const divvy_strings *strings, size_t i);
/** Releases the list; NULL is allowed. */
DIVVY_API void divvy_strings_free(divvy_strings *strings);

DIVVY_EXTERN_C_END

#endif
