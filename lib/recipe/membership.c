/* Membership: one ephemeral node of ours, kept while it is wanted. SPDX-License-Identifier: Apache-2.0 */
#include "recipe/membership.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/ensure.h"
#include "znode/path.h"

typedef enum {
    OFFLINE,   /* to be made when there is a connection */
    ENSURING,  /* the directory is made */
    CREATING,  /* the node is */
    RESOLVING, /* the create's reply was lost: is the node there? */
    WATCHING,  /* it is there; a watch is set that tells when somebody deletes it */
    LEAVING,   /* to be deleted */
    ENDED,
} stage;

struct dv_membership {
    dv_event leaving_unmade;
    divvy_client *client;
    dv_listener listener;
    const dv_membership_events *events;
    void *owner;
    const char *directory, *suffix, *data;

    stage stage;
    bool leave_wanted, watching, look_again;
    unsigned under_way;
    char *path;
    dv_watch watch;
    dv_barrier_wait barrier;
    dv_own_node own;
    size_t cost;
};

static void resolve(dv_membership *m);
static void start(dv_membership *m);
static void delete_node(dv_membership *m);
static void keep_watch(dv_membership *m);

/* From which stages each is entered. Nothing comes back from leaving or from the end. */
static void enter(dv_membership *m, stage to) {
    enum { ANY = ~0u >> 1 };
    static const unsigned from[] = {
        [OFFLINE] = ANY & ~(1u << LEAVING | 1u << ENDED),
        [ENSURING] = 1u << OFFLINE,
        [CREATING] = 1u << ENSURING,
        [RESOLVING] = 1u << CREATING | 1u << RESOLVING,
        [WATCHING] = 1u << CREATING | 1u << RESOLVING,
        [LEAVING] = 1u << CREATING | 1u << RESOLVING | 1u << WATCHING | 1u << LEAVING,
        [ENDED] = ANY,
    };
    assert(from[to] & 1u << m->stage);
    m->stage = to;
}

static bool end_if_idle(dv_membership *m, int64_t now) {
    if (m->stage != ENDED || m->under_way) return false;
    dv_unlisten(m->client, &m->listener);
    dv_own_node_remove(m->client, &m->own);
    if (m->events->lasting) m->client->lasting_count--;
    dv_znode_unwatch(m->client->znode, &m->watch);
    dv_release_ephemeral(m->client, m->cost);
    m->events->gone(m->owner, now);
    free(m->path);
    free(m);
    return true;
}

static void end(dv_membership *m, int64_t now) {
    enter(m, ENDED);
    end_if_idle(m, now);
}

static void fail(dv_membership *m, int error, int64_t now) {
    enter(m, ENDED);
    if (!m->leave_wanted) m->events->failed(m->owner, error, m->path, now);
    end_if_idle(m, now);
}

/* Whether it is to be made again on the next session. */
static bool survives(const dv_membership *m) {
    bool another = m->client->state == DIVVY_LOST && (m->client->znode->attached || !dv_client_end_error(m->client));
    return m->events->lasting && !m->leave_wanted && m->stage != ENDED &&
           (another || m->client->state == DIVVY_CONNECTING);
}

static bool still_at_work(dv_membership *m, int error, int64_t now) {
    assert(m->under_way > 0);
    m->under_way--;
    if (error == DIVVY_ELOST && m->stage == OFFLINE && survives(m)) return false;
    if (dv_session_over(error)) enter(m, ENDED);
    if (m->stage != ENDED) return true;
    end_if_idle(m, now);
    return false;
}

/* ---- making it ---- */

static void become_member(dv_membership *m, int64_t now) {
    if (m->leave_wanted) {
        delete_node(m);
        return;
    }
    enter(m, WATCHING);
    m->own.path = m->path;
    dv_own_node_add(m->client, &m->own);
    keep_watch(m);
    m->events->joined(m->owner, now);
}

static int make_path(dv_membership *m) {
    char guid[DV_GUID_BYTES];
    dv_client_guid(m->client, guid);
    size_t directory_bytes = strlen(m->directory), guid_bytes = strlen(guid);
    char *path = malloc(directory_bytes + 1 + guid_bytes + strlen(m->suffix) + 1);
    if (!path) return DIVVY_ENOMEM;
    stpcpy(stpcpy(stpcpy(stpcpy(path, m->directory), "/"), guid), m->suffix);
    free(m->path);
    m->path = path;
    return 0;
}

static void on_created(void *context, const dv_reply *reply, int64_t now) {
    dv_membership *m = context;
    if (!still_at_work(m, reply->error, now)) return;
    if (reply->error == 0) become_member(m, now);
    else if (dv_outcome_unknown(reply->error)) resolve(m);
    else if (reply->error == DIVVY_ENOENT && !m->leave_wanted) start(m); /* The directory went in between. */
    else fail(m, reply->error, now);
}

static void on_ensured(void *context, int error, int64_t now) {
    dv_membership *m = context;
    if (!still_at_work(m, error, now)) return;
    if (m->leave_wanted) {
        end(m, now);
    } else if (dv_outcome_unknown(error)) {
        start(m);
    } else if (error) {
        fail(m, error, now);
    } else {
        enter(m, CREATING);
        if (dv_znode_create(m->client->znode, m->path, m->data, strlen(m->data), DV_EPHEMERAL, on_created, m) != 0) {
            enter(m, OFFLINE);
            dv_client_again(m->client);
            return;
        }
        m->under_way++;
    }
}

/* Each attempt has a name of its own: a late create of an earlier one could otherwise be taken for the new. */
static void start(dv_membership *m) {
    enter(m, OFFLINE);
    dv_own_node_remove(m->client, &m->own);
    if (!dv_client_connected(m->client)) return;
    if (make_path(m) != 0 || dv_ensure_path(m->client->znode, m->directory, DV_PERSISTENT, on_ensured, m) != 0) {
        dv_client_again(m->client);
        return;
    }
    enter(m, ENSURING);
    m->under_way++;
}

static void start_anew(dv_membership *m, int64_t now) {
    if (m->leave_wanted) end(m, now);
    else start(m);
}

/* ---- a lost reply ---- */

static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    dv_membership *m = context;
    if (!still_at_work(m, reply->error, now)) return;
    bool ours = reply->error == 0 && reply->stat->ephemeral_owner == divvy_client_session_id(m->client);
    if (dv_outcome_unknown(reply->error)) resolve(m);
    else if (ours) become_member(m, now);
    else start_anew(m, now);
}

static void on_barrier(void *context, int error, int64_t now) {
    dv_membership *m = context;
    if (!still_at_work(m, error, now)) return;
    if (dv_znode_exists(m->client->znode, m->path, NULL, on_looked, m) != 0) resolve(m);
    else m->under_way++;
}

static void resolve(dv_membership *m) {
    enter(m, RESOLVING);
    m->barrier.done = on_barrier;
    m->barrier.context = m;
    m->under_way++;
    dv_client_barrier(m->client, &m->barrier);
}

/* ---- keeping it ---- */

static void on_watched(void *context, const dv_reply *reply, int64_t now) {
    dv_membership *m = context;
    m->watching = false;
    if (!still_at_work(m, reply->error, now)) return;
    bool seen = m->stage == WATCHING && reply->error == 0;
    if (seen && m->events->seen) m->events->seen(m->owner, reply->stat->czxid);
    if (m->stage == LEAVING) {
        delete_node(m);
    } else if (m->stage == WATCHING && reply->error == DIVVY_ENOENT) {
        dv_client_warn(m->client, DIVVY_WARN_NODE_GONE, "%s was deleted by somebody else; joining again", m->path);
        start_anew(m, now);
    } else if (m->stage == WATCHING && (m->look_again || dv_outcome_unknown(reply->error))) {
        keep_watch(m);
    }
}

static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind;
    (void)now;
    dv_membership *m = DV_CONTAINER(watch, dv_membership, watch);
    if (m->watching) m->look_again = true;
    else keep_watch(m);
}

static void keep_watch(dv_membership *m) {
    if (m->stage != WATCHING || m->watching || !dv_client_connected(m->client)) return;
    m->look_again = false;
    m->watch.fired = on_event;
    if (dv_znode_get(m->client->znode, m->path, &m->watch, on_watched, m) != 0) {
        dv_client_again(m->client);
        return;
    }
    m->watching = true;
    m->under_way++;
}

static void on_missing(dv_own_node *own, int64_t now) {
    (void)now;
    keep_watch(DV_CONTAINER(own, dv_membership, own));
}

/* ---- leaving ---- */

static void on_deleted(void *context, const dv_reply *reply, int64_t now) {
    dv_membership *m = context;
    if (!still_at_work(m, reply->error, now)) return;
    if (dv_outcome_unknown(reply->error)) delete_node(m); /* The name is ours alone, so once more does no harm. */
    else end(m, now);
}

static void delete_node(dv_membership *m) {
    enter(m, LEAVING);
    dv_own_node_remove(m->client, &m->own);
    dv_znode_unwatch(m->client->znode, &m->watch);
    if (m->under_way || !dv_client_can_delete(m->client)) return;
    if (dv_batch_delete(m->client->batch, m->path, on_deleted, m) == 0) m->under_way++;
    else dv_client_again(m->client);
}

static void on_leaving_unmade(dv_event *event, int64_t now) {
    dv_membership *m = (dv_membership *)(void *)event;
    enter(m, ENDED);
    still_at_work(m, 0, now);
}

void dv_membership_leave(dv_membership *m) {
    if (m->leave_wanted) return;
    m->leave_wanted = true;
    if (m->stage == WATCHING) {
        delete_node(m);
    } else if (m->stage == OFFLINE) {
        m->under_way++;
        m->leaving_unmade.run = on_leaving_unmade;
        dv_client_post(m->client, &m->leaving_unmade);
    }
}

static void hear(void *context, dv_session_event event, int64_t now) {
    dv_membership *m = context;
    if (event == DV_SESSION_OVER && survives(m)) {
        enter(m, OFFLINE);
        m->watching = false;
        dv_own_node_remove(m->client, &m->own);
    } else if (event == DV_SESSION_OVER || event == DV_SESSION_CLOSED) {
        end(m, now);
    } else if (event == DV_SESSION_LINK) {
        if (m->stage == LEAVING) delete_node(m);
    } else if (event == DV_SESSION_AGAIN) {
        if (m->stage == OFFLINE && !m->leave_wanted) start(m);
        else if (m->stage == WATCHING && !m->watch.link) keep_watch(m);
        else if (m->stage == LEAVING) delete_node(m);
    } else if (event == DV_SESSION_CLOSING) {
        dv_membership_leave(m);
    } else if (event == DV_SESSION_CONNECTED) {
        if (m->stage == OFFLINE && !m->leave_wanted) start(m);
        else if (m->stage == WATCHING) keep_watch(m); /* A deletion may have been missed. */
        else if (m->stage == LEAVING) delete_node(m);
    }
}

int dv_membership_join(dv_membership **out, divvy_client *client, const char *directory, const char *suffix,
                       const char *data, const dv_membership_events *events, void *owner) {
    *out = NULL;
    dv_membership *m = calloc(1, sizeof *m);
    if (!m) return DIVVY_ENOMEM;
    *m = (dv_membership){.client = client,
                         .events = events,
                         .owner = owner,
                         .directory = directory,
                         .suffix = suffix,
                         .data = data,
                         .own.missing = on_missing,
                         .listener = {.hear = hear, .context = m}};
    int error = make_path(m);
    if (!error) {
        m->cost = dv_path_cost(m->path);
        error = dv_reserve_node(client, m->cost, 0);
    }
    if (error) {
        free(m->path);
        free(m);
        return error;
    }
    if (events->lasting) client->lasting_count++;
    dv_listen(client, &m->listener);
    start(m);
    *out = m;
    return 0;
}

void dv_membership_describe(dv_membership *m, const char *data) {
    m->data = data;
}

const char *dv_membership_name(const dv_membership *m) {
    return dv_path_last(m->path);
}

bool dv_membership_joined(const dv_membership *m) {
    return m->stage == WATCHING;
}
