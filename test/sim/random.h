/* Random numbers that a seed determines. SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SplitMix64. */
typedef struct {
    uint64_t state;
} sim_random;

static inline uint64_t sim_draw(sim_random *r) {
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline sim_random sim_random_of(uint64_t seed, uint64_t stream) {
    sim_random r = {seed * UINT64_C(0xd1342543de82ef95) + stream * UINT64_C(0x2545f4914f6cdd1d)};
    sim_draw(&r);
    return r;
}

/* 0 to n - 1; 0 for n = 0. */
static inline uint32_t sim_below(sim_random *r, uint32_t n) {
    return n ? (uint32_t)((sim_draw(r) >> 32) * n >> 32) : 0;
}

static inline int64_t sim_between(sim_random *r, int64_t low, int64_t high) {
    return high <= low ? low : low + (int64_t)(sim_draw(r) % (uint64_t)(high - low + 1));
}

static inline bool sim_chance(sim_random *r, unsigned percent) {
    return sim_below(r, 100) < percent;
}

/* One of the numbers of a list. */
#define SIM_ONE_OF(r, ...) \
    (((const int64_t[]){   \
        __VA_ARGS__})[sim_below(r, (uint32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))])

#endif
