/* Readers: counters for each thread, and grace periods. SPDX-License-Identifier: Apache-2.0 */
#include "partitioner/readers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Two lines of 64 bytes: processors fetch lines in pairs. */
enum { SHARDS = 64, LINE_BYTES = 128 };

typedef struct {
    _Alignas(LINE_BYTES) atomic_uint inside[2];
} shard;

struct dv_readers {
    _Alignas(LINE_BYTES) atomic_uint current; /* the set that new readers use: 0 or 1 */
    shard shards[SHARDS];

    /* The writer's, of the grace period. */
    bool under_way, changed; /* changed: new readers use the other set already */
    unsigned waits_for;      /* this set, of the shards from `at` on */
    size_t at;
};

dv_readers *dv_readers_new(void) {
    dv_readers *readers = aligned_alloc(LINE_BYTES, sizeof *readers);
    if (!readers) return NULL;
    memset(readers, 0, sizeof *readers);
    return readers;
}

void dv_readers_free(dv_readers *readers) {
    free(readers);
}

/* More threads than shards share some. */
static size_t own_shard(void) {
    static atomic_uint threads;
    static _Thread_local unsigned number; /* from 1 */
    if (number == 0) number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) % SHARDS;
    return number - 1;
}

/* The reader counts itself in, then loads the pointer; the writer replaces it, then looks at the counters (all
 * seq_cst). So the writer sees the reader, or the reader sees the new pointer. */
atomic_uint *dv_readers_enter(dv_readers *readers) {
    shard *own = &readers->shards[own_shard()];
    atomic_uint *inside = &own->inside[atomic_load_explicit(&readers->current, memory_order_relaxed)];
    atomic_fetch_add(inside, 1);
    return inside;
}

/* Begins with the set not in use: a reader may have chosen it before the last change, and counted itself in late. */
void dv_readers_begin_grace(dv_readers *readers) {
    assert(!readers->under_way);
    readers->under_way = true;
    readers->changed = false;
    readers->waits_for = 1 - atomic_load(&readers->current);
    readers->at = 0;
}

/* Returns whether all readers have left. They have once each counter was seen at 0 since the beginning. */
static bool all_left(dv_readers *readers) {
    while (readers->at < SHARDS && atomic_load(&readers->shards[readers->at].inside[readers->waits_for]) == 0)
        readers->at++;
    return readers->at == SHARDS;
}

/* Only readers that chose a set before it went out of use can still come into it, so both waits end by themselves. */
bool dv_readers_end_grace(dv_readers *readers) {
    assert(readers->under_way);
    if (!all_left(readers)) return false;
    if (!readers->changed) {
        atomic_store(&readers->current, readers->waits_for);
        readers->changed = true;
        readers->waits_for = 1 - readers->waits_for;
        readers->at = 0;
        if (!all_left(readers)) return false;
    }
    readers->under_way = false;
    return true;
}
