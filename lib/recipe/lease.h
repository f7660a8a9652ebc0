/* Lease: some slots of a semaphore's pool, from the queue for them to their end. SPDX-License-Identifier: Apache-2.0
 *
 * Enter the queue, be admitted at its head, hold, leave; nothing is left behind, whatever is lost on the way. One lease
 * belongs to one session. docs/protocol.md, rules E1 to E7, Q6 and K6. */
#ifndef DV_LEASE_H
#define DV_LEASE_H

#include "client/client.h"
#include "recipe/judged.h"
#include "recipe/slots.h"

typedef struct dv_lease dv_lease;

/* The settings that all leases of one semaphore object go by. They outlive the leases. */
typedef struct {
    char *path, *queue; /* the pool S, and S-__lock__ */
    int mode;           /* as which they are made: DV_PERSISTENT or DV_CONTAINER */
    char *identifier;
    uint32_t limit, count;
    int policy;  /* DIVVY_LIMIT_* */
    bool agreed; /* E3: the pool's limit was ours once; from then on it may change */
    dv_judged judged;
} dv_pool;

/* The events that a lease tells its owner, from the loop, never inside a call to the lease. */
typedef struct {
    /* The slots are ours, until leaving, failing or the session's end. At most once. */
    void (*admitted)(void *owner, dv_lease *lease, int64_t now);
    /* Somebody is before us, or too few slots are free: told each time that it begins to wait. */
    void (*waits)(void *owner, dv_lease *lease, int64_t now);
    /* It cannot go on, or what was held is gone; it leaves by itself. DIVVY_ENOENT: paths are missing, or a node of
     * ours was deleted; DIVVY_ECONNECTION, DIVVY_EBUSY (no room for a watch just now); DIVVY_ELIMIT, DIVVY_EPROTO,
     * DIVVY_ESTATE, which dv_lease_reason() explains; DIVVY_EACCES, ... gone() follows. */
    void (*failed)(void *owner, dv_lease *lease, int error, int64_t now);
    /* Nothing of it is left, in ZooKeeper or here: the last call. */
    void (*gone)(void *owner, dv_lease *lease, int64_t now);
} dv_lease_events;

/* With a connection. `ensure`: the paths may be missing. 0, or DIVVY_ELIMIT (no room for one more ephemeral node),
 * DIVVY_EBUSY (no room for watches just now; it comes with DV_SESSION_ROOM), DIVVY_ENOMEM; then *out is NULL and
 * nothing happens. */
int dv_lease_enter(dv_lease **out, divvy_client *client, dv_pool *pool, bool ensure, const dv_lease_events *events,
                   void *owner);
/* Leave, admitted or not; once, and not after failed(). gone() follows when that is certain. */
void dv_lease_leave(dv_lease *lease);
/* Returns whether it waits in the queue right behind `other`, which may be leaving. Meant in waits(). */
bool dv_lease_waits_for(const dv_lease *lease, const dv_lease *other);

/* Meant once admitted: the czxid of our node, which grows from one admission to the next; its slots. */
int64_t dv_lease_token(const dv_lease *lease);
const dv_slots *dv_lease_slots(const dv_lease *lease);
/* Returns why it failed, where there is more to say than the error; else "". */
const char *dv_lease_reason(const dv_lease *lease);

#endif
