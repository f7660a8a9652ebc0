/* Deleting the directories of items that nobody needs: docs/protocol.md, P12. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "partitioner/partitioner.h"
#include "znode/path.h"

/* A look at directories that are none of our items', one after the other. */
typedef struct {
    divvy_partitioner *p;
    dv_fetch *fetch;
} sweep;

static void tidied(divvy_partitioner *p) {
    dv_life_enter(p, DV_LIFE_TIDIED);
    dv_client_changed(p->object.client);
}

static void one_less(divvy_partitioner *p, int64_t now) {
    assert(p->tidy_under_way > 0);
    if (--p->tidy_under_way == 0 && p->life == DV_LIFE_TIDYING) tidied(p);
    dv_op_end(p, now);
}

static void one_more(divvy_partitioner *p) {
    p->tidy_under_way++;
    dv_op_begin(p);
}

/* ---- directories that are not known ---- */

static void on_removed(void *context, const dv_reply *reply, int64_t now) {
    const sweep *s = context;
    (void)reply; /* It may have children, or be gone. */
    dv_fetch_release(s->fetch, now);
}

/* A queue's directory has no data; whatever has some is not ours to delete. kazoo remembers that a path exists. */
static bool is_left_over(const divvy_partitioner *p, const dv_reply *reply) {
    const dv_stat *stat = reply->stat;
    if (reply->error || (p->kazoo_seen && p->life < DV_LIFE_TIDYING)) return false;
    return stat->children == 0 && stat->data_bytes == 0 && stat->ephemeral_owner == 0;
}

static int on_looked(void *context, const char *path, const dv_reply *reply, int64_t now) {
    (void)now;
    sweep *s = context;
    if (is_left_over(s->p, reply) && dv_batch_delete(s->p->object.client->znode, path, on_removed, s) == 0)
        dv_fetch_hold(s->fetch);
    return dv_session_over(reply->error) || dv_outcome_unknown(reply->error) ? reply->error : 0; /* Another time. */
}

static void on_swept(void *context, int error, int64_t now) {
    (void)error;
    sweep *s = context;
    divvy_partitioner *p = s->p;
    free(s);
    one_less(p, now);
}

static void sweep_unknown(divvy_partitioner *p, const dv_reply *list) {
    static const dv_fetch_kind kind = {DV_EXISTS, 200, on_looked, on_swept};
    size_t count = 0;
    const char **unknown = (const char **)(uintptr_t)malloc((list->child_count + 1) * sizeof *unknown);
    for (size_t i = 0; unknown && i < list->child_count; i++) {
        char *name = dv_directory_item(list->children[i]);
        if (name && !dv_items_have(p, name)) unknown[count++] = list->children[i];
        free(name);
    }
    sweep *s = count ? malloc(sizeof *s) : NULL;
    if (s) *s = (sweep){.p = p};
    if (s && dv_fetch_start(&s->fetch, p->object.client, &kind, p->locks_path, unknown, count, s) == 0) one_more(p);
    else free(s);
    free(unknown);
}

/* ---- P12: the last member ---- */

/* A directory on its way out. */
typedef struct {
    divvy_partitioner *p;
    char path[];
} removal;

static void on_directory_removed(void *context, const dv_reply *reply, int64_t now) {
    (void)reply; /* It may have children, or be gone. */
    removal *r = context;
    divvy_partitioner *p = r->p;
    free(r);
    one_less(p, now);
}

static void remove_directory(divvy_partitioner *p, const char *node) {
    size_t bytes = strlen(p->locks_path) + 1 + strlen(node) + 1;
    removal *r = malloc(sizeof *r + bytes);
    if (!r) return;
    r->p = p;
    snprintf(r->path, bytes, "%s/%s", p->locks_path, node);
    if (dv_batch_delete(p->object.client->znode, r->path, on_directory_removed, r) == 0) one_more(p);
    else free(r);
}

/* The directories that are there now, other members' among them; those that are empty go. */
static void on_what_is_left(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    if (reply->error == 0) sweep_unknown(p, reply);
    for (size_t i = 0; reply->error == 0 && i < reply->child_count; i++) {
        char *name = dv_directory_item(reply->children[i]);
        if (name && dv_items_have(p, name)) remove_directory(p, reply->children[i]);
        free(name);
    }
    one_less(p, now);
}

static void on_who_is_left(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    /* A kazoo member that joins right now looks for its directories only when its boundary has passed. */
    bool last = reply->error == 0 && reply->child_count == 0;
    if (last && dv_znode_children(p->object.client->znode, p->locks_path, NULL, on_what_is_left, p) == 0) one_more(p);
    one_less(p, now);
}

void dv_items_tidy(divvy_partitioner *p) {
    if (p->life >= DV_LIFE_TIDYING || p->totals.leaving || p->membership) return;
    dv_life_enter(p, DV_LIFE_TIDYING);
    divvy_client *client = p->object.client;
    bool can = p->ready && dv_client_connected(client) && client->life != DV_CLIENT_CLOSED;
    if (can && dv_znode_children(client->znode, p->party_path, NULL, on_who_is_left, p) == 0) one_more(p);
    else if (p->tidy_under_way == 0) tidied(p);
}

/* ---- P12: what the pool's set no longer has ---- */

static bool sweeps(const divvy_partitioner *p) {
    return p->state == DIVVY_ACQUIRED && dv_follow_is_first_of(p->follower, p->dealt);
}

static void on_directories(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    if (reply->error == 0 && sweeps(p)) sweep_unknown(p, reply);
    one_less(p, now);
}

/* Where there are no more than items it is not worth the names, which may be a megabyte. */
static void on_count(void *context, const dv_reply *reply, int64_t now) {
    divvy_partitioner *p = context;
    bool more = reply->error == 0 && (size_t)reply->stat->children > p->dealt->count && sweeps(p);
    if (more && dv_znode_children(p->object.client->znode, p->locks_path, NULL, on_directories, p) == 0) one_more(p);
    one_less(p, now);
}

void dv_items_sweep(divvy_partitioner *p) {
    if (p->tidy_under_way || p->life >= DV_LIFE_TIDYING || p->kazoo_seen || !sweeps(p)) return;
    if (dv_znode_exists(p->object.client->znode, p->locks_path, NULL, on_count, p) == 0) one_more(p);
}
