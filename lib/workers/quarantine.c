/* Quarantine: items whose workers fail again and again are paused. SPDX-License-Identifier: Apache-2.0
 *
 * The pause is a call that waits for the servers, and jobs are not to wait for it: so it has a thread of its own. In
 * manual mode the run drives the loop, and makes the call itself. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "client/error.h"
#include "divvy/pool.h"
#include "workers/workers.h"

enum { TIMEOUT_MS = 5000, TEXT_BYTES = 512, WHY_BYTES = 160 };

/* An item that is to be paused. */
typedef struct dv_pausing {
    struct dv_pausing *next;
    divvy_workers *workers;
    pthread_t thread;
    bool has_thread;
    atomic_bool ended;     /* the call has returned, with: */
    int error;             /* its error */
    char text[TEXT_BYTES]; /* and its message */
    char why[WHY_BYTES];   /* the reason that it gives */
    char item[];
} pausing;

/* ---- the call ---- */

static void *pause_item(void *context) {
    pausing *one = context;
    divvy_workers *w = one->workers;
    char by[DV_FAILURES_BY_BYTES];
    divvy_pool_request request = DIVVY_POOL_REQUEST_INIT;
    request.timeout_ms = TIMEOUT_MS;
    dv_failures_by(by, divvy_partitioner_identifier(w->partitioner));
    request.by = by;
    request.why = one->why;
    one->error = divvy_pool_pause(w->client, w->path, one->item, &request);
    if (one->error) snprintf(one->text, sizeof one->text, "%s", divvy_client_error(w->client));
    atomic_store(&one->ended, true); /* From here on the runner joins us. */
    dv_workers_wake(w);
    return NULL;
}

/* Without a thread, the call waits here. */
static void begin(pausing *one) {
    atomic_store(&one->ended, false);
    one->has_thread = !one->workers->drives && pthread_create(&one->thread, NULL, pause_item, one) == 0;
    if (!one->has_thread) pause_item(one);
}

/* ---- the list ---- */

static pausing *find(const divvy_workers *w, const char *item) {
    pausing *one = w->pausing;
    while (one && strcmp(one->item, item) != 0) one = one->next;
    return one;
}

static pausing *add(divvy_workers *w, const char *item) {
    size_t bytes = strlen(item) + 1;
    pausing *one = calloc(1, sizeof *one + bytes);
    if (!one) return NULL;
    memcpy(one->item, item, bytes);
    one->workers = w;
    one->next = w->pausing;
    w->pausing = one;
    return one;
}

static void join(pausing *one) {
    if (one->has_thread) pthread_join(one->thread, NULL);
    one->has_thread = false;
}

/* ---- what the runner asks for ---- */

void dv_workers_note_failure(divvy_workers *w, const char *item, int result) {
    bool too_many = false;
    char last[32];
    if (w->failures.limit == 0 || w->phase == DV_WORKERS_STOPPING) return;
    if (dv_failures_note(&w->failures, item, dv_monotonic_ms(), &too_many) != 0 || !too_many || find(w, item)) return;
    pausing *one = add(w, item);
    if (!one) return; /* It is tried again at the next failure. */
    snprintf(last, sizeof last, "result %d", result);
    dv_failures_print(&w->failures, last, one->why, sizeof one->why);
    begin(one);
}

static void tell(divvy_workers *w, const pausing *one) {
    if (!one->error) dv_failures_forget(&w->failures, one->item);
    if (w->config.on_quarantine)
        w->config.on_quarantine(w, one->item, one->error, one->error ? one->text : one->why, w->config.user);
}

void dv_workers_take_pauses(divvy_workers *w) {
    for (pausing **at = &w->pausing; *at;) {
        pausing *one = *at;
        if (!atomic_load(&one->ended)) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        join(one);
        tell(w, one);
        free(one);
    }
}

void dv_workers_end_quarantine(divvy_workers *w) {
    for (pausing *one = w->pausing; one; one = one->next) join(one);
    dv_workers_take_pauses(w);
    dv_failures_free(&w->failures);
}
