/* A request before it is sent, and its answer, as every backend takes them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ZNODE_REQUEST_H
#define DV_ZNODE_REQUEST_H

#include "znode/znode.h"

/* Returns the bytes that an operation takes of a request, with a generous allowance for its framing. */
size_t dv_op_bytes(const dv_op *op);
/* Returns 0, or why it is not sent: DIVVY_EINVAL, DIVVY_E2BIG; by the state DIVVY_ELOST, _EAUTH or _ECONNECTION. */
int dv_request_check(const dv_op *ops, size_t count, bool is_multi, divvy_session_state state);
void dv_request_count(divvy_stats *stats, const dv_op *ops, size_t count, bool is_multi);
/* Returns whether it is certain that a server has decided so, and not this side. */
bool dv_request_answered(int error);

#endif
