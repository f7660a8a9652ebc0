/* Pools whose operator asks for something, and whose members report loads. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_PLAN_WISHES_FIXTURE_H
#define DV_TEST_PLAN_WISHES_FIXTURE_H

#include "plan/table.h"
#include "plan_step_fixture.h"

static inline dv_wish wish_of(dv_wish_kind kind, const char *name, const char *value) {
    return (dv_wish){.kind = kind, .name = name, .value = value, .by = "anna", .why = "disk", .at_ms = 7};
}

/* One step by one wish. */
static inline int ask_for(dv_wish_kind kind, const char *name, const char *value, bool undo) {
    const dv_wish_event event = {.wish = wish_of(kind, name, value), .undo = undo};
    return step(&w, &(dv_plan_events){.wishes = &event, .wish_count = 1, .told = "anna asked"});
}

/* One step by loads, which are given by item in the unit "jobs". */
static inline int report(const double *loads) {
    dv_loads *event = dv_loads_make("jobs", w.plan->set->count);
    assert_non_null(event);
    for (size_t i = 0; i < event->count; i++) event->classes[i] = dv_class_of(loads[i]);
    int result = step(&w, &(dv_plan_events){.loads = event});
    dv_loads_unref(event);
    return result;
}

/* The key of an item's owner, or "". */
static inline const char *owner_of(size_t item) {
    uint32_t slot = w.plan->owners[item];
    return slot == NONE ? "" : dv_plan_member_at(w.plan, slot)->key;
}

static inline double worst_share(void) {
    double *shares = dv_plan_shares(w.plan), worst = 0;
    assert_non_null(shares);
    for (size_t m = 0; m < w.plan->member_count; m++) worst = shares[m] > worst ? shares[m] : worst;
    free(shares);
    return worst;
}

/* The round of the plan that stands is over. */
static inline int end_round(void) {
    char guid[DV_GUID_BYTES];
    strcpy(guid, w.plan->header.guid);
    return step(&w, &(dv_plan_events){.round_over = guid});
}

#endif
