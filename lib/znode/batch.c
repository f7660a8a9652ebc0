/* Many creates or deletes as few requests; creates where servers lack create2. SPDX-License-Identifier: Apache-2.0 */
#include "znode/batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/request.h"

/* A group that fails as a whole is sent again one by one, so it is kept well below the server's limits. RENEWAL_OPS are
 * those of an entry that renews its directory: check, delete and create it, create the node; the first one sets it. */
enum { GROUP_MAX = 200, RENEWAL_OPS = 4, DEATHS_MAX = 2 };

typedef struct dv_batch_entry {
    dv_event event; /* only used to report that the entry could not be sent */
    struct dv_batch_entry *next;
    dv_op op;
    const char *directory; /* Q11: renewed in the same transaction; NULL: it is not */
    dv_reply_fn done;
    void *context;
    char *made; /* the path that a multi made, kept until its czxid is known */
} batch_entry;

typedef struct {
    dv_znode *znode;
    bool renews, has_places;
    size_t count;
    size_t probe; /* the created node that is looked at for the group's czxid */
    batch_entry *entries[];
} batch_group;

static batch_entry *new_entry(const dv_op *op, dv_reply_fn done, void *context) {
    assert(done);
    batch_entry *e = malloc(sizeof *e);
    if (e) *e = (batch_entry){.op = *op, .done = done, .context = context};
    return e;
}

static int enqueue(dv_batch_queue *to, const dv_op *op, const char *directory, dv_reply_fn done, void *context) {
    batch_entry *e = new_entry(op, done, context);
    if (!e) return DIVVY_ENOMEM;
    e->directory = directory;
    if (!to->first) to->end = &to->first;
    *to->end = e;
    to->end = &e->next;
    return 0;
}

static batch_entry *take(dv_batch_queue *from) {
    batch_entry *e = from->first;
    if (e) from->first = e->next;
    return e;
}

int dv_batch_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context) {
    assert(mode != DV_CONTAINER); /* It would abort the native client in a multi. */
    dv_op op = {.kind = DV_CREATE, .path = path, .data = data, .data_bytes = data_bytes, .mode = mode};
    return enqueue(&znode->writes, &op, NULL, done, context);
}

int dv_batch_create_renewing(dv_znode *znode, const char *directory, const char *path, const void *data,
                             size_t data_bytes, int mode, dv_reply_fn done, void *context) {
    assert(directory && mode != DV_CONTAINER);
    dv_op op = {.kind = DV_CREATE, .path = path, .data = data, .data_bytes = data_bytes, .mode = mode};
    return enqueue(&znode->writes, &op, directory, done, context);
}

int dv_batch_delete(dv_znode *znode, const char *path, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_DELETE, .path = path, .version = -1};
    return enqueue(&znode->writes, &op, NULL, done, context);
}

int dv_batch_children(dv_znode *znode, const char *path, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_CHILDREN, .path = path};
    return enqueue(&znode->reads, &op, NULL, done, context);
}

static void finish_entry(batch_entry *e, const dv_reply *reply, int64_t now) {
    e->done(e->context, reply, now);
    free(e->made);
    free(e);
}

static void report_unsent(dv_event *event, int64_t now) {
    batch_entry *e = DV_CONTAINER(event, batch_entry, event);
    finish_entry(e, &(dv_reply){.error = DIVVY_ENOMEM}, now);
}

static void on_single(void *context, const dv_reply *reply, int64_t now) {
    finish_entry(context, reply, now);
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

/* B8: it takes two, as any connection may end. To be wrong costs a round trip a create, or leaves directories. */
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

/* ---- requests of their own ---- */

typedef struct {
    dv_znode *znode;
    dv_op op;
    dv_reply_fn done;
    void *context;
    uint64_t connection; /* how many had been made when it was sent */
} creation;

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    creation *c = context;
    dv_optional *request = request_of(c->znode, &c->op);
    if (reply->error == DIVVY_EUNSUPPORTED && !request->works) {
        if (!request->missing) miss(c->znode, request);
        int error = dv_znode_submit_create(c->znode, &c->op, c->done, c->context);
        if (error) c->done(c->context, &(dv_reply){.error = error}, now);
    } else {
        if (reply->error == DIVVY_ECONNECTION) note_death(c->znode, request, c->connection);
        if (proves_knowledge(reply->error) && !request->missing) request->works = true;
        c->done(c->context, reply, now);
    }
    free(c);
}

static int submit_unsure(dv_znode *znode, const dv_op *op, dv_reply_fn done, void *context) {
    creation *c = calloc(1, sizeof *c);
    if (!c) return DIVVY_ENOMEM;
    divvy_stats stats;
    znode->backend->stats(znode, &stats);
    *c = (creation){.znode = znode, .op = *op, .done = done, .context = context, .connection = stats.connects};
    int error = dv_znode_submit(znode, &c->op, NULL, on_created, c);
    if (error) free(c);
    return error;
}

int dv_znode_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context) {
    dv_op op = {.kind = DV_CREATE, .path = path, .data = data, .data_bytes = data_bytes, .mode = mode};
    return dv_znode_submit_create(znode, &op, done, context);
}

static void send_single(dv_znode *znode, batch_entry *e) {
    assert(!e->made);
    int error = e->op.kind == DV_CREATE ? dv_znode_submit_create(znode, &e->op, on_single, e)
                                        : dv_znode_submit(znode, &e->op, NULL, on_single, e);
    if (error == 0) return;
    e->event.run = report_unsent;
    znode->sink.post(znode->sink.queue, &e->event);
}

/* ---- groups ---- */

static void finish_group(batch_group *g, int error, const dv_stat *stat, int64_t now) {
    for (size_t i = 0; i < g->count; i++)
        finish_entry(g->entries[i], &(dv_reply){.error = error, .path = g->entries[i]->made, .stat = stat}, now);
    free(g);
}

static void probe_czxid(batch_group *g, int64_t now);

/* B1: the czxid of one node is that of all. */
static void on_probe(void *context, const dv_reply *reply, int64_t now) {
    batch_group *g = context;
    assert(g->probe < g->count);
    if (reply->error == DIVVY_ENOENT) {
        g->probe++; /* Somebody deleted that node already; the next one tells as much. */
        probe_czxid(g, now);
        return;
    }
    /* Nodes without a known czxid are as good as lost replies: their recipes look for them. */
    int error = reply->error == 0 || dv_session_over(reply->error) ? reply->error : DIVVY_ECONNECTION;
    finish_group(g, error, reply->stat, now);
}

/* R2: the name of a place is used once. A directory may be deleted and made again by now, by somebody else. */
static bool can_tell(const batch_group *g, size_t i) {
    return !g->has_places || g->entries[i]->op.mode & DV_EPHEMERAL;
}

static void probe_czxid(batch_group *g, int64_t now) {
    while (g->probe < g->count && !can_tell(g, g->probe)) g->probe++;
    if (g->probe == g->count || dv_znode_exists(g->znode, g->entries[g->probe]->made, NULL, on_probe, g) != 0)
        finish_group(g, DIVVY_ECONNECTION, NULL, now);
}

/* Where each entry's own operation stands in a multi. */
static size_t place_of(const batch_group *g, size_t i) {
    return g->renews ? RENEWAL_OPS * (i + 1) : i;
}

static bool keep_made_paths(batch_group *g, const dv_reply *replies) {
    for (size_t i = 0; i < g->count; i++) {
        assert(!g->entries[i]->made);
        const char *path = replies[place_of(g, i)].path;
        if (!path || !(g->entries[i]->made = strdup(path))) return false;
    }
    return true;
}

/* Goes on after creates that were carried out. Q11: the answer to the set has the czxid of all. */
static void on_multi_made(batch_group *g, const dv_reply *replies, int64_t now) {
    bool kept = keep_made_paths(g, replies);
    const dv_stat *set = g->renews ? replies[0].stat : NULL;
    if (!kept) finish_group(g, DIVVY_ENOMEM, NULL, now);
    else if (set) finish_group(g, 0, &(dv_stat){.czxid = set->mzxid}, now);
    else probe_czxid(g, now);
}

static void send_group(dv_znode *znode, batch_entry **entries, size_t count);

/* B4. Q11: a directory that is not empty is used as it is. */
static void send_again(batch_group *g) {
    for (size_t i = 0; i < g->count; i++) {
        g->entries[i]->directory = NULL;
        if (!g->renews) send_single(g->znode, g->entries[i]);
    }
    if (g->renews) send_group(g->znode, g->entries, g->count);
    free(g);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    batch_group *g = context;
    assert(count == place_of(g, g->count - 1) + 1 || error != 0);
    (void)count;
    bool decided = error == 0 || (error != DIVVY_EQUOTA && dv_outcome_unknown(error)) || dv_session_over(error);
    if (error == 0 && g->entries[0]->op.kind == DV_CREATE) on_multi_made(g, replies, now);
    else if (decided || (g->count == 1 && !g->renews)) finish_group(g, error, NULL, now);
    else send_again(g);
}

/* Q11: deleted at the version that it was made with, empty, and made again; so the number of the node is 0. The check
 * asks for the right to read it. */
static size_t add_renewal(dv_op *ops, const char *directory, bool is_first) {
    size_t n = 0;
    int32_t version = is_first ? 1 : 0;
    if (is_first) ops[n++] = (dv_op){.kind = DV_SET, .path = directory, .data = "", .version = 0};
    ops[n++] = (dv_op){.kind = DV_CHECK, .path = directory, .version = version};
    ops[n++] = (dv_op){.kind = DV_DELETE, .path = directory, .version = version};
    ops[n++] = (dv_op){.kind = DV_CREATE, .path = directory, .data = "", .mode = DV_PERSISTENT};
    return n;
}

static bool try_send_multi(dv_znode *znode, batch_entry **entries, size_t count) {
    assert(count > 0 && count <= GROUP_MAX);
    dv_op ops[RENEWAL_OPS * GROUP_MAX + 1];
    batch_group *g = malloc(sizeof *g + count * sizeof(batch_entry *));
    if (!g) return false;
    *g = (batch_group){.znode = znode, .renews = entries[0]->directory != NULL, .count = count};
    size_t op_count = 0;
    for (size_t i = 0; i < count; i++) {
        g->entries[i] = entries[i];
        if (g->renews) op_count += add_renewal(&ops[op_count], entries[i]->directory, i == 0);
        assert(op_count == place_of(g, i));
        ops[op_count++] = entries[i]->op;
        g->has_places |= entries[i]->op.mode & DV_EPHEMERAL;
    }
    if (dv_znode_multi(znode, ops, op_count, on_multi, g) == 0) return true;
    free(g);
    return false;
}

int dv_znode_submit_create(dv_znode *znode, const dv_op *op, dv_reply_fn done, void *context) {
    dv_op possible = *op;
    assert(op->kind == DV_CREATE);
    if (op->mode == DV_CONTAINER && znode->containers.missing) possible.mode = DV_PERSISTENT;
    dv_optional *request = request_of(znode, &possible);
    if (request->works) return dv_znode_submit(znode, &possible, NULL, done, context);
    if (!request->missing) return submit_unsure(znode, &possible, done, context);
    batch_entry *e = new_entry(&possible, done, context);
    if (!e) return DIVVY_ENOMEM;
    if (try_send_multi(znode, &e, 1)) return 0;
    free(e);
    return DIVVY_ENOMEM;
}

static void send_group(dv_znode *znode, batch_entry **entries, size_t count) {
    bool renews = count > 0 && entries[0]->directory;
    if ((count > 1 || renews) && try_send_multi(znode, entries, count)) return;
    for (size_t i = 0; i < count; i++) send_single(znode, entries[i]);
}

static size_t entry_bytes(const batch_entry *e, bool is_first) {
    dv_op ops[RENEWAL_OPS];
    size_t bytes = dv_op_bytes(&e->op), count = e->directory ? add_renewal(ops, e->directory, is_first) : 0;
    for (size_t i = 0; i < count; i++) bytes += dv_op_bytes(&ops[i]);
    return bytes;
}

static bool go_together(const batch_entry *one, const batch_entry *other) {
    return one->op.kind == other->op.kind && (one->directory != NULL) == (other->directory != NULL);
}

/* B1. */
static void flush_writes(dv_znode *znode) {
    batch_entry *group_entries[GROUP_MAX];
    size_t count = 0, bytes = 0;
    for (batch_entry *e; (e = take(&znode->writes));) {
        bool fits = count < GROUP_MAX && bytes + entry_bytes(e, false) <= DV_MULTI_BYTES_MAX;
        if (count && (!fits || !go_together(group_entries[0], e))) {
            send_group(znode, group_entries, count);
            count = bytes = 0;
        }
        bytes += entry_bytes(e, count == 0);
        group_entries[count++] = e;
    }
    send_group(znode, group_entries, count);
}

void dv_batch_flush(dv_znode *znode) {
    if (znode->writes.first) flush_writes(znode);
    for (batch_entry *e; (e = take(&znode->reads));) send_single(znode, e);
    assert(!znode->writes.first && !znode->reads.first); /* Nothing completes inside the call that submits it. */
}
