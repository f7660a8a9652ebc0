/* Creates, on servers that lack some of the requests for them too. SPDX-License-Identifier: Apache-2.0
 *
 * A create that is a request of its own goes as create2, whose answer has the new node's Stat, or as createContainer.
 * Not all servers know these (docs/compatibility.md). Then a container becomes a persistent node, and a create becomes
 * a multi of one, behind which the node is looked at for its Stat (docs/protocol.md, B8). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "znode/znode.h"

enum { DEATHS_MAX = 2 };

typedef struct {
    dv_znode *znode;
    dv_op op;
    dv_reply_fn done;
    void *context;
    uint64_t connection; /* how many had been made when it was sent */
    char *made;          /* by a multi, kept until its Stat is known */
} creation;

static void finish(creation *c, const dv_reply *reply, int64_t now) {
    dv_reply_fn done = c->done;
    void *context = c->context;
    done(context, reply, now);
    free(c->made);
    free(c);
}

static void fail(creation *c, int error, int64_t now) {
    finish(c, &(dv_reply){.error = error}, now);
}

/* ---- what the servers know ---- */

static dv_optional *request_of(dv_znode *znode, const dv_op *op) {
    return op->mode == DV_CONTAINER ? &znode->containers : &znode->create2;
}

static void miss(dv_znode *znode, dv_optional *request) {
    assert(!request->works);
    request->missing = true;
    if (!znode->on_log) return;
    bool containers = request == &znode->containers;
    znode->on_log(znode->context, DIVVY_LOG_INFO,
                  containers
                      ? "the servers have no containers: directories of locks and registries are made persistent, "
                        "and stay when they are empty"
                      : "the servers do not know create2: nodes are made by a multi and then looked at, which "
                        "costs a round trip more for each");
}

/* B8: such a server may close the connection without an answer. A connection can end for any other reason, too, so it
 * takes two. To be wrong costs create2 a round trip for each node, and containers that directories stay. */
static void note_death(dv_znode *znode, dv_optional *request, uint64_t connection) {
    if (request->works || request->missing || (request->deaths && request->connection == connection)) return;
    request->connection = connection;
    if (++request->deaths == DEATHS_MAX) miss(znode, request);
}

/* Returns whether only a server that knows the request ends it so. This side may say other errors itself. */
static bool proves_knowledge(int error) {
    return error == 0 || error == DIVVY_EEXIST || error == DIVVY_ENOENT || error == DIVVY_EACCES;
}

void dv_znode_lacks_requests(dv_znode *znode) {
    dv_optional *const requests[] = {&znode->create2, &znode->containers};
    for (size_t i = 0; i < 2; i++) {
        if (!requests[i]->works && !requests[i]->missing) miss(znode, requests[i]);
    }
}

/* ---- sending ---- */

static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    creation *c = context;
    dv_reply made = {.error = reply->error, .path = c->made, .stat = reply->stat};
    /* A node without a known czxid is as good as a lost reply: its recipe looks for it (B1). */
    if (reply->error && !dv_session_over(reply->error)) made = (dv_reply){.error = DIVVY_ECONNECTION};
    finish(c, &made, now);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    creation *c = context;
    (void)count;
    if (error) {
        fail(c, error, now);
        return;
    }
    c->made = replies[0].path ? strdup(replies[0].path) : NULL;
    if (!c->made || dv_znode_exists(c->znode, c->made, NULL, on_looked, c) != 0) fail(c, DIVVY_ENOMEM, now);
}

static int send_creation(creation *c);

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    creation *c = context;
    dv_optional *request = request_of(c->znode, &c->op);
    if (reply->error == DIVVY_EUNSUPPORTED && !request->works) {
        if (!request->missing) miss(c->znode, request);
        if (send_creation(c) != 0) fail(c, DIVVY_ENOMEM, now);
        return;
    }
    if (reply->error == DIVVY_ECONNECTION) note_death(c->znode, request, c->connection);
    if (proves_knowledge(reply->error) && !request->missing) request->works = true;
    finish(c, reply, now);
}

static int send_creation(creation *c) {
    if (c->op.mode == DV_CONTAINER && c->znode->containers.missing) c->op.mode = DV_PERSISTENT;
    if (c->op.mode != DV_CONTAINER && c->znode->create2.missing)
        return dv_znode_multi(c->znode, &c->op, 1, on_multi, c);
    return dv_znode_submit(c->znode, &c->op, NULL, on_created, c);
}

int dv_znode_submit_create(dv_znode *znode, const dv_op *op, dv_reply_fn done, void *context) {
    assert(op->kind == DV_CREATE);
    if (request_of(znode, op)->works) return dv_znode_submit(znode, op, NULL, done, context);
    creation *c = calloc(1, sizeof *c);
    if (!c) return DIVVY_ENOMEM;
    divvy_stats stats;
    znode->backend->stats(znode, &stats);
    *c = (creation){.znode = znode, .op = *op, .done = done, .context = context, .connection = stats.connects};
    int error = send_creation(c);
    if (error) free(c);
    return error;
}

int dv_znode_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context) {
    dv_op op = {.kind = DV_CREATE, .path = path, .data = data, .data_bytes = data_bytes, .mode = mode};
    return dv_znode_submit_create(znode, &op, done, context);
}
