/* Shortcut: a lease that is made first, and counts if all that is read behind it agrees.
 * SPDX-License-Identifier: Apache-2.0
 *
 * It takes one round trip, and no place in the queue. A lease that does not count is deleted, and the acquire goes to
 * the queue. docs/protocol.md, E14 and E15. */
#include "recipe/lease.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "divvy/semaphore.h"
#include "znode/path.h"

/* ---- when it is taken: docs/protocol.md, E15 ---- */

enum { WANTED_AFTER_MISS = 8, DOUBLINGS_MAX = 5 };

/* So many acquires in a row are to confirm it: few where it serves, and more after each miss in a row. */
static unsigned wanted(const dv_shortcut *s) {
    if (s->misses == 0) return 1;
    unsigned doublings = s->misses - 1 < DOUBLINGS_MAX ? s->misses - 1 : DOUBLINGS_MAX;
    return (unsigned)WANTED_AFTER_MISS << doublings;
}

bool dv_shortcut_is_open(const dv_pool *pool) {
    return pool->shortcut.confirmed >= wanted(&pool->shortcut);
}

/* Those before us in the queue say little, since they stay out of it where the shortcut serves them. */
void dv_shortcut_prefer(dv_lease *l, const char *const *leases, size_t count) {
    const dv_slots *former = &l->pool->shortcut.slots;
    bool fits = former->count > 0 && dv_slots_fit(former, leases, count, l->limit);
    if (fits) l->slots = *former;
    l->confirms = !l->waited && (fits || former->count == 0);
}

void dv_shortcut_learn(dv_pool *pool, const dv_lease *l) {
    dv_shortcut *s = &pool->shortcut;
    if (!l->confirms) s->confirmed = 0;
    else if (s->confirmed < wanted(s)) s->confirmed++;
    s->slots = l->slots;
    s->limit = l->limit;
}

static void close_for_now(dv_pool *pool) {
    pool->shortcut.confirmed = 0;
    if (pool->shortcut.misses <= DOUBLINGS_MAX) pool->shortcut.misses++;
}

/* ---- how it ends ---- */

/* The acquire goes to the queue, behind the delete of our node, so that its list lacks it. */
static void miss(dv_lease *l, int64_t now) {
    close_for_now(l->pool);
    dv_node_fail(&l->node, DIVVY_EBUSY, now);
}

/* E14: what was read holds for the moment of the list if the pool was not set since our node was made. */
static void conclude(dv_lease *l, int64_t now) {
    if (!l->token || l->reads || l->node.stage != DV_NODE_CREATING) return;
    if (!l->missed && l->set_zxid < l->token) {
        l->pool->shortcut.misses = 0;
        dv_lease_hold(l, now);
    } else if (dv_node_made(&l->node, l->token)) {
        miss(l, now);
    }
}

void dv_shortcut_found(dv_node *node, int64_t czxid, int64_t now) {
    if (dv_node_made(node, czxid)) miss(DV_CONTAINER(node, dv_lease, node), now);
}

void dv_shortcut_not_found(dv_node *node, int64_t now) {
    miss(DV_CONTAINER(node, dv_lease, node), now);
}

static void on_made(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!dv_node_replied(&l->node, reply->error, now)) return;
    if (reply->error) {
        dv_node_not_made(&l->node, reply->error, now);
        return;
    }
    l->token = reply->stat->czxid;
    conclude(l, now);
}

/* ---- what is read ---- */

/* Takes a reply, and returns whether it is to be looked at. */
static bool take_read(dv_lease *l, const dv_reply *reply, int64_t now) {
    assert(l->reads > 0);
    l->reads--;
    if (!dv_node_replied(&l->node, reply->error, now)) return false;
    if (reply->error) l->missed = true;
    return true;
}

static void note_set(dv_lease *l, const dv_stat *stat) {
    if (stat->mzxid > l->set_zxid) l->set_zxid = stat->mzxid;
}

/* E3: another limit is for the queue to judge. */
static void on_pool(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    const dv_pool *pool = l->pool;
    if (!take_read(l, reply, now)) return;
    if (reply->error == 0) {
        uint32_t stored = 0;
        bool is_set = dv_limit_parse(reply->data, reply->data_bytes, &stored) == DV_LIMIT_SET;
        bool provides = pool->policy == DIVVY_LIMIT_PROVIDED && stored != pool->limit;
        if (!is_set || stored != l->limit || provides) l->missed = true;
        note_set(l, reply->stat);
    }
    conclude(l, now);
}

static void on_queue(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!take_read(l, reply, now)) return;
    if (reply->error == 0 && dv_queue_is_empty(&dv_exclusive_queue, reply->children, reply->child_count))
        l->queue_seen = true;
    else l->missed = true;
    conclude(l, now);
}

/* Returns whether the list has our node, and room for it beside the others. */
static bool has_room(dv_lease *l, const dv_reply *list) {
    const char *own = dv_path_last(dv_node_path(&l->node));
    const char **leases = (const char **)(uintptr_t)malloc((list->child_count + 1) * sizeof *leases);
    if (!leases) return false;
    size_t count = dv_judged_sift(&l->pool->judged, list->children, list->child_count, leases), others = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(leases[i], own) != 0) leases[others++] = leases[i];
    }
    bool room = others < count && dv_slots_fit(&l->slots, leases, others, l->limit);
    free(leases);
    return room;
}

/* A kazoo process that has left the queue by its list has its lease in ours, so the queue is listed before the pool. */
static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!take_read(l, reply, now)) return;
    if (reply->error == 0) {
        if (!l->queue_seen || !has_room(l, reply)) l->missed = true;
        note_set(l, reply->stat);
    }
    conclude(l, now);
}

/* ---- what is sent ---- */

static void read_behind(dv_lease *l, dv_kind kind, const char *path, dv_reply_fn done) {
    dv_op op = {.kind = kind, .path = path};
    if (dv_znode_submit(l->node.client->znode, &op, NULL, done, l) != 0) {
        l->missed = true;
        return;
    }
    l->node.under_way++;
    l->reads++;
}

/* Not by the batch, where leases of one multi would have one token. What waits there goes first, such as the delete of
 * the lease that we had. */
int dv_shortcut_take(dv_lease *l) {
    dv_znode *znode = l->node.client->znode;
    const dv_pool *pool = l->pool;
    l->slots = pool->shortcut.slots;
    l->limit = pool->shortcut.limit;
    dv_slots_print(&l->slots, l->tags);
    if (dv_node_name(&l->node, l->tags) != 0) return DIVVY_ENOMEM;
    dv_batch_flush(znode);
    dv_node_enter(&l->node, DV_NODE_CREATING);
    if (dv_znode_create(znode, dv_node_path(&l->node), l->record, strlen(l->record), DV_EPHEMERAL, on_made, l) != 0)
        return DIVVY_ENOMEM;
    l->node.under_way++;
    read_behind(l, DV_GET, pool->path, on_pool);
    read_behind(l, DV_CHILDREN, pool->queue, on_queue);
    read_behind(l, DV_CHILDREN, pool->path, on_list);
    return 0;
}
