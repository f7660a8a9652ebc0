/* How often work on each item has failed lately. SPDX-License-Identifier: Apache-2.0 */
#include "workers/failures.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One item, with the times of its last `limit` failures in a ring. */
typedef struct dv_failing {
    char *item;
    size_t count; /* in the ring */
    size_t next;  /* its place for the next one, which is the oldest in a full ring */
    int64_t last_ms;
    int64_t at_ms[];
} failing;

static void release(failing *f) {
    if (f) free(f->item);
    free(f);
}

/* Forgets the item at i; the last one takes its place. */
static void drop(dv_failures *failures, size_t i) {
    assert(i < failures->count);
    release(failures->all[i]);
    failures->all[i] = failures->all[--failures->count];
}

/* Forgets items whose last failure is older than the window. */
static void drop_old(dv_failures *failures, int64_t now_ms) {
    for (size_t i = failures->count; i > 0; i--) {
        if (now_ms - failures->all[i - 1]->last_ms > failures->window_ms) drop(failures, i - 1);
    }
}

/* Returns the item's index, or `count`. */
static size_t find(const dv_failures *failures, const char *item) {
    size_t i = 0;
    while (i < failures->count && strcmp(failures->all[i]->item, item) != 0) i++;
    return i;
}

static failing *add(dv_failures *failures, const char *item) {
    if (failures->count == failures->room) {
        size_t room = 2 * failures->room + 4;
        failing **grown = (failing **)realloc((void *)failures->all, room * sizeof *grown);
        if (!grown) return NULL;
        failures->all = grown;
        failures->room = room;
    }
    failing *f = calloc(1, sizeof *f + failures->limit * sizeof *f->at_ms);
    if (f) f->item = strdup(item);
    if (!f || !f->item) {
        release(f);
        return NULL;
    }
    failures->all[failures->count++] = f;
    return f;
}

int dv_failures_note(dv_failures *failures, const char *item, int64_t now_ms, bool *too_many) {
    assert(failures->limit >= 1 && failures->limit <= DV_FAILURES_MAX);
    *too_many = false;
    drop_old(failures, now_ms);
    size_t place = find(failures, item);
    failing *f = place < failures->count ? failures->all[place] : add(failures, item);
    if (!f) return -1;
    f->at_ms[f->next] = f->last_ms = now_ms;
    f->next = (f->next + 1) % failures->limit;
    if (f->count < failures->limit) f->count++;
    *too_many = f->count == failures->limit && now_ms - f->at_ms[f->next] <= failures->window_ms;
    return 0;
}

void dv_failures_forget(dv_failures *failures, const char *item) {
    size_t i = find(failures, item);
    if (i < failures->count) drop(failures, i);
}

void dv_failures_print(const dv_failures *failures, const char *last, char *text, size_t bytes) {
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{3600000, "h"}, {60000, "min"}, {1000, "s"}, {1, "ms"}};
    size_t u = 0;
    while (failures->window_ms % units[u].ms != 0) u++;
    snprintf(text, bytes, "failed %zu time%s in %" PRId64 " %s, last: %s", failures->limit,
             failures->limit == 1 ? "" : "s", failures->window_ms / units[u].ms, units[u].name, last);
}

void dv_failures_by(char by[DV_FAILURES_BY_BYTES], const char *identifier) {
    size_t bytes = strlen(identifier);
    if (bytes >= DV_FAILURES_BY_BYTES) {
        bytes = DV_FAILURES_BY_BYTES - 1;
        while (bytes > 0 && ((unsigned char)identifier[bytes] & 0xC0) == 0x80) bytes--;
    }
    memcpy(by, identifier, bytes);
    by[bytes] = '\0';
}

void dv_failures_free(dv_failures *failures) {
    while (failures->count > 0) drop(failures, failures->count - 1);
    free((void *)failures->all);
    failures->all = NULL;
    failures->room = 0;
}
