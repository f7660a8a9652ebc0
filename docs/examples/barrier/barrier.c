/* Barrier: N members wait for one another. SPDX-License-Identifier: Apache-2.0 */
#include "barrier.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "recipe/membership.h"
#include "recipe/patient_watch.h"
#include "znode/path.h"

static const char MEMBER[] = "-member"; /* ends the name of a member's node */
static const char READY[] = "ready";

typedef enum { ENTERING, OPEN, LEAVING, OVER } stage;

struct barrier {
    dv_object object; /* first */
    dv_membership *membership;
    dv_patient_watch *watch;
    char *directory, *ready_path;
    size_t members; /* so many open the barrier */
    stage stage;
    bool ended; /* left or failed: nothing more is asked for */
    int failure;
    size_t here; /* how many members the newest list shows, and whether it shows `ready` */
    bool ready;
    bool writing; /* `ready` is being created or deleted */
};

static void decide(barrier *b);

/* ---- the end ---- */

/* Stops what is under way, once; what has to end first tells its gone(). */
static void end(barrier *b) {
    if (b->ended) return;
    b->ended = true;
    if (b->membership) dv_membership_leave(b->membership);
    if (b->watch) dv_patient_watch_stop(b->watch);
    dv_client_changed(b->object.client);
}

static void fail(barrier *b, int error) {
    if (b->ended) return;
    b->failure = error;
    end(b);
}

static void free_strings(barrier *b) {
    free(b->directory);
    free(b->ready_path);
}

static void release(dv_object *object) {
    barrier *b = (barrier *)(void *)object;
    assert(!b->membership && !b->watch && !b->writing);
    free_strings(b);
    free(b);
}

/* A part ended that nobody told to end: the session took it. */
static void lose_part(barrier *b) {
    int error = dv_client_end_error(b->object.client);
    fail(b, error ? error : DIVVY_ELOST);
    dv_object_unref(&b->object);
}

/* ---- the node `ready` ---- */

static void on_written(barrier *b, int error, bool ready) {
    b->writing = false;
    if (error == 0) b->ready = ready;
    if (error && !dv_outcome_unknown(error)) fail(b, error);
    else if (error == 0 || dv_client_connected(b->object.client)) decide(b); /* else the next list decides */
    dv_object_unref(&b->object);
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    on_written(context, reply->error == DIVVY_EEXIST ? 0 : reply->error, true);
}

static void on_deleted(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    on_written(context, reply->error == DIVVY_ENOENT ? 0 : reply->error, false);
}

static void write_ready(barrier *b, bool ready) {
    dv_znode *znode = b->object.client->znode;
    int error = ready ? dv_znode_create(znode, b->ready_path, "", 0, DV_PERSISTENT, on_created, b)
                      : dv_znode_delete(znode, b->ready_path, -1, on_deleted, b);
    if (error) {
        fail(b, error);
        return;
    }
    b->writing = true;
    dv_object_ref(&b->object);
}

/* ---- the rules ---- */

/* Decides by the newest list, then moves once. */
static void decide(barrier *b) {
    if (b->ended || b->writing) return;
    if (b->stage == ENTERING && b->ready) {
        b->stage = OPEN; /* rule 2: `ready` was seen */
        dv_client_changed(b->object.client);
    } else if (b->stage == ENTERING && b->here >= b->members) {
        write_ready(b, true); /* rule 2: all are there */
    } else if (b->stage == LEAVING && b->here == 0 && b->ready) {
        write_ready(b, false); /* rule 3: the last ones delete it */
    } else if (b->stage == LEAVING && b->here == 0) {
        b->stage = OVER; /* rule 3: all have left */
        end(b);
    }
}

static bool is_member(const char *name) {
    size_t bytes = strlen(name), end_bytes = sizeof MEMBER - 1;
    return bytes > end_bytes && strcmp(name + bytes - end_bytes, MEMBER) == 0;
}

/* Takes each list, also one that shows no change: after a lost connection that is how a write is tried again. */
static void on_list(void *owner, const char *const *names, size_t count, int64_t now) {
    (void)now;
    barrier *b = owner;
    b->here = 0;
    b->ready = false;
    for (size_t i = 0; i < count; i++) {
        b->here += is_member(names[i]);
        b->ready = b->ready || strcmp(names[i], READY) == 0;
    }
    decide(b);
}

static void on_changed(void *owner, int64_t now) {
    (void)owner, (void)now;
}

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    (void)owner, (void)names, (void)count, (void)pzxid, (void)now; /* on_list() was told of the same list */
}

static void on_unreadable(void *owner, int error, int64_t now) {
    (void)now;
    fail(owner, error);
}

static void on_watch_gone(void *owner, int64_t now) {
    (void)now;
    barrier *b = owner;
    b->watch = NULL;
    lose_part(b);
}

/* ---- the node of ours ---- */

/* Rule 1: the directory is there now, so its children can be watched. */
static void on_joined(void *owner, int64_t now) {
    (void)now;
    static const dv_patience at_once = {0, 0, 0};
    static const dv_patient_watch_events events = {
        .changed = on_changed, .settled = on_settled, .failed = on_unreadable, .gone = on_watch_gone, .seen = on_list};
    barrier *b = owner;
    if (b->ended || b->watch) return;
    b->watch = dv_patient_watch_start(b->object.client, b->directory, &at_once, &events, b);
    if (b->watch) dv_object_ref(&b->object);
    else fail(b, DIVVY_ENOMEM);
}

static void on_refused(void *owner, int error, const char *path, int64_t now) {
    (void)path, (void)now;
    fail(owner, error);
}

static void on_node_gone(void *owner, int64_t now) {
    (void)now;
    barrier *b = owner;
    b->membership = NULL;
    if (b->stage == LEAVING) dv_object_unref(&b->object); /* rule 3: as it was told to */
    else lose_part(b);
}

/* ---- the calls ---- */

static int check(divvy_client *client, const char *path, size_t members) {
    const char *reason = "is NULL";
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    if (!path || dv_path_check(path, &reason) != 0)
        return dv_fail(client, DIVVY_EINVAL, "barrier: the path \"%.200s\" %s", path ? path : "", reason);
    return members > 0 ? 0 : dv_fail(client, DIVVY_EINVAL, "barrier: members is 0");
}

static int start(barrier *b, divvy_client *client, const char *path) {
    static const dv_membership_events events = {.joined = on_joined, .failed = on_refused, .gone = on_node_gone};
    b->directory = dv_client_path(client, path);
    b->ready_path = b->directory ? dv_path_join(b->directory, READY) : NULL;
    if (!b->ready_path) return DIVVY_ENOMEM;
    return dv_membership_join(&b->membership, client, b->directory, MEMBER, "", &events, b);
}

int barrier_enter(barrier **out, divvy_client *client, const char *path, size_t members) {
    if (out) *out = NULL;
    if (!out) return dv_fail(client, DIVVY_EINVAL, "barrier: out is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    error = check(client, path, members);
    barrier *b = error ? NULL : calloc(1, sizeof *b);
    if (!error && !b) error = dv_fail_plainly(client, DIVVY_ENOMEM);
    if (b) {
        b->members = members;
        error = start(b, client, path);
        if (error) {
            dv_fail(client, error, "barrier: %s cannot be entered: %s", path, divvy_strerror(error));
            free_strings(b);
            free(b);
        } else {
            dv_object_init(&b->object, client, release);
            dv_object_ref(&b->object); /* the membership's */
            *out = b;
        }
    }
    dv_client_unlock(client);
    return error;
}

static bool is_open(void *context) {
    const barrier *b = context;
    return b->failure || b->stage >= OPEN;
}

static bool is_over(void *context) {
    const barrier *b = context;
    return b->failure || b->stage == OVER;
}

/* Waits until `met` says yes. With the client lock held. */
static int wait_for(barrier *b, int64_t timeout_ms, bool (*met)(void *context)) {
    int error = timeout_ms < -1 ? DIVVY_EINVAL : dv_client_wait(b->object.client, timeout_ms, met, b);
    return error ? error : b->failure;
}

static int finish_call(barrier *b, const char *what, int error) {
    if (error) dv_fail(b->object.client, error, "barrier %s: %s: %s", what, b->directory, divvy_strerror(error));
    dv_object_let_go(&b->object);
    return error;
}

int barrier_wait(barrier *b, int64_t timeout_ms) {
    int error = dv_client_enter(b ? b->object.client : NULL);
    if (error) return error;
    dv_object_hold(&b->object);
    return finish_call(b, "wait", wait_for(b, timeout_ms, is_open));
}

int barrier_leave(barrier *b, int64_t timeout_ms) {
    int error = dv_client_enter(b ? b->object.client : NULL);
    if (error) return error;
    dv_object_hold(&b->object);
    if (b->stage == ENTERING) return finish_call(b, "leave", b->failure ? b->failure : DIVVY_ESTATE);
    if (b->stage == OPEN) {
        b->stage = LEAVING;
        if (b->membership) dv_membership_leave(b->membership);
    }
    return finish_call(b, "leave", wait_for(b, timeout_ms, is_over));
}

static void leave(dv_object *object, bool waits) {
    (void)waits;
    end((barrier *)(void *)object);
}

void barrier_destroy(barrier *b) {
    if (b) dv_object_end(&b->object, leave, NULL);
}
