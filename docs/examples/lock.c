/* One at a time: a job that only one process may run, under a lock. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, then kill one with SIGKILL while it works. A kazoo process that uses
 * Lock("/example-lock") stands in the same queue.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     lock 127.0.0.1:2181 /example-lock
 *
 * The job runs in steps. Before each of them the program asks whether it still holds the lock, which costs nothing, and
 * with each it shows its token to what it works on: the storage here keeps the greatest token it has seen and refuses
 * smaller ones, so that even a step that was held up for an hour on its way there can do no harm.
 */
#include <divvy/divvy.h>
#include <stdio.h>
#include <unistd.h>

enum { STEPS = 5, STEP_US = 200000, PATIENCE_MS = 60000 };

static int fail(const char *what, const char *why) {
    fprintf(stderr, "lock: %s: %s\n", what, why);
    return 1;
}

/* Stands for the protected resource: in a real program a database row with a column for the token, for example. */
static int store(int64_t token, int step) {
    static int64_t greatest;
    if (token < greatest) return -1; /* an owner of earlier times */
    greatest = token;
    printf("step %d\n", step);
    return 0;
}

/* Comes at any time, on the client's callback thread. A program with long steps would interrupt them here. */
static void on_lost(divvy_lock *lock, void *user) {
    (void)lock, (void)user;
    printf("lost\n");
}

/* 0 when each step began while the lock was held. */
static int run_job(const divvy_lock *lock) {
    for (int step = 1; step <= STEPS; step++) {
        int64_t token = divvy_lock_token(lock); /* 0: it is lost */
        if (!token || store(token, step) != 0) return -1;
        usleep(STEP_US);
    }
    return 0;
}

static int run(divvy_client *client, const char *path) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = path;
    config.on_lost = on_lost;
    divvy_lock *lock;
    if (divvy_lock_create(&lock, client, &config) != 0) return fail("no lock", divvy_client_error(client));
    int status = 0;
    if (divvy_lock_acquire(lock, PATIENCE_MS) != 0) {
        status = fail("not acquired", divvy_client_error(client));
    } else {
        printf("acquired\n");
        int done = run_job(lock) == 0;
        printf("releasing\n"); /* Said before: the next one may say "acquired" before this call returns. */
        /* DIVVY_ENOTHELD: it was lost, in the last step maybe, and there is nothing to release. */
        if (divvy_lock_release(lock) != 0 || !done)
            status = fail("the job", "the lock was lost on the way; somebody else will do it");
    }
    divvy_lock_destroy(lock);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: lock HOSTS PATH\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = run(client, argv[2]);
    divvy_client_close(client);
    return status;
}
