/* The deal by size, with hard rules: tags and caps. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, A9 and A10. Pure: no I/O, no clock, no libm. */
#ifndef DV_BALANCE_H
#define DV_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DV_NO_TAG UINT32_MAX

/* One member. The texts are the caller's. */
typedef struct {
    const char *identifier; /* breaks ties */
    const char *zone;       /* "": none; spread as by A6 */
    uint32_t weight;        /* 0: is drained */
    uint32_t cap;           /* most items; 0: no limit */
    const bool *has_tag;    /* by number of the tag; NULL: it has none */
} dv_balance_member;

/* One item. */
typedef struct {
    const char *name;
    double size;        /* at least 0; below 0: not known, counts as the mean */
    uint32_t owner;     /* index of a member; UINT32_MAX: none */
    uint32_t tag;       /* the one that its owner must have; DV_NO_TAG: none */
    uint32_t came_from; /* 1 + the index of the member from which the last step by load took it; 0: none did */
    bool is_fixed;      /* it stays where it is (a pin), and counts there */
} dv_balance_item;

typedef struct {
    bool by_count; /* sizes are not looked at: shares are even in numbers of items, as by A6 */
    bool keep_all; /* nothing is taken from anybody, for tags and caps neither: only items without an owner are dealt */
    bool begins;   /* members or weights have changed: the trigger of A10 is not waited for */
    size_t max_moves; /* 0: no limit; items that have no owner are no moves */
    double imbalance; /* A10's trigger; it stops at half of that; 0: 0.2 */
} dv_balance_options;

typedef struct {
    double fair_share;    /* lambda: of a member of mean weight */
    size_t moves;         /* items taken from a member that is there */
    size_t moves_by_load; /* of these, by A10 */
    size_t heavy;         /* items of at least lambda */
    size_t ownerless;     /* items that no member may take: tags, caps */
} dv_balance_result;

/* Fills in owners[i], an index of a member or UINT32_MAX, for each item. On its own result, with the same sizes and
 * without `begins`, it moves nothing; after a call that max_moves stopped, the next one goes on.
 * Returns 0, or DIVVY_ENOMEM; then `owners` is good for nothing. */
int dv_balance_deal(const dv_balance_member *members, size_t member_count, const dv_balance_item *items,
                    size_t item_count, const dv_balance_options *options, uint32_t *owners, dv_balance_result *result);

/* Fills in loads[m], each member's L of A10: 1 is even. Of a member of weight 0 it is the load in fair shares.
 * Returns lambda, or a number below 0 when an allocation failed. */
double dv_balance_loads(const dv_balance_member *members, size_t member_count, const dv_balance_item *items,
                        size_t item_count, double *loads);

#endif
