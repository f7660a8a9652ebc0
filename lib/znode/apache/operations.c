/* Operations on the native client: a bound on them, and copies of answers. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "znode/apache/estate.h"
#include "znode/apache/pending.h"
#include "znode/apache/shared.h"
#include "znode/request.h"
#include "znode/trace.h"

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static dv_stat stat_of(const struct Stat *stat) {
    return (dv_stat){.czxid = stat->czxid,
                     .mzxid = stat->mzxid,
                     .pzxid = stat->pzxid,
                     .ephemeral_owner = stat->ephemeralOwner,
                     .version = stat->version,
                     .data_bytes = stat->dataLength,
                     .children = stat->numChildren,
                     .acl_version = stat->aversion,
                     .ctime_ms = stat->ctime,
                     .mtime_ms = stat->mtime};
}

static void fill_result(const dv_pending *p, size_t i, dv_reply *reply, dv_stat *stat) {
    if (p->ops[i].kind == DV_CREATE) reply->path = p->native_results[i].value;
    if (p->ops[i].kind != DV_SET) return;
    *stat = stat_of(&p->native_stats[i]);
    reply->stat = stat;
}

/* B10. Not to be looked at where the outcome is unknown: the native client may be writing the results. */
static int error_of_undone(const dv_pending *p, size_t i) {
    int rc = p->native_results ? p->native_results[i].err : ZOK;
    return rc == ZOK || rc == ZRUNTIMEINCONSISTENCY ? DIVVY_EROLLEDBACK : dv_answer_of(rc).error;
}

static void complete_multi(dv_pending *p, int error, int64_t now) {
    assert(error != 0 || p->native_results);
    dv_reply *replies = calloc(p->count, sizeof *replies + sizeof(dv_stat));
    if (!replies) {
        p->multi_done(p->context, error ? error : DIVVY_ENOMEM, NULL, 0, now);
        return;
    }
    dv_stat *stats = (dv_stat *)(replies + p->count);
    for (size_t i = 0; i < p->count; i++) {
        if (error == 0) fill_result(p, i, &replies[i], &stats[i]);
        else if (dv_outcome_unknown(error) || dv_session_over(error)) replies[i].error = error;
        else replies[i].error = error_of_undone(p, i);
    }
    p->multi_done(p->context, error, replies, p->count, now);
    free(replies);
}

/* Notes the nodes that a host's session has of ours, for the time when we leave it. */
static void note_nodes(const dv_pending *p, int error, const char *made) {
    if (!p->sent_us) return;
    for (size_t i = 0; i < p->count; i++) {
        const dv_op *op = &p->ops[i];
        if (p->multi_done) made = error == 0 ? p->native_results[i].value : NULL;
        if (op->kind == DV_CREATE) dv_estate_note_create(p->apache, op, error, made);
        if (op->kind == DV_DELETE && (!p->multi_done || error == 0)) dv_estate_note_delete(p->apache, op->path, error);
    }
}

/* `reply` is p's own unless the native client may still be writing that. */
static void complete(dv_pending *p, const dv_reply *reply, int64_t now) {
    assert(!p->completed);
    p->completed = true;
    int error = reply->error;
    if (p->watched) {
        bool armed = error == 0 || (error == DIVVY_ENOENT && p->ops[0].kind == DV_EXISTS);
        dv_watch_end(p->watched, p->watch, armed);
        p->watched = NULL;
    }
    note_nodes(p, error, reply->path);
    if (p->multi_done) complete_multi(p, error, now);
    else p->done(p->context, reply, now);
}

/* `reply` is not p's own when no answer will come. */
static void trace_answer(dv_apache *apache, const dv_pending *p, const dv_reply *reply) {
    if (!apache->znode.traces || !p->number) return;
    bool answered = reply == &p->reply;
    bool made_one = answered && p->multi_done && reply->error == 0 && p->count == 1;
    const char *made = made_one ? p->native_results[0].value : reply->path;
    dv_trace_answer(&apache->znode, p->number, reply, made, answered && p->sent_us ? now_us() - p->sent_us : -1);
}

static void count_answer(dv_apache *apache, const dv_pending *p) {
    divvy_stats *stats = &apache->stats;
    if (p->reply.error == DIVVY_ECONNECTION || p->reply.error == DIVVY_ELOST || !p->sent_us) {
        stats->failed++;
        return;
    }
    uint64_t round_trip_us = (uint64_t)(now_us() - p->sent_us);
    stats->round_trips++;
    stats->round_trip_total_us += round_trip_us;
    if (round_trip_us > stats->round_trip_max_us) stats->round_trip_max_us = round_trip_us;
    dv_histogram_add_us(&apache->znode.round_trips, (int64_t)round_trip_us);
    stats->bytes_received += p->reply.data_bytes;
    for (size_t i = 0; i < p->reply.child_count; i++) stats->bytes_received += strlen(p->reply.children[i]);
    if (p->reply.path) stats->bytes_received += strlen(p->reply.path);
}

static void tell_answer(dv_apache *apache, const dv_pending *p, int64_t now) {
    if (!p->sent_us || !dv_request_answered(p->reply.error)) return;
    dv_kind kind = p->ops[0].kind;
    dv_answer answer = {
        .sent_at = p->submitted_at,
        .connection = p->connection,
        .wrote = p->multi_done || kind == DV_CREATE || kind == DV_DELETE || kind == DV_SET,
        .error = p->reply.error,
    };
    dv_apache_progressed(apache);
    apache->znode.on_answer(apache->znode.context, &answer, now);
}

static void send_waiting(dv_apache *apache);

static void run_pending(dv_event *event, int64_t now) {
    dv_pending *p = (dv_pending *)(void *)event;
    dv_apache *apache = p->apache;
    if (p->list) dv_pending_remove(p);
    if (!p->completed && p->sent_us && p->reply.error == DIVVY_EAUTH) p->reply.error = dv_apache_refused(apache, now);
    if (!p->completed) {
        count_answer(apache, p);
        trace_answer(apache, p, &p->reply);
        tell_answer(apache, p, now);
        complete(p, &p->reply, now);
    }
    dv_pending_free(p);
    send_waiting(apache);
}

static void post(dv_pending *p) {
    assert(!p->event.run);
    p->event.run = run_pending;
    p->apache->znode.sink.post(p->apache->znode.sink.queue, &p->event);
}

/* ---- on the native client's completion thread: copy and post ---- */

static void deliver(dv_pending *p) {
    dv_shared *shared = p->shared;
    if (!shared) {
        post(p);
        return;
    }
    dv_shared_lock();
    bool orphan = !p->apache;
    if (orphan) dv_pending_remove(p);
    else post(p); /* within the lock, since the client may leave as soon as it is free */
    dv_shared_answered(shared);
    dv_shared_unlock();
    if (orphan) dv_pending_free(p);
}

/* Notes an answer and its Stat, if it has one. What else there is to copy the caller adds. */
static dv_pending *note_answer(const void *data, int rc, const struct Stat *stat) {
    dv_pending *p = (dv_pending *)(uintptr_t)data;
    assert(!p->copied);
    p->reply.error = dv_answer_error(rc);
    if (rc != ZOK || !stat) return p;
    p->stat = stat_of(stat);
    p->reply.stat = &p->stat;
    return p;
}

/* Takes over a copy, which is NULL when an allocation failed. Returns it. */
static void *take_copy(dv_pending *p, void *copy) {
    if (!copy) p->reply.error = DIVVY_ENOMEM;
    return p->copied = copy;
}

static void on_void(int rc, const void *data) {
    deliver(note_answer(data, rc, NULL));
}

static void on_stat(int rc, const struct Stat *stat, const void *data) {
    deliver(note_answer(data, rc, stat));
}

static void on_created(int rc, const char *path, const struct Stat *stat, const void *data) {
    dv_pending *p = note_answer(data, rc, stat);
    if (rc == ZOK) p->reply.path = take_copy(p, path ? strdup(path) : NULL);
    deliver(p);
}

static void on_data(int rc, const char *value, int value_bytes, const struct Stat *stat, const void *data) {
    dv_pending *p = note_answer(data, rc, stat);
    size_t bytes = rc == ZOK && value_bytes > 0 ? (size_t)value_bytes : 0;
    char *copy = rc == ZOK ? take_copy(p, calloc(1, bytes + 1)) : NULL;
    if (copy && bytes) memcpy(copy, value, bytes);
    p->reply.data = copy;
    p->reply.data_bytes = bytes;
    deliver(p);
}

static void take_texts(dv_pending *p, char **copy, int32_t count) {
    p->reply.children = take_copy(p, copy);
    p->reply.child_count = copy ? (size_t)count : 0;
}

static void on_children(int rc, const struct String_vector *names, const struct Stat *stat, const void *data) {
    dv_pending *p = note_answer(data, rc, stat);
    if (rc == ZOK) take_texts(p, names ? dv_copy_names(names) : NULL, names ? names->count : 0);
    deliver(p);
}

static void on_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *data) {
    dv_pending *p = note_answer(data, rc, stat);
    if (rc == ZOK) take_texts(p, acl ? dv_copy_acl(acl) : NULL, acl ? acl->count : 0);
    deliver(p);
}

/* ---- sending, with the client lock held ---- */

static int create_mode(int mode) {
    if (mode == DV_CONTAINER) return ZOO_CONTAINER;
    return (mode & DV_EPHEMERAL ? ZOO_EPHEMERAL : 0) | (mode & DV_SEQUENTIAL ? ZOO_SEQUENCE : 0);
}

static const char *data_of(const dv_op *op) {
    return op->data ? op->data : ""; /* NULL would be read back as length -1, on which kazoo raises */
}

/* The two that call the native client allocate nothing themselves: test/lsan.supp names them. */
static int native_single(dv_apache *apache, dv_pending *p) {
    zhandle_t *h = apache->handle;
    const dv_op *op = p->ops;
    watcher_fn watcher = !p->watched ? NULL : p->shared ? dv_shared_on_watch : dv_apache_on_watch;
    void *context = p->shared ? (void *)dv_shared_context : apache;
    switch (op->kind) {
    case DV_CREATE:
        return zoo_acreate2(h, op->path, data_of(op), (int)op->data_bytes, &apache->acl, create_mode(op->mode),
                            on_created, p);
    case DV_DELETE: return zoo_adelete(h, op->path, op->version, on_void, p);
    case DV_SET: return zoo_aset(h, op->path, data_of(op), (int)op->data_bytes, op->version, on_stat, p);
    case DV_GET: return zoo_awget(h, op->path, watcher, context, on_data, p);
    case DV_EXISTS: return zoo_awexists(h, op->path, watcher, context, on_stat, p);
    case DV_ACL: return zoo_aget_acl(h, op->path, on_acl, p);
    case DV_CHILDREN: return zoo_awget_children2(h, op->path, watcher, context, on_children, p);
    default: return ZBADARGUMENTS; /* a check stands only in a multi */
    }
}

static int native_multi(dv_apache *apache, dv_pending *p) {
    return zoo_amulti(apache->handle, (int)p->count, p->native_ops, p->native_results, on_void, p);
}

static int send_multi(dv_apache *apache, dv_pending *p) {
    enum { SEQUENCE_BYTES = 12 };
    size_t buffer_bytes = 0;
    assert(!p->native_ops);
    for (size_t i = 0; i < p->count; i++) buffer_bytes += strlen(p->ops[i].path) + SEQUENCE_BYTES;
    p->native_ops = calloc(p->count, sizeof *p->native_ops);
    p->native_results = calloc(p->count, sizeof *p->native_results);
    p->path_buffers = malloc(buffer_bytes);
    p->native_stats = calloc(p->count, sizeof *p->native_stats);
    if (!p->native_ops || !p->native_results || !p->native_stats || !p->path_buffers) return ZSYSTEMERROR;
    char *buffer = p->path_buffers;
    for (size_t i = 0; i < p->count; i++) {
        const dv_op *op = &p->ops[i];
        zoo_op_t *native = &p->native_ops[i];
        size_t path_buffer_bytes = strlen(op->path) + SEQUENCE_BYTES;
        switch (op->kind) {
        case DV_CREATE:
            zoo_create_op_init(native, op->path, data_of(op), (int)op->data_bytes, &apache->acl, create_mode(op->mode),
                               buffer, (int)path_buffer_bytes);
            break;
        case DV_DELETE: zoo_delete_op_init(native, op->path, op->version); break;
        case DV_SET:
            zoo_set_op_init(native, op->path, data_of(op), (int)op->data_bytes, op->version, &p->native_stats[i]);
            break;
        default: zoo_check_op_init(native, op->path, op->version); break;
        }
        buffer += path_buffer_bytes;
    }
    return native_multi(apache, p);
}

static void fail_unsent(dv_pending *p, int error) {
    assert(!p->list && !p->completed);
    p->sent_us = 0;
    p->reply.error = error;
    post(p);
}

static int give(dv_apache *apache, dv_pending *p) {
    assert(p->list == &apache->sent && !p->number);
    if (zoo_state(apache->handle) != ZOO_CONNECTED_STATE) return ZCONNECTIONLOSS;
    dv_request_count(&apache->stats, p->ops, p->count, p->multi_done);
    p->number = apache->stats.requests;
    if (apache->znode.traces) dv_trace_request(&apache->znode, p->number, p->ops, p->count, p->multi_done, p->watched);
    return p->multi_done ? send_multi(apache, p) : native_single(apache, p);
}

/* The table entry stands before the native client knows of it: its answer may come on another thread at once. */
static void send_now(dv_apache *apache, dv_pending *p) {
    assert(!p->list && apache->sent.count < DV_IN_FLIGHT_MAX);
    divvy_session_state state = apache->state == DIVVY_CONNECTED && !apache->handle ? DIVVY_SUSPENDED : apache->state;
    int error = dv_request_check(p->ops, p->count, p->multi_done, state);
    if (error) {
        fail_unsent(p, error);
        return;
    }
    p->sent_us = now_us();
    p->shared = apache->shared;
    dv_pending_append(&apache->sent, p);
    int rc = ZCONNECTIONLOSS;
    if (!p->shared || dv_shared_begin(p->shared)) {
        rc = give(apache, p);
        if (p->shared) dv_shared_unlock();
    }
    if (rc == ZOK) return;
    dv_pending_remove(p);
    fail_unsent(p, rc == ZSYSTEMERROR ? DIVVY_ENOMEM : dv_answer_of(rc).error);
}

static void send_waiting(dv_apache *apache) {
    while (apache->waiting.first && apache->sent.count < dv_apache_in_flight_max(apache)) {
        dv_pending *p = apache->waiting.first;
        dv_pending_remove(p);
        send_now(apache, p);
    }
}

static int take(dv_znode *znode, const dv_op *ops, size_t count, const dv_pending *given) {
    dv_apache *apache = (dv_apache *)(void *)znode;
    dv_pending *p = malloc(sizeof *p);
    if (!p) return DIVVY_ENOMEM;
    *p = *given;
    p->apache = apache;
    p->ops = malloc(count * sizeof *ops);
    if (p->ops && p->watch)
        p->watched = dv_watch_begin(&apache->watches, ops->path, ops->kind == DV_CHILDREN, p->watch);
    if (!p->ops || (p->watch && !p->watched)) {
        dv_pending_free(p);
        return DIVVY_ENOMEM;
    }
    memcpy(p->ops, ops, count * sizeof *ops);
    p->count = count;
    p->submitted_at = dv_apache_now_ms(znode);
    p->connection = apache->stats.connects;
    dv_pending_append(&apache->waiting, p);
    send_waiting(apache);
    return 0;
}

int dv_apache_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    return take(znode, op, 1, &(dv_pending){.done = done, .context = context, .watch = watch});
}

int dv_apache_multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    assert(count > 0);
    return take(znode, ops, count, &(dv_pending){.multi_done = done, .context = context});
}

void dv_apache_fail_all(dv_apache *apache, int error, int64_t now) {
    dv_reply reply = {.error = error};
    assert(apache->state == DIVVY_LOST || apache->state == DIVVY_AUTH_FAILED);
    /* Requests that were sent stay in their table, as the native client may come back to them. */
    for (dv_pending *p = apache->sent.first; p; p = p->next) {
        if (p->completed) continue;
        apache->stats.failed++;
        trace_answer(apache, p, &reply);
        complete(p, &reply, now);
    }
    for (dv_pending *p; (p = dv_pending_take_first(&apache->waiting));) {
        apache->stats.failed++;
        complete(p, &reply, now);
        dv_pending_free(p);
    }
}

void dv_apache_forget_all(dv_apache *apache) {
    for (dv_pending *p; (p = dv_pending_take_first(&apache->sent));) {
        assert(p->completed);
        dv_pending_free(p);
    }
}
