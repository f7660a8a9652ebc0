/* What divvy serve remembers of a pool is bounded. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
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

/* What is kept no more is known by its time: nothing is known of before. */
TEST_IN(test_lost, set_up, tear_down) {
    for (int i = 0; i < DV_SERVE_EVENTS_MAX; i++)
        dv_serve_history_add(&history, 100 + i, DV_SERVE_JOINED, "m", NULL, NULL);
    assert_int_equal(history.lost_ms, 0);
    dv_serve_history_add(&history, 50000, DV_SERVE_LEFT, "m", NULL, NULL);
    assert_int_equal(history.lost_ms, 100);
}

/* Items that went are bounded as events are, and count likewise. */
TEST_IN(test_gone, set_up, tear_down) {
    for (int i = 0; i < DV_SERVE_EVENTS_MAX + 3; i++) dv_serve_history_gone(&history, strdup("item"), i, 10 + i);
    assert_int_equal(history.gone_count, DV_SERVE_EVENTS_MAX);
    assert_int_equal(dv_serve_history_gone_at(&history, 0)->came_ms, 3);
    assert_int_equal(history.lost_ms, 12);
    char *name = malloc(DV_SERVE_EVENT_BYTES_MAX);
    assert_non_null(name);
    memset(name, 'x', DV_SERVE_EVENT_BYTES_MAX - 1);
    name[DV_SERVE_EVENT_BYTES_MAX - 1] = '\0';
    dv_serve_history_gone(&history, name, 1, 50000);
    assert_int_equal(history.gone_count, 1);
    assert_int_equal(history.lost_ms, 12 + DV_SERVE_EVENTS_MAX);
}

/* Where the clock goes back, what was before is no later than what is. */
TEST_IN(test_clock, set_up, tear_down) {
    for (int i = 1; i <= 3; i++) dv_serve_history_add(&history, i * 10, DV_SERVE_JOINED, "m", NULL, NULL);
    dv_serve_history_gone(&history, strdup("item"), 5, 30);
    dv_serve_history_add(&history, 15, DV_SERVE_LEFT, "m", NULL, NULL);
    for (size_t i = 0; i < 4; i++) assert_int_equal(dv_serve_history_event(&history, i)->ms, i == 0 ? 10 : 15);
    assert_int_equal(dv_serve_history_gone_at(&history, 0)->gone_ms, 15);
}
