/* The arithmetic of the session clock: docs/protocol.md, C1 to C3. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "client/clock.h"
#include "lib/seed.h"
#include "lib/test.h"

/* With a tick of 200 the guard is 100 + 100; with a timeout of 8000 the margin is 100. */
enum { TICK_MS = 200, PING_MS = 100, LAG_MS = 100, GUARD_MS = PING_MS + LAG_MS, TIMEOUT_MS = 8000, MARGIN_MS = 100 };

static dv_clock clock_;

static void reset(void) {
    clock_ = (dv_clock){.tick_ms = 0};
    dv_clock_reset(&clock_, TICK_MS);
}

static void connect_at(int64_t created_at) {
    clock_.connection++;
    dv_clock_connected(&clock_, TIMEOUT_MS, created_at, 0);
}

static void answer(bool wrote, int error, int64_t sent_at, uint64_t connection, int64_t now) {
    dv_clock_answered(&clock_, &(dv_answer){sent_at, connection, wrote, error}, now);
}

static int64_t proven(void) {
    int64_t until = dv_clock_alive_until(&clock_);
    return until ? until - TIMEOUT_MS + MARGIN_MS : 0;
}

/* Guard, margin and interval are as the rules have them. */
TEST(test_lengths) {
    reset();
    connect_at(0);
    assert_int_equal(dv_clock_guard_ms(&clock_), GUARD_MS);
    assert_int_equal(dv_clock_margin_ms(&clock_), MARGIN_MS);
    assert_int_equal(dv_clock_heartbeat_ms(&clock_), TIMEOUT_MS / 10);
    for (int64_t tick_ms = 10; tick_ms < TIMEOUT_MS; tick_ms += 10) {
        dv_clock_reset(&clock_, tick_ms);
        dv_clock_connected(&clock_, TIMEOUT_MS, 0, 0);
        int64_t interval_ms = dv_clock_heartbeat_ms(&clock_), guard_ms = dv_clock_guard_ms(&clock_);
        assert_in_range(interval_ms, TIMEOUT_MS / 10, TIMEOUT_MS / 10 * 3 / 2 + 1);
        /* No worse than plain tenths, in what is left at the worst. */
        int64_t n = (guard_ms + TIMEOUT_MS / 200 + interval_ms - 1) / interval_ms;
        int64_t plain = (guard_ms + TIMEOUT_MS / 200 + TIMEOUT_MS / 10 - 1) / (TIMEOUT_MS / 10);
        assert_true((n + 1) * interval_ms <= (plain + 1) * (TIMEOUT_MS / 10));
    }
    /* The guard of ticks of 2 s, and a round trip, are one heartbeat of a timeout of 10 s, to the millisecond. */
    dv_clock_reset(&clock_, 2000);
    dv_clock_connected(&clock_, 10000, 0, 0);
    assert_int_equal(dv_clock_heartbeat_ms(&clock_), 1100 + 50);
}

/* A tick that is not known proves nothing, whatever is written, and however long the timeout: it has no bound. */
TEST(test_unknown_tick) {
    dv_clock_reset(&clock_, 0);
    connect_at(500);
    for (int64_t at = 1000; at < 10 * TIMEOUT_MS; at += 100) answer(true, 0, at, clock_.connection, at + 5);
    assert_int_equal(dv_clock_alive_until(&clock_), 0);
    assert_false(dv_clock_can_hold(&clock_));
}

/* The least timeout that can hold something holds it at rest: with a heartbeat whenever one is due, and round trips of
 * a hundredth of it, the deadline of the first proof and of all that follow lies ahead. One that is shorter believes
 * nothing at all. A session whose creation took too long begins without belief as well. */
static void check_at_rest(int64_t tick_ms, int64_t timeout_ms, int64_t created_at) {
    int64_t now = 10000, trip_ms = timeout_ms / 100, until = 0;
    dv_clock_reset(&clock_, tick_ms);
    clock_.connection = 1;
    dv_clock_connected(&clock_, timeout_ms, created_at, (uint64_t)tick_ms);
    assert_true(dv_clock_can_hold(&clock_));
    while (now < 10000 + 20 * timeout_ms) {
        answer(true, 0, now, 1, now + trip_ms);
        now += trip_ms;
        if (until || dv_clock_alive_until(&clock_) - now > dv_clock_first_needs_ms(&clock_)) {
            if (until) assert_true(now < until);
            until = dv_clock_alive_until(&clock_);
        }
        int64_t next = dv_clock_next_beat(&clock_);
        if (next > now) now = next;
    }
    assert_true(until > now);
}

TEST(test_least_timeout_that_holds) {
    for (int64_t tick_ms = 1; tick_ms < 5000; tick_ms += tick_ms / 10 + 1) {
        int64_t least_ms = dv_clock_least_timeout_ms(tick_ms);
        for (int64_t timeout_ms = least_ms; timeout_ms < 8 * least_ms; timeout_ms += timeout_ms / 20) {
            check_at_rest(tick_ms, timeout_ms, 0);
            check_at_rest(tick_ms, timeout_ms, 10000 - timeout_ms / 2);
            check_at_rest(tick_ms, timeout_ms, 10000);
        }
        dv_clock_reset(&clock_, tick_ms);
        dv_clock_connected(&clock_, least_ms - 2, 500, 0);
        assert_false(dv_clock_can_hold(&clock_));
        assert_int_equal(dv_clock_alive_until(&clock_), 0);
    }
}

/* On a new connection the first proof takes at most four writes, of all clients at other times, and no beat is due
 * before what is known by then: with T = 2000 on ticks of 100, which has no pairs, and with a timeout that has. */
TEST(test_first_proof_is_cheap) {
    static const int64_t times[][2] = {{100, 2000}, {100, 500}, {2000, 11000}, {2000, 15000}, {1, 500}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t first_at = 0, last_at = 0;
        for (uint64_t chance = 1; chance <= 50; chance++) {
            int64_t now = 10000;
            int writes = 0;
            dv_clock_reset(&clock_, times[i][0]);
            clock_.connection = chance;
            dv_clock_connected(&clock_, times[i][1], 0, chance);
            while (!clock_.proven_here) {
                answer(true, 0, now, chance, now); /* answered at once: nothing but the clock makes time go on */
                writes++;
                if (clock_.proven_here) break;
                assert_true(dv_clock_next_beat(&clock_) > now || times[i][0] == 1);
                now = dv_clock_next_beat(&clock_);
                assert_true(writes <= 4);
            }
            if (!first_at || now < first_at) first_at = now;
            if (now > last_at) last_at = now;
        }
        /* Where heartbeats are rarer than pings; else they are what proves. */
        bool spreads = dv_clock_heartbeat_ms(&clock_) > dv_clock_ping_ms(&clock_) + 50;
        if (spreads) assert_true(last_at - first_at >= times[i][1] / 100);
    }
}

/* An answered read proves nothing, however many there are; nor does a write, however late, as the leader may have been
 * stopped all the time before; nor do two without the time for a ping before them or for its answer between them. */
TEST(test_no_proof) {
    reset();
    connect_at(0);
    for (int64_t at = 1000; at < 9000; at += 100) answer(false, 0, at, 1, at + 5);
    assert_int_equal(proven(), 0);
    reset();
    connect_at(0);
    answer(true, 0, 1000, 1, 1005);
    assert_int_equal(proven(), 0);
    answer(true, 0, 1005 + 10 * GUARD_MS, 1, 3300);
    assert_int_equal(proven(), 0);
    answer(true, 0, 3300 + LAG_MS - 1, 1, 3400);
    assert_int_equal(proven(), 0);
    assert_int_equal(dv_clock_alive_until(&clock_), 0);
    reset();
    connect_at(0);
    answer(true, 0, 1000, 1, 1005);
    answer(true, 0, 1005 + PING_MS - 1, 1, 1110);
    answer(true, 0, 1110 + LAG_MS, 1, 1300); /* the first that comes a ping after the first answer */
    assert_int_equal(proven(), 0);
}

/* Two writes prove the time at which a request was sent, the first sent the time of a ping after its answer came, the
 * second a lag after the answer to the first: of a read, of a refused write, of a write. */
TEST(test_proof) {
    static const struct {
        bool wrote;
        int error;
    } kinds[] = {{false, 0}, {false, DIVVY_ENOENT}, {true, DIVVY_EEXIST}, {true, 0}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        reset();
        connect_at(0);
        answer(kinds[i].wrote, kinds[i].error, 1000, 1, 1005);
        answer(true, 0, 1005 + PING_MS, 1, 1110);
        assert_int_equal(proven(), 0);
        answer(true, 0, 1110 + LAG_MS, 1, 1300);
        assert_int_equal(proven(), 1000);
    }
}

/* A write that was refused proves nothing. */
TEST(test_refused_write) {
    reset();
    connect_at(0);
    answer(false, 0, 1000, 1, 1005);
    answer(true, DIVVY_ENOENT, 2000, 1, 2005);
    answer(true, DIVVY_ENOENT, 2005 + LAG_MS, 1, 2200);
    assert_int_equal(proven(), 0);
}

/* Answers close together count as one, so that the oldest of them outlives what a proof takes, however many come. */
TEST(test_busy) {
    reset();
    connect_at(0);
    for (int64_t at = 1000; at < 6000; at++) answer(at % 100 == 0, 0, at, 1, at + 1);
    assert_in_range(proven(), 6000 - 2 * (GUARD_MS + 100), 6000);
}

/* On a later connection any write proves what was answered on an earlier one, and only that. */
TEST(test_later_connection) {
    reset();
    connect_at(0);
    answer(false, 0, 1000, 1, 1005);
    connect_at(0);
    answer(true, 0, 1010, 1, 1012); /* was on its way when the new connection was told of */
    assert_int_equal(proven(), 0);
    answer(false, 0, 1013, 2, 1014);
    answer(true, 0, 1015, 2, 1016);
    assert_int_equal(proven(), 1000);
}

/* The making of a session is a proof; taking one up again is none. */
TEST(test_creation) {
    reset();
    connect_at(500);
    assert_int_equal(proven(), 500);
    connect_at(0);
    assert_int_equal(proven(), 500);
}

/* The least timeout that the session was ever given counts. */
TEST(test_least_timeout) {
    reset();
    connect_at(500);
    dv_clock_connected(&clock_, TIMEOUT_MS / 2, 0, 0);
    assert_int_equal(dv_clock_alive_until(&clock_), 500 + TIMEOUT_MS / 2 - TIMEOUT_MS / 200 - 20);
    dv_clock_connected(&clock_, TIMEOUT_MS, 0, 0);
    assert_int_equal(dv_clock_alive_until(&clock_), 500 + TIMEOUT_MS / 2 - TIMEOUT_MS / 200 - 20);
}

/* Of a full list every second answer stays, the newest one among them. */
TEST(test_thinned_out) {
    reset();
    connect_at(0);
    for (int64_t i = 1; i <= DV_CLOCK_UNPROVEN_MAX + 1; i++) answer(false, 0, 100 * i, 1, 100 * i);
    assert_int_equal(clock_.unproven_count, DV_CLOCK_UNPROVEN_MAX / 2 + 1);
    for (int64_t i = 0; i < DV_CLOCK_UNPROVEN_MAX / 2; i++) assert_int_equal(clock_.unproven[i].sent_at, 200 * (i + 1));
}

/* The clock's memory is bounded, and what it leaves out makes it say less, never more. The test holds it against
 * all requests, for random traffic. */
TEST(test_bounded) {
    enum { REQUESTS = 20000 };
    static struct { int64_t sent_at, answered_at, pinged_at; } all[REQUESTS];
    srand((unsigned)dv_test_seed("unit_clock"));
    reset();
    connect_at(0);
    int64_t at = 1000, true_proof = 0;
    size_t first = 0, lagged = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        int64_t sent_at = at, now = at + rand() % 20;
        bool wrote = rand() % 50 == 0;
        if (wrote) {
            for (size_t j = first; j < i && all[j].answered_at + PING_MS <= sent_at; j++) {
                if (!all[j].pinged_at) all[j].pinged_at = now;
                else if (all[j].pinged_at + LAG_MS <= sent_at) true_proof = all[j].sent_at, first = j + 1;
            }
        }
        all[i].sent_at = sent_at;
        all[i].answered_at = now;
        all[i].pinged_at = 0;
        answer(wrote, 0, sent_at, 1, now);
        assert_true(clock_.unproven_count <= DV_CLOCK_UNPROVEN_MAX);
        assert_true(proven() <= true_proof);
        if (true_proof - proven() > GUARD_MS) lagged++;
        at = now + rand() % 3;
    }
    assert_true(lagged < REQUESTS / 5); /* and not much less: of 300 seeds the worst had 1,227 of 20,000 */
}
