/* The owners of items at a moment. SPDX-License-Identifier: Apache-2.0 */
#include "serve_past.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

/* The changes of an item around the moment. */
typedef struct {
    const dv_serve_event *before, *after; /* NULL: none is kept */
} around;

int64_t dv_serve_past_oldest_ms(const dv_serve_pool *pool) {
    return pool->history.lost_ms > pool->first_read_ms ? pool->history.lost_ms : pool->first_read_ms;
}

/* By item, the oldest first. */
static int compare_events(const void *a, const void *b) {
    const dv_serve_event *x = *(const dv_serve_event *const *)a, *y = *(const dv_serve_event *const *)b;
    int order = strcmp(x->what, y->what);
    if (order) return order;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Returns the changes of items. That a member restarted is none: it has no owner. */
static const dv_serve_event **sort_events(const dv_serve_history *history, size_t *count) {
    const dv_serve_event **events = calloc(history->count + 1, sizeof *events);
    *count = 0;
    for (size_t i = 0; events && i < history->count; i++) {
        const dv_serve_event *e = dv_serve_history_event(history, i);
        if (e->kind == DV_SERVE_ITEM || (e->kind == DV_SERVE_RESTARTED && e->to)) events[(*count)++] = e;
    }
    if (events && *count > 0) qsort((void *)events, *count, sizeof *events, compare_events);
    return events;
}

static around find_around(const dv_serve_event *const *events, size_t count, const char *name, int64_t at_ms) {
    size_t low = 0, high = count;
    around found = {NULL, NULL};
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(events[middle]->what, name) < 0) low = middle + 1;
        else high = middle;
    }
    for (; low < count && !found.after && strcmp(events[low]->what, name) == 0; low++) {
        if (events[low]->ms > at_ms) found.after = events[low];
        else found.before = events[low];
    }
    return found;
}

static dv_serve_past_item undo(const char *name, const around *changes, const dv_serve_item *now, int64_t at_ms) {
    dv_serve_past_item was = {.name = name};
    if (changes->after) was.owner = changes->after->from;
    else if (now) was.owner = dv_serve_item_owner(now);
    if (!changes->after && now) was.since_ms = now->since_ms;
    else if (changes->before) was.since_ms = changes->before->ms;
    was.paused = !was.owner && now && dv_serve_item_was_paused(now, at_ms);
    return was;
}

static int compare_items(const void *a, const void *b) {
    return strcmp(((const dv_serve_past_item *)a)->name, ((const dv_serve_past_item *)b)->name);
}

static void fill(dv_serve_past *past, const dv_serve_pool *pool, const dv_serve_event *const *events, size_t count,
                 int64_t at_ms) {
    for (size_t i = 0; i < pool->item_count; i++) {
        const dv_serve_item *item = &pool->items[i];
        if (item->came_ms > at_ms && at_ms < pool->read_at_ms) continue;
        around changes = find_around(events, count, item->name, at_ms);
        past->items[past->count++] = undo(item->name, &changes, item, at_ms);
    }
    size_t still_there = past->count;
    for (size_t i = 0; i < pool->history.gone_count; i++) {
        const dv_serve_gone *gone = dv_serve_history_gone_at(&pool->history, i);
        if (gone->came_ms > at_ms || gone->gone_ms <= at_ms) continue;
        around changes = find_around(events, count, gone->name, at_ms);
        past->items[past->count++] = undo(gone->name, &changes, NULL, at_ms);
    }
    if (past->count > still_there) qsort(past->items, past->count, sizeof *past->items, compare_items);
}

int dv_serve_past_init(dv_serve_past *past, const dv_serve_pool *pool, int64_t at_ms) {
    int64_t oldest_ms = dv_serve_past_oldest_ms(pool);
    *past = (dv_serve_past){.items = NULL};
    if (oldest_ms == 0) return 0;
    if (at_ms < oldest_ms) at_ms = oldest_ms;
    size_t count;
    const dv_serve_event **events = sort_events(&pool->history, &count);
    past->items = calloc(pool->item_count + pool->history.gone_count + 1, sizeof *past->items);
    bool good = events && past->items;
    if (good) fill(past, pool, events, count, at_ms);
    else dv_serve_past_free(past);
    free((void *)events);
    return good ? 0 : DIVVY_ENOMEM;
}

const char *dv_serve_past_state(const dv_serve_past_item *item) {
    return item->owner ? "owned" : item->paused ? "paused" : "unowned";
}

void dv_serve_past_free(dv_serve_past *past) {
    free(past->items);
    *past = (dv_serve_past){.items = NULL};
}
