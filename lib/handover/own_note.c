/* Our own note: one ephemeral node whose data we change. SPDX-License-Identifier: Apache-2.0
 *
 * Writes stand in a line, in the order of sending, and each is made at the version that the one before it leaves. So
 * the servers apply the first of them and so many more, and never one behind another that failed. They end in that
 * order too. After an answer that leaves anything open they are sent again one at a time. */
#include "handover/own_note.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/latecomer.h"
#include "recipe/node.h"
#include "znode/ensure.h"
#include "znode/path.h"

typedef struct note_write {
    struct note_write *next; /* behind it in the line */
    dv_own_note *of;
    char *text;
    dv_op *ops; /* the first one writes the note */
    size_t op_count;
    bool sent;   /* its answer is to come */
    bool again;  /* to be sent when it is the first */
    bool unsure; /* an earlier attempt may have been applied */
    bool fallen; /* one before it has failed, so it cannot be applied */
    bool over;   /* `error` is what came of it */
    int error;
} note_write;

struct dv_own_note {
    dv_node node;
    const dv_own_note_events *events;
    void *owner;
    char *text;                       /* that it is made with */
    int32_t version;                  /* that the writes which have ended left */
    int64_t written_zxid, written_ms; /* of the last write; ms -1: what came of it, or when, is not known */
    bool told;                        /* settled() */
    bool ensured;                     /* the directory was made once */
    bool is_doubted;                  /* a create of it was taken for never carried out */
    bool broken;                      /* somebody else has written or deleted it: it is written no more */
    note_write *writes;               /* the line; NULL: none is under way */
    unsigned write_count;
};

static void create(dv_own_note *o);
static void on_wrote(void *context, int error, const dv_reply *replies, size_t count, int64_t now);

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
    int error =
        dv_znode_create(n->client->znode, dv_node_path(n), o->text, strlen(o->text), DV_EPHEMERAL, on_created, o);
    if (!dv_node_sent(n, error)) dv_node_enter(n, DV_NODE_UNMADE);
}

static void on_found(dv_node *node, int64_t czxid, int64_t now) {
    (void)czxid;
    become_note(of_node(node), now);
}

/* The barrier has decided it, so the same name is free for another attempt. R3: what comes late is this note, too. */
static void on_not_found(dv_node *node, int64_t now) {
    dv_own_note *o = of_node(node);
    (void)now;
    o->is_doubted = true;
    create(o);
}

/* ---- writing it ---- */

static void send_write(note_write *w) {
    dv_own_note *o = w->of;
    dv_node *n = &o->node;
    assert(!w->sent && !w->over && !w->fallen);
    w->again = true; /* Where there is no connection now, the next one sends it. */
    if (!dv_client_connected(n->client)) return;
    w->sent = dv_node_sent(n, dv_znode_multi(n->client->znode, w->ops, w->op_count, on_wrote, w));
    w->again = !w->sent;
}

static void free_write(note_write *w) {
    free(w->text);
    free(w->ops);
    free(w);
}

static void end(note_write *w, int error) {
    assert(!w->sent && !w->over);
    w->again = false;
    w->over = true;
    w->error = error;
}

/* Takes the first write out of the line, as what came of it is known. */
static void end_first(dv_own_note *o, int64_t now) {
    note_write *w = o->writes;
    int error = w->error;
    assert(w->over && o->write_count > 0);
    o->writes = w->next;
    o->write_count--;
    if (error == 0) o->version++;
    for (note_write *behind = w->next; error && behind; behind = behind->next) {
        behind->fallen = true;
        if (!behind->sent && !behind->over) end(behind, error);
    }
    free_write(w);
    o->events->wrote(o->owner, o, error, now);
    dv_node_other_ended(&o->node, now);
}

/* Ends those whose turn it is, and sends the first one again if nothing else is open. */
static void go_on(dv_own_note *o, int64_t now) {
    dv_node *n = &o->node;
    n->others++; /* until this call ends */
    while (o->writes && o->writes->over) end_first(o, now);
    if (o->writes && o->writes->again) send_write(o->writes);
    dv_node_other_ended(n, now);
}

/* Returns what came of the first write in the line. One that may have been applied by an earlier attempt was, if the
 * version is another: only we write, and all before it have ended. */
static int judge(dv_own_note *o, const note_write *w, int error, int of_note) {
    if (of_note == DIVVY_EVERSION && w->unsure) return 0;
    if (of_note == DIVVY_EVERSION || of_note == DIVVY_ENOENT || of_note == DIVVY_EACCES) o->broken = true;
    return error;
}

/* Takes the answer of one that failed. `lasts`: the note is still there to be written. */
static void take_failure(note_write *w, int error, int of_note, bool lasts) {
    dv_own_note *o = w->of;
    bool is_first = w == o->writes;
    /* B12: refused for now, and not applied by an earlier attempt; the owner goes on without it (T5). */
    bool refused = error == DIVVY_EQUOTA && !w->unsure;
    bool lost = dv_outcome_unknown(error) && !refused;
    if (w->fallen || dv_session_over(error)) {
        end(w, error);
    } else if (lasts && (lost || !is_first)) {
        w->again = true; /* If another write stands before it, any refusal may be for the version. */
        w->unsure |= lost;
    } else {
        end(w, lost || !is_first ? error : judge(o, w, error, of_note));
    }
}

static void on_wrote(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    note_write *w = context;
    dv_own_note *o = w->of;
    assert(w->sent && !w->over);
    w->sent = false;
    int of_note = count > 0 ? replies[0].error : error;
    if (error == 0) o->written_zxid = replies[0].stat->mzxid;
    o->written_ms = error == 0 ? replies[0].stat->mtime_ms : -1;
    dv_node *n = &o->node;
    n->others++; /* until this call ends */
    bool looks = dv_node_replied(n, error, now);
    if (error == 0) end(w, 0);
    else take_failure(w, error, of_note, looks && n->stage == DV_NODE_THERE);
    go_on(o, now);
    dv_node_other_ended(n, now);
}

/* Gives up those that are not under way. */
static void end_unsent(dv_own_note *o, int error, int64_t now) {
    for (note_write *w = o->writes; w; w = w->next) {
        if (!w->sent && !w->over) end(w, error);
    }
    go_on(o, now);
}

bool dv_own_note_stands(const dv_own_note *o) {
    return o->node.stage == DV_NODE_THERE && !o->broken;
}

bool dv_own_note_is_free(const dv_own_note *o) {
    return dv_own_note_stands(o) && !o->writes && dv_client_connected(o->node.client);
}

bool dv_own_note_has_room(const dv_own_note *o) {
    bool smooth = true;
    for (const note_write *w = o->writes; w; w = w->next) smooth &= w->sent && !w->unsure && !w->fallen;
    return dv_own_note_stands(o) && smooth && o->write_count < DV_OWN_NOTE_WRITES &&
           dv_client_connected(o->node.client);
}

int64_t dv_own_note_written(const dv_own_note *o, int64_t *written_ms) {
    *written_ms = o->written_ms;
    return o->written_zxid;
}

static void add_to_line(dv_own_note *o, note_write *w) {
    note_write **end = &o->writes;
    while (*end) end = &(*end)->next;
    *end = w;
    o->write_count++;
    o->node.others++;
}

int dv_own_note_write(dv_own_note *o, char *text, const char *const *deletes, size_t count) {
    assert(dv_own_note_has_room(o));
    note_write *w = calloc(1, sizeof *w);
    dv_op *ops = calloc(count + 1, sizeof *ops);
    if (!w || !ops) {
        free(w);
        free(ops);
        return DIVVY_ENOMEM;
    }
    ops[0] = (dv_op){.kind = DV_SET, .path = dv_node_path(&o->node), .data = text, .data_bytes = strlen(text)};
    ops[0].version = o->version + (int32_t)o->write_count;
    for (size_t i = 0; i < count; i++) ops[i + 1] = (dv_op){.kind = DV_DELETE, .path = deletes[i], .version = -1};
    *w = (note_write){.of = o, .text = text, .ops = ops, .op_count = count + 1};
    add_to_line(o, w);
    send_write(w);
    return 0;
}

/* ---- its life ---- */

static void hear(dv_node *node, dv_session_event event, int64_t now) {
    dv_own_note *o = of_node(node);
    bool again = event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN;
    bool over = event == DV_SESSION_OVER || event == DV_SESSION_CLOSED;
    if (over) end_unsent(o, DIVVY_ELOST, now);
    else if (again && node->stage == DV_NODE_UNMADE) create(o);
    else if (again) go_on(o, now);
}

static void on_failed(dv_node *node, int error, int64_t now) {
    dv_own_note *o = of_node(node);
    if (o->is_doubted) dv_latecomer_expect(node, now);
    o->broken = true;
    dv_client_log(node->client, DIVVY_LOG_INFO, "%s cannot be made, so %s: %s", dv_node_path(node), o->events->without,
                  divvy_strerror(error));
    tell_settled(o, now);
}

static void on_gone(dv_node *node, int64_t now) {
    dv_own_note *o = of_node(node);
    assert(!o->writes);
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
    o->node = (dv_node){.client = client, .kind = &kind, .directory = directory, .written = true};
    o->node.own.path = dv_path_join(directory, name);
    int error = o->node.own.path ? dv_node_open(&o->node, dv_path_cost(dv_node_path(&o->node)), 0) : DIVVY_ENOMEM;
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
    if (o->is_doubted && !o->broken) dv_latecomer_expect(&o->node, now);
    dv_node_leave(&o->node);
    end_unsent(o, DIVVY_ECANCELED, now);
}
