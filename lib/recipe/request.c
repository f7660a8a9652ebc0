/* Request: one answer that a waiting call waits for. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"
#include "znode/ensure.h"

dv_deadline dv_deadline_in(const divvy_client *client, int64_t timeout_ms) {
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    return (dv_deadline){timeout_ms < 0 ? INT64_MAX : dv_client_now(client) + timeout_ms};
}

int64_t dv_deadline_left_ms(const divvy_client *client, dv_deadline deadline) {
    if (deadline.at == INT64_MAX) return -1;
    int64_t left_ms = deadline.at - dv_client_now(client);
    return left_ms > 0 ? left_ms : 0;
}

void dv_request_drop(dv_request *r) {
    assert(!r || r->refs > 0);
    if (!r || --r->refs) return;
    free(r->names);
    free(r->data);
    free(r->path);
    free(r);
}

static int keep(dv_request *r, const dv_reply *reply) {
    if (reply->stat) r->stat = *reply->stat;
    r->names = dv_texts_copy(reply->children, reply->child_count);
    r->name_count = reply->child_count;
    r->data = calloc(reply->data_bytes + 1, 1);
    if (!r->names || !r->data) return DIVVY_ENOMEM;
    if (reply->data_bytes) memcpy(r->data, reply->data, reply->data_bytes);
    r->data_bytes = reply->data_bytes;
    return 0;
}

static void end(dv_request *r, int error) {
    assert(!r->done);
    r->done = true;
    r->error = error;
    dv_client_changed(r->client);
    dv_request_drop(r);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    end(context, reply->error ? reply->error : keep(context, reply));
}

dv_request *dv_request_send(divvy_client *client, const dv_op *op) {
    dv_request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (dv_request){.refs = 2, .client = client};
    if (dv_znode_submit(client->znode, op, NULL, on_reply, r) == 0) return r;
    free(r);
    return NULL;
}

static void on_made(void *context, int error, int64_t now) {
    (void)now;
    end(context, error);
}

dv_request *dv_request_make_path(divvy_client *client, const char *path, int mode) {
    dv_request *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (dv_request){.refs = 2, .client = client, .path = strdup(path)};
    if (r->path && dv_ensure_path(client->znode, r->path, mode, on_made, r) == 0) return r;
    free(r->path);
    free(r);
    return NULL;
}

static bool is_done(void *context) {
    return ((const dv_request *)context)->done;
}

int dv_request_wait(dv_request *r, dv_deadline deadline) {
    if (!r) return DIVVY_ENOMEM;
    int error = dv_client_wait(r->client, dv_deadline_left_ms(r->client, deadline), is_done, r);
    return error ? error : r->error;
}

static bool can_send(void *context) {
    const divvy_client *client = context;
    return dv_client_connected(client) || dv_client_end_error(client);
}

int dv_request_outlived(const divvy_client *client, int error) {
    return error == DIVVY_ELOST && !dv_client_end_error(client) ? DIVVY_ECONNECTION : error;
}

int dv_request_until_answered(divvy_client *client, dv_deadline deadline,
                              int (*send)(void *context, dv_deadline deadline), void *context) {
    int error;
    bool again;
    do {
        error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), can_send, client);
        if (!error) error = dv_client_end_error(client);
        if (!error) error = send(context, deadline);
        error = dv_request_outlived(client, error);
        again = error == DIVVY_ECONNECTION || error == DIVVY_EQUOTA;
    } while (again && dv_deadline_left_ms(client, deadline) != 0);
    return again ? DIVVY_ETIMEDOUT : error;
}
