/* Lock: who contends, in the order of the queue. SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"
#include "recipe/listing.h"
#include "recipe/lock.h"

typedef struct {
    divvy_lock *lock;
    const dv_listing_kind *kind;
    divvy_strings **out;
} question;

static int ask(void *context, dv_deadline deadline) {
    const question *q = context;
    divvy_client *client = q->lock->acquisition.object.client;
    return dv_listing_ask(client, q->lock->directory, q->kind, deadline, q->out);
}

static int list_contenders(question *q, int64_t timeout_ms) {
    divvy_client *client = q->lock->acquisition.object.client;
    return dv_request_until_answered(client, dv_deadline_in(client, timeout_ms), ask, q);
}

int dv_lock_list(divvy_lock *lock, const dv_listing_kind *kind, divvy_strings **out, int64_t timeout_ms) {
    question q = {lock, kind, out};
    divvy_client *client = lock->acquisition.object.client;
    int error;
    dv_client_ref(client);
    dv_object_ref(&lock->acquisition.object);
    if (!out || timeout_ms < -1) error = DIVVY_EINVAL;
    else error = dv_client_in_callback(client) ? DIVVY_EDEADLK : list_contenders(&q, timeout_ms);
    if (error)
        dv_fail(client, error, "%s contenders: %s: %s", lock->acquisition.kind->name, lock->directory,
                dv_client_why(client, error));
    dv_object_unref(&lock->acquisition.object);
    dv_client_unlock(client);
    dv_client_unref(client);
    return error;
}

int divvy_lock_contenders(divvy_lock *lock, divvy_strings **out, int64_t timeout_ms) {
    /* A directory that is not there has nobody in it. */
    static const dv_listing_kind contenders = {.choose = dv_queue_contenders, .may_be_missing = true};
    if (out) *out = NULL;
    int error = dv_lock_enter(lock);
    return error ? error : dv_lock_list(lock, &contenders, out, timeout_ms);
}
