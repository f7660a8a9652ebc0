/* Saying what went wrong. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ERROR_H
#define DV_ERROR_H

#include "divvy/client.h"

enum { DV_MESSAGE_BYTES = 512 };

/* A frame of a thread's messages. What is said inside it is forgotten with it, and what was said before stands again:
 * around each callback, the loop, and each public call that returns no error. */
typedef struct dv_message {
    struct dv_message *outer;
    const divvy_client *client;
    char message[DV_MESSAGE_BYTES];
} dv_message;

void dv_message_begin(dv_message *frame);
void dv_message_end(dv_message *frame);

/* Keeps a message for this thread's divvy_client_error(), and gives `error`: a macro, so that tools see which it is. */
#define dv_fail(client, error, ...) (dv_fail_text((client), __VA_ARGS__), dv_failed(error))
static inline int dv_failed(int error) { /* A function's value may be left unused, an operand's not. */
    return error;
}
void dv_fail_text(const divvy_client *client, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Keeps the error's own text. */
static inline int dv_fail_plainly(const divvy_client *client, int error) {
    return error < 0 ? dv_fail(client, error, "%s", divvy_strerror(error)) : error;
}

#endif
