/* Contender: one place in a queue of ephemeral sequential nodes. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/contender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/node.h"
#include "znode/path.h"
#include "znode/sequence.h"

/* While our node is there. */
typedef enum __attribute__((packed)) {
    LOOKING, /* others may be before us */
    PARKED,  /* for the owner, who knows from elsewhere, to say so (Q10) */
    WAITING, /* for the one before us to go */
    HELD,    /* nobody is before us */
} contender_stage;

struct dv_contender {
    dv_node node;
    const dv_queue_kind *kind;
    const dv_contender_events *events;
    void *owner;
    const char *data;

    contender_stage stage;
    bool reading;      /* a list, or a read of the predecessor, is under way */
    bool stale;        /* that list is of an attempt before, and does not know our node */
    bool look_again;   /* the predecessor went while that was under way */
    bool is_outranked; /* by somebody behind us */
    bool seen_early;   /* the list came before the create's answer, and had our node with this number: */
    int32_t early_sequence;
    int32_t sequence;
    int64_t token;
    char *predecessor; /* the path of the one before us, NULL: we are first */
};

enum { SEQUENCE_BYTES = 11, SEQUENCE_MAX = INT32_MAX - (1 << 20) };

static void look(dv_contender *c);

static dv_contender *of_node(dv_node *node) {
    return DV_CONTAINER(node, dv_contender, node);
}

/* From which stages each is entered. A held place is only left. */
static void enter(dv_contender *c, contender_stage to) {
    static const unsigned from[] = {
        [LOOKING] = 1u << LOOKING | 1u << PARKED | 1u << WAITING,
        [PARKED] = 1u << LOOKING,
        [WAITING] = 1u << LOOKING,
        [HELD] = 1u << LOOKING | 1u << PARKED,
    };
    assert(c->node.stage == DV_NODE_THERE);
    assert(from[to] & 1u << c->stage);
    (void)from;
    c->stage = to;
}

static bool is(const dv_contender *c, contender_stage stage) {
    return c->node.stage == DV_NODE_THERE && c->stage == stage;
}

/* ---- waiting ---- */

static void become_holder(dv_contender *c, int64_t now) {
    assert(!c->reading && c->sequence >= 0);
    enter(c, HELD);
    dv_node_unwatch(&c->node);
    c->events->held(c->owner, now);
}

static void on_predecessor_read(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    assert(c->reading);
    c->reading = false;
    if (!dv_node_replied(&c->node, reply->error, now) || !is(c, WAITING)) return;
    bool seen = reply->error == 0 && !c->look_again;
    if (reply->error == DIVVY_EACCES) dv_node_fail(&c->node, reply->error, now); /* It could never be waited for. */
    else if (!seen) look(c);
}

static void wake(dv_contender *c) {
    if (c->reading) c->look_again = true; /* The predecessor's answer comes back to it. */
    else look(c);
}

/* A change of its data wakes us too; then we look and wait again. */
static void on_predecessor_gone(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    (void)now;
    dv_contender *c = of_node(DV_CONTAINER(watch, dv_node, watch));
    if (is(c, WAITING)) wake(c);
}

/* Q4: a get leaves no watch behind when the node is not there; an exists would. */
static void watch_predecessor(dv_contender *c, int64_t now) {
    dv_node *n = &c->node;
    assert(c->predecessor && !c->reading);
    enter(c, WAITING);
    c->look_again = false;
    if (c->events->waits) c->events->waits(c->owner, now);
    if (!is(c, WAITING)) return; /* It has left. */
    n->watch.fired = on_predecessor_gone;
    if (dv_znode_get(n->client->znode, c->predecessor, &n->watch, on_predecessor_read, c) != 0) {
        dv_node_fail(n, DIVVY_ENOMEM, now);
        return;
    }
    c->reading = true;
    n->under_way++;
}

/* Q3. Returns false when an allocation fails. */
static bool find_predecessor(dv_contender *c, const dv_reply *list, const char *own, int32_t own_sequence) {
    const char *nearest = dv_queue_before(c->kind, list->children, list->child_count, own, own_sequence);
    free(c->predecessor);
    c->predecessor = nearest ? dv_path_join(c->node.directory, nearest) : NULL;
    c->is_outranked = c->kind->yields && dv_queue_outranked(list->children, list->child_count, own, own_sequence);
    return !nearest || c->predecessor;
}

static const char *find_child(const dv_reply *list, const char *prefix) {
    return dv_queue_find(list->children, list->child_count, prefix);
}

/* Q1: the create's answer may be held up behind the list's, when it went in a multi; the list counts all the same. */
static void note_early_list(dv_contender *c, const dv_reply *list) {
    assert(c->node.stage == DV_NODE_CREATING && !c->seen_early);
    const char *own = find_child(list, dv_path_last(dv_node_path(&c->node)));
    if (!own || !dv_sequence_parse(own, c->kind->marker, &c->early_sequence)) return;
    c->seen_early = find_predecessor(c, list, own, c->early_sequence);
}

static void wait_or_hold(dv_contender *c, int64_t now) {
    if (c->predecessor) watch_predecessor(c, now);
    else if (c->is_outranked) c->events->outranked(c->owner, now); /* J4 */
    else become_holder(c, now);
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    dv_node *n = &c->node;
    assert(c->reading);
    c->reading = false;
    bool stale = c->stale;
    c->stale = false;
    if (!dv_node_replied(n, reply->error, now)) return;
    if (stale) {
        if (is(c, LOOKING)) look(c);
        return;
    }
    if (n->stage == DV_NODE_CREATING && reply->error == 0) note_early_list(c, reply);
    if (!is(c, LOOKING)) return;
    if (dv_outcome_unknown(reply->error)) {
        if (reply->error == DIVVY_ENOMEM) dv_client_again(n->client); /* after a moment: memory may be short for long */
        else look(c);
        return;
    }
    const char *own = dv_path_last(dv_node_path(n));
    if (reply->error && reply->error != DIVVY_ENOENT) dv_node_fail(n, reply->error, now);
    else if (!find_child(reply, own)) dv_node_fail_deleted(n, now);
    else if (find_predecessor(c, reply, own, c->sequence)) wait_or_hold(c, now);
    else dv_node_fail(n, DIVVY_ENOMEM, now);
}

static void look(dv_contender *c) {
    dv_node *n = &c->node;
    enter(c, LOOKING);
    if (c->reading || !dv_client_connected(n->client)) return;
    c->reading = dv_node_sent(n, dv_batch_children(n->client->znode, n->directory, on_list, c));
}

/* ---- entering ---- */

/* Q9: the numbers of a directory begin at 0 and grow, and it stands as long as our place does. */
static bool is_first_of_all(const dv_contender *c) {
    return c->kind->fresh && c->sequence == 0;
}

static void park(dv_contender *c, int64_t now) {
    assert(c->kind->fresh && !c->reading);
    enter(c, PARKED);
    c->events->placed(c->owner, now);
}

static void take_place(dv_contender *c, int64_t now) {
    if (is_first_of_all(c)) become_holder(c, now);
    else if (c->kind->parks) park(c, now);
    else if (c->seen_early && c->early_sequence == c->sequence) wait_or_hold(c, now);
    else look(c);
}

static void on_made(dv_node *node, int64_t czxid, int64_t now) {
    dv_contender *c = of_node(node);
    bool understood = dv_sequence_parse(dv_node_path(node), c->kind->marker, &c->sequence);
    c->token = czxid;
    if (!dv_node_made(node, czxid)) return;
    if (understood && c->sequence >= 0 && c->sequence < SEQUENCE_MAX) take_place(c, now);
    else dv_node_fail(node, DIVVY_EEXHAUSTED, now); /* N6: close to the end of the numbers they no longer grow. */
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    dv_node *n = &c->node;
    if (!dv_node_replied(n, reply->error, now)) return;
    bool named = reply->error == 0 && dv_node_take_path(n, reply->path);
    if (named) on_made(n, reply->stat->czxid, now);
    else if (reply->error == 0) dv_node_resolve(n);
    else dv_node_not_made(n, reply->error, now);
}

/* Q1: not in a multi with others of this queue, whose nodes would have one czxid. */
static int send_create(dv_contender *c) {
    enum { MODE = DV_EPHEMERAL | DV_SEQUENTIAL };
    dv_znode *znode = c->node.client->znode;
    const char *path = dv_node_path(&c->node);
    size_t bytes = strlen(c->data);
    if (c->kind->alone) return dv_znode_create(znode, path, c->data, bytes, MODE, on_created, c);
    if (!c->kind->renews) return dv_batch_create(znode, path, c->data, bytes, MODE, on_created, c);
    return dv_batch_create_renewing(znode, c->node.directory, path, c->data, bytes, MODE, on_created, c); /* Q11 */
}

static int send_list(dv_contender *c) {
    divvy_client *client = c->node.client;
    if (c->kind->alone) return dv_znode_children(client->znode, c->node.directory, NULL, on_list, c);
    return dv_batch_children(client->znode, c->node.directory, on_list, c);
}

/* Q1: the list goes right behind the create, so it has our node. Q9: where the directory is new it can wait. */
static void attempt(dv_contender *c) {
    dv_node *n = &c->node;
    dv_node_enter(n, DV_NODE_CREATING);
    c->seen_early = false;
    if (!dv_node_sent(n, send_create(c))) {
        dv_node_enter(n, DV_NODE_UNMADE);
        return;
    }
    c->stale = c->reading; /* B12: a create that a quota refused may be answered before that list. */
    if (c->reading || c->kind->fresh || send_list(c) != 0) return;
    c->reading = true;
    n->under_way++;
}

static void start_over(dv_contender *c, int64_t now) {
    if (dv_node_name(&c->node, c->kind->marker) != 0) dv_node_fail(&c->node, DIVVY_ENOMEM, now);
    else if (dv_client_connected(c->node.client)) attempt(c);
}

/* R1. A node that the search has found was there, and somebody has deleted it. */
static void on_not_found(dv_node *node, int64_t now) {
    if (node->numbered) dv_node_fail(node, DIVVY_ENOENT, now);
    else start_over(of_node(node), now);
}

/* ---- a foreign deletion ---- */

void dv_contender_verify(dv_contender *c) {
    if (is(c, HELD)) dv_node_verify(&c->node);
}

static void on_missing(dv_node *node, int64_t now) {
    (void)now;
    dv_contender *c = of_node(node);
    if (is(c, WAITING)) wake(c);
    else if (is(c, PARKED)) look(c);
    else dv_contender_verify(c);
}

/* ---- its life ---- */

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    dv_contender *c = of_node(node);
    bool connected = event == DV_SESSION_CONNECTED, again = event == DV_SESSION_AGAIN;
    if (node->stage == DV_NODE_UNMADE && (connected || (again && dv_client_connected(node->client))))
        start_over(c, now);
    else if (is(c, LOOKING) && (connected || again)) look(c);
    else if (is(c, WAITING) && connected && !c->reading) look(c); /* A watch may have been missed. */
}

static void on_failed(dv_node *node, int error, int64_t now) {
    dv_contender *c = of_node(node);
    c->events->failed(c->owner, error, now);
}

static void on_gone(dv_node *node, int64_t now) {
    dv_contender *c = of_node(node);
    c->events->gone(c->owner, c, now);
    free(c->predecessor);
    free(c);
}

int dv_contender_enter(dv_contender **out, divvy_client *client, const char *parent, const dv_queue_kind *kind,
                       const char *data, const dv_contender_events *events, void *owner) {
    static const dv_node_kind node_kind = {.found = on_made,
                                           .not_found = on_not_found,
                                           .missing = on_missing,
                                           .hear = hear,
                                           .failed = on_failed,
                                           .gone = on_gone};
    dv_contender *c = calloc(1, sizeof *c);
    if (!c) return DIVVY_ENOMEM;
    *c = (dv_contender){.kind = kind, .events = events, .owner = owner, .data = data};
    c->node = (dv_node){.client = client, .kind = &node_kind, .directory = parent, .sequential = true};
    int error = dv_node_name(&c->node, kind->marker);
    if (!error) {
        size_t cost = dv_path_cost(dv_node_path(&c->node)) + SEQUENCE_BYTES;
        error = dv_node_open(&c->node, cost, cost);
    }
    if (error) {
        free(c);
        return error;
    }
    if (dv_client_connected(client)) attempt(c);
    *out = c;
    return 0;
}

void dv_contender_leave(dv_contender *c) {
    assert(!c->node.leave_requested);
    dv_node_leave(&c->node);
}

void dv_contender_consumed(dv_contender *c) {
    assert(!c->node.leave_requested);
    assert(is(c, HELD) || c->node.stage == DV_NODE_ENDED); /* The session has ended: gone() comes anyway. */
    dv_node_leave_deleted(&c->node);
}

bool dv_contender_is_parked(const dv_contender *c) {
    return is(c, PARKED);
}

void dv_contender_take(dv_contender *c, int64_t now) {
    assert(is(c, PARKED));
    become_holder(c, now);
}

void dv_contender_look(dv_contender *c) {
    assert(is(c, PARKED));
    look(c);
}

bool dv_contender_is_behind(const dv_contender *c) {
    return is(c, PARKED) || is(c, WAITING);
}

bool dv_contender_stands(const dv_contender *c) {
    return c->node.stage == DV_NODE_THERE;
}

void dv_contender_take_away(dv_contender *c) {
    dv_node_take_away(&c->node);
}

void dv_contender_taken(dv_contender *c, bool deleted, int64_t now) {
    dv_node_taken(&c->node, deleted, now);
}

bool dv_contender_waits_for(const dv_contender *c, const dv_contender *other) {
    const char *path = dv_node_path(&other->node);
    return c->predecessor && strncmp(c->predecessor, path, strlen(path)) == 0;
}

int32_t dv_contender_sequence(const dv_contender *c) {
    return c->sequence;
}

int64_t dv_contender_token(const dv_contender *c) {
    return c->token;
}

const char *dv_contender_path(const dv_contender *c) {
    return dv_node_path(&c->node);
}
