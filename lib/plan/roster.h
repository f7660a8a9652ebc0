/* The settled party as a plan's step takes it, with what its nodes' data say. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules P2, D10, D12, D31. A node's data never change, so they are read once, and only where a step
 * needs them. */
#ifndef DV_ROSTER_H
#define DV_ROSTER_H

#include "client/client.h"
#include "plan/member_data.h"
#include "plan/step.h"

typedef struct dv_roster dv_roster;

/* Hears of a node that was read, once, and turned out to be a ghost (P2). */
typedef void (*dv_roster_ghost_fn)(void *context, const char *node);

/* Makes an empty roster, which `party_path` (P/party) outlives. `on_ghost` may be NULL. NULL: an allocation failed. */
dv_roster *dv_roster_new(divvy_client *client, const char *party_path, dv_roster_ghost_fn on_ghost, void *context);
/* Frees it. Nothing is called from now on. */
void dv_roster_free(dv_roster *roster);
/* Takes a settled party of these nodes, which all follow plans, without names that cannot stand in a plan (D31). Keeps
 * what is known of nodes that were there. Returns 0, or DIVVY_ENOMEM: then it is what it was. */
int dv_roster_settle(dv_roster *roster, const char *const *names, size_t count, int64_t pzxid);
/* Returns the party for dv_plan_step(), its nodes sorted by name. `set`, `options` and `owners` are for the caller to
 * fill; the next settle leaves the first two, and makes `owners` NULL. Valid until then. */
dv_plan_party *dv_roster_party(dv_roster *roster);
/* The node of that name, or SIZE_MAX. */
size_t dv_roster_find(const dv_roster *roster, const char *node);

/* D36: takes what a plan for this very party says of its nodes. A fact that an allocation fails for stays unknown. */
void dv_roster_learn(dv_roster *roster, const dv_plan *plan);

/* 0: all is known. DIVVY_ENOENT: a node has gone; DIVVY_ECANCELED: another party has settled; DIVVY_EACCES, ... */
typedef void (*dv_roster_fn)(void *context, int error, int64_t now);
typedef enum {
    DV_ROSTER_NEEDED, /* what a step from the plan has to know (dv_plan_ask()) */
    DV_ROSTER_ALL,    /* each node that was not read yet: the writer puts no ghost into a plan, nor leaves one in it */
} dv_roster_question;

/* Reads what `which` says. Returns how many reads that are; then the loop calls `done` (0: never). Or DIVVY_ENOMEM. */
int dv_roster_ask(dv_roster *roster, const dv_plan *previous, dv_roster_question which, dv_roster_fn done,
                  void *context);
/* Reads the nodes with the identifier of `node`, if two of them are known, or may turn out, to be of one static
 * member (D12), or if one was not read yet. Returns as dv_roster_ask(). */
int dv_roster_ask_namesakes(dv_roster *roster, size_t node, dv_roster_fn done, void *context);

#endif
