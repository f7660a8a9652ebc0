/* A server: its log, its life, and what it does without a leader. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

unsigned dv_mem_quorum(const dv_mem *mem) {
    return (unsigned)mem->server_count / 2 + 1;
}

/* ---- the log ---- */

void dv_mem_log_append(dv_mem_server *server, dv_mem_txn *txn) {
    assert(txn->index == server->logged + 1);
    server->tail = dv_mem_grow(server->tail, server->tail_count, &server->tail_room, sizeof(dv_mem_txn *));
    server->tail[server->tail_count++] = txn;
    txn->refs++;
    server->logged = txn->index;
    server->logged_zxid = txn->zxid;
}

void dv_mem_log_truncate(dv_mem_server *server) {
    while (server->tail_count > 0) dv_mem_txn_unref(server->mem, server->tail[--server->tail_count]);
    server->logged = server->applied;
    server->logged_zxid = server->applied_zxid;
}

/* ---- applying ---- */

static void tell(dv_mem *mem, const dv_mem_txn *txn) {
    for (size_t i = 0; txn->error == 0 && i < txn->count; i++) {
        const dv_mem_step *step = &txn->steps[i];
        if (step->kind == DV_MEM_TXN_CHECK) continue;
        divvy_testing_transaction told = {
            .zxid = txn->zxid,
            .at_ms = mem->now,
            .kind = (divvy_testing_transaction_kind)step->kind,
            .path = step->path ? step->path->text : NULL,
            .session_id = txn->session ? txn->session->id : 0,
            .ephemeral_owner = step->owner ? step->owner->id : 0,
            .czxid = step->path ? step->czxid : 0,
            .expired = txn->expired,
        };
        mem->config.on_transaction(&told, mem->config.user);
    }
}

/* For servers that may have to catch up; what all have is let go from time to time. */
static void keep_history(dv_mem *mem, dv_mem_txn *txn) {
    enum { BETWEEN = 1024 };
    if (mem->history_count >= BETWEEN && mem->history_count == mem->history_room) {
        int64_t needed = txn->index;
        for (int i = 0; i < mem->server_count; i++)
            if (mem->servers[i].applied + 1 < needed) needed = mem->servers[i].applied + 1;
        size_t gone = (size_t)(needed - mem->history_first);
        if (gone > mem->history_count) gone = mem->history_count;
        for (size_t i = 0; i < gone; i++) dv_mem_txn_unref(mem, mem->history[i]);
        mem->history_count -= gone;
        memmove(mem->history, mem->history + gone, mem->history_count * sizeof(dv_mem_txn *));
        mem->history_first += (int64_t)gone;
    }
    mem->history = dv_mem_grow(mem->history, mem->history_count, &mem->history_room, sizeof(dv_mem_txn *));
    mem->history[mem->history_count++] = txn;
    txn->refs++;
}

/* The first server that applies a transaction makes it the truth: only a leader with a quorum begins that. */
static void become_truth(dv_mem_server *server, dv_mem_txn *txn) {
    dv_mem *mem = server->mem;
    if (txn->index != mem->truth_index + 1) return;
    mem->truth_index = txn->index;
    mem->truth_server = server->id;
    keep_history(mem, txn);
    if (mem->config.on_transaction) tell(mem, txn);
}

/* Where a server has closed a session, the client's connection goes too. */
static void end_connections(dv_mem_server *server, const dv_mem_txn *txn) {
    if (txn->count == 0 || txn->error || txn->steps[txn->count - 1].kind != DV_MEM_TXN_SESSION_END) return;
    dv_mem_seat *seat = &txn->session->seats[server->id];
    seat->tracked = false;
    if (seat->conn) dv_mem_conn_close(seat->conn, 1);
}

static void apply_next(dv_mem_server *server) {
    assert(server->tail_count > 0);
    dv_mem_txn *txn = server->tail[0];
    memmove(server->tail, server->tail + 1, --server->tail_count * sizeof(dv_mem_txn *));
    dv_mem_tree_apply(server->mem, server, txn);
    server->applied = txn->index;
    server->applied_zxid = txn->zxid;
    become_truth(server, txn);
    dv_mem_changes_applied(server, txn->index);
    dv_mem_conn_committed(server, txn);
    end_connections(server, txn);
    dv_mem_txn_unref(server->mem, txn);
}

void dv_mem_apply_up_to(dv_mem_server *server, int64_t index) {
    while (server->applied < index && server->tail_count > 0) apply_next(server);
}

/* ---- life ---- */

static void forget_touches(dv_mem_server *server) {
    for (; server->touched; server->touched = server->touched->seats[server->id].touched_next)
        server->touched->seats[server->id].touched = false;
}

/* Leaves the server's role: connections of all kinds end, and what only that role knew is forgotten. */
static void leave_role(dv_mem_server *server) {
    server->term++;
    server->serving = false;
    server->role = DV_MEM_LOOKING;
    while (server->conns) dv_mem_conn_close(server->conns, 1);
    if (server->link) dv_mem_link_close(server->link, 0);
    for (int i = 0; i < server->mem->server_count; i++)
        if (server->links[i]) dv_mem_link_close(server->links[i], 1);
    forget_touches(server);
    dv_mem_unlead(server);
}

static bool on_election(dv_mem *mem, dv_mem_event *event);

static void ask_for_election(dv_mem_server *server) {
    dv_mem *mem = server->mem;
    int64_t wait_ms = dv_mem_between(mem, mem->config.election_min_ms, mem->config.election_max_ms);
    dv_mem_server_timer(mem, server, mem->now + wait_ms, on_election);
}

void dv_mem_look(dv_mem_server *server) {
    leave_role(server);
    DV_MEM_TRACE(server->mem, "server %d: looks for a leader", server->id);
    ask_for_election(server);
}

void dv_mem_server_kill(dv_mem_server *server) {
    if (!server->up) return;
    DV_MEM_TRACE(server->mem, "server %d: killed", server->id);
    leave_role(server);
    server->up = server->paused = false;
    /* The sockets lose what they held; the senders learn it as from a machine without the process. */
    dv_mem_events_resume(server->mem, &server->deferred);
}

void dv_mem_server_start(dv_mem_server *server) {
    if (server->up) return;
    DV_MEM_TRACE(server->mem, "server %d: started", server->id);
    server->up = true;
    ask_for_election(server);
}

void dv_mem_server_pause(dv_mem_server *server, bool paused) {
    if (!server->up || server->paused == paused) return;
    DV_MEM_TRACE(server->mem, "server %d: %s", server->id, paused ? "stopped" : "goes on");
    server->paused = paused;
    if (paused) return;
    dv_mem_events_resume(server->mem, &server->deferred);
}

void dv_mem_server_init(dv_mem *mem, int id) {
    dv_mem_server *server = &mem->servers[id];
    server->mem = mem;
    server->id = id;
    server->up = true;
    server->deferred.end = &server->deferred.first;
    server->changes_end = &server->changes;
    server->run_request = dv_mem_conn_run_request;
    server->hear_follower = dv_mem_leader_hear;
    server->hear_leader = dv_mem_follower_hear;
    dv_mem_tree_init(mem, id);
}

void dv_mem_server_free(dv_mem_server *server) {
    leave_role(server);
    dv_mem_log_truncate(server);
    free(server->tail);
    dv_mem_events_resume(server->mem, &server->deferred); /* to be freed with all others */
}

/* ---- elections: what the votes come to, without the votes ---- */

static bool can_talk(const dv_mem_server *a, const dv_mem_server *b) {
    const dv_mem *mem = a->mem;
    return a == b || (b->up && !b->paused && !mem->cut[a->id][b->id] && !mem->cut[b->id][a->id]);
}

/* A leader is joined when a quorum, as seen from here, is with it. */
static bool leads_a_quorum(const dv_mem_server *leader, const dv_mem_server *seen_from) {
    unsigned with_it = 0;
    for (int i = 0; i < leader->mem->server_count; i++) {
        const dv_mem_server *other = &leader->mem->servers[i];
        bool follows = other == leader || (other->link && other->link->leader == leader);
        if (follows && can_talk(seen_from, other)) with_it++;
    }
    return with_it >= dv_mem_quorum(leader->mem);
}

static bool join_leader(dv_mem_server *server) {
    dv_mem *mem = server->mem;
    dv_mem_server *best = NULL;
    for (int i = 0; i < mem->server_count; i++) {
        dv_mem_server *other = &mem->servers[i];
        if (other == server || other->role != DV_MEM_LEADING || !can_talk(server, other)) continue;
        if (leads_a_quorum(other, server) && (!best || other->epoch > best->epoch)) best = other;
    }
    if (best) dv_mem_follow(server, best);
    return best != NULL;
}

static bool is_looking(const dv_mem_server *server) {
    return server->up && !server->paused && server->role == DV_MEM_LOOKING && !server->link;
}

static bool knows_more(const dv_mem_server *a, const dv_mem_server *b) {
    return a->epoch > b->epoch || (a->epoch == b->epoch && a->logged_zxid > b->logged_zxid);
}

static bool is_ahead(const dv_mem_server *a, const dv_mem_server *b) {
    return knows_more(a, b) || (!knows_more(b, a) && a->id > b->id);
}

static bool votes_for(const dv_mem_server *voter, const dv_mem_server *candidate) {
    return is_looking(voter) && can_talk(candidate, voter) && !knows_more(voter, candidate);
}

static bool can_win(const dv_mem_server *candidate) {
    unsigned votes = 0;
    for (int i = 0; i < candidate->mem->server_count; i++) {
        if (votes_for(&candidate->mem->servers[i], candidate)) votes++;
    }
    return votes >= dv_mem_quorum(candidate->mem);
}

static void elect(dv_mem *mem) {
    dv_mem_server *winner = NULL;
    int64_t epoch = 0;
    for (int i = 0; i < mem->server_count; i++) {
        dv_mem_server *server = &mem->servers[i];
        if (!is_looking(server)) continue;
        if (server->accepted > epoch) epoch = server->accepted;
        if (can_win(server) && (!winner || is_ahead(server, winner))) winner = server;
    }
    if (!winner) return;
    dv_mem_server *voters[DV_MEM_SERVERS_MAX];
    int count = 0;
    for (int i = 0; i < mem->server_count; i++) {
        if (&mem->servers[i] != winner && votes_for(&mem->servers[i], winner)) voters[count++] = &mem->servers[i];
    }
    dv_mem_lead(winner, epoch + 1);
    for (int i = 0; i < count; i++) dv_mem_follow(voters[i], winner);
}

static bool on_election(dv_mem *mem, dv_mem_event *event) {
    dv_mem_server *server = event->server;
    assert(is_looking(server));
    if (!join_leader(server)) elect(mem);
    if (is_looking(server)) ask_for_election(server);
    return true;
}
