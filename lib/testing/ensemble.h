/* The in-memory ensemble, as its files see each other. SPDX-License-Identifier: Apache-2.0
 *
 * Everything that happens is an event in one heap, by time, then by the order of asking. Messages are events that pass
 * over channels, which behave as TCP connections do. docs/architecture.md has the picture.
 *
 * Words: an *index* is a transaction's place in the order of all transactions; *applied* is the last index that a
 * server's tree shows, *logged* the last one that it has on disk. */
#ifndef DV_MEM_ENSEMBLE_H
#define DV_MEM_ENSEMBLE_H

#include <pthread.h>
#include <stdatomic.h>

#include "testing/model.h"
#include "znode/watches.h"

/* ---- the connection of a client to a server (connection.c: both sides; requests.c: the server's) ---- */

struct dv_mem_conn {
    unsigned refs;
    dv_mem *mem;
    dv_mem_client *client; /* a reference */
    dv_mem_server *server;
    dv_mem_channel channel;
    bool (*run[2])(dv_mem *mem, dv_mem_event *message); /* what arrives at a side */
    dv_mem_conn *client_next;                           /* of the client's connections that are not wholly forgotten */
    /* the server's side */
    bool accepted, established;
    dv_mem_conn *server_next, **server_link;
    dv_mem_session *session;
    uint32_t identity; /* authenticated as; 0: nobody */
    dv_mem_request *queue, **queue_end;
    dv_mem_watch *watches;
    int64_t heard_at;
};

/* Sends a request from side 0, a reply from side 1, and takes it; or neither: the message that the connection ends. */
void dv_mem_conn_send(dv_mem_conn *conn, int side, dv_mem_request *request, dv_mem_reply *reply);
/* Closes one side; the other side hears of it, if the link works. */
void dv_mem_conn_close(dv_mem_conn *conn, int side);
/* Takes the first of the requests that wait for their answers at the server. */
dv_mem_request *dv_mem_conn_take(dv_mem_conn *conn);
bool dv_mem_client_cut(const dv_mem_client *client, int direction);
bool dv_mem_conn_run_request(dv_mem *mem, dv_mem_event *event);
/* Goes on once the leader has said whether the session of a client that came here lives. */
void dv_mem_conn_validated(dv_mem_conn *conn, bool valid);
/* Answers the request of a transaction that this server has applied, if it came by this server. */
void dv_mem_conn_committed(dv_mem_server *server, const dv_mem_txn *txn);
void dv_mem_conn_fire(dv_mem_conn *conn, dv_mem_path *path, dv_watch_kind kind);
bool dv_mem_conn_may_read(const dv_mem_conn *conn, dv_mem_access access);

/* ---- servers (server.c, follower.c, leader.c, requests.c) ---- */

typedef enum { DV_MEM_LOOKING, DV_MEM_FOLLOWING, DV_MEM_LEADING } dv_mem_role;

struct dv_mem_link {
    unsigned refs;
    dv_mem_channel channel;
    dv_mem_server *follower, *leader;
    bool synced;   /* it has said that it has the leader's log */
    int64_t epoch; /* of the leader's */
    int64_t acked;
    int64_t heard_at[2]; /* by side */
    int64_t heard_tick;  /* of the leader's, when it last heard of the follower */
};

struct dv_mem_server {
    dv_mem *mem;
    int id;
    bool up, paused;
    unsigned term; /* grows with each change of role: the timers of earlier ones are stale */
    dv_mem_role role;
    bool serving; /* clients */
    int64_t applied, applied_zxid, logged, logged_zxid;
    dv_mem_txn **tail; /* logged and not applied */
    size_t tail_count, tail_room;
    dv_mem_node *root;
    dv_mem_conn *conns;
    dv_mem_deferred deferred;
    int64_t lag_ms; /* what others send to it takes so much longer */
    int64_t wall_clock_offset_ms;
    /* what arrives: from a client, from a follower, from the leader */
    bool (*run_request)(dv_mem *mem, dv_mem_event *message);
    void (*hear_follower)(dv_mem_server *leader, dv_mem_event *message);
    void (*hear_leader)(dv_mem_server *follower, dv_mem_event *message);
    /* following, or joining */
    dv_mem_link *link;
    dv_mem_session *touched;
    /* leading */
    int64_t epoch;    /* that it follows or leads, or did last */
    int64_t accepted; /* the newest that it was told of at an election: a leader that died at once counts, too */
    int64_t counter, since;
    unsigned half_ticks;
    dv_mem_link *links[DV_MEM_SERVERS_MAX];
    dv_mem_change *changes, **changes_end;
    dv_mem_request *held;
};

enum {
    /* from the follower */
    DV_MEM_JOIN,
    DV_MEM_ACK,
    DV_MEM_TOUCHES,
    DV_MEM_FORWARD,
    DV_MEM_REVALIDATE,
    /* from the leader */
    DV_MEM_SYNC,
    DV_MEM_UP_TO_DATE,
    DV_MEM_PROPOSAL,
    DV_MEM_COMMIT,
    DV_MEM_PEER_PING,
    DV_MEM_VALIDATED,
    /* either */
    DV_MEM_PEER_CLOSE,
};

/* server.c */
void dv_mem_server_init(dv_mem *mem, int id);
void dv_mem_server_free(dv_mem_server *server);
void dv_mem_log_append(dv_mem_server *server, dv_mem_txn *txn);
void dv_mem_log_truncate(dv_mem_server *server); /* to what is applied */
void dv_mem_apply_up_to(dv_mem_server *server, int64_t index);
/* Takes the server back to elections, as it has no leader or is no longer one. Disconnects its clients. */
void dv_mem_look(dv_mem_server *server);
void dv_mem_server_kill(dv_mem_server *server);
void dv_mem_server_start(dv_mem_server *server);
void dv_mem_server_pause(dv_mem_server *server, bool paused);
unsigned dv_mem_quorum(const dv_mem *mem);

/* link.c */
dv_mem_link *dv_mem_link_new(dv_mem_server *follower, dv_mem_server *leader);
/* Makes a message from one side, which the caller fills in before it sends it. */
dv_mem_event *dv_mem_link_message(dv_mem_link *link, int side, int kind);
void dv_mem_link_send(dv_mem_event *message);
void dv_mem_link_tell(dv_mem_link *link, int side, int kind, int64_t index);
void dv_mem_link_close(dv_mem_link *link, int side);

/* follower.c */
void dv_mem_follow(dv_mem_server *follower, dv_mem_server *leader);
void dv_mem_follower_hear(dv_mem_server *follower, dv_mem_event *message);

/* leader.c */
void dv_mem_lead(dv_mem_server *leader, int64_t epoch);
void dv_mem_leader_hear(dv_mem_server *leader, dv_mem_event *message);
/* Orders a write, or the begin or end of a session, whatever server it came to. */
void dv_mem_leader_request(dv_mem_server *leader, dv_mem_request *request);
void dv_mem_propose(dv_mem_server *leader, dv_mem_txn *txn);
/* Carries out an operation as an administrator. Takes what it holds. Returns its error. */
int dv_mem_administer(dv_mem_server *leader, dv_mem_op op);
void dv_mem_unlead(dv_mem_server *server);

/* tracker.c: the sessions that live, as the leader has it */
void dv_mem_track(dv_mem_server *leader, dv_mem_session *session);
void dv_mem_track_touch(dv_mem_server *leader, dv_mem_session *session);
bool dv_mem_track_lives(const dv_mem_server *leader, const dv_mem_session *session);
/* Notes that a client was heard of at this server. */
void dv_mem_touch(dv_mem_server *server, dv_mem_session *session);
void dv_mem_expire(dv_mem_server *leader, dv_mem_session *session);

/* prepare.c: the effect of a request behind all that was proposed before */
dv_mem_txn *dv_mem_prepare(dv_mem_server *leader, dv_mem_request *request);
dv_mem_txn *dv_mem_prepare_close(dv_mem_server *leader, dv_mem_session *session, dv_mem_request *request);
/* Forgets the changes up to this index: they are in the tree now. */
void dv_mem_changes_applied(dv_mem_server *leader, int64_t index);
void dv_mem_changes_set_sequence(dv_mem_change *change, int32_t next); /* NULL is allowed */

/* ---- clients (client.c: as the native library; backend.c: the seam; posted.c: what passes between the two) ---- */

typedef enum {
    DV_MEM_IDLE, /* not started, or closed */
    DV_MEM_WAITING,
    DV_MEM_CONNECTING,
    DV_MEM_ESTABLISHED,
    DV_MEM_OVER, /* expired, or refused */
} dv_mem_native_state;

typedef struct dv_mem_pending dv_mem_pending;

/* The watches at one path that the native library would send in SetWatches. */
typedef struct dv_mem_armed {
    struct dv_mem_armed *next;
    dv_mem_path *path;
    unsigned kinds; /* bits: 1 << DV_GET, DV_EXISTS (of a node that was missing), DV_CHILDREN */
} dv_mem_armed;

#define DV_MEM_BENT INT64_MIN /* of clock_ahead_ms */

/* Answers that are no ordinary ones, to requests to come. */
typedef struct {
    int code;
    bool executed;
    unsigned skip, count;
} dv_mem_odd;

struct dv_mem_client {
    dv_znode znode; /* first: the seam's view */
    dv_znode_backend backend;
    unsigned refs;
    dv_mem *mem;
    divvy_client *client;        /* NULL: it was closed */
    dv_mem_client *next, **link; /* of the ensemble's */
    unsigned number;
    bool busy; /* in its turn, or in a waiting call */
    bool paused, crashed;
    divvy_testing_link wire;
    int preferred; /* server, or -1 */
    dv_mem_deferred deferred;
    /* its clock: `clock_at` + what passed since `clock_since` */
    int64_t clock_at, clock_since, clock_ppm;
    /* The difference to the real clock, for readers without the mutex. DV_MEM_BENT: a clock with its own speed. */
    _Atomic(int64_t) clock_ahead_ms;
    int64_t no_turn_before;
    int64_t turn_timer, turn_at; /* a timer of the client's clock, and when that is */

    /* as the native library has it */
    dv_mem_native_state native;
    dv_mem_conn *conn;
    dv_mem_conn *conns; /* all that something of may still arrive by; no references */
    int order[DV_MEM_SERVERS_MAX], order_at, failures;
    unsigned generation; /* grows whenever timers of before are void */
    int64_t session_id, timeout_ms, requested_ms, last_zxid;
    int64_t asked_at;              /* of its clock: when the connection that is being made asked for a session */
    int64_t last_sent, last_heard; /* of its clock */
    int64_t timer_at;
    uint64_t number_sent;
    dv_mem_pending *sent, **sent_end; /* not answered yet */
    dv_mem_armed **armed;             /* hash table */
    size_t armed_count, armed_room;

    /* as our code on it has it: with the client lock held */
    char *chroot;
    dv_mem_access access;
    bool authenticates, refuse_auth;
    dv_mem_odd odd;
    divvy_session_state told;
    dv_mem_pending *table, **table_end;
    dv_watches watches;
    divvy_stats stats;
};

/* client.c */
void dv_mem_client_start(dv_mem_client *client);
/* Ends the connection, or the attempt at one, and makes the next one. */
void dv_mem_client_lost(dv_mem_client *client);
void dv_mem_client_close(dv_mem_client *client, bool say);
void dv_mem_client_crash(dv_mem_client *client);
/* Hands a request to the connection, and takes it. */
void dv_mem_client_send(dv_mem_client *client, dv_mem_request *request);

/* posted.c */
struct dv_mem_pending {
    dv_event event;
    dv_mem_client *client;
    dv_mem_pending *next, **link; /* all that is not completed yet; link NULL: it is */
    dv_mem_pending *sent_next;
    dv_mem_request *request;
    int64_t submitted_at;
    uint64_t connection;
    int64_t sent_ms;
    dv_reply_fn done;
    dv_multi_fn multi_done; /* NULL: not of a multi */
    void *context;
    dv_watch *watch;
    dv_watched *watched;
    int error;
    dv_mem_reply *reply;
};

void dv_mem_post_news(dv_mem_client *client, const dv_session_news *news);
void dv_mem_post_answer(dv_mem_client *client, dv_mem_pending *pending, int error, dv_mem_reply *reply);
void dv_mem_post_fired(dv_mem_client *client, const dv_mem_path *path, dv_watch_kind kind);
void dv_mem_pending_free(dv_mem_pending *pending);
void dv_mem_fail_all(dv_mem_client *client, int error, int64_t now);

/* ---- the whole ---- */

struct divvy_testing_ensemble {
    divvy_testing_config config;
    dv_mem_prng prng;
    int64_t now;
    int server_count;
    dv_mem_server servers[DV_MEM_SERVERS_MAX];
    bool cut[DV_MEM_SERVERS_MAX][DV_MEM_SERVERS_MAX]; /* from, to */
    dv_mem_client *clients;
    dv_mem_client *turn_after; /* had the last turn */
    unsigned client_count, last_client;

    dv_mem_heap_entry *heap;
    size_t heap_count, heap_room;
    uint64_t order;
    dv_mem_event *free_events;

    dv_mem_path **paths;
    size_t path_count, path_room;
    dv_mem_session **sessions; /* in the order in which they were made */
    size_t session_count, session_room;
    char **identities;
    uint32_t identity_count;
    size_t identity_room;

    /* The committed transactions: `truth_index` of them. The last ones are kept for servers that lack them. */
    int64_t truth_index;
    int truth_server; /* whose tree shows just those */
    dv_mem_txn **history;
    int64_t history_first; /* index of history[0] */
    size_t history_count, history_room;
    dv_mem_path **containers; /* paths at which one was made */
    size_t container_count, container_room;
    char *quota_path; /* NULL: there is none */
    int64_t quota_nodes;

    bool real, stopping;
    pthread_mutex_t mutex; /* with the real clock: of all of this */
    pthread_cond_t earlier;
    pthread_t thread;
};

/* Makes one step, in which `but` has no turn. Returns 1, or 0 when the clock has reached `until_ms`. */
int dv_mem_go_on(dv_mem *mem, int64_t until_ms, const dv_mem_client *but);
bool dv_mem_has_work(dv_mem_client *client);
static inline int64_t dv_mem_between(dv_mem *mem, int64_t min, int64_t max) {
    return dv_mem_prng_between(&mem->prng, min, max);
}
/* Returns the leader with the newest epoch whose quorum still follows it, or NULL. */
dv_mem_server *dv_mem_leader_now(const dv_mem *mem);

/* ---- clock.c ---- */

/* With the real clock: locks and unlocks the whole ensemble, and reads the clock. With the virtual one: nothing. */
void dv_mem_lock(dv_mem *mem);
void dv_mem_unlock(dv_mem *mem);
void dv_mem_trace(const dv_mem *mem, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define DV_MEM_TRACE(mem, ...)                                        \
    do {                                                              \
        if ((mem)->config.on_trace) dv_mem_trace((mem), __VA_ARGS__); \
    } while (0)
int64_t dv_mem_clock_ms(void);
/* Returns the time by the clock of the server's machine, in milliseconds since 1970. */
int64_t dv_mem_wall_clock_ms(const dv_mem_server *server);
int64_t dv_mem_client_now(const dv_mem_client *client);
/* Returns the same with the real clock, from any thread. */
int64_t dv_mem_client_real_now(dv_mem_client *client);
void dv_mem_client_set_clock(dv_mem_client *client, int64_t at, int64_t parts_per_million);
/* Returns the first moment of the ensemble at which the client's clock shows `at`, or later. */
int64_t dv_mem_client_when(const dv_mem_client *client, int64_t at);

#endif
