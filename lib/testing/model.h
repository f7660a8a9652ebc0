/* The parts of the in-memory ensemble: paths, sessions, trees, events, messages. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_MEM_MODEL_H
#define DV_MEM_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divvy/testing.h"
#include "testing/prng.h"
#include "znode/znode.h"

enum {
    DV_MEM_SERVERS_MAX = 9,
    DV_MEM_REQUEST_BYTES_MAX = 1048575, /* jute.maxbuffer */
    DV_MEM_START_MS = 1000000,
};

/* Wall clocks stand so far ahead of the ensemble's own: they show a time of about 2026. */
#define DV_MEM_WALL_CLOCK_MS INT64_C(1767225600000)

typedef struct divvy_testing_ensemble dv_mem;
typedef struct dv_mem_event dv_mem_event;
typedef struct dv_mem_path dv_mem_path;
typedef struct dv_mem_node dv_mem_node;
typedef struct dv_mem_change dv_mem_change;
typedef struct dv_mem_watch dv_mem_watch;
typedef struct dv_mem_session dv_mem_session;
typedef struct dv_mem_request dv_mem_request;
typedef struct dv_mem_reply dv_mem_reply;
typedef struct dv_mem_txn dv_mem_txn;
typedef struct dv_mem_conn dv_mem_conn;
typedef struct dv_mem_link dv_mem_link;
typedef struct dv_mem_server dv_mem_server;
typedef struct dv_mem_client dv_mem_client;

/* ---- what trees and messages are made of (names.c) ---- */

typedef struct {
    unsigned refs;
    size_t bytes;
    char data[];
} dv_mem_blob;

/* A server's state of a path. */
typedef struct {
    dv_mem_node *node;
    dv_mem_watch *watches;
    dv_mem_change *change; /* a leader's: how the node will be once all that was proposed is applied */
} dv_mem_place;

/* Each path exists once, so that its holder needs no search to find its node on any server. */
struct dv_mem_path {
    dv_mem_path *next; /* in its chain of the table */
    dv_mem_path *parent;
    uint64_t hash;
    unsigned refs;
    uint32_t bytes;
    char *text; /* behind the places */
    dv_mem_place places[];
};

dv_mem_path *dv_mem_path_get(dv_mem *mem, const char *text, size_t bytes);
dv_mem_path *dv_mem_path_find(const dv_mem *mem, const char *text); /* takes no reference; NULL: nobody has it */
void dv_mem_path_unref(dv_mem *mem, dv_mem_path *path);
static inline dv_mem_path *dv_mem_path_ref(dv_mem_path *path) {
    path->refs++;
    return path;
}
const char *dv_mem_path_name(const dv_mem_path *path);
dv_mem_blob *dv_mem_blob_new(const void *data, size_t bytes); /* NULL: no bytes */
dv_mem_blob *dv_mem_blob_ref(dv_mem_blob *blob);
void dv_mem_blob_unref(dv_mem_blob *blob);
/* Ends the program when an allocation fails: nothing that is tested here can be blamed for it. */
void *dv_mem_alloc(size_t bytes);
/* Returns the array with room for one more; what is new is zero. */
void *dv_mem_grow(void *array, size_t count, size_t *room, size_t item_bytes);

/* Access of a node or of a connection: DIVVY_ACL_OPEN, _CREATOR or _READABLE, and whose. */
typedef struct {
    int acl;
    uint32_t identity; /* 0: nobody's */
} dv_mem_access;
uint32_t dv_mem_identity(dv_mem *mem, const char *auth);

/* ---- sessions ---- */

/* A server's knowledge of a session. */
typedef struct {
    bool exists;           /* in its tree */
    dv_mem_node *owned;    /* ephemeral nodes in its tree */
    dv_mem_conn *conn;     /* that it serves the session on */
    bool tracked, closing; /* a leader's: in its tracker; being closed */
    int owner;             /* a leader's: the server that last brought the session, -1: not known yet */
    int64_t expires_at;    /* a leader's */
    bool touched;          /* a follower's: heard of since the leader's last ping */
    dv_mem_session *touched_next;
} dv_mem_seat;

struct dv_mem_session {
    int64_t id, timeout_ms;
    dv_mem_seat seats[];
};

dv_mem_session *dv_mem_session_new(dv_mem *mem, int server, int64_t timeout_ms);
dv_mem_session *dv_mem_session_find(const dv_mem *mem, int64_t id);

/* ---- trees (tree.c) ---- */

struct dv_mem_node {
    dv_mem_path *path;
    dv_mem_blob *data;
    dv_mem_node *parent, *children, *sibling, **sibling_link;
    dv_mem_session *owner;
    dv_mem_node *owned_next, **owned_link;
    int64_t czxid, mzxid, pzxid, ctime_ms, mtime_ms;
    int32_t version, cversion, child_count;
    dv_mem_access access;
    bool container;
};

typedef enum {
    DV_MEM_TXN_CREATE = DIVVY_TESTING_CREATE,
    DV_MEM_TXN_DELETE = DIVVY_TESTING_DELETE,
    DV_MEM_TXN_SET = DIVVY_TESTING_SET,
    DV_MEM_TXN_SESSION_CREATE = DIVVY_TESTING_SESSION_CREATE,
    DV_MEM_TXN_SESSION_END = DIVVY_TESTING_SESSION_END,
    DV_MEM_TXN_CHECK,
} dv_mem_step_kind;

typedef struct {
    dv_mem_step_kind kind;
    int error; /* of this operation, in a transaction that failed */
    dv_mem_path *path;
    dv_mem_blob *data;
    dv_mem_session *owner; /* create: of an ephemeral */
    int64_t czxid;         /* of the node */
    int32_t version;       /* set: the new one */
    int32_t parent_cversion;
    dv_mem_access access;
    bool container;
    dv_stat stat; /* set: the node as it left it; the same on all servers that have applied it */
} dv_mem_step;

/* A transaction: the leader proposes it, and every server applies it. A failed request makes an empty one. */
struct dv_mem_txn {
    unsigned refs;
    int64_t index, zxid;
    int64_t time_ms; /* since 1970, as the leader's clock said */
    int error;
    dv_mem_session *session; /* whose request; may be NULL */
    dv_mem_request *request; /* to be answered by the server that it came to */
    bool expired;
    size_t count, room;
    dv_mem_step *steps;
};

dv_mem_txn *dv_mem_txn_new(dv_mem_session *session, dv_mem_request *request);
dv_mem_step *dv_mem_txn_add(dv_mem_txn *txn, dv_mem_step_kind kind, dv_mem_path *path);
void dv_mem_txn_clear(dv_mem *mem, dv_mem_txn *txn);
void dv_mem_txn_unref(dv_mem *mem, dv_mem_txn *txn);

void dv_mem_tree_init(dv_mem *mem, int server);
void dv_mem_tree_free(dv_mem *mem, int server);
/* Does to a server's tree what a transaction says, and fires the watches that are set there. */
void dv_mem_tree_apply(dv_mem *mem, dv_mem_server *server, dv_mem_txn *txn);
dv_stat dv_mem_node_stat(const dv_mem_node *node);

struct dv_mem_watch {
    dv_mem_conn *conn;
    dv_mem_path *path;
    bool of_children;
    dv_mem_watch *path_next, **path_link, *conn_next, **conn_link;
};
void dv_mem_watch_set(dv_mem_conn *conn, dv_mem_path *path, bool of_children);
void dv_mem_watch_fire(dv_mem *mem, const dv_mem_server *server, dv_mem_path *path, dv_mem_access access,
                       dv_watch_kind kind);

/* ---- events (heap.c) ---- */

/* Events that wait for a stopped process. */
typedef struct {
    dv_mem_event *first, **end;
} dv_mem_deferred;

struct dv_mem_event {
    uint64_t order;
    dv_mem_event *next;
    /* Once, unless it is dropped; what it holds is released after it. False: it was stale, and nothing happened. */
    bool (*run)(dv_mem *mem, dv_mem_event *event);
    dv_mem_server *server; /* who acts; stopped, it acts later */
    unsigned term;         /* of a timer's server or client: it never acts once that is over */
    dv_mem_client *client; /* as the server */
    struct dv_mem_channel *channel;
    bool arrived; /* the machine has it, though its process may be stopped */
    int direction, kind;
    dv_mem_conn *conn;
    dv_mem_link *link;
    dv_mem_request *request;
    dv_mem_reply *reply;
    dv_mem_txn *txn;
    dv_mem_session *session;
    int64_t index;
    void **list; /* owned: of sessions, or of transactions */
    size_t count;
};

typedef struct {
    int64_t at;
    uint64_t order;
    dv_mem_event *event;
} dv_mem_heap_entry;

dv_mem_event *dv_mem_event_new(dv_mem *mem, bool (*run)(dv_mem *mem, dv_mem_event *event));
void dv_mem_event_free(dv_mem *mem, dv_mem_event *event);
void dv_mem_event_push(dv_mem *mem, dv_mem_event *event, int64_t at);
/* Runs the first of the heap. False: it was stale, or its actor is stopped; nothing happened. */
bool dv_mem_event_run_first(dv_mem *mem);
/* Delivers the events that waited for a stopped process, in order; chance mixes in its timers. Only those that watch a
 * silent connection come after them: what lies in a socket is no silence. */
void dv_mem_events_resume(dv_mem *mem, dv_mem_deferred *deferred);
dv_mem_event *dv_mem_server_timer(dv_mem *mem, dv_mem_server *server, int64_t at,
                                  bool (*run)(dv_mem *mem, dv_mem_event *event));

/* ---- channels (channel.c): one TCP connection; direction 0 is from the client, or from the follower ---- */

typedef struct dv_mem_channel {
    int64_t last_at[2];
    unsigned under_way[2];
    bool broken[2]; /* something was lost: nothing more passes */
    bool open[2];   /* by side: 0 the client or follower, 1 the server or leader */
} dv_mem_channel;

/* Sends an event, and takes it: it may be dropped at once. `cut`: the wire does not carry that direction now. */
void dv_mem_channel_send(dv_mem *mem, dv_mem_channel *channel, int direction, bool cut, int64_t delay_ms,
                         dv_mem_event *event);
/* Cuts the wire in this direction: what is on the way is lost. */
void dv_mem_channel_cut(dv_mem_channel *channel, int direction);

/* ---- what is counted (message.c) ---- */

void dv_mem_client_unref(dv_mem_client *client);
dv_mem_conn *dv_mem_conn_ref(dv_mem_conn *conn);
void dv_mem_conn_unref(dv_mem_conn *conn);
dv_mem_link *dv_mem_link_ref(dv_mem_link *link);
void dv_mem_link_unref(dv_mem_link *link);

typedef enum {
    DV_MEM_CONNECT,
    DV_MEM_OPERATIONS,
    DV_MEM_PING,
    DV_MEM_AUTH,
    DV_MEM_SET_WATCHES,
    DV_MEM_CREATE_SESSION,
    DV_MEM_CLOSE_SESSION,
} dv_mem_request_kind;

typedef struct {
    dv_kind kind;
    int mode;
    int32_t version;
    bool container;
    dv_mem_path *path;
    dv_mem_blob *data;
} dv_mem_op;

struct dv_mem_request {
    unsigned refs;
    dv_mem_request *next; /* of a connection's, at the server */
    dv_mem_request *held; /* of those that the leader is to order later */
    dv_mem_request_kind kind;
    bool is_multi, wrote, watch;
    int odd_error;      /* its answer; 0: an ordinary one */
    bool odd_executed;  /* which comes though it is carried out */
    bool administrator; /* access lists do not count */
    bool dropped;       /* it is never to reach a server */
    bool ordered;       /* the leader has given it its place */
    int64_t hold_ms;    /* how long the leader is to hold it back; 0: not at all */
    bool moves;         /* then the session moves back to the server that it came by */
    int64_t release_at;
    uint64_t number;
    dv_mem_conn *conn; /* that it came by; a reference */
    dv_mem_session *session;
    int64_t zxid;         /* connect: the newest one seen */
    int64_t timeout_ms;   /* connect */
    int64_t session_id;   /* connect; 0: a new one */
    dv_mem_access access; /* operations: of what is created; auth: whose */
    size_t bytes, count;
    dv_mem_op ops[];
};

dv_mem_request *dv_mem_request_new(dv_mem_request_kind kind, dv_mem_conn *conn, size_t count);
dv_mem_request *dv_mem_request_ref(dv_mem_request *request);
void dv_mem_request_unref(dv_mem *mem, dv_mem_request *request);

typedef struct {
    int error;
    dv_mem_path *path; /* made */
    bool has_stat;     /* of a set */
    dv_stat stat;
} dv_mem_result;

typedef enum { DV_MEM_CONNECTED, DV_MEM_ANSWER, DV_MEM_PONG, DV_MEM_FIRED, DV_MEM_AUTH_REFUSED } dv_mem_reply_kind;
struct dv_mem_reply {
    dv_mem_reply_kind kind;
    int error;
    int64_t zxid;
    uint64_t number;
    int64_t session_id, timeout_ms; /* connected; 0: expired */
    dv_watch_kind fired;
    dv_mem_path *path; /* made, or fired at */
    bool has_stat;
    dv_stat stat;
    dv_mem_blob *data;
    dv_mem_path **children;
    size_t child_count;
    dv_mem_result *results; /* of a multi */
    size_t result_count;
};

dv_mem_reply *dv_mem_reply_new(dv_mem_reply_kind kind);
void dv_mem_reply_free(dv_mem *mem, dv_mem_reply *reply);

#endif
