/* Lock: who contends, in the order of the queue. SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"
#include "recipe/listing.h"
#include "recipe/lock.h"

/* K8: a directory that is not there has nobody in it. */
static const dv_listing_kind contenders = {.choose = dv_queue_contenders, .may_be_missing = true};

typedef struct {
    divvy_lock *lock;
    divvy_strings **out;
} question;

static int ask(void *context, dv_deadline deadline) {
    const question *q = context;
    divvy_client *client = q->lock->acquisition.object.client;
    return dv_listing_ask(client, q->lock->directory, &contenders, deadline, q->out);
}

static int list_contenders(divvy_lock *lock, int64_t timeout_ms, divvy_strings **out) {
    divvy_client *client = lock->acquisition.object.client;
    question q = {lock, out};
    return dv_request_until_answered(client, dv_deadline_in(client, timeout_ms), ask, &q);
}

int divvy_lock_contenders(divvy_lock *lock, divvy_strings **out, int64_t timeout_ms) {
    if (out) *out = NULL;
    int error = dv_lock_enter(lock);
    if (error) return error;
    divvy_client *client = lock->acquisition.object.client;
    dv_client_ref(client);
    dv_object_ref(&lock->acquisition.object);
    if (!out || timeout_ms < -1) error = DIVVY_EINVAL;
    else error = dv_client_in_callback(client) ? DIVVY_EDEADLK : list_contenders(lock, timeout_ms, out);
    if (error) dv_fail(client, error, "lock contenders: %s: %s", lock->directory, divvy_strerror(error));
    dv_object_unref(&lock->acquisition.object);
    dv_client_unlock(client);
    dv_client_unref(client);
    return error;
}
