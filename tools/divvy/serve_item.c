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
    return !item->held && item->ruled && item->rule && strcmp(item->rule, "paused") == 0;
}

void dv_serve_item_note_pause(dv_serve_item *item, int64_t now_ms) {
    bool paused = dv_serve_item_is_paused(item);
    if (paused && !item->paused) item->paused_ms = now_ms;
    if (!paused && item->paused) item->resumed_ms = now_ms;
    item->paused = paused;
}

bool dv_serve_item_was_paused(const dv_serve_item *item, int64_t at_ms) {
    return item->paused_ms > 0 && at_ms >= item->paused_ms && (item->paused || at_ms < item->resumed_ms);
}

const char *dv_serve_item_state(const dv_serve_item *item) {
    if (dv_serve_item_is_paused(item)) return "paused";
    if (!item->held) return item->next && !item->next->live ? "kept" : "unowned";
    if (dv_serve_item_is_moving(item)) return "moving";
    return item->owner ? "owned" : "stranger";
}
