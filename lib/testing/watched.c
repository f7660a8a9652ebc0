/* The waiters for each watch, on this side of the seam, as lib/znode/apache has them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A watch that was taken back stays set at the server until it fires. */
#include <assert.h>
#include <stdlib.h>

#include "testing/ensemble.h"

struct dv_mem_watched {
    struct dv_mem_watched *next;
    dv_mem_client *client;
    dv_mem_path *path;
    bool of_children;
    bool armed;       /* a read that set the watch has succeeded, and it has not fired since */
    bool orphan;      /* of a session that is over: in no table, kept for the reads under way */
    size_t under_way; /* reads that would arm it */
    dv_watch *waiting;
};

typedef struct dv_mem_watched watched;

static watched **find(dv_mem_client *client, const dv_mem_path *path, bool of_children) {
    watched **place = &client->watched[path->hash & (client->watched_room - 1)];
    while (*place && ((*place)->path != path || (*place)->of_children != of_children)) place = &(*place)->next;
    return place;
}

static void grow(dv_mem_client *client) {
    size_t old_room = client->watched_room;
    watched **old = client->watched;
    client->watched_room = old_room ? old_room * 2 : 32;
    client->watched = dv_mem_alloc(client->watched_room * sizeof(watched *));
    for (size_t i = 0; i < old_room; i++) {
        for (watched *w = old[i], *next; w; w = next) {
            next = w->next;
            w->next = NULL;
            *find(client, w->path, w->of_children) = w;
        }
    }
    free(old);
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
    w->armed = armed;
    divvy_stats *stats = &w->client->stats;
    uint64_t bytes = w->path->bytes + 4;
    stats->watches += armed ? 1 : (uint64_t)-1;
    stats->watch_path_bytes += armed ? bytes : (uint64_t)0 - bytes;
}

static void drop_if_idle(watched *w) {
    if (w->armed || w->under_way || w->waiting) return;
    if (!w->orphan) {
        *find(w->client, w->path, w->of_children) = w->next;
        w->client->watched_count--;
    }
    dv_mem_lock(w->client->mem);
    dv_mem_path_unref(w->client->mem, w->path);
    dv_mem_unlock(w->client->mem);
    free(w);
}

struct dv_mem_watched *dv_mem_watch_begin(dv_mem_client *client, dv_mem_path *path, bool of_children, dv_watch *watch) {
    if (client->watched_count >= client->watched_room) grow(client);
    watched **place = find(client, path, of_children);
    if (!*place) {
        *place = dv_mem_alloc(sizeof **place);
        (*place)->client = client;
        (*place)->path = dv_mem_path_ref(path);
        (*place)->of_children = of_children;
        client->watched_count++;
    }
    watched *w = *place;
    if (watch->link) unlink_watch(watch);
    link_watch(w, watch);
    w->under_way++;
    return w;
}

void dv_mem_watch_end(dv_mem_client *client, struct dv_mem_watched *w, dv_watch *watch, bool armed) {
    (void)client;
    assert(w->under_way > 0);
    w->under_way--;
    if (armed && !w->orphan) set_armed(w, true);
    else if (watch->link) unlink_watch(watch);
    drop_if_idle(w);
}

static void fire(dv_mem_client *client, const dv_mem_path *path, bool of_children, dv_watch_kind kind, int64_t now) {
    watched *w = client->watched_room ? *find(client, path, of_children) : NULL;
    if (!w) return;
    if (w->waiting) client->stats.watch_events++;
    set_armed(w, false);
    /* Off the entry first: a watch may be armed again, or another taken back, while they are told one by one. */
    dv_watch *told = w->waiting;
    w->waiting = NULL;
    if (told) told->link = &told;
    w->under_way++; /* keeps w meanwhile */
    while (told) {
        dv_watch *watch = told;
        unlink_watch(watch);
        if (watch->fired) watch->fired(watch, kind, now);
    }
    w->under_way--;
    drop_if_idle(w);
}

void dv_mem_watch_fired(dv_mem_client *client, dv_mem_path *path, dv_watch_kind kind, int64_t now) {
    if (kind != DV_WATCH_CHILDREN) fire(client, path, false, kind, now);
    if (kind == DV_WATCH_CHILDREN || kind == DV_WATCH_DELETED) fire(client, path, true, kind, now);
}

void dv_mem_unwatch(dv_znode *znode, dv_watch *watch) {
    (void)znode;
    if (watch->link) unlink_watch(watch);
    watch->fired = NULL;
}

void dv_mem_watched_clear(dv_mem_client *client) {
    for (size_t i = 0; i < client->watched_room; i++) {
        while (client->watched[i]) {
            watched *w = client->watched[i];
            client->watched[i] = w->next;
            client->watched_count--;
            while (w->waiting) unlink_watch(w->waiting);
            set_armed(w, false);
            w->orphan = true;
            drop_if_idle(w);
        }
    }
}
