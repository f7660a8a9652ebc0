/* The session clock of a client that writes all the time, on servers with a long tick.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A server tells its leader of a client only when the leader asks, every half tick. The leader does not know of a
 * busy client's answers since the last time, however many they were; a clock that takes each write for a proof is
 * wrong by up to that. `live_clock_busy 10` makes ten runs.
 *
 * Shows when a real leader expires the session of a busy client on a follower. */
#include "test_clock.h"

enum { TICK_MS = 400, SYNC_TICKS = 15, TIMEOUT_MS = 2400 };

#include "quorum_fixture.h"

static int runs_each;

typedef struct {
    divvy_client *client;
    atomic_bool stopping;
    atomic_uint rounds; /* each creates a node and deletes it */
} busy;

/* Joins a party and leaves it, over and over. */
static void *busy_run(void *argument) {
    busy *b = argument;
    while (!atomic_load(&b->stopping)) {
        divvy_party *party;
        divvy_strings *members = NULL;
        if (divvy_party_join(&party, b->client, "/busy", "me", DIVVY_PARTY) != 0) return NULL;
        bool joined = divvy_party_members(party, &members, TIMEOUT_MS) == 0;
        divvy_strings_free(members);
        if (joined && divvy_party_leave(party, TIMEOUT_MS) == 0) atomic_fetch_add(&b->rounds, 1);
        divvy_party_destroy(party);
    }
    return NULL;
}

static clock_run run_once(int leader) {
    holder h;
    watcher outside;
    busy b = {0};
    pthread_t thread;
    int cut = leader % DV_TEST_QUORUM_SERVERS + 1;
    clock_begin(&h, &outside, server, cut, leader, TIMEOUT_MS, TICK_MS);
    b.client = h.client;
    assert_int_equal(pthread_create(&thread, NULL, busy_run, &b), 0);
    assert_true(DV_WAIT(atomic_load(&b.rounds) > 20, PATIENCE_MS));
    dv_test_sleep_ms((int)clock_random(2 * TICK_MS));
    if (!holder_has_time(&h)) {
        atomic_store(&b.stopping, true);
        pthread_join(thread, NULL);
        return clock_end_early(&h, &outside);
    }
    dv_test_quorum_part(quorum, cut, leader);
    int64_t fault_ms = dv_test_now_ms(), left_ms = divvy_client_time_left_ms(h.client);
    clock_run run = clock_observe(&h, &outside, fault_ms, 0);
    atomic_store(&b.stopping, true);
    dv_test_quorum_heal(quorum);
    pthread_join(thread, NULL);
    print_message("%u rounds, %lld ms left at the cut: ", atomic_load(&b.rounds), (long long)left_ms);
    clock_end(&h, &outside);
    return run;
}

/* Cut at any point between two pings, it has stopped before its node is dropped. */
TEST_IN(test_busy, NULL, heal) {
    clock_run runs[CLOCK_RUNS_MAX];
    for (int i = 0, again = 0; i < runs_each;) {
        int leader = dv_test_server_await_leader(server);
        runs[i] = run_once(leader);
        if (clock_again(&runs[i], &again)) continue;
        clock_print("busy", &runs[i], 1);
        clock_check(&runs[i]);
        clock_check_margin(&runs[i], TIMEOUT_MS);
        i++;
    }
    clock_print("busy", runs, runs_each);
}

TEST_GROUP(start_quorum, stop_quorum);

int main(int argc, char **argv) {
    runs_each = clock_runs(argc, argv, 5);
    return dv_test_run();
}
