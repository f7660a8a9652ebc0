/* The reader of the plan, which keeps a memory: docs/protocol.md, D21 to D23. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_READER_H
#define DV_PLAN_READER_H

#include "client/client.h"
#include "plan/memory.h"

typedef struct dv_plan_reader dv_plan_reader;

/* Heard from the loop, never inside a call to the reader. */
typedef struct {
    /* Told when the memory's plan or standing is another, and after each dv_plan_reader_look() in any case. */
    void (*changed)(void *owner, int64_t now);
    void (*failed)(void *owner, int error, int64_t now); /* it cannot be read: DIVVY_EACCES, ...; gone() follows */
    void (*gone)(void *owner, int64_t now);              /* the last call */
} dv_plan_reader_events;

/* Begins with a connection, and ends with the session. `path` (P/plan) and the memory live until gone(). Takes a
 * reference to `configured`, a set whose items need not be read. Returns NULL when an allocation fails. */
dv_plan_reader *dv_plan_reader_start(divvy_client *client, const char *path, dv_plan_memory *memory,
                                     dv_plan_set *configured, const dv_plan_reader_events *events, void *owner);
/* Reads the root now, or once the read under way is over: somebody has seen that it differs from the memory's. */
void dv_plan_reader_look(dv_plan_reader *reader, int64_t now);
/* Once. gone() follows. */
void dv_plan_reader_stop(dv_plan_reader *reader);

#endif
