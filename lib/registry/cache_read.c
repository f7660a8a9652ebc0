/* Cache: what is read, when, and what the answers mean. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/cache_internal.h"
#include "znode/path.h"

/* ---- what is wanted, in order: W8 ---- */

static void put(dv_cache_queue *queue, dv_cache_read *reading) {
    assert(!reading->link);
    reading->queue = queue;
    reading->next = NULL;
    reading->link = queue->end;
    *queue->end = reading;
    queue->end = &reading->next;
}

void dv_cache_read_forget(dv_cache_read *reading) {
    if (!reading->link) return;
    assert(!reading->under_way);
    *reading->link = reading->next;
    if (reading->next) reading->next->link = reading->link;
    else reading->queue->end = reading->link;
    reading->link = NULL;
}

static void want(dv_cache_queue *queue, dv_cache_read *reading) {
    assert(!reading->link || !reading->under_way);
    if (reading->under_way) reading->again = true;
    else if (!reading->link) put(queue, reading);
}

void dv_dir_want(dv_dir *dir) {
    dv_timer_cancel(&dir->timer);
    want(&dir->cache->lists, &dir->reading);
}

void dv_slot_want(dv_slot *slot) {
    want(&slot->role->dir.cache->gets, &slot->reading);
}

void dv_cache_pump(dv_cache *cache) {
    while (dv_client_connected(cache->client) && cache->under_way < DV_CACHE_IN_FLIGHT_MAX) {
        dv_cache_read *reading = cache->lists.first ? cache->lists.first : cache->gets.first;
        if (!reading) return;
        assert(!reading->under_way);
        reading->again = false;
        if (reading->submit(reading) != 0) {
            dv_timer_set(cache->client, &cache->retry_timer, dv_client_now(cache->client) + DV_CACHE_RETRY_MS);
            return;
        }
        dv_cache_read_forget(reading);
        reading->under_way = true;
        cache->under_way++;
    }
}

/* Counts an answer. Returns whether anybody is left who wants it. An ended role may be freed here. */
static bool answered(dv_cache_read *reading, dv_cache *cache, dv_cache_role *role) {
    assert(reading->under_way && cache->under_way > 0 && (!role || role->under_way > 0));
    reading->under_way = false;
    cache->under_way--;
    if (!role) return cache->all_wanted;
    role->under_way--;
    if (!role->ended) return true;
    dv_role_free_ended(role);
    return false;
}

/* After an answer: the next one may be sent, or all is over. */
static void go_on(dv_cache *cache) {
    if (cache->ended) dv_cache_free_ended(cache);
    else dv_cache_pump(cache);
}

/* ---- entries ---- */

static void refuse_entry(dv_slot *slot, int error, int64_t now) {
    assert(!slot->reading.under_way);
    dv_client_log(slot->role->dir.cache->client, DIVVY_LOG_ERROR, "the entry %s cannot be read: %s", slot->path,
                  divvy_strerror(error));
    slot->read_at = now;
    dv_slot_show(slot, NULL, now);
    dv_slot_was_read(slot);
}

/* W6: each version of a node is shown once, however often it is read. */
static void take_entry(dv_slot *slot, const dv_reply *reply, int64_t now) {
    assert(!slot->reading.under_way && !slot->role->ended);
    dv_cache *cache = slot->role->dir.cache;
    bool missed = slot->reserved && !slot->watch.link; /* It fired while the answer was on its way. */
    slot->read_at = now;
    bool preserved = slot->current && slot->current->preserved;
    if (slot->mzxid != reply->stat->mzxid || preserved) {
        void *entry = cache->events->parse(cache->owner, slot->role->dir.name, slot->id, reply);
        bool parsed = entry != dv_cache_no_memory;
        dv_cached *cached = parsed ? dv_cached_new(cache, entry, reply->stat, false) : NULL;
        if (!parsed || (entry && !cached)) {
            dv_slot_want(slot); /* The shown entry stays until the node can be read. */
            return;
        }
        bool came = entry && (!slot->current || preserved);
        slot->mzxid = reply->stat->mzxid;
        dv_slot_show(slot, cached, now);
        if (came) dv_preserve_arrived(slot->role, now);
    }
    dv_slot_was_read(slot);
    if (slot->reading.again || missed) dv_slot_want(slot);
}

static void on_entry(void *context, const dv_reply *reply, int64_t now) {
    dv_slot *slot = context;
    dv_cache_role *role = slot->role;
    dv_cache *cache = role->dir.cache;
    if (answered(&slot->reading, cache, role)) {
        dv_slot_note_watch(slot);
        if (dv_session_over(reply->error)) dv_slot_let_go(slot); /* The next session reads all. */
        else if (dv_outcome_unknown(reply->error)) dv_slot_want(slot);
        else if (reply->error == DIVVY_ENOENT) dv_slot_depart(slot, now);
        else if (reply->error) refuse_entry(slot, reply->error, now);
        else take_entry(slot, reply, now);
    }
    go_on(cache);
}

/* A deletion needs no read: whatever comes under the same name shows in the role's list. */
static void on_entry_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    dv_slot *slot = DV_CONTAINER(watch, dv_slot, watch);
    dv_cache *cache = slot->role->dir.cache;
    dv_slot_note_watch(slot);
    if (kind == DV_WATCH_DELETED && !slot->reading.under_way) dv_slot_depart(slot, now);
    else dv_slot_want(slot);
    dv_cache_pump(cache);
}

static int submit_get(dv_cache_read *reading) {
    dv_slot *slot = (dv_slot *)(void *)reading;
    assert(!slot->reading.under_way && !slot->role->ended);
    slot->watch.fired = on_entry_event;
    dv_znode *znode = slot->role->dir.cache->client->znode;
    int error = dv_znode_get(znode, slot->path, slot->reserved ? &slot->watch : NULL, on_entry, slot);
    if (!error) slot->role->under_way++;
    return error;
}

void dv_slot_init_reading(dv_slot *slot) {
    slot->reading.submit = submit_get;
}

/* ---- lists ---- */

/* W11: what has no watch is read with each list, what has one after a while, lest an event was lost. */
static bool is_due(const dv_slot *slot, int64_t now) {
    return !slot->present || !slot->watch.link || slot->read_at + DV_CACHE_AUDIT_MS <= now;
}

static void expect_entry(dv_slot *slot, int64_t now) {
    dv_cache_role *role = slot->role;
    assert(slot->listed == role->dir.generation);
    bool due = is_due(slot, now);
    if (!slot->present) {
        slot->present = true;
        slot->mzxid = -1;
        slot->unread = !role->primed;
        role->unread += slot->unread;
        if (role->dir.watched && !dv_slot_reserve(slot)) dv_role_poll(role);
    }
    if (due && !slot->reading.under_way) dv_slot_want(slot);
}

static void take_entries(dv_cache_role *role, const dv_reply *reply, int64_t now) {
    assert(!role->ended);
    uint64_t generation = ++role->dir.generation;
    role->under_way++; /* keeps the role during the loop */
    for (size_t i = 0; i < reply->child_count; i++) {
        dv_slot *slot = dv_slot_find_or_add(role, reply->children[i]);
        if (!slot) {
            role->dir.listed = false; /* No memory: it is listed again soon. */
            continue;
        }
        slot->listed = generation;
        expect_entry(slot, now);
    }
    for (dv_slot *slot = role->slots, *next; slot; slot = next) {
        next = slot->next;
        /* A read that is under way was sent later or answers sooner than this list: it decides. */
        if (slot->present && slot->listed != generation && !slot->reading.under_way) dv_slot_depart(slot, now);
    }
    role->under_way--;
    dv_role_check_primed(role);
}

/* W8: at most one list at a time, and one each interval, however much changes. */
static void list_later(dv_dir *dir, int64_t at, int64_t now) {
    if (at <= now) dv_dir_want(dir);
    else dv_timer_set(dir->cache->client, &dir->timer, at);
}

static void schedule(dv_dir *dir, int64_t now) {
    bool missed = dir->watched && dir->listed && !dir->missing && !dir->watch.link;
    if (dir->reading.link || (dir->role && !dir->role->wanted && !dir->role->listed)) return;
    if (dir->reading.again || missed) list_later(dir, dir->asked_at + DV_CACHE_LIST_INTERVAL_MS, now);
    else if (!dir->listed && !dir->refused) list_later(dir, now + DV_CACHE_RETRY_MS, now);
    else if (dir->watched && !dir->refused) list_later(dir, now + DV_CACHE_AUDIT_MS, now);
    else list_later(dir, dir->asked_at + dir->cache->options.poll_ms, now);
}

static void take_list(dv_dir *dir, const dv_reply *reply, int64_t now) {
    assert(!dir->reading.under_way);
    dir->listed = true;
    dir->refused = 0;
    if (dir->role) take_entries(dir->role, reply, now);
    else dv_cache_take_roles(dir->cache, reply->children, reply->child_count, now);
}

/* W6: a directory that is missing has no names, and its creation is watched, unless R tells of it. */
static bool wants_existence(const dv_dir *dir) {
    return dir->watched && (!dir->role || dir->role->wanted);
}

static void on_missing(dv_dir *dir, int64_t now) {
    bool known = dir->missing;
    dir->missing = true;
    take_list(dir, &(dv_reply){0}, now);
    if (!known && wants_existence(dir)) dv_dir_want(dir);
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_dir *dir = context;
    dv_cache *cache = dir->cache;
    bool wanted = answered(&dir->reading, cache, dir->role);
    if (wanted) dv_dir_note_watch(dir);
    if (wanted && !dv_session_over(reply->error)) {
        if (dv_outcome_unknown(reply->error)) {
            dv_dir_want(dir);
        } else if (reply->error == DIVVY_ENOENT) {
            on_missing(dir, now);
        } else if (reply->error) {
            if (dir->refused != reply->error)
                dv_client_log(cache->client, DIVVY_LOG_ERROR, "the children of %s cannot be read: %s", dir->path,
                              divvy_strerror(reply->error));
            dir->refused = reply->error;
        } else if (dir->missing) {
            dir->missing = false; /* It is there after all. */
            dv_dir_want(dir);
        } else {
            take_list(dir, reply, now);
        }
        schedule(dir, now);
        if (dir->role) dv_role_let_go(dir->role);
    }
    go_on(cache);
}

static void on_names_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    dv_dir *dir = DV_CONTAINER(watch, dv_dir, watch);
    dv_dir_note_watch(dir);
    if (kind == DV_WATCH_CREATED) dir->missing = false;
    if (dir->reading.under_way) dir->reading.again = true;
    else if (!dir->reading.link) list_later(dir, dir->asked_at + DV_CACHE_LIST_INTERVAL_MS, now);
    dv_cache_pump(dir->cache);
}

static int submit_list(dv_cache_read *reading) {
    dv_dir *dir = (dv_dir *)(void *)reading;
    assert(!dir->reading.under_way);
    dv_znode *znode = dir->cache->client->znode;
    if (!dir->watched && dir->role) dv_role_try_watching(dir->role);
    else if (!dir->watched) dir->watched = dv_dir_reserve(dir);
    dir->asked_at = dv_client_now(dir->cache->client);
    if (!wants_existence(dir)) dir->missing = false;
    dir->watch.fired = on_names_event;
    dv_watch *watch = dir->watched ? &dir->watch : NULL;
    int error = dir->missing ? dv_znode_exists(znode, dir->path, watch, on_list, dir)
                             : dv_znode_children(znode, dir->path, watch, on_list, dir);
    if (!error && dir->role) dir->role->under_way++;
    return error;
}

static void on_timer(dv_timer *timer, int64_t now) {
    (void)now;
    dv_dir *dir = DV_CONTAINER(timer, dv_dir, timer);
    dv_dir_want(dir);
    dv_cache_pump(dir->cache);
}

int dv_dir_init(dv_dir *dir, dv_cache *cache, dv_cache_role *role, const char *parent, const char *name) {
    *dir = (dv_dir){.reading.submit = submit_list, .cache = cache, .role = role, .timer.fire = on_timer};
    dir->path = parent ? dv_path_join(parent, name) : strdup(name);
    if (!dir->path) return DIVVY_ENOMEM;
    dir->name = dv_path_last(dir->path);
    dir->asked_at = -DV_CACHE_LIST_INTERVAL_MS;
    return 0;
}
