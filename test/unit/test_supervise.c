/* The commands of items, with guardians that do what the test says. SPDX-License-Identifier: Apache-2.0 */
#include "supervise_fixture.h"

static int setup(void **state) {
    (void)state;
    open_supervisor(DV_RESTART_ALWAYS);
    return 0;
}

static void reopen(dv_restart restart) {
    dv_supervisor_close(s);
    open_supervisor(restart);
}

/* ---- what is owned ---- */

/* A command is started when its item is gained, with the item in its arguments and environment; when the item is
 * revoked it has the time to drain, and the item may be released when it has gone, and not before. */
TEST(test_gain_and_revoke) {
    gain("b", 42);
    assert_int_equal(start_count, 1);
    dv_guardian *g = runs();
    assert_string_equal(g->item, "b");
    assert_string_equal(g->token, "42");
    assert_string_equal(g->argument, "<b>b");
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    give_back("b");
    assert_int_equal(g->end_grace_ms, DRAIN_MS);
    assert_false(dv_supervisor_is_clear(s));
    tell(g, DV_GUARDIAN_EXITED, 0, DV_ENDED_BY_ITSELF);
    dv_supervisor_process(s);
    assert_false(dv_supervisor_is_clear(s)); /* it may have left something behind */
    assert_true(dv_supervisor_works(s));
    gone(g, SIGTERM, DV_ENDED_BY_ORDER);
    assert_true(dv_supervisor_is_clear(s));
    assert_false(dv_supervisor_works(s));
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_int_equal(last.status, 128 + SIGTERM);
    assert_string_equal(last.reason, "revoked");
    assert_int_equal(last.restart_ms, -1);
    assert_int_equal(start_count, 1);
}

/* One that exits by itself while it is told to end has ended, whatever the policy; and what is lost ends sooner. */
TEST(test_lost) {
    const char *item = "a";
    gain("a", 1);
    dv_guardian *g = runs();
    give_back("a");
    dv_supervisor_lose(s, &item, 1);
    assert_int_equal(g->end_grace_ms, 100);
    gone(g, 0, DV_ENDED_BY_ITSELF);
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_int_equal(dv_supervisor_running(s), 0);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
}

/* An item that is lost and owned again while its command still ends: the next one is started when that has gone, with
 * the new token; until then nothing is clear. */
TEST(test_owned_again) {
    const char *item = "a";
    gain("a", 1);
    dv_guardian *g = runs();
    dv_supervisor_lose(s, &item, 1);
    gain("a", 2);
    assert_int_equal(start_count, 1);
    assert_false(dv_supervisor_is_clear(s));
    gone(g, SIGKILL, DV_ENDED_BY_ORDER);
    assert_int_equal(last.restart_ms, 0);
    assert_int_equal(start_count, 2);
    assert_string_equal(newest()->token, "2");
    assert_true(dv_supervisor_is_clear(s));
}

/* An item that goes before its command was started is forgotten; so is one whose command waits to be started again. */
TEST(test_gone_before_start) {
    const char *item = "a";
    int64_t token = 1;
    dv_supervisor_gain(s, &item, &token, 1);
    give_back("a");
    dv_supervisor_process(s);
    assert_int_equal(start_count, 0);
    gain("a", 2);
    gone(runs(), 256, DV_ENDED_BY_ITSELF);
    give_back("a");
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(dv_supervisor_next_ms(s), -1);
}

/* Told to end: it ends all commands and starts no more. Less time counts when it is given later. */
TEST(test_end) {
    gain("a", 1);
    dv_guardian *g = runs();
    gain("b", 1);
    gone(runs(), 256, DV_ENDED_BY_ITSELF); /* waits to be started again */
    dv_supervisor_end(s, DRAIN_MS);
    assert_int_equal(g->end_grace_ms, DRAIN_MS);
    gain("c", 1);
    assert_int_equal(start_count, 2);
    dv_supervisor_end(s, 0);
    assert_int_equal(g->end_grace_ms, 0);
    assert_int_equal(dv_supervisor_running(s), 1);
    gone(g, SIGKILL, DV_ENDED_BY_ORDER);
    assert_string_equal(last.reason, "leaving");
    assert_int_equal(dv_supervisor_running(s), 0);
}

/* ---- until when ---- */

/* Nothing is started when so little time is left that it would have to end at once, and it is as soon as there is
 * more. */
TEST(test_too_late) {
    dv_supervisor_set_time_left(s, now_ms, 2500); /* a fifth and a twentieth of the timeout */
    gain("a", 1);
    assert_int_equal(start_count, 0);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
    dv_supervisor_set_time_left(s, now_ms, 2501);
    assert_int_equal(dv_supervisor_next_ms(s), 0);
    dv_supervisor_process(s);
    assert_int_equal(start_count, 1);
    assert_int_equal(newest()->grace_ms, 2000);
    assert_int_equal(newest()->kill_ms, 500);
    assert_int_equal(deadline_ms, now_ms + 2501);
    dv_supervisor_set_time_left(s, now_ms, 0);
    assert_int_equal(deadline_ms, 0);
}

/* In a session that is shorter than was asked for, ending begins no earlier than when half of it is over. */
TEST(test_short_session) {
    dv_supervisor_set_time_left(s, now_ms, 0);
    dv_supervisor_set_time_left(s, now_ms, 800);
    dv_supervisor_set_time_left(s, now_ms, 700); /* the same session, some time later */
    gain("a", 1);
    assert_int_equal(newest()->kill_ms, 100);
    assert_int_equal(newest()->grace_ms, 300);
}

/* A guardian that finds it too late to start is asked again, and nobody is told. */
TEST(test_refused_as_late) {
    gain("a", 1);
    tell(newest(), DV_GUARDIAN_REFUSED, ETIME, DV_ENDED_BY_ITSELF);
    dv_supervisor_process(s);
    assert_int_equal(told, 0);
    pass(50);
    assert_int_equal(start_count, 2);
}

/* The supervisor asks right before a start whether the item is owned: its loss may not have been told yet. */
TEST(test_not_owned) {
    owned = false;
    gain("a", 1);
    assert_int_equal(start_count, 0);
    owned = true;
    pass(50);
    assert_int_equal(start_count, 1);
}

/* A command that the deadline has ended starts again at once if the item is still there, whatever the policy. */
TEST(test_ended_by_deadline) {
    reopen(DV_RESTART_NEVER);
    gain("a", 1);
    dv_guardian *g = runs();
    gone(g, SIGTERM, DV_ENDED_BY_DEADLINE);
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_string_equal(last.reason, "deadline");
    assert_int_equal(last.restart_ms, 0);
    assert_int_equal(start_count, 2);
}

/* ---- exits ---- */

/* The time to the next start doubles with each exit, up to 30 s; after a run of 5 s it is 100 ms again. */
TEST(test_backoff) {
    gain("a", 1);
    for (int64_t expected_ms = 100; expected_ms < 60000; expected_ms *= 2) {
        int64_t delay_ms = expected_ms < 30000 ? expected_ms : 30000;
        now_ms += DV_CHILD_STEADY_MS - 1;
        gone(runs(), 0, DV_ENDED_BY_ITSELF);
        assert_int_equal(last.kind, DV_CHILD_EXITED);
        assert_int_equal(last.restart_ms, delay_ms);
        now_ms += delay_ms - 1;
        dv_supervisor_process(s);
        size_t before = start_count;
        pass(1);
        assert_int_equal(start_count, before + 1);
    }
    now_ms += DV_CHILD_STEADY_MS;
    gone(runs(), 0, DV_ENDED_BY_ITSELF);
    assert_int_equal(last.restart_ms, 100);
}

/* A command that has finished is not started again; its item stays, and starts it again when it comes another time. */
TEST(test_finished) {
    static const struct {
        dv_restart restart;
        int status, told_status;
        bool finished;
    } cases[] = {{DV_RESTART_ALWAYS, 0, 0, false},          {DV_RESTART_ON_FAILURE, 0, 0, true},
                 {DV_RESTART_ON_FAILURE, 3 << 8, 3, false}, {DV_RESTART_ON_FAILURE, SIGSEGV, 128 + SIGSEGV, false},
                 {DV_RESTART_NEVER, 3 << 8, 3, true},       {DV_RESTART_NEVER, 0, 0, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        reopen(cases[i].restart);
        gain("a", 1);
        gone(runs(), cases[i].status, DV_ENDED_BY_ITSELF);
        assert_int_equal(last.kind, cases[i].finished ? DV_CHILD_FINISHED : DV_CHILD_EXITED);
        assert_int_equal(last.status, cases[i].told_status);
        assert_int_equal(last.restart_ms, cases[i].finished ? -1 : 100);
        assert_int_equal(dv_supervisor_next_ms(s), cases[i].finished ? -1 : 100);
        assert_true(dv_supervisor_is_clear(s));
        give_back("a");
        size_t before = start_count;
        gain("a", 2);
        assert_int_equal(start_count, before + 1);
    }
}

/* A command that cannot be started is tried again, less and less often, whatever the policy. */
TEST(test_cannot_start) {
    reopen(DV_RESTART_NEVER);
    gain("a", 7);
    tell(newest(), DV_GUARDIAN_REFUSED, EAGAIN, DV_ENDED_BY_ITSELF);
    dv_supervisor_process(s);
    assert_int_equal(last.kind, DV_CHILD_FAILED);
    assert_int_equal(last.token, 7);
    assert_int_equal(last.restart_ms, 100);
    start_error = EMFILE;
    pass(100);
    assert_int_equal(last.kind, DV_CHILD_FAILED);
    assert_int_equal(last.restart_ms, 200);
    start_error = 0;
    pass(200);
    runs();
    assert_int_equal(dv_supervisor_error(s), 0);
}

/* Without the process that guardians are forked from it cannot go on, and says so. */
TEST(test_nobody_to_start) {
    start_error = EPIPE;
    gain("a", 1);
    assert_int_equal(dv_supervisor_error(s), EPIPE);
    assert_int_equal(dv_supervisor_next_ms(s), -1);
}

/* When a guardian is killed, what it guarded is given half a second to be gone, too. */
TEST(test_guardian_killed) {
    gain("a", 1);
    dv_guardian *g = runs();
    give_back("a");
    gain("a", 2);
    tell(g, DV_GUARDIAN_DIED, 0, DV_ENDED_BY_ITSELF);
    dv_supervisor_process(s);
    assert_false(dv_supervisor_is_clear(s));
    assert_int_equal(dv_supervisor_running(s), 1);
    assert_int_equal(start_count, 1);
    pass(500);
    assert_int_equal(last.kind, DV_CHILD_ENDED);
    assert_int_equal(last.status, 128 + SIGKILL);
    assert_true(dv_supervisor_is_clear(s));
    assert_int_equal(start_count, 2);
}

TEST_EACH(setup, teardown);
