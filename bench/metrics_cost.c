/* The cost of metrics: of writing them, and of counting for them. SPDX-License-Identifier: Apache-2.0
 *
 * One member, in memory, owns all items of a pool. First the text is written many times over: what one write costs
 * is what each second costs a program that is asked every second. Then a lock is taken and released many times,
 * each time with a few requests; perf or callgrind tells from that what counting adds (bench/README.md). */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"

enum { ITEMS_MAX = 100000, ITEM_BYTES = 16, WRITES = 2000, LOCKS = 2000, WAIT_MS = 120000 };

static char names[ITEMS_MAX][ITEM_BYTES];
static const char *items[ITEMS_MAX];

_Noreturn static void die(const char *what) {
    fprintf(stderr, "bench_metrics_cost: %s: %s\n", what, divvy_client_error(NULL));
    exit(1);
}

static double cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int count(void *user, const char *text, size_t bytes) {
    (void)text;
    *(size_t *)user += bytes;
    return 0;
}

static divvy_client *open_client(divvy_testing_ensemble *ensemble) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.manual = 1;
    config.ensemble_tick_ms = 2000;
    if (divvy_testing_client_open(&client, ensemble, &config) != 0) die("no client");
    return client;
}

static divvy_partitioner *own_all(divvy_client *client, size_t item_count) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    for (size_t i = 0; i < item_count; i++) {
        snprintf(names[i], sizeof names[i], "item-%06zu", i);
        items[i] = names[i];
    }
    config.path = "/pool";
    config.items = items;
    config.item_count = item_count;
    config.time_boundary_ms = 100;
    if (divvy_partitioner_create(&p, client, &config) != 0) die("no partitioner");
    if (divvy_partitioner_wait_for_acquire(p, WAIT_MS) != 0) die("not acquired");
    return p;
}

static void write_many(divvy_client *client, size_t item_count) {
    size_t bytes = 0;
    double before = cpu_us();
    for (int i = 0; i < WRITES; i++) {
        if (divvy_metrics_write(client, count, &bytes) != 0) die("not written");
    }
    double each_us = (cpu_us() - before) / WRITES;
    printf("{\"items\": %zu, \"write_us\": %.1f, \"text_bytes\": %zu, \"core_percent_at_1_per_s\": %.4f}\n", item_count,
           each_us, bytes / WRITES, each_us / 1e4);
}

static void lock_many(divvy_client *client) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    divvy_stats stats;
    config.path = "/lock";
    if (divvy_lock_create(&lock, client, &config) != 0) die("no lock");
    divvy_client_stats(client, &stats, sizeof stats);
    uint64_t requests = stats.requests;
    double before = cpu_us();
    for (int i = 0; i < LOCKS; i++) {
        if (divvy_lock_acquire(lock, WAIT_MS) != 0 || divvy_lock_release(lock) != 0) die("not locked");
    }
    double used_us = cpu_us() - before;
    divvy_client_stats(client, &stats, sizeof stats);
    printf("{\"locks\": %d, \"requests\": %llu, \"request_us\": %.2f}\n", LOCKS,
           (unsigned long long)(stats.requests - requests), used_us / (double)(stats.requests - requests));
    divvy_lock_destroy(lock);
}

int main(int argc, char **argv) {
    long item_count = argc > 1 ? strtol(argv[1], NULL, 10) : 10000;
    if (item_count < 1 || item_count > ITEMS_MAX) {
        fprintf(stderr, "usage: bench_metrics_cost [ITEMS]\n");
        return 2;
    }
    divvy_testing_ensemble *ensemble;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) die("no ensemble");
    divvy_client *client = open_client(ensemble), *other = open_client(ensemble);
    divvy_partitioner *p = own_all(client, (size_t)item_count);
    write_many(client, (size_t)item_count);
    lock_many(other);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    divvy_client_close(other);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}
