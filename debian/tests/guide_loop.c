/* The loop of docs/guide.md, and what it leaves to its reader: threads. SPDX-License-Identifier: Apache-2.0
 *
 *     guide_loop QUEUE...
 *
 * guide_loop.inc is docs/examples/guide/loop.inc. Each piece of work is a line "QUEUE PID TOKEN" in the file
 * `record`. It holds a lock on a file of the queue's name. Two workers on one queue end the process with status 3. */
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
#include <unistd.h>

typedef struct job {
    struct job *next;
    const char *queue;
    int64_t token;
    pthread_t thread;
    atomic_int told_to_stop, ended;
} job;

static const char *const *queues;
static size_t queue_count;
static job *jobs;
static divvy_partitioner *partitioner;
static volatile sig_atomic_t terminated;

static void on_signal(int number) {
    (void)number;
    terminated = 1;
}

static int complain(const char *why) {
    fprintf(stderr, "guide_loop: %s\n", why);
    return 1;
}

static void work_a_little_on(const job *j) {
    int guard = open(j->queue, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    int record = open("record", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (guard < 0 || record < 0 || flock(guard, LOCK_EX | LOCK_NB) != 0) {
        fprintf(stderr, "readme: two work on %s\n", j->queue);
        _Exit(3);
    }
    dprintf(record, "%s %d %" PRId64 "\n", j->queue, (int)getpid(), j->token);
    usleep(50000);
    close(record);
    close(guard);
}

static void *run_job(void *argument) {
    job *j = argument;
    while (!j->told_to_stop && divvy_partitioner_owns_token(partitioner, j->queue, j->token)) work_a_little_on(j);
    j->ended = 1;
    return NULL;
}

static void tell_to_stop(job *j) {
    j->told_to_stop = 1;
}

/* Removes the jobs that have ended. Returns how many were told to stop and still work. */
static size_t forget_ended_jobs(void) {
    size_t stopping = 0;
    for (job **at = &jobs; *at;) {
        job *j = *at;
        if (!j->ended) {
            stopping += j->told_to_stop != 0;
            at = &j->next;
            continue;
        }
        *at = j->next;
        pthread_join(j->thread, NULL);
        free(j);
    }
    return stopping;
}

/* Returns the queue of that name in our own list, which outlives every snapshot. */
static const char *own_name(const char *queue) {
    for (size_t i = 0; i < queue_count; i++)
        if (strcmp(queues[i], queue) == 0) return queues[i];
    abort();
}

static void start_job(const char *queue, int64_t token) {
    for (const job *j = jobs; j; j = j->next)
        if (strcmp(j->queue, queue) == 0) return;
    job *j = calloc(1, sizeof *j);
    if (!j) abort();
    j->queue = own_name(queue);
    j->token = token;
    if (pthread_create(&j->thread, NULL, run_job, j) != 0) abort();
    j->next = jobs;
    jobs = j;
}

static void stop_all_jobs_and_wait(void) {
    for (job *j = jobs; j; j = j->next) tell_to_stop(j);
    while (forget_ended_jobs() > 0) usleep(1000);
}

/* The jobs ask the partitioner, which README's loop has as its own. */
static int asked_to_stop(divvy_partitioner *p) {
    partitioner = p;
    return terminated;
}

static int run_loop(void) {
#define stopping asked_to_stop(p)
#include "guide_loop.inc"
    return 0;
}

int main(int argc, char **argv) {
    queues = (const char *const *)argv + 1;
    queue_count = (size_t)argc - 1;
    signal(SIGTERM, on_signal);
    return run_loop();
}
