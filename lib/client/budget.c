/* The limits of a session (docs/protocol.md, B6), its nodes' names and paths. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/client.h"
#include "znode/path.h"

void dv_client_guid(divvy_client *client, char out[DV_GUID_BYTES]) {
    dv_guid_next(&client->guids, atomic_load(&client->session_id), out);
}

size_t dv_path_cost(const char *path) {
    return strlen(path) + 4;
}

static bool fits(const dv_budget *budget, size_t bytes) {
    return bytes <= budget->limit_bytes - budget->used_bytes;
}

static bool has_room(divvy_client *client, const dv_budget *budget, size_t bytes) {
    assert(budget->used_bytes <= budget->limit_bytes);
    bool room = fits(budget, bytes);
    if (!room) client->room_requested = true;
    return room;
}

static void give_back(divvy_client *client, dv_budget *budget, size_t bytes) {
    assert(budget->used_bytes >= bytes);
    budget->used_bytes -= bytes;
    client->room_freed = client->room_requested;
}

size_t dv_standing_limit(const divvy_client *client) {
    return client->watched.limit_bytes / 2;
}

int dv_reserve_node(divvy_client *client, size_t ephemeral_bytes, size_t watch_bytes) {
    if (!has_room(client, &client->ephemerals, ephemeral_bytes) || watch_bytes > dv_standing_limit(client))
        return DIVVY_ELIMIT;
    if (!has_room(client, &client->watched, watch_bytes)) return DIVVY_EBUSY;
    client->ephemeral_count++;
    client->ephemerals.used_bytes += ephemeral_bytes;
    client->watched.used_bytes += watch_bytes;
    assert(client->ephemerals.used_bytes <= client->ephemerals.limit_bytes);
    return 0;
}

bool dv_reserve_watch(divvy_client *client, size_t bytes) {
    if (client->watched.used_bytes + bytes > dv_standing_limit(client)) return false;
    client->watched.used_bytes += bytes;
    return true;
}

void dv_release_ephemeral(divvy_client *client, size_t bytes) {
    assert(client->ephemeral_count > 0);
    client->ephemeral_count--;
    give_back(client, &client->ephemerals, bytes);
    dv_client_changed(client); /* A closing client waits for the last one. */
}

void dv_release_watch(divvy_client *client, size_t bytes) {
    give_back(client, &client->watched, bytes);
}

char *dv_client_path(const divvy_client *client, const char *path) {
    char *full = NULL;
    bool root = strcmp(path, "/") == 0;
    if (asprintf(&full, "%s%s", client->chroot, root && client->chroot[0] ? "" : path) < 0) return NULL;
    return full;
}

int dv_client_check_directory(divvy_client *client, const char *what, const char *path) {
    const char *reason = NULL;
    if (!path) return dv_fail(client, DIVVY_EINVAL, "%s: path is NULL", what);
    if (dv_path_check(path, &reason) != 0)
        return dv_fail(client, DIVVY_EINVAL, "%s: the path \"%.200s\" %s", what, path, reason);
    if (strcmp(path, "/") == 0 && !client->chroot[0])
        return dv_fail(client, DIVVY_EINVAL,
                       "%s: the path is \"/\", where everything of the servers is; give one of its own, such as "
                       "\"/%s/NAME\"",
                       what, what);
    return 0;
}

int dv_client_check_text(const divvy_client *client, const char *recipe, const char *what, const char *text,
                         size_t most) {
    size_t bytes = strlen(text);
    if (!bytes) return dv_fail(client, DIVVY_EINVAL, "%s: the %s is empty", recipe, what);
    if (bytes <= most) return 0;
    return dv_fail(client, DIVVY_E2BIG, "%s: the %s has %zu bytes; %zu are the most", recipe, what, bytes, most);
}

size_t dv_client_show_path(const divvy_client *client, const char *full, char *path, size_t path_bytes) {
    const char *shown = full ? full + strlen(client->chroot) : "";
    if (path && path_bytes) snprintf(path, path_bytes, "%s", shown);
    return strlen(shown);
}

char *dv_client_default_identifier(void) {
    static atomic_uint made;
    char host[256] = "host";
    gethostname(host, sizeof host - 1);
    char *identifier = NULL;
    if (asprintf(&identifier, "%s-%d-%u", host, (int)getpid(), atomic_fetch_add(&made, 1) + 1) < 0) return NULL;
    return identifier;
}
