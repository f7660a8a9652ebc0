/* docs/guide.md, steps 5 to 7: work in threads, a store that refuses late writers, lost sessions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: jobs FOLDER    one file for each queue: a line "TOKEN PID" for each piece of work */
#include <divvy/divvy.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

/* A thread's work on one queue, under one ownership. */
typedef struct job {
    struct job *next;
    divvy_partitioner *p;
    const char *queue;
    int64_t token;
    pthread_t thread;
    atomic_bool told_to_stop, ended;
} job;

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"};
static const char *folder;
static volatile sig_atomic_t stopping;
static job *jobs;

static int complain(const char *why) {
    fprintf(stderr, "jobs: %s\n", why);
    return 1;
}

static void on_signal(int number) {
    (void)number;
    stopping = 1;
}

/* ---- step 6: the store ---- */

/* Appends a line, unless the file has seen a larger token. Returns 1, or 0 when it refuses. */
static int store(const char *queue, int64_t token) {
    char path[4096], line[64];
    int64_t seen = 0;
    snprintf(path, sizeof path, "%s/%s", folder, queue);
    FILE *file = fopen(path, "a+");
    if (!file) return 0;
    flock(fileno(file), LOCK_EX); /* the look and the write are one transaction */
    while (fgets(line, sizeof line, file)) seen = strtoll(line, NULL, 10);
    int accepted = token >= seen;
    if (accepted) fprintf(file, "%" PRId64 " %d\n", token, (int)getpid());
    if (fflush(file) != 0) accepted = 0;
    fclose(file); /* unlocks */
    return accepted;
}

/* ---- step 5: jobs ---- */

static void *work(void *context) {
    job *j = context;
    struct timespec piece = {0, 50000000};
    while (!j->told_to_stop && divvy_partitioner_owns_token(j->p, j->queue, j->token)) {
        if (!store(j->queue, j->token)) break; /* a later owner was here already */
        nanosleep(&piece, NULL);
    }
    j->ended = 1;
    return NULL;
}

/* Starts a job, unless the queue has one, old or new. `queue` is of a snapshot, which goes; ours stay. */
static void start_job(divvy_partitioner *p, const char *queue, int64_t token) {
    for (const job *j = jobs; j; j = j->next)
        if (strcmp(j->queue, queue) == 0) return;
    job *j = calloc(1, sizeof *j);
    if (!j) return;
    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
        if (strcmp(queues[i], queue) == 0) j->queue = queues[i];
    j->p = p;
    j->token = token;
    j->next = jobs;
    if (pthread_create(&j->thread, NULL, work, j) == 0) jobs = j;
    else free(j);
}

/* Joins the jobs that have ended. Returns how many were told to stop and still work. */
static size_t forget_ended_jobs(void) {
    size_t still = 0;
    for (job **at = &jobs; *at;) {
        job *j = *at;
        if (j->ended) {
            *at = j->next;
            pthread_join(j->thread, NULL);
            free(j);
        } else {
            still += j->told_to_stop != 0;
            at = &j->next;
        }
    }
    return still;
}

static int run(divvy_partitioner *p) {
    divvy_partition_state told = DIVVY_ALLOCATING;
    while (!stopping) {
        uint64_t state_id = divvy_partitioner_state_id(p);
        divvy_partition_state state = divvy_partitioner_state(p);
        if (state != told) printf("state: %s\n", divvy_partition_state_name(state));
        told = state;
        if (state == DIVVY_FAILURE) return 1;
        for (job *j = jobs; j; j = j->next)
            if (!divvy_partitioner_owns_token(p, j->queue, j->token)) j->told_to_stop = 1;
        size_t still = forget_ended_jobs();
        if (state == DIVVY_RELEASE && still == 0) divvy_partitioner_release_set_id(p, state_id);
        divvy_partition *mine = divvy_partitioner_partition(p);
        for (size_t i = 0; i < divvy_partition_count(mine); i++)
            if (!divvy_partition_revoked(mine, i))
                start_job(p, divvy_partition_item(mine, i), divvy_partition_token(mine, i));
        divvy_partition_unref(mine);
        divvy_partitioner_wait_change(p, state_id, 100);
    }
    return 0;
}

static void stop_all_jobs(void) {
    for (job *j = jobs; j; j = j->next) j->told_to_stop = 1;
    while (jobs) {
        job *j = jobs;
        jobs = j->next;
        pthread_join(j->thread, NULL);
        free(j);
    }
}

/* ---- step 7: lost sessions ---- */

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    (void)client, (void)user;
    printf("session: %s\n", divvy_session_state_name(state));
}

static int take_part(divvy_client *client) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/guide";
    config.items = queues;
    config.item_count = sizeof queues / sizeof *queues;
    config.on_session_loss = DIVVY_REJOIN;
    divvy_partitioner *p;
    if (divvy_partitioner_create(&p, client, &config) != 0) return complain(divvy_client_error(client));
    int status = run(p);
    stop_all_jobs(); /* before finish: then the queues are free for others at once */
    divvy_partitioner_finish(p, 5000);
    divvy_partitioner_destroy(p);
    return status;
}

int main(int argc, char **argv) {
    if (argc != 2) return complain("usage: jobs FOLDER");
    folder = argv[1];
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    setvbuf(stdout, NULL, _IOLBF, 0);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = 4000; /* so that a lost session is seen soon */
    config.on_session = on_session;
    divvy_client *client;
    if (divvy_client_open(&client, &config) != 0) return complain(divvy_client_error(NULL));
    int status = take_part(client);
    divvy_client_close(client);
    return status;
}
