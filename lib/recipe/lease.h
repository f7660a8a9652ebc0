/* Lease: some slots of a semaphore's pool, from the queue for them to their end. SPDX-License-Identifier: Apache-2.0
 *
 * One lease belongs to one ticket and one session. lease.c brings it to the queue's head and holds what it was given;
 * admission.c reads the pool, waits for room, and takes it; shortcut.c takes it without the queue. docs/protocol.md,
 * rules E1 to E7, E14, E15, Q6 and K6. */
#ifndef DV_LEASE_H
#define DV_LEASE_H

#include "recipe/acquisition.h"
#include "recipe/contender.h"
#include "recipe/judged.h"
#include "recipe/node.h"
#include "recipe/slots.h"

/* The knowledge that an acquire leaves for the next one of its object: docs/protocol.md, E15. */
typedef struct {
    dv_slots slots;     /* that it had; none at first */
    uint32_t limit;     /* that it went by */
    unsigned confirmed; /* so many acquires in a row, in the queue, it would have served */
    unsigned misses;    /* in a row, as far as they matter */
} dv_shortcut;

/* The settings that all leases of one semaphore object go by. They outlive the leases. */
typedef struct {
    char *path, *queue; /* the pool S, and S-__lock__ */
    int mode;           /* of a path that is made: DV_PERSISTENT or DV_CONTAINER */
    char *identifier;
    uint32_t limit, count;
    int policy;  /* DIVVY_LIMIT_* */
    bool agreed; /* E3: the pool's limit was ours once; from then on it may change */
    dv_judged judged;
    dv_shortcut shortcut;
} dv_pool;

/* While its node is unmade. */
typedef enum {
    DV_LEASE_ENSURING, /* the paths are made */
    DV_LEASE_QUEUED,   /* somebody may be before us */
    DV_LEASE_READING,  /* at the head: limit and leases are read */
    DV_LEASE_FULL,     /* at the head, until something changes */
    DV_LEASE_SETTING,  /* the limit is written */
} dv_lease_stage;

typedef struct {
    dv_node node; /* creating: the transaction is under way; there: held */
    dv_ticket *ticket;
    dv_pool *pool;
    dv_lease_stage stage;
    char reason[160]; /* of a failure, where there is more to say than the error */

    dv_contender *place;
    char *record;    /* the data of the place */
    bool first;      /* nobody is before us */
    bool place_over; /* it goes by itself, or was told to */
    int ensure_error;

    bool known;  /* the pool was read: */
    bool to_set; /* its limit is unset, or not what we provide */
    bool provided;
    uint32_t limit;
    int32_t version;
    int64_t czxid;
    unsigned reads;                        /* under way, at the head */
    bool early_list;                       /* the list that was requested on entering is under way */
    bool read_failed, watched, look_again; /* of the reading under way */
    bool waited, doubts_all;               /* E2: it has been full; for so long that all children are in doubt */
    dv_watch data_watch, list_watch;
    dv_timer doubt_timer;

    bool queue_seen;  /* by one that takes the shortcut, which has no place: it was empty */
    bool missed;      /* something is in the way of the shortcut */
    int64_t set_zxid; /* when the pool was set last, as far as it has read */
    bool confirms;    /* the shortcut would have served one that is in the queue */

    dv_slots slots; /* that it takes */
    char tags[DV_SLOT_TAGS_BYTES];
    int64_t token; /* the czxid of our node, which grows from one admission to the next */
} dv_lease;

/* ---- lease.c ---- */
/* Enters the queue, with a connection. `ensure`: the paths may be missing. Returns 0 with the lease as the ticket's
 * place, or DIVVY_ELIMIT (no room for the node), DIVVY_EBUSY (none for watches just now), DIVVY_ENOMEM. */
int dv_lease_enter(dv_ticket *ticket, dv_pool *pool, bool ensure);
/* Leaves, admitted or not; once, and not after it has failed. */
void dv_lease_leave(dv_lease *lease);
/* Returns whether it waits in the queue right behind `other`, which may be leaving. Meant when it begins to wait. */
bool dv_lease_waits_for(const dv_lease *lease, const dv_lease *other);
/* Once admitted: checks that our node is still there. */
void dv_lease_verify(dv_lease *lease);
void dv_lease_enter_stage(dv_lease *lease, dv_lease_stage to);
static inline bool dv_lease_is(const dv_lease *lease, dv_lease_stage stage) {
    return lease->node.stage == DV_NODE_UNMADE && lease->stage == stage;
}
/* Q6: fails for a reason, and leaves. */
__attribute__((format(printf, 4, 5))) void dv_lease_fail_because(dv_lease *lease, int error, int64_t now,
                                                                 const char *format, ...);
void dv_lease_hold(dv_lease *lease, int64_t now);
/* Our node in the queue has gone with the transaction. */
void dv_lease_place_consumed(dv_lease *lease);

/* ---- admission.c ---- */
/* Requests limit and leases together with the place in the queue, in the same turn as it is entered. */
void dv_admission_read_early(dv_lease *lease);
/* At the head. `only_list`: the limit is known, and a watch would tell of a change. */
void dv_admission_read(dv_lease *lease, bool only_list, int64_t now);
void dv_admission_unwatch(dv_lease *lease);
/* The fate of a transaction whose reply was lost. */
void dv_admission_found(dv_node *node, int64_t czxid, int64_t now);
void dv_admission_not_found(dv_node *node, int64_t now);

/* ---- shortcut.c ---- */
/* Returns whether it is worth trying: the acquires before would have been served by it. */
bool dv_shortcut_is_open(const dv_pool *pool);
/* Makes the node of a new lease, and asks for all that says whether it counts. Returns 0 or DIVVY_ENOMEM. */
int dv_shortcut_take(dv_lease *lease);
/* The fate of a create whose reply was lost. */
void dv_shortcut_found(dv_node *node, int64_t czxid, int64_t now);
void dv_shortcut_not_found(dv_node *node, int64_t now);
/* E4: gives one at the head the slots that its object had, where they are free beside these leases. Finds out whether
 * the shortcut would have served it. */
void dv_shortcut_prefer(dv_lease *lease, const char *const *leases, size_t count);
/* Learns from one that was admitted in the queue. */
void dv_shortcut_learn(dv_pool *pool, const dv_lease *lease);

#endif
