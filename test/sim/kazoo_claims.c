/* A kazoo process that takes a lock or a slot, as a state machine on a plain client. SPDX-License-Identifier:
 * Apache-2.0
 *
 * The algorithms of kazoo.recipe.lock: Lock, ReadLock, WriteLock (as of 2.9, without #649), Semaphore. A semaphore's
 * queue is a Lock at its head, held while the leases are counted and one more is made. Its user works from the end of
 * the acquire until it releases, or is told of the session's loss. As kazoo.c says: where an answer was lost it makes
 * sure before it looks, which kazoo does not. */
#include "claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container.h"
#include "recipe/queue.h"
#include "znode/path.h"
#include "znode/sequence.h"

enum { PATH_BYTES = 256, RETRY_MS = 50 };

typedef enum {
    IDLE,
    ENSURE, /* the directories, one after the other */
    LIMIT,  /* read it; */
    SET_LIMIT,
    FIND,   /* our node in the queue, when a create was tried before */
    CREATE, /* it */
    LIST,   /* who is before us? */
    WATCH,
    WAIT,
    LEASES, /* at the head: how many are there? */
    WAIT_FOR_ROOM,
    FIND_LEASE,
    CREATE_LEASE,
    LEAVE_QUEUE,
    HOLD,
    DELETE_LEASE,
    GIVE_UP, /* its time is over: the node in the queue goes */
} stage;

static const char *const stage_names[] = {
    "idle",     "ensuring",          "reading the limit", "setting the limit", "finding",          "creating",
    "listing",  "watching",          "waiting",           "counting",          "waiting for room", "finding its lease",
    "entering", "leaving the queue", "holding",           "releasing",         "giving up"};

struct sim_kazoo_claim {
    sim_member *m;
    divvy_client *client;
    dv_listener listener;
    dv_watch watch;
    bool fired; /* before the answer to the read that set it: of an earlier read of that path */
    dv_barrier_wait barrier;
    const dv_queue_kind *kind;
    bool busy, unsure, tried, last_done;
    bool at_work;   /* the user is */
    sim_claim held; /* what the user holds then */
    bool is_pool;
    uint32_t limit;
    stage stage;
    unsigned ensured, round;
    int64_t until; /* of IDLE, WAIT and HOLD */
    sim_random random;
    char directories[3][48]; /* the last one is the queue */
    char prefix[64], node[SIM_CLAIM_NAME_BYTES], before[SIM_CLAIM_NAME_BYTES], lease[48], path[PATH_BYTES], text[12];
};

static void go(sim_kazoo_claim *k, int64_t now);

static const char *queue_of(const sim_kazoo_claim *k) {
    return k->directories[2];
}

/* ---- where it stands ---- */

static void begin_round(sim_kazoo_claim *k, int64_t now) {
    char hex[33];
    snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)sim_draw(&k->random),
             (unsigned long long)sim_draw(&k->random));
    snprintf(k->prefix, sizeof k->prefix, "%s%s", hex, k->kind->marker);
    snprintf(k->lease, sizeof k->lease, "%016llx%016llx", (unsigned long long)sim_draw(&k->random),
             (unsigned long long)sim_draw(&k->random));
    k->node[0] = '\0';
    k->tried = false;
    k->ensured = 0;
    k->stage = ENSURE;
    (void)now;
}

static void rest(sim_kazoo_claim *k, int64_t now) {
    k->stage = IDLE;
    k->until = now + sim_between(&k->random, 1, 500);
    if (k->m->world->healed && k->round++ > 0) k->last_done = true;
}

static void hold(sim_kazoo_claim *k, int64_t now) {
    k->stage = HOLD;
    k->at_work = true;
    k->until = now + sim_between(&k->random, 1, k->m->world->script->hold_ms);
    bool long_one = !k->m->world->healed && sim_chance(&k->random, 15);
    if (long_one) k->until += sim_between(&k->random, 1, 4 * k->m->client_config.session_timeout_ms);
    if (!k->is_pool) k->m->world->coverage->claim_meetings[SIM_MET_KAZOO_LOCK]++;
    sim_trace(k->m->world, "%s (kazoo) holds %s", k->m->name, k->directories[1]);
}

static void wait_within(sim_kazoo_claim *k, stage to, int64_t now) {
    bool limited = !k->m->world->healed && sim_chance(&k->random, 40);
    k->stage = to;
    k->until = limited ? now + sim_between(&k->random, 1, 2000) : INT64_MAX;
}

static void look_before(sim_kazoo_claim *k, const dv_reply *list) {
    int32_t own;
    const char *there = dv_queue_find(list->children, list->child_count, k->node);
    if (!there || !dv_sequence_parse(k->node, k->kind->marker, &own)) {
        k->stage = FIND;
        return;
    }
    const char *before = dv_queue_before(k->kind, list->children, list->child_count, k->node, own);
    if (before) snprintf(k->before, sizeof k->before, "%s", before);
    if (before) k->stage = WATCH;
    else k->stage = k->is_pool ? LEASES : HOLD;
}

static void read_limit(sim_kazoo_claim *k, const dv_reply *reply, int64_t now) {
    uint32_t stored;
    dv_limit_state state = dv_limit_parse(reply->data, reply->data_bytes, &stored);
    if (state == DV_LIMIT_UNSET) k->stage = SET_LIMIT;
    else if (state == DV_LIMIT_SET && stored == k->limit) k->stage = k->tried ? FIND : CREATE;
    else rest(k, now);
}

/* ---- answers ---- */

static void take_answer(sim_kazoo_claim *k, const dv_reply *reply, int64_t now) {
    const char *found;
    switch (k->stage) {
    case ENSURE:
        if (++k->ensured == 3) k->stage = k->is_pool ? LIMIT : k->tried ? FIND : CREATE;
        break;
    case LIMIT: read_limit(k, reply, now); break;
    case SET_LIMIT: k->stage = LIMIT; break;
    case FIND:
        found = dv_queue_find(reply->children, reply->child_count, k->prefix);
        snprintf(k->node, sizeof k->node, "%s", found ? found : "");
        k->stage = found ? LIST : CREATE;
        break;
    case CREATE:
        if (reply->error == 0) snprintf(k->node, sizeof k->node, "%s", dv_path_last(reply->path));
        k->ensured = 0;
        k->stage = reply->error == 0 ? LIST : ENSURE;
        break;
    case LIST:
        look_before(k, reply);
        if (k->stage == HOLD) hold(k, now);
        break;
    case WATCH:
        if (reply->error || k->fired) k->stage = LIST;
        else wait_within(k, WAIT, now);
        break;
    case LEASES:
        if (reply->child_count < k->limit) k->stage = FIND_LEASE;
        else if (!k->fired) wait_within(k, WAIT_FOR_ROOM, now);
        break;
    case FIND_LEASE: k->stage = reply->error ? CREATE_LEASE : LEAVE_QUEUE; break;
    case CREATE_LEASE: k->stage = LEAVE_QUEUE; break;
    case LEAVE_QUEUE: hold(k, now); break;
    case DELETE_LEASE:
    case GIVE_UP: rest(k, now); break;
    default: break;
    }
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    sim_kazoo_claim *k = context;
    k->busy = false;
    if (dv_session_over(reply->error)) return;
    if (dv_outcome_unknown(reply->error)) {
        k->unsure = true;
        if (k->stage == CREATE) k->stage = FIND;
        if (k->stage == CREATE_LEASE) k->stage = FIND_LEASE;
        return;
    }
    take_answer(k, reply, now);
    go(k, now);
}

static void on_watch(dv_watch *watch, dv_watch_kind kind, int64_t now) {
    sim_kazoo_claim *k = DV_CONTAINER(watch, sim_kazoo_claim, watch);
    (void)kind;
    k->fired = true;
    if (k->stage == WAIT) k->stage = LIST;
    if (k->stage == WAIT_FOR_ROOM) k->stage = LEASES;
    go(k, now);
}

/* ---- the next step ---- */

static const char *join(sim_kazoo_claim *k, const char *directory, const char *name) {
    snprintf(k->path, sizeof k->path, "%s/%s", directory, name);
    return k->path;
}

static void begin_watch(sim_kazoo_claim *k) {
    dv_znode_unwatch(k->client->znode, &k->watch);
    k->watch.fired = on_watch;
    k->fired = false;
}

static void list(sim_kazoo_claim *k, const char *path, bool watched) {
    begin_watch(k);
    k->busy = dv_znode_children(k->client->znode, path, watched ? &k->watch : NULL, on_reply, k) == 0;
}

static void create(sim_kazoo_claim *k, const char *path, int mode) {
    const char *data = mode & DV_EPHEMERAL ? k->m->name : "";
    k->busy = dv_znode_create(k->client->znode, path, data, strlen(data), mode, on_reply, k) == 0;
}

static void erase(sim_kazoo_claim *k, const char *path) {
    k->busy = dv_znode_delete(k->client->znode, path, -1, on_reply, k) == 0;
}

static void set_limit(sim_kazoo_claim *k) {
    int bytes = snprintf(k->text, sizeof k->text, "%u", k->limit);
    dv_op op = {.kind = DV_SET, .path = k->directories[1], .data = k->text, .data_bytes = (size_t)bytes, .version = -1};
    k->busy = dv_znode_submit(k->client->znode, &op, NULL, on_reply, k) == 0;
}

static void on_barrier(dv_barrier_wait *wait, int error, int64_t now) {
    sim_kazoo_claim *k = DV_CONTAINER(wait, sim_kazoo_claim, barrier);
    k->busy = false;
    if (error) return;
    k->unsure = false;
    go(k, now);
}

static bool make_sure(sim_kazoo_claim *k) {
    if (!k->unsure) return true;
    k->busy = true;
    dv_client_barrier(k->client, &k->barrier, on_barrier);
    return false;
}

static void pass_time(sim_kazoo_claim *k, int64_t now) {
    const sim_world *w = k->m->world;
    if (w->healed && k->stage == HOLD && k->until > now + w->script->hold_ms) k->until = now + w->script->hold_ms;
    if (now < k->until) return;
    if (k->stage == IDLE && !k->last_done) begin_round(k, now);
    else if (k->stage == WAIT || k->stage == WAIT_FOR_ROOM) k->stage = GIVE_UP;
    else if (k->stage == HOLD) k->stage = k->is_pool ? DELETE_LEASE : GIVE_UP;
}

static void go(sim_kazoo_claim *k, int64_t now) {
    if (k->busy || !dv_client_connected(k->client) || !make_sure(k)) return;
    pass_time(k, now);
    switch (k->stage) {
    case ENSURE: create(k, k->directories[k->ensured], DV_PERSISTENT); break;
    case LIMIT: k->busy = dv_znode_get(k->client->znode, k->directories[1], NULL, on_reply, k) == 0; break;
    case SET_LIMIT: set_limit(k); break;
    case FIND:
    case LIST: list(k, queue_of(k), false); break;
    case CREATE:
        k->tried = true;
        create(k, join(k, queue_of(k), k->prefix), DV_EPHEMERAL | DV_SEQUENTIAL);
        break;
    case WATCH:
        begin_watch(k);
        k->busy = dv_znode_get(k->client->znode, join(k, queue_of(k), k->before), &k->watch, on_reply, k) == 0;
        break;
    case LEASES: list(k, k->directories[1], true); break;
    case FIND_LEASE:
        k->busy = dv_znode_exists(k->client->znode, join(k, k->directories[1], k->lease), NULL, on_reply, k) == 0;
        break;
    case CREATE_LEASE: create(k, join(k, k->directories[1], k->lease), DV_EPHEMERAL); break;
    case DELETE_LEASE: erase(k, join(k, k->directories[1], k->lease)); break;
    case LEAVE_QUEUE:
    case GIVE_UP: erase(k, join(k, queue_of(k), k->node)); break;
    case IDLE:
    case WAIT:
    case WAIT_FOR_ROOM:
    case HOLD: break;
    }
}

/* A watch may have been missed; what a lost session had is gone. */
static void hear(dv_listener *listener, dv_session_event event, int64_t now) {
    sim_kazoo_claim *k = DV_CONTAINER(listener, sim_kazoo_claim, listener);
    if (event == DV_SESSION_LOST || event == DV_SESSION_OVER) {
        k->unsure = k->busy = false;
        dv_znode_unwatch(k->client->znode, &k->watch);
        if (k->stage != IDLE) rest(k, now);
    }
    if (event == DV_SESSION_CLOSED) dv_unlisten(k->client, &k->listener);
    if (event != DV_SESSION_CONNECTED) return;
    if (k->stage == WAIT) k->stage = LIST;
    if (k->stage == WAIT_FOR_ROOM) k->stage = LEASES;
}

/* ---- life ---- */

void sim_kazoo_claim_start(sim_member *m, sim_random *r) {
    const sim_script *s = m->world->script;
    sim_kazoo_claim *k = calloc(1, sizeof *k);
    if (!k) abort();
    bool is_pool = s->pools > 0 && sim_chance(r, 50);
    size_t place = sim_below(r, (uint32_t)(is_pool ? s->pools : s->locks));
    *k = (sim_kazoo_claim){.m = m, .client = m->client, .is_pool = is_pool, .limit = s->limits[is_pool ? place : 0]};
    k->random = sim_random_of(sim_draw(r), 13);
    k->held = (sim_claim){.m = m, .is_pool = is_pool, .place = place, .mode = DIVVY_EXCLUSIVE, .count = 1};
    if (!is_pool && place % 2) k->held.mode = sim_chance(r, 50) ? DIVVY_READ : DIVVY_WRITE;
    k->kind = k->held.mode == DIVVY_READ    ? &dv_read_queue
              : k->held.mode == DIVVY_WRITE ? &dv_write_queue
                                            : &dv_lock_queue;
    snprintf(k->directories[0], sizeof k->directories[0], "%s", is_pool ? "/sem" : "/locks");
    snprintf(k->directories[1], sizeof k->directories[1], is_pool ? "/sem/p%zu" : "/locks/l%zu", place);
    snprintf(k->directories[2], sizeof k->directories[2], is_pool ? "/sem/p%zu-__lock__" : "/locks/l%zu", place);
    k->listener = (dv_listener){.hear = hear};
    dv_client_lock(k->client);
    dv_listen(k->client, &k->listener);
    dv_client_unlock(k->client);
    m->kazoo_claim = k;
    m->act_at = m->world->now_ms + 1;
    sim_trace(m->world, "%s (kazoo) uses %s", m->name, k->directories[1]);
}

void sim_kazoo_claim_act(sim_member *m) {
    sim_kazoo_claim *k = m->kazoo_claim;
    dv_client_lock(k->client);
    go(k, dv_client_now(k->client));
    dv_client_unlock(k->client);
    m->act_at = m->world->now_ms + RETRY_MS;
}

const sim_claim *sim_kazoo_claim_held(sim_kazoo_claim *k, const char **node) {
    bool released = !k->m->paused && dv_client_now(k->client) >= k->until;
    if (k->stage != HOLD || released) k->at_work = false;
    *node = k->is_pool ? k->lease : k->node;
    return k->at_work ? &k->held : NULL;
}

bool sim_kazoo_claim_well(const sim_kazoo_claim *k) {
    return k->last_done && k->stage == IDLE;
}

void sim_kazoo_claim_free(sim_kazoo_claim *k) {
    free(k);
}

const char *sim_kazoo_claim_describe(const sim_kazoo_claim *k, char *buffer, size_t bytes) {
    snprintf(buffer, bytes, "kazoo, %s", stage_names[k->stage]);
    return buffer;
}
