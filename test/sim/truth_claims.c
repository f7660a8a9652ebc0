/* The servers' commits on the paths of locks and semaphores, and the checks that they are allowed.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Held against each transaction: S1 (the node of a believed claim neither goes nor gets another before it), S9 (an
 * admission keeps within the limit at its zxid, takes numbers that are free, and is the head's; a lease by the shortcut
 * when it is believed in), L4 (the release of an exclusive lock wakes one waiter at most). */
#include "claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/lease.h"
#include "recipe/lock.h"
#include "recipe/semaphore.h"
#include "testing/ensemble.h"
#include "znode/sequence.h"

/* Items of the partitioner have smaller numbers. */
enum { EXCUSE_OF_CLAIM = 1 << 20 };

/* ---- paths ---- */

static const char *read_place(const char *at, size_t count, size_t *place) {
    if (*at < '0' || (size_t)(*at - '0') >= count) return NULL;
    *place = (size_t)(*at - '0');
    return at + 1;
}

/* *node is what follows the directory's name: "" for the directory itself. */
sim_claim_path sim_claim_path_of(const sim_world *w, const char *path, size_t *place, const char **node) {
    static const char lock[] = "/locks/l", pool[] = "/sem/p", queue[] = "-__lock__";
    sim_claim_path kind = SIM_NO_PATH;
    const char *at = NULL;
    if (strncmp(path, lock, sizeof lock - 1) == 0) {
        at = read_place(path + sizeof lock - 1, w->script->locks, place);
        kind = SIM_LOCK_PATH;
    } else if (strncmp(path, pool, sizeof pool - 1) == 0) {
        at = read_place(path + sizeof pool - 1, w->script->pools, place);
        kind = SIM_POOL_PATH;
        if (at && strncmp(at, queue, sizeof queue - 1) == 0) {
            at += sizeof queue - 1;
            kind = SIM_QUEUE_PATH;
        }
    }
    if (!at || (*at && *at != '/')) return SIM_NO_PATH;
    *node = *at ? at + 1 : at;
    return kind;
}

sim_claim_list *sim_claim_list_of(sim_world *w, sim_claim_path kind, size_t place) {
    switch (kind) {
    case SIM_LOCK_PATH: return &w->claims_truth->locks[place].queue;
    case SIM_POOL_PATH: return &w->claims_truth->pools[place].leases;
    case SIM_QUEUE_PATH: return &w->claims_truth->pools[place].queue;
    case SIM_NO_PATH: break;
    }
    return NULL;
}

/* ---- nodes ---- */

static sim_claim_node make_node(const divvy_testing_transaction *t, sim_claim_path kind, const char *name) {
    sim_claim_node node = {.session = t->ephemeral_owner, .czxid = t->czxid, .slots = {.count = 1}};
    snprintf(node.name, sizeof node.name, "%s", name);
    if (kind == SIM_POOL_PATH) {
        node.numbered = dv_slots_parse(name, &node.slots);
        if (!node.numbered) node.slots = (dv_slots){.count = 1};
        return node;
    }
    node.contends = dv_sequence_parse(name, "__lock__", &node.sequence);
    if (!node.contends) node.contends = node.reads = dv_sequence_parse(name, "__rlock__", &node.sequence);
    return node;
}

const sim_claim_node *sim_claim_node_of(const sim_claim_list *list, int64_t token, int64_t session) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->nodes[i].czxid == token && list->nodes[i].session == session) return &list->nodes[i];
    }
    return NULL;
}

const sim_claim_node *sim_claim_head(const sim_claim_list *list) {
    const sim_claim_node *head = NULL;
    for (size_t i = 0; i < list->count; i++) {
        const sim_claim_node *n = &list->nodes[i];
        if (n->contends && (!head || dv_sequence_compare(n->sequence, head->sequence) < 0)) head = n;
    }
    return head;
}

bool sim_claim_blocks(const sim_claim *c, const sim_claim_node *node, int32_t sequence) {
    bool matters = node->contends && (c->mode == DIVVY_WRITE || !node->reads);
    return matters && dv_sequence_compare(node->sequence, sequence) < 0;
}

static void add_node(sim_claim_list *list, sim_claim_node node) {
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 16;
        list->nodes = realloc(list->nodes, list->room * sizeof *list->nodes);
        if (!list->nodes) abort();
    }
    list->nodes[list->count++] = node;
}

/* Returns whether it was a lease that nobody ever believed in. */
static bool take_out(sim_claim_list *list, const char *name) {
    for (size_t i = 0; i < list->count; i++) {
        if (strncmp(list->nodes[i].name, name, sizeof list->nodes[i].name - 1) != 0) continue;
        bool tried = list->nodes[i].tried;
        list->nodes[i] = list->nodes[--list->count];
        return tried;
    }
    return false;
}

void sim_claims_truth_new(sim_world *w) {
    w->claims_truth = calloc(1, sizeof *w->claims_truth);
    if (!w->claims_truth) abort();
}

void sim_claims_truth_free(sim_world *w) {
    for (size_t i = 0; i < SIM_LOCKS_MAX; i++) free(w->claims_truth->locks[i].queue.nodes);
    for (size_t i = 0; i < SIM_POOLS_MAX; i++) {
        free(w->claims_truth->pools[i].leases.nodes);
        free(w->claims_truth->pools[i].queue.nodes);
    }
    free(w->claims_truth);
}

/* ---- belief ---- */

bool sim_claim_excused(const sim_claim *c, int64_t token) {
    return sim_truth_excused(&c->m->world->truth, EXCUSE_OF_CLAIM, token);
}

bool sim_claim_believed(const sim_claim *c, int64_t *token) {
    const sim_member *m = c->m;
    if (m->phase == SIM_ABSENT || !sim_member_alive(m)) return false;
    int64_t session = divvy_client_session_id(m->client);
    if (sim_truth_killed(&m->world->truth, session)) return false;
    *token = sim_claim_library_token(c);
    if (*token && !sim_claim_excused(c, *token)) return true;
    *token = c->work_token;
    return c->works && c->work_session == session && !sim_claim_excused(c, c->work_token);
}

static bool is_of(const sim_claim *c, sim_claim_path kind, size_t place) {
    return c->place == place && c->is_pool == (kind == SIM_POOL_PATH) && kind != SIM_QUEUE_PATH;
}

/* ---- S1 ---- */

static void check_deleted(sim_world *w, const divvy_testing_transaction *t, sim_claim_path kind, size_t place) {
    bool own = !t->expired && t->session_id == t->ephemeral_owner;
    if (!own && !t->expired) {
        sim_truth_excuse(&w->truth, EXCUSE_OF_CLAIM, t->czxid);
        return;
    }
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        for (size_t k = 0; m->phase != SIM_ABSENT && k < m->claim_count; k++) {
            int64_t token;
            char text[80];
            const sim_claim *c = &m->claims[k];
            if (!is_of(c, kind, place) || divvy_client_session_id(m->client) != t->ephemeral_owner) continue;
            if (!sim_claim_believed(c, &token) || token != t->czxid) continue;
            sim_violate(w, "S1", "%s was deleted (%s) while %s holds %s and has %lld ms left", t->path,
                        own ? "by its owner" : "its session expired", m->name, sim_claim_describe(c, text, sizeof text),
                        (long long)(atomic_load(&m->client->alive_until) - dv_client_now(m->client)));
        }
    }
}

static void check_created_in_queue(sim_world *w, const sim_claim_node *node, size_t place) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        for (size_t k = 0; m->phase != SIM_ABSENT && k < m->claim_count; k++) {
            int64_t token;
            const sim_claim *c = &m->claims[k];
            if (!is_of(c, SIM_LOCK_PATH, place) || !sim_claim_believed(c, &token)) continue;
            const sim_claim_node *own =
                sim_claim_node_of(&w->claims_truth->locks[place].queue, token, divvy_client_session_id(m->client));
            if (own && sim_claim_blocks(c, node, own->sequence))
                sim_violate(w, "S1", "%s stands before the place of %s, who holds the lock", node->name, m->name);
        }
    }
}

/* ---- S9 ---- */

static bool run_overlaps(const dv_slot_run *run, const dv_slots *slots) {
    for (size_t i = 0; i < slots->run_count; i++) {
        const dv_slot_run *other = &slots->runs[i];
        if (run->first < other->first + other->count && other->first < run->first + run->count) return true;
    }
    return false;
}

static void check_numbers(sim_world *w, const sim_pool_truth *pool, const sim_claim_node *lease, uint32_t limit) {
    for (size_t r = 0; r < lease->slots.run_count; r++) {
        const dv_slot_run *run = &lease->slots.runs[r];
        if (run->first + run->count > limit)
            sim_violate(w, "S9", "%s takes slots up to %u, and the limit is %u", lease->name,
                        run->first + run->count - 1, limit);
        for (size_t i = 0; i < pool->leases.count; i++) {
            const sim_claim_node *other = &pool->leases.nodes[i];
            if (other != lease && other->numbered && !other->tried && run_overlaps(run, &other->slots))
                sim_violate(w, "S9", "%s and %s have a slot in common", lease->name, other->name);
        }
    }
}

/* Counts those that are held, or will be for certain. */
static uint64_t count_taken(const sim_pool_truth *pool) {
    uint64_t taken = 0;
    for (size_t i = 0; i < pool->leases.count; i++)
        taken += pool->leases.nodes[i].tried ? 0 : pool->leases.nodes[i].slots.count;
    return taken;
}

static void check_admitted(sim_world *w, const sim_claim_node *lease, sim_pool_truth *pool) {
    if (lease->czxid == pool->limit_zxid && pool->limit != pool->limit_before)
        sim_violate(w, "S9", "with %s the limit went from %u to %u", lease->name, pool->limit_before, pool->limit);
    uint64_t taken = lease->slots.count + count_taken(pool);
    if (!pool->limited) sim_violate(w, "S9", "%s was admitted to a pool without a limit", lease->name);
    if (taken > pool->limit)
        sim_violate(w, "S9", "with %s %llu slots are taken, and the limit is %u", lease->name,
                    (unsigned long long)taken, pool->limit);
    const sim_claim_node *head = sim_claim_head(&pool->queue);
    if (!head || head->session != lease->session)
        sim_violate(w, "S9", "%s was admitted, and is not the head of the queue, which %s is", lease->name,
                    head ? head->name : "nobody");
    if (lease->numbered) check_numbers(w, pool, lease, pool->limit);
    w->coverage->claim_meetings[SIM_MET_SCATTERED] += lease->numbered && lease->slots.run_count > 1;
    w->coverage->claim_meetings[SIM_MET_KAZOO_LEASE] += !lease->numbered;
}

/* No other transaction makes a lease of ours than that of E6, which sets the pool as well, but for the shortcut's. */
static void admit(sim_world *w, sim_claim_node *lease, sim_pool_truth *pool) {
    lease->tried = lease->numbered && lease->czxid != pool->limit_zxid;
    lease->limit = pool->limit;
    if (!lease->tried) check_admitted(w, lease, pool);
}

/* E14. The limit may have changed since the client's list. */
void sim_claim_counts(const sim_claim *c, const sim_claim_node *lease) {
    sim_world *w = c->m->world;
    sim_pool_truth *pool = &w->claims_truth->pools[c->place];
    pool->leases.nodes[lease - pool->leases.nodes].tried = false;
    uint64_t taken = count_taken(pool);
    if (taken > lease->limit)
        sim_violate(w, "S9", "%s holds by %s, %llu slots are taken, and the limit was %u", c->m->name, lease->name,
                    (unsigned long long)taken, lease->limit);
    check_numbers(w, pool, lease, lease->limit);
    for (size_t i = 0; i < pool->queue.count; i++) {
        const sim_claim_node *place = &pool->queue.nodes[i];
        if (place->contends && place->czxid < lease->czxid)
            sim_violate(w, "S9", "%s holds by %s, which has overtaken %s", c->m->name, lease->name, place->name);
    }
    w->coverage->claim_meetings[SIM_MET_SHORTCUT]++;
}

/* Returns the data written just now: the ensemble's own log has them. */
static const dv_mem_blob *data_of(const sim_world *w, const divvy_testing_transaction *t) {
    const dv_mem *mem = w->ensemble;
    const dv_mem_txn *txn = mem->history_count ? mem->history[mem->history_count - 1] : NULL;
    for (size_t i = 0; txn && i < txn->count; i++) {
        if (txn->steps[i].path && strcmp(txn->steps[i].path->text, t->path) == 0) return txn->steps[i].data;
    }
    return NULL;
}

static void note_limit(sim_world *w, const divvy_testing_transaction *t, sim_pool_truth *pool) {
    const dv_mem_blob *data = data_of(w, t);
    uint32_t limit = 0, before = pool->limited ? pool->limit : 0;
    uint64_t taken = 0;
    pool->limit_zxid = t->zxid;
    pool->limit_before = before;
    pool->limited = data && dv_limit_parse(data->data, data->bytes, &limit) == DV_LIMIT_SET;
    pool->limit = pool->limited ? limit : 0;
    for (size_t i = 0; i < pool->leases.count; i++) {
        sim_claim_node *lease = &pool->leases.nodes[i];
        taken += lease->slots.count;
        if (lease->limit < limit) lease->limit = limit;
    }
    w->coverage->claim_meetings[SIM_MET_RAISED] += before && limit > before;
    w->coverage->claim_meetings[SIM_MET_LOWERED] += limit && limit < before;
    w->coverage->claim_meetings[SIM_MET_OVERFULL] += limit && taken > limit;
}

/* ---- L4 ---- */

static const dv_contender *contender_of(const sim_member *m, const sim_claim *c, int64_t czxid) {
    for (const dv_ticket *t = c->lock ? c->lock->acquisition.tickets : NULL; t; t = t->next) {
        if (m->phase != SIM_ABSENT && dv_contender_token(t->place) == czxid) return t->place;
    }
    return NULL;
}

static size_t count_waiters(const sim_world *w, size_t place, const dv_contender *gone) {
    size_t waiters = 0;
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        for (size_t k = 0; m->phase != SIM_ABSENT && k < m->claim_count; k++) {
            const sim_claim *c = &m->claims[k];
            if (!is_of(c, SIM_LOCK_PATH, place) || !c->lock) continue;
            const dv_acquisition *a = &c->lock->acquisition;
            if (!a->acquire || !a->ticket) continue;
            const dv_contender *contender = a->ticket->place;
            bool there = sim_claim_node_of(&w->claims_truth->locks[place].queue, dv_contender_token(contender),
                                           divvy_client_session_id(m->client));
            waiters += contender != gone && there && dv_contender_waits_for(contender, gone);
        }
    }
    return waiters;
}

/* Readers wait for a writer together, so only locks that nobody shares are looked at. */
static void check_wakes(sim_world *w, const divvy_testing_transaction *t, size_t place) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        for (size_t k = 0; k < m->claim_count; k++) {
            const sim_claim *c = &m->claims[k];
            if (c->is_pool || c->place != place || c->mode != DIVVY_EXCLUSIVE) continue;
            const dv_contender *gone = contender_of(m, c, t->czxid);
            size_t waiters = gone ? count_waiters(w, place, gone) : 0;
            if (waiters > 1)
                sim_violate(w, "L4", "%zu waiters are woken as %s goes, and only the next one should be", waiters,
                            t->path);
        }
    }
}

/* ---- transactions ---- */

static void note_head(sim_world *w, const divvy_testing_transaction *t, size_t place) {
    sim_lock_truth *lock = &w->claims_truth->locks[place];
    const sim_claim_node *head = sim_claim_head(&lock->queue);
    int64_t czxid = head ? head->czxid : 0;
    if (czxid == lock->head_czxid) return;
    lock->head_since = t->zxid;
    lock->head_at_ms = w->now_ms;
    lock->head_czxid = czxid;
}

static void note_created(sim_world *w, const divvy_testing_transaction *t, sim_claim_path kind, size_t place,
                         const char *name) {
    sim_claim_node node = make_node(t, kind, name);
    if (kind == SIM_LOCK_PATH) check_created_in_queue(w, &node, place);
    if (kind == SIM_POOL_PATH) admit(w, &node, &w->claims_truth->pools[place]);
    add_node(sim_claim_list_of(w, kind, place), node);
}

static void note_deleted(sim_world *w, const divvy_testing_transaction *t, sim_claim_path kind, size_t place,
                         const char *name) {
    check_deleted(w, t, kind, place);
    if (kind == SIM_LOCK_PATH && t->session_id == t->ephemeral_owner) check_wakes(w, t, place);
    if (take_out(sim_claim_list_of(w, kind, place), name)) w->coverage->claim_meetings[SIM_MET_SHORTCUT_MISSED]++;
}

static void note_directory(sim_world *w, const divvy_testing_transaction *t, sim_claim_path kind, size_t place) {
    if (t->kind == DIVVY_TESTING_DELETE) {
        w->coverage->claim_meetings[SIM_MET_DIRECTORY_GONE]++;
        sim_claim_list_of(w, kind, place)->wrapped = false;
    }
    if (kind != SIM_POOL_PATH) return;
    sim_pool_truth *pool = &w->claims_truth->pools[place];
    if (t->kind == DIVVY_TESTING_DELETE) pool->limited = false;
    else note_limit(w, t, pool);
}

void sim_claims_transaction(sim_world *w, const divvy_testing_transaction *t) {
    size_t place = 0;
    const char *name = NULL;
    sim_claim_path kind = t->path ? sim_claim_path_of(w, t->path, &place, &name) : SIM_NO_PATH;
    if (kind == SIM_NO_PATH) return;
    if (!*name) note_directory(w, t, kind, place);
    else if (t->kind == DIVVY_TESTING_CREATE) note_created(w, t, kind, place, name);
    else if (t->kind == DIVVY_TESTING_DELETE) note_deleted(w, t, kind, place, name);
    if (kind == SIM_LOCK_PATH) note_head(w, t, place);
}

/* Sets a number close to where numbers end, or to where the library takes no more of them. */
void sim_sequence_end(sim_world *w, const sim_event *e) {
    char path[64];
    bool of_pool = w->script->pools > 0 && e->a % 3 == 0;
    size_t place = of_pool ? e->b % w->script->pools : e->b % w->script->locks;
    sim_claim_list *list = sim_claim_list_of(w, of_pool ? SIM_QUEUE_PATH : SIM_LOCK_PATH, place);
    if (!w->script->sequence_ends || list->wrapped) return;
    if (of_pool) snprintf(path, sizeof path, "/sem/p%zu-__lock__", place);
    else snprintf(path, sizeof path, "/locks/l%zu", place);
    int32_t left = (e->c % 2 ? 1 << 20 : 0) + (int32_t)(e->d % 4);
    if (divvy_testing_set_sequence(w->ensemble, path, INT32_MAX - left) != 0) return;
    sim_trace(w, "the sequence numbers of %s go on from %d", path, INT32_MAX - left);
    list->wrapped = true;
}
