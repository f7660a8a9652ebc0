/* Heartbeat: services are announced, by call and by timer. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/service.h"
#include "registry/status.h"

enum { INTERVAL_LEAST_MS = 10, ID_BYTES = 37, TASKS_MAX = 65536 };

/* ---- the entry ---- */

/* A random UUID, as Curator's are. */
static int new_id(divvy_client *client, char out[ID_BYTES]) {
    unsigned char b[16];
    int error = client->znode->backend->random(client->znode, b, sizeof b);
    if (error) return error;
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    snprintf(out, ID_BYTES, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
             b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
    return 0;
}

static int find_service(divvy_registry *registry, const cJSON *entry, dv_service **out) {
    char *role_node = NULL, *id_node = NULL;
    int error = dv_registry_node_name(registry, "role", dv_status_text(entry, "role"), &role_node);
    if (!error) error = dv_registry_node_name(registry, "id", dv_status_text(entry, "id"), &id_node);
    if (!error) {
        error = dv_service_get(out, registry, role_node, id_node);
        if (error) dv_fail_plainly(registry->object.client, error);
    }
    free(role_node);
    free(id_node);
    return error;
}

/* Makes the entry of a status, and finds its service, with room reserved. Returns 0, or an error with its message. */
static int compose(divvy_registry *registry, const cJSON *status, const char *unique_role, cJSON **entry,
                   dv_service **out) {
    divvy_client *client = registry->object.client;
    char id[ID_BYTES] = "", reason[DV_STATUS_REASON_BYTES] = "";
    *entry = NULL;
    int error = dv_client_end_error(client);
    if (!error && registry->ending) error = DIVVY_ECLOSED;
    if (!error && !unique_role) error = new_id(client, id);
    if (error) return dv_fail_plainly(client, error);
    if (registry->task_count >= TASKS_MAX)
        return dv_fail(client, DIVVY_ELIMIT, "heartbeat: %d wait already to be stored", TASKS_MAX);
    dv_status_defaults defaults = {.unique_role = unique_role,
                                   .new_id = id,
                                   .host = registry->host,
                                   .pid = registry->config.pid,
                                   .nonce = registry->nonce,
                                   .persistent = registry->config.persistent};
    error = dv_status_compose(entry, status, &defaults, reason);
    if (error)
        return dv_fail(client, error, "%s: %s", unique_role ? "unique_service" : "heartbeat",
                       error == DIVVY_EINVAL ? reason : dv_client_why(client, error));
    error = find_service(registry, *entry, out);
    if (!error && (error = dv_service_reserve(*out)) != 0) {
        dv_fail(client, error, "heartbeat: %s: no room for one more ephemeral node in this session", (*out)->path);
        dv_service_let_go(*out);
    }
    if (!error) return 0;
    cJSON_Delete(*entry);
    *entry = NULL;
    return error;
}

/* ---- storing ---- */

int dv_service_store(divvy_registry *registry, const cJSON *status, const char *unique_role, int64_t timeout_ms,
                     void (*done)(void *context, dv_task *task, int64_t now), void *context, dv_task **out) {
    dv_task like = {.kind = unique_role ? DV_TASK_CLAIM : DV_TASK_BEAT, .done = done, .context = context};
    dv_service *service = NULL;
    int error = compose(registry, status, unique_role, &like.entry, &service);
    if (error) return error;
    return dv_fail_plainly(registry->object.client, dv_service_add_task(service, &like, timeout_ms, out));
}

int dv_service_store_and_wait(divvy_registry *registry, const cJSON *status, const char *unique_role,
                              int64_t timeout_ms, cJSON **stored) {
    divvy_client *client = registry->object.client;
    dv_task *task = NULL;
    *stored = NULL;
    int error = dv_service_store(registry, status, unique_role, -1, NULL, NULL, &task);
    if (error) return error;
    error = dv_task_await(task, client, timeout_ms);
    if (error == DIVVY_ECANCELED && (registry->ending || dv_client_end_error(client))) error = DIVVY_ECLOSED;
    if (error) {
        dv_fail(client, error, "%s: %s: %s", unique_role ? "unique_service" : "heartbeat", registry->root,
                dv_client_why(client, error));
    } else {
        assert(task->ended && task->refs == 1); /* It is out of the queue: the entry is ours alone. */
        *stored = task->entry;
        task->entry = NULL;
    }
    dv_task_unref(task);
    return error;
}

int divvy_registry_heartbeat(divvy_registry *registry, const cJSON *status, cJSON **stored, int64_t timeout_ms) {
    if (stored) *stored = NULL;
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    dv_object_hold(&registry->object);
    cJSON *entry = NULL;
    if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "heartbeat: timeout_ms is below -1");
    else if (dv_client_in_callback(client)) error = dv_fail_plainly(client, DIVVY_EDEADLK);
    else error = dv_service_store_and_wait(registry, status, NULL, timeout_ms, &entry);
    if (stored) *stored = entry;
    else cJSON_Delete(entry);
    dv_object_let_go(&registry->object);
    return error;
}

/* ---- without waiting ---- */

typedef struct {
    dv_callback callback; /* first */
    divvy_registry *registry;
    void (*done)(divvy_registry *registry, int result, const cJSON *stored, void *user);
    void *user;
    int result;
    cJSON *stored;
} beat;

static void call_done(dv_callback *callback) {
    beat *b = (beat *)(void *)callback;
    if (b->result)
        dv_fail(b->registry->object.client, b->result, "heartbeat: %s: %s", b->registry->root,
                dv_client_why(b->registry->object.client, b->result));
    b->done(b->registry, b->result, b->stored, b->user);
}

static void release_done(dv_callback *callback) {
    beat *b = (beat *)(void *)callback;
    divvy_registry *registry = b->registry;
    cJSON_Delete(b->stored);
    free(b);
    dv_object_told_done(&registry->object);
}

static void on_beat_ended(void *context, dv_task *task, int64_t now) {
    (void)now;
    beat *b = context;
    assert(task->ended && !b->callback.call && !b->stored);
    b->result = task->result;
    b->stored = task->result ? NULL : task->entry;
    if (b->stored) task->entry = NULL;
    b->callback = (dv_callback){.call = call_done, .release = release_done};
    dv_object_tell_done(&b->registry->object, &b->callback);
}

int divvy_registry_heartbeat_async(divvy_registry *registry, const cJSON *status, int64_t timeout_ms,
                                   void (*done)(divvy_registry *registry, int result, const cJSON *stored, void *user),
                                   void *user) {
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    beat *b = done ? calloc(1, sizeof *b) : NULL;
    if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "heartbeat: timeout_ms is below -1");
    else if (done && !b) error = dv_fail_plainly(client, DIVVY_ENOMEM);
    if (b) *b = (beat){.registry = registry, .done = done, .user = user};
    if (!error) error = dv_service_store(registry, status, NULL, timeout_ms, b ? on_beat_ended : NULL, b, NULL);
    if (error) free(b);
    dv_client_unlock(client);
    return error;
}

/* ---- by themselves: V8 ---- */

static void on_repeat_ended(void *context, dv_task *task, int64_t now) {
    (void)context, (void)now;
    const dv_service *s = task->service;
    if (task->result == 0 || task->result == DIVVY_ECANCELED || s->registry->ending) return;
    if (task->result == DIVVY_ENOMEM) dv_client_again(s->registry->object.client);
    dv_client_warn(s->registry->object.client, DIVVY_WARN_HEARTBEAT, "%s: a heartbeat was not stored: %s", s->path,
                   divvy_strerror(task->result));
}

void dv_heartbeat_repeat(dv_service *s, bool renewal) {
    divvy_client *client = s->registry->object.client;
    assert(s->announced && s->entry && !s->tasks);
    cJSON *entry = cJSON_Duplicate(s->entry, 1);
    cJSON *load = entry ? cJSON_GetObjectItemCaseSensitive(entry, "load") : NULL;
    if (load) cJSON_SetNumberHelper(load, s->load);
    dv_task like = {.kind = DV_TASK_BEAT, .entry = entry, .renewal = renewal, .done = on_repeat_ended};
    int error = entry ? dv_service_add_task(s, &like, -1, NULL) : DIVVY_ENOMEM;
    if (!error) return;
    dv_client_again(client); /* where the node is missing; else the next heartbeat is in time */
    dv_client_log(client, DIVVY_LOG_ERROR, "heartbeat: %s", divvy_strerror(error));
}

typedef struct {
    dv_callback callback; /* first */
    dv_service *service;
    cJSON *entry; /* as it is when the request is queued */
    double load;
    bool called;
} load_request;

static void call_on_load(dv_callback *callback) {
    load_request *q = (load_request *)(void *)callback;
    divvy_registry *registry = q->service->registry;
    assert(!q->called);
    const char *role = dv_status_text(q->entry, "role"), *id = dv_status_text(q->entry, "id");
    q->load = registry->config.on_load(registry, role, id, q->load, registry->config.user);
    q->called = true;
}

static void release_on_load(dv_callback *callback) {
    load_request *q = (load_request *)(void *)callback;
    dv_service *s = q->service;
    assert(s->load_requested);
    s->load_requested = false;
    if (q->called && isfinite(q->load)) s->load = q->load;
    bool called = q->called;
    cJSON_Delete(q->entry);
    free(q);
    if (called && s->announced && !s->tasks && s->entry) dv_heartbeat_repeat(s, false);
    else dv_service_let_go(s);
}

static bool request_load(dv_service *s) {
    assert(s->announced && !s->load_requested);
    load_request *q = calloc(1, sizeof *q);
    if (!q) return false;
    *q = (load_request){
        .callback = {.object = &s->registry->object, .asks = true, .call = call_on_load, .release = release_on_load},
        .service = s,
        .entry = cJSON_Duplicate(s->entry, 1),
        .load = s->load};
    if (!q->entry) {
        free(q);
        return false;
    }
    s->load_requested = true;
    dv_callback_queue(s->registry->object.client, &q->callback);
    return true;
}

static int64_t interval_ms(const dv_service *s) {
    divvy_client *client = s->registry->object.client;
    uint32_t chance = UINT32_MAX / 2;
    client->znode->backend->random(client->znode, &chance, sizeof chance);
    double share = 1 + s->registry->config.heartbeat_jitter * (2.0 * chance / UINT32_MAX - 1);
    double ms = dv_status_number(s->entry, "ttl") * 1000 / 3 * share;
    if (ms < INTERVAL_LEAST_MS) return INTERVAL_LEAST_MS;
    return ms < (double)DV_TIME_MAX_MS ? (int64_t)ms : DV_TIME_MAX_MS;
}

static void on_beat_timer(dv_timer *timer, int64_t now);

void dv_heartbeat_stored(dv_service *s, int64_t now) {
    assert(s->announced && s->entry);
    s->beat_timer.fire = on_beat_timer;
    if (s->registry->config.heartbeat && !s->registry->ending)
        dv_timer_set(s->registry->object.client, &s->beat_timer, now + interval_ms(s));
}

/* One that waits is enough, and a slow callback does not stop them. */
static void on_beat_timer(dv_timer *timer, int64_t now) {
    dv_service *s = DV_CONTAINER(timer, dv_service, beat_timer);
    if (!s->announced || !s->entry || s->registry->ending) return;
    dv_heartbeat_stored(s, now);
    if (s->tasks) return;
    bool requests = s->registry->config.on_load && !s->load_requested;
    if (!requests || !request_load(s)) dv_heartbeat_repeat(s, false);
}
