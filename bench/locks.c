/* What a lock costs: pairs of acquire and release a second, and how fast it goes from one to the next.
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: bench_locks HOSTS PAIRS. Prints a JSON line for the floor, which is the native client's synchronous creates and
 * deletes of an ephemeral node, and one for divvy. In slices that take turns, so that whatever disturbs the machine for
 * a while disturbs both. A hand-over is the time from a release to the callback that tells the next one. */
#include <divvy/divvy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

enum { SLICES = 10, WAITERS_MAX = 50, CHAINS = 40, PATIENCE_MS = 60000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int connected, granted;
static double released_s, hand_overs_us[CHAINS * WAITERS_MAX];
static size_t hand_over_count;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void check(int error, const char *what) {
    if (error == 0) return;
    fprintf(stderr, "bench_locks: %s: %d\n", what, error);
    _exit(1);
}

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *context) {
    (void)zh, (void)type, (void)path, (void)context;
    pthread_mutex_lock(&mutex);
    connected = state == ZOO_CONNECTED_STATE;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static double floor_slice_s(zhandle_t *zh, int pairs) {
    double start_s = now_s();
    for (int i = 0; i < pairs; i++) {
        check(zoo_create(zh, "/bench-floor", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0), "create");
        check(zoo_delete(zh, "/bench-floor", -1), "delete");
    }
    return now_s() - start_s;
}

static double divvy_slice_s(divvy_lock *lock, int pairs) {
    double start_s = now_s();
    for (int i = 0; i < pairs; i++) {
        check(divvy_lock_acquire(lock, PATIENCE_MS), "acquire");
        check(divvy_lock_release(lock), "release");
    }
    return now_s() - start_s;
}

/* ---- hand-overs ---- */

static void on_granted(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)user;
    double at_s = now_s();
    check(result, "a waiting acquire");
    pthread_mutex_lock(&mutex);
    if (released_s > 0) hand_overs_us[hand_over_count++] = (at_s - released_s) * 1e6;
    granted++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_granted(int count) {
    pthread_mutex_lock(&mutex);
    while (granted < count) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* Until all of them wait, each by its watch. */
static void wait_watching(divvy_client *client, unsigned count) {
    divvy_stats stats;
    do {
        usleep(1000);
        check(divvy_client_stats(client, &stats), "stats");
    } while (stats.watches < count || stats.in_flight > 0);
}

static void chain(divvy_client *client, divvy_lock **locks, int waiters) {
    granted = 0;
    released_s = 0;
    for (int i = 0; i <= waiters; i++) check(divvy_lock_acquire_async(locks[i], -1, on_granted, NULL), "acquire_async");
    wait_granted(1);
    wait_watching(client, (unsigned)waiters);
    for (int i = 0; i <= waiters; i++) {
        pthread_mutex_lock(&mutex);
        released_s = i < waiters ? now_s() : 0;
        pthread_mutex_unlock(&mutex);
        check(divvy_lock_release(locks[i]), "release");
        if (i < waiters) wait_granted(i + 2);
    }
}

static int by_size(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

static double hand_over_us(divvy_client *client, divvy_lock **locks, int waiters) {
    hand_over_count = 0;
    for (int i = 0; i < CHAINS; i++) chain(client, locks, waiters);
    qsort(hand_overs_us, hand_over_count, sizeof *hand_overs_us, by_size);
    return hand_overs_us[hand_over_count / 2];
}

/* ---- the whole ---- */

static zhandle_t *open_floor(const char *hosts) {
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zh = zookeeper_init(hosts, on_session, 10000, NULL, NULL, 0);
    if (!zh) check(-1, "zookeeper_init");
    pthread_mutex_lock(&mutex);
    while (!connected) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return zh;
}

int main(int argc, char **argv) {
    int pairs = argc == 3 ? atoi(argv[2]) : 0;
    if (pairs < SLICES) {
        fprintf(stderr, "usage: bench_locks HOSTS PAIRS     (from %d)\n", SLICES);
        return 2;
    }
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *locks[WAITERS_MAX + 1];
    divvy_client *client;
    config.hosts = argv[1];
    lock_config.path = "/bench-lock";
    check(divvy_client_open(&client, &config), "open");
    for (int i = 0; i <= WAITERS_MAX; i++) check(divvy_lock_create(&locks[i], client, &lock_config), "lock");
    zhandle_t *zh = open_floor(argv[1]);
    double floor_s = 0, divvy_s = 0;
    floor_slice_s(zh, pairs / SLICES); /* once to warm up */
    divvy_slice_s(locks[0], pairs / SLICES);
    for (int i = 0; i < SLICES; i++) {
        floor_s += floor_slice_s(zh, pairs / SLICES);
        divvy_s += divvy_slice_s(locks[0], pairs / SLICES);
    }
    double few_us = hand_over_us(client, locks, 2), many_us = hand_over_us(client, locks, WAITERS_MAX);
    pairs = pairs / SLICES * SLICES;
    printf("{\"peer\": \"raw C client\", \"recipe\": \"lock\", \"pairs_per_s\": %.0f}\n", pairs / floor_s);
    printf("{\"peer\": \"divvy\", \"recipe\": \"lock\", \"pairs_per_s\": %.0f, \"hand_over_2_us\": %.0f, "
           "\"hand_over_50_us\": %.0f}\n",
           pairs / divvy_s, few_us, many_us);
    for (int i = 0; i <= WAITERS_MAX; i++) divvy_lock_destroy(locks[i]);
    divvy_client_close(client);
    return zookeeper_close(zh) == ZOK ? 0 : 1;
}
