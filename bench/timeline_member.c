/* A member of a pool that says what it owns, when: one of timeline.py's. SPDX-License-Identifier: Apache-2.0
 *
 * Lines on stdout: the monotonic clock in seconds, then `+` or `-`, then the numbers of the items that it owns from now
 * on, or no longer; or `acquired`, `release`. It ends by SIGTERM: it gives its items up, and its place in the party. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "divvy/divvy.h"

enum { ITEMS_MAX = 1000000, ITEM_BYTES = 16, FINISH_TIMEOUT_MS = 60000, REJOIN_DELAY_MS = 60000 };

#define ITEM_PREFIX "item-"

static bool *owned; /* of each item; callbacks come one at a time */

_Noreturn static void die(const char *what, const char *why) {
    fprintf(stderr, "bench_timeline_member: %s: %s\n", what, why);
    _exit(1); /* Other threads still run: what exit() tears down they may be using. */
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Prints the items that this member gained (+) or gave up (-). A revoked item stops at once and is lost after its
 * release, but is printed once. */
static void tell(char sign, const char *const *items, size_t count) {
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        unsigned long item = strtoul(items[i] + sizeof ITEM_PREFIX - 1, NULL, 10);
        if (owned[item] == (sign == '+')) continue;
        owned[item] = sign == '+';
        if (!any) printf("%.6f %c", now_s(), sign);
        any = true;
        printf(" %lu", item);
    }
    if (any) putchar('\n');
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    tell('-', event->lost, event->lost_count);
    tell('+', event->gained, event->gained_count);
    tell('-', event->revoked, event->revoked_count);
    fflush(stdout);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    const volatile sig_atomic_t *ending = user;
    (void)from;
    if (to == DIVVY_ACQUIRED) printf("%.6f acquired\n", now_s());
    if (to == DIVVY_RELEASE) printf("%.6f release\n", now_s());
    fflush(stdout);
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
    char why[256];
    if (to == DIVVY_FAILURE && !*ending && divvy_partitioner_failure(p, why, sizeof why) != 0) die("failed", why);
}

static const char **make_items(size_t count) {
    const char **items = (const char **)calloc(count, sizeof *items);
    char(*names)[ITEM_BYTES] = calloc(count, sizeof *names);
    owned = calloc(count, sizeof *owned);
    if (!items || !names || !owned) die("items", "out of memory");
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], ITEM_PREFIX "%06u", (unsigned)i % ITEMS_MAX);
        items[i] = names[i];
    }
    return items;
}

static bool set_rule(divvy_partitioner_config *config, const char *rule) {
    bool fixed = strcmp(rule, "static") == 0, eager = strcmp(rule, "eager") == 0;
    config->static_membership = fixed;
    config->rejoin_delay_ms = fixed ? REJOIN_DELAY_MS : 0;
    config->mode = eager ? DIVVY_EAGER : DIVVY_INCREMENTAL;
    config->assign = strcmp(rule, "rendezvous") == 0 ? DIVVY_ASSIGN_RENDEZVOUS
                     : eager                         ? DIVVY_ASSIGN_ROUND_ROBIN
                                                     : DIVVY_ASSIGN_STICKY;
    return fixed || eager || strcmp(rule, "sticky") == 0 || strcmp(rule, "rendezvous") == 0;
}

int main(int argc, char **argv) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    long count = argc == 8 ? strtol(argv[4], NULL, 10) : 0;
    if (count < 1 || count > ITEMS_MAX || !set_rule(&config, argv[7])) {
        fputs("usage: bench_timeline_member HOSTS PATH IDENTIFIER ITEMS BOUNDARY_MS SESSION_TIMEOUT_MS "
              "sticky|static|rendezvous|eager\n",
              stderr);
        return 2;
    }
    volatile sig_atomic_t ending = 0;
    sigset_t terminated;
    sigemptyset(&terminated);
    sigaddset(&terminated, SIGTERM);
    sigprocmask(SIG_BLOCK, &terminated, NULL);

    divvy_client *client;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.hosts = argv[1];
    client_config.session_timeout_ms = strtol(argv[6], NULL, 10);
    client_config.ensemble_tick_ms = 100; /* as tools/zookeeper-local has it */
    if (divvy_client_open(&client, &client_config) != 0) die("client", divvy_client_error(NULL));
    config.path = argv[2];
    config.identifier = argv[3];
    config.items = make_items((size_t)count);
    config.item_count = (size_t)count;
    config.time_boundary_ms = strtol(argv[5], NULL, 10);
    config.on_state = on_state;
    config.on_items = on_items;
    config.user = (void *)(uintptr_t)&ending;
    divvy_partitioner *partitioner;
    if (divvy_partitioner_create(&partitioner, client, &config) != 0) die("partitioner", divvy_client_error(client));

    int signal_number;
    sigwait(&terminated, &signal_number);
    ending = 1;
    divvy_partitioner_finish(partitioner, FINISH_TIMEOUT_MS);
    divvy_partitioner_destroy(partitioner);
    divvy_client_close(client);
    return 0;
}
