/* Node: the life of one ephemeral node of ours, from its create to its delete. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/node.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/latecomer.h"
#include "recipe/queue.h"
#include "znode/path.h"

/* From which stages each is entered. Heartbeats check the node exactly while it is there. */
void dv_node_enter(dv_node *n, dv_node_stage to) {
    enum {
        MAKING = 1u << DV_NODE_CREATING | 1u << DV_NODE_RESOLVING,
        ANY = ~0u >> 1,
    };
    static const unsigned from[] = {
        [DV_NODE_UNMADE] = 1u << DV_NODE_UNMADE | MAKING | 1u << DV_NODE_THERE,
        [DV_NODE_CREATING] = 1u << DV_NODE_UNMADE,
        [DV_NODE_RESOLVING] = MAKING,
        [DV_NODE_THERE] = MAKING,
        [DV_NODE_LEAVING] = ANY & ~(1u << DV_NODE_ENDED),
        [DV_NODE_ENDED] = ANY,
    };
    assert(from[to] & 1u << n->stage);
    assert(to != DV_NODE_THERE || (n->stands && !n->leave_requested));
    assert(to != DV_NODE_LEAVING || n->leave_requested);
    (void)from;
    n->stage = to;
    if (to == DV_NODE_UNMADE) n->stands = false;
    if (to == DV_NODE_CREATING) {
        n->known_czxid = n->client->newest_czxid;
        n->known_falls = n->client->czxid_falls;
    }
    dv_own_node_remove(n->client, &n->own);
    if (to == DV_NODE_THERE && !n->written) dv_own_node_add(n->client, &n->own);
    assert(!n->own.link == (n->stage != DV_NODE_THERE || n->written));
}

void dv_node_unwatch(dv_node *n) {
    dv_znode_unwatch(n->client->znode, &n->watch);
    if (n->watch_cost) dv_release_watch(n->client, n->watch_cost);
    n->watch_cost = 0;
}

bool dv_node_sent(dv_node *n, int error) {
    if (error) dv_client_again(n->client);
    else n->under_way++;
    return error == 0;
}

/* ---- the end ---- */

static void free_path(dv_node *n) {
    free(n->own.path);
    n->own.path = NULL;
    n->numbered = false;
}

void dv_node_close(dv_node *n) {
    assert(!n->under_way && !n->others);
    dv_unlisten(n->client, &n->listener);
    dv_node_unwatch(n);
    dv_release_ephemeral(n->client, n->cost);
    if (n->lasting) n->client->lasting_count--;
    free_path(n);
}

/* A node ends only when no reply can come, so that no late one meets freed memory. */
static void end_if_idle(dv_node *n, int64_t now) {
    if (n->stage != DV_NODE_ENDED || n->under_way || n->others) return;
    dv_node_close(n);
    n->kind->gone(n, now);
}

static void end(dv_node *n, int64_t now) {
    dv_node_enter(n, DV_NODE_ENDED);
    end_if_idle(n, now);
}

/* ---- leaving ---- */

static void on_deleted(void *context, const dv_reply *reply, int64_t now) {
    dv_node *n = context;
    /* Q6: nobody else ever makes a node of this name, so deleting it a second time can hit nothing else. */
    n->stands = dv_outcome_unknown(reply->error);
    if (reply->error && reply->error != DIVVY_ENOENT && !n->stands && !dv_session_over(reply->error))
        dv_client_log(n->client, DIVVY_LOG_ERROR, "%s cannot be deleted and stays until the session ends: %s",
                      dv_node_path(n), divvy_strerror(reply->error));
    dv_node_replied(n, reply->error, now);
}

/* Comes again with each reply, on a link, when connected, and when there may be memory again. */
static void send_delete(dv_node *n) {
    assert(n->stage == DV_NODE_LEAVING && n->stands);
    dv_node_unwatch(n);
    if (n->under_way || n->taken_away || !dv_client_can_delete(n->client)) return;
    dv_node_sent(n, dv_batch_delete(n->client->znode, dv_node_path(n), on_deleted, n));
}

static void start_leaving(dv_node *n) {
    n->leave_requested = true;
    dv_node_enter(n, DV_NODE_LEAVING);
    if (n->kind->leaving) n->kind->leaving(n);
}

static void go_on_leaving(dv_node *n, int64_t now) {
    if (n->stands) send_delete(n);
    else if (!n->under_way && !n->others) end(n, now);
}

static void go_on_ending(dv_node *n, int64_t now) {
    if (n->stage == DV_NODE_LEAVING) go_on_leaving(n, now);
    else end_if_idle(n, now);
}

void dv_node_other_ended(dv_node *n, int64_t now) {
    assert(n->others > 0);
    n->others--;
    go_on_ending(n, now);
}

static void on_left(dv_event *event, int64_t now) {
    dv_node_replied(DV_CONTAINER(event, dv_node, left), 0, now);
}

/* Something is always still to come here, so that gone() is never told inside this call. */
void dv_node_leave(dv_node *n) {
    n->leave_requested = true;
    if (n->stage != DV_NODE_UNMADE && n->stage != DV_NODE_THERE) return; /* Once it is known what stands. */
    start_leaving(n);
    if (n->stands) send_delete(n);
    if (n->stands || n->under_way || n->others) return;
    n->under_way++;
    n->left.run = on_left;
    dv_client_post(n->client, &n->left);
}

void dv_node_leave_deleted(dv_node *n) {
    assert(n->stage == DV_NODE_THERE || n->stage == DV_NODE_ENDED);
    n->stands = false;
    dv_node_leave(n);
}

void dv_node_take_away(dv_node *n) {
    assert(n->stage == DV_NODE_THERE && !n->leave_requested);
    n->taken_away = n->leave_requested = true;
    n->others++;
    start_leaving(n);
    dv_node_unwatch(n);
}

void dv_node_taken(dv_node *n, bool deleted, int64_t now) {
    assert(n->taken_away && n->leave_requested);
    n->taken_away = false;
    if (deleted) n->stands = false;
    dv_node_other_ended(n, now);
}

void dv_node_fail(dv_node *n, int error, int64_t now) {
    bool told = n->leave_requested;
    start_leaving(n);
    if (!told) n->kind->failed(n, error, now);
    go_on_leaving(n, now);
}

void dv_node_fail_deleted(dv_node *n, int64_t now) {
    assert(n->stage == DV_NODE_THERE);
    n->stands = false;
    dv_node_fail(n, DIVVY_ENOENT, now);
}

/* ---- making it ---- */

int dv_node_name(dv_node *n, const char *suffix) {
    char guid[DV_GUID_BYTES];
    dv_client_guid(n->client, guid);
    char *path = malloc(strlen(n->directory) + 1 + strlen(guid) + strlen(suffix) + 1);
    if (!path) return DIVVY_ENOMEM;
    stpcpy(stpcpy(stpcpy(stpcpy(path, n->directory), "/"), guid), suffix);
    free_path(n);
    n->own.path = path;
    return 0;
}

/* Takes a copy of the path that the server made. NULL: there is none, and the old one stays. */
static bool take_made(dv_node *n, char *made) {
    if (!made) return false;
    free(n->own.path);
    n->own.path = made;
    n->numbered = true;
    return true;
}

bool dv_node_take_path(dv_node *n, const char *path) {
    return take_made(n, strdup(path));
}

/* C9. A create that was requested before the last fall says nothing more. */
static void note_czxid(dv_node *n, int64_t czxid) {
    divvy_client *client = n->client;
    if (czxid == 0 || n->known_falls != client->czxid_falls) return;
    bool fell = czxid <= n->known_czxid;
    if (fell || czxid > client->newest_czxid) client->newest_czxid = czxid;
    if (!fell) return;
    client->czxid_falls++;
    dv_client_warn(
        client, DIVVY_WARN_TOKENS,
        "tokens have fallen: %.200s is of the transaction %lld, and this client has seen %lld before. The "
        "servers' data were wiped or restored. A store that checks tokens now refuses all workers: stop them "
        "all, raise the era, start them again (docs/fencing.md, \"When the ensemble begins from scratch\")",
        dv_node_path(n), (long long)czxid, (long long)n->known_czxid);
}

bool dv_node_made(dv_node *n, int64_t czxid) {
    assert(n->sequential == n->numbered);
    note_czxid(n, czxid);
    n->stands = true;
    if (!n->leave_requested) {
        dv_node_enter(n, DV_NODE_THERE);
        return true;
    }
    start_leaving(n);
    send_delete(n);
    return false;
}

bool dv_node_unmade(dv_node *n, int64_t now) {
    if (!n->leave_requested) {
        dv_node_enter(n, DV_NODE_UNMADE);
        return true;
    }
    start_leaving(n);
    go_on_leaving(n, now);
    return false;
}

/* ---- a lost reply ---- */

/* R3, where no other attempt may have the name. With a number it has been there, and somebody has deleted it. */
static void take_for_unmade(dv_node *n, int64_t now) {
    if ((!n->written || n->leave_requested) && !n->numbered) dv_latecomer_expect(n, now);
    if (dv_node_unmade(n, now)) n->kind->not_found(n, now);
}

static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    dv_node *n = context;
    if (!dv_node_replied(n, reply->error, now)) return;
    bool ours = reply->error == 0 && reply->stat->ephemeral_owner == divvy_client_session_id(n->client);
    if (dv_outcome_unknown(reply->error)) dv_node_resolve(n);
    else if (ours) n->kind->found(n, reply->stat->czxid, now);
    else take_for_unmade(n, now);
}

void dv_node_look(dv_node *n) {
    if (dv_znode_exists(n->client->znode, dv_node_path(n), NULL, on_looked, n) != 0) dv_node_resolve(n);
    else n->under_way++;
}

/* The directory shows which number the server has added. */
static void on_listed(void *context, const dv_reply *reply, int64_t now) {
    dv_node *n = context;
    if (!dv_node_replied(n, reply->error, now)) return;
    const char *name =
        reply->error ? NULL : dv_queue_find(reply->children, reply->child_count, dv_path_last(dv_node_path(n)));
    if (dv_outcome_unknown(reply->error)) {
        dv_node_resolve(n);
    } else if (reply->error && reply->error != DIVVY_ENOENT) {
        dv_client_log(n->client, DIVVY_LOG_ERROR, "%s cannot be listed, so a node of ours may stay there: %s",
                      n->directory, divvy_strerror(reply->error));
        dv_node_fail(n, reply->error, now);
    } else if (!name) {
        take_for_unmade(n, now);
    } else if (take_made(n, dv_path_join(n->directory, name))) {
        dv_node_look(n);
    } else {
        dv_node_resolve(n);
    }
}

static void on_barrier(dv_barrier_wait *wait, int error, int64_t now) {
    dv_node *n = DV_CONTAINER(wait, dv_node, barrier);
    if (!dv_node_replied(n, error, now)) return;
    if (!n->sequential) dv_node_look(n);
    else if (dv_znode_children(n->client->znode, n->directory, NULL, on_listed, n) != 0) dv_node_resolve(n);
    else n->under_way++;
}

void dv_node_resolve(dv_node *n) {
    dv_node_enter(n, DV_NODE_RESOLVING);
    n->under_way++;
    dv_client_barrier(n->client, &n->barrier, on_barrier);
}

void dv_node_not_made(dv_node *n, int error, int64_t now) {
    assert(n->stage == DV_NODE_CREATING && error);
    if (error == DIVVY_EQUOTA) {
        if (dv_node_unmade(n, now)) n->kind->not_found(n, now);
    } else if (dv_outcome_unknown(error)) {
        dv_node_resolve(n);
    } else {
        dv_node_fail(n, error, now);
    }
}

/* ---- keeping it ---- */

static void on_verified(void *context, const dv_reply *reply, int64_t now) {
    dv_node *n = context;
    if (dv_node_replied(n, reply->error, now) && reply->error == DIVVY_ENOENT) dv_node_fail_deleted(n, now);
}

void dv_node_verify(dv_node *n) {
    if (n->stage != DV_NODE_THERE || n->under_way) return;
    if (dv_znode_exists(n->client->znode, dv_node_path(n), NULL, on_verified, n) == 0) n->under_way++;
}

static void on_missing(dv_own_node *own, int64_t now) {
    dv_node *n = DV_CONTAINER(own, dv_node, own);
    n->kind->missing(n, now);
}

/* ---- the session ---- */

/* Returns whether it is to be made again on the next session. */
static bool survives(const dv_node *n) {
    const divvy_client *client = n->client;
    bool another = client->state == DIVVY_LOST && (client->znode->attached || !dv_client_end_error(client));
    return n->lasting && !n->leave_requested && n->stage != DV_NODE_ENDED &&
           (another || client->state == DIVVY_CONNECTING);
}

bool dv_node_replied(dv_node *n, int error, int64_t now) {
    assert(n->under_way > 0);
    n->under_way--;
    if (error == DIVVY_ELOST && n->stage == DV_NODE_UNMADE && survives(n)) return false;
    if (dv_session_over(error)) dv_node_enter(n, DV_NODE_ENDED);
    if (n->stage != DV_NODE_LEAVING && n->stage != DV_NODE_ENDED) return true;
    go_on_ending(n, now);
    return false;
}

/* The servers delete what is ours when the session is over; replies under way come as errors right after that. */
static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    dv_node *n = DV_CONTAINER(listener, dv_node, listener);
    bool over = event == DV_SESSION_OVER || event == DV_SESSION_CLOSED;
    bool again = event == DV_SESSION_CONNECTED || event == DV_SESSION_LINK || event == DV_SESSION_AGAIN;
    if (n->stage == DV_NODE_LEAVING && again) go_on_leaving(n, now);
    else if (n->stage != DV_NODE_LEAVING && n->stage != DV_NODE_ENDED) n->kind->hear(n, event, now);
    if (!over) return; /* The node may be gone. */
    if (event == DV_SESSION_OVER && survives(n)) {
        dv_node_enter(n, DV_NODE_UNMADE);
    } else {
        dv_znode_unwatch(n->client->znode, &n->watch);
        end(n, now);
    }
}

int dv_node_open(dv_node *n, size_t cost, size_t watch_cost) {
    int error = dv_reserve_node(n->client, cost, watch_cost);
    if (error) {
        free_path(n);
        return error;
    }
    n->cost = (uint32_t)cost;
    n->watch_cost = (uint32_t)watch_cost;
    if (n->lasting) n->client->lasting_count++;
    n->own.missing = on_missing;
    n->listener = (dv_listener){.hear = hear};
    dv_listen(n->client, &n->listener);
    return 0;
}
