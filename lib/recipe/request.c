/* Ask: requests that a waiting call waits for, one after the other. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

dv_deadline dv_deadline_in(const divvy_client *client, int64_t timeout_ms) {
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    return (dv_deadline){timeout_ms < 0 ? INT64_MAX : dv_client_now(client) + timeout_ms};
}

int64_t dv_deadline_left_ms(const divvy_client *client, dv_deadline deadline) {
    if (deadline.at == INT64_MAX) return -1;
    int64_t left_ms = deadline.at - dv_client_now(client);
    return left_ms > 0 ? left_ms : 0;
}

void dv_request_drop(dv_request *a) {
    assert(!a || a->refs > 0);
    if (!a || --a->refs) return;
    for (size_t i = 0; i < a->name_count; i++) free(a->names[i]);
    free(a->names);
    free(a->data);
    free(a->path);
    free(a->sent);
    free(a);
}

static bool keep_names(dv_request *a, const dv_reply *reply) {
    a->names = calloc(reply->child_count + 1, sizeof *a->names);
    while (a->names && a->name_count < reply->child_count) {
        a->names[a->name_count] = strdup(reply->children[a->name_count]);
        if (!a->names[a->name_count]) return false;
        a->name_count++;
    }
    return a->names;
}

static bool keep_data(dv_request *a, const dv_reply *reply) {
    a->data = calloc(reply->data_bytes + 1, 1);
    if (!a->data) return false;
    if (reply->data_bytes) memcpy(a->data, reply->data, reply->data_bytes);
    a->data_bytes = reply->data_bytes;
    return true;
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    dv_request *a = context;
    assert(!a->done);
    a->done = true;
    a->error = reply->error;
    if (reply->error == 0 && reply->stat) a->stat = *reply->stat;
    if (reply->error == 0 && (!keep_names(a, reply) || !keep_data(a, reply))) a->error = DIVVY_ENOMEM;
    dv_client_changed(a->client);
    dv_request_drop(a);
}

dv_request *dv_request_send(divvy_client *client, const dv_op *op) {
    dv_request *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->refs = 2;
    a->client = client;
    a->path = strdup(op->path);
    a->sent = calloc(op->data_bytes + 1, 1);
    if (a->sent && op->data_bytes) memcpy(a->sent, op->data, op->data_bytes);
    dv_op copy = *op;
    copy.path = a->path;
    copy.data = a->sent;
    if (a->path && a->sent && dv_znode_submit(client->znode, &copy, NULL, on_reply, a) == 0) return a;
    a->refs = 1;
    dv_request_drop(a);
    return NULL;
}

static bool is_done(void *context) {
    return ((const dv_request *)context)->done;
}

int dv_request_wait(dv_request *a, dv_deadline deadline) {
    if (!a) return DIVVY_ENOMEM;
    int error = dv_client_wait(a->client, dv_deadline_left_ms(a->client, deadline), is_done, a);
    return error ? error : a->error;
}

static bool can_ask(void *context) {
    const divvy_client *client = context;
    return dv_client_connected(client) || dv_client_end_error(client);
}

int dv_request_until_answered(divvy_client *client, dv_deadline deadline,
                              int (*ask)(void *context, dv_deadline deadline), void *context) {
    int error;
    do {
        error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), can_ask, client);
        if (!error) error = dv_client_end_error(client);
        if (!error) error = ask(context, deadline);
        if (error == DIVVY_ELOST && !dv_client_end_error(client))
            error = DIVVY_ECONNECTION; /* There will be another. */
    } while ((error == DIVVY_ECONNECTION || error == DIVVY_EQUOTA) && dv_deadline_left_ms(client, deadline) != 0);
    return error == DIVVY_ECONNECTION ? DIVVY_ETIMEDOUT : error;
}
