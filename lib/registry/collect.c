/* Collect: all entries of a role, or of all, for a caller that waits. SPDX-License-Identifier: Apache-2.0 */
#include "registry/collect.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Under way; it outlives the call that asked for it when that runs out of time. */
typedef struct {
    divvy_registry *registry;
    dv_reading *reading;
    dv_time_wait wait;
    bool read, timing;
    int error, time_error;
    dv_entry **entries;
    size_t count, room;
    const char *wanted_id; /* NULL: entries are collected, else roles that have such a child */
    char **roles;
    size_t role_count;
} collecting;

typedef struct {
    divvy_registry *registry;
    const char *role_node, *wanted_id;
    collecting got; /* of the last attempt */
} collection;

/* The array, wider if it was full; NULL: out of memory, and it is as it was. */
static void *make_room(void *array, size_t count, size_t *room, size_t item_bytes) {
    if (count < *room) return array;
    size_t wider = *room ? *room * 2 : 64;
    void *grown = realloc(array, wider * item_bytes);
    if (grown) *room = wider;
    return grown;
}

static void on_entry(void *context, dv_entry *entry) {
    collecting *c = context;
    assert(!c->read && !c->wanted_id);
    dv_entry **entries = make_room(c->entries, c->count, &c->room, sizeof(dv_entry *));
    if (entries) {
        c->entries = entries;
        entries[c->count++] = entry;
    } else {
        c->error = DIVVY_ENOMEM;
        dv_entry_free(entry);
    }
}

static void on_role(void *context, const char *role_node, const dv_stat *stat, const char *const *id_nodes,
                    size_t count) {
    (void)stat;
    collecting *c = context;
    assert(!c->read && c->wanted_id);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(id_nodes[i], c->wanted_id) != 0) continue;
        char *role = strdup(role_node);
        char **roles = role ? make_room(c->roles, c->role_count, &c->room, sizeof(char *)) : NULL;
        if (roles) {
            c->roles = roles;
            roles[c->role_count++] = role;
        } else {
            free(role);
            c->error = DIVVY_ENOMEM;
        }
    }
}

static void on_read(void *context, int error, int64_t now) {
    (void)now;
    collecting *c = context;
    assert(!c->read);
    c->read = true;
    if (error) c->error = error;
    dv_client_changed(c->registry->object.client);
}

static void on_time(void *context, int error, int64_t now) {
    (void)now;
    collecting *c = context;
    assert(c->timing);
    c->timing = false;
    c->time_error = error;
    dv_client_changed(c->registry->object.client);
}

static bool is_done(void *context) {
    const collecting *c = context;
    return (c->read && !c->timing) || c->registry->ending;
}

static void clear(collecting *c) {
    for (size_t i = 0; i < c->count; i++) dv_entry_free(c->entries[i]);
    for (size_t i = 0; i < c->role_count; i++) free(c->roles[i]);
    free(c->entries);
    free(c->roles);
    c->entries = NULL;
    c->roles = NULL;
    c->count = c->role_count = c->room = 0;
}

static bool needs_time(const collecting *c) {
    for (size_t i = 0; i < c->count; i++) {
        if (c->entries[i]->flags & DV_ENTRY_HAS_TTL) return !dv_registry_knows_time(c->registry);
    }
    return false;
}

/* The clock, where it is not known or old, is asked for in the same breath as the list. */
static int attempt(void *context, dv_deadline deadline) {
    collection *collect = context;
    divvy_registry *registry = collect->registry;
    collecting *c = &collect->got;
    clear(c);
    *c = (collecting){.registry = registry, .wanted_id = collect->wanted_id};
    c->wait = (dv_time_wait){.done = on_time, .context = c};
    c->timing = !c->wanted_id && dv_registry_learn_time(registry, &c->wait);
    static const dv_reading_events entries = {.entry = on_entry, .done = on_read};
    static const dv_reading_events roles = {.role = on_role, .done = on_read};
    int error = dv_registry_read(&c->reading, registry, collect->role_node, c->wanted_id ? &roles : &entries, c);
    if (error) {
        if (c->timing) dv_registry_forget_wait(registry, &c->wait);
        return error;
    }
    error = dv_client_wait(registry->object.client, dv_deadline_left_ms(registry->object.client, deadline), is_done, c);
    if (!c->read) dv_reading_abandon(c->reading);
    if (c->timing) dv_registry_forget_wait(registry, &c->wait);
    if (!error && (!c->read || c->timing)) error = DIVVY_ECLOSED;
    if (!error) error = c->error;
    if (!error && needs_time(c)) error = c->time_error ? c->time_error : DIVVY_EACCES;
    return error;
}

static int collect_until(collection *collect, dv_deadline deadline) {
    divvy_registry *registry = collect->registry;
    divvy_client *client = registry->object.client;
    int error = dv_client_in_callback(client) ? DIVVY_EDEADLK : registry->ending ? DIVVY_ECLOSED : 0;
    if (!error) error = dv_request_until_answered(client, deadline, attempt, collect);
    if (error == DIVVY_ECANCELED) error = DIVVY_ECLOSED;
    if (!error) return 0;
    clear(&collect->got);
    return dv_fail(client, error, "registry %s%s%s: %s", registry->root, collect->role_node ? "/" : "",
                   collect->role_node ? collect->role_node : "", divvy_strerror(error));
}

int dv_collect(divvy_registry *registry, const char *role_node, dv_collected *out, int64_t timeout_ms) {
    collection collect = {.registry = registry, .role_node = role_node};
    int error = collect_until(&collect, dv_deadline_in(registry->object.client, timeout_ms));
    if (!error) *out = (dv_collected){collect.got.entries, collect.got.count};
    return error;
}

void dv_collected_free(dv_collected *collected) {
    for (size_t i = 0; i < collected->count; i++) dv_entry_free(collected->entries[i]);
    free(collected->entries);
    *collected = (dv_collected){NULL, 0};
}

int dv_collect_roles_of(divvy_registry *registry, const char *id_node, char ***roles, size_t *count,
                        dv_deadline deadline) {
    collection collect = {.registry = registry, .wanted_id = id_node};
    int error = collect_until(&collect, deadline);
    if (error) return error;
    *roles = collect.got.roles;
    *count = collect.got.role_count;
    return 0;
}
