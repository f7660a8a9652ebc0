/* A session's commands, and what it is told, as text. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "conformance.h"
#include "wait.h"
#include "znode/path.h"

typedef struct {
    seat *seat;
    command command;
} asked;

/* A line that grows, and the zxids that belong to it. */
typedef struct {
    char *text;
    size_t bytes;
    FILE *out;
    mark marks[MARKS_MAX];
    size_t mark_count;
} line;

static void line_begin(line *l) {
    l->mark_count = 0;
    l->out = open_memstream(&l->text, &l->bytes);
    if (!l->out) abort();
}

static told *line_end(line *l, seat *s) {
    fclose(l->out);
    told *t = told_list_add(&s->log, l->text, l->marks, l->mark_count);
    free(l->text);
    return t;
}

/* ---- what is said of nodes ---- */

size_t session_number(world *w, int64_t id) {
    for (size_t i = w->session_count; i-- > 0;)
        if (w->session_ids[i] == id) return i + 1;
    w->session_ids = realloc(w->session_ids, (w->session_count + 1) * sizeof *w->session_ids);
    if (!w->session_ids) abort();
    w->session_ids[w->session_count++] = id;
    return w->session_count;
}

static void put_stat(line *l, world *w, dv_stat stat) {
    if (breaks(w, BREAK_VERSION)) stat.version++;
    if (breaks(w, BREAK_DATA_BYTES)) stat.data_bytes++;
    if (breaks(w, BREAK_CHILDREN)) stat.children++;
    if (breaks(w, BREAK_CZXID)) stat.czxid--;
    if (stat.mzxid > stat.czxid && breaks(w, BREAK_MZXID)) stat.mzxid = stat.czxid;
    if (stat.pzxid > stat.czxid && breaks(w, BREAK_PZXID)) stat.pzxid = stat.czxid;
    if (breaks(w, BREAK_TIME)) stat.mtime_ms += 60000;
    size_t owner = stat.ephemeral_owner ? session_number(w, stat.ephemeral_owner) : 0;
    if (owner && breaks(w, BREAK_OWNER)) owner = 0;
    fprintf(l->out, " {version %d, %d bytes, %d children, of session %zu}", (int)stat.version, (int)stat.data_bytes,
            (int)stat.children, owner);
    assert(l->mark_count + 3 <= MARKS_MAX);
    l->marks[l->mark_count++] = (mark){stat.czxid, stat.ctime_ms};
    l->marks[l->mark_count++] = (mark){stat.mzxid, stat.mtime_ms};
    l->marks[l->mark_count++] = (mark){stat.pzxid, -1};
}

static void put_data(line *l, const world *w, const char *data, size_t bytes) {
    enum { SHOWN = 24 };
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < bytes; i++) sum = (sum ^ (unsigned char)data[i]) * 16777619u;
    if (breaks(w, BREAK_DATA)) sum++;
    fprintf(l->out, " data \"%.*s\" (%zu, sum %08x)", bytes < SHOWN ? (int)bytes : SHOWN, data, bytes, (unsigned)sum);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_children(line *l, const world *w, const dv_reply *reply) {
    size_t count = reply->child_count;
    const char **names = malloc((count + 1) * sizeof *names);
    if (!names) abort();
    for (size_t i = 0; i < count; i++) names[i] = reply->children[i];
    qsort(names, count, sizeof *names, by_name);
    if (count && breaks(w, BREAK_CHILD)) count--;
    fputs(" children:", l->out);
    for (size_t i = 0; i < count; i++) fprintf(l->out, " %s", names[i]);
    free(names);
}

static const char *kind_name(dv_kind kind) {
    static const char *const names[DV_KINDS] = {"create", "delete", "set", "check", "get", "exists", "children"};
    return names[kind];
}

static void put_op(line *l, const dv_op *op) {
    fprintf(l->out, "%s \"%s\"", kind_name(op->kind), op->path);
    if (op->kind == DV_CREATE && op->mode)
        fprintf(l->out, " (%s%s)", op->mode & DV_EPHEMERAL ? "ephemeral" : "",
                op->mode & DV_SEQUENTIAL ? " sequential" : "");
    if ((op->kind == DV_DELETE || op->kind == DV_SET || op->kind == DV_CHECK) && op->version != -1)
        fprintf(l->out, " at %d", (int)op->version);
}

static void learn(const seat *s, const dv_op *op, const dv_reply *reply) {
    if (s->world->index != 0 || reply->error) return;
    if (op->kind == DV_CREATE && reply->path) script_learn(reply->path, 0);
    else if (reply->stat) script_learn(op->path, reply->stat->version);
}

/* All of a reply but its error, which is a multi's own matter. */
static void put_reply(line *l, const seat *s, const dv_op *op, const dv_reply *reply) {
    const char *broken = reply->path && breaks(s->world, BREAK_NAME) ? "?" : "";
    if (reply->path) fprintf(l->out, " made \"%s%s\"", reply->path, broken);
    if (reply->stat) put_stat(l, s->world, *reply->stat);
    if (op->kind == DV_GET && !reply->error) put_data(l, s->world, reply->data, reply->data_bytes);
    if (op->kind == DV_CHILDREN && !reply->error) put_children(l, s->world, reply);
    learn(s, op, reply);
}

/* ---- being told ---- */

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    asked *a = context;
    seat *s = a->seat;
    (void)now;
    s->outstanding--;
    s->last_error = reply->error;
    if (a->command.number) {
        const dv_op *op = &a->command.ops[0];
        int error = reply->error;
        line l;
        line_begin(&l);
        if (s->world->index == 0) coverage_note(kind_name(op->kind), error);
        if (breaks(s->world, BREAK_ERROR)) error = error ? 0 : DIVVY_ENOENT;
        fprintf(l.out, "#%u ", a->command.number);
        put_op(&l, op);
        if (a->command.watch >= 0) fprintf(l.out, " with watch %d", a->command.watch);
        fprintf(l.out, ": %s", divvy_strerror(error));
        put_reply(&l, s, op, reply);
        line_end(&l, s);
    }
    free(a);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    asked *a = context;
    seat *s = a->seat;
    (void)now;
    s->outstanding--;
    s->last_error = error;
    if (a->command.number) {
        line l;
        line_begin(&l);
        if (s->world->index == 0) coverage_note("multi", error);
        fprintf(l.out, "#%u multi of %zu: %s", a->command.number, count, divvy_strerror(error));
        for (size_t i = 0; i < count; i++) {
            int one = replies[i].error;
            if (breaks(s->world, BREAK_MULTI_ERROR)) one = one ? 0 : DIVVY_EROLLEDBACK;
            fputs("\n            ", l.out);
            put_op(&l, &a->command.ops[i]);
            fprintf(l.out, ": %s", divvy_strerror(one));
            put_reply(&l, s, &a->command.ops[i], &replies[i]);
        }
        line_end(&l, s);
    }
    free(a);
}

static void on_fired(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    static const char *const names[] = {"watch created", "watch deleted", "watch changed", "watch children"};
    watch_place *place = (watch_place *)(void *)watch;
    seat *s = place->seat;
    char text[64];
    (void)now;
    if (s->world->index == 0) coverage_note(names[kind], 0);
    if (breaks(s->world, BREAK_WATCH_LOST)) return;
    if (breaks(s->world, BREAK_WATCH_KIND)) kind = kind == DV_WATCH_DELETED ? DV_WATCH_CHANGED : DV_WATCH_DELETED;
    snprintf(text, sizeof text, "%s, by watch %d", names[kind], (int)(place - s->watches));
    told_list_add(&s->log, text, NULL, 0)->is_watch = true;
    if (breaks(s->world, BREAK_WATCH_TWICE)) told_list_add(&s->log, text, NULL, 0)->is_watch = true;
    told *last = &s->log.items[s->log.count - 1];
    if (s->log.count > 1 && strcmp(last->text, last[-1].text) != 0 && breaks(s->world, BREAK_WATCH_LATE)) {
        told before = last[-1];
        last[-1] = *last;
        *last = before;
    }
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    seat *s = DV_CONTAINER(listener, seat, listener);
    (void)now;
    const char *text = event == DV_SESSION_CONNECTED   ? "session connected"
                       : event == DV_SESSION_SUSPENDED ? "session suspended"
                       : event == DV_SESSION_LOST      ? "session lost"
                                                       : NULL;
    if (!text) return;
    if (event == DV_SESSION_SUSPENDED && !s->cut) world_surprise(s, "lost its connection");
    if (event == DV_SESSION_LOST && !s->doomed) world_surprise(s, "ended");
    if (event == DV_SESSION_LOST) s->doomed = false;
    char numbered[64];
    if (event == DV_SESSION_CONNECTED)
        snprintf(numbered, sizeof numbered, "%s: session %zu", text,
                 session_number(s->world, divvy_client_session_id(s->client)));
    else snprintf(numbered, sizeof numbered, "%s", text);
    if (!breaks(s->world, BREAK_NEWS)) told_list_add(&s->log, numbered, NULL, 0);
}

/* ---- doing ---- */

void session_listen(seat *s) {
    for (int i = 0; i < WATCHES; i++) s->watches[i] = (watch_place){.watch.fired = on_fired, .seat = s};
    s->listener = (dv_listener){.hear = hear};
    dv_client_lock(s->client);
    dv_listen(s->client, &s->listener);
    dv_client_unlock(s->client);
}

void session_close(seat *s) {
    if (!s->client) return;
    dv_client_lock(s->client);
    dv_unlisten(s->client, &s->listener);
    dv_client_unlock(s->client);
    divvy_client_close(s->client);
    s->client = NULL;
    s->outstanding = 0;
    s->cut = s->doomed = false;
}

/* Returns whether this side of the seam refuses it. Then its end comes at once, before those of earlier commands or
 * after them. */
static bool is_refused_here(const command *c) {
    size_t bytes = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (dv_path_check(c->ops[i].path, NULL) != 0) return true;
        bytes += c->ops[i].data_bytes;
    }
    return bytes > DV_MULTI_BYTES_MAX / 2;
}

void session_submit(seat *s, const command *c) {
    bool alone = is_refused_here(c);
    if (alone) world_await(s, is_settled, "an answer");
    asked *a = malloc(sizeof *a);
    if (!a) abort();
    *a = (asked){s, *c};
    s->outstanding++;
    dv_znode *znode = s->client->znode;
    dv_watch *watch = c->watch >= 0 ? &s->watches[c->watch].watch : NULL;
    if (watch) watch->fired = on_fired; /* unless it was taken back once */
    dv_client_lock(s->client);
    int error = c->is_multi ? dv_znode_multi(znode, a->command.ops, c->count, on_multi, a)
                            : znode->backend->submit(znode, &a->command.ops[0], watch, on_reply, a);
    dv_client_unlock(s->client);
    if (error) dv_test_die("conformance: a request cannot be made: %s", divvy_strerror(error));
    if (alone) world_await(s, is_settled, "an answer");
}

void session_run(seat *s, const command *c) {
    session_submit(s, c);
    world_await(s, is_settled, "an answer");
}

void session_barrier_send(seat *s) {
    command c = {.is_multi = true, .count = 1, .watch = -1};
    c.ops[0] = (dv_op){.kind = DV_CHECK, .path = "/", .version = -1};
    session_submit(s, &c);
}
