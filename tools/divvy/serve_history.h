/* The events in a pool since divvy serve looks at it: in memory, and bounded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_HISTORY_H
#define DV_SERVE_HISTORY_H

#include <stddef.h>
#include <stdint.h>

/* The oldest go when there are more, or when their texts have more bytes. */
enum { DV_SERVE_EVENTS_MAX = 20000, DV_SERVE_EVENT_BYTES_MAX = 4 * 1024 * 1024 };

typedef enum {
    DV_SERVE_ITEM,   /* `what` went from one owner to another; NULL: nobody */
    DV_SERVE_JOINED, /* the member `what` */
    DV_SERVE_LEFT,
    DV_SERVE_PLAN,      /* `what`, the reason of the plan in `to` */
    DV_SERVE_RESTARTED, /* the static member `what`; or the owner of the item `what`, which is `to` as before */
    DV_SERVE_DIED       /* the member `what`; its session ended `to` later */
} dv_serve_event_kind;

typedef struct {
    uint64_t number; /* from 1, without gaps */
    int64_t ms;      /* when it was seen, by the wall clock */
    dv_serve_event_kind kind;
    char *what, *from, *to;
} dv_serve_event;

/* An item that was there once: it is no event, but who looks back has to know. */
typedef struct {
    char *name;
    int64_t came_ms, gone_ms; /* `came_ms` 0: it was there at the first look */
} dv_serve_gone;

typedef struct {
    dv_serve_event *events; /* a ring */
    size_t first, count, bytes;
    uint64_t last_number;
    dv_serve_gone *gone; /* likewise, with the same bounds */
    size_t gone_first, gone_count, gone_bytes;
    int64_t lost_ms; /* of the last event, or item that went, which is not kept; 0: all are */
} dv_serve_history;

/* 0 or DIVVY_ENOMEM. */
int dv_serve_history_init(dv_serve_history *history);
void dv_serve_history_free(dv_serve_history *history);

/* Adds an event; the texts are copied, `from` and `to` may be NULL. Without memory for it, it is left out. Where the
 * clock went back, those before it are no later. */
void dv_serve_history_add(dv_serve_history *history, int64_t ms, dv_serve_event_kind kind, const char *what,
                          const char *from, const char *to);
/* The i-th from the oldest. */
const dv_serve_event *dv_serve_history_event(const dv_serve_history *history, size_t i);

/* Takes note of an item that went; takes the name over. */
void dv_serve_history_gone(dv_serve_history *history, char *name, int64_t came_ms, int64_t gone_ms);
const dv_serve_gone *dv_serve_history_gone_at(const dv_serve_history *history, size_t i);

#endif
