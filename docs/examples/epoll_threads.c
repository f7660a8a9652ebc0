/* divvy inside an epoll(7) loop, with a thread for each item that is ours. SPDX-License-Identifier: Apache-2.0
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     epoll_threads 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * In manual mode the session lives by divvy_client_process() alone. When the call does not come in time, the session is
 * lost, and with it everything that is owned, however well the threads do their work. So the loop goes on up to the end
 * of the last thread, at a graceful stop too: it joins no thread that may still work. A thread that has ended says so
 * by an eventfd. A piece of work takes its time, and nothing interrupts it: here it is a pause of $PIECE_MS.
 *
 * epoll_loop.c shows manual mode without threads; thread_pool.c has the rules for threads.
 */
#include <divvy/divvy.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* Work on one item, in a thread of its own. Only the loop makes and removes jobs. */
typedef struct job {
    struct job *next;
    int64_t token;        /* the item was gained with this one */
    atomic_int stopped;   /* it begins no further piece */
    atomic_int has_ended; /* its thread does nothing more */
    pthread_t thread;
    char item[];
} job;

static divvy_client *client;
static divvy_partitioner *partitioner;
static job *jobs;
static int loop = -1, signals = -1, ends = -1;

static int fail(const char *what, const char *why) {
    fprintf(stderr, "epoll_threads: %s: %s\n", what, why);
    return 1;
}

/* Returns a number from the environment. */
static int64_t setting(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* ---- a job's thread ---- */

/* Tells whether the item is still locked for us under this token. A revoked item is: until RELEASE is confirmed. */
static int is_still_locked(const job *j) {
    divvy_partition *mine = divvy_partitioner_partition(partitioner);
    int found = 0;
    for (size_t i = 0; i < divvy_partition_count(mine) && !found; i++)
        found = divvy_partition_token(mine, i) == j->token && strcmp(divvy_partition_item(mine, i), j->item) == 0;
    divvy_partition_unref(mine);
    return found;
}

static void do_piece(const job *j) {
    int64_t ms = setting("PIECE_MS", 200);
    struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    printf("begin %s %lld\n", j->item, (long long)j->token);
    nanosleep(&pause, NULL);
    printf("%s %s %lld\n", is_still_locked(j) ? "done" : "dropped", j->item, (long long)j->token);
}

static void *run_job(void *argument) {
    job *j = argument;
    uint64_t one = 1;
    while (!atomic_load(&j->stopped) && divvy_partitioner_owns_token(partitioner, j->item, j->token)) do_piece(j);
    atomic_store(&j->has_ended, 1);
    if (write(ends, &one, sizeof one) < 0) abort(); /* The counter cannot be full. */
    return NULL;
}

/* ---- jobs, in the loop's thread ---- */

static void start_job(const char *item, int64_t token) {
    job *j = calloc(1, sizeof *j + strlen(item) + 1);
    if (!j) return; /* The next round tries again. */
    strcpy(j->item, item);
    j->token = token;
    if (pthread_create(&j->thread, NULL, run_job, j) != 0) {
        free(j);
        return;
    }
    j->next = jobs;
    jobs = j;
}

static int has_job(const char *item) {
    for (const job *j = jobs; j; j = j->next)
        if (strcmp(j->item, item) == 0) return 1;
    return 0;
}

/* Stops the jobs that are not ours under their token, or all, and removes those that have ended. Returns how many of
 * them still work. */
static int stop_jobs(int all) {
    int at_work = 0;
    for (job **at = &jobs; *at;) {
        job *j = *at;
        if (all || !divvy_partitioner_owns_token(partitioner, j->item, j->token)) atomic_store(&j->stopped, 1);
        if (atomic_load(&j->has_ended)) {
            pthread_join(j->thread, NULL); /* It returns at once. */
            *at = j->next;
            free(j);
            continue;
        }
        at_work += atomic_load(&j->stopped);
        at = &j->next;
    }
    return at_work;
}

static void print_owned(const divvy_partition *mine) {
    printf("owned:");
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        if (!divvy_partition_revoked(mine, i)) printf(" %s", divvy_partition_item(mine, i));
    printf("\n");
}

/* Lets the jobs follow what is ours. The number of the state is read first, so that no RELEASE is confirmed that comes
 * after the look at the jobs. Returns how many jobs that were stopped still work. */
static int follow(int stopping) {
    static uint64_t printed_generation;
    uint64_t state_id = divvy_partitioner_state_id(partitioner);
    divvy_partition_state state = divvy_partitioner_state(partitioner);
    int at_work = stop_jobs(stopping);
    divvy_partition *mine = divvy_partitioner_partition(partitioner);
    if (divvy_partition_generation(mine) != printed_generation) print_owned(mine);
    printed_generation = divvy_partition_generation(mine);
    for (size_t i = 0; i < divvy_partition_count(mine) && !stopping; i++) {
        const char *item = divvy_partition_item(mine, i);
        if (!divvy_partition_revoked(mine, i) && !has_job(item)) start_job(item, divvy_partition_token(mine, i));
    }
    divvy_partition_unref(mine);
    if (state == DIVVY_RELEASE && at_work == 0) divvy_partitioner_release_set_id(partitioner, state_id);
    return at_work;
}

/* ---- the loop ---- */

/* Empties a descriptor that has become readable. Returns whether it was the one of the signals. */
static int drain(int fd) {
    char bytes[sizeof(struct signalfd_siginfo)];
    if (fd != divvy_client_fd(client) && read(fd, bytes, sizeof bytes) < 0) return 0;
    return fd == signals;
}

/* 0 when we were asked to stop, 1 when divvy cannot go on. Either way no job is left. */
static int run(void) {
    struct epoll_event events[3];
    char reason[512];
    int stopping = 0, status = 0;
    for (;;) {
        int64_t wait_ms = divvy_client_next_deadline(client); /* -1 to both sides: no deadline */
        int count = epoll_wait(loop, events, 3, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
        /* In each round, whatever it was that woke us: this is what keeps the session alive while jobs end. */
        if (divvy_client_process(client, 0) < 0 && !status) status = fail("cannot go on", divvy_client_error(client));
        if (divvy_partitioner_failure(partitioner, reason, sizeof reason) != 0 && !status)
            status = fail("failed", reason);
        for (int i = 0; i < count; i++) stopping |= drain(events[i].data.fd);
        stopping |= status;
        if (follow(stopping) == 0 && stopping) return status;
    }
}

static int add(int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 ? -1 : epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

static int add_sources(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, NULL); /* For the threads to come, too. */
    loop = epoll_create1(EPOLL_CLOEXEC);
    signals = signalfd(-1, &set, SFD_CLOEXEC);
    ends = eventfd(0, EFD_CLOEXEC);
    return loop < 0 || add(divvy_client_fd(client)) != 0 || add(signals) != 0 || add(ends) != 0 ? -1 : 0;
}

/* Joins the pool, works, leaves. The exit status. */
static int take_part(const char *path, char **items, int item_count) {
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    if (add_sources() != 0) return fail("no descriptor", strerror(errno));
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = (const char *const *)items; /* The same names in every member, in any order. */
    config.item_count = (size_t)item_count;
    config.on_session_loss = DIVVY_REJOIN; /* After a lost session it goes on, on a new one. */
    if (divvy_partitioner_create(&partitioner, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int status = run();
    /* This drives the loop itself. Nothing may be worked on by now, since it gives the items to others at once. */
    if (status == 0 && divvy_partitioner_finish(partitioner, 5000) != 0)
        status = fail("could not leave in an orderly way", divvy_client_error(client));
    divvy_partitioner_destroy(partitioner);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: epoll_threads HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    config.manual = 1;
    config.session_timeout_ms = setting("SESSION_TIMEOUT_MS", 10000);
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(argv[2], &argv[3], argc - 3);
    divvy_client_close(client);
    return status;
}
