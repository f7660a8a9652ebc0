/* Lock: who contends, in the order of the queue. SPDX-License-Identifier: Apache-2.0 */
#include "base/config.h"
#include "recipe/listing.h"
#include "recipe/lock.h"

/* K8: a directory that is not there has nobody in it. */
static const dv_listing_kind contenders = {.choose = dv_queue_contenders, .may_be_missing = true};

static bool can_ask(void *context) {
    const divvy_client *client = ((const divvy_lock *)context)->acquisition.object.client;
    return dv_client_connected(client) || dv_client_end_error(client);
}

static int list_contenders(divvy_lock *lock, int64_t timeout_ms, divvy_strings **out) {
    divvy_client *client = lock->acquisition.object.client;
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    int64_t deadline = timeout_ms < 0 ? 0 : dv_client_now(client) + timeout_ms;
    int error;
    do { /* A connection or a session that went away in between is waited for again, within the same time. */
        error = dv_client_wait(client, timeout_ms, can_ask, lock);
        if (!error) error = dv_client_end_error(client);
        if (!error) error = dv_listing_ask(client, lock->directory, &contenders, timeout_ms, out);
        int64_t left_ms = deadline - dv_client_now(client);
        if (timeout_ms >= 0) timeout_ms = left_ms > 0 ? left_ms : 0;
        if (error == DIVVY_ELOST && !dv_client_end_error(client)) error = DIVVY_ECONNECTION;
    } while (error == DIVVY_ECONNECTION && timeout_ms != 0);
    return error == DIVVY_ECONNECTION ? DIVVY_ETIMEDOUT : error;
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
