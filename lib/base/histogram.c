/* Times, counted by how long they were. SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <assert.h>

#include "base/config.h"

const uint64_t dv_histogram_bounds_us[][DV_HISTOGRAM_BOUNDS] = {
    /* From a hand-over that nobody notices to a lock that is held all day. */
    [DV_SCALE_DURATION] = {5000, 25000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 30000000, 60000000,
                           300000000, 1800000000, 7200000000, 86400000000},
    /* Steps of about 2.5 where a server that is well answers, and where one that is not makes itself felt. */
    [DV_SCALE_ROUND_TRIP] = {250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000,
                             5000000, 10000000},
};

void dv_histogram_add_us(dv_histogram *histogram, int64_t time_us) {
    uint64_t us = time_us > 0 ? (uint64_t)time_us : 0;
    const uint64_t *bounds_us = dv_histogram_bounds_us[histogram->scale];
    size_t i = 0;
    while (i < DV_HISTOGRAM_BOUNDS && us > bounds_us[i]) i++;
    histogram->counts[i]++;
    histogram->sum_us += us;
}

void dv_histogram_add_ms(dv_histogram *histogram, int64_t time_ms) {
    int64_t ms = time_ms < DV_TIME_MAX_MS ? time_ms : DV_TIME_MAX_MS;
    dv_histogram_add_us(histogram, ms > 0 ? 1000 * ms : 0);
}

void dv_histogram_merge(dv_histogram *to, const dv_histogram *from) {
    assert(to->scale == from->scale);
    for (size_t i = 0; i <= DV_HISTOGRAM_BOUNDS; i++) to->counts[i] += from->counts[i];
    to->sum_us += from->sum_us;
}
