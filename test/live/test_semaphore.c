/* Semaphore: threads, processes and hosts on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows threads, processes and hosts on a real server, and what a slot costs it. */
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "one_server.h"
#include "test_attach_host.h"

#include "lib/proxy.h"

#define DEAD_SESSION_MS 3000
#define LONG_TICK_MS 6000 /* more than it is, so that the deadline comes long before the expiry */

/* The callbacks of a semaphore that came. */
typedef struct {
    atomic_int done, result, lost, wrong;
    int64_t lost_at_ms;
} heard;

static void on_lost(divvy_semaphore *semaphore, void *user) {
    heard *h = user;
    if (divvy_semaphore_held(semaphore) || divvy_semaphore_acquire(semaphore, 0) != DIVVY_EDEADLK)
        atomic_fetch_add(&h->wrong, 1);
    h->lost_at_ms = dv_test_now_ms();
    atomic_fetch_add(&h->lost, 1);
}

static void on_done(divvy_semaphore *semaphore, int result, void *user) {
    heard *h = user;
    if ((result == 0) != divvy_semaphore_held(semaphore)) atomic_fetch_add(&h->wrong, 1);
    atomic_store(&h->result, result);
    atomic_fetch_add(&h->done, 1);
}

static divvy_client *open_client(const char *hosts, int64_t session_timeout_ms, int manual) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = session_timeout_ms;
    config.ensemble_tick_ms = TICK_MS;
    config.manual = manual;
    return open_connected(&config);
}

static divvy_semaphore *make(divvy_client *client, const char *path, uint32_t limit, uint32_t count, heard *h) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = path;
    config.limit = limit;
    config.count = count;
    config.on_lost = h ? on_lost : NULL;
    config.user = h;
    int error = divvy_semaphore_create(&semaphore, client, &config);
    if (error) fail_msg("create: %s", divvy_client_error(client));
    return semaphore;
}

static size_t nodes(const char *path) {
    return dv_test_zk_count(truth, path);
}

static divvy_stats stats(divvy_client *client) {
    divvy_stats s;
    assert_int_equal(divvy_client_stats(client, &s, sizeof s), 0);
    return s;
}

/* --- what it costs ---------------------------------------------------------------------------------------------- */

/* A free slot costs a place in the queue, three reads with it, and one transaction; its release a delete; no watch. */
TEST(test_cost_uncontended) {
    enum { LATE_MAX = 20 };
    divvy_client *client = open_client(hosts(), 30000, 0);
    divvy_semaphore *s = make(client, "/cost/pool", 3, 1, NULL);
    assert_int_equal(divvy_semaphore_acquire(s, PATIENCE_MS), 0); /* makes the paths */
    assert_int_equal(divvy_semaphore_release(s), 0);
    assert_true(DV_WAIT(nodes("/cost/pool") == 0 && stats(client).in_flight == 0, PATIENCE_MS));
    divvy_stats before = stats(client);
    for (int i = 0, late = 0; i < 100; i++) {
        int error = divvy_semaphore_try_acquire(s);
        if (error == DIVVY_ETIMEDOUT && late++ < LATE_MAX) { /* of a busy server: begins again */
            assert_true(DV_WAIT(nodes("/cost/pool") == 0 && stats(client).in_flight == 0, PATIENCE_MS));
            before = stats(client);
            i = -1;
            continue;
        }
        assert_int_equal(error, 0);
        assert_int_equal(divvy_semaphore_slot(s), 0);
        assert_int_equal(divvy_semaphore_release(s), 0);
    }
    assert_true(DV_WAIT(stats(client).in_flight == 0, PATIENCE_MS));
    divvy_stats after = stats(client);
    assert_int_equal(after.creates - before.creates, 200);
    assert_int_equal(after.deletes - before.deletes, 200);
    assert_int_equal(after.sets - before.sets, 100);
    assert_in_range(after.reads - before.reads, 300, 400); /* the token needs one where a write does not tell it */
    assert_int_equal(after.watch_events - before.watch_events, 0);
    assert_int_equal(after.watches, 0);
    divvy_semaphore_destroy(s);
    divvy_client_close(client);
}

/* By its watches and requests: whether it is settled in its place, the `number`th behind the holder. */
static bool waits_as(divvy_client *client, int number) {
    divvy_stats s = stats(client);
    return s.in_flight == 0 && s.watches == (number <= 0 ? 0u : number == 1 ? 2u : 1u);
}

/* Watch events, reads and written nodes; neither heartbeats nor the look that a holder has for its lease from time to
 * time. */
static void assert_spent(divvy_client *client, const divvy_stats *before, uint64_t events, uint64_t reads,
                         uint64_t writes) {
    divvy_stats s = stats(client);
    assert_int_equal(s.watch_events - before->watch_events, events);
    assert_int_equal(s.gets + s.children - before->gets - before->children, reads);
    assert_int_equal(s.creates + s.deletes + s.sets - before->creates - before->deletes - before->sets, writes);
}

/* A slot goes from one to the next by a delete, one watch event, one read and one transaction of three writes; the
 * acquire that comes to the head by that is woken once and reads the queue, the limit and the leases; all others hear
 * nothing. */
TEST(test_cost_of_a_hand_over) {
    enum { CONTENDERS = 8 };
    divvy_client *clients[CONTENDERS];
    divvy_semaphore *semaphores[CONTENDERS];
    divvy_stats before[CONTENDERS];
    heard h[CONTENDERS];
    memset(h, 0, sizeof h);
    for (int i = 0; i < CONTENDERS; i++) {
        clients[i] = open_client(hosts(), 30000, 0);
        semaphores[i] = make(clients[i], "/cost/handed", 1, 1, &h[i]);
        assert_int_equal(divvy_semaphore_acquire_async(semaphores[i], -1, on_done, &h[i]), 0);
        if (i == 0) assert_true(DV_WAIT(atomic_load(&h[i].done) == 1, PATIENCE_MS));
        assert_true(DV_WAIT(waits_as(clients[i], i), PATIENCE_MS));
    }
    for (int i = 0; i + 1 < CONTENDERS; i++) {
        for (int k = 0; k < CONTENDERS; k++) before[k] = stats(clients[k]);
        assert_int_equal(divvy_semaphore_release(semaphores[i]), 0);
        assert_true(DV_WAIT(atomic_load(&h[i + 1].done) == 1, PATIENCE_MS));
        assert_int_equal(atomic_load(&h[i + 1].result), 0);
        for (int k = 0; k < CONTENDERS; k++) {
            int number = k - i - 1;
            assert_true(DV_WAIT(waits_as(clients[k], number), PATIENCE_MS));
            if (number == -1) assert_spent(clients[k], &before[k], 0, 0, 1);
            else if (number == 0) assert_spent(clients[k], &before[k], 1, 1, 3);
            else if (number == 1) assert_spent(clients[k], &before[k], 1, 3, 0);
            else assert_spent(clients[k], &before[k], 0, 0, 0);
        }
    }
    for (int i = 0; i < CONTENDERS; i++) {
        divvy_semaphore_destroy(semaphores[i]);
        divvy_client_close(clients[i]);
        assert_int_equal(atomic_load(&h[i].lost) + atomic_load(&h[i].wrong), 0);
    }
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

enum { LIMIT = 3 };

typedef struct {
    divvy_semaphore *semaphore;
    int rounds, got, already, failed;
    uint32_t count;
    atomic_int *taken, *too_many, *slots;
} worker;

static void *work(void *context) {
    worker *w = context;
    for (int i = 0; i < w->rounds; i++) {
        int error = divvy_semaphore_acquire(w->semaphore, PATIENCE_MS);
        if (error == DIVVY_EALREADY || error == DIVVY_EINPROGRESS) w->already++;
        else if (error) w->failed++;
        if (error) continue;
        if (atomic_fetch_add(w->taken, (int)w->count) + (int)w->count > LIMIT) atomic_fetch_add(w->too_many, 1);
        int mine[LIMIT];
        for (uint32_t k = 0; k < w->count; k++) {
            mine[k] = divvy_semaphore_slot_at(w->semaphore, k);
            if (mine[k] < 0 || mine[k] >= LIMIT || atomic_fetch_add(&w->slots[mine[k]], 1) != 0)
                atomic_fetch_add(w->too_many, 1);
        }
        for (uint32_t k = 0; k < w->count; k++) {
            if (mine[k] >= 0 && mine[k] < LIMIT) atomic_fetch_sub(&w->slots[mine[k]], 1);
        }
        atomic_fetch_sub(w->taken, (int)w->count);
        w->got++;
        if (divvy_semaphore_release(w->semaphore) != 0) w->failed++;
    }
    return NULL;
}

/* Threads with a semaphore each, on two clients, some for two slots at once: never above the limit, no slot twice. */
TEST(test_threads_in_one_pool) {
    enum { THREADS = 8, ROUNDS = 60 };
    divvy_client *clients[2] = {open_client(hosts(), 30000, 0), open_client(hosts(), 30000, 0)};
    atomic_int taken = 0, too_many = 0, slots[LIMIT] = {0};
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        uint32_t count = i % 4 == 3 ? 2 : 1;
        workers[i] = (worker){.semaphore = make(clients[i % 2], "/threads/pool", LIMIT, count, NULL),
                              .rounds = ROUNDS,
                              .count = count,
                              .taken = &taken,
                              .too_many = &too_many,
                              .slots = slots};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].got, ROUNDS);
        divvy_semaphore_destroy(workers[i].semaphore);
    }
    assert_int_equal(atomic_load(&too_many), 0);
    assert_true(DV_WAIT(nodes("/threads/pool") + nodes("/threads/pool-__lock__") == 0, PATIENCE_MS));
    divvy_client_close(clients[0]);
    divvy_client_close(clients[1]);
}

/* Threads on one object: one holds, the others are told at once that it does. */
TEST(test_threads_on_one_object) {
    enum { THREADS = 4, ROUNDS = 100 };
    divvy_client *client = open_client(hosts(), 30000, 0);
    divvy_semaphore *s = make(client, "/threads/one", LIMIT, 1, NULL);
    atomic_int taken = 0, too_many = 0, slots[LIMIT] = {0};
    worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){s, ROUNDS, 0, 0, 0, 1, &taken, &too_many, slots};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    int got = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].got + workers[i].already, ROUNDS);
        got += workers[i].got;
    }
    assert_true(got > 0);
    assert_int_equal(atomic_load(&too_many), 0);
    divvy_semaphore_destroy(s);
    divvy_client_close(client);
}

/* A waiting acquire ends when another thread cancels it, or closes the client. */
TEST(test_ended_by_another_thread) {
    divvy_client *holder = open_client(hosts(), 30000, 0);
    divvy_client *client = open_client(hosts(), 30000, 0);
    divvy_semaphore *held = make(holder, "/ended/pool", 1, 1, NULL), *s = make(client, "/ended/pool", 1, 1, NULL);
    assert_int_equal(divvy_semaphore_acquire(held, PATIENCE_MS), 0);
    for (int i = 0; i < 2; i++) {
        atomic_int unused = 0;
        worker w = {s, 1, 0, 0, 0, 1, &unused, &unused, &unused};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, work, &w), 0);
        assert_true(DV_WAIT(nodes("/ended/pool-__lock__") == 1, PATIENCE_MS));
        if (i == 0) assert_int_equal(divvy_semaphore_cancel(s, 0), 0);
        else divvy_client_close(client);
        pthread_join(thread, NULL);
        assert_int_equal(w.failed, 1);
        assert_true(DV_WAIT(nodes("/ended/pool-__lock__") == 0, PATIENCE_MS));
    }
    divvy_semaphore_destroy(s);
    divvy_semaphore_destroy(held);
    divvy_client_close(holder);
}

/* In manual mode a waiting call drives the loop itself, and a callback comes by process(). */
TEST(test_manual) {
    heard h;
    memset(&h, 0, sizeof h);
    divvy_client *client = open_client(hosts(), 30000, 1);
    divvy_semaphore *a = make(client, "/manual/pool", 1, 1, NULL), *b = make(client, "/manual/pool", 1, 1, &h);
    assert_int_equal(divvy_semaphore_acquire(a, PATIENCE_MS), 0);
    assert_int_equal(divvy_semaphore_try_acquire(b), DIVVY_EBUSY);
    assert_int_equal(divvy_semaphore_acquire(b, 50), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_semaphore_acquire_async(b, -1, on_done, &h), 0);
    assert_int_equal(divvy_semaphore_resize(a, 2, PATIENCE_MS), 0);
    for (int i = 0; i < 1000 && !atomic_load(&h.done); i++) divvy_client_process(client, 40);
    assert_int_equal(atomic_load(&h.done), 1);
    assert_int_equal(atomic_load(&h.result) + atomic_load(&h.wrong), 0);
    divvy_semaphore_destroy(a);
    divvy_semaphore_destroy(b);
    divvy_client_close(client);
}

/* --- faults ----------------------------------------------------------------------------------------------------- */

/* A process that holds a slot, and dies. */
static int hold_and_die(const char *hosts) {
    divvy_semaphore *s = make(open_client(hosts, DEAD_SESSION_MS, 0), "/cut/pool", 2, 1, NULL);
    return divvy_semaphore_acquire(s, PATIENCE_MS) == 0 ? kill(getpid(), SIGKILL) : 1;
}

/* A holder that is cut off is told of its loss before the next one gets its slot, which is when the session has
 * expired; a holder that dies is replaced then too. */
TEST(test_cut_off_and_dead_holders) {
    heard lost, next[2];
    memset(&lost, 0, sizeof lost);
    memset(next, 0, sizeof next);
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client *cut = open_client(dv_test_proxy_address(proxy), DEAD_SESSION_MS, 0);
    divvy_client *client = open_client(hosts(), 30000, 0);
    divvy_semaphore *held = make(cut, "/cut/pool", 2, 1, &lost);
    assert_int_equal(divvy_semaphore_acquire(held, PATIENCE_MS), 0);
    char *const arguments[] = {"test_semaphore", "die", (char *)(uintptr_t)hosts(), NULL};
    pid_t child;
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(nodes("/cut/pool"), 2);
    divvy_semaphore *waiters[2];
    for (int i = 0; i < 2; i++) {
        waiters[i] = make(client, "/cut/pool", 2, 1, &next[i]);
        assert_int_equal(divvy_semaphore_acquire_async(waiters[i], -1, on_done, &next[i]), 0);
    }
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(atomic_load(&lost.lost) == 1, PATIENCE_MS));

    assert_false(divvy_semaphore_held(held));
    for (int i = 0; i < 2; i++) assert_true(DV_WAIT(atomic_load(&next[i].done) == 1, PATIENCE_MS));
    assert_int_equal(atomic_load(&next[0].wrong) + atomic_load(&next[1].wrong) + atomic_load(&lost.wrong), 0);
    assert_true(divvy_semaphore_held(waiters[0]) && divvy_semaphore_held(waiters[1]));
    dv_test_proxy_restore(proxy);
    for (int i = 0; i < 2; i++) divvy_semaphore_destroy(waiters[i]);
    assert_int_equal(divvy_semaphore_acquire(held, PATIENCE_MS), 0); /* on its next session */
    assert_int_equal(atomic_load(&lost.lost), 1);
    divvy_semaphore_destroy(held);
    divvy_client_close(client);
    divvy_client_close(cut);
    dv_test_proxy_stop(proxy);
}

/* A link that breaks again and again loses replies, and nothing else: each acquire gets its slot once, nothing
 * stays. */
TEST(test_broken_links) {
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    divvy_client *client = open_client(dv_test_proxy_address(proxy), 30000, 0);
    heard h;
    memset(&h, 0, sizeof h);
    divvy_semaphore *s = make(client, "/broken/pool", 2, 1, &h);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(divvy_semaphore_acquire_async(s, -1, on_done, &h), 0);
        dv_test_sleep_ms(i % 4); /* somewhere in the middle of it */
        dv_test_proxy_cut(proxy);
        dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(atomic_load(&h.done) == i + 1, PATIENCE_MS));
        assert_int_equal(atomic_load(&h.result), 0);
        assert_int_equal(nodes("/broken/pool"), 1);
        assert_int_equal(divvy_semaphore_release(s), 0);
        if (i % 2) dv_test_proxy_cut(proxy);
        dv_test_proxy_restore(proxy);
        assert_true(DV_WAIT(nodes("/broken/pool") + nodes("/broken/pool-__lock__") == 0, PATIENCE_MS));
    }
    assert_int_equal(atomic_load(&h.lost) + atomic_load(&h.wrong), 0);
    divvy_semaphore_destroy(s);
    divvy_client_close(client);
    dv_test_proxy_stop(proxy);
}

/* A server that restarts keeps the session: what is held stays held, what waits goes on. */
TEST(test_server_restarts) {
    heard h;
    memset(&h, 0, sizeof h);
    divvy_client *client = open_client(hosts(), 30000, 0);
    divvy_semaphore *a = make(client, "/restart/pool", 1, 1, &h), *b = make(client, "/restart/pool", 1, 1, &h);
    assert_int_equal(divvy_semaphore_acquire(a, PATIENCE_MS), 0);
    int64_t token = divvy_semaphore_token(a);
    assert_int_equal(divvy_semaphore_acquire_async(b, -1, on_done, &h), 0);
    assert_true(DV_WAIT(nodes("/restart/pool-__lock__") == 1, PATIENCE_MS));
    dv_test_server_kill(server, 1);
    dv_test_server_restart(server, 1);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_true(divvy_semaphore_held(a));
    assert_int_equal(divvy_semaphore_token(a), token);
    assert_int_equal(divvy_semaphore_release(a), 0);
    assert_true(DV_WAIT(atomic_load(&h.done) == 1, PATIENCE_MS));
    assert_int_equal(atomic_load(&h.result) + atomic_load(&h.lost) + atomic_load(&h.wrong), 0);
    assert_true(divvy_semaphore_token(b) > token);
    divvy_semaphore_destroy(a);
    divvy_semaphore_destroy(b);
    divvy_client_close(client);
}

/* --- a host's session ------------------------------------------------------------------------------------------- */

/* On a host's session a slot is held once that session is proven to live, and given back when the client leaves it; a
 * loss that is told ends a waiting acquire, as there is no other session. */
TEST(test_attached) {
    host h;
    heard waits;
    memset(&waits, 0, sizeof waits);
    host_open(&h, hosts(), HOST_TIMEOUT_MS);
    divvy_client *client = attach_connected(&h, NULL);
    divvy_semaphore *a = make(client, "/attached/pool", 1, 1, NULL), *b = make(client, "/attached/pool", 1, 1, &waits);
    assert_int_equal(divvy_semaphore_acquire(a, PATIENCE_MS), 0);
    assert_true(divvy_semaphore_held(a));
    assert_int_equal(divvy_semaphore_acquire_async(b, -1, on_done, &waits), 0);
    assert_true(DV_WAIT(nodes("/attached/pool-__lock__") == 1, PATIENCE_MS));
    divvy_client_close(client);
    assert_int_equal(atomic_load(&waits.done), 1);
    assert_int_equal(atomic_load(&waits.result), DIVVY_ECANCELED);
    assert_true(DV_WAIT(nodes("/attached/pool") + nodes("/attached/pool-__lock__") == 0, PATIENCE_MS));
    assert_int_equal(zoo_state(h.handle), ZOO_CONNECTED_STATE);
    divvy_semaphore_destroy(a);
    divvy_semaphore_destroy(b);
    host_close(&h);
}

/* The deadline passes before a server says anything, and the host's session lives: the slot is lost, the wait ends, and
 * whatever stands of both is deleted when there is a link again. Then slots are had on the same session. */
TEST(test_attached_past_the_deadline) {
    host h;
    heard held, waits;
    memset(&held, 0, sizeof held);
    memset(&waits, 0, sizeof waits);
    dv_test_proxy *proxy = dv_test_proxy_start(dv_test_server_address(server, 1));
    host_open(&h, dv_test_proxy_address(proxy), 10000);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.ensemble_tick_ms = LONG_TICK_MS;
    divvy_client *client = attach_connected(&h, &config);
    divvy_semaphore *a = make(client, "/late/pool", 1, 1, &held), *b = make(client, "/late/pool", 1, 1, &waits);
    assert_int_equal(divvy_semaphore_acquire(a, PATIENCE_MS), 0);
    int64_t token = divvy_semaphore_token(a);
    assert_int_equal(divvy_semaphore_acquire_async(b, -1, on_done, &waits), 0);
    assert_true(DV_WAIT(nodes("/late/pool-__lock__") == 1, PATIENCE_MS));
    dv_test_proxy_freeze(proxy);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_LOST, PATIENCE_MS));
    assert_true(DV_WAIT(atomic_load(&held.lost) == 1 && atomic_load(&waits.done) == 1, PATIENCE_MS));
    assert_int_equal(atomic_load(&waits.result), DIVVY_ELOST);
    assert_int_equal(nodes("/late/pool") + nodes("/late/pool-__lock__"), 2);
    dv_test_proxy_cut(proxy);
    dv_test_proxy_restore(proxy);
    assert_true(DV_WAIT(nodes("/late/pool") + nodes("/late/pool-__lock__") == 0, PATIENCE_MS));
    assert_int_equal(atomic_load(&h.expired), 0);
    assert_true(DV_WAIT(divvy_client_state(client) == DIVVY_CONNECTED, PATIENCE_MS)); /* once it knows, too */
    assert_int_equal(divvy_semaphore_acquire(a, PATIENCE_MS), 0);
    assert_true(divvy_semaphore_token(a) > token);
    assert_int_equal(atomic_load(&held.lost), 1);
    assert_int_equal(atomic_load(&held.wrong) + atomic_load(&waits.wrong), 0);
    divvy_semaphore_destroy(a);
    divvy_semaphore_destroy(b);
    divvy_client_close(client);
    host_close(&h);
    dv_test_proxy_stop(proxy);
}

TEST_GROUP(start_server, stop_server);

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "die") == 0) return hold_and_die(argv[2]);
    return dv_test_run();
}
