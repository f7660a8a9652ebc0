/* Leader view: who is the first in an election's queue, told each time that it changes. SPDX-License-Identifier:
 * Apache-2.0 */
#include "recipe/leader_view.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/queue.h"
#include "znode/path.h"

/* A candidate's node has a guid, a preference and a marker; names that are longer cost as much in the budget. */
enum { AUDIT_INTERVAL_MS = 60000, DATA_BYTES_MAX = 64 * 1024, NAME_BYTES = 80 };

struct dv_leader_view {
    dv_event stopping;
    divvy_client *client;
    dv_listener listener;
    const char *directory;
    const dv_leader_view_events *events;
    void *owner;

    dv_watch watch; /* on the leader; on the directory while it is empty or missing */
    size_t watch_cost;
    dv_timer audit_timer;
    char *first; /* the path of the one that is being read */
    bool reading, ended;
    unsigned under_way;

    bool known;
    dv_leader *leader; /* NULL: nobody */
    int error;
};

static void look(dv_leader_view *v, bool watch_children);
static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now);

/* ---- leaders ---- */

dv_leader *dv_leader_ref(dv_leader *leader) {
    if (leader) leader->refs++;
    return leader;
}

void dv_leader_unref(dv_leader *leader) {
    if (leader && --leader->refs == 0) free(leader);
}

static dv_leader *make_leader(const char *path, const dv_reply *reply) {
    size_t bytes = reply->data_bytes < DATA_BYTES_MAX ? reply->data_bytes : DATA_BYTES_MAX;
    dv_leader *leader = malloc(sizeof *leader + bytes + 1);
    if (!leader) return NULL;
    char *data = (char *)(leader + 1);
    if (bytes) memcpy(data, reply->data, bytes);
    data[bytes] = '\0';
    *leader = (dv_leader){.shown = {.token = reply->stat->czxid, .data = data, .data_bytes = bytes},
                          .refs = 1,
                          .preference = dv_queue_preference(dv_path_last(path))};
    return leader;
}

/* ---- what is known ---- */

/* Takes the reference. */
static void take(dv_leader_view *v, dv_leader *leader, int error, int64_t now) {
    int64_t before = v->leader ? v->leader->shown.token : 0, after = leader ? leader->shown.token : 0;
    bool news = !v->known || before != after || v->error != error;
    if (error && v->error != error)
        dv_client_log(v->client, DIVVY_LOG_WARN, "who leads at %s cannot be read: %s", v->directory,
                      divvy_strerror(error));
    dv_leader_unref(v->leader);
    v->leader = leader;
    v->error = error;
    v->known = error == 0;
    dv_timer_set(v->client, &v->audit_timer, now + AUDIT_INTERVAL_MS); /* J3: a watch may be lost. */
    dv_client_changed(v->client);
    if (news) v->events->changed(v->owner, now);
}

/* ---- reading ---- */

static void release(dv_leader_view *v, int64_t now) {
    dv_release_watch(v->client, v->watch_cost);
    v->events->gone(v->owner, now);
    dv_leader_unref(v->leader);
    free(v->first);
    free(v);
}

/* Counts an answer. Returns whether it is to be looked at; else the view may be gone. */
static bool take_answer(dv_leader_view *v, int error, int64_t now) {
    assert(v->reading && v->under_way > 0);
    v->reading = false;
    v->under_way--;
    if (v->ended && !v->under_way) {
        release(v, now);
        return false;
    }
    if (v->ended) return false;
    if (dv_outcome_unknown(error) || dv_session_over(error)) { /* The next connection asks again. */
        if (dv_client_connected(v->client)) dv_client_again(v->client);
        return false;
    }
    return true;
}

static void sent(dv_leader_view *v, int error) {
    if (error) {
        dv_client_again(v->client);
        return;
    }
    v->reading = true;
    v->under_way++;
}

static void on_first(void *context, const dv_reply *reply, int64_t now) {
    dv_leader_view *v = context;
    if (!take_answer(v, reply->error, now)) return;
    if (reply->error == DIVVY_ENOENT) {
        look(v, false); /* It has just gone. */
        return;
    }
    dv_leader *leader = reply->error ? NULL : make_leader(v->first, reply);
    if (!reply->error && !leader) dv_client_again(v->client);
    else take(v, leader, reply->error == DIVVY_ENOENT ? 0 : reply->error, now);
}

/* A get leaves no watch behind when the node is not there (Q4). */
static void read_first(dv_leader_view *v, const char *name) {
    free(v->first);
    v->first = dv_path_join(v->directory, name);
    if (!v->first) {
        dv_client_again(v->client);
        return;
    }
    sent(v, dv_znode_get(v->client->znode, v->first, &v->watch, on_first, v));
}

static void on_directory(void *context, const dv_reply *reply, int64_t now) {
    dv_leader_view *v = context;
    if (!take_answer(v, reply->error, now)) return;
    if (reply->error == 0) look(v, true);
    else take(v, NULL, reply->error == DIVVY_ENOENT ? 0 : reply->error, now);
}

static void took_list(dv_leader_view *v, const dv_reply *reply, bool watched, int64_t now) {
    const char *first = reply->error ? NULL : dv_queue_first(reply->children, reply->child_count);
    if (first) read_first(v, first);
    else if (reply->error == DIVVY_ENOENT)
        sent(v, dv_znode_exists(v->client->znode, v->directory, &v->watch, on_directory, v));
    else if (reply->error == 0 && !watched) look(v, true);
    else take(v, NULL, reply->error, now);
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    if (take_answer(context, reply->error, now)) took_list(context, reply, false, now);
}

static void on_watched_list(void *context, const dv_reply *reply, int64_t now) {
    if (take_answer(context, reply->error, now)) took_list(context, reply, true, now);
}

/* J3: children are watched only while nobody stands, so that candidates that come and go wake nobody. */
static void look(dv_leader_view *v, bool watch_children) {
    if (v->ended || v->reading || !dv_client_connected(v->client)) return;
    dv_znode_unwatch(v->client->znode, &v->watch);
    v->watch.fired = on_event;
    dv_watch *watch = watch_children ? &v->watch : NULL;
    sent(v, dv_znode_children(v->client->znode, v->directory, watch, watch ? on_watched_list : on_list, v));
}

static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind, (void)now;
    look(DV_CONTAINER(watch, dv_leader_view, watch), false);
}

static void on_audit(dv_timer *timer, int64_t now) {
    (void)now;
    look(DV_CONTAINER(timer, dv_leader_view, audit_timer), false);
}

/* ---- life ---- */

static void end(dv_leader_view *v) {
    if (v->ended) return;
    v->ended = true;
    dv_unlisten(v->client, &v->listener);
    dv_timer_cancel(&v->audit_timer);
    dv_znode_unwatch(v->client->znode, &v->watch);
}

static void on_stopping(dv_event *event, int64_t now) {
    dv_leader_view *v = (dv_leader_view *)(void *)event;
    assert(v->under_way > 0);
    if (--v->under_way == 0) release(v, now);
}

static void hear(void *context, dv_session_event event, int64_t now) {
    dv_leader_view *v = context;
    if (event == DV_SESSION_CLOSED) {
        end(v);
        if (!v->under_way) release(v, now);
    } else if (event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN) {
        look(v, false); /* A watch may have been missed. */
    }
}

int dv_leader_view_start(dv_leader_view **out, divvy_client *client, const char *directory,
                         const dv_leader_view_events *events, void *owner) {
    dv_leader_view *v = calloc(1, sizeof *v);
    *out = NULL;
    if (!v) return DIVVY_ENOMEM;
    *v = (dv_leader_view){.client = client,
                          .directory = directory,
                          .events = events,
                          .owner = owner,
                          .watch_cost = dv_path_cost(directory) + NAME_BYTES,
                          .audit_timer.fire = on_audit,
                          .listener = {.hear = hear, .context = v}};
    if (!dv_reserve_watch(client, v->watch_cost)) {
        free(v);
        return DIVVY_ELIMIT;
    }
    dv_listen(client, &v->listener);
    look(v, false);
    *out = v;
    return 0;
}

void dv_leader_view_stop(dv_leader_view *v) {
    end(v);
    v->under_way++;
    v->stopping.run = on_stopping;
    dv_client_post(v->client, &v->stopping);
}

bool dv_leader_view_known(const dv_leader_view *v, dv_leader **leader) {
    *leader = v->leader;
    return v->known;
}

int dv_leader_view_error(const dv_leader_view *v) {
    return v->error;
}
