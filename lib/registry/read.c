/* Reading: a role, or all, many requests at a time. SPDX-License-Identifier: Apache-2.0
 *
 * Each role is listed, and its entries are read as they come up, so many at a time that the answers under way stay
 * within a bound of bytes, whatever is in the nodes. docs/protocol.md, W17. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"
#include "znode/path.h"

enum {
    READS_LEAST = 4,
    READS_FIRST = 64,
    READS_MOST = 512,
    BYTES_UNDER_WAY = 32 * 1024 * 1024,
};

/* A role, and what is left to be read of it. */
typedef struct role {
    struct role *next;
    char *node, *path;
    char **ids;
    size_t count, asked;
    unsigned under_way;
    dv_reading *reading;
} role;

typedef struct {
    role *role;
    char *path;
    const char *id_node; /* in it */
} role_read;

struct dv_reading {
    divvy_registry *registry;
    dv_reading_events events;
    void *context;
    role *unlisted, *listed, **listed_end;
    unsigned under_way;
    size_t window, seen_bytes, seen; /* of the data of late */
    bool all, abandoned;
    int error;
};

static void go_on(dv_reading *r, int64_t now);

static void free_role(role *p) {
    for (size_t i = p->asked; i < p->count; i++) free(p->ids[i]);
    free(p->ids);
    free(p->path);
    free(p->node);
    free(p);
}

static void free_roles(role **list) {
    while (*list) {
        role *p = *list;
        *list = p->next;
        free_role(p);
    }
}

static void end(dv_reading *r, int64_t now) {
    free_roles(&r->unlisted);
    free_roles(&r->listed);
    divvy_registry *registry = r->registry;
    if (!r->abandoned) r->events.done(r->context, r->error, now);
    free(r);
    dv_object_unref(&registry->object);
}

static void note_error(dv_reading *r, int error) {
    if (!r->error && error != DIVVY_ENOENT) r->error = error; /* A node that has gone in between is no error. */
}

/* ---- entries ---- */

/* As many at a time as fit the bound at the size that they have had of late. */
static void adapt(dv_reading *r, size_t data_bytes) {
    enum { SAMPLE = 16 };
    r->seen_bytes += data_bytes;
    if (++r->seen < SAMPLE && data_bytes < BYTES_UNDER_WAY / READS_FIRST) return;
    size_t fit = BYTES_UNDER_WAY / (r->seen_bytes / r->seen + 1);
    r->window = fit < READS_LEAST ? READS_LEAST : fit > r->window * 2 ? r->window * 2 : fit;
    if (r->window > READS_MOST) r->window = READS_MOST;
    assert(r->window >= READS_LEAST);
    r->seen = r->seen_bytes = 0;
}

static void on_data(void *context, const dv_reply *reply, int64_t now) {
    role_read *k = context;
    role *p = k->role;
    dv_reading *r = p->reading;
    dv_entry *entry = NULL;
    assert(p->under_way > 0 && r->under_way >= p->under_way);
    if (reply->error == 0 && !r->abandoned && !r->error) {
        adapt(r, reply->data_bytes);
        int error =
            dv_registry_parse(r->registry, &entry, p->node, k->id_node, reply->data, reply->data_bytes, reply->stat);
        if (error == DIVVY_ENOMEM) note_error(r, error);
    }
    if (entry) r->events.entry(r->context, entry);
    if (reply->error != DIVVY_EACCES) note_error(r, reply->error);
    else if (!r->abandoned) dv_registry_skip_unreadable(r->registry, p->node, k->id_node);
    free(k->path);
    free(k);
    p->under_way--;
    r->under_way--;
    go_on(r, now);
}

static bool ask_for_data(role *p) {
    dv_reading *r = p->reading;
    assert(p->asked < p->count && p->ids[p->asked]);
    role_read *k = calloc(1, sizeof *k);
    if (!k) return false;
    k->role = p;
    k->path = dv_registry_path(r->registry, p->node, p->ids[p->asked]);
    k->id_node = k->path ? dv_path_last(k->path) : NULL;
    if (!k->path || dv_znode_get(r->registry->object.client->znode, k->path, NULL, on_data, k) != 0) {
        free(k->path);
        free(k);
        return false;
    }
    free(p->ids[p->asked++]);
    p->under_way++;
    r->under_way++;
    return true;
}

/* ---- lists ---- */

static bool keep_ids(role *p, const dv_reply *reply) {
    assert(!p->ids && !p->count);
    p->ids = calloc(reply->child_count + 1, sizeof *p->ids);
    while (p->ids && p->count < reply->child_count) {
        p->ids[p->count] = strdup(reply->children[p->count]);
        if (!p->ids[p->count]) return false;
        p->count++;
    }
    return p->ids;
}

static void on_ids(void *context, const dv_reply *reply, int64_t now) {
    role *p = context;
    dv_reading *r = p->reading;
    assert(p->under_way == 1 && r->under_way > 0 && !p->next);
    p->under_way--;
    r->under_way--;
    bool hidden = reply->error == DIVVY_EACCES && r->all;
    if (!hidden) note_error(r, reply->error);
    else if (!r->abandoned) dv_registry_skip_unreadable(r->registry, p->node, "");
    bool wanted = reply->error == 0 && !r->abandoned && !r->error;
    if (wanted && r->events.role) r->events.role(r->context, p->node, reply->stat, reply->children, reply->child_count);
    if (wanted && r->events.entry && !keep_ids(p, reply)) note_error(r, DIVVY_ENOMEM);
    *r->listed_end = p;
    r->listed_end = &p->next;
    go_on(r, now);
}

static bool ask_for_ids(dv_reading *r) {
    role *p = r->unlisted;
    assert(!p->under_way && !p->ids);
    free(p->path);
    p->path = dv_registry_path(r->registry, p->node, NULL);
    if (!p->path || dv_znode_children(r->registry->object.client->znode, p->path, NULL, on_ids, p) != 0) return false;
    r->unlisted = p->next;
    p->next = NULL;
    p->under_way++;
    r->under_way++;
    return true;
}

static bool add_role(dv_reading *r, const char *node) {
    assert(!r->under_way && !r->listed);
    role *p = calloc(1, sizeof *p);
    if (!p) return false;
    *p = (role){.next = r->unlisted, .node = strdup(node), .reading = r};
    if (!p->node) {
        free(p);
        return false;
    }
    r->unlisted = p;
    return true;
}

static void on_roles(void *context, const dv_reply *reply, int64_t now) {
    dv_reading *r = context;
    assert(r->under_way == 1 && r->all && !r->unlisted);
    r->under_way--;
    note_error(r, reply->error);
    for (size_t i = 0; reply->error == 0 && i < reply->child_count && !r->error; i++) {
        if (!add_role(r, reply->children[i])) note_error(r, DIVVY_ENOMEM);
    }
    go_on(r, now);
}

/* ---- going on ---- */

static void drop_read_roles(dv_reading *r) {
    while (r->listed && r->listed->asked == r->listed->count && !r->listed->under_way) {
        role *p = r->listed;
        r->listed = p->next;
        if (!r->listed) r->listed_end = &r->listed;
        free_role(p);
    }
}

static role *next_to_read(const dv_reading *r) {
    role *p = r->listed;
    while (p && p->asked == p->count) p = p->next;
    return p;
}

static void go_on(dv_reading *r, int64_t now) {
    drop_read_roles(r);
    while (!r->error && !r->abandoned && r->under_way < r->window) {
        role *p = next_to_read(r);
        if (!p && !r->unlisted) break;
        if (!(p ? ask_for_data(p) : ask_for_ids(r))) note_error(r, DIVVY_ENOMEM);
    }
    if (!r->under_way) end(r, now);
}

int dv_registry_read(dv_reading **out, divvy_registry *registry, const char *role_node, const dv_reading_events *events,
                     void *context) {
    *out = NULL;
    dv_reading *r = calloc(1, sizeof *r);
    if (!r) return DIVVY_ENOMEM;
    *r = (dv_reading){
        .registry = registry, .events = *events, .context = context, .window = READS_FIRST, .all = !role_node};
    r->listed_end = &r->listed;
    bool sent;
    if (role_node) {
        sent = add_role(r, role_node) && ask_for_ids(r);
    } else {
        sent = dv_znode_children(registry->object.client->znode, registry->root, NULL, on_roles, r) == 0;
        r->under_way += sent;
    }
    if (!sent) {
        free_roles(&r->unlisted);
        free(r);
        return DIVVY_ENOMEM;
    }
    assert(r->under_way == 1);
    dv_object_ref(&registry->object);
    *out = r;
    return 0;
}

void dv_reading_abandon(dv_reading *r) {
    assert(!r->abandoned && r->under_way > 0);
    r->abandoned = true;
}
