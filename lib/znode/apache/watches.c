/* The native watcher: its events go to those who wait, by the client's queue. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/apache/apache.h"

static bool read_kind(int type, dv_watch_kind *kind) {
    if (type == ZOO_CREATED_EVENT) *kind = DV_WATCH_CREATED;
    else if (type == ZOO_CHANGED_EVENT) *kind = DV_WATCH_CHANGED;
    else if (type == ZOO_DELETED_EVENT) *kind = DV_WATCH_DELETED;
    else if (type == ZOO_CHILD_EVENT) *kind = DV_WATCH_CHILDREN;
    else return false;
    return true;
}

/* Another event tells of those that fire from here on. */
static void run_unnamed(dv_event *event, int64_t now) {
    dv_apache *apache = DV_CONTAINER(event, dv_apache, unnamed);
    atomic_store(&apache->unnamed_posted, false);
    dv_watches_fire_all(&apache->watches, now);
}

/* Without memory for the path: who waits for it may wait for ever, so all are told. */
static void post_unnamed(dv_apache *apache) {
    if (atomic_exchange(&apache->unnamed_posted, true)) return;
    apache->unnamed.run = run_unnamed;
    apache->znode.sink.post(apache->znode.sink.queue, &apache->unnamed);
}

void dv_apache_on_watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle;
    (void)state;
    dv_apache *apache = context;
    dv_watch_kind kind;
    /* A session event reaches every watch and consumes none; the session's own watcher tells of it. */
    if (!read_kind(type, &kind) || !path) return;
    dv_fired_watch *fired = malloc(sizeof *fired + strlen(path) + 1);
    if (!fired) {
        post_unnamed(apache);
        return;
    }
    dv_fired_watch_init(fired, &apache->watches, path, kind);
    apache->znode.sink.post(apache->znode.sink.queue, &fired->event);
}
