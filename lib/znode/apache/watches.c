/* The native watcher: its events go to those who wait, by the client's queue. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "znode/apache/apache.h"

static bool read_kind(int type, dv_watch_kind *kind) {
    if (type == ZOO_CREATED_EVENT) *kind = DV_WATCH_CREATED;
    else if (type == ZOO_CHANGED_EVENT) *kind = DV_WATCH_CHANGED;
    else if (type == ZOO_DELETED_EVENT) *kind = DV_WATCH_DELETED;
    else if (type == ZOO_CHILD_EVENT) *kind = DV_WATCH_CHILDREN;
    else return false;
    return true;
}

void dv_apache_on_watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle;
    (void)state;
    dv_apache *apache = context;
    dv_watch_kind kind;
    /* A session event reaches every watch and consumes none; the session's own watcher tells of it. */
    if (!read_kind(type, &kind) || !path) return;
    dv_fired_watch *fired = malloc(sizeof *fired + strlen(path) + 1);
    if (!fired) return;
    dv_fired_watch_init(fired, &apache->watches, path, kind);
    apache->znode.sink.post(apache->znode.sink.queue, &fired->event);
}
