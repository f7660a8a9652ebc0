/* The one seam to ZooKeeper. SPDX-License-Identifier: Apache-2.0
 *
 * A backend (lib/znode/apache on the native client) gives the operations, one-shot watches, session events, random
 * bytes and the clock. Recipes call the dv_znode_* functions below and know nothing else of ZooKeeper.
 *
 * Rules of the seam
 *  1. All calls are made with the client lock held; nothing here is called from two threads at once.
 *  2. An operation never completes inside the call that submits it. It completes exactly once, by its function being
 *     called from the client's loop; what the reply points to lives during that call. Paths and data that an operation
 *     points to live until then; dv_znode_submit() and dv_znode_multi() give it copies. The one error a submitting call
 *     returns is DIVVY_ENOMEM: then nothing happens.
 *  3. Operations reach the server, and their replies arrive, in the order in which they were submitted. An operation
 *     that this side refuses ends without waiting for those before it.
 *  4. A watch fires at most once, from the loop, before any later read shows the change. It is silent while the
 *     connection is down, and after dv_znode_unwatch(). It is given to one read at a time, and is armed by a read that
 *     succeeded, or by an exists that found nothing. Without memory to tell which one has fired, all do.
 *  5. Whatever a backend says from another thread it puts into an event for the sink, the client's queue. */
#ifndef DV_ZNODE_H
#define DV_ZNODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histogram.h"
#include "divvy/client.h"
#include "znode/again.h"

/* Limits of a request, far enough below the server's 1,048,575 bytes (docs/protocol.md, B5). */
enum {
    DV_REQUEST_BYTES_MAX = 1000000,
    DV_MULTI_BYTES_MAX = 256 * 1024,
    DV_MULTI_OPS_MAX = 1000,
    DV_IN_FLIGHT_MAX = 1000,
};

/* An event in the client's queue: `run` is called once, with the client lock held, and releases the event. */
typedef struct dv_event {
    struct dv_event *next;
    void (*run)(struct dv_event *event, int64_t now);
} dv_event;

/* Where a backend posts its events, from any thread. */
typedef struct {
    void (*post)(void *queue, dv_event *event);
    void *queue;
} dv_sink;

typedef struct {
    int64_t czxid, mzxid, pzxid, ephemeral_owner;
    int32_t version, data_bytes, children;
    int32_t acl_version;        /* how often its access list was set since it was made */
    int64_t ctime_ms, mtime_ms; /* since 1970, by the clock of the leader at the time */
} dv_stat;

/* DV_ACL: who may do what to a node. The in-memory ensemble does not know it: DIVVY_EUNSUPPORTED. */
typedef enum { DV_CREATE, DV_DELETE, DV_SET, DV_CHECK, DV_GET, DV_EXISTS, DV_CHILDREN, DV_ACL } dv_kind;
enum { DV_KINDS = DV_ACL + 1 };

/* A container is never part of a multi (B7); servers that lack them make a persistent node (B8). */
enum { DV_PERSISTENT = 0, DV_EPHEMERAL = 1, DV_SEQUENTIAL = 2, DV_CONTAINER = 4 };

typedef struct dv_op {
    dv_kind kind;
    const char *path;
    const void *data; /* create, set; never NULL on the wire: no data is data of length 0 */
    size_t data_bytes;
    int mode;        /* create: DV_EPHEMERAL | DV_SEQUENTIAL, or DV_CONTAINER */
    int32_t version; /* delete, set, check: -1 for any */
} dv_op;

typedef struct {
    int error;           /* 0, or a DIVVY_E*; as the backend gives it, see dv_answer_error() */
    const char *path;    /* create: the node's path as made */
    const dv_stat *stat; /* create outside a multi, set, get, exists, children; else NULL. Of a set in a multi its
                                    mzxid is the czxid of all that the multi made */
    const void *data;    /* get */
    size_t data_bytes;   /* get */
    const char *const *children; /* children, in no order; acl: entries, as in "cdrwa world:anyone" */
    size_t child_count;
} dv_reply;

typedef void (*dv_reply_fn)(void *context, const dv_reply *reply, int64_t now);
/* A multi's reply: the error of the whole, and a reply for each of its operations. */
typedef void (*dv_multi_fn)(void *context, int error, const dv_reply *replies, size_t count, int64_t now);

typedef enum { DV_WATCH_CREATED, DV_WATCH_DELETED, DV_WATCH_CHANGED, DV_WATCH_CHILDREN } dv_watch_kind;

/* A place for one watch, inside the recipe that waits. Zeroed before its first use; armed by being given to a read. */
typedef struct dv_watch {
    void (*fired)(struct dv_watch *watch, dv_watch_kind kind, int64_t now);
    struct dv_watch *next, **link; /* the backend's: NULL while not armed */
} dv_watch;

typedef struct {
    divvy_session_state state; /* DIVVY_CONNECTED, _SUSPENDED, _LOST, _AUTH_FAILED */
    int64_t session_id;
    int64_t timeout_ms; /* as the server granted it */
    int64_t
        created_at; /* connected to a session made for it: a time before that was asked for. 0: it was there before */
    const char *reason;        /* auth failed: why, as a static text; NULL: the credentials were refused */
    bool ends_with_connection; /* connected: the server ends the session when the connection ends (B9) */
} dv_session_news;

/* A server's answer to a request, good or bad: what the session clock lives on (docs/protocol.md, C3). It is told
 * before the request's own function is called. A result that only this side made is no answer. */
typedef struct {
    int64_t sent_at;     /* not later than the request left */
    uint64_t connection; /* how many connections had been told of by then: it went by this one, or by a later one */
    bool wrote;          /* a write, or a multi */
    int error;
} dv_answer;

typedef struct dv_znode dv_znode;

typedef struct {
    int (*submit)(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context);
    int (*multi)(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context);
    void (*unwatch)(dv_znode *znode, dv_watch *watch);
    int64_t (*now_ms)(const dv_znode *znode); /* from any thread */
    int (*random)(dv_znode *znode, void *bytes, size_t count);
    void (*stats)(const dv_znode *znode, divvy_stats *out);
    /* Returns the addresses, and in *error whether any could be resolved; for messages. */
    const char *(*servers)(const dv_znode *znode, int *error);
    /* Returns why servers are not used, as lines, or NULL; for messages. NULL for the function: it never knows. */
    const char *(*trouble)(const dv_znode *znode);
    /* Begins to connect. 0, or DIVVY_ENOMEM, DIVVY_ESYSTEM. Nothing is posted before. */
    int (*start)(dv_znode *znode);
    /* Writes the password of the session, 16 bytes. While connected. NULL: it has none, or it is not ours to tell. */
    void (*password)(const dv_znode *znode, char *out);
    /* The chroot that the hosts string named: "" or "/a/b". */
    const char *(*chroot)(const dv_znode *znode);
    /* Waits on behalf of the loop until there may be something to do, at most timeout_ms (-1: for ever). NULL: the loop
     * polls the client's descriptor; a backend with a clock of its own lets that go on instead. */
    void (*sleep)(dv_znode *znode, int64_t timeout_ms);
    /* A new session, after close; the queue has been drained of all that was of the old one. NULL: it has only one. */
    int (*reopen)(dv_znode *znode);
    /* The end, in this order: abandon with the client lock held, close without it, then all events of the queue are
     * run, then free. abandon completes every operation with `error`, now, and sends no more. close ends the session
     * and every thread of the backend; nothing is posted after it. */
    void (*abandon)(dv_znode *znode, int error, int64_t now);
    void (*close)(dv_znode *znode);
    void (*free)(dv_znode *znode);
} dv_znode_backend;

/* The parts of a backend; strings live during the call that makes it. */
typedef struct {
    const char *hosts;
    int64_t session_timeout_ms;
    const char *auth_scheme, *auth;
    int acl; /* resolved: DIVVY_ACL_OPEN, _CREATOR or _READABLE */
    dv_sink sink;
    void (*on_session)(void *context, const dv_session_news *news, int64_t now);
    void (*on_answer)(void *context, const dv_answer *answer, int64_t now);
    void (*on_tick)(void *context, int64_t tick_ms, int64_t now); /* a server has said its tickTime */
    void (*on_log)(void *context, int level, const char *message);
    void (*on_warning)(void *context, int code, const char *message); /* DIVVY_WARN_* */
    bool logs;
    bool traces; /* each request, and each answer, in the log (trace.h) */
    void *context;
} dv_backend_config;

/* Makes a backend. 0, or DIVVY_EINVAL with *reason about hosts, or DIVVY_ENOMEM. */
typedef int (*dv_backend_new_fn)(dv_znode **out, const dv_backend_config *config, const char **reason, void *context);

/* A client's experience with a request that not all servers know (B8). */
typedef struct {
    bool works;          /* a server has answered one */
    bool missing;        /* refused: the fallback is used until the client is closed */
    unsigned deaths;     /* connections that ended while one was under way, and none had been answered */
    uint64_t connection; /* the number of the last one of those */
} dv_optional;

/* Requests of this turn, to be sent at its end: batch.h. */
typedef struct {
    struct dv_batch_entry *first, **end;
} dv_batch_queue;

/* The head of every backend's session object. */
struct dv_znode {
    const dv_znode_backend *backend;
    dv_sink sink;
    void (*on_session)(void *context, const dv_session_news *news, int64_t now);
    void (*on_answer)(void *context, const dv_answer *answer, int64_t now);
    void (*on_tick)(void *context, int64_t tick_ms, int64_t now); /* a server has said its tickTime */
    void (*on_log)(void *context, int level, const char *message);
    void *context;
    bool attached; /* to a session of a host's, which may live on when we have given it up */
    bool traces;   /* each request and each answer is logged */
    dv_optional create2, containers;
    dv_batch_queue writes, reads;
    dv_again again;           /* requests that were put off */
    dv_histogram round_trips; /* of all requests that a server has answered; the client gives it its scale */
};

/* The two by which recipes send: again.h. As the backend's functions, but an answer that a server gave for now does not
 * come to its recipe, and one of unknown outcome comes as a lost one. */
int dv_znode_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context);
int dv_znode_multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context);
/* Returns the function that the sender of a multi gave, for backends of tests: `context` as they see it. */
dv_multi_fn dv_again_multi_done(const void *context);
/* Takes the watch back, armed or not. A read that the backend has with it is not sent again with it. */
static inline void dv_znode_unwatch(dv_znode *znode, dv_watch *watch) {
    znode->backend->unwatch(znode, watch);
    if (znode->again.waiting) dv_again_unwatch(znode, watch); /* An armed one may have been given to another read. */
}
/* Creates a node, also where servers lack create2 (B8): then later requests may be answered before it. */
int dv_znode_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context);
int dv_znode_submit_create(dv_znode *znode, const dv_op *op, dv_reply_fn done, void *context);
/* Uses the fallbacks of B8 from now on, as the servers are known not to be ZooKeeper. */
void dv_znode_lacks_requests(dv_znode *znode);
static inline int dv_znode_delete(dv_znode *znode, const char *path, int32_t version, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_DELETE, .path = path, .version = version};
    return dv_znode_submit(znode, &op, NULL, done, context);
}
static inline int dv_znode_get(dv_znode *znode, const char *path, dv_watch *watch, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_GET, .path = path};
    return dv_znode_submit(znode, &op, watch, done, context);
}
static inline int dv_znode_exists(dv_znode *znode, const char *path, dv_watch *watch, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_EXISTS, .path = path};
    return dv_znode_submit(znode, &op, watch, done, context);
}
static inline int dv_znode_children(dv_znode *znode, const char *path, dv_watch *watch, dv_reply_fn done,
                                    void *context) {
    dv_op op = {.kind = DV_CHILDREN, .path = path};
    return dv_znode_submit(znode, &op, watch, done, context);
}

/* Returns whether a write that ended so may have been applied, or may yet be (R1). EQUOTA is tried again likewise. */
static inline bool dv_outcome_unknown(int error) {
    return error == DIVVY_ECONNECTION || error == DIVVY_ENOMEM || error == DIVVY_EQUOTA;
}

/* Returns whether an operation ended so because nothing more can be done on this session. */
static inline bool dv_session_over(int error) {
    return error == DIVVY_ELOST || error == DIVVY_EAUTH || error == DIVVY_ECANCELED;
}

#endif
