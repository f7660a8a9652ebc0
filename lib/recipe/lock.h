/* Lock: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCK_H
#define DV_LOCK_H

#include "divvy/lock.h"
#include "recipe/acquisition.h"
#include "recipe/contender.h"

struct divvy_lock {
    dv_acquisition acquisition; /* first */
    int mode;
    void (*on_lost)(divvy_lock *lock, void *user);
    void *user;
    char *directory, *identifier;
    int directory_mode; /* as which it is made: DV_PERSISTENT or DV_CONTAINER */
    dv_timer audit_timer;
};

/* dv_client_enter() for a public call on a lock that may be NULL. */
static inline int dv_lock_enter(divvy_lock *lock) {
    if (!lock) return dv_fail(NULL, DIVVY_EINVAL, "the lock is NULL");
    return dv_client_enter(lock->acquisition.object.client);
}

/* The path of the node that is held now, from the root of ZooKeeper; NULL: nothing is. With the client lock held. */
const char *dv_lock_path(const divvy_lock *lock);

#endif
