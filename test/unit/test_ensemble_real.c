/* The in-memory ensemble with the real clock and threaded clients. SPDX-License-Identifier: Apache-2.0 */
#include "test_ensemble.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "client/client.h"
#include "divvy/partitioner.h"

enum { MEMBERS = 3, ITEMS = 8, DEADLINE_MS = 20000 };

static const char *const items[ITEMS] = {"a", "b", "c", "d", "e", "f", "g", "h"};
static divvy_testing_ensemble *e;
static divvy_client *clients[MEMBERS];
static divvy_partitioner *members[MEMBERS];

static void open_pool(void) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.real_clock = 1;
    config.tick_ms = 100;
    config.max_session_timeout_ms = 5000;
    config.election_min_ms = 20;
    config.election_max_ms = 50;
    assert_int_equal(divvy_testing_ensemble_create(&e, &config), 0);
    for (int i = 0; i < MEMBERS; i++) {
        divvy_client_config client = DIVVY_CLIENT_CONFIG_INIT;
        client.session_timeout_ms = 2000;
        client.ensemble_tick_ms = 100;
        assert_int_equal(divvy_testing_client_open(&clients[i], e, &client), 0);
        divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
        char name[8];
        snprintf(name, sizeof name, "m%d", i);
        pool.path = "/pool";
        pool.items = items;
        pool.item_count = ITEMS;
        pool.identifier = name;
        pool.time_boundary_ms = 50;
        assert_int_equal(divvy_partitioner_create(&members[i], clients[i], &pool), 0);
    }
}

static void close_pool(void) {
    for (int i = 0; i < MEMBERS; i++) {
        divvy_partitioner_destroy(members[i]);
        divvy_client_close(clients[i]);
    }
    divvy_testing_ensemble_destroy(e);
}

/* Gives back where that is asked for. Returns whether each item has one owner. Members are asked one after the other,
 * and items may move between two questions: who owns at two looks owned in the moment between them. */
static bool all_owned(void) {
    bool first[MEMBERS][ITEMS];
    int owned = 0;
    for (int i = 0; i < MEMBERS; i++) {
        if (divvy_partitioner_state(members[i]) == DIVVY_RELEASE) divvy_partitioner_release_set(members[i]);
        for (int k = 0; k < ITEMS; k++) first[i][k] = divvy_partitioner_owns(members[i], items[k]) == 1;
    }
    for (int k = 0; k < ITEMS; k++) {
        int owners = 0;
        for (int i = 0; i < MEMBERS; i++) owners += first[i][k] && divvy_partitioner_owns(members[i], items[k]) == 1;
        assert_true(owners <= 1);
        owned += owners;
    }
    return owned == ITEMS;
}

static bool nobody_owns(int member) {
    for (int k = 0; k < ITEMS; k++)
        if (divvy_partitioner_owns(members[member], items[k]) == 1) return false;
    return true;
}

/* A pool of threaded members divides its items, through the loss of a leader, a broken connection, and the crash of a
 * member, as it does on real servers. */
TEST(test_pool) {
    open_pool();
    DV_WAIT(all_owned(), DEADLINE_MS);
    assert_int_equal(divvy_testing_step(e, 0), DIVVY_ESTATE);
    assert_int_equal(divvy_testing_run(e, 0), DIVVY_ESTATE);
    assert_int_equal(divvy_testing_pause_client(e, clients[0], 1), DIVVY_ESTATE);
    int leader = divvy_testing_leader(e);
    assert_true(leader >= 0);
    divvy_testing_kill_server(e, (unsigned)leader);
    DV_WAIT(divvy_testing_leader(e) >= 0 && divvy_testing_leader(e) != leader && all_owned(), DEADLINE_MS);
    divvy_testing_start_server(e, (unsigned)leader);
    divvy_testing_disconnect(e, clients[1], DIVVY_TESTING_APPLIED, 0);
    divvy_testing_crash_client(e, clients[0]);
    DV_WAIT(nobody_owns(0) && all_owned(), DEADLINE_MS);
    close_pool();
}

static atomic_bool answered;

static void *read_clock(void *client) {
    int64_t *now = malloc(sizeof *now);
    *now = dv_client_now(client);
    atomic_store(&answered, true);
    return now;
}

/* A client's clock is read without the ensemble's mutex, so that threads which ask divvy_partitioner_owns() do not wait
 * for one another. It also goes on from where it was when its speed changes, and changes back. */
TEST(test_clock) {
    open_pool();
    int64_t first = dv_client_now(clients[0]);
    pthread_t thread;
    dv_mem_lock(e);
    assert_int_equal(pthread_create(&thread, NULL, read_clock, clients[0]), 0);
    int64_t until = dv_test_now_ms() + DEADLINE_MS;
    while (!atomic_load(&answered) && dv_test_now_ms() < until) sched_yield();
    bool without_mutex = atomic_load(&answered);
    dv_mem_unlock(e);
    void *now;
    pthread_join(thread, &now);
    assert_true(without_mutex);
    assert_true(*(int64_t *)now >= first);
    free(now);
    for (int i = 0; i < 2; i++) {
        first = dv_client_now(clients[0]);
        assert_int_equal(divvy_testing_drift_client(e, clients[0], i == 0 ? 1000 : 0), 0);
        assert_in_range(dv_client_now(clients[0]) - first, 0, DEADLINE_MS);
    }
    close_pool();
}
