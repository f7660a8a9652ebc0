/* Finding pools: the nodes below a path that have a child `party`. SPDX-License-Identifier: Apache-2.0
 *
 * ZooKeeper may have any number of nodes: a search asks about a bounded number of them, goes down a few levels, and not
 * into a pool. It says what it has not seen. */
#ifndef DV_SERVE_FIND_H
#define DV_SERVE_FIND_H

#include "look.h"

/* LEVELS: below the path. CHILDREN: of a node; one with more is not listed. NODES: of one search. */
enum { DV_FIND_LEVELS_MAX = 3, DV_FIND_CHILDREN_MAX = 10000, DV_FIND_NODES_MAX = 10000 };

typedef struct {
    const dv_texts *below;
    const char *root; /* whose locks, semaphores and services are no pools, and may be many */
    char **pools;     /* their paths, sorted bytewise, without doubles */
    size_t pool_count;
    char *denied, *wide; /* the first node that may not be listed; that has too many children. NULL: there is none */
    bool cut;            /* there are more nodes than a search asks about */
    size_t reads;
} dv_serve_found;

/* For dv_look_at(): fills in all but the first two members of the dv_serve_found at `context`. Its former contents are
 * freed. */
int dv_serve_find(dv_look *look, void *context);
void dv_serve_found_clear(dv_serve_found *found);

/* Returns whether a node of that name, below `parent`, may be a pool or lead to one. */
bool dv_serve_find_enters(const char *parent, const char *name, const char *root);

#endif
