/* Tests of lib/client/timers.h: the order in which timers come, and what that costs. SPDX-License-Identifier:
 * Apache-2.0
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/timers.h"
#include "lib/draw.h"
#include "lib/test.h"
#include "seed.h"

/* ---- a model: a list in the order in which timers are to come ---- */

enum { TIMERS = 300, STEPS = 200000 };

static dv_timer timers[TIMERS];
static dv_timer *list[TIMERS];
static size_t list_count;

static void model_cancel(dv_timer *timer) {
    size_t i = 0;
    while (i < list_count && list[i] != timer) i++;
    if (i == list_count) return;
    memmove(&list[i], &list[i + 1], (--list_count - i) * sizeof *list);
}

/* Behind all that are set for the same time. */
static void model_add(dv_timer *timer, int64_t at) {
    size_t i = 0;
    while (i < list_count && list[i]->at <= at) i++;
    memmove(&list[i + 1], &list[i], (list_count++ - i) * sizeof *list);
    list[i] = timer;
}

static void set(dv_timers *heap, dv_timer *timer, int64_t at) {
    model_cancel(timer);
    dv_timers_set(heap, timer, at);
    model_add(timer, at);
}

static void assert_first(const dv_timers *heap) {
    assert_ptr_equal(heap->first, list_count ? list[0] : NULL);
    assert_int_equal(dv_timers_next_at(heap), list_count ? list[0]->at : INT64_MAX);
}

/* The first timer is that of a sorted list, and a timer is set exactly while it is in there, whatever is set, set
 * again, cancelled and fired. There are few times, and thus many equal ones. */
TEST(test_as_a_sorted_list) {
    random_state = dv_test_seed("unit_timers");
    dv_timers heap = {.first = NULL};
    uint64_t fired = 0, cancelled = 0;
    for (int step = 0; step < STEPS; step++) {
        dv_timer *timer = &timers[draw(TIMERS)];
        uint64_t what = draw(step / 1000 % 2 ? 10 : 4); /* grows for a while, then shrinks */
        if (what < 2) {
            set(&heap, timer, (int64_t)draw(step / 10000 % 2 ? 20 : 5000));
        } else if (what < 5) {
            cancelled += timer->link != NULL;
            dv_timer_cancel(timer);
            model_cancel(timer);
            assert_null(timer->link);
        } else if (list_count) {
            timer = heap.first;
            assert_ptr_equal(timer, list[0]);
            dv_timer_cancel(timer);
            model_cancel(timer);
            fired++;
        }
        assert_first(&heap);
    }
    assert_true(fired > 1000 && cancelled > 1000);
    for (; list_count; model_cancel(list[0])) {
        assert_first(&heap);
        dv_timer_cancel(heap.first);
    }
    assert_first(&heap);
    for (size_t i = 0; i < TIMERS; i++) assert_null(timers[i].link);
}

/* ---- costs ---- */

typedef enum { RISING, FALLING, EQUAL, RANDOM, WAYS } way;

static int64_t time_of(way kind, size_t i, size_t count) {
    switch (kind) {
    case RISING: return (int64_t)i;
    case FALLING: return (int64_t)(count - i);
    case EQUAL: return 7;
    default: return (int64_t)draw(1000000);
    }
}

/* Sets so many, sets each again, as who beats or audits does; takes back one in two in another order; fires the
 * rest. */
static uint64_t comparisons(way kind, size_t count) {
    dv_timers heap = {.first = NULL};
    dv_timer *many = calloc(count, sizeof *many);
    assert_non_null(many);
    for (size_t i = 0; i < count; i++) dv_timers_set(&heap, &many[i], time_of(kind, i, count));
    for (size_t i = 0; i < count; i++) {
        dv_timer *timer = &many[i * 7919 % count];
        dv_timers_set(&heap, timer, time_of(kind, i, count) + 10);
    }
    for (size_t i = 0; i < count; i += 2) dv_timer_cancel(&many[(i * 7907 + 1) % count]);
    int64_t last = INT64_MIN;
    while (heap.first) {
        assert_true(heap.first->at >= last);
        last = heap.first->at;
        dv_timer_cancel(heap.first);
    }
    free(many);
    return heap.comparisons;
}

/* Eight times as many timers take not much more than eight times the comparisons, where a list takes 64 times, and for
 * 96,000 there are fewer than n log2 n. */
TEST(test_costs) {
    random_state = 1;
    for (way kind = 0; kind < WAYS; kind++) {
        uint64_t few = comparisons(kind, 12000), many = comparisons(kind, 96000);
        print_message("way %d: %llu comparisons for 12,000 timers, %llu for 96,000\n", (int)kind,
                      (unsigned long long)few, (unsigned long long)many);
        assert_true(many < 12 * few);
        assert_true(many < UINT64_C(96000) * 17);
    }
}
