/* The sticky plan's step: from one plan to the next. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D10 to D20. Pure: no I/O, no clock. The writer computes the next plan by it from what it has
 * just read (D25); every other member would compute the same from that. */
#ifndef DV_PLAN_STEP_H
#define DV_PLAN_STEP_H

#include "plan/loads.h"
#include "plan/party.h"
#include "plan/wish.h"

typedef struct {
    const char *key;
    int64_t absent; /* of the entry that the timer ran for */
} dv_plan_expiry;

typedef struct {
    const char *key;
    uint32_t weight; /* 0: to be drained */
} dv_plan_weight;

/* Events that the party does not tell. Zero: none. */
typedef struct {
    const dv_plan_expiry *expired; /* absences that took too long */
    size_t expired_count;
    dv_plan_weight weight;       /* key NULL: none */
    const char *leaving;         /* a node; NULL: none */
    dv_plan_set *set;            /* instead of the one that is dealt; NULL: no other */
    const dv_wish_event *wishes; /* what an operator asks for (D48) */
    size_t wish_count;
    const char *told;       /* what these events are, in words, for the history (D44); NULL: nothing to tell */
    dv_loads *loads;        /* by item of `loads_of`; DV_CLASS_NONE: the plan's class stays; NULL: none (D50) */
    dv_plan_set *loads_of;  /* they are passed over where the plan has other items; NULL: the plan's */
    const char *round_over; /* guid of the plan whose moved items all have their new owners, or took too long */
} dv_plan_events;

/* Returns DV_PLAN_NEXT with *next, which the caller frees; its guid is for the writer to fill, a first one's epoch too.
 * Otherwise *next is NULL: DV_PLAN_NOTHING; DV_PLAN_ASK, something has to be read first; DIVVY_ENOMEM; or DIVVY_ELIMIT,
 * more members than DV_PLAN_SLOTS. `previous` may be NULL: there is no plan. */
int dv_plan_step(dv_plan **next, const dv_plan *previous, const dv_plan_party *party, const dv_plan_events *events);

/* Fills in a header: the plan that it was made from (NULL: none), for which party, and why. */
void dv_plan_follows(dv_plan *next, const dv_plan *previous, const dv_plan_party *party, dv_plan_reason reason);

#endif
