/* The registry as it stands. SPDX-License-Identifier: Apache-2.0 */
#include "services_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "znode/path.h"

typedef struct {
    dv_services *services;
    char *root; /* at the servers */
    char **roles;
    size_t role_count;
    size_t room; /* in services->nodes */
} survey;

/* ---- which there are ---- */

static char *root_path(void *context, size_t i) {
    (void)i;
    return strdup(((const survey *)context)->root);
}

static int add_role(survey *s, char *node) {
    if (!node) return DIVVY_ENOMEM;
    s->roles[s->role_count++] = node;
    return 0;
}

static int take_root(void *context, size_t i, const dv_reply *reply) {
    (void)i;
    survey *s = context;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    s->roles = calloc(reply->child_count + 1, sizeof *s->roles);
    int error = s->roles ? 0 : DIVVY_ENOMEM;
    for (size_t k = 0; !error && k < reply->child_count; k++) error = add_role(s, strdup(reply->children[k]));
    return error;
}

static int list_roles(dv_look *look, survey *s) {
    dv_reads root = {DV_CHILDREN, 1, root_path, take_root, s};
    if (!s->services->role) return dv_look_read_shown(look, &root, &s->services->hidden);
    s->roles = calloc(1, sizeof *s->roles);
    return s->roles ? add_role(s, dv_look_node_of(s->services->role)) : DIVVY_ENOMEM;
}

static char *role_path(void *context, size_t i) {
    const survey *s = context;
    return dv_path_join(s->root, s->roles[i]);
}

static int make_room(survey *s, size_t count) {
    size_t needed = s->services->node_count + count;
    if (needed <= s->room) return 0;
    size_t room = 2 * s->room > needed ? 2 * s->room : needed;
    dv_services_node *grown = realloc(s->services->nodes, room * sizeof *grown);
    if (!grown) return DIVVY_ENOMEM;
    s->services->nodes = grown;
    s->room = room;
    return 0;
}

static int take_role(void *context, size_t i, const dv_reply *reply) {
    survey *s = context;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    if (make_room(s, reply->child_count) != 0) return DIVVY_ENOMEM;
    for (size_t k = 0; k < reply->child_count; k++) {
        dv_services_node *node = &s->services->nodes[s->services->node_count++];
        *node = (dv_services_node){.role_node = strdup(s->roles[i]), .id_node = strdup(reply->children[k])};
        if (!node->role_node || !node->id_node) return DIVVY_ENOMEM;
    }
    return 0;
}

/* ---- what they say ---- */

static char *node_path(void *context, size_t i) {
    const survey *s = context;
    const dv_services_node *node = &s->services->nodes[i];
    return dv_look_deep_path(s->root, node->role_node, node->id_node);
}

static int take_node(void *context, size_t i, const dv_reply *reply) {
    dv_services *services = ((survey *)context)->services;
    dv_services_node *node = &services->nodes[i];
    const char *reason;
    if (reply->error) return reply->error == DIVVY_ENOENT ? 0 : reply->error;
    int error = dv_entry_parse(&node->entry, node->role_node, node->id_node, reply->data, reply->data_bytes,
                               reply->stat, &reason);
    if (error != DIVVY_EPROTO) return error;
    services->malformed_count++;
    return 0;
}

/* ---- the whole ---- */

static int compare(const void *a, const void *b) {
    const dv_entry *x = *(const dv_entry *const *)a, *y = *(const dv_entry *const *)b;
    int order = strcmp(x->role, y->role);
    return order ? order : dv_entry_compare(a, b);
}

/* The servers' clock is not behind the newest of what they wrote down, whatever ours shows. */
static int sort(dv_services *services) {
    services->entries = calloc(services->node_count + 1, sizeof *services->entries);
    if (!services->entries) return DIVVY_ENOMEM;
    services->server_ms = dv_look_wall_ms();
    for (size_t i = 0; i < services->node_count; i++) {
        dv_entry *entry = services->nodes[i].entry;
        if (!entry) continue;
        services->entries[services->entry_count++] = entry;
        if (entry->stat.mtime_ms > services->server_ms) services->server_ms = entry->stat.mtime_ms;
    }
    if (services->entry_count) qsort((void *)services->entries, services->entry_count, sizeof(dv_entry *), compare);
    return 0;
}

static int survey_services(dv_look *look, survey *s) {
    int error = list_roles(look, s);
    size_t *hidden = &s->services->hidden;
    dv_reads roles = {DV_CHILDREN, s->role_count, role_path, take_role, s};
    if (!error) error = dv_look_read_shown(look, &roles, s->services->role ? NULL : hidden);
    dv_reads nodes = {DV_GET, s->services->node_count, node_path, take_node, s};
    if (!error) error = dv_look_read_shown(look, &nodes, hidden);
    return error ? error : sort(s->services);
}

int dv_services_read(dv_look *look, void *context) {
    dv_services *services = context;
    dv_services_clear(services);
    survey s = {.services = services, .root = dv_look_path(look, services->path)};
    int error = s.root ? survey_services(look, &s) : DIVVY_ENOMEM;
    for (size_t i = 0; i < s.role_count; i++) free(s.roles[i]);
    free(s.roles);
    free(s.root);
    return error;
}

void dv_services_clear(dv_services *services) {
    for (size_t i = 0; i < services->node_count; i++) {
        free(services->nodes[i].role_node);
        free(services->nodes[i].id_node);
        dv_entry_free(services->nodes[i].entry);
    }
    free(services->nodes);
    free((void *)services->entries);
    *services = (dv_services){.path = services->path, .role = services->role};
}

/* ---- what an entry says ---- */

const char *dv_services_health(const dv_services *services, const dv_entry *entry) {
    if (entry->flags & DV_ENTRY_DISABLED) return "disabled";
    return dv_entry_is_healthy(entry, services->server_ms) ? "healthy" : "stale";
}

static const char *text_of(const dv_entry *entry, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(entry->json, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

int64_t dv_services_number(const dv_entry *entry, const char *key) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(entry->json, key);
    bool good = cJSON_IsNumber(item) && item->valuedouble >= 1 && item->valuedouble <= INT32_MAX;
    return good ? (int64_t)item->valuedouble : 0;
}

char *dv_services_address(const dv_entry *entry) {
    const char *address = text_of(entry, "address");
    int64_t port = dv_services_number(entry, "port");
    char *text = NULL;
    if (!*address) address = text_of(entry, "host");
    int bytes = port ? asprintf(&text, "%s:%" PRId64, address, port) : asprintf(&text, "%s", address);
    return bytes < 0 ? NULL : text;
}
