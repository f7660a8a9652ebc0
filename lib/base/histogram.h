/* Times, counted by how long they were. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HISTOGRAM_H
#define DV_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { DV_HISTOGRAM_BOUNDS = 15 };

typedef enum {
    DV_SCALE_DURATION,   /* 5 ms to 1 day */
    DV_SCALE_ROUND_TRIP, /* 250 us to 10 s */
} dv_histogram_scale;

/* The upper bounds of each scale's buckets; one bucket more is without. */
extern const uint64_t dv_histogram_bounds_us[DV_SCALE_ROUND_TRIP + 1][DV_HISTOGRAM_BOUNDS];

typedef struct {
    dv_histogram_scale scale;
    uint64_t counts[DV_HISTOGRAM_BOUNDS + 1]; /* of each bucket alone */
    uint64_t sum_us;
} dv_histogram;

/* Counts one time; one below 0, which only a clock that was set back gives, is 0. */
void dv_histogram_add_us(dv_histogram *histogram, int64_t time_us);
/* Counts one time in milliseconds, of at most DV_TIME_MAX_MS. */
void dv_histogram_add_ms(dv_histogram *histogram, int64_t time_ms);
/* Adds all that another of the same scale has counted. */
void dv_histogram_merge(dv_histogram *to, const dv_histogram *from);

#endif
