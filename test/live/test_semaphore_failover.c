/* Semaphore and lock on three servers, whose leader is killed. SPDX-License-Identifier: Apache-2.0
 *
 * Shows locks and slots over the death of a real leader, with threads that wait. */
#include "test_client_witness.h"

#include <inttypes.h>

#include "lib/server.h"
#include "lib/zk.h"

#define TICK_MS 100

enum { SERVERS = 3, SESSION_MS = 20000, LIMIT = 2 };

static dv_test_server *server;

static divvy_client *open_client(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = dv_test_server_connect(server);
    config.session_timeout_ms = SESSION_MS;
    config.ensemble_tick_ms = TICK_MS;
    return open_connected(&config);
}

/* --- held, and waiting ------------------------------------------------------------------------------------------ */

typedef struct {
    atomic_int done, result, lost;
} heard;

static void on_lock_lost(divvy_lock *lock, void *user) {
    (void)lock;
    atomic_fetch_add(&((heard *)user)->lost, 1);
}

static void on_semaphore_lost(divvy_semaphore *semaphore, void *user) {
    (void)semaphore;
    atomic_fetch_add(&((heard *)user)->lost, 1);
}

static void on_lock(divvy_lock *lock, int result, void *user) {
    heard *h = user;
    (void)lock;
    atomic_store(&h->result, result);
    atomic_fetch_add(&h->done, 1);
}

static void on_semaphore(divvy_semaphore *semaphore, int result, void *user) {
    heard *h = user;
    (void)semaphore;
    atomic_store(&h->result, result);
    atomic_fetch_add(&h->done, 1);
}

static divvy_lock *make_lock(divvy_client *client, const char *path, heard *h) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = path;
    config.on_lost = on_lock_lost;
    config.user = h;
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    return lock;
}

static divvy_semaphore *make_semaphore(divvy_client *client, const char *path, heard *h) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = path;
    config.limit = LIMIT;
    config.on_lost = on_semaphore_lost;
    config.user = h;
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    return semaphore;
}

/* One client each: the first of the locks holds, and the first two of the semaphores; the rest wait. */
typedef struct {
    dv_test_zk *truth;
    divvy_client *clients[4];
    divvy_lock *locks[3];
    divvy_semaphore *semaphores[4];
    heard of_locks[3], of_semaphores[4];
    int64_t lock_token, tokens[LIMIT];
} scene;

static void set_scene(scene *s) {
    memset(s, 0, sizeof *s);
    s->truth = dv_test_zk_open(dv_test_server_connect(server));
    for (int i = 0; i < 4; i++) s->clients[i] = open_client();
    for (int i = 0; i < 3; i++) {
        s->locks[i] = make_lock(s->clients[i], "/held/lock", &s->of_locks[i]);
        assert_int_equal(divvy_lock_acquire_async(s->locks[i], -1, on_lock, &s->of_locks[i]), 0);
        assert_true(DV_WAIT(dv_test_zk_count(s->truth, "/held/lock") == (size_t)i + 1, PATIENCE_MS));
    }
    for (int i = 0; i < 4; i++) {
        heard *h = &s->of_semaphores[i];
        s->semaphores[i] = make_semaphore(s->clients[i], "/held/pool", h);
        assert_int_equal(divvy_semaphore_acquire_async(s->semaphores[i], -1, on_semaphore, h), 0);
        if (i < LIMIT) assert_true(DV_WAIT(atomic_load(&h->done) == 1, PATIENCE_MS));
        else
            assert_true(
                DV_WAIT(dv_test_zk_count(s->truth, "/held/pool-__lock__") == (size_t)(i - LIMIT) + 1, PATIENCE_MS));
    }
    assert_true(DV_WAIT(atomic_load(&s->of_locks[0].done) == 1, PATIENCE_MS));
    s->lock_token = divvy_lock_token(s->locks[0]);
    assert_true(s->lock_token > 0);
    for (int i = 0; i < LIMIT; i++) s->tokens[i] = divvy_semaphore_token(s->semaphores[i]);
}

/* Returns whether all that was held is still held, by the same token and slot, and nobody else holds it. */
static bool is_unchanged(scene *s) {
    bool same = divvy_lock_token(s->locks[0]) == s->lock_token;
    for (int i = 1; i < 3; i++) same = same && !divvy_lock_held(s->locks[i]);
    for (int i = 0; i < LIMIT; i++)
        same = same && divvy_semaphore_token(s->semaphores[i]) == s->tokens[i] &&
               divvy_semaphore_slot(s->semaphores[i]) == i;
    for (int i = LIMIT; i < 4; i++) same = same && !divvy_semaphore_held(s->semaphores[i]);
    return same;
}

static uint64_t connects(const scene *s) {
    uint64_t sum = 0;
    for (int i = 0; i < 4; i++) {
        divvy_stats stats;
        assert_int_equal(divvy_client_stats(s->clients[i], &stats, sizeof stats), 0);
        sum += stats.connects;
    }
    return sum;
}

static bool all_connected(const scene *s) {
    for (int i = 0; i < 4; i++) {
        if (divvy_client_state(s->clients[i]) != DIVVY_CONNECTED) return false;
    }
    return true;
}

/* Followers that lose their leader drop their clients, so that everyone has to connect again. */
static void kill_leader(scene *s) {
    int leader = dv_test_server_await_leader(server);
    uint64_t before = connects(s);
    bool unchanged = true;
    dv_test_server_kill(server, leader);
    assert_true(DV_WAIT((unchanged = unchanged && is_unchanged(s), connects(s) >= before + 4), PATIENCE_MS));
    assert_true(DV_WAIT((unchanged = unchanged && is_unchanged(s), all_connected(s)), PATIENCE_MS));
    assert_true(unchanged);
    dv_test_server_restart(server, leader);
}

static void clear_scene(scene *s) {
    for (int i = 0; i < 3; i++) {
        assert_int_equal(atomic_load(&s->of_locks[i].lost), 0);
        divvy_lock_destroy(s->locks[i]);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(atomic_load(&s->of_semaphores[i].lost), 0);
        divvy_semaphore_destroy(s->semaphores[i]);
    }
    assert_true(
        DV_WAIT(dv_test_zk_count(s->truth, "/held/lock") + dv_test_zk_count(s->truth, "/held/pool") == 0, PATIENCE_MS));
    assert_int_equal(dv_test_zk_count(s->truth, "/held/pool-__lock__"), 0);
    for (int i = 0; i < 4; i++) divvy_client_close(s->clients[i]);
    dv_test_zk_close(s->truth);
}

/* How everyone stands, for who reads the log of a failure. */
static void print_scene(const scene *s) {
    for (int i = 0; i < 4; i++) {
        const heard *semaphore = &s->of_semaphores[i];
        divvy_stats stats;
        assert_int_equal(divvy_client_stats(s->clients[i], &stats, sizeof stats), 0);
        print_message("client %d: state %d, %" PRIu64 " connects\n", i, divvy_client_state(s->clients[i]),
                      stats.connects);
        if (i < 3) {
            const heard *lock = &s->of_locks[i];
            print_message("lock %d: done %d, result %d, lost %d, token %" PRId64 "\n", i, atomic_load(&lock->done),
                          atomic_load(&lock->result), atomic_load(&lock->lost), divvy_lock_token(s->locks[i]));
        }
        print_message("semaphore %d: done %d, result %d, lost %d, slot %d\n", i, atomic_load(&semaphore->done),
                      atomic_load(&semaphore->result), atomic_load(&semaphore->lost),
                      divvy_semaphore_slot(s->semaphores[i]));
    }
    print_message("leader: %d\n", dv_test_server_leader(server));
}

/* Waits until `who` of the scene was told that it holds. */
static void granted(const scene *s, const char *who, const heard *h) {
    if (!DV_WAIT(atomic_load(&h->done) == 1, PATIENCE_MS)) {
        print_scene(s);
        fail_msg("%s was not granted", who);
    }
    assert_int_equal(atomic_load(&h->result), 0);
}

/* The leader goes while a lock and two slots are held, and others wait: held stays held, with the same token and slot,
 * and who waits goes on in the order of the queue. The second time the leader goes right after the release: what was
 * given back is given on, once. */
TEST(test_leader_killed) {
    scene s;
    set_scene(&s);
    kill_leader(&s);
    assert_int_equal(divvy_lock_release(s.locks[0]), 0);
    assert_int_equal(divvy_semaphore_release(s.semaphores[1]), 0);
    granted(&s, "lock 1", &s.of_locks[1]);
    granted(&s, "semaphore 2", &s.of_semaphores[2]);
    assert_true(divvy_lock_token(s.locks[1]) > s.lock_token);
    assert_int_equal(divvy_semaphore_slot(s.semaphores[2]), 1);
    assert_true(divvy_semaphore_token(s.semaphores[2]) > s.tokens[1]);
    assert_int_equal(atomic_load(&s.of_locks[2].done) + atomic_load(&s.of_semaphores[3].done), 0);
    assert_int_equal(divvy_semaphore_token(s.semaphores[0]), s.tokens[0]);

    int leader = dv_test_server_await_leader(server);
    assert_int_equal(divvy_lock_release(s.locks[1]), 0);
    assert_int_equal(divvy_semaphore_release(s.semaphores[0]), 0);
    dv_test_server_kill(server, leader);
    granted(&s, "lock 2", &s.of_locks[2]);
    granted(&s, "semaphore 3", &s.of_semaphores[3]);
    assert_int_equal(divvy_semaphore_slot(s.semaphores[3]), 0);
    assert_int_equal(divvy_semaphore_slot(s.semaphores[2]), 1);
    dv_test_server_restart(server, leader);
    clear_scene(&s);
}

/* --- at work ---------------------------------------------------------------------------------------------------- */

enum { WORKERS = 6, CLIENTS = 3, HOLD_MS = 1 };

typedef struct {
    divvy_lock *lock; /* or a semaphore */
    divvy_semaphore *semaphore;
    atomic_int turns;
} worker;

static atomic_int over, failed, inside, taken, overlaps;
static atomic_int slots[LIMIT];

static void take_lock_turn(worker *w) {
    if (divvy_lock_acquire(w->lock, -1) != 0) atomic_fetch_add(&failed, 1);
    if (atomic_fetch_add(&inside, 1) != 0) atomic_fetch_add(&overlaps, 1);
    dv_test_sleep_ms(HOLD_MS);
    atomic_fetch_sub(&inside, 1);
    if (divvy_lock_release(w->lock) != 0) atomic_fetch_add(&failed, 1);
}

static void take_slot_turn(worker *w) {
    if (divvy_semaphore_acquire(w->semaphore, -1) != 0) atomic_fetch_add(&failed, 1);
    int slot = divvy_semaphore_slot(w->semaphore);
    if (atomic_fetch_add(&taken, 1) >= LIMIT) atomic_fetch_add(&overlaps, 1);
    if (slot < 0 || slot >= LIMIT) atomic_fetch_add(&failed, 1);
    else if (atomic_fetch_add(&slots[slot], 1) != 0) atomic_fetch_add(&overlaps, 1);
    dv_test_sleep_ms(HOLD_MS);
    if (slot >= 0 && slot < LIMIT) atomic_fetch_sub(&slots[slot], 1);
    atomic_fetch_sub(&taken, 1);
    if (divvy_semaphore_release(w->semaphore) != 0) atomic_fetch_add(&failed, 1);
}

static void *work(void *context) {
    worker *w = context;
    while (!atomic_load(&over) && !atomic_load(&failed)) {
        if (w->lock) take_lock_turn(w);
        else take_slot_turn(w);
        atomic_fetch_add(&w->turns, 1);
    }
    return NULL;
}

static bool all_go_on(worker *workers, const int *before) {
    for (int i = 0; i < WORKERS; i++) {
        if (atomic_load(&workers[i].turns) <= before[i]) return false;
    }
    return true;
}

/* Until each has had a turn that it did not have before. */
static void wait_turns(worker *workers) {
    int before[WORKERS];
    for (int i = 0; i < WORKERS; i++) before[i] = atomic_load(&workers[i].turns);
    assert_true(DV_WAIT(all_go_on(workers, before) || atomic_load(&failed), PATIENCE_MS));
    assert_int_equal(atomic_load(&failed), 0);
}

/* The leader goes while locks and slots change hands all the time: whatever was in doubt then, a lock never
 * has two holders, a pool never more than its limit, a slot never two; no session is lost, and everyone goes on. */
TEST(test_leader_killed_at_work) {
    divvy_client *clients[CLIENTS];
    heard lost = {.lost = 0};
    worker workers[WORKERS];
    pthread_t threads[WORKERS];
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < CLIENTS; i++) clients[i] = open_client();
    for (int i = 0; i < WORKERS; i++) {
        if (i % 3 == 0) workers[i].lock = make_lock(clients[i % 2], "/work/lock", &lost);
        else workers[i].semaphore = make_semaphore(clients[i % CLIENTS], "/work/pool", &lost);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    wait_turns(workers);
    dv_test_server_kill(server, dv_test_server_await_leader(server)); /* for good: two are enough */
    wait_turns(workers);
    wait_turns(workers);
    atomic_store(&over, 1);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        divvy_lock_destroy(workers[i].lock);
        divvy_semaphore_destroy(workers[i].semaphore);
    }
    assert_int_equal(atomic_load(&overlaps) + atomic_load(&failed) + atomic_load(&lost.lost), 0);
    dv_test_zk *truth = dv_test_zk_open(dv_test_server_connect(server));
    assert_true(
        DV_WAIT(dv_test_zk_count(truth, "/work/lock") + dv_test_zk_count(truth, "/work/pool") == 0, PATIENCE_MS));
    assert_true(DV_WAIT(dv_test_zk_count(truth, "/work/pool-__lock__") == 0, PATIENCE_MS));
    for (int i = 0; i < CLIENTS; i++) divvy_client_close(clients[i]);
    dv_test_zk_close(truth);
}

static int start(void **state) {
    (void)state;
    server = dv_test_server_start(SERVERS, TICK_MS);
    return 0;
}

static int stop(void **state) {
    (void)state;
    dv_test_server_stop(server);
    return 0;
}

TEST_GROUP(start, stop);
