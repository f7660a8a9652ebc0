/* The beliefs of kazoo members, held against the invariants. SPDX-License-Identifier: Apache-2.0
 *
 * They believe as kazoo's own code does (kazoo.c, kazoo_claims.c). A partitioner believes from ACQUIRED until its user
 * answers a RELEASE, a lock or a slot from the end of the acquire until the release. Both believe until a server tells
 * of the session's loss.
 *
 * S1, S2 and S7 hold for kazoo members as for members of ours, but for kazoo's known gap. kazoo has no clock, so it
 * believes on when the servers have ended its session and it has not been told. Excused is that alone, and only for
 * the kazoo member: it must be the stale party. The lines `excused` at the end of each run tell how often that was, and
 * for how long: as long as a process is stopped.
 *
 * What kazoo cannot stand is not done to its members:
 *  - Nobody deletes their nodes in the party and in queues, and their leases (is_of_kazoo() in admin.c). kazoo never
 *    looks again, so the item has no owner, or an exception ends its thread.
 *  - Nobody deletes empty directories beside them. Its Lock remembers that the path exists, and fails (#563).
 *  - No two have one identifier (member.c). They would wait for each other for ever.
 *  - A lost reply leaves no node behind: kazoo.c. */
#include <string.h>

#include "claims.h"
#include "znode/sequence.h"

static bool is_stale(sim_world *w, int64_t session) {
    return !sim_truth_session(&w->truth, session);
}

/* ---- S2 ---- */

static void count_shared(sim_member *kazoo) {
    sim_kazoo_belief *b = &kazoo->kazoo_belief;
    if (!b->shared && !sim_truth_killed(&kazoo->world->truth, b->session))
        kazoo->world->coverage->kazoo_gaps[SIM_GAP_SHARED]++;
    b->shared = true;
}

static void judge_item(sim_member *kazoo, const sim_member *other, size_t item) {
    sim_world *w = kazoo->world;
    if (is_stale(w, kazoo->kazoo_belief.session)) count_shared(kazoo);
    else if (other->kazoo && is_stale(w, other->kazoo_belief.session)) count_shared((sim_member *)(uintptr_t)other);
    else sim_violate(w, "S2", "%s (kazoo) and %s both work on %s", kazoo->name, other->name, w->items[item]);
}

void sim_kazoo_check_item(const sim_member *m, size_t item) {
    sim_world *w = m->world;
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *other = &w->members[i];
        if (other == m || other->phase == SIM_ABSENT || !other->kazoo) continue;
        if (sim_kazoo_at_work(other->kazoo) && sim_kazoo_node(other->kazoo, item)) judge_item(other, m, item);
    }
}

static bool exclude(const sim_claim *a, const sim_claim *b) {
    return !a->is_pool && !b->is_pool && a->place == b->place && (sim_claim_exclusive(a) || sim_claim_exclusive(b));
}

void sim_kazoo_check_claim(const sim_claim *c) {
    sim_world *w = c->m->world;
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *other = &w->members[i];
        const char *node;
        char text[80];
        if (other == c->m || other->phase == SIM_ABSENT || !other->kazoo_claim) continue;
        const sim_claim *held = sim_kazoo_claim_held(other->kazoo_claim, &node);
        if (!held || !exclude(held, c)) continue;
        if (is_stale(w, other->kazoo_belief.session)) count_shared(other);
        else if (c->m->kazoo_claim && is_stale(w, c->m->kazoo_belief.session)) count_shared(c->m);
        else
            sim_violate(w, "S2", "%s (kazoo) and %s both hold %s", other->name, c->m->name,
                        sim_claim_describe(held, text, sizeof text));
    }
}

/* ---- S1, when belief begins ---- */

static const sim_node *node_of(const sim_queue *q, const char *name, int64_t session) {
    for (size_t i = 0; i < q->count; i++) {
        if (strcmp(q->nodes[i].name, name) == 0 && q->nodes[i].session == session) return &q->nodes[i];
    }
    return NULL;
}

static void check_item_begun(sim_member *m, size_t item, const char *name) {
    sim_world *w = m->world;
    const sim_queue *q = &w->truth.queues[item];
    const sim_node *own = node_of(q, name, m->kazoo_belief.session);
    if (!is_stale(w, m->kazoo_belief.session) && (!own || q->first != own->czxid))
        sim_violate(w, "S1", "%s (kazoo) has acquired %s by %s, which %s", m->name, w->items[item], name,
                    own ? "is not the first" : "is not there");
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *other = &w->members[i];
        if (other != m && sim_believes(w, other, item)) judge_item(m, other, item);
    }
    sim_kazoo_check_item(m, item);
}

static const sim_claim_node *claim_node_of(sim_world *w, const sim_claim *held, const char *name, int64_t session) {
    const sim_claim_list *list = sim_claim_list_of(w, held->is_pool ? SIM_POOL_PATH : SIM_LOCK_PATH, held->place);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->nodes[i].name, name) == 0 && list->nodes[i].session == session) return &list->nodes[i];
    }
    return NULL;
}

static void check_claim_begun(sim_member *m, const sim_claim *held, const char *name) {
    sim_world *w = m->world;
    const sim_claim_node *own = claim_node_of(w, held, name, m->kazoo_belief.session);
    char text[80];
    if (!own && !is_stale(w, m->kazoo_belief.session))
        sim_violate(w, "S1", "%s (kazoo) holds %s by %s, which is not there", m->name,
                    sim_claim_describe(held, text, sizeof text), name);
    const sim_claim_list *list = sim_claim_list_of(w, SIM_LOCK_PATH, held->is_pool ? 0 : held->place);
    for (size_t i = 0; own && !held->is_pool && i < list->count; i++) {
        if (sim_claim_blocks(held, &list->nodes[i], own->sequence))
            sim_violate(w, "S1", "%s (kazoo) holds %s, and %s stands before it", m->name,
                        sim_claim_describe(held, text, sizeof text), list->nodes[i].name);
    }
    sim_kazoo_check_claim(held);
    sim_claims_check_beside(held);
}

/* ---- transactions: S1, S7 ---- */

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* By which the member works on what the path lies in; NULL: it does not. */
static const char *works_by(sim_world *w, sim_member *m, const char *path, size_t item) {
    size_t place = 0;
    const char *node = NULL, *rest;
    if (m->kazoo) return item != SIZE_MAX && sim_kazoo_at_work(m->kazoo) ? sim_kazoo_node(m->kazoo, item) : NULL;
    sim_claim_path kind = sim_claim_path_of(w, path, &place, &rest);
    const sim_claim *held = sim_kazoo_claim_held(m->kazoo_claim, &node);
    if (!held || kind != (held->is_pool ? SIM_POOL_PATH : SIM_LOCK_PATH) || place != held->place) return NULL;
    return node;
}

/* The first contender stays the first: nothing appears before it. */
static void check_created(sim_world *w, sim_member *m, const divvy_testing_transaction *t, size_t item,
                          const char *node) {
    int32_t sequence, own;
    const char *held_node;
    bool numbered = dv_sequence_parse(name_of(t->path), "__lock__", &sequence);
    if (!numbered || is_stale(w, m->kazoo_belief.session)) return;
    if (m->kazoo_claim && sim_kazoo_claim_held(m->kazoo_claim, &held_node)->is_pool) return;
    bool known = dv_sequence_parse(node, "__lock__", &own) || dv_sequence_parse(node, "__rlock__", &own);
    if (known && dv_sequence_compare(sequence, own) < 0)
        sim_violate(w, "S1", "%s stands before the place of %s (kazoo), who works on it%s", t->path, m->name,
                    item == SIZE_MAX ? ", a lock" : "");
}

void sim_kazoo_transaction(sim_world *w, const divvy_testing_transaction *t) {
    if (!t->path || (t->kind != DIVVY_TESTING_CREATE && t->kind != DIVVY_TESTING_DELETE)) return;
    const char *rest = NULL;
    size_t item = sim_item_of_path(w, t->path, &rest);
    for (size_t i = 0; i < w->script->slots; i++) {
        sim_member *m = &w->members[i];
        if (m->phase == SIM_ABSENT || !(m->kazoo || m->kazoo_claim) || !m->kazoo_belief.at_work) continue;
        const char *node = works_by(w, m, t->path, item);
        if (!node) continue;
        if (t->kind == DIVVY_TESTING_CREATE) check_created(w, m, t, item, node);
        else if (strcmp(name_of(t->path), node) == 0 && t->ephemeral_owner == m->kazoo_belief.session && !t->expired)
            sim_violate(w, t->session_id == t->ephemeral_owner ? "S7" : "S11",
                        "%s was deleted by session 0x%llx while %s (kazoo) works by it", t->path,
                        (unsigned long long)t->session_id, m->name);
    }
}

/* ---- steps ---- */

static void begin(sim_member *m, const sim_claim *held, const char *node) {
    m->kazoo_belief = (sim_kazoo_belief){.at_work = true, .session = divvy_client_session_id(m->client)};
    for (size_t i = 0; m->kazoo && i < m->world->script->items; i++) {
        const char *name = sim_kazoo_node(m->kazoo, i);
        if (name) check_item_begun(m, i, name);
    }
    if (held) check_claim_begun(m, held, node);
}

/* The gap begins: the servers have ended the session, and the member was not told. */
static void begin_gap(sim_member *m) {
    sim_world *w = m->world;
    sim_kazoo_gap gap = m->paused                        ? SIM_GAP_STOPPED
                        : dv_client_connected(m->client) ? SIM_GAP_CONNECTED
                                                         : SIM_GAP_SUSPENDED;
    m->kazoo_belief.stale_at = w->now_ms;
    if (sim_truth_killed(&w->truth, m->kazoo_belief.session)) return;
    w->coverage->kazoo_gaps[gap]++;
    sim_trace(w, "%s (kazoo) works on with a session that the servers have ended", m->name);
}

static void end_gap(sim_member *m) {
    sim_coverage *coverage = m->world->coverage;
    const sim_kazoo_belief *b = &m->kazoo_belief;
    int64_t gap_ms = b->stale_at ? m->world->now_ms - b->stale_at : 0;
    if (sim_truth_killed(&m->world->truth, b->session)) return;
    if (gap_ms > coverage->kazoo_gap_max_ms) coverage->kazoo_gap_max_ms = gap_ms;
}

/* kazoo has no clock: what the client under the model knows of a deadline is kept from ending its session. */
static void stop_clock(sim_member *m) {
    dv_client_lock(m->client);
    dv_timer_cancel(&m->client->deadline_timer);
    dv_client_unlock(m->client);
}

void sim_kazoo_check_step(sim_member *m) {
    const char *node = NULL;
    if (!m->kazoo && !m->kazoo_claim) return;
    stop_clock(m);
    const sim_claim *held = m->kazoo_claim ? sim_kazoo_claim_held(m->kazoo_claim, &node) : NULL;
    bool at_work = m->kazoo ? sim_kazoo_at_work(m->kazoo) : held != NULL;
    sim_kazoo_belief *b = &m->kazoo_belief;
    if (b->at_work && !at_work) end_gap(m);
    if (at_work && !b->at_work) begin(m, held, node);
    b->at_work = at_work;
    if (at_work && !b->stale_at && is_stale(m->world, b->session)) begin_gap(m);
}
