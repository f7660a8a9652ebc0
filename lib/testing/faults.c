/* Faults to inject, and what an administrator does. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "testing/ensemble.h"
#include "znode/path.h"

static dv_mem_client *of(const divvy_client *client) {
    return (dv_mem_client *)(void *)client->znode;
}

static int leave(dv_mem *mem, int result) {
    dv_mem_unlock(mem);
    return result;
}

/* ---- clients ---- */

int divvy_testing_link_client(divvy_testing_ensemble *mem, divvy_client *c, divvy_testing_link link) {
    static const char *const words[] = {"up", "down", "without requests", "without replies"};
    if (!mem || !c || link < DIVVY_TESTING_LINK_UP || link > DIVVY_TESTING_LINK_NO_REPLIES) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_client *client = of(c);
    client->wire = link;
    DV_MEM_TRACE(mem, "client %u: link %s", client->number, words[link]);
    for (dv_mem_conn *conn = client->conns; conn; conn = conn->client_next)
        for (int direction = 0; direction < 2; direction++)
            if (dv_mem_client_cut(client, direction)) dv_mem_channel_cut(&conn->channel, direction);
    return leave(mem, 0);
}

static void decide_fate(dv_mem_request *request, divvy_testing_fate fate, int64_t late_ms) {
    if (request->ordered) return;
    if (fate == DIVVY_TESTING_NOT_APPLIED) request->dropped = true;
    bool late = fate == DIVVY_TESTING_APPLIED_LATE || fate == DIVVY_TESTING_APPLIED_BEHIND;
    if (late && request->wrote) request->hold_ms = late_ms;
    request->moves = fate == DIVVY_TESTING_APPLIED_BEHIND;
}

int divvy_testing_disconnect(divvy_testing_ensemble *mem, divvy_client *c, divvy_testing_fate fate, int64_t late_ms) {
    if (!mem || !c || late_ms < 0 || late_ms > DV_TIME_MAX_MS || fate < DIVVY_TESTING_NOT_APPLIED ||
        fate > DIVVY_TESTING_APPLIED_BEHIND)
        return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_client *client = of(c);
    bool connected = client->native == DV_MEM_ESTABLISHED || client->native == DV_MEM_CONNECTING;
    if (connected) {
        size_t count = 0;
        for (dv_mem_pending *p = client->sent; p; p = p->sent_next, count++) decide_fate(p->request, fate, late_ms);
        DV_MEM_TRACE(mem, "client %u: its connection breaks, %zu requests under way", client->number, count);
        /* The network ends it: the server hears of it behind what is on the way, and the client by the server. */
        if (client->paused) dv_mem_conn_send(client->conn, 0, NULL, NULL);
        else dv_mem_client_lost(client);
    }
    return leave(mem, connected ? 0 : DIVVY_ESTATE);
}

int divvy_testing_expire(divvy_testing_ensemble *mem, divvy_client *c) {
    if (!mem || !c) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_server *leader = dv_mem_leader_now(mem);
    dv_mem_session *session = dv_mem_session_find(mem, of(c)->session_id);
    bool possible = leader && !leader->paused && session && dv_mem_track_lives(leader, session);
    if (possible) {
        DV_MEM_TRACE(mem, "client %u: its session is made to expire", of(c)->number);
        dv_mem_expire(leader, session);
    }
    return leave(mem, possible ? 0 : DIVVY_ESTATE);
}

int divvy_testing_prefer(divvy_testing_ensemble *mem, divvy_client *c, int server) {
    if (!mem || !c || server < -1 || server >= mem->server_count) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    of(c)->preferred = server;
    return leave(mem, 0);
}

static void pause_client(dv_mem *mem, dv_mem_client *client, bool paused) {
    if (client->paused == paused || client->crashed) return;
    client->paused = paused;
    DV_MEM_TRACE(mem, "client %u: %s", client->number, paused ? "stopped" : "goes on");
    if (paused) return;
    dv_mem_events_resume(mem, &client->deferred);
}

int divvy_testing_pause_client(divvy_testing_ensemble *mem, divvy_client *c, int paused) {
    if (!mem || !c) return DIVVY_EINVAL;
    if (mem->real) return DIVVY_ESTATE; /* its threads are not ours to stop */
    pause_client(mem, of(c), paused != 0);
    return 0;
}

int divvy_testing_crash_client(divvy_testing_ensemble *mem, divvy_client *c) {
    if (!mem || !c) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    pause_client(mem, of(c), false);
    dv_mem_client_crash(of(c));
    return leave(mem, 0);
}

int divvy_testing_drift_client(divvy_testing_ensemble *mem, divvy_client *c, int parts_per_million) {
    if (!mem || !c || parts_per_million <= -1000000) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_client *client = of(c);
    dv_mem_client_set_clock(client, dv_mem_client_now(client), parts_per_million);
    client->turn_at = 0;
    return leave(mem, 0);
}

int divvy_testing_refuse_auth(divvy_testing_ensemble *mem, divvy_client *c, int refuse) {
    if (!mem || !c) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    of(c)->refuse_auth = refuse != 0;
    return leave(mem, 0);
}

/* ---- servers ---- */

static dv_mem_server *server_of(divvy_testing_ensemble *mem, unsigned server) {
    return mem && server < (unsigned)mem->server_count ? &mem->servers[server] : NULL;
}

int divvy_testing_kill_server(divvy_testing_ensemble *mem, unsigned server) {
    if (!server_of(mem, server)) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_server_kill(&mem->servers[server]);
    return leave(mem, 0);
}

int divvy_testing_start_server(divvy_testing_ensemble *mem, unsigned server) {
    if (!server_of(mem, server)) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_server_start(&mem->servers[server]);
    return leave(mem, 0);
}

int divvy_testing_pause_server(divvy_testing_ensemble *mem, unsigned server, int paused) {
    if (!server_of(mem, server)) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_server_pause(&mem->servers[server], paused != 0);
    return leave(mem, 0);
}

int divvy_testing_lag_server(divvy_testing_ensemble *mem, unsigned server, int64_t ms) {
    if (!server_of(mem, server) || ms < 0 || ms > DV_TIME_MAX_MS) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    mem->servers[server].lag_ms = ms;
    return leave(mem, 0);
}

int divvy_testing_set_wall_clock(divvy_testing_ensemble *mem, unsigned server, int64_t offset_ms) {
    if (!server_of(mem, server) || offset_ms < -DV_TIME_MAX_MS || offset_ms > DV_TIME_MAX_MS) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    mem->servers[server].wall_clock_offset_ms = offset_ms;
    return leave(mem, 0);
}

static void cut_channels(dv_mem *mem, unsigned from, unsigned to) {
    dv_mem_server *a = &mem->servers[from], *b = &mem->servers[to];
    if (a->link && a->link->leader == b) dv_mem_channel_cut(&a->link->channel, 0);
    if (b->links[from]) dv_mem_channel_cut(&b->links[from]->channel, 0);
    if (b->link && b->link->leader == a) dv_mem_channel_cut(&b->link->channel, 1);
    if (a->links[to]) dv_mem_channel_cut(&a->links[to]->channel, 1);
}

static void set_link(dv_mem *mem, unsigned a, unsigned b, divvy_testing_link link) {
    mem->cut[a][b] = link == DIVVY_TESTING_LINK_DOWN || link == DIVVY_TESTING_LINK_NO_REQUESTS;
    mem->cut[b][a] = link == DIVVY_TESTING_LINK_DOWN || link == DIVVY_TESTING_LINK_NO_REPLIES;
    if (mem->cut[a][b]) cut_channels(mem, a, b);
    if (mem->cut[b][a]) cut_channels(mem, b, a);
}

int divvy_testing_link_servers(divvy_testing_ensemble *mem, unsigned a, unsigned b, divvy_testing_link link) {
    if (!server_of(mem, a) || !server_of(mem, b) || a == b) return DIVVY_EINVAL;
    if (link < DIVVY_TESTING_LINK_UP || link > DIVVY_TESTING_LINK_NO_REPLIES) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    DV_MEM_TRACE(mem, "servers %u and %u: link state %d", a, b, (int)link);
    set_link(mem, a, b, link);
    return leave(mem, 0);
}

int divvy_testing_heal(divvy_testing_ensemble *mem) {
    if (!mem) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    memset(mem->cut, 0, sizeof mem->cut);
    for (int i = 0; i < mem->server_count; i++) {
        mem->servers[i].lag_ms = 0;
        dv_mem_server_pause(&mem->servers[i], false);
        dv_mem_server_start(&mem->servers[i]);
    }
    for (dv_mem_client *client = mem->clients; client; client = client->next) {
        client->wire = DIVVY_TESTING_LINK_UP;
        pause_client(mem, client, false);
    }
    return leave(mem, 0);
}

/* ---- as an administrator ---- */

static int ask_leader(dv_mem *mem, dv_kind kind, const char *path, const void *data, size_t data_bytes,
                      bool container) {
    dv_mem_server *leader = dv_mem_leader_now(mem);
    if (!leader || leader->paused) return DIVVY_ESTATE;
    dv_mem_op op = {.kind = kind,
                    .version = -1,
                    .container = container,
                    .path = dv_mem_path_get(mem, path, strlen(path)),
                    .data = dv_mem_blob_new(data, data_bytes)};
    return dv_mem_administer(leader, op);
}

static int put(dv_mem *mem, const char *path, const void *data, size_t data_bytes, bool container) {
    int error = ask_leader(mem, DV_CREATE, path, data, data_bytes, container);
    return error == DIVVY_EEXIST ? ask_leader(mem, DV_SET, path, data, data_bytes, false) : error;
}

int divvy_testing_put(divvy_testing_ensemble *mem, const char *path, const void *data, size_t data_bytes,
                      divvy_testing_kind kind) {
    if (!mem || !path || dv_path_check(path, NULL) != 0 || (data_bytes && !data)) return DIVVY_EINVAL;
    bool container = kind == DIVVY_TESTING_CONTAINER;
    dv_mem_lock(mem);
    int error = put(mem, path, data, data_bytes, container);
    return leave(mem, error);
}

int divvy_testing_remove(divvy_testing_ensemble *mem, const char *path) {
    if (!mem || !path || dv_path_check(path, NULL) != 0) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    int error = ask_leader(mem, DV_DELETE, path, NULL, 0, false);
    return leave(mem, error);
}

int divvy_testing_set_sequence(divvy_testing_ensemble *mem, const char *path, int32_t next) {
    if (!mem || !path) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_path *p = dv_mem_path_find(mem, path);
    bool found = p && p->places[mem->truth_server].node;
    for (int i = 0; found && i < mem->server_count; i++) found = p->places[i].node || p->places[i].change;
    for (int i = 0; found && i < mem->server_count; i++) {
        if (p->places[i].node) p->places[i].node->cversion = next;
        dv_mem_changes_set_sequence(p->places[i].change, next);
    }
    return leave(mem, found ? 0 : DIVVY_ENOENT);
}

/* ---- quotas and odd answers ---- */

static int put_limits(dv_mem *mem, const char *path, int64_t nodes) {
    size_t path_bytes = strlen(path), room = path_bytes + 64;
    char *at = dv_mem_alloc(room);
    char limits[96];
    snprintf(limits, sizeof limits, "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=%lld", (long long)nodes);
    put(mem, "/zookeeper/quota", "", 0, false);
    for (size_t n = 1; n <= path_bytes; n++) {
        if (path[n] && path[n] != '/') continue;
        snprintf(at, room, "/zookeeper/quota%.*s", (int)n, path);
        put(mem, at, "", 0, false);
    }
    strcat(at, "/zookeeper_limits");
    int error = put(mem, at, limits, strlen(limits), false);
    free(at);
    return error;
}

int divvy_testing_quota(divvy_testing_ensemble *mem, const char *path, int64_t nodes) {
    if (!mem || !path || dv_path_check(path, NULL) != 0 || path[1] == '\0' || nodes < -1) return DIVVY_EINVAL;
    char *copy = nodes < 0 ? NULL : dv_mem_alloc(strlen(path) + 1);
    if (copy) strcpy(copy, path);
    dv_mem_lock(mem);
    free(mem->quota_path);
    mem->quota_path = copy;
    mem->quota_nodes = nodes;
    int error = put_limits(mem, path, nodes);
    return leave(mem, error);
}

static bool can_answer(dv_answer_verdict verdict, int executed) {
    if (executed) return verdict == DV_VERDICT_MAYBE;
    return verdict == DV_VERDICT_NOT_DONE || verdict >= DV_VERDICT_AGAIN;
}

int divvy_testing_answer(divvy_testing_ensemble *mem, divvy_client *c, int code, int executed, unsigned skip,
                         unsigned count) {
    if (!mem || !c || !can_answer(dv_answer_of(code).verdict, executed)) return DIVVY_EINVAL;
    dv_mem_lock(mem);
    dv_mem_client *client = of(c);
    client->odd = (dv_mem_odd){.code = code, .executed = executed != 0, .skip = skip, .count = count};
    DV_MEM_TRACE(mem, "client %u: %u requests after %u are answered by %d%s", client->number, count, skip, code,
                 executed ? ", though carried out" : "");
    return leave(mem, 0);
}
