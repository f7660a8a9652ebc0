/* A10, while it moves: shared by its parts. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BALANCE_PASS_H
#define DV_BALANCE_PASS_H

#include "assign/balance_deal.h"

#define DV_BALANCE_MARGIN 0.05      /* what a move must gain, in fair shares */
#define DV_BALANCE_DUST (1.0 / 200) /* smaller items do not move */

/* One pass: what was moved in it is in no list. */
typedef struct {
    dv_deal *d;
    double begins_above, ends_at_most; /* levels */
    double begins_below, ends_at_least;
    double smallest;    /* item that moves now */
    bool *is_done;      /* by member: nothing more can be done with it */
    double *small;      /* by member: the load of its items that may move later */
    size_t *next;       /* by member: where the items begin that it still has */
    uint32_t *emptiest; /* by slot of a tag: who may have one, if `known` says so */
    uint64_t *known;    /* by slot: the turn in which that was found */
    uint64_t turn;
    size_t giver; /* in this turn */
    size_t made;  /* moves */
    size_t tries; /* that are left for exchanges, so that they take bounded time */
} dv_pass;

/* Moves the item. */
static inline void dv_pass_move(dv_pass *p, size_t i, uint32_t to) {
    dv_balance_put(p->d, i, to);
    p->made++;
}

/* Begins a turn of member `a`. */
static inline void dv_pass_begin(dv_pass *p, size_t a) {
    p->giver = a;
    p->turn++;
}

/* Returns the emptiest member that may take an item with the tag of this slot, but not the giver, or DV_NO_MEMBER. No
 * item may have moved in this turn. */
uint32_t dv_pass_emptiest(dv_pass *p, uint32_t slot);

/* Returns whether the move would take back the last one, and could not be the first move of this deal. */
bool dv_pass_reverses(const dv_pass *p, size_t i, uint32_t to);

/* Exchanges items for members that no single move helps: two moves for each. */
void dv_pass_exchange(dv_pass *p);

#endif
