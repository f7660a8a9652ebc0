/* Service: its node is stored, claimed, looked at, deleted. docs/protocol.md, V7 to V11. SPDX-License-Identifier:
 * Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/container.h"
#include "registry/service.h"
#include "registry/status.h"
#include "znode/ensure.h"

enum { ATTEMPTS_MAX = 100 };

static void look(dv_service *s, int64_t now);
static void resolve(dv_service *s, int64_t now);
static void write_entry(dv_service *s, int64_t now);
static void deleted(dv_service *s, int error, int64_t now);

static divvy_client *client_of(const dv_service *s) {
    return s->registry->object.client;
}

/* Returns whether the node is of the kind, and of the session, that ours are. */
static bool is_right(const dv_service *s, const dv_stat *stat) {
    return stat->ephemeral_owner == (s->registry->config.persistent ? 0 : divvy_client_session_id(client_of(s)));
}

/* A failed allocation ends no task that would leave a node: its write is in doubt, or no caller waits for its end. */
static void fail(dv_service *s, int error, int64_t now) {
    const dv_task *task = s->tasks;
    bool unattended = task->kind == DV_TASK_LEAVE && task->refs == 1 && !task->done;
    if (error == DIVVY_ENOMEM && (s->resolving || unattended)) dv_service_put_off_task(s, now);
    else dv_service_end_task(s, error, now);
}

/* Returns whether it can be claimed (unique.c). V11 binds its deletion, too. */
static bool is_unique(const dv_service *s) {
    return strcmp(s->role_node, s->id_node) == 0;
}

/* Returns whether the first task goes on: not if it was dropped or its session is over; the service may be gone. */
static bool still_at_work(dv_service *s, int error, int64_t now) {
    assert(s->under_way > 0);
    s->under_way--;
    bool over = dv_session_over(error) || s->registry->ended;
    if (!over && s->tasks) return true;
    if (s->under_way) return false;
    if (over) dv_service_let_go(s);
    else dv_service_go(s, now);
    return false;
}

/* ---- after a write ---- */

static void succeed(dv_service *s, int32_t version, int64_t now) {
    dv_task *task = s->tasks;
    assert(!s->under_way && !s->resolving && task->kind != DV_TASK_LEAVE && task->entry);
    s->known = true;
    s->version = version;
    cJSON_Delete(s->entry);
    s->entry = task->copy ? task->copy : task->entry;
    if (s->entry == task->entry) task->entry = NULL;
    task->copy = NULL;
    s->announced = task->kind == DV_TASK_BEAT;
    s->load = dv_status_number(s->entry, "load");
    if (!task->renewal) s->beaten_at = s->sent_at;
    if (s->announced) dv_heartbeat_stored(s, now);
    dv_service_end_task(s, 0, now);
}

static void on_ensured(void *context, int error, int64_t now) {
    dv_service *s = context;
    if (!still_at_work(s, error, now)) return;
    bool may_come = !error || error == DIVVY_ENOENT || error == DIVVY_ECONNECTION || error == DIVVY_EQUOTA;
    if (error == DIVVY_EQUOTA) s->tasks->attempts = 0; /* B12: as long as it takes */
    if (!may_come) fail(s, error, now);
    else if (s->tasks->kind != DV_TASK_CLAIM) write_entry(s, now);
    else if (error == DIVVY_ENOENT && ++s->tasks->attempts > ATTEMPTS_MAX) fail(s, error, now); /* no chroot */
    else look(s, now);
}

/* V7: the role's node is made only when it is found missing. Curator's are containers, which go by themselves. */
static void make_role(dv_service *s, int64_t now) {
    assert(!s->under_way && s->tasks->kind != DV_TASK_LEAVE);
    if (dv_ensure_path(client_of(s)->znode, s->directory, DV_CONTAINER, on_ensured, s) != 0) fail(s, DIVVY_ENOMEM, now);
    else s->under_way++;
}

/* Returns whether the error may mean that another node stands there than we took it for. */
static bool may_differ(int error) {
    return error == DIVVY_ENOENT || error == DIVVY_EEXIST || error == DIVVY_EVERSION || error == DIVVY_EROLLEDBACK;
}

/* The last reply is the node's, with a Stat unless a multi created it. A multi's first has one if the role was set. */
static void on_written(void *context, int error, const dv_reply *replies, size_t count, int64_t now) {
    dv_service *s = context;
    const dv_stat *role = error == 0 && count > 1 ? replies[0].stat : NULL;
    const dv_stat *stat = error == 0 && count > 0 ? replies[count - 1].stat : NULL;
    if (role) s->role_version = role->version;
    if (role) dv_registry_note_time(s->registry, s->sent_at, role, now); /* All of a multi is of one moment. */
    if (!still_at_work(s, error, now)) return;
    assert(!s->under_way && !s->resolving && s->tasks->begun);
    if (stat) dv_registry_note_time(s->registry, s->sent_at, stat, now);
    if (s->tasks->kind == DV_TASK_LEAVE) {
        deleted(s, error, now);
    } else if (error == 0 && stat && !is_right(s, stat)) {
        s->known = false;
        look(s, now); /* A node of another session has been put there, under the same version. */
    } else if (error == 0) {
        succeed(s, stat ? stat->version : 0, now);
    } else if (dv_outcome_unknown(error)) {
        if (error == DIVVY_EQUOTA) s->tasks->attempts = 0; /* B12 */
        resolve(s, now);
    } else if (error == DIVVY_ENOENT && s->creating) {
        make_role(s, now);
    } else if (may_differ(error)) {
        s->known = false;
        look(s, now);
    } else {
        fail(s, error, now);
    }
}

static void on_one_written(void *context, const dv_reply *reply, int64_t now) {
    on_written(context, reply->error, reply, 1, now);
}

/* ---- writing ---- */

static void send_write(dv_service *s, const dv_op *ops, size_t count, int64_t now) {
    dv_znode *znode = client_of(s)->znode;
    int error;
    assert(!s->under_way);
    s->creating = count == 1 && ops->kind == DV_CREATE;
    if (count > 1) error = dv_znode_multi(znode, ops, count, on_written, s);
    else if (s->creating) error = dv_znode_submit_create(znode, ops, on_one_written, s);
    else error = dv_znode_submit(znode, ops, NULL, on_one_written, s);
    if (error) fail(s, error, now);
    else s->under_way++;
}

/* Stamps a write with its attempt and the time, the servers' or, where unknown, ours. No client judges by it. */
static int prepare(dv_service *s, int64_t now, const char **reason) {
    dv_task *task = s->tasks;
    int64_t unix_ms =
        s->registry->time.known ? dv_server_time_likely_ms(&s->registry->time, now) : (int64_t)time(NULL) * 1000;
    bool follows = s->entry && (task->kind == DV_TASK_BEAT || s->known);
    assert(task->entry);
    *reason = NULL;
    dv_client_guid(client_of(s), task->attempt);
    if (follows && !dv_status_keep_first(task->entry, s->entry, task->kind == DV_TASK_CLAIM)) return DIVVY_ENOMEM;
    if (!dv_status_stamp(task->entry, unix_ms, task->attempt)) return DIVVY_ENOMEM;
    cJSON_Delete(task->copy);
    bool shown = !task->ended && (task->done || task->refs > 1);
    task->copy = shown ? cJSON_Duplicate(task->entry, 1) : NULL; /* before it is stored: afterwards it is too late */
    if (shown && !task->copy) return DIVVY_ENOMEM;
    free(s->data);
    return dv_status_print(&s->data, task->entry, reason);
}

static bool prepare_or_fail(dv_service *s, int64_t now) {
    const char *reason;
    assert(!s->under_way && !s->resolving && s->tasks->kind != DV_TASK_LEAVE);
    s->tasks->begun = true;
    s->sent_at = dv_client_now(client_of(s)); /* before it can leave */
    int error = ++s->tasks->attempts > ATTEMPTS_MAX ? DIVVY_EBUSY : prepare(s, now, &reason);
    if (error) fail(s, error, now);
    return error == 0;
}

static dv_op role_op(const dv_service *s, dv_kind kind) {
    return (dv_op){.kind = kind,
                   .path = s->directory,
                   .data = s->role_data ? s->role_data : "",
                   .data_bytes = s->role_data ? s->role_data_bytes : 0,
                   .version = s->role_version};
}

static dv_op node_op(const dv_service *s, dv_kind kind, int32_t version) {
    return (dv_op){.kind = kind,
                   .path = s->path,
                   .data = kind == DV_DELETE ? NULL : s->data,
                   .data_bytes = kind == DV_DELETE ? 0 : strlen(s->data),
                   .mode = kind == DV_CREATE && !s->registry->config.persistent ? DV_EPHEMERAL : DV_PERSISTENT,
                   .version = version};
}

/* V11: with `bound` the write is refused once the role's node has another version. */
static void send_bound(dv_service *s, bool bound, dv_op op, int64_t now) {
    dv_op ops[2] = {role_op(s, DV_CHECK), op};
    send_write(s, bound ? ops : &op, bound ? 2 : 1, now);
}

/* The entry takes the place of what stands there, or of nothing. V11: every claim sets the role's node. */
static void put_new(dv_service *s, bool replaces, int32_t version, int64_t now) {
    if (!prepare_or_fail(s, now)) return;
    dv_op ops[3];
    size_t count = 0;
    bool claim = s->tasks->kind == DV_TASK_CLAIM;
    assert(!claim || s->role_known);
    if (claim) ops[count++] = role_op(s, DV_SET);
    if (replaces) ops[count++] = node_op(s, DV_DELETE, version);
    ops[count++] = node_op(s, DV_CREATE, 0);
    send_write(s, ops, count, now);
}

static void set_ours(dv_service *s, int32_t version, int64_t now) {
    if (!prepare_or_fail(s, now)) return;
    bool claim = s->tasks->kind == DV_TASK_CLAIM;
    assert(!claim || s->role_known);
    send_bound(s, claim, node_op(s, DV_SET, version), now);
}

/* ---- deciding, after a look ---- */

void dv_service_drop_look(dv_service *s) {
    assert(s->role_data || !s->role_data_bytes);
    dv_entry_free(s->look_entry);
    free(s->role_data);
    s->look_entry = NULL;
    s->role_data = NULL;
    s->role_data_bytes = 0;
    s->look_error = s->role_error = 0;
}

/* V9: another's entry that is healthy, or may be, stays. One that cannot be is replaced. */
static void decide_claim(dv_service *s, int64_t now) {
    dv_task *task = s->tasks;
    assert(s->role_known && s->role_error == 0 && s->look_error == 0);
    bool ours = s->look_entry && dv_status_same_identity(s->look_entry->json, task->entry);
    bool timed = s->look_entry && (s->look_entry->flags & DV_ENTRY_HAS_TTL);
    if (ours) {
        if (!dv_status_keep_first(task->entry, s->look_entry->json, true)) fail(s, DIVVY_ENOMEM, now);
        else if (is_right(s, &s->look_stat)) set_ours(s, s->look_stat.version, now);
        else put_new(s, true, s->look_stat.version, now);
        return;
    }
    if (timed && !s->registry->time.known) {
        fail(s, DIVVY_EACCES, now); /* Nothing may be written here, so nothing can be judged. */
        return;
    }
    dv_server_now server = timed ? dv_registry_server_now(s->registry) : (dv_server_now){0, 0};
    if (!s->look_entry || dv_entry_has_expired(s->look_entry, server.earliest_ms)) {
        put_new(s, true, s->look_stat.version, now);
        return;
    }
    cJSON_Delete(task->entry);
    task->entry = NULL;
    if (dv_entry_is_healthy(s->look_entry, server.latest_ms)) {
        task->entry = s->look_entry->json;
        s->look_entry->json = NULL;
    }
    dv_service_disown(s);
    dv_service_end_task(s, 0, now);
}

static void left(dv_service *s, int result, int64_t now) {
    if (!result || result == DIVVY_ENOENT) dv_service_disown(s);
    dv_service_end_task(s, result, now);
}

static void deleted(dv_service *s, int error, int64_t now) {
    if (error == 0) left(s, 0, now);
    else if (dv_outcome_unknown(error)) resolve(s, now);
    else if (may_differ(error)) look(s, now);
    else fail(s, error, now);
}

/* Another registry on our session may have stored its own. */
static bool is_anothers(const dv_service *s) {
    const char *nonce = s->look_entry ? dv_status_text(s->look_entry->json, "nonce") : NULL;
    return nonce && strcmp(nonce, s->registry->nonce) != 0;
}

/* V12. A node that is gone, or another's, leaves nothing to delete; one that a caller names goes as it was read. */
static void decide_leave(dv_service *s, int64_t now) {
    dv_task *task = s->tasks;
    bool again = task->deleting_czxid != 0, there = s->look_error == 0;
    bool same = !again || task->deleting_czxid == s->look_stat.czxid;
    bool ours = is_right(s, &s->look_stat) && !is_anothers(s);
    bool to_go = there && same && (task->any || ours);
    if (!to_go) {
        left(s, !there && task->any && !again ? DIVVY_ENOENT : 0, now);
    } else if (++task->attempts > ATTEMPTS_MAX) {
        fail(s, DIVVY_EBUSY, now);
    } else {
        task->deleting_czxid = s->look_stat.czxid;
        send_bound(s, is_unique(s), node_op(s, DV_DELETE, s->look_stat.version), now);
    }
}

static bool is_last_attempt(const dv_service *s) {
    const char *attempt = s->look_entry ? dv_status_text(s->look_entry->json, "attempt") : NULL;
    return attempt && s->tasks->attempt[0] && strcmp(attempt, s->tasks->attempt) == 0;
}

static void decide_write(dv_service *s, int64_t now) {
    bool claim = s->tasks->kind == DV_TASK_CLAIM, there = s->look_error == 0;
    bool stored = s->resolving && there && is_last_attempt(s) && is_right(s, &s->look_stat);
    s->resolving = false;
    if (stored) succeed(s, s->look_stat.version, now);
    else if (claim && s->role_error == DIVVY_ENOENT) make_role(s, now);
    else if (!there) put_new(s, false, 0, now);
    else if (claim) decide_claim(s, now);
    else if (is_right(s, &s->look_stat)) set_ours(s, s->look_stat.version, now);
    else put_new(s, true, s->look_stat.version, now);
}

static void decide(dv_service *s, int64_t now) {
    assert(s->tasks->begun);
    int error = s->role_error && s->role_error != DIVVY_ENOENT ? s->role_error : s->look_error;
    if (dv_outcome_unknown(error)) {
        resolve(s, now);
    } else if (error && error != DIVVY_ENOENT) {
        fail(s, error, now);
    } else if (s->tasks->kind == DV_TASK_LEAVE) {
        s->resolving = false;
        decide_leave(s, now);
    } else if (dv_task_is_dropped(s->tasks)) {
        dv_service_go(s, now);
    } else {
        decide_write(s, now);
    }
}

/* ---- looking ---- */

static void on_role(void *context, const dv_reply *reply, int64_t now) {
    dv_service *s = context;
    assert(s->under_way > 0 && !s->role_data);
    s->role_error = reply->error;
    s->role_known = reply->error == 0;
    if (reply->error == 0) {
        s->role_version = reply->stat->version;
        s->role_data = malloc(reply->data_bytes + 1);
        if (!s->role_data) s->role_error = DIVVY_ENOMEM; /* V11: the role is set to its own data. */
        s->role_data_bytes = s->role_data ? reply->data_bytes : 0;
        if (s->role_data_bytes) memcpy(s->role_data, reply->data, reply->data_bytes);
    }
    if (s->under_way > 1) s->under_way--;
    else if (still_at_work(s, reply->error, now)) fail(s, DIVVY_ENOMEM, now); /* The node's read was not sent. */
}

static void on_node(void *context, const dv_reply *reply, int64_t now) {
    dv_service *s = context;
    if (!still_at_work(s, reply->error, now)) return;
    assert(!s->look_entry);
    s->look_error = reply->error;
    bool of_ours = s->tasks->kind == DV_TASK_LEAVE && !s->tasks->any;
    bool parse = s->tasks->kind == DV_TASK_CLAIM || of_ours || s->resolving;
    int error = 0;
    if (reply->error == 0) {
        s->look_stat = *reply->stat;
        if (parse)
            error = dv_registry_parse(s->registry, &s->look_entry, s->role_node, s->id_node, reply->data,
                                      reply->data_bytes, reply->stat);
    }
    if (error == DIVVY_ENOMEM) fail(s, error, now);
    else decide(s, now);
}

/* V11: the role's node is read first, so no decision about the node is older than the version that binds it. */
static void look(dv_service *s, int64_t now) {
    assert(!s->under_way);
    dv_znode *znode = client_of(s)->znode;
    dv_service_drop_look(s);
    s->tasks->begun = true;
    bool bound = s->tasks->kind == DV_TASK_CLAIM || (s->tasks->kind == DV_TASK_LEAVE && is_unique(s));
    if (bound && dv_znode_get(znode, s->directory, NULL, on_role, s) != 0) {
        fail(s, DIVVY_ENOMEM, now);
        return;
    }
    s->under_way += bound;
    if (dv_znode_get(znode, s->path, NULL, on_node, s) == 0) s->under_way++;
    else if (!s->under_way) fail(s, DIVVY_ENOMEM, now);
}

static void on_barrier(dv_barrier_wait *wait, int error, int64_t now) {
    dv_service *s = DV_CONTAINER(wait, dv_service, barrier);
    if (still_at_work(s, error, now)) look(s, now);
}

/* R1. */
static void resolve(dv_service *s, int64_t now) {
    (void)now;
    s->resolving = true;
    s->under_way++;
    dv_client_barrier(client_of(s), &s->barrier, on_barrier);
}

/* ---- beginning ---- */

static void write_entry(dv_service *s, int64_t now) {
    if (s->resolving) resolve(s, now);
    else if (s->tasks->kind == DV_TASK_CLAIM && !(s->known && s->role_known)) look(s, now);
    else if (s->known) set_ours(s, s->version, now);
    else put_new(s, false, 0, now);
}

static void on_time(void *context, int error, int64_t now) {
    dv_service *s = context;
    if (!still_at_work(s, error, now)) return;
    assert(s->tasks->kind != DV_TASK_LEAVE);
    if (dv_task_is_dropped(s->tasks)) dv_service_go(s, now);
    else write_entry(s, now); /* Also without it, if it cannot be had. */
}

/* V6: the first write of all waits until the servers' clock is known, a claim until what is known is not old. */
void dv_service_begin_task(dv_service *s, int64_t now) {
    dv_task_kind kind = s->tasks->kind;
    bool needs_time = kind == DV_TASK_CLAIM || (kind == DV_TASK_BEAT && !dv_registry_knows_time(s->registry));
    assert(!s->under_way);
    s->time_wait = (dv_time_wait){.makes_root = true, .done = on_time, .context = s};
    if (needs_time && dv_registry_learn_time(s->registry, &s->time_wait)) s->under_way++;
    else if (kind == DV_TASK_LEAVE) look(s, now);
    else write_entry(s, now);
}
