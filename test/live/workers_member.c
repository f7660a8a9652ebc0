/* A member with workers, for test_workers_kills.py. SPDX-License-Identifier: Apache-2.0
 *
 *     workers_member HOSTS PATH FOLDER COUNT
 *
 * While it works on an item it has FOLDER/<item> locked by flock(2), which goes with the process, however that ends. An
 * item that is locked already has two workers: then it ends with status 3. Each begin is a line "ITEM PID TOKEN" in
 * FOLDER/record. Some workers fail after a while; those that are told to stop take their time. */
#include <divvy/divvy.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ITEMS_MAX = 64, TWO_WORKERS = 3, FAILS_AFTER_MS = 700, LINGER_MS = 150 };

static const char *folder;
static int record;

static int fail(const char *why) {
    fprintf(stderr, "workers_member: %s\n", why);
    return 1;
}

static int open_in_folder(const char *name, int flags) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open(path, flags | O_CREAT | O_CLOEXEC, 0600);
}

static int work(divvy_job *job, void *user) {
    char line[256];
    (void)user;
    int file = open_in_folder(divvy_job_item(job), O_RDWR);
    if (file < 0) return 1;
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        fprintf(stderr, "workers_member: %s has two workers\n", divvy_job_item(job));
        _exit(TWO_WORKERS);
    }
    int bytes = snprintf(line, sizeof line, "%s %d %lld\n", divvy_job_item(job), (int)getpid(),
                         (long long)divvy_job_token(job));
    if (write(record, line, (size_t)bytes) != bytes) _exit(1);
    int fails = divvy_job_item(job)[strlen(divvy_job_item(job)) - 1] == '0';
    int told = divvy_job_wait(job, fails ? FAILS_AFTER_MS : -1);
    if (told) usleep(LINGER_MS * 1000);
    close(file);
    return told ? 0 : 5;
}

int main(int argc, char **argv) {
    static char names[ITEMS_MAX][16];
    static const char *items[ITEMS_MAX];
    if (argc != 5 || atoi(argv[4]) < 1 || atoi(argv[4]) > ITEMS_MAX) return fail("HOSTS PATH FOLDER COUNT");
    folder = argv[3];
    record = open_in_folder("record", O_WRONLY | O_APPEND);
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = argv[2];
    pool.items = items;
    pool.item_count = (size_t)atoi(argv[4]);
    pool.time_boundary_ms = 200;
    pool.on_session_loss = DIVVY_REJOIN;
    for (unsigned i = 0; i < pool.item_count; i++) {
        snprintf(names[i], sizeof names[i], "item%02u", i);
        items[i] = names[i];
    }
    divvy_workers_config config = DIVVY_WORKERS_CONFIG_INIT;
    config.pool = &pool;
    config.worker = work;
    divvy_client_config servers = DIVVY_CLIENT_CONFIG_INIT;
    servers.hosts = argv[1];
    servers.session_timeout_ms = 2000;
    divvy_client *client;
    divvy_workers *workers;
    if (divvy_client_open(&client, &servers) != 0) return fail(divvy_client_error(NULL));
    int error = divvy_workers_create(&workers, client, &config);
    if (!error) error = divvy_workers_run(workers);
    if (error) fail(divvy_client_error(client));
    divvy_workers_destroy(workers);
    divvy_client_close(client);
    return error != 0;
}
