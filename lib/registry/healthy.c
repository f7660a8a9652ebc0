/* Healthy: lookups of the healthy services. docs/protocol.md, V4, V5, W17. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "registry/services.h"
#include "registry/watch.h"

/* ---- one list for all who ask ---- */

static int read_services(divvy_registry *registry, const char *role_node, divvy_services **out, int64_t timeout_ms) {
    dv_entries read = {NULL, 0, 0};
    int error = dv_registry_read(registry, role_node, &read, timeout_ms);
    if (error) return error;
    *out = dv_services_new(&read, dv_registry_server_now(registry).latest_ms);
    dv_entries_free(&read);
    return dv_fail_plainly(registry->object.client, *out ? 0 : DIVVY_ENOMEM);
}

static int find(divvy_registry *registry, const char *role, bool all, divvy_services **out, int64_t timeout_ms) {
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    dv_object_hold(&registry->object);
    char *role_node = NULL;
    if (!out) error = dv_fail(client, DIVVY_EINVAL, "registry: the pointer for the answer is NULL");
    else if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "registry: timeout_ms is below -1");
    else if (role || !all) error = dv_registry_node_name(registry, "role", role, &role_node);
    if (!error && dv_registry_knows_time(registry) && dv_registry_view_ready(registry, role_node))
        error = dv_fail_plainly(client, dv_registry_view_services(registry, role_node, out));
    else if (!error) error = read_services(registry, role_node, out, timeout_ms);
    free(role_node);
    dv_object_let_go(&registry->object);
    return error;
}

int divvy_registry_services(divvy_registry *registry, const char *role, divvy_services **services, int64_t timeout_ms) {
    if (services) *services = NULL;
    return find(registry, role, true, services, timeout_ms);
}

/* ---- copies ---- */

int divvy_registry_healthy_service(divvy_registry *registry, const char *role, cJSON **entry, int64_t timeout_ms) {
    divvy_services *services = NULL;
    if (entry) *entry = NULL;
    int error = find(registry, role, false, entry ? &services : NULL, timeout_ms);
    if (error || divvy_services_count(services) == 0) {
        divvy_services_unref(services);
        return error;
    }
    *entry = cJSON_Duplicate(divvy_services_entry(services, 0), 1);
    divvy_services_unref(services);
    return dv_fail_plainly(NULL, *entry ? 0 : DIVVY_ENOMEM);
}

static cJSON *copy_all(const divvy_services *services) {
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; array && i < divvy_services_count(services); i++) {
        if (cJSON_AddItemToArray(array, cJSON_Duplicate(divvy_services_entry(services, i), 1))) continue;
        cJSON_Delete(array);
        array = NULL;
    }
    return array;
}

int divvy_registry_healthy_services(divvy_registry *registry, const char *role, cJSON **array, int64_t timeout_ms) {
    divvy_services *services = NULL;
    if (array) *array = NULL;
    int error = find(registry, role, true, array ? &services : NULL, timeout_ms);
    if (error) return error;
    *array = copy_all(services);
    divvy_services_unref(services);
    return dv_fail_plainly(NULL, *array ? 0 : DIVVY_ENOMEM);
}
