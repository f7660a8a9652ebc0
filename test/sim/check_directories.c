/* L3 of persistent nodes: what a pool leaves is what docs/protocol.md lets it leave. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Items' directories are the nodes that could pile up. At rest, where a plan decides, P12 deletes what the pool's set
 * no longer has; the member that finishes last deletes them all (P12).
 *
 * Excused:
 *  - Pools with kazoo members, beside which nothing is deleted: kazoo remembers that such paths exist.
 *  - The last member beside strays in the party: it does not know that it is the last.
 *  - Directories of no items, while some items of the set have none: P12 goes by counts.
 *  - Chunks of older plans: the next writer collects what one that crashed has left (D30). */
#include <string.h>

#include "base/guid.h"
#include "plans.h"
#include "znode/path.h"

enum { SWEEP_MS = 61000, FINISH_MS = 60000 };

static bool begins(const char *path, const char *prefix) {
    return strncmp(path, prefix, strlen(prefix)) == 0;
}

/* As the epoch's child is named (D1). */
static bool is_guid(const char *name) {
    size_t bytes = 0;
    while (dv_is_alphanumeric(name[bytes])) bytes++;
    return bytes > 0 && bytes < DV_GUID_BYTES && name[bytes] == '\0';
}

/* Persistent nodes that the protocol knows below a pool's path. */
static bool is_known(const char *path) {
    static const char *const known[] = {"/pool/locks", "/pool/party", "/pool/notes", "/pool/loads", SIM_PLAN_PATH};
    uint64_t generation;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(path, known[i]) == 0) return true;
    }
    if (!begins(path, SIM_PLAN_PATH "/")) return false;
    const char *child = path + sizeof SIM_PLAN_PATH;
    return is_guid(child) || dv_plan_chunk_parse(child, &generation);
}

static size_t find_item(const sim_world *w, const char *path) {
    static const char locks[] = "/pool/locks/";
    for (size_t i = 0; begins(path, locks) && i < w->script->items; i++) {
        if (strcmp(path + sizeof locks - 1, w->items[i]) == 0) return i;
    }
    return SIZE_MAX;
}

static void note_directory(sim_world *w, sim_queue *q, bool created, int64_t zxid) {
    q->directory = created;
    if (created && q->deleted_zxid == zxid) w->coverage->plan_meetings[SIM_MET_RENEWED]++;
    if (!created) q->deleted_zxid = zxid;
}

void sim_directories_transaction(sim_world *w, const divvy_testing_transaction *t) {
    bool created = t->kind == DIVVY_TESTING_CREATE;
    if ((!created && t->kind != DIVVY_TESTING_DELETE) || t->ephemeral_owner) return;
    size_t item = find_item(w, t->path);
    if (item != SIZE_MAX) note_directory(w, &w->truth.queues[item], created, t->zxid);
    else if (created && begins(t->path, "/pool/") && !is_known(t->path) && !sim_is_admin(w, t->session_id))
        sim_violate(w, "L3", "%s would stay, and no rule makes it", t->path);
}

static bool is_empty(const sim_world *w, size_t item) {
    const sim_queue *q = &w->truth.queues[item];
    return q->directory && q->count == 0;
}

/* ---- P12 ---- */

static size_t find_left_over(const sim_world *w) {
    for (size_t i = 0; i < w->script->items; i++) {
        if (is_empty(w, i) && sim_plan_owner(w, i) == SIM_NOT_DEALT) return i;
    }
    return SIZE_MAX;
}

/* Else P12, which goes by counts, may find no more directories than items. */
static bool all_have_directories(const sim_world *w) {
    for (size_t i = 0; i < w->script->items; i++) {
        if (sim_plan_owner(w, i) != SIM_NOT_DEALT && !w->truth.queues[i].directory) return false;
    }
    return true;
}

static bool all_are_acquired(const sim_world *w) {
    for (size_t i = 0; i < w->script->slots; i++) {
        const sim_member *m = &w->members[i];
        if (m->phase == SIM_RUNS && m->partitioner && m->partitioner->state != DIVVY_ACQUIRED) return false;
    }
    return true;
}

/* Waits while there is something to sweep. The minute counts from when all was at rest under one plan. */
static void wait_for_sweep(sim_world *w) {
    const sim_plan_version *plan = sim_plan_now(w);
    int64_t mzxid = plan ? plan->mzxid : 0, since_ms = w->now_ms;
    bool met = false;
    while (!w->violation.set && sim_plan_in_force(w) && all_have_directories(w)) {
        size_t left = find_left_over(w);
        if (left == SIZE_MAX) {
            w->coverage->plan_meetings[SIM_MET_SWEPT] += met;
            return;
        }
        met = true;
        plan = sim_plan_now(w);
        if (!plan || !plan->plan) return;
        if (plan->mzxid != mzxid || !all_are_acquired(w)) since_ms = w->now_ms;
        mzxid = plan->mzxid;
        if (w->now_ms > since_ms + SWEEP_MS + w->timeout_max_ms)
            sim_violate(w, "L3", "%lld ms at rest, and the directory of %s is there, which is no item",
                        (long long)(w->now_ms - since_ms), w->items[left]);
        else sim_step(w, since_ms + SWEEP_MS + w->timeout_max_ms + 1);
    }
}

/* ---- P12 ---- */

static void check_tidy(sim_world *w) {
    for (size_t i = 0; i < w->script->items; i++) {
        if (is_empty(w, i))
            sim_violate(w, "L3", "the last member has finished, and the empty directory of %s is there", w->items[i]);
    }
    w->coverage->meetings[SIM_MET_TIDIED]++;
}

/* Finishes a member. Returns whether it was alone in its party, and has finished on a session that lives: only such a
 * one certainly tidies (P12). */
static bool finish_last(sim_member *m) {
    int64_t session = divvy_client_session_id(m->client);
    bool takes_part = m->partitioner->ready && divvy_partitioner_state(m->partitioner) != DIVVY_FAILURE;
    bool alone = takes_part && m->world->truth.party_count == 1;
    int error = sim_member_finish(m, FINISH_MS);
    bool same = divvy_client_state(m->client) == DIVVY_CONNECTED && divvy_client_session_id(m->client) == session;
    return alone && same && error == 0 && m->world->truth.party_count == 0;
}

/* One after the other, soon or while the others still take over. Strays in the party are members to the last one
 * (P12). */
static void finish_all(sim_world *w) {
    sim_random random = sim_random_of(w->script->seed, 12), *r = &random;
    bool last = false; /* one has finished, and left nobody behind */
    for (size_t i = 0; i < w->script->slots && !w->violation.set && !last; i++) {
        sim_member *m = &w->members[i];
        if (m->phase != SIM_RUNS || !m->partitioner) continue;
        last = finish_last(m);
        int64_t until_ms = w->now_ms + (sim_chance(r, 50) ? 0 : sim_between(r, 1, 3000));
        while (!last && w->now_ms < until_ms && !w->violation.set) sim_step(w, until_ms);
    }
    if (last && !w->violation.set) check_tidy(w);
}

void sim_check_remains(sim_world *w) {
    if ((w->script->theme != SIM_OF_POOLS && w->script->theme != SIM_OF_PLANS) || w->script->kazoo) return;
    wait_for_sweep(w);
    if (!w->violation.set) finish_all(w);
}
