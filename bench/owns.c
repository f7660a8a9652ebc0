/* The cost of divvy_partitioner_owns(), beside peers in the same run. SPDX-License-Identifier: Apache-2.0
 *
 * One member, in memory, owns all items. Threads ask for items at random. Each counts its own processor time, so the
 * figures do not depend on how many processors there are. It warms the caches before that. Rounds of all ways take
 * turns. The peers: the clock alone, which every answer must read; a plain hash table with the clock, which nobody
 * may change; that under one mutex, as a program would have it. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"

enum {
    FEW = 16,
    MANY = 10000,
    ITEM_BYTES = 16,
    SLOTS = 32768,
    THREADS_MAX = 8,
    ROUNDS = 15,
    CALLS = 200000,
    WARM_UP = 20000,
    WAIT_MS = 120000
};

static char names[MANY][ITEM_BYTES];
static const char *items[MANY], *table[SLOTS];
static size_t item_count;
static divvy_partitioner *partitioner;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

_Noreturn static void die(const char *what) {
    fprintf(stderr, "bench_owns: %s: %s\n", what, divvy_client_error(NULL));
    exit(1);
}

/* ---- the ways of asking ---- */

static bool by_clock(const char *item) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return item && now.tv_sec > 0;
}

/* FNV-1a. Returns where the item stands, or an empty slot. */
static const char **slot_of(const char *item) {
    uint64_t hash = 0xcbf29ce484222325;
    for (const char *at = item; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3;
    size_t i = (size_t)(hash ^ hash >> 32) % SLOTS;
    while (table[i] && strcmp(table[i], item) != 0) i = (i + 1) % SLOTS;
    return &table[i];
}

static bool by_table(const char *item) {
    return *slot_of(item) && by_clock(item);
}

static bool by_mutex(const char *item) {
    pthread_mutex_lock(&mutex);
    bool found = by_table(item);
    pthread_mutex_unlock(&mutex);
    return found;
}

static bool by_owns(const char *item) {
    return divvy_partitioner_owns(partitioner, item) == 1;
}

static const struct {
    const char *name;
    bool (*asks)(const char *item);
} ways[] = {{"clock", by_clock}, {"table", by_table}, {"mutex", by_mutex}, {"owns", by_owns}};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- threads ---- */

typedef struct {
    bool (*asks)(const char *item);
    unsigned seed;
    double ns; /* of processor time, for each call */
    pthread_barrier_t *begin;
} asker;

static int64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void *ask(void *context) {
    asker *a = context;
    pthread_barrier_wait(a->begin);
    uint32_t at = a->seed;
    size_t missed = 0;
    int64_t begin_ns = 0;
    for (int i = -WARM_UP; i < CALLS; i++) {
        if (i == 0) begin_ns = thread_ns();
        at = at * 1664525 + 1013904223;
        missed += !a->asks(items[(at >> 8) % item_count]);
    }
    a->ns = (double)(thread_ns() - begin_ns) / CALLS;
    if (missed) die("an item is not owned");
    return NULL;
}

/* Returns the mean over the threads. */
static double measure(bool (*asks)(const char *item), unsigned threads) {
    pthread_t ids[THREADS_MAX];
    asker askers[THREADS_MAX];
    pthread_barrier_t begin;
    double sum = 0;
    pthread_barrier_init(&begin, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        askers[i] = (asker){asks, i + 1, 0, &begin};
        if (pthread_create(&ids[i], NULL, ask, &askers[i]) != 0) die("no thread");
    }
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        sum += askers[i].ns;
    }
    pthread_barrier_destroy(&begin);
    return sum / threads;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- the member ---- */

static void take_all(divvy_testing_ensemble **ensemble, divvy_client **client) {
    divvy_testing_config testing = DIVVY_TESTING_CONFIG_INIT;
    testing.real_clock = 1;
    testing.servers = 1;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.session_timeout_ms = 40000;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = items;
    config.item_count = item_count;
    config.time_boundary_ms = 0;
    if (divvy_testing_ensemble_create(ensemble, &testing) != 0) die("no ensemble");
    if (divvy_testing_client_open(client, *ensemble, &client_config) != 0) die("no client");
    if (divvy_partitioner_create(&partitioner, *client, &config) != 0) die("no partitioner");
    if (divvy_partitioner_wait_for_acquire(partitioner, WAIT_MS) != 0) die("not acquired");
}

static void make_items(void) {
    memset((void *)table, 0, sizeof table);
    for (size_t i = 0; i < item_count; i++) {
        snprintf(names[i], ITEM_BYTES, "item-%06zu", i);
        items[i] = names[i];
        *slot_of(names[i]) = names[i];
    }
}

static void run_rounds(void) {
    static const unsigned threads[] = {1, THREADS_MAX};
    static double ns[WAYS][2][ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < WAYS; way++) {
            for (int t = 0; t < 2; t++) ns[way][t][round] = measure(ways[way].asks, threads[t]);
        }
    }
    printf("%-8s %12s %12s %8s   ns of processor time for each call, median of %d rounds, %zu items\n", "", "1 thread",
           "8 threads", "ratio", ROUNDS, item_count);
    for (int way = 0; way < WAYS; way++) {
        for (int t = 0; t < 2; t++) qsort(ns[way][t], ROUNDS, sizeof **ns[way], compare);
        double one = ns[way][0][ROUNDS / 2], many = ns[way][1][ROUNDS / 2];
        printf("%-8s %12.1f %12.1f %8.2f\n", ways[way].name, one, many, many / one);
    }
}

static void run_with(size_t count) {
    divvy_testing_ensemble *ensemble;
    divvy_client *client;
    item_count = count;
    make_items();
    take_all(&ensemble, &client);
    run_rounds();
    divvy_partitioner_destroy(partitioner);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}

int main(void) {
    run_with(FEW);
    run_with(MANY);
    return 0;
}
