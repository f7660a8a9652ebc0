/* Many creates or deletes as few requests: B1 and B4. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_BATCH_H
#define DV_BATCH_H

#include "znode/znode.h"

/* As dv_znode_create(), but sent by the next flush. The reply's stat has czxid only. Returns 0 or DIVVY_ENOMEM. */
int dv_batch_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context);
/* The same in a directory that its transaction deletes, while it is empty and its data were never set, and makes again:
 * then the number of a sequential node is 0. Where that cannot be, the directory stays as it is (Q11). It lives as long
 * as `path`. */
int dv_batch_create_renewing(dv_znode *znode, const char *directory, const char *path, const void *data,
                             size_t data_bytes, int mode, dv_reply_fn done, void *context);
/* As dv_znode_delete(), any version. */
int dv_batch_delete(dv_znode *znode, const char *path, dv_reply_fn done, void *context);
/* As dv_znode_children() without a watch, sent after the writes of the same turn. */
int dv_batch_children(dv_znode *znode, const char *path, dv_reply_fn done, void *context);

void dv_batch_flush(dv_znode *znode);

#endif
