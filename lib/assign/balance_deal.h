/* A deal by size while it is made: shared by its parts. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BALANCE_DEAL_H
#define DV_BALANCE_DEAL_H

#include "assign/balance.h"

#define DV_NO_MEMBER UINT32_MAX

/* One member. Loads and sizes are in fair shares: 1 is what a member of mean weight is to have. */
typedef struct {
    double weight; /* A6: the mean is 1; 0: the member is drained */
    double load;   /* of its items */
    double began;  /* its load as the moves for load began */
    size_t count;  /* of its items */
    size_t most;   /* its cap */
    uint64_t tie;  /* decides between equal members */
} dv_bin;

/* An item in the order of a list. */
typedef struct {
    double size;
    uint64_t key; /* decides between equal items */
    uint32_t index;
    uint32_t owner;
} dv_lot;

typedef struct {
    const dv_balance_member *members;
    size_t member_count;
    const dv_balance_item *items;
    size_t item_count;
    const dv_balance_options *options;
    uint32_t *owners; /* the caller's: who has each item now */
    dv_bin *bins;
    uint32_t *zone_of; /* by member: the number of its zone, if somebody in it weighs something */
    size_t zone_count; /* of such zones */
    double *sizes;     /* of each item: a giant counts as the share of the strongest member */
    uint64_t *keys;    /* of each item's name */
    double fair;       /* lambda in the caller's unit */
    size_t heavy;      /* giants */
    size_t moves;      /* items that are no longer where the caller had them */
    size_t moves_max;  /* 0: nothing is taken from anybody */
    dv_lot *lots;      /* each member's items, the largest first: as they were when the lists were made */
    size_t *first;     /* where each member's begin in `lots`, and the end */
    uint32_t *tags;    /* those that items need, the scarcest first; the last is DV_NO_TAG */
    size_t tag_count;
    uint32_t *tag_slots; /* of each item: where its tag stands in `tags` */
} dv_deal;

/* Makes what needs nothing but the members and the sizes: `bins` with their weights, `sizes`, `fair`. Makes the rest.
 * Both return false when an allocation failed. Frees both. */
bool dv_balance_deal_begin(dv_deal *d);
bool dv_balance_deal_list(dv_deal *d);
void dv_balance_deal_free(dv_deal *d);

/* Fills in the members' weights, the items' sizes, lambda. Returns false when an allocation failed. */
bool dv_balance_weigh(dv_deal *d);
bool dv_balance_measure(dv_deal *d);

/* Adds up each member's items. */
void dv_balance_sum(dv_deal *d);

/* Lists each member's items, the largest first. */
void dv_balance_list(dv_deal *d);

/* Returns whether the member has the tag. */
static inline bool dv_balance_has_tag(const dv_deal *d, size_t m, uint32_t tag) {
    return tag == DV_NO_TAG || (d->members[m].has_tag != NULL && d->members[m].has_tag[tag]);
}

/* A9: returns whether one more item that needs this tag may go to the member. */
static inline bool dv_balance_is_open(const dv_deal *d, size_t m, uint32_t tag) {
    const dv_bin *b = &d->bins[m];
    return b->weight > 0 && b->count < b->most && dv_balance_has_tag(d, m, tag);
}

/* Returns a member's load for its weight: L of A10, in fair shares. */
static inline double dv_balance_level(const dv_bin *b) {
    return b->load / b->weight;
}

/* Returns whether an item may be taken from its present owner. */
bool dv_balance_may_leave(const dv_deal *d, size_t i);

/* Gives the item to the member, or to nobody. */
void dv_balance_put(dv_deal *d, size_t i, uint32_t to);

/* A9: takes what must leave, gives what has no owner. Returns false when an allocation failed. */
bool dv_balance_place(dv_deal *d);

/* A9: makes way for what could not be placed: by moves from members that are full. */
bool dv_balance_make_way(dv_deal *d);

/* Returns whether no hard rule is in force. Then deals by numbers, as A6 to A8. Returns 0 or DIVVY_ENOMEM. */
bool dv_balance_is_free(const dv_deal *d);
int dv_balance_sticky(dv_deal *d);

/* A9: evens out the numbers of items under hard rules. Returns false when an allocation failed. */
bool dv_balance_even_out(dv_deal *d);

/* A10: moves for load, until it finds no more. Returns false when an allocation failed. */
bool dv_balance_move(dv_deal *d);

#endif
