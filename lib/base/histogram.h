/* Times, counted by how long they were. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_HISTOGRAM_H
#define DV_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { DV_HISTOGRAM_BOUNDS = 15 };

/* The upper bounds of the buckets, in microseconds; one bucket more is without. */
typedef struct {
    uint64_t bounds_us[DV_HISTOGRAM_BOUNDS];
} dv_histogram_scale;

extern const dv_histogram_scale dv_scale_round_trip; /* 250 us to 10 s */
extern const dv_histogram_scale dv_scale_duration;   /* 5 ms to 1 day */

typedef struct {
    const dv_histogram_scale *scale;
    uint64_t counts[DV_HISTOGRAM_BOUNDS + 1]; /* of each bucket alone */
    uint64_t sum_us;
} dv_histogram;

/* Counts one time; one below 0, which only a clock that was set back gives, is 0. */
void dv_histogram_add_us(dv_histogram *histogram, int64_t time_us);
/* Counts one time in milliseconds, of at most DV_TIME_MAX_MS. */
void dv_histogram_add_ms(dv_histogram *histogram, int64_t time_ms);
/* Adds all that another of the same scale has counted. */
void dv_histogram_merge(dv_histogram *to, const dv_histogram *from);
uint64_t dv_histogram_count(const dv_histogram *histogram);

#endif
