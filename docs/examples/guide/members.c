/* docs/guide.md, step 3: as many members as you start. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <signal.h>
#include <stdio.h>

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"};
static volatile sig_atomic_t stopping;

static int complain(const char *why) {
    fprintf(stderr, "members: %s\n", why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

static void work_on(const char *queue) {
    (void)queue; /* a piece of work that takes a moment */
}

static void print_share(const divvy_partition *mine) {
    printf("owned:");
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        if (!divvy_partition_revoked(mine, i)) printf(" %s", divvy_partition_item(mine, i));
    printf("\n");
}

static int run(divvy_partitioner *p) {
    uint64_t printed = 0;
    while (!stopping) {
        uint64_t state_id = divvy_partitioner_state_id(p); /* first: a later change ends the wait below */
        divvy_partition_state state = divvy_partitioner_state(p);
        if (state == DIVVY_FAILURE) return complain("the session is lost");
        divvy_partition *mine = divvy_partitioner_partition(p);
        if (divvy_partition_generation(mine) != printed) print_share(mine);
        printed = divvy_partition_generation(mine);

        if (state == DIVVY_RELEASE) divvy_partitioner_release_set_id(p, state_id); /* no work is under way here */

        for (size_t i = 0; i < divvy_partition_count(mine); i++)
            if (divvy_partitioner_owns(p, divvy_partition_item(mine, i))) work_on(divvy_partition_item(mine, i));
        divvy_partition_unref(mine);
        divvy_partitioner_wait_change(p, state_id, 100);
    }
    return 0;
}

static int take_part(divvy_client *client) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/guide";
    config.items = queues;
    config.item_count = sizeof queues / sizeof *queues;
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0) return complain(divvy_client_error(client));
    int status = run(p);
    divvy_partitioner_finish(p, 5000);
    divvy_partitioner_destroy(p);
    return status;
}

int main(void) {
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    setvbuf(stdout, NULL, _IOLBF, 0); /* whole lines at once, in a pipe too */
    divvy_client *client;
    if (divvy_client_open(&client, NULL) != 0) return complain(divvy_client_error(NULL));
    int status = take_part(client);
    divvy_client_close(client);
    return status;
}
