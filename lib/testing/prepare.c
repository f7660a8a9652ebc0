/* The effect of a request on the tree as earlier proposals will leave it. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

/* A node as it will be. */
typedef struct {
    bool exists, container;
    dv_mem_session *owner;
    int64_t czxid;
    int32_t version, cversion, child_count;
    dv_mem_access access;
} view;

struct dv_mem_change {
    dv_mem_path *path;
    view view;
    int64_t index; /* of the newest transaction that changes it */
    dv_mem_change *next, **link;
};

typedef struct {
    dv_mem_change *change;
    view before;
} undo;

typedef struct {
    dv_mem *mem;
    dv_mem_server *leader;
    dv_mem_request *request;
    dv_mem_txn *txn;
    undo *undos;
    size_t undo_count, undo_room;
} prepared;

enum { QUOTA_EXCEEDED = -125 };

enum access { READ, WRITE, CREATE, DELETE };

static bool allowed(const prepared *p, const view *of, enum access access) {
    uint32_t identity = p->request->access.identity;
    if (of->access.acl <= DIVVY_ACL_OPEN || p->request->administrator) return true;
    if (identity && of->access.identity == identity) return true;
    return of->access.acl == DIVVY_ACL_READABLE && access == READ;
}

static view look(const prepared *p, const dv_mem_path *path) {
    const dv_mem_place *place = &path->places[p->leader->id];
    if (place->change) return place->change->view;
    const dv_mem_node *node = place->node;
    if (!node) return (view){.exists = false};
    return (view){true,          node->container, node->owner,       node->czxid,
                  node->version, node->cversion,  node->child_count, node->access};
}

static void remember(prepared *p, dv_mem_change *change) {
    p->undos = dv_mem_grow(p->undos, p->undo_count, &p->undo_room, sizeof *p->undos);
    p->undos[p->undo_count++] = (undo){change, change->view};
}

static void unlink_change(dv_mem_server *leader, dv_mem_change *change) {
    *change->link = change->next;
    if (change->next) change->next->link = change->link;
    else leader->changes_end = change->link;
}

static void append_change(dv_mem_server *leader, dv_mem_change *change) {
    change->next = NULL;
    change->link = leader->changes_end;
    *leader->changes_end = change;
    leader->changes_end = &change->next;
}

static void free_change(dv_mem_server *leader, dv_mem_change *change) {
    unlink_change(leader, change);
    change->path->places[leader->id].change = NULL;
    dv_mem_path_unref(leader->mem, change->path);
    free(change);
}

/* The record of a path's change, to be changed further: the newest one stands last. */
static view *edit(prepared *p, dv_mem_path *path) {
    dv_mem_place *place = &path->places[p->leader->id];
    dv_mem_change *change = place->change;
    if (change) {
        unlink_change(p->leader, change);
    } else {
        view now = look(p, path);
        change = dv_mem_alloc(sizeof *change);
        change->path = dv_mem_path_ref(path);
        change->view = now;
        place->change = change;
    }
    if (p->request && p->request->is_multi) remember(p, change);
    change->index = p->leader->logged + 1;
    append_change(p->leader, change);
    return &change->view;
}

static void roll_back(prepared *p) {
    while (p->undo_count > 0) {
        undo *last = &p->undos[--p->undo_count];
        last->change->view = last->before;
    }
}

void dv_mem_changes_applied(dv_mem_server *leader, int64_t index) {
    for (dv_mem_change *change = leader->changes, *next; change && change->index <= index; change = next) {
        next = change->next;
        free_change(leader, change);
    }
}

void dv_mem_changes_set_sequence(dv_mem_change *change, int32_t next) {
    if (change) change->view.cversion = next;
}

/* ---- one operation each ---- */

static dv_mem_path *name_path(prepared *p, const dv_mem_op *op, int32_t sequence) {
    if (!(op->mode & DV_SEQUENTIAL)) return dv_mem_path_ref(op->path);
    char number[16];
    size_t number_bytes = (size_t)snprintf(number, sizeof number, "%010d", (int)sequence);
    char *text = dv_mem_alloc(op->path->bytes + number_bytes + 1);
    memcpy(text, op->path->text, op->path->bytes);
    memcpy(text + op->path->bytes, number, number_bytes);
    dv_mem_path *path = dv_mem_path_get(p->mem, text, op->path->bytes + number_bytes);
    free(text);
    return path;
}

static bool is_below(const dv_mem_path *path, const char *top) {
    size_t bytes = strlen(top);
    return strncmp(path->text, top, bytes) == 0 && path->text[bytes] == '/';
}

static bool quota_refuses(const prepared *p, const dv_mem_path *path) {
    const char *top = p->mem->quota_path;
    if (!top || !is_below(path, top)) return false;
    int64_t count = 0;
    for (size_t i = 0; i < p->mem->path_room; i++) {
        for (const dv_mem_path *other = p->mem->paths[i]; other; other = other->next)
            count += is_below(other, top) && look(p, other).exists;
    }
    return count >= p->mem->quota_nodes;
}

static void remember_container(dv_mem *mem, dv_mem_path *path) {
    for (size_t i = 0; i < mem->container_count; i++) {
        if (mem->containers[i] == path) return;
    }
    mem->containers = dv_mem_grow(mem->containers, mem->container_count, &mem->container_room, sizeof(dv_mem_path *));
    mem->containers[mem->container_count++] = dv_mem_path_ref(path);
}

static int create(prepared *p, const dv_mem_op *op) {
    dv_mem_path *parent_path = op->path->parent;
    /* "/" with a number behind it is the name of a child of "/". */
    if (!parent_path && op->mode & DV_SEQUENTIAL) parent_path = op->path;
    if (!parent_path) return DIVVY_EEXIST;
    view parent = look(p, parent_path);
    if (!parent.exists) return DIVVY_ENOENT;
    if (!allowed(p, &parent, CREATE)) return DIVVY_EACCES;
    dv_mem_path *path = name_path(p, op, parent.cversion);
    int error = look(p, path).exists ? DIVVY_EEXIST : parent.owner ? DIVVY_EINVAL : 0;
    bool limited = !error && !p->request->administrator;
    if (limited && quota_refuses(p, path)) error = dv_answer_error(QUOTA_EXCEEDED);
    if (!error) {
        view *to = edit(p, parent_path);
        to->cversion = (int32_t)((uint32_t)to->cversion + 1);
        to->child_count++;
        dv_mem_step *step = dv_mem_txn_add(p->txn, DV_MEM_TXN_CREATE, path);
        step->data = dv_mem_blob_ref(op->data);
        step->owner = op->mode & DV_EPHEMERAL ? p->request->session : NULL;
        step->parent_cversion = to->cversion;
        step->access = p->request->access;
        step->container = op->container;
        if (op->container) remember_container(p->mem, path);
        step->czxid = p->leader->epoch << 32 | (p->leader->counter + 1); /* as it will be proposed */
        *edit(p, path) = (view){.exists = true,
                                .owner = step->owner,
                                .czxid = step->czxid,
                                .access = step->access,
                                .container = op->container};
    }
    dv_mem_path_unref(p->mem, path);
    return error;
}

static int drop(prepared *p, const dv_mem_op *op) {
    dv_mem_path *parent_path = op->path->parent;
    if (!parent_path || strcmp(op->path->text, "/zookeeper") == 0) return DIVVY_EINVAL;
    view parent = look(p, parent_path), node = look(p, op->path);
    if (!parent.exists) return DIVVY_ENOENT;
    if (!allowed(p, &parent, DELETE)) return DIVVY_EACCES; /* whether there is such a node or not */
    if (!node.exists) return DIVVY_ENOENT;
    if (op->version != -1 && op->version != node.version) return DIVVY_EVERSION;
    if (node.child_count > 0) return DIVVY_ENOTEMPTY;
    edit(p, parent_path)->child_count--;
    *edit(p, op->path) = (view){.exists = false};
    dv_mem_step *step = dv_mem_txn_add(p->txn, DV_MEM_TXN_DELETE, op->path);
    step->owner = node.owner;
    step->czxid = node.czxid;
    return 0;
}

static int set(prepared *p, const dv_mem_op *op) {
    view node = look(p, op->path);
    if (!node.exists) return DIVVY_ENOENT;
    if (!allowed(p, &node, WRITE)) return DIVVY_EACCES;
    if (op->version != -1 && op->version != node.version) return DIVVY_EVERSION;
    view *to = edit(p, op->path);
    to->version++;
    dv_mem_step *step = dv_mem_txn_add(p->txn, DV_MEM_TXN_SET, op->path);
    step->data = dv_mem_blob_ref(op->data);
    step->version = to->version;
    step->owner = node.owner;
    step->czxid = node.czxid;
    return 0;
}

static int check(prepared *p, const dv_mem_op *op) {
    view node = look(p, op->path);
    if (!node.exists) return DIVVY_ENOENT;
    if (!allowed(p, &node, READ)) return DIVVY_EACCES;
    if (op->version != -1 && op->version != node.version) return DIVVY_EVERSION;
    dv_mem_txn_add(p->txn, DV_MEM_TXN_CHECK, op->path);
    return 0;
}

static int prepare_op(prepared *p, const dv_mem_op *op) {
    switch (op->kind) {
    case DV_CREATE: return create(p, op);
    case DV_DELETE: return drop(p, op);
    case DV_SET: return set(p, op);
    case DV_CHECK: return check(p, op);
    default: return DIVVY_EINVAL;
    }
}

/* ---- whole requests ---- */

/* All or nothing: the first that fails undoes those before it, and names itself. */
static void prepare_ops(prepared *p) {
    dv_mem_txn *txn = p->txn;
    size_t count = p->request->count, failed = 0;
    for (size_t i = 0; i < count && !txn->error; i++) {
        txn->error = prepare_op(p, &p->request->ops[i]);
        failed = i;
    }
    if (!txn->error) return;
    roll_back(p);
    dv_mem_txn_clear(p->mem, txn);
    for (size_t i = 0; p->request->is_multi && i < count; i++)
        dv_mem_txn_add(txn, DV_MEM_TXN_CHECK, NULL)->error = i == failed ? txn->error : DIVVY_EROLLEDBACK;
}

static void end_node(prepared *p, dv_mem_path *path, dv_mem_session *owner) {
    dv_mem_step *step = dv_mem_txn_add(p->txn, DV_MEM_TXN_DELETE, path);
    step->owner = owner;
    step->czxid = look(p, path).czxid;
    edit(p, path->parent)->child_count--;
    *edit(p, path) = (view){.exists = false};
}

dv_mem_txn *dv_mem_prepare_close(dv_mem_server *leader, dv_mem_session *session, dv_mem_request *request) {
    prepared p = {.mem = leader->mem, .leader = leader, .txn = dv_mem_txn_new(session, request)};
    dv_mem_seat *seat = &session->seats[leader->id];
    seat->closing = true;
    size_t bytes = 0;
    /* Those that are there, and those that are on the way; not those that are on the way out. */
    for (dv_mem_node *node = seat->owned; node; node = node->owned_next) {
        const dv_mem_change *change = node->path->places[leader->id].change;
        if (!change || (change->view.exists && change->view.owner == session)) end_node(&p, node->path, session);
        bytes += node->path->bytes + 4;
    }
    /* The list grows while it is walked, by records of what is gone, which stand behind. */
    for (dv_mem_change *change = leader->changes, *next; change; change = next) {
        next = change->next;
        if (!change->view.exists || change->view.owner != session) continue;
        bytes += change->path->bytes + 4;
        end_node(&p, change->path, session);
        next = leader->changes; /* The end of one moves its parent's record: look from the beginning. */
    }
    if (bytes > DV_MEM_REQUEST_BYTES_MAX)
        DV_MEM_TRACE(leader->mem, "session 0x%llx: its end takes %zu bytes; a real ensemble would not survive it",
                     (unsigned long long)session->id, bytes);
    dv_mem_txn_add(p.txn, DV_MEM_TXN_SESSION_END, NULL);
    return p.txn;
}

dv_mem_txn *dv_mem_prepare(dv_mem_server *leader, dv_mem_request *request) {
    prepared p = {.mem = leader->mem, .leader = leader, .request = request};
    p.txn = dv_mem_txn_new(request->session, request);
    if (request->kind == DV_MEM_CREATE_SESSION) dv_mem_txn_add(p.txn, DV_MEM_TXN_SESSION_CREATE, NULL);
    else prepare_ops(&p);
    free(p.undos);
    return p.txn;
}
