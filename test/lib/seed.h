/* Seeds of randomised tests. SPDX-License-Identifier: Apache-2.0
 *
 * Most of them replay the same seeds each time, and a share of fresh ones besides. test/run draws these from the
 * commit, so that each commit is tried with others, and one commit always with the same. */
#ifndef DV_TEST_SEED_H
#define DV_TEST_SEED_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Returns DIVVY_FRESH_SEED, which test/run sets; without it a seed of the time. Below 2^31, whatever is given. */
static inline uint64_t dv_test_fresh_seed(void) {
    static uint64_t fresh;
    const char *given = getenv("DIVVY_FRESH_SEED");
    if (!fresh) fresh = (given && *given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL)) & INT32_MAX;
    return fresh;
}

/* Returns the seed of a test that has one for all: DIVVY_TEST_SEED, else a fresh one. Prints the command that
 * replays. */
static inline uint64_t dv_test_seed(const char *program) {
    const char *given = getenv("DIVVY_TEST_SEED");
    uint64_t chosen = given ? strtoull(given, NULL, 10) : dv_test_fresh_seed();
    printf("seed %llu; again: DIVVY_TEST_SEED=%llu %s\n", (unsigned long long)chosen, (unsigned long long)chosen,
           program);
    fflush(stdout);
    return chosen;
}

/* Returns the seed of run `i`, from 0: those before `fixed` have the seeds 1, 2, ...; those from there on fresh ones.
 * Prints the first of these, with the command that replays it. */
static inline uint64_t dv_test_seed_of_run(uint64_t i, uint64_t fixed, const char *program) {
    uint64_t chosen = i < fixed ? i + 1 : dv_test_fresh_seed() + i - fixed;
    if (i == fixed) {
        printf("fresh seeds from %llu; again: DIVVY_TEST_SEED=%llu %s\n", (unsigned long long)chosen,
               (unsigned long long)chosen, program);
        fflush(stdout);
    }
    return chosen;
}

#endif
