/* The leader ends sessions silent for their timeout, to the end of a tick. SPDX-License-Identifier: Apache-2.0 */
#include "testing/ensemble.h"

/* ZooKeeper's ExpiryQueue: always up, to the next bucket. */
static int64_t round_up(const dv_mem *mem, int64_t at) {
    int64_t tick_ms = mem->config.tick_ms;
    return (at / tick_ms + 1) * tick_ms;
}

static bool on_bucket(dv_mem *mem, dv_mem_event *event) {
    dv_mem_server *leader = event->server;
    dv_mem_session *session = event->session;
    dv_mem_seat *seat = &session->seats[leader->id];
    if (!seat->tracked || seat->closing) return false;
    if (seat->expires_at > mem->now) {
        dv_mem_server_timer(mem, leader, seat->expires_at, on_bucket)->session = session;
        return false;
    }
    DV_MEM_TRACE(mem, "server %d: session 0x%llx expires", leader->id, (unsigned long long)session->id);
    dv_mem_expire(leader, session);
    return true;
}

void dv_mem_track(dv_mem_server *leader, dv_mem_session *session) {
    dv_mem_seat *seat = &session->seats[leader->id];
    if (seat->tracked) return;
    seat->tracked = true;
    seat->closing = false;
    seat->owner = -1;
    seat->expires_at = round_up(leader->mem, leader->mem->now + session->timeout_ms);
    dv_mem_server_timer(leader->mem, leader, seat->expires_at, on_bucket)->session = session;
}

void dv_mem_track_touch(dv_mem_server *leader, dv_mem_session *session) {
    dv_mem_seat *seat = &session->seats[leader->id];
    if (!seat->tracked || seat->closing) return;
    seat->expires_at = round_up(leader->mem, leader->mem->now + session->timeout_ms);
}

bool dv_mem_track_lives(const dv_mem_server *leader, const dv_mem_session *session) {
    const dv_mem_seat *seat = &session->seats[leader->id];
    return seat->tracked && !seat->closing;
}

void dv_mem_expire(dv_mem_server *leader, dv_mem_session *session) {
    if (!dv_mem_track_lives(leader, session)) return;
    dv_mem_txn *txn = dv_mem_prepare_close(leader, session, NULL);
    txn->expired = true;
    dv_mem_propose(leader, txn);
}

void dv_mem_touch(dv_mem_server *server, dv_mem_session *session) {
    if (server->role == DV_MEM_LEADING) {
        dv_mem_track_touch(server, session);
        return;
    }
    dv_mem_seat *seat = &session->seats[server->id];
    if (seat->touched) return;
    seat->touched = true;
    seat->touched_next = server->touched;
    server->touched = session;
}
