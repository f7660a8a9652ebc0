/* A process that takes one lock again and again, for test_steps.py. SPDX-License-Identifier: Apache-2.0
 *
 *     steps_member HOSTS PATH MODE SEED
 *
 * MODE is plain, read or write. Acquires for a random time at most, holds for a random time, releases, until SIGTERM.
 * Writes its steps (log_steps) to its output, each line whole. */
#include <divvy/divvy.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SESSION_MS = 2000, HOLD_MAX_MS = 60, WAIT_MAX_MS = 400, REST_MAX_MS = 20 };

static volatile sig_atomic_t ended;

static void on_signal(int number) {
    (void)number;
    ended = 1;
}

static void on_log(int level, const char *message, void *user) {
    (void)level, (void)user;
    if (strncmp(message, "step ", 5) == 0) printf("%s\n", message + 5);
}

static void rest(int ms_max) {
    long ms = rand() % (ms_max + 1);
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

static int mode_of(const char *word) {
    return strcmp(word, "read") == 0 ? DIVVY_READ : strcmp(word, "write") == 0 ? DIVVY_WRITE : DIVVY_EXCLUSIVE;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: steps_member HOSTS PATH MODE SEED\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGTERM, on_signal);
    srand((unsigned)atoi(argv[4]));
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    divvy_client *client;
    divvy_lock *lock;
    config.hosts = argv[1];
    config.session_timeout_ms = SESSION_MS;
    config.on_log = on_log;
    config.log_steps = 1;
    lock_config.path = argv[2];
    lock_config.mode = mode_of(argv[3]);
    int error = divvy_client_open(&client, &config);
    if (!error) error = divvy_lock_create(&lock, client, &lock_config);
    while (!error && !ended) {
        int result = divvy_lock_acquire(lock, rand() % (WAIT_MAX_MS + 1));
        if (result == 0) rest(HOLD_MAX_MS);
        if (result == 0) divvy_lock_release(lock);
        rest(REST_MAX_MS);
    }
    if (error) fprintf(stderr, "steps_member: %s\n", divvy_strerror(error));
    else {
        divvy_lock_destroy(lock);
        divvy_client_close(client);
    }
    return error != 0;
}
