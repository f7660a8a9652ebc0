/* Service: one node that this registry keeps: its tasks, its life, the session. SPDX-License-Identifier: Apache-2.0 */
#include "registry/service.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "znode/path.h"

/* ---- life ---- */

static size_t hash_of(const char *role_node, const char *id_node) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *c = role_node; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    hash = (hash ^ '/') * UINT64_C(1099511628211);
    for (const char *c = id_node; *c; c++) hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    return (size_t)(hash % DV_SERVICE_CHAINS);
}

dv_service *dv_service_find(const divvy_registry *registry, const char *role_node, const char *id_node) {
    dv_service *s = registry->service_chains[hash_of(role_node, id_node)];
    while (s && (strcmp(s->id_node, id_node) != 0 || strcmp(s->role_node, role_node) != 0)) s = s->hash_next;
    return s;
}

static void free_strings(dv_service *s) {
    free(s->role_node);
    free(s->id_node);
    free(s->directory);
    free(s->path);
}

static void put_in(divvy_registry *registry, dv_service *s) {
    assert(!dv_service_find(registry, s->role_node, s->id_node));
    dv_service **chain = &registry->service_chains[hash_of(s->role_node, s->id_node)];
    s->hash_next = *chain;
    s->hash_link = chain;
    if (*chain) (*chain)->hash_link = &s->hash_next;
    *chain = s;
    s->next = registry->services;
    s->link = &registry->services;
    if (s->next) s->next->link = &s->next;
    registry->services = s;
}

static void take_out(dv_service *s) {
    assert(s->hash_link && s->link);
    if (s->registry->next_service == s) s->registry->next_service = s->next;
    *s->hash_link = s->hash_next;
    if (s->hash_next) s->hash_next->hash_link = s->hash_link;
    *s->link = s->next;
    if (s->next) s->next->link = s->link;
}

int dv_service_get(dv_service **out, divvy_registry *registry, const char *role_node, const char *id_node) {
    *out = dv_service_find(registry, role_node, id_node);
    if (*out) return 0;
    dv_service *s = calloc(1, sizeof *s);
    if (!s) return DIVVY_ENOMEM;
    s->role_node = strdup(role_node);
    s->id_node = strdup(id_node);
    s->directory = dv_registry_path(registry, role_node, NULL);
    s->path = dv_registry_path(registry, role_node, id_node);
    s->spare = calloc(1, sizeof *s->spare);
    if (!s->role_node || !s->id_node || !s->directory || !s->path || !s->spare) {
        free_strings(s);
        free(s->spare);
        free(s);
        return DIVVY_ENOMEM;
    }
    s->registry = registry;
    s->tasks_end = &s->tasks;
    s->beat_timer.fire = dv_heartbeat_timer_fired;
    put_in(registry, s);
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

static bool is_wanted(const dv_service *s) {
    if (s->tasks || s->under_way || s->asking_load || s->going) return true;
    return !s->registry->ended && s->entry;
}

void dv_service_let_go(dv_service *s) {
    if (is_wanted(s)) return;
    divvy_registry *registry = s->registry;
    assert(!s->cost || registry->object.client->lasting_count > 0);
    dv_timer_cancel(&s->beat_timer);
    take_out(s);
    if (s->cost) {
        registry->object.client->lasting_count--;
        dv_release_ephemeral(registry->object.client, s->cost);
    }
    dv_service_drop_look(s);
    cJSON_Delete(s->entry);
    free(s->data);
    free(s->spare);
    free_strings(s);
    free(s);
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

/* Out of the queue, ended. */
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

void dv_service_drop_tasks(dv_service *s, int error, int64_t now) {
    while (s->tasks) finish_first(s, error, now);
}

/* Drops tasks that nobody waits for: they are not begun, nor taken up again while everything goes. */
static void drop_given_up(dv_service *s, int64_t now) {
    if (s->under_way) return;
    while (s->tasks && s->tasks->ended && s->tasks->kind != DV_TASK_LEAVE && (!s->tasks->begun || s->registry->ending))
        finish_first(s, 0, now);
}

void dv_task_give_up(dv_task *task, int error, int64_t now) {
    if (task->ended) return;
    end(task, error, now);
    dv_service_go(task->service, now);
}

static bool has_ended(void *context) {
    return ((const dv_task *)context)->ended;
}

int dv_task_await(dv_task *task, divvy_client *client, int64_t timeout_ms) {
    int waited = dv_client_wait(client, timeout_ms, has_ended, task);
    if (!task->ended) dv_task_give_up(task, waited, dv_client_now(client));
    return task->result;
}

static void on_deadline(dv_timer *timer, int64_t now) {
    dv_task *task = DV_CONTAINER(timer, dv_task, deadline);
    dv_task_give_up(task, DIVVY_ETIMEDOUT, now);
}

/* ---- going on ---- */

static void begin_first(dv_service *s, int64_t now) {
    const divvy_client *client = s->registry->object.client;
    if (s->tasks->kind == DV_TASK_LEAVE) {
        if (dv_client_can_delete(client)) dv_service_leave(s, now);
    } else if (dv_client_connected(client)) {
        dv_service_write(s, now);
    }
}

/* A task may end at once, and another begin: in a loop, not by recursion. */
static void advance(dv_service *s, int64_t now) {
    if (s->going) return;
    s->going = true;
    const dv_task *before;
    do {
        drop_given_up(s, now);
        before = s->tasks;
        if (s->tasks && s->registry->ended && !s->under_way) dv_service_drop_tasks(s, DIVVY_ECANCELED, now);
        if (s->tasks && !s->under_way) begin_first(s, now);
    } while (s->tasks && s->tasks != before && !s->under_way);
    s->going = false;
}

void dv_service_go(dv_service *s, int64_t now) {
    if (s->going) return;
    advance(s, now);
    dv_service_let_go(s);
}

static int append(dv_service *s, const dv_wish *wish, dv_task **out) {
    divvy_client *client = s->registry->object.client;
    dv_task *task = calloc(1, sizeof *task);
    if (!task && wish->kind == DV_TASK_LEAVE && !out) {
        task = s->spare;
        s->spare = NULL;
    }
    if (!task) {
        cJSON_Delete(wish->entry);
        return DIVVY_ENOMEM;
    }
    int64_t now = dv_client_now(client);
    *task = (dv_task){.refs = out ? 2 : 1,
                      .service = s,
                      .kind = wish->kind,
                      .entry = wish->entry,
                      .any = wish->any,
                      .renewal = wish->renewal,
                      .deadline.fire = on_deadline,
                      .done = wish->done,
                      .context = wish->context};
    assert(!*s->tasks_end);
    *s->tasks_end = task;
    s->tasks_end = &task->next;
    s->registry->task_count++;
    if (wish->timeout_ms >= 0) {
        int64_t limit_ms = wish->timeout_ms > DV_TIME_MAX_MS ? DV_TIME_MAX_MS : wish->timeout_ms;
        dv_timer_set(client, &task->deadline, now + limit_ms);
    }
    if (out) *out = task;
    return 0;
}

int dv_service_ask(dv_service *s, const dv_wish *wish, dv_task **out) {
    int64_t now = dv_client_now(s->registry->object.client);
    int error = append(s, wish, out);
    dv_service_go(s, now);
    return error;
}

/* ---- the session ---- */

/* V10: within its ttl, that is, while it was not silent for so long that it counts as dead already. */
static void put_back(dv_service *s, int64_t now) {
    if (!s->announced || s->known || s->tasks || s->registry->config.persistent) return;
    if ((double)(now - s->beaten_at) >= s->ttl_s * 1000) return;
    dv_heartbeat_repeat(s, true);
}

void dv_service_disown(dv_service *s) {
    cJSON_Delete(s->entry);
    s->entry = NULL;
    s->known = s->announced = false;
    dv_timer_cancel(&s->beat_timer);
}

void dv_service_cancel(dv_service *s, int64_t now) {
    for (dv_task *task = s->tasks; task; task = task->next) {
        if (task->kind != DV_TASK_LEAVE) end(task, DIVVY_ECANCELED, now);
    }
    s->announced = false;
    dv_timer_cancel(&s->beat_timer);
}

/* V12: ephemeral ones go with the registry, or the client; persistent ones stay. */
static void retire(dv_service *s, int64_t now) {
    bool may_stand = s->cost && (s->entry || s->under_way || (s->tasks && s->tasks->begun));
    dv_service_cancel(s, now);
    int error = may_stand ? append(s, &(dv_wish){.kind = DV_TASK_LEAVE, .timeout_ms = -1}, NULL) : 0;
    if (error)
        dv_client_log(s->registry->object.client, DIVVY_LOG_ERROR, "%s: not deleted: %s", s->path,
                      divvy_strerror(error));
    if (error || !may_stand) dv_service_disown(s);
    advance(s, now);
}

void dv_service_retire(dv_service *s, int64_t now) {
    retire(s, now);
    dv_service_let_go(s);
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
    if (over) dv_service_drop_tasks(s, over, now);
    advance(s, now);
}

void dv_service_hear(dv_service *s, dv_session_event event, int64_t now) {
    const divvy_client *client = s->registry->object.client;
    switch (event) {
    case DV_SESSION_CONNECTED:
        put_back(s, now);
        advance(s, now);
        break;
    case DV_SESSION_AGAIN:
        if (dv_client_connected(client)) put_back(s, now);
        advance(s, now);
        break;
    case DV_SESSION_LINK: advance(s, now); break;
    case DV_SESSION_LOST:
        for (dv_task *task = s->tasks; task && dv_client_end_error(client); task = task->next) {
            if (task->kind != DV_TASK_LEAVE) end(task, dv_client_end_error(client), now);
        }
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
