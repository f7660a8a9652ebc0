/* Cache: life, roles and slots, sessions. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/cache_internal.h"
#include "znode/path.h"

char dv_cache_no_memory[1];

/* ---- entries, shared by reference ---- */

dv_cached *dv_cached_new(dv_cache *cache, void *entry, const dv_stat *stat, bool preserved) {
    dv_cached *cached = entry ? calloc(1, sizeof *cached) : NULL;
    if (!cached) {
        if (entry) cache->events->free_entry(entry);
        return NULL;
    }
    *cached = (dv_cached){1, cache->events->free_entry, *stat, preserved, entry};
    return cached;
}

dv_cached *dv_cached_ref(dv_cached *cached) {
    assert(!cached || cached->refs > 0);
    if (cached) cached->refs++;
    return cached;
}

void dv_cached_unref(dv_cached *cached) {
    assert(!cached || cached->refs > 0);
    if (!cached || --cached->refs) return;
    cached->free_entry(cached->entry);
    free(cached);
}

/* ---- nodes ---- */

int dv_cache_node_init(dv_cache_node *node, dv_cache *cache, dv_cache_role *role, const char *parent,
                       const char *name) {
    *node = (dv_cache_node){.cache = cache, .role = role};
    node->path = parent ? dv_path_join(parent, name) : strdup(name);
    if (!node->path) return DIVVY_ENOMEM;
    node->name = dv_path_last(node->path);
    return 0;
}

static int compare_nodes(const void *a, const void *b) {
    return strcmp(((const dv_cache_node *)a)->name, ((const dv_cache_node *)b)->name);
}

static void *find(void *const *tree, const char *name) {
    dv_cache_node key = {.name = name};
    void **found = tfind(&key, tree, compare_nodes);
    return found ? *found : NULL;
}

/* ---- memos ---- */

static void free_memo(const dv_cache *cache, void **memo) {
    void *freed = *memo;
    *memo = NULL;
    if (freed) cache->events->free_memo(freed);
}

void **dv_cache_memo(dv_cache *cache, const char *name) {
    if (!name) return &cache->memo;
    dv_cache_role *role = find(&cache->by_name, name);
    return role ? &role->memo : NULL;
}

void **dv_slot_memo(dv_slot *slot) {
    return &slot->node.role->memo;
}

/* Entries of the role leave the view untold. */
static void forget_memos(dv_cache_role *role) {
    dv_cache *cache = role->dir.node.cache;
    free_memo(cache, &role->memo);
    free_memo(cache, &cache->memo);
}

/* ---- slots ---- */

static dv_slot *add_slot(dv_cache_role *role, const char *id) {
    assert(!role->ended);
    dv_slot *slot = calloc(1, sizeof *slot);
    if (!slot) return NULL;
    if (dv_cache_node_init(&slot->node, role->dir.node.cache, role, role->dir.node.path, id) != 0 ||
        !tsearch(slot, &role->by_name, compare_nodes)) {
        free(slot->node.path);
        free(slot);
        return NULL;
    }
    slot->next = role->slots;
    slot->link = &role->slots;
    if (slot->next) slot->next->link = &slot->next;
    role->slots = slot;
    return slot;
}

dv_slot *dv_slot_find_or_add(dv_cache_role *role, const char *id) {
    dv_slot *found = find(&role->by_name, id);
    return found ? found : add_slot(role, id);
}

static void free_slot(dv_slot *slot) {
    assert(!slot->due[DV_VIEW_ROLE] && !slot->due[DV_VIEW_ALL] && !slot->node.under_way);
    dv_cache_node_forget(&slot->node);
    dv_slot_was_read(slot);
    dv_cache_node_release(&slot->node);
    dv_cached_unref(slot->current);
    for (int i = 0; i < DV_VIEWS; i++) dv_cached_unref(slot->told[i]);
    tdelete(slot, &slot->node.role->by_name, compare_nodes);
    *slot->link = slot->next;
    if (slot->next) slot->next->link = slot->link;
    free(slot->node.path);
    free(slot);
}

void dv_slot_let_go(dv_slot *slot) {
    dv_cache_role *role = slot->node.role;
    bool told = !slot->due[DV_VIEW_ROLE] && !slot->due[DV_VIEW_ALL];
    if (slot->present || slot->current || slot->node.under_way || !told) return;
    free_slot(slot);
    dv_role_let_go(role);
}

void *dv_slot_tag(const dv_slot *slot) {
    return slot->node.role->tag;
}

void dv_slot_show(dv_slot *slot, dv_cached *cached) {
    assert(!cached || cached->refs > 0);
    const dv_cache *cache = slot->node.cache;
    dv_cached *before = slot->current;
    slot->current = cached;
    if (before != cached && !slot->node.role->ended) cache->events->changed(cache->owner, slot, before);
    dv_cached_unref(before);
}

void dv_slot_was_read(dv_slot *slot) {
    if (!slot->unread) return;
    slot->unread = false;
    assert(slot->node.role->unread > 0);
    slot->node.role->unread--;
    dv_role_check_primed(slot->node.role);
}

void dv_slot_depart(dv_slot *slot, int64_t now) {
    assert(!slot->node.under_way);
    slot->present = false;
    dv_cache_node_forget(&slot->node);
    dv_cache_node_release(&slot->node);
    if (slot->current && !slot->current->preserved && !dv_preserve_departed(slot, now)) dv_slot_show(slot, NULL);
    dv_slot_was_read(slot);
    dv_slot_let_go(slot);
}

/* ---- roles ---- */

static dv_cache_role *find_or_add_role(dv_cache *cache, const char *name) {
    dv_cache_role *role = find(&cache->by_name, name);
    if (role) return role;
    role = calloc(1, sizeof *role);
    if (!role) return NULL;
    if (dv_cache_node_init(&role->dir.node, cache, role, cache->root.node.path, name) != 0 ||
        !tsearch(role, &cache->by_name, compare_nodes)) {
        free(role->dir.node.path);
        free(role);
        return NULL;
    }
    role->next = cache->roles;
    role->link = &cache->roles;
    if (role->next) role->next->link = &role->next;
    cache->roles = role;
    if (!dv_cache_node_reserve(&role->dir.node)) dv_role_poll(role);
    dv_cache_node_request(&role->dir.node);
    return role;
}

/* Notes that the view is complete (W10). */
static void check_all_primed(dv_cache *cache) {
    if (cache->all_primed || !cache->all_followed || !cache->root.listed) return;
    for (const dv_cache_role *role = cache->roles; role; role = role->next) {
        if (role->listed && !role->primed) return;
    }
    cache->all_primed = true;
}

void dv_role_check_primed(dv_cache_role *role) {
    if (role->primed || role->ended || !role->dir.listed || role->unread > 0) return;
    role->primed = true;
    check_all_primed(role->dir.node.cache);
}

void dv_role_free_ended(dv_cache_role *role) {
    if (!role->ended || role->under_way) return;
    for (dv_slot *slot = role->slots, *next; slot; slot = next) {
        next = slot->next;
        free_slot(slot);
    }
    assert(!role->memo);
    free(role->dir.node.path);
    free(role);
}

/* Ends the role: its entries leave the view, and no user is told. */
static void end_role(dv_cache_role *role) {
    assert(!role->ended);
    dv_cache *cache = role->dir.node.cache;
    role->ended = true;
    forget_memos(role);
    tdelete(role, &cache->by_name, compare_nodes);
    *role->link = role->next;
    if (role->next) role->next->link = role->link;
    dv_cache_node_forget(&role->dir.node);
    dv_cache_node_release(&role->dir.node);
    dv_timer_cancel(&role->dir.timer);
    dv_timer_cancel(&role->preserve_timer);
    for (dv_slot *slot = role->slots; slot; slot = slot->next) {
        dv_cache_node_forget(&slot->node);
        dv_cache_node_release(&slot->node);
    }
    dv_role_free_ended(role);
    check_all_primed(cache);
}

void dv_role_let_go(dv_cache_role *role) {
    if (!role->ended && !role->followed && !role->listed && !role->slots && !role->under_way) end_role(role);
}

/* A role that has gone keeps its place while something of it is kept in the view, or still to be told. */
static void depart_role(dv_cache_role *role, int64_t now) {
    assert(role->listed && !role->ended);
    role->listed = false;
    if (role->followed) return; /* Its own list tells. */
    role->under_way++;          /* It stays until all of it has been looked at. */
    for (dv_slot *slot = role->slots, *next; slot; slot = next) {
        next = slot->next;
        if (slot->present && !slot->node.under_way) dv_slot_depart(slot, now);
    }
    role->under_way--;
    dv_role_let_go(role);
}

void dv_cache_take_roles(dv_cache *cache, const char *const *names, size_t count, int64_t now) {
    assert(cache->all_followed);
    uint64_t generation = ++cache->root.generation;
    for (size_t i = 0; i < count; i++) {
        dv_cache_role *role = find_or_add_role(cache, names[i]);
        if (!role) {
            cache->root.listed = false; /* No memory: it is listed again soon. */
            return;
        }
        if (!role->dir.node.watch.link) dv_cache_node_request(&role->dir.node); /* It has gone and come back. */
        role->listed = true;
        role->generation = generation;
    }
    for (dv_cache_role *role = cache->roles, *next; role; role = next) {
        next = role->next;
        if (role->listed && role->generation != generation) depart_role(role, now);
    }
    check_all_primed(cache);
}

int dv_cache_follow(dv_cache *cache, const char *name, void *tag) {
    assert(!cache->ended);
    if (!name) {
        cache->all_followed = true;
        dv_cache_node_request(&cache->root.node);
    } else {
        dv_cache_role *role = find_or_add_role(cache, name);
        if (!role) return DIVVY_ENOMEM;
        role->followed = true;
        role->tag = tag;
        if (!role->dir.node.watch.link) dv_cache_node_request(&role->dir.node);
    }
    dv_cache_pump(cache);
    return 0;
}

void dv_cache_unfollow(dv_cache *cache, const char *name) {
    if (name) {
        dv_cache_role *role = find(&cache->by_name, name);
        if (!role) return;
        role->followed = false;
        role->tag = NULL;
        if (!role->listed) end_role(role);
        return;
    }
    cache->all_followed = cache->all_primed = cache->root.listed = cache->root.missing = false;
    free_memo(cache, &cache->memo);
    dv_cache_node_forget(&cache->root.node);
    dv_cache_node_release(&cache->root.node);
    dv_timer_cancel(&cache->root.timer);
    for (dv_cache_role *role = cache->roles, *next; role; role = next) {
        next = role->next;
        role->listed = false;
        if (!role->followed) end_role(role);
    }
}

/* ---- looking ---- */

bool dv_cache_is_primed(const dv_cache *cache, const char *name) {
    if (!name) return cache->all_primed;
    const dv_cache_role *role = find(&cache->by_name, name);
    return role ? role->primed : cache->all_primed;
}

void dv_cache_each(const dv_cache *cache, const char *name, void (*visit)(void *context, dv_slot *slot),
                   void *context) {
    for (dv_cache_role *role = name ? find(&cache->by_name, name) : cache->roles; role; role = role->next) {
        for (dv_slot *slot = role->slots; slot; slot = slot->next) visit(context, slot);
        if (name) return;
    }
}

/* ---- the session: W12 ---- */

static void forget_watch(dv_cache_node *node) {
    dv_znode_unwatch(node->cache->client->znode, &node->watch);
    dv_cache_node_note_watch(node);
}

/* No watch has survived. The entries of the view stay in it until they are read again. */
static void on_lost(dv_cache *cache) {
    cache->root.listed = false;
    cache->all_primed = false;
    forget_watch(&cache->root.node);
    for (dv_cache_role *role = cache->roles; role; role = role->next) {
        role->dir.listed = false;
        role->primed = false;
        forget_watch(&role->dir.node);
        for (dv_slot *slot = role->slots; slot; slot = slot->next) {
            forget_watch(&slot->node);
            role->unread += slot->present && !slot->unread;
            slot->unread |= slot->present;
        }
    }
}

/* W12: on the same session watches go on; lists are read again, and with them the entries that have no watch. */
static void on_connected(dv_cache *cache) {
    if (cache->all_followed) dv_cache_node_request(&cache->root.node);
    for (dv_cache_role *role = cache->roles; role; role = role->next) {
        if (role->followed || role->listed) dv_cache_node_request(&role->dir.node);
    }
    dv_cache_pump(cache);
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    (void)now;
    dv_cache *cache = DV_CONTAINER(listener, dv_cache, listener);
    if (event == DV_SESSION_LOST || event == DV_SESSION_CLOSED) on_lost(cache);
    if (event == DV_SESSION_CONNECTED) on_connected(cache);
}

/* ---- life ---- */

static void on_retry(dv_timer *timer, int64_t now) {
    (void)now;
    dv_cache_pump(DV_CONTAINER(timer, dv_cache, retry_timer));
}

dv_cache *dv_cache_start(divvy_client *client, const char *directory, const dv_cache_options *options,
                         const dv_cache_owner *events, void *owner) {
    assert(options->watch_bytes && options->poll_ms > 0 && options->preserve_share >= 0);
    dv_cache *cache = calloc(1, sizeof *cache);
    if (!cache) return NULL;
    *cache = (dv_cache){.client = client,
                        .options = *options,
                        .events = events,
                        .owner = owner,
                        .listener = {.hear = hear},
                        .retry_timer.fire = on_retry};
    cache->lists.end = &cache->lists.first;
    cache->gets.end = &cache->gets.first;
    if (dv_cache_node_init(&cache->root.node, cache, NULL, NULL, directory) != 0) {
        free(cache);
        return NULL;
    }
    dv_listen(client, &cache->listener);
    return cache;
}

void dv_cache_free_ended(dv_cache *cache) {
    if (!cache->ended || cache->under_way) return;
    assert(!cache->roles && !cache->memo && !cache->watch_bytes && !cache->unset_bytes);
    const dv_cache_owner *events = cache->events;
    void *owner = cache->owner;
    free(cache->root.node.path);
    free(cache);
    events->gone(owner);
}

void dv_cache_stop(dv_cache *cache) {
    assert(!cache->ended);
    cache->under_way++; /* It is not freed before all is done. */
    cache->ended = true;
    dv_unlisten(cache->client, &cache->listener);
    dv_timer_cancel(&cache->retry_timer);
    for (dv_cache_role *role = cache->roles; role; role = role->next) role->followed = false;
    dv_cache_unfollow(cache, NULL);
    cache->under_way--;
    dv_cache_free_ended(cache);
}
