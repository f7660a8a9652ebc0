/* Names of members and items, and bounds, for the tests of assignments. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_ASSIGN_NAMES_H
#define DV_TEST_ASSIGN_NAMES_H

#include <stdint.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNTOUCHED 0xdeadbeefU

enum { MEMBERS_MAX = 1001, ITEMS_MAX = 100000, NAME_BYTES = 24 };

static char worker_names[MEMBERS_MAX][NAME_BYTES];
static char item_names[ITEMS_MAX][NAME_BYTES];

static inline int names_setup(void **state) {
    (void)state;
    for (int m = 0; m < MEMBERS_MAX; m++) snprintf(worker_names[m], NAME_BYTES, "worker-%d", m + 1);
    for (int i = 0; i < ITEMS_MAX; i++) snprintf(item_names[i], NAME_BYTES, "item-%06d", i + 1);
    return 0;
}

#endif
