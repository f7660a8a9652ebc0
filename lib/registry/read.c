/* Reading: a role, or all, many requests at a time. SPDX-License-Identifier: Apache-2.0
 *
 * Each role is listed, and its entries are read as they come up, so many at a time that the answers under way stay
 * within a bound of bytes, whatever is in the nodes. docs/protocol.md, W17. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"

enum {
    READS_LEAST = 4,
    READS_FIRST = 64,
    READS_MOST = 512,
    BYTES_UNDER_WAY = 32 * 1024 * 1024,
};

/* A role, and what is left to be read of it. */
typedef struct dv_listed_role {
    struct dv_listed_role *next;
    char *node;
    char **ids;
    size_t count, requested;
    unsigned under_way;
    dv_reading *reading;
} role;

typedef struct {
    role *role;
    char *id_node;
} role_read;

static void go_on(dv_reading *r);

static void free_role(role *p) {
    for (size_t i = p->requested; i < p->count; i++) free(p->ids[i]);
    free(p->ids);
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

static void free_reading(dv_reading *r) {
    divvy_registry *registry = r->registry;
    free_roles(&r->unlisted);
    free_roles(&r->listed);
    dv_entries_free(&r->entries);
    divvy_strings_free(r->roles);
    free(r);
    dv_object_unref(&registry->object);
}

void dv_reading_drop(dv_reading *r) {
    assert(!r->dropped);
    r->dropped = true;
    if (r->done) free_reading(r);
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

static void take_data(dv_reading *r, const char *role_node, const char *id_node, const dv_reply *reply) {
    dv_entry *entry = NULL;
    int error = dv_registry_parse(r->registry, &entry, role_node, id_node, reply->data, reply->data_bytes, reply->stat);
    if (error == DIVVY_ENOMEM || (entry && !dv_entries_add(&r->entries, entry))) {
        dv_entry_free(entry);
        note_error(r, DIVVY_ENOMEM);
    }
}

static void on_data(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    role_read *k = context;
    role *p = k->role;
    dv_reading *r = p->reading;
    assert(p->under_way > 0 && r->under_way >= p->under_way);
    if (reply->error == 0 && !r->dropped && !r->error) {
        adapt(r, reply->data_bytes);
        take_data(r, p->node, k->id_node, reply);
    }
    if (reply->error != DIVVY_EACCES) note_error(r, reply->error);
    else if (!r->dropped) dv_registry_skip_unreadable(r->registry, p->node, k->id_node);
    free(k->id_node);
    free(k);
    p->under_way--;
    r->under_way--;
    go_on(r);
}

static bool request_data(role *p) {
    dv_reading *r = p->reading;
    assert(p->requested < p->count && p->ids[p->requested]);
    role_read *k = calloc(1, sizeof *k);
    char *path = dv_registry_path(r->registry, p->node, p->ids[p->requested]);
    bool sent = k && path && dv_znode_get(r->registry->object.client->znode, path, NULL, on_data, k) == 0;
    free(path);
    if (!sent) {
        free(k);
        return false;
    }
    *k = (role_read){p, p->ids[p->requested++]};
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

static bool take_ids(role *p, const dv_reply *reply) {
    dv_reading *r = p->reading;
    if (!r->id_node) return keep_ids(p, reply);
    for (size_t i = 0; i < reply->child_count; i++) {
        if (strcmp(reply->children[i], r->id_node) == 0) return dv_strings_add(r->roles, p->node) == 0;
    }
    return true;
}

static void on_ids(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    role *p = context;
    dv_reading *r = p->reading;
    assert(p->under_way == 1 && r->under_way > 0 && !p->next);
    p->under_way--;
    r->under_way--;
    bool hidden = reply->error == DIVVY_EACCES && r->all;
    if (!hidden) note_error(r, reply->error);
    else if (!r->dropped) dv_registry_skip_unreadable(r->registry, p->node, "");
    if (reply->error == 0 && !r->dropped && !r->error && !take_ids(p, reply)) note_error(r, DIVVY_ENOMEM);
    *r->listed_end = p;
    r->listed_end = &p->next;
    go_on(r);
}

static bool request_ids(dv_reading *r) {
    role *p = r->unlisted;
    assert(!p->under_way && !p->ids);
    char *path = dv_registry_path(r->registry, p->node, NULL);
    bool sent = path && dv_znode_children(r->registry->object.client->znode, path, NULL, on_ids, p) == 0;
    free(path);
    if (!sent) return false;
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
    (void)now;
    dv_reading *r = context;
    assert(r->under_way == 1 && r->all && !r->unlisted);
    r->under_way--;
    note_error(r, reply->error);
    for (size_t i = 0; reply->error == 0 && i < reply->child_count && !r->error; i++) {
        if (!add_role(r, reply->children[i])) note_error(r, DIVVY_ENOMEM);
    }
    go_on(r);
}

/* ---- going on ---- */

static void drop_read_roles(dv_reading *r) {
    while (r->listed && r->listed->requested == r->listed->count && !r->listed->under_way) {
        role *p = r->listed;
        r->listed = p->next;
        if (!r->listed) r->listed_end = &r->listed;
        free_role(p);
    }
}

static role *next_to_read(const dv_reading *r) {
    role *p = r->listed;
    while (p && p->requested == p->count) p = p->next;
    return p;
}

static void go_on(dv_reading *r) {
    drop_read_roles(r);
    while (!r->error && !r->dropped && r->under_way < r->window) {
        role *p = next_to_read(r);
        if (!p && !r->unlisted) break;
        if (!(p ? request_data(p) : request_ids(r))) note_error(r, DIVVY_ENOMEM);
    }
    if (r->under_way) return;
    r->done = true;
    dv_client_changed(r->registry->object.client);
    if (r->dropped) free_reading(r);
}

dv_reading *dv_registry_read(divvy_registry *registry, const char *role_node, const char *id_node) {
    dv_reading *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (dv_reading){.registry = registry, .id_node = id_node, .window = READS_FIRST, .all = !role_node};
    r->listed_end = &r->listed;
    dv_object_ref(&registry->object);
    bool sent = !id_node || (r->roles = dv_strings_new());
    if (sent && role_node) {
        sent = add_role(r, role_node) && request_ids(r);
    } else if (sent) {
        sent = dv_znode_children(registry->object.client->znode, registry->root, NULL, on_roles, r) == 0;
        r->under_way += sent;
    }
    if (sent) return r;
    free_reading(r);
    return NULL;
}
