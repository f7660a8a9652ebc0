/* Shared by the assignments: the check of their arguments, names in order. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ASSIGN_INTERNAL_H
#define DV_ASSIGN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "divvy/assign.h"

/* A name and where it stands in the caller's array. */
typedef struct {
    const char *name;
    size_t index;
} dv_assign_name;

/* Checks a caller's arguments against divvy/assign.h. Returns 0 or DIVVY_EINVAL. */
int dv_assign_check(const divvy_member *members, size_t member_count, const char *const *items, size_t item_count,
                    const uint32_t *owners);

/* A2: the finalizer of SplitMix64, every bit of the input reaches every bit of the output. */
static inline uint64_t dv_assign_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* A2: the key of the name that has `rank` equals before it. The kind keeps a member and an item of one name apart. */
uint64_t dv_assign_key(char kind, const char *name, uint64_t rank);

/* The same of a name that may have NUL bytes in it. */
uint64_t dv_assign_key_of_bytes(char kind, const void *bytes, size_t count, uint64_t rank);

/* Returns the members' identifiers in the order of A1, malloc'ed, or NULL; `count` is at least 1. */
dv_assign_name *dv_assign_order_members(const divvy_member *members, size_t count);

/* Returns whether it is written as Python writes an integer. */
bool dv_assign_is_number(const char *name);
int dv_assign_compare_numbers(const char *left, const char *right);

/* Returns the items in the order of A1, by bytes or by number, malloc'ed, or NULL; `count` is at least 1. */
dv_assign_name *dv_assign_order_items(const char *const *items, size_t count, int items_order);

#endif
