/* Lock: threads and processes on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows threads, processes and a real server: who is inside, what a hand-over costs it, which watches it keeps. */
#include "lock_fixture.h"

static void on_done(divvy_lock *lock, int result, void *user) {
    heard *h = user;
    if (h->releases && result == 0 && divvy_lock_release(lock) != 0) atomic_fetch_add(&h->wrong, 1);
    atomic_store(&h->result, result);
    atomic_fetch_add(&h->done, 1);
}

static divvy_stats stats(divvy_client *client) {
    divvy_stats s;
    assert_int_equal(divvy_client_stats(client, &s, sizeof s), 0);
    return s;
}

/* --- what it costs ---------------------------------------------------------------------------------------------- */

/* A free lock costs a create and a list, its release a delete, and no watch. */
TEST(test_cost_uncontended) {
    divvy_client *client = open_client(30000, 0);
    divvy_lock *lock = make(client, "/cost/one", DIVVY_EXCLUSIVE, NULL);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0); /* makes the directory */
    assert_int_equal(divvy_lock_release(lock), 0);
    assert_true(DV_WAIT(nodes("/cost/one") == 0 && stats(client).in_flight == 0, PATIENCE_MS));
    divvy_stats before = stats(client);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
        assert_int_equal(divvy_lock_release(lock), 0);
    }
    divvy_stats after = stats(client);
    assert_int_equal(after.creates - before.creates, 100);
    assert_int_equal(after.deletes - before.deletes, 100);
    assert_int_equal(after.children - before.children, 100);
    assert_int_equal(after.gets + after.exists - before.gets - before.exists, 0);
    assert_int_equal(after.watches, 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

/* A hand-over costs one delete, one watch event and one list, however many wait. */
TEST(test_cost_of_a_hand_over) {
    enum { WAITERS = 20 };
    divvy_client *client = open_client(30000, 0);
    divvy_lock *locks[WAITERS + 1];
    heard h[WAITERS + 1];
    memset(h, 0, sizeof h);
    for (int i = 0; i <= WAITERS; i++) {
        locks[i] = make(client, "/cost/many", DIVVY_EXCLUSIVE, &h[i]);
        assert_int_equal(divvy_lock_acquire_async(locks[i], -1, on_done, &h[i]), 0);
        assert_true(DV_WAIT(nodes("/cost/many") == (size_t)i + 1, PATIENCE_MS));
    }
    assert_true(DV_WAIT(stats(client).watches == WAITERS && stats(client).in_flight == 0, PATIENCE_MS));
    divvy_stats before = stats(client);
    for (int i = 0; i < WAITERS; i++) {
        assert_true(divvy_lock_held(locks[i]));
        assert_int_equal(divvy_lock_release(locks[i]), 0);
        assert_true(DV_WAIT(atomic_load(&h[i + 1].done) == 1, PATIENCE_MS));
        assert_int_equal(atomic_load(&h[i + 1].result), 0);
    }
    divvy_stats after = stats(client);
    assert_int_equal(after.watch_events - before.watch_events, WAITERS);
    assert_int_equal(after.deletes - before.deletes, WAITERS);
    assert_int_equal(after.creates - before.creates, 0);
    assert_int_equal(after.reads - before.reads, WAITERS);
    for (int i = 0; i <= WAITERS; i++) {
        divvy_lock_destroy(locks[i]);
        assert_int_equal(atomic_load(&h[i].done), 1);
        assert_int_equal(atomic_load(&h[i].lost) + atomic_load(&h[i].wrong), 0);
    }
    divvy_client_close(client);
}

static long watches_at_the_server(void) {
    char answer[4096];
    assert_true(dv_test_server_ask(server, 1, "mntr", answer, sizeof answer));
    const char *line = strstr(answer, "zk_watch_count");
    assert_non_null(line);
    return strtol(line + strlen("zk_watch_count"), NULL, 10);
}

/* Waits that were given up leave one watch on the holder's node, however many they were: watches that did not fire do
 * not pile up, here or at the server (kazoo #413). */
TEST(test_watches_do_not_pile_up) {
    divvy_client *client = open_client(30000, 0);
    heard h = {.done = 0};
    divvy_lock *held = make(client, "/piles", DIVVY_EXCLUSIVE, NULL), *lock = make(client, "/piles", DIVVY_READ, NULL);
    assert_int_equal(divvy_lock_acquire(held, PATIENCE_MS), 0);
    long before = watches_at_the_server();
    assert_int_equal(divvy_lock_acquire_async(lock, -1, on_done, &h), 0);
    assert_true(DV_WAIT(stats(client).watches == 1 && stats(client).in_flight == 0, PATIENCE_MS));
    assert_int_equal(divvy_lock_cancel(lock, 0), 0);
    assert_true(DV_WAIT(atomic_load(&h.done) == 1, PATIENCE_MS));
    for (int i = 0; i < 10; i++) assert_int_equal(divvy_lock_acquire(lock, 30), DIVVY_ETIMEDOUT);
    assert_true(DV_WAIT(nodes("/piles") == 1, PATIENCE_MS));
    assert_int_equal(stats(client).watches, 1);
    assert_int_equal(watches_at_the_server() - before, 1);
    assert_int_equal(divvy_lock_release(held), 0);
    assert_true(DV_WAIT(stats(client).watches == 0 && watches_at_the_server() == before, PATIENCE_MS));
    divvy_lock_destroy(held);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

/* --- threads ---------------------------------------------------------------------------------------------------- */

typedef struct {
    divvy_lock *lock;
    int rounds, got, already;
    atomic_int *inside, *overlaps;
} worker;

static void *work(void *context) {
    worker *w = context;
    for (int i = 0; i < w->rounds; i++) {
        int error = divvy_lock_acquire(w->lock, -1);
        if (error == DIVVY_EALREADY || error == DIVVY_EINPROGRESS) w->already++;
        if (error) continue;
        if (atomic_fetch_add(w->inside, 1) != 0) atomic_fetch_add(w->overlaps, 1);
        if (!divvy_lock_held(w->lock)) atomic_fetch_add(w->overlaps, 1);
        w->got++;
        atomic_fetch_sub(w->inside, 1);
        divvy_lock_release(w->lock);
    }
    return NULL;
}

static void run_workers(worker *workers, size_t count) {
    pthread_t threads[32];
    for (size_t i = 0; i < count; i++) assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (size_t i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

/* Threads with a lock each, on two clients: never two inside, and each gets its turns. */
TEST(test_threads) {
    enum { THREADS = 8, ROUNDS = 25 };
    divvy_client *clients[2] = {open_client(30000, 0), open_client(30000, 0)};
    atomic_int inside = 0, overlaps = 0;
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++)
        workers[i] =
            (worker){make(clients[i % 2], "/threads/each", DIVVY_WRITE, NULL), ROUNDS, 0, 0, &inside, &overlaps};
    run_workers(workers, THREADS);
    assert_int_equal(atomic_load(&overlaps), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(workers[i].got, ROUNDS);
        divvy_lock_destroy(workers[i].lock);
    }
    for (int i = 0; i < 2; i++) divvy_client_close(clients[i]);
    assert_int_equal(nodes("/threads/each"), 0);
}

/* Threads on one lock object: it is not re-entrant, so each gets it or is told so at once; never two inside. */
TEST(test_threads_on_one_lock) {
    enum { THREADS = 6, ROUNDS = 100 };
    divvy_client *client = open_client(30000, 0);
    divvy_lock *lock = make(client, "/threads/one", DIVVY_EXCLUSIVE, NULL);
    atomic_int inside = 0, overlaps = 0;
    worker workers[THREADS];
    int got = 0, already = 0;
    for (int i = 0; i < THREADS; i++) workers[i] = (worker){lock, ROUNDS, 0, 0, &inside, &overlaps};
    run_workers(workers, THREADS);
    for (int i = 0; i < THREADS; i++) {
        got += workers[i].got;
        already += workers[i].already;
    }
    assert_int_equal(atomic_load(&overlaps), 0);
    assert_int_equal(got + already, THREADS * ROUNDS);
    assert_true(got > 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    assert_int_equal(nodes("/threads/one"), 0);
}

static void *acquire_for_ever(void *lock) {
    return (void *)(intptr_t)divvy_lock_acquire(lock, -1);
}

/* A waiting call is ended by cancel, by destroy, and by close, each from another thread, with the error of each. */
TEST(test_endings_of_a_waiting_call) {
    divvy_client *holder = open_client(30000, 0);
    divvy_lock *held = make(holder, "/endings", DIVVY_EXCLUSIVE, NULL);
    assert_int_equal(divvy_lock_acquire(held, PATIENCE_MS), 0);
    for (int ending = 0; ending < 3; ending++) {
        static const int expected[] = {DIVVY_ECANCELED, DIVVY_ECLOSED, DIVVY_ECLOSED};
        divvy_client *client = open_client(30000, 0);
        divvy_lock *lock = make(client, "/endings", DIVVY_EXCLUSIVE, NULL);
        pthread_t thread;
        void *result;
        assert_int_equal(pthread_create(&thread, NULL, acquire_for_ever, lock), 0);
        assert_true(DV_WAIT(nodes("/endings") == 2, PATIENCE_MS));
        if (ending == 0) assert_int_equal(divvy_lock_cancel(lock, 0), 0);
        if (ending == 1) divvy_lock_destroy(lock);
        if (ending == 2) divvy_client_close(client);
        pthread_join(thread, &result);
        assert_int_equal((intptr_t)result, expected[ending]);
        assert_true(DV_WAIT(nodes("/endings") == 1, PATIENCE_MS));
        if (ending != 1) divvy_lock_destroy(lock);
        if (ending != 2) divvy_client_close(client);
    }
    divvy_lock_destroy(held);
    divvy_client_close(holder);
}

/* Asynchronous acquires are told once: released inside; and when destroyed, before the destroying call returns. */
TEST(test_asynchronous) {
    for (int manual = 0; manual < 2; manual++) {
        divvy_client *client = open_client(30000, manual);
        heard one = {.releases = true}, other = {.releases = false};
        divvy_lock *a = make(client, "/async", DIVVY_EXCLUSIVE, &one),
                   *b = make(client, "/async", DIVVY_EXCLUSIVE, &other);
        assert_int_equal(divvy_lock_acquire_async(a, -1, on_done, &one), 0);
        while (manual && !atomic_load(&one.done)) assert_true(divvy_client_process(client, PATIENCE_MS) > 0);
        assert_true(DV_WAIT(atomic_load(&one.done) == 1, PATIENCE_MS));
        assert_int_equal(atomic_load(&one.result), 0);
        assert_false(divvy_lock_held(a));
        one.releases = false;
        assert_int_equal(divvy_lock_acquire(a, PATIENCE_MS), 0);
        assert_int_equal(divvy_lock_acquire_async(b, -1, on_done, &other), 0);
        divvy_lock_destroy(b);
        assert_int_equal(atomic_load(&other.done), 1);
        assert_int_equal(atomic_load(&other.result), DIVVY_ECANCELED);
        divvy_lock_destroy(a);
        divvy_client_close(client);
        assert_int_equal(atomic_load(&one.wrong) + atomic_load(&other.wrong) + atomic_load(&one.lost), 0);
        assert_int_equal(nodes("/async"), 0);
    }
}

static pid_t hold_in_a_process(const char *path) {
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        execl("/proc/self/exe", "live_lock", "hold", dv_test_server_connect(server), path, (char *)NULL);
        _exit(1);
    }
    close(fds[1]);
    assert_int_equal(read(fds[0], &byte, 1), 1);
    close(fds[0]);
    return pid;
}

/* A process dies while it holds the lock. A waiter sees it until the dead one's session is over, and then gets the
 * lock. */
TEST(test_killed_holder) {
    pid_t pid = hold_in_a_process("/killed");
    divvy_client *client = open_client(30000, 0);
    divvy_lock *lock = make(client, "/killed", DIVVY_EXCLUSIVE, NULL);
    divvy_strings *list;
    assert_int_equal(divvy_lock_contenders(lock, &list, PATIENCE_MS), 0);
    assert_int_equal(divvy_strings_count(list), 1);
    assert_string_equal(divvy_strings_get(list, 0), "other process");
    divvy_strings_free(list);
    assert_int_equal(divvy_lock_try_acquire(lock), DIVVY_EBUSY);
    int64_t began = dv_test_now_ms();
    assert_int_equal(divvy_lock_acquire(lock, 300), DIVVY_ETIMEDOUT);
    assert_true(dv_test_now_ms() - began >= 300);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    assert_true(divvy_lock_token(lock) > 0);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

/* The server stands still: the holder believes until the deadline of the session clock and no longer, and is told; when
 * the server goes on, the same object acquires again, on a new session. */
TEST(test_server_stands_still) {
    divvy_client *client = open_client(4000, 0);
    heard h = {.lost = 0};
    divvy_lock *lock = make(client, "/still", DIVVY_EXCLUSIVE, &h);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    int64_t token = divvy_lock_token(lock);
    dv_test_server_pause(server, 1);
    assert_true(DV_WAIT(!divvy_lock_held(lock), PATIENCE_MS));
    assert_true(DV_WAIT(atomic_load(&h.lost) == 1, PATIENCE_MS));
    assert_int_equal(divvy_lock_release(lock), DIVVY_ENOTHELD);
    int64_t began = dv_test_now_ms();
    assert_int_equal(divvy_lock_acquire(lock, 300), DIVVY_ETIMEDOUT);
    assert_true(dv_test_now_ms() - began >= 300);
    dv_test_server_resume(server, 1);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    assert_true(divvy_lock_token(lock) > token);
    divvy_lock_destroy(lock);
    divvy_client_close(client);
    assert_int_equal(atomic_load(&h.lost), 1);
    assert_int_equal(atomic_load(&h.wrong), 0);
}

/* Somebody deletes the holder's node: it is told soon, though its session holds another, older node as well. */
TEST(test_deleted_node) {
    divvy_client *client = open_client(10000, 0);
    heard h = {.lost = 0};
    divvy_lock *older = make(client, "/deleted/older", DIVVY_EXCLUSIVE, NULL);
    divvy_lock *lock = make(client, "/deleted/lock", DIVVY_READ, &h);
    char path[128];
    assert_int_equal(divvy_lock_acquire(older, PATIENCE_MS), 0);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    char **names = dv_test_zk_children(truth, "/deleted/lock", NULL);
    snprintf(path, sizeof path, "/deleted/lock/%s", names[0]);
    dv_test_zk_free_names(names);
    assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
    assert_true(DV_WAIT(atomic_load(&h.lost) == 1, PATIENCE_MS));
    assert_true(divvy_lock_held(older));
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    divvy_lock_destroy(lock);
    divvy_lock_destroy(older);
    divvy_client_close(client);
    assert_int_equal(atomic_load(&h.lost), 1);
}

typedef struct {
    atomic_int entered, left;
} slow;

static void on_lost_slowly(divvy_lock *lock, void *user) {
    slow *s = user;
    (void)lock;
    atomic_store(&s->entered, 1);
    DV_WAIT(nodes("/slow") == 1, PATIENCE_MS); /* until the next acquire has taken its place, which is the first */
    dv_test_sleep_ms(100);                     /* in which it could end too early; that it does not is claimed below */
    atomic_store(&s->left, 1);
}

/* An acquire ends only after the on_lost of the ownership before has returned, so that none can be taken for the other.
 */
TEST(test_not_before_on_lost_has_returned) {
    divvy_client *client = open_client(6000, 0);
    slow s = {0};
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    char path[128];
    config.path = "/slow";
    config.on_lost = on_lost_slowly;
    config.user = &s;
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    char **names = dv_test_zk_children(truth, "/slow", NULL);
    snprintf(path, sizeof path, "/slow/%s", names[0]);
    dv_test_zk_free_names(names);
    assert_int_equal(dv_test_zk_delete(truth, path), ZOK);
    assert_true(DV_WAIT(atomic_load(&s.entered), PATIENCE_MS));
    assert_int_equal(divvy_lock_acquire(lock, PATIENCE_MS), 0);
    assert_true(atomic_load(&s.left));
    assert_true(divvy_lock_held(lock));
    divvy_lock_destroy(lock);
    divvy_client_close(client);
}

TEST_GROUP(start_server, stop_server);

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[1], "hold") == 0) return hold(argv[2], argv[3]);
    return dv_test_run();
}
