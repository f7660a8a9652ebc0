/* How many items of a pool were where, over the whole life of divvy serve: coarser with age, and bounded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_SAMPLES_H
#define DV_SERVE_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

/* POINTS_MAX: what a chart is given. */
enum { DV_SERVE_SAMPLES_MAX = 4096, DV_SERVE_POINTS_MAX = 800 };

/* A sample: it was so at a time, and goes on until the next one. One that stands for several has the most items,
 * unowned and moving ones of them, and the fewest members. */
typedef struct {
    int64_t ms; /* by the wall clock */
    uint32_t items, unowned, moving, members;
} dv_serve_sample;

typedef struct {
    dv_serve_sample list[DV_SERVE_SAMPLES_MAX]; /* the oldest first */
    size_t count;
} dv_serve_samples;

/* Adds a sample, if it differs from the last one. Where there is no room, two neighbours become one: those that lie
 * together for the shortest part of their age. Where the clock went back, none is later than this one. */
void dv_serve_samples_add(dv_serve_samples *samples, const dv_serve_sample *sample);

/* Writes what was so between two times, and the times of changes; returns how many. The first is what was so at
 * `from_ms`, if that is known. Of too many, those close together become two: their peaks, and the last of them. */
size_t dv_serve_samples_between(const dv_serve_samples *samples, int64_t from_ms, int64_t to_ms,
                                dv_serve_sample out[DV_SERVE_POINTS_MAX]);

#endif
