/* Being in the party, and what it tells: who settled, who of them is real. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "partitioner/partitioner.h"
#include "znode/ensure.h"
#include "znode/path.h"

static void paths_failed(divvy_partitioner *p, int error, const char *path, int64_t now) {
    dv_state_fail(p, error, DIVVY_REASON_DENIED, now, "%s cannot be made: %s", path, divvy_strerror(error));
}

/* ---- the settled party ---- */

void dv_members_free(dv_members *members) {
    for (size_t i = 0; i < members->count; i++) free(members->members[i].node);
    free(members->members);
    *members = (dv_members){NULL, 0};
}

static void forget_known_kazoo(divvy_partitioner *p) {
    for (size_t i = 0; i < p->known_kazoo_count; i++) free(p->known_kazoo[i]);
    free(p->known_kazoo);
    p->known_kazoo = NULL;
    p->known_kazoo_count = 0;
}

void dv_members_forget(divvy_partitioner *p) {
    dv_members_free(&p->party);
    forget_known_kazoo(p);
}

static void use_names(divvy_partitioner *p, int64_t now) {
    uint8_t *mine = calloc(p->dealt->count, 1);
    int error = mine ? dv_target_compute(p, &p->party, dv_membership_name(p->membership), mine) : DIVVY_ENOMEM;
    /* Our own node is missing when somebody deleted it: it is made again, and the party settles again. */
    if (error == 0) dv_state_target_settled(p, mine, DIVVY_REASON_MEMBERS, now);
    else if (error != DIVVY_ENOENT)
        dv_state_fail(p, error, DIVVY_REASON_MEMBERS, now, "no share could be computed: %s", divvy_strerror(error));
    free(mine);
}

static bool has_kazoo(const divvy_partitioner *p) {
    for (size_t i = 0; i < p->party.count; i++) {
        if (p->party.members[i].kind == DV_KAZOO) return true;
    }
    return false;
}

/* P3: a plan decides where all members follow plans, else the least that any member can. */
static void use_party(divvy_partitioner *p, int64_t now) {
    p->kazoo_seen = has_kazoo(p);
    dv_target_warn(p, &p->party, dv_membership_name(p->membership));
    if (!dv_follow_settled(p, p->party_pzxid, now)) use_names(p, now);
}

static bool is_known_kazoo(const divvy_partitioner *p, const char *node) {
    for (size_t i = 0; i < p->known_kazoo_count; i++) {
        if (strcmp(p->known_kazoo[i], node) == 0) return true;
    }
    return false;
}

/* Those of the known that are still there stay known; a party of kazoo members is small, so lists will do. */
static void keep_known_kazoo(divvy_partitioner *p) {
    char **known = calloc(p->party.count + 1, sizeof *known);
    size_t count = 0;
    for (size_t i = 0; known && i < p->party.count; i++) {
        if (p->party.members[i].kind == DV_KAZOO) known[count] = strdup(p->party.members[i].node);
        if (known[count]) count++;
    }
    forget_known_kazoo(p);
    p->known_kazoo = known;
    p->known_kazoo_count = count;
}

typedef struct {
    divvy_partitioner *p;
    size_t index;
    char *path;
} look;

static void all_looked(divvy_partitioner *p, int64_t now) {
    if (p->party_stale) { /* A newer party settled meanwhile, or the link went: a new watch tells it anew. */
        if (p->watch) dv_patient_watch_stop(p->watch);
        return;
    }
    keep_known_kazoo(p);
    use_party(p, now);
}

static void on_looked(void *context, const dv_reply *reply, int64_t now) {
    look *l = context;
    divvy_partitioner *p = l->p;
    if (reply->error == 0 && reply->stat->ephemeral_owner == 0) p->party.members[l->index].kind = DV_STRAY;
    /* Gone meanwhile: the party settles again soon, and until then it counts as it did. */
    if (reply->error && reply->error != DIVVY_ENOENT) p->party_stale = true;
    free(l->path);
    free(l);
    bool all = --p->party_looks == 0 && p->state != DIVVY_FAILURE;
    if (all && p->rejoining) dv_members_rejoin(p, now);
    else if (all) all_looked(p, now);
    dv_object_unref(&p->object);
}

/* P2: an untagged child counts as a kazoo member only if it is ephemeral; a read tells, once for each of them. */
static void look_at_kazoo(divvy_partitioner *p, size_t index) {
    look *l = calloc(1, sizeof *l);
    if (!l) return;
    l->p = p;
    l->index = index;
    l->path = dv_path_join(p->party_path, p->party.members[index].node);
    if (!l->path || dv_znode_exists(p->object.client->znode, l->path, NULL, on_looked, l) != 0) {
        free(l->path);
        free(l);
        p->party_stale = true;
        return;
    }
    p->party_looks++;
    dv_object_ref(&p->object);
}

static bool take_party(divvy_partitioner *p, const char *const *names, size_t count) {
    dv_members_free(&p->party);
    p->party.members = calloc(count + 1, sizeof *p->party.members);
    if (!p->party.members) return false;
    for (size_t i = 0; i < count; i++) {
        char *node = strdup(names[i]);
        if (!node) return false;
        p->party.members[p->party.count++] = dv_member_parse(node);
    }
    return true;
}

static void on_changed(void *owner, int64_t now) {
    dv_state_change_seen(owner, now);
}

static void restart_watch(divvy_partitioner *p);

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    divvy_partitioner *p = owner;
    if (p->state == DIVVY_FAILURE) return;
    if (p->party_looks) { /* Answers about the party before this one are under way: read it again after them. */
        p->party_stale = true;
        return;
    }
    p->party_stale = false;
    p->party_pzxid = pzxid;
    if (!take_party(p, names, count)) {
        dv_state_fail(p, DIVVY_ENOMEM, DIVVY_REASON_MEMBERS, now, "out of memory");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const dv_member *m = &p->party.members[i];
        if (m->kind == DV_KAZOO && !is_known_kazoo(p, m->node)) look_at_kazoo(p, i);
    }
    if (p->party_looks == 0) all_looked(p, now);
}

static void on_watch_failed(void *owner, int error, int64_t now) {
    divvy_partitioner *p = owner;
    /* The directory itself was deleted, and our node with it: both are made again, and then watched again. */
    if (error != DIVVY_ENOENT)
        dv_state_fail(p, error, DIVVY_REASON_DENIED, now, "%s cannot be read: %s", p->party_path,
                      divvy_strerror(error));
}

static void on_watch_gone(void *owner, int64_t now) {
    divvy_partitioner *p = owner;
    p->watch = NULL;
    if (p->state != DIVVY_FAILURE && p->membership && dv_membership_joined(p->membership)) restart_watch(p);
    dv_members_rejoin(p, now);
    dv_object_unref(&p->object);
}

/* Whether it was in the party that settled last: then it is judged already, as a kazoo member or as a stray. */
static bool is_known(const divvy_partitioner *p, const char *node) {
    for (size_t i = 0; i < p->party.count; i++) {
        if (strcmp(p->party.members[i].node, node) == 0) return true;
    }
    return false;
}

/* P11: a kazoo member takes nothing before its boundary has passed; until then what it would take under another lock
 * must be free. */
static void on_seen(void *owner, const char *const *names, size_t count, int64_t now) {
    for (size_t i = 0; i < count; i++) {
        if (!dv_member_is_kazoo(names[i]) || is_known(owner, names[i])) continue;
        dv_state_kazoo_seen(owner, now);
        return;
    }
}

/* P11: only what stands under two locks cannot wait until the party has settled. */
static bool on_wants_names(void *owner) {
    const divvy_partitioner *p = owner;
    for (size_t i = 0; i < p->dealt->count; i++) {
        if (!dv_table(p)->dealt[i]->plain) return true;
    }
    return false;
}

static void restart_watch(divvy_partitioner *p) {
    static const dv_patient_watch_events events = {on_changed,    on_settled,     on_watch_failed,
                                                   on_watch_gone, on_wants_names, on_seen};
    const dv_patience patience = {p->config.time_boundary_ms, p->config.leave_boundary_ms, p->config.settle_max_ms};
    if (p->watch || p->state == DIVVY_FAILURE || p->object.client->closed) return;
    p->watch = dv_patient_watch_start(p->object.client, p->party_path, &patience, &events, p);
    if (p->watch) dv_object_ref(&p->object);
    else dv_client_again(p->object.client);
}

/* ---- our own node ---- */

static void on_joined(void *owner, int64_t now) {
    restart_watch(owner);     /* From here on the party that is read has us in it. */
    dv_audit_now(owner, now); /* Whoever deleted our node, if this is not the first, may have deleted locks too. */
}

static void on_membership_failed(void *owner, int error, const char *path, int64_t now) {
    paths_failed(owner, error, path, now);
}

static void on_membership_gone(void *owner, int64_t now) {
    divvy_partitioner *p = owner;
    p->membership = NULL;
    dv_client_changed(p->object.client);
    dv_members_rejoin(p, now);
    if (p->finishing) dv_items_tidy(p, now);
    dv_object_unref(&p->object);
}

static void join(divvy_partitioner *p, int64_t now) {
    static const dv_membership_events events = {on_joined, on_membership_failed, on_membership_gone, false};
    if (p->membership) return;
    int error = dv_membership_join(&p->membership, p->object.client, p->party_path, p->member_suffix, p->member_data,
                                   &events, p);
    if (error == 0) dv_object_ref(&p->object);
    else dv_state_fail(p, error, DIVVY_REASON_TIMEOUT, now, "the party cannot be joined: %s", divvy_strerror(error));
}

/* ---- the beginning ---- */

static void on_locks_path(void *context, int error, int64_t now) {
    divvy_partitioner *p = context;
    p->ready_asked = false;
    bool over = dv_session_over(error);
    if (p->state != DIVVY_FAILURE && !over) {
        if (error == 0) dv_items_read_directories(p);
        else if (dv_outcome_unknown(error)) dv_members_connected(p, now);
        else paths_failed(p, error, p->locks_path, now);
    }
    dv_members_rejoin(p, now);
    dv_object_unref(&p->object);
}

/* Whatever needs a connection and does not look after itself. */
void dv_members_connected(divvy_partitioner *p, int64_t now) {
    divvy_client *client = p->object.client;
    if (p->state == DIVVY_FAILURE || p->rejoining || !dv_client_connected(client)) return;
    if (!p->ready && !p->ready_asked) {
        p->ready_asked = dv_ensure_path(client->znode, p->locks_path, on_locks_path, p) == 0;
        if (p->ready_asked) dv_object_ref(&p->object);
        else dv_client_again(client);
    }
    dv_items_claim(p, now);
    dv_follow_connected(p, now);
}

void dv_members_again(divvy_partitioner *p, int64_t now) {
    if (p->membership && dv_membership_joined(p->membership) && !p->left && !p->rejoining) restart_watch(p);
    dv_members_connected(p, now);
    dv_members_rejoin(p, now);
}

void dv_members_start(divvy_partitioner *p, int64_t now) {
    dv_follow_start(p);
    join(p, now);
    dv_members_connected(p, now);
}

void dv_members_rejoin(divvy_partitioner *p, int64_t now) {
    bool released = p->state == DIVVY_ALLOCATING;
    if (!p->rejoining || !released || p->membership || p->watch || p->departing || p->party_looks || p->ready_asked ||
        !dv_follow_at_rest(p))
        return;
    p->rejoining = p->lost_session = p->left = p->ready = false;
    p->change_seen = false;
    dv_members_forget(p);
    dv_members_start(p, now);
}

void dv_members_stop(divvy_partitioner *p) {
    if (p->watch) dv_patient_watch_stop(p->watch);
    if (p->membership && !p->left) dv_membership_leave(p->membership);
    p->left = true;
    dv_follow_stop(p);
}
