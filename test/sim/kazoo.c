/* A kazoo member: its SetPartitioner as a state machine on a plain client. SPDX-License-Identifier: Apache-2.0
 *
 * The algorithm of kazoo.recipe.partitioner 2.8: join the party, wait until it has stood still for the boundary, read
 * it once more, take a lock for each item of sorted(items)[i::n], one after the other; a lock that is not had within a
 * second is given up and tried again; a change of the party, or any session event, releases everything. Its user works
 * from ACQUIRED until it answers a RELEASE, as kazoo's manual has it; check_kazoo.c holds that against the invariants.
 * kazoo has no clock: it takes a session for lost when a server says so. In one thing the model is better than kazoo:
 * before it looks for a node whose create was not answered it makes sure that it sees it; kazoo leaves nodes behind
 * there (#732), which nobody could share a pool with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "mutant.h"
#include "sim.h"
#include "znode/path.h"
#include "znode/sequence.h"

enum { HEX_BYTES = 33, LOCK_TIMEOUT_MS = 1000, RETRY_MS = 50, PATHS = 160 };

typedef enum {
    ENSURE,  /* the three directories of the pool, one after the other */
    JOIN,    /* the party */
    READ,    /* its children, with a watch */
    SETTLE,  /* for the boundary */
    COMPUTE, /* the share, from a second read */
    ENSURE_DIRECTORY,
    FIND,   /* our node, when a create was tried before */
    CREATE, /* it */
    LIST,   /* who is before us? */
    WATCH,
    WAIT,
    CLEAN, /* the second is over: the node goes */
    ACQUIRED,
    RELEASE,   /* the user is asked to let go */
    RELEASING, /* every lock */
    FAILED,
} stage;

static const char *const stage_names[] = {
    "ensuring", "joining",  "reading", "settling", "computing", "ensuring a directory", "finding",   "creating",
    "listing",  "watching", "waiting", "cleaning", "ACQUIRED",  "in RELEASE",           "releasing", "FAILED"};

typedef struct {
    size_t item;
    char prefix[HEX_BYTES + 8];
    char node[SIM_NODE_BYTES]; /* "": not known */
    bool tried;
} lock;

struct sim_kazoo {
    sim_member *m;
    divvy_client *client;
    dv_listener listener;
    dv_watch party_watch, lock_watch;
    stage stage;
    bool busy, changed, connected_before, unsure;
    bool at_work; /* the user is, with all of the share */
    dv_barrier_wait barrier;
    unsigned ensured;
    int64_t until; /* of SETTLE, WAIT and RELEASE */
    int64_t boundary_ms;
    char party_path[PATHS], path[PATHS];
    lock locks[SIM_ITEMS_MAX];
    size_t lock_count, wanted, at; /* those that were tried; the size of the share; the one that is being taken */
};

static void go(sim_kazoo *k, int64_t now);

static void enter(sim_kazoo *k, stage to) {
    k->stage = to;
}

/* The user is slow to release only while there are faults, since the bound of L1 counts on quick ones. */
static void begin_release(sim_kazoo *k, int64_t now) {
    if (k->stage == RELEASE || k->stage == RELEASING || k->stage == FAILED) return;
    sim_trace(k->m->world, "%s (kazoo) releases everything", k->m->name);
    enter(k, RELEASE);
    k->until = now + k->m->user.react_ms;
    bool slow = !k->m->world->healed && sim_chance(&k->m->user.random, 10);
    if (slow) k->until += sim_between(&k->m->user.random, 1, 2 * k->m->client_config.session_timeout_ms);
}

/* ---- computing ---- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void hex(sim_random *r, char out[HEX_BYTES]) {
    snprintf(out, HEX_BYTES, "%016llx%016llx", (unsigned long long)sim_draw(r), (unsigned long long)sim_draw(r));
}

static void compute(sim_kazoo *k, const dv_reply *reply, int64_t now) {
    const char *members[64];
    size_t count = 0, own = SIZE_MAX;
    for (size_t i = 0; i < reply->child_count && count < 64; i++) {
        const char *dash = strchr(reply->children[i], '-');
        members[count++] = dash ? dash + 1 : reply->children[i]; /* whatever it is */
    }
    qsort(members, count, sizeof *members, compare_names);
    for (size_t i = count; i-- > 0;) {
        if (strcmp(members[i], k->m->name) == 0) own = i;
    }
    if (own == SIZE_MAX) { /* An exception in its thread, which leaves it in ALLOCATING for ever; here it gives up. */
        enter(k, FAILED);
        return;
    }
    k->lock_count = k->wanted = k->at = 0;
    for (size_t item = own; item < k->m->world->script->items; item += count) {
        lock *l = &k->locks[k->wanted++];
        *l = (lock){.item = item};
        char text[HEX_BYTES];
        hex(&k->m->user.random, text);
        snprintf(l->prefix, sizeof l->prefix, "%s__lock__", text);
    }
    enter(k, k->wanted ? ENSURE_DIRECTORY : ACQUIRED);
    k->at_work = k->stage == ACQUIRED;
    if (k->stage == ACQUIRED && k->changed) begin_release(k, now);
}

/* ---- one lock ---- */

static const char *directory_of(sim_kazoo *k, const lock *l) {
    snprintf(k->path, sizeof k->path, "/pool/locks/%s", k->m->world->items[l->item]);
    return k->path;
}

static const char *node_path(sim_kazoo *k, const lock *l) {
    snprintf(k->path, sizeof k->path, "/pool/locks/%s/%s", k->m->world->items[l->item], l->node);
    return k->path;
}

static void keep_node(lock *l, const char *name) {
    snprintf(l->node, sizeof l->node, "%s", name);
}

static void find(lock *l, const dv_reply *list) {
    l->node[0] = '\0';
    for (size_t i = 0; i < list->child_count; i++) {
        if (strncmp(list->children[i], l->prefix, strlen(l->prefix)) == 0) keep_node(l, list->children[i]);
    }
}

static void locked(sim_kazoo *k, int64_t now) {
    k->at++;
    if (k->changed) {
        enter(k, RELEASING);
    } else if (k->at < k->wanted) {
        enter(k, ENSURE_DIRECTORY);
    } else {
        k->m->world->coverage->meetings[SIM_MET_KAZOO_ACQUIRED]++;
        sim_trace(k->m->world, "%s (kazoo) has acquired", k->m->name);
        k->at_work = true;
        enter(k, ACQUIRED);
    }
    (void)now;
}

static void look_before(sim_kazoo *k, const dv_reply *list, int64_t now) {
    lock *l = &k->locks[k->at];
    const char *before = NULL;
    int32_t own, sequence, nearest = 0;
    bool there = false;
    if (!dv_sequence_parse(l->node, "__lock__", &own)) own = 0;
    for (size_t i = 0; i < list->child_count; i++) {
        const char *name = list->children[i];
        there |= strcmp(name, l->node) == 0;
        if (!dv_sequence_parse(name, "__lock__", &sequence) || dv_sequence_compare(sequence, own) >= 0) continue;
        if (before && dv_sequence_compare(sequence, nearest) <= 0) continue;
        before = name;
        nearest = sequence;
    }
    if (!there) {
        enter(k, FIND);
    } else if (!before || DV_MUTANT(kazoo_without_look)) {
        locked(k, now);
    } else {
        snprintf(k->path, sizeof k->path, "/pool/locks/%s/%s", k->m->world->items[l->item], before);
        enter(k, WATCH);
    }
}

/* ---- replies ---- */

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    sim_kazoo *k = context;
    k->busy = false;
    if (dv_session_over(reply->error) || k->stage == FAILED) return;
    if (dv_outcome_unknown(reply->error)) { /* once more, when connected */
        k->unsure = true;
        return;
    }
    lock *l = &k->locks[k->at];
    switch (k->stage) {
    case ENSURE:
        if (++k->ensured == 3) enter(k, JOIN);
        break;
    case JOIN: enter(k, READ); break;
    case READ:
        enter(k, SETTLE);
        k->until = now + k->boundary_ms;
        break;
    case COMPUTE: compute(k, reply, now); break;
    case ENSURE_DIRECTORY: enter(k, l->tried ? FIND : CREATE); break;
    case FIND:
        find(l, reply);
        enter(k, l->node[0] ? LIST : CREATE);
        break;
    case CREATE:
        if (reply->error == 0) keep_node(l, dv_path_last(reply->path));
        enter(k, reply->error == 0 ? LIST : ENSURE_DIRECTORY);
        break;
    case LIST: look_before(k, reply, now); break;
    case WATCH:
        enter(k, reply->error ? LIST : WAIT);
        k->until = now + LOCK_TIMEOUT_MS;
        break;
    case CLEAN:
        l->node[0] = '\0';
        enter(k, k->changed ? RELEASING : FIND);
        break;
    case RELEASING:
        if (l->node[0]) k->lock_count--; /* it was the delete */
        else find(l, reply);
        if (!l->node[0]) k->lock_count--;
        break;
    default: break;
    }
    go(k, now);
}

static void on_party(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    sim_kazoo *k = DV_CONTAINER(watch, sim_kazoo, party_watch);
    (void)kind;
    sim_trace(k->m->world, "%s (kazoo) sees the party change, %s", k->m->name, stage_names[k->stage]);
    k->changed = true;
    if (k->stage == ACQUIRED) begin_release(k, now);
}

static void on_lock(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    sim_kazoo *k = DV_CONTAINER(watch, sim_kazoo, lock_watch);
    (void)kind;
    if (k->stage == WAIT) enter(k, LIST);
    go(k, now);
}

/* ---- the next step ---- */

static void create(sim_kazoo *k, const char *path, const char *data, int mode) {
    k->busy = dv_znode_create(k->client->znode, path, data, strlen(data), mode, on_reply, k) == 0;
}

static void list(sim_kazoo *k, const char *path, dv_watch *watch) {
    k->busy = dv_znode_children(k->client->znode, path, watch, on_reply, k) == 0;
}

static void release_one(sim_kazoo *k) {
    if (k->lock_count == 0) {
        enter(k, READ);
        return;
    }
    k->at = k->lock_count - 1;
    lock *l = &k->locks[k->at];
    if (!l->node[0]) list(k, directory_of(k, l), NULL);
    else k->busy = dv_znode_delete(k->client->znode, node_path(k, l), -1, on_reply, k) == 0;
}

static void work_on_lock(sim_kazoo *k) {
    lock *l = &k->locks[k->at];
    switch (k->stage) {
    case ENSURE_DIRECTORY: create(k, directory_of(k, l), "", DV_PERSISTENT); break;
    case FIND:
    case LIST: list(k, directory_of(k, l), NULL); break;
    case CREATE:
        l->tried = true;
        if (k->lock_count <= k->at) k->lock_count = k->at + 1;
        snprintf(k->path, sizeof k->path, "/pool/locks/%s/%s", k->m->world->items[l->item], l->prefix);
        create(k, k->path, "", DV_EPHEMERAL | DV_SEQUENTIAL);
        break;
    case WATCH:
        dv_znode_unwatch(k->client->znode, &k->lock_watch);
        k->lock_watch.fired = on_lock;
        k->busy = dv_znode_get(k->client->znode, k->path, &k->lock_watch, on_reply, k) == 0;
        break;
    case CLEAN: k->busy = dv_znode_delete(k->client->znode, node_path(k, l), -1, on_reply, k) == 0; break;
    default: break;
    }
}

static void on_barrier(dv_barrier_wait *wait, int error, int64_t now) {
    sim_kazoo *k = DV_CONTAINER(wait, sim_kazoo, barrier);
    k->busy = false;
    if (error) return;
    k->unsure = false;
    go(k, now);
}

static bool make_sure(sim_kazoo *k) {
    if (!k->unsure) return true;
    k->busy = true;
    dv_client_barrier(k->client, &k->barrier, on_barrier);
    return false;
}

static void go(sim_kazoo *k, int64_t now) {
    static const char *const directories[] = {"/pool", "/pool/locks", "/pool/party"};
    if (k->busy || !dv_client_connected(k->client) || !make_sure(k)) return;
    if (k->stage == SETTLE && now >= k->until) enter(k, k->changed ? READ : COMPUTE);
    if (k->stage == RELEASE && now >= k->until) enter(k, RELEASING);
    if (k->stage == WAIT && now >= k->until) enter(k, CLEAN);
    if (k->stage == RELEASING) release_one(k);
    switch (k->stage) {
    case ENSURE: create(k, directories[k->ensured], "", DV_PERSISTENT); break;
    case JOIN: create(k, k->party_path, k->m->name, DV_EPHEMERAL); break;
    case READ:
        k->changed = false;
        dv_znode_unwatch(k->client->znode, &k->party_watch);
        k->party_watch.fired = on_party;
        list(k, "/pool/party", &k->party_watch);
        break;
    case COMPUTE: list(k, "/pool/party", NULL); break;
    default: work_on_lock(k);
    }
}

static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    sim_kazoo *k = DV_CONTAINER(listener, sim_kazoo, listener);
    if (event == DV_SESSION_LOST) enter(k, FAILED);
    if (event == DV_SESSION_CLOSED) dv_unlisten(k->client, &k->listener);
    if (event == DV_SESSION_SUSPENDED || (event == DV_SESSION_CONNECTED && k->connected_before)) {
        if (k->stage > JOIN) begin_release(k, now);
    }
    if (event == DV_SESSION_CONNECTED) k->connected_before = true;
}

/* ---- life ---- */

sim_kazoo *sim_kazoo_start(sim_member *m, const sim_event *event) {
    sim_kazoo *k = calloc(1, sizeof *k);
    if (!k) abort();
    char text[HEX_BYTES];
    (void)event;
    *k = (sim_kazoo){.m = m, .client = m->client, .boundary_ms = m->world->script->boundary_ms + 50};
    hex(&m->user.random, text);
    snprintf(k->party_path, sizeof k->party_path, "/pool/party/%s-%s", text, m->name);
    k->listener = (dv_listener){.hear = hear};
    dv_client_lock(k->client);
    dv_listen(k->client, &k->listener);
    dv_client_unlock(k->client);
    m->world->coverage->meetings[SIM_MET_KAZOO]++;
    sim_trace(m->world, "%s joins: kazoo, boundary %lld ms", m->name, (long long)k->boundary_ms);
    return k;
}

void sim_kazoo_act(sim_kazoo *k) {
    sim_member *m = k->m;
    if (k->stage == FAILED) {
        sim_member_close(m);
        return;
    }
    dv_client_lock(k->client);
    int64_t now = dv_client_now(k->client);
    bool slow = k->stage == RELEASE && k->until > now + m->user.react_ms;
    if (slow && m->world->healed) k->until = now + m->user.react_ms; /* the bound of L1 knows of no slower one */
    go(k, now);
    dv_client_unlock(k->client);
    m->act_at = m->world->now_ms + RETRY_MS;
}

/* kazoo shows items in RELEASE, too: what counts there is that the user has not answered yet. */
bool sim_kazoo_at_work(sim_kazoo *k) {
    bool answered = k->stage == RELEASE && !k->m->paused && dv_client_now(k->client) >= k->until;
    bool asked_to_stop = answered || (k->stage != ACQUIRED && k->stage != RELEASE);
    if (asked_to_stop && !DV_MUTANT(kazoo_works_on)) k->at_work = false;
    return k->at_work;
}

const char *sim_kazoo_node(const sim_kazoo *k, size_t item) {
    for (size_t i = 0; k->at_work && i < k->wanted; i++) {
        if (k->locks[i].item == item) return k->locks[i].node;
    }
    return NULL;
}

bool sim_kazoo_settled(const sim_kazoo *k) {
    return k->stage == ACQUIRED && !k->changed;
}

void sim_kazoo_free(sim_kazoo *k) {
    free(k);
}

const char *sim_kazoo_describe(const sim_kazoo *k, char *buffer, size_t bytes) {
    snprintf(buffer, bytes, "kazoo, %s", stage_names[k->stage]);
    return buffer;
}
