/* Nodes that a client leaves on a host's session, for the handle to delete (H6). SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ESTATE_H
#define DV_ESTATE_H

#include "znode/apache/apache.h"

typedef struct dv_leftover dv_leftover;

/* The estate of one handle; all of it under the lock of shared.h. */
typedef struct {
    dv_leftover *first, **end; /* that wait for a request */
    dv_leftover *under_way;    /* with a request that deletes them, or looks for them */
    size_t under_way_count;
    zhandle_t *handle;
    dv_shared *shared;
} dv_estate;

/* With the client lock held: an ephemeral node was made (`made`: as in the answer) or deleted, or may have been. */
void dv_estate_note_create(dv_apache *apache, const dv_op *op, int error, const char *made);
void dv_estate_note_delete(dv_apache *apache, const char *path, int error);
/* The session is over, and all of them with it. */
void dv_estate_forget(dv_apache *apache);

void dv_estate_init(dv_estate *estate, zhandle_t *handle, dv_shared *shared);
void dv_estate_inherit(dv_estate *estate, dv_apache *apache);
/* While the handle is connected: on with it. */
void dv_estate_settle(dv_estate *estate);
bool dv_estate_is_settled(const dv_estate *estate);
/* The session is over: no node needs another request. */
void dv_estate_drop(dv_estate *estate);
/* The same, when the handle will not answer either. */
void dv_estate_bury(dv_estate *estate);

#endif
