/* An item as divvy serve remembers it, in words. SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "serve_pool.h"

const char *dv_serve_item_owner(const dv_serve_item *item) {
    if (!item->held) return NULL;
    return item->owner ? item->owner->identifier : item->stranger;
}

bool dv_serve_item_is_moving(const dv_serve_item *item) {
    return item->held && item->next && item->next->live && item->next != item->owner;
}

bool dv_serve_item_is_paused(const dv_serve_item *item) {
    return !item->held && item->rule && strcmp(item->rule, "paused") == 0;
}

const char *dv_serve_item_state(const dv_serve_item *item) {
    if (dv_serve_item_is_paused(item)) return "paused";
    if (!item->held) return item->next && !item->next->live ? "kept" : "unowned";
    if (dv_serve_item_is_moving(item)) return "moving";
    return item->owner ? "owned" : "stranger";
}
