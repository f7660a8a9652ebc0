/* Writes each request and each answer as a line of the log, where the config asks for them. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef DV_TRACE_H
#define DV_TRACE_H

#include "znode/znode.h"

/* A request leaves. `number` ties the answer to it. No data are shown, only how many bytes they are: they may be
 * secrets of somebody's. */
void dv_trace_request(dv_znode *znode, uint64_t number, const dv_op *ops, size_t count, bool is_multi, bool watch);

/* Its answer has come after `took_us`, or it has ended without one; `made`: the node that a create made, or NULL. */
void dv_trace_answer(dv_znode *znode, uint64_t number, const dv_reply *reply, const char *made, int64_t took_us);

#endif
