/* divvy inside an event loop of your own: manual mode, callbacks, poll(2). SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     callbacks_poll 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * The loop waits for three things at once: divvy, a timer that paces the work, and signals. In manual mode no thread of
 * divvy's calls us: all callbacks run inside divvy_client_process(), and inside calls of ours that wait. So everything
 * here happens in one thread, and nothing needs a lock. The same pattern serves epoll, libuv or libevent.
 */
#include <divvy/divvy.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int fail(const char *what, const char *why) {
    fprintf(stderr, "callbacks_poll: %s: %s\n", what, why);
    return 1;
}

static void print_list(const char *what, const char *const *items, size_t count) {
    if (count == 0) return;
    printf("%s:", what);
    for (size_t i = 0; i < count; i++) printf(" %s", items[i]);
    printf("\n");
}

/* Items came or went. Comes before the on_state that belongs to the same change. */
static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    print_list("lost", event->lost, event->lost_count);
    print_list("gained", event->gained, event->gained_count);
    print_list("revoked", event->revoked, event->revoked_count);
    /* Work on what is lost or revoked has to end before the release in on_state below. A program with work in other
     * threads tells those to stop here, and releases when the last of them has ended: epoll_threads.c. */
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    /* Our work is done in the loop below, in this thread, so none is under way while a callback runs. */
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

/* One round over everything that is ours, each time the timer has run down. */
static void on_timer(divvy_partitioner *p, int timer) {
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) return;
    divvy_partition *mine = divvy_partitioner_partition(p);
    for (size_t i = 0; i < divvy_partition_count(mine); i++) {
        if (!divvy_partitioner_owns(p, divvy_partition_item(mine, i))) continue;
        /* ... a piece of work on this item ... */
    }
    divvy_partition_unref(mine);
}

/* The loop. 0 when a signal asked us to stop, 1 when divvy cannot go on. */
static int run(divvy_client *client, divvy_partitioner *p, int signals, int timer) {
    struct pollfd fds[] = {{divvy_client_fd(client), POLLIN, 0}, {signals, POLLIN, 0}, {timer, POLLIN, 0}};
    char reason[512];
    for (;;) {
        /* Ask again in each round, after the last call to divvy: every call may move the deadline. -1 means "no
         * deadline" to both sides. */
        int64_t wait_ms = divvy_client_next_deadline(client);
        if (poll(fds, 3, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms) < 0) continue;
        /* The client knows itself what is due, on its descriptor or by its deadline. 0: do it, do not wait. */
        if (divvy_client_process(client, 0) < 0) return fail("cannot go on", divvy_client_error(client));
        if (divvy_partitioner_failure(p, reason, sizeof reason) != 0) return fail("failed", reason);
        if (fds[1].revents) return 0;
        if (fds[2].revents) on_timer(p, timer);
    }
}

/* A descriptor for the signals that end us, and one for a timer of 100 ms. 0, or -1 as errno says. */
static int open_descriptors(int *signals, int *timer) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL); /* From here on they come by the descriptor only. */
    struct itimerspec pace = {{0, 100000000}, {0, 100000000}};
    *signals = signalfd(-1, &set, SFD_CLOEXEC);
    *timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    return *signals < 0 || timerfd_settime(*timer, 0, &pace, NULL) != 0 ? -1 : 0;
}

/* Joins the pool, works, leaves. The exit status. */
static int take_part(divvy_client *client, const char *path, char **items, int item_count) {
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    /* From here on there is something to leave in an orderly way. Before, a signal could simply end us. */
    int signals, timer;
    if (open_descriptors(&signals, &timer) != 0) return fail("no descriptor", strerror(errno));

    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = (const char *const *)items; /* The same names in every member, in any order. */
    config.item_count = (size_t)item_count;
    config.on_items = on_items;
    config.on_state = on_state;
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int status = run(client, p, signals, timer);
    /* Were this to fail, no harm is done: the servers delete what is left of us when the session ends. */
    if (status == 0 && divvy_partitioner_finish(p, 5000) != 0)
        status = fail("could not leave in an orderly way", divvy_client_error(client));
    divvy_partitioner_destroy(p);
    close(timer);
    close(signals);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: callbacks_poll HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    config.manual = 1;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(client, argv[2], &argv[3], argc - 3);
    divvy_client_close(client);
    return status;
}
