/* Paths of moves through members that are full. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BALANCE_PATH_H
#define DV_BALANCE_PATH_H

#include "assign/balance_deal.h"

/* A search, breadth first: a member reaches each that may have one of its items. */
typedef struct {
    dv_deal *d;
    uint32_t *head;                              /* by member: its first item, or DV_NO_ITEM */
    uint32_t *next;                              /* by item: the next of the same member */
    uint32_t *previous;                          /* by item */
    uint32_t *via;                               /* by member: the item that comes to it on its path */
    uint32_t *choice;                            /* by slot of a tag: the item that a member gives for it */
    uint32_t *chosen;                            /* slots that have a choice */
    bool *is_reached;                            /* by member */
    bool *is_spread;                             /* by slot: all that may have such items are reached */
    uint32_t *slots;                             /* those that are spread */
    uint32_t *reached;                           /* members, those of the last search at the end, the nearest first */
    size_t slot_count, slots_before, slots_used; /* spread by the last search and all before it; before it; needed */
    size_t reached_count, reached_before;        /* by the last search and all before it; by those before it */
} dv_paths;

#define DV_NO_ITEM UINT32_MAX

/* Returns false when an allocation failed; dv_paths_free() is called in any case. */
bool dv_paths_make(dv_paths *p, dv_deal *d);
void dv_paths_free(dv_paths *p);

/* Forgets what the last search reached. */
void dv_paths_drop(dv_paths *p);

/* Finds the members that an item of member `a`, or item `i`, can make way to. It passes over those reached before. */
void dv_paths_from_member(dv_paths *p, uint32_t a);
void dv_paths_from_item(dv_paths *p, size_t i);

/* Returns how many items a path to the member takes from those who have had them since the deal began. */
size_t dv_paths_cost(const dv_paths *p, uint32_t to);

/* Moves the items on the path to the member. */
void dv_paths_take(dv_paths *p, uint32_t to);

#endif
