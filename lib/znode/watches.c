/* One-shot watches, on this side of a backend. SPDX-License-Identifier: Apache-2.0 */
#include "znode/watches.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

struct dv_watched {
    bool of_children;
    bool armed;        /* a read that set the watch has succeeded, and it has not fired since */
    bool orphan;       /* of a session that is over: in no tree, kept for the reads under way */
    size_t under_way;  /* reads that would arm it */
    dv_watch *waiting; /* may be none */
    dv_watches *all;
    const char *path; /* behind the struct */
};

static int compare(const void *a, const void *b) {
    const dv_watched *x = a, *y = b;
    if (x->of_children != y->of_children) return x->of_children ? 1 : -1;
    return strcmp(x->path, y->path);
}

static dv_watched *find(dv_watches *all, const char *path, bool of_children) {
    dv_watched key = {.of_children = of_children, .path = path};
    dv_watched **place = (dv_watched **)tfind(&key, &all->tree, compare);
    return place ? *place : NULL;
}

static dv_watched *make(dv_watches *all, const char *path, bool of_children) {
    dv_watched *w = calloc(1, sizeof *w + strlen(path) + 1);
    if (!w) return NULL;
    *w = (dv_watched){.of_children = of_children, .all = all, .path = strcpy((char *)(w + 1), path)};
    if (tsearch(w, &all->tree, compare)) return w;
    free(w);
    return NULL;
}

static void link_watch(dv_watch **list, dv_watch *watch) {
    assert(!watch->link);
    watch->next = *list;
    watch->link = list;
    if (*list) (*list)->link = &watch->next;
    *list = watch;
}

static void unlink_watch(dv_watch *watch) {
    assert(watch->link);
    *watch->link = watch->next;
    if (watch->next) watch->next->link = watch->link;
    watch->next = NULL;
    watch->link = NULL;
}

static void set_armed(dv_watched *w, bool armed) {
    if (w->armed == armed) return;
    assert(!armed || !w->orphan);
    w->armed = armed;
    divvy_stats *stats = w->all->stats;
    size_t bytes = strlen(w->path) + 4;
    stats->watches += armed ? 1 : (uint64_t)-1;
    stats->watch_path_bytes += armed ? bytes : (uint64_t)0 - bytes;
}

static void drop_if_idle(dv_watched *w) {
    if (w->armed || w->under_way || w->waiting) return;
    if (!w->orphan) tdelete(w, &w->all->tree, compare);
    free(w);
}

dv_watched *dv_watch_begin(dv_watches *watches, const char *path, bool of_children, dv_watch *watch) {
    dv_watched *w = find(watches, path, of_children);
    if (!w && !(w = make(watches, path, of_children))) return NULL;
    if (watch->link) unlink_watch(watch);
    link_watch(&w->waiting, watch);
    w->under_way++;
    return w;
}

void dv_watch_end(dv_watched *w, dv_watch *watch, bool armed) {
    assert(w->under_way > 0);
    w->under_way--;
    if (armed && !w->orphan) set_armed(w, true);
    else if (watch && watch->link) unlink_watch(watch);
    drop_if_idle(w);
}

void dv_watch_drop(dv_znode *znode, dv_watch *watch) {
    (void)znode;
    if (watch->link) unlink_watch(watch);
    watch->fired = NULL;
}

/* A watch may be armed again, or another taken back, while they are told one by one. */
static void tell(dv_watch **told, dv_watch_kind kind, int64_t now) {
    while (*told) {
        dv_watch *watch = *told;
        unlink_watch(watch);
        if (watch->fired) watch->fired(watch, kind, now);
    }
}

static void fire(dv_watches *watches, const char *path, bool of_children, dv_watch_kind kind, int64_t now) {
    dv_watched *w = find(watches, path, of_children);
    if (!w) return;
    if (w->waiting) watches->stats->watch_events++;
    set_armed(w, false);
    dv_watch *told = w->waiting; /* off the entry first */
    w->waiting = NULL;
    if (told) told->link = &told;
    w->under_way++; /* keeps w during the loop */
    tell(&told, kind, now);
    assert(w->under_way > 0);
    w->under_way--;
    drop_if_idle(w);
}

static void run_fired(dv_event *event, int64_t now) {
    dv_fired_watch *f = (dv_fired_watch *)(void *)event;
    if (f->kind != DV_WATCH_CHILDREN) fire(f->watches, f->path, false, f->kind, now);
    if (f->kind == DV_WATCH_CHILDREN || f->kind == DV_WATCH_DELETED) fire(f->watches, f->path, true, f->kind, now);
    free(f);
}

void dv_fired_watch_init(dv_fired_watch *fired, dv_watches *watches, const char *path, dv_watch_kind kind) {
    *fired = (dv_fired_watch){.event.run = run_fired, .watches = watches, .kind = kind};
    strcpy(fired->path, path);
}

enum { OF_DATA, OF_CHILDREN, LISTS };

/* Forgets all entries. Those who waited are in the lists then. */
static void take_all(dv_watches *watches, dv_watch *waiting[LISTS]) {
    while (watches->tree) {
        dv_watched *w = *(dv_watched **)watches->tree; /* the root: a node begins with the pointer to its key */
        assert(!w->orphan);
        tdelete(w, &watches->tree, compare);
        while (w->waiting) {
            dv_watch *watch = w->waiting;
            unlink_watch(watch);
            link_watch(&waiting[w->of_children ? OF_CHILDREN : OF_DATA], watch);
        }
        set_armed(w, false);
        w->orphan = true;
        drop_if_idle(w);
    }
}

void dv_watches_clear(dv_watches *watches) {
    dv_watch *waiting[LISTS] = {NULL, NULL};
    take_all(watches, waiting);
    for (int i = 0; i < LISTS; i++) {
        while (waiting[i]) unlink_watch(waiting[i]);
    }
}

void dv_watches_fire_all(dv_watches *watches, int64_t now) {
    dv_watch *waiting[LISTS] = {NULL, NULL};
    take_all(watches, waiting);
    tell(&waiting[OF_DATA], DV_WATCH_CHANGED, now);
    tell(&waiting[OF_CHILDREN], DV_WATCH_CHILDREN, now);
}
