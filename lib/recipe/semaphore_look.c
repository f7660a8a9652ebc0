/* Semaphore: who holds, who waits, another limit. docs/protocol.md, E11 and E13. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/listing.h"
#include "recipe/queue.h"
#include "recipe/record.h"
#include "recipe/semaphore.h"
#include "znode/path.h"

typedef struct {
    dv_record record;
    dv_slots slots; /* count 0: none has a number */
    int64_t token;
} holder;

struct divvy_holders {
    holder *all;
    size_t count, room, skipped;
};

typedef struct {
    divvy_semaphore *semaphore;
    bool waiting; /* those in the queue are listed */
    divvy_holders *out;
} slot_listing;

/* ---- listing ---- */

static void skip_record(const slot_listing *l, const char *name) {
    l->out->skipped++;
    dv_client_log(l->semaphore->acquisition.object.client, DIVVY_LOG_WARN, "%s: the record of %s cannot be understood",
                  l->semaphore->pool.path, name);
}

static holder *make_room(divvy_holders *holders) {
    if (holders->count == holders->room) {
        size_t room = 2 * holders->room + 8;
        holder *all = realloc(holders->all, room * sizeof *all);
        if (!all) return NULL;
        holders->all = all;
        holders->room = room;
    }
    return &holders->all[holders->count];
}

/* E11: divvy's data are JSON; all others are an identifier, unless they look like a record of divvy's. */
static int add(void *context, const char *path, const dv_reply *reply, int64_t now) {
    (void)now;
    const slot_listing *l = context;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error; /* It has just gone. */
    if (!l->waiting && reply->stat->ephemeral_owner == 0) return 0;           /* E2: it is no lease. */
    const char *name = dv_path_last(path), *data = reply->data ? reply->data : "";
    holder *h = make_room(l->out);
    if (!h) return DIVVY_ENOMEM;
    bool numbered = !l->waiting && dv_slots_parse(name, &h->slots);
    bool ours = numbered || (l->waiting && reply->data_bytes > 0 && data[0] == '{');
    if (!numbered) h->slots = (dv_slots){.count = 0};
    switch (dv_record_parse(data, reply->data_bytes, ours, &h->record)) {
    case DV_RECORD_GOOD: break;
    case DV_RECORD_BAD: skip_record(l, name); return 0;
    case DV_RECORD_OUT_OF_MEMORY: return DIVVY_ENOMEM;
    }
    if (numbered) h->record.count = h->slots.count; /* The name counts, whatever the record says. */
    h->token = reply->stat->czxid;
    l->out->count++;
    return 0;
}

static int compare_tokens(const void *a, const void *b) {
    int64_t x = ((const holder *)a)->token, y = ((const holder *)b)->token;
    return (x > y) - (x < y);
}

static void clear(divvy_holders *holders) {
    for (size_t i = 0; i < holders->count; i++) dv_record_free(&holders->all[i].record);
    free(holders->all);
    *holders = (divvy_holders){.all = NULL};
}

static int list(void *context, dv_deadline deadline) {
    static const dv_listing_kind holders = {.take = add}, contenders = {.choose = dv_queue_contenders, .take = add};
    slot_listing *l = context;
    const dv_pool *pool = &l->semaphore->pool;
    const char *directory = l->waiting ? pool->queue : pool->path;
    clear(l->out); /* of what was read before the connection broke */
    int error = dv_listing_read(l->semaphore->acquisition.object.client, directory, l->waiting ? &contenders : &holders,
                                l, deadline);
    if (!error && !l->waiting && l->out->all) qsort(l->out->all, l->out->count, sizeof *l->out->all, compare_tokens);
    return error == DIVVY_ENOENT ? 0 : error; /* A pool that is not there has nobody in it. */
}

static int look(divvy_semaphore *s, const char *what, int64_t timeout_ms, int (*send)(void *, dv_deadline),
                void *context) {
    divvy_client *client = s->acquisition.object.client;
    dv_object_hold(&s->acquisition.object);
    int error = dv_client_in_callback(client) ? DIVVY_EDEADLK : 0;
    if (!error) error = dv_request_until_answered(client, dv_deadline_in(client, timeout_ms), send, context);
    if (error == DIVVY_ESTATE)
        dv_fail(client, error, "semaphore %s %s: a kazoo process is there, which would go on with the old limit",
                s->pool.path, what);
    else if (error) dv_fail(client, error, "semaphore %s %s: %s", s->pool.path, what, dv_client_why(client, error));
    dv_object_let_go(&s->acquisition.object);
    return error;
}

static int list_all(divvy_semaphore *s, divvy_holders **out, int64_t timeout_ms, bool waiting) {
    if (out) *out = NULL;
    int error = dv_semaphore_enter(s);
    if (error) return error;
    divvy_holders *holders = calloc(1, sizeof *holders);
    if (!out || timeout_ms < -1 || !holders) {
        error = dv_fail_plainly(s->acquisition.object.client, !out || timeout_ms < -1 ? DIVVY_EINVAL : DIVVY_ENOMEM);
        dv_client_unlock(s->acquisition.object.client);
        free(holders);
        return error;
    }
    slot_listing l = {s, waiting, holders};
    error = look(s, waiting ? "contenders" : "holders", timeout_ms, list, &l);
    if (error) divvy_holders_free(holders);
    else *out = holders;
    return error;
}

int divvy_semaphore_holders(divvy_semaphore *s, divvy_holders **out, int64_t timeout_ms) {
    return list_all(s, out, timeout_ms, false);
}

int divvy_semaphore_contenders(divvy_semaphore *s, divvy_holders **out, int64_t timeout_ms) {
    return list_all(s, out, timeout_ms, true);
}

/* ---- what was listed ---- */

static const holder *at(const divvy_holders *holders, size_t i) {
    return holders && i < holders->count ? &holders->all[i] : NULL;
}

size_t divvy_holders_count(const divvy_holders *holders) {
    return holders ? holders->count : 0;
}

size_t divvy_holders_skipped(const divvy_holders *holders) {
    return holders ? holders->skipped : 0;
}

const char *divvy_holders_identifier(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? at(holders, i)->record.identifier : NULL;
}

const char *divvy_holders_host(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? at(holders, i)->record.host : NULL;
}

int64_t divvy_holders_pid(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? at(holders, i)->record.pid : 0;
}

const char *divvy_holders_time(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? at(holders, i)->record.time : NULL;
}

int divvy_holders_slot(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? dv_slots_at(&at(holders, i)->slots, 0) : -1;
}

uint32_t divvy_holders_slots(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? at(holders, i)->record.count : 0;
}

int64_t divvy_holders_token(const divvy_holders *holders, size_t i) {
    return at(holders, i) ? at(holders, i)->token : 0;
}

void divvy_holders_free(divvy_holders *holders) {
    if (!holders) return;
    clear(holders);
    free(holders);
}

/* ---- another limit: docs/protocol.md, E13 ---- */

typedef struct {
    divvy_semaphore *semaphore;
    uint32_t limit;
} resizing;

static int ask_once(const resizing *r, const dv_op *op, dv_deadline deadline, dv_request **answer) {
    *answer = dv_request_send(r->semaphore->acquisition.object.client, op);
    return dv_request_wait(*answer, deadline);
}

/* E13: kazoo's, if it is ephemeral. */
static int refuse_lease_of_kazoo(const resizing *r, const char *name, dv_deadline deadline) {
    if (!dv_pool_has_kazoo(&name, 1)) return 0;
    char *path = dv_path_join(r->semaphore->pool.path, name);
    if (!path) return DIVVY_ENOMEM;
    dv_request *answer;
    int error = ask_once(r, &(dv_op){.kind = DV_EXISTS, .path = path}, deadline, &answer);
    if (!error && answer->stat.ephemeral_owner != 0) error = DIVVY_ESTATE;
    dv_request_drop(answer);
    free(path);
    return error == DIVVY_ENOENT ? 0 : error;
}

static int refuse_kazoo_holders(const resizing *r, dv_deadline deadline) {
    dv_request *answer;
    int error = ask_once(r, &(dv_op){.kind = DV_CHILDREN, .path = r->semaphore->pool.path}, deadline, &answer);
    for (size_t i = 0; !error && i < answer->name_count; i++)
        error = refuse_lease_of_kazoo(r, answer->names[i], deadline);
    dv_request_drop(answer);
    return error;
}

/* Refuses with DIVVY_ESTATE while a kazoo process is in the queue. */
static int refuse_kazoo_contenders(const resizing *r, dv_deadline deadline) {
    dv_request *answer;
    int error = ask_once(r, &(dv_op){.kind = DV_CHILDREN, .path = r->semaphore->pool.queue}, deadline, &answer);
    if (!error && dv_queue_has_kazoo((const char *const *)answer->names, answer->name_count)) error = DIVVY_ESTATE;
    dv_request_drop(answer);
    return error == DIVVY_ENOENT ? 0 : error;
}

static int make_pool(const resizing *r, dv_deadline deadline) {
    const divvy_semaphore *s = r->semaphore;
    dv_request *making = dv_request_make_path(s->acquisition.object.client, s->pool.path, s->pool.mode);
    int error = dv_request_wait(making, deadline);
    dv_request_drop(making);
    return error;
}

/* A write that was lost needs no barrier: it holds for one version only, and we look again. */
static int write_limit(const resizing *r, int32_t version, dv_deadline deadline) {
    char text[12];
    int bytes = snprintf(text, sizeof text, "%u", r->limit);
    dv_op op = {
        .kind = DV_SET, .path = r->semaphore->pool.path, .data = text, .data_bytes = (size_t)bytes, .version = version};
    dv_request *answer;
    int error = ask_once(r, &op, deadline, &answer);
    dv_request_drop(answer);
    return error;
}

static int resize_once(const resizing *r, dv_deadline deadline) {
    const dv_pool *pool = &r->semaphore->pool;
    dv_request *answer;
    uint32_t stored = 0;
    int error = ask_once(r, &(dv_op){.kind = DV_GET, .path = pool->path}, deadline, &answer);
    dv_limit_state state = error ? DV_LIMIT_UNSET : dv_limit_parse(answer->data, answer->data_bytes, &stored);
    int32_t version = error ? 0 : answer->stat.version;
    dv_request_drop(answer);
    if (!error && state == DV_LIMIT_BAD) error = DIVVY_EPROTO;
    if (error || (state == DV_LIMIT_SET && stored == r->limit)) return error;
    error = refuse_kazoo_holders(r, deadline);
    if (!error) error = refuse_kazoo_contenders(r, deadline);
    return error ? error : write_limit(r, version, deadline);
}

static int resize(void *context, dv_deadline deadline) {
    const resizing *r = context;
    int error;
    while ((error = resize_once(r, deadline)) == DIVVY_EVERSION || error == DIVVY_ENOENT) {
        int made = error == DIVVY_ENOENT ? make_pool(r, deadline) : 0;
        if (made) return made;
        if (dv_deadline_left_ms(r->semaphore->acquisition.object.client, deadline) == 0) return DIVVY_ETIMEDOUT;
    }
    if (!error) r->semaphore->pool.limit = r->limit;
    if (!error) r->semaphore->pool.agreed = true;
    return error;
}

int divvy_semaphore_resize(divvy_semaphore *s, uint32_t limit, int64_t timeout_ms) {
    int error = dv_semaphore_enter(s);
    if (error) return error;
    if (limit < 1 || limit > INT32_MAX || timeout_ms < -1) {
        error = dv_fail(s->acquisition.object.client, DIVVY_EINVAL, "semaphore %s resize: %s", s->pool.path,
                        timeout_ms < -1 ? "timeout_ms is below -1" : "the limit is out of range");
        dv_client_unlock(s->acquisition.object.client);
        return error;
    }
    resizing r = {s, limit};
    return look(s, "resize", timeout_ms, resize, &r);
}
