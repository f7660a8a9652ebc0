/* Asking a server for its tickTime. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/tick.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/container.h"
#include "base/signals.h"
#include "znode/apache/word.h"

enum { ANSWER_BYTES = 16 * 1024, ANSWER_MS = 2000, TICK_MAX_MS = 3600000 };

struct dv_tick_job {
    dv_event event;
    dv_server_address where;
    dv_tls *tls;
    dv_sink sink;
    dv_tick_fn done;
    void *context;
    int64_t tick_ms;
    pthread_mutex_t mutex; /* guards `dropped`, and so the sink: nothing is posted to a client that went */
    bool dropped;
};

/* ---- the answer ---- */

/* Returns the number at `text`, which ends with its line, or 0 where it is none. */
static int64_t parse_number(const char *text, const char *end) {
    int64_t number = 0;
    const char *at = text;
    for (; at < end && *at >= '0' && *at <= '9' && number <= TICK_MAX_MS; at++) number = number * 10 + (*at - '0');
    bool whole = at > text && (at == end || *at == '\n' || *at == '\r');
    return whole && number <= TICK_MAX_MS ? number : 0;
}

int64_t dv_tick_parse(const char *text, size_t bytes) {
    static const char key[] = "tickTime=";
    const char *end = text + bytes;
    for (const char *line = text; line && line < end;) {
        size_t left = (size_t)(end - line);
        if (left > strlen(key) && memcmp(line, key, strlen(key)) == 0) return parse_number(line + strlen(key), end);
        const char *newline = memchr(line, '\n', left);
        line = newline ? newline + 1 : NULL;
    }
    return 0;
}

/* ---- asking ---- */

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t ask(const dv_server_address *where, const dv_tls *tls) {
    static const char word[] = "conf";
    char answer[ANSWER_BYTES];
    int64_t until_ms = now_ms() + ANSWER_MS;
    const struct sockaddr *address = (const struct sockaddr *)&where->address;
    size_t bytes = tls ? dv_tls_ask(tls, address, where->bytes, word, answer, sizeof answer, until_ms)
                       : dv_word_ask(address, where->bytes, word, answer, sizeof answer, until_ms);
    return dv_tick_parse(answer, bytes);
}

/* ---- the job ---- */

static void free_job(dv_tick_job *job) {
    dv_tls_unref(job->tls);
    pthread_mutex_destroy(&job->mutex);
    free(job);
}

static void on_asked(dv_event *event, int64_t now) {
    dv_tick_job *job = DV_CONTAINER(event, dv_tick_job, event);
    /* The thread posted this event with the mutex held: this waits until it has let go of it. */
    pthread_mutex_lock(&job->mutex);
    bool dropped = job->dropped;
    pthread_mutex_unlock(&job->mutex);
    if (!dropped) job->done(job->context, job->tick_ms, now);
    free_job(job);
}

static void *run_job(void *argument) {
    dv_tick_job *job = argument;
    job->tick_ms = ask(&job->where, job->tls);
    assert(job->tick_ms >= 0 && job->tick_ms <= TICK_MAX_MS);
    pthread_mutex_lock(&job->mutex);
    bool dropped = job->dropped;
    if (!dropped) job->sink.post(job->sink.queue, &job->event);
    pthread_mutex_unlock(&job->mutex);
    if (dropped) free_job(job);
    return NULL;
}

dv_tick_job *dv_tick_ask(const dv_server_address *where, dv_tls *tls, dv_sink sink, dv_tick_fn done, void *context) {
    dv_tick_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    *job = (dv_tick_job){.where = *where, .sink = sink, .done = done, .context = context};
    if (tls) job->tls = dv_tls_ref(tls);
    job->event.run = on_asked;
    pthread_mutex_init(&job->mutex, NULL);
    pthread_t thread;
    sigset_t signals;
    dv_signals_block(&signals);
    bool started = pthread_create(&thread, NULL, run_job, job) == 0;
    dv_signals_restore(&signals);
    if (!started) {
        free_job(job);
        return NULL;
    }
    pthread_detach(thread); /* A server that does not answer must not hold up divvy_client_close(). */
    return job;
}

void dv_tick_drop(dv_tick_job *job) {
    pthread_mutex_lock(&job->mutex);
    assert(!job->dropped);
    job->dropped = true;
    pthread_mutex_unlock(&job->mutex);
}
