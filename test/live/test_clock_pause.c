/* A server that stands still for about as long as a session lasts, and goes on. SPDX-License-Identifier: Apache-2.0
 *
 * A leader that wakes up expires at once what has become due during the pause; a follower that wakes up delivers
 * late what it had from either side. Milliseconds decide whether the session outlives that; if it does not, its
 * holder must have been told before. `live_clock_pause 10` makes ten runs of each kind.
 *
 * Shows what a real server does first when it wakes up from a pause. */
#include "test_clock.h"

enum { SERVERS = 3, TICK_MS = 50, TIMEOUT_MS = 2000 };

static dv_test_server *server;
static int runs_each;

typedef struct {
    int number;
    int64_t pause_ms;
} pause_plan;

static int setup(void **state) {
    (void)state;
    /* So that the followers of a paused leader wait for it, and it for them. */
    const char *const more[] = {"--sync-limit", "200", NULL};
    server = dv_test_server_start_with(SERVERS, TICK_MS, more);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dv_test_server_stop(server);
    return 0;
}

static int resume(void **state) {
    (void)state;
    dv_test_server_resume(server, DV_TEST_SERVER_ALL);
    return 0;
}

static void *resume_later(void *argument) {
    const pause_plan *plan = argument;
    dv_test_sleep_ms((int)plan->pause_ms);
    dv_test_server_resume(server, plan->number);
    return NULL;
}

static clock_run run_once(int paused, int follower, int observed) {
    holder h;
    watcher outside;
    pthread_t resumer;
    clock_begin(&h, &outside, server, follower, observed, TIMEOUT_MS, TICK_MS);
    pause_plan plan = {paused, TIMEOUT_MS * 7 / 10 + clock_random(TIMEOUT_MS * 6 / 10)};
    if (!holder_await_fault(&h)) return clock_end_early(&h, &outside);
    dv_test_server_pause(server, paused);
    int64_t fault_ms = dv_test_now_ms();
    assert_int_equal(pthread_create(&resumer, NULL, resume_later, &plan), 0);
    clock_run run = clock_observe(&h, &outside, fault_ms, plan.pause_ms + 2 * TIMEOUT_MS);
    pthread_join(resumer, NULL);
    print_message("paused for %lld ms: ", (long long)plan.pause_ms);
    clock_end(&h, &outside);
    return run;
}

static void check(const char *name, bool pause_leader) {
    clock_run runs[CLOCK_RUNS_MAX];
    for (int i = 0, again = 0; i < runs_each;) {
        int leader = dv_test_server_await_leader(server);
        int follower = leader % SERVERS + 1, other = follower % SERVERS + 1;
        runs[i] = pause_leader ? run_once(leader, follower, other) : run_once(follower, follower, leader);
        if (clock_again(&runs[i], &again)) continue;
        clock_print(name, &runs[i], 1);
        clock_check(&runs[i]);
        i++;
    }
    clock_print(name, runs, runs_each);
}

/* The leader stands still while a follower goes on to serve the client. */
TEST(test_leader_paused) {
    check("leader paused", true);
}

/* The client's own server stands still. */
TEST(test_follower_paused) {
    check("own server paused", false);
}

TEST_EACH(NULL, resume);
TEST_GROUP(setup, teardown);

int main(int argc, char **argv) {
    runs_each = clock_runs(argc, argv, 3);
    return dv_test_run();
}
