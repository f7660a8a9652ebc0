/* A few threads for the many items that are ours. SPDX-License-Identifier: Apache-2.0
 *
 * With a thread for each item divvy does all of this: workers.c.
 *
 * Try it: run this in two or three terminals, with the same path and the same items, then stop one with Ctrl-C.
 *
 *     export DIVVY_ENSEMBLE_TICK_MS=2000     # the servers' tickTime, or more
 *     thread_pool 127.0.0.1:2181 /example alpha beta gamma delta
 *
 * A piece of work takes its time, and nothing interrupts it: here it is a pause of $PIECE_MS. Three rules make it safe:
 *  1. A worker asks divvy_partitioner_owns_token() before each piece, with the token under which its job began.
 *  2. A job that is not ours under its token gets no further piece: its item was revoked, or lost, or lost and gained
 *     again. RELEASE is confirmed when the last piece of all these jobs has ended, and not before. After the loss of a
 *     session that is every job: the snapshot is empty then, so nothing in it is shown as revoked.
 *  3. divvy_partitioner_finish() gives the items to others at once, so all workers have ended before it is called.
 */
#include <divvy/divvy.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WORKERS = 4 };

static volatile sig_atomic_t stopping;

/* Work on one item, from the time when it became ours to the time when it has to stop. The mutex guards all of it. */
typedef struct job {
    struct job *next;
    int64_t token;
    int busy;    /* a worker is at a piece of it */
    int stopped; /* it gets no further piece */
    char item[];
} job;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;  /* for workers: there may be a job to take, or all is over */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER; /* for the loop: a piece has ended */
static divvy_partitioner *partitioner;
static job *jobs; /* the one that waits longest comes first */
static int over;  /* workers are to end */

static int fail(const char *what, const char *why) {
    fprintf(stderr, "thread_pool: %s: %s\n", what, why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

/* Returns a number from the environment. */
static int64_t setting(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoll(text, NULL, 10) : otherwise;
}

static struct timespec milliseconds(int64_t ms) {
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
}

/* ---- work ---- */

/* Tells whether the item is still locked for us under this token. A revoked item is: until RELEASE is confirmed. */
static int is_still_locked(const char *item, int64_t token) {
    divvy_partition *mine = divvy_partitioner_partition(partitioner);
    int found = 0;
    for (size_t i = 0; i < divvy_partition_count(mine) && !found; i++)
        found = divvy_partition_token(mine, i) == token && strcmp(divvy_partition_item(mine, i), item) == 0;
    divvy_partition_unref(mine);
    return found;
}

/* One piece of work. Its result counts if the item was ours to the end. A database that is shown the token can refuse
 * the result by itself: it is larger than the token of every former owner of the item. */
static void do_piece(const char *item, int64_t token) {
    struct timespec pause = milliseconds(setting("PIECE_MS", 200));
    printf("begin %s %lld\n", item, (long long)token);
    nanosleep(&pause, NULL);
    printf("%s %s %lld\n", is_still_locked(item, token) ? "done" : "dropped", item, (long long)token);
}

static void append(job *j) {
    job **at = &jobs;
    while (*at) at = &(*at)->next;
    j->next = NULL;
    *at = j;
}

/* Takes the job that has waited longest, and puts it behind all others. Returns NULL if there is none. */
static job *take_job(void) {
    for (job **at = &jobs; *at; at = &(*at)->next) {
        job *j = *at;
        if (j->busy || j->stopped) continue;
        *at = j->next;
        append(j);
        j->busy = 1;
        return j;
    }
    return NULL;
}

static void *run_worker(void *unused) {
    (void)unused;
    pthread_mutex_lock(&mutex);
    while (!over) {
        job *j = take_job();
        if (!j) {
            pthread_cond_wait(&work, &mutex);
            continue;
        }
        pthread_mutex_unlock(&mutex); /* A job that is busy is removed by nobody. */
        int ours = divvy_partitioner_owns_token(partitioner, j->item, j->token);
        if (ours) do_piece(j->item, j->token);
        pthread_mutex_lock(&mutex);
        if (!ours) j->stopped = 1;
        j->busy = 0;
        pthread_cond_signal(&ended);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Ends the workers, each after the piece that it is at. The client's own threads keep the session alive during that
 * time. */
static void end_workers(pthread_t *workers, int count) {
    pthread_mutex_lock(&mutex);
    over = 1;
    pthread_cond_broadcast(&work);
    pthread_mutex_unlock(&mutex);
    for (int i = 0; i < count; i++) pthread_join(workers[i], NULL);
    while (jobs) {
        job *j = jobs;
        jobs = j->next;
        free(j);
    }
}

/* ---- the loop ---- */

static int has_job(const char *item) {
    for (const job *j = jobs; j; j = j->next)
        if (strcmp(j->item, item) == 0) return 1;
    return 0;
}

static void add_job(const char *item, int64_t token) {
    job *j = calloc(1, sizeof *j + strlen(item) + 1);
    if (!j) return; /* The next round tries again. */
    strcpy(j->item, item);
    j->token = token;
    append(j);
}

/* Stops the jobs that are not ours under their token, and removes those that have ended. Returns how many of them still
 * work. */
static int stop_jobs(void) {
    int at_work = 0;
    for (job **at = &jobs; *at;) {
        job *j = *at;
        if (!divvy_partitioner_owns_token(partitioner, j->item, j->token)) j->stopped = 1;
        if (j->stopped && !j->busy) {
            *at = j->next;
            free(j);
            continue;
        }
        at_work += j->stopped;
        at = &j->next;
    }
    return at_work;
}

/* Gives the workers what is ours, once for each item: a new job of an item begins when its old one has ended. */
static void start_jobs(const divvy_partition *mine) {
    for (size_t i = 0; i < divvy_partition_count(mine); i++) {
        const char *item = divvy_partition_item(mine, i);
        if (!divvy_partition_revoked(mine, i) && !has_job(item)) add_job(item, divvy_partition_token(mine, i));
    }
    pthread_cond_broadcast(&work);
}

static void print_owned(const divvy_partition *mine) {
    printf("owned:");
    for (size_t i = 0; i < divvy_partition_count(mine); i++)
        if (!divvy_partition_revoked(mine, i)) printf(" %s", divvy_partition_item(mine, i));
    printf("\n");
}

static void wait_for_a_piece(int64_t timeout_ms) {
    struct timespec until, more = milliseconds(timeout_ms);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += more.tv_sec + (until.tv_nsec + more.tv_nsec) / 1000000000;
    until.tv_nsec = (until.tv_nsec + more.tv_nsec) % 1000000000;
    pthread_cond_timedwait(&ended, &mutex, &until);
}

/* One round. The number of the state is read before anything else: should the state change after that, the wait ends at
 * once, and the release below does nothing. */
static void look(uint64_t *printed_generation) {
    uint64_t state_id = divvy_partitioner_state_id(partitioner);
    divvy_partition_state state = divvy_partitioner_state(partitioner);
    divvy_partition *mine = divvy_partitioner_partition(partitioner); /* NULL without memory, which counts as empty. */
    if (divvy_partition_generation(mine) != *printed_generation) print_owned(mine);
    *printed_generation = divvy_partition_generation(mine);

    pthread_mutex_lock(&mutex);
    int at_work = stop_jobs();
    start_jobs(mine);
    if (state == DIVVY_RELEASE && at_work > 0) wait_for_a_piece(100);
    pthread_mutex_unlock(&mutex);
    divvy_partition_unref(mine);
    if (state == DIVVY_RELEASE && at_work > 0) return;

    if (state == DIVVY_RELEASE) divvy_partitioner_release_set_id(partitioner, state_id);
    /* Items may come without a change of the state, and a signal should be seen soon. */
    divvy_partitioner_wait_change(partitioner, state_id, 100);
}

/* 0 when we were asked to stop, 1 when the partitioner has failed. Either way no worker is left. */
static int run(void) {
    pthread_t workers[WORKERS];
    char reason[512];
    int count = 0, status = 0;
    while (count < WORKERS && pthread_create(&workers[count], NULL, run_worker, NULL) == 0) count++;
    if (count < WORKERS) status = fail("cannot start", "no thread could be had");
    for (uint64_t printed_generation = 0; status == 0 && !stopping;) {
        look(&printed_generation);
        if (divvy_partitioner_failure(partitioner, reason, sizeof reason) != 0) status = fail("failed", reason);
    }
    end_workers(workers, count);
    return status;
}

/* ---- joining and leaving ---- */

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)code, (void)user;
    fprintf(stderr, "thread_pool: warning: %s\n", message);
}

/* Joins the pool, works, leaves. The exit status. */
static int take_part(divvy_client *client, const char *path, char **items, int item_count) {
    if (divvy_client_wait_connected(client, 10000) != 0) return fail("no connection", divvy_client_error(client));
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);

    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.items = (const char *const *)items; /* The same names in every member, in any order. */
    config.item_count = (size_t)item_count;
    config.on_session_loss = DIVVY_REJOIN; /* After a lost session it goes on, on a new one. */
    if (divvy_partitioner_create(&partitioner, client, &config) != 0)
        return fail("cannot join the pool", divvy_client_error(client));
    int status = run();
    if (status == 0 && divvy_partitioner_finish(partitioner, 5000) != 0)
        status = fail("could not leave in an orderly way", divvy_client_error(client));
    divvy_partitioner_destroy(partitioner);
    return status;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: thread_pool HOSTS PATH ITEM...\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* Whole lines at once, in a pipe too. */

    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = argv[1];
    config.session_timeout_ms = setting("SESSION_TIMEOUT_MS", 10000);
    config.on_warning = on_warning;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return fail("cannot open a client", divvy_client_error(NULL));
    int status = take_part(client, argv[2], &argv[3], argc - 3);
    divvy_client_close(client);
    return status;
}
