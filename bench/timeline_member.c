/* A member of a pool that says what it owns, when: one of timeline.py's, of pool.py's, and of death_watch.py's.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Lines on stdout: the monotonic clock in seconds, then `+`, `-` or `?`, then the numbers of the items that it owns
 * from now on, has no more to do with, or prepares for; or `acquired`, `release`. Told to prepare for an item, it says
 * so to the library when the warm-up is over. It ends by SIGTERM: it gives its items up, and its place in the party;
 * by SIGUSR1: it leaves, with standby while work goes on; and when another process takes its place. As "mortal" it is
 * no static member, so that nobody waits for its return; as "watched" it has a death watch besides. As "pool" it is
 * "standby" with a death watch, and its items wait for its return for a short time only. */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "divvy/divvy.h"

enum {
    ITEMS_MAX = 1000000,
    ITEM_BYTES = 16,
    END_TIMEOUT_MS = 60000,
    REJOIN_DELAY_MS = 60000,
    POOL_REJOIN_DELAY_MS = 5000,
    TICK_MS = 100, /* as tools/zookeeper-local has it */
    PREPARE_TIMEOUT_MS = 20000,
    LOOK_MS = 5,
    POOL_LOOK_MS = 100
};

#define ITEM_PREFIX "item-"

typedef struct {
    char name[ITEM_BYTES];
    char told;          /* the sign that was printed last, or 0 */
    double prepared_at; /* when its warm-up is over; 0: none goes on */
} work;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards `works` and `preparing_max` */
static work *works;
static size_t preparing_max; /* at most so many of them have a warm-up that goes on */
static size_t work_count;
static double warm_up_s;
static volatile sig_atomic_t ending;

_Noreturn static void die(const char *what, const char *why) {
    fprintf(stderr, "bench_timeline_member: %s: %s\n", what, why);
    _exit(1); /* Other threads still run: what exit() tears down they may be using. */
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Prints the items whose sign is another now. A revoked item stops at once and is lost after its release, but is
 * printed once. */
static void tell(char sign, const char *const *items, size_t count) {
    double now = now_s();
    bool any = false;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < count; i++) {
        unsigned long number = strtoul(items[i] + sizeof ITEM_PREFIX - 1, NULL, 10);
        work *w = &works[number];
        if (w->told == sign) continue;
        w->told = sign;
        w->prepared_at = sign == '?' ? now + warm_up_s : 0;
        preparing_max += sign == '?';
        if (!any) printf("%.6f %c", now, sign);
        any = true;
        printf(" %lu", number);
    }
    pthread_mutex_unlock(&mutex);
    if (any) putchar('\n');
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    tell('-', event->lost, event->lost_count);
    tell('+', event->gained, event->gained_count);
    tell('-', event->revoked, event->revoked_count);
    tell('?', event->prepare, event->prepare_count);
    fflush(stdout);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    if (to == DIVVY_ACQUIRED) printf("%.6f acquired\n", now_s());
    if (to == DIVVY_RELEASE) printf("%.6f release\n", now_s());
    fflush(stdout);
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
    char why[256];
    if (to == DIVVY_FAILURE && !ending && divvy_partitioner_failure(p, why, sizeof why) != 0) die("failed", why);
}

static const char **make_items(void) {
    const char **items = (const char **)calloc(work_count, sizeof *items);
    works = calloc(work_count, sizeof *works);
    if (!items || !works) die("items", "out of memory");
    for (size_t i = 0; i < work_count; i++) {
        snprintf(works[i].name, sizeof works[i].name, ITEM_PREFIX "%06u", (unsigned)i % ITEMS_MAX);
        items[i] = works[i].name;
    }
    return items;
}

static bool set_peer(divvy_partitioner_config *config, const char *peer) {
    bool pool = strcmp(peer, "pool") == 0;
    bool standby = pool || strcmp(peer, "standby") == 0, eager = strcmp(peer, "eager") == 0;
    bool returns = standby || strcmp(peer, "divvy") == 0;
    config->mode = eager ? DIVVY_EAGER : DIVVY_INCREMENTAL;
    config->static_membership = returns;
    if (returns) config->rejoin_delay_ms = pool ? POOL_REJOIN_DELAY_MS : REJOIN_DELAY_MS;
    config->prepare_timeout_ms = standby ? PREPARE_TIMEOUT_MS : 0;
    if (!standby) config->handover_timeout_ms = 0;
    return returns || eager || strcmp(peer, "mortal") == 0 || strcmp(peer, "watched") == 0;
}

/* Says of each item whose warm-up is over that it is prepared for. */
static void say_prepared(divvy_partitioner *p) {
    double now = now_s();
    pthread_mutex_lock(&mutex);
    bool none = preparing_max == 0;
    preparing_max = 0;
    pthread_mutex_unlock(&mutex);
    for (size_t i = 0; i < work_count && !none; i++) {
        pthread_mutex_lock(&mutex);
        bool over = works[i].prepared_at > 0 && works[i].prepared_at <= now;
        if (over) works[i].prepared_at = 0;
        preparing_max += works[i].prepared_at > 0;
        pthread_mutex_unlock(&mutex);
        if (over) divvy_partitioner_prepared(p, works[i].name);
    }
}

/* Returns whether another process has taken all items over. */
static bool is_replaced(divvy_partitioner *p) {
    if (!divvy_partitioner_is_replaced(p)) return false;
    divvy_partition *share = divvy_partitioner_partition(p);
    bool none = divvy_partition_count(share) == 0;
    divvy_partition_unref(share);
    return none;
}

/* Works until a signal comes, and returns it; SIGTERM when another process has come in this one's place. */
static int run(divvy_partitioner *p, const sigset_t *ends, long look_ms) {
    const struct timespec look = {.tv_nsec = look_ms * 1000000L};
    int signal_number;
    while ((signal_number = sigtimedwait(ends, NULL, &look)) < 0) {
        say_prepared(p);
        if (is_replaced(p)) return SIGTERM;
    }
    return signal_number;
}

int main(int argc, char **argv) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    long count = argc == 9 ? strtol(argv[4], NULL, 10) : 0;
    if (count < 1 || count > ITEMS_MAX || !set_peer(&config, argv[8])) {
        fputs("usage: bench_timeline_member HOSTS PATH IDENTIFIER ITEMS BOUNDARY_MS SESSION_TIMEOUT_MS WARM_UP_MS "
              "standby|divvy|eager|mortal|watched|pool\n",
              stderr);
        return 2;
    }
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGUSR1);
    sigprocmask(SIG_BLOCK, &ends, NULL);

    divvy_client *client;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.hosts = argv[1];
    client_config.session_timeout_ms = strtol(argv[6], NULL, 10);
    const char *tick_ms = getenv("DIVVY_ENSEMBLE_TICK_MS");
    client_config.ensemble_tick_ms = tick_ms ? strtol(tick_ms, NULL, 10) : TICK_MS;
    client_config.death_watch = strcmp(argv[8], "watched") == 0 || strcmp(argv[8], "pool") == 0;
    if (divvy_client_open(&client, &client_config) != 0) die("client", divvy_client_error(NULL));
    work_count = (size_t)count;
    warm_up_s = (double)strtol(argv[7], NULL, 10) / 1000;
    config.path = argv[2];
    config.identifier = argv[3];
    config.items = make_items();
    config.item_count = work_count;
    config.time_boundary_ms = strtol(argv[5], NULL, 10);
    config.on_state = on_state;
    config.on_items = on_items;
    divvy_partitioner *partitioner;
    if (divvy_partitioner_create(&partitioner, client, &config) != 0) die("partitioner", divvy_client_error(client));

    bool leaves = run(partitioner, &ends, strcmp(argv[8], "pool") == 0 ? POOL_LOOK_MS : LOOK_MS) == SIGUSR1;
    ending = 1;
    if (leaves) divvy_partitioner_leave(partitioner, DIVVY_LEAVE_WORKING, END_TIMEOUT_MS);
    else divvy_partitioner_finish(partitioner, END_TIMEOUT_MS);
    divvy_partitioner_destroy(partitioner);
    divvy_client_close(client);
    return 0;
}
