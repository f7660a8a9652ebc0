/* docs/migrate.md: a member of a pool that is set up as a consumer of Kafka is. It ends at SIGTERM.
 * SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <signal.h>
#include <stdio.h>

static const char *partitions[] = {"orders-0", "orders-1", "orders-2", "orders-3"};

static void print_items(const char *what, const char *const *items, size_t count) {
    if (count == 0) return;
    printf("%s:", what);
    for (size_t i = 0; i < count; i++) printf(" %s", items[i]);
    printf("\n");
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    print_items("lost", event->lost, event->lost_count);
    print_items("gained", event->gained, event->gained_count);
    print_items("revoked", event->revoked, event->revoked_count);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p); /* no work is under way here */
}

static divvy_partitioner *join(divvy_client *client, const char *instance) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT; /* as cooperative-sticky */
    config.path = "/orders-group";                                   /* group.id */
    config.items = partitions;
    config.item_count = sizeof partitions / sizeof *partitions;
    config.identifier = instance; /* group.instance.id */
    config.static_membership = 1;
    config.rejoin_delay_ms = 60000;        /* how long partitions wait for a member that restarts */
    config.on_session_loss = DIVVY_REJOIN; /* as a consumer does that polls on */
    config.on_items = on_items;            /* gained: assigned. revoked: revoked. lost: gone */
    config.on_state = on_state;            /* DIVVY_RELEASE: commit, then divvy_partitioner_release_set() */
    divvy_partitioner *p = NULL;
    return divvy_partitioner_create(&p, client, &config) == 0 ? p : NULL;
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigprocmask(SIG_BLOCK, &ends, NULL); /* before there are threads, which inherit it */
    divvy_client *client;
    if (divvy_client_open(&client, NULL) != 0) {
        fprintf(stderr, "group: %s\n", divvy_client_error(NULL));
        return 1;
    }
    divvy_partitioner *p = join(client, argc > 1 ? argv[1] : "one");
    int number;
    if (p) sigwait(&ends, &number);
    else fprintf(stderr, "group: %s\n", divvy_client_error(client));
    if (p) divvy_partitioner_finish(p, 5000); /* its place stays, as a static consumer's does */
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    return p ? 0 : 1;
}
