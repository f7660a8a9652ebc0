/* Holdups: who holds whom up. SPDX-License-Identifier: Apache-2.0 */
#include "serve_holdups.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

bool dv_serve_is_held_up(const dv_serve_pool *pool, const dv_serve_item *item) {
    return pool->counts.in_force && item->held && (!item->owner || item->next != item->owner);
}

void dv_serve_holdups_note(dv_serve_pool *pool, int64_t now_ms) {
    for (size_t i = 0; i < pool->item_count; i++) {
        dv_serve_item *item = &pool->items[i];
        if (!dv_serve_is_held_up(pool, item)) item->asked_ms = 0;
        else if (!item->asked_ms) item->asked_ms = now_ms;
    }
}

/* ---- by holder and waiter ---- */

static int compare_texts(const char *a, const char *b) {
    if (a == b) return 0;
    if (!a || !b) return (a != NULL) - (b != NULL);
    return strcmp(a, b);
}

static const char *waiter_of(const dv_serve_item *item) {
    return item->next ? item->next->identifier : NULL;
}

static int compare_pairs(const dv_serve_item *a, const dv_serve_item *b) {
    int order = compare_texts(dv_serve_item_owner(a), dv_serve_item_owner(b));
    return order ? order : compare_texts(waiter_of(a), waiter_of(b));
}

static int compare_items(const void *a, const void *b) {
    const dv_serve_item *x = *(const dv_serve_item *const *)a, *y = *(const dv_serve_item *const *)b;
    int order = compare_pairs(x, y);
    return order ? order : (x > y) - (x < y); /* They stand in the order of their names. */
}

static int compare_holdups(const void *a, const void *b) {
    const dv_serve_holdup *x = a, *y = b;
    if (x->items != y->items) return x->items > y->items ? -1 : 1;
    if (x->since_ms != y->since_ms) return x->since_ms < y->since_ms ? -1 : 1;
    return strcmp(x->first->name, y->first->name);
}

/* Puts the sorted items together; returns how many rows there are. */
static size_t put_together(const dv_serve_item *const *items, size_t count, dv_serve_holdup *out) {
    size_t rows = 0;
    for (size_t i = 0; i < count; i++) {
        const dv_serve_item *item = items[i];
        if (i == 0 || compare_pairs(items[i - 1], item) != 0)
            out[rows++] = (dv_serve_holdup){
                .holder = dv_serve_item_owner(item), .waiter = waiter_of(item), .first = item, .since_ms = INT64_MAX};
        dv_serve_holdup *row = &out[rows - 1];
        row->items++;
        if (item->asked_ms < row->since_ms) row->since_ms = item->asked_ms;
    }
    return rows;
}

int dv_serve_holdups(const dv_serve_pool *pool, dv_serve_holdup **out, size_t *count) {
    size_t held = 0;
    for (size_t i = 0; i < pool->item_count; i++) held += dv_serve_is_held_up(pool, &pool->items[i]);
    const dv_serve_item **items = calloc(held + 1, sizeof *items);
    *out = calloc(held + 1, sizeof **out);
    *count = 0;
    if (items && *out) {
        for (size_t i = 0, n = 0; i < pool->item_count; i++) {
            if (dv_serve_is_held_up(pool, &pool->items[i])) items[n++] = &pool->items[i];
        }
        if (held > 0) qsort((void *)(uintptr_t)items, held, sizeof *items, compare_items);
        *count = put_together(items, held, *out);
        if (*count > 0) qsort(*out, *count, sizeof **out, compare_holdups);
    }
    bool good = items && *out;
    free((void *)(uintptr_t)items);
    return good ? 0 : DIVVY_ENOMEM;
}
