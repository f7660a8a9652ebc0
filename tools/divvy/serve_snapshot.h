/* A pool as the main thread last read it, for what judges a pool. SPDX-License-Identifier: Apache-2.0
 *
 * What `divvy doctor` would read, but for the plan. The lock is held while texts are copied, and no longer. */
#ifndef DV_SERVE_SNAPSHOT_H
#define DV_SERVE_SNAPSHOT_H

#include "serve_pool.h"

/* The members and items of a pool in little room; only for dv_serve_snapshot_status(). */
typedef struct {
    struct dv_kept_member *members;
    size_t member_count;
    struct dv_kept_item *items;
    size_t item_count;
    char *texts;
    size_t text_bytes, text_room;
    size_t stray_count;
    char *stray;
    bool found;
} dv_serve_snapshot;

/* Keep what judges want to know of a member and of an item beyond what the page shows; the main thread calls them. */
void dv_serve_snapshot_keep_member(dv_serve_member *member, const dv_status_member *read);
/* 0 or DIVVY_ENOMEM. */
int dv_serve_snapshot_keep_item(dv_serve_item *item, const dv_status_item *read);

/* Copies a pool that was read, with the lock of dv_serve held. 0 or DIVVY_ENOMEM. In each case release it by
 * dv_serve_snapshot_free(). */
int dv_serve_snapshot_take(dv_serve_snapshot *snapshot, const dv_serve_pool *pool);
/* Fills in the status as dv_status_pool_read() would, but for the plan. An item's `head` is as long as the name that
 * stands there, and no more is known of it, unless it is persistent. 0 or DIVVY_ENOMEM. */
int dv_serve_snapshot_status(const dv_serve_snapshot *snapshot, dv_status *status);
void dv_serve_snapshot_free(dv_serve_snapshot *snapshot);

#endif
