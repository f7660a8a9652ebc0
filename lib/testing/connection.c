/* A client's connection, for both sides: messages, watches set by it, its end. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "testing/ensemble.h"

bool dv_mem_client_cut(const dv_mem_client *client, int direction) {
    return client->wire == DIVVY_TESTING_LINK_DOWN ||
           client->wire == (direction ? DIVVY_TESTING_LINK_NO_REPLIES : DIVVY_TESTING_LINK_NO_REQUESTS);
}

void dv_mem_conn_send(dv_mem_conn *conn, int side, dv_mem_request *request, dv_mem_reply *reply) {
    dv_mem *mem = conn->mem;
    dv_mem_event *message = dv_mem_event_new(mem, conn->run[1 - side]);
    message->conn = dv_mem_conn_ref(conn);
    message->request = request;
    message->reply = reply;
    if (side) message->client = conn->client;
    else message->server = conn->server;
    int64_t delay_ms = dv_mem_between(mem, mem->config.client_delay_min_ms, mem->config.client_delay_max_ms);
    dv_mem_channel_send(mem, &conn->channel, side, dv_mem_client_cut(conn->client, side), delay_ms, message);
}

void dv_mem_watch_set(dv_mem_conn *conn, dv_mem_path *path, bool of_children) {
    dv_mem_watch **first = &path->places[conn->server->id].watches;
    for (dv_mem_watch *w = *first; w; w = w->path_next) {
        if (w->conn == conn && w->of_children == of_children) return;
    }
    dv_mem_watch *w = dv_mem_alloc(sizeof *w);
    *w = (dv_mem_watch){.conn = conn, .path = dv_mem_path_ref(path), .of_children = of_children};
    w->path_next = *first;
    w->path_link = first;
    if (*first) (*first)->path_link = &w->path_next;
    *first = w;
    w->conn_next = conn->watches;
    w->conn_link = &conn->watches;
    if (conn->watches) conn->watches->conn_link = &w->conn_next;
    conn->watches = w;
}

static void drop_watch(dv_mem *mem, dv_mem_watch *w) {
    *w->path_link = w->path_next;
    if (w->path_next) w->path_next->path_link = w->path_link;
    *w->conn_link = w->conn_next;
    if (w->conn_next) w->conn_next->conn_link = w->conn_link;
    dv_mem_path_unref(mem, w->path);
    free(w);
}

static void drop_watches(dv_mem *mem, dv_mem_conn *conn) {
    for (dv_mem_watch *w = conn->watches, *next; w; w = next) {
        next = w->conn_next;
        drop_watch(mem, w);
    }
}

void dv_mem_conn_fire(dv_mem_conn *conn, dv_mem_path *path, dv_watch_kind kind) {
    dv_mem_reply *reply = dv_mem_reply_new(DV_MEM_FIRED);
    reply->path = dv_mem_path_ref(path);
    reply->fired = kind;
    dv_mem_conn_send(conn, 1, NULL, reply);
}

bool dv_mem_conn_may_read(const dv_mem_conn *conn, dv_mem_access access) {
    return access.acl != DIVVY_ACL_CREATOR || (conn->identity && conn->identity == access.identity);
}

/* Tells a connection once of a deletion, even if it watches the node and its children. One that may not read the node
 * loses its watch and is told nothing, as since the fix of CVE-2024-23944, which Debian's servers have. */
void dv_mem_watch_fire(dv_mem *mem, const dv_mem_server *server, dv_mem_path *path, dv_mem_access access,
                       dv_watch_kind kind) {
    bool data = kind != DV_WATCH_CHILDREN, children = kind == DV_WATCH_CHILDREN || kind == DV_WATCH_DELETED;
    dv_mem_watch *w = path->places[server->id].watches;
    while (w) {
        dv_mem_watch *next = w->path_next;
        if (w->of_children ? children : data) {
            dv_mem_conn *conn = w->conn;
            bool both = false;
            for (dv_mem_watch *other = next; data && children && other; other = other->path_next)
                both = both || other->conn == conn;
            if (!both && dv_mem_conn_may_read(conn, access)) dv_mem_conn_fire(conn, path, kind);
            /* Telling one connection does not change the watches of another: `next` stays. */
            drop_watch(mem, w);
        }
        w = next;
    }
}

dv_mem_request *dv_mem_conn_take(dv_mem_conn *conn) {
    dv_mem_request *request = conn->queue;
    conn->queue = request->next;
    if (!conn->queue) conn->queue_end = &conn->queue;
    request->next = NULL;
    return request;
}

static void forget_at_server(dv_mem_conn *conn) {
    dv_mem *mem = conn->mem;
    if (!conn->accepted) return;
    conn->accepted = false;
    *conn->server_link = conn->server_next;
    if (conn->server_next) conn->server_next->server_link = conn->server_link;
    drop_watches(mem, conn);
    if (conn->session && conn->session->seats[conn->server->id].conn == conn)
        conn->session->seats[conn->server->id].conn = NULL;
    while (conn->queue) dv_mem_request_unref(mem, dv_mem_conn_take(conn));
    dv_mem_conn_unref(conn);
}

void dv_mem_conn_close(dv_mem_conn *conn, int side) {
    if (!conn->channel.open[side]) return;
    conn->channel.open[side] = false;
    if (conn->channel.open[1 - side]) dv_mem_conn_send(conn, side, NULL, NULL);
    if (side) forget_at_server(conn);
}
