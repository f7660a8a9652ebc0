/* docs/guide.md, the whole program: a thread for each queue that is ours. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"}; /* the same in every process */

static int complain(const char *why) {
    fprintf(stderr, "work: %s\n", why);
    return 1;
}

static int work(divvy_job *job, void *user) {
    (void)user;
    while (divvy_job_owns(job)) { /* before each piece of work: it sends nothing */
        printf("%s %" PRId64 "\n", divvy_job_item(job), divvy_job_token(job));
        divvy_job_wait(job, 1000);
    }
    return 0;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    divvy_client_config servers = DIVVY_CLIENT_CONFIG_INIT; /* $DIVVY_CONNECT and $DIVVY_ENSEMBLE_TICK_MS count */
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = "/guide";
    pool.items = queues;
    pool.item_count = sizeof queues / sizeof *queues;
    pool.on_session_loss = DIVVY_REJOIN;
    divvy_workers_config config = DIVVY_WORKERS_CONFIG_INIT;
    config.pool = &pool;
    config.worker = work;

    divvy_client *client;
    divvy_workers *workers = NULL;
    if (divvy_client_open(&client, &servers) != 0) return complain(divvy_client_error(NULL));
    int error = divvy_client_wait_connected(client, 10000); /* later it finds the servers again by itself */
    if (!error) error = divvy_workers_create(&workers, client, &config);
    if (!error) error = divvy_workers_run(workers); /* until SIGTERM or ^C */
    if (error) complain(divvy_client_error(client));
    divvy_workers_destroy(workers);
    divvy_client_close(client);
    return error != 0;
}
