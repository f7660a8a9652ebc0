/* The loop that never stops work which need not stop. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     incremental_loop 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * When a member joins or leaves, only the items that have to move are revoked. Everything else stays ours all along,
 * and this loop goes on with it: in every state but FAILURE it works on what it owns.
 */
#include <divvy/divvy.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t stopping;

static int fail(const char *what, const char *why) {
    fprintf(stderr, "incremental_loop: %s: %s\n", what, why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

/* Rare and worth a line in a log: members that disagree about the items, a share that does not fit, and so on. */
static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)code, (void)user;
    fprintf(stderr, "incremental_loop: warning: %s\n", message);
}

/* A piece of work. The token is larger than that of every former owner of this item: a database that remembers the
 * largest one it saw can refuse a process that was too slow to notice that the item is no longer its own. */
static void work_a_little_on(const char *item, int64_t token) {
    (void)item, (void)token;
}

/* Prints the items that are still ours, after each change. */
static void print_owned(const divvy_partition *mine) {
    printf("owned:");
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        if (!divvy_partition_revoked(mine, i)) printf(" %s", divvy_partition_item(mine, i));
    printf("\n");
}

/* The loop. 0 when we were asked to stop, 1 when the partitioner has failed. */
static int run(divvy_partitioner *p) {
    uint64_t printed_generation = 0;
    while (!stopping) {
        uint64_t state_id = divvy_partitioner_state_id(p);
        divvy_partition_state state = divvy_partitioner_state(p);
        if (state == DIVVY_FAILURE) {
            /* Final. A program that shall go on makes a new client and a new partitioner. */
            char reason[512];
            divvy_partitioner_failure(p, reason, sizeof reason);
            return fail("the partitioner has failed", reason);
        }
        divvy_partition *mine = divvy_partitioner_partition(p); /* NULL without memory, which counts as empty. */
        if (divvy_partition_generation(mine) != printed_generation) print_owned(mine);
        printed_generation = divvy_partition_generation(mine);

        if (state == DIVVY_RELEASE) {
            /* Some items are for others now. We work in this thread only, so nothing is under way on them at this
             * point. Programs with threads have more to do here, on what is lost too: thread_pool.c. */
            for (size_t i = 0; i < divvy_partition_count(mine); i++)
                if (divvy_partition_revoked(mine, i)) printf("stopped: %s\n", divvy_partition_item(mine, i));
            /* By the number, so that no later RELEASE is confirmed whose items we have not looked at. If there is one
             * by now, this call does nothing, and the next round sees it. */
            divvy_partitioner_release_set_id(p, state_id);
        }
        for (size_t i = 0; i < divvy_partition_count(mine); i++) {
            const char *item = divvy_partition_item(mine, i);
            /* The snapshot is a moment old. This is the cheap look at the present, before each piece of work. */
            if (divvy_partitioner_owns(p, item)) work_a_little_on(item, divvy_partition_token(mine, i));
        }
        divvy_partition_unref(mine);
        /* A pause, so that this example does not spin. It ends early when the state changes. */
        divvy_partitioner_wait_change(p, state_id, 50);
    }
    return 0;
}

/* Joins the pool, works, leaves. The exit status. */
static int take_part(divvy_client *client, const char *path, char **items, int item_count) {
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    /* From here on there is something to leave in an orderly way. Before, a signal could simply end us. */
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = (const char *const *)items; /* The same names in every member, in any order. */
    config.item_count = (size_t)item_count;
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
        fprintf(stderr, "usage: incremental_loop HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    config.on_warning = on_warning;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(client, argv[2], &argv[3], argc - 3);
    divvy_client_close(client);
    return status;
}
