/* Slots: what the names in a semaphore's pool say, and what is free in it. SPDX-License-Identifier: Apache-2.0
 *
 * Pure functions of names and data. docs/protocol.md, E2 to E5. */
#ifndef DV_SLOTS_H
#define DV_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits are up to INT32_MAX, so that slots are ints; runs are bounded so that names stay short. */
enum { DV_RUNS_MAX = 16, DV_SLOT_TAGS_BYTES = 32 + DV_RUNS_MAX * 24 };

typedef struct {
    uint32_t first, count;
} dv_slot_run;

/* Some slots, as runs from the lowest up. */
typedef struct {
    uint32_t count; /* of all runs together */
    size_t run_count;
    dv_slot_run runs[DV_RUNS_MAX];
} dv_slots;

typedef enum {
    DV_POOL_ROOM, /* the slots are free */
    DV_POOL_FULL, /* not enough are */
    DV_POOL_OUT_OF_MEMORY,
} dv_pool_state;

/* Writes ",n=...,c=..." (and ",x=...") with a NUL; returns its length. */
size_t dv_slots_print(const dv_slots *slots, char out[DV_SLOT_TAGS_BYTES]);
/* Returns whether `name` is a lease of ours; then *slots is what it holds. */
bool dv_slots_parse(const char *name, dv_slots *slots);
/* The i-th of them, from the lowest; -1 past the end. */
int dv_slots_at(const dv_slots *slots, uint32_t i);

/* E4: chooses `count` slots of a pool of `limit` whose children are `names`. */
dv_pool_state dv_slots_choose(const char *const *names, size_t name_count, uint32_t limit, uint32_t count,
                              dv_slots *out);

/* E14: returns whether `slots` can be held beside the leases `names`, in a pool of `limit`. */
bool dv_slots_fit(const dv_slots *slots, const char *const *names, size_t count, uint32_t limit);

bool dv_pool_has_kazoo(const char *const *names, size_t count);
bool dv_queue_has_kazoo(const char *const *names, size_t count);

/* E3: what a pool's data say. */
typedef enum { DV_LIMIT_SET, DV_LIMIT_UNSET, DV_LIMIT_BAD } dv_limit_state;
dv_limit_state dv_limit_parse(const char *data, size_t data_bytes, uint32_t *limit);

#endif
