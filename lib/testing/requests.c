/* A client's requests at a server: in order, reads behind its own writes. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

/* ---- answers ---- */

static void answer(dv_mem_conn *conn, dv_mem_reply *reply) {
    reply->zxid = conn->server->applied_zxid;
    dv_mem_conn_send(conn, 1, NULL, reply);
}

static dv_mem_reply *new_answer(const dv_mem_request *request, int error) {
    dv_mem_reply *reply = dv_mem_reply_new(DV_MEM_ANSWER);
    reply->number = request->number;
    reply->error = error;
    return reply;
}

static void add_children(dv_mem_reply *reply, const dv_mem_node *node) {
    if (node->child_count == 0) return;
    reply->children = dv_mem_alloc((size_t)node->child_count * sizeof(dv_mem_path *));
    for (const dv_mem_node *child = node->children; child; child = child->sibling)
        reply->children[reply->child_count++] = dv_mem_path_ref(child->path);
}

/* ZooKeeper 3.8 tells anyone whether a node exists (ZOOKEEPER-2590). */
static bool is_refused(const dv_mem_conn *conn, dv_kind kind, const dv_mem_node *node) {
    bool free_to_ask = kind == DV_EXISTS && conn->mem->config.release < DIVVY_TESTING_3_9;
    return !free_to_ask && !dv_mem_conn_may_read(conn, node->access);
}

static void read_node(dv_mem_conn *conn, const dv_mem_request *request) {
    const dv_mem_op *op = &request->ops[0];
    const dv_mem_node *node = op->path->places[conn->server->id].node;
    dv_mem_reply *reply = new_answer(request, 0);
    if (!node) reply->error = DIVVY_ENOENT;
    else if (op->kind == DV_ACL) reply->error = DIVVY_EUNSUPPORTED;
    else if (is_refused(conn, op->kind, node)) reply->error = DIVVY_EACCES;
    if (!reply->error) {
        reply->has_stat = true;
        reply->stat = dv_mem_node_stat(node);
        if (op->kind == DV_GET) reply->data = dv_mem_blob_ref(node->data);
        if (op->kind == DV_CHILDREN) add_children(reply, node);
    }
    bool arms = !reply->error || (reply->error == DIVVY_ENOENT && op->kind == DV_EXISTS);
    if (request->watch && arms) dv_mem_watch_set(conn, op->path, op->kind == DV_CHILDREN);
    answer(conn, reply);
}

/* Tells of a change that a client has missed. Since 3.9.6 the servers look at the node's access list before. */
static void tell_missed(dv_mem_conn *conn, dv_mem_path *path, const dv_mem_node *node, dv_watch_kind kind) {
    bool hidden = conn->mem->config.release >= DIVVY_TESTING_3_9_6 && !dv_mem_conn_may_read(conn, node->access);
    if (!hidden) dv_mem_conn_fire(conn, path, kind);
}

static void set_watches(dv_mem_conn *conn, const dv_mem_request *request) {
    for (size_t i = 0; i < request->count; i++) {
        dv_mem_path *path = request->ops[i].path;
        const dv_mem_node *node = path->places[conn->server->id].node;
        dv_kind kind = request->ops[i].kind;
        if (kind == DV_EXISTS && node) tell_missed(conn, path, node, DV_WATCH_CREATED);
        else if (kind != DV_EXISTS && !node) dv_mem_conn_fire(conn, path, DV_WATCH_DELETED);
        else if (kind == DV_GET && node->mzxid > request->zxid) tell_missed(conn, path, node, DV_WATCH_CHANGED);
        else if (kind == DV_CHILDREN && node->pzxid > request->zxid) tell_missed(conn, path, node, DV_WATCH_CHILDREN);
        else dv_mem_watch_set(conn, path, kind == DV_CHILDREN);
    }
}

static void answer_local(dv_mem_conn *conn, const dv_mem_request *request) {
    switch (request->kind) {
    case DV_MEM_PING: answer(conn, dv_mem_reply_new(DV_MEM_PONG)); break;
    case DV_MEM_SET_WATCHES: set_watches(conn, request); break;
    default: read_node(conn, request);
    }
}

/* Returns whether ZooKeeper 3.4 does not know it. Its clients made nodes by a request without a Stat, as multis do. */
static bool is_unknown(const dv_mem_conn *conn, const dv_mem_request *request) {
    bool creates = request->kind == DV_MEM_OPERATIONS && !request->is_multi && request->ops[0].kind == DV_CREATE;
    return creates && conn->mem->config.release == DIVVY_TESTING_3_4;
}

static bool waits_for_commit(const dv_mem_conn *conn, const dv_mem_request *request) {
    if (is_unknown(conn, request) || (request->odd_error && !request->odd_executed)) return false;
    return request->wrote || request->kind == DV_MEM_CLOSE_SESSION;
}

static void answer_what_can_be(dv_mem_conn *conn) {
    while (conn->queue && !waits_for_commit(conn, conn->queue)) {
        dv_mem_request *request = dv_mem_conn_take(conn);
        bool refused = is_unknown(conn, request);
        if (refused) answer(conn, new_answer(request, DIVVY_EUNSUPPORTED));
        else if (request->odd_error) answer(conn, new_answer(request, request->odd_error));
        else answer_local(conn, request);
        if (refused) dv_mem_conn_close(conn, 1);
        dv_mem_request_unref(conn->mem, request);
    }
}

static void answer_write(dv_mem_conn *conn, const dv_mem_request *request, const dv_mem_txn *txn) {
    dv_mem_reply *reply = new_answer(request, txn->error);
    if (request->is_multi && txn->count) {
        reply->results = dv_mem_alloc(txn->count * sizeof(dv_mem_result));
        reply->result_count = txn->count;
        for (size_t i = 0; i < txn->count; i++) {
            const dv_mem_step *step = &txn->steps[i];
            bool made = !txn->error && step->kind == DV_MEM_TXN_CREATE;
            dv_mem_result *result = &reply->results[i];
            result->error = step->error;
            result->path = made ? dv_mem_path_ref(step->path) : NULL;
            result->has_stat = !txn->error && step->kind == DV_MEM_TXN_SET;
            result->stat = step->stat; /* though a later step may have deleted the node */
        }
    } else if (!txn->error && txn->count) {
        const dv_mem_step *step = &txn->steps[0];
        const dv_mem_node *node = step->path->places[conn->server->id].node;
        if (step->kind == DV_MEM_TXN_CREATE) reply->path = dv_mem_path_ref(step->path);
        reply->has_stat = node != NULL;
        if (node) reply->stat = dv_mem_node_stat(node);
    }
    answer(conn, reply);
}

/* ---- sessions ---- */

static void establish(dv_mem_conn *conn) {
    dv_mem_seat *seat = &conn->session->seats[conn->server->id];
    if (seat->conn && seat->conn != conn) dv_mem_conn_close(seat->conn, 1);
    seat->conn = conn;
    conn->established = true;
    dv_mem_reply *reply = dv_mem_reply_new(DV_MEM_CONNECTED);
    reply->session_id = conn->session->id;
    reply->timeout_ms = conn->session->timeout_ms;
    dv_mem_conn_send(conn, 1, NULL, reply); /* its zxid stays 0: nothing was seen yet */
    dv_mem_touch(conn->server, conn->session);
}

void dv_mem_conn_validated(dv_mem_conn *conn, bool valid) {
    if (!conn->accepted || conn->established) return;
    if (valid) {
        establish(conn);
        return;
    }
    dv_mem_conn_send(conn, 1, NULL, dv_mem_reply_new(DV_MEM_CONNECTED)); /* timeout 0: expired */
    dv_mem_conn_close(conn, 1);
}

/* To the leader, which may be here. */
static void forward(dv_mem_conn *conn, dv_mem_request *request) {
    dv_mem_server *server = conn->server;
    request->session = conn->session;
    if (server->role == DV_MEM_LEADING) {
        dv_mem_leader_request(server, request);
        return;
    }
    dv_mem_event *message = dv_mem_link_message(server->link, 0, DV_MEM_FORWARD);
    message->request = dv_mem_request_ref(request);
    dv_mem_link_send(message);
}

static void begin_session(dv_mem_conn *conn, int64_t asked_ms) {
    dv_mem *mem = conn->mem;
    int64_t timeout_ms = asked_ms, min_ms = mem->config.min_session_timeout_ms;
    if (timeout_ms < min_ms) timeout_ms = min_ms;
    if (timeout_ms > mem->config.max_session_timeout_ms) timeout_ms = mem->config.max_session_timeout_ms;
    conn->session = dv_mem_session_new(mem, conn->server->id, timeout_ms);
    dv_mem_request *request = dv_mem_request_new(DV_MEM_CREATE_SESSION, conn, 0);
    forward(conn, request);
    dv_mem_request_unref(mem, request);
}

static void resume_session(dv_mem_conn *conn, int64_t id) {
    dv_mem_server *server = conn->server;
    dv_mem_session *session = conn->session = dv_mem_session_find(conn->mem, id);
    if (!session) {
        dv_mem_conn_validated(conn, false);
    } else if (server->role == DV_MEM_LEADING) {
        bool lives = dv_mem_track_lives(server, session);
        if (lives) session->seats[server->id].owner = server->id;
        dv_mem_conn_validated(conn, lives);
    } else {
        dv_mem_event *message = dv_mem_link_message(server->link, 0, DV_MEM_REVALIDATE);
        message->session = session;
        message->conn = dv_mem_conn_ref(conn);
        dv_mem_link_send(message);
    }
}

static bool on_idle(dv_mem *mem, dv_mem_event *event) {
    dv_mem_conn *conn = event->conn;
    if (!conn->accepted) return false;
    int64_t limit_ms = conn->session ? conn->session->timeout_ms : mem->config.max_session_timeout_ms;
    if (mem->now - conn->heard_at >= limit_ms) {
        dv_mem_conn_close(conn, 1);
        return true;
    }
    dv_mem_server_timer(mem, conn->server, conn->heard_at + limit_ms, on_idle)->conn = dv_mem_conn_ref(conn);
    return false;
}

static void accept(dv_mem_conn *conn, const dv_mem_request *request) {
    dv_mem *mem = conn->mem;
    dv_mem_server *server = conn->server;
    /* A client never goes back to what is older than what it saw. */
    if (!server->serving || request->zxid > server->applied_zxid) {
        DV_MEM_TRACE(mem, "server %d: refuses client %u: %s", server->id, conn->client->number,
                     server->serving ? "it has seen more" : "not serving");
        dv_mem_conn_close(conn, 1);
        return;
    }
    dv_mem_conn_ref(conn);
    conn->accepted = true;
    conn->server_next = server->conns;
    conn->server_link = &server->conns;
    if (server->conns) server->conns->server_link = &conn->server_next;
    server->conns = conn;
    dv_mem_server_timer(mem, server, mem->now + request->timeout_ms, on_idle)->conn = dv_mem_conn_ref(conn);
    if (request->session_id == 0) begin_session(conn, request->timeout_ms);
    else resume_session(conn, request->session_id);
}

static void authenticate(dv_mem_conn *conn, const dv_mem_request *request) {
    if (!conn->client->refuse_auth) {
        conn->identity = request->access.identity;
        return;
    }
    dv_mem_conn_send(conn, 1, NULL, dv_mem_reply_new(DV_MEM_AUTH_REFUSED));
    dv_mem_conn_close(conn, 1);
}

void dv_mem_conn_committed(dv_mem_server *server, const dv_mem_txn *txn) {
    dv_mem_request *request = txn->request;
    dv_mem_conn *conn = request ? request->conn : NULL;
    if (!conn || conn->server != server || !conn->accepted) return;
    if (request->kind == DV_MEM_CREATE_SESSION) {
        dv_mem_conn_validated(conn, true);
    } else if (conn->queue == request) {
        bool moved = txn->error == DIVVY_ECONNECTION; /* the session: then this connection is told nothing and ended */
        dv_mem_conn_take(conn);
        if (!moved && request->odd_error) answer(conn, new_answer(request, request->odd_error));
        else if (!moved && request->kind != DV_MEM_CLOSE_SESSION) answer_write(conn, request, txn);
        dv_mem_request_unref(conn->mem, request);
        if (moved) dv_mem_conn_close(conn, 1);
        else answer_what_can_be(conn);
    }
}

/* ---- what arrives ---- */

static void receive(dv_mem_conn *conn, dv_mem_request *request) {
    dv_mem *mem = conn->mem;
    conn->heard_at = mem->now;
    if (request->dropped) return;
    if (request->kind == DV_MEM_CONNECT) {
        accept(conn, request);
        return;
    }
    if (!conn->established) return;
    if (request->bytes > DV_MEM_REQUEST_BYTES_MAX) {
        DV_MEM_TRACE(mem, "server %d: a request of %zu bytes is too large", conn->server->id, request->bytes);
        dv_mem_conn_close(conn, 1);
        return;
    }
    dv_mem_touch(conn->server, conn->session);
    if (request->kind == DV_MEM_AUTH) {
        authenticate(conn, request);
        return;
    }
    *conn->queue_end = dv_mem_request_ref(request);
    conn->queue_end = &request->next;
    if (waits_for_commit(conn, request)) forward(conn, request);
    answer_what_can_be(conn);
}

bool dv_mem_conn_run_request(dv_mem *mem, dv_mem_event *event) {
    (void)mem;
    dv_mem_conn *conn = event->conn;
    if (!conn->server->up) conn->channel.open[1] = false; /* a machine without the process refuses */
    if (!conn->channel.open[1]) {
        if (event->request && conn->channel.open[0]) dv_mem_conn_send(conn, 1, NULL, NULL);
        return false;
    }
    if (event->request) receive(conn, event->request);
    else dv_mem_conn_close(conn, 1);
    return true;
}
