/* Configuration structs that grow from release to release. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_CONFIG_H
#define DV_CONFIG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "divvy/error.h"

/* Longer times are mistakes, and sums of them would overflow: ten years. */
#define DV_TIME_MAX_MS INT64_C(315360000000)

/* Copies a struct that begins with its size. Fields that an older, shorter one lacks come from `defaults`; what a
 * newer, longer one has besides must be zero. 0 or DIVVY_EINVAL. */
static inline int dv_config_copy(void *to, size_t to_bytes, const void *defaults, const void *from) {
    size_t from_bytes;
    memcpy(&from_bytes, from, sizeof from_bytes);
    if (from_bytes < sizeof from_bytes || from_bytes > 65536) return DIVVY_EINVAL;
    for (size_t i = to_bytes; i < from_bytes; i++) {
        if (((const char *)from)[i] != 0) return DIVVY_EINVAL;
    }
    memcpy(to, defaults, to_bytes);
    memcpy(to, from, from_bytes < to_bytes ? from_bytes : to_bytes);
    return 0;
}

/* Writes the defaults that have room, and zeroes behind them. Does nothing for NULL, or without room for the size. */
static inline void dv_config_init(void *config, size_t bytes, const void *defaults, size_t default_bytes) {
    if (!config || bytes < sizeof bytes) return;
    memset(config, 0, bytes);
    memcpy(config, defaults, bytes < default_bytes ? bytes : default_bytes);
    memcpy(config, &bytes, sizeof bytes);
}

#endif
