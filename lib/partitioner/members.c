/* Being in the party, and what it tells: who settled, who of them is real. SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "partitioner/handover.h"
#include "plan/member_data.h"
#include "znode/path.h"

/* ---- the settled party ---- */

void dv_members_free(dv_members *members) {
    for (size_t i = 0; i < members->count; i++) free(members->members[i].node);
    free(members->members);
    *members = (dv_members){NULL, 0};
}

/* P3: a plan decides where all members follow plans, else the least that any member can. */
static void use_party(divvy_partitioner *p, int64_t now) {
    dv_state_set_kazoo_seen(p, dv_target_has_kazoo(&p->party));
    dv_target_warn(p, &p->party, dv_membership_name(p->membership));
    dv_plan_host_settled(p, now);
}

static int by_node(const void *left, const void *right) {
    return strcmp(((const dv_member *)left)->node, ((const dv_member *)right)->node);
}

static dv_member *find_member(const dv_members *party, const char *node) {
    const dv_member key = {.node = (char *)(uintptr_t)node};
    return party->count ? bsearch(&key, party->members, party->count, sizeof key, by_node) : NULL;
}

static void all_looked(divvy_partitioner *p, int64_t now) {
    if (p->party_stale) { /* A newer party has settled, or the link went: another watch tells of it. */
        if (p->watch) dv_roll_watch_stop(p->watch);
        return;
    }
    use_party(p, now);
}

static int on_looked(void *partitioner, const char *path, const dv_reply *reply, int64_t now) {
    (void)now;
    divvy_partitioner *p = partitioner;
    dv_member *m = find_member(&p->party, dv_path_last(path)); /* The party stays what it is until all are looked at. */
    if (!m) return 0;                                          /* A server has named it with a '/'. */
    if (reply->error == 0 && reply->stat->ephemeral_owner == 0) m->kind = DV_STRAY;
    /* ENOENT: the party settles again soon, and until then it counts as it did. EACCES: since 3.9 it is hidden from
     * those who may not read it. It counts. */
    if (reply->error == 0 || reply->error == DIVVY_ENOENT || reply->error == DIVVY_EACCES) m->looked = true;
    else p->party_stale = true;
    return 0;
}

static void on_all_looked(void *partitioner, int error, int64_t now) {
    divvy_partitioner *p = partitioner;
    assert(p->looks);
    p->looks = NULL;
    if (error) p->party_stale = true; /* Not all could be asked for. */
    if (p->state != DIVVY_FAILURE && p->life != DV_LIFE_REJOINING) all_looked(p, now);
    dv_op_end(p, now);
}

static bool to_be_looked_at(const divvy_partitioner *p, const dv_member *m) {
    if (m->kind == DV_STRAY || m->looked) return false;
    return !p->membership || strcmp(m->node, dv_membership_name(p->membership)) != 0;
}

bool dv_members_look_at_all(void *partitioner) {
    divvy_partitioner *p = partitioner;
    static const dv_fetch_kind kind = {DV_EXISTS, SIZE_MAX, on_looked, on_all_looked};
    if (p->looks) return false;
    size_t count = 0;
    const char **nodes = malloc((p->party.count + 1) * sizeof *nodes);
    for (size_t i = 0; nodes && i < p->party.count; i++) {
        if (to_be_looked_at(p, &p->party.members[i])) nodes[count++] = p->party.members[i].node;
    }
    int error = nodes ? 0 : DIVVY_ENOMEM;
    if (count) error = dv_fetch_start(&p->looks, p->object.client, &kind, p->party_path, nodes, count, p);
    free(nodes);
    if (error) p->party_stale = true;
    if (p->looks) dv_op_begin(p);
    else if (p->party_stale && p->watch) dv_roll_watch_stop(p->watch); /* The next one settles it again. */
    return !p->looks && !p->party_stale;
}

/* P2: if so, each member has to know of all nodes whether they are ephemeral; else only the writer of the plan. */
bool dv_members_names_decide(const divvy_partitioner *p) {
    for (size_t i = 0; i < p->party.count; i++) {
        const dv_member *m = &p->party.members[i];
        if (m->kind == DV_KAZOO || (m->kind == DV_DIVVY && m->level < DV_LEVEL_PLAN)) return true;
    }
    return !p->follower;
}

/* Takes the party that settled. Facts seen of a node hold as long as it is in the party: its name is used once (R2). */
static bool take_party(divvy_partitioner *p, const char *const *names, size_t count) {
    dv_members party = {calloc(count + 1, sizeof *party.members), 0};
    p->nobody_came = p->party.count > 0;
    for (size_t i = 0; party.members && i < count; i++) {
        char *node = strdup(names[i]);
        if (!node) break;
        dv_member member = dv_member_parse(node);
        const dv_member *known = find_member(&p->party, node);
        if (known && known->looked) member.kind = known->kind;
        member.looked = known && known->looked;
        if (!known) p->nobody_came = false;
        party.members[party.count++] = member;
    }
    assert(party.count <= count);
    dv_members_free(&p->party);
    if (party.count) qsort(party.members, party.count, sizeof *party.members, by_node);
    p->party = party;
    return party.members && party.count == count;
}

void dv_members_note_ghost(void *partitioner, const char *node) {
    divvy_partitioner *p = partitioner;
    dv_member *m = find_member(&p->party, node);
    if (!m) return;
    m->looked = true;
    m->kind = DV_STRAY;
    dv_target_warn_of_strays(p, &p->party);
}

static void restart_watch(divvy_partitioner *p);

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    divvy_partitioner *p = owner;
    if (p->state == DIVVY_FAILURE) return;
    assert(p->watch && p->life != DV_LIFE_REJOINING);
    if (p->looks) { /* Answers about the party before this one are under way: read it again after them. */
        p->party_stale = true;
        return;
    }
    p->party_stale = false;
    p->party_pzxid = pzxid;
    if (!take_party(p, names, count)) {
        dv_state_fail(p, DIVVY_ENOMEM, DIVVY_REASON_MEMBERS, now, "out of memory");
        return;
    }
    if (!dv_members_names_decide(p) || dv_members_look_at_all(p)) use_party(p, now);
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
    assert(p->watch);
    p->watch = NULL;
    if (p->state != DIVVY_FAILURE && p->membership && dv_membership_joined(p->membership)) restart_watch(p);
    dv_op_end(p, now);
}

/* P11: what a kazoo member would take under another lock must be free before its boundary has passed. */
static void on_seen(void *owner, const char *const *names, size_t count, int64_t now) {
    const divvy_partitioner *p = owner;
    for (size_t i = 0; i < count; i++) {
        /* Nodes of the party that settled last are judged already, as kazoo members or as strays. */
        if (!dv_member_is_kazoo(names[i]) || find_member(&p->party, names[i])) continue;
        dv_state_kazoo_seen(owner, now);
        return;
    }
}

/* P11: only what stands under two locks cannot wait until the party has settled. */
static bool on_needs_names(void *owner) {
    return ((const divvy_partitioner *)owner)->has_encoded;
}

static bool stands_before(const dv_member *a, const dv_member *b) {
    int order = strcmp(a->identifier, b->identifier);
    return order ? order < 0 : strcmp(a->node, b->node) < 0;
}

/* W18: our place in the row of D37, in which only those stand that may know of rolls. */
static dv_roll_role on_role(void *owner) {
    const divvy_partitioner *p = owner;
    const dv_member *own = p->membership ? find_member(&p->party, dv_membership_name(p->membership)) : NULL;
    dv_roll_role role = {.is_in_row = own && own->kind == DV_DIVVY && own->level >= DV_LEVEL_BALANCE};
    for (size_t i = 0; role.is_in_row && i < p->party.count; i++) {
        const dv_member *m = &p->party.members[i];
        role.place += m->kind == DV_DIVVY && m->level >= DV_LEVEL_BALANCE && stands_before(m, own);
    }
    role.may_listen = role.is_in_row && p->config.mode != DIVVY_EAGER && !on_needs_names(owner);
    return role;
}

void dv_members_items_changed(divvy_partitioner *p, int64_t now) {
    if (p->watch) dv_roll_watch_look(p->watch, now);
}

static void restart_watch(divvy_partitioner *p) {
    static const dv_roll_watch_events events = {.watch = {.changed = dv_state_change_seen,
                                                          .settled = on_settled,
                                                          .failed = on_watch_failed,
                                                          .gone = on_watch_gone,
                                                          .needs_names = on_needs_names,
                                                          .seen = on_seen},
                                                .role = on_role};
    const dv_patience patience = {p->config.time_boundary_ms, p->config.leave_boundary_ms, p->config.settle_max_ms};
    /* W18 goes by our node, which is new. */
    if (p->watch) dv_members_items_changed(p, dv_client_now(p->object.client));
    if (p->watch || p->state == DIVVY_FAILURE || p->object.client->life == DV_CLIENT_CLOSED) return;
    p->watch = dv_roll_watch_start(p->object.client, p->party_path, &patience, &events, p);
    if (p->watch) dv_op_begin(p);
    else dv_client_again(p->object.client);
}

/* ---- our own node ---- */

static void on_joined(void *owner, int64_t now) {
    divvy_partitioner *p = owner;
    assert(p->membership);
    p->joins++;
    dv_death_watch_joined(p->object.client->death_watch, p->path, p->identifier);
    dv_membership_describe(p->membership, p->later_data);
    dv_own_loads_joined(p, now);
    restart_watch(owner);     /* From here on the party that is read has us in it. */
    dv_audit_now(owner, now); /* Somebody who deleted our first node may have deleted locks too. */
}

/* D31: later nodes tell when the first was made, since they are no sign of another configuration or process. */
static void note_first(divvy_partitioner *p, int64_t czxid) {
    p->first_czxid = czxid;
    dv_member_data_set_first(p->later_data, czxid);
}

/* D31: our first node is to come after all that is there, should its own czxid never be known. */
static void on_party_looked(void *owner, int64_t pzxid) {
    divvy_partitioner *p = owner;
    if (p->first_czxid == 0) note_first(p, pzxid + 1);
}

/* D31: where the czxid of a later one is smaller, the servers count afresh. */
static void on_own_seen(void *owner, int64_t czxid) {
    divvy_partitioner *p = owner;
    if (p->joins == 1 || czxid < p->first_czxid) note_first(p, czxid);
}

static void on_named(void *owner, const char *name, int64_t now) {
    divvy_partitioner *p = owner;
    if (p->first_czxid == 0) note_first(p, 1); /* The party was not there, so nobody was in it. */
    dv_handover_named(owner, name, now);
}

/* D31: the create may have been carried out, though its answer never came. */
static void note_unanswered_join(divvy_partitioner *p) {
    if (p->joins == 0 && p->first_czxid > 0) p->joins = 1;
}

static void on_missed(void *owner) {
    divvy_partitioner *p = owner;
    note_unanswered_join(p);
    dv_membership_describe(p->membership, p->later_data);
}

static void on_membership_gone(void *owner, int64_t now) {
    divvy_partitioner *p = owner;
    assert(p->membership);
    p->membership = NULL;
    dv_death_watch_left(p->object.client->death_watch, p->path, p->identifier);
    note_unanswered_join(p);
    dv_client_changed(p->object.client);
    dv_handover_ended(p, now);
    if (p->life >= DV_LIFE_FINISHING) dv_items_tidy(p);
    dv_op_end(p, now);
}

static void join(divvy_partitioner *p, int64_t now) {
    static const dv_membership_events events = {.joined = on_joined,
                                                .failed = dv_directories_fail,
                                                .gone = on_membership_gone,
                                                .looked = on_party_looked,
                                                .seen = on_own_seen,
                                                .named = on_named,
                                                .missed = on_missed};
    if (p->membership) return;
    const char *data = p->joins > 0 ? p->later_data : p->member_data;
    int error = dv_membership_join(&p->membership, p->object.client, p->party_path, p->member_suffix, data, &events, p);
    if (error == 0) dv_op_begin(p);
    else dv_state_fail(p, error, DIVVY_REASON_TIMEOUT, now, "the party cannot be joined: %s", divvy_strerror(error));
}

/* ---- the beginning ---- */

/* Does whatever needs a connection and does not look after itself. */
void dv_members_connected(divvy_partitioner *p, int64_t now) {
    divvy_client *client = p->object.client;
    if (p->state == DIVVY_FAILURE || p->life == DV_LIFE_REJOINING || !dv_client_connected(client)) return;
    dv_directories_connected(p);
    dv_items_claim(p, now);
    dv_handover_connected(p);
    dv_follow_connected(p->follower, now);
}

void dv_members_again(divvy_partitioner *p, int64_t now) {
    if (p->membership && dv_membership_joined(p->membership) && p->life != DV_LIFE_REJOINING) restart_watch(p);
    dv_members_connected(p, now);
}

void dv_members_start(divvy_partitioner *p, int64_t now) {
    dv_follow_start(p->follower, now);
    join(p, now);
    dv_members_connected(p, now);
}
