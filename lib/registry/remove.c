/* Remove: services that a caller names, or that are stale. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "registry/service.h"

/* ---- unregister: V12 ---- */

static int unregister_one(divvy_registry *registry, const char *role_node, const char *id_node, dv_deadline deadline) {
    divvy_client *client = registry->object.client;
    dv_service *service;
    dv_task *task = NULL;
    int error = dv_service_get(&service, registry, role_node, id_node);
    if (error) return error;
    dv_service_cancel(service, dv_client_now(client));
    error = dv_service_add_task(service, &(dv_task){.kind = DV_TASK_LEAVE, .any = true}, -1, &task);
    if (error) return error;
    error = dv_task_await(task, client, dv_deadline_left_ms(client, deadline));
    dv_task_unref(task);
    return error == DIVVY_ECANCELED ? DIVVY_ECLOSED : error;
}

/* In each of these roles, which are freed. Found once is found. */
static void unregister_each(divvy_registry *registry, divvy_strings *roles, const char *id_node, dv_deadline deadline,
                            int *result) {
    for (size_t i = 0; i < divvy_strings_count(roles); i++) {
        int one = unregister_one(registry, divvy_strings_get(roles, i), id_node, deadline);
        if (one == 0 && *result == DIVVY_ENOENT) *result = 0;
        if (one && one != DIVVY_ENOENT) *result = one;
    }
    divvy_strings_free(roles);
}

static int find_own_roles(const divvy_registry *registry, const char *id_node, divvy_strings **roles) {
    *roles = dv_strings_new();
    if (!*roles) return DIVVY_ENOMEM;
    for (const dv_service *s = registry->services; s; s = s->next) {
        if (strcmp(s->id_node, id_node) == 0 && dv_strings_add(*roles, s->role_node) != 0) return DIVVY_ENOMEM;
    }
    return 0;
}

/* Our own go in any case: no list shows them where their nodes have been deleted, or nothing can be read. */
static int unregister_all(divvy_registry *registry, const char *id_node, dv_deadline deadline) {
    divvy_strings *roles;
    int result = DIVVY_ENOENT;
    int error = find_own_roles(registry, id_node, &roles);
    unregister_each(registry, roles, id_node, deadline, &result);
    if (error) return error;
    error = dv_registry_find_roles(registry, id_node, &roles, deadline);
    unregister_each(registry, roles, id_node, deadline, &result);
    return error ? error : result;
}

static int unregister(divvy_registry *registry, const char *role_node, const char *id_node, int64_t timeout_ms) {
    divvy_client *client = registry->object.client;
    const char *slash = role_node ? "/" : "", *role = role_node ? role_node : "";
    dv_deadline deadline = dv_deadline_in(client, timeout_ms);
    int error = dv_client_in_callback(client) ? DIVVY_EDEADLK : dv_client_end_error(client);
    if (!error && registry->ending) error = DIVVY_ECLOSED;
    if (!error)
        error = role_node ? unregister_one(registry, role_node, id_node, deadline)
                          : unregister_all(registry, id_node, deadline);
    if (!error) return 0;
    if (error == DIVVY_ENOENT)
        dv_client_warn(client, DIVVY_WARN_NO_SERVICE, "unregister: there is no service %.200s in %.200s%s%.200s",
                       id_node, registry->root, slash, role);
    return dv_fail(client, error, "unregister: %s%s%s, %s: %s", registry->root, slash, role, id_node,
                   dv_client_why(client, error));
}

int divvy_registry_unregister(divvy_registry *registry, const char *role, const char *id, int64_t timeout_ms) {
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    dv_object_hold(&registry->object);
    char *role_node = NULL, *id_node = NULL;
    if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "unregister: timeout_ms is below -1");
    if (!error) error = dv_registry_node_name(registry, "id", id, &id_node);
    if (!error && role) error = dv_registry_node_name(registry, "role", role, &role_node);
    if (!error) error = unregister(registry, role_node, id_node, timeout_ms);
    free(role_node);
    free(id_node);
    dv_object_let_go(&registry->object);
    return error;
}

/* ---- purge: V14 ---- */

enum { DELETES_MAX = 256, ATTEMPTS_MAX = 100 };

typedef struct purging purging;

typedef struct {
    purging *purge;
    const dv_entry *entry;
    char *path;
    char *role_path; /* of one that can be claimed (unique.c), else NULL */
    int32_t role_version;
    bool unknown;   /* the last delete's reply was lost */
    bool resolving; /* and the node is looked at */
} victim;

/* Under way; it outlives the call when that runs out of time. */
struct purging {
    divvy_registry *registry;
    dv_entries read;
    victim *victims;
    size_t count, begun, under_way, deleted; /* under_way: requests, and the barrier */
    size_t unknown;
    unsigned attempts;
    bool abandoned; /* by the call */
    int error;
    dv_barrier_wait barrier;
};

static void go_on(purging *p);
static void on_looked(void *context, const dv_reply *reply, int64_t now);

static void free_purging(purging *p) {
    for (size_t i = 0; i < p->count; i++) {
        free(p->victims[i].path);
        free(p->victims[i].role_path);
    }
    free(p->victims);
    dv_entries_free(&p->read);
    dv_object_unref(&p->registry->object);
    free(p);
}

static void note(purging *p, int error) {
    if (!p->error) p->error = error;
}

static void sent(purging *p, int error) {
    if (error) note(p, error);
    else p->under_way++;
}

static void answered(purging *p) {
    assert(p->under_way > 0);
    p->under_way--;
    go_on(p);
    if (p->abandoned && !p->under_way) free_purging(p);
}

static void mark_unknown(victim *v) {
    assert(v->purge->under_way > 0);
    v->unknown = true;
    v->purge->unknown++;
}

/* Another version was written or deleted by another client: the service lives, or has been purged. */
static void on_deleted(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies, (void)count, (void)now;
    victim *v = context;
    assert(v->purge->deleted < v->purge->begun);
    if (error == 0) v->purge->deleted++;
    else if (dv_outcome_unknown(error)) mark_unknown(v);
    else if (error != DIVVY_ENOENT && error != DIVVY_EVERSION) note(v->purge, error);
    answered(v->purge);
}

static void on_one_deleted(void *context, const dv_reply *reply, int64_t now) {
    on_deleted(context, reply->error, reply, 1, now);
}

static void on_role(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    victim *v = context;
    v->role_version = reply->error ? -1 : reply->stat->version;
    if (dv_outcome_unknown(reply->error)) mark_unknown(v);
    answered(v->purge);
}

/* V11: the role's version tells the holders' nodes apart. V14: any other entry comes back by its next heartbeat. */
static void delete_one(victim *v) {
    purging *p = v->purge;
    dv_znode *znode = p->registry->object.client->znode;
    if (!v->role_path) {
        sent(p, dv_znode_delete(znode, v->path, v->entry->stat.version, on_one_deleted, v));
    } else {
        int error = dv_znode_exists(znode, v->role_path, NULL, on_role, v);
        sent(p, error);
        if (!error) sent(p, dv_znode_exists(znode, v->path, NULL, on_looked, v));
    }
}

static void delete_unique(victim *v) {
    dv_op ops[2] = {{.kind = DV_CHECK, .path = v->role_path, .version = v->role_version},
                    {.kind = DV_DELETE, .path = v->path, .version = v->entry->stat.version}};
    if (v->role_version >= 0)
        sent(v->purge, dv_znode_multi(v->purge->registry->object.client->znode, ops, 2, on_deleted, v));
}

/* The node is as it was, and to be deleted, or it is not. R1: after a lost reply all begins again. */
static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    victim *v = context;
    purging *p = v->purge;
    bool resolving = v->resolving;
    bool same = reply->error == 0 && reply->stat->mzxid == v->entry->stat.mzxid;
    v->resolving = false;
    if (dv_outcome_unknown(reply->error)) mark_unknown(v);
    else if (reply->error == DIVVY_ENOENT) p->deleted += resolving;
    else if (reply->error) note(p, reply->error);
    else if (same && !p->abandoned && resolving) delete_one(v);
    else if (same && !p->abandoned) delete_unique(v);
    answered(p);
}

static void on_barrier(dv_barrier_wait *wait, int error, int64_t now) {
    (void)now;
    purging *p = DV_CONTAINER(wait, purging, barrier);
    assert(p->unknown > 0 && p->under_way == 1);
    p->unknown = 0;
    if (error) note(p, error);
    for (size_t i = 0; i < p->begun && !error; i++) {
        victim *v = &p->victims[i];
        v->resolving = v->unknown;
        if (v->unknown) sent(p, dv_znode_exists(p->registry->object.client->znode, v->path, NULL, on_looked, v));
        v->unknown = false;
    }
    answered(p);
}

static void go_on(purging *p) {
    divvy_client *client = p->registry->object.client;
    while (!p->error && !p->abandoned && !p->unknown && p->begun < p->count && p->under_way < DELETES_MAX)
        delete_one(&p->victims[p->begun++]);
    if (p->under_way) return;
    if (p->unknown && !p->error && ++p->attempts > ATTEMPTS_MAX) note(p, DIVVY_ETIMEDOUT);
    if (p->unknown && !p->error && !p->abandoned) {
        p->under_way++;
        dv_client_barrier(client, &p->barrier, on_barrier);
    }
    dv_client_changed(client);
}

static bool is_done(void *context) {
    return !((const purging *)context)->under_way;
}

static int choose(purging *p, double ttls) {
    int64_t earliest_ms = dv_registry_server_now(p->registry).earliest_ms;
    p->victims = calloc(p->read.count + 1, sizeof *p->victims);
    if (!p->victims) return DIVVY_ENOMEM;
    for (size_t i = 0; i < p->read.count; i++) {
        const dv_entry *entry = p->read.list[i];
        if (!dv_entry_is_older(entry, ttls, earliest_ms)) continue;
        bool unique = strcmp(entry->role_node, entry->id_node) == 0;
        victim *v = &p->victims[p->count++];
        *v = (victim){.purge = p, .entry = entry};
        v->path = dv_registry_path(p->registry, entry->role_node, entry->id_node);
        v->role_path = unique ? dv_registry_path(p->registry, entry->role_node, NULL) : NULL;
        if (!v->path || (unique && !v->role_path)) return DIVVY_ENOMEM;
    }
    return 0;
}

static int read_and_delete(divvy_registry *registry, double ttls, size_t *purged, dv_deadline deadline) {
    divvy_client *client = registry->object.client;
    dv_entries read;
    int error = dv_registry_read(registry, NULL, &read, dv_deadline_left_ms(client, deadline));
    if (error) return error;
    purging *p = calloc(1, sizeof *p);
    if (!p) {
        dv_entries_free(&read);
        return DIVVY_ENOMEM;
    }
    *p = (purging){.registry = registry, .read = read};
    dv_object_ref(&registry->object);
    error = choose(p, ttls);
    if (!error) {
        go_on(p);
        error = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_done, p);
        if (is_done(p)) error = p->error;
    }
    if (error == DIVVY_ECANCELED) error = DIVVY_ECLOSED;
    assert(p->deleted <= p->begun && p->begun <= p->count);
    *purged += p->deleted;
    p->abandoned = true;
    if (is_done(p)) free_purging(p);
    return error;
}

/* A session that is lost takes its answers along: on the next one all is read again. */
static int purge(divvy_registry *registry, double ttls, size_t *purged, int64_t timeout_ms) {
    divvy_client *client = registry->object.client;
    dv_deadline deadline = dv_deadline_in(client, timeout_ms);
    int error;
    do error = read_and_delete(registry, ttls, purged, deadline);
    while (error == DIVVY_ELOST && !dv_client_end_error(client) && !registry->ending);
    return error ? dv_fail(client, error, "purge of %s: %s", registry->root, dv_client_why(client, error)) : 0;
}

int divvy_registry_purge_stale_services(divvy_registry *registry, double ttls, size_t *purged, int64_t timeout_ms) {
    size_t count = 0;
    if (purged) *purged = 0;
    int error = dv_registry_enter(registry);
    if (error) return error;
    divvy_client *client = registry->object.client;
    dv_object_hold(&registry->object);
    if (!isfinite(ttls) || ttls < 0)
        error = dv_fail(client, DIVVY_EINVAL, "purge: ttls is %g; it must be 0 or more", ttls);
    else if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "purge: timeout_ms is below -1");
    else error = purge(registry, ttls, &count, timeout_ms);
    if (purged) *purged = count;
    dv_object_let_go(&registry->object);
    return error;
}
