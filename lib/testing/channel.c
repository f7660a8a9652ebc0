/* One TCP connection: order is kept, and after a loss nothing more passes. SPDX-License-Identifier: Apache-2.0 */
#include "testing/ensemble.h"

void dv_mem_channel_send(dv_mem *mem, dv_mem_channel *channel, int direction, bool cut, int64_t delay_ms,
                         dv_mem_event *event) {
    if (cut) channel->broken[direction] = true;
    if (channel->broken[direction]) {
        dv_mem_event_free(mem, event);
        return;
    }
    int64_t at = mem->now + delay_ms;
    if (at < channel->last_at[direction]) at = channel->last_at[direction];
    channel->last_at[direction] = at;
    channel->under_way[direction]++;
    event->channel = channel;
    event->direction = direction;
    dv_mem_event_push(mem, event, at);
}

void dv_mem_channel_cut(dv_mem_channel *channel, int direction) {
    if (channel->under_way[direction]) channel->broken[direction] = true;
}
