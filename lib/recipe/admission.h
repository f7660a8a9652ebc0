/* Admission: what a lease does at the head of its queue. SPDX-License-Identifier: Apache-2.0
 *
 * lease.c brings it to the head and holds what it was given; admission.c reads the pool, waits for room, and takes it.
 * docs/protocol.md, rules E2 to E7. */
#ifndef DV_ADMISSION_H
#define DV_ADMISSION_H

#include "recipe/contender.h"
#include "recipe/lease.h"
#include "recipe/node.h"

/* While its node is unmade. */
typedef enum {
    DV_LEASE_ENSURING, /* the paths are made */
    DV_LEASE_QUEUED,   /* somebody may be before us */
    DV_LEASE_READING,  /* at the head: limit and leases are read */
    DV_LEASE_FULL,     /* at the head, until something changes */
    DV_LEASE_SETTING,  /* the limit is written */
} dv_lease_stage;

struct dv_lease {
    dv_node node; /* creating: the transaction is under way; there: held */
    const dv_lease_events *events;
    void *owner;
    dv_pool *pool;
    dv_lease_stage stage;
    char reason[160];

    dv_contender *place;
    char *record;             /* what its node says */
    bool first;               /* nobody is before us */
    bool place_over;          /* it goes by itself, or was told to */
    unsigned ensures_to_come; /* of the two paths */
    int ensure_error;

    bool known;  /* the pool was read: */
    bool to_set; /* its limit is unset, or not what we provide */
    bool provided;
    uint32_t limit;
    int32_t version;
    int64_t czxid;
    unsigned reads;                        /* under way, at the head */
    bool early_list;                       /* the list that was asked for on entering is under way */
    bool read_failed, watched, look_again; /* of the reading under way */
    bool waited, doubts_all;               /* E2: it has been full; for so long that all children are in doubt */
    dv_watch data_watch, list_watch;
    char limit_text[12];

    char *data, *place_path; /* of the transaction, */
    dv_slots slots;          /* and what it takes */
    char tags[DV_SLOT_TAGS_BYTES];
    bool applied; /* it is certain that it was carried out */
    int64_t token;
    dv_timer audit_timer; /* of what is held; before that, of how long the pool has been full */
};

/* ---- lease.c ---- */
/* Changes the stage, by the table of what may follow on what. */
void dv_lease_enter_stage(dv_lease *lease, dv_lease_stage to);
static inline bool dv_lease_is(const dv_lease *lease, dv_lease_stage stage) {
    return lease->node.stage == DV_NODE_UNMADE && lease->stage == stage;
}
/* Q6: tells the owner why, and leaves. */
__attribute__((format(printf, 4, 5))) void dv_lease_fail_because(dv_lease *lease, int error, int64_t now,
                                                                 const char *format, ...);
void dv_lease_hold(dv_lease *lease, int64_t now);
/* Our node in the queue has gone with the transaction. */
void dv_lease_place_consumed(dv_lease *lease);

/* ---- admission.c ---- */
/* Asks for limit and leases together with the place in the queue, in the same turn as it is entered. */
void dv_admission_read_early(dv_lease *lease);
/* At the head. `only_list`: the limit is known, and a watch would tell of a change. */
void dv_admission_read(dv_lease *lease, bool only_list, int64_t now);
void dv_admission_unwatch(dv_lease *lease);
/* The fate of a transaction whose reply was lost. */
void dv_admission_found(dv_node *node, int64_t czxid, int64_t now);
void dv_admission_not_found(dv_node *node, int64_t now);
/* The timer: the pool has been full for long. */
void dv_admission_doubt(dv_lease *lease, int64_t now);

#endif
