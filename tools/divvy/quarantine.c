/* Quarantine: items whose commands fail again and again are paused. SPDX-License-Identifier: Apache-2.0 */
#include "quarantine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "connection.h"
#include "pool/errand.h"
#include "shell_word.h"

enum { TIMEOUT_MS = 30000, WHY_BYTES = 160 };

/* An item that is to be paused. It stays until the pool has done so: then only does a failure tell nothing new. */
typedef struct dv_pausing {
    struct dv_pausing *next;
    dv_quarantine *quarantine;
    dv_errand *errand; /* NULL: the last one has failed */
    bool done;         /* the errand is */
    bool told;         /* that it has failed */
    int64_t deadline_ms;
    char why[WHY_BYTES];
    char item[];
} pausing;

void dv_quarantine_open(dv_quarantine *q, divvy_client *client) {
    q->client = client;
    q->failures =
        (dv_failures){.limit = q->options->quarantine_failures, .window_ms = q->options->quarantine_window_ms};
}

/* ---- a request ---- */

static void drop_errand(pausing *one) {
    if (!one->errand) return;
    dv_client_lock(one->quarantine->client);
    dv_errand_drop(one->errand);
    dv_client_unlock(one->quarantine->client);
    one->errand = NULL;
    one->done = false;
}

/* Inside divvy_client_process(). */
static void on_done(void *owner, int64_t now) {
    (void)now;
    ((pausing *)owner)->done = true;
}

static int64_t since_1970_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns 0 or DIVVY_E*. */
static int begin(pausing *one) {
    dv_quarantine *q = one->quarantine;
    assert(!one->errand);
    int error = dv_client_enter(q->client);
    if (error) return error;
    char by[DV_FAILURES_BY_BYTES];
    dv_failures_by(by, divvy_partitioner_identifier(q->p));
    const dv_ask ask = {.kind = DV_ASK_PAUSE, .name = one->item, .by = by, .why = one->why, .at_ms = since_1970_ms()};
    char *root = dv_client_path(q->client, q->options->path);
    one->errand = root ? dv_errand_start(q->client, q->options->path, root, &ask, on_done, one) : NULL;
    dv_client_unlock(q->client);
    free(root);
    one->deadline_ms = dv_session_now_ms() + TIMEOUT_MS;
    return one->errand ? 0 : DIVVY_ENOMEM;
}

/* Tells the first failure of an item's requests, and what may be done. */
static void tell_failure(pausing *one, const char *why) {
    if (one->told) return;
    one->told = true;
    dv_command_say("warning: --quarantine: %s cannot be paused, and is tried again when it fails again: %s; it %s",
                   one->item, why, one->why);
}

static void forget(dv_quarantine *q, pausing *one) {
    pausing **at = &q->pausing;
    while (*at != one) at = &(*at)->next;
    *at = one->next;
    drop_errand(one);
    free(one);
}

/* Takes what has come of the request. */
static void finish(pausing *one) {
    dv_quarantine *q = one->quarantine;
    const dv_errand_result *r = &one->errand->result;
    if (one->done && r->error == 0) {
        char pool[DV_SHELL_WORD_BYTES], item[DV_SHELL_WORD_BYTES];
        dv_command_say("warning: --quarantine: %s is paused: it %s (to give it back: divvy resume --path %s %s)",
                       one->item, one->why, dv_shell_word(pool, "PATH", "%s", q->options->path),
                       dv_shell_operand(item, "ITEM", one->item));
        dv_failures_forget(&q->failures, one->item);
        forget(q, one);
        return;
    }
    const char *why = *r->text ? r->text : divvy_strerror(one->done ? r->error : DIVVY_ETIMEDOUT);
    if (!one->done && *r->waits_for) why = r->waits_for;
    tell_failure(one, why);
    drop_errand(one);
}

/* ---- failures ---- */

static pausing *find(const dv_quarantine *q, const char *item) {
    pausing *one = q->pausing;
    while (one && strcmp(one->item, item) != 0) one = one->next;
    return one;
}

static pausing *add(dv_quarantine *q, const char *item) {
    size_t bytes = strlen(item) + 1;
    pausing *one = calloc(1, sizeof *one + bytes);
    if (!one) return NULL;
    memcpy(one->item, item, bytes);
    one->quarantine = q;
    one->next = q->pausing;
    q->pausing = one;
    return one;
}

/* "failed 5 times in 10 min, last: exit code 1" */
static void print_why(char why[WHY_BYTES], const dv_quarantine *q, const dv_child_event *event) {
    char last[48];
    const char *name = event->signal ? sigabbrev_np(event->signal) : NULL;
    if (name) snprintf(last, sizeof last, "signal %d (SIG%s)", event->signal, name);
    else if (event->signal) snprintf(last, sizeof last, "signal %d", event->signal);
    else snprintf(last, sizeof last, "exit code %d", event->status);
    dv_failures_print(&q->failures, last, why, WHY_BYTES);
}

static void pause_item(dv_quarantine *q, const dv_child_event *event) {
    pausing *one = find(q, event->item);
    if (!one) one = add(q, event->item);
    if (!one || one->errand) return;
    print_why(one->why, q, event);
    int error = begin(one);
    if (error) tell_failure(one, divvy_strerror(error));
}

/* A command that was told to end, or could not be started, says nothing of its item; nor does one that stands by. */
static bool has_failed(const dv_child_event *event) {
    bool by_itself = event->kind == DV_CHILD_EXITED || event->kind == DV_CHILD_FINISHED;
    return by_itself && event->token > 0 && event->status != 0;
}

void dv_quarantine_child(dv_quarantine *q, const dv_child_event *event) {
    bool too_many = false;
    if (q->failures.limit == 0 || !q->p || !has_failed(event)) return;
    if (dv_failures_note(&q->failures, event->item, dv_session_now_ms(), &too_many) == 0 && too_many)
        pause_item(q, event);
}

/* ---- the loop ---- */

void dv_quarantine_step(dv_quarantine *q) {
    int64_t now_ms = dv_session_now_ms();
    for (pausing *one = q->pausing, *next; one; one = next) {
        next = one->next;
        if (one->errand && (one->done || now_ms >= one->deadline_ms)) finish(one);
    }
}

int64_t dv_quarantine_next_ms(const dv_quarantine *q) {
    int64_t next_ms = -1, now_ms = dv_session_now_ms();
    for (const pausing *one = q->pausing; one; one = one->next) {
        int64_t left_ms = one->deadline_ms - now_ms;
        if (one->errand) next_ms = dv_session_sooner(next_ms, one->done || left_ms < 0 ? 0 : left_ms);
    }
    return next_ms;
}

void dv_quarantine_close(dv_quarantine *q) {
    while (q->pausing) forget(q, q->pausing);
    dv_failures_free(&q->failures);
}
