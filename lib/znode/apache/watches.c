/* The native watcher: its events go to those who wait, by the client's queue. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "znode/apache/apache.h"

typedef struct {
    dv_event event;
    dv_apache *apache;
    dv_watch_kind kind;
    char path[];
} fired_event;

static void run_fired(dv_event *event, int64_t now) {
    fired_event *e = (fired_event *)(void *)event;
    dv_watch_fire(&e->apache->watches, e->path, e->kind, now);
    free(e);
}

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
    size_t path_bytes = strlen(path) + 1;
    fired_event *e = malloc(sizeof *e + path_bytes);
    if (!e) return;
    *e = (fired_event){.event.run = run_fired, .apache = apache, .kind = kind};
    memcpy(e->path, path, path_bytes);
    apache->znode.sink.post(apache->znode.sink.queue, &e->event);
}
