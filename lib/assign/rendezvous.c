/* Rendezvous hashing with exact capacity. SPDX-License-Identifier: Apache-2.0
 *
 * The rule (A5) reads: sort all pairs, grant from the heaviest down. To sort K * M pairs takes K * M memory; here each
 * item asks its members from its heaviest pair down, and the members together hold the heaviest pairs that their room
 * allows. That is deferred acceptance (Gale and Shapley 1962), and it ends at the very same pairs:
 *
 * - Call a set of pairs roomy when no member has more than its room (A5) allows. The roomy sets are a matroid, the
 *   union of "room for each" and "at most one more each, so many in all": what a new pair breaks, it breaks in one
 *   circuit, and dropping any pair of the circuit mends it. We drop the lightest. Let G be what the rule grants.
 * - No pair of G is ever refused. Let g be the first, refused as the lightest of a circuit C. Each other pair of C
 *   weighs more than g, and no less than the pair of G for its item, which was not refused. So it is in G, or the rule
 *   passed it over with its item still free: then the heavier pairs of G left no room for it. Either way the pairs of
 *   G heavier than g span C without g, so they span g too, and the rule could not have granted g.
 * - So nobody is refused by all, and each item ends at its pair of G or at a heavier one. Let d be the heaviest that is
 *   not in G. The pairs of G heavier than d left no room for it; but each of their items ends at that pair, for
 *   otherwise its own would be a heavier d. So they are held beside d, which is not roomy: there is no such d. */
#include "divvy/assign.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "assign/assign_internal.h"

#define NO_MEMBER UINT32_MAX
#define NO_ITEM SIZE_MAX

/* Members and items are known by their place in the order of A1 here; the caller's indices return at the end only. */
typedef struct {
    uint32_t member_count;
    dv_assign_name *members;
    dv_assign_name *items;
    uint64_t *member_keys;
    uint64_t *item_keys;

    uint64_t *asked_weight; /* of each item: the weight of the last pair that it asked for */
    uint32_t *asked_member; /* of each item: the member of that pair; NO_MEMBER before the first */

    size_t room;   /* what each member may hold */
    size_t extras; /* how many members may still begin to hold one more */
    size_t *loads; /* of each member: how many items it holds */
    size_t *held;  /* of each member: room + 2 places with a heap of items, the lightest pair on top */
} matching;

/* A2: equal names stand side by side here, so counting them gives the rank that tells them apart. */
static void keys_compute(char kind, const dv_assign_name *names, size_t count, uint64_t *keys) {
    uint64_t rank = 0;
    for (size_t p = 0; p < count; p++) {
        bool repeated = p > 0 && strcmp(names[p - 1].name, names[p].name) == 0;
        rank = repeated ? rank + 1 : 0;
        keys[p] = dv_assign_key(kind, names[p].name, rank);
    }
}

/* A5: the order of the last asked pairs of two different items. */
static bool is_lighter(const matching *t, size_t item, size_t other) {
    assert(item != other);
    if (t->asked_weight[item] != t->asked_weight[other]) return t->asked_weight[item] < t->asked_weight[other];
    return item > other;
}

static size_t *heap_of(const matching *t, uint32_t member) {
    return t->held + (size_t)member * (t->room + 2);
}

static void heap_push(matching *t, uint32_t member, size_t item) {
    size_t *heap = heap_of(t, member);
    size_t at = t->loads[member]++;
    assert(at < t->room + 2);
    while (at > 0 && is_lighter(t, item, heap[(at - 1) / 2])) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = item;
}

static size_t heap_pop(matching *t, uint32_t member) {
    size_t *heap = heap_of(t, member);
    assert(t->loads[member] > 0);
    size_t count = --t->loads[member];
    size_t top = heap[0];
    size_t moved = heap[count];
    size_t at = 0;
    for (size_t child = 1; child < count; child = 2 * at + 1) {
        if (child + 1 < count && is_lighter(t, heap[child + 1], heap[child])) child++;
        if (!is_lighter(t, heap[child], moved)) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return top;
}

/* A5: moves an item on to its heaviest pair below the last one that it asked for, and returns that pair's member. */
static uint32_t next_member(matching *t, size_t item) {
    bool first = t->asked_member[item] == NO_MEMBER;
    uint64_t below_weight = first ? UINT64_MAX : t->asked_weight[item];
    uint32_t from_member = first ? 0 : t->asked_member[item] + 1;
    uint64_t best_weight = 0;
    uint32_t best = NO_MEMBER;
    for (uint32_t m = 0; m < t->member_count; m++) {
        uint64_t weight = dv_assign_mix(t->member_keys[m] ^ t->item_keys[item]);
        if (weight > below_weight || (weight == below_weight && m < from_member)) continue;
        if (best != NO_MEMBER && weight <= best_weight) continue;
        best_weight = weight;
        best = m;
    }
    assert(best != NO_MEMBER); /* since no item is refused by all */
    t->asked_weight[item] = best_weight;
    t->asked_member[item] = best;
    return best;
}

/* A5: takes an item in. If that breaks the room, returns the item of the circuit's lightest pair, else NO_ITEM. The
 * circuit is the member's own pairs if it has two too many, or those of all who have one more, if one too many do. */
static size_t admit(matching *t, uint32_t member, size_t item) {
    heap_push(t, member, item);
    if (t->loads[member] <= t->room) return NO_ITEM;
    if (t->loads[member] == t->room + 1 && t->extras > 0) {
        t->extras--;
        return NO_ITEM;
    }
    uint32_t loser = member;
    if (t->loads[member] == t->room + 1) {
        for (uint32_t m = 0; m < t->member_count; m++) {
            if (m == loser || t->loads[m] <= t->room) continue;
            if (is_lighter(t, heap_of(t, m)[0], heap_of(t, loser)[0])) loser = m;
        }
    }
    return heap_pop(t, loser);
}

static void matching_free(matching *t) {
    free(t->members);
    free(t->items);
    free(t->member_keys);
    free(t->item_keys);
    free(t->asked_weight);
    free(t->asked_member);
    free(t->loads);
    free(t->held);
}

static int matching_init(matching *t, const divvy_member *members, size_t member_count, const char *const *items,
                         size_t item_count) {
    size_t room = item_count / member_count;
    /* The heaps have member_count * (room + 2) places; calloc() guards only against what overflows after that. */
    if (room + 2 > SIZE_MAX / member_count) return DIVVY_ENOMEM;
    *t = (matching){
        .member_count = (uint32_t)member_count,
        .members = dv_assign_order_members(members, member_count),
        .items = dv_assign_order_items(items, item_count, DIVVY_ORDER_BYTES),
        .member_keys = calloc(member_count, sizeof *t->member_keys),
        .item_keys = calloc(item_count, sizeof *t->item_keys),
        .asked_weight = calloc(item_count, sizeof *t->asked_weight),
        .asked_member = calloc(item_count, sizeof *t->asked_member),
        .room = room,
        .extras = item_count % member_count,
        .loads = calloc(member_count, sizeof *t->loads),
        .held = calloc(member_count * (room + 2), sizeof *t->held),
    };
    if (t->members == NULL || t->items == NULL || t->member_keys == NULL || t->item_keys == NULL ||
        t->asked_weight == NULL || t->asked_member == NULL || t->loads == NULL || t->held == NULL) {
        matching_free(t);
        return DIVVY_ENOMEM;
    }
    keys_compute('m', t->members, member_count, t->member_keys);
    keys_compute('i', t->items, item_count, t->item_keys);
    for (size_t i = 0; i < item_count; i++) t->asked_member[i] = NO_MEMBER;
    return 0;
}

int divvy_assign_rendezvous(const divvy_member *members, size_t member_count, const char *const *items,
                            size_t item_count, uint32_t *owners) {
    int error = dv_assign_check(members, member_count, items, item_count, owners);
    if (error != 0 || item_count == 0) return error;

    matching t;
    error = matching_init(&t, members, member_count, items, item_count);
    if (error != 0) return error;
    for (size_t i = 0; i < item_count; i++) {
        size_t asking = i;
        while (asking != NO_ITEM) asking = admit(&t, next_member(&t, asking), asking);
    }
    /* An item belongs to the member that it asked last, since a refused item asks the next one at once. */
    for (size_t i = 0; i < item_count; i++) owners[t.items[i].index] = (uint32_t)t.members[t.asked_member[i]].index;
    matching_free(&t);
    return 0;
}
