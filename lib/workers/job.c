/* A job: one call of a worker, in a thread of its own. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/threads.h"
#include "client/error.h"
#include "workers/workers.h"

/* Longer waits are no different from this one: a month. */
#define WAIT_MAX_MS INT64_C(2592000000)

/* ---- its thread ---- */

/* Runs also where the user's function ends its thread. */
static void end_thread(void *context) {
    dv_place *place = context;
    const divvy_workers *w = place->job.workers;
    atomic_store(&place->ended, true); /* From here on the runner joins us. */
    dv_workers_wake(w);
}

/* A worker that saw the item go was told to stop by that, whatever the runner has seen. */
static void end_job(void *context) {
    dv_place *place = context;
    place->was_told = divvy_job_should_stop(&place->job);
    end_thread(place);
}

static void *run_worker(void *context) {
    dv_place *place = context;
    const divvy_workers *w = place->job.workers;
    pthread_cleanup_push(end_job, place);
    place->result = w->config.worker(&place->job, w->config.user);
    pthread_cleanup_pop(1);
    return NULL;
}

static void *run_prepare(void *context) {
    dv_place *place = context;
    const divvy_workers *w = place->job.workers;
    pthread_cleanup_push(end_thread, place);
    place->result = w->config.prepare(&place->prepared, place->item, w->config.user);
    pthread_cleanup_pop(1);
    return NULL;
}

static int start(dv_place *place, void *(*run)(void *)) {
    divvy_workers *w = place->job.workers;
    assert(!place->at_work && !place->preparing);
    if (w->threads >= w->config.max_threads) return DIVVY_ELIMIT;
    place->result = DIVVY_ECANCELED; /* It stays so, if the thread is ended. */
    atomic_store(&place->ended, false);
    if (pthread_create(&place->thread, NULL, run, place) != 0) return DIVVY_ESYSTEM;
    w->threads++;
    return 0;
}

int dv_place_start_job(dv_place *place) {
    place->job.token = place->token;
    atomic_store(&place->job.told_to_stop, false);
    int error = start(place, run_worker);
    place->at_work = error == 0;
    return error;
}

int dv_place_start_preparing(dv_place *place) {
    int error = start(place, run_prepare);
    place->preparing = error == 0;
    return error;
}

void dv_place_tell_stop(dv_place *place) {
    divvy_job *job = &place->job;
    pthread_mutex_lock(&job->mutex);
    atomic_store(&job->told_to_stop, true);
    pthread_cond_broadcast(&job->stopped);
    pthread_mutex_unlock(&job->mutex);
}

void dv_place_init(dv_place *place, divvy_workers *w) {
    place->job.workers = w;
    place->job.item = place->item;
    pthread_mutex_init(&place->job.mutex, NULL);
    dv_condition_init(&place->job.stopped);
}

void dv_place_destroy(dv_place *place) {
    assert(!place->at_work && !place->preparing);
    pthread_cond_destroy(&place->job.stopped);
    pthread_mutex_destroy(&place->job.mutex);
}

/* ---- public functions ---- */

const char *divvy_job_item(const divvy_job *job) {
    return job ? job->item : NULL;
}

int64_t divvy_job_token(const divvy_job *job) {
    return job ? job->token : 0;
}

void *divvy_job_prepared(const divvy_job *job) {
    return job ? job->prepared : NULL;
}

/* Says 0 for good once it has said so. A deadline that has passed is final (C5 of docs/protocol.md). What is revoked
 * comes back when its release is confirmed, which waits for the job. */
int divvy_job_owns(const divvy_job *job) {
    return job && !atomic_load(&job->told_to_stop) &&
           divvy_partitioner_owns_token(job->workers->partitioner, job->item, job->token);
}

int divvy_job_should_stop(const divvy_job *job) {
    return !divvy_job_owns(job);
}

static void unlock(void *mutex) {
    pthread_mutex_unlock(mutex);
}

int divvy_job_wait(divvy_job *job, int64_t timeout_ms) {
    if (!job) return dv_fail(NULL, DIVVY_EINVAL, "wait: job is NULL");
    if (timeout_ms < -1)
        return dv_fail(job->workers->client, DIVVY_EINVAL, "wait: timeout_ms is %lld", (long long)timeout_ms);
    bool for_ever = timeout_ms < 0;
    int64_t until_ms = dv_monotonic_ms() + (timeout_ms < WAIT_MAX_MS ? timeout_ms : WAIT_MAX_MS);
    pthread_mutex_lock(&job->mutex);
    pthread_cleanup_push(unlock, &job->mutex); /* Here the thread may be cancelled. */
    while (!divvy_job_should_stop(job)) {
        if (for_ever) pthread_cond_wait(&job->stopped, &job->mutex);
        else if (!dv_condition_wait(&job->stopped, &job->mutex, until_ms)) break;
    }
    pthread_cleanup_pop(1);
    return divvy_job_should_stop(job);
}

int divvy_job_set_load(const divvy_job *job, double load) {
    if (!job) return dv_fail(NULL, DIVVY_EINVAL, "set_load: job is NULL");
    return divvy_partitioner_set_load(job->workers->partitioner, job->item, load);
}
