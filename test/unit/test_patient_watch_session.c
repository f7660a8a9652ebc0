/* Tests of the patient watch: audits, connections, sessions, and its end. SPDX-License-Identifier: Apache-2.0 */
#include "patient_watch_fixture.h"
#define AUDIT_MS 60000

/* A watch that fires while a read is under way is not forgotten. */
TEST(test_fires_while_reading) {
    begin();
    answer("a", 10);
    dv_fake_advance(fake, 300);
    fire();
    assert_true(asked()); /* long enough after the last one */
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, false));
    answer("ab", 11);
    assert_false(asked());
    read_comes_at(300 + INTERVAL_MS);
    answer("abc", 12);
    read_comes_at(300 + INTERVAL_MS + BOUNDARY_MS);
    answer("abc", 12);
    assert_string_equal(told.names, "abc");
}

/* A list for which there was no memory is asked for again at the interval, and not at once. */
TEST(test_memory_is_short) {
    begin();
    dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ENOMEM});
    assert_false(asked());
    read_comes_at(INTERVAL_MS);
    answer("a", 10);
    assert_true(dv_fake_is_watched(fake, PARTY));
}

/* W1: a quarter of the boundary lies between two reads, to the millisecond, where that is just above 50 ms. */
TEST(test_reads_a_quarter_apart) {
    begin_with(4 * 51, 4 * 51, SETTLE_MAX_MS);
    answer("a", 10);
    dv_fake_advance(fake, 100);
    fire();
    assert_true(asked());
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, false));
    answer("ab", 11);
    assert_false(asked());
    read_comes_at(100 + 51);
}

/* --- changed() -------------------------------------------------------------------------------------------------- */

/* changed() comes with the first sign, once for each settled(), and not before the first one. */
TEST(test_changed_once) {
    begin();
    answer("a", 10);
    fire();
    dv_fake_advance(fake, 500);
    answer("ab", 11);
    assert_int_equal(told.changed, 0);
    dv_fake_advance(fake, 5000 - elapsed());
    answer("ab", 11);
    assert_int_equal(told.settled, 1);
    dv_fake_advance(fake, 1000);
    for (int round = 1; round <= 3; round++) {
        int64_t at = elapsed();
        fire();
        assert_int_equal(told.changed, round);
        assert_int_equal(told.changed_at, at);
        answer("abc", 20 * round);
        if (dv_fake_is_watched(fake, PARTY)) fire();
        assert_int_equal(told.changed, round);
        dv_fake_advance(fake, INTERVAL_MS);
        answer("abcd", 20 * round + 1);
        dv_fake_advance(fake, BOUNDARY_MS);
        answer("abcd", 20 * round + 1);
        assert_int_equal(told.settled, round + 1);
        assert_int_equal(told.changed, round);
        dv_fake_advance(fake, 2000);
    }
}

/* A change that was taken back before the read is told as settled again, so that the owner of the watch can go on. */
TEST(test_changed_back) {
    settle_first("a");
    dv_fake_advance(fake, 3000 - elapsed());
    fire();
    assert_int_equal(told.changed, 1);
    answer("a", 12);
    dv_fake_advance(fake, LEAVE_BOUNDARY_MS);
    answer("a", 12);
    assert_int_equal(told.settled, 2);
}

/* seen() tells what each read showed, whether that settled or not, and before it does. */
TEST(test_seen) {
    begin();
    answer("a", 10);
    assert_int_equal(told.seen, 1);
    assert_string_equal(told.seen_names, "a");
    dv_fake_advance(fake, 500);
    fire();
    answer("ab", 11);
    assert_int_equal(told.seen, 2);
    assert_string_equal(told.seen_names, "ab");
    assert_int_equal(told.settled, 0);
    dv_fake_advance(fake, BOUNDARY_MS);
    told.stop_when_seen = true;
    answer("ab", 11); /* It would settle now, but its owner has seen enough. */
    assert_int_equal(told.seen, 3);
    assert_int_equal(told.settled, 0);
    assert_int_equal(told.gone, 1);
}

/* --- what is lost ----------------------------------------------------------------------------------------------- */

/* They are read once a minute, and an audit that shows nothing new tells nothing. */
TEST(test_audit) {
    settle_first("a");
    for (int minute = 1; minute <= 3; minute++) {
        read_comes_at(BOUNDARY_MS + minute * AUDIT_MS);
        answer("a", 10);
        assert_int_equal(told.settled, 1);
        assert_int_equal(told.changed, 0);
    }
}

/* A change that no watch told of is found by the audit, and settles from there on. */
TEST(test_audit_finds_a_change) {
    settle_first("a");
    dv_fake_advance(fake, AUDIT_MS);
    answer("ab", 11);
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.changed_at, BOUNDARY_MS + AUDIT_MS);
    read_comes_at(BOUNDARY_MS + AUDIT_MS + BOUNDARY_MS);
    answer("ab", 11);
    assert_int_equal(told.settled, 2);
}

/* They are read on each reconnect, for a watch may have been missed; and only then, not while the link is down. */
TEST(test_reconnect) {
    settle_first("a");
    dv_fake_advance(fake, 1000);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_advance(fake, 1000);
    assert_false(asked());
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer("a", 10);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.changed, 0);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED);
    int64_t at = elapsed();
    answer("ab", 11);
    assert_int_equal(told.changed, 1);
    read_comes_at(at + BOUNDARY_MS);
    answer("ab", 11);
    assert_int_equal(told.settled, 2);
}

/* A disconnect while it settles is no sign of standing still or of change: the boundary goes on from the first read. */
TEST(test_disconnect_while_settling) {
    begin();
    answer("a", 10);
    dv_fake_advance(fake, 300);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_advance(fake, 300);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer("a", 10);
    assert_int_equal(told.settled, 0);
    read_comes_at(BOUNDARY_MS);
    answer("a", 10);
    assert_int_equal(told.settled_at, BOUNDARY_MS);
}

/* A read whose answer was lost is sent again on the next connection. */
TEST(test_lost_read) {
    begin();
    assert_true(asked());
    dv_fake_session(fake, DIVVY_SUSPENDED);
    assert_false(asked());
    dv_fake_advance(fake, 500);
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer("a", 10);
    read_comes_at(500 + BOUNDARY_MS);
    answer("a", 10);
    assert_int_equal(told.settled, 1);
}

/* Begun without a connection, it waits for one. */
TEST(test_begun_offline) {
    dv_fake_session(fake, DIVVY_SUSPENDED);
    begin();
    assert_false(asked());
    dv_fake_advance(fake, 700);
    assert_false(asked());
    dv_fake_session(fake, DIVVY_CONNECTED);
    answer("a", 10);
    read_comes_at(700 + BOUNDARY_MS);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

/* A path that cannot be read fails, with the reason, and then it is gone. */
TEST(test_fails) {
    static const int errors[] = {DIVVY_ENOENT, DIVVY_EACCES, DIVVY_EPROTO};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        begin();
        dv_fake_answer(fake, &(dv_reply){.error = errors[i]});
        assert_int_equal(told.failed, 1);
        assert_int_equal(told.error, errors[i]);
        assert_int_equal(told.gone, 1);
        assert_int_equal(told.settled + told.changed, 0);
    }
}

/* Stopped at any time it tells nothing more but gone(), once, when no answer is still under way. */
TEST(test_stop) {
    for (int when = 0; when < 5; when++) {
        if (when == 0) dv_fake_session(fake, DIVVY_SUSPENDED);
        begin();
        if (when == 0) dv_fake_session(fake, DIVVY_CONNECTED);
        if (when >= 2) answer("a", 10);
        if (when >= 3) dv_fake_advance(fake, BOUNDARY_MS);
        if (when >= 4) answer("a", 10);
        bool reading = dv_fake_oldest(fake) != NULL;
        int settled = told.settled;
        stop();
        assert_int_equal(told.gone, reading ? 0 : 1);
        dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, false);
        if (reading) dv_fake_answer(fake, &(dv_reply){.stat = &(dv_stat){.pzxid = 10}});
        assert_int_equal(told.gone, 1);
        assert_int_equal(told.settled, settled);
        assert_int_equal(told.changed + told.failed, 0);
        dv_fake_advance(fake, 2 * AUDIT_MS);
        assert_false(asked());
    }
}

/* It may be stopped inside settled() and inside changed(). */
TEST(test_stop_inside) {
    begin();
    told.stop_when_settled = true;
    answer("a", 10);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer("a", 10);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.gone, 1);
    settle_first("a");
    told.stop_when_changed = true;
    fire();
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.gone, 1);
    assert_false(asked());
    settle_first("a");
    told.stop_when_changed = true;
    dv_fake_advance(fake, AUDIT_MS);
    answer("b", 11);
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.gone, 1);
    assert_int_equal(told.settled, 1);
    begin_with(0, 0, 0);
    answer("a", 10);
    told.stop_when_changed = true;
    dv_fake_advance(fake, AUDIT_MS);
    answer("b", 11); /* With a boundary of 0 it would settle in the same breath. */
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.gone, 1);
}

/* The session's end is the end of it, in every stage, and gone() comes once. */
TEST(test_session_lost) {
    for (int when = 0; when < 4; when++) {
        if (when) set_up(state);
        begin();
        if (when >= 1) answer("a", 10);
        if (when >= 2) dv_fake_advance(fake, BOUNDARY_MS);
        if (when >= 3) answer("a", 10);
        dv_fake_session(fake, DIVVY_LOST);
        assert_int_equal(told.gone, 1);
        assert_int_equal(told.failed + told.changed, 0);
        if (when < 3) assert_int_equal(tear_down(state), 0);
    }
}

/* So is the client's, also with a read under way. */
TEST(test_closed) {
    begin();
    divvy_client *client = dv_fake_client(fake);
    dv_client_ref(client);
    dv_fake_close(fake);
    assert_int_equal(told.gone, 1);
    assert_null(watch);
    dv_client_unref(client);
    set_up(state);
}

TEST_EACH(set_up, tear_down);
