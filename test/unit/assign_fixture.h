/* Pools for tests of assignments. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ASSIGN_FIXTURE_H
#define DV_TEST_ASSIGN_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assign_names.h"
#include "divvy/assign.h"
#include "lib/seed.h"
#include "lib/test.h"

typedef int (*assign_function)(const divvy_member *, size_t, const char *const *, size_t, uint32_t *);

static const assign_function both[] = {divvy_assign_round_robin, divvy_assign_rendezvous};

/* A pool and how its items were dealt. The names are not its own. */
typedef struct {
    divvy_member members[MEMBERS_MAX];
    size_t member_count;
    const char *items[ITEMS_MAX];
    size_t item_count;
    uint32_t owners[ITEMS_MAX];
} pool;

static pool first;

static inline void pool_fill(pool *p, size_t member_count, size_t item_count) {
    p->member_count = member_count;
    p->item_count = item_count;
    for (size_t m = 0; m < member_count; m++) p->members[m] = (divvy_member){.identifier = worker_names[m]};
    for (size_t i = 0; i < item_count; i++) p->items[i] = item_names[i];
}

static inline void pool_assign(pool *p, assign_function assign) {
    for (size_t i = 0; i < p->item_count; i++) p->owners[i] = UNTOUCHED;
    assert_int_equal(assign(p->members, p->member_count, p->items, p->item_count, p->owners), 0);
}

/* Fails unless every item has one owner, who is a member, and the loads of all members are within one. */
static inline void assert_balanced(const pool *p) {
    size_t loads[MEMBERS_MAX] = {0};
    for (size_t i = 0; i < p->item_count; i++) {
        assert_true(p->owners[i] < p->member_count);
        loads[p->owners[i]]++;
    }
    size_t least = p->item_count / p->member_count;
    size_t most = least + (p->item_count % p->member_count != 0);
    for (size_t m = 0; m < p->member_count; m++) assert_in_range(loads[m], least, most);
}

/* --- vectors, printed by rendezvous_reference.py --- */

typedef struct {
    const char *members[7];
    size_t member_count;
    const char *items[10];
    size_t item_count;
    uint32_t round_robin[10];
    uint32_t rendezvous[10];
} vector;

static const vector vectors[] = {
    /* PLAIN */
    {{"gamma", "alpha", "beta"},
     3,
     {"item-000001", "item-000002", "item-000003", "item-000004", "item-000005", "item-000006", "item-000007",
      "item-000008", "item-000009", "item-000010"},
     10,
     {1, 2, 0, 1, 2, 0, 1, 2, 0, 1},
     {0, 0, 0, 2, 1, 0, 2, 2, 1, 1}},
    /* UTF8 */
    {{"zo\xc3\xab", "Zoe", "zoe", "\xc3\xb6"},
     4,
     {"\xf0\x9f\x98\x80", "\xef\xbf\xbd", "\xc3\xa9", "e", "z", "E", "\xe6\x97\xa5\xe6\x9c\xac", "", "e\xcc\x81"},
     9,
     {1, 3, 2, 0, 1, 2, 0, 1, 3},
     {3, 0, 3, 2, 0, 2, 1, 1, 1}},
    /* EQUAL */
    {{"b", "a", "b", "a"},
     4,
     {"x", "y", "x", "x", "y", "x", "z", "z", "x"},
     9,
     {1, 3, 3, 0, 0, 2, 2, 1, 1},
     {0, 2, 2, 3, 1, 3, 2, 0, 1}},
    /* TIED */
    {{"5nr7f1oj3v0", "3i72bi44o5M", "other"},
     3,
     {"y8zjn1y08o0", "15jvnzlc33Q", "3fxtvu8hcwF", "li58ph67lk0", "other"},
     5,
     {0, 1, 0, 2, 1},
     {1, 1, 2, 2, 0}},
    /* SPARSE */
    {{"m1", "m2", "m3", "m4", "m5", "m6", "m7"}, 7, {"one", "two", "three"}, 3, {0, 2, 1}, {4, 5, 1}},
};

#endif
