/* The leader: orders transactions, and commits what a quorum has logged. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

/* ---- proposing and committing ---- */

static void commit_what_can_be(dv_mem_server *leader) {
    dv_mem *mem = leader->mem;
    int64_t logged[DV_MEM_SERVERS_MAX];
    int count = 0;
    logged[count++] = leader->logged;
    for (int i = 0; i < mem->server_count; i++) {
        if (!leader->links[i] || !leader->links[i]->synced) continue;
        int64_t index = leader->links[i]->acked;
        int at = count++;
        for (; at > 0 && logged[at - 1] < index; at--) logged[at] = logged[at - 1];
        logged[at] = index;
    }
    int quorum = (int)dv_mem_quorum(mem);
    if (!leader->serving || count < quorum || logged[quorum - 1] <= leader->applied) return;
    int64_t index = logged[quorum - 1];
    for (int i = 0; i < mem->server_count; i++)
        if (leader->links[i]) dv_mem_link_tell(leader->links[i], 1, DV_MEM_COMMIT, index);
    dv_mem_apply_up_to(leader, index);
}

void dv_mem_propose(dv_mem_server *leader, dv_mem_txn *txn) {
    assert(leader->serving);
    txn->index = leader->logged + 1;
    txn->zxid = leader->epoch << 32 | ++leader->counter;
    txn->time_ms = dv_mem_wall_clock_ms(leader);
    dv_mem_log_append(leader, txn);
    for (int i = 0; i < leader->mem->server_count; i++) {
        if (!leader->links[i]) continue;
        dv_mem_event *proposal = dv_mem_link_message(leader->links[i], 1, DV_MEM_PROPOSAL);
        proposal->txn = txn;
        txn->refs++;
        dv_mem_link_send(proposal);
    }
    dv_mem_txn_unref(leader->mem, txn);
    commit_what_can_be(leader);
}

/* ---- requests ---- */

static void refuse(dv_mem_server *leader, dv_mem_request *request, int error) {
    dv_mem_txn *txn = dv_mem_txn_new(request->session, request);
    txn->error = error;
    for (size_t i = 0; request->is_multi && i < request->count; i++)
        dv_mem_txn_add(txn, DV_MEM_TXN_CHECK, NULL)->error = error;
    dv_mem_propose(leader, txn);
}

static void order(dv_mem_server *leader, dv_mem_request *request) {
    request->ordered = true;
    dv_mem_propose(leader, dv_mem_prepare(leader, request));
}

static void let_through(dv_mem_server *leader, dv_mem_request **place) {
    dv_mem_request *request = *place;
    *place = request->held;
    request->held = NULL;
    if (dv_mem_track_lives(leader, request->session)) {
        DV_MEM_TRACE(leader->mem, "server %d: a late write of session 0x%llx gets its place", leader->id,
                     (unsigned long long)request->session->id);
        if (request->moves) request->session->seats[leader->id].owner = request->conn->server->id;
        order(leader, request);
    }
    dv_mem_request_unref(leader->mem, request);
}

static bool on_held(dv_mem *mem, dv_mem_event *event) {
    dv_mem_server *leader = event->server;
    for (dv_mem_request **place = &leader->held; *place;) {
        if ((*place)->release_at <= mem->now) let_through(leader, place);
        else place = &(*place)->held;
    }
    return true;
}

static void hold(dv_mem_server *leader, dv_mem_request *request) {
    dv_mem_request **end = &leader->held;
    while (*end) end = &(*end)->held;
    *end = dv_mem_request_ref(request);
    request->held = NULL;
    request->release_at = leader->mem->now + request->hold_ms;
    dv_mem_server_timer(leader->mem, leader, request->release_at, on_held);
}

/* Orders the writes that the session sent on an earlier connection before those of a later one, or never. Those that
 * come behind (ZOOKEEPER-710) wait, but not for writes by the same server: these stand in one line. */
static void let_through_session(dv_mem_server *leader, const dv_mem_session *session, const dv_mem_server *by) {
    for (dv_mem_request **place = &leader->held; *place;) {
        bool comes_behind = (*place)->moves && (*place)->conn->server != leader && (*place)->conn->server != by;
        if ((*place)->session == session && !comes_behind) let_through(leader, place);
        else place = &(*place)->held;
    }
}

static void order_operations(dv_mem_server *leader, dv_mem_request *request) {
    dv_mem_seat *seat = &request->session->seats[leader->id];
    if (!dv_mem_track_lives(leader, request->session)) {
        refuse(leader, request, DIVVY_ELOST);
    } else if (seat->owner != -1 && seat->owner != request->conn->server->id) {
        refuse(leader, request, DIVVY_ECONNECTION); /* "session moved": another server has brought it since */
    } else if (request->hold_ms > 0) {
        hold(leader, request);
    } else {
        if (leader->held) let_through_session(leader, request->session, request->conn->server);
        seat->owner = request->conn->server->id;
        order(leader, request);
    }
}

void dv_mem_leader_request(dv_mem_server *leader, dv_mem_request *request) {
    if (request->dropped || !leader->serving) return;
    dv_mem_session *session = request->session;
    switch (request->kind) {
    case DV_MEM_CREATE_SESSION:
        dv_mem_track(leader, session);
        session->seats[leader->id].owner = request->conn->server->id;
        order(leader, request);
        break;
    case DV_MEM_CLOSE_SESSION:
        if (!dv_mem_track_lives(leader, session)) break;
        if (leader->held) let_through_session(leader, session, request->conn->server);
        dv_mem_propose(leader, dv_mem_prepare_close(leader, session, request));
        break;
    default: order_operations(leader, request);
    }
}

int dv_mem_administer(dv_mem_server *leader, dv_mem_op op) {
    dv_mem_request *request = dv_mem_request_new(DV_MEM_OPERATIONS, NULL, 1);
    request->ops[0] = op;
    request->administrator = true;
    dv_mem_txn *txn = dv_mem_prepare(leader, request);
    int error = txn->error;
    dv_mem_propose(leader, txn);
    dv_mem_request_unref(leader->mem, request);
    return error;
}

/* ---- leading ---- */

/* Counted in ticks, as ZooKeeper does it: a leader that was stopped does not notice how long. */
static unsigned synced_count(const dv_mem_server *leader) {
    unsigned count = 1;
    for (int i = 0; i < leader->mem->server_count; i++) {
        const dv_mem_link *link = leader->links[i];
        if (link && link->synced && leader->half_ticks / 2 <= link->heard_tick + leader->mem->config.sync_limit_ticks)
            count++;
    }
    return count;
}

/* With a quorum that has its log, all of that is committed, and every session's timeout starts again. */
static void begin_to_serve(dv_mem_server *leader) {
    dv_mem *mem = leader->mem;
    if (leader->serving || synced_count(leader) < dv_mem_quorum(mem)) return;
    leader->serving = true;
    dv_mem_apply_up_to(leader, leader->logged);
    for (size_t i = 0; i < mem->session_count; i++)
        if (mem->sessions[i]->seats[leader->id].exists) dv_mem_track(leader, mem->sessions[i]);
    for (int i = 0; i < mem->server_count; i++)
        if (leader->links[i] && leader->links[i]->synced)
            dv_mem_link_tell(leader->links[i], 1, DV_MEM_UP_TO_DATE, leader->applied);
    DV_MEM_TRACE(mem, "server %d: leads, epoch %lld", leader->id, (long long)leader->epoch);
}

static void purge_containers(dv_mem_server *leader) {
    dv_mem *mem = leader->mem;
    for (size_t i = 0; leader->serving && i < mem->container_count; i++) {
        dv_mem_path *path = mem->containers[i];
        const dv_mem_node *node = path->places[leader->id].node;
        if (!node || !node->container || node->child_count > 0 || node->cversion == 0) continue;
        dv_mem_administer(leader, (dv_mem_op){.kind = DV_DELETE, .version = -1, .path = dv_mem_path_ref(path)});
    }
}

static bool on_half_tick(dv_mem *mem, dv_mem_event *event) {
    enum { CONTAINERS_EVERY_MS = 60000 };
    dv_mem_server *leader = event->server;
    int64_t half_ms = mem->config.tick_ms / 2, limit_ms = mem->config.sync_limit_ticks * mem->config.tick_ms;
    bool is_tick = ++leader->half_ticks % 2 == 0;
    bool begins = !leader->serving && mem->now - leader->since <= 2 * limit_ms;
    if (is_tick && !begins && synced_count(leader) < dv_mem_quorum(mem)) {
        DV_MEM_TRACE(mem, "server %d: has lost its quorum", leader->id);
        dv_mem_look(leader);
        return true;
    }
    for (int i = 0; i < mem->server_count; i++) {
        dv_mem_link *link = leader->links[i];
        if (!link) continue;
        if (mem->now - link->heard_at[1] > limit_ms) dv_mem_link_close(link, 1);
        else dv_mem_link_tell(link, 1, DV_MEM_PEER_PING, 0);
    }
    int64_t halves = CONTAINERS_EVERY_MS / half_ms;
    if (mem->container_count && leader->half_ticks % (unsigned)(halves > 0 ? halves : 1) == 0) purge_containers(leader);
    dv_mem_server_timer(mem, leader, mem->now + half_ms, on_half_tick);
    return true;
}

void dv_mem_lead(dv_mem_server *leader, int64_t epoch) {
    leader->term++;
    leader->role = DV_MEM_LEADING;
    leader->epoch = leader->accepted = epoch;
    leader->counter = 0;
    leader->half_ticks = 0;
    leader->since = leader->mem->now;
    DV_MEM_TRACE(leader->mem, "server %d: elected, epoch %lld", leader->id, (long long)epoch);
    dv_mem_server_timer(leader->mem, leader, leader->mem->now + leader->mem->config.tick_ms / 2, on_half_tick);
    begin_to_serve(leader);
}

void dv_mem_unlead(dv_mem_server *server) {
    dv_mem *mem = server->mem;
    dv_mem_changes_applied(server, INT64_MAX);
    while (server->held) {
        dv_mem_request *request = server->held;
        server->held = request->held;
        dv_mem_request_unref(mem, request);
    }
    for (size_t i = 0; i < mem->session_count; i++) {
        dv_mem_seat *seat = &mem->sessions[i]->seats[server->id];
        seat->tracked = seat->closing = false;
    }
}

/* ---- what followers say ---- */

static dv_mem_txn *logged_at(const dv_mem_server *leader, int64_t index) {
    const dv_mem *mem = leader->mem;
    if (index <= leader->applied) return mem->history[index - mem->history_first];
    return leader->tail[index - leader->applied - 1];
}

static void take_follower(dv_mem_server *leader, dv_mem_link *link, int64_t applied) {
    /* History that no server needs is forgotten. A follower that has told of less than it has now asks again. */
    bool forgotten = applied + 1 < leader->mem->history_first;
    if (leader->role != DV_MEM_LEADING || link->epoch != leader->epoch || forgotten) {
        dv_mem_link_close(link, 1);
        return;
    }
    dv_mem_link **place = &leader->links[link->follower->id];
    if (*place) dv_mem_link_close(*place, 1);
    *place = dv_mem_link_ref(link);
    dv_mem_event *sync = dv_mem_link_message(link, 1, DV_MEM_SYNC);
    size_t count = leader->logged > applied ? (size_t)(leader->logged - applied) : 0;
    if (count) sync->list = dv_mem_alloc(count * sizeof(void *));
    for (; sync->count < count; sync->count++) {
        dv_mem_txn *txn = logged_at(leader, applied + 1 + (int64_t)sync->count);
        txn->refs++;
        sync->list[sync->count] = txn;
    }
    dv_mem_link_send(sync);
}

static void take_ack(dv_mem_server *leader, dv_mem_link *link, int64_t index) {
    bool first = !link->synced;
    link->synced = true;
    link->acked = index;
    if (first && leader->serving) dv_mem_link_tell(link, 1, DV_MEM_UP_TO_DATE, leader->applied);
    begin_to_serve(leader);
    commit_what_can_be(leader);
}

static void validate(dv_mem_server *leader, const dv_mem_event *message) {
    dv_mem_session *session = message->session;
    bool lives = dv_mem_track_lives(leader, session);
    if (lives) {
        dv_mem_track_touch(leader, session);
        session->seats[leader->id].owner = message->link->follower->id;
    }
    dv_mem_event *answer = dv_mem_link_message(message->link, 1, DV_MEM_VALIDATED);
    answer->conn = dv_mem_conn_ref(message->conn);
    answer->index = lives;
    dv_mem_link_send(answer);
}

void dv_mem_leader_hear(dv_mem_server *leader, dv_mem_event *message) {
    dv_mem_link *link = message->link;
    switch (message->kind) {
    case DV_MEM_JOIN: take_follower(leader, link, message->index); break;
    case DV_MEM_ACK: take_ack(leader, link, message->index); break;
    case DV_MEM_TOUCHES:
        for (size_t i = 0; i < message->count; i++) dv_mem_track_touch(leader, message->list[i]);
        break;
    case DV_MEM_FORWARD: dv_mem_leader_request(leader, message->request); break;
    case DV_MEM_REVALIDATE: validate(leader, message); break;
    case DV_MEM_PEER_CLOSE: dv_mem_link_close(link, 1); break;
    default: assert(false); /* A leader was told what only followers are. */
    }
}

dv_mem_server *dv_mem_leader_now(const dv_mem *mem) {
    const dv_mem_server *best = NULL;
    for (int i = 0; i < mem->server_count; i++) {
        const dv_mem_server *leader = &mem->servers[i];
        if (leader->role != DV_MEM_LEADING || !leader->serving) continue;
        unsigned with_it = 1;
        for (int f = 0; f < mem->server_count; f++) {
            const dv_mem_link *link = mem->servers[f].link;
            if (link && link->leader == leader && link->synced && leader->links[f] == link) with_it++;
        }
        if (with_it >= dv_mem_quorum(mem) && (!best || leader->epoch > best->epoch)) best = leader;
    }
    return best ? (dv_mem_server *)(uintptr_t)best : NULL;
}
