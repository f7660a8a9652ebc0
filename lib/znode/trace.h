/* Writes requests and answers to the log, where the config asks for them. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TRACE_H
#define DV_TRACE_H

#include "znode/znode.h"

/* Tells of a request that leaves; `number` ties its answer to it. Data may be secrets: only their length is shown. */
void dv_trace_request(dv_znode *znode, uint64_t number, const dv_op *ops, size_t count, bool is_multi, bool watch);

/* Tells of its answer after `took_us`, or its end without one. `made`: the node that a create made, or NULL. */
void dv_trace_answer(dv_znode *znode, uint64_t number, const dv_reply *reply, const char *made, int64_t took_us);

#endif
