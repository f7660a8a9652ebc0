/* Manual mode: the caller's thread runs the loop. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the descriptor, the deadlines and the poll loop of a program, with a real socket behind them. */
#include "client_manual_fixture.h"

/* --- the loop in the caller's hands ------------------------------------------------------------------------------ */

/* Nothing happens but in process(): events wait, the descriptor tells of them, and callbacks run in our thread. */
TEST(test_nothing_by_itself) {
    witness w;
    divvy_client_config config = manual_config(&w, hosts());
    divvy_client *client = open_with(&config);
    assert_true(divvy_client_fd(client) >= 0);
    assert_true(readable(client, PATIENCE_MS));
    dv_test_sleep_ms(100); /* Were there a thread of ours, it would be connected by now. */
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    assert_true(witness_told(&w, ""));
    POLL_UNTIL(client, divvy_client_state(client) == DIVVY_CONNECTED);
    POLL_UNTIL(client, witness_told(&w, "C"));
    divvy_client_close(client);
    witness_end(&w);
}

/* A client at rest costs a pair of heartbeats every tenth of its timeout and nothing else. Until the next one is due
 * the descriptor is silent, process(0) and a process() whose time passes return 0; one without a time limit ends then.
 */
TEST(test_rest) {
    enum { TIMEOUT_MS = 60000 };
    witness w;
    divvy_stats before, after;
    divvy_client_config config = manual_config(&w, hosts());
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS; /* for that, docs/protocol.md, C4, gives a tenth exactly */
    divvy_client *client = open_connected(&config);
    int64_t due_ms = come_to_rest(client, 4000);
    assert_in_range(due_ms - dv_test_now_ms(), 1, TIMEOUT_MS / 10);
    assert_int_equal(divvy_client_stats(client, &before, sizeof before), 0);
    assert_int_equal(before.in_flight, 0);
    assert_int_equal(divvy_client_process(client, 0), 0);
    int64_t before_ms = dv_test_now_ms();
    assert_int_equal(divvy_client_process(client, 200), 0);
    assert_true(dv_test_now_ms() - before_ms >= 200);
    assert_false(readable(client, 200));
    assert_int_equal(divvy_client_stats(client, &after, sizeof after), 0);
    assert_int_equal(after.requests, before.requests);
    assert_true(due_at_ms(client) <= due_ms + 5);

    assert_true(divvy_client_process(client, -1) > 0);
    assert_true(dv_test_now_ms() >= due_ms - 5);
    POLL_UNTIL(client, divvy_client_stats(client, &after, sizeof after) == 0 && after.checks >= before.checks + 2);
    come_to_rest(client, 4000);
    assert_int_equal(divvy_client_stats(client, &after, sizeof after), 0);
    assert_int_equal(after.requests, before.requests + 2);
    assert_int_equal(after.multis, before.multis + 2);
    assert_int_equal(after.checks, before.checks + 2);
    divvy_client_close(client);
    witness_end(&w);
}

/* A program that polls the descriptor with next_deadline() as its timeout, and calls process() only then, sees its
 * partitioner through: timers included, for a boundary passes. */
TEST(test_poll_loop) {
    static const char *const items[] = {"a", "b", "c"};
    witness w;
    divvy_partitioner *p;
    divvy_client_config config = manual_config(&w, hosts());
    divvy_client *client = open_with(&config);
    divvy_partitioner_config p_config = dv_test_partitioner_config("/manual/pool", items, 3, 700);
    assert_int_equal(divvy_partitioner_create(&p, client, &p_config), 0);
    bool timer_seen = false;
    for (int64_t until_ms = dv_test_now_ms() + PATIENCE_MS; divvy_partitioner_state(p) != DIVVY_ACQUIRED;) {
        assert_true(dv_test_now_ms() < until_ms);
        int64_t deadline_ms = divvy_client_next_deadline(client);
        assert_true(deadline_ms >= -1);
        if (deadline_ms > 0 && deadline_ms <= 700) timer_seen = true;
        poll_once(client, PATIENCE_MS);
    }
    assert_true(timer_seen);
    assert_int_equal(divvy_partitioner_finish(p, 0), DIVVY_ETIMEDOUT);
    POLL_UNTIL(client, divvy_partitioner_finish(p, 0) == 0);
    divvy_partitioner_destroy(p);
    divvy_client_close(client);
    witness_end(&w);
}

/* Waiting calls drive the loop themselves, callbacks included. */
TEST(test_waiting_calls_drive) {
    witness w;
    divvy_party *party;
    divvy_strings *members;
    divvy_client_config config = manual_config(&w, hosts());
    divvy_client *client = open_with(&config);
    assert_int_equal(divvy_client_wait_connected(client, PATIENCE_MS), 0);
    assert_int_equal(divvy_party_join(&party, client, "/manual/party", "me", DIVVY_SHALLOW_PARTY), 0);
    assert_int_equal(divvy_party_members(party, &members, PATIENCE_MS), 0);
    assert_string_equal(divvy_strings_get(members, 0), "me");
    divvy_strings_free(members);
    assert_true(witness_told(&w, "C"));
    assert_int_equal(divvy_party_leave(party, PATIENCE_MS), 0);
    divvy_party_destroy(party);
    divvy_client_close(client);
    witness_end(&w);
}

static pthread_t callback_thread;

static void note_thread(witness *w, divvy_client *client, divvy_session_state state) {
    (void)w, (void)state;
    callback_thread = pthread_self();
    witness_expect(w, divvy_client_process(client, 0) == DIVVY_EDEADLK, client);
    witness_expect(w, divvy_client_process(client, -1) == DIVVY_EDEADLK, client);
    witness_expect(w, divvy_client_wait_connected(client, -2) == DIVVY_EINVAL, client);
}

/* Callbacks run on the thread that drives, and process() inside one is DIVVY_EDEADLK. */
TEST(test_process_inside_a_callback) {
    witness w;
    divvy_client_config config = manual_config(&w, hosts());
    w.on_session = note_thread;
    divvy_client *client = open_with(&config);
    POLL_UNTIL(client, witness_told(&w, "C"));
    assert_true(pthread_equal(callback_thread, pthread_self()));
    divvy_client_close(client);
    witness_end(&w);
}

TEST_GROUP(set_up, stop_server);
