/* Election: of all candidates one leads, and all others know who. SPDX-License-Identifier: Apache-2.0
 *
 * A candidate acquires a lock, again after each loss, until it resigns. election_leader.c tells who leads, step_down.c
 * has the requests to step down. docs/protocol.md, rules J1 to J6. */
#include "recipe/election.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/container.h"

enum { DATA_BYTES_MAX = 64 * 1024 };

static bool leads(const divvy_election *e) {
    return atomic_load(&e->lock->acquisition.token) != 0;
}

/* ---- a candidacy that cannot go on ---- */

static void call_failed(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, failure_callback);
    if (!e->config.on_failed) return;
    dv_fail(e->object.client, e->failure, "election %s: %s", e->directory, dv_client_why(e->object.client, e->failure));
    e->config.on_failed(e, e->failure, e->config.user);
}

static void release_failed(dv_callback *callback) {
    DV_CONTAINER(callback, divvy_election, failure_callback)->telling_failure = false;
}

static void fail(divvy_election *e, int error) {
    e->standing = false;
    e->failure = error;
    dv_election_decide_to_request(e);
    if (e->telling_failure || e->ending) return;
    e->telling_failure = true;
    e->failure_callback = (dv_callback){.object = &e->object, .call = call_failed, .release = release_failed};
    dv_callback_queue(e->object.client, &e->failure_callback);
}

/* ---- standing ---- */

static void on_lock_done(divvy_lock *lock, int result, void *user);

/* J2: at the end of the queue. Returns 0, or an error and it does not stand. */
static int enter_queue(divvy_election *e) {
    assert(e->standing && !e->in_queue && !leads(e));
    int error = dv_acquisition_begin(&e->lock->acquisition, -1, (void (*)(void))on_lock_done, e);
    if (error) return error;
    e->in_queue = true;
    dv_object_ref(&e->object);
    return 0;
}

/* J2: after a loss. Where there is no memory now it is tried again. */
static void stand_again(divvy_election *e) {
    if (!e->standing || e->in_queue || leads(e) || e->ending) return;
    int error = enter_queue(e);
    if (error == DIVVY_ENOMEM) dv_client_again(e->object.client);
    else if (error && error != DIVVY_ECLOSED) fail(e, error);
}

static void end_candidacy(divvy_election *e, int result) {
    e->in_queue = false;
    if (result == DIVVY_ECANCELED || !e->standing) return;
    if (result == 0) {
        e->told_elected = leads(e); /* Else its time has passed, and the loss is due. */
        dv_election_hear_requests(e);
    } else if (result == DIVVY_ENOMEM) {
        stand_again(e);
    } else {
        fail(e, result);
    }
}

static void on_lock_done(divvy_lock *lock, int result, void *user) {
    divvy_election *e = user;
    divvy_client *client = e->object.client;
    int64_t token = 0;
    (void)lock;
    dv_client_ref(client);
    dv_client_lock(client);
    if (e->resigned) {
        e->resigned--; /* Ends are told in the order of the acquires. */
    } else {
        end_candidacy(e, result);
        token = e->told_elected ? atomic_load(&e->lock->acquisition.token) : 0;
    }
    dv_client_unlock(client);
    if (token && e->config.on_elected) e->config.on_elected(e, token, e->config.user);
    dv_client_lock(client);
    dv_object_let_go(&e->object);
}

static void on_lock_lost(divvy_lock *lock, void *user) {
    divvy_election *e = user;
    divvy_client *client = e->object.client;
    (void)lock;
    dv_client_lock(client);
    dv_object_hold(&e->object);
    bool tell = e->told_elected;
    e->told_elected = false;
    dv_election_hear_requests(e);
    dv_client_unlock(client);
    if (tell && e->config.on_lost) e->config.on_lost(e, e->config.user);
    dv_client_lock(client);
    stand_again(e);
    dv_object_let_go(&e->object);
}

int divvy_election_stand(divvy_election *e) {
    int error = dv_election_enter(e);
    if (error) return error;
    divvy_client *client = e->object.client;
    error = dv_client_end_error(client);
    if (e->ending) error = DIVVY_ESTATE;
    else if (!error && e->standing) error = DIVVY_EALREADY;
    if (!error) {
        e->standing = true;
        error = enter_queue(e);
        e->standing = error == 0;
        dv_election_decide_to_request(e);
    }
    if (error) dv_fail(client, error, "election %s: %s", e->directory, dv_client_why(client, error));
    dv_client_unlock(client);
    return error;
}

static void resign(divvy_election *e) {
    e->standing = e->told_elected = false;
    e->resigned += e->in_queue;
    e->in_queue = false;
    dv_acquisition_give_up(&e->lock->acquisition);
    dv_election_hear_requests(e);
    dv_election_decide_to_request(e);
}

int divvy_election_resign(divvy_election *e) {
    int error = dv_election_enter(e);
    if (error) return error;
    if (e->standing) resign(e);
    dv_client_unlock(e->object.client);
    return 0;
}

int divvy_election_leads(const divvy_election *e) {
    return divvy_election_token(e) != 0;
}

int64_t divvy_election_token(const divvy_election *e) {
    return e ? dv_acquisition_token(&e->lock->acquisition) : 0;
}

int divvy_election_candidates(divvy_election *e, divvy_strings **out, int64_t timeout_ms) {
    static const dv_listing_kind candidates = {.choose = dv_queue_candidates, .take = dv_listing_add_data};
    if (out) *out = NULL;
    int error = dv_election_enter(e);
    return error ? error : dv_lock_list(e->lock, &candidates, out, timeout_ms);
}

/* ---- life ---- */

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    divvy_election *e = DV_CONTAINER(listener, divvy_election, listener);
    (void)now;
    if (event == DV_SESSION_CONNECTED || event == DV_SESSION_AGAIN || event == DV_SESSION_ROOM) {
        if (!e->lock->acquisition.telling_lost) stand_again(e);
        dv_election_hear_requests(e);
        dv_election_decide_to_request(e);
    } else if (event == DV_SESSION_CLOSING) { /* The lock, which hears of it before us, has given the place up. */
        dv_election_hear_requests(e);
        dv_election_decide_to_request(e);
    }
    dv_election_hear_leader(e, event);
}

static void free_election(divvy_election *e) {
    free(e->directory);
    free(e->data);
    free(e);
}

static void release(dv_object *object) {
    divvy_election *e = (divvy_election *)(void *)object;
    assert(e->ending && !e->in_queue && !e->resigned && !e->hearing && !e->preferred && !e->requested);
    dv_election_free_leader(e);
    free(e->requester);
    free_election(e);
}

static int check(divvy_client *client, const divvy_election_config *c) {
    if (dv_client_end_error(client)) return dv_fail_plainly(client, dv_client_end_error(client));
    int error = dv_client_check_directory(client, "election", c->path);
    if (error) return error;
    if (c->names != DIVVY_ELECTION_LOCK && c->names != DIVVY_ELECTION_LATCH)
        return dv_fail(client, DIVVY_EINVAL, "election: names is %d, which is none of its values", c->names);
    if (c->preference < 0 || c->preference > DV_PREFERENCE_MAX)
        return dv_fail(client, DIVVY_EINVAL, "election: the preference is %d; give 0 to %d", c->preference,
                       DV_PREFERENCE_MAX);
    if (!c->data) return 0;
    if (!*c->data) return dv_fail(client, DIVVY_EINVAL, "election: the data are empty");
    if (strlen(c->data) > DATA_BYTES_MAX)
        return dv_fail(client, DIVVY_E2BIG, "election: the data have %zu bytes; %d are the most", strlen(c->data),
                       DATA_BYTES_MAX);
    return 0;
}

static int make_lock(divvy_election *e, divvy_client *client) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    /* J1: names that kazoo's and divvy's locks wait for, or Curator's latches. */
    const char *marker = e->config.names == DIVVY_ELECTION_LATCH ? "-latch-" : "__lock__";
    char tagged[DV_MARKER_BYTES];
    if (e->config.preference) snprintf(tagged, sizeof tagged, ",p=%d%s", e->config.preference, marker);
    else snprintf(tagged, sizeof tagged, "%s", marker);
    e->directory = dv_client_path(client, e->config.path);
    e->data = e->config.data ? strdup(e->config.data) : dv_client_default_identifier();
    if (!e->directory || !e->data) return DIVVY_ENOMEM;
    config.path = e->config.path;
    config.identifier = e->data;
    config.container = e->config.container;
    config.on_lost = on_lock_lost;
    config.user = e;
    return dv_lock_create_for_election(&e->lock, client, &config, tagged);
}

static int make(divvy_election **out, divvy_client *client, const divvy_election_config *c) {
    divvy_election *e = calloc(1, sizeof *e);
    if (!e) return DIVVY_ENOMEM;
    e->config = *c;
    int error = make_lock(e, client);
    if (error) {
        free_election(e);
        return error;
    }
    e->config.path = e->config.data = NULL; /* the caller's */
    dv_object_init(&e->object, client, release);
    e->listener = (dv_listener){.hear = hear};
    dv_listen(client, &e->listener);
    *out = e;
    return c->on_leader || c->preference ? dv_election_follow(e) : 0;
}

int divvy_election_create(divvy_election **out, divvy_client *client, const divvy_election_config *config) {
    static const divvy_election_config defaults = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election_config c;
    divvy_election *e = NULL;
    if (out) *out = NULL;
    if (!out || !config) return dv_fail(client, DIVVY_EINVAL, "election: out or config is NULL");
    int error = dv_client_enter(client);
    if (error) return error;
    if (dv_config_copy(&c, sizeof c, &defaults, config) != 0)
        error = dv_fail(client, DIVVY_EINVAL, "election: the config was not made with DIVVY_ELECTION_CONFIG_INIT");
    if (!error) error = check(client, &c);
    if (!error) error = dv_fail_plainly(client, make(&e, client, &c));
    dv_client_unlock(client);
    if (error) divvy_election_destroy(e);
    else *out = e;
    return error;
}

static void end(dv_object *object, bool waits) {
    divvy_election *e = (divvy_election *)(void *)object;
    divvy_client *client = object->client;
    e->ending = true;
    resign(e);
    dv_election_stop_requests(e);
    dv_election_stop_following(e);
    dv_unlisten(client, &e->listener);
    dv_client_unlock(client);
    dv_acquisition_destroy(&e->lock->acquisition, waits ? NULL : &(dv_farewell){NULL, NULL});
    dv_client_lock(client);
}

void divvy_election_destroy(divvy_election *e) {
    if (e) dv_object_end(&e->object, end, NULL);
}

static void tell_nobody(void *user) {
    (void)user;
}

/* A callback of the lock's that has begun does not keep the election, but the farewell behind it does. */
void divvy_election_destroy_async(divvy_election *e, void (*gone)(void *user), void *user) {
    if (e) dv_object_end(&e->object, end, &(dv_farewell){gone ? gone : tell_nobody, user});
}
