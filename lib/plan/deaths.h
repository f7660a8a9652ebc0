/* The last members of a pool that died, as they stand beside its plan. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D45. Pure: no I/O, no clock. What comes from ZooKeeper is hostile until it is parsed. */
#ifndef DV_PLAN_DEATHS_H
#define DV_PLAN_DEATHS_H

#include "plan/history.h"

enum { DV_PLAN_DEATHS_MAX = 64, DV_PLAN_DEATHS_BYTES_MAX = 16 * 1024 };

typedef struct {
    char name[DV_PLAN_NAME_BYTES_MAX + 1]; /* the member's identifier, cut as in a history */
    int64_t session;                       /* its session's id */
    int64_t at_ms;                         /* when it was written down, by the servers' clock; 0: not said */
    int64_t seen_ms;                       /* from the end of its process to that of its session */
} dv_plan_death;

typedef struct {
    size_t count;
    dv_plan_death deaths[DV_PLAN_DEATHS_MAX]; /* the oldest first */
} dv_plan_deaths;

/* Takes a text, and the time at which its node was written, which is that of the newest death. Returns 0; DIVVY_EPROTO,
 * with *fault (may be NULL) filled; DIVVY_ENOMEM. On an error *out is empty. */
int dv_plan_deaths_parse(dv_plan_deaths *out, const char *text, size_t bytes, int64_t written_ms, dv_plan_fault *fault);
/* Prints them, the oldest left out where it is too long otherwise. Returns 0 or DIVVY_ENOMEM. */
int dv_plan_print_deaths(dv_plan_text *out, const dv_plan_deaths *deaths);

/* Adds one, whose at_ms is not said. The oldest makes room. */
void dv_plan_deaths_add(dv_plan_deaths *deaths, const dv_plan_death *death);
/* Returns the newest of that identifier, which need not be cut, or NULL. */
const dv_plan_death *dv_plan_deaths_of(const dv_plan_deaths *deaths, const char *identifier);
/* Returns the death for which a history says that `name` left with the change, or NULL: none that is known. */
const dv_plan_death *dv_plan_deaths_behind(const dv_plan_deaths *deaths, const dv_plan_history *history, size_t change,
                                           const char *name);

#endif
