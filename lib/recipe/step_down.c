/* Election: requests to the leader to step down. docs/protocol.md, J5 and J6. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/election.h"
#include "recipe/membership.h"
#include "recipe/patient_watch.h"
#include "znode/path.h"

enum { WHO_BYTES_MAX = 64 * 1024, HEARD_MAX = 16, NAME_BYTES = 96, SUFFIX_BYTES = sizeof ",down=0123456789abcdef" };

/* The name tells which leader is meant, so that nobody steps down for what an earlier one did. */
static void make_suffix(char suffix[SUFFIX_BYTES], int64_t token) {
    snprintf(suffix, SUFFIX_BYTES, ",down=%016" PRIx64, (uint64_t)token);
}

/* ---- to request: J5 ---- */

struct dv_step_down {
    divvy_election *election;
    dv_membership *membership;
    char suffix[SUFFIX_BYTES];
};

static void on_join_failed(void *owner, int error, const char *path, int64_t now) {
    const dv_step_down *request = owner;
    divvy_election *e = request->election;
    (void)path, (void)now;
    if (request == e->preferred) {
        dv_client_log(e->object.client, DIVVY_LOG_WARN, "the leader at %s cannot be asked to step down: %s",
                      e->directory, divvy_strerror(error));
        e->preferred = NULL;
        e->refused_token = e->preferred_token;
    } else if (request == e->requested) {
        e->requested = NULL;
        e->request_error = error;
        dv_client_changed(e->object.client);
    }
}

static void on_left(void *owner, int64_t now) {
    dv_step_down *request = owner;
    divvy_election *e = request->election;
    (void)now;
    if (request == e->preferred) e->preferred = NULL; /* The client closes. */
    if (request == e->requested) e->requested = NULL;
    free(request);
    dv_object_unref(&e->object);
}

static int start_request(divvy_election *e, dv_step_down **out, int64_t token) {
    static const dv_membership_events events = {.failed = on_join_failed, .gone = on_left, .lasting = true};
    dv_step_down *request = calloc(1, sizeof *request);
    if (!request) return DIVVY_ENOMEM;
    request->election = e;
    make_suffix(request->suffix, token);
    int error = dv_membership_join(&request->membership, e->object.client, e->directory, request->suffix, e->data,
                                   &events, request);
    if (error) {
        free(request);
        return error;
    }
    dv_object_ref(&e->object);
    *out = request;
    return 0;
}

static void stop_request(dv_step_down **request) {
    if (*request) dv_membership_leave((*request)->membership);
    *request = NULL;
}

void dv_election_stop_requests(divvy_election *e) {
    stop_request(&e->preferred);
    stop_request(&e->requested);
}

void dv_election_decide_to_request(divvy_election *e) {
    const dv_leader_view *v = &e->view;
    bool stands = e->standing && !e->ending && !dv_client_end_error(e->object.client);
    bool known = v->follows && v->known;
    const dv_leader *leader = known ? v->leader : NULL;
    if (!known && stands) return; /* The request stays as it is. */
    bool requests = stands && leader && leader->preference < e->config.preference;
    int64_t token = dv_leader_token(leader);
    if (e->preferred && (!requests || token != e->preferred_token)) stop_request(&e->preferred);
    if (!requests || e->preferred || token == e->refused_token) return;
    e->preferred_token = token;
    int error = start_request(e, &e->preferred, token);
    if (error == DIVVY_ENOMEM) dv_client_again(e->object.client);
}

static int request_and_wait(divvy_election *e, int64_t timeout_ms) {
    dv_deadline deadline = dv_deadline_in(e->object.client, timeout_ms);
    dv_leader *leader = NULL;
    if (e->in_request) return DIVVY_EINPROGRESS;
    e->in_request = true;
    e->request_error = 0;
    int error = dv_election_find_leader(e, &leader, deadline);
    int64_t token = dv_leader_token(leader);
    if (!error && !leader) error = DIVVY_ENOENT;
    if (!error) error = start_request(e, &e->requested, token);
    if (!error) error = dv_election_wait_until_changed(e, token, deadline);
    stop_request(&e->requested);
    e->request_error = 0;
    e->in_request = false;
    return error;
}

int divvy_election_ask_step_down(divvy_election *e, int64_t timeout_ms) {
    int error = dv_election_enter(e);
    if (error) return error;
    dv_object_hold(&e->object);
    error = timeout_ms < -1 ? DIVVY_EINVAL : request_and_wait(e, timeout_ms);
    return dv_election_finish_call(e, "step down", error);
}

/* ---- to hear requests: J6 ---- */

struct dv_requester {
    size_t bytes;
    char who[]; /* with a NUL behind */
};

typedef struct {
    char name[NAME_BYTES];
    bool told, stays;
} heard;

/* The requests to one leadership. */
struct dv_hearing {
    divvy_election *election;
    char suffix[SUFFIX_BYTES];
    dv_patient_watch *watch; /* NULL: it has ended */
    heard requests[HEARD_MAX];
    size_t count;
    char *path; /* of the one that is being read */
    bool reading, stopped;
};

static void read_next(dv_hearing *h);

static void release_hearing(dv_hearing *h) {
    divvy_election *e = h->election;
    free(h->path);
    free(h);
    dv_object_unref(&e->object);
}

static heard *find(dv_hearing *h, const char *name) {
    for (size_t i = 0; i < h->count; i++) {
        if (strcmp(h->requests[i].name, name) == 0) return &h->requests[i];
    }
    return NULL;
}

static void start_requested(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, requested_callback);
    if (e->hearing) return;
    free(e->requester); /* It leads no longer. */
    e->requester = NULL;
}

static void call_requested(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, requested_callback);
    if (e->requester) e->config.on_step_down(e, e->requester->who, e->requester->bytes, e->config.user);
}

static void release_requested(dv_callback *callback) {
    divvy_election *e = DV_CONTAINER(callback, divvy_election, requested_callback);
    free(e->requester);
    e->requester = NULL;
    e->telling_requested = false;
    if (e->hearing) read_next(e->hearing);
}

static bool tell(divvy_election *e, const dv_reply *reply) {
    size_t bytes = reply->data_bytes < WHO_BYTES_MAX ? reply->data_bytes : WHO_BYTES_MAX;
    dv_requester *requester = malloc(sizeof *requester + bytes + 1);
    assert(!e->telling_requested);
    if (!requester) return false;
    requester->bytes = bytes;
    if (bytes) memcpy(requester->who, reply->data, bytes);
    requester->who[bytes] = '\0';
    e->requester = requester;
    e->telling_requested = true;
    e->requested_callback = (dv_callback){
        .object = &e->object, .starting = start_requested, .call = call_requested, .release = release_requested};
    dv_callback_queue(e->object.client, &e->requested_callback);
    return true;
}

static void on_read(void *context, const dv_reply *reply, int64_t now) {
    dv_hearing *h = context;
    divvy_client *client = h->election->object.client;
    (void)now;
    assert(h->reading);
    h->reading = false;
    if (!h->watch) {
        release_hearing(h);
        return;
    }
    if (h->stopped) return;
    heard *one = find(h, dv_path_last(h->path));
    bool says_nothing = reply->error == DIVVY_ENOENT || reply->error == DIVVY_EACCES; /* It has gone, or is hidden. */
    bool told = reply->error == 0 && one && tell(h->election, reply);
    if (one && (told || says_nothing)) one->told = true;
    if (says_nothing) read_next(h);
    else if (!told && dv_client_connected(client)) dv_client_again(client); /* Else the next connection reads. */
}

/* Reads the first that the user was not told of, one at a time; those to an earlier leadership may still be told. */
static void read_next(dv_hearing *h) {
    divvy_election *e = h->election;
    if (h->reading || e->telling_requested || h->stopped || !h->watch) return;
    for (size_t i = 0; i < h->count; i++) {
        if (h->requests[i].told) continue;
        free(h->path);
        h->path = dv_path_join(e->directory, h->requests[i].name);
        h->reading = h->path && dv_znode_get(e->object.client->znode, h->path, NULL, on_read, h) == 0;
        if (!h->reading) dv_client_again(e->object.client);
        return;
    }
}

/* Longer names are not divvy's. */
static bool is_for_us(const dv_hearing *h, const char *name) {
    size_t bytes = strlen(name), suffix_bytes = strlen(h->suffix);
    return bytes < NAME_BYTES && bytes > suffix_bytes && strcmp(name + bytes - suffix_bytes, h->suffix) == 0;
}

static void note(dv_hearing *h, const char *name) {
    heard *one = find(h, name);
    if (!one && h->count < HEARD_MAX) {
        one = &h->requests[h->count++];
        *one = (heard){.told = false};
        memcpy(one->name, name, strlen(name) + 1);
    }
    if (one) one->stays = true;
}

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    dv_hearing *h = owner;
    size_t kept = 0;
    (void)pzxid, (void)now;
    for (size_t i = 0; i < h->count; i++) h->requests[i].stays = false;
    for (size_t i = 0; i < count; i++) {
        if (is_for_us(h, names[i])) note(h, names[i]);
    }
    for (size_t i = 0; i < h->count; i++) {
        if (h->requests[i].stays) h->requests[kept++] = h->requests[i];
    }
    h->count = kept;
    read_next(h);
}

static void on_watch_failed(void *owner, int error, int64_t now) {
    const dv_hearing *h = owner;
    (void)now;
    dv_client_log(h->election->object.client, DIVVY_LOG_WARN, "requests to step down at %s are not heard: %s",
                  h->election->directory, divvy_strerror(error));
}

static void on_watch_gone(void *owner, int64_t now) {
    dv_hearing *h = owner;
    (void)now;
    h->watch = NULL;
    if (h->election->hearing == h) h->election->hearing = NULL; /* The session is lost, or the directory. */
    h->stopped = true;
    if (!h->reading) release_hearing(h);
}

static void start_hearing(divvy_election *e, int64_t token) {
    static const dv_patience none = {0, 0, 0}; /* One list is enough (W2). */
    static const dv_patient_watch_events events = {
        .settled = on_settled, .failed = on_watch_failed, .gone = on_watch_gone};
    dv_hearing *h = calloc(1, sizeof *h);
    if (h) {
        h->election = e;
        make_suffix(h->suffix, token);
        h->watch = dv_patient_watch_start(e->object.client, e->directory, &none, &events, h);
    }
    if (!h || !h->watch) {
        free(h);
        dv_client_again(e->object.client);
        return;
    }
    e->hearing = h;
    dv_object_ref(&e->object);
}

void dv_election_hear_requests(divvy_election *e) {
    int64_t token = atomic_load(&e->lock->acquisition.token);
    bool hears = token && e->config.on_step_down && !e->ending;
    if (!hears && e->hearing) {
        e->hearing->stopped = true;
        dv_patient_watch_stop(e->hearing->watch);
        e->hearing = NULL;
    } else if (hears && !e->hearing) {
        start_hearing(e, token);
    } else if (hears) {
        read_next(e->hearing); /* There is a connection, or memory, again. */
    }
}
