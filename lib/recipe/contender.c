/* Contender: one place in a queue of ephemeral sequential nodes. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/contender.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/path.h"
#include "znode/sequence.h"

typedef enum {
    OFFLINE,   /* to be created when there is a connection */
    CREATING,  /* create and children are under way, back to back */
    LOOKING,   /* our node is there; who is before us? */
    WAITING,   /* for the one before us to go */
    HELD,      /* nobody is before us */
    RESOLVING, /* the create's reply was lost: is our node there? */
    LEAVING,   /* to be deleted */
    ENDED,     /* nothing is left in ZooKeeper */
} stage;

struct dv_contender {
    dv_event leaving_unmade; /* posted when it leaves and nothing is to be deleted */
    divvy_client *client;
    dv_listener listener;
    const dv_queue_kind *kind;
    const dv_contender_events *events;
    void (*waits)(void *owner, dv_contender *contender, int64_t now); /* may be NULL */
    void *owner;
    const char *parent, *data;

    stage stage;
    bool leave_wanted;
    unsigned under_way; /* replies, barriers and events that will still come */
    bool reading;       /* one of them is a list, or a read of the predecessor */
    bool look_again;    /* the predecessor went while that was under way */
    char *wish;         /* the path that the create asks for */
    char *node;         /* the path that the server made of it */
    int32_t sequence;
    int64_t token;
    bool seen_early;   /* the list came before the create's answer: what it shows is kept in the next two */
    char *early_node;  /* the path of our node in it */
    char *predecessor; /* the path of the one before us, NULL: we are first */
    dv_watch watch;
    dv_barrier_wait barrier;
    dv_own_node own; /* while our node is there, as far as we know */
    size_t ephemeral_cost, watch_cost;
};

enum { SEQUENCE_BYTES = 11, SEQUENCE_MAX = INT32_MAX - (1 << 20) };

static void attempt(dv_contender *c);
static void look(dv_contender *c);
static void resolve(dv_contender *c);

/* From which stages each is entered. What was held is only left, and nothing comes back from leaving or from the
 * end. */
static void enter(dv_contender *c, stage to) {
    enum {
        UNMADE = 1u << OFFLINE | 1u << RESOLVING,
        MADE = 1u << CREATING | 1u << RESOLVING | 1u << LOOKING,
        ANY = ~0u >> 1,
    };
    static const unsigned from[] = {
        [OFFLINE] = UNMADE | 1u << CREATING,
        [CREATING] = UNMADE,
        [LOOKING] = MADE | 1u << WAITING,
        [WAITING] = MADE,
        [HELD] = MADE,
        [RESOLVING] = 1u << CREATING | 1u << RESOLVING,
        [LEAVING] = MADE | 1u << WAITING | 1u << HELD | 1u << LEAVING,
        [ENDED] = ANY,
    };
    assert(from[to] & 1u << c->stage);
    c->stage = to;
}

/* ---- the end ---- */

static void give_watch_back(dv_contender *c) {
    dv_znode_unwatch(c->client->znode, &c->watch);
    if (c->watch_cost) dv_release_watch(c->client, c->watch_cost);
    c->watch_cost = 0;
}

/* Q7: a contender ends only when no reply can come, so that no late one meets freed memory. */
static bool end_if_idle(dv_contender *c, int64_t now) {
    if (c->stage != ENDED || c->under_way) return false;
    dv_unlisten(c->client, &c->listener);
    dv_own_node_remove(c->client, &c->own);
    give_watch_back(c);
    dv_release_ephemeral(c->client, c->ephemeral_cost);
    c->events->gone(c->owner, c, now);
    free(c->wish);
    free(c->node);
    free(c->early_node);
    free(c->predecessor);
    free(c);
    return true;
}

static void end(dv_contender *c, int64_t now) {
    enter(c, ENDED);
    end_if_idle(c, now);
}

static void fail(dv_contender *c, int error, int64_t now) {
    enter(c, ENDED);
    dv_own_node_remove(c->client, &c->own);
    if (!c->leave_wanted) c->events->failed(c->owner, c, error, now);
    end_if_idle(c, now);
}

/* One reply less to come. Whether the contender is still at work, so that the reply is to be looked at. */
static bool still_at_work(dv_contender *c, int error, int64_t now) {
    assert(c->under_way > 0);
    c->under_way--;
    if (dv_session_over(error)) enter(c, ENDED);
    if (c->stage != ENDED) return true;
    end_if_idle(c, now);
    return false;
}

/* ---- leaving ---- */

static void delete_node(dv_contender *c);

static void on_deleted(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    if (!still_at_work(c, reply->error, now)) return;
    /* Q6: nobody else ever makes a node of this name, so deleting it a second time can hit nothing else. */
    if (dv_outcome_unknown(reply->error)) {
        delete_node(c);
        return;
    }
    if (reply->error && reply->error != DIVVY_ENOENT)
        dv_client_log(c->client, DIVVY_LOG_ERROR, "%s cannot be deleted and stays until the session ends: %s", c->node,
                      divvy_strerror(reply->error));
    end(c, now);
}

static void delete_node(dv_contender *c) {
    enter(c, LEAVING);
    dv_own_node_remove(c->client, &c->own);
    give_watch_back(c);
    if (c->under_way || !dv_client_can_delete(c->client)) return; /* comes back here on a reply, or when connected */
    if (dv_batch_delete(c->client->batch, c->node, on_deleted, c) == 0) c->under_way++;
    else dv_client_again(c->client);
}

/* It cannot go on though its node is there. */
static void fail_and_leave(dv_contender *c, int error, int64_t now) {
    bool told = c->leave_wanted;
    c->leave_wanted = true;
    if (!told) c->events->failed(c->owner, c, error, now);
    delete_node(c);
}

static void on_leaving_unmade(dv_event *event, int64_t now) {
    dv_contender *c = (dv_contender *)(void *)event;
    enter(c, ENDED);
    still_at_work(c, 0, now);
}

static void end_later(dv_contender *c) {
    c->under_way++;
    c->leaving_unmade.run = on_leaving_unmade;
    dv_client_post(c->client, &c->leaving_unmade);
}

void dv_contender_leave(dv_contender *c) {
    assert(!c->leave_wanted);
    c->leave_wanted = true;
    switch (c->stage) {
    case OFFLINE: end_later(c); break;
    case LOOKING:
    case WAITING:
    case HELD: delete_node(c); break;
    case CREATING:
    case RESOLVING: break; /* once it is known whether there is a node */
    case LEAVING:
    case ENDED: break;
    }
}

void dv_contender_consumed(dv_contender *c) {
    assert(!c->leave_wanted);
    c->leave_wanted = true;
    if (c->stage == ENDED) return; /* The session has ended: gone() comes anyway. */
    assert(c->stage == HELD);
    enter(c, ENDED);
    dv_own_node_remove(c->client, &c->own);
    end_later(c);
}

/* ---- waiting ---- */

static void become_holder(dv_contender *c, int64_t now) {
    enter(c, HELD);
    give_watch_back(c);
    c->events->held(c->owner, c, now);
}

static void on_predecessor_read(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    c->reading = false;
    if (!still_at_work(c, reply->error, now)) return;
    if (c->stage == LEAVING) {
        delete_node(c);
    } else if (c->stage == WAITING) {
        bool seen = reply->error == 0 && !c->look_again;
        if (reply->error == DIVVY_EACCES) fail_and_leave(c, reply->error, now); /* It could never be waited for. */
        else if (!seen) look(c);
    }
}

static void on_predecessor_gone(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)now;
    dv_contender *c = DV_CONTAINER(watch, dv_contender, watch);
    (void)kind; /* A change of its data wakes us too; then we look and wait again. */
    if (c->stage != WAITING) return;
    if (c->reading) c->look_again = true;
    else look(c);
}

/* Q4: a get leaves no watch behind when the node is not there; an exists would. */
static void watch_predecessor(dv_contender *c, int64_t now) {
    const char *path = c->predecessor;
    enter(c, WAITING);
    c->look_again = false;
    if (c->waits) c->waits(c->owner, c, now);
    if (c->stage != WAITING) return; /* It has left. */
    c->watch.fired = on_predecessor_gone;
    if (dv_znode_get(c->client->znode, path, &c->watch, on_predecessor_read, c) != 0) {
        fail_and_leave(c, DIVVY_ENOMEM, now);
        return;
    }
    c->reading = true;
    c->under_way++;
}

/* Q3. Returns false when an allocation fails. */
static bool find_predecessor(dv_contender *c, const dv_reply *list, const char *own, int32_t own_sequence) {
    const char *nearest = dv_queue_before(c->kind, list->children, list->child_count, own, own_sequence);
    free(c->predecessor);
    c->predecessor = nearest ? dv_path_join(c->parent, nearest) : NULL;
    return !nearest || c->predecessor;
}

static const char *find_child(const dv_reply *list, const char *prefix) {
    return dv_queue_find(list->children, list->child_count, prefix);
}

/* Q2: the create's answer may be held up behind the list's, when it went in a multi; the list counts all the same. */
static void note_early_list(dv_contender *c, const dv_reply *list) {
    int32_t sequence;
    const char *own = find_child(list, dv_path_last(c->wish));
    if (!own || !dv_sequence_parse(own, c->kind->marker, &sequence)) return;
    free(c->early_node);
    c->early_node = dv_path_join(c->parent, own);
    c->seen_early = c->early_node && find_predecessor(c, list, own, sequence);
}

static void wait_or_hold(dv_contender *c, int64_t now) {
    if (c->predecessor) watch_predecessor(c, now);
    else become_holder(c, now);
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    c->reading = false;
    if (!still_at_work(c, reply->error, now)) return;
    if (c->stage == LEAVING) {
        delete_node(c);
        return;
    }
    if (c->stage == CREATING && reply->error == 0) note_early_list(c, reply);
    if (c->stage != LOOKING) return;
    if (dv_outcome_unknown(reply->error)) {
        look(c);
        return;
    }
    const char *own = dv_path_last(c->node);
    if (reply->error && reply->error != DIVVY_ENOENT) fail_and_leave(c, reply->error, now);
    else if (!find_child(reply, own)) fail(c, DIVVY_ENOENT, now);
    else if (find_predecessor(c, reply, own, c->sequence)) wait_or_hold(c, now);
    else fail_and_leave(c, DIVVY_ENOMEM, now);
}

static void look(dv_contender *c) {
    enter(c, LOOKING);
    if (c->reading || !dv_client_connected(c->client)) return;
    if (dv_batch_children(c->client->batch, c->parent, on_list, c) != 0) {
        dv_client_again(c->client);
        return;
    }
    c->reading = true;
    c->under_way++;
}

/* ---- entering ---- */

static bool adopt(dv_contender *c, const char *path, int64_t czxid) {
    free(c->node);
    c->node = strdup(path);
    c->token = czxid;
    return c->node && dv_sequence_parse(c->node, c->kind->marker, &c->sequence);
}

static void take_place(dv_contender *c, int64_t now);

static void on_made(dv_contender *c, const char *path, int64_t czxid, int64_t now) {
    bool understood = adopt(c, path, czxid) && c->sequence >= 0 && c->sequence < SEQUENCE_MAX;
    if (!c->node) {
        resolve(c); /* It is there, and its name is to be had again. */
    } else if (!understood) {
        fail_and_leave(c, DIVVY_ELIMIT, now); /* N6: close to the end of the numbers they no longer grow. */
    } else if (c->leave_wanted) {
        delete_node(c);
    } else {
        c->own.path = c->node;
        dv_own_node_add(c->client, &c->own);
        take_place(c, now);
    }
}

static void take_place(dv_contender *c, int64_t now) {
    if (c->seen_early && strcmp(c->early_node, c->node) == 0) {
        wait_or_hold(c, now);
    } else {
        look(c);
    }
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    if (!still_at_work(c, reply->error, now)) return;
    if (reply->error == 0) on_made(c, reply->path, reply->stat->czxid, now);
    else if (dv_outcome_unknown(reply->error)) resolve(c);
    else fail(c, reply->error, now);
}

static int make_wish(dv_contender *c) {
    char guid[DV_GUID_BYTES], name[DV_GUID_BYTES + 32];
    dv_client_guid(c->client, guid);
    size_t guid_bytes = strlen(guid), marker_bytes = strlen(c->kind->marker);
    assert(guid_bytes + marker_bytes < sizeof name);
    memcpy(name, guid, guid_bytes);
    memcpy(name + guid_bytes, c->kind->marker, marker_bytes + 1);
    free(c->wish);
    c->wish = dv_path_join(c->parent, name);
    return c->wish ? 0 : DIVVY_ENOMEM;
}

/* Q8: not in a multi with others of this queue, whose nodes would have one czxid. */
static int send_create(dv_contender *c) {
    enum { MODE = DV_EPHEMERAL | DV_SEQUENTIAL };
    size_t bytes = strlen(c->data);
    if (c->kind->alone) return dv_znode_create(c->client->znode, c->wish, c->data, bytes, MODE, on_created, c);
    return dv_batch_create(c->client->batch, c->wish, c->data, bytes, MODE, on_created, c);
}

static int send_list(dv_contender *c) {
    if (c->kind->alone) return dv_znode_children(c->client->znode, c->parent, NULL, on_list, c);
    return dv_batch_children(c->client->batch, c->parent, on_list, c);
}

/* Q1, Q2: create and list are sent back to back; the server answers in order, so the list has our node. */
static void attempt(dv_contender *c) {
    enter(c, CREATING);
    c->seen_early = false;
    if (send_create(c) != 0) {
        enter(c, OFFLINE);
        dv_client_again(c->client);
        return;
    }
    c->under_way++;
    if (send_list(c) != 0) return;
    c->reading = true;
    c->under_way++;
}

/* ---- a lost reply: docs/protocol.md, Q5 ---- */

static void on_owner_known(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    if (!still_at_work(c, reply->error, now)) return;
    if (dv_outcome_unknown(reply->error)) {
        resolve(c);
    } else if (reply->error == 0 && reply->stat->ephemeral_owner == divvy_client_session_id(c->client)) {
        char *path = c->node;
        c->node = NULL;
        on_made(c, path, reply->stat->czxid, now);
        free(path);
    } else {
        fail(c, DIVVY_ENOENT, now); /* It was there, and somebody has deleted it. */
    }
}

static void start_over(dv_contender *c, int64_t now) {
    if (c->leave_wanted) end(c, now); /* What on_leaving_unmade() posted comes first, if it is that. */
    else if (make_wish(c) != 0) fail(c, DIVVY_ENOMEM, now);
    else if (dv_client_connected(c->client)) attempt(c);
    else enter(c, OFFLINE);
}

static void on_search(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    if (!still_at_work(c, reply->error, now)) return;
    if (dv_outcome_unknown(reply->error)) {
        resolve(c);
        return;
    }
    if (reply->error && reply->error != DIVVY_ENOENT) {
        dv_client_log(c->client, DIVVY_LOG_ERROR, "%s cannot be listed, so a node of ours may stay there: %s",
                      c->parent, divvy_strerror(reply->error));
        fail(c, reply->error, now);
        return;
    }
    const char *own = find_child(reply, dv_path_last(c->wish));
    if (!own) {
        start_over(c, now); /* The create was never applied, and after the barrier it never will be. */
        return;
    }
    free(c->node);
    c->node = dv_path_join(c->parent, own);
    if (!c->node || dv_znode_exists(c->client->znode, c->node, NULL, on_owner_known, c) != 0) resolve(c);
    else c->under_way++;
}

static void on_barrier(void *context, int error, int64_t now) {
    dv_contender *c = context;
    if (!still_at_work(c, error, now)) return;
    if (dv_znode_children(c->client->znode, c->parent, NULL, on_search, c) != 0) resolve(c);
    else c->under_way++;
}

static void resolve(dv_contender *c) {
    enter(c, RESOLVING);
    c->barrier.done = on_barrier;
    c->barrier.context = c;
    c->under_way++;
    dv_client_barrier(c->client, &c->barrier);
}

/* ---- a foreign deletion ---- */

static void on_verified(void *context, const dv_reply *reply, int64_t now) {
    dv_contender *c = context;
    if (!still_at_work(c, reply->error, now)) return;
    if (c->stage == LEAVING) delete_node(c);
    else if (c->stage == HELD && reply->error == DIVVY_ENOENT) fail(c, DIVVY_ENOENT, now);
}

void dv_contender_verify(dv_contender *c) {
    if (c->stage != HELD || c->under_way) return;
    if (dv_znode_exists(c->client->znode, c->node, NULL, on_verified, c) == 0) c->under_way++;
}

static void on_missing(dv_own_node *own, int64_t now) {
    (void)now;
    dv_contender *c = DV_CONTAINER(own, dv_contender, own);
    if (c->stage == HELD) dv_contender_verify(c);
    else if (c->stage == WAITING && !c->reading) look(c);
}

/* ---- the session ---- */

static void hear(void *context, dv_session_event event, int64_t now) {
    dv_contender *c = context;
    if (event == DV_SESSION_OVER || event == DV_SESSION_CLOSED) {
        dv_znode_unwatch(c->client->znode, &c->watch);
        end(c, now); /* The servers delete what is ours; replies under way come as errors right after this. */
    } else if (event == DV_SESSION_CONNECTED) {
        if (c->stage == OFFLINE) start_over(c, now);
        else if (c->stage == LOOKING || (c->stage == WAITING && !c->reading))
            look(c); /* a watch may have been missed */
        else if (c->stage == LEAVING) delete_node(c);
    } else if (event == DV_SESSION_AGAIN) {
        if (c->stage == OFFLINE && dv_client_connected(c->client)) start_over(c, now);
        else if (c->stage == LOOKING) look(c);
        else if (c->stage == LEAVING) delete_node(c);
    } else if (event == DV_SESSION_LINK && c->stage == LEAVING) {
        delete_node(c);
    }
}

int dv_contender_enter(dv_contender **out, divvy_client *client, const char *parent, const dv_queue_kind *kind,
                       const char *data, const dv_contender_events *events, void *owner) {
    *out = NULL;
    dv_contender *c = calloc(1, sizeof *c);
    if (!c) return DIVVY_ENOMEM;
    *c = (dv_contender){.client = client,
                        .kind = kind,
                        .events = events,
                        .owner = owner,
                        .parent = parent,
                        .data = data,
                        .own.missing = on_missing,
                        .listener = {.hear = hear, .context = c}};
    int error = make_wish(c);
    if (!error) {
        c->ephemeral_cost = dv_path_cost(c->wish) + SEQUENCE_BYTES;
        error = dv_reserve_node(client, c->ephemeral_cost, c->ephemeral_cost);
    }
    if (error) {
        free(c->wish);
        free(c);
        return error;
    }
    c->watch_cost = c->ephemeral_cost;
    dv_listen(client, &c->listener);
    if (dv_client_connected(client)) attempt(c);
    *out = c;
    return 0;
}

void dv_contender_tell_waits(dv_contender *c, void (*waits)(void *owner, dv_contender *c, int64_t now)) {
    c->waits = waits;
}

bool dv_contender_waits_for(const dv_contender *c, const dv_contender *other) {
    return c->predecessor && strncmp(c->predecessor, other->wish, strlen(other->wish)) == 0;
}

int64_t dv_contender_token(const dv_contender *c) {
    return c->token;
}

const char *dv_contender_path(const dv_contender *c) {
    return c->node;
}
