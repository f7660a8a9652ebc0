/* The barrier: docs/protocol.md, rule R1. SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

static void append_waits(dv_barrier_wait **list, dv_barrier_wait *waits) {
    while (*list) list = &(*list)->next;
    *list = waits;
}

static void tell(dv_barrier_wait *waits, int error, int64_t now) {
    while (waits) {
        dv_barrier_wait *wait = waits;
        waits = wait->next;
        wait->done(wait, error, now);
    }
}

static void on_barrier(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies;
    (void)count;
    divvy_client *client = context;
    dv_barrier_wait *waits = client->barrier_under_way;
    client->barrier_under_way = NULL;
    if (dv_outcome_unknown(error)) {
        append_waits(&client->barrier_waits, waits); /* Again on the next connection, or at once if this one is up. */
    } else {
        /* Any answer of a server will do: a refused write was put through the quorum like an accepted one. */
        tell(waits, dv_session_over(error) ? error : 0, now);
    }
    dv_barrier_start(client);
}

void dv_barrier_start(divvy_client *client) {
    if (!client->barrier_waits || client->barrier_under_way || !dv_client_can_delete(client)) return;
    dv_op op = {.kind = DV_CHECK, .path = "/", .version = -1};
    if (dv_znode_multi(client->znode, &op, 1, on_barrier, client) != 0) {
        dv_client_again(client);
        return;
    }
    client->barrier_under_way = client->barrier_waits;
    client->barrier_waits = NULL;
}

void dv_client_barrier(divvy_client *client, dv_barrier_wait *wait,
                       void (*done)(dv_barrier_wait *wait, int error, int64_t now)) {
    *wait = (dv_barrier_wait){.done = done};
    append_waits(&client->barrier_waits, wait);
    dv_barrier_start(client);
}

void dv_session_give_up_barriers(divvy_client *client, int error, int64_t now) {
    dv_barrier_wait *waits = client->barrier_waits;
    client->barrier_waits = NULL;
    tell(waits, error, now);
}
