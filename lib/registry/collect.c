/* Collect: all entries of a role, or of all, for a caller that waits. SPDX-License-Identifier: Apache-2.0 */
#include "registry/collect.h"

typedef struct {
    divvy_registry *registry;
    const char *role_node; /* NULL: all */
    const char *id_node;   /* NULL: entries are collected, else roles that have such a child */
    dv_reading *reading;
    dv_time_wait wait;
    dv_entries entries;
    divvy_strings *roles;
} collecting;

static bool is_done(void *context) {
    const collecting *c = context;
    return (c->reading->done && !c->wait.waiting) || c->registry->ending;
}

static bool needs_time(const collecting *c) {
    for (size_t i = 0; i < c->entries.count; i++) {
        if (c->entries.list[i]->flags & DV_ENTRY_HAS_TTL) return !dv_registry_knows_time(c->registry);
    }
    return false;
}

static int take_results(collecting *c) {
    dv_reading *r = c->reading;
    if (!r->done || c->wait.waiting) return DIVVY_ECLOSED;
    if (r->error) return r->error;
    c->entries = r->entries;
    c->roles = r->roles;
    r->entries = (dv_entries){NULL, 0, 0};
    r->roles = NULL;
    if (needs_time(c)) return c->wait.error ? c->wait.error : DIVVY_EACCES;
    return 0;
}

/* The clock, where it is not known or old, is learned in the same breath as the list is read. */
static int attempt(void *context, dv_deadline deadline) {
    collecting *c = context;
    divvy_client *client = c->registry->object.client;
    dv_entries_free(&c->entries);
    c->wait = (dv_time_wait){.done = NULL};
    if (!c->id_node) dv_registry_learn_time(c->registry, &c->wait);
    c->reading = dv_registry_read(c->registry, c->role_node, c->id_node);
    int error = DIVVY_ENOMEM;
    if (c->reading) {
        error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_done, c);
        if (!error) error = take_results(c);
        dv_reading_drop(c->reading);
    }
    dv_registry_forget_wait(c->registry, &c->wait);
    return error;
}

static int collect(collecting *c, dv_deadline deadline) {
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

int dv_collect(divvy_registry *registry, const char *role_node, dv_entries *out, int64_t timeout_ms) {
    collecting c = {.registry = registry, .role_node = role_node};
    int error = collect(&c, dv_deadline_in(registry->object.client, timeout_ms));
    *out = c.entries;
    return error;
}

int dv_collect_roles_of(divvy_registry *registry, const char *id_node, divvy_strings **roles, dv_deadline deadline) {
    collecting c = {.registry = registry, .id_node = id_node};
    int error = collect(&c, deadline);
    *roles = c.roles;
    return error;
}
