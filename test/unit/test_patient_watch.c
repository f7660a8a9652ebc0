/* Tests of recipe/patient_watch.h, on a virtual clock. SPDX-License-Identifier: Apache-2.0
 *
 * Here its owner wants to see the names at once, so every read is a list. How it goes where he does not:
 * test_patient_watch_stat.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/fake_znode.h"
#include "recipe/patient_watch.h"

#define PARTY "/p"
#define BOUNDARY_MS 1000
#define LEAVE_BOUNDARY_MS 400
#define SETTLE_MAX_MS 5000
#define INTERVAL_MS (LEAVE_BOUNDARY_MS / 4) /* what W1 gives for these boundaries */
#define AUDIT_MS 60000

static dv_fake *fake;
static dv_patient_watch *watch;
static int64_t start;

/* What was told, and when. */
static struct {
    int changed, settled, failed, gone, error;
    int64_t changed_at, settled_at;
    int64_t pzxid;   /* of the newest settled() */
    char names[256]; /* of the newest settled(), one after the other */
    bool stop_when_settled, stop_when_changed, stop_when_seen;
    int seen;
    char seen_names[256];
} told;

static int64_t elapsed(void) {
    return dv_fake_now(fake) - start;
}

static void on_changed(void *owner, int64_t now) {
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    told.changed++;
    told.changed_at = now - start;
    if (told.stop_when_changed) dv_patient_watch_stop(watch);
}

static void on_settled(void *owner, const char *const *names, size_t count, int64_t pzxid, int64_t now) {
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    told.settled++;
    told.settled_at = now - start;
    told.pzxid = pzxid;
    told.names[0] = '\0';
    for (size_t i = 0; i < count; i++) strcat(told.names, names[i]);
    if (told.stop_when_settled) dv_patient_watch_stop(watch);
}

static void on_failed(void *owner, int error, int64_t now) {
    (void)owner, (void)now;
    told.failed++;
    told.error = error;
}

static void on_gone(void *owner, int64_t now) {
    (void)owner, (void)now;
    told.gone++;
    watch = NULL;
}

static bool wants_names(void *owner) {
    assert_ptr_equal(owner, &told);
    return true;
}

static void on_seen(void *owner, const char *const *names, size_t count, int64_t now) {
    (void)now;
    assert_ptr_equal(owner, &told);
    assert_int_equal(told.gone + told.failed, 0);
    told.seen++;
    told.seen_names[0] = '\0';
    for (size_t i = 0; i < count; i++) strcat(told.seen_names, names[i]);
    if (told.stop_when_seen) dv_patient_watch_stop(watch);
}

static void begin_with(int64_t join_ms, int64_t leave_ms, int64_t settle_max_ms) {
    static const dv_patient_watch_events events = {on_changed, on_settled, on_failed, on_gone, wants_names, on_seen};
    const dv_patience patience = {join_ms, leave_ms, settle_max_ms};
    memset(&told, 0, sizeof told);
    start = dv_fake_now(fake);
    dv_turn_begin(dv_fake_client(fake));
    watch = dv_patient_watch_start(dv_fake_client(fake), PARTY, &patience, &events, &told);
    dv_turn_end(dv_fake_client(fake));
    assert_non_null(watch);
}

static void begin(void) {
    begin_with(BOUNDARY_MS, LEAVE_BOUNDARY_MS, SETTLE_MAX_MS);
}

static void stop(void) {
    dv_turn_begin(dv_fake_client(fake));
    dv_patient_watch_stop(watch);
    dv_turn_end(dv_fake_client(fake));
    dv_fake_run(fake);
}

static bool asked(void) {
    const char *pending = dv_fake_pending(fake);
    if (*pending) assert_string_equal(pending, "children! " PARTY);
    return *pending;
}

/* The read under way is answered: each letter is a child. */
static void answer(const char *letters, int64_t pzxid) {
    const char *names[26];
    char texts[26][2];
    size_t count = strlen(letters);
    for (size_t i = 0; i < count; i++) {
        texts[i][0] = letters[i];
        texts[i][1] = '\0';
        names[i] = texts[i];
    }
    assert_true(asked());
    dv_fake_answer(fake, &(dv_reply){.children = names,
                                     .child_count = count,
                                     .stat = &(dv_stat){.pzxid = pzxid, .children = (int32_t)count}});
}

static void fire(void) {
    assert_true(dv_fake_fire(fake, PARTY, DV_WATCH_CHILDREN, true));
}

/* Nothing is asked until exactly `at` after the start; then there is a read under way. */
static void read_comes_at(int64_t at) {
    dv_fake_advance(fake, at - elapsed() - 1);
    assert_false(asked());
    dv_fake_advance(fake, 1);
    assert_true(asked());
}

/* Begun, and settled with `letters` a boundary later. */
static void settle_first(const char *letters) {
    begin();
    answer(letters, 10);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer(letters, 10);
    assert_int_equal(told.settled, 1);
}

static int set_up(void **state) {
    (void)state;
    fake = dv_fake_open(NULL);
    dv_fake_session(fake, DIVVY_CONNECTED);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (watch) stop();
    while (dv_fake_oldest(fake)) dv_fake_answer(fake, &(dv_reply){.error = DIVVY_ECONNECTION});
    bool clean = !watch && !dv_fake_has_timers(fake) && !dv_fake_client(fake)->listeners;
    dv_fake_close(fake);
    return clean ? 0 : -1;
}

/* --- settling --------------------------------------------------------------------------------------------------- */

/* It settles at the boundary to the millisecond, by a second read that shows the same, and tells what that showed. */
static void test_settles_at_the_boundary(void **state) {
    (void)state;
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
static void test_slow_answers(void **state) {
    (void)state;
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
static void test_read_sent_too_early(void **state) {
    (void)state;
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
static void test_equal_names_are_no_proof(void **state) {
    (void)state;
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
static void test_join_begins_anew(void **state) {
    (void)state;
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
static void test_boundary_zero(void **state) {
    (void)state;
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
static void test_nobody(void **state) {
    (void)state;
    begin();
    answer("", 5);
    dv_fake_advance(fake, BOUNDARY_MS);
    answer("", 5);
    assert_int_equal(told.settled, 1);
    assert_string_equal(told.names, "");
}

/* --- two boundaries --------------------------------------------------------------------------------------------- */

/* Departures alone count after the leave boundary. */
static void test_leave_boundary(void **state) {
    (void)state;
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
static void test_leave_and_join(void **state) {
    (void)state;
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
static void test_came_and_went(void **state) {
    (void)state;
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
static void test_leave_boundary_zero(void **state) {
    (void)state;
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
static void test_churn(void **state) {
    (void)state;
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
static void test_settle_max_begins_anew(void **state) {
    (void)state;
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
static void test_shortest_interval(void **state) {
    (void)state;
    begin_with(100, 100, 400);
    answer("a", 10);
    fire();
    assert_false(asked());
    read_comes_at(50);
    answer("ab", 11);
    fire();
    read_comes_at(100);
}

/* A watch that fires while a read is under way is not forgotten. */
static void test_fires_while_reading(void **state) {
    (void)state;
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

/* --- changed() -------------------------------------------------------------------------------------------------- */

/* changed() comes with the first sign, once for each settled(), and not before the first one. */
static void test_changed_once(void **state) {
    (void)state;
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
static void test_changed_back(void **state) {
    (void)state;
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
static void test_seen(void **state) {
    (void)state;
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
static void test_audit(void **state) {
    (void)state;
    settle_first("a");
    for (int minute = 1; minute <= 3; minute++) {
        read_comes_at(BOUNDARY_MS + minute * AUDIT_MS);
        answer("a", 10);
        assert_int_equal(told.settled, 1);
        assert_int_equal(told.changed, 0);
    }
}

/* A change that no watch told of is found by the audit, and settles from there on. */
static void test_audit_finds_a_change(void **state) {
    (void)state;
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
static void test_reconnect(void **state) {
    (void)state;
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
static void test_disconnect_while_settling(void **state) {
    (void)state;
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
static void test_lost_read(void **state) {
    (void)state;
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
static void test_begun_offline(void **state) {
    (void)state;
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
static void test_fails(void **state) {
    (void)state;
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
static void test_stop(void **state) {
    (void)state;
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
static void test_stop_inside(void **state) {
    (void)state;
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
static void test_session_lost(void **state) {
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
static void test_closed(void **state) {
    begin();
    divvy_client *client = dv_fake_client(fake);
    dv_client_ref(client);
    dv_fake_close(fake);
    assert_int_equal(told.gone, 1);
    assert_null(watch);
    dv_client_unref(client);
    set_up(state);
}

int main(void) {
#define FAKE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        FAKE(test_settles_at_the_boundary),
        FAKE(test_slow_answers),
        FAKE(test_read_sent_too_early),
        FAKE(test_equal_names_are_no_proof),
        FAKE(test_join_begins_anew),
        FAKE(test_boundary_zero),
        FAKE(test_nobody),
        FAKE(test_leave_boundary),
        FAKE(test_leave_and_join),
        FAKE(test_came_and_went),
        FAKE(test_leave_boundary_zero),
        FAKE(test_churn),
        FAKE(test_settle_max_begins_anew),
        FAKE(test_shortest_interval),
        FAKE(test_fires_while_reading),
        FAKE(test_changed_once),
        FAKE(test_changed_back),
        FAKE(test_seen),
        FAKE(test_audit),
        FAKE(test_audit_finds_a_change),
        FAKE(test_reconnect),
        FAKE(test_disconnect_while_settling),
        FAKE(test_lost_read),
        FAKE(test_begun_offline),
        FAKE(test_fails),
        FAKE(test_stop),
        FAKE(test_stop_inside),
        FAKE(test_session_lost),
        FAKE(test_closed),
    };
    return cmocka_run_group_tests_name("patient_watch", tests, NULL, NULL);
}
