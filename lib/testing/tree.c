/* A server's tree: its nodes, and what transactions do to them. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "testing/ensemble.h"

static void own(dv_mem_node *node, int server, dv_mem_session *owner) {
    dv_mem_node **first = &owner->seats[server].owned;
    node->owner = owner;
    node->owned_next = *first;
    node->owned_link = first;
    if (*first) (*first)->owned_link = &node->owned_next;
    *first = node;
}

static void disown(dv_mem_node *node) {
    if (!node->owner) return;
    *node->owned_link = node->owned_next;
    if (node->owned_next) node->owned_next->owned_link = node->owned_link;
    node->owner = NULL;
}

static dv_mem_node *add_node(int server, dv_mem_path *path, dv_mem_node *parent) {
    dv_mem_node *node = dv_mem_alloc(sizeof *node);
    node->path = dv_mem_path_ref(path);
    path->places[server].node = node;
    node->parent = parent;
    if (!parent) return node;
    /* Newest first: as the servers promise no order, ours is one that nobody would rely on. */
    node->sibling = parent->children;
    node->sibling_link = &parent->children;
    if (node->sibling) node->sibling->sibling_link = &node->sibling;
    parent->children = node;
    parent->child_count++;
    return node;
}

static void free_node(dv_mem *mem, int server, dv_mem_node *node) {
    disown(node);
    node->path->places[server].node = NULL;
    if (node->parent) {
        *node->sibling_link = node->sibling;
        if (node->sibling) node->sibling->sibling_link = node->sibling_link;
        node->parent->child_count--;
    }
    dv_mem_blob_unref(node->data);
    dv_mem_path_unref(mem, node->path);
    free(node);
}

void dv_mem_tree_init(dv_mem *mem, int server) {
    dv_mem_path *root = dv_mem_path_get(mem, "/", 1);
    dv_mem_path *reserved = dv_mem_path_get(mem, "/zookeeper", strlen("/zookeeper"));
    mem->servers[server].root = add_node(server, root, NULL);
    add_node(server, reserved, mem->servers[server].root);
    dv_mem_path_unref(mem, root);
    dv_mem_path_unref(mem, reserved);
}

void dv_mem_tree_free(dv_mem *mem, int server) {
    for (dv_mem_node *node = mem->servers[server].root; node;) {
        while (node->children) node = node->children;
        dv_mem_node *parent = node->parent;
        free_node(mem, server, node);
        node = parent;
    }
}

dv_stat dv_mem_node_stat(const dv_mem_node *node) {
    return (dv_stat){
        .czxid = node->czxid,
        .mzxid = node->mzxid,
        .pzxid = node->pzxid,
        .ephemeral_owner = node->owner ? node->owner->id : 0,
        .version = node->version,
        .data_bytes = node->data ? (int32_t)node->data->bytes : 0,
        .children = node->child_count,
        .ctime_ms = node->ctime_ms,
        .mtime_ms = node->mtime_ms,
    };
}

static void apply_create(dv_mem *mem, dv_mem_server *server, const dv_mem_txn *txn, const dv_mem_step *step) {
    dv_mem_node *parent = step->path->parent->places[server->id].node;
    assert(parent && !step->path->places[server->id].node);
    dv_mem_node *node = add_node(server->id, step->path, parent);
    node->data = dv_mem_blob_ref(step->data);
    node->access = step->access;
    node->container = step->container;
    node->czxid = node->mzxid = node->pzxid = txn->zxid;
    node->ctime_ms = node->mtime_ms = txn->time_ms;
    if (step->owner) own(node, server->id, step->owner);
    /* As ZooKeeper 3.8 has it, which is why the counter stays at its end once it is there. */
    if (step->parent_cversion > parent->cversion || mem->config.sequences_wrap) {
        parent->cversion = step->parent_cversion;
        parent->pzxid = txn->zxid;
    }
    dv_mem_watch_fire(mem, server, step->path, node->access, DV_WATCH_CREATED);
    dv_mem_watch_fire(mem, server, parent->path, parent->access, DV_WATCH_CHILDREN);
}

static void apply_delete(dv_mem *mem, dv_mem_server *server, const dv_mem_txn *txn, const dv_mem_step *step) {
    dv_mem_node *node = step->path->places[server->id].node, *parent = node->parent;
    assert(!node->children);
    dv_mem_access access = node->access;
    free_node(mem, server->id, node);
    parent->pzxid = txn->zxid;
    dv_mem_watch_fire(mem, server, step->path, access, DV_WATCH_DELETED);
    dv_mem_watch_fire(mem, server, parent->path, parent->access, DV_WATCH_CHILDREN);
}

static void apply_set(dv_mem *mem, dv_mem_server *server, const dv_mem_txn *txn, dv_mem_step *step) {
    dv_mem_node *node = step->path->places[server->id].node;
    dv_mem_blob_unref(node->data);
    node->data = dv_mem_blob_ref(step->data);
    node->version = step->version;
    node->mzxid = txn->zxid;
    node->mtime_ms = txn->time_ms;
    step->stat = dv_mem_node_stat(node);
    dv_mem_watch_fire(mem, server, step->path, node->access, DV_WATCH_CHANGED);
}

void dv_mem_tree_apply(dv_mem *mem, dv_mem_server *server, dv_mem_txn *txn) {
    for (size_t i = 0; txn->error == 0 && i < txn->count; i++) {
        dv_mem_step *step = &txn->steps[i];
        switch (step->kind) {
        case DV_MEM_TXN_CREATE: apply_create(mem, server, txn, step); break;
        case DV_MEM_TXN_DELETE: apply_delete(mem, server, txn, step); break;
        case DV_MEM_TXN_SET: apply_set(mem, server, txn, step); break;
        case DV_MEM_TXN_CHECK: break;
        case DV_MEM_TXN_SESSION_CREATE: txn->session->seats[server->id].exists = true; break;
        case DV_MEM_TXN_SESSION_END: txn->session->seats[server->id].exists = false; break;
        }
    }
}
