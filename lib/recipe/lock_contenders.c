/* Lock: who contends, in the order of the queue. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "recipe/lock.h"
#include "znode/path.h"

enum { READS_MAX = 64 }; /* under way at a time */

/* A list under way; it outlives the call that asked for it when that runs out of time. */
typedef struct {
    divvy_lock *lock;
    unsigned refs;
    bool done, abandoned;
    int error;
    char **paths;       /* of those that contend, in queue order */
    char **identifiers; /* what each goes by; NULL: gone meanwhile */
    size_t count, asked, answered;
} queue_listing;

typedef struct {
    queue_listing *list;
    size_t index;
} contender_read;

static void unref_listing(queue_listing *l) {
    if (--l->refs) return;
    for (size_t i = 0; i < l->count; i++) {
        free(l->paths[i]);
        free(l->identifiers[i]);
    }
    free(l->paths);
    free(l->identifiers);
    dv_object_unref(&l->lock->acquisition.object);
    free(l);
}

static void end_listing(queue_listing *l, int error) {
    l->error = error;
    l->done = true;
    dv_client_changed(l->lock->acquisition.object.client);
}

static void read_more(queue_listing *l);

static void on_data(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    contender_read *k = context;
    queue_listing *l = k->list;
    l->answered++;
    if (reply->error == 0) {
        const char *data = reply->data ? reply->data : "";
        l->identifiers[k->index] = strndup(data, reply->data_bytes);
        if (!l->identifiers[k->index]) l->error = DIVVY_ENOMEM;
    } else if (reply->error != DIVVY_ENOENT) {
        l->error = reply->error;
    }
    free(k);
    read_more(l);
    unref_listing(l);
}

static void read_more(queue_listing *l) {
    while (!l->error && !l->abandoned && l->asked < l->count && l->asked - l->answered < READS_MAX) {
        contender_read *k = calloc(1, sizeof *k);
        if (k) *k = (contender_read){l, l->asked};
        if (!k || dv_znode_get(l->lock->acquisition.object.client->znode, l->paths[l->asked], NULL, on_data, k) != 0) {
            free(k);
            l->error = DIVVY_ENOMEM;
            break;
        }
        l->asked++;
        l->refs++;
    }
    if (!l->done && l->asked == l->answered) end_listing(l, l->error);
}

static int take_names(queue_listing *l, const dv_reply *reply) {
    const char **names = calloc(reply->child_count + 1, sizeof *names);
    if (!names) return DIVVY_ENOMEM;
    size_t count = dv_queue_contenders(reply->children, reply->child_count, names);
    l->paths = calloc(count + 1, sizeof *l->paths);
    l->identifiers = calloc(count + 1, sizeof *l->identifiers);
    int error = l->paths && l->identifiers ? 0 : DIVVY_ENOMEM;
    while (!error && l->count < count) {
        l->paths[l->count] = dv_path_join(l->lock->directory, names[l->count]);
        if (!l->paths[l->count]) error = DIVVY_ENOMEM;
        else l->count++;
    }
    free(names);
    return error;
}

/* K8: a directory that is not there has nobody in it. */
static void on_children(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    queue_listing *l = context;
    if (reply->error == 0) l->error = take_names(l, reply);
    else if (reply->error != DIVVY_ENOENT) l->error = reply->error;
    read_more(l);
    unref_listing(l);
}

static bool is_done(void *context) {
    return ((const queue_listing *)context)->done;
}

static bool can_ask(void *context) {
    const divvy_client *client = ((const divvy_lock *)context)->acquisition.object.client;
    return dv_client_connected(client) || dv_client_end_error(client);
}

static int hand_over(const queue_listing *l, divvy_strings **out) {
    divvy_strings *strings = dv_strings_new();
    int error = strings ? 0 : DIVVY_ENOMEM;
    for (size_t i = 0; i < l->count && !error; i++) {
        if (l->identifiers[i]) error = dv_strings_add(strings, l->identifiers[i]);
    }
    if (error) divvy_strings_free(strings);
    else *out = strings;
    return error;
}

static int ask(divvy_lock *lock, int64_t timeout_ms, divvy_strings **out) {
    divvy_client *client = lock->acquisition.object.client;
    queue_listing *l = calloc(1, sizeof *l);
    if (!l) return DIVVY_ENOMEM;
    l->lock = lock;
    l->refs = 1;
    dv_object_ref(&lock->acquisition.object);
    int error = dv_znode_children(client->znode, lock->directory, NULL, on_children, l);
    if (!error) {
        l->refs++;
        error = dv_client_wait(client, timeout_ms, is_done, l);
    }
    if (!error) error = l->error;
    if (!error) error = hand_over(l, out);
    l->abandoned = true;
    unref_listing(l);
    return error;
}

static int list_contenders(divvy_lock *lock, int64_t timeout_ms, divvy_strings **out) {
    divvy_client *client = lock->acquisition.object.client;
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    int64_t deadline = timeout_ms < 0 ? 0 : dv_client_now(client) + timeout_ms;
    int error;
    do { /* A connection or a session that went away in between is waited for anew, within the same time. */
        error = dv_client_wait(client, timeout_ms, can_ask, lock);
        if (!error) error = dv_client_end_error(client);
        if (!error) error = ask(lock, timeout_ms, out);
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
    dv_turn_end(client);
    dv_client_unref(client);
    return error;
}
