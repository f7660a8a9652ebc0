/* Election: who leads, and who is told. docs/protocol.md, J3. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/election.h"
#include "recipe/queue.h"
#include "znode/path.h"

/* A candidate's node has a guid, a preference and a marker; names that are longer cost as much in the budget. */
enum { AUDIT_INTERVAL_MS = 60000, DATA_BYTES_MAX = 64 * 1024, NAME_BYTES = 80 };

static void look(divvy_election *e, bool watch_children);
static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now);

/* ---- leaders ---- */

static void drop_leader(dv_leader *leader) {
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

/* ---- telling who leads ---- */

static bool is_news(const divvy_election *e) {
    const dv_leader_view *v = &e->view;
    if (!v->follows || !v->known || !e->config.on_leader) return false;
    return !v->told_any || dv_leader_token(v->leader) != dv_leader_token(v->told);
}

/* Takes the news as it is now for the call that is due. */
static void take_news(divvy_election *e) {
    dv_leader_view *v = &e->view;
    if (v->telling || !is_news(e)) return; /* Telling: of a client that has closed since. */
    drop_leader(v->told);
    v->told = v->leader;
    if (v->told) v->told->refs++;
    v->told_any = true;
    v->telling = true;
}

static void start_leader(dv_callback *callback) {
    take_news(DV_CONTAINER(callback, divvy_election, view.callback));
}

static void call_leader(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, view.callback);
    const dv_leader *leader = e->view.told; /* It stays while this runs. */
    if (e->view.telling) e->config.on_leader(e, leader ? &leader->shown : NULL, e->config.user);
}

static void tell_leader(divvy_election *e);

static void release_leader(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, view.callback);
    e->view.telling = e->view.queued = false;
    tell_leader(e);
}

/* One call at a time: a slow user is told the newest next. */
static void tell_leader(divvy_election *e) {
    if (e->view.queued || e->ending || !is_news(e)) return;
    e->view.queued = true;
    e->view.callback =
        (dv_callback){.object = &e->object, .starting = start_leader, .call = call_leader, .release = release_leader};
    dv_callback_queue(e->object.client, &e->view.callback);
}

/* Takes the reference. */
static void take(divvy_election *e, dv_leader *leader, int error, int64_t now) {
    dv_leader_view *v = &e->view;
    divvy_client *client = e->object.client;
    bool news = !v->known || dv_leader_token(v->leader) != dv_leader_token(leader) || v->error != error;
    if (error && v->error != error)
        dv_client_log(client, DIVVY_LOG_WARN, "who leads at %s cannot be read: %s", e->directory,
                      divvy_strerror(error));
    drop_leader(v->leader);
    v->leader = leader;
    v->error = error;
    v->known = error == 0;
    dv_timer_set(client, &v->audit_timer, now + AUDIT_INTERVAL_MS); /* a watch may be lost */
    dv_client_changed(client);
    if (!news) return;
    tell_leader(e);
    dv_election_decide_to_request(e);
}

/* ---- reading ---- */

/* Takes an answer. Returns whether it counts; else the election may be gone. */
static bool take_answer(divvy_election *e, int error) {
    divvy_client *client = e->object.client;
    bool counts = e->view.follows, unknown = dv_outcome_unknown(error) || dv_session_over(error);
    bool is_late = counts && !unknown && e->view.look_again;
    assert(e->view.reading);
    e->view.reading = e->view.look_again = false;
    if (counts && unknown && dv_client_connected(client)) dv_client_again(client); /* Else the next connection reads. */
    dv_object_unref(&e->object);
    if (is_late) look(e, false);
    return counts && !unknown && !is_late;
}

static void sent(divvy_election *e, int error) {
    if (error) {
        dv_client_again(e->object.client);
        return;
    }
    e->view.reading = true;
    dv_object_ref(&e->object);
}

static void on_first(void *context, const dv_reply *reply, int64_t now) {
    divvy_election *e = context;
    if (!take_answer(e, reply->error)) return;
    if (reply->error == DIVVY_ENOENT) {
        look(e, false); /* It has just gone. */
        return;
    }
    dv_leader *leader = reply->error ? NULL : make_leader(e->view.first, reply);
    if (!reply->error && !leader) dv_client_again(e->object.client);
    else take(e, leader, reply->error, now);
}

/* A get leaves no watch behind when the node is not there (Q4). */
static void read_first(divvy_election *e, const char *name) {
    dv_leader_view *v = &e->view;
    dv_znode *znode = e->object.client->znode;
    free(v->first);
    v->first = dv_path_join(e->directory, name);
    sent(e, v->first ? dv_znode_get(znode, v->first, &v->watch, on_first, e) : DIVVY_ENOMEM);
}

static void on_directory(void *context, const dv_reply *reply, int64_t now) {
    divvy_election *e = context;
    if (!take_answer(e, reply->error)) return;
    if (reply->error == 0) look(e, true);
    else take(e, NULL, reply->error == DIVVY_ENOENT ? 0 : reply->error, now);
}

static void on_list(void *context, const dv_reply *reply, int64_t now) {
    divvy_election *e = context;
    dv_znode *znode = e->object.client->znode;
    if (!take_answer(e, reply->error)) return;
    const char *first = reply->error ? NULL : dv_queue_first(reply->children, reply->child_count);
    if (first) read_first(e, first);
    else if (reply->error == DIVVY_ENOENT)
        sent(e, dv_znode_exists(znode, e->directory, &e->view.watch, on_directory, e));
    else if (reply->error == 0 && !e->view.watches_children) look(e, true);
    else take(e, NULL, reply->error, now);
}

/* Children are watched only while nobody stands, so that candidates that come and go wake nobody. */
static void look(divvy_election *e, bool watch_children) {
    dv_leader_view *v = &e->view;
    dv_znode *znode = e->object.client->znode;
    if (!v->follows || v->reading || !dv_client_connected(e->object.client)) return;
    dv_znode_unwatch(znode, &v->watch);
    v->watch.fired = on_event;
    v->watches_children = watch_children;
    sent(e, dv_znode_children(znode, e->directory, watch_children ? &v->watch : NULL, on_list, e));
}

/* It may fire before the answer to the read that armed it is taken (znode.h, rule 4). */
static void on_event(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    (void)kind, (void)now;
    divvy_election *e = DV_CONTAINER(watch, divvy_election, view.watch);
    if (e->view.reading) e->view.look_again = true;
    else look(e, false);
}

static void on_audit(dv_timer *timer, int64_t now) {
    (void)now;
    look(DV_CONTAINER(timer, divvy_election, view.audit_timer), false);
}

/* ---- life ---- */

int dv_election_follow(divvy_election *e) {
    dv_leader_view *v = &e->view;
    if (v->follows) return 0;
    assert(!v->watch_cost);
    size_t watch_cost = dv_path_cost(e->directory) + NAME_BYTES;
    if (!dv_reserve_watch(e->object.client, watch_cost)) return DIVVY_ELIMIT;
    v->watch_cost = watch_cost;
    v->audit_timer.fire = on_audit;
    v->follows = true;
    look(e, false);
    return 0;
}

void dv_election_stop_following(divvy_election *e) {
    dv_leader_view *v = &e->view;
    if (!v->follows) return;
    v->follows = false;
    dv_timer_cancel(&v->audit_timer);
    dv_znode_unwatch(e->object.client->znode, &v->watch);
}

void dv_election_hear_leader(divvy_election *e, dv_session_event event) {
    if (event == DV_SESSION_CLOSED) {
        if (e->view.queued) take_news(e);
        dv_election_stop_following(e);
    } else if (event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN) {
        look(e, false); /* A watch may have been missed. */
    }
}

void dv_election_free_leader(divvy_election *e) {
    dv_leader_view *v = &e->view;
    assert(!v->follows && !v->reading);
    if (v->watch_cost) dv_release_watch(e->object.client, v->watch_cost);
    drop_leader(v->leader);
    drop_leader(v->told);
    free(v->first);
}

/* ---- waiting calls ---- */

typedef struct {
    const divvy_election *election;
    int64_t token; /* of the leader that was asked to step down; 0: it is not known yet */
} wait_for;

/* The end of a request is nothing to those who only ask who leads. */
static int why_over(const wait_for *w) {
    const divvy_election *e = w->election;
    if (e->ending) return DIVVY_ESTATE;
    int end = dv_client_end_error(e->object.client);
    if (end) return end;
    return w->token && e->request_error ? e->request_error : e->view.error;
}

static bool has_changed(void *context) {
    const wait_for *w = context;
    const dv_leader_view *v = &w->election->view;
    return why_over(w) || (v->known && (!w->token || dv_leader_token(v->leader) != w->token));
}

int dv_election_wait_until_changed(divvy_election *e, int64_t token, dv_deadline deadline) {
    divvy_client *client = e->object.client;
    wait_for w = {e, token};
    int error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), has_changed, &w);
    return error ? error : why_over(&w);
}

int dv_election_find_leader(divvy_election *e, dv_leader **leader, dv_deadline deadline) {
    if (dv_client_in_callback(e->object.client)) return DIVVY_EDEADLK;
    if (e->ending) return DIVVY_ESTATE;
    int error = dv_client_end_error(e->object.client);
    if (!error) error = dv_election_follow(e);
    if (!error) error = dv_election_wait_until_changed(e, 0, deadline);
    if (!error) *leader = e->view.leader;
    return error;
}

int dv_election_finish_call(divvy_election *e, const char *what, int error) {
    if (error)
        dv_fail(e->object.client, error, "election %s: %s: %s", what, e->directory,
                dv_client_why(e->object.client, error));
    dv_object_let_go(&e->object);
    return error;
}

int divvy_election_leader(divvy_election *e, divvy_leader **out, int64_t timeout_ms) {
    dv_leader *leader = NULL;
    if (out) *out = NULL;
    int error = dv_election_enter(e);
    if (error) return error;
    dv_object_hold(&e->object);
    if (!out || timeout_ms < -1) error = DIVVY_EINVAL;
    else error = dv_election_find_leader(e, &leader, dv_deadline_in(e->object.client, timeout_ms));
    if (leader) {
        size_t bytes = leader->shown.data_bytes;
        divvy_leader *copy = malloc(sizeof *copy + bytes + 1);
        if (copy) {
            *copy = leader->shown;
            copy->data = memcpy(copy + 1, leader->shown.data, bytes + 1);
        }
        *out = copy;
        error = copy ? 0 : DIVVY_ENOMEM;
    }
    return dv_election_finish_call(e, "leader", error);
}

void divvy_leader_free(divvy_leader *leader) {
    free(leader);
}
