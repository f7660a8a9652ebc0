/* The ledger of what one member owns, by the events that it was told, and the lines about it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The library tells of changes some time after they came about. A line shows the state at its change, not the state
 * when it is printed. Only then do the lines make sense one after the other. */
#ifndef DV_LEDGER_H
#define DV_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include <divvy/divvy.h>

#include "output.h"
#include "supervise_child.h"

typedef struct {
    char *name;
    int64_t token;
    bool over; /* it is being taken out */
} dv_owned;

typedef struct {
    dv_output *output;
    bool json;
    bool fields; /* as lines of the log */
    bool timestamps;
    const char *member; /* shown in each line, where a process has several; NULL: not shown */
    bool rejoins;       /* a lost session is not the end */
    dv_owned *owned;    /* what may be worked on, sorted bytewise; any items, for the set that is divided can change */
    size_t owned_count, owned_room;
    divvy_partition_state state;
    uint64_t generation;
    bool out_of_memory; /* a line could not be made */
} dv_ledger;

/* `output` outlives the ledger. */
void dv_ledger_init(dv_ledger *ledger, dv_output *output);

void dv_ledger_free(dv_ledger *ledger);

/* Returns the item of this name among those that are owned, or NULL. */
const dv_owned *dv_ledger_find(const dv_ledger *ledger, const char *name);

/* Enters a change of items and prints its line. In one event, lost items go first, then gained ones come. A revoked
 * item is no longer among the owned ones: its lock is still held, but work on it is to stop. */
void dv_ledger_items(dv_ledger *ledger, const divvy_items_event *event);

/* The reason of DIVVY_FAILURE where the user requested the end. */
#define DV_LEDGER_FINISHED "finished"

/* Enters a state and prints its line. `reason` is why in DIVVY_FAILURE, else NULL. */
void dv_ledger_state(dv_ledger *ledger, divvy_partition_state state, const char *reason);

/* Prints the line of a command that was started for an item, or ended. */
void dv_ledger_child(dv_ledger *ledger, const dv_child_event *event);

/* Revokes everything that is owned, in a line of its own: said before the locks are given back because the process
 * ends. */
void dv_ledger_revoke_all(dv_ledger *ledger);

#endif
