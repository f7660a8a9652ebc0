/* Our own note: one ephemeral node whose data we change, one write at a time. SPDX-License-Identifier: Apache-2.0 */
#include "handover/own_note.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/node.h"
#include "znode/ensure.h"
#include "znode/path.h"

struct dv_own_note {
    dv_node node;
    const dv_own_note_events *events;
    void *owner;
    char *text; /* that it is made with, or that is being written */
    int32_t version;
    int64_t written_zxid, written_ms; /* of the last write; ms -1: what came of it, or when, is not known */
    bool told;                        /* settled() */
    bool ensured;                     /* the directory was made once */
    bool broken;                      /* somebody else has written or deleted it: it is written no more */
    dv_op *ops;                       /* the write under way, or the one that is to be sent again; NULL: none */
    size_t op_count;                  /* the first one writes the note */
    bool sent, sent_before;
};

static void create(dv_own_note *o);
static void send_write(dv_own_note *o);

static dv_own_note *of_node(dv_node *node) {
    return DV_CONTAINER(node, dv_own_note, node);
}

static void tell_settled(dv_own_note *o, int64_t now) {
    if (o->told) return;
    o->told = true;
    o->events->settled(o->owner, o, now);
}

/* ---- making it ---- */

static void become_note(dv_own_note *o, int64_t now) {
    if (dv_node_made(&o->node, 0)) tell_settled(o, now);
}

static void fail(dv_own_note *o, int error, int64_t now) {
    if (dv_node_unmade(&o->node, now)) dv_node_fail(&o->node, error, now);
}

static void on_ensured(void *context, int error, int64_t now) {
    dv_own_note *o = context;
    if (!dv_node_replied(&o->node, error, now) || !dv_node_unmade(&o->node, now)) return;
    o->ensured = error == 0;
    if (error && !dv_outcome_unknown(error)) dv_node_fail(&o->node, error, now);
    else create(o);
}

/* The directory is missing: it is made, and the note in it. */
static void ensure(dv_own_note *o, int64_t now) {
    dv_node *n = &o->node;
    if (o->ensured) {
        fail(o, DIVVY_ENOENT, now);
        return;
    }
    int error = dv_ensure_path(n->client->znode, n->directory, DV_PERSISTENT, on_ensured, o);
    if (!dv_node_sent(n, error)) dv_node_enter(n, DV_NODE_UNMADE);
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    dv_own_note *o = context;
    dv_node *n = &o->node;
    if (!dv_node_replied(n, reply->error, now)) return;
    if (reply->error == 0) become_note(o, now);
    else if (dv_outcome_unknown(reply->error)) dv_node_not_made(n, reply->error, now);
    else if (reply->error == DIVVY_ENOENT) ensure(o, now);
    else fail(o, reply->error, now);
}

static void create(dv_own_note *o) {
    dv_node *n = &o->node;
    assert(n->stage == DV_NODE_UNMADE);
    if (!dv_client_connected(n->client)) return;
    dv_node_enter(n, DV_NODE_CREATING);
    int error = dv_znode_create(n->client->znode, n->requested, o->text, strlen(o->text), DV_EPHEMERAL, on_created, o);
    if (!dv_node_sent(n, error)) dv_node_enter(n, DV_NODE_UNMADE);
}

static void on_found(dv_node *node, int64_t czxid, int64_t now) {
    (void)czxid;
    become_note(of_node(node), now);
}

/* The barrier has decided it, so the same name is free for another attempt. */
static void on_not_found(dv_node *node, int64_t now) {
    (void)now;
    create(of_node(node));
}

/* ---- writing it ---- */

static void end_write(dv_own_note *o, int error, int64_t now) {
    free(o->ops);
    o->ops = NULL;
    o->events->wrote(o->owner, o, error, now);
    dv_node_other_ended(&o->node, now);
}

/* A write that was sent before may have been applied then: only we write, so that another version says so. */
static int judge(dv_own_note *o, int error, int of_note) {
    bool applied = of_note == DIVVY_EVERSION && o->sent_before;
    if (error == 0 || applied) {
        o->version++;
        return 0;
    }
    if (of_note == DIVVY_EVERSION || of_note == DIVVY_ENOENT || of_note == DIVVY_EACCES) o->broken = true;
    return error;
}

static void on_wrote(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    dv_own_note *o = context;
    assert(o->ops && o->sent);
    o->sent = false;
    int of_note = count > 0 ? replies[0].error : error;
    if (error == 0) o->written_zxid = replies[0].stat->mzxid;
    o->written_ms = error == 0 ? replies[0].stat->mtime_ms : -1;
    /* B12: refused for now, and not applied by an earlier attempt; the owner goes on without it (T5). */
    bool refused = error == DIVVY_EQUOTA && !o->sent_before;
    bool lost = dv_outcome_unknown(error) && !refused, over = dv_session_over(error);
    bool again = lost && o->node.stage == DV_NODE_THERE;
    dv_node *n = &o->node;
    n->others++; /* until this call ends */
    bool goes_on = dv_node_replied(n, error, now) && again;
    if (goes_on) o->sent_before = true;
    if (goes_on) send_write(o);
    else end_write(o, lost || over ? error : judge(o, error, of_note), now);
    dv_node_other_ended(n, now);
}

/* Where there is no connection now, the next one sends it. */
static void send_write(dv_own_note *o) {
    dv_node *n = &o->node;
    assert(o->ops && !o->sent);
    if (!dv_client_connected(n->client)) return;
    o->sent = dv_node_sent(n, dv_znode_multi(n->client->znode, o->ops, o->op_count, on_wrote, o));
}

bool dv_own_note_stands(const dv_own_note *o) {
    return o->node.stage == DV_NODE_THERE && !o->broken;
}

bool dv_own_note_is_free(const dv_own_note *o) {
    return dv_own_note_stands(o) && !o->ops && dv_client_connected(o->node.client);
}

int64_t dv_own_note_written(const dv_own_note *o, int64_t *written_ms) {
    *written_ms = o->written_ms;
    return o->written_zxid;
}

int dv_own_note_write(dv_own_note *o, char *text, const char *const *deletes, size_t count) {
    assert(dv_own_note_is_free(o));
    dv_op *ops = calloc(count + 1, sizeof *ops);
    if (!ops) return DIVVY_ENOMEM;
    free(o->text);
    o->text = text;
    ops[0] = (dv_op){
        .kind = DV_SET, .path = o->node.requested, .data = text, .data_bytes = strlen(text), .version = o->version};
    for (size_t i = 0; i < count; i++) ops[i + 1] = (dv_op){.kind = DV_DELETE, .path = deletes[i], .version = -1};
    o->ops = ops;
    o->op_count = count + 1;
    o->sent_before = false;
    o->node.others++;
    send_write(o);
    return 0;
}

/* ---- its life ---- */

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    dv_own_note *o = of_node(node);
    bool again = event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN;
    bool over = event == DV_SESSION_OVER || event == DV_SESSION_CLOSED;
    if (over && o->ops && !o->sent) end_write(o, DIVVY_ELOST, now);
    if (!again || !dv_client_connected(node->client)) return;
    if (node->stage == DV_NODE_UNMADE) create(o);
    else if (o->ops && !o->sent) send_write(o);
}

static void on_failed(dv_node *node, int error, int64_t now) {
    dv_own_note *o = of_node(node);
    o->broken = true;
    dv_client_log(node->client, DIVVY_LOG_INFO, "%s cannot be made, so %s: %s", node->requested, o->events->without,
                  divvy_strerror(error));
    tell_settled(o, now);
}

static void on_gone(dv_node *node, int64_t now) {
    dv_own_note *o = of_node(node);
    assert(!o->ops);
    tell_settled(o, now);
    o->events->gone(o->owner, o, now);
    free(o->text);
    free(o);
}

int dv_own_note_make(dv_own_note **out, divvy_client *client, const char *directory, const char *name, char *text,
                     const dv_own_note_events *events, void *owner) {
    static const dv_node_kind kind = {
        .found = on_found, .not_found = on_not_found, .hear = hear, .failed = on_failed, .gone = on_gone};
    *out = NULL;
    dv_own_note *o = calloc(1, sizeof *o);
    if (!o) return DIVVY_ENOMEM;
    *o = (dv_own_note){.events = events, .owner = owner};
    o->node = (dv_node){.client = client, .kind = &kind, .directory = directory, .suffix = "", .written = true};
    o->node.requested = dv_path_join(directory, name);
    int error = o->node.requested ? dv_node_open(&o->node, dv_path_cost(o->node.requested), 0) : DIVVY_ENOMEM;
    if (error) {
        free(o);
        return error;
    }
    o->text = text;
    create(o);
    *out = o;
    return 0;
}

void dv_own_note_leave(dv_own_note *o, int64_t now) {
    dv_node_leave(&o->node);
    if (o->ops && !o->sent) end_write(o, DIVVY_ECANCELED, now);
}
