/* Items dealt out in turn, as kazoo deals them. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/assign.h"

#include <stdlib.h>

#include "assign/assign_internal.h"

int divvy_assign_round_robin(const divvy_member *members, size_t member_count, const char *const *items,
                             size_t item_count, uint32_t *owners) {
    return divvy_assign_round_robin_ordered(members, member_count, items, item_count, DIVVY_ORDER_BYTES, owners);
}

static int check_order(const char *const *items, size_t item_count, int items_order) {
    if (items_order == DIVVY_ORDER_BYTES) return 0;
    if (items_order != DIVVY_ORDER_NUMERIC) return DIVVY_EINVAL;
    for (size_t i = 0; i < item_count; i++) {
        if (!dv_assign_is_number(items[i])) return DIVVY_EINVAL;
    }
    return 0;
}

int divvy_assign_round_robin_ordered(const divvy_member *members, size_t member_count, const char *const *items,
                                     size_t item_count, int items_order, uint32_t *owners) {
    int error = dv_assign_check(members, member_count, items, item_count, owners);
    if (error == 0) error = check_order(items, item_count, items_order);
    if (error != 0 || item_count == 0) return error;

    dv_assign_name *member_order = dv_assign_order_members(members, member_count);
    dv_assign_name *item_order = dv_assign_order_items(items, item_count, items_order);
    if (member_order == NULL || item_order == NULL) {
        error = DIVVY_ENOMEM;
    } else {
        /* A1: a member at place i of n gets sorted(items)[i::n], so the item at place p goes to the member at p % n. */
        for (size_t p = 0; p < item_count; p++) {
            owners[item_order[p].index] = (uint32_t)member_order[p % member_count].index;
        }
    }
    free(item_order);
    free(member_order);
    return error;
}
