/* The client lock. SPDX-License-Identifier: Apache-2.0 */
#include "base/threads.h"
#include "client/client.h"

bool dv_client_in_callback(const divvy_client *client) {
    return client->in_callback && pthread_equal(client->callback_caller, pthread_self());
}

void dv_client_lock(divvy_client *client) {
    dv_mutex_lock(&client->lock);
}

void dv_client_unlock(divvy_client *client) {
    if (client->room_freed) {
        client->room_freed = client->room_requested = false;
        dv_tell_listeners(client, DV_SESSION_ROOM, dv_client_now(client));
    }
    if (client->znode) dv_batch_flush(client->znode);
    if (client->something_changed) {
        client->something_changed = false;
        pthread_cond_broadcast(&client->changed);
        if (client->processing && !client->in_process) dv_client_wake(client); /* a waiting call drives the loop */
    }
    /* No other thread runs callbacks of a closed client: the last ones of its objects run right here. */
    if (client->life == DV_CLIENT_CLOSED && client->callbacks && !client->in_callback) dv_callback_run_all(client);
    if (client->callbacks) pthread_cond_signal(&client->callback_ready);
    dv_client_wake_early(client);
    bool release = client->release_after_unlock;
    client->release_after_unlock = false;
    dv_mutex_unlock(&client->lock);
    if (release) dv_client_unref(client);
}

int dv_client_enter(divvy_client *client) {
    if (!client) return dv_fail(NULL, DIVVY_EINVAL, "the object is NULL");
    if (dv_client_forked(client)) {
        return dv_fail(client, DIVVY_EFORK,
                       "this client was opened before a fork and belongs to the parent; open another one here");
    }
    dv_client_lock(client);
    return 0;
}

bool dv_client_enter_quietly(divvy_client *client) {
    if (!client || dv_client_forked(client)) return false;
    dv_client_lock(client);
    return true;
}
