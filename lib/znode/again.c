/* Requests that were put off, and those of unknown outcome. SPDX-License-Identifier: Apache-2.0 */
#include "znode/again.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "znode/znode.h"

/* B10 to B12. */
enum { THROTTLED_MIN_MS = 20, THROTTLED_MAX_MS = 500, UNKNOWN_MS = 250, TOLD_MS = 2000 };
enum { TRIES_MAX = 16, UNKNOWN_READS_MAX = 8 };

typedef enum {
    WITH_BACKEND,
    TO_SEND_AGAIN,
    TO_GIVE_BACK, /* with `error` */
} sent_stage;

struct dv_sent {
    dv_sent *next, *previous;
    dv_znode *znode;
    bool listed;
    bool wrote;
    bool blocks; /* answers to later requests are too early until this one has ended */
    sent_stage stage;
    uint64_t number; /* in the order of submission */
    uint64_t sent;   /* when it was sent last, in the order of sending */
    int64_t due_at;
    unsigned tries;
    int error;
    dv_watch *watch;
    dv_reply_fn done;       /* of a single request, */
    dv_multi_fn multi_done; /* or of a multi; the other is NULL */
    void *context;
    size_t count;
    dv_op ops[];
};

/* ---- the list of what was put off ---- */

static void list(dv_again *again, dv_sent *s) {
    if (s->listed) return;
    s->listed = true;
    dv_sent *before = again->last;
    while (before && before->number > s->number) before = before->previous;
    s->previous = before;
    s->next = before ? before->next : again->first;
    *(s->next ? &s->next->previous : &again->last) = s;
    *(before ? &before->next : &again->first) = s;
}

static void unlist(dv_again *again, dv_sent *s) {
    if (!s->listed) return;
    s->listed = false;
    *(s->previous ? &s->previous->next : &again->first) = s->next;
    *(s->next ? &s->next->previous : &again->last) = s->previous;
    if (s->stage != WITH_BACKEND) again->waiting--;
    again->behind -= s->blocks;
}

/* ---- the end of one ---- */

/* Frees the request last: the reply may point into it. */
static void finish(dv_sent *s, int error, const dv_reply *replies, size_t count, int64_t now) {
    unlist(&s->znode->again, s);
    if (s->multi_done) s->multi_done(s->context, error, replies, count, now);
    else s->done(s->context, replies, now);
    free(s);
}

static void fail(dv_sent *s, int error, int64_t now) {
    assert(error);
    dv_reply reply = {.error = error};
    finish(s, error, s->multi_done ? NULL : &reply, 0, now);
}

/* ---- putting off ---- */

/* Adds up to a quarter, so that those who were refused together do not come again together. */
static int64_t spread(const dv_sent *s, int64_t ms) {
    unsigned char chance = 0;
    s->znode->backend->random(s->znode, &chance, 1);
    return ms + ms * chance / 1024;
}

static void put_off(dv_sent *s, sent_stage stage, int error, int64_t due_at) {
    dv_again *again = &s->znode->again;
    assert(s->stage == WITH_BACKEND && stage != WITH_BACKEND);
    if (s->watch && !s->watch->fired) s->watch = NULL; /* It was taken back while the read was under way. */
    list(again, s);
    again->waiting++;
    again->put_off++;
    s->stage = stage;
    s->error = error;
    s->due_at = due_at;
    again->wake(again->context, due_at);
}

static int64_t throttled_ms(const dv_sent *s) {
    int64_t ms = (int64_t)THROTTLED_MIN_MS << (s->tries < TRIES_MAX ? s->tries : TRIES_MAX);
    return ms < THROTTLED_MAX_MS ? ms : THROTTLED_MAX_MS;
}

static void set_blocks(dv_sent *s, bool blocks) {
    dv_again *again = &s->znode->again;
    if (blocks && !s->blocks) again->behind++;
    if (!blocks && s->blocks) again->behind--;
    s->blocks = blocks;
}

static void send_later(dv_sent *s, int64_t wait_ms, int64_t now) {
    s->tries++;
    set_blocks(s, true);
    put_off(s, TO_SEND_AGAIN, 0, now + spread(s, wait_ms));
}

/* Puts the answer off. A request that waits until somebody does something holds up no other. */
static void give_back_later(dv_sent *s, int error, int64_t wait_ms, int64_t now) {
    set_blocks(s, error != DIVVY_EQUOTA && wait_ms < TOLD_MS);
    put_off(s, TO_GIVE_BACK, error, now + spread(s, wait_ms));
}

/* Returns whether the answer can be about what it came to: what grows, or lasts as long as the session. */
static bool is_about(const dv_sent *s) {
    return s->ops[0].kind == DV_CREATE || s->ops[0].kind == DV_SET;
}

static void take_odd(dv_sent *s, int raw, int64_t now) {
    dv_again *again = &s->znode->again;
    dv_answer_meaning meaning = dv_answer_of(dv_answer_code(raw));
    if (!again->wake) {
        fail(s, meaning.error, now);
        return;
    }
    again->tell(again->context, &(dv_odd_answer){meaning, s->ops, s->multi_done != NULL}, now);
    bool unknown = meaning.verdict == DV_VERDICT_MAYBE || (meaning.verdict == DV_VERDICT_TOLD && !is_about(s));
    if (unknown && (s->wrote || s->tries >= UNKNOWN_READS_MAX)) give_back_later(s, DIVVY_ECONNECTION, UNKNOWN_MS, now);
    else if (unknown) send_later(s, UNKNOWN_MS, now);
    else if (meaning.verdict == DV_VERDICT_TOLD)
        give_back_later(s, meaning.error, TOLD_MS + (int64_t)again->waiting, now);
    else send_later(s, throttled_ms(s), now);
}

/* ---- order ---- */

/* B11: what was submitted before this request, and was put off, has not been carried out before it. */
static const dv_sent *find_overtaken(const dv_again *again, const dv_sent *s) {
    if (!again->behind) return NULL;
    for (const dv_sent *x = again->first; x && x->number < s->number; x = x->next) {
        if (x->blocks && (x->stage != WITH_BACKEND || x->sent > s->sent)) return x;
    }
    return NULL;
}

/* Returns whether nothing has come of it that could not come again: a read, or a write that was refused. */
static bool can_repeat(const dv_sent *s, int error) {
    bool refused = error == DIVVY_ENOENT || error == DIVVY_EEXIST || error == DIVVY_ENOTEMPTY ||
                   error == DIVVY_EVERSION || error == DIVVY_EACCES || error == DIVVY_EROLLEDBACK;
    return refused || (error == 0 && !s->wrote);
}

/* A read may have armed its watch by now; that would fire before the answer comes. */
static void disarm(dv_sent *s) {
    if (!s->watch || !s->watch->link) return;
    void (*fired)(dv_watch * watch, dv_watch_kind kind, int64_t now) = s->watch->fired;
    s->znode->backend->unwatch(s->znode, s->watch);
    s->watch->fired = fired;
}

/* Returns whether the answer came too early: then the request waits for the one that it has overtaken. */
static bool wait_for_earlier(dv_sent *s, int error, int64_t now) {
    const dv_sent *earlier = can_repeat(s, error) ? find_overtaken(&s->znode->again, s) : NULL;
    if (!earlier) return false;
    disarm(s);
    int64_t due_at = earlier->stage != WITH_BACKEND && earlier->due_at > now ? earlier->due_at : now;
    set_blocks(s, true);
    put_off(s, TO_SEND_AGAIN, 0, due_at);
    return true;
}

/* ---- answers ---- */

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    dv_sent *s = context;
    assert(s->stage == WITH_BACKEND);
    if (dv_answer_is_raw(error)) take_odd(s, error, now);
    else if (!wait_for_earlier(s, error, now)) finish(s, error, replies, count, now);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    on_multi(context, reply->error, reply, 1, now);
}

/* ---- sending ---- */

static int send_once(dv_sent *s) {
    const dv_znode_backend *backend = s->znode->backend;
    s->sent = ++s->znode->again.numbers;
    return s->multi_done ? backend->multi(s->znode, s->ops, s->count, on_multi, s)
                         : backend->submit(s->znode, s->ops, s->watch, on_reply, s);
}

static void *copy(char **to, const void *from, size_t bytes) {
    void *copied = memcpy(*to, from, bytes);
    *to += bytes;
    return copied;
}

/* Returns a request with copies of paths and data, which the caller may free as soon as it has asked. */
static dv_sent *new_sent(dv_znode *znode, const dv_op *ops, size_t count, void *context) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += strlen(ops[i].path) + 1 + ops[i].data_bytes;
    dv_sent *s = malloc(sizeof *s + count * sizeof *ops + bytes);
    if (!s) return NULL;
    *s = (dv_sent){.znode = znode, .number = ++znode->again.numbers, .context = context, .count = count};
    char *to = (char *)(s->ops + count);
    for (size_t i = 0; i < count; i++) {
        s->ops[i] = ops[i];
        s->ops[i].path = copy(&to, ops[i].path, strlen(ops[i].path) + 1);
        if (ops[i].data_bytes > 0) s->ops[i].data = copy(&to, ops[i].data, ops[i].data_bytes);
    }
    return s;
}

/* B11. A check changes nothing, and heartbeats are checks. */
static const dv_sent *find_first_waiting(const dv_sent *s) {
    const dv_again *again = &s->znode->again;
    if (!again->behind || s->ops[0].kind == DV_CHECK) return NULL;
    const dv_sent *x = again->first;
    while (x && !(x->blocks && x->stage != WITH_BACKEND)) x = x->next;
    return x;
}

static int send_first(dv_sent *s) {
    const dv_sent *earlier = find_first_waiting(s);
    if (earlier) {
        set_blocks(s, true);
        put_off(s, TO_SEND_AGAIN, 0, earlier->due_at);
        return 0;
    }
    int error = send_once(s);
    if (error) free(s);
    return error;
}

int dv_znode_submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    dv_sent *s = new_sent(znode, op, 1, context);
    if (!s) return DIVVY_ENOMEM;
    s->wrote = op->kind == DV_CREATE || op->kind == DV_DELETE || op->kind == DV_SET;
    s->watch = watch;
    s->done = done;
    return send_first(s);
}

int dv_znode_multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    dv_sent *s = new_sent(znode, ops, count, context);
    if (!s) return DIVVY_ENOMEM;
    s->wrote = true;
    s->multi_done = done;
    return send_first(s);
}

dv_multi_fn dv_again_multi_done(const void *context) {
    return ((const dv_sent *)context)->multi_done;
}

/* ---- later ---- */

static bool is_due(const dv_sent *s, sent_stage stage, int64_t now) {
    return s->stage == stage && s->due_at <= now;
}

static void send_due(dv_again *again, int64_t now) {
    enum { NO_MEMORY_MS = 50 };
    bool lacks_memory = false;
    for (dv_sent *s = again->first; s; s = s->next) {
        if (!is_due(s, TO_SEND_AGAIN, lacks_memory ? now + NO_MEMORY_MS : now)) continue;
        lacks_memory = lacks_memory || send_once(s) != 0;
        if (lacks_memory) { /* Those behind it wait, too. */
            s->due_at = now + NO_MEMORY_MS;
        } else {
            s->stage = WITH_BACKEND;
            again->waiting--;
        }
    }
}

/* Takes the first of the list that waits to be given back, or that waits at all; NULL: there is none. */
static dv_sent *take_waiting(dv_again *again, bool any, int64_t now) {
    dv_sent *s = again->first;
    while (s && !(any ? s->stage != WITH_BACKEND : is_due(s, TO_GIVE_BACK, now))) s = s->next;
    if (s) unlist(again, s);
    assert(!s || again->first != s);
    return s;
}

/* Each may end others. */
static void give_back_due(dv_again *again, int64_t now) {
    dv_sent *s;
    while ((s = take_waiting(again, false, now)) != NULL) fail(s, s->error, now);
}

static void wake_for_next(const dv_again *again) {
    int64_t next_at = INT64_MAX;
    for (const dv_sent *s = again->first; s && again->waiting; s = s->next) {
        if (s->stage != WITH_BACKEND && s->due_at < next_at) next_at = s->due_at;
    }
    if (next_at != INT64_MAX) again->wake(again->context, next_at);
}

void dv_again_run(dv_znode *znode, int64_t now) {
    send_due(&znode->again, now);
    give_back_due(&znode->again, now);
    wake_for_next(&znode->again);
}

void dv_again_end(dv_znode *znode, int error, int64_t now) {
    dv_sent *s;
    assert(error);
    while (znode->again.waiting > 0 && (s = take_waiting(&znode->again, true, now)) != NULL) fail(s, error, now);
}

void dv_again_unwatch(dv_znode *znode, dv_watch *watch) {
    for (dv_sent *s = znode->again.first; s; s = s->next) {
        if (s->stage != WITH_BACKEND && s->watch == watch) s->watch = NULL;
    }
}
