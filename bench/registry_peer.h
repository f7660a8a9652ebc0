/* Shared by the C programs of bench/registry.sh: a clock, counting, and commands. SPDX-License-Identifier: Apache-2.0
 *
 * A peer reads commands "VERB NUMBER", a line each, and answers each with one line of JSON, until its input ends:
 *   fill 1000        registers so many services in ten roles; {"count": 1000, "seconds": 0.05, "bytes": 412}, of an
 *                    entry
 *   heartbeats 500   heartbeats of all of them in turn for 500 ms; {"count": 9000, "seconds": 0.502}
 *   read 500         reads all of them, again and again; counts entries
 *   cached_one 500   the least loaded of a role, out of a view that is kept up to date; counts calls, and requests sent
 *   cached_copy 500  the same, as a copy
 *   cached_all 500   all of them, out of that view; counts entries, and looks at each
 *   cached_busy 500  as cached_one, in one role, while its services send one heartbeat after the other
 *   watch 100        opens so many sessions that follow one role; `unwatch 1` closes them
 *   change 20        changes one entry so many times; {"us": [...], "packets": 4020}: from the write until all know
 *                    it */
#ifndef REGISTRY_PEER_H
#define REGISTRY_PEER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    ROLES = 10,
    SERVICES_MAX = 10000,
    WATCHERS_MAX = 1000,
    CHANGES_MAX = 1000,
    SESSION_TIMEOUT_MS = 60000,
    TTL_S = 600
};

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
    fprintf(stderr, "bench/registry: %s: %s (%d)\n", what, error_text(error), error);
    _exit(1);
}

/* ---- a counter that one thread waits for and others raise: woken once, or the floor would be one of wake-ups ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t reached = PTHREAD_COND_INITIALIZER;
static int counted, wanted;

static inline void count_one(void) {
    pthread_mutex_lock(&mutex);
    if (++counted == wanted) pthread_cond_signal(&reached);
    pthread_mutex_unlock(&mutex);
}

/* Until so many are counted, which are then taken off again. */
static inline void wait_count(int count) {
    pthread_mutex_lock(&mutex);
    wanted = count;
    while (counted < count) pthread_cond_wait(&reached, &mutex);
    counted -= count;
    wanted = 0;
    pthread_mutex_unlock(&mutex);
}

/* ---- answers ---- */

static inline void print_rate(int count, double seconds) {
    printf("{\"count\": %d, \"seconds\": %.6f}\n", count, seconds);
}

static inline void print_changes(const double *us, int count, long long packets) {
    printf("{\"us\": [");
    for (int i = 0; i < count; i++) printf("%s%.1f", i ? ", " : "", us[i]);
    printf("], \"packets\": %lld}\n", packets);
}

/* Carries out commands until there are no more. `run` says whether it knows the command. */
static inline void serve_commands(bool (*run)(const char *verb, int number)) {
    char line[128], verb[32];
    int number;
    while (fgets(line, sizeof line, stdin)) {
        bool known = sscanf(line, "%31s %d", verb, &number) == 2 && number > 0 && run(verb, number);
        check(known ? 0 : 1, line);
        fflush(stdout);
    }
}

#endif
