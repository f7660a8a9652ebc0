/* Shared by the C programs of bench/locks.sh: a clock, and the commands of locks.py.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A peer reads commands "VERB RECIPE NUMBER", a line each, and answers each with one line of JSON, until its input
 * ends:
 *   pairs lock 150        acquires and releases for 150 ms; {"pairs": 312, "seconds": 0.1502}
 *   gone lock 150         divvy only: the same, and waits until nothing is left of each
 *   hand_over lock 50     a chain of 50 waiters; {"us": [410.2, 398.7, ...]}, from a release to the next acquire
 *   count semaphore 10    divvy only: the requests of a hand-over with 10 waiters */
#ifndef LOCKS_PEER_H
#define LOCKS_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAITERS_MAX = 50, POOL_LIMIT = 4, SESSION_TIMEOUT_MS = 60000 };

static inline double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Says what an error is, and why; each program has its own. */
static const char *error_text(int error);

/* _exit(), as this is called on clients' own threads too, which exit() would pull the ground from under. */
static inline void check(int error, const char *what) {
    if (error == 0) return;
    fprintf(stderr, "bench/locks: %s: %s (%d)\n", what, error_text(error), error);
    _exit(1);
}

static inline void print_pairs(int pairs, double seconds) {
    printf("{\"pairs\": %d, \"seconds\": %.6f}\n", pairs, seconds);
}

static inline void print_hand_overs(const double *us, int count) {
    printf("{\"us\": [");
    for (int i = 0; i < count; i++) printf("%s%.1f", i ? ", " : "", us[i]);
    printf("]}\n");
}

/* Carries out commands until there are no more. `run` says whether it knows the command. */
static inline void serve_commands(bool (*run)(const char *verb, const char *recipe, int number)) {
    char line[128], verb[32], recipe[32];
    int number;
    while (fgets(line, sizeof line, stdin)) {
        bool known =
            sscanf(line, "%31s %31s %d", verb, recipe, &number) == 3 && number > 0 && run(verb, recipe, number);
        check(known ? 0 : 1, line);
        fflush(stdout);
    }
}

#endif
