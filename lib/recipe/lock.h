/* Lock: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCK_H
#define DV_LOCK_H

#include "divvy/lock.h"
#include "recipe/contender.h"

typedef struct dv_lock_place dv_lock_place;
typedef struct dv_lock_acquire dv_lock_acquire;

struct dv_lock_place {
    dv_lock_place *next;
    divvy_lock *lock;
    dv_contender *contender;
    bool first;  /* nobody is before it */
    bool failed; /* it goes by itself */
};

struct divvy_lock {
    dv_object object; /* first */
    int mode;
    void (*on_lost)(divvy_lock *lock, void *user);
    void *user;
    char *directory, *identifier;
    int directory_mode; /* as which it is made: DV_PERSISTENT or DV_CONTAINER */
    dv_listener listener;

    dv_lock_place *places;    /* all of which something is left, the newest first */
    dv_lock_place *place;     /* the one that the acquire under way, or what is held, stands on */
    dv_lock_acquire *acquire; /* under way */
    dv_lock_acquire *granted; /* the last one that ended with 0, while its caller has not been told */
    unsigned dones_due;       /* callbacks of acquires that have ended, queued or running */
    bool ensuring;            /* the directory is being made */
    bool ending;              /* destroyed */
    bool telling_lost;        /* lost_callback is queued or running */
    bool mute;                /* it tells nothing; of the thread that runs it */
    unsigned missing_count;   /* how often the directory was missing in this acquire */
    dv_timer deadline_timer, audit_timer;
    dv_callback lost_callback;
    _Atomic(int64_t) token; /* 0: not held */
};

/* dv_turn_enter() for a public call on a lock that may be NULL. */
static inline int dv_lock_enter(divvy_lock *lock) {
    if (!lock) return dv_fail(NULL, DIVVY_EINVAL, "the lock is NULL");
    return dv_turn_enter(lock->object.client);
}

/* The path of the node that is held now, from the root of ZooKeeper; NULL: nothing is. With the turn held. */
const char *dv_lock_path(const divvy_lock *lock);

#endif
