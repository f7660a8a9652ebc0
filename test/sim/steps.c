/* Records of what was sent, answered, committed and believed of locks. SPDX-License-Identifier: Apache-2.0
 *
 * A layer over a member's seam sees each request and each answer. Requests of kazoo members and administrators are not
 * seen; what the leader commits of them is. */
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#include "claims.h"
#include "recipe/contender.h"
#include "recipe/lock.h"
#include "testing/ensemble.h"

/* What one claim was recorded to hold. */
typedef struct {
    bool holds;
    int64_t session;
    size_t place;
    char name[SIM_CLAIM_NAME_BYTES];
} belief;

/* A request under way: the parts of it that are about locks. */
typedef struct {
    bool is_lock;
    dv_kind kind;
    size_t place;
    char name[SIM_CLAIM_NAME_BYTES];
} part;

typedef struct {
    sim_world *world;
    int64_t session;
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
    bool is_barrier;
    size_t count;
    part parts[];
} asked;

static FILE *steps;
static belief beliefs[SIM_SLOTS_MAX][SIM_CLAIMS_MAX];
static sim_world *world;
static dv_znode_backend under; /* the same for all members, but for what is not used here */

void sim_steps_to(FILE *file) {
    steps = file;
}

static void begin_record(const sim_world *w, int64_t session, const char *kind) {
    fprintf(steps, "%lld %llx * %s", (long long)w->now_ms, (unsigned long long)session, kind);
}

static void begin_lock_record(const sim_world *w, int64_t session, size_t place, const char *kind) {
    fprintf(steps, "%lld %llx l%zu %s", (long long)w->now_ms, (unsigned long long)session, place, kind);
}

void sim_steps_begin(const sim_world *w) {
    if (!steps) return;
    memset(beliefs, 0, sizeof beliefs);
    fprintf(steps, "0 0 * history seed=%llu\n", (unsigned long long)w->script->seed);
}

/* ---- beliefs ---- */

static const char *name_held(const sim_member *m, const sim_claim *c) {
    if (c->is_pool || !c->lock || m->phase == SIM_ABSENT || !sim_member_alive(m)) return NULL;
    if (!sim_claim_library_token(c)) return NULL;
    if (sim_truth_killed(&m->world->truth, divvy_client_session_id(m->client))) return NULL;
    const char *path = dv_lock_path(c->lock);
    return path ? strrchr(path, '/') + 1 : NULL;
}

static void check_belief(const sim_world *w, const sim_member *m, size_t i, belief *b) {
    const sim_claim *c = &m->claims[i];
    const char *name = i < m->claim_count ? name_held(m, c) : NULL;
    if (b->holds && (!name || strcmp(name, b->name) != 0)) {
        begin_lock_record(w, b->session, b->place, "ends");
        fprintf(steps, " name=%s\n", b->name);
        b->holds = false;
    }
    if (!name || b->holds) return;
    *b = (belief){.holds = true, .session = divvy_client_session_id(m->client), .place = c->place};
    snprintf(b->name, sizeof b->name, "%s", name);
    begin_lock_record(w, b->session, b->place, "holds");
    fprintf(steps, " name=%s\n", b->name);
}

void sim_steps_beliefs(const sim_world *w) {
    for (size_t i = 0; steps && i < w->script->slots; i++) {
        for (size_t k = 0; k < SIM_CLAIMS_MAX; k++) check_belief(w, &w->members[i], k, &beliefs[i][k]);
    }
}

/* ---- requests ---- */

static part part_of(const sim_world *w, const dv_op *op, bool watches) {
    part p = {.kind = op->kind};
    const char *name = "";
    p.is_lock = sim_claim_path_of(w, op->path, &p.place, &name) == SIM_LOCK_PATH;
    bool told = *name ? op->kind == DV_CREATE || op->kind == DV_DELETE || (op->kind == DV_GET && watches)
                      : op->kind == DV_CHILDREN;
    p.is_lock = p.is_lock && told;
    if (p.is_lock) snprintf(p.name, sizeof p.name, "%s", name);
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
    for (size_t i = 0; i < m->claim_count; i++) {
        const sim_claim *c = &m->claims[i];
        bool reads = strstr(p->name, "__rlock__") != NULL;
        if (c->is_pool || !c->lock || c->place != p->place || reads != (c->mode == DIVVY_READ)) continue;
        const dv_acquisition *a = &c->lock->acquisition;
        for (const dv_ticket *t = a->tickets; t; t = t->next) {
            if (strcmp(dv_contender_path(t->place), path) == 0) return modes[c->mode];
        }
        if (a->acquire && !a->ticket) return modes[c->mode];
    }
    return "unknown";
}

static void record_asked(const sim_world *w, const sim_member *m, int64_t session, const part *p, const char *path) {
    static const char *const kinds[DV_KINDS] = {
        [DV_CREATE] = "ask-create", [DV_DELETE] = "ask-delete", [DV_GET] = "ask-watch", [DV_CHILDREN] = "ask-list"};
    begin_lock_record(w, session, p->place, kinds[p->kind]);
    if (p->kind != DV_CHILDREN) fprintf(steps, " name=%s", p->name);
    if (p->kind == DV_CREATE) fprintf(steps, " mode=%s", mode_of(m, p, path));
    fputc('\n', steps);
}

static const char *answer_word(int error) {
    if (!error) return "done";
    if (error == DIVVY_ENOENT) return "none";
    return dv_outcome_unknown(error) || dv_session_over(error) ? "lost" : "refused";
}

static void record_answer(const asked *a, const part *p, const dv_reply *reply) {
    static const char *const kinds[DV_KINDS] = {
        [DV_CREATE] = "create", [DV_DELETE] = "delete", [DV_GET] = "watch", [DV_CHILDREN] = "list"};
    begin_lock_record(a->world, a->session, p->place, kinds[p->kind]);
    fprintf(steps, " answer=%s", answer_word(reply->error));
    if (p->kind != DV_CHILDREN) fprintf(steps, " name=%s", p->name);
    if (p->kind == DV_CREATE && !reply->error) fprintf(steps, " made=%s", strrchr(reply->path, '/') + 1);
    if (p->kind == DV_CHILDREN && !reply->error) {
        fputs(" names=", steps);
        for (size_t i = 0; i < reply->child_count; i++) fprintf(steps, "%s%s", i ? "," : "", reply->children[i]);
    }
    fputc('\n', steps);
}

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
        fprintf(steps, " answer=%s\n", answered ? "done" : "lost");
    }
    for (size_t i = 0; i < count; i++) {
        if (a->parts[i].is_lock) record_answer(a, &a->parts[i], &replies[i]);
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
    a->count = count;
    bool any = false;
    for (size_t i = 0; i < count; i++) {
        a->parts[i] = part_of(m->world, &ops[i], watches);
        any = any || a->parts[i].is_lock;
    }
    a->is_barrier = count == 1 && ops->kind == DV_CHECK && strcmp(ops->path, "/") == 0;
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
    for (size_t i = 0; i < a->count; i++) {
        if (a->parts[i].is_lock) record_asked(m->world, m, a->session, &a->parts[i], ops[i].path);
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
    under = client->backend;
    client->backend.submit = submit;
    client->backend.multi = multi;
}

/* ---- commits ---- */

/* Returns whether the transaction ends the node's session, which its client may have closed. */
static bool is_of_an_end(const sim_world *w) {
    const dv_mem *mem = w->ensemble;
    const dv_mem_txn *txn = mem->history_count ? mem->history[mem->history_count - 1] : NULL;
    for (size_t i = 0; txn && i < txn->count; i++) {
        if (txn->steps[i].kind == DV_MEM_TXN_SESSION_END) return true;
    }
    return false;
}

static void record_lock_commit(const sim_world *w, const divvy_testing_transaction *t, size_t place, const char *name) {
    bool created = t->kind == DIVVY_TESTING_CREATE, own = t->session_id == t->ephemeral_owner;
    if (!created && t->kind != DIVVY_TESTING_DELETE) return;
    if (!*name) {
        if (created) return;
        begin_lock_record(w, t->session_id, place, "commit-end");
        fputc('\n', steps);
        return;
    }
    begin_lock_record(w, t->ephemeral_owner, place, created ? "commit-create" : "commit-delete");
    fprintf(steps, " name=%s", name);
    if (!created) fprintf(steps, " by=%s", is_of_an_end(w) ? "end" : own ? "owner" : "other");
    fputc('\n', steps);
}

void sim_steps_transaction(sim_world *w, const divvy_testing_transaction *t) {
    size_t place = 0;
    const char *name = NULL;
    if (!steps) return;
    sim_steps_beliefs(w);
    if (t->kind == DIVVY_TESTING_SESSION_END) {
        begin_record(w, t->session_id, "session-end");
        fputc('\n', steps);
    } else if (t->path && sim_claim_path_of(w, t->path, &place, &name) == SIM_LOCK_PATH) {
        record_lock_commit(w, t, place, name);
    }
}
