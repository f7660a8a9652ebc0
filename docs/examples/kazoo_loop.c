/* kazoo's polling loop, in C. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     kazoo_loop 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * A user of kazoo's SetPartitioner finds here the four states and the loop of its documentation again, and Python
 * processes can be members of the same pool. As there, every change stops all work of all members for a moment.
 * incremental_loop.c is the better loop for a new program: it interrupts only what has to move.
 */
#include <divvy/divvy.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t stopping;

static int fail(const char *what, const char *why) {
    fprintf(stderr, "kazoo_loop: %s: %s\n", what, why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

/* One round over everything that is ours. A real worker would take a message off each queue here. */
static void work(divvy_partitioner *p, uint64_t *printed_generation) {
    /* A snapshot does not change under our feet, whatever happens in the pool while we go through it. */
    divvy_partition *mine = divvy_partitioner_partition(p);
    if (divvy_partition_generation(mine) != *printed_generation) {
        printf("owned:");
        for (size_t i = 0; i < divvy_partition_count(mine); i++) printf(" %s", divvy_partition_item(mine, i));
        printf("\n");
        *printed_generation = divvy_partition_generation(mine);
    }
    for (size_t i = 0; i < divvy_partition_count(mine); i++) {
        /* But what it says may have become untrue since. Asking costs nothing: ask before each piece of work. */
        if (!divvy_partitioner_owns(p, divvy_partition_item(mine, i))) continue;
        /* ... a piece of work on this item ... */
    }
    divvy_partition_unref(mine);
}

/* The loop. 0 when we were asked to stop, 1 when the partitioner has failed. */
static int run(divvy_partitioner *p) {
    uint64_t printed_generation = 0;
    char reason[512];
    while (!stopping) {
        /* The number of the state is read first: should the state change in between, the wait below ends at once. */
        uint64_t state_id = divvy_partitioner_state_id(p);
        switch (divvy_partitioner_state(p)) {
        case DIVVY_FAILURE:
            /* Final. A program that shall go on makes a new client and a new partitioner. */
            divvy_partitioner_failure(p, reason, sizeof reason);
            return fail("the partitioner has failed", reason);
        case DIVVY_RELEASE:
            /* The pool changes. All our work happens in this thread, so nothing is being worked on at this point, and
             * we may let go of everything. With threads of your own, wait here until all have ended. */
            printf("released\n");
            divvy_partitioner_release_set(p);
            break;
        case DIVVY_ACQUIRED:
            work(p, &printed_generation);
            /* A pause, so that this example does not spin. It ends early when the state changes. */
            divvy_partitioner_wait_change(p, state_id, 100);
            break;
        case DIVVY_ALLOCATING:
            /* The others may still have to let go. Not for ever, so that we see a signal soon. */
            divvy_partitioner_wait_for_acquire(p, 100);
            break;
        }
    }
    return 0;
}

/* Joins the pool, works, leaves. The exit status. */
static int take_part(divvy_client *client, const char *path, char **items, int item_count) {
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    /* From here on there is something to leave in an orderly way. Before, a signal could simply end us. */
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_KAZOO;
    config.path = path;
    config.items = (const char *const *)items; /* The same names in every member, in any order. */
    config.item_count = (size_t)item_count;
    config.time_boundary_ms = 500; /* kazoo's 30 s are long to wait for in an example. */
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int status = run(p);
    /* Were this to fail, no harm is done: the servers delete what is left of us when the session ends. */
    if (status == 0 && divvy_partitioner_finish(p, 5000) != 0)
        status = fail("could not leave in an orderly way", divvy_client_error(client));
    divvy_partitioner_destroy(p);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: kazoo_loop HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(client, argv[2], &argv[3], argc - 3);
    divvy_client_close(client);
    return status;
}
