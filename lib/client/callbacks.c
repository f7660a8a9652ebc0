/* Calls to the user: one queue, one at a time, without the client lock. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"

void dv_object_init(dv_object *object, divvy_client *client, void (*release)(dv_object *object)) {
    *object = (dv_object){.client = client, .refs = 1, .release = release};
    dv_client_ref(client);
}

void dv_object_ref(dv_object *object) {
    assert(object->refs > 0);
    object->refs++;
}

void dv_object_unref(dv_object *object) {
    divvy_client *client = object->client;
    assert(object->refs > 0);
    if (--object->refs > 0) return;
    object->release(object);
    dv_client_unref(client);
}

void dv_object_hold(dv_object *object) {
    dv_client_ref(object->client);
    dv_object_ref(object);
}

void dv_object_let_go(dv_object *object) {
    divvy_client *client = object->client;
    dv_object_unref(object);
    dv_client_unlock(client);
    dv_client_unref(client);
}

void dv_object_tell_done(dv_object *object, dv_callback *call) {
    object->dones_due++;
    dv_object_ref(object);
    dv_callback_queue(object->client, call);
}

void dv_object_told_done(dv_object *object) {
    assert(object->dones_due > 0);
    object->dones_due--; /* A destroy that waits was woken when the call returned; it sees this with the lock. */
    dv_object_unref(object);
}

/* ---- the queue ---- */

void dv_callback_queue(divvy_client *client, dv_callback *call) {
    assert(call->call && call->release);
    call->next = NULL;
    if (call->object) dv_object_ref(call->object);
    if (!client->callbacks) client->callbacks_end = &client->callbacks;
    *client->callbacks_end = call;
    client->callbacks_end = &call->next;
}

static dv_callback *take(divvy_client *client) {
    dv_callback *call = client->callbacks;
    if (call) client->callbacks = call->next;
    return call;
}

static void drop(dv_callback *call) {
    dv_object *object = call->object;
    call->release(call);
    if (object) dv_object_unref(object);
}

/* Runs it without the client lock. What it says is not said to a call that the user is inside of. */
static void run(divvy_client *client, dv_callback *call) {
    dv_message said;
    client->in_callback = true;
    client->callback_caller = pthread_self();
    dv_client_unlock(client);
    dv_message_begin(&said);
    call->call(call);
    dv_message_end(&said);
    dv_client_lock(client);
    assert(client->in_callback);
    client->in_callback = false;
}

bool dv_callback_run_one(divvy_client *client) {
    if (client->in_callback) return false; /* Another thread runs one; they are serialised. */
    dv_callback *call = take(client);
    if (!call) return false;
    bool is_vain = call->asks && client->life == DV_CLIENT_CLOSED;
    if (!is_vain && !(call->object && call->object->destroyed)) {
        if (call->starting) call->starting(call);
        client->callback_object = call->object;
        run(client, call);
        assert(client->callback_object == call->object);
        client->callback_object = NULL;
        dv_client_changed(client);
        pthread_cond_broadcast(&client->changed);
    }
    drop(call);
    return true;
}

void dv_callback_run_all(divvy_client *client) {
    assert(client->life == DV_CLIENT_CLOSED && !dv_client_in_callback(client));
    while (client->callbacks || client->in_callback) {
        if (!dv_callback_run_one(client)) pthread_cond_wait(&client->changed, &client->lock);
    }
}

/* ---- calls of the client itself ---- */

enum { TEXT_BYTES = 1100 };
enum { CALL_SESSION, CALL_WARNING, CALL_LOG };

typedef struct {
    dv_callback callback;
    divvy_client *client;
    int kind;
    int code; /* the state of the session; of a warning; the level of a line */
    char message[TEXT_BYTES];
} client_call;

static void call_user(dv_callback *callback) {
    client_call *c = (client_call *)(void *)callback;
    const divvy_client_config *config = &c->client->config;
    switch (c->kind) {
    case CALL_SESSION: config->on_session(c->client, (divvy_session_state)c->code, config->user); break;
    case CALL_WARNING: config->on_warning(c->client, c->code, c->message, config->user); break;
    default: config->on_log(c->code, c->message, config->user);
    }
}

static void release_call(dv_callback *callback) {
    free(callback);
}

/* Tells of dropped lines once half of those that waited were told: earlier, a fast log would consist of such lines. */
static void release_log(dv_callback *callback) {
    client_call *c = (client_call *)(void *)callback;
    divvy_client *client = c->client;
    assert(client->log_lines > 0);
    client->log_lines--;
    free(callback);
    if (client->log_lines_dropped == 0 || client->log_lines > DV_LOG_LINES_MAX / 2) return;
    unsigned long long dropped = client->log_lines_dropped;
    client->log_lines_dropped = 0;
    dv_client_log(client, DIVVY_LOG_WARN, "%llu log lines were dropped while a callback did not return", dropped);
}

/* Returns the call, queued, its text still to be written. NULL: a line that is lost without memory harms nobody. */
static client_call *queue_call(divvy_client *client, int kind, int code) {
    client_call *c = malloc(sizeof *c);
    if (!c) return NULL;
    c->callback = (dv_callback){.call = call_user, .release = release_call};
    c->client = client;
    c->kind = kind;
    c->code = code;
    dv_callback_queue(client, &c->callback);
    return c;
}

/* Lines wait for a callback that does not return, up to a bound; then they are counted, until half of it is free. */
static client_call *queue_log(divvy_client *client, int level) {
    if (client->log_lines == DV_LOG_LINES_MAX || client->log_lines_dropped > 0) {
        client->log_lines_dropped++;
        return NULL;
    }
    client_call *c = queue_call(client, CALL_LOG, level);
    if (!c) return NULL;
    c->callback.release = release_log;
    client->log_lines++;
    return c;
}

void dv_client_warn(divvy_client *client, int code, const char *format, ...) {
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    client_call *c = client->config.on_warning ? queue_call(client, CALL_WARNING, code) : NULL;
    if (c) strcpy(c->message, text);
    if (!client->config.on_warning)
        dv_client_log(client, DIVVY_LOG_WARN, "warning %s: %s", divvy_warning_name(code), text);
}

void dv_client_log(divvy_client *client, int level, const char *format, ...) {
    client_call *c = client->config.on_log ? queue_log(client, level) : NULL;
    if (!c) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(c->message, sizeof c->message, format, arguments);
    va_end(arguments);
}

void dv_client_tell_session(divvy_client *client) {
    if (client->config.on_session) queue_call(client, CALL_SESSION, (int)client->state);
}
