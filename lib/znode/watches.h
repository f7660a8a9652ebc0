/* One-shot watches, on this side of a backend: who waits for which node to change. SPDX-License-Identifier: Apache-2.0
 *
 * A watch that nobody wants stays armed until it fires: taking it back would cost a request, and free nothing. */
#ifndef DV_WATCHES_H
#define DV_WATCHES_H

#include "znode/znode.h"

/* The watches of one session. Zeroed, but for `stats`, before its first use. */
typedef struct {
    void *tree; /* tsearch tree of dv_watched, by path and kind */
    divvy_stats *stats;
} dv_watches;

/* The waiters at one path. */
typedef struct dv_watched dv_watched;

/* Before a read that sets a watch is sent. Returns NULL when an allocation fails. */
dv_watched *dv_watch_begin(dv_watches *watches, const char *path, bool of_children, dv_watch *watch);
/* When that read was answered, with the watch, unless it was given to another read. */
void dv_watch_end(dv_watched *watched, dv_watch *watch, bool armed);

/* A change of a node, on its way to those who wait. Its maker has room for the path behind it, and posts the event,
 * which frees it. */
typedef struct {
    dv_event event;
    dv_watches *watches;
    dv_watch_kind kind;
    char path[];
} dv_fired_watch;

void dv_fired_watch_init(dv_fired_watch *fired, dv_watches *watches, const char *path, dv_watch_kind kind);

/* Takes a watch back: `unwatch` of every backend. */
void dv_watch_drop(dv_znode *znode, dv_watch *watch);
void dv_watches_clear(dv_watches *watches);
/* Fires them all: one has fired, and it is not known which. Those who wait read again. */
void dv_watches_fire_all(dv_watches *watches, int64_t now);

#endif
