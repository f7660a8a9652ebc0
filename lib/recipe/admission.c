/* Admission: what a lease does at the head of its queue. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/lease.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "divvy/semaphore.h"
#include "recipe/fetch.h"
#include "recipe/record.h"
#include "znode/path.h"

enum { LIMIT_BYTES = sizeof "4294967295", DOUBTS_MAX = 200 /* looked at together */ };

static void admit(dv_lease *l, int64_t now);

void dv_admission_unwatch(dv_lease *l) {
    dv_znode_unwatch(l->node.client->znode, &l->data_watch);
    dv_znode_unwatch(l->node.client->znode, &l->list_watch);
}

/* ---- the limit: docs/protocol.md, E3 ---- */

/* Takes the pool's data, by which the lease may fail. */
static void note_pool(dv_lease *l, const dv_reply *reply, int64_t now) {
    dv_pool *pool = l->pool;
    uint32_t stored = 0;
    assert(dv_lease_is(l, DV_LEASE_QUEUED) || dv_lease_is(l, DV_LEASE_READING));
    dv_limit_state state = dv_limit_parse(reply->data, reply->data_bytes, &stored);
    bool equal = state == DV_LIMIT_SET && stored == pool->limit;
    l->known = true;
    l->version = reply->stat->version;
    l->czxid = reply->stat->czxid;
    if (state == DV_LIMIT_BAD) {
        dv_lease_fail_because(l, DIVVY_EPROTO, now, "the data of the pool are no limit: \"%.*s\"",
                              (int)(reply->data_bytes < 32 ? reply->data_bytes : 32), (const char *)reply->data);
        return;
    }
    if (state == DV_LIMIT_SET && !equal && pool->policy == DIVVY_LIMIT_ERROR && !pool->agreed) {
        dv_lease_fail_because(l, DIVVY_EDIFFERS, now, "the pool's limit is %u, not %u", stored, pool->limit);
        return;
    }
    bool provides = pool->policy == DIVVY_LIMIT_PROVIDED && !l->provided && !equal;
    if (equal) pool->agreed = l->provided = true;
    l->to_set = state == DV_LIMIT_UNSET || provides;
    l->limit = l->to_set ? pool->limit : stored;
    if (pool->count > l->limit)
        dv_lease_fail_because(l, DIVVY_E2BIG, now, "%u slots are wanted of a pool whose limit is %u", pool->count,
                              l->limit);
}

/* A lost answer needs no barrier: the write holds for one version only, as the transaction does that comes after it. */
static void on_limit_set(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!dv_node_replied(&l->node, reply->error, now)) return;
    if (reply->error == 0) l->provided = l->pool->agreed = true;
    bool read_again = reply->error == 0 || reply->error == DIVVY_EVERSION || dv_outcome_unknown(reply->error);
    if (read_again) dv_admission_read(l, false, now);
    else dv_node_fail(&l->node, reply->error, now);
}

static dv_op set_op(const dv_lease *l, uint32_t limit, char text[LIMIT_BYTES]) {
    int bytes = snprintf(text, LIMIT_BYTES, "%u", limit);
    return (dv_op){
        .kind = DV_SET, .path = l->pool->path, .data = text, .data_bytes = (size_t)bytes, .version = l->version};
}

static void set_limit(dv_lease *l, int64_t now) {
    assert(l->known && l->to_set); /* E3: it is written at the version that was read */
    dv_admission_unwatch(l);
    dv_lease_enter_stage(l, DV_LEASE_SETTING);
    char text[LIMIT_BYTES];
    dv_op op = set_op(l, l->pool->limit, text);
    if (dv_znode_submit(l->node.client->znode, &op, NULL, on_limit_set, l) == 0) l->node.under_way++;
    else dv_node_fail(&l->node, DIVVY_ENOMEM, now);
}

/* ---- deciding: docs/protocol.md, E4 to E6 ---- */

static bool is_of_known_pool(const dv_lease *l, const dv_reply *list) {
    return l->known && list->stat->version == l->version && list->stat->czxid == l->czxid;
}

/* ---- children in doubt: docs/protocol.md, E2 ---- */

/* A child that has gone is not in the next list. Without memory it is read again. One that is hidden from us counts. */
static int on_looked_at(void *owner, const char *path, const dv_reply *reply, int64_t now) {
    dv_lease *l = owner;
    (void)now;
    bool seen = reply->error == 0, hidden = reply->error == DIVVY_EACCES;
    bool is_lease = hidden || (seen && reply->stat->ephemeral_owner != 0);
    if (seen || hidden) dv_judged_note(&l->pool->judged, dv_path_last(path), is_lease);
    return 0;
}

static void on_all_looked_at(void *owner, int error, int64_t now) {
    dv_lease *l = owner;
    assert(l->reads > 0);
    l->reads--;
    if (dv_node_replied(&l->node, error, now) && l->reads == 0) dv_admission_read(l, false, now);
}

static bool is_in_doubt(const dv_lease *l, const char *name) {
    dv_slots unused;
    return !dv_judged_knows(&l->pool->judged, name) && (l->doubts_all || !dv_slots_parse(name, &unused));
}

/* Reads which of them are ephemeral, and then the pool again. Returns whether there was anything to read. */
static bool resolve_doubts(dv_lease *l, const char *const *leases, size_t count) {
    static const dv_fetch_kind kind = {DV_EXISTS, DOUBTS_MAX, on_looked_at, on_all_looked_at};
    const char *doubts[DOUBTS_MAX];
    size_t found = 0;
    dv_fetch *fetch;
    for (size_t i = 0; i < count && found < DOUBTS_MAX; i++) {
        if (is_in_doubt(l, leases[i])) doubts[found++] = leases[i];
    }
    if (!found || dv_fetch_start(&fetch, l->node.client, &kind, l->pool->path, doubts, found, l) != 0) return false;
    l->node.under_way++;
    l->reads++;
    return true;
}

static void on_full_for_long(dv_timer *timer, int64_t now) {
    dv_lease *l = DV_CONTAINER(timer, dv_lease, doubt_timer);
    l->doubts_all = true;
    if (dv_lease_is(l, DV_LEASE_FULL)) dv_admission_read(l, false, now);
}

/* E7: a watch that fired in between says that there is more to see. */
static void wait_for_room(dv_lease *l, int64_t now) {
    dv_lease_enter_stage(l, DV_LEASE_FULL);
    l->doubt_timer.fire = on_full_for_long;
    if (!l->waited) dv_timer_set(l->node.client, &l->doubt_timer, now + atomic_load(&l->node.client->timeout_ms));
    l->waited = true;
    dv_ticket_waits(l->ticket, now);
    if (!dv_lease_is(l, DV_LEASE_FULL)) return; /* It has left. */
    if (!l->watched || l->look_again) dv_admission_read(l, false, now);
}

/* Children in doubt are looked at only where they are in the way: what counts too many does no harm. */
static void decide_among(dv_lease *l, const char *const *leases, size_t count, int64_t now) {
    const dv_pool *pool = l->pool;
    bool has_kazoo = pool->count > 1 && dv_pool_has_kazoo(leases, count);
    dv_pool_state state = has_kazoo ? DV_POOL_FULL : dv_slots_choose(leases, count, l->limit, pool->count, &l->slots);
    if (state == DV_POOL_FULL && resolve_doubts(l, leases, count)) return;
    if (has_kazoo) {
        dv_lease_fail_because(l, DIVVY_ESTATE, now, "a kazoo holder counts several slots as one, so only one is given");
        return;
    }
    switch (state) {
    case DV_POOL_ROOM:
        dv_shortcut_prefer(l, leases, count);
        admit(l, now);
        break;
    case DV_POOL_FULL: wait_for_room(l, now); break;
    case DV_POOL_OUT_OF_MEMORY: dv_node_fail(&l->node, DIVVY_ENOMEM, now); break;
    }
}

static void decide(dv_lease *l, const dv_reply *list, int64_t now) {
    assert(l->first && l->known && !l->reads); /* E2: what was read before we were first says too little */
    if (l->to_set) {
        set_limit(l, now);
        return;
    }
    const char **leases = (const char **)(uintptr_t)malloc((list->child_count + 1) * sizeof *leases);
    if (!leases) {
        dv_node_fail(&l->node, DIVVY_ENOMEM, now);
        return;
    }
    size_t count = dv_judged_sift(&l->pool->judged, list->children, list->child_count, leases);
    decide_among(l, leases, count, now);
    free(leases);
}

/* ---- reading ---- */

static void on_early_pool(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!dv_node_replied(&l->node, reply->error, now)) return;
    assert(!l->first); /* The answer comes before those of the queue, which was asked later. */
    if (reply->error == 0) note_pool(l, reply, now);
    else if (!dv_outcome_unknown(reply->error)) dv_node_fail(&l->node, reply->error, now);
}

/* E2: the list counts only if we were first in the queue before. Then it has all that were admitted earlier. */
static void on_early_list(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    assert(l->early_list);
    l->early_list = false;
    if (!dv_node_replied(&l->node, reply->error, now) || !dv_lease_is(l, DV_LEASE_QUEUED) || !l->first) return;
    l->watched = false;
    if (reply->error == 0 && is_of_known_pool(l, reply)) decide(l, reply, now);
    else dv_admission_read(l, false, now);
}

void dv_admission_read_early(dv_lease *l) {
    assert(dv_lease_is(l, DV_LEASE_QUEUED) && !l->first && !l->early_list);
    if (l->pool->count > 1) return; /* That needs a look at the queue as well. */
    if (dv_znode_get(l->node.client->znode, l->pool->path, NULL, on_early_pool, l) != 0) return;
    l->node.under_way++;
    /* By the batch, which sends lists after what is created: so it comes behind our place in the queue. */
    if (dv_batch_children(l->node.client->znode, l->pool->path, on_early_list, l) != 0) return;
    l->node.under_way++;
    l->early_list = true;
}

/* Takes a reply. Returns whether it is to be looked at. A read that failed is repeated with the last reply. */
static bool take_read(dv_lease *l, const dv_reply *reply, int64_t now) {
    assert(l->reads > 0);
    l->reads--;
    if (!dv_node_replied(&l->node, reply->error, now)) return false;
    assert(dv_lease_is(l, DV_LEASE_READING));
    if (reply->error == 0) return true;
    if (!dv_outcome_unknown(reply->error)) {
        dv_node_fail(&l->node, reply->error, now);
        return false;
    }
    l->read_failed = true;
    return true;
}

static void on_pool(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (take_read(l, reply, now) && reply->error == 0) note_pool(l, reply, now);
}

static void on_queue(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!take_read(l, reply, now) || reply->error) return;
    if (dv_queue_has_kazoo(reply->children, reply->child_count))
        dv_lease_fail_because(l, DIVVY_ESTATE, now,
                              "a kazoo contender counts several slots as one, so only one is given");
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_lease *l = context;
    if (!take_read(l, reply, now)) return;
    if (l->read_failed || !is_of_known_pool(l, reply)) dv_admission_read(l, false, now);
    else decide(l, reply, now);
}

/* E7: a change of the limit, or of the leases. */
static void on_data_changed(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    dv_lease *l = DV_CONTAINER(watch, dv_lease, data_watch);
    l->look_again = true;
    if (dv_lease_is(l, DV_LEASE_FULL)) dv_admission_read(l, false, now);
}

static void on_list_changed(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    dv_lease *l = DV_CONTAINER(watch, dv_lease, list_watch);
    l->look_again = true;
    if (dv_lease_is(l, DV_LEASE_FULL)) dv_admission_read(l, kind == DV_WATCH_CHILDREN && l->data_watch.link, now);
}

static bool send_read(dv_lease *l, const dv_op *op, dv_watch *watch, dv_reply_fn done) {
    if (dv_znode_submit(l->node.client->znode, op, watch, done, l) != 0) return false;
    l->node.under_way++;
    l->reads++;
    return true;
}

/* E6: the limit first, so that both show one version. E7: when a lease went there may be room, so no watch at first. */
void dv_admission_read(dv_lease *l, bool only_list, int64_t now) {
    dv_op pool = {.kind = DV_GET, .path = l->pool->path};
    dv_op queue = {.kind = DV_CHILDREN, .path = l->pool->queue};
    dv_op list = {.kind = DV_CHILDREN, .path = l->pool->path};
    dv_lease_enter_stage(l, DV_LEASE_READING);
    if (l->reads) return;                             /* The last reply comes back. */
    if (!dv_client_connected(l->node.client)) return; /* The next connection does. */
    l->read_failed = l->look_again = false;
    l->watched = !only_list;
    l->data_watch.fired = on_data_changed;
    l->list_watch.fired = on_list_changed;
    bool sent = only_list || send_read(l, &pool, &l->data_watch, on_pool);
    if (sent && l->pool->count > 1) sent = send_read(l, &queue, NULL, on_queue);
    if (sent) sent = send_read(l, &list, only_list ? NULL : &l->list_watch, on_list);
    if (!sent) dv_node_fail(&l->node, DIVVY_ENOMEM, now);
}

/* ---- the transaction: docs/protocol.md, E6 ---- */

static void take(dv_lease *l, int64_t czxid, int64_t now) {
    assert(l->place_over); /* E6: the transaction has deleted our place */
    l->token = czxid;
    dv_shortcut_learn(l->pool, l);
    dv_lease_hold(l, now);
}

void dv_admission_found(dv_node *node, int64_t czxid, int64_t now) {
    dv_lease *l = DV_CONTAINER(node, dv_lease, node);
    dv_lease_place_consumed(l);
    take(l, czxid, now);
}

void dv_admission_not_found(dv_node *node, int64_t now) {
    dv_lease *l = DV_CONTAINER(node, dv_lease, node);
    if (l->place_over) dv_node_fail(node, DIVVY_ENOENT, now); /* Somebody has deleted our node. */
    else dv_admission_read(l, false, now);                    /* It was not carried out (R3). */
}

static void on_admitted(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    dv_lease *l = context;
    if (!dv_node_replied(&l->node, error, now)) return;
    if (error == 0) {
        assert(count == 3);
        (void)count;
        dv_lease_place_consumed(l);
        /* All that one transaction did has one zxid, which the pool's new stat tells. */
        if (replies[0].stat) take(l, replies[0].stat->mzxid, now);
        else dv_node_look(&l->node);
    } else if (dv_outcome_unknown(error)) {
        dv_node_resolve(&l->node);
    } else if (!dv_node_unmade(&l->node, now)) {
        return; /* It was to leave. */
    } else if (error == DIVVY_EVERSION && !l->place_over) {
        dv_admission_read(l, false, now);
    } else {
        /* Where our place has gone, nothing else that was refused counts: the queue is entered again. */
        dv_node_fail(&l->node, l->place_over ? DIVVY_ENOENT : error, now);
    }
}

/* E6: nobody else was admitted, and the limit did not change, since we looked; or nothing happens. */
static void admit(dv_lease *l, int64_t now) {
    dv_admission_unwatch(l);
    assert(dv_lease_is(l, DV_LEASE_QUEUED) || dv_lease_is(l, DV_LEASE_READING));
    assert(l->place && !l->place_over);
    dv_node_enter(&l->node, DV_NODE_CREATING);
    dv_slots_print(&l->slots, l->tags);
    char *record = dv_record_print(l->pool->identifier, l->pool->count);
    bool sent = record && dv_node_name(&l->node, l->tags) == 0;
    if (sent) {
        char text[LIMIT_BYTES];
        dv_op ops[] = {
            set_op(l, l->limit, text),
            {.kind = DV_CREATE,
             .path = dv_node_path(&l->node),
             .data = record,
             .data_bytes = strlen(record),
             .mode = DV_EPHEMERAL},
            {.kind = DV_DELETE, .path = dv_contender_path(l->place), .version = -1},
        };
        sent = dv_znode_multi(l->node.client->znode, ops, sizeof ops / sizeof ops[0], on_admitted, l) == 0;
    }
    free(record);
    if (sent) l->node.under_way++;
    else dv_node_fail(&l->node, DIVVY_ENOMEM, now);
}
