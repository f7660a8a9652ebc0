/* Timers: a heap of those that are set, earliest first. SPDX-License-Identifier: Apache-2.0
 *
 * A pairing heap, whose nodes are the timers themselves: setting one cannot fail. n timers cost O(n log n) comparisons
 * to be set and fired, or cancelled, in any order. The heap knows no clock and runs nothing. */
#ifndef DV_TIMERS_H
#define DV_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct dv_timers dv_timers;

/* One-shot; run by the loop. Zeroed, but for `fire`, before it is first set; not moved while it is set. */
typedef struct dv_timer {
    struct dv_timer *child, *next, **link; /* NULL link: not set */
    dv_timers *heap;
    int64_t at;
    uint64_t order; /* of setting, among all of the heap */
    void (*fire)(struct dv_timer *timer, int64_t now);
} dv_timer;

struct dv_timers {
    dv_timer *first; /* the earliest; NULL: none is set */
    uint64_t order;
    uint64_t comparisons; /* made so far, for tests */
};

/* Sets the timer, for another time if it is set already. It comes after all others that are set for the same time. */
void dv_timers_set(dv_timers *heap, dv_timer *timer, int64_t at);
/* Takes the timer out of its heap, if it is set. */
void dv_timer_cancel(dv_timer *timer);
/* Returns the time of the earliest; INT64_MAX when none is set. */
int64_t dv_timers_next_at(const dv_timers *heap);

#endif
