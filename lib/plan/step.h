/* The sticky plan's step: from one plan to the next. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D10 to D20. Pure: no I/O, no clock. The writer computes the next plan by it, from what it has
 * just read (D25); every other member, from the same, would compute the same. A second step from what the first
 * returned, with the same party and no events, finds nothing to write. */
#ifndef DV_PLAN_STEP_H
#define DV_PLAN_STEP_H

#include "plan/party.h"

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
    dv_plan_weight weight;  /* key NULL: none */
    const char *leaving;    /* a node; NULL: none */
    dv_plan_set *set;       /* instead of the one that is dealt; NULL: no other */
    const char *round_over; /* guid of the plan whose moved items all have their new owners, or took too long */
} dv_plan_events;

/* DV_PLAN_NEXT with *next, which the caller frees; its guid is for the writer to fill, a first one's epoch too.
 * Otherwise *next is NULL: DV_PLAN_NOTHING, nothing is to be written for this party; DV_PLAN_ASK, something has to be
 * read first; or
 *   DIVVY_ENOMEM
 *   DIVVY_ELIMIT  more members than DV_PLAN_SLOTS
 * `previous` may be NULL: there is no plan. */
int dv_plan_step(dv_plan **next, const dv_plan *previous, const dv_plan_party *party, const dv_plan_events *events);

/* Fills in what the header of a plan says of the one that it was made from (NULL: none), and for which party and why it
 * was made. */
void dv_plan_follows(dv_plan *next, const dv_plan *previous, const dv_plan_party *party, dv_plan_reason reason);

#endif
