/* Writes requests and answers to the log, where the config asks for them. SPDX-License-Identifier: Apache-2.0 */
#include "znode/trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 1024 };

/* A line that is cut short when it grows too long. */
typedef struct {
    char text[LINE_BYTES];
    size_t bytes;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *l, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(l->text + l->bytes, sizeof l->text - l->bytes, format, arguments);
    va_end(arguments);
    if (more > 0) l->bytes += (size_t)more;
    if (l->bytes >= sizeof l->text) l->bytes = sizeof l->text - 1;
}

static void add_op(line *l, const dv_op *op) {
    static const char *const names[DV_KINDS] = {"create", "delete", "set", "check", "get", "exists", "children", "acl"};
    add(l, "%s %s", names[op->kind], op->path);
    if (op->kind == DV_CREATE) {
        add(l, " (%s%s, %zu bytes)",
            op->mode == DV_CONTAINER  ? "container"
            : op->mode & DV_EPHEMERAL ? "ephemeral"
                                      : "persistent",
            op->mode & DV_SEQUENTIAL ? ", sequential" : "", op->data_bytes);
    } else if (op->kind == DV_SET) {
        add(l, " (%zu bytes)", op->data_bytes);
    }
    bool versioned = op->kind == DV_DELETE || op->kind == DV_SET || op->kind == DV_CHECK;
    if (versioned && op->version >= 0) add(l, " at version %" PRId32, op->version);
}

void dv_trace_request(dv_znode *znode, uint64_t number, const dv_op *ops, size_t count, bool is_multi, bool watch) {
    line l = {.bytes = 0};
    add(&l, "request %" PRIu64 ": ", number);
    if (is_multi) add(&l, "all of %zu: ", count);
    for (size_t i = 0; i < count && l.bytes < sizeof l.text - 1; i++) {
        if (i > 0) add(&l, "; ");
        add_op(&l, &ops[i]);
    }
    if (watch) add(&l, ", with a watch");
    znode->on_log(znode->context, DIVVY_LOG_DEBUG, l.text);
}

void dv_trace_answer(dv_znode *znode, uint64_t number, const dv_reply *reply, const char *made, int64_t took_us) {
    line l = {.bytes = 0};
    add(&l, "answer %" PRIu64 ": ", number);
    if (reply->error) {
        add(&l, "%s", dv_answer_errname(reply->error));
        if (!dv_answer_is_raw(reply->error)) add(&l, ", %s", divvy_strerror(reply->error));
    } else add(&l, "done");
    if (made) add(&l, ", made %s", made);
    if (reply->data) add(&l, ", %zu bytes", reply->data_bytes);
    if (reply->children) add(&l, ", %zu children", reply->child_count);
    if (took_us >= 0) add(&l, ", after %" PRId64 ".%03d ms", took_us / 1000, (int)(took_us % 1000));
    znode->on_log(znode->context, DIVVY_LOG_DEBUG, l.text);
}
