/* How often work on each item has failed lately. SPDX-License-Identifier: Apache-2.0
 *
 * An item whose worker fails again and again is poisonous: given to other members, it would end their workers too. This
 * counts, so that the item can be paused in time. Pure: the caller passes the time. */
#ifndef DV_FAILURES_H
#define DV_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that a limit may be. */
enum { DV_FAILURES_MAX = 1000 };

struct dv_failing;

/* Zeroed but for the limit and the window: nothing has failed. */
typedef struct {
    size_t limit; /* 1 to DV_FAILURES_MAX */
    int64_t window_ms;
    struct dv_failing **all; /* the items that have failed within the window */
    size_t count, room;
} dv_failures;

/* Notes a failure. *too_many: with it there are `limit` of them or more within the window.
 * Returns 0, or -1 when there is no memory; then it is not noted. */
int dv_failures_note(dv_failures *failures, const char *item, int64_t now_ms, bool *too_many);

/* Forgets those of an item. */
void dv_failures_forget(dv_failures *failures, const char *item);

/* Writes the reason of a pause: "failed 5 times in 10 min, last: exit code 1". `last` is what the last failure was.
 * `divvy doctor` knows a quarantine by this form. */
void dv_failures_print(const dv_failures *failures, const char *last, char *text, size_t bytes);

/* Copies a member's identifier as the one who asks for a pause: at most 128 bytes, cut to whole characters of UTF-8. */
enum { DV_FAILURES_BY_BYTES = 129 };
void dv_failures_by(char by[DV_FAILURES_BY_BYTES], const char *identifier);

void dv_failures_free(dv_failures *failures);

#endif
