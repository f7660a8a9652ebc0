/* Roll watch: a party, told once it has settled, by its roll where that is enough. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, W18 to W21. It stands on a patient watch, which it has list the party as W1 to W5 say, or wait
 * until somebody else has written the roll. */
#ifndef DV_ROLL_WATCH_H
#define DV_ROLL_WATCH_H

#include "recipe/patient_watch.h"

typedef struct dv_roll_watch dv_roll_watch;

/* W18: what its owner is in the party that settled last. */
typedef struct {
    bool is_in_row, may_listen;
    size_t place; /* in the row, from 0 */
} dv_roll_role;

typedef struct {
    dv_patient_watch_events watch; /* all but what comes after seen(), which are NULL */
    dv_roll_role (*role)(void *owner);
} dv_roll_watch_events;

/* As dv_patient_watch_start() and _stop(). */
dv_roll_watch *dv_roll_watch_start(divvy_client *client, const char *path, const dv_patience *patience,
                                   const dv_roll_watch_events *events, void *owner);
void dv_roll_watch_stop(dv_roll_watch *watch);
/* The role may be another now. */
void dv_roll_watch_look(dv_roll_watch *watch, int64_t now);
/* W18; W20: it lists since it has waited in vain. */
bool dv_roll_watch_listens(const dv_roll_watch *watch);
bool dv_roll_watch_stands_in(const dv_roll_watch *watch);

#endif
