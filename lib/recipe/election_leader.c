/* Election: who leads, who is told, and who asks whom to step down. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/election.h"
#include "recipe/request.h"

/* ---- telling who leads: J3 ---- */

static int64_t token_of(const dv_leader *leader) {
    return leader ? leader->shown.token : 0;
}

static bool is_news(const divvy_election *e) {
    dv_leader *leader;
    if (!e->view || !e->config.on_leader || !dv_leader_view_known(e->view, &leader)) return false;
    return !e->told_any || token_of(leader) != token_of(e->told_leader);
}

/* Takes the news as it is now for the call that is due. */
static void take_news(divvy_election *e) {
    dv_leader *leader = NULL;
    if (e->telling_leader) return; /* of a client that closes: its view has gone */
    if (!is_news(e) || !dv_leader_view_known(e->view, &leader)) return;
    dv_leader_unref(e->told_leader);
    e->told_leader = dv_leader_ref(leader);
    e->told_any = true;
    e->telling_leader = true;
}

static void start_leader(dv_callback *callback) {
    take_news(DV_CONTAINER(callback, divvy_election, leader_callback));
}

static void call_leader(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, leader_callback);
    const dv_leader *leader = e->told_leader; /* It stays while this runs. */
    if (e->telling_leader) e->config.on_leader(e, leader ? &leader->shown : NULL, e->config.user);
}

static void tell_leader(divvy_election *e);

static void release_leader(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, leader_callback);
    e->telling_leader = e->leader_queued = false;
    tell_leader(e);
}

/* One call at a time: a slow user is told the newest next. */
static void tell_leader(divvy_election *e) {
    if (e->leader_queued || e->ending || !is_news(e)) return;
    e->leader_queued = true;
    e->leader_callback =
        (dv_callback){.object = &e->object, .starting = start_leader, .call = call_leader, .release = release_leader};
    dv_callback_queue(e->object.client, &e->leader_callback);
}

static void on_leader_changed(void *owner, int64_t now) {
    divvy_election *e = owner;
    (void)now;
    tell_leader(e);
    dv_election_decide_to_ask(e);
}

static void let_go(void *owner) {
    divvy_election *e = owner;
    dv_object_unref(&e->object);
}

static void on_view_gone(void *owner, int64_t now) {
    divvy_election *e = owner;
    (void)now;
    if (e->leader_queued) take_news(e);
    e->view = NULL;
    let_go(e);
}

int dv_election_follow(divvy_election *e) {
    static const dv_leader_view_events events = {on_leader_changed, on_view_gone};
    if (e->view) return 0;
    int error = dv_leader_view_start(&e->view, e->object.client, e->directory, &events, e);
    if (!error) dv_object_ref(&e->object);
    return error;
}

/* ---- asking: J5 ---- */

static void on_ask_failed(void *owner, dv_ask *ask, int error) {
    divvy_election *e = owner;
    if (ask == e->preferred) {
        dv_client_log(e->object.client, DIVVY_LOG_WARN, "the leader at %s cannot be asked to step down: %s",
                      e->directory, divvy_strerror(error));
        e->preferred = NULL;
        e->refused_token = e->preferred_token;
    } else if (ask == e->asked) {
        e->asked = NULL;
        e->ask_error = error;
        dv_client_changed(e->object.client);
    }
}

static void on_ask_gone(void *owner, dv_ask *ask) {
    divvy_election *e = owner;
    if (ask == e->preferred) e->preferred = NULL; /* The client closes. */
    if (ask == e->asked) e->asked = NULL;
    let_go(e);
}

static int start_to_ask(divvy_election *e, dv_ask **ask, int64_t token) {
    static const dv_ask_events events = {on_ask_failed, on_ask_gone};
    int error = dv_ask_start(ask, e->object.client, e->directory, token, e->data, &events, e);
    if (!error) dv_object_ref(&e->object);
    return error;
}

static void stop_asking(dv_ask **ask) {
    if (*ask) dv_ask_end(*ask);
    *ask = NULL;
}

void dv_election_decide_to_ask(divvy_election *e) {
    dv_leader *leader = NULL;
    bool known = e->view && dv_leader_view_known(e->view, &leader);
    if (!known && e->standing && !e->ending) return; /* The request stands. */
    bool wants = e->standing && !e->ending && leader && leader->preference < e->config.preference;
    int64_t token = token_of(leader);
    if (e->preferred && (!wants || token != e->preferred_token)) stop_asking(&e->preferred);
    if (!wants || e->preferred || token == e->refused_token) return;
    e->preferred_token = token;
    int error = start_to_ask(e, &e->preferred, token);
    if (error == DIVVY_ENOMEM) dv_client_again(e->object.client);
}

typedef struct {
    divvy_election *election;
    int64_t token; /* of the one that is asked; 0: it is not known yet */
} wait_for;

static bool is_over(const divvy_election *e) {
    return e->ending || dv_client_end_error(e->object.client) || dv_leader_view_error(e->view) || e->ask_error;
}

static bool has_changed(void *context) {
    const wait_for *w = context;
    dv_leader *leader;
    if (is_over(w->election)) return true;
    return dv_leader_view_known(w->election->view, &leader) && (!w->token || token_of(leader) != w->token);
}

static int why_over(const divvy_election *e) {
    if (e->ending) return DIVVY_ESTATE;
    int end = dv_client_end_error(e->object.client);
    if (end) return end;
    return e->ask_error ? e->ask_error : dv_leader_view_error(e->view);
}

static int wait_until_changed(divvy_election *e, int64_t token, dv_deadline deadline) {
    divvy_client *client = e->object.client;
    wait_for w = {e, token};
    int error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), has_changed, &w);
    return !error && is_over(e) ? why_over(e) : error;
}

/* Finds out who leads. */
static int find_leader(divvy_election *e, dv_leader **leader, dv_deadline deadline) {
    if (dv_client_in_callback(e->object.client)) return DIVVY_EDEADLK;
    if (e->ending) return DIVVY_ESTATE;
    int error = dv_client_end_error(e->object.client);
    if (!error) error = dv_election_follow(e);
    if (!error) error = wait_until_changed(e, 0, deadline);
    if (!error) dv_leader_view_known(e->view, leader);
    return error;
}

static int ask_and_wait(divvy_election *e, int64_t timeout_ms) {
    dv_deadline deadline = dv_deadline_in(e->object.client, timeout_ms);
    dv_leader *leader = NULL;
    if (e->asking) return DIVVY_EINPROGRESS;
    e->asking = true;
    e->ask_error = 0;
    int error = find_leader(e, &leader, deadline);
    int64_t token = token_of(leader);
    if (!error && !leader) error = DIVVY_ENOENT;
    if (!error) error = start_to_ask(e, &e->asked, token);
    if (!error) error = wait_until_changed(e, token, deadline);
    stop_asking(&e->asked);
    e->ask_error = 0;
    e->asking = false;
    return error;
}

/* Ends a waiting call. */
static int finish_call(divvy_election *e, const char *what, int error) {
    if (error)
        dv_fail(e->object.client, error, "election %s: %s: %s", what, e->directory,
                dv_client_why(e->object.client, error));
    dv_object_let_go(&e->object);
    return error;
}

int divvy_election_ask_step_down(divvy_election *e, int64_t timeout_ms) {
    int error = dv_election_enter(e);
    if (error) return error;
    dv_object_hold(&e->object);
    return finish_call(e, "step down", timeout_ms < -1 ? DIVVY_EINVAL : ask_and_wait(e, timeout_ms));
}

int divvy_election_leader(divvy_election *e, divvy_leader **out, int64_t timeout_ms) {
    dv_leader *leader = NULL;
    if (out) *out = NULL;
    int error = dv_election_enter(e);
    if (error) return error;
    dv_object_hold(&e->object);
    if (!out || timeout_ms < -1) error = DIVVY_EINVAL;
    else error = find_leader(e, &leader, dv_deadline_in(e->object.client, timeout_ms));
    if (!error && leader) {
        size_t bytes = leader->shown.data_bytes;
        divvy_leader *copy = malloc(sizeof *copy + bytes + 1);
        if (copy) {
            *copy = leader->shown;
            copy->data = memcpy(copy + 1, leader->shown.data, bytes + 1);
        }
        *out = copy;
        error = copy ? 0 : DIVVY_ENOMEM;
    }
    return finish_call(e, "leader", error);
}

void divvy_leader_free(divvy_leader *leader) {
    free(leader);
}

/* ---- being asked: J6 ---- */

static void start_asked(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, asked_callback);
    if (e->requests) return;
    free(e->asker); /* It leads no longer. */
    e->asker = NULL;
}

static void call_asked(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, asked_callback);
    if (e->asker) e->config.on_step_down(e, e->asker->who, e->asker->bytes, e->config.user);
}

static void release_asked(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, asked_callback);
    free(e->asker);
    e->asker = NULL;
    e->telling_asked = false;
    if (e->requests) dv_requests_next(e->requests);
}

/* Requests to an earlier leadership of this one may still be told of. */
static void on_asked(void *owner, dv_asker *asker, int64_t now) {
    divvy_election *e = owner;
    (void)now;
    if (e->telling_asked) {
        free(asker);
        return;
    }
    e->telling_asked = true;
    e->asker = asker;
    e->asked_callback =
        (dv_callback){.object = &e->object, .starting = start_asked, .call = call_asked, .release = release_asked};
    dv_callback_queue(e->object.client, &e->asked_callback);
}

static void on_requests_ended(void *owner, dv_requests *requests) {
    divvy_election *e = owner;
    if (e->requests == requests) e->requests = NULL;
}

void dv_election_hear_requests(divvy_election *e) {
    static const dv_requests_events events = {on_asked, on_requests_ended, let_go};
    bool wants = e->told_elected && e->config.on_step_down && !e->ending;
    int64_t token = atomic_load(&e->lock->acquisition.token);
    if (!wants || !token) {
        if (e->requests) dv_requests_stop(e->requests);
        e->requests = NULL;
    } else if (!e->requests) {
        e->requests = dv_requests_start(e->object.client, e->directory, token, &events, e);
        if (e->requests) dv_object_ref(&e->object);
        else dv_client_again(e->object.client);
    }
}

void dv_election_stop_following(divvy_election *e) {
    stop_asking(&e->preferred);
    stop_asking(&e->asked);
    if (e->view) dv_leader_view_stop(e->view);
    e->view = NULL;
}
