/* Time: the servers' clock is learned. SPDX-License-Identifier: Apache-2.0
 *
 * From the answers of heartbeats, as they come. A registry that sends none asks by a multi that creates a node, sets
 * it and deletes it: its Stat tells the time, and nobody can see the node or find it left behind, whatever becomes
 * of the answer. It stands beside the registry's root, since what stands in it is a role to everybody.
 * docs/protocol.md, V6. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "registry/registry.h"
#include "znode/ensure.h"
#include "znode/path.h"

enum { PLACES = 2 };

static void ask(divvy_registry *registry);

static void tell(divvy_registry *registry, int error, int64_t now) {
    dv_time_wait *waits = registry->time_waits;
    registry->time_waits = NULL;
    while (waits) {
        dv_time_wait *wait = waits;
        waits = wait->next;
        wait->done(wait->context, error, now);
    }
}

void dv_registry_note_time(divvy_registry *registry, int64_t sent_at, const dv_stat *stat, int64_t now) {
    if (sent_at > now) return;
    dv_server_time_learn(&registry->time, sent_at, now, stat->mtime_ms);
}

static void end(divvy_registry *registry, int error, int64_t now) {
    if (error) registry->time_place = 0;
    tell(registry, error, now);
}

static bool makes_root(const divvy_registry *registry) {
    for (const dv_time_wait *wait = registry->time_waits; wait; wait = wait->next) {
        if (wait->makes_root) return true;
    }
    return false;
}

static void on_root(void *context, int error, int64_t now) {
    divvy_registry *registry = context;
    assert(registry->time_asked && registry->time_rooted);
    registry->time_asked = false;
    if (error && !dv_outcome_unknown(error)) end(registry, error, now);
    else ask(registry);
    dv_object_unref(&registry->object);
}

/* Nothing is there yet, not even what the root stands in. The first write makes it, once. */
static bool make_root(divvy_registry *registry) {
    assert(!registry->time_asked);
    if (registry->time_rooted || !makes_root(registry)) return false;
    if (dv_ensure_path(registry->object.client->znode, registry->root, DV_CONTAINER, on_root, registry) != 0)
        return false;
    registry->time_rooted = registry->time_asked = true;
    dv_object_ref(&registry->object);
    return true;
}

/* A lost answer is of no consequence: it is asked for again, if need be on the next connection. */
static void on_asked(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    divvy_registry *registry = context;
    enum { SET = 1 };
    assert(registry->time_asked);
    const dv_stat *stat = error == 0 && count > SET && replies ? replies[SET].stat : NULL;
    registry->time_asked = false;
    if (stat) dv_registry_note_time(registry, registry->time_sent_at, stat, now);
    bool denied = error == DIVVY_EACCES || error == DIVVY_ENOENT;
    if (error == 0) end(registry, stat ? 0 : DIVVY_EPROTO, now);
    else if (error == DIVVY_ENOENT && make_root(registry)) registry->time_place = 0;
    else if (dv_outcome_unknown(error) || (denied && ++registry->time_place < PLACES)) ask(registry);
    else end(registry, error, now);
    dv_object_unref(&registry->object);
}

/* First beside the root, where nobody looks; else in it, where some may see a role that never was. */
static char *new_path(const divvy_registry *registry) {
    char guid[DV_GUID_BYTES];
    dv_client_guid(registry->object.client, guid);
    if (registry->time_place > 0) return dv_path_join(registry->root, guid);
    size_t parent_bytes = (size_t)(dv_path_last(registry->root) - registry->root);
    char *path = malloc(parent_bytes + strlen(guid) + 1);
    if (!path) return NULL;
    memcpy(path, registry->root, parent_bytes);
    strcpy(path + parent_bytes, guid);
    return path;
}

/* Without a connection the next one asks; without memory it is asked for again in a moment. */
static void ask(divvy_registry *registry) {
    divvy_client *client = registry->object.client;
    assert(!registry->time_asked && registry->time_place < PLACES);
    if (!dv_client_connected(client)) return;
    free(registry->time_path);
    registry->time_path = new_path(registry);
    const char *path = registry->time_path;
    dv_op ops[] = {{.kind = DV_CREATE, .path = path, .data = "", .mode = DV_PERSISTENT},
                   {.kind = DV_SET, .path = path, .data = "", .version = 0},
                   {.kind = DV_DELETE, .path = path, .version = 1}};
    registry->time_sent_at = dv_client_now(client);
    if (!path || dv_znode_multi(client->znode, ops, sizeof ops / sizeof ops[0], on_asked, registry) != 0) {
        dv_client_again(client);
        return;
    }
    registry->time_asked = true;
    dv_object_ref(&registry->object);
}

bool dv_registry_learn_time(divvy_registry *registry, dv_time_wait *wait) {
    divvy_client *client = registry->object.client;
    if (!dv_server_time_is_old(&registry->time, dv_client_now(client))) return false;
    if (!registry->time_asked) ask(registry);
    if (wait) {
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
    return true;
}

void dv_registry_time_hear(divvy_registry *registry, dv_session_event event, int64_t now) {
    int over = dv_client_end_error(registry->object.client);
    bool ready = event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN;
    if (ready && registry->time_waits && !registry->time_asked) ask(registry);
    else if (event == DV_SESSION_CLOSED || (event == DV_SESSION_OVER && over))
        end(registry, over ? over : DIVVY_ECANCELED, now);
}
