/* Registry: the names of its nodes, and warnings of nodes that are no entry. SPDX-License-Identifier: Apache-2.0 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/record.h"
#include "registry/registry.h"
#include "znode/path.h"

enum { WARNED_MOST = 49152, WARNINGS_AT_ONCE = 20 };

/* ---- names ---- */

char *dv_registry_path(const divvy_registry *registry, const char *role_node, const char *id_node) {
    char *directory = dv_path_join(registry->root, role_node);
    if (!directory || !id_node) return directory;
    char *path = dv_path_join(directory, id_node);
    free(directory);
    return path;
}

int dv_registry_node_name(const divvy_registry *registry, const char *kind, const char *name, char **out) {
    const divvy_client *client = registry->object.client;
    *out = NULL;
    if (!name || !*name) return dv_fail(client, DIVVY_EINVAL, "registry: the %s is %s", kind, name ? "empty" : "NULL");
    size_t bytes = dv_name_encode(name, NULL, 0);
    if (bytes > DV_ENTRY_NAME_BYTES_MAX)
        return dv_fail(client, DIVVY_E2BIG, "registry: the %s %.60s... takes %zu bytes in a path; %d are the most",
                       kind, name, bytes, DV_ENTRY_NAME_BYTES_MAX);
    char *node = malloc(bytes + 1);
    if (!node) return dv_fail_plainly(client, DIVVY_ENOMEM);
    dv_name_encode(name, node, bytes + 1);
    *out = node;
    return 0;
}

/* ---- nodes that are no entry: V2 ---- */

static uint64_t hash_of(const char *role_node, const char *id_node, int64_t mzxid) {
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)mzxid; /* FNV-1a */
    for (const char *c = role_node; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    hash = (hash ^ '/') * UINT64_C(1099511628211);
    for (const char *c = id_node; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return hash;
}

static int compare_hashes(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

void dv_registry_forget_warned(divvy_registry *registry) {
    tdestroy(registry->warned, free);
    registry->warned = NULL;
    registry->warned_count = 0;
}

/* Returns whether a version was warned of; from now on it was. With too many of them all are forgotten. */
static bool was_warned(divvy_registry *registry, uint64_t hash) {
    if (registry->warned_count == WARNED_MOST) dv_registry_forget_warned(registry);
    uint64_t *added = malloc(sizeof *added);
    if (!added) return false;
    *added = hash;
    uint64_t **found = (uint64_t **)tsearch(added, &registry->warned, compare_hashes);
    bool is_new = found && *found == added;
    if (is_new) registry->warned_count++;
    else free(added);
    return found && !is_new;
}

/* Each version of a node once; and not all of a flood one by one. */
static void skip(divvy_registry *registry, const char *role_node, const char *id_node, const dv_stat *stat,
                 const char *reason) {
    divvy_client *client = registry->object.client;
    if (was_warned(registry, hash_of(role_node, id_node, stat->mzxid))) return;
    atomic_fetch_add(&registry->malformed, 1);
    client->metrics.skipped_entries++;
    int64_t now = dv_client_now(client);
    if (now >= registry->warnings_since + 1000) {
        registry->warnings_since = now;
        registry->warnings = 0;
    }
    if (++registry->warnings <= WARNINGS_AT_ONCE)
        dv_client_warn(client, DIVVY_WARN_ENTRY, "%.300s/%.200s/%.200s is skipped: the entry %s", registry->root,
                       role_node, id_node, reason);
    else if (registry->warnings == WARNINGS_AT_ONCE + 1)
        dv_client_warn(client, DIVVY_WARN_ENTRY, "%.300s has many entries that are skipped; see malformed()",
                       registry->root);
}

int dv_registry_parse(divvy_registry *registry, dv_entry **out, const char *role_node, const char *id_node,
                      const void *data, size_t data_bytes, const dv_stat *stat) {
    const char *reason = NULL;
    int error = dv_entry_parse(out, role_node, id_node, data, data_bytes, stat, &reason);
    if (error == DIVVY_EPROTO) skip(registry, role_node, id_node, stat, reason);
    return error;
}

void dv_registry_skip_unreadable(divvy_registry *registry, const char *role_node, const char *id_node) {
    skip(registry, role_node, id_node, &(dv_stat){.mzxid = 0}, "may not be read");
}

uint64_t divvy_registry_malformed(const divvy_registry *registry) {
    return registry ? atomic_load(&((divvy_registry *)(uintptr_t)registry)->malformed) : 0;
}
