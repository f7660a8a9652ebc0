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
    /* For owners that others may tell of the children (W20); all or none of these are NULL. For how much longer than
     * the boundary it waits for that, before it lists; -1: it lists by itself. */
    int64_t (*defers_ms)(void *owner);
    /* The Stat of each answer, before anything settles. Returns whether the owner is about to learn something. */
    bool (*asked)(void *owner, const dv_stat *stat, int64_t now);
    /* It has waited so long in vain: defers_ms() is -1 from now on. */
    void (*waited)(void *owner, int64_t now);
    /* Before settled(): what settled before, which it takes over. `names` is one block for free(). */
    void (*replaced)(void *owner, char **names, size_t count, int64_t pzxid);
} dv_patient_watch_events;

/* Begins to watch when there is a connection. `path` lives until gone(). Returns NULL when an allocation fails. */
dv_patient_watch *dv_patient_watch_start(divvy_client *client, const char *path, const dv_patience *patience,
                                         const dv_patient_watch_events *events, void *owner);
/* Tells the names that settled last, sorted, valid until the next call to the watch. Returns false if none did. */
bool dv_patient_watch_told(const dv_patient_watch *watch, const char *const **names, size_t *count, int64_t *pzxid);

/* ---- for owners that defer; from the loop, where changed() and settled() may be called inside ---- */
/* Goes by what defers_ms() says now. */
void dv_patient_watch_turn(dv_patient_watch *watch, int64_t now);
/* Takes a Stat of the node that the owner has read, as one of its own. */
void dv_patient_watch_note(dv_patient_watch *watch, const dv_stat *stat, int64_t now);
/* Others have said what has settled: it settles. Takes over the names, sorted and one block for free(). */
void dv_patient_watch_learn(dv_patient_watch *watch, char **names, size_t count, int64_t pzxid, int64_t now);
/* Others have seen the children of this pzxid stand still: lists at that time, and waits for nothing if it is this. */
void dv_patient_watch_vouch(dv_patient_watch *watch, int64_t pzxid, int64_t at);

/* Once. gone() follows. */
void dv_patient_watch_stop(dv_patient_watch *watch);

#endif
