/* Counted references to clients, connections, links, requests and transactions. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "testing/ensemble.h"

void dv_mem_client_unref(dv_mem_client *client) {
    if (--client->refs > 0) return;
    assert(!client->client && !client->sent && !client->conns);
    free(client->armed);
    free(client);
}

void dv_mem_conn_unref(dv_mem_conn *conn) {
    if (--conn->refs > 0) return;
    dv_mem_conn **place = &conn->client->conns;
    while (*place != conn) place = &(*place)->client_next;
    *place = conn->client_next;
    dv_mem_client_unref(conn->client);
    free(conn);
}

dv_mem_conn *dv_mem_conn_ref(dv_mem_conn *conn) {
    conn->refs++;
    return conn;
}

dv_mem_link *dv_mem_link_ref(dv_mem_link *link) {
    link->refs++;
    return link;
}

void dv_mem_link_unref(dv_mem_link *link) {
    if (--link->refs == 0) free(link);
}

dv_mem_request *dv_mem_request_new(dv_mem_request_kind kind, dv_mem_conn *conn, size_t count) {
    dv_mem_request *request = dv_mem_alloc(sizeof *request + count * sizeof(dv_mem_op));
    request->refs = 1;
    request->kind = kind;
    request->count = count;
    if (conn) request->conn = dv_mem_conn_ref(conn);
    return request;
}

dv_mem_request *dv_mem_request_ref(dv_mem_request *request) {
    request->refs++;
    return request;
}

void dv_mem_request_unref(dv_mem *mem, dv_mem_request *request) {
    if (--request->refs > 0) return;
    for (size_t i = 0; i < request->count; i++) {
        dv_mem_path_unref(mem, request->ops[i].path);
        dv_mem_blob_unref(request->ops[i].data);
    }
    if (request->conn) dv_mem_conn_unref(request->conn);
    free(request);
}

dv_mem_reply *dv_mem_reply_new(dv_mem_reply_kind kind) {
    dv_mem_reply *reply = dv_mem_alloc(sizeof *reply);
    reply->kind = kind;
    return reply;
}

void dv_mem_reply_free(dv_mem *mem, dv_mem_reply *reply) {
    dv_mem_path_unref(mem, reply->path);
    dv_mem_blob_unref(reply->data);
    for (size_t i = 0; i < reply->child_count; i++) dv_mem_path_unref(mem, reply->children[i]);
    free(reply->children);
    for (size_t i = 0; i < reply->result_count; i++) dv_mem_path_unref(mem, reply->results[i].path);
    free(reply->results);
    free(reply);
}

dv_mem_txn *dv_mem_txn_new(dv_mem_session *session, dv_mem_request *request) {
    dv_mem_txn *txn = dv_mem_alloc(sizeof *txn);
    txn->refs = 1;
    txn->session = session;
    txn->request = request ? dv_mem_request_ref(request) : NULL;
    return txn;
}

dv_mem_step *dv_mem_txn_add(dv_mem_txn *txn, dv_mem_step_kind kind, dv_mem_path *path) {
    txn->steps = dv_mem_grow(txn->steps, txn->count, &txn->room, sizeof *txn->steps);
    dv_mem_step *step = &txn->steps[txn->count++];
    step->kind = kind;
    step->path = path ? dv_mem_path_ref(path) : NULL;
    return step;
}

void dv_mem_txn_clear(dv_mem *mem, dv_mem_txn *txn) {
    for (size_t i = 0; i < txn->count; i++) {
        dv_mem_path_unref(mem, txn->steps[i].path);
        dv_mem_blob_unref(txn->steps[i].data);
    }
    free(txn->steps);
    txn->steps = NULL;
    txn->count = txn->room = 0;
}

void dv_mem_txn_unref(dv_mem *mem, dv_mem_txn *txn) {
    if (--txn->refs > 0) return;
    dv_mem_txn_clear(mem, txn);
    if (txn->request) dv_mem_request_unref(mem, txn->request);
    free(txn);
}
