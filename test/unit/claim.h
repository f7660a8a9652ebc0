/* Claims of random schedules: one that does not hold tells the seed. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLAIM_H
#define DV_TEST_CLAIM_H

#include <stdio.h>
#include <stdlib.h>

#include "lib/draw.h"

static uint64_t seed = 1;

#define CLAIM(condition, ...)                                                  \
    do {                                                                       \
        if (condition) break;                                                  \
        fprintf(stderr, "seed %llu: ", (unsigned long long)seed);              \
        fprintf(stderr, __VA_ARGS__);                                          \
        fprintf(stderr, "; DIVVY_TEST_SEED=%llu\n", (unsigned long long)seed); \
        abort();                                                               \
    } while (0)

#endif
