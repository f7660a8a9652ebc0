/* The servers' commits: a mirror of the tree, from the transactions in their order.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "znode/sequence.h"

static const char locks_path[] = "/pool/locks/item-", party_path[] = "/pool/party/", pool_path[] = "/pool/";

static void *grown(void *array, size_t count, size_t *room, size_t bytes) {
    if (count < *room) return array;
    *room = *room ? 2 * *room : 8;
    array = realloc(array, *room * bytes);
    if (!array) abort();
    return array;
}

size_t sim_item_of_path(const sim_world *w, const char *path, const char **node) {
    size_t prefix_bytes = sizeof locks_path - 1;
    if (strncmp(path, locks_path, prefix_bytes) != 0) return SIZE_MAX;
    char *end;
    unsigned long item = strtoul(path + prefix_bytes, &end, 10);
    if (item >= w->script->items || *end != '/') return SIZE_MAX;
    *node = end + 1;
    return item;
}

/* ---- sessions ---- */

sim_session *sim_truth_session(sim_truth *truth, int64_t id) {
    for (size_t i = truth->session_count; i-- > 0;) {
        if (truth->sessions[i].id == id) return &truth->sessions[i];
    }
    return NULL;
}

void sim_truth_kill(sim_truth *truth, int64_t session) {
    truth->killed = grown(truth->killed, truth->killed_count, &truth->killed_room, sizeof *truth->killed);
    truth->killed[truth->killed_count++] = session;
}

bool sim_truth_killed(const sim_truth *truth, int64_t session) {
    for (size_t i = truth->killed_count; i-- > 0;) {
        if (truth->killed[i] == session) return true;
    }
    return false;
}

static void count_ephemeral(sim_truth *truth, const divvy_testing_transaction *t, bool added) {
    sim_session *session = t->ephemeral_owner ? sim_truth_session(truth, t->ephemeral_owner) : NULL;
    if (!session) return;
    size_t bytes = strlen(t->path) + 4;
    bool pool = strncmp(t->path, pool_path, sizeof pool_path - 1) == 0;
    session->path_bytes = added ? session->path_bytes + bytes : session->path_bytes - bytes;
    if (pool) session->pool_nodes = added ? session->pool_nodes + 1 : session->pool_nodes - 1;
}

/* ---- queues ---- */

static void find_first(sim_queue *q, int64_t at_ms) {
    const sim_node *first = NULL;
    for (size_t i = 0; i < q->count; i++) {
        const sim_node *n = &q->nodes[i];
        if (n->contends && (!first || dv_sequence_compare(n->sequence, first->sequence) < 0)) first = n;
    }
    int64_t token = first ? first->czxid : 0;
    if (token == q->first) return;
    q->first = token;
    if (!first) return;
    q->owners = grown(q->owners, q->owner_count, &q->owner_room, sizeof *q->owners);
    q->owners[q->owner_count++] = (sim_owner){first->czxid, first->session, at_ms};
}

static sim_node make_node(const divvy_testing_transaction *t, const char *name) {
    sim_node node = {.session = t->ephemeral_owner, .czxid = t->czxid};
    strncpy(node.name, name, sizeof node.name - 1);
    node.contends = dv_sequence_parse(name, "__lock__", &node.sequence);
    return node;
}

static void take_out(sim_node *nodes, size_t *count, const char *name) {
    for (size_t i = 0; i < *count; i++) {
        if (strncmp(nodes[i].name, name, sizeof nodes[i].name - 1) != 0) continue;
        nodes[i] = nodes[--*count];
        return;
    }
}

static void apply_node(sim_world *w, const divvy_testing_transaction *t, bool created) {
    sim_truth *truth = &w->truth;
    const char *name = NULL;
    size_t item = sim_item_of_path(w, t->path, &name);
    count_ephemeral(truth, t, created);
    if (item != SIZE_MAX) {
        sim_queue *q = &truth->queues[item];
        if (created) {
            q->nodes = grown(q->nodes, q->count, &q->room, sizeof *q->nodes);
            q->nodes[q->count++] = make_node(t, name);
            if (q->count > 1) w->coverage->meetings[SIM_MET_WAITED_SECOND]++;
        } else {
            take_out(q->nodes, &q->count, name);
        }
        find_first(q, t->at_ms);
    } else if (strncmp(t->path, party_path, sizeof party_path - 1) == 0) {
        name = t->path + sizeof party_path - 1;
        if (created) {
            truth->party = grown(truth->party, truth->party_count, &truth->party_room, sizeof *truth->party);
            truth->party[truth->party_count++] = make_node(t, name);
        } else {
            take_out(truth->party, &truth->party_count, name);
        }
    }
}

void sim_truth_apply(sim_world *w, const divvy_testing_transaction *t) {
    sim_truth *truth = &w->truth;
    switch (t->kind) {
    case DIVVY_TESTING_CREATE: apply_node(w, t, true); break;
    case DIVVY_TESTING_DELETE: apply_node(w, t, false); break;
    case DIVVY_TESTING_SET: break;
    case DIVVY_TESTING_SESSION_CREATE:
        truth->sessions = grown(truth->sessions, truth->session_count, &truth->session_room, sizeof *truth->sessions);
        truth->sessions[truth->session_count++] =
            (sim_session){.id = t->session_id, .began_ms = t->at_ms, .begun_zxid = t->zxid};
        break;
    case DIVVY_TESTING_SESSION_END: {
        sim_session *session = sim_truth_session(truth, t->session_id);
        if (session) *session = truth->sessions[--truth->session_count];
        break;
    }
    }
}

const sim_node *sim_truth_node(const sim_truth *truth, size_t item, int64_t token, int64_t session) {
    const sim_queue *q = &truth->queues[item];
    for (size_t i = 0; i < q->count; i++) {
        if (q->nodes[i].czxid == token && q->nodes[i].session == session) return &q->nodes[i];
    }
    return NULL;
}

size_t sim_truth_turn(const sim_truth *truth, size_t item, int64_t token, int64_t session) {
    const sim_queue *q = &truth->queues[item];
    for (size_t i = q->owner_count; i-- > 0;) {
        if (q->owners[i].token == token && q->owners[i].session == session) return i + 1;
    }
    return 0;
}

void sim_truth_excuse(sim_truth *truth, size_t item, int64_t token) {
    truth->excuses = grown(truth->excuses, truth->excuse_count, &truth->excuse_room, sizeof *truth->excuses);
    truth->excuses[truth->excuse_count++] = (sim_excuse){item, token};
}

bool sim_truth_excused(const sim_truth *truth, size_t item, int64_t token) {
    for (size_t i = truth->excuse_count; i-- > 0;) {
        if (truth->excuses[i].item == item && truth->excuses[i].token == token) return true;
    }
    return false;
}

void sim_truth_free(sim_truth *truth) {
    for (size_t i = 0; i < SIM_ITEMS_MAX; i++) {
        free(truth->queues[i].nodes);
        free(truth->queues[i].owners);
    }
    free(truth->party);
    free(truth->sessions);
    free(truth->excuses);
    free(truth->killed);
    *truth = (sim_truth){.party_count = 0};
}
