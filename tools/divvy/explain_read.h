/* One item of a pool: who stands in its queue, what the plan has for it, what the two notes say of it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_EXPLAIN_READ_H
#define DV_EXPLAIN_READ_H

#include "plan/deaths.h"
#include "status_pool.h"

/* One who stands in the queue. */
typedef struct {
    char *node;
    char *name; /* of its member; else what its node says, or its session */
    int32_t sequence;
    size_t member; /* DV_NO_MEMBER: it is not in the party */
    int64_t token, made_ms, session;
} dv_explain_place;

/* An item in a member's note. */
typedef struct {
    bool there;          /* it can be read, and counts the items as the plan does */
    bool leaving, ready; /* docs/protocol.md, T0 */
    int64_t written_ms;  /* by the servers' clock */
} dv_explain_note;

typedef struct {
    dv_status *status;          /* its `expected` is the item alone */
    const dv_status_item *item; /* or NULL. Queues inside of its own directory are other items of the status */
    char *queue;                /* the item's, at the servers */
    dv_explain_place *places;
    size_t place_count; /* the owner is the first; 0: nobody owns it */
    bool is_planned;    /* the plan knows the item */
    int64_t planned_ms; /* when the plan was written; 0: there is none */
    dv_explain_note of_owner, of_next;
    dv_plan_deaths deaths;
} dv_explanation;

/* For dv_look_at(): fills in all but `status` of the dv_explanation at `context`, and the status. */
int dv_explain_read(dv_look *look, void *context);
/* All but `status`. */
void dv_explain_clear(dv_explanation *e);

#endif
