/* The native client's log, to the session it belongs to. SPDX-License-Identifier: Apache-2.0
 *
 * Its callback has no context, so each session takes one of a fixed number of functions, which knows its slot. A
 * session beyond that number runs without the native client's lines, and without pauses. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "znode/apache/apache.h"

enum { SLOTS = 32, QUEUED_LINES_MAX = 256, LINE_BYTES_MAX = 1024 };

static pthread_mutex_t slots_mutex = PTHREAD_MUTEX_INITIALIZER;
static dv_apache *slots[SLOTS];

typedef struct {
    dv_event event;
    dv_apache *apache;
    int level;
    char text[];
} line_event;

static void run_line(dv_event *event, int64_t now) {
    (void)now;
    line_event *line = (line_event *)(void *)event;
    atomic_fetch_sub(&line->apache->queued_log_lines, 1);
    line->apache->znode.on_log(line->apache->znode.context, line->level, line->text);
    free(line);
}

/* "2026-01-01 10:00:00,000:1(0x7f):ZOO_WARN@function@12: text" */
static int split(const char *message, const char **text) {
    static const char *const names[] = {"", "ZOO_ERROR@", "ZOO_WARN@", "ZOO_INFO@", "ZOO_DEBUG@"};
    *text = message;
    for (int level = DIVVY_LOG_ERROR; level <= DIVVY_LOG_DEBUG; level++) {
        const char *found = strstr(message, names[level]);
        if (!found) continue;
        *text = found + strlen(names[level]);
        return level;
    }
    return DIVVY_LOG_INFO;
}

/* H10, on the native client's I/O thread, which cannot outlive the session object. What it is about to tell of the
 * connection is told before the pause. */
static void pause_after_close(dv_apache *apache, const char *message) {
    int ms = dv_pause_is_close(message) ? dv_pause_count(&apache->pause) : 0;
    if (ms == 0) return;
    dv_apache_post_news(apache, NULL, &(dv_session_news){.state = DIVVY_SUSPENDED});
    dv_pause_wait(&apache->pause, ms);
}

/* With the mutex held. Where too many lines wait already, or no memory is left, this one is dropped. */
static void post_line(dv_apache *apache, const char *message) {
    const char *text;
    int level = split(message, &text);
    size_t bytes = strnlen(text, LINE_BYTES_MAX);
    while (bytes > 0 && text[bytes - 1] == '\n') bytes--; /* Some of its lines have one. */
    if (!apache->logs || atomic_load(&apache->queued_log_lines) >= QUEUED_LINES_MAX) return;
    line_event *line = calloc(1, sizeof *line + bytes + 1);
    if (!line) return;
    *line = (line_event){.event.run = run_line, .apache = apache, .level = level};
    memcpy(line->text, text, bytes);
    atomic_fetch_add(&apache->queued_log_lines, 1);
    apache->znode.sink.post(apache->znode.sink.queue, &line->event);
}

static void on_line(int slot, const char *message) {
    pthread_mutex_lock(&slots_mutex);
    dv_apache *apache = slots[slot];
    if (apache) post_line(apache, message);
    pthread_mutex_unlock(&slots_mutex);
    if (!apache) return;
    pause_after_close(apache, message);
    dv_apache_take_servers(apache, message);
}

#define SLOT_FUNCTION(n)                           \
    static void on_line_##n(const char *message) { \
        on_line(n, message);                       \
    }
/* clang-format off */
#define EACH_SLOT(X) \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) \
    X(16) X(17) X(18) X(19) X(20) X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
/* clang-format on */
EACH_SLOT(SLOT_FUNCTION)

#define SLOT_NAME(n) on_line_##n,
static const log_callback_fn functions[SLOTS] = {EACH_SLOT(SLOT_NAME)};

static void drop_line(const char *message) {
    (void)message;
}

log_callback_fn dv_apache_log_function(int slot) {
    return slot < 0 ? drop_line : functions[slot];
}

/* In the child of a fork: the sessions belong to the parent, and one of its threads may have held the mutex. */
static void forget_all(void) {
    pthread_mutex_init(&slots_mutex, NULL);
    memset(slots, 0, sizeof slots);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_all);
}

int dv_apache_log_attach(dv_apache *apache) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    int slot = -1;
    pthread_mutex_lock(&slots_mutex);
    for (int i = 0; i < SLOTS && slot < 0; i++) {
        if (slots[i]) continue;
        slots[i] = apache;
        slot = i;
    }
    pthread_mutex_unlock(&slots_mutex);
    return slot;
}

void dv_apache_log_detach(int slot) {
    if (slot < 0) return;
    pthread_mutex_lock(&slots_mutex);
    slots[slot] = NULL;
    pthread_mutex_unlock(&slots_mutex);
}
