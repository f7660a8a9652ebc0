/* Request: one answer that a waiting call waits for. SPDX-License-Identifier: Apache-2.0
 *
 * For calls that look, or change one node, and are done. With the client lock held; while one waits, others have it. */
#ifndef DV_REQUEST_H
#define DV_REQUEST_H

#include "client/client.h"

typedef struct {
    int64_t at; /* INT64_MAX: for ever */
} dv_deadline;

typedef struct {
    unsigned refs;
    divvy_client *client;
    bool done;
    int error;
    dv_stat stat;
    char *data; /* with a NUL behind it */
    size_t data_bytes;
    char **names;
    size_t name_count;
    char *path; /* that is being made */
} dv_request;

dv_deadline dv_deadline_in(const divvy_client *client, int64_t timeout_ms);
int64_t dv_deadline_left_ms(const divvy_client *client, dv_deadline deadline); /* for dv_client_wait() */

/* Sends the request at once. Returns NULL when an allocation fails. To be dropped, answered or not. */
dv_request *dv_request_send(divvy_client *client, const dv_op *op);
/* The same for what dv_ensure_path() sends. */
dv_request *dv_request_make_path(divvy_client *client, const char *path, int mode);
void dv_request_drop(dv_request *request); /* or NULL */
/* Returns the answer's error, or that of the wait; DIVVY_ENOMEM for NULL. */
int dv_request_wait(dv_request *request, dv_deadline deadline);

/* Returns the error; DIVVY_ECONNECTION where it says that the session has ended, and the client opens the next one. */
int dv_request_outlived(const divvy_client *client, int error);
/* Calls `send` with a connection, again after a lost one, within the time. Returns its error, or that of the wait. */
int dv_request_until_answered(divvy_client *client, dv_deadline deadline,
                              int (*send)(void *context, dv_deadline deadline), void *context);

#endif
