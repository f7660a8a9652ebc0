/* Cache: which roles are watched, and which are polled because watches are short. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, W13. A watch counts from before the read that sets it until it is wanted no more. */
#include <assert.h>

#include "registry/cache_internal.h"

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Watches that were given back stay set at the server until they fire. So what is set counts, and what is reserved and
 * not set yet, lest views that come and go make several budgets of one. */
static size_t room(const dv_cache *cache) {
    const dv_budget *all = &cache->client->watched;
    divvy_stats stats;
    cache->client->znode->backend->stats(cache->client->znode, &stats);
    size_t at_server = least(all->limit_bytes, (size_t)stats.watch_path_bytes + cache->unset_bytes);
    size_t of_all = all->limit_bytes - (at_server > all->used_bytes ? at_server : all->used_bytes);
    return least(of_all, cache->options.watch_bytes - cache->watch_bytes);
}

static bool reserve(dv_cache *cache, const char *path) {
    size_t bytes = dv_path_cost(path);
    if (bytes > room(cache) || !dv_reserve_watch(cache->client, bytes)) return false;
    cache->watch_bytes += bytes;
    cache->unset_bytes += bytes;
    assert(cache->unset_bytes <= cache->watch_bytes);
    return true;
}

static void note(dv_cache *cache, bool *known, bool set, const char *path) {
    size_t bytes = dv_path_cost(path);
    if (*known && !set) cache->unset_bytes += bytes;
    if (!*known && set) cache->unset_bytes -= bytes;
    *known = set;
    assert(cache->unset_bytes <= cache->watch_bytes);
}

static void release(dv_cache *cache, dv_watch *watch, bool *set, const char *path) {
    size_t bytes = dv_path_cost(path);
    dv_znode_unwatch(cache->client->znode, watch);
    note(cache, set, false, path);
    assert(cache->watch_bytes >= bytes && cache->unset_bytes >= bytes);
    cache->watch_bytes -= bytes;
    cache->unset_bytes -= bytes;
    dv_release_watch(cache->client, bytes);
}

bool dv_dir_reserve(dv_dir *dir) {
    assert(!dir->watched);
    return reserve(dir->cache, dir->path);
}

void dv_dir_release(dv_dir *dir) {
    assert(dir->watched || !dir->set);
    if (dir->watched) release(dir->cache, &dir->watch, &dir->set, dir->path);
    dir->watched = dir->missing = false;
}

void dv_dir_note_watch(dv_dir *dir) {
    if (dir->watched) note(dir->cache, &dir->set, dir->watch.link != NULL, dir->path);
}

bool dv_slot_reserve(dv_slot *slot) {
    assert(!slot->reserved);
    return slot->reserved = reserve(slot->role->dir.cache, slot->path);
}

void dv_slot_release(dv_slot *slot) {
    assert(slot->reserved || !slot->set);
    if (slot->reserved) release(slot->role->dir.cache, &slot->watch, &slot->set, slot->path);
    slot->reserved = false;
}

void dv_slot_note_watch(dv_slot *slot) {
    if (slot->reserved) note(slot->role->dir.cache, &slot->set, slot->watch.link != NULL, slot->path);
}

/* The first one is warned of; with many roles that do not fit the others would drown all else. */
static bool is_first_polled(const dv_cache_role *role) {
    for (const dv_cache_role *other = role->dir.cache->roles; other; other = other->next)
        if (other != role && !other->dir.watched) return false;
    return true;
}

void dv_role_poll(dv_cache_role *role) {
    const dv_cache *cache = role->dir.cache;
    long long poll_ms = cache->options.poll_ms;
    dv_dir_release(&role->dir);
    for (dv_slot *slot = role->slots; slot; slot = slot->next) dv_slot_release(slot);
    if (is_first_polled(role))
        dv_client_warn(cache->client, DIVVY_WARN_POLLED,
                       "the live view of %.200s does not fit the %zu bytes of paths that live views may watch (or what "
                       "is left of the client's): it is read each %lld ms instead, and so is whatever else does not "
                       "fit; raise watch_bytes, or watch fewer roles",
                       role->dir.path, cache->options.watch_bytes, poll_ms);
    else
        dv_client_log(cache->client, DIVVY_LOG_WARN, "the live view of %.200s does not fit either: read each %lld ms",
                      role->dir.path, poll_ms);
}

/* An eighth is to be free besides, so that a role at the brink does not change sides with each entry. */
void dv_role_try_watching(dv_cache_role *role) {
    assert(!role->dir.watched);
    size_t bytes = dv_path_cost(role->dir.path);
    for (const dv_slot *slot = role->slots; slot; slot = slot->next)
        if (slot->present) bytes += dv_path_cost(slot->path);
    if (bytes + bytes / DV_CACHE_SLACK_PARTS > room(role->dir.cache)) return;
    role->dir.watched = dv_dir_reserve(&role->dir);
    for (dv_slot *slot = role->slots; slot; slot = slot->next)
        if (slot->present) dv_slot_reserve(slot);
}
