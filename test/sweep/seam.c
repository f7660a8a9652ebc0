/* Between a client and the ensemble: counts requests, and makes one of them fail. SPDX-License-Identifier: Apache-2.0
 *
 * It allocates where the native backend does, to submit a request and to copy an answer, by the functions that can be
 * made to fail; so sweeps of allocations meet both. */
#include <stddef.h>

#include "sweep.h"

enum { QUOTA_EXCEEDED = -125, LOCAL_SESSION = -120, OFTEN = 4 };

typedef struct {
    dv_znode_backend backend; /* first: what the client calls */
    const dv_znode_backend *real;
    sweep *sweep;
    divvy_client *client;
    uint64_t submitted; /* requests of this client */
    uint64_t cut;       /* those up to here get no answer */
} seam;

typedef struct {
    seam *seam;
    uint64_t number; /* of the client's */
    bool fails;
    bool has_data;
    dv_watch *watch;
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
} request;

static seam *of(const dv_znode *znode) {
    return (seam *)(uintptr_t)znode->backend;
}

static request *new_request(seam *m, void *context) {
    request *r = calloc(1, sizeof *r);
    if (!r) abort();
    r->seam = m;
    r->number = ++m->submitted;
    r->context = context;
    return r;
}

static void cut(seam *m, divvy_testing_fate fate) {
    divvy_testing_disconnect(m->sweep->ensemble, m->client, fate, 40);
}

/* Returns whether this is the request that is to fail. */
static bool is_due(sweep *s) {
    if (!s->armed) return false;
    if (++s->requests > 100000) sweep_fail(s, "it asks without end");
    bool due = s->way >= SWEEP_UNSENT && s->requests == s->at;
    s->failures += due;
    return due;
}

/* Quotas are about what grows, local sessions about ephemeral nodes. */
static bool fits_code(int code, const dv_op *op) {
    if (code == LOCAL_SESSION) return op->kind == DV_CREATE && op->mode & DV_EPHEMERAL;
    return code != QUOTA_EXCEEDED || op->kind == DV_CREATE || op->kind == DV_SET;
}

static void before(const request *r, const dv_op *op) {
    const sweep *s = r->seam->sweep;
    if (!r->fails) return;
    if (s->way == SWEEP_UNSENT) cut(r->seam, DIVVY_TESTING_APPLIED);
    if (s->way < SWEEP_ANSWERED || !fits_code(s->code, op)) return;
    bool often = s->way == SWEEP_ANSWERED_OFTEN && s->code != QUOTA_EXCEEDED && s->code != LOCAL_SESSION;
    unsigned count = often ? OFTEN : 1;
    if (divvy_testing_answer(s->ensemble, r->seam->client, s->code, s->way == SWEEP_ANSWERED_THOUGH, 0, count) != 0)
        abort();
}

static void after(const request *r) {
    if (!r->fails) return;
    switch (r->seam->sweep->way) {
    case SWEEP_NOT_APPLIED: cut(r->seam, DIVVY_TESTING_NOT_APPLIED); break;
    case SWEEP_APPLIED: cut(r->seam, DIVVY_TESTING_APPLIED); break;
    case SWEEP_APPLIED_LATE: cut(r->seam, DIVVY_TESTING_APPLIED_LATE); break;
    default: break;
    }
}

/* Returns the error that the answer is given instead. */
static int outcome(const request *r, int error) {
    seam *m = r->seam;
    if (dv_session_over(error)) return error;
    if (r->fails && m->sweep->way == SWEEP_REPLY_LOST) {
        cut(m, DIVVY_TESTING_APPLIED);
        m->cut = m->submitted;
    }
    if (r->number <= m->cut) return DIVVY_ECONNECTION;
    if (error) return error;
    if (r->fails && m->sweep->way == SWEEP_REPLY_UNREAD) return DIVVY_ENOMEM;
    void *copy = r->has_data ? sweep_malloc(1) : NULL;
    sweep_free(copy);
    return r->has_data && !copy ? DIVVY_ENOMEM : 0;
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    request *r = context;
    int error = outcome(r, reply->error);
    dv_reply none = {.error = error};
    if (error != reply->error && r->watch && r->watch->link) r->seam->real->unwatch(r->seam->client->znode, r->watch);
    dv_reply_fn done = r->done;
    void *to = r->context;
    free(r);
    done(to, error == reply->error ? reply : &none, now);
}

static void on_multi(void *context, int was, const dv_reply *replies, size_t count, int64_t now) {
    request *r = context;
    int error = outcome(r, was);
    dv_multi_fn done = r->multi_done;
    void *to = r->context;
    free(r);
    if (error == was) done(to, error, replies, count, now);
    else done(to, error, NULL, 0, now);
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    seam *m = of(znode);
    bool fails = is_due(m->sweep);
    void *memory = sweep_malloc(1);
    sweep_free(memory);
    if (!memory || (fails && m->sweep->way == SWEEP_REFUSED)) return DIVVY_ENOMEM;
    request *r = new_request(m, context);
    r->done = done;
    r->watch = watch;
    r->fails = fails;
    r->has_data = op->kind == DV_CREATE || op->kind == DV_GET || op->kind == DV_CHILDREN;
    before(r, op);
    int error = m->real->submit(znode, op, watch, on_reply, r);
    if (!error) after(r); /* It cannot have been answered yet. */
    else if (r->fails || sweep_allocations_refused() == 0) abort();
    else free(r); /* The table of watches, which is the library's, had no memory. */
    return error;
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    seam *m = of(znode);
    bool fails = is_due(m->sweep);
    void *memory = sweep_malloc(1);
    sweep_free(memory);
    if (!memory || (fails && m->sweep->way == SWEEP_REFUSED)) return DIVVY_ENOMEM;
    request *r = new_request(m, context);
    r->multi_done = done;
    r->fails = fails;
    r->has_data = true;
    before(r, ops);
    int error = m->real->multi(znode, ops, count, on_multi, r);
    if (error) abort();
    after(r);
    return 0;
}

static void free_seam(dv_znode *znode) {
    seam *m = of(znode);
    znode->backend = m->real;
    free(m);
    znode->backend->free(znode);
}

void sweep_seam_put(sweep *s, divvy_client *client) {
    seam *m = calloc(1, sizeof *m);
    if (!m) abort();
    m->real = client->znode->backend;
    m->backend = *m->real;
    m->backend.submit = submit;
    m->backend.multi = multi;
    m->backend.free = free_seam;
    m->sweep = s;
    m->client = client;
    client->znode->backend = &m->backend;
}
