/* Cache: which roles are watched, which polled for lack of room. docs/protocol.md, W13. SPDX-License-Identifier:
 * Apache-2.0 */
#include <assert.h>

#include "registry/cache_internal.h"

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* W13: what is set at the server counts, even if given back, and what is reserved and not set yet. */
static size_t room(const dv_cache *cache) {
    size_t most = dv_standing_limit(cache->client);
    divvy_stats stats;
    cache->client->znode->backend->stats(cache->client->znode, &stats);
    size_t at_server = (size_t)stats.watch_path_bytes + cache->unset_bytes;
    size_t reserved = cache->client->watched.used_bytes;
    size_t of_all = most - least(most, at_server > reserved ? at_server : reserved);
    return least(of_all, cache->options.watch_bytes - cache->watch_bytes);
}

bool dv_cache_node_reserve(dv_cache_node *node) {
    dv_cache *cache = node->cache;
    size_t bytes = dv_path_cost(node->path);
    assert(!node->watched);
    if (bytes > room(cache) || !dv_reserve_watch(cache->client, bytes)) return false;
    cache->watch_bytes += bytes;
    cache->unset_bytes += bytes;
    assert(cache->unset_bytes <= cache->watch_bytes);
    return node->watched = true;
}

void dv_cache_node_note_watch(dv_cache_node *node) {
    bool set = node->watch.link;
    if (!node->watched || node->set == set) return;
    node->set = set;
    if (set) node->cache->unset_bytes -= dv_path_cost(node->path);
    else node->cache->unset_bytes += dv_path_cost(node->path);
    assert(node->cache->unset_bytes <= node->cache->watch_bytes);
}

void dv_cache_node_release(dv_cache_node *node) {
    dv_cache *cache = node->cache;
    size_t bytes = dv_path_cost(node->path);
    assert(node->watched || !node->set);
    if (!node->watched) return;
    dv_znode_unwatch(cache->client->znode, &node->watch);
    dv_cache_node_note_watch(node);
    assert(!node->set && cache->watch_bytes >= bytes && cache->unset_bytes >= bytes);
    node->watched = false;
    cache->watch_bytes -= bytes;
    cache->unset_bytes -= bytes;
    dv_release_watch(cache->client, bytes);
}

/* The first one is warned of; with many roles that do not fit the others would drown all else. */
static bool is_first_polled(const dv_cache_role *role) {
    for (const dv_cache_role *other = role->dir.node.cache->roles; other; other = other->next)
        if (other != role && !other->dir.node.watched) return false;
    return true;
}

void dv_role_poll(dv_cache_role *role) {
    const dv_cache *cache = role->dir.node.cache;
    long long poll_ms = cache->options.poll_ms;
    dv_cache_node_release(&role->dir.node);
    role->dir.missing = false;
    for (dv_slot *slot = role->slots; slot; slot = slot->next) dv_cache_node_release(&slot->node);
    if (is_first_polled(role))
        dv_client_warn(cache->client, DIVVY_WARN_POLLED,
                       "the live view of %.200s does not fit the %zu bytes of paths that live views may watch (or what "
                       "is left of the client's): it is read each %lld ms instead, and so is whatever else does not "
                       "fit; raise watch_bytes, or watch fewer roles",
                       role->dir.node.path, cache->options.watch_bytes, poll_ms);
    else
        dv_client_log(cache->client, DIVVY_LOG_WARN, "the live view of %.200s does not fit either: read each %lld ms",
                      role->dir.node.path, poll_ms);
}

/* An eighth is to be free besides, so that a role at the brink does not change sides with each entry. */
void dv_role_try_watching(dv_cache_role *role) {
    assert(!role->dir.node.watched);
    size_t bytes = dv_path_cost(role->dir.node.path);
    for (const dv_slot *slot = role->slots; slot; slot = slot->next)
        if (slot->present) bytes += dv_path_cost(slot->node.path);
    if (bytes + bytes / DV_CACHE_SLACK_PARTS > room(role->dir.node.cache)) return;
    dv_cache_node_reserve(&role->dir.node);
    for (dv_slot *slot = role->slots; slot; slot = slot->next)
        if (slot->present) dv_cache_node_reserve(&slot->node);
}
