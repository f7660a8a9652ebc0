/* Tests of partitioner/load_meter.h. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "lib/test.h"
#include "partitioner/load_meter.h"

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-4 * fabs(wanted) + 1e-5)) fail_msg("%.12g instead of %.12g", got, wanted);
}

/* The decay is 2^-(t / 60 s), at any time, without the library of mathematics. */
TEST(test_decay) {
    for (int64_t ms = 0; ms < 20 * DV_LOAD_HALF_LIFE_MS; ms += 977)
        assert_near(dv_load_decay(ms), exp2(-(double)ms / DV_LOAD_HALF_LIFE_MS));
    assert_near(dv_load_decay(DV_LOAD_HALF_LIFE_MS), 0.5);
    assert_near(dv_load_decay(INT64_MAX), 0);
}

/* The first value counts at once. After one half-life half of the way to the next one is gone, however it is read. */
TEST(test_half_life) {
    dv_load_meter a = {.at = 0}, b = {.at = 0};
    dv_load_meter_take(&a, 8, 1, 1000);
    dv_load_meter_take(&b, 8, 1, 1000);
    assert_near(dv_load_meter_read(&a, 500000), 8);
    dv_load_meter_take(&a, 0, 1, 500000);
    dv_load_meter_take(&b, 0, 1, 500000);
    for (int64_t ms = 0; ms < 60000; ms += 100) dv_load_meter_read(&b, 500000 + ms);
    assert_near(dv_load_meter_read(&a, 560000), 4);
    assert_near(dv_load_meter_read(&b, 560000), 4);
    assert_near(dv_load_meter_read(&a, 680000), 1);
    assert_near(dv_load_meter_read(&a, 100), 1); /* a clock that goes back changes nothing */
}

/* A value that jitters by the second comes to its mean. */
TEST(test_jitter) {
    dv_load_meter m = {.at = 0};
    for (int64_t s = 0; s < 1200; s++) dv_load_meter_take(&m, s % 2 == 0 ? 0 : 2, 7, s * 1000);
    assert_true(fabs(dv_load_meter_read(&m, 1200000) - 1) < 0.02);
}

/* Another ownership begins with its own first value, and counts two half-lives later. */
TEST(test_another_token) {
    dv_load_meter m = {.at = 0};
    dv_load_meter_take(&m, 5, 1, 1000);
    assert_false(dv_load_meter_is_settled(&m, 120999));
    assert_true(dv_load_meter_is_settled(&m, 121000));
    dv_load_meter_take(&m, 70, 2, 200000);
    assert_near(dv_load_meter_read(&m, 200000), 70);
    assert_false(dv_load_meter_is_settled(&m, 319999));
    assert_true(dv_load_meter_is_settled(&m, 320000));
    dv_load_meter_take(&m, 70, 2, 330000);
    assert_true(dv_load_meter_is_settled(&m, 330000));
}
