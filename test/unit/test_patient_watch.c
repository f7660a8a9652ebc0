/* Tests of recipe/patient_watch.h, on a virtual clock. SPDX-License-Identifier: Apache-2.0
 *
 * Here its owner wants to see the names at once, so every read is a list. How it goes where he does not:
 * test_patient_watch_stat.c. */
#include "patient_watch_fixture.h"

/* --- settling --------------------------------------------------------------------------------------------------- */

/* It settles at the boundary to the millisecond, by a second read that shows the same, and tells what that showed. */
TEST(test_settles_at_the_boundary) {
    begin();
    answer("ab", 10);
    assert_int_equal(told.settled, 0);
    read_comes_at(BOUNDARY_MS);
    assert_int_equal(told.settled, 0);
    answer("ab", 10);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, BOUNDARY_MS);
    assert_string_equal(told.names, "ab");
    assert_int_equal(told.pzxid, 10);
    assert_int_equal(told.changed, 0);
}

/* The boundary counts from when the first answer came to when the second read was sent, however slow answers are. */
TEST(test_slow_answers) {
    begin();
    dv_fake_advance(fake, 700);
    answer("a", 10);
    read_comes_at(700 + BOUNDARY_MS);
    dv_fake_advance(fake, 3000);
    answer("a", 10);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, 700 + BOUNDARY_MS + 3000);
}

/* A read that was sent before the boundary was over proves nothing about it, though its answer comes after. */
TEST(test_read_sent_too_early) {
    begin();
    answer("a", 10);
    dv_fake_advance(fake, BOUNDARY_MS - 1);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_session(fake, DIVVY_CONNECTED); /* read again at once */
    assert_true(asked());
    dv_fake_advance(fake, 500);
    answer("a", 10);
    assert_int_equal(told.settled, 0);
    dv_fake_advance(fake, 0);
    answer("a", 10);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, BOUNDARY_MS + 499);
}

/* A second read that shows another pzxid begins the boundary again, though the names are the same. */
TEST(test_equal_names_are_no_proof) {
    begin();
    answer("ab", 10);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer("ab", 12); /* One left and one of the same name came. */
    assert_int_equal(told.settled, 0);
    read_comes_at(2 * BOUNDARY_MS);
    answer("ab", 12);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, 2 * BOUNDARY_MS);
    assert_int_equal(told.pzxid, 12);
}

/* A join while it waits begins the boundary again, from the read that showed it. */
TEST(test_join_begins_anew) {
    begin();
    answer("a", 10);
    dv_fake_advance(fake, 600);
    fire();
    answer("ab", 11);
    read_comes_at(600 + BOUNDARY_MS);
    answer("ab", 11);
    assert_int_equal(told.settled_at, 600 + BOUNDARY_MS);
    assert_string_equal(told.names, "ab");
    assert_int_equal(told.settled, 1);
}

/* A boundary of 0 settles with the first read, and again with each read that shows a change. */
TEST(test_boundary_zero) {
    begin_with(0, 0, 0);
    answer("a", 10);
    assert_int_equal(told.settled, 1);
    assert_int_equal(told.settled_at, 0);
    dv_fake_advance(fake, 1000);
    fire();
    assert_int_equal(told.changed, 1);
    answer("ab", 11);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, 1000);
    assert_string_equal(told.names, "ab");
}

/* An empty list settles like any other. */
TEST(test_nobody) {
    begin();
    answer("", 5);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer("", 5);
    assert_int_equal(told.settled, 1);
    assert_string_equal(told.names, "");
}

/* --- two boundaries --------------------------------------------------------------------------------------------- */

/* Departures alone count after the leave boundary. */
TEST(test_leave_boundary) {
    settle_first("abc");
    dv_fake_advance(fake, 5000 - elapsed());
    fire();
    answer("ac", 11);
    read_comes_at(5000 + LEAVE_BOUNDARY_MS);
    answer("ac", 11);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, 5000 + LEAVE_BOUNDARY_MS);
    assert_string_equal(told.names, "ac");
}

/* A join among the departures, before or after them, makes it the join boundary. */
TEST(test_leave_and_join) {
    settle_first("abc");
    dv_fake_advance(fake, 5000 - elapsed());
    fire();
    answer("ac", 11);
    dv_fake_advance(fake, 200);
    fire();
    answer("acd", 12);
    read_comes_at(5200 + BOUNDARY_MS);
    answer("acd", 12);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, 5200 + BOUNDARY_MS);
}

/* One who joined and left again within the time leaves departures, or nothing: the leave boundary. */
TEST(test_came_and_went) {
    settle_first("ab");
    dv_fake_advance(fake, 5000 - elapsed());
    fire();
    answer("abz", 11);
    dv_fake_advance(fake, 200);
    fire();
    answer("ab", 12);
    read_comes_at(5200 + LEAVE_BOUNDARY_MS);
    answer("ab", 12);
    assert_int_equal(told.settled, 2);
    assert_string_equal(told.names, "ab");
}

/* Only the leave boundary may be 0: departures count at once, joins do not. */
TEST(test_leave_boundary_zero) {
    begin_with(BOUNDARY_MS, 0, SETTLE_MAX_MS);
    answer("ab", 10);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer("ab", 10);
    assert_int_equal(told.settled, 1);
    dv_fake_advance(fake, 3000 - elapsed());
    fire();
    answer("a", 11);
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.settled_at, 3000);
    dv_fake_advance(fake, 1000);
    fire();
    answer("ac", 12);
    assert_int_equal(told.settled, 2);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer("ac", 12);
    assert_int_equal(told.settled, 3);
}

/* --- churn ------------------------------------------------------------------------------------------------------ */

/* However often they change, they are read once each interval at most, changed() is told once, and the first read
 * after settle_max settles whatever it shows. */
TEST(test_churn) {
    settle_first("a");
    dv_fake_advance(fake, 5000 - elapsed());
    int64_t pzxid = 100, last_read = 0;
    int reads = 0;
    fire();
    assert_int_equal(told.changed, 1);
    assert_int_equal(told.changed_at, 5000);
    while (told.settled == 1 && elapsed() < 60000) {
        if (asked()) {
            if (reads) assert_true(elapsed() - last_read >= INTERVAL_MS);
            reads++;
            last_read = elapsed();
            answer(pzxid % 2 ? "ab" : "ac", pzxid);
            pzxid++;
            if (told.settled > 1) break;
        }
        if (dv_fake_is_watched(fake, PARTY)) dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true);
        dv_fake_advance(fake, 1);
    }
    assert_int_equal(told.settled, 2);
    assert_int_equal(told.changed, 1);
    assert_true(told.settled_at >= 5000 + SETTLE_MAX_MS);
    assert_true(told.settled_at <= 5000 + SETTLE_MAX_MS + INTERVAL_MS);
    assert_string_equal(told.names, pzxid % 2 ? "ac" : "ab"); /* what the last read showed */
    assert_int_equal(told.pzxid, pzxid - 1);
    assert_true(reads <= SETTLE_MAX_MS / INTERVAL_MS + 2);
    assert_true(reads >= SETTLE_MAX_MS / INTERVAL_MS / 2);
}

/* After churn was cut short settle_max starts again with the next change. */
TEST(test_settle_max_begins_anew) {
    test_churn(state);
    int64_t from = elapsed() + 20000;
    dv_fake_advance(fake, 20000);
    fire();
    answer("xyz", 5000);
    read_comes_at(from + BOUNDARY_MS);
    answer("xyz", 5000);
    assert_int_equal(told.settled, 3);
    assert_int_equal(told.settled_at, from + BOUNDARY_MS);
}

/* The shortest interval is 50 ms, for small boundaries. */
TEST(test_shortest_interval) {
    begin_with(100, 100, 400);
    answer("a", 10);
    fire();
    assert_false(asked());
    read_comes_at(50);
    answer("ab", 11);
    fire();
    read_comes_at(100);
}

TEST_EACH(set_up, tear_down);
