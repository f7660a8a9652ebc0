/* A pool whose ensemble loses its leader while it is busy: nobody drops anything. SPDX-License-Identifier: Apache-2.0
 *
 * kazoo's members drop all they have at such a moment. `live_clock_failover 10` makes ten runs.
 *
 * Shows that no real election makes anybody drop an item, with connections that end in their own way. */
#include "lib/pool.h"

#include <stdatomic.h>
#include <string.h>

/* TIMEOUT_MS: longer than any election, also one that servers have to begin again and again on a busy machine. */
enum { SERVERS = 3, MEMBERS = 4, ITEMS = 300, WRITERS = 4, TIMEOUT_MS = 40000 };

/* ---- load ---- */

typedef struct {
    pthread_t thread;
    dv_test_zk *zk;
    const char *path;
} writer;

static atomic_bool load_stopping;
static atomic_uint load_written, load_failed;

/* Writes without a pause; what fails in the change of leaders fails. */
static void *writer_run(void *argument) {
    writer *w = argument;
    char data[512];
    memset(data, 'x', sizeof data - 1);
    data[sizeof data - 1] = '\0';
    while (!atomic_load(&load_stopping)) {
        if (dv_test_zk_set(w->zk, w->path, data) == ZOK) {
            atomic_fetch_add(&load_written, 1);
        } else {
            atomic_fetch_add(&load_failed, 1);
            dv_test_sleep_ms(5);
        }
    }
    return NULL;
}

static void load_start(writer *writers, dv_test_pool *pool) {
    atomic_store(&load_stopping, false);
    atomic_store(&load_written, 0);
    atomic_store(&load_failed, 0);
    dv_test_zk_create(pool->truth, "/load", "", 0, NULL);
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (writer){.zk = dv_test_zk_open(pool->connect), .path = "/load"};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, writer_run, &writers[i]), 0);
    }
}

static void load_stop(writer *writers) {
    atomic_store(&load_stopping, true);
    for (size_t i = 0; i < WRITERS; i++) {
        pthread_join(writers[i].thread, NULL);
        dv_test_zk_close(writers[i].zk);
    }
}

/* ---- the test ---- */

static int killed; /* the number of the server that is gone, 0 while none is */

/* The pool ends with all three servers there, whatever became of the test. */
static int teardown(void **state) {
    if (killed) dv_test_server_restart(dv_test_pool_server(), killed);
    killed = 0;
    return dv_test_pool_teardown(state);
}

static int setup(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "shard-%03zu", ITEMS);
    return 0;
}

static int leader(dv_test_pool *pool) {
    int found = 0;
    DV_POOL_UNTIL(pool, (found = dv_test_server_leader(dv_test_pool_server())) != 0);
    return found;
}

static bool two_serve(int without) {
    int number = without % SERVERS + 1, other = number % SERVERS + 1;
    const dv_test_server *server = dv_test_pool_server();
    return (dv_test_server_is(server, number, "leader") && dv_test_server_is(server, other, "follower")) ||
           (dv_test_server_is(server, other, "leader") && dv_test_server_is(server, number, "follower"));
}

static uint64_t connects(dv_test_member *m) {
    return dv_test_member_stats(m).connects;
}

static int64_t least_left_ms;

/* The least that any member had left at any look. */
static void look_at_time_left(dv_test_member **members) {
    for (size_t i = 0; i < MEMBERS; i++) {
        int64_t left_ms = divvy_client_time_left_ms(members[i]->client);
        if (left_ms < least_left_ms) least_left_ms = left_ms;
    }
}

/* Every member is served again. */
static bool all_reconnected(dv_test_member **members, const uint64_t *connects_before) {
    look_at_time_left(members);
    for (size_t i = 0; i < MEMBERS; i++) {
        if (divvy_client_state(members[i]->client) != DIVVY_CONNECTED) return false;
        if (connects(members[i]) == connects_before[i]) return false;
    }
    return true;
}

/* Returns how many times a member was told that its state or its items had changed. */
static size_t told(dv_test_member *m) {
    return dv_test_member_count(m, DV_TEST_STATE, -1) + dv_test_member_count(m, DV_TEST_GAINED, -1) +
           dv_test_member_count(m, DV_TEST_REVOKED, -1) + dv_test_member_count(m, DV_TEST_LOST, -1);
}

/* Nobody is told of anything, and every item is owned at every look, by one token, though every connection of the
 * members ends: those to the leader at once, the others when their servers look for another. */
TEST_IN(test_leader_killed, setup, teardown) {
    dv_test_pool *pool = *state;
    dv_test_member *members[MEMBERS];
    writer writers[WRITERS];
    int old_leader = leader(pool);
    dv_test_pool_add_many(pool, members, 0, MEMBERS,
                          &(dv_test_member_config){
                              .threaded = true, .session_timeout_ms = TIMEOUT_MS, .ensemble_tick_ms = DV_TEST_TICK_MS});
    dv_test_pool_settle(pool);
    size_t told_before[MEMBERS], kept = 0;
    uint64_t connects_before[MEMBERS];
    for (size_t i = 0; i < MEMBERS; i++) {
        told_before[i] = told(members[i]);
        dv_test_member_mark(members[i]);
    }
    load_start(writers, pool);
    dv_test_pool_step_for(pool, 1500);
    for (size_t i = 0; i < MEMBERS; i++) connects_before[i] = connects(members[i]);
    unsigned written = atomic_load(&load_written);
    assert_true(written > 0);
    least_left_ms = INT64_MAX;
    int64_t stopped_ms = dv_test_now_ms();
    killed = old_leader;
    dv_test_server_kill(dv_test_pool_server(), killed);
    DV_POOL_UNTIL(pool, (look_at_time_left(members), two_serve(killed)));
    int64_t elected_ms = dv_test_now_ms();
    DV_POOL_UNTIL(pool, all_reconnected(members, connects_before) && two_serve(killed));
    int64_t back_ms = dv_test_now_ms();
    print_message("two serve after %lld ms, and all are served again after %lld ms, with %lld ms left at the least\n",
                  (long long)(elected_ms - stopped_ms), (long long)(back_ms - stopped_ms), (long long)least_left_ms);
    dv_test_pool_step_for(pool, 1500);
    load_stop(writers);
    dv_test_pool_check_owners(pool, false);
    for (size_t i = 0; i < MEMBERS; i++) {
        assert_int_equal(told(members[i]), told_before[i]);
        kept += dv_test_member_kept(members[i]);
    }
    assert_int_equal(kept, ITEMS);
    print_message("%zu of %d items kept; %u writes before, %u after, %u failed\n", kept, ITEMS, written,
                  atomic_load(&load_written) - written, atomic_load(&load_failed));
}

TEST_GROUP(dv_test_pool_group_setup_ensemble, dv_test_pool_group_teardown);

int main(int argc, char **argv) {
    int failed = 0;
    int runs = argc > 1 ? atoi(argv[1]) : 2;
    for (int i = 0; i < runs; i++) failed += dv_test_run();
    return failed;
}
