/* Shared by the assignments: the check of their arguments, names in order. SPDX-License-Identifier: Apache-2.0 */
#include "assign/assign_internal.h"

#include <stdlib.h>
#include <string.h>

int dv_assign_check(const divvy_member *members, size_t member_count, const char *const *items, size_t item_count,
                    const uint32_t *owners) {
    if (members == NULL || items == NULL || owners == NULL) return DIVVY_EINVAL;
    /* UINT32_MAX stands for "no member" wherever owners are kept, so no member may have that index. */
    if (member_count >= UINT32_MAX) return DIVVY_EINVAL;
    if (member_count == 0 && item_count > 0) return DIVVY_EINVAL;
    for (size_t m = 0; m < member_count; m++) {
        if (members[m].identifier == NULL) return DIVVY_EINVAL;
    }
    for (size_t i = 0; i < item_count; i++) {
        if (items[i] == NULL) return DIVVY_EINVAL;
    }
    return 0;
}

/* A2: FNV-1a over the kind and the bytes, mixed with the rank. */
uint64_t dv_assign_key_of_bytes(char kind, const void *bytes, size_t count, uint64_t rank) {
    const unsigned char *byte = bytes;
    uint64_t hash = (UINT64_C(0xcbf29ce484222325) ^ (unsigned char)kind) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < count; i++) hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return dv_assign_mix(hash + rank);
}

uint64_t dv_assign_key(char kind, const char *name, uint64_t rank) {
    return dv_assign_key_of_bytes(kind, name, strlen(name), rank);
}

/* A1: equal names keep the order of the array. */
static int compare(const dv_assign_name *a, const dv_assign_name *b, int (*compare_texts)(const char *, const char *)) {
    int order = compare_texts(a->name, b->name);
    return order != 0 ? order : (a->index > b->index) - (a->index < b->index);
}

/* A1: strcmp() compares as unsigned char whatever the locale. */
static int name_compare(const void *left, const void *right) {
    return compare(left, right, strcmp);
}

dv_assign_name *dv_assign_order_members(const divvy_member *members, size_t count) {
    dv_assign_name *names = calloc(count, sizeof *names);
    if (names == NULL) return NULL;
    for (size_t m = 0; m < count; m++) names[m] = (dv_assign_name){.name = members[m].identifier, .index = m};
    qsort(names, count, sizeof *names, name_compare);
    return names;
}

bool dv_assign_is_number(const char *name) {
    const char *digits = name + (*name == '-');
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || digits[count] != '\0') return false;
    return *digits != '0' || strcmp(name, "0") == 0;
}

/* Without leading zeros the longer of two numbers is the larger. */
static int compare_digits(const char *left, const char *right) {
    size_t left_count = strlen(left), right_count = strlen(right);
    if (left_count != right_count) return left_count < right_count ? -1 : 1;
    return strcmp(left, right);
}

int dv_assign_compare_numbers(const char *left, const char *right) {
    if (*left == '-' && *right == '-') return compare_digits(right + 1, left + 1);
    if (*left == '-' || *right == '-') return *left == '-' ? -1 : 1;
    return compare_digits(left, right);
}

static int number_compare(const void *left, const void *right) {
    return compare(left, right, dv_assign_compare_numbers);
}

dv_assign_name *dv_assign_order_items(const char *const *items, size_t count, int items_order) {
    dv_assign_name *names = calloc(count, sizeof *names);
    if (names == NULL) return NULL;
    for (size_t i = 0; i < count; i++) names[i] = (dv_assign_name){.name = items[i], .index = i};
    qsort(names, count, sizeof *names, items_order == DIVVY_ORDER_NUMERIC ? number_compare : name_compare);
    return names;
}
