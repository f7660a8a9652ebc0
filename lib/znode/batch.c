/* Many creates or deletes as few requests: docs/protocol.md, rules B1 and B4. SPDX-License-Identifier: Apache-2.0 */
#include "znode/batch.h"
#include "base/container.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A group that fails as a whole is sent again one by one, so it is kept well below the server's limits. */
enum { GROUP_OPS_MAX = 200 };

typedef struct entry {
    dv_event event; /* only used to report that the entry could not be sent */
    struct entry *next;
    dv_batch *batch;
    dv_op op;
    dv_reply_fn done;
    void *context;
    char *made; /* the path that a multi made, kept until its czxid is known */
} batch_entry;

typedef struct {
    batch_entry *first, **end;
} queue;

struct dv_batch {
    dv_znode *znode;
    queue writes, reads;
};

typedef struct {
    dv_batch *batch;
    batch_entry **entries;
    size_t count;
    size_t probe; /* the created node that is asked for the group's czxid */
} batch_group;

size_t dv_op_bytes(const dv_op *op) {
    enum { FRAMING_BYTES = 80 }; /* lengths, flags, version and an access list of digest credentials */
    return strlen(op->path) + op->data_bytes + FRAMING_BYTES;
}

dv_batch *dv_batch_new(dv_znode *znode) {
    dv_batch *batch = calloc(1, sizeof *batch);
    if (!batch) return NULL;
    batch->znode = znode;
    batch->writes.end = &batch->writes.first;
    batch->reads.end = &batch->reads.first;
    return batch;
}

void dv_batch_free(dv_batch *batch) {
    if (!batch) return;
    assert(!batch->writes.first && !batch->reads.first);
    free(batch);
}

static int enqueue(dv_batch *batch, queue *to, const dv_op *op, dv_reply_fn done, void *context) {
    assert(done);
    batch_entry *e = calloc(1, sizeof *e);
    if (!e) return DIVVY_ENOMEM;
    e->batch = batch;
    e->op = *op;
    e->done = done;
    e->context = context;
    *to->end = e;
    to->end = &e->next;
    return 0;
}

int dv_batch_create(dv_batch *batch, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context) {
    assert(mode != DV_CONTAINER); /* It would abort the native client in a multi. */
    dv_op op = {.kind = DV_CREATE, .path = path, .data = data, .data_bytes = data_bytes, .mode = mode};
    return enqueue(batch, &batch->writes, &op, done, context);
}

int dv_batch_delete(dv_batch *batch, const char *path, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_DELETE, .path = path, .version = -1};
    return enqueue(batch, &batch->writes, &op, done, context);
}

int dv_batch_children(dv_batch *batch, const char *path, dv_reply_fn done, void *context) {
    dv_op op = {.kind = DV_CHILDREN, .path = path};
    return enqueue(batch, &batch->reads, &op, done, context);
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

static void send_single(dv_batch *batch, batch_entry *e) {
    dv_znode *znode = batch->znode;
    assert(!e->next && !e->made);
    int error = e->op.kind == DV_CREATE ? dv_znode_submit_create(znode, &e->op, on_single, e)
                                        : dv_znode_submit(znode, &e->op, NULL, on_single, e);
    if (error == 0) return;
    e->event.run = report_unsent;
    znode->sink.post(znode->sink.queue, &e->event);
}

static void free_group(batch_group *g) {
    free(g->entries);
    free(g);
}

static void finish_group(batch_group *g, int error, const dv_stat *stat, int64_t now) {
    for (size_t i = 0; i < g->count; i++)
        finish_entry(g->entries[i], &(dv_reply){.error = error, .path = g->entries[i]->made, .stat = stat}, now);
    free_group(g);
}

static void probe_czxid(batch_group *g, int64_t now);

/* B1: all nodes of one multi were made by one transaction, so the czxid of one is the czxid of all. */
static void on_probe(void *context, const dv_reply *reply, int64_t now) {
    batch_group *g = context;
    assert(g->probe < g->count);
    if (reply->error == DIVVY_ENOENT && ++g->probe < g->count) {
        probe_czxid(g, now); /* Somebody deleted that node already; the next one tells as much. */
        return;
    }
    /* Nodes without a known czxid are as good as lost replies: their recipes look for them. */
    int error = reply->error == 0 || dv_session_over(reply->error) ? reply->error : DIVVY_ECONNECTION;
    finish_group(g, error, reply->stat, now);
}

static void probe_czxid(batch_group *g, int64_t now) {
    if (dv_znode_exists(g->batch->znode, g->entries[g->probe]->made, NULL, on_probe, g) != 0)
        finish_group(g, DIVVY_ECONNECTION, NULL, now);
}

static bool keep_made_paths(batch_group *g, const dv_reply *replies) {
    for (size_t i = 0; i < g->count; i++) {
        assert(!g->entries[i]->made);
        if (!replies[i].path || !(g->entries[i]->made = strdup(replies[i].path))) return false;
    }
    return true;
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    batch_group *g = context;
    assert(count == g->count || error != 0);
    (void)count;
    if (error == 0 && g->entries[0]->op.kind == DV_CREATE) {
        if (keep_made_paths(g, replies)) probe_czxid(g, now);
        else finish_group(g, DIVVY_ENOMEM, NULL, now);
    } else if (error != DIVVY_EQUOTA && (error == 0 || dv_outcome_unknown(error) || dv_session_over(error))) {
        finish_group(g, error, NULL, now);
    } else {
        /* B4: nothing of it was done. One by one, so that each gets its own answer. */
        for (size_t i = 0; i < g->count; i++) send_single(g->batch, g->entries[i]);
        free_group(g);
    }
}

static bool try_send_multi(dv_batch *batch, batch_entry **entries, size_t count) {
    assert(count > 1 && count <= GROUP_OPS_MAX);
    batch_group *g = calloc(1, sizeof *g);
    dv_op *ops = calloc(count, sizeof *ops);
    batch_entry **own = calloc(count, sizeof(batch_entry *));
    bool sent = false;
    if (g && ops && own) {
        for (size_t i = 0; i < count; i++) {
            own[i] = entries[i];
            ops[i] = entries[i]->op;
        }
        *g = (batch_group){.batch = batch, .entries = own, .count = count};
        sent = dv_znode_multi(batch->znode, ops, count, on_multi, g) == 0;
    }
    free(ops);
    if (!sent) {
        free(own);
        free(g);
    }
    return sent;
}

static void send_group(dv_batch *batch, batch_entry **entries, size_t count) {
    if (count > 1 && try_send_multi(batch, entries, count)) return;
    for (size_t i = 0; i < count; i++) send_single(batch, entries[i]);
}

/* B1: neighbours of one kind form a multi under the limits, so the order of writes stays as it was asked for. */
static void flush_writes(dv_batch *batch) {
    assert(batch->writes.first);
    batch_entry *group_entries[GROUP_OPS_MAX];
    size_t count = 0, bytes = 0;
    batch_entry *e = batch->writes.first;
    batch->writes = (queue){NULL, &batch->writes.first};
    while (e) {
        batch_entry *next = e->next;
        e->next = NULL;
        size_t op_bytes = dv_op_bytes(&e->op);
        bool fits = count < GROUP_OPS_MAX && bytes + op_bytes <= DV_MULTI_BYTES_MAX;
        if (count && (!fits || group_entries[0]->op.kind != e->op.kind)) {
            send_group(batch, group_entries, count);
            count = bytes = 0;
        }
        group_entries[count++] = e;
        bytes += op_bytes;
        e = next;
    }
    if (count) send_group(batch, group_entries, count);
}

void dv_batch_flush(dv_batch *batch) {
    if (batch->writes.first) flush_writes(batch);
    batch_entry *e = batch->reads.first;
    batch->reads = (queue){NULL, &batch->reads.first};
    while (e) {
        batch_entry *next = e->next;
        e->next = NULL;
        send_single(batch, e);
        e = next;
    }
    assert(!batch->writes.first && !batch->reads.first); /* Nothing completes inside the call that submits it. */
}
