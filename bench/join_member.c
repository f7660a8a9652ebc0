/* A member of a pool in a process of its own, for join_path.py. SPDX-License-Identifier: Apache-2.0
 *
 * Lines on stdout, each with the monotonic clock in seconds: `start`, before its client is opened; `own N` after each
 * change of its items, N of them now; `acquired`. With a TRACE, a file, each request and each answer is a line there,
 * as the library tells them. It ends by SIGTERM. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "divvy/divvy.h"

enum { ITEMS_MAX = 1000000, ITEM_BYTES = 16, SESSION_TIMEOUT_MS = 10000, END_TIMEOUT_MS = 60000 };
enum { TRACE_BYTES = 8 * 1024 * 1024 };

static FILE *trace;
static size_t owned;
static volatile sig_atomic_t ending;

_Noreturn static void die(const char *what, const char *why) {
    fprintf(stderr, "bench_join_member: %s: %s\n", what, why);
    _exit(1); /* Other threads still run: what exit() tears down they may be using. */
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void on_log(int level, const char *message, void *user) {
    (void)user;
    if (level == DIVVY_LOG_DEBUG && trace) fprintf(trace, "%.6f %s\n", now_s(), message);
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    owned += event->gained_count;
    owned -= event->lost_count;
    if (event->gained_count + event->lost_count == 0) return;
    printf("%.6f own %zu\n", now_s(), owned);
    fflush(stdout);
}

/* A user without work: what is revoked is released at once. */
static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    if (to == DIVVY_ACQUIRED) printf("%.6f acquired\n", now_s());
    if (to == DIVVY_ACQUIRED) fflush(stdout);
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
    char why[256];
    if (to == DIVVY_FAILURE && !ending && divvy_partitioner_failure(p, why, sizeof why) != 0) die("failed", why);
}

static const char **make_items(size_t count) {
    char(*names)[ITEM_BYTES] = calloc(count, sizeof *names);
    const char **items = (const char **)calloc(count, sizeof *items);
    if (!names || !items) die("items", "out of memory");
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "item-%06u", (unsigned)i % ITEMS_MAX);
        items[i] = names[i];
    }
    return items;
}

int main(int argc, char **argv) {
    long count = argc == 6 || argc == 7 ? strtol(argv[4], NULL, 10) : 0;
    if (count < 1 || count > ITEMS_MAX) {
        fputs("usage: bench_join_member HOSTS PATH IDENTIFIER ITEMS BOUNDARY_MS [TRACE]\n", stderr);
        return 2;
    }
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    if (argc == 7 && !(trace = fopen(argv[6], "w"))) die("trace", argv[6]);
    if (trace) setvbuf(trace, NULL, _IOFBF, TRACE_BYTES);

    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.hosts = argv[1];
    client_config.session_timeout_ms = SESSION_TIMEOUT_MS;
    client_config.on_log = on_log;
    client_config.log_requests = trace != NULL;
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = argv[2];
    config.identifier = argv[3];
    config.items = make_items((size_t)count);
    config.item_count = (size_t)count;
    config.time_boundary_ms = strtol(argv[5], NULL, 10);
    config.assign = DIVVY_ASSIGN_STICKY;
    config.on_state = on_state;
    config.on_items = on_items;
    divvy_client *client;
    divvy_partitioner *partitioner;
    printf("%.6f start\n", now_s());
    if (divvy_client_open(&client, &client_config) != 0) die("client", divvy_client_error(NULL));
    if (divvy_partitioner_create(&partitioner, client, &config) != 0) die("partitioner", divvy_client_error(client));

    int signal_number;
    sigwait(&ends, &signal_number);
    ending = 1;
    divvy_partitioner_finish(partitioner, END_TIMEOUT_MS);
    divvy_partitioner_destroy(partitioner);
    divvy_client_close(client);
    return trace && fclose(trace) != 0 ? 1 : 0;
}
