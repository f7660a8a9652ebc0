/* The last changes of a plan, as they stand beside it. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D44. Pure: no I/O, no clock. What comes from ZooKeeper is hostile until it is parsed. */
#ifndef DV_PLAN_HISTORY_H
#define DV_PLAN_HISTORY_H

#include "plan/memory.h"

enum {
    DV_PLAN_CHANGES_MAX = 64,
    DV_PLAN_HISTORY_BYTES_MAX = 16 * 1024,
    DV_PLAN_NAMED_MAX = 8, /* of those that joined, and of those that left */
    DV_PLAN_NAME_BYTES_MAX = 64,
    DV_PLAN_REASON_BYTES_MAX = 16
};

/* Members that joined, or that left. */
typedef struct {
    uint32_t count;
    size_t named; /* the names of so many are known */
    char names[DV_PLAN_NAMED_MAX][DV_PLAN_NAME_BYTES_MAX + 1];
} dv_plan_named;

typedef struct {
    uint64_t generation;
    char reason[DV_PLAN_REASON_BYTES_MAX + 1]; /* as its writer called it */
    int64_t at_ms;                             /* when it was written, by the servers' clock; 0: not said */
    int64_t took_ms;                           /* until its last item was handed over; -1: not known */
    uint32_t moved;                            /* items that had an owner, and have it no longer */
    dv_plan_named joined, left;
    char told[DV_PLAN_TOLD_BYTES]; /* what an operator asked for, or what loads did; "": not said */
} dv_plan_change;

typedef struct {
    size_t count;
    dv_plan_change changes[DV_PLAN_CHANGES_MAX]; /* the oldest first */
} dv_plan_history;

/* Takes a text. Returns 0; DIVVY_EPROTO, with *fault (may be NULL) filled; DIVVY_ENOMEM. On an error *out is empty. */
int dv_plan_history_parse(dv_plan_history *out, const char *text, size_t bytes, dv_plan_fault *fault);
/* Prints it; the oldest changes do without names where it is too long otherwise (D44). Returns 0 or DIVVY_ENOMEM. */
int dv_plan_print_history(dv_plan_text *out, const dv_plan_history *history);

/* Cuts an identifier to what a text of DV_PLAN_NAME_BYTES_MAX holds: whole characters. */
void dv_plan_name_cut(char out[DV_PLAN_NAME_BYTES_MAX + 1], const char *identifier);

/* Tells what changes from one plan to the next, which was computed from it. `before` NULL: there was none. */
void dv_plan_change_tell(dv_plan_change *out, const dv_plan *before, const dv_plan *after);

/* When the last item was handed over of the plan of that mzxid, as far as is known; ms 0: it is not known. */
typedef struct {
    int64_t mzxid, ms;
} dv_plan_handed;

/* Prints the remembered past, with the next plan at its end. Bad text counts as none. Returns 0 or DIVVY_ENOMEM. */
int dv_plan_history_next(dv_plan_text *out, const dv_plan_memory *memory, const dv_plan *next, dv_plan_handed handed);

#endif
