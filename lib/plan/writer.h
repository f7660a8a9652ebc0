/* The writer: one attempt at the next plan (docs/protocol.md, D25 to D28, D30). SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PLAN_WRITER_H
#define DV_PLAN_WRITER_H

#include "client/client.h"
#include "plan/history.h"
#include "plan/memory.h"
#include "plan/roster.h"

typedef struct dv_plan_writer dv_plan_writer;

typedef enum {
    DV_PLAN_WRITTEN,   /* the memory has it */
    DV_PLAN_NEEDLESS,  /* nothing is to be written for the memory's root and this party */
    DV_PLAN_BEHIND,    /* the root is another than the memory's: it has to be read first */
    DV_PLAN_UNSETTLED, /* the party is another than the one that settled */
    DV_PLAN_FAILED     /* by an error */
} dv_plan_outcome;

/* Heard from the loop, never inside a call to the attempt. */
typedef struct {
    void (*done)(void *owner, dv_plan_outcome outcome, int error, int64_t now); /* once, unless it was stopped */
    void (*gone)(void *owner, int64_t now); /* garbage is collected, nothing is under way: the last call */
} dv_plan_writer_events;

/* All of it lives until gone(), but for `events`, which live until done(). */
typedef struct {
    const char *path, *party_path; /* P/plan and P/party */
    dv_plan_memory *memory;
    dv_roster *roster; /* with the party that settled, its set, options and owners filled */
    const dv_plan_events *events;
    bool over_newer;            /* a plan that a later release wrote is replaced, too, as if it were broken */
    const dv_plan_sizes *sizes; /* NULL: those of text.h */
    dv_plan_handed handed;      /* what is known of the plan in memory, for the history (D44) */
} dv_plan_writer_config;

/* One at a time for a memory. Returns NULL when an allocation fails. It ends by itself when the connection goes:
 * DV_PLAN_FAILED, DIVVY_ECONNECTION; whether a write of it was applied is seen by the next read, whose guid tells. */
dv_plan_writer *dv_plan_writer_start(divvy_client *client, const dv_plan_writer_config *config,
                                     const dv_plan_writer_events *events, void *owner);
/* Stops the attempt: done() is not called, and gone() follows. */
void dv_plan_writer_stop(dv_plan_writer *attempt);

#endif
