/* The floor: what the Apache C client itself can do against a server. SPDX-License-Identifier: Apache-2.0
 *
 * Prints one JSON line: round trip, synchronous create+delete pairs, pipelined and multi creates and deletes a second.
 * No recipe stands between: whatever divides items by locks cannot be faster than the multis here. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { PATH_BYTES = 24, BATCH = 200, PAIRS_MAX = 1000, COUNT_MAX = 1000000, SESSION_TIMEOUT_MS = 10000 };

typedef struct {
    zhandle_t *zh;
    int count;
    char (*paths)[PATH_BYTES];
    zoo_op_t *ops;
    zoo_op_result_t *results;
} bench;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int finished, connected;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(int rc) {
    if (rc == ZOK) return;
    fprintf(stderr, "bench_raw_limit: %s\n", zerror(rc));
    _exit(1); /* Also on the client's own threads, which exit() would pull the ground from under. */
}

/* ---- answers ---- */

static void finish_one(int rc) {
    check(rc);
    pthread_mutex_lock(&mutex);
    finished++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void on_created(int rc, const char *path, const void *data) {
    (void)path;
    (void)data;
    finish_one(rc);
}

static void on_done(int rc, const void *data) {
    (void)data;
    finish_one(rc);
}

static void wait_for(int count) {
    pthread_mutex_lock(&mutex);
    while (finished < count) pthread_cond_wait(&changed, &mutex);
    finished = 0;
    pthread_mutex_unlock(&mutex);
}

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh;
    (void)type;
    (void)path;
    (void)context;
    pthread_mutex_lock(&mutex);
    connected = state == ZOO_CONNECTED_STATE;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

/* ---- measures: each returns how many a second ---- */

static double round_trips(const bench *b, int count) {
    double start_s = now_s();
    for (int i = 0; i < count; i++) check(zoo_exists(b->zh, "/", 0, NULL));
    return count / (now_s() - start_s);
}

static double synchronous_pairs(const bench *b, int count) {
    double start_s = now_s();
    for (int i = 0; i < count; i++) {
        check(zoo_create(b->zh, b->paths[i], "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
        check(zoo_delete(b->zh, b->paths[i], -1));
    }
    return count / (now_s() - start_s);
}

static double pipelined_creates(const bench *b) {
    double start_s = now_s();
    for (int i = 0; i < b->count; i++)
        check(zoo_acreate(b->zh, b->paths[i], "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, on_created, NULL));
    wait_for(b->count);
    return b->count / (now_s() - start_s);
}

static double pipelined_deletes(const bench *b) {
    double start_s = now_s();
    for (int i = 0; i < b->count; i++) check(zoo_adelete(b->zh, b->paths[i], -1, on_done, NULL));
    wait_for(b->count);
    return b->count / (now_s() - start_s);
}

static void send_multis(const bench *b) {
    for (int i = 0; i < b->count; i += BATCH)
        check(zoo_amulti(b->zh, BATCH, b->ops + i, b->results + i, on_done, NULL));
    wait_for(b->count / BATCH);
}

static double multi_creates(const bench *b) {
    double start_s = now_s();
    for (int i = 0; i < b->count; i++)
        zoo_create_op_init(&b->ops[i], b->paths[i], "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0);
    send_multis(b);
    return b->count / (now_s() - start_s);
}

static double multi_deletes(const bench *b) {
    double start_s = now_s();
    for (int i = 0; i < b->count; i++) zoo_delete_op_init(&b->ops[i], b->paths[i], -1);
    send_multis(b);
    return b->count / (now_s() - start_s);
}

/* ---- the whole ---- */

static void open_bench(bench *b, const char *hosts, int count) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    b->zh = zookeeper_init(hosts, on_session, SESSION_TIMEOUT_MS, NULL, NULL, 0);
    b->count = count;
    b->paths = calloc((size_t)count, sizeof *b->paths);
    b->ops = calloc((size_t)count, sizeof *b->ops);
    b->results = calloc((size_t)count, sizeof *b->results);
    if (!b->zh || !b->paths || !b->ops || !b->results) check(ZSYSTEMERROR);
    for (int i = 0; i < count; i++) snprintf(b->paths[i], PATH_BYTES, "/raw-limit-%08d", i);
    pthread_mutex_lock(&mutex);
    while (!connected) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv) {
    long wanted = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
    if (wanted < BATCH || wanted > COUNT_MAX) {
        fprintf(stderr, "usage: bench_raw_limit HOSTS COUNT     (%d to %d)\n", BATCH, COUNT_MAX);
        return 2;
    }
    bench b;
    open_bench(&b, argv[1], (int)wanted / BATCH * BATCH);
    int pairs = b.count < PAIRS_MAX ? b.count : PAIRS_MAX;
    double trips = round_trips(&b, pairs), sync_pairs = synchronous_pairs(&b, pairs);
    double creates = pipelined_creates(&b), deletes = pipelined_deletes(&b);
    double in_multi_creates = multi_creates(&b), in_multi_deletes = multi_deletes(&b);
    printf("{\"peer\": \"raw C client\", \"count\": %d, \"round_trip_us\": %.0f, "
           "\"sync_create_delete_pairs_per_s\": %.0f, \"pipelined_creates_per_s\": %.0f, "
           "\"pipelined_deletes_per_s\": %.0f, \"multi_creates_per_s\": %.0f, \"multi_deletes_per_s\": %.0f}\n",
           b.count, 1e6 / trips, sync_pairs, creates, deletes, in_multi_creates, in_multi_deletes);
    int rc = zookeeper_close(b.zh);
    free(b.paths);
    free(b.ops);
    free(b.results);
    return rc == ZOK ? 0 : 1;
}
