/* The command of one item: when it is started, ended, started again. SPDX-License-Identifier: Apache-2.0 */
#include "supervise_child.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SWEEP_MS = 500,   /* for what a killed guardian has left behind to be killed */
    TOO_LATE_MS = 50, /* until the next look when it was too late to start it */
    SIGNAL_STATUS = 128
};

static const char placeholder[] = DV_CHILD_PLACEHOLDER;

/* The end_reason of a command that could not be told to begin. */
static const char deaf[] = "it closed DIVVY_START_FD before it was told to begin";

static void tell(const dv_child *child, dv_child_kind kind, int status, int64_t restart_ms, const char *reason) {
    dv_child_event event = {.kind = kind,
                            .item = child->item,
                            .token = child->running_token,
                            .pid = child->pid,
                            .status = WIFSIGNALED(status) ? SIGNAL_STATUS + WTERMSIG(status) : WEXITSTATUS(status),
                            .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                            .guardian = child->guardian_pid,
                            .cpu_us = child->cpu_us,
                            .restart_ms = restart_ms,
                            .reason = reason};
    child->config->on_child(&event, child->config->user);
}

/* ---- what is wanted ---- */

/* Asserts what holds between two calls. */
static void check(const dv_child *child) {
    assert(!child->owned || (child->wanted && child->token > 0));
    assert(!child->guardian || child->swept_at_ms == 0);
    assert(child->guardian || (child->standby.notify_fd < 0 && child->standby.start_fd < 0));
    assert(!child->guardian || !child->begun || child->running_token > 0);
    (void)child;
}

/* `token`: 0 where it is to stand by. */
static void want(dv_child *child, int64_t token, int64_t now_ms) {
    child->wanted = true;
    child->owned = token != 0;
    child->token = token;
    child->backoff_ms = DV_CHILD_BACKOFF_MS;
    child->start_at_ms = now_ms;
    check(child);
}

void dv_child_want(dv_child *child, int64_t token, int64_t now_ms) {
    assert(token > 0);
    want(child, token, now_ms);
}

void dv_child_stand_by(dv_child *child, int64_t now_ms) {
    if (!child->wanted) want(child, 0, now_ms);
}

void dv_child_unwant(dv_child *child, int64_t grace_ms, const char *reason) {
    assert(grace_ms >= 0 && reason);
    child->wanted = child->owned = false;
    check(child);
    dv_standby_cancel(&child->standby);
    if (!child->guardian) return;
    dv_guardian_end(child->guardian, grace_ms);
    if (!child->end_reason) child->end_reason = reason;
}

/* ---- the start ---- */

/* `text` with the item's name in place of each placeholder; free() it. */
static char *put_item(const char *text, const char *item) {
    char *result = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&result, &bytes);
    if (!to) return NULL;
    for (const char *found; (found = strstr(text, placeholder)) != NULL; text = found + strlen(placeholder))
        fprintf(to, "%.*s%s", (int)(found - text), text, item);
    fprintf(to, "%s", text);
    bool complete = !ferror(to);
    if (fclose(to) == 0 && complete) return result;
    free(result);
    return NULL;
}

static void free_texts(char **texts) {
    for (size_t i = 0; texts && texts[i]; i++) free(texts[i]);
    free((void *)texts);
}

static char **make_arguments(const dv_child *child) {
    size_t count = 0;
    while (child->config->arguments[count]) count++;
    char **made = (char **)calloc(count + 1, sizeof *made);
    for (size_t i = 0; made && i < count; i++) {
        const char *text = child->config->arguments[i];
        made[i] = i ? put_item(text, child->item) : strdup(text);
        if (made[i]) continue;
        free_texts(made);
        return NULL;
    }
    return made;
}

/* Makes the variable of a token. A standby's is not known yet, and one that we have from elsewhere is not it. */
static char *make_token(const dv_child *child) {
    char *made = NULL;
    if (!child->owned) return strdup("DIVVY_TOKEN");
    return asprintf(&made, "DIVVY_TOKEN=%" PRId64, child->token) >= 0 ? made : NULL;
}

static char **make_environment(const dv_child *child) {
    char **made = (char **)calloc(4, sizeof *made);
    if (!made) return NULL;
    /* After a failure asprintf() leaves its pointer undefined. */
    if (asprintf(&made[0], "DIVVY_ITEM=%s", child->item) < 0) made[0] = NULL;
    made[1] = made[0] ? make_token(child) : NULL;
    bool complete = made[1] != NULL;
    if (complete && child->config->standby && asprintf(&made[2], "NOTIFY_SOCKET=%s", child->standby.name) < 0) {
        made[2] = NULL;
        complete = false;
    }
    if (complete) return made;
    free_texts(made);
    return NULL;
}

static int64_t next_backoff(dv_child *child) {
    int64_t delay_ms = child->backoff_ms;
    assert(delay_ms >= DV_CHILD_BACKOFF_MS && delay_ms <= DV_CHILD_BACKOFF_MAX_MS);
    child->backoff_ms = delay_ms < DV_CHILD_BACKOFF_MAX_MS / 2 ? delay_ms * 2 : DV_CHILD_BACKOFF_MAX_MS;
    return delay_ms;
}

static void fail(dv_child *child, const char *reason, int64_t now_ms) {
    child->running_token = child->owned ? child->token : 0;
    int64_t delay_ms = child->wanted ? next_backoff(child) : -1;
    child->start_at_ms = now_ms + delay_ms;
    tell(child, DV_CHILD_FAILED, 0, delay_ms, reason);
}

static void start_failed(dv_child *child, int error, int64_t now_ms) {
    child->pid = child->guardian_pid = 0;
    fail(child, strerror(error), now_ms);
}

/* From here on the command may work on the item. */
static void mark_begun(dv_child *child) {
    assert(child->guardian && child->owned);
    assert(!child->begun);
    child->begun = true;
    child->running_token = child->token;
}

/* Tells a command that stands by to begin. One that cannot be told would leave the item to nobody, so it ends. */
static void begin(dv_child *child) {
    assert(child->owned && !child->begun && !child->end_reason);
    if (dv_standby_begin(&child->standby, child->token) != 0) {
        child->end_reason = deaf;
        dv_guardian_end(child->guardian, child->config->drain_ms);
        return;
    }
    mark_begun(child);
    /* Otherwise the start is still to be told. */
    if (child->pid) tell(child, DV_CHILD_BEGUN, 0, -1, NULL);
}

/* Returns 0, or -1 with errno set. */
static int run(dv_child *child, dv_guardians *guardians, const dv_child_times *times) {
    int worker_fd = -1;
    assert(!child->guardian && child->swept_at_ms == 0); /* An item has one command. */
    assert(child->wanted && !child->begun);
    if (child->config->standby && dv_standby_open(&child->standby, &worker_fd) != 0) return -1;
    /* Told before it is started, it cannot have closed its end yet: with the token it need not read the line. */
    if (child->config->standby && child->owned) dv_standby_begin(&child->standby, child->token);
    char **arguments = make_arguments(child), **environment = make_environment(child);
    dv_guardian_config config = {.program = child->config->program,
                                 .arguments = (const char *const *)arguments,
                                 .environment = (const char *const *)environment,
                                 .grace_ms = times->grace_ms,
                                 .kill_ms = times->kill_ms,
                                 .start_fd = worker_fd < 0 ? 0 : worker_fd,
                                 .no_input = true};
    errno = ENOMEM;
    int outcome = arguments && environment ? dv_guardian_start(&child->guardian, guardians, &config) : -1;
    int error = errno;
    free_texts(arguments);
    free_texts(environment);
    if (worker_fd >= 0) close(worker_fd);
    if (outcome != 0) dv_standby_close(&child->standby);
    errno = error;
    return outcome;
}

int dv_child_start(dv_child *child, dv_guardians *guardians, const dv_child_times *times, int64_t now_ms) {
    check(child);
    assert(dv_child_awaits_start(child) && now_ms >= child->start_at_ms);
    if (child->owned && !child->config->is_owned(child->item, child->config->user)) {
        child->start_at_ms = now_ms + TOO_LATE_MS;
        return 0;
    }
    if (child->guardian) {
        begin(child);
        return 0;
    }
    child->pid = child->guardian_pid = 0;
    child->cpu_us = 0;
    child->end_reason = NULL;
    child->begun = false;
    child->running_token = 0;
    child->started_ms = now_ms;
    int outcome = run(child, guardians, times), error = errno;
    if (outcome == 0 && child->owned) mark_begun(child);
    if (outcome == 0) return 0;
    errno = error;
    if (error == EPIPE || error == ECONNRESET || error == ENOTCONN) return -1;
    start_failed(child, error, now_ms);
    return 0;
}

/* ---- the end ---- */

/* It was ended by us, or by its guardian. Where the item is still, or again, ours, the next one follows at once. */
static void was_ended(dv_child *child, int status, const char *reason, int64_t now_ms) {
    tell(child, DV_CHILD_ENDED, status, child->wanted ? 0 : -1, reason);
    child->start_at_ms = now_ms;
}

static bool is_finished(const dv_child *child, int status) {
    dv_restart restart = child->config->restart;
    if (child->owned && !child->begun) return false; /* Nothing was done for the item. */
    return restart == DV_RESTART_NEVER || (restart == DV_RESTART_ON_FAILURE && status == 0);
}

static void has_exited(dv_child *child, int status, int64_t now_ms) {
    assert(child->pid > 0);
    if (is_finished(child, status)) {
        child->start_at_ms = INT64_MAX;
        tell(child, DV_CHILD_FINISHED, status, -1, NULL);
        return;
    }
    if (now_ms - child->started_ms >= DV_CHILD_STEADY_MS) child->backoff_ms = DV_CHILD_BACKOFF_MS;
    int64_t delay_ms = next_backoff(child);
    child->start_at_ms = now_ms + delay_ms;
    tell(child, DV_CHILD_EXITED, status, delay_ms, NULL);
}

static void take_gone(dv_child *child, const dv_guardian_event *event, int64_t now_ms) {
    assert(child->pid > 0);
    bool by_itself = event->why == DV_ENDED_BY_ITSELF;
    child->cpu_us = event->cpu_us;
    if (child->end_reason == deaf && !by_itself) fail(child, deaf, now_ms);
    else if (child->end_reason == deaf && child->wanted) has_exited(child, event->value, now_ms);
    /* Also where it has exited by itself just before our order came. */
    else if (child->end_reason) was_ended(child, event->value, child->end_reason, now_ms);
    else if (by_itself) has_exited(child, event->value, now_ms);
    else was_ended(child, event->value, "deadline", now_ms);
}

static void take_refused(dv_child *child, int error, int64_t now_ms) {
    if (error == ETIME) child->start_at_ms = now_ms + TOO_LATE_MS;
    else start_failed(child, error, now_ms);
}

/* Returns whether it was the last one. */
static bool take_event(dv_child *child, const dv_guardian_event *event, int64_t now_ms) {
    switch (event->kind) {
    case DV_GUARDIAN_STARTED:
        assert(child->pid == 0 && event->value > 1);
        child->pid = event->value;
        child->guardian_pid = event->guardian;
        tell(child, child->begun ? DV_CHILD_STARTED : DV_CHILD_STANDBY, 0, -1, NULL);
        return false;
    case DV_GUARDIAN_REFUSED: take_refused(child, event->value, now_ms); return true;
    case DV_GUARDIAN_GONE: take_gone(child, event, now_ms); return true;
    case DV_GUARDIAN_DIED: child->swept_at_ms = now_ms + SWEEP_MS; return true;
    default: return false;
    }
}

/* A command that has begun may go on talking. Nobody waits for that, but it is not to wait for us. */
static void hear(dv_child *child) {
    if (!child->pid) return; /* The start is told first. */
    if (!dv_standby_is_ready(&child->standby, child->pid) || child->begun || !child->wanted || child->end_reason)
        return;
    tell(child, DV_CHILD_READY, 0, -1, NULL);
    if (!child->owned) child->config->on_ready(child->item, child->config->user);
}

void dv_child_read(dv_child *child, int64_t now_ms) {
    dv_guardian_event event;
    while (child->guardian && dv_guardian_read(child->guardian, &event)) {
        if (!take_event(child, &event, now_ms)) continue;
        dv_child_let_go(child);
    }
    check(child);
    if (child->guardian) hear(child);
    if (child->swept_at_ms == 0 || now_ms < child->swept_at_ms) return;
    child->swept_at_ms = 0;
    if (child->pid) was_ended(child, SIGKILL, "its guardian was killed", now_ms);
    else start_failed(child, EOWNERDEAD, now_ms);
}

int64_t dv_child_next_ms(const dv_child *child) {
    if (child->swept_at_ms) return child->swept_at_ms;
    return dv_child_awaits_start(child) ? child->start_at_ms : INT64_MAX;
}

bool dv_child_runs(const dv_child *child) {
    return child->guardian || child->swept_at_ms;
}

bool dv_child_awaits_start(const dv_child *child) {
    if (!dv_child_runs(child)) return child->wanted;
    return child->guardian && child->owned && !child->begun && !child->end_reason;
}

bool dv_child_works(const dv_child *child) {
    return dv_child_runs(child) && child->begun;
}

bool dv_child_holds_item(const dv_child *child) {
    return dv_child_works(child) && (!child->wanted || child->end_reason);
}

void dv_child_let_go(dv_child *child) {
    dv_standby_close(&child->standby);
    dv_guardian_free(child->guardian);
    child->guardian = NULL;
}
