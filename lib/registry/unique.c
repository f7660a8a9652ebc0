/* Unique: a role's only service, with the role as its id. docs/protocol.md, V9, V11. SPDX-License-Identifier:
 * Apache-2.0 */
#include <assert.h>
#include <stdlib.h>

#include "registry/service.h"
#include "registry/status.h"
#include "znode/path.h"

/* ---- only looking ---- */

typedef struct {
    divvy_registry *registry;
    const char *role_node;
    cJSON **out;
    dv_time_wait wait;
} claim_look;

static bool is_timed(void *context) {
    return !((const claim_look *)context)->wait.waiting;
}

/* The clock is learned before the node is read, so that the answer is there when the node's is. */
static int read_node(claim_look *l, dv_deadline deadline, dv_entry **out) {
    divvy_registry *registry = l->registry;
    divvy_client *client = registry->object.client;
    l->wait = (dv_time_wait){.done = NULL};
    dv_registry_learn_time(registry, &l->wait);
    char *path = dv_registry_path(registry, l->role_node, l->role_node);
    dv_op op = {.kind = DV_GET, .path = path};
    dv_request *answer = path ? dv_request_send(client, &op) : NULL;
    free(path);
    int error = answer ? dv_request_wait(answer, deadline) : DIVVY_ENOMEM;
    if (!error && answer)
        error = dv_registry_parse(registry, out, l->role_node, l->role_node, answer->data, answer->data_bytes,
                                  &answer->stat);
    dv_request_drop(answer);
    if (!error && l->wait.waiting) error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_timed, l);
    dv_registry_forget_wait(registry, &l->wait);
    return error == DIVVY_ENOENT || error == DIVVY_EPROTO ? 0 : error;
}

static int look_once(void *context, dv_deadline deadline) {
    claim_look *l = context;
    divvy_registry *registry = l->registry;
    dv_entry *entry = NULL;
    assert(!*l->out);
    int error = registry->ending ? DIVVY_ECLOSED : read_node(l, deadline, &entry);
    bool timed = entry && (entry->flags & DV_ENTRY_HAS_TTL);
    if (!error && timed && !dv_registry_knows_time(registry)) error = l->wait.error ? l->wait.error : DIVVY_ECONNECTION;
    if (!error && entry && dv_entry_is_healthy(entry, dv_registry_server_now(registry).latest_ms)) {
        *l->out = entry->json;
        entry->json = NULL;
    }
    dv_entry_free(entry);
    return error;
}

static int only_look(divvy_registry *registry, const char *role_node, cJSON **out, int64_t timeout_ms) {
    divvy_client *client = registry->object.client;
    claim_look l = {.registry = registry, .role_node = role_node, .out = out};
    int error = dv_request_until_answered(client, dv_deadline_in(client, timeout_ms), look_once, &l);
    return error ? dv_fail(client, error, "unique_service: %s/%s: %s", registry->root, role_node,
                           dv_client_why(client, error))
                 : 0;
}

/* ---- claiming, or keeping ---- */

int divvy_registry_unique_service(divvy_registry *registry, const char *role, const cJSON *candidate, cJSON **entry,
                                  int64_t timeout_ms) {
    if (entry) *entry = NULL;
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    dv_object_hold(&registry->object);
    cJSON *found = NULL;
    char *role_node = NULL;
    if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "unique_service: timeout_ms is below -1");
    else error = dv_registry_node_name(registry, "role", role, &role_node);
    if (!error && dv_client_in_callback(client)) error = dv_fail_plainly(client, DIVVY_EDEADLK);
    if (!error && candidate) error = dv_service_store_and_wait(registry, candidate, role, timeout_ms, &found);
    else if (!error) error = only_look(registry, role_node, &found, timeout_ms);
    if (entry) *entry = found;
    else cJSON_Delete(found);
    free(role_node);
    dv_object_let_go(&registry->object);
    return error;
}

/* ---- ours or not ---- */

static bool is_in(const dv_service *service, const cJSON *entry) {
    return service && service->entry && dv_status_same_identity(service->entry, entry);
}

int divvy_registry_is_ours(const divvy_registry *r, const cJSON *entry) {
    divvy_registry *registry = (divvy_registry *)(uintptr_t)r;
    const cJSON *role = cJSON_GetObjectItemCaseSensitive(entry, "role");
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(entry, "id");
    if (!registry || !cJSON_IsString(role) || !cJSON_IsString(id)) return 0;
    if (!dv_client_enter_quietly(registry->object.client)) return 0;
    char role_node[DV_ENTRY_NAME_BYTES_MAX + 1], id_node[DV_ENTRY_NAME_BYTES_MAX + 1];
    bool named = dv_name_encode(role->valuestring, role_node, sizeof role_node) < sizeof role_node &&
                 dv_name_encode(id->valuestring, id_node, sizeof id_node) < sizeof id_node;
    int ours = named && is_in(dv_service_find(registry, role_node, id_node), entry);
    dv_client_unlock(registry->object.client);
    return ours;
}
