/* divvy inside an epoll(7) loop: manual mode, all callbacks in your thread. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     epoll_loop 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * Without arguments it takes the servers from $DIVVY_CONNECT and ends by itself after a few seconds.
 *
 * Three rules make it work in any loop (libuv: uv_poll_t and a uv_timer_t; libevent: EV_READ with a timeout):
 *  1. Wait for divvy_client_fd() to be readable; it stays the same for the life of the client.
 *  2. Wait no longer than divvy_client_next_deadline(), asked for after the last divvy call before waiting.
 *  3. When either happens, call divvy_client_process(client, 0). Callbacks run inside it, and nowhere else.
 *
 * When the call does not come in time, the session is lost, and with it everything that is owned. So nothing in the
 * loop may take long: no piece of work, and no wait for the end of a thread. epoll_threads.c is a loop with threads.
 */
#include <divvy/divvy.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* The source of an event of the loop. A larger program would keep a pointer to a handler there. */
enum { OF_DIVVY, OF_SIGNALS, OF_WORK, SOURCES };

static int fail(const char *what, const char *why) {
    fprintf(stderr, "epoll_loop: %s: %s\n", what, why);
    return 1;
}

static void print_list(const char *what, const char *const *items, size_t count) {
    if (count == 0) return;
    printf("%s:", what);
    for (size_t i = 0; i < count; i++) printf(" %s", items[i]);
    printf("\n");
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    (void)p, (void)user;
    print_list("lost", event->lost, event->lost_count);
    print_list("gained", event->gained, event->gained_count);
    print_list("revoked", event->revoked, event->revoked_count);
}

/* All work is done in this thread, in on_work() below, so none is under way now and the items can be given back. */
static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from, (void)user;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(p);
}

/* A slice of work on everything that is ours. */
static void on_work(divvy_partitioner *p, int timer) {
    uint64_t expirations;
    if (read(timer, &expirations, sizeof expirations) < 0) return;
    divvy_partition *mine = divvy_partitioner_partition(p);
    for (size_t i = 0; i < divvy_partition_count(mine); i++) {
        if (!divvy_partitioner_owns(p, divvy_partition_item(mine, i))) continue;
        /* ... a piece of work on this item ... */
    }
    divvy_partition_unref(mine);
}

static int add(int loop, int fd, uint32_t source) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

/* The loop. 0 when a signal asked us to stop, 1 when divvy cannot go on. */
static int run(int loop, divvy_client *client, divvy_partitioner *p, int timer) {
    struct epoll_event events[SOURCES];
    char reason[512];
    for (;;) {
        int64_t wait_ms = divvy_client_next_deadline(client); /* -1 to both sides: no deadline */
        int count = epoll_wait(loop, events, SOURCES, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
        /* The client knows itself what is due, on its descriptor or by its deadline. */
        if (divvy_client_process(client, 0) < 0) return fail("cannot go on", divvy_client_error(client));
        if (divvy_partitioner_failure(p, reason, sizeof reason) != 0) return fail("failed", reason);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u32 == OF_SIGNALS) return 0;
            if (events[i].data.u32 == OF_WORK) on_work(p, timer);
        }
    }
}

/* A descriptor for the signals that end us, and one for a timer of 100 ms, both in the loop. 0, or -1 as errno says. */
static int add_sources(int loop, int *signals, int *timer) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGALRM);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct itimerspec pace = {{0, 100000000}, {0, 100000000}};
    *signals = signalfd(-1, &set, SFD_CLOEXEC);
    *timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (*signals < 0 || timerfd_settime(*timer, 0, &pace, NULL) != 0) return -1;
    return add(loop, *signals, OF_SIGNALS) != 0 || add(loop, *timer, OF_WORK) != 0 ? -1 : 0;
}

/* Joins the pool, works, leaves. The exit status. */
static int take_part(int loop, divvy_client *client, const char *path, const char *const *items, int item_count) {
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    int signals, timer;
    if (add(loop, divvy_client_fd(client), OF_DIVVY) != 0 || add_sources(loop, &signals, &timer) != 0)
        return fail("no descriptor", strerror(errno));
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = items;
    config.item_count = (size_t)item_count;
    config.on_items = on_items;
    config.on_state = on_state;
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int status = run(loop, client, p, timer);
    if (status == 0 && divvy_partitioner_finish(p, 5000) != 0)
        status = fail("could not leave in an orderly way", divvy_client_error(client));
    divvy_partitioner_destroy(p);
    close(timer);
    close(signals);
    return status;
}

int main(int argc, char **argv) {
    static const char *const some_items[] = {"alpha", "beta", "gamma", "delta"};
    const char *path = "/example", *const *items = some_items;
    int item_count = 4;
    if (argc == 2 || argc == 3) {
        fprintf(stderr, "usage: epoll_loop HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT; /* hosts NULL: $DIVVY_CONNECT */
    config.manual = 1;
    if (argc > 3) {
        config.hosts = argv[1];
        path = argv[2];
        items = (const char *const *)&argv[3];
        item_count = argc - 3;
    } else {
        alarm(5);
    }
    int loop = epoll_create1(EPOLL_CLOEXEC);
    if (loop < 0) return fail("no loop", strerror(errno));
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(loop, client, path, items, item_count);
    divvy_client_close(client);
    close(loop);
    return status;
}
