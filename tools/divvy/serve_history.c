/* The events in a pool. SPDX-License-Identifier: Apache-2.0 */
#include "serve_history.h"

#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

int dv_serve_history_init(dv_serve_history *history) {
    *history = (dv_serve_history){.events = calloc(DV_SERVE_EVENTS_MAX, sizeof *history->events)};
    return history->events ? 0 : DIVVY_ENOMEM;
}

static size_t bytes_of(const char *text) {
    return text ? strlen(text) + 1 : 0;
}

static void drop_first(dv_serve_history *history) {
    dv_serve_event *event = &history->events[history->first];
    history->bytes -= bytes_of(event->what) + bytes_of(event->from) + bytes_of(event->to);
    free(event->what);
    free(event->from);
    free(event->to);
    history->first = (history->first + 1) % DV_SERVE_EVENTS_MAX;
    history->count--;
}

void dv_serve_history_free(dv_serve_history *history) {
    while (history->count > 0) drop_first(history);
    free(history->events);
    *history = (dv_serve_history){.events = NULL};
}

void dv_serve_history_add(dv_serve_history *history, int64_t ms, dv_serve_event_kind kind, const char *what,
                          const char *from, const char *to) {
    dv_serve_event event = {
        .ms = ms, .kind = kind, .what = strdup(what), .from = from ? strdup(from) : NULL, .to = to ? strdup(to) : NULL};
    if (!event.what || !event.from != !from || !event.to != !to) {
        free(event.what);
        free(event.from);
        free(event.to);
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
    return &history->events[(history->first + i) % DV_SERVE_EVENTS_MAX];
}

const dv_serve_sample *dv_serve_history_sample_at(const dv_serve_history *history, size_t i) {
    return &history->samples[(history->sample_first + i) % DV_SERVE_SAMPLES_MAX];
}

void dv_serve_history_sample(dv_serve_history *history, const dv_serve_sample *sample) {
    if (history->sample_count > 0) {
        const dv_serve_sample *last = dv_serve_history_sample_at(history, history->sample_count - 1);
        if (last->items == sample->items && last->unowned == sample->unowned && last->moving == sample->moving &&
            last->members == sample->members)
            return;
    }
    if (history->sample_count == DV_SERVE_SAMPLES_MAX) {
        history->sample_first = (history->sample_first + 1) % DV_SERVE_SAMPLES_MAX;
        history->sample_count--;
    }
    size_t at = (history->sample_first + history->sample_count++) % DV_SERVE_SAMPLES_MAX;
    history->samples[at] = *sample;
}
