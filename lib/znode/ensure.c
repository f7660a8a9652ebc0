/* Make a path and its missing parents. SPDX-License-Identifier: Apache-2.0 */
#include "znode/ensure.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS_MAX = 5 };

typedef struct {
    dv_znode *znode;
    const char *path;
    int mode;
    void (*seen)(void *context, int64_t pzxid); /* or NULL */
    void (*done)(void *context, int error, int64_t now);
    void *context;
    char **ancestors; /* from the top down, the path itself last */
    size_t count, sent, answered;
    int looks;
    bool there; /* the path itself */
    int first_error;
} ensure;

static int look(ensure *e);

static void finish(ensure *e, int error, int64_t now) {
    void (*done)(void *, int, int64_t) = e->done;
    void *context = e->context;
    for (size_t i = 0; i < e->count; i++) free(e->ancestors[i]);
    free(e->ancestors);
    free(e);
    done(context, error, now);
}

/* An ancestor may be there and yet forbid us to create it; what counts is that the path itself is there in the end. */
static void on_ancestor(void *context, const dv_reply *reply, int64_t now) {
    ensure *e = context;
    assert(e->answered < e->sent);
    e->answered++;
    bool there = reply->error == 0 || reply->error == DIVVY_EEXIST;
    /* Those below a node that is not there yet are refused for that, and may be told of it earlier. */
    bool says_more = !e->first_error || e->first_error == DIVVY_ENOENT || dv_outcome_unknown(reply->error);
    if (!there && says_more) e->first_error = reply->error;
    if (e->answered < e->sent) return;
    /* Nothing but ENOENT: somebody has deleted one before what is below it was made. */
    bool again = !e->there && e->first_error == DIVVY_ENOENT && e->looks < LOOKS_MAX && look(e) == 0;
    if (!again) finish(e, e->there ? 0 : e->first_error, now);
}

static void on_path(void *context, const dv_reply *reply, int64_t now) {
    ensure *e = context;
    e->there = reply->error == 0 || reply->error == DIVVY_EEXIST;
    on_ancestor(e, reply, now); /* which need not be the last answer (B8) */
}

static bool split(ensure *e) {
    size_t levels = 0;
    for (const char *c = e->path; *c; c++) levels += *c == '/';
    e->ancestors = calloc(levels, sizeof *e->ancestors);
    if (!e->ancestors) return false;
    for (const char *c = e->path + 1; e->count < levels; c++) {
        if (*c && *c != '/') continue;
        e->ancestors[e->count] = strndup(e->path, (size_t)(c - e->path));
        if (!e->ancestors[e->count++]) return false;
    }
    assert(e->count == levels);
    return true;
}

static void make_all(ensure *e, int64_t now) {
    assert(e->count > 0);
    e->answered = 0;
    for (e->sent = 0; e->sent < e->count; e->sent++) {
        dv_reply_fn done = e->sent + 1 < e->count ? on_ancestor : on_path;
        e->first_error = dv_znode_create(e->znode, e->ancestors[e->sent], "", 0, e->mode, done, e);
        if (e->first_error) break;
    }
    if (e->sent == 0) finish(e, e->first_error, now); /* Else those that were sent answer yet. */
}

/* Since 3.9 a server refuses to show a node that we may not read, but only one that is there. */
static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    ensure *e = context;
    if (reply->error == 0 && reply->stat && e->seen) e->seen(e->context, reply->stat->pzxid);
    if (reply->error == DIVVY_EACCES) finish(e, 0, now);
    else if (reply->error != DIVVY_ENOENT) finish(e, reply->error, now);
    else if (!e->ancestors && !split(e)) finish(e, DIVVY_ENOMEM, now);
    else make_all(e, now);
}

static int look(ensure *e) {
    e->looks++;
    return dv_znode_exists(e->znode, e->path, NULL, on_looked, e);
}

int dv_ensure_path_seen(dv_znode *znode, const char *path, int mode, void (*seen)(void *context, int64_t pzxid),
                        void (*done)(void *context, int error, int64_t now), void *context) {
    ensure *e = calloc(1, sizeof *e);
    if (!e) return DIVVY_ENOMEM;
    *e = (ensure){.znode = znode, .path = path, .mode = mode, .seen = seen, .done = done, .context = context};
    int error = look(e);
    if (error) free(e);
    return error;
}

int dv_ensure_path(dv_znode *znode, const char *path, int mode, void (*done)(void *context, int error, int64_t now),
                   void *context) {
    return dv_ensure_path_seen(znode, path, mode, NULL, done, context);
}
