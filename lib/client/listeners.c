/* Listeners: whom a client tells of its session. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "client/client.h"

void dv_listen(divvy_client *client, dv_listener *listener) {
    assert(!listener->link);
    listener->next = NULL;
    listener->link = client->listeners_end;
    *client->listeners_end = listener;
    client->listeners_end = &listener->next;
}

void dv_unlisten(divvy_client *client, dv_listener *listener) {
    if (!listener->link) return;
    assert(client->listeners);
    if (client->next_listener == listener) client->next_listener = listener->next;
    *listener->link = listener->next;
    if (listener->next) listener->next->link = listener->link;
    else client->listeners_end = listener->link;
    listener->link = NULL;
}

void dv_tell_listeners(divvy_client *client, dv_session_event event, int64_t now) {
    /* A listener may go, or others may come, while it is told. Telling is never nested. */
    assert(!client->next_listener);
    for (dv_listener *l = client->listeners; l; l = client->next_listener) {
        client->next_listener = l->next;
        l->hear(l, event, now);
    }
    client->next_listener = NULL;
}

void dv_client_again(divvy_client *client) {
    enum { AGAIN_MS = 50 };
    if (!client->again_timer.link) dv_timer_set(client, &client->again_timer, dv_client_now(client) + AGAIN_MS);
}
