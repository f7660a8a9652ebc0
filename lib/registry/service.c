/* Service: one node that this registry keeps: its tasks, its life, the session. SPDX-License-Identifier: Apache-2.0 */
#include "registry/service.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/status.h"
#include "znode/path.h"

/* ---- life ---- */

static int compare_services(const void *a, const void *b) {
    const dv_service *x = a, *y = b;
    int by_id = strcmp(x->id_node, y->id_node);
    return by_id ? by_id : strcmp(x->role_node, y->role_node);
}

dv_service *dv_service_find(const divvy_registry *registry, const char *role_node, const char *id_node) {
    dv_service key = {.role_node = role_node, .id_node = id_node};
    dv_service **found = (dv_service **)tfind(&key, &registry->services_by_name, compare_services);
    return found ? *found : NULL;
}

static void free_service(dv_service *s) {
    free(s->directory);
    free(s->path);
    free(s->spare);
    free(s);
}

int dv_service_get(dv_service **out, divvy_registry *registry, const char *role_node, const char *id_node) {
    *out = dv_service_find(registry, role_node, id_node);
    if (*out) return 0;
    dv_service *s = calloc(1, sizeof *s);
    if (!s) return DIVVY_ENOMEM;
    s->directory = dv_registry_path(registry, role_node, NULL);
    s->path = dv_registry_path(registry, role_node, id_node);
    s->spare = calloc(1, sizeof *s->spare);
    bool whole = s->directory && s->path && s->spare;
    s->role_node = whole ? dv_path_last(s->directory) : NULL;
    s->id_node = whole ? dv_path_last(s->path) : NULL;
    if (!whole || !tsearch(s, &registry->services_by_name, compare_services)) {
        free_service(s);
        return DIVVY_ENOMEM;
    }
    s->registry = registry;
    s->tasks_end = &s->tasks;
    s->next = registry->services;
    s->link = &registry->services;
    if (s->next) s->next->link = &s->next;
    registry->services = s;
    dv_object_ref(&registry->object);
    *out = s;
    return 0;
}

int dv_service_reserve(dv_service *s) {
    divvy_client *client = s->registry->object.client;
    if (s->cost || s->registry->config.persistent) return 0;
    size_t cost = dv_path_cost(s->path);
    int error = dv_reserve_node(client, cost, 0);
    if (error) return error;
    s->cost = cost;
    client->lasting_count++;
    return 0;
}

void dv_service_let_go(dv_service *s) {
    divvy_registry *registry = s->registry;
    divvy_client *client = registry->object.client;
    if (s->tasks || s->under_way || s->load_requested || s->going || (s->entry && !registry->ended)) return;
    dv_timer_cancel(&s->beat_timer);
    if (registry->next_service == s) registry->next_service = s->next;
    tdelete(s, &registry->services_by_name, compare_services);
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
    if (s->cost) {
        assert(client->lasting_count > 0);
        client->lasting_count--;
        dv_release_ephemeral(client, s->cost);
    }
    dv_service_drop_look(s);
    cJSON_Delete(s->entry);
    free(s->data);
    free_service(s);
    dv_object_unref(&registry->object);
}

/* ---- tasks ---- */

void dv_task_unref(dv_task *task) {
    assert(!task || task->refs > 0);
    if (!task || --task->refs) return;
    dv_timer_cancel(&task->deadline);
    cJSON_Delete(task->entry);
    cJSON_Delete(task->copy);
    free(task);
}

bool dv_task_is_dropped(const dv_task *task) {
    return task->kind != DV_TASK_LEAVE && task->ended && (!task->begun || task->service->registry->ending);
}

static void end(dv_task *task, int result, int64_t now) {
    assert(task->refs > 0);
    if (task->ended) return;
    task->ended = true;
    task->result = result;
    dv_timer_cancel(&task->deadline);
    divvy_client *client = task->service->registry->object.client;
    if (task->done) task->done(task->context, task, now);
    dv_client_changed(client);
}

static void finish_first(dv_service *s, int result, int64_t now) {
    dv_task *task = s->tasks;
    assert(task && s->registry->task_count > 0);
    s->tasks = task->next;
    s->registry->task_count--;
    if (!s->tasks) s->tasks_end = &s->tasks;
    s->resolving = false;
    end(task, result, now);
    dv_task_unref(task);
}

void dv_service_end_task(dv_service *s, int result, int64_t now) {
    assert(s->tasks && !s->under_way);
    finish_first(s, result, now);
    dv_service_go(s, now);
}

void dv_service_put_off_task(dv_service *s, int64_t now) {
    assert(s->tasks && !s->under_way);
    if (s->tasks->kind != DV_TASK_LEAVE) end(s->tasks, DIVVY_ENOMEM, now);
    dv_client_again(s->registry->object.client);
}

static void drop_tasks(dv_service *s, int error, int64_t now) {
    while (s->tasks) finish_first(s, error, now);
}

static void drop_given_up(dv_service *s, int64_t now) {
    while (!s->under_way && s->tasks && dv_task_is_dropped(s->tasks)) finish_first(s, 0, now);
}

static void give_up(dv_task *task, int error, int64_t now) {
    if (task->ended) return;
    end(task, error, now);
    dv_service_go(task->service, now);
}

static bool has_ended(void *context) {
    return ((const dv_task *)context)->ended;
}

int dv_task_await(dv_task *task, divvy_client *client, int64_t timeout_ms) {
    int waited = dv_client_wait(client, timeout_ms, has_ended, task);
    if (!task->ended) give_up(task, waited, dv_client_now(client));
    return task->result;
}

static void on_deadline(dv_timer *timer, int64_t now) {
    give_up(DV_CONTAINER(timer, dv_task, deadline), DIVVY_ETIMEDOUT, now);
}

/* ---- going on ---- */

static bool can_begin(const dv_service *s) {
    const divvy_client *client = s->registry->object.client;
    return s->tasks->kind == DV_TASK_LEAVE ? dv_client_can_delete(client) : dv_client_connected(client);
}

/* A task may end at once, and another begin: in a loop, not by recursion. */
static void advance(dv_service *s, int64_t now) {
    if (s->going) return;
    s->going = true;
    const dv_task *before;
    do {
        drop_given_up(s, now);
        before = s->tasks;
        if (s->tasks && s->registry->ended && !s->under_way) drop_tasks(s, DIVVY_ECANCELED, now);
        if (s->tasks && !s->under_way && can_begin(s)) dv_service_begin_task(s, now);
    } while (s->tasks && s->tasks != before && !s->under_way);
    s->going = false;
}

void dv_service_go(dv_service *s, int64_t now) {
    if (s->going) return;
    advance(s, now);
    dv_service_let_go(s);
}

static int append(dv_service *s, const dv_task *like, int64_t timeout_ms, dv_task **out) {
    divvy_client *client = s->registry->object.client;
    dv_task *task = malloc(sizeof *task);
    if (!task && like->kind == DV_TASK_LEAVE && !out) {
        task = s->spare;
        s->spare = NULL;
    }
    if (!task) {
        cJSON_Delete(like->entry);
        return DIVVY_ENOMEM;
    }
    *task = *like;
    task->refs = out ? 2 : 1;
    task->service = s;
    task->deadline.fire = on_deadline;
    assert(!*s->tasks_end);
    *s->tasks_end = task;
    s->tasks_end = &task->next;
    s->registry->task_count++;
    if (timeout_ms > DV_TIME_MAX_MS) timeout_ms = DV_TIME_MAX_MS;
    if (timeout_ms >= 0) dv_timer_set(client, &task->deadline, dv_client_now(client) + timeout_ms);
    if (out) *out = task;
    return 0;
}

int dv_service_add_task(dv_service *s, const dv_task *like, int64_t timeout_ms, dv_task **out) {
    int error = append(s, like, timeout_ms, out);
    dv_service_go(s, dv_client_now(s->registry->object.client));
    return error;
}

/* ---- the session ---- */

/* V10: within its ttl, that is, while it was not silent for so long that it counts as dead already. */
static void put_back(dv_service *s, int64_t now) {
    if (!s->announced || s->known || s->tasks || s->registry->config.persistent) return;
    if ((double)(now - s->beaten_at) >= dv_status_number(s->entry, "ttl") * 1000) return;
    dv_heartbeat_repeat(s, true);
}

void dv_service_disown(dv_service *s) {
    cJSON_Delete(s->entry);
    s->entry = NULL;
    s->known = s->announced = false;
    dv_timer_cancel(&s->beat_timer);
}

/* Ends all tasks but those that leave, for their callers. */
static void end_all(dv_service *s, int error, int64_t now) {
    for (dv_task *task = s->tasks; task; task = task->next) {
        if (task->kind != DV_TASK_LEAVE) end(task, error, now);
    }
}

void dv_service_cancel(dv_service *s, int64_t now) {
    end_all(s, DIVVY_ECANCELED, now);
    s->announced = false;
    dv_timer_cancel(&s->beat_timer);
}

/* V12: ephemeral ones go with the registry, or the client; persistent ones stay. */
static void retire(dv_service *s, int64_t now) {
    bool may_stand = s->cost && (s->entry || s->under_way || (s->tasks && s->tasks->begun));
    dv_service_cancel(s, now);
    int error = may_stand ? append(s, &(dv_task){.kind = DV_TASK_LEAVE}, -1, NULL) : 0;
    if (error)
        dv_client_log(s->registry->object.client, DIVVY_LOG_ERROR, "%s: not deleted: %s", s->path,
                      divvy_strerror(error));
    if (error || !may_stand) dv_service_disown(s);
    advance(s, now);
}

/* The nodes of its session are gone. Tasks under way end right after. */
static void forget_session(dv_service *s, int64_t now) {
    divvy_client *client = s->registry->object.client;
    s->known = s->role_known = s->resolving = false;
    int over = dv_client_end_error(client);
    if (s->registry->ending) over = DIVVY_ECANCELED;
    if (s->registry->ending) dv_service_disown(s);
    /* A wait for the servers' time is no request: it would outlive the session, and its task. */
    if (over && dv_registry_forget_wait(s->registry, &s->time_wait)) {
        assert(s->under_way == 1);
        s->under_way--;
    }
    if (over) drop_tasks(s, over, now);
    advance(s, now);
}

void dv_service_hear(dv_service *s, dv_session_event event, int64_t now) {
    const divvy_client *client = s->registry->object.client;
    int over = dv_client_end_error(client);
    switch (event) {
    case DV_SESSION_CONNECTED:
    case DV_SESSION_AGAIN:
    case DV_SESSION_LINK:
        if (dv_client_connected(client)) put_back(s, now);
        advance(s, now);
        break;
    case DV_SESSION_LOST:
        if (over) end_all(s, over, now);
        break;
    case DV_SESSION_OVER:
    case DV_SESSION_CLOSED: forget_session(s, now); break;
    case DV_SESSION_CLOSING: retire(s, now); break;
    case DV_SESSION_SUSPENDED:
    case DV_SESSION_PROVEN:
    case DV_SESSION_ROOM: break;
    }
    dv_service_let_go(s);
}
