/* Reading: a role, or all, many requests at a time, for a caller that waits. SPDX-License-Identifier: Apache-2.0
 *
 * The answers under way stay within a bound of bytes, whatever is in the nodes. docs/protocol.md, V2 and W17. */
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

/* A node that is read: an entry, or a role, whose children are listed. */
typedef struct node {
    struct node *next;
    struct reading *reading;
    char *path;
} node;

/* A read of a role, or of all, under way or, when nothing is, done. */
typedef struct reading {
    divvy_registry *registry;
    const char *id_node; /* NULL: entries are read, else only the roles that have such a child are found */
    bool all;            /* of the roles */
    bool dropped;
    int error; /* the first; a node that is not there is none */
    dv_entries found;
    divvy_strings *found_roles;
    node *roles, *entries, **entries_end; /* not sent yet */
    unsigned under_way;
    size_t window, seen_bytes, seen; /* of the data of late */
} reading;

static void go_on(reading *r);

static void free_node(node *n) {
    free(n->path);
    free(n);
}

static void free_nodes(node **list) {
    while (*list) {
        node *n = *list;
        *list = n->next;
        free_node(n);
    }
}

static void free_reading(reading *r) {
    divvy_registry *registry = r->registry;
    free_nodes(&r->roles);
    free_nodes(&r->entries);
    dv_entries_free(&r->found);
    divvy_strings_free(r->found_roles);
    free(r);
    dv_object_unref(&registry->object);
}

/* Frees it, now or when its requests have ended. */
static void drop_reading(reading *r) {
    assert(!r->dropped);
    r->dropped = true;
    if (!r->under_way) free_reading(r);
}

static void note_error(reading *r, int error) {
    if (!r->error && error != DIVVY_ENOENT) r->error = error; /* A node that has gone in between is no error. */
}

static node *new_node(reading *r, const char *parent, const char *name) {
    node *n = calloc(1, sizeof *n);
    char *path = dv_path_join(parent, name);
    if (n && path) {
        *n = (node){.reading = r, .path = path};
        return n;
    }
    free(n);
    free(path);
    note_error(r, DIVVY_ENOMEM);
    return NULL;
}

/* Returns whether an answer is still of use. */
static bool answered(reading *r, const dv_reply *reply) {
    assert(r->under_way > 0);
    r->under_way--;
    return reply->error == 0 && !r->dropped && !r->error;
}

/* ---- entries ---- */

/* As many at a time as fit the bound at the size that they have had of late. */
static void adapt(reading *r, size_t data_bytes) {
    enum { SAMPLE = 16 };
    r->seen_bytes += data_bytes;
    if (++r->seen < SAMPLE && data_bytes < BYTES_UNDER_WAY / READS_FIRST) return;
    size_t fit = BYTES_UNDER_WAY / (r->seen_bytes / r->seen + 1);
    r->window = fit < READS_LEAST ? READS_LEAST : fit > r->window * 2 ? r->window * 2 : fit;
    if (r->window > READS_MOST) r->window = READS_MOST;
    assert(r->window >= READS_LEAST);
    r->seen = r->seen_bytes = 0;
}

static void take_entry(reading *r, const char *role_node, const char *id_node, const dv_reply *reply) {
    dv_entry *entry = NULL;
    int error = dv_registry_parse(r->registry, &entry, role_node, id_node, reply->data, reply->data_bytes, reply->stat);
    if (error == DIVVY_ENOMEM || (entry && !dv_entries_add(&r->found, entry))) {
        dv_entry_free(entry);
        note_error(r, DIVVY_ENOMEM);
    }
}

static void on_data(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    node *n = context;
    reading *r = n->reading;
    char *slash = strrchr(n->path, '/');
    *slash = '\0';
    const char *role_node = dv_path_last(n->path), *id_node = slash + 1;
    if (answered(r, reply)) {
        adapt(r, reply->data_bytes);
        take_entry(r, role_node, id_node, reply);
    }
    if (reply->error != DIVVY_EACCES) note_error(r, reply->error);
    else if (!r->dropped) dv_registry_skip_unreadable(r->registry, role_node, id_node);
    free_node(n);
    go_on(r);
}

/* ---- lists ---- */

static void take_ids(node *role, const dv_reply *reply) {
    reading *r = role->reading;
    for (size_t i = 0; i < reply->child_count && !r->error; i++) {
        if (r->id_node) {
            bool found = strcmp(reply->children[i], r->id_node) == 0;
            if (found) note_error(r, dv_strings_add(r->found_roles, dv_path_last(role->path)));
        } else if ((*r->entries_end = new_node(r, role->path, reply->children[i]))) {
            r->entries_end = &(*r->entries_end)->next;
        }
    }
}

static void on_ids(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    node *role = context;
    reading *r = role->reading;
    bool hidden = reply->error == DIVVY_EACCES && r->all;
    if (answered(r, reply)) take_ids(role, reply);
    if (!hidden) note_error(r, reply->error);
    else if (!r->dropped) dv_registry_skip_unreadable(r->registry, dv_path_last(role->path), "");
    free_node(role);
    go_on(r);
}

static void add_role(reading *r, const char *role_node) {
    node *role = new_node(r, r->registry->root, role_node);
    if (!role) return;
    role->next = r->roles;
    r->roles = role;
}

static void on_roles(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    reading *r = context;
    bool goes_on = answered(r, reply);
    assert(!r->under_way && r->all && !r->roles);
    note_error(r, reply->error);
    for (size_t i = 0; goes_on && i < reply->child_count && !r->error; i++) add_role(r, reply->children[i]);
    go_on(r);
}

/* ---- going on ---- */

/* Sends the next read, of an entry before a role. */
static void send_next(reading *r) {
    dv_znode *znode = r->registry->object.client->znode;
    node **from = r->entries ? &r->entries : &r->roles, *n = *from;
    int error = r->entries ? dv_znode_get(znode, n->path, NULL, on_data, n)
                           : dv_znode_children(znode, n->path, NULL, on_ids, n);
    if (error) {
        note_error(r, error);
        return;
    }
    r->under_way++;
    *from = n->next;
    n->next = NULL;
    if (!r->entries) r->entries_end = &r->entries;
}

static void go_on(reading *r) {
    bool goes_on = !r->dropped;
    while (goes_on && !r->error && r->under_way < r->window && (r->entries || r->roles)) send_next(r);
    if (r->under_way) return;
    dv_client_changed(r->registry->object.client);
    if (r->dropped) free_reading(r);
}

/* Returns NULL when an allocation fails. `id_node` lives until the read is dropped. */
static reading *start_reading(divvy_registry *registry, const char *role_node, const char *id_node) {
    reading *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (reading){.registry = registry, .id_node = id_node, .window = READS_FIRST, .all = !role_node};
    r->entries_end = &r->entries;
    dv_object_ref(&registry->object);
    if (id_node && !(r->found_roles = dv_strings_new())) note_error(r, DIVVY_ENOMEM);
    if (role_node) {
        add_role(r, role_node);
        if (!r->error) send_next(r);
    } else if (!r->error) {
        note_error(r, dv_znode_children(registry->object.client->znode, registry->root, NULL, on_roles, r));
        r->under_way += !r->error;
    }
    if (!r->error) return r;
    free_reading(r);
    return NULL;
}

/* ---- for a call that waits ---- */

typedef struct {
    divvy_registry *registry;
    const char *role_node; /* NULL: all */
    const char *id_node;   /* NULL: entries are collected, else roles that have such a child */
    reading *reading;
    dv_time_wait wait;
    dv_entries entries;
    divvy_strings *roles;
} read_call;

static bool is_done(void *context) {
    const read_call *c = context;
    return (!c->reading->under_way && !c->wait.waiting) || c->registry->ending;
}

static bool needs_time(const read_call *c) {
    for (size_t i = 0; i < c->entries.count; i++) {
        if (c->entries.list[i]->flags & DV_ENTRY_HAS_TTL) return !dv_registry_knows_time(c->registry);
    }
    return false;
}

static int take_results(read_call *c) {
    reading *r = c->reading;
    if (r->under_way || c->wait.waiting) return DIVVY_ECLOSED;
    if (r->error) return r->error;
    c->entries = r->found;
    c->roles = r->found_roles;
    r->found = (dv_entries){NULL, 0, 0};
    r->found_roles = NULL;
    if (needs_time(c)) return c->wait.error ? c->wait.error : DIVVY_EACCES;
    return 0;
}

/* The clock, where it is not known or old, is learned in the same breath as the list is read. */
static int attempt(void *context, dv_deadline deadline) {
    read_call *c = context;
    divvy_client *client = c->registry->object.client;
    dv_entries_free(&c->entries);
    c->wait = (dv_time_wait){.done = NULL};
    if (!c->id_node) dv_registry_learn_time(c->registry, &c->wait);
    c->reading = start_reading(c->registry, c->role_node, c->id_node);
    int error = DIVVY_ENOMEM;
    if (c->reading) {
        error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_done, c);
        if (!error) error = take_results(c);
        drop_reading(c->reading);
    }
    dv_registry_forget_wait(c->registry, &c->wait);
    return error;
}

static int read_all(read_call *c, dv_deadline deadline) {
    divvy_registry *registry = c->registry;
    divvy_client *client = registry->object.client;
    int error = dv_client_in_callback(client) ? DIVVY_EDEADLK : registry->ending ? DIVVY_ECLOSED : 0;
    if (!error) error = dv_request_until_answered(client, deadline, attempt, c);
    if (error == DIVVY_ECANCELED) error = DIVVY_ECLOSED;
    if (!error) return 0;
    dv_entries_free(&c->entries);
    return dv_fail(client, error, "registry %s%s%s: %s", registry->root, c->role_node ? "/" : "",
                   c->role_node ? c->role_node : "", divvy_strerror(error));
}

int dv_registry_read(divvy_registry *registry, const char *role_node, dv_entries *out, int64_t timeout_ms) {
    read_call c = {.registry = registry, .role_node = role_node};
    int error = read_all(&c, dv_deadline_in(registry->object.client, timeout_ms));
    *out = c.entries;
    return error;
}

int dv_registry_find_roles(divvy_registry *registry, const char *id_node, divvy_strings **roles, dv_deadline deadline) {
    read_call c = {.registry = registry, .id_node = id_node};
    int error = read_all(&c, deadline);
    *roles = c.roles;
    return error;
}
