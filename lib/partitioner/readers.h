/* Readers: threads that look at something which another thread may replace. SPDX-License-Identifier: Apache-2.0
 *
 * A reader counts itself in, loads the pointer, looks, and counts itself out. The writer replaces the pointer, then
 * begins a grace period, and frees the old value when that is over. Each thread counts in a cache line of its own, so
 * readers do not slow one another. There are two sets of counters, and the writer changes the set that new readers use.
 * So a grace period ends as soon as those have left who were inside when it began, even if others come all the time. */
#ifndef DV_READERS_H
#define DV_READERS_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct dv_readers dv_readers;

/* Returns NULL without memory. */
dv_readers *dv_readers_new(void);
/* Nobody may be inside, or come in. NULL is fine. */
void dv_readers_free(dv_readers *readers);

/* From any thread. The same thread gives the result to dv_readers_leave(). */
atomic_uint *dv_readers_enter(dv_readers *readers);
static inline void dv_readers_leave(atomic_uint *inside) {
    atomic_fetch_sub_explicit(inside, 1, memory_order_release);
}

/* For the writer alone, one period at a time: begins one, after the pointer was replaced. */
void dv_readers_begin_grace(dv_readers *readers);
/* Returns whether all who were inside at its beginning have left. To be asked again until it is so. */
bool dv_readers_end_grace(dv_readers *readers);

#endif
