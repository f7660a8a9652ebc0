/* The client object, as the rest of the library sees it. SPDX-License-Identifier: Apache-2.0
 *
 * The client lock is one mutex, held by the thread that runs recipe code: the loop for a few events, or a public call
 * for its own short work. A *turn* is the time from lock to unlock. So recipe code needs no lock of its own, and time
 * stands still in it. A recipe never waits inside a turn. Its requests are sent when the client is unlocked. */
#ifndef DV_CLIENT_H
#define DV_CLIENT_H

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/config.h"
#include "base/guid.h"
#include "client/clock.h"
#include "client/death_watch.h"
#include "client/error.h"
#include "client/metrics.h"
#include "client/odd_answers.h"
#include "client/timers.h"
#include "divvy/client.h"
#include "znode/batch.h"
#include "znode/znode.h"

/* A value of alive_until: a deadline that has passed is final for its session. */
#define DV_PASSED INT64_C(-1)

/* ---- what happens to the session, told to every listener in the order in which they were added ---- */
typedef enum {
    DV_SESSION_CONNECTED,
    DV_SESSION_SUSPENDED,
    DV_SESSION_LOST,    /* everything is lost; client->end_error says why */
    DV_SESSION_OVER,    /* after LOST: its nodes are gone, or will go by themselves. Operations end right after */
    DV_SESSION_LINK,    /* after LOST, of a host's session that lives on: what is left on it can be deleted */
    DV_SESSION_CLOSING, /* divvy_client_close(): leave, there is a little time */
    DV_SESSION_CLOSED,  /* nothing more can be sent; operations under way have ended */
    DV_SESSION_PROVEN,  /* C1: from now on what is held is believed; once for each session */
    DV_SESSION_ROOM,    /* something was given back to a budget */
    DV_SESSION_AGAIN,   /* an allocation failed a moment ago: send now what could not be sent then */
} dv_session_event;

typedef struct dv_listener {
    struct dv_listener *next, **link;
    void (*hear)(struct dv_listener *listener, dv_session_event event, int64_t now);
} dv_listener;

/* ---- what users hold: reference-counted, with callbacks that stop at destroy ---- */
/* A call to the user, queued. `object` NULL: of the client itself. */
typedef struct dv_callback {
    struct dv_callback *next;
    struct dv_object *object;
    bool asks;                                  /* for an answer that is of no use once the client is closed */
    void (*starting)(struct dv_callback *call); /* may be NULL; with the client lock held, just before */
    void (*call)(struct dv_callback *call);     /* without it; must not free */
    void (*release)(struct dv_callback *call);  /* with the client lock held; called or not */
} dv_callback;

/* The end of a destroy that does not wait. */
typedef struct {
    void (*gone)(void *user); /* the object's last callback; may be NULL */
    void *user;
} dv_farewell;

typedef struct dv_object {
    divvy_client *client;
    unsigned refs; /* with the client lock held: the user's, one for each queued callback, one for each piece at work */
    unsigned dones_due; /* callbacks of asynchronous calls that have ended, queued or running */
    bool destroyed;
    void (*release)(struct dv_object *object); /* frees it, but for its reference to the client; with the client lock */
    dv_farewell farewell;
    dv_callback gone_callback;
} dv_object;

/* An ephemeral node of ours, that nobody sets data of: what heartbeats ask for. */
typedef struct dv_own_node {
    struct dv_own_node *next, **link;
    char *path;                                             /* its maker's, who keeps it until the node is taken out */
    void (*missing)(struct dv_own_node *node, int64_t now); /* a heartbeat did not find it */
} dv_own_node;

typedef struct dv_barrier_wait {
    struct dv_barrier_wait *next;
    void (*done)(struct dv_barrier_wait *wait, int error, int64_t now);
} dv_barrier_wait;

typedef struct {
    size_t used_bytes, limit_bytes;
} dv_budget;

/* A client's life, which goes down this list, one step after the other: dv_client_life_enter(). */
typedef enum {
    DV_CLIENT_OPEN,
    DV_CLIENT_CLOSING,  /* `closer` closes it; what is held is being left */
    DV_CLIENT_STOPPING, /* its threads end, and no callback starts */
    DV_CLIENT_CLOSED,   /* nothing more can be sent; what is still due is told */
} dv_client_life;

/* The fate of a session, beside its state. From the second on the state is LOST or AUTH_FAILED, or CLOSED later. */
typedef enum {
    DV_FATE_OPEN,
    DV_FATE_LIVES_ON, /* LOST, but it is a host's session that may live: our nodes on it are being deleted */
    DV_FATE_BURIED,   /* its nodes are gone, or will go by themselves or with its close */
    DV_FATE_TO_CLOSE, /* the loop closes the backend, without the client lock, and opens a new session after a loss */
} dv_fate;

/* The most log lines, our own and the native client's, that wait to be told. */
enum { DV_LOG_LINES_MAX = 1000 };

/* W18. */
enum { DV_LISTEN_FROM = 300, DV_LOOKOUTS = 3 };

struct divvy_client {
    atomic_uint refs;
    unsigned fork_count; /* of the process when the client was opened */
    divvy_client_config config;
    char *chroot;

    pthread_mutex_t lock;
    pthread_cond_t changed; /* something that a waiting call may look at */
    bool something_changed;

    pthread_mutex_t queue_mutex;
    dv_event *events, **events_end;
    int wake_fd;

    dv_timers timers;
    int64_t sleeping_until; /* what the loop waits for: an earlier timer must wake it */

    dv_callback *callbacks, **callbacks_end;
    unsigned log_lines;         /* of the callbacks, DV_LOG_LINES_MAX at most */
    uint64_t log_lines_dropped; /* since the last was queued */
    pthread_cond_t callback_ready;
    bool in_callback;
    pthread_t callback_caller;
    dv_object *callback_object;
    bool processing; /* manual: a thread is inside the loop, */
    bool in_process; /* by divvy_client_process() and not by a waiting call */
    bool late;       /* manual: the loop was driven late, and the user was told so */

    pthread_t loop_thread, callback_thread;
    bool loop_running, callbacks_running;
    dv_client_life life;
    bool close_in_callback;    /* a callback, in any life, asked: none starts until the client is closed */
    pthread_t closer;          /* meant once closing */
    bool release_after_unlock; /* closed inside a waiting call: the user's reference goes with the lock */
    unsigned waiters;          /* threads inside dv_client_wait() */

    size_t listen_from, lookouts; /* W18: of parties with so many members the first so many list; tests lower them */

    dv_znode *znode;
    struct dv_steps *steps;      /* NULL: steps are not logged */
    dv_death_watch *death_watch; /* NULL: none */
    divvy_session_state state;
    _Atomic(int64_t) session_id, timeout_ms;
    _Atomic(int64_t) alive_until; /* C1; 0: nothing is believed (yet), DV_PASSED: for good, with this session */
    dv_clock clock;
    dv_timer deadline_timer, beat_timer, reopen_timer, again_timer;
    dv_own_node *own_nodes, **own_nodes_end;
    dv_own_node *beat_node; /* by the heartbeat that is under way; NULL: none, or it was taken out since */
    bool beat_under_way;
    bool rooting;  /* the chroot is being made */
    bool link_up;  /* the backend can carry requests, whatever the session's state */
    bool kept;     /* dv_client_keep_session() */
    dv_fate fate;  /* of the session */
    int end_error; /* why the session ended */
    char end_reason[256];
    dv_listener *listeners, **listeners_end, *next_listener;
    dv_barrier_wait *barrier_waits, *barrier_under_way;
    bool room_requested, room_freed; /* a reservation was refused; something was given back since */
    dv_budget ephemerals, watched;
    int64_t newest_czxid; /* C9: the largest of our nodes, since they fell last; 0: none was made */
    unsigned czxid_falls;
    uint64_t lasting_count;   /* of the ephemeral nodes: those that a loss leaves where they are */
    uint64_t latecomer_count; /* and those that were never made, as it seems (R3) */
    uint64_t ephemeral_count, session_events, event_count;
    dv_client_metrics metrics;
    dv_metrics_source *metrics_sources;
    dv_guid_source guids;
    dv_odd_answers odd;
};

/* ---- life.c ---- */
/* Makes a client whose session is not begun, with one reference. 0, or an error with its message. */
int dv_client_new(divvy_client **out, const divvy_client_config *config);
/* Moves the life on by one step. With the client lock held. */
void dv_client_life_enter(divvy_client *client, dv_client_life to);
void dv_client_ref(divvy_client *client);
void dv_client_unref(divvy_client *client);
/* With the client lock held: whether the caller is the one to close the client, now that it knows. */
bool dv_client_claim_close(divvy_client *client);
bool dv_client_forked(const divvy_client *client);
/* Returns how many forks led to this process image since the first call. */
unsigned dv_fork_count(void);

/* ---- client_lock.c ---- */
void dv_client_lock(divvy_client *client);
void dv_client_unlock(divvy_client *client);
/* dv_client_lock() for a public call: 0 with the client lock held, or DIVVY_EINVAL (NULL), DIVVY_EFORK without it. */
int dv_client_enter(divvy_client *client);
/* The same for a public call that returns no error: it leaves the thread's message as it was. */
bool dv_client_enter_quietly(divvy_client *client);
static inline void dv_client_changed(divvy_client *client) {
    client->something_changed = true;
}
static inline int64_t dv_client_now(const divvy_client *client) {
    return client->znode->backend->now_ms(client->znode);
}
bool dv_client_in_callback(const divvy_client *client);

/* ---- events.c ---- */
void dv_client_post(void *context, dv_event *event);
void dv_client_wake(divvy_client *client);
/* Wakes the loop where the earliest timer comes before what it waits for, or, in manual mode, a callback is due. */
void dv_client_wake_early(divvy_client *client);
void dv_client_clear_wake(divvy_client *client);
dv_event *dv_events_take(divvy_client *client);
bool dv_events_any(divvy_client *client);
static inline void dv_timer_set(divvy_client *client, dv_timer *timer, int64_t at) {
    assert(timer->fire);
    dv_timers_set(&client->timers, timer, at);
}

/* ---- loop.c ---- */
/* Runs what is due, in turns; how much that was. */
int dv_loop_run_due(divvy_client *client);
/* Waits for work, at most timeout_ms (-1: for ever). Without the client lock. */
void dv_loop_sleep(divvy_client *client, int64_t timeout_ms);
void *dv_loop_thread(void *context);
void dv_loop_drain(divvy_client *client);
/* With the client lock held: until `met` says yes. 0, DIVVY_ETIMEDOUT, DIVVY_EINTERRUPTED, DIVVY_EDEADLK, DIVVY_ECLOSED
 * (`met` first). */
int dv_client_wait(divvy_client *client, int64_t timeout_ms, bool (*met)(void *context), void *context);
/* With the client lock held, in a call that runs callbacks: closes a client in manual mode if one of them asked for
 * that, and says so. */
bool dv_client_close_as_asked(divvy_client *client);

/* ---- callbacks.c ---- */
void dv_callback_queue(divvy_client *client, dv_callback *call);
/* Runs the first callback of the queue, and gives up the client lock while it runs. Returns whether there was one. */
bool dv_callback_run_one(divvy_client *client);
/* Tells all that is due on a client that is closed, and returns when no callback runs. Outside a callback. */
void dv_callback_run_all(divvy_client *client);
void dv_object_init(dv_object *object, divvy_client *client, void (*release)(dv_object *object));
void dv_object_ref(dv_object *object);
void dv_object_unref(dv_object *object);
/* Over a call that waits, in which callbacks may run that destroy the object. Letting go of it unlocks the client. */
void dv_object_hold(dv_object *object);
void dv_object_let_go(dv_object *object);
/* Queues an asynchronous call's end, told even after a destroy or close. release() ends with dv_object_told_done(). */
void dv_object_tell_done(dv_object *object, dv_callback *call);
void dv_object_told_done(dv_object *object);
void dv_client_warn(divvy_client *client, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void dv_client_log(divvy_client *client, int level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void dv_client_tell_session(divvy_client *client);

/* ---- destroy.c ---- */
/* Ends the object's callbacks, but those that are due of asynchronous calls. `farewell` NULL: waits, so that outside a
 * callback none runs or follows when this returns. Else returns at once, and gone() follows the last. */
void dv_object_destroy(dv_object *object, const dv_farewell *farewell);
/* Does it for a public call: leave() comes first, in the same turn. Without the client lock. */
void dv_object_end(dv_object *object, void (*leave)(dv_object *object, bool waits), const dv_farewell *farewell);

/* ---- listeners.c ---- */
void dv_listen(divvy_client *client, dv_listener *listener);
void dv_unlisten(divvy_client *client, dv_listener *listener);
void dv_tell_listeners(divvy_client *client, dv_session_event event, int64_t now);
/* Has listeners hear DV_SESSION_AGAIN in a moment, unless the connection ends before. Allocates nothing. */
void dv_client_again(divvy_client *client);

/* ---- steps.c ---- */
/* Has the client's requests and answers in its log, where the config asks for it. 0, or DIVVY_ENOMEM. */
int dv_steps_begin(divvy_client *client);
/* Writes a step of another kind to the log, where the config asks for it. */
void dv_client_step(divvy_client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- barrier.c ---- */
/* R1: ends once a write of ours was answered on this connection, or a later one. `wait` lives until `done`. */
void dv_client_barrier(divvy_client *client, dv_barrier_wait *wait,
                       void (*done)(dv_barrier_wait *wait, int error, int64_t now));
/* Sends one for those that wait, if there is a connection. */
void dv_barrier_start(divvy_client *client);
void dv_session_give_up_barriers(divvy_client *client, int error, int64_t now);

/* ---- session.c ---- */
void dv_session_init(divvy_client *client);
void dv_session_news_arrived(void *context, const dv_session_news *news, int64_t now);
void dv_session_answered(void *context, const dv_answer *answer, int64_t now);
void dv_session_tick_told(void *context, int64_t tick_ms, int64_t now);
static inline bool dv_client_connected(const divvy_client *client) {
    return client->state == DIVVY_CONNECTED;
}
/* Returns whether a node of ours can be deleted now: on a session that was given up but lives on, too. */
static inline bool dv_client_can_delete(const divvy_client *client) {
    return client->link_up && (client->state == DIVVY_CONNECTED || client->fate == DV_FATE_LIVES_ON);
}
void dv_fate_enter(divvy_client *client, dv_fate to);
/* The client is closed: nothing is believed or waited for from now on. */
void dv_session_closed(divvy_client *client);
/* The backend stands on a new session, or will. With the client lock held. */
void dv_session_reopened(divvy_client *client);
/* No new session could be had now. */
void dv_session_reopen_later(divvy_client *client, int64_t now);
/* G4: whether work goes on under what the session holds. Meanwhile one that we give up by our clock is not closed: its
 * nodes stay until the work has ended, for another session timeout at most. */
void dv_client_keep_session(divvy_client *client, bool keep);
/* Goes on, on a host's session that was given up, once nothing of ours is left on it. */
void dv_session_revive(divvy_client *client, int64_t now);
void dv_own_node_add(divvy_client *client, dv_own_node *node);
void dv_own_node_remove(divvy_client *client, dv_own_node *node);
void dv_session_beaten(void *context, int error, const dv_reply *replies, size_t count, int64_t now);
/* 0 while there is a session or will be one, else DIVVY_ECLOSED, or what has ended the last one for good. */
int dv_client_end_error(const divvy_client *client);
/* Returns why a request has failed: the reason of the session's end where that is why, else what the error means. */
const char *dv_client_why(const divvy_client *client, int error);
/* docs/protocol.md, C1: no ownership is believed at or after this time. From any thread. */
bool dv_client_alive_at(const divvy_client *client, int64_t now);
/* Returns whether anything is believed: from the first proof to the deadline. With the client lock held. */
static inline bool dv_client_believed(const divvy_client *client) {
    return atomic_load(&((divvy_client *)(uintptr_t)client)->alive_until) > 0;
}
/* Ends all requests with an error, now, and sends no more. */
void dv_client_abandon(divvy_client *client, int error, int64_t now);
/* With the client lock held: for how long the session is certainly alive; 0: nothing is believed. */
int64_t dv_client_time_left_ms(divvy_client *client, int64_t now);

/* ---- budget.c ---- */
/* A new name that only this attempt can have made. */
void dv_client_guid(divvy_client *client, char out[DV_GUID_BYTES]);
/* Budgets, docs/protocol.md, B6: room for one more ephemeral node, and for the watch that goes with it. 0, DIVVY_ELIMIT
 * (it does not fit), or DIVVY_EBUSY (the watch does not fit now; DV_SESSION_ROOM tells when to try again). */
int dv_reserve_node(divvy_client *client, size_t ephemeral_bytes, size_t watch_bytes);
/* Half of the room for watches. Those that stand for long fit in it, and so does what waits for room: it comes. */
size_t dv_standing_limit(const divvy_client *client);
/* Reserves room, within that half, for a watch that its owner can do without. Returns false at once without room. */
bool dv_reserve_watch(divvy_client *client, size_t bytes);
void dv_release_ephemeral(divvy_client *client, size_t bytes);
void dv_release_watch(divvy_client *client, size_t bytes);
size_t dv_path_cost(const char *path);
/* chroot + path, malloc'ed; "/" alone gives the chroot itself. */
char *dv_client_path(const divvy_client *client, const char *path);
/* Checks the path of a recipe, which `what` names in the message. Returns 0, or DIVVY_EINVAL. */
int dv_client_check_directory(divvy_client *client, const char *what, const char *path);
/* Checks a text that a recipe's user gave, such as its identifier. Returns 0, DIVVY_EINVAL (empty) or DIVVY_E2BIG. */
int dv_client_check_text(const divvy_client *client, const char *recipe, const char *what, const char *text,
                         size_t most);
/* Writes a node's path without the chroot, as snprintf() would; "" for NULL. Returns its bytes. */
size_t dv_client_show_path(const divvy_client *client, const char *full, char *path, size_t path_bytes);
/* "host-pid-n", never the same twice in this process; malloc'ed. */
char *dv_client_default_identifier(void);

/* ---- odd_answers.c ---- */
/* Has again.c put off what the servers answer so. */
void dv_odd_answers_begin(divvy_client *client);
void dv_odd_answers_free(divvy_client *client);
/* Returns whether a quota has refused something at, below or above the path since then. */
bool dv_client_quota_refuses(const divvy_client *client, const char *path, int64_t since);

/* ---- client.c ---- */
typedef struct {
    bool looks;   /* it owns nothing, so it needs no tick */
    int watch_fd; /* the socket to a death watch that runs already; -1: the config says whether one is started */
} dv_open_kind;
/* Opens a client on any backend. Returns as divvy_client_open(). */
int dv_client_open_on(divvy_client **out, const divvy_client_config *config, dv_open_kind kind, dv_backend_new_fn make,
                      void *context);
/* Opens a client that may own something. Exported for libdivvy_testing of the same version, and nobody else. */
DIVVY_API int divvy_private_client_open(divvy_client **out, const divvy_client_config *config, dv_backend_new_fn make,
                                        void *context);
/* Closes what was claimed, and releases the user's reference. Without the client lock, and outside the loop. */
void dv_client_shut_down(divvy_client *client);
/* The same without that release, for who still stands in a call on the client. */
void dv_client_end(divvy_client *client);

/* ---- strings.c ---- */
divvy_strings *dv_strings_new(void);
int dv_strings_add(divvy_strings *strings, const char *text);

#endif
