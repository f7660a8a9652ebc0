/* Fetch: reads of many nodes of one directory, so many under way at a time. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/fetch.h"

#include <assert.h>
#include <stdlib.h>

#include "znode/path.h"

typedef struct {
    dv_fetch *fetch;
    char *path;
} node_read;

struct dv_fetch {
    dv_znode *znode;
    const dv_fetch_kind *kind;
    void *owner;
    bool abandoned;
    int error; /* the first */
    size_t count, sent, under_way;
    node_read reads[];
};

static void free_fetch(dv_fetch *f) {
    for (size_t n = 0; n < f->count; n++) free(f->reads[n].path);
    free(f);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now);

static void send_reads(dv_fetch *f) {
    while (!f->error && !f->abandoned && f->sent < f->count && f->under_way < f->kind->window) {
        node_read *r = &f->reads[f->sent];
        dv_op op = {.kind = f->kind->kind, .path = r->path};
        f->error = dv_znode_submit(f->znode, &op, NULL, on_reply, r);
        if (f->error) return;
        f->sent++;
        f->under_way++;
    }
}

void dv_fetch_hold(dv_fetch *f) {
    assert(f->under_way > 0);
    f->under_way++;
}

void dv_fetch_release(dv_fetch *f, int64_t now) {
    assert(f->under_way > 0);
    f->under_way--;
    send_reads(f);
    if (f->under_way > 0) return;
    if (!f->abandoned) f->kind->done(f->owner, f->error, now);
    free_fetch(f);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    const node_read *r = context;
    dv_fetch *f = r->fetch;
    int error = f->abandoned ? 0 : f->kind->take(f->owner, r->path, reply, now);
    if (!f->error) f->error = error;
    dv_fetch_release(f, now);
}

int dv_fetch_start(dv_fetch **out, divvy_client *client, const dv_fetch_kind *kind, const char *directory,
                   const char *const *names, size_t count, void *owner) {
    assert(count > 0 && kind->window > 0);
    dv_fetch *f = calloc(1, sizeof *f + count * sizeof *f->reads);
    if (!f) return DIVVY_ENOMEM;
    *f = (dv_fetch){.znode = client->znode, .kind = kind, .owner = owner};
    while (f->count < count) {
        char *path = dv_path_join(directory, names[f->count]);
        if (!path) break;
        f->reads[f->count++] = (node_read){f, path};
    }
    if (f->count == count) send_reads(f);
    if (f->under_way == 0) {
        free_fetch(f);
        return DIVVY_ENOMEM;
    }
    *out = f;
    return 0;
}

void dv_fetch_stop(dv_fetch *f, int error) {
    assert(error != 0);
    if (!f->error) f->error = error;
}

void dv_fetch_abandon(dv_fetch *f) {
    f->abandoned = true;
}

/* ---- for a caller who waits ---- */

typedef struct {
    divvy_client *client;
    dv_fetch_take_fn take;
    void *owner;
    bool done;
    int error;
} waiter;

static int take_for_waiter(void *context, const char *path, const dv_reply *reply, int64_t now) {
    const waiter *w = context;
    return w->take(w->owner, path, reply, now);
}

static void on_done(void *context, int error, int64_t now) {
    (void)now;
    waiter *w = context;
    w->done = true;
    w->error = error;
    dv_client_changed(w->client);
}

static bool is_done(void *context) {
    return ((const waiter *)context)->done;
}

int dv_fetch_wait(divvy_client *client, const char *directory, const char *const *names, size_t count,
                  dv_fetch_take_fn take, void *owner, dv_deadline deadline) {
    static const dv_fetch_kind kind = {DV_GET, 64, take_for_waiter, on_done};
    waiter w = {.client = client, .take = take, .owner = owner};
    dv_fetch *fetch;
    int error = count ? dv_fetch_start(&fetch, client, &kind, directory, names, count, &w) : 0;
    if (error || !count) return error;
    error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_done, &w);
    if (!w.done) dv_fetch_abandon(fetch);
    return error ? error : w.error;
}
