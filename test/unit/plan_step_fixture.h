/* Worlds of a few members for tests of the plan's step. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_STEP_FIXTURE_H
#define DV_TEST_PLAN_STEP_FIXTURE_H

#include "plan_world.h"

static world w;

/* A pool of so many dynamic members that has its plan. */
static inline void pool(size_t members, size_t items) {
    world_begin(&w, items);
    for (size_t m = 0; m < members; m++) join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_CREATE);
    assert_even(w.plan);
}

/* One of static members called s0 and on. */
static inline void static_pool(size_t members, size_t items) {
    char name[] = "s0";
    world_begin(&w, items);
    for (size_t m = 0; m < members; m++, name[1]++) join(&w, name, 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
}

#endif
