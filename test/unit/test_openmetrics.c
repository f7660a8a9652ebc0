/* Tests of lib/base/openmetrics.h and histogram.h: the text of families, samples and histograms.
 * SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "base/openmetrics.h"
#include "lib/test.h"

/* A receiver that keeps the text, and fails when it is told to. */
typedef struct {
    char text[20000];
    size_t bytes, calls, fails_at;
} sink;

static int keep(void *user, const char *text, size_t bytes) {
    sink *to = user;
    to->calls++;
    if (to->fails_at && to->calls >= to->fails_at) return -77;
    assert_true(bytes > 0 && to->bytes + bytes < sizeof to->text);
    memcpy(to->text + to->bytes, text, bytes);
    to->bytes += bytes;
    return 0;
}

static const dv_metric_family jobs = {"t_jobs", DV_METRIC_COUNTER, NULL, "Jobs done."};
static const dv_metric_family left = {"t_left_seconds", DV_METRIC_GAUGE, "seconds", "Time left."};
static const dv_metric_family wait = {"t_wait_seconds", DV_METRIC_HISTOGRAM, "seconds", "Waits."};

/* OpenMetrics names a counter's family without _total, has units, and ends in EOF; a family without samples is left
 * out. */
TEST(test_openmetrics) {
    sink to = {0};
    dv_metrics_writer writer;
    dv_metrics_begin(&writer, DV_METRICS_OPENMETRICS, keep, &to);
    dv_metrics_family(&writer, &jobs);
    dv_metrics_put(&writer, NULL, 0, UINT64_MAX);
    dv_metrics_put(&writer, (dv_metric_label[]){{"pool", "/a"}, {"kind", "x"}}, 2, 0);
    dv_metrics_family(&writer, &wait);
    dv_metrics_family(&writer, &left);
    dv_metrics_put_us(&writer, NULL, 0, 1500000);
    assert_int_equal(dv_metrics_end(&writer), 0);
    assert_string_equal(to.text, "# HELP t_jobs Jobs done.\n"
                                 "# TYPE t_jobs counter\n"
                                 "t_jobs_total 18446744073709551615\n"
                                 "t_jobs_total{pool=\"/a\",kind=\"x\"} 0\n"
                                 "# HELP t_left_seconds Time left.\n"
                                 "# TYPE t_left_seconds gauge\n"
                                 "# UNIT t_left_seconds seconds\n"
                                 "t_left_seconds 1.5\n"
                                 "# EOF\n");
}

/* The older format has _total in the name that HELP and TYPE speak of, and neither units nor an end. */
TEST(test_prometheus) {
    sink to = {0};
    dv_metrics_writer writer;
    dv_metrics_begin(&writer, DV_METRICS_PROMETHEUS, keep, &to);
    dv_metrics_family(&writer, &jobs);
    dv_metrics_put(&writer, NULL, 0, 7);
    dv_metrics_family(&writer, &left);
    dv_metrics_put_us(&writer, NULL, 0, 0);
    assert_int_equal(dv_metrics_end(&writer), 0);
    assert_string_equal(to.text, "# HELP t_jobs_total Jobs done.\n"
                                 "# TYPE t_jobs_total counter\n"
                                 "t_jobs_total 7\n"
                                 "# HELP t_left_seconds Time left.\n"
                                 "# TYPE t_left_seconds gauge\n"
                                 "t_left_seconds 0\n");
}

/* A label of all samples stands before their own, also where they have none. */
TEST(test_label_of_all) {
    sink to = {0};
    dv_metrics_writer writer;
    dv_histogram histogram = {.scale = DV_SCALE_DURATION};
    dv_metrics_begin(&writer, DV_METRICS_PROMETHEUS, keep, &to);
    dv_metrics_label_all(&writer, &(dv_metric_label){"process", "a\"b"});
    dv_metrics_family(&writer, &jobs);
    dv_metrics_put(&writer, NULL, 0, 1);
    dv_metrics_put(&writer, &(dv_metric_label){"pool", "/a"}, 1, 2);
    dv_metrics_family(&writer, &wait);
    dv_metrics_put_histogram(&writer, NULL, 0, &histogram);
    assert_int_equal(dv_metrics_end(&writer), 0);
    assert_non_null(strstr(to.text, "\nt_jobs_total{process=\"a\\\"b\"} 1\n"
                                    "t_jobs_total{process=\"a\\\"b\",pool=\"/a\"} 2\n"));
    assert_non_null(strstr(to.text, "\nt_wait_seconds_bucket{process=\"a\\\"b\",le=\"0.005\"} 0\n"));
    assert_non_null(strstr(to.text, "\nt_wait_seconds_count{process=\"a\\\"b\"} 0\n"));
}

/* A label's value cannot end its quotes or its line, and what is not UTF-8 is shown as hex digits. */
TEST(test_hostile_labels) {
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"", ""},
        {"/pool", "/pool"},
        {"\"} 1\n# EOF\n", "\\\"} 1\\n# EOF\\n"},
        {"a\\nb\\", "a\\\\nb\\\\"},
        {"\r\t\x7f", "\r\t\x7f"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xff\xc3", "%FF%C3"},
        {"\xed\xa0\x80", "%ED%A0%80"},
        {"\xf0\x9f\x98\x80\xf0\x9f", "\xf0\x9f\x98\x80%F0%9F"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sink to = {0};
        dv_metrics_writer writer;
        dv_metrics_begin(&writer, DV_METRICS_PROMETHEUS, keep, &to);
        dv_metrics_family(&writer, &jobs);
        dv_metrics_put(&writer, &(dv_metric_label){"pool", cases[i].value}, 1, 1);
        assert_int_equal(dv_metrics_end(&writer), 0);
        char expected[100];
        snprintf(expected, sizeof expected, "t_jobs_total{pool=\"%s\"} 1\n", cases[i].shown);
        assert_string_equal(strchr(strchr(to.text, '\n') + 1, '\n') + 1, expected);
    }
}

/* Seconds are as short as they go, and have a point whatever the locale. */
TEST(test_seconds) {
    static const struct {
        uint64_t us;
        const char *shown;
    } cases[] = {{1, "0.000001"},
                 {250, "0.00025"},
                 {999999, "0.999999"},
                 {1000000, "1"},
                 {10, "0.00001"},
                 {10000000000, "10000"},
                 {UINT64_MAX, "18446744073709.551615"}};
    setlocale(LC_ALL, ""); /* may have a comma */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sink to = {0};
        dv_metrics_writer writer;
        dv_metrics_begin(&writer, DV_METRICS_PROMETHEUS, keep, &to);
        dv_metrics_family(&writer, &left);
        dv_metrics_put_us(&writer, NULL, 0, cases[i].us);
        assert_int_equal(dv_metrics_end(&writer), 0);
        char expected[60];
        snprintf(expected, sizeof expected, "t_left_seconds %s\n", cases[i].shown);
        assert_string_equal(strstr(to.text, "gauge\n") + 6, expected);
    }
}

/* A time is counted in the first bucket whose bound it does not exceed, a negative one as 0, and one beyond all bounds
 * in the last. */
TEST(test_histogram_add) {
    dv_histogram histogram = {.scale = DV_SCALE_ROUND_TRIP};
    dv_histogram_add_us(&histogram, -5);
    dv_histogram_add_us(&histogram, 250);
    dv_histogram_add_us(&histogram, 251);
    dv_histogram_add_ms(&histogram, 10000);
    dv_histogram_add_us(&histogram, 10000001);
    dv_histogram_add_ms(&histogram, INT64_MAX);
    dv_histogram_add_ms(&histogram, INT64_MIN);
    assert_int_equal(histogram.counts[0], 3);
    assert_int_equal(histogram.counts[1], 1);
    assert_int_equal(histogram.counts[DV_HISTOGRAM_BOUNDS - 1], 1);
    assert_int_equal(histogram.counts[DV_HISTOGRAM_BOUNDS], 2);
    assert_true(histogram.sum_us == UINT64_C(315360000000000) + 250 + 251 + 10000000 + 10000001);

    dv_histogram sum = {.scale = DV_SCALE_ROUND_TRIP};
    dv_histogram_merge(&sum, &histogram);
    dv_histogram_merge(&sum, &histogram);
    assert_int_equal(sum.counts[0], 6);
    assert_int_equal(sum.counts[DV_HISTOGRAM_BOUNDS], 4);
    assert_true(sum.sum_us == 2 * histogram.sum_us);
}

/* The bounds of both scales rise, or buckets would be without use. */
TEST(test_scales_rise) {
    for (size_t s = 0; s <= DV_SCALE_ROUND_TRIP; s++) {
        for (size_t i = 1; i < DV_HISTOGRAM_BOUNDS; i++)
            assert_true(dv_histogram_bounds_us[s][i] > dv_histogram_bounds_us[s][i - 1]);
    }
}

/* Buckets are shown one upon the other, with bounds as OpenMetrics writes them, then the count and the sum. */
TEST(test_histogram_text) {
    sink to = {0};
    dv_metrics_writer writer;
    dv_histogram histogram = {.scale = DV_SCALE_DURATION};
    dv_histogram_add_ms(&histogram, 1);
    dv_histogram_add_ms(&histogram, 700);
    dv_histogram_add_ms(&histogram, 90000000);
    dv_metrics_begin(&writer, DV_METRICS_OPENMETRICS, keep, &to);
    dv_metrics_family(&writer, &wait);
    dv_metrics_put_histogram(&writer, &(dv_metric_label){"pool", "/a"}, 1, &histogram);
    dv_metrics_put_histogram(&writer, NULL, 0, &histogram);
    assert_int_equal(dv_metrics_end(&writer), 0);
    static const char *const lines[] = {
        "# UNIT t_wait_seconds seconds\nt_wait_seconds_bucket{pool=\"/a\",le=\"0.005\"} 1\n",
        "t_wait_seconds_bucket{pool=\"/a\",le=\"0.5\"} 1\nt_wait_seconds_bucket{pool=\"/a\",le=\"1.0\"} 2\n",
        "t_wait_seconds_bucket{pool=\"/a\",le=\"86400.0\"} 2\nt_wait_seconds_bucket{pool=\"/a\",le=\"+Inf\"} 3\n"
        "t_wait_seconds_count{pool=\"/a\"} 3\nt_wait_seconds_sum{pool=\"/a\"} 90000.701\n"
        "t_wait_seconds_bucket{le=\"0.005\"} 1\n",
        "t_wait_seconds_count 3\nt_wait_seconds_sum 90000.701\n# EOF\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        if (!strstr(to.text, lines[i])) fail_msg("missing: %s\nin: %s", lines[i], to.text);
    }
}

/* A text that is longer than the buffer comes in parts, whole and in order. */
TEST(test_parts) {
    sink to = {0};
    dv_metrics_writer writer;
    char value[5000], expected[6000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    dv_metrics_begin(&writer, DV_METRICS_OPENMETRICS, keep, &to);
    dv_metrics_family(&writer, &jobs);
    dv_metrics_put(&writer, &(dv_metric_label){"pool", value}, 1, 1);
    assert_int_equal(dv_metrics_end(&writer), 0);
    snprintf(expected, sizeof expected,
             "# HELP t_jobs Jobs done.\n# TYPE t_jobs counter\nt_jobs_total{pool=\"%s\"} 1\n# EOF\n", value);
    assert_string_equal(to.text, expected);
    assert_int_equal(to.calls, 2);
}

/* The receiver's error ends the text: it is called no more, and the error is returned. */
TEST(test_error) {
    for (size_t fails_at = 1; fails_at <= 3; fails_at++) {
        sink to = {.fails_at = fails_at};
        dv_metrics_writer writer;
        dv_metrics_begin(&writer, DV_METRICS_OPENMETRICS, keep, &to);
        dv_metrics_family(&writer, &jobs);
        for (uint64_t i = 0; i < 1000; i++) dv_metrics_put(&writer, NULL, 0, i);
        assert_int_equal(dv_metrics_end(&writer), -77);
        assert_int_equal(to.calls, fails_at);
        assert_int_equal(to.bytes, 4096 * (fails_at - 1));
    }
}
