/* Random numbers of a test: the same for the same state. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_DRAW_H
#define DV_TEST_DRAW_H

#include <stdint.h>

static uint64_t random_state;

static inline uint64_t draw(uint64_t below) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % below;
}

#endif
