/* A program that was built with an older release: its configurations are shorter (test/abi/old_headers). It runs on
 * the library of today. SPDX-License-Identifier: Apache-2.0
 *
 * Each configuration ends where memory ends: a library that reads or writes behind it crashes the program. */
#define _GNU_SOURCE
#include <cjson/cJSON.h>
#include <divvy/divvy.h>
#include <divvy/testing.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ITEMS = 3, NEWER_BYTES = 4096, FILL = 0xa5 };
static const char *const items[ITEMS] = {"alpha", "beta", "gamma"};

#define CHECK(condition)                                                                      \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: does not hold: %s; %s\n", __FILE__, __LINE__, #condition, \
                    divvy_client_error(NULL));                                                \
            exit(1);                                                                          \
        }                                                                                     \
    } while (0)

/* Returns memory of that size at the end of a page, with none behind it. */
static void *end_of_memory(size_t bytes) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && bytes <= page && mprotect(pages + page, page, PROT_NONE) == 0);
    memset(pages, FILL, page);
    return pages + page - bytes;
}

/* Declares `name`, a configuration at the end of memory, with its defaults: by the macro, or by the function. */
#define CONFIG(type, name, INIT, init, by_macro) \
    type *name = end_of_memory(sizeof *name);    \
    if (by_macro) *name = (type)INIT;            \
    else init(name, sizeof *name)

/* One configuration as a newer header would have it: longer, with zeros in what we do not know, but for its last byte.
 */
static void *newer(const void *config, size_t bytes, char last) {
    char *copy = end_of_memory(NEWER_BYTES);
    const size_t size = NEWER_BYTES;
    memset(copy, 0, NEWER_BYTES);
    memcpy(copy, config, bytes);
    memcpy(copy, &size, sizeof size);
    copy[NEWER_BYTES - 1] = last;
    return copy;
}

/* Checks a call that takes a configuration: ours is taken, so is a newer one; with something in what only that header
 * knows it is refused. The last configuration that was taken is the one in use. */
#define CHECK_TAKEN(config, call, undo)                        \
    do {                                                       \
        const void *used = newer(config, sizeof *(config), 1); \
        CHECK((call) == DIVVY_EINVAL);                         \
        used = newer(config, sizeof *(config), 0);             \
        CHECK((call) == 0);                                    \
        undo;                                                  \
        used = (config);                                       \
        CHECK((call) == 0);                                    \
    } while (0)

static void check_open(const divvy_client_config *config) {
    divvy_client *client;
    divvy_client_config *c = end_of_memory(sizeof *c);
    *c = *config;
    c->hosts = "127.0.0.1:1"; /* where no server is */
    CHECK_TAKEN(c, divvy_client_open(&client, used), divvy_client_close(client));
    divvy_client_close(client);
}

static divvy_client *check_client(divvy_testing_ensemble *ensemble, int by_macro) {
    divvy_client *client;
    CONFIG(divvy_client_config, config, DIVVY_CLIENT_CONFIG_INIT, divvy_client_config_init, by_macro);
    config->ensemble_tick_ms = 2000;
    config->manual = 1;
    check_open(config);
    CHECK_TAKEN(config, divvy_testing_client_open(&client, ensemble, used), divvy_client_close(client));
    return client;
}

static void check_partitioner(divvy_testing_ensemble *ensemble, divvy_client *client, int by_macro) {
    divvy_partitioner *p;
    CONFIG(divvy_partitioner_config, config, DIVVY_PARTITIONER_CONFIG_INIT, divvy_partitioner_config_init, by_macro);
    config->path = "/pool";
    config->items = items;
    config->item_count = ITEMS;
    CHECK_TAKEN(config, divvy_partitioner_create(&p, client, used), divvy_partitioner_destroy(p));
    CHECK(divvy_testing_run(ensemble, 20000) > 0);
    CHECK(divvy_partitioner_state(p) == DIVVY_ACQUIRED);
    for (int i = 0; i < ITEMS; i++) CHECK(divvy_partitioner_owns(p, items[i]) == 1);
    divvy_partitioner_destroy(p);
}

/* kazoo's preset, which has a macro and a function of its own. */
static void check_kazoo(divvy_client *client, int by_macro) {
    divvy_partitioner *p;
    CONFIG(divvy_partitioner_config, config, DIVVY_PARTITIONER_CONFIG_KAZOO, divvy_partitioner_config_init_kazoo,
           by_macro);
    config->path = "/kazoo";
    config->items = items;
    config->item_count = ITEMS;
    CHECK_TAKEN(config, divvy_partitioner_create(&p, client, used), divvy_partitioner_destroy(p));
    divvy_partitioner_destroy(p);
}

static void check_lock(divvy_client *client, int by_macro) {
    divvy_lock *lock;
    CONFIG(divvy_lock_config, config, DIVVY_LOCK_CONFIG_INIT, divvy_lock_config_init, by_macro);
    config->path = "/lock";
    CHECK_TAKEN(config, divvy_lock_create(&lock, client, used), divvy_lock_destroy(lock));
    CHECK(divvy_lock_acquire(lock, 30000) == 0);
    divvy_lock_destroy(lock);
}

static void check_semaphore(divvy_client *client, int by_macro) {
    divvy_semaphore *semaphore;
    CONFIG(divvy_semaphore_config, config, DIVVY_SEMAPHORE_CONFIG_INIT, divvy_semaphore_config_init, by_macro);
    config->path = "/semaphore";
    CHECK_TAKEN(config, divvy_semaphore_create(&semaphore, client, used), divvy_semaphore_destroy(semaphore));
    CHECK(divvy_semaphore_acquire(semaphore, 30000) == 0);
    divvy_semaphore_destroy(semaphore);
}

static void check_election(divvy_testing_ensemble *ensemble, divvy_client *client, int by_macro) {
    divvy_election *election;
    CONFIG(divvy_election_config, config, DIVVY_ELECTION_CONFIG_INIT, divvy_election_config_init, by_macro);
    config->path = "/election";
    CHECK_TAKEN(config, divvy_election_create(&election, client, used), divvy_election_destroy(election));
    CHECK(divvy_election_stand(election) == 0);
    CHECK(divvy_testing_run(ensemble, 5000) > 0);
    CHECK(divvy_election_leads(election) == 1);
    divvy_election_destroy(election);
}

static void check_registry(divvy_client *client, int by_macro) {
    divvy_registry *registry;
    cJSON *services;
    CONFIG(divvy_registry_config, config, DIVVY_REGISTRY_CONFIG_INIT, divvy_registry_config_init, by_macro);
    CHECK_TAKEN(config, divvy_registry_open(&registry, client, used), divvy_registry_close(registry));
    CHECK(divvy_registry_healthy_services(registry, "worker", &services, 30000) == 0);
    cJSON_Delete(services);
    divvy_registry_close(registry);
}

static int work(divvy_job *job, void *user) {
    (void)user;
    return divvy_job_wait(job, -1) < 0;
}

static void check_workers(divvy_client *client, int by_macro) {
    divvy_workers *workers;
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    CONFIG(divvy_workers_config, config, DIVVY_WORKERS_CONFIG_INIT, divvy_workers_config_init, by_macro);
    pool.path = "/workers";
    pool.items = items;
    pool.item_count = ITEMS;
    config->pool = &pool;
    config->worker = work;
    CHECK_TAKEN(config, divvy_workers_create(&workers, client, used), divvy_workers_destroy(workers));
    CHECK(divvy_partitioner_wait_for_acquire(divvy_workers_partitioner(workers), 30000) == 0);
    divvy_workers_destroy(workers);
}

/* As many figures as the caller's header has are written, and those that only a newer header has are zero. */
static void check_stats(const divvy_client *client) {
    enum { OLDER_BYTES = offsetof(divvy_stats, watches) };
    divvy_stats all;
    char *older = end_of_memory(OLDER_BYTES), *longer = end_of_memory(NEWER_BYTES);
    CHECK(divvy_client_stats(client, &all, sizeof all) == 0 && all.connects > 0);
    CHECK(divvy_client_stats(client, (divvy_stats *)(void *)older, OLDER_BYTES) == 0);
    CHECK(memcmp(older, &all, OLDER_BYTES) == 0);
    CHECK(divvy_client_stats(client, (divvy_stats *)(void *)longer, NEWER_BYTES) == 0);
    CHECK(memcmp(longer, &all, sizeof all) == 0);
    for (size_t i = sizeof all; i < NEWER_BYTES; i++) CHECK(longer[i] == 0);
    CHECK(divvy_client_stats(client, &all, 0) == DIVVY_EINVAL);
}

static void check_sticky(int by_macro) {
    const divvy_member members[] = {{"one", 1000, NULL}};
    uint32_t owners[ITEMS];
    CONFIG(divvy_sticky_options, options, DIVVY_STICKY_OPTIONS_INIT, divvy_sticky_options_init, by_macro);
    CHECK_TAKEN(options, divvy_assign_sticky(members, 1, items, ITEMS, NULL, used, owners), (void)0);
    for (int i = 0; i < ITEMS; i++) CHECK(owners[i] == 0);
}

static void run(int by_macro) {
    divvy_testing_ensemble *ensemble;
    CONFIG(divvy_testing_config, config, DIVVY_TESTING_CONFIG_INIT, divvy_testing_config_init, by_macro);
    CHECK_TAKEN(config, divvy_testing_ensemble_create(&ensemble, used), divvy_testing_ensemble_destroy(ensemble));
    divvy_client *client = check_client(ensemble, by_macro);
    check_partitioner(ensemble, client, by_macro);
    check_kazoo(client, by_macro);
    check_lock(client, by_macro);
    check_semaphore(client, by_macro);
    check_election(ensemble, client, by_macro);
    check_registry(client, by_macro);
    check_workers(client, by_macro);
    check_stats(client);
    check_sticky(by_macro);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}

int main(void) {
    run(1);
    run(0);
    puts(divvy_version());
    return 0;
}
