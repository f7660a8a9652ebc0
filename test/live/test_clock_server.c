/* A server that is gone for good, with its clients. SPDX-License-Identifier: Apache-2.0
 *
 * `live_clock_server 10` makes ten runs of each kind.
 *
 * Shows how a client leaves a real server that is dead, frozen or alone, and what time it has left. */
#include "test_clock.h"

enum { SERVERS = 3, TICK_MS = 50, SYNC_TICKS = 20, TIMEOUT_MS = 2000 };

#include "quorum_fixture.h"

static int runs_each;

static void freeze(int number) {
    dv_test_server_pause(server, number);
}

static void thaw(int number) {
    dv_test_server_resume(server, number);
}

static void kill_server(int number) {
    dv_test_server_kill(server, number);
}

static void restart(int number) {
    dv_test_server_restart(server, number);
}

static void isolate(int number) {
    dv_test_quorum_isolate(quorum, number);
}

static void join(int number) {
    (void)number;
    dv_test_quorum_heal(quorum);
}

/* Holds an item at server `number`, which is the only one that the client knows, and lets the fault come. */
static clock_run run_once(int number, int observed, void (*fault)(int number), void (*mend)(int number)) {
    holder h;
    watcher outside;
    clock_begin(&h, &outside, server, number, observed, TIMEOUT_MS, TICK_MS);
    if (!holder_await_fault(&h)) return clock_end_early(&h, &outside);
    fault(number);
    clock_run run = clock_observe(&h, &outside, dv_test_now_ms(), 0);
    mend(number);
    dv_test_server_await_leader(server);
    assert_false(holder_owns(&h)); /* Whatever came through now, late, it is over. */
    clock_end(&h, &outside);
    return run;
}

static void check(const char *name, bool leads, void (*fault)(int number), void (*mend)(int number)) {
    clock_run runs[CLOCK_RUNS_MAX];
    for (int i = 0, again = 0; i < runs_each;) {
        int leader = dv_test_server_await_leader(server);
        int follower = leader % SERVERS + 1;
        runs[i] = leads ? run_once(leader, follower, fault, mend) : run_once(follower, leader, fault, mend);
        if (clock_again(&runs[i], &again)) continue;
        clock_print(name, &runs[i], 1);
        clock_check(&runs[i]);
        i++;
    }
    clock_print(name, runs, runs_each);
}

/* The client's server stands still, with all its connections open. */
TEST(test_frozen) {
    check("own server frozen", false, freeze, thaw);
}

/* The client's server is killed. */
TEST(test_killed) {
    check("own server killed", false, kill_server, restart);
}

/* The client sits on the leader, which is cut off from the others: they elect another, and give the session a whole
 * timeout more, while the old one serves on until it notices. */
TEST(test_leader_isolated) {
    check("leader isolated, client on it", true, isolate, join);
}

/* The same with a leader that stands still. */
TEST(test_leader_frozen) {
    check("leader frozen, client on it", true, freeze, thaw);
}

TEST_GROUP(start_quorum, stop_quorum);

int main(int argc, char **argv) {
    runs_each = clock_runs(argc, argv, 2);
    return dv_test_run();
}
