/* One-shot watches on the native client's. SPDX-License-Identifier: Apache-2.0
 *
 * All are registered there with one function and one context, and told apart here by path and kind. A watch that we
 * no longer want stays armed there until it fires: taking it back would cost a request and free nothing at the
 * server. */
#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "znode/apache/apache.h"

typedef struct watched {
    bool of_children;
    bool armed;        /* a read that set the watch has succeeded, and it has not fired since */
    bool orphan;       /* of a session that is over: in no tree, kept for the reads under way */
    size_t under_way;  /* reads that would arm it */
    dv_watch *waiting; /* who wants to hear of it; may be nobody */
    dv_apache *apache;
    char path[];
} watched;

typedef struct {
    dv_event event;
    dv_apache *apache;
    int type;
    char path[];
} fired_event;

static int compare(const void *a, const void *b) {
    const watched *x = a, *y = b;
    if (x->of_children != y->of_children) return x->of_children ? 1 : -1;
    return strcmp(x->path, y->path);
}

static watched *make(dv_apache *apache, const char *path, bool of_children) {
    size_t path_bytes = strlen(path) + 1;
    watched *w = calloc(1, sizeof *w + path_bytes);
    if (!w) return NULL;
    w->of_children = of_children;
    w->apache = apache;
    memcpy(w->path, path, path_bytes);
    return w;
}

static void link_watch(watched *w, dv_watch *watch) {
    assert(!watch->link);
    watch->next = w->waiting;
    watch->link = &w->waiting;
    if (w->waiting) w->waiting->link = &watch->next;
    w->waiting = watch;
}

static void unlink_watch(dv_watch *watch) {
    assert(watch->link);
    *watch->link = watch->next;
    if (watch->next) watch->next->link = watch->link;
    watch->next = NULL;
    watch->link = NULL;
}

static void set_armed(watched *w, bool armed) {
    if (w->armed == armed) return;
    assert(!armed || !w->orphan);
    w->armed = armed;
    divvy_stats *stats = &w->apache->stats;
    size_t bytes = strlen(w->path) + 4;
    stats->watches += armed ? 1 : (uint64_t)-1;
    stats->watch_path_bytes += armed ? bytes : (uint64_t)0 - bytes;
}

static void drop_if_idle(watched *w) {
    if (w->armed || w->under_way || w->waiting) return;
    if (!w->orphan) tdelete(w, &w->apache->watches, compare);
    free(w);
}

struct watched *dv_apache_watch_begin(dv_apache *apache, const char *path, dv_kind kind, dv_watch *watch) {
    watched *fresh = make(apache, path, kind == DV_CHILDREN);
    if (!fresh) return NULL;
    watched **place = (watched **)tsearch(fresh, &apache->watches, compare);
    if (!place) {
        free(fresh);
        return NULL;
    }
    watched *w = *place;
    if (w != fresh) free(fresh);
    if (watch->link) unlink_watch(watch);
    link_watch(w, watch);
    w->under_way++;
    return w;
}

void dv_apache_watch_end(dv_apache *apache, struct watched *w, dv_watch *watch, bool armed) {
    (void)apache;
    assert(w->under_way > 0);
    w->under_way--;
    if (armed && !w->orphan) set_armed(w, true);
    else if (watch && watch->link) unlink_watch(watch);
    drop_if_idle(w);
}

void dv_apache_unwatch(dv_znode *znode, dv_watch *watch) {
    (void)znode;
    if (watch->link) unlink_watch(watch);
    watch->fired = NULL;
}

static void fire(dv_apache *apache, const char *path, bool of_children, dv_watch_kind kind, int64_t now) {
    watched *key = make(apache, path, of_children);
    if (!key) return; /* The watch's owner finds by its audit what is missed here. */
    watched **place = (watched **)tfind(key, &apache->watches, compare);
    free(key);
    if (!place) return;
    watched *w = *place;
    if (w->waiting) apache->stats.watch_events++;
    set_armed(w, false);
    /* Off the entry first: a watch may be armed again, or another taken back, while they are told one by one. */
    dv_watch *told = w->waiting;
    w->waiting = NULL;
    if (told) told->link = &told;
    w->under_way++; /* keeps w during the loop */
    while (told) {
        dv_watch *watch = told;
        unlink_watch(watch);
        if (watch->fired) watch->fired(watch, kind, now);
    }
    assert(w->under_way > 0);
    w->under_way--;
    drop_if_idle(w);
}

static void run_fired(dv_event *event, int64_t now) {
    fired_event *e = (fired_event *)(void *)event;
    int type = e->type;
    if (type == ZOO_CHILD_EVENT) fire(e->apache, e->path, true, DV_WATCH_CHILDREN, now);
    if (type == ZOO_CREATED_EVENT) fire(e->apache, e->path, false, DV_WATCH_CREATED, now);
    if (type == ZOO_CHANGED_EVENT) fire(e->apache, e->path, false, DV_WATCH_CHANGED, now);
    if (type == ZOO_DELETED_EVENT) {
        fire(e->apache, e->path, false, DV_WATCH_DELETED, now);
        fire(e->apache, e->path, true, DV_WATCH_DELETED, now);
    }
    free(e);
}

void dv_apache_on_watch(zhandle_t *handle, int type, int state, const char *path, void *context) {
    (void)handle;
    (void)state;
    dv_apache *apache = context;
    /* A session event reaches every watch and consumes none; the session's own watcher tells of it. */
    if (type == ZOO_SESSION_EVENT || !path) return;
    size_t path_bytes = strlen(path) + 1;
    fired_event *e = malloc(sizeof *e + path_bytes);
    if (!e) return;
    e->event.run = run_fired;
    e->apache = apache;
    e->type = type;
    memcpy(e->path, path, path_bytes);
    apache->znode.sink.post(apache->znode.sink.queue, &e->event);
}

void dv_apache_clear_watches(dv_apache *apache) {
    while (apache->watches) {
        watched *w = *(watched **)apache->watches; /* the root: a node begins with the pointer to its key */
        assert(!w->orphan);
        tdelete(w, &apache->watches, compare);
        while (w->waiting) unlink_watch(w->waiting);
        set_armed(w, false);
        w->orphan = true;
        drop_if_idle(w);
    }
}
