/* The commands of a member's items: one runs for each item that is owned. SPDX-License-Identifier: Apache-2.0 */
#include "supervise.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The time left to a command whose item was lost, and may have another owner already. */
enum { LOST_GRACE_MS = 100 };

/* When the deadline nears: SIGTERM so long before SIGKILL at the most, and that so long before the deadline, a
 * twentieth of the session's timeout within these. */
enum { GRACE_MOST_MS = 3000, KILL_LEAST_MS = 25, KILL_MOST_MS = 500 };

/* Between two looks at commands, once one may be there that cannot be watched. */
enum { LOOK_MS = 100 };

enum { EVENTS = 64 };

struct dv_supervisor {
    dv_supervise_config config;
    dv_guardians *guardians;
    dv_child **active; /* of items that are owned, or whose commands run yet */
    dv_child **sorted; /* the same by the names of their items, bytewise */
    size_t active_count, active_room;
    int epoll_fd;
    int error;
    bool ending;
    int64_t deadline_ms;
    int64_t most_left_ms; /* that this session ever had: its time when a proof has just come */
};

/* ---- the beginning and the end ---- */

int dv_supervisor_open(dv_supervisor **out, const dv_supervise_config *config, dv_guardians *guardians) {
    assert(config->program && config->arguments && config->arguments[0]);
    assert(config->session_timeout_ms > 0 && config->drain_ms >= 0);
    dv_supervisor *s = *out = calloc(1, sizeof *s);
    if (!s) return -1;
    *s = (dv_supervisor){.config = *config, .guardians = guardians};
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->epoll_fd >= 0) return 0;
    int error = errno;
    dv_supervisor_close(s);
    *out = NULL;
    errno = error;
    return -1;
}

static void free_child(dv_child *child) {
    assert(!child->guardian); /* It would lose its command. */
    free((char *)(uintptr_t)child->item);
    free(child);
}

void dv_supervisor_close(dv_supervisor *s) {
    if (!s) return;
    for (size_t i = 0; i < s->active_count; i++) {
        dv_child_let_go(s->active[i]);
        free_child(s->active[i]);
    }
    if (s->epoll_fd >= 0) close(s->epoll_fd);
    free((void *)s->active);
    free((void *)s->sorted);
    free(s);
}

/* ---- what is owned ---- */

/* Where the item's child stands in `sorted`, or would. */
static size_t place_of(const dv_supervisor *s, const char *item) {
    size_t from = 0, to = s->active_count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (strcmp(s->sorted[middle]->item, item) < 0) from = middle + 1;
        else to = middle;
    }
    return from;
}

static dv_child *find(const dv_supervisor *s, const char *item) {
    size_t place = place_of(s, item);
    return place < s->active_count && strcmp(s->sorted[place]->item, item) == 0 ? s->sorted[place] : NULL;
}

static bool reserve(dv_child ***children, size_t room) {
    dv_child **grown = (dv_child **)realloc((void *)*children, room * sizeof *grown);
    if (grown) *children = grown;
    return grown != NULL;
}

static dv_child *add(dv_supervisor *s, const char *item) {
    assert(!find(s, item)); /* An item has one command. */
    assert(s->active_count <= s->active_room);
    size_t room = s->active_count < s->active_room ? s->active_room : 2 * s->active_room + 16;
    dv_child *child = calloc(1, sizeof *child);
    char *name = strdup(item);
    bool complete = child && name && reserve(&s->active, room) && reserve(&s->sorted, room);
    if (!complete) {
        free(child);
        free(name);
        s->error = ENOMEM;
        return NULL;
    }
    s->active_room = room;
    *child = (dv_child){.config = &s->config, .item = name, .standby = DV_STANDBY_NONE, .slot = s->active_count};
    size_t place = place_of(s, name);
    memmove((void *)&s->sorted[place + 1], (void *)&s->sorted[place], (s->active_count - place) * sizeof *s->sorted);
    s->sorted[place] = child;
    s->active[s->active_count++] = child;
    return child;
}

/* Forgets a child that neither runs nor is to run. */
static void drop_if_over(dv_supervisor *s, dv_child *child) {
    if (child->wanted || dv_child_runs(child)) return;
    size_t place = place_of(s, child->item);
    assert(place < s->active_count && s->sorted[place] == child);
    assert(child->slot < s->active_count && s->active[child->slot] == child);
    dv_child *last = s->active[--s->active_count];
    s->active[last->slot = child->slot] = last;
    memmove((void *)&s->sorted[place], (void *)&s->sorted[place + 1], (s->active_count - place) * sizeof *s->sorted);
    free_child(child);
}

void dv_supervisor_gain(dv_supervisor *s, const char *const *names, const int64_t *tokens, size_t count) {
    for (size_t i = 0; i < count && !s->ending; i++) {
        dv_child *child = find(s, names[i]);
        if (!child) child = add(s, names[i]);
        if (child) dv_child_want(child, tokens[i], dv_guardians_now_ms());
    }
}

void dv_supervisor_prepare(dv_supervisor *s, const char *const *names, size_t count) {
    for (size_t i = 0; i < count && !s->ending; i++) {
        dv_child *child = find(s, names[i]);
        if (!child) child = add(s, names[i]);
        if (child) dv_child_stand_by(child, dv_guardians_now_ms());
    }
}

/* A command that was not told to begin holds nothing that others wait for. */
static void dismiss(dv_supervisor *s, dv_child *child) {
    dv_child_unwant(child, s->config.drain_ms, "not needed");
    drop_if_over(s, child);
}

static void unwant(dv_supervisor *s, const char *const *names, size_t count, int64_t grace_ms, const char *reason) {
    for (size_t i = 0; i < count; i++) {
        dv_child *child = find(s, names[i]);
        if (!child) continue;
        if (dv_child_runs(child) && !child->begun) {
            dismiss(s, child);
            continue;
        }
        dv_child_unwant(child, grace_ms, reason);
        drop_if_over(s, child);
    }
}

void dv_supervisor_dismiss(dv_supervisor *s) {
    for (size_t i = s->active_count; i > 0; i--) {
        if (s->active[i - 1]->wanted && !s->active[i - 1]->owned) dismiss(s, s->active[i - 1]);
    }
}

void dv_supervisor_revoke(dv_supervisor *s, const char *const *names, size_t count) {
    unwant(s, names, count, s->config.drain_ms, "revoked");
}

void dv_supervisor_lose(dv_supervisor *s, const char *const *names, size_t count) {
    unwant(s, names, count, LOST_GRACE_MS, "lost");
}

void dv_supervisor_end(dv_supervisor *s, int64_t drain_ms) {
    s->ending = true;
    /* Backwards: what is dropped gets its place taken by the last one. */
    for (size_t i = s->active_count; i > 0; i--) {
        dv_child *child = s->active[i - 1];
        dv_child_unwant(child, drain_ms, "leaving");
        drop_if_over(s, child);
    }
}

void dv_supervisor_set_time_left(dv_supervisor *s, int64_t now_ms, int64_t left_ms) {
    assert(left_ms >= 0);
    s->deadline_ms = left_ms > 0 ? now_ms + left_ms : 0;
    if (left_ms > s->most_left_ms || left_ms == 0) s->most_left_ms = left_ms;
    dv_guardians_set_deadline(s->guardians, s->deadline_ms);
}

/* ---- how it stands ---- */

bool dv_supervisor_is_clear(const dv_supervisor *s) {
    for (size_t i = 0; i < s->active_count; i++) {
        if (dv_child_holds_item(s->active[i])) return false;
    }
    return true;
}

bool dv_supervisor_works(const dv_supervisor *s) {
    for (size_t i = 0; i < s->active_count; i++) {
        if (dv_child_works(s->active[i])) return true;
    }
    return false;
}

size_t dv_supervisor_running(const dv_supervisor *s) {
    size_t running = 0;
    for (size_t i = 0; i < s->active_count; i++) running += dv_child_runs(s->active[i]);
    return running;
}

int dv_supervisor_error(const dv_supervisor *s) {
    return s->error;
}

/* ---- the loop ---- */

/* Servers may have granted a shorter session than was asked for, so that there is less time for everything: SIGTERM
 * comes no earlier than when half of it is over. */
static dv_child_times times(const dv_supervisor *s) {
    int64_t timeout_ms = s->config.session_timeout_ms, half_ms = s->most_left_ms / 2;
    int64_t kill_ms = timeout_ms / 20;
    if (kill_ms > KILL_MOST_MS) kill_ms = KILL_MOST_MS;
    if (kill_ms < KILL_LEAST_MS) kill_ms = KILL_LEAST_MS;
    if (kill_ms > half_ms / 4) kill_ms = half_ms / 4;
    int64_t grace_ms = timeout_ms / 5 < GRACE_MOST_MS ? timeout_ms / 5 : GRACE_MOST_MS;
    if (grace_ms > s->config.drain_ms) grace_ms = s->config.drain_ms;
    if (grace_ms > half_ms - kill_ms) grace_ms = half_ms - kill_ms;
    assert(kill_ms >= 0 && grace_ms >= 0 && grace_ms + kill_ms <= half_ms);
    return (dv_child_times){.grace_ms = grace_ms, .kill_ms = kill_ms};
}

/* From when on it is too late to start anything: it would have to end at once. */
static int64_t last_start_ms(const dv_supervisor *s) {
    dv_child_times t = times(s);
    return s->deadline_ms - t.grace_ms - t.kill_ms;
}

static bool can_start(const dv_supervisor *s, int64_t now_ms) {
    return !s->error && now_ms < last_start_ms(s);
}

/* -1: there is nothing to watch. */
static void watch(dv_supervisor *s, dv_child *child, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = child};
    if (fd >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0) s->error = errno;
}

static void start(dv_supervisor *s, dv_child *child, int64_t now_ms) {
    assert(can_start(s, now_ms)); /* Nothing is started past the deadline. */
    assert(child->wanted);
    dv_child_times t = times(s);
    bool stood_by = child->guardian != NULL;
    if (dv_child_start(child, s->guardians, &t, now_ms) != 0) {
        s->error = errno;
        return;
    }
    if (stood_by || !child->guardian) return;
    watch(s, child, dv_guardian_fd(child->guardian));
    watch(s, child, child->standby.notify_fd);
}

int dv_supervisor_fd(const dv_supervisor *s) {
    return s->epoll_fd;
}

int64_t dv_supervisor_next_ms(const dv_supervisor *s) {
    int64_t now_ms = dv_guardians_now_ms(), at_ms = INT64_MAX;
    bool starting = can_start(s, now_ms);
    for (size_t i = 0; i < s->active_count; i++) {
        const dv_child *child = s->active[i];
        /* When it is too late for a start, what is awaited is a later deadline. */
        if (!starting && dv_child_awaits_start(child)) continue;
        int64_t next_ms = s->error && dv_child_runs(child) ? now_ms + LOOK_MS : dv_child_next_ms(child);
        if (next_ms < at_ms) at_ms = next_ms;
    }
    if (at_ms == INT64_MAX) return -1;
    return at_ms > now_ms ? at_ms - now_ms : 0;
}

void dv_supervisor_process(dv_supervisor *s) {
    struct epoll_event events[EVENTS];
    int64_t now_ms = dv_guardians_now_ms();
    int count = epoll_wait(s->epoll_fd, events, EVENTS, 0);
    /* One may have two events here, so none is dropped yet. */
    for (int i = 0; i < count; i++) dv_child_read(events[i].data.ptr, now_ms);
    for (size_t i = s->active_count; i > 0; i--) {
        dv_child *child = s->active[i - 1];
        assert(child->slot == i - 1);
        if (child->swept_at_ms || s->error) dv_child_read(child, now_ms);
        if (dv_child_awaits_start(child) && now_ms >= child->start_at_ms && can_start(s, now_ms))
            start(s, child, now_ms);
        drop_if_over(s, child);
    }
}
