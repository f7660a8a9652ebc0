/* Semaphore: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SEMAPHORE_H
#define DV_SEMAPHORE_H

#include "divvy/semaphore.h"
#include "recipe/lease.h"

typedef struct dv_taken dv_taken;
typedef struct dv_semaphore_acquire dv_semaphore_acquire;

struct dv_taken {
    dv_taken *next;
    divvy_semaphore *semaphore;
    dv_lease *lease;
    bool admitted;
};

struct divvy_semaphore {
    dv_object object; /* first */
    dv_pool pool;
    void (*on_lost)(divvy_semaphore *semaphore, void *user);
    void *user;
    dv_listener listener;

    dv_taken *all;                 /* leases of which something is left, the newest first */
    dv_taken *taken;               /* the one that the acquire under way, or what is held, stands on */
    dv_semaphore_acquire *acquire; /* under way */
    dv_semaphore_acquire *granted; /* the last one that ended with 0, while its caller has not been told */
    unsigned dones_due;            /* callbacks of acquires that have ended, queued or running */
    unsigned missing_count;        /* how often paths were missing in this acquire */
    bool ending;                   /* destroyed */
    bool telling_lost;             /* lost_callback is queued or running */
    bool mute;                     /* it tells nothing; of the thread that runs it */
    dv_timer deadline_timer;
    dv_callback lost_callback;
    _Atomic(int64_t) token; /* 0: nothing is held */
    _Atomic(int) slot;
};

#endif
