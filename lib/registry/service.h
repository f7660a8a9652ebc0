/* Service: one node that this registry keeps, and its tasks. SPDX-License-Identifier: Apache-2.0
 *
 * Tasks stand in a queue, the oldest is at work; each ends exactly once. docs/protocol.md, V7 to V12. */
#ifndef DV_SERVICE_H
#define DV_SERVICE_H

#include "registry/registry.h"

typedef enum {
    DV_TASK_BEAT,  /* store an entry in the node, whosesoever it is */
    DV_TASK_CLAIM, /* store it, unless another holds the node and is healthy */
    DV_TASK_LEAVE, /* delete the node */
} dv_task_kind;

typedef struct dv_task {
    struct dv_task *next;
    unsigned refs; /* the queue's, and the waiting call's */
    dv_service *service;
    dv_task_kind kind;
    cJSON *entry; /* to be stored; at the end: as it was, or the healthy holder's, or NULL */
    cJSON *copy;  /* of that as it was written last, for the registry to keep while somebody is shown the entry */
    bool any;     /* LEAVE: whosesoever the node is */
    bool renewal; /* BEAT: for a new session, no sign of life */
    bool begun, ended;
    int result;
    unsigned attempts;
    char attempt[DV_GUID_BYTES]; /* what the last write can be told by; LEAVE: "" */
    int64_t deleting_czxid;      /* LEAVE: of the node that the last delete was sent for */
    dv_timer deadline;
    /* At the end, with the client lock held; may be NULL. */
    void (*done)(void *context, struct dv_task *task, int64_t now);
    void *context;
} dv_task;

struct dv_service {
    dv_service *next, **link, *hash_next, **hash_link;
    divvy_registry *registry;
    char *role_node, *id_node, *directory, *path;
    size_t cost;    /* of the budget of ephemeral nodes; 0: none */
    dv_task *spare; /* to leave by when an allocation fails; NULL: in use */

    /* The entry in ZooKeeper that is ours, as far as we know. */
    bool known, role_known;
    int32_t version, role_version; /* of the node, and of its role's */
    cJSON *entry;                  /* as it was stored last; NULL: nothing is ours */
    bool announced;                /* by a heartbeat: it is put back on a new session */
    double ttl_s;
    int64_t beaten_at;

    /* At work. */
    dv_task *tasks, **tasks_end; /* the first is at work when something is */
    unsigned under_way;          /* requests, and waits */
    bool resolving;              /* the last write's reply was lost */
    bool creating;               /* the write under way is a create that needs the role's node */
    bool going;                  /* dv_service_go() is on the stack */
    int64_t sent_at;
    char *data, *role_data; /* of the write under way */
    size_t role_data_bytes;
    int look_error, role_error; /* what a look found */
    dv_stat look_stat;
    dv_entry *look_entry; /* NULL: none, or malformed */
    dv_barrier_wait barrier;
    dv_time_wait time_wait;

    /* Heartbeats that are sent by themselves. */
    dv_timer beat_timer;
    bool asking_load; /* the question holds on to the service */
    double load;
};

/* ---- service.c ---- */

/* The service of these nodes, or NULL. */
dv_service *dv_service_find(const divvy_registry *registry, const char *role_node, const char *id_node);
/* The same, made where it is missing. 0, or DIVVY_ENOMEM. */
int dv_service_get(dv_service **out, divvy_registry *registry, const char *role_node, const char *id_node);
/* Room for its node in the session's budget; once. 0, or DIVVY_ELIMIT. */
int dv_service_reserve(dv_service *service);
/* Nothing is left of it, unless somebody wants something of it; it may be gone afterwards. */
void dv_service_let_go(dv_service *service);

/* Appends a task, and goes on. Takes `entry`, even when it fails. The caller has a reference to the task, if it asks
 * for one with `out`. DIVVY_ENOMEM: nothing happens. */
typedef struct {
    dv_task_kind kind;
    cJSON *entry;
    bool any, renewal;
    int64_t timeout_ms; /* -1: none */
    void (*done)(void *context, dv_task *task, int64_t now);
    void *context;
} dv_wish;
int dv_service_ask(dv_service *service, const dv_wish *wish, dv_task **out);
/* Ends the task for its waiting caller, though requests that were sent for it go on. */
void dv_task_give_up(dv_task *task, int error, int64_t now);
void dv_task_unref(dv_task *task);
/* Waits until the task has ended, and returns its result. When the time is over the caller gives it up. */
int dv_task_await(dv_task *task, divvy_client *client, int64_t timeout_ms);
/* Goes on in a moment, since an allocation failed in the midst of what must be finished. A waiting call is told. */
void dv_service_put_off_task(dv_service *service, int64_t now);
/* Ends the first task, and begins the next one. */
void dv_service_end_task(dv_service *service, int result, int64_t now);
/* All end. */
void dv_service_drop_tasks(dv_service *service, int error, int64_t now);
/* Nothing of it is ours any longer; nor is anything put back. */
void dv_service_disown(dv_service *service);
/* All who wait for something but its end are told DIVVY_ECANCELED; nothing is put back. */
void dv_service_cancel(dv_service *service, int64_t now);
/* The same, and what is ephemeral of it is deleted; it may be gone afterwards. */
void dv_service_retire(dv_service *service, int64_t now);
/* Goes on with the next task; the service may be gone afterwards. */
void dv_service_go(dv_service *service, int64_t now);
void dv_service_hear(dv_service *service, dv_session_event event, int64_t now);

/* ---- service_write.c ---- */

/* Begins with the first task. */
void dv_service_write(dv_service *service, int64_t now);
void dv_service_leave(dv_service *service, int64_t now);
/* Drops what a look has found. */
void dv_service_drop_look(dv_service *service);

/* ---- heartbeat.c ---- */

/* The entry that a status makes, and its service, with room reserved. `unique_role`: of a candidate; NULL: of a
 * heartbeat. 0, or an error with its message. */
int dv_service_for(divvy_registry *registry, const cJSON *status, const char *unique_role, cJSON **entry,
                   dv_service **out);
/* Until it has ended, or the time is over. With a message on error, which begins with `what`. */
int dv_task_wait(dv_task *task, divvy_registry *registry, const char *what, int64_t timeout_ms);
/* The last heartbeat once more, with the load of now. Warns when it fails. */
void dv_heartbeat_repeat(dv_service *service, bool renewal);
/* One was stored: sets the timer of the next. */
void dv_heartbeat_stored(dv_service *service, int64_t now);
void dv_heartbeat_timer_fired(dv_timer *timer, int64_t now);

#endif
