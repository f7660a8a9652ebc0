/* The events in a pool. SPDX-License-Identifier: Apache-2.0 */
#include "serve_history.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

int dv_serve_history_init(dv_serve_history *history) {
    *history = (dv_serve_history){.events = calloc(DV_SERVE_EVENTS_MAX, sizeof *history->events),
                                  .gone = calloc(DV_SERVE_EVENTS_MAX, sizeof *history->gone)};
    return history->events && history->gone ? 0 : DIVVY_ENOMEM;
}

static size_t bytes_of(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

static void lose(dv_serve_history *history, int64_t ms) {
    if (ms > history->lost_ms) history->lost_ms = ms;
}

static void drop_first(dv_serve_history *history) {
    dv_serve_event *event = &history->events[history->first];
    lose(history, event->ms);
    history->bytes -= bytes_of(event->what) + bytes_of(event->from) + bytes_of(event->to);
    free(event->what);
    free(event->from);
    free(event->to);
    history->first = (history->first + 1) % DV_SERVE_EVENTS_MAX;
    history->count--;
}

static void drop_first_gone(dv_serve_history *history) {
    dv_serve_gone *gone = &history->gone[history->gone_first];
    lose(history, gone->gone_ms);
    history->gone_bytes -= bytes_of(gone->name);
    free(gone->name);
    history->gone_first = (history->gone_first + 1) % DV_SERVE_EVENTS_MAX;
    history->gone_count--;
}

void dv_serve_history_free(dv_serve_history *history) {
    while (history->count > 0) drop_first(history);
    while (history->gone_count > 0) drop_first_gone(history);
    free(history->events);
    free(history->gone);
    *history = (dv_serve_history){.events = NULL};
}

static dv_serve_event *event_at(const dv_serve_history *history, size_t i) {
    return &history->events[(history->first + i) % DV_SERVE_EVENTS_MAX];
}

static dv_serve_gone *gone_at(const dv_serve_history *history, size_t i) {
    return &history->gone[(history->gone_first + i) % DV_SERVE_EVENTS_MAX];
}

/* Makes nothing later than this time. */
static void keep_order(dv_serve_history *history, int64_t ms) {
    if (history->lost_ms > ms) history->lost_ms = ms;
    for (size_t i = history->count; i > 0 && event_at(history, i - 1)->ms > ms; i--) event_at(history, i - 1)->ms = ms;
    for (size_t i = history->gone_count; i > 0 && gone_at(history, i - 1)->gone_ms > ms; i--)
        gone_at(history, i - 1)->gone_ms = ms;
}

void dv_serve_history_add(dv_serve_history *history, int64_t ms, dv_serve_event_kind kind, const char *what,
                          const char *from, const char *to) {
    dv_serve_event event = {
        .ms = ms, .kind = kind, .what = strdup(what), .from = from ? strdup(from) : NULL, .to = to ? strdup(to) : NULL};
    keep_order(history, ms);
    if (!event.what || !event.from != !from || !event.to != !to) {
        free(event.what);
        free(event.from);
        free(event.to);
        lose(history, ms);
        return;
    }
    size_t bytes = bytes_of(what) + bytes_of(from) + bytes_of(to);
    while (history->count > 0 &&
           (history->count == DV_SERVE_EVENTS_MAX || history->bytes + bytes > DV_SERVE_EVENT_BYTES_MAX))
        drop_first(history);
    event.number = ++history->last_number;
    history->events[(history->first + history->count++) % DV_SERVE_EVENTS_MAX] = event;
    history->bytes += bytes;
}

const dv_serve_event *dv_serve_history_event(const dv_serve_history *history, size_t i) {
    return event_at(history, i);
}

void dv_serve_history_gone(dv_serve_history *history, char *name, int64_t came_ms, int64_t gone_ms) {
    keep_order(history, gone_ms);
    size_t bytes = bytes_of(name);
    while (history->gone_count > 0 &&
           (history->gone_count == DV_SERVE_EVENTS_MAX || history->gone_bytes + bytes > DV_SERVE_EVENT_BYTES_MAX))
        drop_first_gone(history);
    history->gone_bytes += bytes;
    *gone_at(history, history->gone_count++) = (dv_serve_gone){name, came_ms, gone_ms};
}

const dv_serve_gone *dv_serve_history_gone_at(const dv_serve_history *history, size_t i) {
    return gone_at(history, i);
}
