/* The directories of the items' queues: those that exist, are made, are deleted. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, rules P9, P12, P15. P/locks is made first, and read for what is there; then the member is
 * `ready`. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "partitioner/partitioner.h"
#include "znode/ensure.h"
#include "znode/path.h"

/* ---- what waits for a directory ---- */

static void on_claim(dv_event *event, int64_t now) {
    divvy_partitioner *p = DV_CONTAINER(event, divvy_partitioner, claim);
    event->run = NULL;
    p->events->may_claim(p, now);
    dv_op_end(p, now);
}

void dv_directories_claim_later(divvy_partitioner *p) {
    if (p->state != DIVVY_FAILURE) dv_op_post(p, &p->claim, on_claim);
}

void dv_directories_fail(void *partitioner, int error, const char *path, int64_t now) {
    dv_life_fail(partitioner, error, DIVVY_REASON_DENIED, now, "%s cannot be made: %s", path, divvy_strerror(error));
}

/* ---- one directory ---- */

static void on_directory(void *context, const dv_reply *reply, int64_t now) {
    dv_item *item = context;
    divvy_partitioner *p = item->partitioner;
    int error = reply->error;
    assert(item->dir.requested);
    item->dir.requested = false;
    if (error == 0 || error == DIVVY_EEXIST) {
        item->dir.exists = true;
        item->dir.fresh = error == 0;
        dv_directories_claim_later(p);
    } else if (error == DIVVY_ENOENT) {
        p->ready = false; /* P/locks itself has gone. One request for it is enough, however many items say so. */
        p->events->locks_gone(p, now);
    } else if (dv_outcome_unknown(error)) {
        dv_client_again(p->object.client); /* unless a connection ends before, which claims as well */
    } else if (!dv_session_over(error)) {
        dv_life_fail(p, error, DIVVY_REASON_DENIED, now, "the queue %s cannot be made: %s", item->directory,
                     divvy_strerror(error));
    }
    dv_item_unref(item);
    dv_op_end(p, now);
}

void dv_directory_make(dv_item *item) {
    divvy_partitioner *p = item->partitioner;
    assert(!item->dir.exists);
    if (item->dir.requested || !dv_client_connected(p->object.client)) return;
    if (dv_batch_create(p->object.client->znode, item->directory, "", 0, DV_PERSISTENT, on_directory, item) != 0) {
        dv_client_again(p->object.client);
        return;
    }
    item->dir.requested = true;
    dv_item_ref(item);
    dv_op_begin(p);
}

void dv_directory_used(dv_item *item) {
    item->dir.fresh = false;
}

void dv_directory_gone(dv_item *item) {
    item->dir.exists = false;
}

static void on_directory_given_up(void *context, const dv_reply *reply, int64_t now) {
    dv_item *item = context;
    divvy_partitioner *p = item->partitioner;
    (void)reply; /* It may have children, or be gone. */
    dv_item_unref(item);
    dv_op_end(p, now);
}

/* P12: a place keeps it, and a member that enters later makes it again. kazoo does not, so it stays beside kazoo. */
void dv_directory_give_up(dv_item *item) {
    divvy_partitioner *p = item->partitioner;
    if (item->dealt || p->kazoo_seen || p->state == DIVVY_FAILURE || !dv_client_connected(p->object.client)) return;
    if (dv_batch_delete(p->object.client->znode, item->directory, on_directory_given_up, item) != 0) return;
    item->dir.exists = false;
    dv_item_ref(item);
    dv_op_begin(p);
}

/* ---- all of them ---- */

void dv_directories_note(divvy_partitioner *p, const dv_reply *list) {
    const char **names = (const char **)(uintptr_t)malloc((list->child_count + 1) * sizeof *names);
    if (!names) return; /* Making one that is there already does no harm. */
    for (size_t i = 0; i < list->child_count; i++) names[i] = list->children[i];
    qsort(names, list->child_count, sizeof *names, dv_name_compare);
    for (size_t i = 0; i < dv_item_count(p); i++) {
        const char *node = dv_path_last(dv_item_at(p, i)->directory);
        dv_item_at(p, i)->dir.exists = bsearch(&node, names, list->child_count, sizeof *names, dv_name_compare) != NULL;
    }
    free(names);
}

/* The directories are known; or, for `error`, they are not. */
static void end_reading(divvy_partitioner *p, int error, int64_t now) {
    assert(p->ready_requested && !p->ready);
    p->ready_requested = false;
    p->ready = error == 0;
    if (p->ready) p->events->may_claim(p, now);
    else if (dv_outcome_unknown(error)) dv_client_again(p->object.client);
    else if (error == DIVVY_ENOENT) p->events->locks_gone(p, now); /* P/locks has gone since it was made. */
    else if (!dv_session_over(error))
        dv_life_fail(p, error, DIVVY_REASON_DENIED, now, "%s cannot be read: %s", p->locks_path, divvy_strerror(error));
    dv_op_end(p, now);
}

static void on_directories(void *context, const dv_reply *reply, int64_t now) {
    if (reply->error == 0) dv_directories_note(context, reply);
    end_reading(context, reply->error, now);
}

/* Spares the names, which may be a megabyte, where their number is enough: a failing enter makes what is missing. */
static void on_directory_count(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    size_t items = dv_item_count(p), there = reply->error ? 0 : (size_t)reply->stat->children;
    bool telling = reply->error == 0 && (there == 0 || there >= items);
    if (reply->error == 0 && !telling &&
        dv_znode_children(p->object.client->znode, p->locks_path, NULL, on_directories, p) == 0)
        return; /* and still asked */
    p->never_used = reply->error == 0 && there == 0 && reply->stat->pzxid == reply->stat->czxid;
    for (size_t i = 0; telling && i < items; i++) dv_item_at(p, i)->dir.exists = there > 0;
    int error = reply->error ? reply->error : DIVVY_ENOMEM;
    end_reading(p, telling ? 0 : error, now);
}

static void read_directories(divvy_partitioner *p) {
    assert(!p->ready_requested && !p->ready);
    if (dv_znode_exists(p->object.client->znode, p->locks_path, NULL, on_directory_count, p) != 0) {
        dv_client_again(p->object.client);
        return;
    }
    p->ready_requested = true;
    dv_op_begin(p);
}

/* P9: members make directories for one another's items; one read tells of all of them, and spares failing creates. */
void dv_directories_refresh(divvy_partitioner *p) {
    bool unknown = false;
    for (size_t i = 0; i < dv_item_count(p) && !unknown; i++) {
        unknown = dv_item_at(p, i)->life.wanted && !dv_item_at(p, i)->dir.exists;
    }
    if (!unknown || !p->ready) return;
    assert(!p->ready_requested);
    p->ready = false;
    if (dv_client_connected(p->object.client)) read_directories(p);
}

/* ---- P/locks ---- */

static void on_locks_path(void *context, int error, int64_t now) {
    divvy_partitioner *p = context;
    assert(p->ready_requested && !p->ready);
    p->ready_requested = false;
    bool over = dv_session_over(error);
    if (p->state != DIVVY_FAILURE && !over) {
        if (error == 0) read_directories(p);
        else if (dv_outcome_unknown(error)) p->events->locks_gone(p, now);
        else dv_directories_fail(p, error, p->locks_path, now);
    }
    dv_op_end(p, now);
}

void dv_directories_connected(divvy_partitioner *p) {
    if (p->ready || p->ready_requested) return;
    p->ready_requested = dv_ensure_path(p->object.client->znode, p->locks_path, DV_PERSISTENT, on_locks_path, p) == 0;
    if (p->ready_requested) dv_op_begin(p);
    else dv_client_again(p->object.client);
}

void dv_directories_forget(divvy_partitioner *p) {
    assert(!p->ready_requested);
    p->ready = false;
}
