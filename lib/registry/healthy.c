/* Healthy: which services of a role, or of all, are. SPDX-License-Identifier: Apache-2.0
 *
 * From a live view, if there is one, else by reading. docs/protocol.md, V4, V5 and W17. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "registry/collect.h"
#include "registry/watch.h"

/* ---- the answer ---- */

static int make_array(cJSON **out, dv_entry **entries, size_t count) {
    cJSON *array = cJSON_CreateArray();
    if (!array) return DIVVY_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (cJSON_AddItemToArray(array, entries[i]->json)) entries[i]->json = NULL;
    }
    *out = array;
    return 0;
}

/* Those that are certainly healthy come first. How many. */
static size_t keep_healthy(dv_collected *c, int64_t latest_ms) {
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (!dv_entry_is_healthy(c->entries[i], latest_ms)) continue;
        dv_entry *healthy = c->entries[i];
        c->entries[i] = c->entries[kept];
        c->entries[kept++] = healthy;
    }
    if (kept) qsort(c->entries, kept, sizeof(dv_entry *), dv_entry_compare);
    return kept;
}

static int read_healthy(divvy_registry *registry, const char *role_node, bool one, cJSON **out, int64_t timeout_ms) {
    dv_collected c = {NULL, 0};
    int error = dv_collect(registry, role_node, &c, timeout_ms);
    if (error) return error;
    int64_t latest_ms = dv_registry_knows_time(registry) ? dv_registry_server_now(registry).latest_ms : 0;
    size_t healthy = keep_healthy(&c, latest_ms);
    if (!one) {
        error = make_array(out, c.entries, healthy);
    } else if (healthy) {
        *out = c.entries[0]->json;
        c.entries[0]->json = NULL;
    }
    dv_collected_free(&c);
    return error ? dv_fail_plainly(registry->object.client, error) : 0;
}

/* ---- from a view ---- */

typedef struct {
    const dv_entry *entry;
    bool preserved;
} seen;

typedef struct {
    int64_t latest_ms;
    seen best; /* when one is wanted */
    bool all;  /* else */
    seen *entries;
    size_t count, room;
    bool out_of_memory;
} gathering;

static int compare_seen(const void *a, const void *b) {
    const seen *x = a, *y = b;
    if (x->preserved != y->preserved) return x->preserved ? 1 : -1;
    return dv_entry_compare(&x->entry, &y->entry);
}

static bool make_room(gathering *g) {
    assert(g->all && g->count <= g->room);
    if (g->count < g->room) return true;
    size_t room = g->room ? g->room * 2 : 64;
    seen *grown = realloc(g->entries, room * sizeof *grown);
    if (!grown) return false;
    g->entries = grown;
    g->room = room;
    return true;
}

static void visit(void *context, const dv_entry *entry, bool preserved) {
    gathering *g = context;
    seen s = {entry, preserved};
    if (!preserved && !dv_entry_is_healthy(entry, g->latest_ms)) return;
    if (!g->all) {
        if (!g->best.entry || compare_seen(&s, &g->best) < 0) g->best = s;
    } else if (make_room(g)) {
        g->entries[g->count++] = s;
    } else {
        g->out_of_memory = true;
    }
}

/* W16: what is kept though it is gone says so. */
static cJSON *copy_of(const seen *s) {
    cJSON *copy = cJSON_Duplicate(s->entry->json, 1);
    if (!copy || !s->preserved) return copy;
    cJSON_DeleteItemFromObjectCaseSensitive(copy, "preserved");
    if (cJSON_AddTrueToObject(copy, "preserved")) return copy;
    cJSON_Delete(copy);
    return NULL;
}

static int copy_all(gathering *g, cJSON **out) {
    cJSON *array = g->out_of_memory ? NULL : cJSON_CreateArray();
    if (array && g->count) qsort(g->entries, g->count, sizeof *g->entries, compare_seen);
    for (size_t i = 0; array && i < g->count; i++) {
        cJSON *copy = copy_of(&g->entries[i]);
        if (copy && cJSON_AddItemToArray(array, copy)) continue;
        cJSON_Delete(copy);
        cJSON_Delete(array);
        array = NULL;
    }
    *out = array;
    return array ? 0 : DIVVY_ENOMEM;
}

static int view_healthy(divvy_registry *registry, const char *role_node, bool one, cJSON **out) {
    gathering g = {.latest_ms = dv_registry_server_now(registry).latest_ms, .all = !one};
    int error = 0;
    dv_registry_view_each(registry, role_node, visit, &g);
    if (!one) {
        error = copy_all(&g, out);
    } else if (g.best.entry) {
        *out = copy_of(&g.best);
        if (!*out) error = DIVVY_ENOMEM;
    }
    free(g.entries);
    return error ? dv_fail_plainly(registry->object.client, error) : 0;
}

/* ---- the calls ---- */

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
    if (!error) {
        bool viewed = dv_registry_knows_time(registry) && dv_registry_view_ready(registry, role_node);
        if (viewed) error = view_healthy(registry, role_node, one, out);
        else error = read_healthy(registry, role_node, one, out, timeout_ms);
    }
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
