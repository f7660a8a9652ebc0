/* A supervisor with guardians that do what the test says. SPDX-License-Identifier: Apache-2.0 */
#ifndef SUPERVISE_FIXTURE_H
#define SUPERVISE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "divvy/supervise.h"
#include "lib/test.h"

enum { LEFT_MS = 1000000, TIMEOUT_MS = 10000, DRAIN_MS = 7000, STARTS_MAX = 64, FIRST_PID = 100 };

/* ---- guardians ---- */

struct dv_guardian {
    int fd; /* an eventfd that counts events */
    dv_guardian_event events[4];
    size_t told, read;
    char item[32], token[32], argument[64], notify[64];
    int start_fd;   /* its end of the pipe; -1: it has none */
    int told_bytes; /* that stood in the pipe when it was started */
    int64_t grace_ms, kill_ms;
    int64_t end_grace_ms; /* of the last order; -1: none */
    bool freed;
};

static int64_t now_ms;
static int64_t deadline_ms;
static dv_guardian *starts[STARTS_MAX];
static size_t start_count;
static int start_error; /* of the next starts */

int64_t dv_guardians_now_ms(void) {
    return now_ms;
}

void dv_guardians_set_deadline(dv_guardians *guardians, int64_t at_ms) {
    (void)guardians;
    deadline_ms = at_ms;
}

int dv_guardian_start(dv_guardian **out, dv_guardians *guardians, const dv_guardian_config *config) {
    (void)guardians;
    *out = NULL;
    assert_true(start_count < STARTS_MAX);
    dv_guardian *g = start_error ? NULL : calloc(1, sizeof *g);
    errno = start_error ? start_error : ENOMEM;
    if (!g) return -1;
    starts[start_count++] = *out = g;
    g->fd = eventfd(0, EFD_NONBLOCK | EFD_SEMAPHORE);
    g->end_grace_ms = -1;
    g->grace_ms = config->grace_ms;
    g->kill_ms = config->kill_ms;
    assert_string_equal(config->program, "/bin/work");
    assert_string_equal(config->arguments[0], "work{item}");
    assert_null(config->arguments[2]);
    assert_int_equal(sscanf(config->environment[0], "DIVVY_ITEM=%31s", g->item), 1);
    /* Without a value it is removed. */
    if (strcmp(config->environment[1], "DIVVY_TOKEN") != 0)
        assert_int_equal(sscanf(config->environment[1], "DIVVY_TOKEN=%31s", g->token), 1);
    g->start_fd = config->start_fd ? fcntl(config->start_fd, F_DUPFD_CLOEXEC, 0) : -1;
    if (config->start_fd) assert_int_equal(ioctl(config->start_fd, FIONREAD, &g->told_bytes), 0);
    if (config->start_fd) assert_int_equal(sscanf(config->environment[2], "NOTIFY_SOCKET=%63s", g->notify), 1);
    assert_null(config->environment[config->start_fd ? 3 : 2]);
    snprintf(g->argument, sizeof g->argument, "%s", config->arguments[1]);
    return 0;
}

int dv_guardian_fd(const dv_guardian *guardian) {
    return guardian->fd;
}

int dv_guardian_read(dv_guardian *guardian, dv_guardian_event *out) {
    uint64_t one;
    if (read(guardian->fd, &one, sizeof one) < 0) return 0;
    *out = guardian->events[guardian->read++];
    return 1;
}

void dv_guardian_end(dv_guardian *guardian, int64_t grace_ms) {
    guardian->end_grace_ms = grace_ms;
}

void dv_guardian_free(dv_guardian *guardian) {
    if (!guardian) return;
    close(guardian->fd);
    guardian->freed = true;
}

static void tell(dv_guardian *g, dv_guardian_kind kind, int value, dv_guardian_why why) {
    uint64_t one = 1;
    assert_true(g->told < sizeof g->events / sizeof *g->events);
    g->events[g->told++] = (dv_guardian_event){.kind = kind, .value = value, .why = why};
    assert_int_equal(write(g->fd, &one, sizeof one), sizeof one);
}

/* ---- the world ---- */

static const char *const arguments[] = {"work{item}", "<{item}>{item}", NULL};
static dv_supervisor *s;
static dv_child_event last; /* that was told */
static int told;
static bool standby; /* before open_supervisor() */
static int ready;
static char ready_item[32];
static bool owned;

static bool is_owned(const char *item, void *user) {
    (void)item;
    (void)user;
    return owned;
}

static void on_child(const dv_child_event *event, void *user) {
    (void)user;
    last = *event;
    told++;
}

static void on_ready(const char *item, void *user) {
    (void)user;
    snprintf(ready_item, sizeof ready_item, "%s", item);
    ready++;
}

static void open_supervisor(dv_restart restart) {
    dv_supervise_config config = {.program = "/bin/work",
                                  .arguments = arguments,
                                  .restart = restart,
                                  .session_timeout_ms = TIMEOUT_MS,
                                  .drain_ms = DRAIN_MS,
                                  .is_owned = is_owned,
                                  .standby = standby,
                                  .on_child = on_child,
                                  .on_ready = on_ready};
    now_ms = 1000;
    start_error = told = ready = 0;
    owned = true;
    assert_int_equal(dv_supervisor_open(&s, &config, NULL), 0);
    dv_supervisor_set_time_left(s, now_ms, LEFT_MS);
}

static int teardown(void **state) {
    (void)state;
    dv_supervisor_close(s);
    while (start_count > 0) {
        assert_true(starts[start_count - 1]->freed);
        if (starts[start_count - 1]->start_fd >= 0) close(starts[start_count - 1]->start_fd);
        free(starts[--start_count]);
    }
    return 0;
}

static void gain(const char *item, int64_t token) {
    dv_supervisor_gain(s, &item, &token, 1);
    dv_supervisor_process(s);
}

static void give_back(const char *item) {
    dv_supervisor_revoke(s, &item, 1);
}

static dv_guardian *newest(void) {
    assert_true(start_count > 0);
    return starts[start_count - 1];
}

/* The newest one runs, and that is told. */
static dv_guardian *runs(void) {
    dv_guardian *g = newest();
    tell(g, DV_GUARDIAN_STARTED, FIRST_PID + (int)start_count, DV_ENDED_BY_ITSELF);
    dv_supervisor_process(s);
    assert_int_equal(last.kind, DV_CHILD_STARTED);
    return g;
}

static void gone(dv_guardian *g, int status, dv_guardian_why why) {
    tell(g, DV_GUARDIAN_GONE, status, why);
    dv_supervisor_process(s);
    assert_true(g->freed);
}

/* Lets time pass up to what is due next by the clock, which is after_ms. */
static void pass(int64_t after_ms) {
    assert_int_equal(dv_supervisor_next_ms(s), after_ms);
    now_ms += after_ms;
    dv_supervisor_process(s);
}

#endif
