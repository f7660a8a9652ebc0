/* A follower: catches up with its leader, logs, applies, reports sessions. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "testing/ensemble.h"

/* Without a word from the leader for syncLimit ticks it is taken as gone. Until then clients are served. */
static bool on_silence(dv_mem *mem, dv_mem_event *event) {
    dv_mem_server *follower = event->server;
    dv_mem_link *link = event->link;
    assert(follower->link == link);
    int64_t until = link->heard_at[0] + mem->config.sync_limit_ticks * mem->config.tick_ms;
    if (mem->now < until) {
        dv_mem_server_timer(mem, follower, until, on_silence)->link = dv_mem_link_ref(link);
        return false;
    }
    DV_MEM_TRACE(mem, "server %d: hears nothing of its leader %d", follower->id, link->leader->id);
    dv_mem_look(follower);
    return true;
}

void dv_mem_follow(dv_mem_server *follower, dv_mem_server *leader) {
    dv_mem *mem = follower->mem;
    assert(!follower->link && follower->role == DV_MEM_LOOKING);
    follower->term++;
    follower->role = DV_MEM_FOLLOWING;
    follower->link = dv_mem_link_new(follower, leader);
    if (follower->accepted < leader->epoch) follower->accepted = leader->epoch;
    DV_MEM_TRACE(mem, "server %d: joins leader %d", follower->id, leader->id);
    dv_mem_link_tell(follower->link, 0, DV_MEM_JOIN, follower->applied);
    int64_t until = mem->now + mem->config.sync_limit_ticks * mem->config.tick_ms;
    dv_mem_server_timer(mem, follower, until, on_silence)->link = dv_mem_link_ref(follower->link);
}

/* Takes the leader's log. Transactions that were logged and never committed go, unless the leader has them too. */
static void take_log(dv_mem_server *follower, const dv_mem_event *sync) {
    dv_mem_log_truncate(follower);
    for (size_t i = 0; i < sync->count; i++) dv_mem_log_append(follower, sync->list[i]);
    follower->epoch = sync->link->epoch;
    dv_mem_link_tell(follower->link, 0, DV_MEM_ACK, follower->logged);
}

/* A follower tells of its clients only when it is asked, so a session is as old at the leader as this is rare. */
static void ship_touches(dv_mem_server *follower) {
    size_t count = 0;
    for (dv_mem_session *s = follower->touched; s; s = s->seats[follower->id].touched_next) count++;
    dv_mem_event *touches = dv_mem_link_message(follower->link, 0, DV_MEM_TOUCHES);
    if (count) touches->list = dv_mem_alloc(count * sizeof(void *));
    while (follower->touched) {
        dv_mem_session *s = follower->touched;
        dv_mem_seat *seat = &s->seats[follower->id];
        follower->touched = seat->touched_next;
        seat->touched = false;
        touches->list[touches->count++] = s;
    }
    dv_mem_link_send(touches);
}

void dv_mem_follower_hear(dv_mem_server *follower, dv_mem_event *message) {
    switch (message->kind) {
    case DV_MEM_SYNC: take_log(follower, message); break;
    case DV_MEM_UP_TO_DATE:
        dv_mem_apply_up_to(follower, message->index);
        follower->serving = true;
        DV_MEM_TRACE(follower->mem, "server %d: follows leader %d", follower->id, message->link->leader->id);
        break;
    case DV_MEM_PROPOSAL:
        dv_mem_log_append(follower, message->txn);
        dv_mem_link_tell(follower->link, 0, DV_MEM_ACK, follower->logged);
        break;
    case DV_MEM_COMMIT: dv_mem_apply_up_to(follower, message->index); break;
    case DV_MEM_PEER_PING: ship_touches(follower); break;
    case DV_MEM_VALIDATED: dv_mem_conn_validated(message->conn, message->index != 0); break;
    case DV_MEM_PEER_CLOSE: dv_mem_look(follower); break;
    default: assert(false); /* A follower was told what only leaders are. */
    }
}
