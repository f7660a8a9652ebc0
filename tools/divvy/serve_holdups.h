/* Holdups: members that have what the plan gives to others. SPDX-License-Identifier: Apache-2.0
 *
 * With the lock of dv_serve held. */
#ifndef DV_SERVE_HOLDUPS_H
#define DV_SERVE_HOLDUPS_H

#include <stdbool.h>

#include "serve_pool.h"

/* The items that one holds, and that the plan gives to another, or to nobody. */
typedef struct {
    const char *holder;
    const char *waiter; /* NULL: nobody */
    size_t items;
    const dv_serve_item *first; /* by name */
    int64_t since_ms;           /* of the oldest, as of dv_serve_item.asked_ms */
} dv_serve_holdup;

/* Returns whether somebody holds it, and the plan in force gives it to another, or to nobody. */
bool dv_serve_is_held_up(const dv_serve_pool *pool, const dv_serve_item *item);
/* Notes in each item since when that is so; the main thread does, after a change. */
void dv_serve_holdups_note(dv_serve_pool *pool, int64_t now_ms);

/* Returns them in *out, those with the most items first; malloc'ed, with *count. 0 or DIVVY_ENOMEM. */
int dv_serve_holdups(const dv_serve_pool *pool, dv_serve_holdup **out, size_t *count);

#endif
