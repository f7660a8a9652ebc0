/* docs/guide.md, step 4: callbacks instead of looking again and again. SPDX-License-Identifier: Apache-2.0 */
#include <divvy/divvy.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"};

static int complain(const char *why) {
    fprintf(stderr, "callbacks: %s\n", why);
    return 1;
}

static void print_items(const char *what, const char *const *items, size_t count) {
    if (count == 0) return;
    printf("%s:", what);
    for (size_t i = 0; i < count; i++) printf(" %s", items[i]);
    printf("\n");
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    print_items("lost", event->lost, event->lost_count); /* in this order: lost, gained, revoked */
    print_items("gained", event->gained, event->gained_count);
    print_items("revoked", event->revoked, event->revoked_count);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    printf("state: %s\n", divvy_partition_state_name(to));
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p); /* no work is under way here */
    if (to == DIVVY_FAILURE) kill(getpid(), SIGTERM);          /* the end, which main() waits for */
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    fprintf(stderr, "callbacks: warning %s: %s\n", divvy_warning_name(code), message);
}

static int take_part(divvy_client *client, const sigset_t *signals) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/guide";
    config.items = queues;
    config.item_count = sizeof queues / sizeof *queues;
    config.on_items = on_items;
    config.on_state = on_state;
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0) return complain(divvy_client_error(client));
    int number;
    sigwait(signals, &number); /* all else happens in the callbacks, on a thread of the client's */
    char reason[512];
    int status = divvy_partitioner_failure(p, reason, sizeof reason) != 0 ? complain(reason) : 0;
    divvy_partitioner_finish(p, 5000);
    divvy_partitioner_destroy(p);
    return status;
}

int main(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.on_warning = on_warning;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return complain(divvy_client_error(NULL));
    int status = take_part(client, &signals);
    divvy_client_close(client);
    return status;
}
