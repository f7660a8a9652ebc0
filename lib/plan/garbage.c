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
    char *epoch_path;
    uint64_t generation;
    int32_t version;
    dv_plan_garbage_fn done;
    void *context;
    char **kept; /* sorted */
    size_t kept_count;
    char **paths; /* of the chunks to delete */
    size_t count, deleted;
    dv_op *ops;
    bool stopped;
};

static void free_all(char **texts, size_t count) {
    for (size_t n = 0; texts != NULL && n < count; n++) free(texts[n]);
    free(texts);
}

void dv_plan_garbage_free(dv_plan_garbage *g) {
    if (g == NULL) return;
    free_all(g->kept, g->kept_count);
    free_all(g->paths, g->count);
    free(g->epoch_path);
    free(g->ops);
    free(g);
}

static bool keep_names(dv_plan_garbage *g, const dv_plan_root *root) {
    const char **names = dv_plan_root_chunk_names(root);
    size_t count = dv_plan_root_chunk_count(root);
    g->kept = calloc(count + 1, sizeof *g->kept);
    bool copied = names != NULL && g->kept != NULL;
    while (copied && g->kept_count < count) {
        char *copy = strdup(names[g->kept_count]);
        if (copy == NULL) copied = false;
        else g->kept[g->kept_count++] = copy;
    }
    free((void *)names);
    return copied;
}

dv_plan_garbage *dv_plan_garbage_new(divvy_client *client, const char *path, const dv_plan_root *root, int32_t version,
                                     dv_plan_garbage_fn done, void *context) {
    dv_plan_garbage *g = calloc(1, sizeof *g);
    if (g == NULL) return NULL;
    *g = (dv_plan_garbage){.client = client,
                           .path = path,
                           .generation = root->header.generation,
                           .version = version,
                           .done = done,
                           .context = context,
                           .epoch_path = dv_path_join(path, root->header.epoch),
                           .ops = calloc(DELETES_MOST + 2, sizeof *g->ops)};
    if (g->epoch_path == NULL || g->ops == NULL || !keep_names(g, root)) {
        dv_plan_garbage_free(g);
        return NULL;
    }
    return g;
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

static bool is_garbage(const dv_plan_garbage *g, const char *name) {
    uint64_t generation;
    if (!dv_plan_chunk_parse(name, &generation) || generation > g->generation) return false;
    return g->kept_count == 0 || !bsearch(&name, g->kept, g->kept_count, sizeof *g->kept, dv_name_compare);
}

static bool gather(dv_plan_garbage *g, const dv_reply *list) {
    assert(g->paths == NULL && g->deleted == 0);
    g->paths = calloc(list->child_count + 1, sizeof *g->paths);
    for (size_t n = 0; g->paths != NULL && n < list->child_count; n++) {
        if (!is_garbage(g, list->children[n])) continue;
        char *path = dv_path_join(g->path, list->children[n]);
        if (path == NULL) return false;
        g->paths[g->count++] = path;
    }
    return g->paths != NULL;
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_plan_garbage *g = context;
    if (reply->error != 0 || g->stopped || !gather(g, reply) || !delete_some(g)) g->done(g->context, now);
}

bool dv_plan_garbage_collect(dv_plan_garbage *g) {
    return dv_znode_children(g->client->znode, g->path, NULL, on_list, g) == 0;
}

void dv_plan_garbage_stop(dv_plan_garbage *g) {
    g->stopped = true;
}
