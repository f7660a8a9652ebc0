/* How often work on an item has failed lately. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "lib/test.h"
#include "workers/failures.h"

enum { WINDOW_MS = 600000 };

static dv_failures failures;

static int set_up(void **state) {
    (void)state;
    failures = (dv_failures){.limit = 3, .window_ms = WINDOW_MS};
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_failures_free(&failures);
    assert_null(failures.all);
    return 0;
}

static bool note(const char *item, int64_t now_ms) {
    bool too_many = true;
    assert_int_equal(dv_failures_note(&failures, item, now_ms, &too_many), 0);
    return too_many;
}

/* The third failure within the window is too many, and so is each that follows. */
TEST(test_limit) {
    assert_false(note("a", 0));
    assert_false(note("a", 1));
    assert_true(note("a", WINDOW_MS));
    assert_true(note("a", WINDOW_MS + 1));
}

/* A failure that is older than the window does not count: not by a millisecond. */
TEST(test_window) {
    assert_false(note("a", 0));
    assert_false(note("a", 10));
    assert_false(note("a", WINDOW_MS + 1));
    assert_true(note("a", WINDOW_MS + 10));
}

/* Failures that come one by one, each just after the window of the first, are never too many. */
TEST(test_slow_ones) {
    for (int i = 0; i < 100; i++) assert_false(note("a", (int64_t)i * (WINDOW_MS / 2 + 1)));
}

/* Each item has a count of its own. One that is forgotten begins again. */
TEST(test_items) {
    assert_false(note("a", 0));
    assert_false(note("b", 0));
    assert_false(note("a", 1));
    assert_false(note("b", 1));
    assert_true(note("a", 2));
    dv_failures_forget(&failures, "a");
    dv_failures_forget(&failures, "nobody");
    assert_false(note("a", 3));
    assert_true(note("b", 3));
}

/* A limit of one: the first is too many. */
TEST(test_one) {
    failures.limit = 1;
    assert_true(note("a", 5));
    assert_true(note("a", 5 + 10 * WINDOW_MS));
}

/* The reason tells the window in the largest unit that has it whole. */
TEST(test_print) {
    static const struct {
        size_t limit;
        int64_t window_ms;
        const char *text;
    } rows[] = {{5, 600000, "failed 5 times in 10 min, last: exit code 1"},
                {1, 5400000, "failed 1 time in 90 min, last: exit code 1"},
                {3, 7200000, "failed 3 times in 2 h, last: exit code 1"},
                {2, 1500, "failed 2 times in 1500 ms, last: exit code 1"},
                {2, 90000, "failed 2 times in 90 s, last: exit code 1"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[100];
        const dv_failures f = {.limit = rows[i].limit, .window_ms = rows[i].window_ms};
        dv_failures_print(&f, "exit code 1", text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

/* A long identifier is cut between two characters, and a short one is left as it is. */
TEST(test_by) {
    char by[DV_FAILURES_BY_BYTES], name[300];
    dv_failures_by(by, "anna");
    assert_string_equal(by, "anna");
    memset(name, 'x', 299);
    name[299] = '\0';
    dv_failures_by(by, name);
    assert_int_equal(strlen(by), 128);
    memcpy(&name[127], "\xc3\xa4", 2);
    dv_failures_by(by, name);
    assert_int_equal(strlen(by), 127);
    memcpy(&name[126], "\xc3\xa4x", 3);
    dv_failures_by(by, name);
    assert_int_equal(strlen(by), 128);
}

/* Items that have not failed for a while take no room. */
TEST(test_room) {
    for (int i = 0; i < 1000; i++) {
        char item[16];
        snprintf(item, sizeof item, "i%d", i);
        assert_false(note(item, (int64_t)i * WINDOW_MS));
    }
    assert_in_range(failures.count, 1, 2);
}

TEST_EACH(set_up, tear_down);
