/* A program that uses all that metrics tell of, and writes them in both formats. SPDX-License-Identifier: Apache-2.0
 *
 * usage: metrics_writer OPENMETRICS_FILE PROMETHEUS_FILE
 *
 * The client has threads of its own. Another thread reads the metrics all the time while locks come and go. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <divvy/divvy.h>

enum { WAIT_MS = 20000, LOCKS = 50 };

static atomic_bool enough;
static atomic_int looks;

static void must(int error, const char *what, const divvy_client *client) {
    if (error == 0) return;
    fprintf(stderr, "metrics_writer: %s: %s\n", what, divvy_client_error(client));
    exit(1);
}

static int store(void *user, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, user) == bytes ? 0 : 1;
}

static int count(void *user, const char *text, size_t bytes) {
    (void)text;
    *(size_t *)user += bytes;
    return 0;
}

static void *look_on(void *context) {
    divvy_client *client = context;
    while (!atomic_load(&enough)) {
        size_t bytes = 0;
        must(divvy_metrics_write(client, count, &bytes), "metrics", client);
        if (bytes < 1000) exit(1);
        atomic_fetch_add(&looks, 1);
    }
    return NULL;
}

static divvy_partitioner *join(divvy_client *client) {
    static const char *const items[] = {"a", "b", "c"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/metrics \"pool\"\\";
    config.items = items;
    config.item_count = 3;
    config.time_boundary_ms = 100;
    must(divvy_partitioner_create(&p, client, &config), "partitioner", client);
    must(divvy_partitioner_wait_for_acquire(p, WAIT_MS), "acquire", client);
    return p;
}

static void use_locks(divvy_client *client) {
    for (int i = 0; i < LOCKS; i++) {
        divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
        divvy_lock *lock;
        config.path = "/metrics-lock";
        config.mode = i % 3 == 0 ? DIVVY_EXCLUSIVE : i % 3 == 1 ? DIVVY_READ : DIVVY_WRITE;
        must(divvy_lock_create(&lock, client, &config), "lock", client);
        must(divvy_lock_acquire(lock, WAIT_MS), "lock", client);
        divvy_lock_destroy(lock);
    }
}

static divvy_semaphore *take_slot(divvy_client *client) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = "/metrics-semaphore";
    config.limit = 2;
    must(divvy_semaphore_create(&semaphore, client, &config), "semaphore", client);
    must(divvy_semaphore_acquire(semaphore, WAIT_MS), "semaphore", client);
    return semaphore;
}

static divvy_registry *announce(divvy_client *client) {
    divvy_registry *registry;
    must(divvy_registry_open(&registry, client, NULL), "registry", client);
    cJSON *status = cJSON_Parse("{\"role\": \"web\", \"load\": 1, \"ttl\": 60}");
    must(divvy_registry_heartbeat(registry, status, NULL, WAIT_MS), "heartbeat", client);
    cJSON_Delete(status);
    return registry;
}

static void write_file(divvy_client *client, const char *path,
                       int (*call)(divvy_client *, int (*)(void *, const char *, size_t), void *)) {
    FILE *file = fopen(path, "w");
    if (!file) exit(1);
    must(call(client, store, file), "metrics", client);
    if (fclose(file) != 0) exit(1);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    divvy_client *client;
    pthread_t thread;
    must(divvy_client_open(&client, NULL), "open", NULL);
    must(divvy_client_wait_connected(client, WAIT_MS), "connect", client);
    if (pthread_create(&thread, NULL, look_on, client) != 0) return 1;
    divvy_partitioner *p = join(client);
    use_locks(client);
    divvy_semaphore *semaphore = take_slot(client);
    divvy_registry *registry = announce(client);
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    write_file(client, argv[1], divvy_metrics_write);
    write_file(client, argv[2], divvy_metrics_write_prometheus);
    divvy_registry_close(registry);
    divvy_semaphore_destroy(semaphore);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    return atomic_load(&looks) > 0 ? 0 : 1;
}
