/* The connection between a follower and its leader. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "testing/ensemble.h"

static dv_mem_server *side_of(const dv_mem_link *link, int side) {
    return side ? link->leader : link->follower;
}

dv_mem_link *dv_mem_link_new(dv_mem_server *follower, dv_mem_server *leader) {
    dv_mem_link *link = dv_mem_alloc(sizeof *link);
    link->refs = 1;
    link->follower = follower;
    link->leader = leader;
    link->epoch = leader->epoch;
    link->channel.open[0] = link->channel.open[1] = true;
    link->heard_at[0] = link->heard_at[1] = follower->mem->now;
    return link;
}

static void forget(dv_mem_link *link, int side) {
    dv_mem_link **place = side ? &link->leader->links[link->follower->id] : &link->follower->link;
    if (*place != link) return;
    *place = NULL;
    dv_mem_link_unref(link);
}

static bool on_message(dv_mem *mem, dv_mem_event *message) {
    (void)mem;
    dv_mem_link *link = message->link;
    int side = 1 - message->direction;
    dv_mem_server *server = side_of(link, side);
    if (!server->up) link->channel.open[side] = false;
    if (!link->channel.open[side]) { /* the other side has closed: the sender is told */
        if (message->kind != DV_MEM_PEER_CLOSE && link->channel.open[1 - side])
            dv_mem_link_tell(link, side, DV_MEM_PEER_CLOSE, 0);
        return false;
    }
    link->heard_at[side] = mem->now;
    if (side) link->heard_tick = server->half_ticks / 2;
    if (side) server->hear_follower(server, message);
    else server->hear_leader(server, message);
    return true;
}

dv_mem_event *dv_mem_link_message(dv_mem_link *link, int side, int kind) {
    dv_mem_event *message = dv_mem_event_new(link->leader->mem, on_message);
    message->kind = kind;
    message->link = dv_mem_link_ref(link);
    message->server = side_of(link, 1 - side);
    message->direction = side;
    return message;
}

void dv_mem_link_send(dv_mem_event *message) {
    dv_mem_link *link = message->link;
    dv_mem *mem = link->leader->mem;
    dv_mem_server *from = side_of(link, message->direction), *to = side_of(link, 1 - message->direction);
    int64_t delay_ms = dv_mem_between(mem, mem->config.server_delay_min_ms, mem->config.server_delay_max_ms);
    dv_mem_channel_send(mem, &link->channel, message->direction, mem->cut[from->id][to->id], delay_ms + to->lag_ms,
                        message);
}

void dv_mem_link_tell(dv_mem_link *link, int side, int kind, int64_t index) {
    dv_mem_event *message = dv_mem_link_message(link, side, kind);
    message->index = index;
    dv_mem_link_send(message);
}

void dv_mem_link_close(dv_mem_link *link, int side) {
    if (!link->channel.open[side]) return;
    link->channel.open[side] = false;
    if (link->channel.open[1 - side]) dv_mem_link_tell(link, side, DV_MEM_PEER_CLOSE, 0);
    forget(link, side);
}
