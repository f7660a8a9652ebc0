/* Healthy: which services of a role, or all, are. docs/protocol.md, V4, V5, W17. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "registry/watch.h"

typedef struct {
    int64_t latest_ms;
    bool one;    /* only the first in the order of lookups is kept */
    bool shared; /* the entries are a view's */
    bool out_of_memory;
    dv_entries healthy;
} answer;

static void take(answer *a, dv_entry *entry) {
    dv_entries *healthy = &a->healthy;
    if (!dv_entry_is_healthy(entry, a->latest_ms)) return;
    if (!a->one || healthy->count == 0) a->out_of_memory |= !dv_entries_add(healthy, entry);
    else if (dv_entry_compare(&entry, &healthy->list[0]) < 0) healthy->list[0] = entry;
}

static void visit(void *context, dv_slot *slot) {
    if (slot->current) take(context, slot->current->entry);
}

static cJSON *json_of(const answer *a, dv_entry *entry) {
    if (a->shared) return cJSON_Duplicate(entry->json, 1);
    cJSON *json = entry->json;
    entry->json = NULL;
    return json;
}

/* Returns the entry, or NULL if there is none; or an array. */
static int print(answer *a, cJSON **out) {
    const dv_entries *healthy = &a->healthy;
    if (a->out_of_memory) return DIVVY_ENOMEM;
    if (a->one && healthy->count == 0) return 0;
    if (healthy->count) qsort(healthy->list, healthy->count, sizeof(dv_entry *), dv_entry_compare);
    *out = a->one ? json_of(a, healthy->list[0]) : cJSON_CreateArray();
    for (size_t i = 0; *out && !a->one && i < healthy->count; i++) {
        if (cJSON_AddItemToArray(*out, json_of(a, healthy->list[i]))) continue;
        cJSON_Delete(*out);
        *out = NULL;
    }
    return *out ? 0 : DIVVY_ENOMEM;
}

static int look(divvy_registry *registry, const char *role_node, answer *a, cJSON **out, int64_t timeout_ms) {
    dv_entries read = {NULL, 0, 0};
    a->shared = dv_registry_knows_time(registry) && dv_registry_view_ready(registry, role_node);
    int error = a->shared ? 0 : dv_registry_read(registry, role_node, &read, timeout_ms);
    if (error) return error;
    a->latest_ms = dv_registry_server_now(registry).latest_ms;
    if (a->shared) dv_registry_view_each(registry, role_node, visit, a);
    for (size_t i = 0; i < read.count; i++) take(a, read.list[i]);
    error = print(a, out);
    free(a->healthy.list);
    dv_entries_free(&read);
    return dv_fail_plainly(registry->object.client, error);
}

static int find(divvy_registry *registry, const char *role, bool one, cJSON **out, int64_t timeout_ms) {
    if (out) *out = NULL;
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    dv_object_hold(&registry->object);
    char *role_node = NULL;
    if (!out) error = dv_fail(client, DIVVY_EINVAL, "registry: the pointer for the answer is NULL");
    else if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "registry: timeout_ms is below -1");
    else if (role || one) error = dv_registry_node_name(registry, "role", role, &role_node);
    if (!error) error = look(registry, role_node, &(answer){.one = one}, out, timeout_ms);
    free(role_node);
    dv_object_let_go(&registry->object);
    return error;
}

int divvy_registry_healthy_service(divvy_registry *registry, const char *role, cJSON **entry, int64_t timeout_ms) {
    return find(registry, role, true, entry, timeout_ms);
}

int divvy_registry_healthy_services(divvy_registry *registry, const char *role, cJSON **array, int64_t timeout_ms) {
    return find(registry, role, false, array, timeout_ms);
}
