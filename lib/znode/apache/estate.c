/* What a client leaves behind on a host's session. SPDX-License-Identifier: Apache-2.0
 *
 * A node whose create was not answered is looked for by its name, which only that create can have given it
 * (docs/protocol.md, R1 and R2): first a write, refused or not, then a list of the directory. */
#include "znode/apache/estate.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "znode/apache/shared.h"
#include "znode/path.h"
#include "znode/sequence.h"

enum { UNDER_WAY_MAX = 200, SEQUENCE_DIGITS = 10 };

/* A node that is there, or that may be: in the client's tree, then in the handle's list. */
struct dv_leftover {
    dv_leftover *next;
    dv_estate *estate;
    bool wish;       /* the create's answer never came */
    bool sequential; /* then the node has ten digits more */
    bool barrier;    /* the write before the look was answered */
    char path[];
};

static int compare(const void *a, const void *b) {
    return strcmp(((const dv_leftover *)a)->path, ((const dv_leftover *)b)->path);
}

static dv_leftover *make(const char *path, size_t path_bytes) {
    dv_leftover *node = calloc(1, sizeof *node + path_bytes + 1);
    if (!node) return NULL;
    memcpy(node->path, path, path_bytes);
    return node;
}

/* ---- while the client is there ---- */

/* Without memory for it the node is left to the end of the host's session, if the client should not delete it. */
static void add(dv_apache *apache, const char *path, bool wish, bool sequential) {
    dv_leftover *node = make(path, strlen(path));
    if (!node) return;
    node->wish = wish;
    node->sequential = sequential;
    void *place = tsearch(node, &apache->left_behind, compare);
    if (!place || *(dv_leftover **)place != node) free(node);
}

static void take_out(dv_apache *apache, const char *path, size_t path_bytes) {
    dv_leftover *key = make(path, path_bytes);
    void *place = key ? tfind(key, &apache->left_behind, compare) : NULL;
    free(key);
    if (!place) return;
    dv_leftover *node = *(dv_leftover **)place;
    tdelete(node, &apache->left_behind, compare);
    free(node);
}

void dv_estate_note_create(dv_apache *apache, const dv_op *op, int error, const char *made) {
    if (!apache->znode.attached || !(op->mode & DV_EPHEMERAL)) return;
    if (error == 0 && made) add(apache, made, false, false);
    else if (error == 0 || dv_outcome_unknown(error) || error == DIVVY_ECANCELED)
        add(apache, op->path, true, (op->mode & DV_SEQUENTIAL) != 0);
}

void dv_estate_note_delete(dv_apache *apache, const char *path, int error) {
    if (!apache->znode.attached || (error != 0 && error != DIVVY_ENOENT)) return;
    size_t bytes = strlen(path);
    take_out(apache, path, bytes);
    if (bytes > SEQUENCE_DIGITS) take_out(apache, path, bytes - SEQUENCE_DIGITS); /* a wish that has come true */
}

void dv_estate_forget(dv_apache *apache) {
    while (apache->left_behind) {
        dv_leftover *node = *(dv_leftover **)apache->left_behind; /* the root: it begins with the pointer to its key */
        tdelete(node, &apache->left_behind, compare);
        free(node);
    }
}

/* ---- once it has left, with the lock held ---- */

void dv_estate_init(dv_estate *estate, zhandle_t *handle, dv_shared *shared) {
    *estate = (dv_estate){.handle = handle, .shared = shared};
    estate->end = &estate->first;
}

static void append(dv_estate *estate, dv_leftover *node) {
    node->estate = estate;
    node->next = NULL;
    *estate->end = node;
    estate->end = &node->next;
}

void dv_estate_inherit(dv_estate *estate, dv_apache *apache) {
    while (apache->left_behind) {
        dv_leftover *node = *(dv_leftover **)apache->left_behind;
        tdelete(node, &apache->left_behind, compare);
        append(estate, node);
    }
}

bool dv_estate_is_settled(const dv_estate *estate) {
    return !estate->first && !estate->under_way;
}

void dv_estate_drop(dv_estate *estate) {
    while (estate->first) {
        dv_leftover *node = estate->first;
        estate->first = node->next;
        free(node);
    }
    estate->end = &estate->first;
}

/* The end of one request: whether the node needs another. */
static bool go_on(dv_leftover *node, int rc) {
    bool answered = rc == ZOK || rc == ZNONODE || rc == ZNOAUTH || rc == ZNOTEMPTY || rc == ZBADVERSION;
    if (answered && !node->wish) return false;
    if (answered) node->barrier = true;
    else node->barrier = false; /* again from the start, on the next connection */
    return answered || rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED;
}

static void end_request(dv_leftover *node, bool again) {
    dv_estate *estate = node->estate;
    estate->under_way--;
    if (again) append(estate, node);
    else free(node);
    dv_estate_settle(estate);
    dv_shared_answered(estate->shared); /* which may free the estate */
}

static void on_deleted(int rc, const void *data) {
    dv_leftover *node = (dv_leftover *)(uintptr_t)data;
    dv_shared_lock();
    if (node->wish && node->barrier) node->wish = false; /* This was the delete behind the barrier. */
    end_request(node, go_on(node, rc));
    dv_shared_unlock();
}

/* Whether a child is the wished node: its name, and exactly the digits of a sequence. */
static bool is_wish(const dv_leftover *node, const char *child) {
    const char *name = dv_path_last(node->path);
    size_t bytes = strlen(name);
    int32_t sequence;
    return strncmp(child, name, bytes) == 0 && dv_sequence_parse(child, name, &sequence);
}

static void on_listed(int rc, const struct String_vector *names, const void *data) {
    dv_leftover *node = (dv_leftover *)(uintptr_t)data;
    dv_shared_lock();
    bool again = go_on(node, rc);
    if (node->barrier) again = false;
    for (int i = 0; rc == ZOK && names && i < names->count; i++) {
        size_t parent_bytes = (size_t)(dv_path_last(node->path) - node->path), bytes = strlen(names->data[i]);
        dv_leftover *made = is_wish(node, names->data[i]) ? make(node->path, parent_bytes + bytes) : NULL;
        if (!made) continue;
        memcpy(made->path + parent_bytes, names->data[i], bytes);
        append(node->estate, made);
    }
    end_request(node, again);
    dv_shared_unlock();
}

static int ask(dv_estate *estate, dv_leftover *node) {
    if (!node->barrier || !node->sequential) return zoo_adelete(estate->handle, node->path, -1, on_deleted, node);
    size_t parent_bytes = (size_t)(dv_path_last(node->path) - node->path);
    char *parent = strndup(node->path, parent_bytes > 1 ? parent_bytes - 1 : 1);
    int rc = parent ? zoo_aget_children(estate->handle, parent, 0, on_listed, node) : ZSYSTEMERROR;
    free(parent);
    return rc;
}

void dv_estate_settle(dv_estate *estate) {
    while (estate->first && estate->under_way < UNDER_WAY_MAX) {
        if (!dv_shared_is_connected(estate->shared)) return; /* It is called again when that changes. */
        dv_leftover *node = estate->first;
        estate->first = node->next;
        if (!estate->first) estate->end = &estate->first;
        if (ask(estate, node) == ZOK) estate->under_way++;
        else free(node);
    }
}
