/* Make a path and its missing parents. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ENSURE_H
#define DV_ENSURE_H

#include "znode/znode.h"

/* Makes what is missing, with empty data: one read when the path is there already, two round trips when it is not, and
 * some more when somebody deletes what it has just made.
 * `mode` is DV_PERSISTENT or DV_CONTAINER (B8). `path` lives until `done`, which is called once: 0, or the first error
 * that stood in the way. Returns 0, or DIVVY_ENOMEM: nothing happens. */
int dv_ensure_path(dv_znode *znode, const char *path, int mode, void (*done)(void *context, int error, int64_t now),
                   void *context);
/* The same; before `done` it calls `seen` with the pzxid of a path that is there already. */
int dv_ensure_path_seen(dv_znode *znode, const char *path, int mode, void (*seen)(void *context, int64_t pzxid),
                        void (*done)(void *context, int error, int64_t now), void *context);

#endif
