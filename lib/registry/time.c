/* Time: the servers' clock is learned. docs/protocol.md, V6. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"
#include "znode/ensure.h"
#include "znode/path.h"

enum { PLACES = 2 };

static void send_multi(divvy_registry *registry);

void dv_registry_note_time(divvy_registry *registry, int64_t sent_at, const dv_stat *stat, int64_t now) {
    if (sent_at > now) return;
    dv_server_time_learn(&registry->time, sent_at, now, stat->mtime_ms);
}

static void end(divvy_registry *registry, int error, int64_t now) {
    dv_time_wait *waits = registry->time_waits;
    registry->time_waits = NULL;
    if (error) registry->time_place = 0;
    while (waits) {
        dv_time_wait *wait = waits;
        waits = wait->next;
        wait->waiting = false;
        wait->error = error;
        if (wait->done) wait->done(wait->context, error, now);
        else dv_client_changed(registry->object.client);
    }
}

static bool makes_root(const divvy_registry *registry) {
    for (const dv_time_wait *wait = registry->time_waits; wait; wait = wait->next) {
        if (wait->makes_root) return true;
    }
    return false;
}

static void on_root(void *context, int error, int64_t now) {
    divvy_registry *registry = context;
    assert(registry->time_under_way && registry->time_rooted);
    registry->time_under_way = false;
    if (error && !dv_outcome_unknown(error)) end(registry, error, now);
    else send_multi(registry);
    dv_object_unref(&registry->object);
}

/* Nothing is there yet, not even what the root stands in. The first write makes it, once. */
static bool make_root(divvy_registry *registry) {
    assert(!registry->time_under_way);
    if (registry->time_rooted || !makes_root(registry)) return false;
    if (dv_ensure_path(registry->object.client->znode, registry->root, DV_CONTAINER, on_root, registry) != 0)
        return false;
    registry->time_rooted = registry->time_under_way = true;
    dv_object_ref(&registry->object);
    return true;
}

/* A lost answer is of no consequence: the multi is sent again, if need be on the next connection. */
static void on_answered(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    divvy_registry *registry = context;
    enum { SET = 1 };
    assert(registry->time_under_way);
    const dv_stat *stat = error == 0 && count > SET && replies ? replies[SET].stat : NULL;
    registry->time_under_way = false;
    if (stat) dv_registry_note_time(registry, registry->time_sent_at, stat, now);
    bool denied = error == DIVVY_EACCES || error == DIVVY_ENOENT;
    if (error == 0) end(registry, stat ? 0 : DIVVY_EPROTO, now);
    else if (error == DIVVY_ENOENT && make_root(registry)) registry->time_place = 0;
    else if (dv_outcome_unknown(error) || (denied && ++registry->time_place < PLACES)) send_multi(registry);
    else end(registry, error, now);
    dv_object_unref(&registry->object);
}

/* First beside the root, where no client looks; else in it, where some may see a role that never was. */
static char *new_path(const divvy_registry *registry) {
    const char *root = registry->root;
    size_t parent_bytes = registry->time_place > 0 ? strlen(root) : (size_t)(dv_path_last(root) - root) - 1;
    char guid[DV_GUID_BYTES], *path = NULL;
    dv_client_guid(registry->object.client, guid);
    return asprintf(&path, "%.*s/%s", (int)parent_bytes, root, guid) < 0 ? NULL : path;
}

/* Without a connection the next one sends it; without memory it is sent in a moment. */
static void send_multi(divvy_registry *registry) {
    divvy_client *client = registry->object.client;
    assert(!registry->time_under_way && registry->time_place < PLACES);
    if (!dv_client_connected(client)) return;
    char *path = new_path(registry);
    dv_op ops[] = {{.kind = DV_CREATE, .path = path, .data = "", .mode = DV_PERSISTENT},
                   {.kind = DV_SET, .path = path, .data = "", .version = 0},
                   {.kind = DV_DELETE, .path = path, .version = 1}};
    registry->time_sent_at = dv_client_now(client);
    if (path && dv_znode_multi(client->znode, ops, sizeof ops / sizeof ops[0], on_answered, registry) == 0) {
        registry->time_under_way = true;
        dv_object_ref(&registry->object);
    } else {
        dv_client_again(client);
    }
    free(path);
}

bool dv_registry_learn_time(divvy_registry *registry, dv_time_wait *wait) {
    divvy_client *client = registry->object.client;
    if (!dv_server_time_is_old(&registry->time, dv_client_now(client))) return false;
    if (!registry->time_under_way) send_multi(registry);
    if (wait) {
        wait->waiting = true;
        wait->next = registry->time_waits;
        registry->time_waits = wait;
    }
    return true;
}

bool dv_registry_forget_wait(divvy_registry *registry, dv_time_wait *wait) {
    dv_time_wait **link = &registry->time_waits;
    while (*link && *link != wait) link = &(*link)->next;
    if (!*link) return false;
    *link = wait->next;
    wait->waiting = false;
    return true;
}

void dv_registry_time_hear(divvy_registry *registry, dv_session_event event, int64_t now) {
    int over = dv_client_end_error(registry->object.client);
    bool ready = event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN;
    if (ready && registry->time_waits && !registry->time_under_way) send_multi(registry);
    else if (event == DV_SESSION_CLOSED || (event == DV_SESSION_OVER && over))
        end(registry, over ? over : DIVVY_ECANCELED, now);
}
