/* Registry: the object, and functions for its parts. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_REGISTRY_H
#define DV_REGISTRY_H

#include "divvy/registry.h"

#include "client/client.h"
#include "recipe/request.h"
#include "registry/entry.h"
#include "registry/server_time.h"

typedef struct dv_service dv_service;
typedef struct dv_registry_views dv_registry_views; /* watch.c's */

/* A wait for the servers' clock to be known. */
typedef struct dv_time_wait {
    struct dv_time_wait *next;
    bool makes_root; /* a write follows, so missing parts of the path may be made */
    bool waiting;
    int error;                                           /* of the wait that has ended */
    void (*done)(void *context, int error, int64_t now); /* NULL: dv_client_wait() looks at `waiting` */
    void *context;
} dv_time_wait;

struct divvy_registry {
    dv_object object; /* first */
    divvy_registry_config config;
    char *root; /* from the root of ZooKeeper, chroot included */
    char *host, *nonce;
    dv_listener listener;
    bool ending; /* closed */

    bool ended;               /* nothing more can be sent */
    dv_service *services;     /* announced, or on their way out */
    void *services_by_name;   /* tsearch() */
    size_t task_count;        /* of all of them */
    dv_service *next_service; /* while all are told something, during which any may go */
    dv_registry_views *views; /* NULL until the first watch */

    dv_server_time time;
    dv_time_wait *time_waits;
    bool time_under_way, time_rooted;
    unsigned time_place; /* which of the possible places is tried */
    int64_t time_sent_at;

    void *warned; /* versions of nodes that were warned of, by hash: tsearch() */
    size_t warned_count;
    unsigned warnings; /* of the last second */
    int64_t warnings_since;
    _Atomic(uint64_t) malformed;
    dv_metrics_source metrics;
};

static inline int dv_registry_enter(divvy_registry *registry) {
    if (!registry) return dv_fail(NULL, DIVVY_EINVAL, "the registry is NULL");
    return dv_client_enter(registry->object.client);
}

/* ---- nodes.c ---- */

/* dv_entry_parse() of a node that was read. One that is no entry is counted and warned of, once for each version. */
int dv_registry_parse(divvy_registry *registry, dv_entry **out, const char *role_node, const char *id_node,
                      const void *data, size_t data_bytes, const dv_stat *stat);
/* Skips a node that an access list hides, and counts it once in the same way; `id_node` "": a whole role. */
void dv_registry_skip_unreadable(divvy_registry *registry, const char *role_node, const char *id_node);
void dv_registry_forget_warned(divvy_registry *registry);
/* Gives the name of the node for a role or an id, malloc'ed. Returns 0, or an error with its message. */
int dv_registry_node_name(const divvy_registry *registry, const char *kind, const char *name, char **out);
/* Returns root/role_node[/id_node], malloc'ed, or NULL when an allocation fails. */
char *dv_registry_path(const divvy_registry *registry, const char *role_node, const char *id_node);

/* ---- time.c ---- */

static inline bool dv_registry_knows_time(const divvy_registry *registry) {
    return registry->time.known;
}
/* Returns what the servers' clock shows now; zeros while it is not known. */
static inline dv_server_now dv_registry_server_now(const divvy_registry *registry) {
    if (!registry->time.known) return (dv_server_now){0, 0};
    return dv_server_time_at(&registry->time, dv_client_now(registry->object.client));
}
/* V6: begins to learn the time. `wait` may be NULL, lives until it has ended, and does not end inside this. Returns
 * false if the time is known and fresh: nothing happens. An old one stays good until then: no caller need wait. */
bool dv_registry_learn_time(divvy_registry *registry, dv_time_wait *wait);
/* Takes a wait back, whose `done` is not called then. Returns false if it was not waiting. */
bool dv_registry_forget_wait(divvy_registry *registry, dv_time_wait *wait);
void dv_registry_note_time(divvy_registry *registry, int64_t sent_at, const dv_stat *stat, int64_t now);
void dv_registry_time_hear(divvy_registry *registry, dv_session_event event, int64_t now);

/* ---- read.c ---- */

/* For waiting calls. They return 0, or an error with its message. */

/* Gives all entries of a role, or of all (NULL). The servers' clock is known afterwards, unless no entry needs it, and
 * was learned lately, unless that was denied. */
int dv_registry_read(divvy_registry *registry, const char *role_node, dv_entries *out, int64_t timeout_ms);
int dv_registry_find_roles(divvy_registry *registry, const char *id_node, divvy_strings **roles, dv_deadline deadline);

#endif
