/**
 * @file registry.h
 * Service registry: services announce themselves, others find the healthy and least loaded.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The rules are those of doublethink's ServiceRegistry; the entries are such as Curator's ServiceDiscovery reads and
 * writes, at the same paths, so that both may share a registry.
 *
 * Entries. A status, and an entry, is one JSON object: a cJSON tree, which programs make and take apart with cJSON's
 * own functions (link with -lcjson). A host may give cJSON an allocator of its own (cJSON_InitHooks). It does so before
 * it opens its first client, and changes it no more. Of a status:
 *   role  string, required: what the service is. Services are looked up by it
 *   load  number, required: the least loaded service of a role is found first. Any scale, the same for all of a role
 *   ttl   number > 0, required: seconds. A service whose last heartbeat is this old, or older, is not healthy
 *   id    string: which service of its role it is. Left out, one is generated; it is to be supplied with every later
 *         heartbeat: take it from the entry that came back
 *   host, pid               set where they are left out
 *   first_heartbeat         set, unless it is supplied or this registry has announced the same service before: ISO 8601
 *   last_heartbeat          always set: ISO 8601, UTC, milliseconds, by the servers' clock
 *   name, address, port, sslPort, payload, registrationTimeUTC, serviceType, uriSpec   what Curator looks at. name is
 *         the role; address is the host where it is left out; registrationTimeUTC is the time of the first heartbeat;
 *         serviceType is set by the kind of the entry, whatever the status says: DYNAMIC, or with `persistent`
 *         PERMANENT (STATIC where the status says so); the rest is null where it is left out. What Curator could not
 *         read is refused: a payload that is neither null, a string, nor an object with "@class"; ports that are no
 *         32-bit numbers; a serviceType that is none
 *   enabled                 Curator's: false says that nobody is to use the service
 *   nonce, attempt          set: whose entry it is, and which write made it
 *   any other field         kept as it is
 * An entry takes at most 128 KiB as text, 32 levels, and 10,000 values. A node of others that is larger, or no entry,
 * or hidden by an access list, is skipped by all calls, counted by divvy_registry_malformed(), and warned of once
 * (DIVVY_WARN_ENTRY).
 *
 * Healthy is a service whose entry is strictly younger than its ttl. The age is the time since the entry was last
 * written, both by the servers' clock, which is learned from writes of our own: no clock of any client matters. Where
 * something is not known exactly the worst is assumed: no entry is returned that could be too old, none is purged or
 * taken over that could be young enough. Entries that Curator wrote have no ttl and no load: they are healthy for as
 * long as they exist, with a load of 0. One that says "enabled": false is not healthy.
 *
 * Persistence. Entries are ephemeral by default: they go with the session, and stand again by themselves on the next
 * one while their ttl lasts. With `persistent` they stay until they are unregistered, or purged.
 */
#ifndef DIVVY_REGISTRY_H
#define DIVVY_REGISTRY_H

#include "divvy/client.h"

DIVVY_EXTERN_C_BEGIN

/** As <cjson/cJSON.h> has it, which only programs that look into entries need. */
typedef struct cJSON cJSON;

/** A registry as one program uses it: what it announces, and what it watches. Opaque. Lifetime: rules 2 and 6 of
 * client.h. */
typedef struct divvy_registry divvy_registry;

/** The healthy services of a role, or of all, at one moment; the least loaded first. Opaque, immutable. It lives until
 * divvy_services_unref(), also after its registry and its client. */
typedef struct divvy_services divvy_services;

/** Codes of `on_warning` (client.h), besides DIVVY_WARN_NODE_GONE and the others there. */
enum divvy_registry_warning {
    DIVVY_WARN_ENTRY = 100, /**< something below the registry's path that is no entry; it is skipped */
    DIVVY_WARN_NO_SERVICE,  /**< divvy_registry_unregister() found no such service */
    DIVVY_WARN_HEARTBEAT,   /**< an automatic heartbeat, or one for a new session, was not stored */
    DIVVY_WARN_POLLED,      /**< a live view does not fit the budget of watches: it is read at intervals instead */
    DIVVY_WARN_PRESERVED, /**< more of a role's entries vanished at once than `preserve_share`: they are kept a while */
};

/** The kind of change of a watched service. */
enum {
    DIVVY_REGISTRY_ADDED = 1, /**< it was not there: before is NULL */
    DIVVY_REGISTRY_CHANGED,   /**< its entry was replaced; a heartbeat changes last_heartbeat at least */
    DIVVY_REGISTRY_REMOVED,   /**< it is gone: after is NULL */
    DIVVY_REGISTRY_PRESERVED, /**< its entry is gone, and is kept for a while, lest too many others went with it
                                   (`preserve_share`): after is before with "preserved": true. CHANGED (it is back) or
                                   REMOVED follows */
};

/** The configuration of a registry. Initialise with DIVVY_REGISTRY_CONFIG_INIT, then set what differs. All but
 * `user` is copied. */
typedef struct {
    size_t size;      /**< sizeof of this struct, set by the INIT macro */
    const char *path; /**< absolute, the same for all; made, with its parents, when it is missing. NULL:
                            "/divvy/services" */
    const char *host; /**< for statuses without "host"; NULL: this machine's name */
    int64_t pid;      /**< for statuses without "pid"; 0: this process's */
    const char
        *nonce;     /**< with id, host and pid: who divvy_registry_unique_service() takes us for. NULL: random, the same
                            for all registries of this process. Two candidates in one process need two, or two hosts */
    int persistent; /**< 1: entries outlive the session, and the process, until their ttl and a purge */
    int heartbeat;  /**< 1: after the first heartbeat of a service all others are sent by themselves, every ttl/3, until
                            it is unregistered */
    double heartbeat_jitter; /**< of that interval: so much of it more or less, by chance. 0 to 0.5; default 0.1 */
    /** Asked for the load before each heartbeat sent by itself; `load` is what was said last. A callback (rule 5 of
     * client.h). Where it does not return in time, or no finite number, the heartbeat is sent with the last load. NULL:
     * it never changes */
    double (*on_load)(divvy_registry *registry, const char *role, const char *id, double load, void *user);
    size_t watch_bytes;    /**< the most that live views take of the client's `watch_path_bytes`; 0: half, the most */
    int64_t poll_ms;       /**< views that do not fit are read this often instead; 0: 5000 */
    double preserve_share; /**< self-preservation of views: when more than this share of a role's entries vanishes
                                     at once, they are kept for a while. 0 to less than 1; 0: off */
    int64_t preserve_settle_ms; /**< what "at once" is; 0: 5000 */
    int64_t preserve_max_ms;    /**< kept for so long at most; 0: 300000 */
    void *user;                 /**< handed to on_load */
} divvy_registry_config;

#define DIVVY_REGISTRY_CONFIG_INIT \
    { sizeof(divvy_registry_config), NULL, NULL, 0, NULL, 0, 0, 0.1, NULL, 0, 0, 0.0, 0, 0, NULL }

/**
 * Writes the defaults of DIVVY_REGISTRY_CONFIG_INIT to *config, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param config [out] caller's memory; NULL: does nothing
 * @param size   sizeof *config, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_registry_config_init(divvy_registry_config *config, size_t size);

/**
 * Makes a registry object. Sends nothing.
 *
 * Ownership: `config` is copied. On success release *out with divvy_registry_close(). On error *out is NULL and there
 * is
 *   nothing to release.
 * Thread: any. No callback runs inside this call.
 * Source: doublethink.ServiceRegistry; docs/protocol.md, rules V2 to V14.
 *
 * @param out    [out] the registry
 * @param client need not be connected yet
 * @param config NULL: all defaults
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, a path that ZooKeeper refuses or "/", an empty host or nonce or one that is no
 *                 UTF-8, a number out of its range, a config without its INIT macro
 *   DIVVY_E2BIG   host or nonce is longer than 1024 bytes
 *   DIVVY_ENOMEM  an allocation failed
 *   DIVVY_EFORK   called in the child of a fork
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 */
DIVVY_API int divvy_registry_open(divvy_registry **out, divvy_client *client, const divvy_registry_config *config);

/**
 * Releases the registry; NULL is allowed. Ephemeral entries of ours are deleted in the background, persistent ones
 * stay; watches end; calls that wait end with DIVVY_ECLOSED, heartbeats under way are told DIVVY_ECANCELED. Outside a
 * callback it returns when no callback of the registry still runs.
 * Thread: any, callbacks included; once, and not while another thread begins calls on the registry.
 */
DIVVY_API void divvy_registry_close(divvy_registry *registry);

/**
 * Does the same as divvy_registry_close() without waiting for a callback, whatever runs, in whatever thread: for
 * finalizers, and for threads that hold a lock which a callback needs. `gone` is called once, as the last callback of
 * the registry, after those that ran or were due: then the callbacks' `user` may be freed. It is called when the client
 * closes, too. On a client that was closed before it is called inside this call, unless a callback runs.
 * Thread: as divvy_registry_close().
 * @param gone may be NULL; not called where the registry is NULL, and in the child of a fork
 * @param user handed to gone
 */
DIVVY_API void divvy_registry_close_async(divvy_registry *registry, void (*gone)(void *user), void *user);

/**
 * Announces a service, or says that it is still there. `status` replaces the service's entry, also one that somebody
 * else wrote.
 *
 * One request where the entry stands already. From then on the service is ours: its entry is written again on a new
 * session, until it is unregistered or the registry closed.
 * When the call ends with DIVVY_ETIMEDOUT the entry may still be stored afterwards; unregister it if that must not be.
 *
 * Ownership: `status` stays the caller's. *stored is the caller's, to be released with cJSON_Delete(); NULL on error.
 * Thread: any, but not inside a callback (there: divvy_registry_heartbeat_async()); drives the loop itself in manual
 *   mode.
 * @param status     an object with role, load and ttl at least
 * @param stored     [out] the entry as it stands in ZooKeeper; may be NULL
 * @param timeout_ms -1: for ever
 * @return 0, or
 *   DIVVY_EINVAL     a field is missing, or is not what it must be: divvy_client_error() names it; the status has more
 *                    than 32 levels; registry is NULL, or timeout_ms below -1
 *   DIVVY_E2BIG      the entry is larger than an entry may be; the role or the id is longer than 4096 bytes
 *   DIVVY_ELIMIT     no room for one more ephemeral node in the session's budget; or 65536 heartbeats wait already
 *   DIVVY_EACCES     the access list denies creating, writing, or deleting
 *   DIVVY_ETIMEDOUT  no answer in time
 *   DIVVY_EBUSY      others changed or deleted what stands there as often as we wrote it
 *   DIVVY_ENOTEMPTY  an entry is to be replaced, and somebody has made a node below it
 *   DIVVY_ECANCELED  the service was unregistered meanwhile
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended, or the registry was closed meanwhile
 *   DIVVY_EINTERRUPTED  the client's `interrupted` said so
 *   DIVVY_EDEADLK    called inside a callback
 *   DIVVY_ENOMEM     an allocation failed
 *   DIVVY_EFORK      called in the child of a fork
 */
DIVVY_API int divvy_registry_heartbeat(divvy_registry *registry, const cJSON *status, cJSON **stored,
                                       int64_t timeout_ms);

/**
 * Begins a heartbeat; `done` is told how it ended. Any number may be under way; those of one service are stored in the
 * order of the calls.
 *
 * After a return of 0 `done` is called exactly once, as a callback (rule 5 of client.h), with what
 * divvy_registry_heartbeat() would have returned; with DIVVY_ECANCELED also when the registry or the client is closed
 * before. `stored` is lent until it returns, and NULL on error.
 * After an error `done` is not called.
 *
 * Thread: any, callbacks included.
 * @param status     copied
 * @param timeout_ms -1: none
 * @param done       may be NULL
 * @return 0, or DIVVY_EINVAL, DIVVY_E2BIG, DIVVY_ELIMIT, DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH, DIVVY_ENOMEM,
 *   DIVVY_EFORK as divvy_registry_heartbeat()
 */
DIVVY_API int divvy_registry_heartbeat_async(divvy_registry *registry, const cJSON *status, int64_t timeout_ms,
                                             void (*done)(divvy_registry *registry, int result, const cJSON *stored,
                                                          void *user),
                                             void *user);

/**
 * Removes a service, whosesoever it is.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param role       NULL: every service of this id, in all roles
 * @param id         not NULL
 * @param timeout_ms -1: for ever. A service of our own is removed even when the time passes before
 * @return 0 when it is gone, or
 *   DIVVY_ENOENT     there is no such service (DIVVY_WARN_NO_SERVICE is given, too)
 *   DIVVY_EACCES     the access list denies it
 *   DIVVY_ENOTEMPTY  somebody has made a node below the entry
 *   DIVVY_ETIMEDOUT  no answer in time
 *   DIVVY_EINVAL     a NULL pointer, an empty role or id, timeout_ms below -1
 *   DIVVY_E2BIG      the role or the id is longer than 4096 bytes
 *   DIVVY_EINTERRUPTED, DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH, DIVVY_EDEADLK, DIVVY_ENOMEM, DIVVY_EFORK
 *                    as divvy_registry_heartbeat()
 */
DIVVY_API int divvy_registry_unregister(divvy_registry *registry, const char *role, const char *id, int64_t timeout_ms);

/**
 * Returns the healthy services of a role, or of all roles, by reference: the least loaded first; of several with the
 * same load, the one that registered first.
 *
 * Where the role, or all, is watched (divvy_registry_watch()) this sends no request and copies nothing: all who ask are
 * given the same list until an entry of it changes or a ttl ends. The next list shares all that has not changed.
 * For each request of your own: take the list, read what you need, release it. That costs less than a microsecond. Or
 * keep it: it stays as it is, and its services may have gone by then.
 * Elsewhere all entries are read.
 *
 * Ownership: *services is the caller's, to be released with divvy_services_unref(). On error it is NULL.
 * Thread: any, but not inside a callback, unless the role is watched; drives the loop itself in manual mode.
 * @param role       NULL: all
 * @param services   [out] may have no entries
 * @param timeout_ms -1: for ever
 * @return 0, or
 *   DIVVY_EACCES     the access list denies reading; or writing, where the servers' clock is not known yet
 *   DIVVY_EINVAL, DIVVY_E2BIG, DIVVY_ETIMEDOUT, DIVVY_EINTERRUPTED, DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH,
 *   DIVVY_EDEADLK, DIVVY_ENOMEM, DIVVY_EFORK  as divvy_registry_unregister()
 */
DIVVY_API int divvy_registry_services(divvy_registry *registry, const char *role, divvy_services **services,
                                      int64_t timeout_ms);

/** Releases a list; NULL is allowed. Its entries are not to be used afterwards. Thread: any. */
DIVVY_API void divvy_services_unref(divvy_services *services);

/** Returns how many services a list has; 0 for NULL. Thread: any, also several at once. */
DIVVY_API size_t divvy_services_count(const divvy_services *services);

/**
 * Returns the entry of one service. It is the list's, shared with others, and lives as long as the list.
 * Thread: any, also several at once. Nobody may change the entry.
 * @param i 0: the least loaded
 * @return NULL for a NULL list, and for an i that is not below the count
 */
DIVVY_API const cJSON *divvy_services_entry(const divvy_services *services, size_t i);

/**
 * Returns a copy of the healthy service of a role that has the least load.
 *
 * It is the first entry of divvy_registry_services(), which costs less where the role is watched.
 * Ownership: *entry is the caller's, to be released with cJSON_Delete(). NULL when there is none.
 * @param role  not NULL
 * @param entry [out]
 * @return 0, also when there is none; otherwise as divvy_registry_services()
 */
DIVVY_API int divvy_registry_healthy_service(divvy_registry *registry, const char *role, cJSON **entry,
                                             int64_t timeout_ms);

/**
 * Returns copies of all entries of divvy_registry_services().
 *
 * @param role  NULL: all
 * @param array [out] a JSON array, which may be empty; the caller's, to be released with cJSON_Delete()
 * Otherwise as divvy_registry_services().
 */
DIVVY_API int divvy_registry_healthy_services(divvy_registry *registry, const char *role, cJSON **array,
                                              int64_t timeout_ms);

/**
 * Returns the one service of a unique role. Where a candidate is given, it first claims the role for it, or keeps it.
 *
 * The role's one entry has the role as its id. A candidate that holds it sends a heartbeat by this, and first_heartbeat
 * stays what it was. Where another holds it and is healthy, that one's entry is returned. Where nobody does, or the
 * holder's ttl has passed, the candidate takes its place: in one transaction, so that of several candidates one wins.
 * Id, host, pid and nonce tell who we are: neither a new session nor any other field of the candidate changes it.
 * A holder calls this every ttl/3. It is not repeated by itself, not even on a new session.
 * divvy_registry_is_ours() tells whether the role is ours.
 *
 * Ownership: `candidate` stays the caller's. *entry is the caller's, to be released with cJSON_Delete(); NULL when
 * there
 *   is no healthy one.
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param candidate  NULL: only look. Needs ttl only; role, name and id are set
 * @param entry      [out]; may be NULL
 * @return as divvy_registry_heartbeat(), or
 *   DIVVY_ENOENT  the chroot of an attached client's handle does not exist
 */
DIVVY_API int divvy_registry_unique_service(divvy_registry *registry, const char *role, const cJSON *candidate,
                                            cJSON **entry, int64_t timeout_ms);

/**
 * Returns whether an entry is this registry's own, by host, pid and nonce. Thread: any, callbacks included; sends
 * nothing.
 * @return 1 or 0; 0 for a NULL pointer
 */
DIVVY_API int divvy_registry_is_ours(const divvy_registry *registry, const cJSON *entry);

/**
 * Deletes the entries that are older than so many times their ttl: strictly older, and only as they were when they were
 * read. An entry without a ttl is never purged.
 *
 * Thread: any, but not inside a callback; drives the loop itself in manual mode.
 * @param ttls   0 or more; doublethink's default is 2
 * @param purged [out] how many were deleted by this call; also when it ends with an error. May be NULL
 * @return 0, or DIVVY_EINVAL (ttls is negative or no number), DIVVY_ENOTEMPTY (somebody has made a node below an entry;
 *   the others are purged) and as divvy_registry_healthy_service()
 */
DIVVY_API int divvy_registry_purge_stale_services(divvy_registry *registry, double ttls, size_t *purged,
                                                  int64_t timeout_ms);

/**
 * Keeps a live view of a role, or of all, and tells each change in it to on_change. divvy_registry_services(),
 * _healthy_service() and _healthy_services() send no request for what is viewed, once it has been read as a whole.
 *
 * Watches are set within `watch_bytes`; a role that does not fit is read every `poll_ms` instead (DIVVY_WARN_POLLED),
 * the others are watched all the same. While the connection is down the view stands as it was; after a reconnect, or on
 * a new session, it is brought up to date, and what happened meanwhile is told. Between the loss of a session and that
 * moment lookups are not answered from the view.
 *
 * The entries that stand are told as DIVVY_REGISTRY_ADDED. Of each service `before` is what `after` was in the call
 * before, so changes that come faster than on_change returns are told as one; of different services no order is kept.
 * An entry whose node was replaced by another one is told as removed and added. A service whose ttl passes is not
 * removed: it is not healthy any longer. A node that holds no entry is not told; an entry that turns into none is
 * removed.
 *
 * Self-preservation (`preserve_share` > 0). A healthy service whose node vanishes is told as DIVVY_REGISTRY_PRESERVED
 * and kept, marked by "preserved": true: it is given to who asks for healthy services, after all that are there. If
 * `preserve_settle_ms` after the first such loss of the role there are, with those that came meanwhile, fewer healthy
 * services than (1 - preserve_share) times those of before, and more than one was lost, then what was lost is kept on
 * (DIVVY_WARN_PRESERVED), until it comes back, or there are so many again, or `preserve_max_ms` have passed since the
 * first loss. Otherwise it is removed. A service that has stopped cannot be told from one that is cut off: many
 * services that are stopped at once are given to users for so long, too.
 *
 * Thread: any, callbacks included. Returns at once.
 * Source: Curator's ServiceCache, which does not say what changed; self-preservation is Eureka's idea;
 *   docs/protocol.md, rules W6 to W17.
 * @param role      NULL: all. A role can be watched once, and all once besides
 * @param on_change a callback (rule 5 of client.h), may be NULL: only the view is wanted. `before` and `after` are lent
 *                  until it returns
 * @param user      handed to on_change
 * @return 0, or
 *   DIVVY_EALREADY  this role (or all) is watched by this registry
 *   DIVVY_EINVAL    registry is NULL, or the role is empty
 *   DIVVY_E2BIG     the role is longer than 4096 bytes
 *   DIVVY_ECLOSED, DIVVY_ELOST, DIVVY_EAUTH  the client has ended
 *   DIVVY_ENOMEM    an allocation failed
 *   DIVVY_EFORK     called in the child of a fork
 */
DIVVY_API int divvy_registry_watch(divvy_registry *registry, const char *role,
                                   void (*on_change)(divvy_registry *registry, int change, const cJSON *before,
                                                     const cJSON *after, void *user),
                                   void *user);

/**
 * Ends a view. After it has returned, outside a callback, its on_change is no longer called; inside one, none begins.
 * @param role as it was given to divvy_registry_watch()
 * @return 0, or DIVVY_ENOENT (it is not watched), DIVVY_EINVAL, DIVVY_E2BIG, DIVVY_ENOMEM, DIVVY_EFORK
 */
DIVVY_API int divvy_registry_unwatch(divvy_registry *registry, const char *role);

/**
 * Returns how many entries were met that are none: malformed, unreadable for us, too large, too deep, or of another
 * name than their node (Curator's numbered DYNAMIC_SEQUENTIAL nodes are no such). Each version of a node counts once.
 * Thread: any, callbacks included.
 * @return 0 for NULL
 */
DIVVY_API uint64_t divvy_registry_malformed(const divvy_registry *registry);

DIVVY_EXTERN_C_END

#endif
