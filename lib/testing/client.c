/* A client as the native library is one: connects, pings, sets watches again. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "testing/ensemble.h"

/* ---- watches that are set natively: what SetWatches will hold ---- */

static dv_mem_armed **armed_place(dv_mem_client *client, const dv_mem_path *path) {
    dv_mem_armed **place = &client->armed[path->hash & (client->armed_room - 1)];
    while (*place && (*place)->path != path) place = &(*place)->next;
    return place;
}

static void grow_armed(dv_mem_client *client) {
    size_t old_room = client->armed_room;
    dv_mem_armed **old = client->armed;
    client->armed_room = old_room ? old_room * 2 : 32;
    client->armed = dv_mem_alloc(client->armed_room * sizeof(dv_mem_armed *));
    for (size_t i = 0; i < old_room; i++) {
        for (dv_mem_armed *a = old[i], *next; a; a = next) {
            next = a->next;
            a->next = NULL;
            *armed_place(client, a->path) = a;
        }
    }
    free(old);
}

static void arm(dv_mem_client *client, dv_mem_path *path, dv_kind kind, bool found) {
    if (client->armed_count >= client->armed_room) grow_armed(client);
    dv_mem_armed **place = armed_place(client, path);
    if (!*place) {
        *place = dv_mem_alloc(sizeof **place);
        (*place)->path = dv_mem_path_ref(path);
        client->armed_count++;
    }
    (*place)->kinds |= 1U << (kind == DV_EXISTS && found ? DV_GET : kind);
}

static void free_armed(dv_mem_client *client, dv_mem_armed **place) {
    dv_mem_armed *gone = *place;
    *place = gone->next;
    client->armed_count--;
    dv_mem_path_unref(client->mem, gone->path);
    free(gone);
}

/* Returns whether the native library would tell anybody. */
static bool disarm(dv_mem_client *client, const dv_mem_path *path, dv_watch_kind kind) {
    dv_mem_armed **place = client->armed_room ? armed_place(client, path) : NULL;
    if (!place || !*place) return false;
    unsigned before = (*place)->kinds, kinds = before;
    if (kind != DV_WATCH_CHILDREN) kinds &= ~(1U << DV_GET | 1U << DV_EXISTS);
    if (kind == DV_WATCH_CHILDREN || kind == DV_WATCH_DELETED) kinds &= ~(1U << DV_CHILDREN);
    (*place)->kinds = kinds;
    if (!kinds) free_armed(client, place);
    return kinds != before;
}

static void drop_armed(dv_mem_client *client) {
    for (size_t i = 0; i < client->armed_room; i++)
        while (client->armed[i]) free_armed(client, &client->armed[i]);
}

static void send_set_watches(dv_mem_client *client) {
    if (!client->armed_count) return;
    dv_mem_request *request = dv_mem_request_new(DV_MEM_SET_WATCHES, client->conn, client->armed_count * 3);
    request->zxid = client->last_zxid;
    size_t count = 0;
    for (size_t i = 0; i < client->armed_room; i++) {
        for (dv_mem_armed *a = client->armed[i]; a; a = a->next) {
            for (dv_kind kind = DV_GET; kind <= DV_CHILDREN; kind++)
                if (a->kinds & 1U << kind)
                    request->ops[count++] = (dv_mem_op){.kind = kind, .path = dv_mem_path_ref(a->path)};
        }
    }
    request->count = count;
    dv_mem_client_send(client, request);
}

/* ---- connecting ---- */

static bool on_message(dv_mem *mem, dv_mem_event *message);
static bool on_timer(dv_mem *mem, dv_mem_event *event);

static void push_timer(dv_mem_client *client, int64_t at, bool (*run)(dv_mem *mem, dv_mem_event *event)) {
    dv_mem_event *event = dv_mem_event_new(client->mem, run);
    event->client = client;
    event->term = client->generation;
    client->refs++;
    dv_mem_event_push(client->mem, event, at);
}

static void set_timer(dv_mem_client *client, int64_t client_ms) {
    int64_t at = dv_mem_client_when(client, client_ms);
    if (at < client->mem->now) at = client->mem->now;
    if (client->timer_at && client->timer_at <= at) return; /* it looks again then */
    client->timer_at = at;
    push_timer(client, at, on_timer);
}

static void set_next_timer(dv_mem_client *client) {
    int64_t at = client->last_heard + client->timeout_ms * 2 / 3;
    int64_t ping_at = client->last_sent + client->timeout_ms / 3;
    bool pings = client->native == DV_MEM_ESTABLISHED && !client->sent;
    set_timer(client, pings && ping_at < at ? ping_at : at);
}

void dv_mem_client_send(dv_mem_client *client, dv_mem_request *request) {
    client->last_sent = dv_mem_client_now(client);
    dv_mem_conn_send(client->conn, 0, request, NULL);
}

static void send_simple(dv_mem_client *client, dv_mem_request_kind kind) {
    dv_mem_request *request = dv_mem_request_new(kind, client->conn, 0);
    request->access = client->access;
    dv_mem_client_send(client, request);
}

static int next_server(dv_mem_client *client) {
    if (client->preferred >= 0) return client->preferred;
    client->order_at = (client->order_at + 1) % client->mem->server_count;
    return client->order[client->order_at];
}

static void begin_attempt(dv_mem_client *client) {
    dv_mem *mem = client->mem;
    dv_mem_conn *conn = dv_mem_alloc(sizeof *conn);
    conn->refs = 1;
    conn->mem = mem;
    conn->client = client;
    client->refs++;
    conn->server = &mem->servers[next_server(client)];
    conn->run[0] = on_message;
    conn->run[1] = conn->server->run_request;
    conn->channel.open[0] = conn->channel.open[1] = true;
    conn->queue_end = &conn->queue;
    conn->heard_at = mem->now;
    conn->client_next = client->conns;
    client->conns = client->conn = conn;
    client->native = DV_MEM_CONNECTING;
    client->asked_at = client->last_heard = dv_mem_client_now(client);
    client->generation++;
    client->timer_at = 0;
    dv_mem_request *request = dv_mem_request_new(DV_MEM_CONNECT, NULL, 0);
    request->session_id = client->session_id;
    request->timeout_ms = client->requested_ms;
    request->zxid = client->last_zxid;
    dv_mem_client_send(client, request);
    set_next_timer(client);
}

static bool on_connect(dv_mem *mem, dv_mem_event *event) {
    (void)mem;
    if (event->client->native != DV_MEM_WAITING) return false;
    begin_attempt(event->client);
    return true;
}

void dv_mem_client_start(dv_mem_client *client) {
    client->native = DV_MEM_WAITING;
    client->generation++;
    client->failures = 0;
    push_timer(client, client->mem->now, on_connect);
}

/* Ends the connection at this side, without telling anybody. */
static void leave_conn(dv_mem_client *client) {
    dv_mem_conn *conn = client->conn;
    if (!conn) return;
    client->conn = NULL;
    client->generation++;
    dv_mem_conn_close(conn, 0);
    dv_mem_conn_unref(conn);
}

static dv_mem_pending *take_sent(dv_mem_client *client) {
    dv_mem_pending *pending = client->sent;
    client->sent = pending->sent_next;
    if (!client->sent) client->sent_end = &client->sent;
    return pending;
}

static void fail_sent(dv_mem_client *client, int error) {
    while (client->sent) dv_mem_post_answer(client, take_sent(client), error, NULL);
}

void dv_mem_client_lost(dv_mem_client *client) {
    if (client->native != DV_MEM_ESTABLISHED && client->native != DV_MEM_CONNECTING) return;
    DV_MEM_TRACE(client->mem, "client %u: %s server %d", client->number,
                 client->native == DV_MEM_ESTABLISHED ? "has lost" : "does not get through to",
                 client->conn->server->id);
    bool was_connected = client->native == DV_MEM_ESTABLISHED;
    leave_conn(client);
    client->native = DV_MEM_WAITING;
    /* The news first, then what it means for the requests, as the native library has it. */
    if (was_connected) {
        dv_mem_post_news(client, &(dv_session_news){.state = DIVVY_SUSPENDED});
        fail_sent(client, DIVVY_ECONNECTION);
    }
    int64_t wait_ms = 0;
    int round = client->preferred >= 0 ? 1 : client->mem->server_count;
    if (++client->failures % round == 0 && !was_connected) wait_ms = client->timeout_ms / 60 + 1;
    push_timer(client, client->mem->now + wait_ms, on_connect);
}

/* ---- living ---- */

/* Ends a link after two thirds of the timeout in silence; pings a third after the last request, if all are answered. */
static bool on_timer(dv_mem *mem, dv_mem_event *event) {
    dv_mem_client *client = event->client;
    if (!client->timer_at || client->timer_at > mem->now) return false;
    int64_t now = dv_mem_client_now(client);
    client->timer_at = 0;
    if (now - client->last_heard >= client->timeout_ms * 2 / 3) {
        dv_mem_client_lost(client);
        return true;
    }
    bool ping =
        client->native == DV_MEM_ESTABLISHED && !client->sent && now - client->last_sent >= client->timeout_ms / 3;
    if (ping) send_simple(client, DV_MEM_PING);
    set_next_timer(client);
    return ping;
}

static void end_native(dv_mem_client *client, divvy_session_state state) {
    leave_conn(client);
    client->native = DV_MEM_OVER;
    dv_mem_post_news(client, &(dv_session_news){.state = state});
    fail_sent(client, state == DIVVY_LOST ? DIVVY_ELOST : DIVVY_EAUTH);
    drop_armed(client);
}

static void on_connected(dv_mem_client *client, const dv_mem_reply *reply) {
    if (reply->timeout_ms == 0) {
        DV_MEM_TRACE(client->mem, "client %u: hears that its session has expired", client->number);
        end_native(client, DIVVY_LOST);
        return;
    }
    DV_MEM_TRACE(client->mem, "client %u: session 0x%llx on server %d", client->number,
                 (unsigned long long)reply->session_id, client->conn->server->id);
    bool made = client->session_id == 0;
    client->native = DV_MEM_ESTABLISHED;
    client->session_id = reply->session_id;
    client->timeout_ms = reply->timeout_ms;
    client->failures = 0;
    if (client->authenticates) send_simple(client, DV_MEM_AUTH);
    send_set_watches(client);
    dv_session_news news = {.state = DIVVY_CONNECTED,
                            .session_id = reply->session_id,
                            .timeout_ms = reply->timeout_ms,
                            .created_at = made ? client->asked_at : 0};
    dv_mem_post_news(client, &news);
}

static void on_answer(dv_mem_client *client, dv_mem_reply *reply) {
    assert(client->sent);
    dv_mem_pending *pending = take_sent(client);
    assert(pending->request->number == reply->number);
    const dv_mem_request *request = pending->request;
    bool arms = reply->error == 0 || (reply->error == DIVVY_ENOENT && request->ops[0].kind == DV_EXISTS);
    if (request->watch && arms) arm(client, request->ops[0].path, request->ops[0].kind, reply->error == 0);
    dv_mem_post_answer(client, pending, reply->error, reply);
}

static void receive(dv_mem_client *client, dv_mem_event *message) {
    dv_mem_reply *reply = message->reply;
    client->last_heard = dv_mem_client_now(client);
    if (reply->zxid > client->last_zxid) client->last_zxid = reply->zxid;
    if (reply->kind == DV_MEM_CONNECTED) on_connected(client, reply);
    if (reply->kind == DV_MEM_AUTH_REFUSED) end_native(client, DIVVY_AUTH_FAILED);
    if (reply->kind == DV_MEM_FIRED && disarm(client, reply->path, reply->fired))
        dv_mem_post_fired(client, reply->path, reply->fired);
    if (reply->kind == DV_MEM_ANSWER) {
        message->reply = NULL; /* It is the answer's event's now. */
        on_answer(client, reply);
    }
    if (client->native == DV_MEM_ESTABLISHED) set_next_timer(client);
}

static bool on_message(dv_mem *mem, dv_mem_event *message) {
    (void)mem;
    dv_mem_conn *conn = message->conn;
    dv_mem_client *client = conn->client;
    if (!conn->channel.open[0]) return false; /* the process has closed it, or died */
    assert(conn == client->conn && !client->crashed);
    if (message->reply) receive(client, message);
    else dv_mem_client_lost(client);
    return true;
}

/* ---- the end ---- */

void dv_mem_client_close(dv_mem_client *client, bool say) {
    if (client->native == DV_MEM_ESTABLISHED && say && !client->crashed) send_simple(client, DV_MEM_CLOSE_SESSION);
    leave_conn(client);
    client->generation++;
    client->native = DV_MEM_IDLE;
    client->session_id = 0;
    client->last_zxid = 0;
    client->timeout_ms = client->requested_ms;
    while (client->sent) {
        assert(!client->sent->link);
        dv_mem_pending_free(take_sent(client));
    }
    drop_armed(client);
}

void dv_mem_client_crash(dv_mem_client *client) {
    if (client->crashed) return;
    DV_MEM_TRACE(client->mem, "client %u: crashes", client->number);
    client->crashed = true;
    leave_conn(client);
    client->generation++;
    bool lived = client->native != DV_MEM_IDLE && client->native != DV_MEM_OVER;
    client->native = DV_MEM_OVER;
    /* For the release of its memory: a thread that waits there learns that nothing more comes. */
    if (lived) dv_mem_post_news(client, &(dv_session_news){.state = DIVVY_LOST});
    fail_sent(client, DIVVY_ELOST);
}
