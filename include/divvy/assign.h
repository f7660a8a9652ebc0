/**
 * @file assign.h
 * Who gets which item: pure functions, without I/O and without a clock. SPDX-License-Identifier: Apache-2.0
 *
 * All members of a pool call the same function with the same names and so agree without talking to each other; for
 * divvy_assign_sticky() they have to agree on the previous owners first.
 */
#ifndef DIVVY_ASSIGN_H
#define DIVVY_ASSIGN_H

#include <stddef.h>
#include <stdint.h>

#include "divvy/error.h"

/** One member of a pool. The strings are read during a call only. */
typedef struct {
    const char *identifier; /**< the name it goes by; equal ones are told apart by their place in the array */
    uint32_t weight;        /**< in thousandths, 1000 = one share, 0: is being drained; only sticky looks at it */
    const char *zone;       /**< where it runs, such as a rack; NULL or "": none; only sticky looks at it */
} divvy_member;

/** In which order round robin deals the items out. */
enum {
    DIVVY_ORDER_BYTES,  /**< bytewise, as kazoo sorts strings */
    DIVVY_ORDER_NUMERIC /**< by number, as kazoo sorts Python's integers: `range(12)`. All items are decimal numbers */
};

DIVVY_EXTERN_C_BEGIN

/**
 * Deals items out in turn: kazoo's rule `sorted(items)[i::n]`, where i is a member's place in sorted(members).
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
 * Deals items out as divvy_assign_round_robin() does, with the items in a given order.
 *
 * A pool of kazoo members whose items are integers sorts them by number: 2 before 10. Strings of the same digits are
 * sorted bytewise: "10" before "2". All members of a pool must deal in one order, or they wait for each other for ever.
 *
 * Ownership: nothing is kept. Thread: any.
 * Source: kazoo.recipe.partitioner.SetPartitioner._partitioner; docs/protocol.md, rule A1.
 *
 * @param items_order  DIVVY_ORDER_BYTES, or DIVVY_ORDER_NUMERIC: then each item is written as Python writes an integer,
 *                     that is, digits without leading zeros, after a minus sign where it is below 0
 * @return as divvy_assign_round_robin(); DIVVY_EINVAL also for an unknown order, and for an item that is no such number
 */
DIVVY_API int divvy_assign_round_robin_ordered(const divvy_member *members, size_t member_count,
                                               const char *const *items, size_t item_count, int items_order,
                                               uint32_t *owners);

/**
 * Deals by rendezvous (highest random weight) with exact capacity: loads differ by at most one, and a change of
 * membership moves little more than the least possible.
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

/** The options of divvy_assign_sticky(). Initialise with DIVVY_STICKY_OPTIONS_INIT, then set what differs. */
typedef struct {
    size_t size;      /**< sizeof of this struct, set by the INIT macro */
    size_t max_moves; /**< how many items a call may take from members; 0 (default): as many as it takes */
    int spread_zones; /**< 1: items are spread evenly over zones; 0 (default): zones are not looked at */
    int keep_all;     /**< 1: nothing is taken from members, whatever max_moves; for a pause between rounds */
} divvy_sticky_options;

#define DIVVY_STICKY_OPTIONS_INIT \
    { sizeof(divvy_sticky_options), 0, 0, 0 }

/**
 * Writes the defaults of DIVVY_STICKY_OPTIONS_INIT to *options, for languages that cannot use the macro.
 *
 * Writes `size` bytes: fields that only the caller knows become zero, fields that only the library knows are left out.
 * Ownership: keeps nothing. Thread: any.
 * @param options [out] caller's memory; NULL: does nothing
 * @param size   sizeof *options, as the caller knows it; less than a size_t has: does nothing
 */
DIVVY_API void divvy_sticky_options_init(divvy_sticky_options *options, size_t size);

/**
 * Moves as few items as possible: every item stays where it is, except those that must move for the loads to be right.
 *
 * The loads. A member's share is in proportion to its weight; its load becomes its share, rounded up or down. A member
 * of weight 0 is drained: it ends with nothing. With `spread_zones` each zone that has a member of some weight gets as
 * many items as any other, or one more, however many members it has and whatever their weights; a member's share is
 * then its part of its zone's items. Members without a zone are one zone together. So the loss of a zone of Z orphans
 * ceil(K/Z) items at most; a zone that is smaller than others works its members harder.
 *
 * The moves. Which shares are rounded up is chosen so that the least number of items move; no other way to loads such
 * as these moves fewer. With equal weights, from loads within one of each other: a member that joins and makes them
 * M + 1 gets floor(K/(M+1)) items and nothing else moves; if one leaves, only its items move. A second call with what
 * the first returned moves nothing. Items without an owner (UINT32_MAX: new ones, and those of members that are gone)
 * are always dealt out, and are no moves. Items of drained members have an owner, and are.
 *
 * Rounds. With `max_moves` a call may stop short of such loads: it takes items from drained members first, then from
 * the member farthest above its share. It gives them to the member farthest below. When n moves are needed, they are
 * made by ceil(n / max_moves) calls, each with what the one before returned. With `keep_all` it deals out only items
 * without an owner, to the member farthest below its share.
 *
 * All weights 0: nothing is taken from anyone, since any move would only burden another member that is to be emptied;
 * items without an owner are dealt out as if all weights were equal, since somebody has to have them.
 *
 * The order of `members` and of `items` changes nothing, except among equal names: those are told apart by their order
 * in the array.
 *
 * Cost: O(K + M log M) time, besides sorting the items without an owner and those of each member that must give some;
 * O(K + M) memory.
 * Ownership: nothing is kept. Thread: any.
 * Source: docs/protocol.md, rules A6 to A8.
 *
 * @param members, member_count, items, item_count  as for divvy_assign_round_robin()
 * @param previous item_count places: previous[i] is the index into `members` of the owner that items[i] has, UINT32_MAX
 *                 for none. NULL: none has an owner
 * @param options  NULL: the defaults
 * @param owners   [out] item_count places, as for divvy_assign_round_robin(); may be `previous` itself
 * @return 0, or
 *   DIVVY_EINVAL  as for divvy_assign_round_robin(); also UINT32_MAX items or more, an index in `previous` that is no
 *                 member's, options without their INIT macro; owners is untouched
 *   DIVVY_ENOMEM  allocation failed; owners is untouched
 */
DIVVY_API int divvy_assign_sticky(const divvy_member *members, size_t member_count, const char *const *items,
                                  size_t item_count, const uint32_t *previous, const divvy_sticky_options *options,
                                  uint32_t *owners);

/**
 * Maps a key to one of `count` buckets, so that a million keys need no million items.
 *
 * The items of a pool are then the buckets, "0" to "1023" for example, and a member works on the keys of the buckets
 * that it owns. It is the same in every release, on every machine, in Python (divvy.bucket) and in the command (`divvy
 * bucket`). Keys spread evenly, whatever they look like. When `count` grows to n, each key stays, or goes to one of the
 * new buckets; the part that goes is the least possible, (n - count) / n. All who work must use one count: change it as
 * docs/guide.md says.
 *
 * Cost: about ln(count) divisions of 64 bits, and a multiplication for each byte of the key.
 * Ownership: nothing is kept. Thread: any.
 * Source: Lamping and Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm" (2014); docs/protocol.md, rule A11.
 *
 * @param key       any bytes, such as the UTF-8 of a name without the NUL at its end; NULL only if `key_bytes` is 0
 * @param key_bytes how many
 * @param count     how many buckets; at least 1
 * @return the bucket, from 0 to count - 1; UINT32_MAX, which is no bucket, if `count` is 0 or `key` must not be NULL
 */
DIVVY_API uint32_t divvy_bucket(const void *key, size_t key_bytes, uint32_t count);

DIVVY_EXTERN_C_END

#endif
