/* Remove: what a caller names, or what is stale. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "registry/collect.h"
#include "registry/service.h"

/* ---- unregister: V12 ---- */

static int ask_to_leave(divvy_registry *registry, const char *role_node, const char *id_node, dv_task **out) {
    dv_service *service;
    int error = dv_service_get(&service, registry, role_node, id_node);
    if (error) return error;
    dv_service_cancel(service, dv_client_now(registry->object.client));
    return dv_service_ask(service, &(dv_wish){.kind = DV_TASK_LEAVE, .any = true, .timeout_ms = -1}, out);
}

static int unregister_one(divvy_registry *registry, const char *role_node, const char *id_node, dv_deadline deadline) {
    divvy_client *client = registry->object.client;
    dv_task *task = NULL;
    int error = ask_to_leave(registry, role_node, id_node, &task);
    if (error) return error;
    error = dv_task_await(task, client, dv_deadline_left_ms(client, deadline));
    dv_task_unref(task);
    return error == DIVVY_ECANCELED ? DIVVY_ECLOSED : error;
}

/* In each of these roles. Found once is found. */
static void unregister_each(divvy_registry *registry, char **roles, size_t count, const char *id_node,
                            dv_deadline deadline, int *result) {
    for (size_t i = 0; i < count; i++) {
        int one = unregister_one(registry, roles[i], id_node, deadline);
        if (one == 0 && *result == DIVVY_ENOENT) *result = 0;
        if (one && one != DIVVY_ENOENT) *result = one;
        free(roles[i]);
    }
    free(roles);
}

static int find_own_roles(const divvy_registry *registry, const char *id_node, char ***roles, size_t *count) {
    size_t room = 0;
    for (const dv_service *s = registry->services; s; s = s->next) room += strcmp(s->id_node, id_node) == 0;
    *roles = calloc(room + 1, sizeof **roles);
    for (const dv_service *s = registry->services; *roles && s; s = s->next) {
        if (strcmp(s->id_node, id_node) != 0) continue;
        (*roles)[*count] = strdup(s->role_node);
        if (!(*roles)[*count]) return DIVVY_ENOMEM;
        ++*count;
    }
    return *roles ? 0 : DIVVY_ENOMEM;
}

/* Ours go in any case: nobody sees them where somebody has deleted their nodes, or nothing can be read. */
static int unregister_all(divvy_registry *registry, const char *id_node, dv_deadline deadline) {
    char **roles = NULL;
    size_t count = 0;
    int result = DIVVY_ENOENT;
    int error = find_own_roles(registry, id_node, &roles, &count);
    unregister_each(registry, roles, count, id_node, deadline, &result);
    if (error) return error;
    roles = NULL;
    count = 0;
    error = dv_collect_roles_of(registry, id_node, &roles, &count, deadline);
    unregister_each(registry, roles, count, id_node, deadline, &result);
    return error ? error : result;
}

static int unregister(divvy_registry *registry, const char *role_node, const char *id_node, int64_t timeout_ms) {
    divvy_client *client = registry->object.client;
    dv_deadline deadline = dv_deadline_in(client, timeout_ms);
    int error = dv_client_in_callback(client) ? DIVVY_EDEADLK : dv_client_end_error(client);
    if (!error && registry->ending) error = DIVVY_ECLOSED;
    if (!error)
        error = role_node ? unregister_one(registry, role_node, id_node, deadline)
                          : unregister_all(registry, id_node, deadline);
    if (!error) return 0;
    if (error == DIVVY_ENOENT)
        dv_client_warn(client, DIVVY_WARN_NO_SERVICE, "unregister: there is no service %.200s in %.200s%s%.200s",
                       id_node, registry->root, role_node ? "/" : "", role_node ? role_node : "");
    return dv_fail(client, error, "unregister: %s%s%s, %s: %s", registry->root, role_node ? "/" : "",
                   role_node ? role_node : "", id_node, dv_client_why(client, error));
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
    dv_entry *entry;
    char *path;
    char *role_path; /* of one that can be claimed (unique.c), else NULL */
    int32_t role_version;
    bool unknown; /* the last delete's reply was lost */
} victim;

/* Under way; it outlives the call that asked for it when that runs out of time. */
struct purging {
    unsigned refs;
    divvy_registry *registry;
    victim *victims;
    size_t count, begun, under_way, deleted;
    size_t unknown;
    unsigned attempts;
    bool abandoned, done;
    int error;
    dv_barrier_wait barrier;
};

static void go_on(purging *p);

static void unref_purging(purging *p) {
    assert(p->refs > p->under_way);
    if (--p->refs) return;
    for (size_t i = 0; i < p->count; i++) {
        dv_entry_free(p->victims[i].entry);
        free(p->victims[i].path);
        free(p->victims[i].role_path);
    }
    free(p->victims);
    dv_object_unref(&p->registry->object);
    free(p);
}

static void answered(purging *p) {
    assert(p->under_way > 0 && !p->done);
    p->under_way--;
    go_on(p);
    unref_purging(p);
}

static void has_sent(victim *v) {
    purging *p = v->purge;
    assert(!p->done);
    p->under_way++;
    p->refs++;
}

static void note(purging *p, int error) {
    if (!p->error) p->error = error;
}

static void mark_unknown(victim *v) {
    assert(v->purge->under_way > 0);
    v->unknown = true;
    v->purge->unknown++;
}

/* Another version is another's doing: it lives, or somebody else has purged it. */
static void deleted(victim *v, int error) {
    assert(v->purge->deleted < v->purge->begun);
    if (error == 0) v->purge->deleted++;
    else if (dv_outcome_unknown(error)) mark_unknown(v);
    else if (error != DIVVY_ENOENT && error != DIVVY_EVERSION) note(v->purge, error);
    answered(v->purge);
}

static void on_deleted(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    deleted(context, reply->error);
}

static void on_both_deleted(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    (void)replies, (void)count, (void)now;
    deleted(context, error);
}

static void on_role(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    victim *v = context;
    v->role_version = reply->error ? -1 : reply->stat->version;
    if (dv_outcome_unknown(reply->error)) mark_unknown(v);
    answered(v->purge);
}

static void on_unique(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    victim *v = context;
    purging *p = v->purge;
    dv_op ops[2] = {{.kind = DV_CHECK, .path = v->role_path, .version = v->role_version},
                    {.kind = DV_DELETE, .path = v->path, .version = v->entry->stat.version}};
    bool same = reply->error == 0 && reply->stat->mzxid == v->entry->stat.mzxid && v->role_version >= 0;
    if (dv_outcome_unknown(reply->error)) mark_unknown(v);
    else if (reply->error && reply->error != DIVVY_ENOENT) note(p, reply->error);
    else if (same && !p->abandoned) {
        if (dv_znode_multi(p->registry->object.client->znode, ops, 2, on_both_deleted, v) == 0) has_sent(v);
        else note(p, DIVVY_ENOMEM);
    }
    answered(p);
}

/* V11: a new holder's node has the versions of the old one's over again; that of the role tells them apart. An entry
 * that a heartbeat has put in the place of another is put back by the next heartbeat. */
static void delete_one(victim *v) {
    dv_znode *znode = v->purge->registry->object.client->znode;
    int error = 0;
    if (!v->role_path) {
        error = dv_znode_delete(znode, v->path, v->entry->stat.version, on_deleted, v);
        if (!error) has_sent(v);
    } else {
        error = dv_znode_exists(znode, v->role_path, NULL, on_role, v);
        if (!error) has_sent(v);
        if (!error) error = dv_znode_exists(znode, v->path, NULL, on_unique, v);
        if (!error) has_sent(v);
    }
    if (error) note(v->purge, DIVVY_ENOMEM);
}

/* R1: it is as it was, and to be deleted once more, or it is not. */
static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    victim *v = context;
    purging *p = v->purge;
    bool same = reply->error == 0 && reply->stat->mzxid == v->entry->stat.mzxid;
    if (dv_outcome_unknown(reply->error)) mark_unknown(v);
    else if (reply->error == DIVVY_ENOENT) p->deleted++;
    else if (reply->error) note(p, reply->error);
    else if (same && !p->abandoned) delete_one(v);
    answered(p);
}

static void on_barrier(void *context, int error, int64_t now) {
    (void)now;
    purging *p = context;
    assert(p->unknown > 0 && p->under_way == 1);
    p->unknown = 0;
    if (error) note(p, error);
    for (size_t i = 0; i < p->begun && !error; i++) {
        victim *v = &p->victims[i];
        if (!v->unknown) continue;
        v->unknown = false;
        if (dv_znode_exists(p->registry->object.client->znode, v->path, NULL, on_looked, v) == 0) has_sent(v);
        else note(p, DIVVY_ENOMEM);
    }
    answered(p);
}

static void resolve(purging *p) {
    assert(p->unknown > 0 && !p->under_way);
    if (++p->attempts > ATTEMPTS_MAX) {
        note(p, DIVVY_ETIMEDOUT);
        p->done = true;
        return;
    }
    p->under_way++;
    p->refs++;
    dv_client_barrier(p->registry->object.client, &p->barrier, on_barrier, p);
}

static void go_on(purging *p) {
    assert(!p->done);
    while (!p->error && !p->abandoned && !p->unknown && p->begun < p->count && p->under_way < DELETES_MAX)
        delete_one(&p->victims[p->begun++]);
    if (p->under_way) return;
    if (p->unknown && !p->error && !p->abandoned) resolve(p);
    else p->done = true;
    dv_client_changed(p->registry->object.client);
}

static bool is_done(void *context) {
    return ((const purging *)context)->done;
}

/* The victims' entries are moved out of what was read. */
static int choose(purging *p, dv_collected *read, double ttls) {
    int64_t earliest_ms = dv_registry_knows_time(p->registry) ? dv_registry_server_now(p->registry).earliest_ms : 0;
    p->victims = calloc(read->count + 1, sizeof *p->victims);
    if (!p->victims) return DIVVY_ENOMEM;
    for (size_t i = 0; i < read->count; i++) {
        dv_entry *entry = read->entries[i];
        if (!dv_entry_is_older(entry, ttls, earliest_ms)) continue;
        char *path = dv_registry_path(p->registry, entry->role_node, entry->id_node);
        if (!path) return DIVVY_ENOMEM;
        p->victims[p->count++] = (victim){.purge = p, .entry = entry, .path = path};
        read->entries[i] = NULL;
        if (strcmp(entry->role_node, entry->id_node) != 0) continue;
        p->victims[p->count - 1].role_path = dv_registry_path(p->registry, entry->role_node, NULL);
        if (!p->victims[p->count - 1].role_path) return DIVVY_ENOMEM;
    }
    return 0;
}

static int delete_all(divvy_registry *registry, dv_collected *read, double ttls, size_t *purged, dv_deadline deadline) {
    divvy_client *client = registry->object.client;
    purging *p = calloc(1, sizeof *p);
    if (!p) return DIVVY_ENOMEM;
    p->refs = 1;
    p->registry = registry;
    dv_object_ref(&registry->object);
    int error = choose(p, read, ttls);
    if (!error) {
        go_on(p);
        int waited = dv_client_wait(client, dv_deadline_left_ms(client, deadline), is_done, p);
        error = p->done ? p->error : waited;
    }
    if (error == DIVVY_ECANCELED) error = DIVVY_ECLOSED;
    assert(p->deleted <= p->begun && p->begun <= p->count);
    p->abandoned = true;
    *purged = p->deleted;
    unref_purging(p);
    return error;
}

static int read_and_delete(divvy_registry *registry, double ttls, size_t *purged, dv_deadline deadline) {
    dv_collected read = {NULL, 0};
    size_t deleted = 0;
    int error = dv_collect(registry, NULL, &read, dv_deadline_left_ms(registry->object.client, deadline));
    if (error) return error;
    error = delete_all(registry, &read, ttls, &deleted, deadline);
    *purged += deleted;
    dv_collected_free(&read);
    return error;
}

/* A session that is lost takes its answers along: the next one reads again what is left to be purged. */
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
