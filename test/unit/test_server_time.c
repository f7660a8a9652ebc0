/* Tests of lib/registry/server_time.h. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "lib/test.h"
#include "registry/server_time.h"

#define AHEAD INT64_C(1767225600000) /* of the servers' clock */

/* Nothing is known before the first write was answered, and that is old. */
TEST(test_unknown) {
    dv_server_time t = {.known = false};
    assert_true(dv_server_time_is_old(&t, 0));
    dv_server_time_learn(&t, 10, 12, AHEAD + 11);
    assert_true(t.known);
    assert_false(dv_server_time_is_old(&t, 12));
}

/* The bounds hold the servers' clock, wherever between sending and answer the stamp was made, to the millisecond. */
TEST(test_bounds) {
    for (int64_t stamped = 1000; stamped <= 1100; stamped++) {
        dv_server_time t = {.known = false};
        dv_server_time_learn(&t, 1000, 1100, AHEAD + stamped);
        dv_server_now now = dv_server_time_at(&t, 1100);
        assert_true(now.earliest_ms <= AHEAD + 1100 && AHEAD + 1100 <= now.latest_ms);
        assert_true(now.latest_ms - now.earliest_ms <= 102);
    }
}

/* The tightest bounds are kept: a slow answer does not widen what a quick one has shown. */
TEST(test_tightest) {
    dv_server_time t = {.known = false};
    dv_server_time_learn(&t, 0, 2, AHEAD + 1);
    dv_server_time_learn(&t, 1000, 3000, AHEAD + 2999);
    dv_server_now now = dv_server_time_at(&t, 3000);
    assert_true(now.latest_ms - now.earliest_ms <= 8);
    assert_true(now.earliest_ms <= AHEAD + 3000 && AHEAD + 3000 <= now.latest_ms);
    dv_server_time_learn(&t, 4000, 4000, AHEAD + 4000);
    now = dv_server_time_at(&t, 4000);
    assert_int_equal(now.latest_ms - now.earliest_ms, 2);
}

/* The estimate grows less exact with time, faster than two clocks can part, and is old when no write has confirmed
 * it. */
TEST(test_ages) {
    dv_server_time t = {.known = false};
    dv_server_time_learn(&t, 0, 0, AHEAD);
    dv_server_now now = dv_server_time_at(&t, 1000000);
    int64_t drifted = 1000000 / 1000000 * DV_SERVER_TIME_DRIFT_PPM;
    assert_true(now.earliest_ms <= AHEAD + 1000000 - drifted && now.latest_ms >= AHEAD + 1000000 + drifted);
    assert_true(now.latest_ms - now.earliest_ms <= 2 * drifted + 6);
    assert_false(dv_server_time_is_old(&t, DV_SERVER_TIME_FRESH_MS - 1));
    assert_true(dv_server_time_is_old(&t, DV_SERVER_TIME_FRESH_MS));
    dv_server_time_learn(&t, 20000, 29000, AHEAD + 25000); /* agrees, though it is not as exact */
    assert_false(dv_server_time_is_old(&t, DV_SERVER_TIME_FRESH_MS));
    assert_int_equal(t.learned_at, 0);
}

/* A clock that was set, or another leader's, is followed at the first write that shows it. */
TEST(test_jump) {
    const int64_t jumps[] = {3600000, -3600000, 500, -500};
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        dv_server_time t = {.known = false};
        dv_server_time_learn(&t, 0, 2, AHEAD + 1);
        dv_server_time_learn(&t, 1000, 1100, AHEAD + 1050 + jumps[i]);
        dv_server_now now = dv_server_time_at(&t, 1100);
        int64_t truth = AHEAD + 1100 + jumps[i];
        assert_true(now.earliest_ms <= truth && truth <= now.latest_ms);
        int64_t likely = dv_server_time_likely_ms(&t, 1100);
        assert_true(likely >= now.earliest_ms && likely <= now.latest_ms);
    }
}

/* A time is told as ISO 8601 in UTC with milliseconds; nonsense before 1970 is 1970. */
TEST(test_iso) {
    char text[DV_ISO_BYTES];
    dv_iso_print(AHEAD + 7, text);
    assert_string_equal(text, "2026-01-01T00:00:00.007Z");
    dv_iso_print(INT64_C(951782399999), text);
    assert_string_equal(text, "2000-02-28T23:59:59.999Z");
    dv_iso_print(-1, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    dv_iso_print(INT64_MAX, text); /* no overflow of anything */
}
