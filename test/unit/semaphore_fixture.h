/* Shared by the tests of divvy/semaphore.h on an in-memory ensemble: users, the truth, and what must always hold.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_SEMAPHORE_FIXTURE_H
#define DV_TEST_SEMAPHORE_FIXTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "recipe/request.h"
#include "recipe/slots.h"
#include "testing/ensemble.h"

/* Behind those in which a parameter has the name of its variable. */
#include "claim.h"

#define POOL "/pools/s"
#define QUEUE POOL "-__lock__"
#define KAZOO_GUID "0123456789abcdef0123456789abcdef"
#define NEVER 1000 /* of `result`: not told yet */

enum { CLIENTS = 5, USERS = 12, NODES = 4096, SLOTS = 64, SESSION_MS = 4000, TICK_MS = 500 };

typedef struct {
    char path[160];
    bool leases; /* in the pool, not in the queue */
    dv_slots slots;
    int64_t czxid;
    bool tried;     /* E14: a lease that does not count until its client believes in it */
    uint32_t limit; /* the highest that was in force since it was made, while it does not */
} node;

typedef struct {
    divvy_semaphore *semaphore;
    divvy_client *client;
    uint32_t count;
    int64_t timeout_ms, asked_at; /* of the acquire under way */
    int asked, done, result, granted, lost;
    bool waiting, cancelled;
    char reason[256]; /* divvy_client_error() in `done` */
    int acquires_when_lost, releases_when_done, destroys_when_done;
} user;

static divvy_testing_ensemble *ensemble;
static divvy_client *clients[CLIENTS], *stranger;
static user users[USERS];
static node nodes[NODES]; /* what is in pool and queue, in truth */
static size_t node_count, user_count;
static int64_t last_token[SLOTS];       /* that was granted for a slot */
static uint64_t most_taken;             /* in the step under way */
static uint32_t limit_in_force;         /* as of the last step; 0: not set */
static int64_t set_zxid;                /* when the pool was set last */
static bool stepping, unseen;           /* within a step that is checked; slots were taken in one that was not */
static bool killed;                     /* a session by an administrator: what the session clock cannot know of */
static int server_release;              /* 0: the usual one */
static int64_t client_delay_max_ms = 1; /* of messages of clients */
static unsigned results[6];
enum { GRANTED, TIMED_OUT, BUSY, CANCELED, LOST, TOO_MANY };
static unsigned shortcuts; /* leases that were had so */

/* --- the truth, and what is believed ---------------------------------------------------------------------------- */

static inline size_t count_nodes(bool leases) {
    size_t count = 0;
    for (size_t i = 0; i < node_count; i++) count += nodes[i].leases == leases;
    return count;
}

static inline uint64_t taken_now(void) {
    uint64_t taken = 0;
    for (size_t i = 0; i < node_count; i++) taken += nodes[i].leases && !nodes[i].tried ? nodes[i].slots.count : 0;
    return taken;
}

static inline bool overlap(const dv_slots *a, const dv_slots *b) {
    for (uint32_t i = 0; i < a->count; i++) {
        for (uint32_t j = 0; a->run_count && j < b->count; j++) {
            if (b->run_count && dv_slots_at(a, i) == dv_slots_at(b, j)) return true;
        }
    }
    return false;
}

/* No slot is in two leases at a time. */
static inline void check_slots(const node *newest) {
    for (size_t i = 0; i < node_count; i++) {
        if (&nodes[i] != newest && nodes[i].leases && !nodes[i].tried)
            CLAIM(!overlap(&nodes[i].slots, &newest->slots), "%s has a slot of %s", newest->path, nodes[i].path);
    }
}

/* E14: it counts from now on. Those that hold are within a limit that was in force since it was made, and nobody waits
 * who came before it. */
static inline void check_counts(node *n) {
    n->tried = false;
    shortcuts++;
    check_slots(n);
    CLAIM(taken_now() <= n->limit, "with %s %llu slots are taken of %u", n->path, (unsigned long long)taken_now(),
          n->limit);
    for (size_t i = 0; i < node_count; i++)
        CLAIM(nodes[i].leases || nodes[i].czxid > n->czxid, "%s has overtaken %s", n->path, nodes[i].path);
}

/* Checks that a user that believes to hold has its node, at every moment. */
static inline void check_belief(void) {
    for (size_t i = 0; i < user_count && !killed; i++) {
        int64_t token = users[i].semaphore ? divvy_semaphore_token(users[i].semaphore) : 0;
        bool there = false;
        for (size_t j = 0; token && j < node_count; j++) {
            if (nodes[j].czxid != token) continue;
            there = true;
            if (nodes[j].tried) check_counts(&nodes[j]);
        }
        CLAIM(!token || there, "user %zu holds by %lld, whose node is gone", i, (long long)token);
    }
}

/* E2: persistent children of the pool are no leases. */
static inline void note_created(const divvy_testing_transaction *t) {
    if (t->ephemeral_owner == 0) return;
    CLAIM(node_count < NODES, "too many nodes");
    node *n = &nodes[node_count++];
    *n = (node){.leases = strncmp(t->path, POOL "/", strlen(POOL "/")) == 0, .czxid = t->zxid};
    snprintf(n->path, sizeof n->path, "%s", t->path);
    if (!n->leases) return;
    bool numbered = dv_slots_parse(strrchr(t->path, '/') + 1, &n->slots);
    if (!numbered) n->slots = (dv_slots){.count = 1};
    n->tried = numbered && t->zxid != set_zxid; /* E6 sets the pool as well. */
    n->limit = limit_in_force;
    if (n->tried) return;
    check_slots(n);
    if (taken_now() > most_taken) most_taken = taken_now();
    if (!stepping) unseen = true;
}

static inline void on_transaction(const divvy_testing_transaction *t, void *context) {
    (void)context;
    bool ours = t->path && (strncmp(t->path, POOL "/", strlen(POOL "/")) == 0 ||
                            strncmp(t->path, QUEUE "/", strlen(QUEUE "/")) == 0);
    if (t->kind == DIVVY_TESTING_SET && strcmp(t->path, POOL) == 0) set_zxid = t->zxid;
    if (ours && t->kind == DIVVY_TESTING_CREATE) note_created(t);
    for (size_t j = 0; ours && t->kind == DIVVY_TESTING_DELETE && j < node_count; j++) {
        if (strcmp(nodes[j].path, t->path) != 0) continue;
        nodes[j] = nodes[--node_count];
        break;
    }
    check_belief();
}

/* --- time ------------------------------------------------------------------------------------------------------- */

/* S9, in every step: nobody is admitted above the limit that was in force before. A change of it, and an admission, are
 * transactions of their own, and so steps of their own; but a waiting call makes many steps. */
static inline void check_limit(uint32_t limit_now) {
    uint32_t limit = unseen && limit_now > limit_in_force ? limit_now : limit_in_force;
    CLAIM(most_taken <= limit, "%llu slots are taken of %u", (unsigned long long)most_taken, limit);
    limit_in_force = limit_now;
    most_taken = 0;
    unseen = false;
}

static inline uint32_t read_limit(void);

/* Makes one step. Returns whether anything happened before that time. */
static inline bool step_until(int64_t until) {
    stepping = true;
    bool something = divvy_testing_step(ensemble, until) == 1;
    stepping = false;
    check_belief();
    if (most_taken) check_limit(read_limit());
    else limit_in_force = read_limit();
    for (size_t i = 0; i < node_count; i++) {
        if (nodes[i].tried && nodes[i].limit < limit_in_force) nodes[i].limit = limit_in_force;
    }
    return something;
}

static inline void run(int64_t ms) {
    int64_t until = divvy_testing_now_ms(ensemble) + ms;
    while (step_until(until)) continue;
}

/* --- users ------------------------------------------------------------------------------------------------------ */

static inline bool ask(user *u, int64_t timeout_ms);

static inline void on_lost(divvy_semaphore *semaphore, void *context) {
    user *u = context;
    CLAIM(semaphore == u->semaphore && !divvy_semaphore_held(semaphore), "told of a loss while slots are held");
    u->lost++;
    results[LOST]++;
    CLAIM(u->lost <= u->granted, "lost more often than it was granted");
    if (u->acquires_when_lost) {
        CLAIM(divvy_semaphore_acquire(semaphore, -1) == DIVVY_EDEADLK, "a waiting call in a callback");
        CLAIM(ask(u, -1), "cannot ask in on_lost");
    }
}

static inline void note_result(const user *u, int result) {
    int kind = result == 0                 ? GRANTED
               : result == DIVVY_ETIMEDOUT ? TIMED_OUT
               : result == DIVVY_EBUSY     ? BUSY
               : result == DIVVY_ECANCELED ? CANCELED
               : result == DIVVY_E2BIG     ? TOO_MANY
                                           : LOST;
    CLAIM(kind != BUSY || u->timeout_ms == 0, "busy, though it was to wait");
    CLAIM(kind != CANCELED || u->cancelled, "canceled by nobody");
    if (kind != LOST) results[kind]++;
}

static inline void on_done(divvy_semaphore *semaphore, int result, void *context) {
    user *u = context;
    int64_t waited_ms = divvy_testing_now_ms(ensemble) - u->asked_at;
    u->done++;
    CLAIM(u->done == u->asked, "told %d times of %d acquires", u->done, u->asked);
    CLAIM(result != 0 || u->timeout_ms < 0 || waited_ms <= u->timeout_ms + 1000, "granted after %lld ms",
          (long long)waited_ms);
    u->waiting = false;
    u->result = result;
    snprintf(u->reason, sizeof u->reason, "%s", result ? divvy_client_error(u->client) : "");
    note_result(u, result);
    if (result == 0) u->granted++;
    for (uint32_t i = 0; result == 0 && i < u->count; i++) {
        int slot = divvy_semaphore_slot_at(semaphore, i);
        int64_t token = divvy_semaphore_token(semaphore);
        if (slot < 0 || slot >= SLOTS || !token) continue; /* The deadline may pass in between. */
        CLAIM(token > last_token[slot], "slot %d: token %lld after %lld", slot, (long long)token,
              (long long)last_token[slot]);
        last_token[slot] = token;
    }
    if (u->releases_when_done && result == 0) divvy_semaphore_release(semaphore);
    if (u->destroys_when_done) {
        divvy_semaphore_destroy(semaphore);
        u->semaphore = NULL;
    }
}

static inline bool ask(user *u, int64_t timeout_ms) {
    int64_t now = divvy_testing_now_ms(ensemble);
    if (divvy_semaphore_acquire_async(u->semaphore, timeout_ms, on_done, u) != 0) return false;
    u->timeout_ms = timeout_ms;
    u->asked_at = now;
    u->asked++;
    u->result = NEVER;
    u->waiting = true;
    u->cancelled = false;
    return true;
}

static inline divvy_semaphore_config config_of(user *u, uint32_t limit) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    config.path = POOL;
    config.limit = limit;
    config.count = u->count;
    config.on_lost = on_lost;
    config.user = u;
    return config;
}

/* A user on the client of that number. */
static inline user *make_with(int client, uint32_t limit, uint32_t count, int policy) {
    user *u = &users[user_count++];
    char identifier[16];
    snprintf(identifier, sizeof identifier, "user-%zu", user_count - 1);
    *u = (user){.client = clients[client], .count = count, .result = NEVER};
    divvy_semaphore_config config = config_of(u, limit);
    config.identifier = identifier;
    config.limit_policy = policy;
    assert_int_equal(divvy_semaphore_create(&u->semaphore, u->client, &config), 0);
    return u;
}

static inline user *make(int client, uint32_t limit) {
    return make_with(client, limit, 1, DIVVY_LIMIT_ERROR);
}

static inline void hold(user *u) {
    assert_true(ask(u, -1));
    run(1000);
    if (u->result != 0) fail_msg("not held: %s", u->reason);
    assert_true(divvy_semaphore_held(u->semaphore));
}

static inline void let_go(user *u) {
    assert_int_equal(divvy_semaphore_release(u->semaphore), 0);
    assert_false(divvy_semaphore_held(u->semaphore));
}

static inline void destroy(user *u) {
    u->cancelled = true;
    divvy_semaphore_destroy(u->semaphore);
    u->semaphore = NULL;
}

/* --- somebody else's doing -------------------------------------------------------------------------------------- */

static inline int raw(dv_kind kind, const char *path, const char *data, int mode) {
    dv_op op = {.kind = kind, .path = path, .data = data, .data_bytes = strlen(data), .mode = mode, .version = -1};
    dv_client_lock(stranger);
    dv_request *asked = dv_request_send(stranger, &op);
    int error = dv_request_wait(asked, dv_deadline_in(stranger, 5000));
    dv_request_drop(asked);
    dv_client_unlock(stranger);
    return error;
}

static inline void put(const char *path, const char *data, int mode) {
    assert_int_equal(raw(DV_CREATE, path, data, mode), 0);
    run(20);
}

static inline void removed(const char *path) {
    assert_int_equal(raw(DV_DELETE, path, "", 0), 0);
    run(20);
}

/* The pool's data as they are in truth: "" when there is no pool. */
static inline const char *pool_data(void);

/* --- set up ----------------------------------------------------------------------------------------------------- */

static inline void open_clients(void) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.tick_ms = TICK_MS;
    config.seed = seed;
    config.client_delay_max_ms = client_delay_max_ms;
    config.on_transaction = on_transaction;
    config.release = server_release;
    node_count = user_count = 0;
    memset(last_token, 0, sizeof last_token);
    most_taken = limit_in_force = 0;
    set_zxid = 0;
    stepping = unseen = false;
    killed = false;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (int i = 0; i <= CLIENTS; i++) {
        divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
        client.manual = 1;
        client.session_timeout_ms = SESSION_MS;
        client.ensemble_tick_ms = TICK_MS;
        assert_int_equal(divvy_testing_client_open(i < CLIENTS ? &clients[i] : &stranger, ensemble, &client), 0);
    }
}

static inline void close_clients(void) {
    for (size_t i = 0; i < user_count; i++) {
        if (users[i].semaphore) destroy(&users[i]);
    }
    divvy_client_close(stranger);
    run(2000);
    CLAIM(node_count == 0, "%s is left", nodes[0].path); /* No orphan of any of them. */
    for (int i = 0; i < CLIENTS; i++) divvy_client_close(clients[i]);
    divvy_testing_ensemble_destroy(ensemble);
}

static inline int set_up(void **state) {
    (void)state;
    seed = random_state = 1;
    open_clients();
    run(500);
    return 0;
}

static inline int tear_down(void **state) {
    (void)state;
    close_clients();
    return 0;
}

/* --- the pool's node, which the ensemble's public face does not show -------------------------------------------- */
static inline const char *pool_data(void) {
    static char text[64];
    dv_mem *mem = ensemble;
    dv_mem_lock(mem);
    const dv_mem_path *path = dv_mem_path_find(mem, POOL);
    const dv_mem_node *found = path ? path->places[mem->truth_server].node : NULL;
    size_t bytes = found && found->data ? found->data->bytes : 0;
    snprintf(text, sizeof text, "%.*s", (int)bytes, bytes ? found->data->data : "");
    dv_mem_unlock(mem);
    return text;
}

static inline uint32_t read_limit(void) {
    return (uint32_t)strtoul(pool_data(), NULL, 10);
}

#endif
