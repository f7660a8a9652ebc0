/* Deletes the chunks that no plan still needs. SPDX-License-Identifier: Apache-2.0
 *
 * docs/protocol.md, D30. A chunk that is no longer named may still be needed: by a root that somebody is about to
 * write. Such a write is computed from our root or from a later one, so its chunks are of a later generation than ours;
 * or it is computed from an earlier one, and will be refused. That our root still stands is checked with each
 * deletion. */
#include "plan/garbage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/draft.h"
#include "znode/path.h"

enum { DELETES_MOST = 500 };

struct dv_plan_garbage {
    divvy_client *client;
    const char *path;
    const dv_plan_root *root;
    char *epoch_path;
    uint64_t generation;
    int32_t version;
    dv_plan_garbage_fn done;
    void *context;
    char **paths; /* of the chunks to delete */
    size_t count, deleted;
    dv_op *ops;
    bool stopped;
};

void dv_plan_garbage_free(dv_plan_garbage *g) {
    if (g == NULL) return;
    for (size_t n = 0; n < g->count; n++) free(g->paths[n]);
    free(g->paths);
    free(g->epoch_path);
    free(g->ops);
    free(g);
}

static void on_list(void *context, const dv_reply *reply, int64_t now);

dv_plan_garbage *dv_plan_garbage_collect(divvy_client *client, const char *path, const dv_plan_root *root,
                                         int32_t version, dv_plan_garbage_fn done, void *context) {
    dv_plan_garbage *g = calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    *g = (dv_plan_garbage){.client = client,
                           .path = path,
                           .root = root,
                           .generation = root->header.generation,
                           .version = version,
                           .done = done,
                           .context = context,
                           .epoch_path = dv_path_join(path, root->header.epoch),
                           .ops = calloc(DELETES_MOST + 2, sizeof *g->ops)};
    bool begun =
        g->epoch_path != NULL && g->ops != NULL && dv_znode_children(client->znode, path, NULL, on_list, g) == 0;
    if (begun) return g;
    dv_plan_garbage_free(g);
    return NULL;
}

/* ---- deleting ---- */

static bool delete_some(dv_plan_garbage *g);

static void on_deleted(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    dv_plan_garbage *g = context;
    (void)replies;
    (void)count;
    if (error != 0 || g->stopped || !delete_some(g)) g->done(g->context, now);
}

/* Deletes some chunks by one multi within the limits. Returns whether it is under way. */
static bool delete_some(dv_plan_garbage *g) {
    if (g->deleted == g->count) return false;
    g->ops[0] = (dv_op){.kind = DV_CHECK, .path = g->path, .version = g->version};
    g->ops[1] = (dv_op){.kind = DV_CHECK, .path = g->epoch_path, .version = -1};
    size_t count = 2, bytes = dv_op_bytes(&g->ops[0]) + dv_op_bytes(&g->ops[1]);
    while (g->deleted < g->count && count < DELETES_MOST + 2) {
        dv_op op = {.kind = DV_DELETE, .path = g->paths[g->deleted], .version = -1};
        bytes += dv_op_bytes(&op);
        if (count > 2 && bytes > DV_MULTI_BYTES_MAX) break;
        g->ops[count++] = op;
        g->deleted++;
    }
    return dv_znode_multi(g->client->znode, g->ops, count, on_deleted, g) == 0;
}

/* ---- what there is ---- */

static bool gather(dv_plan_garbage *g, const dv_reply *list) {
    assert(g->paths == NULL && g->deleted == 0);
    size_t named_count = dv_plan_root_chunk_count(g->root);
    const char **named = dv_plan_root_chunk_names(g->root);
    g->paths = calloc(list->child_count + 1, sizeof *g->paths);
    bool complete = named != NULL && g->paths != NULL;
    for (size_t n = 0; complete && n < list->child_count; n++) {
        const char *name = list->children[n];
        uint64_t generation;
        if (!dv_plan_chunk_parse(name, &generation) || generation > g->generation) continue;
        if (bsearch((const void *)&name, (const void *)named, named_count, sizeof *named, dv_name_compare)) continue;
        g->paths[g->count] = dv_path_join(g->path, name);
        complete = g->paths[g->count] != NULL;
        g->count += complete;
    }
    free((void *)named);
    return complete;
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_garbage *g = context;
    if (reply->error != 0 || g->stopped || !gather(g, reply) || !delete_some(g)) g->done(g->context, now);
}

void dv_plan_garbage_stop(dv_plan_garbage *g) {
    g->stopped = true;
}
