/* Random numbers, the same on every machine: xoshiro256** seeded by splitmix64. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_MEM_PRNG_H
#define DV_MEM_PRNG_H

#include <stdint.h>

typedef struct {
    uint64_t state[4];
} dv_mem_prng;

static inline void dv_mem_prng_seed(dv_mem_prng *prng, uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        prng->state[i] = z ^ (z >> 31);
    }
}

static inline uint64_t dv_mem_rotate(uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

static inline uint64_t dv_mem_prng_next(dv_mem_prng *prng) {
    uint64_t *s = prng->state, result = dv_mem_rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = dv_mem_rotate(s[3], 45);
    return result;
}

/* From `min` to `max`, both included. */
static inline int64_t dv_mem_prng_between(dv_mem_prng *prng, int64_t min, int64_t max) {
    if (max <= min) return min;
    return min + (int64_t)(dv_mem_prng_next(prng) % (uint64_t)(max - min + 1));
}

#endif
