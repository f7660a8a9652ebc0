/* The backend of the seam on libzookeeper_mt. SPDX-License-Identifier: Apache-2.0
 *
 * Threads: the native client's I/O and completion threads only copy what they were given into an event and post it to
 * the client's queue. Everything else, the tables below included, is touched with the client lock held.
 * The numbered dangers of the native client that shaped this code are in docs/decisions.md. */
#ifndef DV_APACHE_H
#define DV_APACHE_H

#include <stdatomic.h>
#include <zookeeper/zookeeper.h>

#include "znode/apache/backend.h"
#include "znode/apache/hosts.h"
#include "znode/apache/pause.h"
#include "znode/apache/sasl.h"
#include "znode/apache/silence.h"
#include "znode/apache/tick.h"
#include "znode/watches.h"
#include "znode/znode.h"

typedef struct dv_pending dv_pending;
typedef struct dv_shared dv_shared;

typedef struct {
    dv_pending *first, *last;
    size_t count;
} dv_pending_list;

typedef struct dv_apache {
    dv_znode znode; /* first: the seam's view of this object */
    zhandle_t *handle;
    dv_shared *shared;            /* a host's handle, shared.h; NULL: it is ours */
    struct dv_apache *next_guest; /* on the same one; under its lock */
    void *left_behind;            /* tsearch tree, estate.h: our nodes on it */
    clientid_t key;               /* of the session that was taken up; client_id 0: none was */
    dv_hosts hosts;
    dv_tls *tls;         /* NULL: plain text */
    dv_sasl *sasl;       /* NULL: none */
    dv_silence *silence; /* over TLS, as long as the handle; NULL: none */
    char *refusals;      /* lines on the servers that were refused at the last look; NULL: none */
    char *auth_scheme, *auth;
    bool auth_added; /* the handle has them */
    struct ACL_vector acl;
    struct ACL readable[2]; /* its entries where readers are let in */
    void (*on_warning)(void *context, int code, const char *message);
    /* News that news.c tells, in a turn of the client. */
    void (*take_news)(struct dv_apache *apache, const dv_session_news *news, const dv_server_address *server,
                      int64_t now);
    int requested_timeout_ms;
    int log_slot;
    bool logs;
    dv_pause pause;    /* before the native client connects again */
    bool answered;     /* a request on this connection */
    bool one_at_first; /* the connection before ended without that: requests wait until one is answered */
    bool was_refused;  /* on a host's handle: it was closed as credentials are missing, and nothing answered since */

    divvy_session_state state; /* by the events that the loop has handled */
    int64_t opened_at;         /* when the handle was opened; 0: it has been connected since */
    dv_job *resolve_job, *tick_job;
    bool tick_asked;            /* once for each client: an ensemble has one tickTime */
    char *servers;              /* the literals in use; NULL: none yet */
    pthread_mutex_t next_mutex; /* guards what the I/O thread takes over */
    char *next_servers;         /* these literals are to come into use; NULL: none */
    int resolve_error;          /* why no host name had an address at the last look; 0: one had */

    dv_pending_list sent;    /* given to the native client and not answered yet */
    dv_pending_list waiting; /* held back: too many are under way */
    dv_watches watches;
    dv_event unnamed; /* posted when a watch has fired and there was no memory for its path */
    atomic_bool unnamed_posted;
    divvy_stats stats;
    _Atomic(int) queued_log_lines;
} dv_apache;

/* connection.c */
int64_t dv_apache_now_ms(const dv_znode *znode);
int dv_apache_random(dv_znode *znode, void *bytes, size_t count);
void dv_apache_stats(const dv_znode *znode, divvy_stats *out);
void dv_apache_abandon(dv_znode *znode, int error, int64_t now);
static inline bool dv_apache_is_over(const dv_apache *apache) { /* Both are final. */
    return apache->state == DIVVY_LOST || apache->state == DIVVY_AUTH_FAILED;
}
/* The part that all backends on the native client have in common. */
void dv_apache_init(dv_apache *apache, const dv_znode_backend *backend, const dv_backend_config *config);
void dv_apache_free(dv_znode *znode);
/* Takes a demand for credentials (H9). Returns DIVVY_EAUTH, or DIVVY_ECONNECTION where the next connection decides. */
int dv_apache_refused(dv_apache *apache, int64_t now);
size_t dv_apache_in_flight_max(const dv_apache *apache);
/* A server has answered a request: the connection is of use (H10). */
void dv_apache_progressed(dv_apache *apache);

/* servers.c */
/* For how long a server may say nothing over TLS: as the native client itself allows after the handshake. */
int dv_apache_silent_ms(const dv_apache *apache);
/* Has the handle use `servers` of the object. Returns false: out of memory. */
bool dv_apache_give_servers(dv_apache *apache);
/* On the native client's I/O thread, with a line of its log: takes over other servers where a connection has failed. */
void dv_apache_take_servers(dv_apache *apache, const char *line);

/* news.c */
divvy_session_state dv_apache_session_state(int native_state);
/* Says what the servers demand, and what gives it. They do not name the scheme themselves. */
const char *dv_apache_demand(const dv_apache *apache);
/* From any thread: the session's state has become another, on that handle. */
void dv_apache_post_news(dv_apache *apache, zhandle_t *handle, const dv_session_news *news);

/* attach.c: a dv_backend_new_fn for the session of a host's handle, which is the context */
int dv_apache_attach(dv_znode **out, const dv_backend_config *config, const char **reason, void *context);

/* operations.c */
int dv_apache_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context);
int dv_apache_multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context);
/* Completes everything that is under way or held back, with `error`. Answers that come later are dropped. */
void dv_apache_fail_all(dv_apache *apache, int error, int64_t now);
/* Frees the memory after the handle was closed: the native client will not call back. */
void dv_apache_forget_all(dv_apache *apache);

/* watches.c: the native watcher of every node watch, one function and one context, as its cost demands */
void dv_apache_on_watch(zhandle_t *handle, int type, int state, const char *path, void *context);

/* log.c */
int dv_apache_log_attach(dv_apache *apache); /* a slot, or -1 when all are taken */
void dv_apache_log_detach(int slot);
log_callback_fn dv_apache_log_function(int slot);

#endif
