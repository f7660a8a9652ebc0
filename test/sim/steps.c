/* Records of what was sent, answered, committed and believed of locks and semaphores.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A layer over a member's seam sees each request and each answer. Requests of kazoo members and administrators are not
 * seen; what the leader commits of them is. */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "recipe/contender.h"
#include "recipe/lock.h"
#include "recipe/semaphore.h"
#include "testing/ensemble.h"
#include "znode/path.h"

/* What one claim was recorded to hold. */
typedef struct {
    bool holds;
    int64_t session;
    sim_claim_path path;
    size_t place;
    char name[SIM_CLAIM_NAME_BYTES];
} belief;

/* A request under way: a part of it that is about a lock, a pool or a pool's queue; SIM_NO_PATH: about none. */
typedef struct {
    sim_claim_path path;
    dv_kind kind;
    size_t place;
    bool watches;
    char name[SIM_CLAIM_NAME_BYTES];
} part;

typedef struct {
    sim_world *world;
    int64_t session;
    bool *unsure;
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
    bool is_barrier, is_admission;
    size_t count;
    part parts[];
} asked;

static FILE *steps;
static bool unsure[SIM_SLOTS_MAX]; /* an answer of the member's was lost, and no barrier that came later was answered */
static belief beliefs[SIM_SLOTS_MAX][SIM_CLAIMS_MAX];
static sim_world *world;
static dv_znode_backend under; /* the same for all members, but for what is not used here */

void sim_steps_to(FILE *file) {
    steps = file;
}

static void begin_record(const sim_world *w, int64_t session, const char *kind) {
    fprintf(steps, "%lld %llx * %s", (long long)w->now_ms, (unsigned long long)session, kind);
}

/* A lock is l<n>, a pool p<n>, its queue q<n>. */
static void begin_own_record(const sim_world *w, int64_t session, sim_claim_path path, size_t place, const char *kind) {
    static const char letters[] = {[SIM_LOCK_PATH] = 'l', [SIM_POOL_PATH] = 'p', [SIM_QUEUE_PATH] = 'q'};
    fprintf(steps, "%lld %llx %c%zu %s", (long long)w->now_ms, (unsigned long long)session, letters[path], place, kind);
}

void sim_steps_begin(const sim_world *w) {
    if (!steps) return;
    memset(beliefs, 0, sizeof beliefs);
    memset(unsure, 0, sizeof unsure);
    sim_steps_items_begin(steps);
    sim_steps_member_begin(steps, w);
    fprintf(steps, "0 0 * history seed=%llu\n", (unsigned long long)w->script->seed);
    fflush(steps); /* a process that does not get to its end leaves at least that, and all before */
}

void sim_steps_violated(const sim_world *w) {
    if (!steps) return;
    begin_record(w, 0, "violated");
    fputc('\n', steps);
}

void sim_steps_over(const sim_world *w) {
    if (!steps) return;
    sim_steps_member_end();
    begin_record(w, 0, "over");
    fputc('\n', steps);
}

void sim_steps_cut_off(void) {
    if (!steps) return;
    fputs("\n0 0 * cut-off\n", steps);
    fflush(steps);
}

/* ---- beliefs ---- */

static const char *name_held(const sim_member *m, const sim_claim *c) {
    if (!sim_claim_exists(c) || m->phase == SIM_ABSENT || !sim_member_alive(m)) return NULL;
    if (!sim_claim_library_token(c)) return NULL;
    if (sim_truth_killed(&m->world->truth, divvy_client_session_id(m->client))) return NULL;
    const dv_ticket *ticket = c->is_pool ? c->semaphore->acquisition.ticket : NULL;
    const dv_lease *lease = ticket ? ticket->place : NULL;
    const char *path = lease ? dv_node_path(&lease->node) : c->lock ? dv_lock_path(c->lock) : NULL;
    return path ? dv_path_last(path) : NULL;
}

static void check_belief(const sim_world *w, const sim_member *m, size_t i, belief *b) {
    const sim_claim *c = &m->claims[i];
    const char *name = i < m->claim_count ? name_held(m, c) : NULL;
    if (b->holds && (!name || strcmp(name, b->name) != 0)) {
        begin_own_record(w, b->session, b->path, b->place, "ends");
        fprintf(steps, " name=%s\n", b->name);
        b->holds = false;
    }
    if (!name || b->holds) return;
    *b = (belief){.holds = true, .session = divvy_client_session_id(m->client), .place = c->place};
    b->path = c->is_pool ? SIM_POOL_PATH : SIM_LOCK_PATH;
    snprintf(b->name, sizeof b->name, "%s", name);
    begin_own_record(w, b->session, b->path, b->place, "holds");
    fprintf(steps, " name=%s\n", b->name);
}

void sim_steps_beliefs(const sim_world *w) {
    for (size_t i = 0; steps && i < w->script->slots; i++) {
        for (size_t k = 0; k < SIM_CLAIMS_MAX; k++) check_belief(w, &w->members[i], k, &beliefs[i][k]);
    }
}

/* ---- requests ---- */

static bool is_told(const part *p) {
    switch (p->path) {
    case SIM_POOL_PATH:
        if (p->name[0]) return p->kind == DV_CREATE || p->kind == DV_DELETE || p->kind == DV_EXISTS;
        return p->kind == DV_GET || p->kind == DV_SET || p->kind == DV_CHILDREN;
    case SIM_LOCK_PATH:
    case SIM_QUEUE_PATH:
        if (!p->name[0]) return p->kind == DV_CHILDREN;
        return p->kind == DV_CREATE || p->kind == DV_DELETE || (p->kind == DV_GET && p->watches);
    case SIM_NO_PATH: break;
    }
    return false;
}

static part part_of(const sim_world *w, const dv_op *op, bool watches) {
    part p = {.kind = op->kind, .watches = watches};
    const char *name = "";
    p.path = sim_claim_path_of(w, op->path, &p.place, &name);
    if (p.path != SIM_NO_PATH) snprintf(p.name, sizeof p.name, "%s", name);
    if (!is_told(&p)) p.path = SIM_NO_PATH;
    return p;
}

static sim_member *member_of(const dv_znode *znode) {
    for (size_t i = 0; i < world->script->slots; i++) {
        sim_member *m = &world->members[i];
        if (m->client && m->client->znode == znode) return m;
    }
    return NULL;
}

/* The claim that asks is the one whose place has this path, or that is just about to have one. */
static const char *mode_of(const sim_member *m, const part *p, const char *path) {
    static const char *const modes[] = {[DIVVY_EXCLUSIVE] = "plain", [DIVVY_READ] = "read", [DIVVY_WRITE] = "write"};
    if (p->path == SIM_QUEUE_PATH) return "plain";
    for (size_t i = 0; i < m->claim_count; i++) {
        const sim_claim *c = &m->claims[i];
        bool reads = strstr(p->name, "__rlock__") != NULL;
        if (!c->lock || c->place != p->place || reads != (c->mode == DIVVY_READ)) continue;
        const dv_acquisition *a = &c->lock->acquisition;
        for (const dv_ticket *t = a->tickets; t; t = t->next) {
            if (strcmp(dv_contender_path(t->place), path) == 0) return modes[c->mode];
        }
        if (a->acquire && !a->ticket) return modes[c->mode];
    }
    return "unknown";
}

static const char *kind_of(const part *p) {
    static const char *const kinds[DV_KINDS] = {[DV_CREATE] = "create", [DV_DELETE] = "delete", [DV_GET] = "watch",
                                                [DV_CHILDREN] = "list", [DV_SET] = "set",       [DV_EXISTS] = "look"};
    return p->path == SIM_POOL_PATH && p->kind == DV_GET ? "get" : kinds[p->kind];
}

/* Records what the data of a pool say. */
static void record_limit(const void *data, size_t bytes) {
    uint32_t limit = 0;
    dv_limit_state state = dv_limit_parse(data, bytes, &limit);
    if (state == DV_LIMIT_SET) fprintf(steps, " limit=%u", limit);
    else fprintf(steps, " limit=%s", state == DV_LIMIT_UNSET ? "unset" : "bad");
}

static void record_asked(const sim_world *w, const sim_member *m, int64_t session, const part *p, const dv_op *op) {
    char kind[16];
    snprintf(kind, sizeof kind, "ask-%s", kind_of(p));
    begin_own_record(w, session, p->path, p->place, kind);
    if (p->name[0]) fprintf(steps, " name=%s", p->name);
    if (p->path != SIM_POOL_PATH && p->kind == DV_CREATE) fprintf(steps, " mode=%s", mode_of(m, p, op->path));
    if (p->path == SIM_POOL_PATH && p->watches) fputs(" watch=1", steps);
    if (p->kind == DV_SET) fprintf(steps, " version=%d", op->version);
    if (p->kind == DV_SET) record_limit(op->data, op->data_bytes);
    fputc('\n', steps);
}

static const char *answer_word(int error) {
    if (!error) return "done";
    if (error == DIVVY_ENOENT) return "none";
    return dv_outcome_unknown(error) || dv_session_over(error) ? "lost" : "refused";
}

static void record_pool_answer(const part *p, const dv_reply *reply) {
    if (p->kind == DV_EXISTS) fprintf(steps, " session=%llx", (unsigned long long)reply->stat->ephemeral_owner);
    if (p->kind != DV_GET && p->kind != DV_CHILDREN) return;
    fprintf(steps, " czxid=%llx version=%d", (unsigned long long)reply->stat->czxid, reply->stat->version);
    if (p->kind == DV_GET) record_limit(reply->data, reply->data_bytes);
}

static void record_answer(const asked *a, const part *p, const dv_reply *reply) {
    const char *answer = answer_word(reply->error);
    *a->unsure = *a->unsure || strcmp(answer, "lost") == 0;
    begin_own_record(a->world, a->session, p->path, p->place, kind_of(p));
    fprintf(steps, " answer=%s", answer);
    if (p->name[0]) fprintf(steps, " name=%s", p->name);
    if (!reply->error && p->path == SIM_POOL_PATH) record_pool_answer(p, reply);
    bool made = p->path != SIM_POOL_PATH && p->kind == DV_CREATE && !reply->error;
    if (made) fprintf(steps, " made=%s", dv_path_last(reply->path));
    if (p->kind == DV_CHILDREN && !reply->error) {
        const char *separator = p->path == SIM_POOL_PATH ? ";" : ","; /* leases have commas in their names */
        fputs(" names=", steps);
        for (size_t i = 0; i < reply->child_count; i++) fprintf(steps, "%s%s", i ? separator : "", reply->children[i]);
    }
    fputc('\n', steps);
}

/* ---- the transaction of E6, which is one request ---- */

static bool is_admission(const asked *a) {
    return a->count == 3 && a->parts[0].path == SIM_POOL_PATH && a->parts[0].kind == DV_SET &&
           a->parts[1].path == SIM_POOL_PATH && a->parts[1].kind == DV_CREATE && a->parts[2].path == SIM_QUEUE_PATH &&
           a->parts[2].kind == DV_DELETE;
}

static void record_admission(const asked *a, const dv_op *ops) {
    begin_own_record(a->world, a->session, SIM_POOL_PATH, a->parts[1].place, "ask-admit");
    fprintf(steps, " name=%s place=%s version=%d", a->parts[1].name, a->parts[2].name, ops->version);
    record_limit(ops->data, ops->data_bytes);
    fputc('\n', steps);
}

static void record_admitted(const asked *a, int error) {
    begin_own_record(a->world, a->session, SIM_POOL_PATH, a->parts[1].place, "admit");
    const char *answer = answer_word(error);
    *a->unsure = *a->unsure || strcmp(answer, "lost") == 0;
    fprintf(steps, " answer=%s name=%s\n", answer, a->parts[1].name);
}

/* ---- the layer over a member's seam ---- */

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    asked *a = context;
    sim_steps_beliefs(a->world);
    record_answer(a, &a->parts[0], reply);
    a->done(a->context, reply, now);
    sim_steps_beliefs(a->world);
    free(a);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    asked *a = context;
    sim_steps_beliefs(a->world);
    if (a->is_barrier) {
        begin_record(a->world, a->session, "barrier");
        bool answered = !dv_outcome_unknown(error) && !dv_session_over(error);
        *a->unsure = !answered;
        fprintf(steps, " answer=%s\n", answered ? "done" : "lost");
    }
    if (a->is_admission) record_admitted(a, error);
    for (size_t i = 0; i < count && !a->is_admission; i++) {
        if (a->parts[i].path != SIM_NO_PATH) record_answer(a, &a->parts[i], &replies[i]);
    }
    a->multi_done(a->context, error, replies, count, now);
    sim_steps_beliefs(a->world);
    free(a);
}

static asked *new_asked(const sim_member *m, const dv_op *ops, size_t count, bool watches) {
    asked *a = calloc(1, sizeof *a + count * sizeof a->parts[0]);
    if (!a) abort();
    a->world = m->world;
    a->session = divvy_client_session_id(m->client);
    a->unsure = &unsure[m - m->world->members];
    a->count = count;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        a->parts[i] = part_of(m->world, &ops[i], watches);
        any = any || a->parts[i].path != SIM_NO_PATH;
    }
    bool is_barrier = count == 1 && ops->kind == DV_CHECK && strcmp(ops->path, "/") == 0;
    a->is_barrier = is_barrier && *a->unsure; /* most are heartbeats, and nothing waits for them */
    a->is_admission = is_admission(a);
    if (any || a->is_barrier) return a;
    free(a);
    return NULL;
}

static void record_all_asked(const sim_member *m, const asked *a, const dv_op *ops) {
    sim_steps_beliefs(m->world);
    if (a->is_barrier) {
        begin_record(m->world, a->session, "ask-barrier");
        fputc('\n', steps);
    }
    if (a->is_admission) record_admission(a, ops);
    for (size_t i = 0; i < a->count && !a->is_admission; i++) {
        if (a->parts[i].path != SIM_NO_PATH) record_asked(m->world, m, a->session, &a->parts[i], &ops[i]);
    }
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    const sim_member *m = member_of(znode);
    asked *a = m ? new_asked(m, op, 1, watch != NULL) : NULL;
    if (!a) return under.submit(znode, op, watch, done, context);
    a->done = done;
    a->context = context;
    record_all_asked(m, a, op);
    int error = under.submit(znode, op, watch, on_reply, a);
    if (error) free(a);
    return error;
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    const sim_member *m = member_of(znode);
    asked *a = m ? new_asked(m, ops, count, false) : NULL;
    if (!a) return under.multi(znode, ops, count, done, context);
    a->multi_done = done;
    a->context = context;
    record_all_asked(m, a, ops);
    int error = under.multi(znode, ops, count, on_multi, a);
    if (error) free(a);
    return error;
}

void sim_steps_open(sim_member *m) {
    if (!steps) return;
    dv_mem_client *client = (dv_mem_client *)(uintptr_t)m->client->znode;
    world = m->world;
    sim_steps_items_open(m);
    under = client->backend;
    client->backend.submit = submit;
    client->backend.multi = multi;
}

/* ---- commits ---- */

static const dv_mem_txn *last_txn(const sim_world *w) {
    const dv_mem *mem = w->ensemble;
    return mem->history_count ? mem->history[mem->history_count - 1] : NULL;
}

/* Returns whether the transaction ends the node's session, which its client may have closed. */
static bool is_of_an_end(const sim_world *w) {
    const dv_mem_txn *txn = last_txn(w);
    for (size_t i = 0; txn && i < txn->count; i++) {
        if (txn->steps[i].kind == DV_MEM_TXN_SESSION_END) return true;
    }
    return false;
}

static void record_node_commit(const sim_world *w, const divvy_testing_transaction *t, sim_claim_path path,
                               size_t place, const char *name) {
    bool created = t->kind == DIVVY_TESTING_CREATE, own = t->session_id == t->ephemeral_owner;
    if (!created && t->kind != DIVVY_TESTING_DELETE) return;
    begin_own_record(w, t->ephemeral_owner, path, place, created ? "commit-create" : "commit-delete");
    fprintf(steps, " name=%s", name);
    if (!created) fprintf(steps, " by=%s", is_of_an_end(w) ? "end" : own ? "owner" : "other");
    if (path != SIM_LOCK_PATH) fprintf(steps, " zxid=%llx", (unsigned long long)t->zxid);
    fputc('\n', steps);
}

static void record_directory_commit(const sim_world *w, const divvy_testing_transaction *t, sim_claim_path path,
                                    size_t place) {
    const dv_mem_txn *txn = last_txn(w);
    if (t->kind != DIVVY_TESTING_DELETE && path != SIM_POOL_PATH) return;
    begin_own_record(w, t->session_id, path, place,
                     t->kind == DIVVY_TESTING_DELETE   ? "commit-end"
                     : t->kind == DIVVY_TESTING_CREATE ? "commit-make"
                                                       : "commit-set");
    for (size_t i = 0; t->kind != DIVVY_TESTING_DELETE && txn && i < txn->count; i++) {
        const dv_mem_step *step = &txn->steps[i];
        if (!step->path || strcmp(step->path->text, t->path) != 0) continue;
        record_limit(step->data ? step->data->data : "", step->data ? step->data->bytes : 0);
        fprintf(steps, " zxid=%llx", (unsigned long long)t->zxid);
        break;
    }
    fputc('\n', steps);
}

void sim_steps_transaction(sim_world *w, const divvy_testing_transaction *t) {
    size_t place = 0;
    const char *name = NULL;
    if (!steps) return;
    sim_steps_beliefs(w);
    sim_steps_items_transaction(w, t);
    if (t->kind == DIVVY_TESTING_SESSION_END) {
        begin_record(w, t->session_id, "session-end");
        fputc('\n', steps);
        return;
    }
    sim_claim_path path = t->path ? sim_claim_path_of(w, t->path, &place, &name) : SIM_NO_PATH;
    if (path == SIM_NO_PATH) return;
    if (*name) record_node_commit(w, t, path, place, name);
    else record_directory_commit(w, t, path, place);
}
