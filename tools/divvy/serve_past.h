/* The owners of items at a moment: as they are now, without what has happened since.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_PAST_H
#define DV_SERVE_PAST_H

#include "serve_pool.h"

/* An item as it was. The texts are the pool's. */
typedef struct {
    const char *name;
    const char *owner; /* NULL: nobody */
    int64_t since_ms;  /* 0: not known */
    bool paused;       /* nobody was to own it */
} dv_serve_past_item;

typedef struct {
    dv_serve_past_item *items; /* by name, bytewise */
    size_t count;
} dv_serve_past;

/* Returns since when all is known: the first look, or the last change that is kept no more. 0: nothing is yet. */
int64_t dv_serve_past_oldest_ms(const dv_serve_pool *pool);
/* Tells what items there were right after all that was seen at `at_ms`, or at the oldest time if that is later. 0 or
 * DIVVY_ENOMEM. */
int dv_serve_past_init(dv_serve_past *past, const dv_serve_pool *pool, int64_t at_ms);
/* Returns "owned", "paused" or "unowned": more is not known of the past. Of several pauses only the last is known. */
const char *dv_serve_past_state(const dv_serve_past_item *item);
void dv_serve_past_free(dv_serve_past *past);

#endif
