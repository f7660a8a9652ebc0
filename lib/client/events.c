/* Events and timers that wait for the loop, and what wakes it. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/threads.h"
#include "client/client.h"

/* Where a backend has a clock of its own nobody waits for the descriptor. */
static bool has_waiters(const divvy_client *client) {
    return !client->znode || !client->znode->backend->sleep;
}

void dv_client_wake(divvy_client *client) {
    if (!has_waiters(client)) return;
    uint64_t one = 1;
    while (write(client->wake_fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void dv_client_post(void *context, dv_event *event) {
    assert(event->run);
    divvy_client *client = context;
    event->next = NULL;
    dv_mutex_lock(&client->queue_mutex);
    bool was_empty = client->events == NULL;
    if (was_empty) client->events_end = &client->events;
    *client->events_end = event;
    client->events_end = &event->next;
    dv_mutex_unlock(&client->queue_mutex);
    if (was_empty) dv_client_wake(client);
}

dv_event *dv_events_take(divvy_client *client) {
    dv_mutex_lock(&client->queue_mutex);
    dv_event *event = client->events;
    if (event) client->events = event->next;
    dv_mutex_unlock(&client->queue_mutex);
    return event;
}

bool dv_events_any(divvy_client *client) {
    dv_mutex_lock(&client->queue_mutex);
    bool some = client->events != NULL;
    dv_mutex_unlock(&client->queue_mutex);
    return some;
}

void dv_client_clear_wake(divvy_client *client) {
    if (!has_waiters(client)) return;
    uint64_t count;
    while (read(client->wake_fd, &count, sizeof count) < 0 && errno == EINTR) continue;
}

void dv_client_wake_early(divvy_client *client) {
    bool early = dv_timers_next_at(&client->timers) < client->sleeping_until;
    bool due = client->config.manual && client->callbacks && !client->processing;
    if (early || due) dv_client_wake(client);
}
