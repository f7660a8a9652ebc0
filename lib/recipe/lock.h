/* Lock: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCK_H
#define DV_LOCK_H

#include "divvy/lock.h"
#include "recipe/acquisition.h"
#include "recipe/contender.h"
#include "recipe/listing.h"

enum { DV_MARKER_BYTES = sizeof ",p=1000__lock__" };

struct divvy_lock {
    dv_acquisition acquisition; /* first */
    dv_queue_kind queue;
    char marker[DV_MARKER_BYTES]; /* of an election's queue */
    char *directory, *identifier;
    int directory_mode; /* of a directory that is made: DV_PERSISTENT or DV_CONTAINER */
};

/* Makes the lock of an election (J1, J4), whose places have this marker. The config's path and identifier were checked.
 * With the client lock held. Returns 0 or DIVVY_ENOMEM. */
int dv_lock_create_for_election(divvy_lock **out, divvy_client *client, const divvy_lock_config *config,
                                const char *marker);
/* Lists those of the lock's queue that `kind` chooses. Begins with the client lock held, and ends it. */
int dv_lock_list(divvy_lock *lock, const dv_listing_kind *kind, divvy_strings **out, int64_t timeout_ms);

static inline int dv_lock_enter(divvy_lock *lock) {
    if (!lock) return dv_fail(NULL, DIVVY_EINVAL, "the lock is NULL");
    return dv_client_enter(lock->acquisition.object.client);
}

/* Returns the path of the node that is held, chroot included, or NULL. With the client lock held. */
const char *dv_lock_path(const divvy_lock *lock);

#endif
