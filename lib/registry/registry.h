/* Registry: what its parts share. SPDX-License-Identifier: Apache-2.0
 *
 * registry.c   the public face: open, close
 * nodes.c      names of nodes, and warnings of what is no entry
 * heartbeat.c  announcing, by call and by timer
 * service*.c   one announced node: stored, found again after a lost reply, put back on a new session, deleted
 * unique.c     the role that may have one service only
 * read.c       pipelined reads of a role, or of all
 * healthy.c    the healthy ones of it
 * remove.c     deleting what is stale, or what a caller names
 * time.c       learning the servers' clock
 * watch.c      live views (watch.h)
 * entry.c, status.c, server_time.c   pure
 */
#ifndef DV_REGISTRY_H
#define DV_REGISTRY_H

#include "divvy/registry.h"

#include "client/client.h"
#include "recipe/request.h"
#include "registry/entry.h"
#include "registry/server_time.h"

enum { DV_SERVICE_CHAINS = 1024 };

typedef struct dv_service dv_service;
typedef struct dv_registry_views dv_registry_views; /* watch.c's */

/* Versions of nodes that were warned of. */
typedef struct {
    uint64_t *slots; /* hashes; 0: empty */
    size_t room, used;
} dv_warned;

/* Somebody waits for the servers' clock to be known. */
typedef struct dv_time_wait {
    struct dv_time_wait *next;
    bool makes_root; /* it is to write next, so what is missing of the path may be made */
    void (*done)(void *context, int error, int64_t now);
    void *context;
} dv_time_wait;

struct divvy_registry {
    dv_object object; /* first */
    divvy_registry_config config;
    char *root; /* from the root of ZooKeeper, chroot included */
    char *host, *nonce;
    int64_t pid;
    dv_listener listener;
    bool ending; /* closed */

    bool ended;               /* nothing more can be sent */
    dv_service *services;     /* announced, or on their way out */
    size_t task_count;        /* of all of them */
    dv_service *next_service; /* while all are told something: any may go meanwhile */
    dv_service *service_chains[DV_SERVICE_CHAINS];
    dv_registry_views *views; /* NULL until the first watch */

    dv_server_time time;
    dv_time_wait *time_waits;
    bool time_asked, time_rooted;
    unsigned time_place; /* which of the possible places is tried */
    int64_t time_sent_at;
    char *time_path;

    dv_warned warned;
    unsigned warnings; /* of the last second */
    int64_t warnings_since;
    _Atomic(uint64_t) malformed;
    dv_metrics_source metrics;
};

/* dv_client_enter() for a public call on a registry that may be NULL. */
static inline int dv_registry_enter(divvy_registry *registry) {
    if (!registry) return dv_fail(NULL, DIVVY_EINVAL, "the registry is NULL");
    return dv_client_enter(registry->object.client);
}

/* ---- nodes.c ---- */

/* dv_entry_parse() of what a read gave; what is no entry is counted and warned of, once for each version of a node. */
int dv_registry_parse(divvy_registry *registry, dv_entry **out, const char *role_node, const char *id_node,
                      const void *data, size_t data_bytes, const dv_stat *stat);
/* Skips a node that an access list hides, likewise, and counts it once; `id_node` "": a whole role. */
void dv_registry_skip_unreadable(divvy_registry *registry, const char *role_node, const char *id_node);
/* The name of the node for a role or an id, malloc'ed. 0, DIVVY_EINVAL, DIVVY_E2BIG, DIVVY_ENOMEM with a message. */
int dv_registry_node_name(const divvy_registry *registry, const char *what, const char *name, char **out);
/* root/role_node[/id_node], malloc'ed; NULL: out of memory. */
char *dv_registry_path(const divvy_registry *registry, const char *role_node, const char *id_node);

/* ---- time.c ---- */

/* Returns whether the servers' clock is known at all; then what it shows now. */
static inline bool dv_registry_knows_time(const divvy_registry *registry) {
    return registry->time.known;
}
static inline dv_server_now dv_registry_server_now(const divvy_registry *registry) {
    return dv_server_time_at(&registry->time, dv_client_now(registry->object.client));
}
/* Begins to learn it, unless it is known and fresh, with one write that leaves nothing behind. `wait` may be NULL, and
 * lives until its `done`, which is not called inside this. False: known and fresh, nothing happens. Where it is known
 * and old, the old knowledge stays good until then: nobody need wait. */
bool dv_registry_learn_time(divvy_registry *registry, dv_time_wait *wait);
/* Takes a wait back, whose `done` is not called then. Returns false if it was not waiting. */
bool dv_registry_forget_wait(divvy_registry *registry, dv_time_wait *wait);
/* A write of ours was answered. */
void dv_registry_note_time(divvy_registry *registry, int64_t sent_at, const dv_stat *stat, int64_t now);
/* The session goes, or a connection comes. */
void dv_registry_time_hear(divvy_registry *registry, dv_session_event event, int64_t now);

/* ---- read.c ---- */

typedef struct dv_reading dv_reading;

/* The results of a read of one role, or of all. Entries are the receiver's own. All but `done` may be called many
 * times. */
typedef struct {
    /* A role's children as they were listed, before its entries follow; NULL: not wanted. */
    void (*role)(void *context, const char *role_node, const dv_stat *stat, const char *const *id_nodes, size_t count);
    void (*entry)(void *context, dv_entry *entry); /* takes it */
    /* The last call: 0, also where nothing is there, or the first error. Entries that may not be read are skipped; so
     * are roles, where all are read. */
    void (*done)(void *context, int error, int64_t now);
} dv_reading_events;

/* Lists `role_node` (NULL: every role) and reads its entries, many at a time. 0, or DIVVY_ENOMEM and nothing
 * happens. */
int dv_registry_read(dv_reading **out, divvy_registry *registry, const char *role_node, const dv_reading_events *events,
                     void *context);
/* Nothing more is told, `done` included. Not after done. */
void dv_reading_abandon(dv_reading *reading);

#endif
