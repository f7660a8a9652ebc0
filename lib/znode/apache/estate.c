/* The nodes that a client leaves behind on a host's session: H6, R1 and R2. SPDX-License-Identifier: Apache-2.0 */
#include "znode/apache/estate.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "znode/apache/shared.h"
#include "znode/path.h"
#include "znode/sequence.h"

enum { UNDER_WAY_MAX = 200, SEQUENCE_DIGITS = 10, ODD_ANSWERS_MAX = 1000 };

/* A node that is there, or that may be: in the client's tree, then in the handle's list. */
struct dv_leftover {
    dv_leftover *next;
    dv_estate *estate;
    enum { THERE, UNANSWERED, LOOKED_FOR } stage; /* unanswered: the answer to its create never came */
    bool sequential;                              /* unanswered: the node has ten digits more */
    unsigned odd_answers;                         /* that said nothing of it */
    char path[];
};

static int compare(const void *a, const void *b) {
    return strcmp(((const dv_leftover *)a)->path, ((const dv_leftover *)b)->path);
}

/* For the path whose first bytes are those of `path`, followed by `rest`. */
static dv_leftover *make(const char *path, size_t path_bytes, const char *rest) {
    size_t rest_bytes = strlen(rest);
    dv_leftover *node = calloc(1, sizeof *node + path_bytes + rest_bytes + 1);
    if (!node) return NULL;
    memcpy(node->path, path, path_bytes);
    memcpy(node->path + path_bytes, rest, rest_bytes);
    return node;
}

/* ---- while the client is there ---- */

/* Without memory for it the node is left to the end of the host's session, if the client should not delete it. */
static void add(dv_apache *apache, const char *path, bool answered, bool sequential) {
    dv_leftover *node = make(path, strlen(path), "");
    if (!node) return;
    node->stage = answered ? THERE : UNANSWERED;
    node->sequential = sequential;
    void *place = tsearch(node, &apache->left_behind, compare);
    if (!place || *(dv_leftover **)place != node) free(node);
}

static void take_out(dv_apache *apache, const char *path, size_t path_bytes) {
    dv_leftover *key = make(path, path_bytes, "");
    dv_leftover **place = key ? (dv_leftover **)tfind(key, &apache->left_behind, compare) : NULL;
    free(key);
    if (!place) return;
    dv_leftover *node = *place;
    tdelete(node, &apache->left_behind, compare);
    free(node);
}

/* Returns whether a create that ended so may have been carried out, or may yet be, if the host's session goes on. */
static bool may_stand(int error) {
    if (dv_answer_is_raw(error)) return dv_answer_of(dv_answer_code(error)).verdict == DV_VERDICT_MAYBE;
    return error == 0 || dv_outcome_unknown(error) || dv_session_over(error);
}

void dv_estate_note_create(dv_apache *apache, const dv_op *op, int error, const char *made) {
    if (!apache->znode.attached || !(op->mode & DV_EPHEMERAL)) return;
    if (error == 0 && made) add(apache, made, true, false);
    else if (may_stand(error)) add(apache, op->path, false, (op->mode & DV_SEQUENTIAL) != 0);
}

void dv_estate_note_delete(dv_apache *apache, const char *path, int error) {
    if (!apache->znode.attached || (error != 0 && error != DIVVY_ENOENT)) return;
    size_t bytes = strlen(path);
    take_out(apache, path, bytes);
    if (bytes > SEQUENCE_DIGITS)
        take_out(apache, path, bytes - SEQUENCE_DIGITS); /* noted before its create was answered */
}

void dv_estate_forget(dv_apache *apache) {
    tdestroy(apache->left_behind, free);
    apache->left_behind = NULL;
}

/* ---- once it has left, with the lock held ---- */

void dv_estate_init(dv_estate *estate, zhandle_t *handle, dv_shared *shared) {
    *estate = (dv_estate){.handle = handle, .shared = shared};
    estate->end = &estate->first;
}

static void append(dv_estate *estate, dv_leftover *node) {
    assert(!*estate->end);
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

static void free_list(dv_leftover *node) {
    while (node) {
        dv_leftover *next = node->next;
        free(node);
        node = next;
    }
}

void dv_estate_drop(dv_estate *estate) {
    free_list(estate->first);
    estate->first = NULL;
    estate->end = &estate->first;
}

void dv_estate_bury(dv_estate *estate) {
    dv_estate_drop(estate);
    free_list(estate->under_way);
    estate->under_way = NULL;
    estate->under_way_count = 0;
}

static bool is_answer(int rc) {
    return dv_answer_of(rc).verdict <= DV_VERDICT_NOT_DONE;
}

/* Returns whether to ask again, now or on the next connection. No clock here could put that off, so it has an end. */
static bool starts_again(dv_leftover *node, int rc) {
    if (dv_answer_of(rc).verdict >= DV_VERDICT_AGAIN) return ++node->odd_answers < ODD_ANSWERS_MAX;
    return rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT || rc == ZSESSIONMOVED;
}

static void end_request(dv_leftover *node, int rc, bool done) {
    dv_estate *estate = node->estate;
    assert(estate->under_way_count > 0);
    dv_leftover **place = &estate->under_way;
    while (*place != node) place = &(*place)->next;
    *place = node->next;
    estate->under_way_count--;
    bool again = is_answer(rc) ? !done : starts_again(node, rc);
    if (!is_answer(rc) && node->stage == LOOKED_FOR) node->stage = UNANSWERED;
    if (again) append(estate, node);
    else free(node);
    if (rc == ZCLOSING) dv_estate_drop(estate); /* The host is closing its handle, and so ends the session. */
    dv_shared_answered(estate->shared);         /* goes on with the next, or frees the estate */
}

static void on_deleted(int rc, const void *data) {
    dv_leftover *node = (dv_leftover *)(uintptr_t)data;
    dv_shared_lock();
    assert(node->stage != LOOKED_FOR || !node->sequential);
    bool done = node->stage != UNANSWERED;
    if (!done) node->stage = LOOKED_FOR;
    end_request(node, rc, done);
    dv_shared_unlock();
}

/* Takes the children that have the name of a request and exactly the digits of a sequence after it. */
static void take_made(const dv_leftover *request, const struct String_vector *names) {
    const char *prefix = dv_path_last(request->path);
    size_t parent_bytes = (size_t)(prefix - request->path);
    for (int i = 0; i < names->count; i++) {
        const char *child = names->data[i];
        int32_t sequence;
        if (strncmp(child, prefix, strlen(prefix)) != 0 || !dv_sequence_parse(child, prefix, &sequence)) continue;
        dv_leftover *node = make(request->path, parent_bytes, child);
        if (!node) return;
        append(request->estate, node);
    }
}

static void on_listed(int rc, const struct String_vector *names, const void *data) {
    dv_leftover *node = (dv_leftover *)(uintptr_t)data;
    dv_shared_lock();
    if (rc == ZOK && names) take_made(node, names);
    end_request(node, rc, true);
    dv_shared_unlock();
}

/* The two that call the native client allocate nothing themselves: test/lsan.supp names them. */
static int native_delete(dv_estate *estate, dv_leftover *node) {
    return zoo_adelete(estate->handle, node->path, -1, on_deleted, node);
}

static int native_list(dv_estate *estate, const char *parent, dv_leftover *node) {
    return zoo_aget_children(estate->handle, parent, 0, on_listed, node);
}

static int ask(dv_estate *estate, dv_leftover *node) {
    if (node->stage != LOOKED_FOR || !node->sequential) return native_delete(estate, node);
    size_t parent_bytes = (size_t)(dv_path_last(node->path) - node->path);
    char *parent = strndup(node->path, parent_bytes > 1 ? parent_bytes - 1 : 1);
    int rc = parent ? native_list(estate, parent, node) : ZSYSTEMERROR;
    free(parent);
    return rc;
}

void dv_estate_settle(dv_estate *estate) {
    while (estate->first && estate->under_way_count < UNDER_WAY_MAX && dv_shared_is_connected(estate->shared)) {
        dv_leftover *node = estate->first;
        assert(node->estate == estate);
        estate->first = node->next;
        if (!estate->first) estate->end = &estate->first;
        if (ask(estate, node) == ZOK) {
            node->next = estate->under_way;
            estate->under_way = node;
            estate->under_way_count++;
        } else {
            free(node);
        }
    }
}
