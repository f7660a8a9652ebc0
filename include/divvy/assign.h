/**
 * @file assign.h
 * Who gets which item: pure functions of names, without I/O and without a clock. SPDX-License-Identifier: Apache-2.0
 *
 * All members of a pool call the same function with the same names and so agree without talking to each other.
 */
#ifndef DIVVY_ASSIGN_H
#define DIVVY_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

#include "divvy/error.h"

/** One member of a pool. The strings are read during a call only. */
typedef struct {
    const char *identifier; /**< the name it goes by; equal ones are told apart by their place in the array */
    uint32_t weight;        /**< in thousandths, 1000 = one share; both functions of this release ignore it */
    const char *zone;       /**< NULL: none; both functions of this release ignore it */
} divvy_member;

DIVVY_EXTERN_C_BEGIN

/**
 * Deal items out in turn: kazoo's rule `sorted(items)[i::n]`, where i is a member's place in sorted(members).
 *
 * Names are compared bytewise (for UTF-8 that is Python's order). Duplicates, of items and of members, are kept,
 * as kazoo keeps them; members of one identifier rank in the order in which they stand in `members`.
 *
 * Ownership: nothing is kept. Thread: any.
 * Source: kazoo.recipe.partitioner.SetPartitioner._partitioner; docs/protocol.md, rule A1.
 *
 * @param members      the members, in any order
 * @param member_count how many; at least 1 unless there are no items
 * @param items        the items, in any order, none NULL
 * @param item_count   how many
 * @param owners       [out] item_count places: owners[i] is the index into `members` of the owner of items[i]
 * @return 0, or
 *   DIVVY_EINVAL  a NULL pointer, no members though there are items, or UINT32_MAX members or more; owners is untouched
 *   DIVVY_ENOMEM  allocation failed; owners is untouched
 */
DIVVY_API int divvy_assign_round_robin(const divvy_member *members, size_t member_count, const char *const *items,
                                       size_t item_count, uint32_t *owners);

/**
 * Rendezvous (highest random weight) with exact capacity: loads differ by at most one, and a change of membership
 * moves little more than the least possible.
 *
 * Every pair of member and item has a weight, a hash of both names that any language can compute. The pairs are taken
 * from the heaviest down; a pair is granted when its item is free and its member has room. Each member has room for
 * floor(K/M) items, and K mod M members for one more.
 * The order of `members` and of `items` changes nothing, except among equal names: those are told apart by their rank
 * among their equals in the array.
 *
 * Cost: about K * M hash mixes and O(K + M) memory.
 * Ownership: nothing is kept. Thread: any.
 * Source: Thaler and Ravishankar, "A name-based mapping scheme for rendezvous" (1996); docs/protocol.md, rules A2 to
 * A5.
 *
 * @param members, member_count, items, item_count, owners  as for divvy_assign_round_robin()
 * @return 0, or DIVVY_EINVAL, DIVVY_ENOMEM as for divvy_assign_round_robin()
 */
DIVVY_API int divvy_assign_rendezvous(const divvy_member *members, size_t member_count, const char *const *items,
                                      size_t item_count, uint32_t *owners);

DIVVY_EXTERN_C_END

#endif
