/* What `divvy doctor` makes of loads, tags, caps, and operators' wishes. SPDX-License-Identifier: Apache-2.0 */
#include "doctor_fixture.h"

static void wish(pool *p, dv_wish_kind kind, const char *name, const char *value, const char *why, int64_t age_ms) {
    dv_plan *plan = p->plan.memory.plan;
    const dv_wish_event event = {.wish = {kind, name, value, "anna", why, NOW_MS - age_ms}};
    dv_wishes *wishes;
    assert_int_equal(dv_wishes_change(&wishes, plan->wishes, &event), 0);
    dv_wishes_unref(plan->wishes);
    plan->wishes = wishes;
    plan->header.is_balanced = true;
    for (size_t i = 0; i < 2; i++) p->members[i].can_balance = true;
}

/* Takes an item from its owner, in the plan too. */
static void disown(pool *p, size_t i) {
    p->items[i].head = p->items[i].owner = NULL;
    p->items[i].member = DV_NO_MEMBER;
    p->plan.memory.plan->owners[i] = DV_PLAN_NO_SLOT;
}

/* What an operator asked for, and nothing stands against, is in order. A pause leaves an item without an owner on
 * purpose; one by quarantine is told after an hour. */
TEST(test_wishes_are_well) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_PIN, "x", "a", "", 0);
    wish(&p, DV_WISH_PAUSE, "y", "g2-b", "failed 5 times in 10 min", 3599 * SECOND_MS);
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_OK), f.count);
    assert_true(says(&f, DV_DOCTOR_OK, "wishes", "in force: 1 pinned, 0 moved, 1 paused"));
    assert_true(says(&f, DV_DOCTOR_OK, "items", "1 of 2 have the owner that they should, and nobody is to have"));
    dv_findings_clear(&f);
    p.scene.doctor.status.read_at_ms += SECOND_MS;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "paused",
                     "1 item is in quarantine, and nobody works on it; the first is y, for 1h00m now"));
    clear(&p, &f);
}

/* Wishes that cannot be fulfilled are told, and an item that has no owner for that is not told twice. */
TEST(test_wishes_that_wait) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_PIN, "x", "m9", "", 0);
    wish(&p, DV_WISH_NEED, "y", "ssd", "", 0);
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "pin", "1 item is pinned to a member that is not there; the first is x"));
    assert_true(says(&f, DV_DOCTOR_WARNING, "tag", "1 item needs the tag ssd, which no member has; the first is y"));
    assert_false(has(&f, "unowned"));
    dv_findings_clear(&f);
    p.plan.memory.plan->header.is_balanced = false;
    p.members[1].can_balance = false;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "wishes", "wait: the member b is of an earlier release"));
    assert_false(has(&f, "tag"));
    clear(&p, &f);
}

/* Caps that do not allow all items, and items of more than a fair share. */
TEST(test_caps_and_heavy_items) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    dv_plan *plan = p.plan.memory.plan;
    plan->loads = dv_loads_make("cores", 2);
    assert_non_null(plan->loads);
    plan->loads->classes[0] = DV_CLASS_ONE;
    plan->loads->classes[1] = DV_CLASS_ONE + 16;
    plan->header.is_balanced = p.members[0].can_balance = p.members[1].can_balance = true;
    plan->members[0].cap = 1;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "load", "1 item is more than a fair share of the load; the most is y"));
    assert_false(has(&f, "cap"));
    dv_findings_clear(&f);
    plan->members[1].weight = 0;
    disown(&p, 1);
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "cap", "the caps of all members allow 1 items, and there are 2"));
    assert_false(has(&f, "unowned"));
    clear(&p, &f);
}
