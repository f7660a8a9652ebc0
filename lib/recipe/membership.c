/* Membership: one ephemeral node of ours, kept until its owner leaves. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/membership.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/node.h"
#include "znode/ensure.h"
#include "znode/path.h"

struct dv_membership {
    dv_node node;
    const dv_membership_events *events;
    void *owner;
    const char *suffix, *data;
    bool watching;   /* a read that sets the watch is under way */
    bool look_again; /* the watch fired while it was */
    bool held_up;    /* until the owner goes on */
};

static void keep_watch(dv_membership *m);
static void start(dv_membership *m);

static dv_membership *of_node(dv_node *node) {
    return DV_CONTAINER(node, dv_membership, node);
}

/* ---- making it ---- */

static void become_member(dv_membership *m, int64_t czxid, int64_t now) {
    if (!dv_node_made(&m->node, czxid)) return;
    keep_watch(m);
    if (m->events->joined) m->events->joined(m->owner, now);
    if (m->events->seen) m->events->seen(m->owner, czxid);
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    dv_membership *m = context;
    dv_node *n = &m->node;
    if (!dv_node_replied(n, reply->error, now)) return;
    if (reply->error == 0) become_member(m, reply->stat->czxid, now);
    else if (reply->error != DIVVY_ENOENT) dv_node_not_made(n, reply->error, now);
    else if (dv_node_unmade(n, now)) start(m); /* The directory went in between. */
}

static void create(dv_membership *m) {
    dv_node *n = &m->node;
    dv_node_enter(n, DV_NODE_CREATING);
    int error =
        dv_znode_create(n->client->znode, dv_node_path(n), m->data, strlen(m->data), DV_EPHEMERAL, on_created, m);
    if (!dv_node_sent(n, error)) dv_node_enter(n, DV_NODE_UNMADE);
}

static void hold_up(dv_membership *m, int64_t now) {
    dv_node_enter(&m->node, DV_NODE_CREATING);
    m->held_up = true;
    m->events->named(m->owner, dv_path_last(dv_node_path(&m->node)), now);
}

static void on_ensured(void *context, int error, int64_t now) {
    dv_membership *m = context;
    if (!dv_node_replied(&m->node, error, now) || !dv_node_unmade(&m->node, now)) return;
    if (dv_outcome_unknown(error)) start(m);
    else if (error) dv_node_fail(&m->node, error, now);
    else if (m->events->named) hold_up(m, now);
    else create(m);
}

static void on_directory_seen(void *context, int64_t pzxid) {
    dv_membership *m = context;
    if (m->events->looked) m->events->looked(m->owner, pzxid);
}

void dv_membership_go_on(dv_membership *m, int64_t now) {
    if (!m->held_up) return;
    m->held_up = false;
    if (m->node.stage != DV_NODE_CREATING || !dv_node_unmade(&m->node, now)) return;
    if (dv_client_connected(m->node.client)) create(m);
}

/* Each attempt has a name of its own: a late create of an earlier one could otherwise be taken for the new. */
static void start(dv_membership *m) {
    dv_node *n = &m->node;
    assert(n->stage == DV_NODE_UNMADE);
    if (!dv_client_connected(n->client)) return;
    int error = dv_node_name(n, m->suffix);
    if (!error)
        error = dv_ensure_path_seen(n->client->znode, n->directory, DV_PERSISTENT, on_directory_seen, on_ensured, m);
    if (dv_node_sent(n, error)) dv_node_enter(n, DV_NODE_CREATING);
}

static void on_found(dv_node *node, int64_t czxid, int64_t now) {
    become_member(of_node(node), czxid, now);
}

static void on_not_found(dv_node *node, int64_t now) {
    dv_membership *m = of_node(node);
    (void)now;
    if (m->events->missed) m->events->missed(m->owner);
    start(m);
}

/* ---- keeping it ---- */

static void on_watched(void *context, const dv_reply *reply, int64_t now) {
    dv_membership *m = context;
    dv_node *n = &m->node;
    m->watching = false;
    if (!dv_node_replied(n, reply->error, now) || n->stage != DV_NODE_THERE) return;
    if (reply->error == 0 && m->events->seen) m->events->seen(m->owner, reply->stat->czxid);
    if (reply->error == DIVVY_ENOENT) {
        dv_client_warn(n->client, DIVVY_WARN_NODE_GONE, "%s was deleted by somebody else; joining again",
                       dv_node_path(n));
        if (dv_node_unmade(n, now)) start(m);
    } else if (m->look_again || dv_outcome_unknown(reply->error)) {
        keep_watch(m);
    }
}

static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    (void)now;
    dv_membership *m = of_node(DV_CONTAINER(watch, dv_node, watch));
    if (m->watching) m->look_again = true;
    else keep_watch(m);
}

/* B6: each of its names has the same length, so that the room is reserved once. */
static bool has_room(dv_node *n) {
    size_t cost = dv_path_cost(dv_node_path(n));
    if (!n->watch_cost && dv_reserve_watch(n->client, cost)) n->watch_cost = (uint32_t)cost;
    return n->watch_cost;
}

/* M2: without a watch heartbeats find that it was deleted, and so does the read on the next connection. */
static void keep_watch(dv_membership *m) {
    dv_node *n = &m->node;
    if (n->stage != DV_NODE_THERE || m->watching || !dv_client_connected(n->client)) return;
    m->look_again = false;
    n->watch.fired = on_event;
    dv_watch *watch = has_room(n) ? &n->watch : NULL;
    m->watching = dv_node_sent(n, dv_znode_get(n->client->znode, dv_node_path(n), watch, on_watched, m));
}

static void on_missing(dv_node *node, int64_t now) {
    (void)now;
    keep_watch(of_node(node));
}

/* ---- its life ---- */

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    dv_membership *m = of_node(node);
    (void)now;
    bool connected = event == DV_SESSION_CONNECTED; /* A deletion may have been missed. */
    if (event == DV_SESSION_OVER) m->watching = false;
    if (event == DV_SESSION_CLOSING) dv_membership_leave(m);
    if (!connected && event != DV_SESSION_AGAIN) return;
    if (node->stage == DV_NODE_UNMADE) start(m);
    else if (connected || !node->watch.link) keep_watch(m);
}

static void on_failed(dv_node *node, int error, int64_t now) {
    const dv_membership *m = of_node(node);
    m->events->failed(m->owner, error, dv_node_path(node), now);
}

static void on_gone(dv_node *node, int64_t now) {
    dv_membership *m = of_node(node);
    m->events->gone(m->owner, now);
    free(m);
}

int dv_membership_join(dv_membership **out, divvy_client *client, const char *directory, const char *suffix,
                       const char *data, const dv_membership_events *events, void *owner) {
    static const dv_node_kind kind = {.found = on_found,
                                      .not_found = on_not_found,
                                      .missing = on_missing,
                                      .hear = hear,
                                      .failed = on_failed,
                                      .gone = on_gone};
    *out = NULL;
    dv_membership *m = calloc(1, sizeof *m);
    if (!m) return DIVVY_ENOMEM;
    *m = (dv_membership){.events = events, .owner = owner, .suffix = suffix, .data = data};
    m->node = (dv_node){.client = client, .kind = &kind, .directory = directory, .lasting = events->lasting};
    int error = dv_node_name(&m->node, suffix);
    if (!error) error = dv_node_open(&m->node, dv_path_cost(dv_node_path(&m->node)), 0);
    if (error) {
        free(m);
        return error;
    }
    start(m);
    *out = m;
    return 0;
}

void dv_membership_describe(dv_membership *m, const char *data) {
    m->data = data;
}

void dv_membership_leave(dv_membership *m) {
    /* Nothing was sent yet. */
    if (m->held_up && m->node.stage == DV_NODE_CREATING) dv_node_enter(&m->node, DV_NODE_UNMADE);
    m->held_up = false;
    dv_node_leave(&m->node);
}

const char *dv_membership_name(const dv_membership *m) {
    return dv_path_last(dv_node_path(&m->node));
}

const char *dv_membership_path(const dv_membership *m) {
    return dv_membership_joined(m) ? dv_node_path(&m->node) : NULL;
}

bool dv_membership_joined(const dv_membership *m) {
    return m->node.stage == DV_NODE_THERE;
}
