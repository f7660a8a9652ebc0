/* The reader of the sticky plan: keeps a memory up to P/plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules D21 to D23. A watch stays on the root, or on where it would be; of a change only those parts
 * are read that lead from the plan in memory to the new one. An older plan never replaces a newer one. */
#ifndef DV_PLAN_READER_H
#define DV_PLAN_READER_H

#include "client/client.h"
#include "plan/memory.h"

typedef struct dv_plan_reader dv_plan_reader;

/* Heard from the loop, never inside a call to the reader. */
typedef struct {
    /* The memory's plan, or what stands at P/plan; and after each dv_plan_reader_look(), even if it found nothing
     * new. */
    void (*changed)(void *owner, int64_t now);
    void (*failed)(void *owner, int error, int64_t now); /* it cannot be read: DIVVY_EACCES, ...; gone() follows */
    void (*gone)(void *owner, int64_t now);              /* the last call */
} dv_plan_reader_events;

/* Begins when there is a connection, and ends with the session. `path` (P/plan) and the memory live until gone().
 * `configured`, which it takes a reference to, is a set that is at hand: a plan's items are not read where they are
 * that. Returns NULL when an allocation fails. */
dv_plan_reader *dv_plan_reader_start(divvy_client *client, const char *path, dv_plan_memory *memory,
                                     dv_plan_set *configured, const dv_plan_reader_events *events, void *owner);
/* Reads the root now, or once the read under way is over: somebody has seen that it differs from the memory's. */
void dv_plan_reader_look(dv_plan_reader *reader, int64_t now);
/* Once. gone() follows. */
void dv_plan_reader_stop(dv_plan_reader *reader);

#endif
