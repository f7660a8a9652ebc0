/* Work on a thread of its own that ends in one event. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/job.h"

#include <assert.h>

#include "base/threads.h"

static void free_job(dv_job *job) {
    pthread_cond_destroy(&job->dropping);
    pthread_mutex_destroy(&job->mutex);
    job->free(job);
}

static void run_done(dv_event *event, int64_t now) {
    dv_job *job = (dv_job *)(void *)event;
    /* The thread posted this event with the mutex held: this waits until it has let go of it. */
    pthread_mutex_lock(&job->mutex);
    bool dropped = job->dropped;
    pthread_mutex_unlock(&job->mutex);
    if (!dropped) job->done(job, now);
    free_job(job);
}

static void *run(void *argument) {
    dv_job *job = argument;
    job->work(job);
    pthread_mutex_lock(&job->mutex);
    bool dropped = job->dropped;
    if (!dropped) job->sink.post(job->sink.queue, &job->event);
    pthread_mutex_unlock(&job->mutex);
    if (dropped) free_job(job);
    return NULL;
}

bool dv_job_start(dv_job *job) {
    pthread_t thread;
    assert(job->work && job->done && job->free && job->sink.post);
    job->event.run = run_done;
    pthread_mutex_init(&job->mutex, NULL);
    dv_condition_init(&job->dropping);
    bool started = dv_thread_start(&thread, run, job);
    if (started) pthread_detach(thread);
    else free_job(job);
    return started;
}

bool dv_job_sleep(dv_job *job, int ms) {
    int64_t until_ms = dv_monotonic_ms() + ms;
    pthread_mutex_lock(&job->mutex);
    while (!job->dropped && dv_condition_wait(&job->dropping, &job->mutex, until_ms)) {
    }
    bool dropped = job->dropped;
    pthread_mutex_unlock(&job->mutex);
    return !dropped;
}

void dv_job_drop(dv_job *job) {
    pthread_mutex_lock(&job->mutex);
    assert(!job->dropped);
    job->dropped = true;
    pthread_cond_signal(&job->dropping);
    pthread_mutex_unlock(&job->mutex);
}
