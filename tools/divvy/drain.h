/* divvy drain: what its parts share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DRAIN_H
#define DV_DRAIN_H

#include "pool_plan.h"

enum { DV_DRAIN_PAUSE_MS = 100 };

/* The options of a drain. */
typedef struct {
    dv_look_options look;
    const char *path, *member;
    int undo, wait;
    int64_t weight;          /* below 0: not given */
    int64_t wait_timeout_ms; /* 0: none */
} dv_drain_options;

typedef struct {
    const dv_drain_options *options;
    dv_look *look;
    char *root, *party_path, *locks; /* at the servers */
    dv_pool_plan plan;
    dv_roster *members; /* NULL: no party was read yet */

    /* the party as it was read last, and when it was first seen so */
    char **nodes;
    size_t node_count;
    int64_t pzxid, seen_pzxid, seen_at_ms;

    /* whom it is about: what its entry in the plan begins with */
    bool is_static;
    char *key;
    uint32_t weight, weight_before;
    size_t items_before;

    dv_plan_events events;
    char waits_for[512]; /* what stands in the way, and may go by itself; "": nothing */
    int code;            /* of a failure that was told; 0: none */
    bool restores;       /* weight_before is to be written again */

    char **items; /* that others are to hold */
    size_t item_count;
} dv_drain;

/* ---- drain_write.c: for dv_look_at(); each returns 0 when it is done, or has told why not (drain->code) ---- */

/* The member has the weight in the plan that stands. */
int dv_drain_write(dv_look *look, void *drain);
/* Reads who is in the party: their nodes' names. */
int dv_drain_read_party(dv_drain *drain);
/* Returns whether no member but this one weighs more than 0 and is there: then nobody can take its items (D15). */
bool dv_drain_is_last(const dv_drain *drain);
/* Its entry in the plan; NULL: it has none. */
const dv_plan_member *dv_drain_member(const dv_drain *drain);
size_t dv_drain_load(const dv_drain *drain);
void dv_drain_free_names(char **names, size_t count);

/* ---- drain_wait.c ---- */

/* Notes what it has now, for this: others hold all of that, and it has no more by the plan. 0, or the exit code. */
int dv_drain_note_items(dv_drain *drain);
int dv_drain_wait(dv_drain *drain);

#endif
