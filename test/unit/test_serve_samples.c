/* How many items were where, over the whole life of divvy serve. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/serve_samples.h"
#include "lib/test.h"

static dv_serve_samples samples;
static dv_serve_sample points[DV_SERVE_POINTS_MAX];

static int set_up(void **state) {
    (void)state;
    samples = (dv_serve_samples){.count = 0};
    return 0;
}

static void add(int64_t ms, uint32_t unowned, uint32_t moving) {
    dv_serve_samples_add(&samples, &(dv_serve_sample){ms, 1000, unowned, moving, 10});
}

static size_t between(int64_t from_ms, int64_t to_ms) {
    return dv_serve_samples_between(&samples, from_ms, to_ms, points);
}

/* Returns the greatest count of unowned items among some points. */
static uint32_t peak_of(const dv_serve_sample *list, size_t count) {
    uint32_t most = 0;
    for (size_t i = 0; i < count; i++) most = list[i].unowned > most ? list[i].unowned : most;
    return most;
}

static void assert_in_order(const dv_serve_sample *list, size_t count) {
    for (size_t i = 1; i < count; i++) assert_true(list[i - 1].ms <= list[i].ms);
}

/* A sample is kept where it differs from the last one: in any of its numbers. */
TEST_IN(test_differing, set_up, NULL) {
    add(1, 0, 0);
    add(2, 0, 0);
    add(3, 1, 0);
    add(4, 1, 2);
    assert_int_equal(samples.count, 3);
    dv_serve_samples_add(&samples, &(dv_serve_sample){5, 1000, 1, 2, 9});
    dv_serve_samples_add(&samples, &(dv_serve_sample){6, 1001, 1, 2, 9});
    assert_int_equal(samples.count, 5);
}

/* A life of many more changes than there is room for is kept: it begins where it began, no peak is lost, and what is
 * old gets coarser, and what is young does not. */
TEST_IN(test_whole_life, set_up, NULL) {
    enum { CHANGES = 30000, SECOND = 1000 };
    for (int i = 0; i < CHANGES; i++) {
        uint32_t unowned = i == 5 ? 700 : i == CHANGES / 2 ? 600 : i == CHANGES - 50 ? 500 : (uint32_t)(i % 2);
        add((int64_t)i * SECOND, unowned, i == 77 ? 900 : 0);
        assert_true(samples.count <= DV_SERVE_SAMPLES_MAX);
    }
    assert_int_equal(samples.count, DV_SERVE_SAMPLES_MAX);
    assert_in_order(samples.list, samples.count);
    assert_int_equal(samples.list[0].ms, 0);
    const dv_serve_sample *last = &samples.list[samples.count - 1];
    assert_int_equal(last->ms, (int64_t)(CHANGES - 1) * SECOND);
    assert_int_equal(last->unowned, 1);
    int peaks[3] = {0}, moving = 0;
    for (size_t i = 0; i < samples.count; i++) {
        peaks[0] += samples.list[i].unowned == 700;
        peaks[1] += samples.list[i].unowned == 600;
        peaks[2] += samples.list[i].unowned == 500;
        moving += samples.list[i].moving == 900;
    }
    assert_int_equal(peaks[0], 1);
    assert_int_equal(peaks[1], 1);
    assert_int_equal(peaks[2], 1);
    assert_int_equal(moving, 1);
    /* The last minutes are as they were; what is older is as coarse as it is old, to about a hundredth of its age. */
    for (size_t i = samples.count - 100; i + 1 < samples.count; i++)
        assert_int_equal(samples.list[i + 1].ms - samples.list[i].ms, SECOND);
    for (size_t i = 0; i + 1 < samples.count; i++) {
        int64_t age_ms = last->ms - samples.list[i].ms, span_ms = samples.list[i + 1].ms - samples.list[i].ms;
        assert_true(span_ms <= 2 * SECOND + age_ms / 100);
    }
}

/* Two neighbours that become one have the most of all counts, and the fewest members. What goes on now is not made one
 * with what was before. */
TEST_IN(test_merged, set_up, NULL) {
    for (uint32_t i = 0; i < DV_SERVE_SAMPLES_MAX; i++)
        dv_serve_samples_add(&samples,
                             &(dv_serve_sample){i * 10, 100 - i % 2, i % 2 ? 3 : 5, i % 2 ? 7 : 2, 10 - i % 2});
    dv_serve_samples_add(&samples, &(dv_serve_sample){DV_SERVE_SAMPLES_MAX * 10, 1, 1, 1, 1});
    assert_int_equal(samples.count, DV_SERVE_SAMPLES_MAX);
    assert_int_equal(samples.list[0].items, 100);
    assert_int_equal(samples.list[0].unowned, 5);
    assert_int_equal(samples.list[0].moving, 7);
    assert_int_equal(samples.list[0].members, 9);
    assert_int_equal(samples.list[1].ms, 20);
    assert_int_equal(samples.list[samples.count - 2].ms, (DV_SERVE_SAMPLES_MAX - 1) * 10);
}

/* A long time in which nothing happened is not made one with the moment behind it. */
TEST_IN(test_quiet, set_up, NULL) {
    enum { HOUR = 3600 * 1000 };
    add(0, 0, 0);
    for (int i = 0; i < 2 * DV_SERVE_SAMPLES_MAX; i++) add(10 * HOUR + (int64_t)i * 1000, 1 + (uint32_t)(i % 2), 0);
    assert_int_equal(samples.list[0].unowned, 0);
    assert_int_equal(samples.list[1].ms, 10 * HOUR);
}

/* Where the clock goes back, what was before is no later than what is. */
TEST_IN(test_clock, set_up, NULL) {
    add(10, 1, 0);
    add(20, 2, 0);
    add(30, 3, 0);
    add(15, 4, 0);
    add(16, 5, 0);
    assert_in_order(samples.list, samples.count);
    assert_int_equal(samples.list[0].ms, 10);
    assert_int_equal(samples.list[2].ms, 15);
    assert_int_equal(samples.list[3].unowned, 4);
    assert_int_equal(between(16, 16), 1);
    assert_int_equal(points[0].unowned, 5);
}

/* Asked for a time, it begins with what was so then, whether that began then or before. */
TEST_IN(test_between, set_up, NULL) {
    assert_int_equal(between(0, INT64_MAX), 0);
    for (int i = 1; i <= 5; i++) add(i * 10, (uint32_t)i, 0);
    assert_int_equal(between(25, 45), 3);
    assert_int_equal(points[0].ms, 20);
    assert_int_equal(points[2].ms, 40);
    assert_int_equal(between(20, 20), 1);
    assert_int_equal(points[0].ms, 20);
    assert_int_equal(between(60, 70), 1);
    assert_int_equal(points[0].ms, 50);
    assert_int_equal(between(0, 9), 0);
    assert_int_equal(between(0, 10), 1);
    assert_int_equal(between(0, INT64_MAX), 5);
}

/* Of too many samples those close together are told by their peaks and by the last of them, so that a moment with a
 * peak does not look as long as the quiet hours behind it. */
TEST_IN(test_thinned, set_up, NULL) {
    enum { COUNT = 3000 };
    for (int i = 0; i < COUNT; i++) add(i, i == 1234 ? 99 : (uint32_t)(i % 2), i == 2345 ? 77 : 0);
    add(COUNT, 2, 0);
    add(COUNT + 1, 0, 0);
    add(1000000, 1, 0);
    size_t count = between(0, INT64_MAX);
    assert_true(count <= DV_SERVE_POINTS_MAX);
    assert_in_order(points, count);
    assert_int_equal(peak_of(points, count), 99);
    assert_int_equal(points[0].ms, 0);
    assert_int_equal(points[count - 1].ms, 1000000);
    assert_int_equal(points[count - 2].ms, COUNT + 1);
    assert_int_equal(points[count - 2].unowned, 0);
    count = between(1000, 2999);
    assert_true(count > DV_SERVE_POINTS_MAX / 2 && count <= DV_SERVE_POINTS_MAX);
    assert_int_equal(points[0].ms, 1000);
    assert_int_equal(points[count - 1].ms, 2999);
    assert_int_equal(peak_of(points, count), 99);
    uint32_t moving = 0;
    for (size_t i = 0; i < count; i++) moving = points[i].moving > moving ? points[i].moving : moving;
    assert_int_equal(moving, 77);
}

/* No peak is lost, wherever it lies and whatever part is asked for. */
TEST_IN(test_peaks, set_up, NULL) {
    uint32_t seed = 28;
    print_message("seed %u\n", seed);
    int64_t ms = 0;
    for (int i = 0; i < 9000; i++) {
        seed = seed * 1664525 + 1013904223;
        ms += 1 + (seed >> 8) % (i % 100 ? 20 : 100000);
        seed = seed * 1664525 + 1013904223;
        add(ms, (seed >> 8) % 1000, 0);
    }
    for (int i = 0; i < 300; i++) {
        seed = seed * 1664525 + 1013904223;
        size_t first = (seed >> 8) % samples.count;
        size_t end = first + 1 + (seed >> 4) % (samples.count - first);
        size_t count = between(samples.list[first].ms, samples.list[end - 1].ms);
        assert_true(count > 0 && count <= DV_SERVE_POINTS_MAX);
        assert_in_order(points, count);
        assert_int_equal(points[0].ms, samples.list[first].ms);
        assert_int_equal(points[count - 1].ms, samples.list[end - 1].ms);
        assert_int_equal(peak_of(points, count), peak_of(&samples.list[first], end - first));
    }
}
