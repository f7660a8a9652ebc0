/* Locks and semaphores as they stand. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCKS_READ_H
#define DV_LOCKS_READ_H

#include "look.h"
#include "recipe/record.h"
#include "recipe/slots.h"

/* One who holds, or waits. */
typedef struct {
    char *node;
    bool in_queue; /* of a semaphore: it waits, however near it is */
    bool holds;
    bool shared;     /* of a lock: for readers */
    dv_slots slots;  /* of a semaphore, held by divvy; count 0: they have no numbers */
    bool there;      /* it was still there when it was read */
    bool hidden;     /* it is there, and may not be read: nothing of what follows is known */
    bool understood; /* so that `record` is set */
    dv_record record;
    int64_t token, made_ms, session;
} dv_place;

typedef struct {
    char *name, *node;
    bool is_semaphore;
    bool there;
    dv_limit_state limit_state; /* of a semaphore */
    uint32_t limit;
    dv_place *places; /* holders first, then who waits, in the order of the queue */
    size_t place_count;
    uint64_t held; /* holders; of a semaphore their slots */
    size_t waiting;
} dv_lock_entry;

typedef struct {
    const char *root; /* as it was given */
    const char *name; /* NULL: all that there are, without reading who is there */
    bool holders;     /* without a name: reads who holds them, too */
    dv_lock_entry *entries;
    size_t entry_count;
    size_t hidden;      /* without a name: nodes that may not be read, and are not in the entries */
    int64_t read_at_ms; /* by the wall clock */
} dv_locks;

/* For dv_look_at(): fills in all but `root`, `name` and `holders` of the dv_locks at `context`. Its former contents are
 * freed. Entries are sorted by name, locks before semaphores, all of them there; with a name they are the lock and the
 * semaphore of that name, there or not. */
int dv_locks_read(dv_look *look, void *context);

/* All but those. */
void dv_locks_clear(dv_locks *locks);

#endif
