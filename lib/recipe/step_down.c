/* Step down: how an election's leader is asked to hand over, and how it hears of that. SPDX-License-Identifier:
 * Apache-2.0 */
#include "recipe/step_down.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe/membership.h"
#include "recipe/patient_watch.h"
#include "znode/path.h"

enum { WHO_BYTES_MAX = 64 * 1024, REQUESTS_MAX = 16, NAME_BYTES = 96, SUFFIX_BYTES = sizeof ",down=0123456789abcdef" };

/* J5: the name tells which leader is asked, so that nobody is asked for what an earlier one did. */
static void make_suffix(char suffix[SUFFIX_BYTES], int64_t token) {
    snprintf(suffix, SUFFIX_BYTES, ",down=%016" PRIx64, (uint64_t)token);
}

/* ---- one who asks ---- */

struct dv_ask {
    dv_membership *membership;
    char suffix[SUFFIX_BYTES];
    const dv_ask_events *events;
    void *owner;
};

static void on_joined(void *owner, int64_t now) {
    (void)owner, (void)now;
}

static void on_join_failed(void *owner, int error, const char *path, int64_t now) {
    dv_ask *ask = owner;
    (void)path, (void)now;
    ask->events->failed(ask->owner, ask, error);
}

static void on_left(void *owner, int64_t now) {
    dv_ask *ask = owner;
    (void)now;
    ask->events->gone(ask->owner, ask);
    free(ask);
}

int dv_ask_start(dv_ask **out, divvy_client *client, const char *directory, int64_t token, const char *who,
                 const dv_ask_events *events, void *owner) {
    static const dv_membership_events of_membership = {
        .joined = on_joined, .failed = on_join_failed, .gone = on_left, .lasting = true};
    dv_ask *ask = calloc(1, sizeof *ask);
    *out = NULL;
    if (!ask) return DIVVY_ENOMEM;
    *ask = (dv_ask){.events = events, .owner = owner};
    make_suffix(ask->suffix, token);
    int error = dv_membership_join(&ask->membership, client, directory, ask->suffix, who, &of_membership, ask);
    if (error) free(ask);
    else *out = ask;
    return error;
}

void dv_ask_end(dv_ask *ask) {
    dv_membership_leave(ask->membership);
}

/* ---- the leader ---- */

typedef struct {
    char name[NAME_BYTES];
    bool told, stays;
} request;

struct dv_requests {
    divvy_client *client;
    const char *directory;
    char suffix[SUFFIX_BYTES];
    const dv_requests_events *events;
    void *owner;
    dv_patient_watch *watch;     /* NULL: it has ended */
    request asked[REQUESTS_MAX]; /* J6: whatever others write, no more than these are kept */
    size_t count;
    char *path; /* of the one that is being read, or that the owner is told of */
    bool reading, busy, stopped;
};

static void release(dv_requests *r) {
    free(r->path);
    r->events->gone(r->owner);
    free(r);
}

static request *find(dv_requests *r, const char *name) {
    for (size_t i = 0; i < r->count; i++) {
        if (strcmp(r->asked[i].name, name) == 0) return &r->asked[i];
    }
    return NULL;
}

static dv_asker *make_asker(const dv_reply *reply) {
    size_t bytes = reply->data_bytes < WHO_BYTES_MAX ? reply->data_bytes : WHO_BYTES_MAX;
    dv_asker *asker = malloc(sizeof *asker + bytes + 1);
    if (!asker) return NULL;
    asker->bytes = bytes;
    if (bytes) memcpy(asker->who, reply->data, bytes);
    asker->who[bytes] = '\0';
    return asker;
}

static void read_next(dv_requests *r);

static void on_read(void *context, const dv_reply *reply, int64_t now) {
    dv_requests *r = context;
    assert(r->reading);
    r->reading = false;
    if (!r->watch) {
        release(r);
        return;
    }
    if (r->stopped) return;
    request *one = find(r, dv_path_last(r->path));
    dv_asker *asker = reply->error == 0 && one ? make_asker(reply) : NULL;
    if (asker) {
        one->told = true;
        r->busy = true;
        r->events->asked(r->owner, asker, now);
    } else if (reply->error == DIVVY_ENOENT || reply->error == DIVVY_EACCES) {
        if (one) one->told = true; /* It has gone, or says nothing to us. */
        read_next(r);
    } else if (dv_client_connected(r->client)) {
        dv_client_again(r->client); /* Else the next connection asks again. */
    }
}

/* Reads the first that the owner was not told of. */
static void read_next(dv_requests *r) {
    if (r->reading || r->busy || r->stopped || !r->watch) return;
    for (size_t i = 0; i < r->count; i++) {
        if (r->asked[i].told) continue;
        free(r->path);
        r->path = dv_path_join(r->directory, r->asked[i].name);
        if (!r->path || dv_znode_get(r->client->znode, r->path, NULL, on_read, r) != 0) dv_client_again(r->client);
        else r->reading = true;
        return;
    }
}

void dv_requests_next(dv_requests *r) {
    r->busy = false;
    read_next(r);
}

void dv_requests_again(dv_requests *r) {
    read_next(r);
}

/* Longer names are not divvy's. */
static bool is_for_us(const dv_requests *r, const char *name) {
    size_t bytes = strlen(name), suffix_bytes = strlen(r->suffix);
    return bytes < NAME_BYTES && bytes > suffix_bytes && strcmp(name + bytes - suffix_bytes, r->suffix) == 0;
}

static void note(dv_requests *r, const char *name) {
    request *one = find(r, name);
    if (one) {
        one->stays = true;
    } else if (r->count < REQUESTS_MAX) {
        one = &r->asked[r->count++];
        *one = (request){.stays = true};
        memcpy(one->name, name, strlen(name) + 1);
    }
}

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    dv_requests *r = owner;
    size_t kept = 0;
    (void)pzxid, (void)now;
    for (size_t i = 0; i < r->count; i++) r->asked[i].stays = false;
    for (size_t i = 0; i < count; i++) {
        if (is_for_us(r, names[i])) note(r, names[i]);
    }
    for (size_t i = 0; i < r->count; i++) {
        if (r->asked[i].stays) r->asked[kept++] = r->asked[i];
    }
    r->count = kept;
    read_next(r);
}

static void on_changed(void *owner, int64_t now) {
    (void)owner, (void)now;
}

static void on_watch_failed(void *owner, int error, int64_t now) {
    const dv_requests *r = owner;
    (void)now;
    dv_client_log(r->client, DIVVY_LOG_WARN, "requests to step down at %s are not heard: %s", r->directory,
                  divvy_strerror(error));
}

static void on_watch_gone(void *owner, int64_t now) {
    dv_requests *r = owner;
    (void)now;
    r->watch = NULL;
    if (!r->stopped) r->events->ended(r->owner, r);
    r->stopped = true;
    if (!r->reading) release(r);
}

dv_requests *dv_requests_start(divvy_client *client, const char *directory, int64_t token,
                               const dv_requests_events *events, void *owner) {
    static const dv_patience none = {0, 0, 0}; /* One list is enough (W2). */
    static const dv_patient_watch_events of_watch = {
        .changed = on_changed, .settled = on_settled, .failed = on_watch_failed, .gone = on_watch_gone};
    dv_requests *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (dv_requests){.client = client, .directory = directory, .events = events, .owner = owner};
    make_suffix(r->suffix, token);
    r->watch = dv_patient_watch_start(client, directory, &none, &of_watch, r);
    if (r->watch) return r;
    free(r);
    return NULL;
}

void dv_requests_stop(dv_requests *r) {
    assert(!r->stopped);
    r->stopped = true;
    dv_patient_watch_stop(r->watch);
}
