/* docs/guide.md, "Many keys, few items": a member whose items are buckets of tenants. SPDX-License-Identifier:
 * Apache-2.0 */
#include <divvy/divvy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 16 }; /* the same in every process */

static const char *const tenants[] = {"anna", "bert", "carla", "dora", "emil", "frida"}; /* rows of your own table */

static int complain(const char *why) {
    fprintf(stderr, "buckets: %s\n", why);
    return 1;
}

static int work(divvy_job *job, void *user) {
    (void)user;
    unsigned bucket = (unsigned)atoi(divvy_job_item(job));
    while (divvy_job_owns(job)) {
        for (size_t t = 0; t < sizeof tenants / sizeof *tenants; t++) {
            if (divvy_bucket(tenants[t], strlen(tenants[t]), BUCKETS) == bucket) printf("%s %u\n", tenants[t], bucket);
        }
        divvy_job_wait(job, 1000);
    }
    return 0;
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    char names[BUCKETS][12];
    const char *buckets[BUCKETS];
    for (int b = 0; b < BUCKETS; b++) {
        snprintf(names[b], sizeof names[b], "%d", b);
        buckets[b] = names[b];
    }
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = "/tenants";
    pool.items = buckets;
    pool.item_count = BUCKETS;
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
