/* docs/guide.md, "Balance by load": a member that tells loads of items. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { QUEUES = 4 };

static const char *const queues[QUEUES] = {"alpha", "beta", "gamma", "delta"};
static unsigned long requests[QUEUES]; /* that were done, for each queue */
static volatile sig_atomic_t stopping;

static int complain(const char *why) {
    fprintf(stderr, "loads: %s\n", why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

static void work_on(const char *queue) {
    for (size_t i = 0; i < QUEUES; i++)
        if (strcmp(queues[i], queue) == 0) requests[i]++; /* a piece of work that takes a moment */
}

/* Tells what was measured since the last time. */
static void tell_loads(divvy_partitioner *p, double seconds) {
    for (size_t i = 0; i < QUEUES; i++) {
        if (divvy_partitioner_owns(p, queues[i])) divvy_partitioner_set_load(p, queues[i], requests[i] / seconds);
        requests[i] = 0;
    }
}

static int run(divvy_partitioner *p) {
    time_t told_at = time(NULL);
    while (!stopping) {
        uint64_t state_id = divvy_partitioner_state_id(p);
        divvy_partition_state state = divvy_partitioner_state(p);
        if (state == DIVVY_FAILURE) return complain("the session is lost");
        if (state == DIVVY_RELEASE) divvy_partitioner_release_set_id(p, state_id);
        for (size_t i = 0; i < QUEUES; i++)
            if (divvy_partitioner_owns(p, queues[i])) work_on(queues[i]);
        time_t now = time(NULL);
        if (now >= told_at + 10) {
            tell_loads(p, difftime(now, told_at));
            told_at = now;
        }
        divvy_partitioner_wait_change(p, state_id, 100);
    }
    return 0;
}

static int take_part(divvy_client *client) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/guide";
    config.items = queues;
    config.item_count = QUEUES;
    config.load_unit = "req/s"; /* the same in all members */
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
    divvy_client *client;
    if (divvy_client_open(&client, NULL) != 0) return complain(divvy_client_error(NULL));
    int status = take_part(client);
    divvy_client_close(client);
    return status;
}
