/* Tests of what client/client.h promises recipes: the session's clock, the barrier, budgets, timers, the chroot. On a
 * virtual clock. SPDX-License-Identifier: Apache-2.0 */
#include "base/container.h"
#include "client_clock_fixture.h"
#include "divvy/lock.h"

/* By the rules C2 to C4. */
#define MARGIN_MS (TIMEOUT_MS / 100 + 20)
#define GUARD_MS (TICK_MS / 2 + 100)
#define BEAT_MS 1198 /* two of them span the guard and a twentieth of a tenth of the timeout */

/* --- the session's clock: C1 to C5 ------------------------------------------------------------------------------ */

/* Nothing is believed before the first connection, and no deadline runs. */
TEST(test_before_the_first_connection) {
    dv_fake_session(fake, DIVVY_SUSPENDED); /* a first attempt that failed */
    dv_fake_advance(fake, 10 * TIMEOUT_MS);
    assert_string_equal(sessions, "");
    assert_string_equal(heard, "");
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTING);
    assert_false(alive());
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_true(alive()); /* That the session was made is the first proof. */
    assert_string_equal(sessions, "C");
    assert_string_equal(heard, "PC");
    assert_int_equal(divvy_client_session_id(client), DV_FAKE_SESSION);
}

/* Without proof, connected or not, ownership is not believed from the timeout less the margin on, to the millisecond,
 * and the session is lost, for good: no late news revives it. */
TEST(test_deadline) {
    for (int connected = 0; connected <= 1; connected++) {
        if (connected) tear_down(state), set_up(state);
        dv_fake_hold_beats(fake, true);
        dv_fake_session(fake, DIVVY_CONNECTED);
        assert_string_equal(dv_fake_pending(fake), "check /");
        if (!connected) dv_fake_session(fake, DIVVY_SUSPENDED);
        assert_int_equal(divvy_client_time_left_ms(client), TIMEOUT_MS - MARGIN_MS);
        dv_fake_advance(fake, TIMEOUT_MS - MARGIN_MS - 1);
        assert_true(alive());
        assert_int_equal(divvy_client_time_left_ms(client), 1);
        assert_int_equal(divvy_client_state(client), connected ? DIVVY_CONNECTED : DIVVY_SUSPENDED);
        dv_fake_advance(fake, 1);
        assert_false(alive());
        assert_int_equal(divvy_client_time_left_ms(client), 0);
        assert_int_equal(divvy_client_state(client), DIVVY_LOST);
        assert_int_equal(dv_client_end_error(client), DIVVY_ELOST);
        assert_string_equal(dv_fake_pending(fake), "");
        dv_fake_session(fake, DIVVY_CONNECTED);
        dv_fake_session(fake, DIVVY_LOST);
        assert_false(alive());
        assert_int_equal(divvy_client_state(client), DIVVY_LOST);
        assert_string_equal(sessions, connected ? "CL" : "CSL");
        assert_string_equal(heard, connected ? "PCLO" : "PCSLO");
    }
}

static void count_warning(divvy_client *c, int code, const char *message, void *user) {
    (void)c;
    assert_int_equal(code, DIVVY_WARN_SESSION);
    assert_non_null(strstr(message, "less than 5 ticks"));
    ++*(int *)user;
}

/* A timeout of less than five ticks is warned of. */
TEST(test_few_ticks) {
    for (int missing_ms = 0; missing_ms <= 1; missing_ms++) {
        divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
        int warnings = 0;
        config.ensemble_tick_ms = 1000;
        config.session_timeout_ms = 5000 - missing_ms;
        config.on_warning = count_warning;
        config.user = &warnings;
        dv_fake *other = dv_fake_open(&config);
        dv_fake_session(other, DIVVY_CONNECTED);
        assert_int_equal(warnings, missing_ms);
        dv_fake_close(other);
    }
}

/* An idle session beats, and what is left then is never less than the rules say. */
TEST(test_heartbeats) {
    dv_fake_session(fake, DIVVY_CONNECTED);
    int64_t least_ms = TIMEOUT_MS;
    for (int64_t ms = 0; ms < 10 * TIMEOUT_MS; ms += 10) {
        int64_t left_ms = divvy_client_time_left_ms(client);
        if (left_ms < least_ms) least_ms = left_ms;
        dv_fake_advance(fake, 10);
    }
    assert_in_range(least_ms, TIMEOUT_MS - 3 * BEAT_MS - MARGIN_MS, TIMEOUT_MS - GUARD_MS - MARGIN_MS);
    dv_fake_hold_beats(fake, true);
    dv_fake_advance(fake, BEAT_MS);
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_advance(fake, BEAT_MS);
    assert_string_equal(dv_fake_pending(fake), "check /"); /* They do not pile up. */
    dv_fake_session(fake, DIVVY_SUSPENDED);
    int64_t left_ms = divvy_client_time_left_ms(client);
    dv_fake_advance(fake, left_ms - 1);
    assert_true(alive());
    dv_fake_advance(fake, 1);
    assert_false(alive());
    assert_string_equal(sessions, "CSL");
}

/* In a session that was there before, nothing is believed until a write proves an answer; that comes as early as it
 * can: the guard after the first answer. */
TEST(test_session_of_before) {
    dv_fake_resume(fake);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(heard, "C");
    dv_fake_advance(fake, GUARD_MS - 1);
    assert_false(alive());
    assert_int_equal(divvy_client_time_left_ms(client), 0);
    dv_fake_advance(fake, 1);
    assert_true(alive());
    assert_int_equal(divvy_client_time_left_ms(client), TIMEOUT_MS - GUARD_MS - MARGIN_MS);
    assert_string_equal(heard, "CP");
}

/* Belief ends with the clock, not with the event: asked for a time past the deadline the answer is no. The question has
 * made it final: a proof that comes only now is none. */
TEST(test_belief_needs_no_event) {
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_true(dv_client_alive_at(client, dv_fake_now(fake) + TIMEOUT_MS - MARGIN_MS - 1));
    assert_true(alive());
    assert_false(dv_client_alive_at(client, dv_fake_now(fake) + TIMEOUT_MS - MARGIN_MS));
    assert_false(alive());
    dv_fake_advance(fake, TIMEOUT_MS - MARGIN_MS - 1); /* with heartbeats */
    assert_false(alive());
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    dv_fake_advance(fake, 1);
    assert_int_equal(divvy_client_state(client), DIVVY_LOST);
}

/* The first write on a new connection proves what was answered on the last one. */
TEST(test_reconnected) {
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_fake_advance(fake, 100 * BEAT_MS);
    for (int i = 0; i < 3; i++) {
        dv_fake_session(fake, DIVVY_SUSPENDED);
        dv_fake_advance(fake, BEAT_MS);
        dv_fake_session(fake, DIVVY_CONNECTED);
        assert_true(divvy_client_time_left_ms(client) >= TIMEOUT_MS - 2 * BEAT_MS - MARGIN_MS);
        dv_fake_advance(fake, 10 * TIMEOUT_MS);
        assert_true(alive());
    }
    assert_string_equal(sessions, "CSCSCSC");
}

/* When a deadline and a proof come at the same moment the deadline counts: what it ends must have ended before anything
 * else is believed. */
TEST(test_deadline_before_events) {
    dv_fake_hold_beats(fake, true);
    dv_fake_session(fake, DIVVY_CONNECTED);
    /* As after a sleep of the process: both are due when it wakes. */
    dv_timer_set(client, &client->beat_timer, dv_fake_now(fake));
    dv_timer_set(client, &client->deadline_timer, dv_fake_now(fake));
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    assert_int_equal(divvy_client_state(client), DIVVY_LOST);
    assert_string_equal(sessions, "CL");
}

/* Heartbeats ask for the nodes of ours in turn; when one is not there its owner hears of it, and another heartbeat goes
 * out at once. */
static int missed;

static void on_missing(dv_own_node *node, int64_t now) {
    (void)node, (void)now;
    missed++;
}

TEST(test_own_nodes) {
    dv_own_node a = {.path = "/a", .missing = on_missing}, b = {.path = "/b", .missing = on_missing};
    missed = 0;
    dv_own_node_add(client, &a);
    dv_own_node_add(client, &b);
    dv_fake_hold_beats(fake, true);
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_string_equal(dv_fake_pending(fake), "check /a");
    assert_int_equal(dv_fake_oldest(fake)->ops->version, 0);
    dv_fake_answer_multi(fake, DIVVY_ENOENT, &(dv_reply){.error = DIVVY_ENOENT});
    assert_int_equal(missed, 1);
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    dv_fake_advance(fake, BEAT_MS);
    assert_string_equal(dv_fake_pending(fake), "check /b");
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    dv_own_node_remove(client, &b);
    dv_fake_advance(fake, BEAT_MS);
    assert_string_equal(dv_fake_pending(fake), "check /a");
    dv_fake_answer_multi(fake, 0, &(dv_reply){.error = 0});
    dv_own_node_remove(client, &a);
    assert_int_equal(missed, 1);
}

/* Expiry and refused credentials are told by a server, each with its own error, and are final. */
TEST(test_told_by_a_server) {
    static const struct {
        divvy_session_state news;
        int error;
        const char *told;
    } ends[] = {{DIVVY_LOST, DIVVY_ELOST, "CL"}, {DIVVY_AUTH_FAILED, DIVVY_EAUTH, "CA"}};
    for (size_t i = 0; i < 2; i++) {
        if (i) tear_down(state), set_up(state);
        dv_fake_session(fake, DIVVY_CONNECTED);
        dv_fake_session(fake, ends[i].news);
        assert_int_equal(divvy_client_state(client), ends[i].news);
        assert_int_equal(dv_client_end_error(client), ends[i].error);
        assert_int_equal(divvy_client_wait_connected(client, 0), ends[i].error);
        assert_true(strlen(divvy_client_error(client)) > 0);
        assert_false(alive());
        dv_fake_session(fake, DIVVY_CONNECTED);
        assert_string_equal(sessions, ends[i].told);
        assert_string_equal(heard, "PCLO");
    }
}

/* C3: a tick that was told too small ends the client, and what fails for that names both numbers. */
TEST(test_tick_too_small) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/l";
    dv_fake_session(fake, DIVVY_CONNECTED);
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    dv_client_lock(client);
    dv_session_tick_told(client, TICK_MS + 1, dv_fake_now(fake));
    dv_client_unlock(client);
    assert_int_equal(divvy_lock_acquire(lock, -1), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(client), "is 4500, and the server's tickTime 4501: set it to that"));
    divvy_lock_destroy(lock);
}

/* --- the barrier: R1 -------------------------------------------------------------------------------------------- */

typedef struct {
    dv_barrier_wait wait;
    int done, error;
} barrier;

static void on_barrier(dv_barrier_wait *wait, int error, int64_t now) {
    barrier *b = DV_CONTAINER(wait, barrier, wait);
    (void)now;
    b->done++;
    b->error = error;
}

static void ask(barrier *b) {
    *b = (barrier){.done = 0};
    dv_client_lock(client);
    dv_client_barrier(client, &b->wait, on_barrier);
    dv_client_unlock(client);
    dv_fake_run(fake);
}

static void answer_barrier(int error) {
    assert_string_equal(dv_fake_pending(fake), "check /");
    dv_fake_answer_multi(fake, error, &(dv_reply){.error = 0});
}

/* One write serves all who ask before it is sent; who asks later waits for another one. */
TEST(test_barrier) {
    barrier a, b, c;
    ask(&a);
    ask(&b);
    assert_string_equal(dv_fake_pending(fake), ""); /* not while there is no connection */
    dv_fake_session(fake, DIVVY_CONNECTED);
    ask(&c);
    answer_barrier(0);
    assert_int_equal(a.done + b.done, 2);
    assert_int_equal(a.error + b.error, 0);
    assert_int_equal(c.done, 0);
    answer_barrier(DIVVY_EACCES); /* refused: put through the quorum all the same */
    assert_int_equal(c.done, 1);
    assert_int_equal(c.error, 0);
    assert_string_equal(dv_fake_pending(fake), "");
}

/* A barrier whose answer is lost is sent again on the next connection; the session's end ends all, each once. */
TEST(test_barrier_lost) {
    barrier a, b;
    dv_fake_session(fake, DIVVY_CONNECTED);
    ask(&a);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_int_equal(a.done, 0);
    ask(&b);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer_barrier(0);
    assert_int_equal(a.done + b.done, 2);
    ask(&a); /* under way at the end */
    ask(&b); /* and one behind it */
    dv_fake_session(fake, DIVVY_LOST);
    assert_int_equal(a.done + b.done, 2);
    assert_int_equal(a.error, DIVVY_ELOST);
    assert_int_equal(b.error, DIVVY_ELOST);
}

TEST_EACH(set_up, tear_down);
