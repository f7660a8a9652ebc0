/* Service: one node that this registry keeps, and its tasks. SPDX-License-Identifier: Apache-2.0
 *
 * Tasks stand in a queue, the oldest is at work; each ends exactly once. docs/protocol.md, V7 to V12. */
#ifndef DV_SERVICE_H
#define DV_SERVICE_H

#include "registry/registry.h"

typedef enum {
    DV_TASK_BEAT,  /* store an entry in the node, in the place of any other */
    DV_TASK_CLAIM, /* store it, unless another holds the node and is healthy */
    DV_TASK_LEAVE, /* delete the node */
} dv_task_kind;

/* A task. The first fields are the caller's to set, the rest begins with zeros. */
typedef struct dv_task {
    dv_task_kind kind;
    cJSON *entry; /* to be stored; at the end: as it was, or the healthy holder's, or NULL */
    bool any;     /* LEAVE: whatever stands there */
    bool renewal; /* BEAT: for a new session, no sign of life */
    void (*done)(void *context, struct dv_task *task, int64_t now); /* at the end; may be NULL */
    void *context;

    struct dv_task *next;
    unsigned refs; /* the queue's, and the waiting call's */
    dv_service *service;
    cJSON *copy; /* of the entry as it was written last, for the registry to keep while a user is shown the entry */
    bool begun, ended;
    int result;
    unsigned attempts;
    char attempt[DV_GUID_BYTES]; /* by which the last write is known; LEAVE: "" */
    int64_t deleting_czxid;      /* LEAVE: of the node that the last delete was sent for */
    dv_timer deadline;
} dv_task;

struct dv_service {
    dv_service *next, **link;
    divvy_registry *registry;
    char *directory, *path;
    const char *role_node, *id_node; /* the last components of these */
    size_t cost;                     /* of the budget of ephemeral nodes; 0: none */
    dv_task *spare;                  /* to leave by when an allocation fails; NULL: in use */

    /* The entry in ZooKeeper that is ours, as far as we know. */
    bool known, role_known;
    int32_t version, role_version; /* of the node, and of its role's */
    cJSON *entry;                  /* as it was stored last; NULL: nothing is ours */
    bool announced;                /* by a heartbeat: it is put back on a new session */
    int64_t beaten_at;

    /* At work. */
    dv_task *tasks, **tasks_end; /* the first is at work, if any is */
    unsigned under_way;          /* requests, and waits */
    bool resolving;              /* the last write's reply was lost */
    bool creating;               /* the write under way is a create that needs the role's node */
    bool going;                  /* dv_service_go() is on the stack */
    int64_t sent_at;
    char *data, *role_data; /* of the write under way */
    size_t role_data_bytes;
    int look_error, role_error; /* of a look */
    dv_stat look_stat;
    dv_entry *look_entry; /* NULL: none, or malformed */
    dv_barrier_wait barrier;
    dv_time_wait time_wait;

    /* Heartbeats that are sent by themselves. */
    dv_timer beat_timer;
    bool load_requested; /* which holds on to the service */
    double load;
};

/* ---- service.c ---- */

dv_service *dv_service_find(const divvy_registry *registry, const char *role_node, const char *id_node);
/* Gives the service of these nodes, made where it is missing. Returns 0, or DIVVY_ENOMEM. */
int dv_service_get(dv_service **out, divvy_registry *registry, const char *role_node, const char *id_node);
/* Reserves room for its node in the session's budget, once. Returns 0, or DIVVY_ELIMIT. */
int dv_service_reserve(dv_service *service);
/* Frees it, unless it has a task or an entry. */
void dv_service_let_go(dv_service *service);

/* Appends a task like `like`, and goes on. Takes the entry, even when it fails. With `out` the caller has a reference
 * to the task. timeout_ms -1: none. Returns 0, or DIVVY_ENOMEM: nothing happens. */
int dv_service_add_task(dv_service *service, const dv_task *like, int64_t timeout_ms, dv_task **out);
void dv_task_unref(dv_task *task);
/* Returns whether no caller waits for the task, and it is neither begun nor, while all goes, taken up again. */
bool dv_task_is_dropped(const dv_task *task);
/* Waits until the task has ended. Returns its result. After the time it ends for the caller; its requests go on. */
int dv_task_await(dv_task *task, divvy_client *client, int64_t timeout_ms);
/* Goes on with the first task in a moment, as an allocation failed and it must be finished. A waiting call is told. */
void dv_service_put_off_task(dv_service *service, int64_t now);
/* Ends the first task, and begins the next one. */
void dv_service_end_task(dv_service *service, int result, int64_t now);
/* Forgets the entry: its node is not ours, and is not put back. */
void dv_service_disown(dv_service *service);
/* Ends all tasks but those that leave, with DIVVY_ECANCELED; nothing is put back. */
void dv_service_cancel(dv_service *service, int64_t now);
/* Goes on with the next task; the service may be gone afterwards. */
void dv_service_go(dv_service *service, int64_t now);
/* DV_SESSION_CLOSING, also of the registry alone, deletes what is ephemeral. The service may be gone afterwards. */
void dv_service_hear(dv_service *service, dv_session_event event, int64_t now);

/* ---- service_write.c ---- */

void dv_service_begin_task(dv_service *service, int64_t now);
void dv_service_drop_look(dv_service *service);

/* ---- heartbeat.c ---- */

/* Adds the task that stores the entry which a status makes. `unique_role`: of a candidate; NULL: of a heartbeat.
 * `done` and `out` as in dv_service_add_task(). Returns 0, or an error with its message. */
int dv_service_store(divvy_registry *registry, const cJSON *status, const char *unique_role, int64_t timeout_ms,
                     void (*done)(void *context, dv_task *task, int64_t now), void *context, dv_task **out);
/* The same for a waiting call. *stored is the entry at the end, for the caller to free; NULL on error. */
int dv_service_store_and_wait(divvy_registry *registry, const cJSON *status, const char *unique_role,
                              int64_t timeout_ms, cJSON **stored);
/* Repeats the last heartbeat, with the load of now. Warns when it fails. */
void dv_heartbeat_repeat(dv_service *service, bool renewal);
/* Sets the timer of the next heartbeat, as one was stored. */
void dv_heartbeat_stored(dv_service *service, int64_t now);

#endif
