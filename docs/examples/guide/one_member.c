/* docs/guide.md, step 2: a pool of one. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <inttypes.h>
#include <stdio.h>

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"};

static int complain(const char *why) {
    fprintf(stderr, "one_member: %s\n", why);
    return 1;
}

static void print_share(divvy_partitioner *p) {
    divvy_partition *mine = divvy_partitioner_partition(p);
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        printf("%s, token %" PRId64 "\n", divvy_partition_item(mine, i), divvy_partition_token(mine, i));
    divvy_partition_unref(mine);
}

static int take_part(divvy_client *client) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/guide";
    config.items = queues;
    config.item_count = sizeof queues / sizeof *queues;
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0) return complain(divvy_client_error(client));

    int error = divvy_partitioner_wait_for_acquire(p, 30000);
    if (error) complain(divvy_client_error(client));
    else print_share(p);

    divvy_partitioner_finish(p, 5000); /* others may have the queues at once */
    divvy_partitioner_destroy(p);
    return error != 0;
}

int main(void) {
    divvy_client *client;
    if (divvy_client_open(&client, NULL) != 0) return complain(divvy_client_error(NULL));
    int status = take_part(client);
    divvy_client_close(client);
    return status;
}
