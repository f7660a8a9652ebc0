/* Many creates or deletes as few requests. SPDX-License-Identifier: Apache-2.0
 *
 * What recipes ask for in one turn is gathered and sent at its end: writes as multis under the limits, in the order
 * they were asked for, then the reads. FIFO makes "create, then list" one round trip for all of them together.
 * When a multi fails as a whole, each of its operations is sent again by itself, so that one bad item spoils nothing.
 * docs/protocol.md, rules B1 and B4. */
#ifndef DV_BATCH_H
#define DV_BATCH_H

#include "znode/znode.h"

/* As dv_znode_create(), except that it is sent by the next flush. The reply carries a stat with only czxid set. Returns
 * 0, or DIVVY_ENOMEM and nothing happens. */
int dv_batch_create(dv_znode *znode, const char *path, const void *data, size_t data_bytes, int mode, dv_reply_fn done,
                    void *context);
/* As dv_znode_delete(), any version. */
int dv_batch_delete(dv_znode *znode, const char *path, dv_reply_fn done, void *context);
/* As dv_znode_children() without a watch, sent after the writes of the same turn. */
int dv_batch_children(dv_znode *znode, const char *path, dv_reply_fn done, void *context);

/* Send what was gathered. */
void dv_batch_flush(dv_znode *znode);

#endif
