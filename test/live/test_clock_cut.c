/* A server that is cut off from its leader and goes on to serve its client. SPDX-License-Identifier: Apache-2.0
 *
 * Such a server answers reads as if nothing had happened, long after the leader has expired the client's session; the
 * holder must have stopped by then. `live_clock_cut 10` makes ten runs of each kind.
 *
 * Shows what real servers do that are parted from one another: reads that are old, and when the node goes. */
#include "test_clock.h"

enum { TICK_MS = 50, SYNC_TICKS = 300, TIMEOUT_MS = 2000, STALE_MS = 300 };

#include "quorum_fixture.h"

static int runs_each;

typedef struct {
    const char *name;
    bool to_leader, from_leader; /* which directions are held */
    bool tick_too_large;
    bool goes_stale; /* the holder's server goes on to show the node that is gone */
} scenario;

static clock_run run_once(const scenario *s, int leader) {
    holder h;
    watcher outside, inside;
    int cut = leader % DV_TEST_QUORUM_SERVERS + 1;
    int64_t tick_ms = s->tick_too_large ? TIMEOUT_MS / 2 : TICK_MS;
    clock_begin(&h, &outside, server, cut, leader, TIMEOUT_MS, tick_ms);
    watcher_start(&inside, &h, dv_test_server_address(server, cut), true);
    if (!holder_await_fault(&h)) {
        watcher_stop(&inside);
        return clock_end_early(&h, &outside);
    }
    if (s->to_leader) dv_test_quorum_hold(quorum, cut, leader);
    if (s->from_leader) dv_test_quorum_hold(quorum, leader, cut);
    clock_run run = clock_observe(&h, &outside, dv_test_now_ms(), 0);
    if (s->goes_stale) {
        assert_true(DV_WAIT(watcher_seen(&inside).stale_ms > run.gone_ms + STALE_MS, PATIENCE_MS));
    }
    run.stale_ms = watcher_seen(&inside).stale_ms;
    dv_test_quorum_heal(quorum);
    dv_test_server_await_leader(server);
    assert_false(holder_owns(&h)); /* Whatever came through now, late, it is over. */
    watcher_stop(&inside);
    clock_end(&h, &outside);
    return run;
}

static void check(const scenario *s) {
    clock_run runs[CLOCK_RUNS_MAX];
    for (int i = 0, again = 0; i < runs_each;) {
        int leader = dv_test_server_await_leader(server);
        runs[i] = run_once(s, leader);
        if (clock_again(&runs[i], &again)) continue;
        clock_print(s->name, &runs[i], 1);
        clock_check(&runs[i]);
        if (s->to_leader) clock_check_margin(&runs[i], TIMEOUT_MS);
        i++;
    }
    clock_print(s->name, runs, runs_each);
}

/* Cut both ways, the follower shows the node for seconds after the leader has dropped it, and its client has stopped
 * before that. */
TEST(test_parted) {
    check(&(scenario){"parted", .to_leader = true, .from_leader = true, .goes_stale = true});
}

/* The follower still hears its leader, which does not hear it: nothing of the client's gets through, and no word that
 * it lives. */
TEST(test_unheard) {
    check(&(scenario){"unheard", .to_leader = true});
}

/* The leader still hears the follower: the client's writes are carried out, and it never learns so. The follower's
 * word that the client lives is an answer to the leader's pings, which do not come. */
TEST(test_deaf) {
    check(&(scenario){"deaf", .from_leader = true, .goes_stale = true});
}

/* The same as the first for a client that was told a larger tick than its servers have. */
TEST(test_tick_too_large) {
    check(&(scenario){"parted, tick told too large", .to_leader = true, .from_leader = true, .tick_too_large = true,
                      .goes_stale = true});
}

TEST_EACH(NULL, heal);
TEST_GROUP(start_quorum, stop_quorum);

int main(int argc, char **argv) {
    runs_each = clock_runs(argc, argv, 2);
    return dv_test_run();
}
