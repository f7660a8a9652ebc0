/* Cache: reads, when they are due, and the meaning of their answers. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/cache_internal.h"

/* ---- the reads that are due, in order: W8 ---- */

static bool is_dir(const dv_cache_node *node) {
    return !node->role || node == &node->role->dir.node;
}

static dv_dir *dir_of(dv_cache_node *node) {
    assert(is_dir(node));
    return (dv_dir *)(void *)node;
}

static dv_slot *slot_of(dv_cache_node *node) {
    assert(!is_dir(node));
    return (dv_slot *)(void *)node;
}

static dv_cache_queue *queue_of(const dv_cache_node *node) {
    return is_dir(node) ? &node->cache->lists : &node->cache->gets;
}

void dv_cache_node_request(dv_cache_node *node) {
    dv_cache_queue *queue = queue_of(node);
    assert(!node->link || !node->under_way);
    if (is_dir(node)) dv_timer_cancel(&dir_of(node)->timer);
    if (node->under_way) node->again = true;
    if (node->under_way || node->link) return;
    node->next = NULL;
    node->link = queue->end;
    *queue->end = node;
    queue->end = &node->next;
}

void dv_cache_node_forget(dv_cache_node *node) {
    if (!node->link) return;
    assert(!node->under_way);
    *node->link = node->next;
    if (node->next) node->next->link = node->link;
    else queue_of(node)->end = node->link;
    node->link = NULL;
}

/* Counts an answer. Returns whether the node is still followed. An ended role may be freed here. */
static bool answered(dv_cache_node *node) {
    dv_cache_role *role = node->role;
    assert(node->under_way && node->cache->under_way > 0 && (!role || role->under_way > 0));
    node->under_way = false;
    node->cache->under_way--;
    if (!role) return node->cache->all_followed;
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

/* A read has failed, and is due again: after a moment, if memory was short, as it may be so for long. */
static void ask_again(dv_cache_node *node, int error, int64_t now) {
    dv_cache_node_request(node);
    if (error == DIVVY_ENOMEM) dv_timer_set(node->cache->client, &node->cache->retry_timer, now + DV_CACHE_RETRY_MS);
}

/* ---- entries ---- */

static void refuse_entry(dv_slot *slot, int error, int64_t now) {
    assert(!slot->node.under_way);
    dv_client_log(slot->node.cache->client, DIVVY_LOG_ERROR, "the entry %s cannot be read: %s", slot->node.path,
                  divvy_strerror(error));
    slot->read_at = now;
    slot->mzxid = -1; /* Once it can be read, this version is shown again. */
    dv_slot_show(slot, NULL);
    dv_slot_was_read(slot);
}

/* W6: each version of a node is shown once, however often it is read. */
static void take_entry(dv_slot *slot, const dv_reply *reply, int64_t now) {
    assert(!slot->node.under_way && !slot->node.role->ended);
    dv_cache *cache = slot->node.cache;
    bool missed = slot->node.watched && !slot->node.watch.link; /* It fired while the answer was on its way. */
    slot->read_at = now;
    bool preserved = slot->current && slot->current->preserved;
    if (slot->mzxid != reply->stat->mzxid || preserved) {
        void *entry = cache->events->parse(cache->owner, slot->node.role->dir.node.name, slot->node.name, reply);
        bool parsed = entry != dv_cache_no_memory;
        dv_cached *cached = parsed ? dv_cached_new(cache, entry, reply->stat, false) : NULL;
        if (!parsed || (entry && !cached)) {
            ask_again(&slot->node, DIVVY_ENOMEM, now); /* The shown entry stays until the node can be read. */
            return;
        }
        bool came = entry && (!slot->current || preserved);
        slot->mzxid = reply->stat->mzxid;
        dv_slot_show(slot, cached);
        if (came) dv_preserve_arrived(slot->node.role);
    }
    dv_slot_was_read(slot);
    if (slot->node.again || missed) dv_cache_node_request(&slot->node);
}

static void on_entry(void *context, const dv_reply *reply, int64_t now) {
    dv_cache_node *node = context;
    dv_cache *cache = node->cache;
    dv_slot *slot = slot_of(node);
    if (answered(node)) {
        dv_cache_node_note_watch(node);
        if (dv_session_over(reply->error)) dv_slot_let_go(slot); /* The next session reads all. */
        else if (dv_outcome_unknown(reply->error)) ask_again(node, reply->error, now);
        else if (reply->error == DIVVY_ENOENT) dv_slot_depart(slot, now);
        else if (reply->error) refuse_entry(slot, reply->error, now);
        else take_entry(slot, reply, now);
    }
    go_on(cache);
}

static int send_get(dv_cache_node *node) {
    return dv_znode_get(node->cache->client->znode, node->path, node->watched ? &node->watch : NULL, on_entry, node);
}

/* ---- lists ---- */

/* W11: an entry without a watch is read with each list; one with a watch after a while, as an event may be lost. */
static bool is_due(const dv_slot *slot, int64_t now) {
    return !slot->present || !slot->node.watch.link || slot->read_at + DV_CACHE_AUDIT_MS <= now;
}

static void expect_entry(dv_slot *slot, int64_t now) {
    dv_cache_role *role = slot->node.role;
    assert(slot->listed == role->dir.generation);
    bool due = is_due(slot, now);
    if (!slot->present) {
        slot->present = true;
        slot->mzxid = -1;
        slot->unread = !role->primed;
        role->unread += slot->unread;
        if (role->dir.node.watched && !dv_cache_node_reserve(&slot->node)) dv_role_poll(role);
    }
    if (due && !slot->node.under_way) dv_cache_node_request(&slot->node);
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
        if (slot->present && slot->listed != generation && !slot->node.under_way) dv_slot_depart(slot, now);
    }
    role->under_way--;
    dv_role_check_primed(role);
}

static void on_timer(dv_timer *timer, int64_t now) {
    (void)now;
    dv_cache_node *node = &DV_CONTAINER(timer, dv_dir, timer)->node;
    dv_cache_node_request(node);
    dv_cache_pump(node->cache);
}

/* W8: at most one list at a time, and one each interval, however much changes. */
static void list_later(dv_dir *dir, int64_t at, int64_t now) {
    dir->timer.fire = on_timer;
    if (at <= now) dv_cache_node_request(&dir->node);
    else dv_timer_set(dir->node.cache->client, &dir->timer, at);
}

static void schedule(dv_dir *dir, int64_t now) {
    const dv_cache_node *node = &dir->node;
    bool missed = node->watched && dir->listed && !dir->missing && !node->watch.link;
    if (node->link || (node->role && !node->role->followed && !node->role->listed)) return;
    if (node->again || missed) list_later(dir, dir->sent_at + DV_CACHE_LIST_INTERVAL_MS, now);
    else if (!dir->listed && !dir->refused) list_later(dir, now + DV_CACHE_RETRY_MS, now);
    else if (node->watched && !dir->refused) list_later(dir, now + DV_CACHE_AUDIT_MS, now);
    else list_later(dir, dir->sent_at + node->cache->options.poll_ms, now);
}

static void take_list(dv_dir *dir, const dv_reply *reply, int64_t now) {
    assert(!dir->node.under_way);
    dir->listed = true;
    dir->refused = 0;
    if (dir->node.role) take_entries(dir->node.role, reply, now);
    else dv_cache_take_roles(dir->node.cache, reply->children, reply->child_count, now);
}

/* W6: a directory that is missing has no names, and its creation is watched, unless R tells of it. */
static bool needs_existence(const dv_dir *dir) {
    return dir->node.watched && (!dir->node.role || dir->node.role->followed);
}

static void on_missing(dv_dir *dir, int64_t now) {
    bool known = dir->missing;
    dir->missing = true;
    take_list(dir, &(dv_reply){0}, now);
    if (!known && needs_existence(dir)) dv_cache_node_request(&dir->node);
}

static void on_refused(dv_dir *dir, int error) {
    if (dir->refused != error)
        dv_client_log(dir->node.cache->client, DIVVY_LOG_ERROR, "the children of %s cannot be read: %s", dir->node.path,
                      divvy_strerror(error));
    dir->refused = error;
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_cache_node *node = context;
    dv_cache *cache = node->cache;
    dv_dir *dir = dir_of(node);
    bool followed = answered(node);
    if (followed) dv_cache_node_note_watch(node);
    if (followed && !dv_session_over(reply->error)) {
        bool came = reply->error == 0 && dir->missing;
        if (came) dir->missing = false;
        if (came || dv_outcome_unknown(reply->error)) ask_again(node, reply->error, now);
        else if (reply->error == DIVVY_ENOENT) on_missing(dir, now);
        else if (reply->error) on_refused(dir, reply->error);
        else take_list(dir, reply, now);
        schedule(dir, now);
        if (node->role) dv_role_let_go(node->role);
    }
    go_on(cache);
}

static int send_list(dv_dir *dir) {
    dv_cache_node *node = &dir->node;
    dv_znode *znode = node->cache->client->znode;
    if (!node->watched && node->role) dv_role_try_watching(node->role);
    else if (!node->watched) dv_cache_node_reserve(node);
    dir->sent_at = dv_client_now(node->cache->client);
    if (!needs_existence(dir)) dir->missing = false;
    dv_watch *watch = node->watched ? &node->watch : NULL;
    return dir->missing ? dv_znode_exists(znode, node->path, watch, on_list, node)
                        : dv_znode_children(znode, node->path, watch, on_list, node);
}

/* ---- events and sending ---- */

static void on_names_event(dv_dir *dir, dv_watch_kind kind, int64_t now) {
    if (kind == DV_WATCH_CREATED) dir->missing = false;
    if (dir->node.under_way) dir->node.again = true;
    else if (!dir->node.link) list_later(dir, dir->sent_at + DV_CACHE_LIST_INTERVAL_MS, now);
}

/* A deletion of an entry needs no read: whatever comes under the same name shows in the role's list. */
static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    dv_cache_node *node = DV_CONTAINER(watch, dv_cache_node, watch);
    dv_cache *cache = node->cache;
    dv_cache_node_note_watch(node);
    if (is_dir(node)) on_names_event(dir_of(node), kind, now);
    else if (kind == DV_WATCH_DELETED && !node->under_way) dv_slot_depart(slot_of(node), now);
    else dv_cache_node_request(node);
    dv_cache_pump(cache);
}

void dv_cache_pump(dv_cache *cache) {
    bool can_send = dv_client_connected(cache->client) && !cache->retry_timer.link;
    while (can_send && cache->under_way < DV_CACHE_IN_FLIGHT_MAX) {
        dv_cache_node *node = cache->lists.first ? cache->lists.first : cache->gets.first;
        if (!node) return;
        assert(!node->under_way && (!node->role || !node->role->ended));
        node->again = false;
        node->watch.fired = on_event;
        if ((is_dir(node) ? send_list(dir_of(node)) : send_get(node)) != 0) {
            dv_timer_set(cache->client, &cache->retry_timer, dv_client_now(cache->client) + DV_CACHE_RETRY_MS);
            return;
        }
        dv_cache_node_forget(node);
        node->under_way = true;
        cache->under_way++;
        if (node->role) node->role->under_way++;
    }
}
