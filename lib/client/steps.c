/* Steps: what a client asks, is answered and believes, in its log, for a replay. SPDX-License-Identifier: Apache-2.0
 *
 * A layer over the client's seam, there only where the config asks for it. A line is made where its step happens, with
 * the client's own time, in the order of the steps. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "client/error.h"

enum { LINE_BYTES = 1024 };

struct dv_steps {
    dv_znode_backend layer;
    const dv_znode_backend *under;
};

/* A request under way. */
typedef struct {
    divvy_client *client;
    dv_reply_fn done;
    dv_multi_fn multi_done;
    void *context;
    unsigned long long session;
    size_t count;
    dv_op ops[]; /* their paths live until the answer */
} asked;

static const char *const kinds[DV_KINDS] = {"create", "delete", "set", "check", "get", "exists", "children", "acl"};

void dv_client_step(divvy_client *client, const char *format, ...) {
    if (!client->steps) return;
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dv_client_log(client, DIVVY_LOG_DEBUG, "step %lld %llx %s", (long long)dv_client_now(client),
                  (unsigned long long)atomic_load(&client->session_id), text);
}

static void tell(const asked *a, const char *text) {
    dv_client_log(a->client, DIVVY_LOG_DEBUG, "step %lld %llx %s", (long long)dv_client_now(a->client), a->session,
                  text);
}

static bool is_barrier(const asked *a) {
    return a->multi_done && a->count == 1 && a->ops->kind == DV_CHECK && strcmp(a->ops->path, "/") == 0;
}

static void tell_asked(const asked *a, const dv_watch *watch) {
    char text[LINE_BYTES];
    if (is_barrier(a)) tell(a, "ask-barrier /");
    for (size_t i = 0; i < a->count && !is_barrier(a); i++) {
        snprintf(text, sizeof text, "ask-%s %s%s", kinds[a->ops[i].kind], a->ops[i].path, watch ? " watch=1" : "");
        tell(a, text);
    }
}

static const char *word_of(int error) {
    if (!error) return "done";
    if (error == DIVVY_ENOENT) return "none";
    return dv_outcome_unknown(error) || dv_session_over(error) ? "lost" : "refused";
}

/* A list that is too long for a line ends with "...". */
static void add_names(char *text, size_t bytes, const dv_reply *reply) {
    size_t at = strlen(text);
    at += (size_t)snprintf(text + at, bytes - at, " names=");
    for (size_t i = 0; i < reply->child_count && at < bytes; i++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%s", i ? "," : "", reply->children[i]);
    if (at >= bytes) strcpy(text + bytes - 4, "...");
}

static void tell_answer(const asked *a, size_t i, const dv_reply *reply) {
    char text[LINE_BYTES];
    int length =
        snprintf(text, sizeof text, "%s %s answer=%s", kinds[a->ops[i].kind], a->ops[i].path, word_of(reply->error));
    if (length < 0 || (size_t)length >= sizeof text - 16) return;
    if (!reply->error && reply->path) snprintf(text + length, sizeof text - (size_t)length, " made=%s", reply->path);
    if (!reply->error && a->ops[i].kind == DV_CHILDREN) add_names(text, sizeof text, reply);
    tell(a, text);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    asked *a = context;
    tell_answer(a, 0, reply);
    a->done(a->context, reply, now);
    free(a);
}

static void on_multi(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    asked *a = context;
    bool lost = dv_outcome_unknown(error) || dv_session_over(error);
    if (is_barrier(a)) tell(a, lost ? "barrier / answer=lost" : "barrier / answer=done");
    for (size_t i = 0; i < count && !is_barrier(a); i++) tell_answer(a, i, &replies[i]);
    a->multi_done(a->context, error, replies, count, now);
    free(a);
}

/* Returns NULL where there is no memory: the request is sent, and no line tells of it. */
static asked *new_asked(const dv_znode *znode, const dv_op *ops, size_t count, void *context) {
    asked *a = calloc(1, sizeof *a + count * sizeof a->ops[0]);
    if (!a) return NULL;
    a->client = znode->context;
    a->session = (unsigned long long)atomic_load(&a->client->session_id);
    a->context = context;
    a->count = count;
    memcpy(a->ops, ops, count * sizeof *ops);
    return a;
}

static const dv_znode_backend *under(const dv_znode *znode) {
    const divvy_client *client = znode->context;
    return client->steps->under;
}

static int submit(dv_znode *znode, const dv_op *op, dv_watch *watch, dv_reply_fn done, void *context) {
    asked *a = new_asked(znode, op, 1, context);
    if (!a) return under(znode)->submit(znode, op, watch, done, context);
    a->done = done;
    tell_asked(a, watch);
    int error = under(znode)->submit(znode, op, watch, on_reply, a);
    if (error) free(a);
    return error;
}

static int multi(dv_znode *znode, const dv_op *ops, size_t count, dv_multi_fn done, void *context) {
    asked *a = new_asked(znode, ops, count, context);
    if (!a) return under(znode)->multi(znode, ops, count, done, context);
    a->multi_done = done;
    tell_asked(a, NULL);
    int error = under(znode)->multi(znode, ops, count, on_multi, a);
    if (error) free(a);
    return error;
}

int dv_steps_begin(divvy_client *client) {
    if (!client->config.on_log || !client->config.log_steps) return 0;
    struct dv_steps *steps = calloc(1, sizeof *steps);
    if (!steps) return dv_fail_plainly(NULL, DIVVY_ENOMEM);
    steps->under = client->znode->backend;
    steps->layer = *steps->under;
    steps->layer.submit = submit;
    steps->layer.multi = multi;
    client->znode->backend = &steps->layer;
    client->steps = steps;
    return 0;
}
