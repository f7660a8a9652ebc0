/* A few nodes, from which a fake backend's requests are answered. SPDX-License-Identifier: Apache-2.0
 *
 * For unit tests that care what is left in ZooKeeper, not which requests led to it. It is no ensemble: one session,
 * data and versions are not kept, and a name need not be found fast. */
#ifndef DV_FAKE_TREE_H
#define DV_FAKE_TREE_H

#include "fake_znode.h"

typedef struct dv_tree dv_tree;

/* Has the node "/". Free it after its fake. */
dv_tree *dv_tree_new(dv_fake *fake);
void dv_tree_free(dv_tree *tree);

/* The oldest request is carried out, watches fire, and it is answered; false when there is none. */
bool dv_tree_serve(dv_tree *tree);
void dv_tree_serve_all(dv_tree *tree);
/* The link breaks. The oldest `applied` requests under way have been carried out, and all answers are lost. `late`:
 * the other writes are carried out too, but only right before the next write that is served. */
void dv_tree_cut(dv_tree *tree, size_t applied, bool late);
/* The servers expire our session. */
void dv_tree_expire(dv_tree *tree);

/* Act as somebody else; watches fire. dv_tree_put() returns the path of the new node, good until the next call.
 * `owner` of an ephemeral node. */
const char *dv_tree_put(dv_tree *tree, const char *path, int mode, int64_t owner);
void dv_tree_remove(dv_tree *tree, const char *path);
bool dv_tree_has(const dv_tree *tree, const char *path);
/* Returns how many ephemeral nodes of our session there are, and the path of one of them or NULL. */
size_t dv_tree_owned(const dv_tree *tree, const char **one);
/* Returns how many were ever made, by us. */
size_t dv_tree_made(const dv_tree *tree);

#endif
