/* Checks and counts of a request before it is sent. SPDX-License-Identifier: Apache-2.0 */
#include "znode/request.h"

#include <assert.h>
#include <string.h>

#include "znode/path.h"

size_t dv_op_bytes(const dv_op *op) {
    enum { FRAMING_BYTES = 80 }; /* lengths, flags, version and an access list of digest credentials */
    return strlen(op->path) + op->data_bytes + FRAMING_BYTES;
}

/* A path that the native client refuses inside a multi makes it free what is not its own: check here, always. */
int dv_request_check(const dv_op *ops, size_t count, bool is_multi, divvy_session_state state) {
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += dv_op_bytes(&ops[i]);
        bool limits = ops[i].kind == DV_GET && dv_path_is_limits(ops[i].path);
        if (!limits && dv_path_check(ops[i].path, NULL) != 0) return DIVVY_EINVAL;
        if (is_multi && ops[i].mode == DV_CONTAINER) return DIVVY_EINVAL; /* It would abort the process. */
    }
    if (bytes > (size_t)(is_multi ? DV_MULTI_BYTES_MAX : DV_REQUEST_BYTES_MAX)) return DIVVY_E2BIG;
    if (count > DV_MULTI_OPS_MAX) return DIVVY_E2BIG;
    if (state == DIVVY_LOST) return DIVVY_ELOST;
    if (state == DIVVY_AUTH_FAILED) return DIVVY_EAUTH;
    return state == DIVVY_CONNECTED ? 0 : DIVVY_ECONNECTION;
}

void dv_request_count(divvy_stats *stats, const dv_op *ops, size_t count, bool is_multi) {
    stats->requests++;
    if (is_multi) stats->multis++;
    for (size_t i = 0; i < count; i++) {
        uint64_t *const by_kind[DV_KINDS] = {&stats->creates, &stats->deletes, &stats->sets,     &stats->checks,
                                             &stats->gets,    &stats->exists,  &stats->children, &stats->gets};
        assert((size_t)ops[i].kind < DV_KINDS);
        ++*by_kind[ops[i].kind];
        stats->bytes_sent += strlen(ops[i].path) + ops[i].data_bytes;
    }
}

bool dv_request_answered(int error) {
    return error == 0 || error == DIVVY_ENOENT || error == DIVVY_EEXIST || error == DIVVY_EACCES ||
           error == DIVVY_ENOTEMPTY || error == DIVVY_EVERSION;
}
