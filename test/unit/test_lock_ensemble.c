/* Tests of divvy/lock.h on an in-memory ensemble, in virtual time: waiting calls, sessions that come and go, and random
 * schedules under faults. SPDX-License-Identifier: Apache-2.0
 *
 * DIVVY_TEST_SEED=n replays one random schedule. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "claim.h"
#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/seed.h"
#include "lib/test.h"

#define PATH "/locks/l"
#define NEVER 1000 /* of `result`: not told yet */

#define SESSION_MS INT64_C(4000)

enum { CLIENTS = 5, LOCKS = 10, NODES = 4096, TICK_MS = 500 };

typedef struct {
    char path[128];
    int64_t czxid;
} node;

typedef struct {
    divvy_lock *lock;
    divvy_client *client;
    int mode;
    int64_t timeout_ms, asked_at; /* of the acquire under way */
    int asked, done, result, granted, lost;
    bool waiting, cancelled;
    int64_t token; /* of what was granted last */
} holder;

static divvy_testing_ensemble *ensemble;
static divvy_client *clients[CLIENTS];
static holder holders[LOCKS];
static node nodes[NODES]; /* what contends, in truth */
static size_t node_count, lock_count;
static int64_t last_writer;
static bool killed; /* a session by an administrator: what the session clock cannot know of (docs/protocol.md) */
static unsigned results[5]; /* of random schedules, to see that they come to all of them: by the next names */
enum { GRANTED, TIMED_OUT, BUSY, CANCELED, LOST };

/* --- the truth, and what is believed ---------------------------------------------------------------------------- */

static bool is_writer(const node *n) {
    return strstr(n->path, "__lock__") != NULL;
}

/* Checks at every moment that a lock that believes to be held has its node, and that no node that it waits for is
 * before it. */
static void check_belief(void) {
    for (size_t i = 0; i < lock_count && !killed; i++) {
        const holder *h = &holders[i];
        int64_t token = h->lock ? divvy_lock_token(h->lock) : 0;
        if (!token) continue;
        bool there = false;
        for (size_t j = 0; j < node_count; j++) {
            there = there || nodes[j].czxid == token;
            bool blocks = nodes[j].czxid < token && (h->mode != DIVVY_READ || is_writer(&nodes[j]));
            CLAIM(!blocks, "lock %zu is held by %lld, behind %s", i, (long long)token, nodes[j].path);
        }
        CLAIM(there, "lock %zu is held by %lld, whose node is gone", i, (long long)token);
    }
}

static void on_transaction(const divvy_testing_transaction *t, void *user) {
    (void)user;
    if (!t->path || strncmp(t->path, PATH "/", strlen(PATH) + 1) != 0 || !strstr(t->path, "lock__")) return;
    if (t->kind == DIVVY_TESTING_CREATE) {
        CLAIM(node_count < NODES, "too many nodes");
        snprintf(nodes[node_count].path, sizeof nodes->path, "%s", t->path);
        nodes[node_count++].czxid = t->zxid;
    } else if (t->kind == DIVVY_TESTING_DELETE) {
        for (size_t j = 0; j < node_count; j++) {
            if (strcmp(nodes[j].path, t->path) != 0) continue;
            nodes[j] = nodes[--node_count];
            break;
        }
    }
    check_belief();
}

static void run(int64_t ms) {
    int64_t until = divvy_testing_now_ms(ensemble) + ms;
    while (divvy_testing_step(ensemble, until) == 1) check_belief();
}

/* --- users ------------------------------------------------------------------------------------------------------ */

static void on_lost(divvy_lock *lock, void *user) {
    holder *h = user;
    CLAIM(lock == h->lock && !divvy_lock_held(lock), "told of a loss while it is held");
    h->lost++;
    results[LOST]++;
    CLAIM(h->lost <= h->granted, "lost more often than it was granted");
}

static void on_done(divvy_lock *lock, int result, void *user) {
    holder *h = user;
    int64_t now = divvy_testing_now_ms(ensemble), waited_ms = now - h->asked_at;
    (void)lock;
    h->done++;
    CLAIM(h->done == h->asked, "told %d times of %d acquires", h->done, h->asked);
    h->waiting = false;
    h->result = result;
    CLAIM(result == 0 || result == DIVVY_ETIMEDOUT || (result == DIVVY_EBUSY && h->timeout_ms == 0) ||
              (result == DIVVY_ECANCELED && h->cancelled),
          "an acquire ends with %s", divvy_strerror(result));
    results[result == 0 ? GRANTED : result == DIVVY_ETIMEDOUT ? TIMED_OUT : result == DIVVY_EBUSY ? BUSY : CANCELED]++;
    if (result != 0) return;
    h->granted++;
    h->token = divvy_lock_token(lock);
    CLAIM(h->timeout_ms < 0 || waited_ms <= h->timeout_ms + 1000, "granted after %lld ms", (long long)waited_ms);
    if (!h->token || h->mode == DIVVY_READ) return;
    CLAIM(h->token > last_writer, "token %lld after %lld", (long long)h->token, (long long)last_writer);
    last_writer = h->token;
}

static bool ask(holder *h, int64_t timeout_ms) {
    if (divvy_lock_acquire_async(h->lock, timeout_ms, on_done, h) != 0) return false;
    h->timeout_ms = timeout_ms;
    h->asked_at = divvy_testing_now_ms(ensemble);
    h->asked++;
    h->result = NEVER;
    h->waiting = true;
    h->cancelled = false;
    return true;
}

static void make(int mode, divvy_client *client, const char *identifier) {
    holder *h = &holders[lock_count++];
    *h = (holder){.client = client, .mode = mode, .result = NEVER};
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    config.path = PATH;
    config.identifier = identifier;
    config.mode = mode;
    config.on_lost = on_lost;
    config.user = h;
    assert_int_equal(divvy_lock_create(&h->lock, client, &config), 0);
}

static void open_clients(void) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.tick_ms = TICK_MS;
    config.seed = seed;
    config.on_transaction = on_transaction;
    node_count = lock_count = 0;
    last_writer = 0;
    killed = false;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (int i = 0; i < CLIENTS; i++) {
        divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
        client.manual = 1;
        client.session_timeout_ms = SESSION_MS;
        client.ensemble_tick_ms = TICK_MS;
        assert_int_equal(divvy_testing_client_open(&clients[i], ensemble, &client), 0);
    }
}

static void close_clients(void) {
    for (size_t i = 0; i < lock_count; i++) {
        holders[i].cancelled = true;
        divvy_lock_destroy(holders[i].lock);
        holders[i].lock = NULL;
        assert_int_equal(holders[i].done, holders[i].asked);
    }
    run(2000);
    assert_int_equal(node_count, 0); /* No orphan of any of them is left. */
    for (int i = 0; i < CLIENTS; i++) divvy_client_close(clients[i]);
    divvy_testing_ensemble_destroy(ensemble);
}

static int set_up(void **state) {
    (void)state;
    seed = 1;
    open_clients();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    close_clients();
    return 0;
}

/* --- waiting calls ---------------------------------------------------------------------------------------------- */

/* The waiting calls of two clients: a free lock is had, a held one is busy, or timed out after just that time. */
TEST_IN(test_waiting_calls, set_up, tear_down) {
    make(DIVVY_EXCLUSIVE, clients[0], "a");
    make(DIVVY_EXCLUSIVE, clients[1], "b");
    divvy_lock *a = holders[0].lock, *b = holders[1].lock;
    assert_int_equal(divvy_lock_acquire(a, 5000), 0);
    assert_true(divvy_lock_held(a));
    assert_int_equal(divvy_lock_try_acquire(b), DIVVY_EBUSY);
    int64_t began = divvy_testing_now_ms(ensemble);
    assert_int_equal(divvy_lock_acquire(b, 3000), DIVVY_ETIMEDOUT);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 3000, 3050);
    run(50);
    assert_int_equal(node_count, 1);
    assert_int_equal(divvy_lock_release(a), 0);
    assert_int_equal(divvy_lock_acquire(b, -1), 0);
    assert_int_equal(divvy_lock_release(b), 0);
    assert_int_equal(divvy_lock_try_acquire(a), 0);
}

/* An acquire that has no node yet, as its client is not connected, is waited for, too. */
TEST_IN(test_wait_gone_unconnected, set_up, tear_down) {
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    make(DIVVY_EXCLUSIVE, clients[0], "a");
    holder *h = &holders[0];
    assert_true(ask(h, -1));
    assert_int_equal(divvy_lock_wait_gone(h->lock, 100), DIVVY_ETIMEDOUT);
    h->cancelled = true;
    assert_int_equal(divvy_lock_cancel(h->lock, 0), 0);
    assert_int_equal(divvy_lock_wait_gone(h->lock, 100), 0);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_UP);
}

/* Contenders are listed by their identifiers, in the order of the queue, readers and writers; none where there is no
 * directory. */
TEST_IN(test_contenders, set_up, tear_down) {
    static const int modes[] = {DIVVY_READ, DIVVY_READ, DIVVY_WRITE, DIVVY_READ, DIVVY_WRITE};
    static const char *const names[] = {"zoe", "yan", "xi", "will", "val"};
    divvy_strings *list;
    for (int i = 0; i < 5; i++) make(modes[i], clients[i], names[i]);
    assert_int_equal(divvy_lock_contenders(holders[0].lock, &list, 5000), 0);
    assert_int_equal(divvy_strings_count(list), 0);
    divvy_strings_free(list);
    for (int i = 0; i < 5; i++) {
        assert_true(ask(&holders[i], -1));
        run(500);
        assert_int_equal(holders[i].result, i < 2 ? 0 : NEVER);
    }
    assert_int_equal(divvy_testing_put(ensemble, PATH "/stray", "", 0, DIVVY_TESTING_PERSISTENT), 0);
    run(50);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(divvy_lock_contenders(holders[i].lock, &list, 5000), 0);
        assert_int_equal(divvy_strings_count(list), 5);
        for (size_t j = 0; j < 5; j++) assert_string_equal(divvy_strings_get(list, j), names[j]);
        divvy_strings_free(list);
    }
    for (int i = 0; i < 5; i++) divvy_testing_link_client(ensemble, clients[i], DIVVY_TESTING_LINK_DOWN);
    int64_t began = divvy_testing_now_ms(ensemble);
    assert_int_equal(divvy_lock_contenders(holders[0].lock, &list, 1000), DIVVY_ETIMEDOUT);
    assert_null(list);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 1000, 1050);
    divvy_testing_heal(ensemble);
    run(4 * SESSION_MS);
}

static void on_ignored(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)result, (void)user;
}

/* More contenders than reads that may be under way at a time are all listed. */
TEST_IN(test_many_contenders, set_up, tear_down) {
    enum { MANY = 150 };
    divvy_lock *locks[MANY];
    char names[MANY][16];
    divvy_strings *list;
    make(DIVVY_EXCLUSIVE, clients[0], "looks");
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
        config.path = PATH;
        config.identifier = names[i];
        assert_int_equal(divvy_lock_create(&locks[i], clients[1], &config), 0);
        assert_int_equal(divvy_lock_acquire_async(locks[i], -1, on_ignored, NULL), 0);
        run(30);
    }
    assert_int_equal(divvy_lock_contenders(holders[0].lock, &list, 5000), 0);
    assert_int_equal(divvy_strings_count(list), MANY);
    for (size_t i = 0; i < MANY; i++) assert_string_equal(divvy_strings_get(list, i), names[i]);
    divvy_strings_free(list);
    for (int i = 0; i < MANY; i++) divvy_lock_destroy(locks[i]);
}

/* --- sessions --------------------------------------------------------------------------------------------------- */

/* The session expires while held: on_lost, once. The same object, asked right then, holds again on the next session. */
TEST_IN(test_expired_while_held, set_up, tear_down) {
    make(DIVVY_EXCLUSIVE, clients[0], "a");
    holder *h = &holders[0];
    killed = true;
    for (int i = 1; i <= 3; i++) {
        assert_true(ask(h, -1));
        run(2 * SESSION_MS);
        assert_int_equal(h->result, 0);
        assert_true(divvy_lock_held(h->lock));
        divvy_testing_expire(ensemble, clients[0]);
        divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_NOT_APPLIED, 0);
        for (int ms = 0; ms < 2 * SESSION_MS && h->lost < i; ms++) run(1);
        assert_int_equal(h->lost, i);
        assert_int_equal(divvy_lock_release(h->lock), DIVVY_ENOTHELD);
    }
}

/* The session expires while waiting: the acquire goes on on the next one, at the end of the queue, in its time. */
TEST_IN(test_expired_while_waiting, set_up, tear_down) {
    for (int i = 0; i < 3; i++) make(DIVVY_EXCLUSIVE, clients[i], "x");
    for (int i = 0; i < 3; i++) {
        assert_true(ask(&holders[i], i == 1 ? 60000 : -1));
        run(200);
    }
    divvy_testing_expire(ensemble, clients[1]);
    run(2 * SESSION_MS);
    assert_int_equal(holders[1].result, NEVER);
    assert_int_equal(node_count, 3);
    assert_int_equal(divvy_lock_release(holders[0].lock), 0);
    run(200);
    assert_int_equal(holders[2].result, 0);
    assert_int_equal(holders[1].result, NEVER);
    assert_int_equal(divvy_lock_release(holders[2].lock), 0);
    run(200);
    assert_int_equal(holders[1].result, 0);
    assert_int_equal(holders[1].lost, 0);
    divvy_lock_release(holders[1].lock);
    assert_true(ask(&holders[0], -1)); /* And when the time runs out over it, it runs out. */
    run(200);
    int64_t began = divvy_testing_now_ms(ensemble);
    divvy_testing_link_client(ensemble, clients[1], DIVVY_TESTING_LINK_DOWN);
    assert_int_equal(divvy_lock_acquire(holders[1].lock, 3 * SESSION_MS), DIVVY_ETIMEDOUT);
    assert_in_range(divvy_testing_now_ms(ensemble) - began, 3 * SESSION_MS, 3 * SESSION_MS + 50);
    divvy_testing_heal(ensemble);
    run(4 * SESSION_MS);
    assert_int_equal(node_count, 1);
}

/* Cut off while held: belief ends before the servers let the next one have it. The checks of every
 * step see to it; what is claimed here is that both happen. */
TEST_IN(test_cut_off_while_held, set_up, tear_down) {
    make(DIVVY_EXCLUSIVE, clients[0], "a");
    make(DIVVY_EXCLUSIVE, clients[1], "b");
    assert_true(ask(&holders[0], -1));
    run(1000);
    assert_true(ask(&holders[1], -1));
    run(1000);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    run(3 * SESSION_MS);
    assert_int_equal(holders[0].lost, 1);
    assert_int_equal(holders[1].result, 0);
    assert_true(divvy_lock_held(holders[1].lock));
    divvy_testing_heal(ensemble);
}

/* Past the deadline of its session, whose node the servers have not deleted yet, the same object is asked again: it
 * does not take that node for its own (Curator #1121, #1018) but enters again, and holds by another token once that has
 * gone. */
TEST_IN(test_asked_before_the_old_node_has_gone, set_up, tear_down) {
    make(DIVVY_EXCLUSIVE, clients[0], "a");
    holder *h = &holders[0];
    assert_true(ask(h, -1));
    run(1000);
    int64_t old_token = h->token, old_session = divvy_client_session_id(clients[0]);
    divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN);
    for (int ms = 0; ms < SESSION_MS && h->lost == 0; ms++) run(1);
    assert_int_equal(h->lost, 1);
    assert_int_equal(node_count, 1);
    assert_int_equal(nodes[0].czxid, old_token);
    assert_true(ask(h, -1));
    divvy_testing_heal(ensemble);
    run(3 * SESSION_MS);
    assert_int_equal(h->result, 0);
    assert_true(h->token > old_token);
    assert_int_not_equal(divvy_client_session_id(clients[0]), old_session);
    assert_int_equal(node_count, 1);
    assert_int_equal(nodes[0].czxid, h->token);
}

/* --- random schedules ------------------------------------------------------------------------------------------- */

static void act(holder *h) {
    static const int64_t timeouts[] = {0, 0, 100, 1500, 8000, -1, -1, -1};
    if (h->waiting && draw(12) == 0) {
        h->cancelled = true;
        divvy_lock_cancel(h->lock, 0);
    } else if (divvy_lock_held(h->lock)) {
        if (draw(3) == 0) assert_int_equal(divvy_lock_release(h->lock), 0);
    } else if (!h->waiting) {
        ask(h, timeouts[draw(8)]);
    }
}

static bool is_idle(const divvy_client *client) {
    for (size_t i = 0; i < lock_count; i++) {
        if (holders[i].client == client && (holders[i].waiting || divvy_lock_held(holders[i].lock))) return false;
    }
    return true;
}

static void break_something(void) {
    divvy_client *client = clients[draw(CLIENTS)];
    unsigned server = (unsigned)draw(3);
    switch (draw(12)) {
    case 0:
        if (is_idle(client)) divvy_testing_expire(ensemble, client); /* Killed while in use: see above. */
        break;
    case 1:
    case 10: divvy_testing_link_client(ensemble, client, (divvy_testing_link)draw(4)); break;
    case 2:
    case 11: divvy_testing_pause_client(ensemble, client, 1); break;
    case 3: divvy_testing_kill_server(ensemble, server); break;
    case 4: divvy_testing_pause_server(ensemble, server, 1); break;
    case 5: divvy_testing_link_servers(ensemble, server, (server + 1) % 3, (divvy_testing_link)draw(4)); break;
    case 6: divvy_testing_lag_server(ensemble, server, (int64_t)draw(600)); break;
    case 7: divvy_testing_heal(ensemble); break;
    default: divvy_testing_disconnect(ensemble, client, (divvy_testing_fate)draw(3), (int64_t)draw(3000));
    }
}

static void run_schedule(uint64_t number) {
    seed = random_state = number;
    open_clients();
    bool shared = draw(2);
    for (size_t i = 0; i < LOCKS; i++) {
        char name[16];
        snprintf(name, sizeof name, "%zu", i);
        make(shared ? DIVVY_READ + (int)draw(2) : DIVVY_EXCLUSIVE, clients[i % CLIENTS], name);
    }
    unsigned calm = 3 + (unsigned)draw(40); /* so many actions of users to a fault */
    for (int i = 0; i < 600; i++) {
        act(&holders[draw(LOCKS)]);
        if (draw(calm) == 0) break_something();
        run((int64_t)draw(200));
    }
    /* Heals everything. The waiters get it, one after the other, when the others release. */
    divvy_testing_heal(ensemble);
    run(6 * SESSION_MS);
    for (size_t i = 0; i < LOCKS; i++) {
        if (!holders[i].waiting && !divvy_lock_held(holders[i].lock)) CLAIM(ask(&holders[i], -1), "cannot ask");
    }
    for (size_t round = 0; round < 2 * LOCKS; round++) {
        for (size_t i = 0; i < LOCKS; i++) divvy_lock_release(holders[i].lock);
        run(500);
    }
    for (size_t i = 0; i < LOCKS; i++) CLAIM(!holders[i].waiting, "lock %zu still waits", i);
    run(2000);
    CLAIM(node_count == 0, "%s is left", nodes[0].path);
    close_clients();
}

/* Ten locks of five clients, users and faults at random: exclusion, order and growing tokens at every step; each
 * acquire ends once and in its time; everyone gets the lock in the end; nothing is left. */
TEST(test_random_schedules) {
    enum { SCHEDULES = 40, FRESH = 20 };
    const char *one = getenv("DIVVY_TEST_SEED");
    if (one) {
        run_schedule(strtoull(one, NULL, 10));
        return;
    }
    memset(results, 0, sizeof results);
    for (uint64_t i = 0; i < SCHEDULES + FRESH; i++)
        run_schedule(dv_test_seed_of_run(i, SCHEDULES, "unit_lock_ensemble"));
    print_message("granted %u, timed out %u, busy %u, canceled %u, lost %u\n", results[GRANTED], results[TIMED_OUT],
                  results[BUSY], results[CANCELED], results[LOST]);
    assert_true(results[GRANTED] > 500 && results[TIMED_OUT] > 100 && results[BUSY] > 100 && results[CANCELED] > 100 &&
                results[LOST] > 20);
}
