/* Asking a server for its tickTime. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/tick.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"

enum { ANSWER_BYTES = 16 * 1024, ANSWER_MS = 2000, TICK_MAX_MS = 3600000 };

typedef struct {
    dv_job job; /* first */
    dv_server_address where;
    dv_tls *tls;
    dv_tick_fn done;
    void *context;
    int64_t tick_ms;
} tick_job;

int64_t dv_tick_parse(const char *text) {
    static const char key[] = "tickTime=";
    while (strncmp(text, key, strlen(key)) != 0) {
        text = strchr(text, '\n');
        if (!text) return 0;
        text++;
    }
    text += strlen(key);
    size_t digits = strspn(text, "0123456789");
    long number = strtol(text, NULL, 10); /* LONG_MAX where it does not fit */
    bool whole = digits > 0 && strchr("\r\n", text[digits]);
    return whole && number <= TICK_MAX_MS ? number : 0;
}

static void work(dv_job *base) {
    tick_job *job = (tick_job *)(void *)base;
    char answer[ANSWER_BYTES + 1];
    size_t bytes = dv_word_ask(job->tls, &job->where, "conf", answer, sizeof answer - 1, dv_monotonic_ms() + ANSWER_MS);
    answer[bytes] = '\0';
    job->tick_ms = dv_tick_parse(answer);
    assert(job->tick_ms >= 0 && job->tick_ms <= TICK_MAX_MS);
}

static void on_asked(dv_job *base, int64_t now) {
    tick_job *job = (tick_job *)(void *)base;
    job->done(job->context, job->tick_ms, now);
}

static void free_job(dv_job *base) {
    tick_job *job = (tick_job *)(void *)base;
    dv_tls_unref(job->tls);
    free(job);
}

dv_job *dv_tick_ask(const dv_server_address *where, dv_tls *tls, dv_sink sink, dv_tick_fn done, void *context) {
    tick_job *job = calloc(1, sizeof *job);
    if (!job) return NULL;
    *job = (tick_job){.job = {.work = work, .done = on_asked, .free = free_job, .sink = sink},
                      .where = *where,
                      .tls = dv_tls_ref(tls),
                      .done = done,
                      .context = context};
    return dv_job_start(&job->job) ? &job->job : NULL;
}
