/* What divvy serve remembers of a pool is bounded. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "divvy/serve_history.h"
#include "lib/test.h"

static dv_serve_history history;

static int set_up(void **state) {
    (void)state;
    return dv_serve_history_init(&history);
}

static int tear_down(void **state) {
    (void)state;
    dv_serve_history_free(&history);
    return 0;
}

/* The oldest events go when there are too many, and the numbers of the others go on. */
TEST_IN(test_events_max, set_up, tear_down) {
    for (int i = 0; i < DV_SERVE_EVENTS_MAX + 5; i++)
        dv_serve_history_add(&history, i, DV_SERVE_ITEM, "item", i % 2 ? "a" : NULL, i % 2 ? NULL : "b");
    assert_int_equal(history.count, DV_SERVE_EVENTS_MAX);
    assert_int_equal(history.last_number, DV_SERVE_EVENTS_MAX + 5);
    const dv_serve_event *first = dv_serve_history_event(&history, 0);
    assert_int_equal(first->number, 6);
    assert_int_equal(first->ms, 5);
    assert_string_equal(first->from, "a");
    assert_null(first->to);
    assert_int_equal(dv_serve_history_event(&history, history.count - 1)->number, DV_SERVE_EVENTS_MAX + 5);
}

/* So they do when their texts are too long together; a single text that is longer than all may be is still kept. */
TEST_IN(test_bytes_max, set_up, tear_down) {
    static char name[DV_SERVE_EVENT_BYTES_MAX / 4];
    memset(name, 'x', sizeof name - 1);
    for (int i = 0; i < 9; i++) dv_serve_history_add(&history, i, DV_SERVE_JOINED, name, NULL, NULL);
    assert_int_equal(history.count, 4);
    assert_int_equal(history.bytes, DV_SERVE_EVENT_BYTES_MAX);
    assert_int_equal(dv_serve_history_event(&history, 0)->ms, 5);
    dv_serve_history_add(&history, 9, DV_SERVE_LEFT, "short", NULL, NULL);
    assert_int_equal(history.count, 4);
    assert_string_equal(dv_serve_history_event(&history, 3)->what, "short");
}

/* A sample is kept where it differs from the last one, and the oldest go. */
TEST_IN(test_samples, set_up, tear_down) {
    for (int i = 0; i < 2 * DV_SERVE_SAMPLES_MAX + 6; i++)
        dv_serve_history_sample(&history, &(dv_serve_sample){.ms = i, .unowned = (size_t)(i / 2)});
    assert_int_equal(history.sample_count, DV_SERVE_SAMPLES_MAX);
    assert_int_equal(dv_serve_history_sample_at(&history, 0)->unowned, 3);
    assert_int_equal(dv_serve_history_sample_at(&history, 0)->ms, 6);
    assert_int_equal(dv_serve_history_sample_at(&history, DV_SERVE_SAMPLES_MAX - 1)->unowned, DV_SERVE_SAMPLES_MAX + 2);
}
