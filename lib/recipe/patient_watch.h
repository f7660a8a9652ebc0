/* Patient watch: the children of a node, told once they have stood still. SPDX-License-Identifier: Apache-2.0
 *
 * Source: kazoo.recipe.watchers.PatientChildrenWatch, which waits for ever under churn; docs/protocol.md, W1 to W5. */
#ifndef DV_PATIENT_WATCH_H
#define DV_PATIENT_WATCH_H

#include "client/client.h"

typedef struct dv_patient_watch dv_patient_watch;

typedef struct {
    int64_t join_boundary_ms, leave_boundary_ms; /* for how long they must stand still */
    int64_t settle_max_ms;                       /* told at the latest, counted from the first change not told yet */
} dv_patience;

/* Heard from the loop, never inside a call to the watch. */
typedef struct {
    /* The first sign that what settled last is no longer so. Once for each settled(). May be NULL. */
    void (*changed)(void *owner, int64_t now);
    /* They have stood still, or settle_max_ms have passed. `names` live during the call; `pzxid` came with them. */
    void (*settled)(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now);
    /* They cannot be read: DIVVY_ENOENT, DIVVY_EACCES, ... gone() follows. */
    void (*failed)(void *owner, int error, int64_t now);
    void (*gone)(void *owner, int64_t now); /* the last call */
    /* For owners that cannot wait so long; may be NULL. While needs_names(), seen() takes the names of each read. */
    bool (*needs_names)(void *owner);
    void (*seen)(void *owner, const char *const *names, size_t count, int64_t now);
} dv_patient_watch_events;

/* Begins to watch when there is a connection. `path` lives until gone(). Returns NULL when an allocation fails. */
dv_patient_watch *dv_patient_watch_start(divvy_client *client, const char *path, const dv_patience *patience,
                                         const dv_patient_watch_events *events, void *owner);
/* Once. gone() follows. */
void dv_patient_watch_stop(dv_patient_watch *watch);

#endif
