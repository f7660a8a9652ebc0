/* The config of a member, with what nearly every test sets. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PARTITIONER_CONFIG_H
#define DV_TEST_PARTITIONER_CONFIG_H

#include "divvy/partitioner.h"

static inline divvy_partitioner_config dv_test_partitioner_config(const char *path, const char *const *items,
                                                                  size_t item_count, int64_t boundary_ms) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = items;
    config.item_count = item_count;
    config.time_boundary_ms = boundary_ms;
    return config;
}

#endif
