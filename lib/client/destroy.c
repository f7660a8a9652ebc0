/* The end of what was made on a client: its last callbacks, and the destroy. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "base/container.h"
#include "client/client.h"

/* Waits until the ends of asynchronous calls were told. Unlocking wakes their thread or, once closed, runs them. */
static void wait_for_dones(dv_object *object) {
    divvy_client *client = object->client;
    while (object->dones_due && !dv_client_in_callback(client)) {
        dv_client_unlock(client);
        dv_client_lock(client);
        if (!object->dones_due) break;
        if (!client->config.manual || !dv_callback_run_one(client)) pthread_cond_wait(&client->changed, &client->lock);
        dv_client_close_as_asked(client); /* which tells all ends that are due */
    }
}

static void call_gone(dv_callback *callback) {
    const dv_object *object = DV_CONTAINER(callback, dv_object, gone_callback);
    object->farewell.gone(object->farewell.user);
}

static void release_gone(dv_callback *callback) {
    dv_object_unref(DV_CONTAINER(callback, dv_object, gone_callback));
}

/* Callbacks run one after the other: what runs now, and what is due, comes before it, and the rest no longer starts. */
static void queue_gone(dv_object *object, const dv_farewell *farewell) {
    if (!farewell->gone) return;
    object->farewell = *farewell;
    object->gone_callback = (dv_callback){.call = call_gone, .release = release_gone};
    dv_object_ref(object);
    dv_callback_queue(object->client, &object->gone_callback);
}

void dv_object_destroy(dv_object *object, const dv_farewell *farewell) {
    divvy_client *client = object->client;
    if (!farewell) wait_for_dones(object);
    assert(!object->destroyed);
    object->destroyed = true;
    bool waits = !farewell && !dv_client_in_callback(client);
    while (waits && client->in_callback && client->callback_object == object)
        pthread_cond_wait(&client->changed, &client->lock);
    if (farewell) queue_gone(object, farewell);
    dv_object_unref(object);
}

void dv_object_end(dv_object *object, void (*leave)(dv_object *object, bool waits), const dv_farewell *farewell) {
    divvy_client *client = object->client;
    dv_message said;
    if (!dv_client_enter_quietly(client)) return;
    dv_client_ref(client); /* The object's may be the last reference to it. */
    dv_message_begin(&said);
    leave(object, farewell == NULL);
    dv_object_destroy(object, farewell);
    dv_client_unlock(client);
    dv_message_end(&said);
    dv_client_unref(client);
}
