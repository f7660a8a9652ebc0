/* So many at a time: processes that share a few licences, each with a number. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in four terminals with a limit of 2, then kill one with SIGKILL while it works. A kazoo process that
 * uses Semaphore("/example-semaphore", "me", max_leases=2) counts as one more.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     semaphore 127.0.0.1:2181 /example-semaphore 2
 *
 * The number of the slot says which licence is ours: no two holders have the same one. Before each step of its work the
 * program asks whether it still holds the slot, which costs nothing.
 */
#include <divvy/divvy.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 5, STEP_US = 200000, PATIENCE_MS = 60000 };

static int fail(const char *what, const char *why) {
    fprintf(stderr, "semaphore: %s: %s\n", what, why);
    return 1;
}

/* Comes at any time, on the client's callback thread. A program with long steps would interrupt them here. */
static void on_lost(divvy_semaphore *semaphore, void *user) {
    (void)semaphore, (void)user;
    printf("lost\n");
}

static void show_holders(divvy_semaphore *semaphore) {
    divvy_holders *holders;
    if (divvy_semaphore_holders(semaphore, &holders, PATIENCE_MS) != 0) return;
    for (size_t i = 0; i < divvy_holders_count(holders); i++)
        printf("holder: slot %d, %s, process %" PRId64 ", since %s\n", divvy_holders_slot(holders, i),
               divvy_holders_identifier(holders, i), divvy_holders_pid(holders, i), divvy_holders_time(holders, i));
    divvy_holders_free(holders);
}

/* 0 when each step began while the slot was held. */
static int work(const divvy_semaphore *semaphore) {
    for (int step = 1; step <= STEPS; step++) {
        int licence = divvy_semaphore_slot(semaphore); /* -1: it is lost */
        if (licence < 0) return -1;
        printf("step %d with licence %d\n", step, licence);
        usleep(STEP_US);
    }
    return 0;
}

static int run(divvy_client *client, const char *path, uint32_t limit) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = path;
    config.limit = limit;
    config.on_lost = on_lost;
    divvy_semaphore *semaphore;
    if (divvy_semaphore_create(&semaphore, client, &config) != 0)
        return fail("no semaphore", divvy_client_error(client));
    int status = 0;
    if (divvy_semaphore_acquire(semaphore, PATIENCE_MS) != 0) {
        status = fail("not acquired", divvy_client_error(client));
    } else {
        printf("acquired\n");
        show_holders(semaphore);
        int done = work(semaphore) == 0;
        printf("releasing\n"); /* Said before: the next one may say "acquired" before this call returns. */
        /* DIVVY_ENOTHELD: it was lost, in the last step maybe, and there is nothing to release. */
        if (divvy_semaphore_release(semaphore) != 0 || !done) status = fail("the work", "the slot was lost on the way");
    }
    divvy_semaphore_destroy(semaphore);
    return status;
}

int main(int argc, char **argv) {
    int limit = argc == 4 ? atoi(argv[3]) : 0;
    if (limit <= 0) {
        fprintf(stderr, "usage: semaphore HOSTS PATH LIMIT\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = run(client, argv[2], (uint32_t)limit);
    divvy_client_close(client);
    return status;
}
