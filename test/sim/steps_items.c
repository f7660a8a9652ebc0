/* Records of handovers: what was asked, answered, committed and believed of a pool's items, and of members' notes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * As steps.c, by a layer of its own. An item is i<n>; a note is n. */
#include <stdlib.h>
#include <string.h>

#include "handovers.h"
#include "partitioner/handover.h"
#include "steps.h"
#include "znode/path.h"

static const char notes_path[] = "/pool/notes/";

/* What was recorded of a member's item. */
typedef struct {
    bool wanted, first, revoked;
    int reason; /* why it is revoked */
    int64_t session, token;
    uint64_t set; /* of the items that are dealt */
    char to[SIM_NODE_BYTES], from[SIM_NODE_BYTES];
} item_state;

typedef struct {
    const sim_member *member;
    int64_t session;
    bool reads, lists; /* a note, the queue of an item; else only what the answer leads to is of interest */
    size_t item;
    char node[SIM_NODE_BYTES];
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
} asked;

static item_state states[SIM_SLOTS_MAX][SIM_ITEMS_MAX];
static FILE *steps;
static sim_world *world;
static dv_znode_backend under; /* the same for all members, but for what is not used here */

void sim_steps_items_begin(FILE *file) {
    steps = file;
    memset(states, 0, sizeof states);
}

/* What goes on behind a history's end is no part of it: its transactions are not told. */
static bool is_recorded(const sim_world *w) {
    return steps && !w->over;
}

static void begin_record(const sim_world *w, int64_t session, size_t item, const char *kind) {
    fprintf(steps, "%lld %llx ", (long long)divvy_testing_now_ms(w->ensemble), (unsigned long long)session);
    if (item == SIZE_MAX) fprintf(steps, "n %s", kind);
    else fprintf(steps, "i%zu %s", item, kind);
}

/* ---- what a member has ---- */

static const char *node_of(const dv_note_view *view) {
    return view ? dv_path_last(view->path) : "";
}

static bool is_there(const sim_member *m) {
    return m->phase != SIM_ABSENT && m->client && m->partitioner && !m->ended && sim_member_alive(m);
}

/* Returns whether all is as it was recorded. `own` is NULL: the member has no such item. */
static bool is_as_recorded(const sim_member *m, const dv_item *own, int64_t session, const item_state *was) {
    if (!own) return !was->session && !was->first && !was->revoked;
    bool revoked = own->life.stage == DV_STAGE_REVOKED;
    return was->session == session && was->wanted == own->life.wanted && was->first == own->life.is_first &&
           was->revoked == revoked && (!revoked || was->reason == (int)own->told.reason) &&
           was->set == m->partitioner->dealt->hash &&
           (!was->first || was->token == dv_contender_token(own->life.contender)) &&
           strcmp(was->to, node_of(own->give.next)) == 0 && strcmp(was->from, node_of(own->take.owner)) == 0;
}

static item_state state_of(const sim_member *m, const dv_item *own, int64_t session) {
    item_state s = {0};
    if (!own) return s;
    s.session = session;
    s.wanted = own->life.wanted;
    s.first = own->life.is_first;
    s.revoked = own->life.stage == DV_STAGE_REVOKED;
    s.reason = s.revoked ? own->told.reason : 0;
    s.set = m->partitioner->dealt->hash;
    s.token = s.first ? dv_contender_token(own->life.contender) : 0;
    snprintf(s.to, sizeof s.to, "%s", node_of(own->give.next));
    snprintf(s.from, sizeof s.from, "%s", node_of(own->take.owner));
    return s;
}

/* Returns whether others may wait for its note, and it for theirs. With small budgets a note may count as none (B6). */
static bool hands_over(const sim_member *m, const dv_item *own) {
    const divvy_partitioner *p = m->partitioner;
    return m->config.mode != DIVVY_EAGER && p->handover && dv_handover_can(p) && p->target_valid && own->dealt &&
           p->life == DV_LIFE_TAKING_PART && !p->withdrawn && (own->plain || !p->kazoo_seen) &&
           !m->world->script->small_budgets;
}

/* Returns whether it is revoked for what a plan says, rather than for all that the member has. */
static bool is_of_plan(int reason) {
    return reason != DIVVY_REASON_SESSION && reason != DIVVY_REASON_SUSPEND && reason != DIVVY_REASON_FINISH &&
           reason != DIVVY_REASON_FOREIGN && reason != DIVVY_REASON_TIMEOUT && reason != DIVVY_REASON_DENIED;
}

/* A kind of record that ends with how the member decides. `patience` is its handover_timeout_ms (T4). */
static void record_decision(const sim_member *m, size_t item, const char *kind, int reason) {
    const dv_item *own = sim_item_of(m, item);
    begin_record(m->world, divvy_client_session_id(m->client), item, kind);
    fprintf(steps, " can=%d patience=%lld\n", own && hands_over(m, own) && is_of_plan(reason),
            (long long)m->config.handover_timeout_ms);
}

static bool is_same_place(const item_state *a, const item_state *b) {
    return a->session == b->session && a->token == b->token;
}

static void look_at_plan(const sim_member *m, size_t item, const item_state *was, const item_state *is) {
    bool differs = is->wanted != was->wanted || is->set != was->set || strcmp(is->to, was->to) != 0 ||
                   strcmp(is->from, was->from) != 0;
    if (!is->session || (!differs && is->session == was->session)) return;
    begin_record(m->world, is->session, item, "follow");
    fprintf(steps, " wanted=%d set=%llx to=%s from=%s\n", is->wanted, (unsigned long long)is->set, is->to, is->from);
}

/* Records what has become of an item that the member owned. */
static void look_at_end(const sim_member *m, size_t item, const item_state *was, const item_state *is) {
    bool ends = was->first && (!is->first || !is_same_place(is, was));
    bool answered = was->revoked && !is->revoked && is->session == was->session;
    if (ends && answered) {
        record_decision(m, item, "releases", was->reason);
    } else if (ends) {
        begin_record(m->world, was->session, item, "ends");
        fputc('\n', steps);
    } else if (answered && was->first) {
        record_decision(m, item, "keeps", was->reason);
    }
}

static void look_at(const sim_member *m, size_t item, item_state *was, bool there, int64_t session) {
    const dv_item *own = there ? sim_item_of(m, item) : NULL;
    if (is_as_recorded(m, own, session, was)) return;
    item_state is = state_of(m, own, session);
    look_at_end(m, item, was, &is); /* what a plan says later has not led to that */
    look_at_plan(m, item, was, &is);
    if (is.first && !(was->first && is_same_place(&is, was))) {
        begin_record(m->world, is.session, item, "owns");
        fprintf(steps, " number=%d czxid=%llx\n", dv_contender_sequence(sim_item_of(m, item)->life.contender),
                (unsigned long long)is.token);
    }
    if (is.revoked && !(was->revoked && is_same_place(&is, was))) record_decision(m, item, "revoked", is.reason);
    *was = is;
}

void sim_steps_items_look(const sim_member *m) {
    bool there = is_there(m);
    int64_t session = there ? divvy_client_session_id(m->client) : 0;
    for (size_t k = 0; is_recorded(m->world) && k < m->world->script->items; k++)
        look_at(m, k, &states[m->slot][k], there, session);
}

/* ---- notes and places, as they are committed ---- */

static void record_list(const char *key, const dv_plan_set *set, const uint32_t *list, size_t count) {
    fprintf(steps, " %s=", key);
    for (size_t i = 0; set && i < count; i++)
        fprintf(steps, "%s%zu", i ? "," : "", sim_item_of_name(set->names[list[i]]));
}

/* `set` is NULL: nobody knows its items. */
static void record_note(const dv_note *note, const dv_plan_set *set) {
    fprintf(steps, " set=%llx", set ? (unsigned long long)note->set_hash : 0);
    record_list("leaving", set, note->leaving, note->leaving_count);
    record_list("ready", set, note->ready, note->ready_count);
    fputs(" given=", steps);
    for (size_t i = 0; set && i < note->given_count; i++) {
        const dv_note_given *g = &note->given[i];
        fprintf(steps, "%s%zu:%d:%llx", i ? "," : "", sim_item_of_name(set->names[g->item]), g->sequence,
                (unsigned long long)g->seen);
    }
}

void sim_steps_note(const sim_world *w, const sim_note *n, const dv_note *note, const dv_plan_set *set) {
    if (!is_recorded(w)) return;
    begin_record(w, n->session, SIZE_MAX, "note");
    fprintf(steps, " node=%s zxid=%llx", n->node, (unsigned long long)n->mzxid);
    record_note(note, set);
    fputc('\n', steps);
}

void sim_steps_items_transaction(const sim_world *w, const divvy_testing_transaction *t) {
    const char *name = NULL;
    bool of_note = t->path && strncmp(t->path, notes_path, sizeof notes_path - 1) == 0;
    for (size_t i = 0; is_recorded(w) && i < w->script->slots; i++) {
        if (w->members[i].world) sim_steps_items_look(&w->members[i]);
    }
    if (is_recorded(w) && of_note && t->kind == DIVVY_TESTING_DELETE) {
        begin_record(w, t->ephemeral_owner, SIZE_MAX, "note-ends");
        fprintf(steps, " node=%s\n", t->path + sizeof notes_path - 1);
    }
    size_t item = t->path ? sim_item_of_path(w, t->path, &name) : SIZE_MAX;
    bool created = t->kind == DIVVY_TESTING_CREATE;
    if (!is_recorded(w) || item == SIZE_MAX || !t->ephemeral_owner || (!created && t->kind != DIVVY_TESTING_DELETE))
        return;
    begin_record(w, t->ephemeral_owner, item, created ? "enters" : "leaves");
    fprintf(steps, " name=%s zxid=%llx by=%s\n", strrchr(t->path, '/') + 1, (unsigned long long)t->zxid,
            sim_plan_step_of(w, NULL, DV_MEM_TXN_SESSION_END) ? "end"
            : t->session_id == t->ephemeral_owner             ? "owner"
                                                              : "other");
}

/* ---- the layer over a member's seam ---- */

static void record_answer(const asked *a, const dv_reply *reply) {
    begin_record(a->member->world, a->session, a->item, a->reads ? "read" : "list");
    fprintf(steps, " answer=%s", !reply->error ? "done" : reply->error == DIVVY_ENOENT ? "none" : "lost");
    if (a->reads) {
        fprintf(steps, " node=%s", a->node);
        if (!reply->error) fprintf(steps, " mzxid=%llx", (unsigned long long)reply->stat->mzxid);
    } else {
        fputs(" names=", steps);
        for (size_t i = 0; !reply->error && i < reply->child_count; i++)
            fprintf(steps, "%s%s", i ? "," : "", reply->children[i]);
    }
    fputc('\n', steps);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    asked *a = context;
    sim_steps_items_look(a->member);
    if (is_recorded(a->member->world) && (a->reads || a->lists)) record_answer(a, reply);
    a->done(a->context, reply, now);
    sim_steps_items_look(a->member);
    sim_steps_member_rests(a->member);
    free(a);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    asked *a = context;
    sim_steps_items_look(a->member);
    a->multi_done(a->context, error, replies, count, now);
    sim_steps_items_look(a->member);
    sim_steps_member_rests(a->member);
    free(a);
}

static sim_member *member_of(const dv_znode *znode) {
    for (size_t i = 0; i < world->script->slots; i++) {
        sim_member *m = &world->members[i];
        if (m->client && m->client->znode == znode) return m;
    }
    return NULL;
}

static asked *new_asked(const sim_member *m) {
    asked *a = calloc(1, sizeof *a);
    if (!a) abort();
    a->member = m;
    a->session = divvy_client_session_id(m->client);
    a->item = SIZE_MAX;
    return a;
}

/* Notes what is read of a note, or of the queue of an item. */
static void note_read(asked *a, const dv_op *op) {
    const char *name = NULL;
    char path[256];
    a->reads = op->kind == DV_GET && strncmp(op->path, notes_path, sizeof notes_path - 1) == 0;
    if (a->reads) snprintf(a->node, sizeof a->node, "%s", op->path + sizeof notes_path - 1);
    if (op->kind != DV_CHILDREN) return;
    snprintf(path, sizeof path, "%s/", op->path);
    a->item = sim_item_of_path(a->member->world, path, &name);
    a->lists = a->item != SIZE_MAX;
}

/* Records the places that are asked for. */
static void record_asked(const sim_member *m, const dv_op *ops, size_t count) {
    const char *name = NULL;
    sim_steps_items_look(m);
    for (size_t i = 0; i < count && is_recorded(m->world); i++) {
        size_t item = sim_item_of_path(m->world, ops[i].path, &name);
        if (item == SIZE_MAX || ops[i].kind != DV_CREATE || !(ops[i].mode & DV_EPHEMERAL)) continue;
        begin_record(m->world, divvy_client_session_id(m->client), item, "asks");
        bool can = states[m->slot][item].session && hands_over(m, sim_item_of(m, item));
        fprintf(steps, " name=%s can=%d\n", name, can);
    }
}

/* Records a note that is written, with the places that are deleted by the same request. */
static void record_says(const sim_member *m, const dv_op *ops, size_t count) {
    dv_note note;
    bool creates = ops->kind == DV_CREATE;
    if ((!creates && ops->kind != DV_SET) || strncmp(ops->path, notes_path, sizeof notes_path - 1) != 0) return;
    if (!is_recorded(m->world) || dv_note_parse(&note, ops->data, ops->data_bytes, NULL) != 0) return;
    int64_t session = divvy_client_session_id(m->client);
    begin_record(m->world, session, SIZE_MAX, "says");
    fprintf(steps, " node=%s version=%d", ops->path + sizeof notes_path - 1, creates ? -1 : ops->version);
    record_note(&note, sim_note_set(m->world, &note, session));
    fputs(" gone=", steps);
    for (size_t i = 1; i < count; i++) {
        const char *name = NULL;
        size_t item = sim_item_of_path(m->world, ops[i].path, &name);
        if (item != SIZE_MAX) fprintf(steps, "%s%zu:%s", i > 1 ? "," : "", item, name);
    }
    fputc('\n', steps);
    dv_note_clear(&note);
}

static void record_request(const sim_member *m, const dv_op *ops, size_t count) {
    record_asked(m, ops, count);
    record_says(m, ops, count);
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    const sim_member *m = member_of(znode);
    if (!m) return under.multi(znode, ops, count, done, context);
    record_request(m, ops, count);
    asked *a = new_asked(m);
    a->multi_done = done;
    a->context = context;
    int error = under.multi(znode, ops, count, on_multi, a);
    if (error) free(a);
    return error;
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    const sim_member *m = member_of(znode);
    if (!m) return under.submit(znode, op, watch, done, context);
    record_request(m, op, 1);
    asked *a = new_asked(m);
    note_read(a, op);
    a->done = done;
    a->context = context;
    int error = under.submit(znode, op, watch, on_reply, a);
    if (error) free(a);
    return error;
}

void sim_steps_items_open(sim_member *m) {
    dv_mem_client *client = (dv_mem_client *)(uintptr_t)m->client->znode;
    if (!steps) return;
    world = m->world;
    under = client->backend;
    client->backend.submit = submit;
    client->backend.multi = multi;
}
