/* docs/guide.md, "Balance by load": a member whose workers tell loads of items. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <stdio.h>

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"}; /* the same in every process */

static int complain(const char *why) {
    fprintf(stderr, "loads: %s\n", why);
    return 1;
}

/* Serves a queue for a second, in place of your own work. Returns how many requests that were. */
static int serve(divvy_job *job) {
    divvy_job_wait(job, 1000);
    return divvy_job_item(job)[0] == 'a' ? 50 : 5;
}

static int work(divvy_job *job, void *user) {
    (void)user;
    while (divvy_job_owns(job)) {
        int requests = serve(job);
        if (divvy_job_set_load(job, requests) != 0) return 1; /* in a second; it sends nothing */
        printf("%s %d\n", divvy_job_item(job), requests);
    }
    return 0;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = "/guide";
    pool.items = queues;
    pool.item_count = sizeof queues / sizeof *queues;
    pool.load_unit = "req/s"; /* the same in all members */
    divvy_workers_config config = DIVVY_WORKERS_CONFIG_INIT;
    config.pool = &pool;
    config.worker = work;

    divvy_client *client;
    divvy_workers *workers;
    if (divvy_client_open(&client, NULL) != 0) return complain(divvy_client_error(NULL));
    int error = divvy_workers_create(&workers, client, &config);
    if (!error) error = divvy_workers_run(workers); /* until SIGTERM or ^C */
    if (error) complain(divvy_client_error(client));
    divvy_workers_destroy(workers);
    divvy_client_close(client);
    return error != 0;
}
