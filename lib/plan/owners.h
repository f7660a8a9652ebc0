/* The owners of the items in the text of a base: base 36, a fixed width. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D5. */
#ifndef DV_PLAN_OWNERS_H
#define DV_PLAN_OWNERS_H

#include <assert.h>

#include "plan/text.h"

enum { DV_PLAN_DIGITS = 36, DV_PLAN_WIDTH_MAX = 3 };

/* The least width in which all slots fit, and one more number, which stands for "none". */
static inline size_t dv_plan_owner_width(const dv_plan *plan) {
    uint32_t numbers = plan->member_count > 0 ? plan->members[plan->member_count - 1].slot + 2 : 1;
    size_t width = 1;
    for (uint32_t power = DV_PLAN_DIGITS; power < numbers; power *= DV_PLAN_DIGITS) width++;
    assert(width <= DV_PLAN_WIDTH_MAX);
    return width;
}

static inline void dv_plan_owner_put(char *to, size_t width, uint32_t slot) {
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    for (size_t n = width; n-- > 0;) {
        to[n] = digits[slot == DV_PLAN_NO_SLOT ? DV_PLAN_DIGITS - 1 : slot % DV_PLAN_DIGITS];
        if (slot != DV_PLAN_NO_SLOT) slot /= DV_PLAN_DIGITS;
    }
}

/* Returns whether these are digits. */
static inline bool dv_plan_owner_take(const char *from, size_t width, uint32_t *slot) {
    uint32_t value = 0, none = 1;
    for (size_t n = 0; n < width; n++) {
        char c = from[n];
        if (c >= '0' && c <= '9') value = value * DV_PLAN_DIGITS + (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'z') value = value * DV_PLAN_DIGITS + (uint32_t)(c - 'a') + 10;
        else return false;
        none *= DV_PLAN_DIGITS;
    }
    *slot = value == none - 1 ? DV_PLAN_NO_SLOT : value;
    return true;
}

#endif
