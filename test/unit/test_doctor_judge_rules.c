/* What `divvy doctor` makes of loads, tags, caps, and operators' wishes. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

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
 * purpose. */
TEST(test_wishes_are_well) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_PIN, "x", "a", "", 0);
    wish(&p, DV_WISH_PAUSE, "y", "g2-b", "new disk", 3600 * SECOND_MS);
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_int_equal(dv_findings_of(&f, DV_DOCTOR_OK), f.count);
    assert_true(says(&f, DV_DOCTOR_OK, "wishes", "in force: 1 pinned, 0 moved, 1 paused"));
    assert_true(says(&f, DV_DOCTOR_OK, "items", "1 of 2 have the owner that they should, and nobody is to have"));
    clear(&p, &f);
}

/* A quarantine is told at once: which item, who paused it, why, and what ends it. */
TEST(test_quarantine) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_PAUSE, "y", "g2-b", "failed 5 times in 10 min, last: exit 1", 2 * SECOND_MS);
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "paused",
                     "1 item is in quarantine, and nobody works on it; the first is y, for 2s now"));
    assert_string_equal(found(&f, "paused")->why,
                        "it failed 5 times in 10 min, last: exit 1; its member anna has paused it");
    assert_non_null(strstr(found(&f, "paused")->todo, "divvy resume --path /q y"));
    clear(&p, &f);
}

/* Only a member's reason, as it writes it, makes a pause a quarantine. An operator may speak of a failure, too. */
TEST(test_pause_that_is_no_quarantine) {
    static const struct {
        const char *why;
        bool is_quarantine;
    } rows[] = {{"failed 1 time in 2 h, last: ", true},
                {"failed 12 times in 500 ms, last: killed by signal 9", true},
                {"failed 3 times in 0.5 s, last: ValueError()", true},
                {"failed disk, back on Monday", false},
                {"failed 3 times in a row", false},
                {"failed 3 times in 10 min", false},
                {"it failed 3 times in 10 min, last: exit 1", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        pool p;
        set_pool(&p, 60 * SECOND_MS);
        wish(&p, DV_WISH_PAUSE, "y", "g2-b", rows[i].why, 2 * SECOND_MS);
        disown(&p, 1);
        dv_findings f = judge(&p);
        assert_int_equal(has(&f, "paused"), rows[i].is_quarantine);
        clear(&p, &f);
    }
}

/* A paused item that its owner still works on is told by the age of the pause: plans that are written since do not hide
 * it. */
TEST(test_paused_item_that_is_not_released) {
    pool p;
    set_pool(&p, 2 * SECOND_MS);
    wish(&p, DV_WISH_PAUSE, "y", "g2-b", "", 300 * SECOND_MS);
    p.plan.memory.plan->owners[1] = DV_PLAN_NO_SLOT;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "release", "asked to release 1 item, for 5m00s now, and has not"));
    dv_findings_clear(&f);
    p.plan.memory.plan->owners[1] = 0;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "release", "asked to release 1 item, for 2s now, and has not"));
    clear(&p, &f);
}

/* While wishes wait, a paused item is worked on again: that is said. */
TEST(test_paused_item_that_runs) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_PAUSE, "y", "g2-b", "", 0);
    p.plan.memory.plan->header.is_balanced = false;
    p.members[1].can_balance = false;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "wishes", "wait, and 1 paused item is worked on: the member b is of"));
    dv_findings_clear(&f);
    disown(&p, 1);
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "wishes", "wishes wait: the member b is of"));
    clear(&p, &f);
}

/* A pin beats tags and caps, and that is said, with what undoes it. */
TEST(test_pin_that_overrides) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_NEED, "x", "ssd", "", 0);
    wish(&p, DV_WISH_PIN, "x", "a", "", 0);
    dv_findings f = judge(&p);
    assert_true(
        says(&f, DV_DOCTOR_NOTE, "pin", "x is pinned to a, and that overrides the tag ssd, which a does not have"));
    assert_non_null(strstr(found(&f, "pin")->todo, "divvy unpin --path /q x"));
    clear(&p, &f);
}

/* Makes the first member a static one that is away, for which its item is kept. */
static void send_away(pool *p) {
    dv_plan_member *m = &p->plan.memory.plan->members[0];
    m->is_static = true;
    m->rejoin_delay_ms = 600 * SECOND_MS;
    m->absent = 26;
    free(m->key);
    m->key = strdup("a");
    p->items[0].head = p->items[0].owner = NULL;
    p->items[0].member = DV_NO_MEMBER;
}

/* A static member that is away keeps the item that is pinned to it; `forget` frees it. */
TEST(test_pin_that_is_kept) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_PIN, "x", "a", "", 0);
    send_away(&p);
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "pin")->why,
                        "the plan keeps the first for that member, and nobody has it; anna asked for the first");
    assert_non_null(strstr(found(&f, "pin")->todo, "divvy forget --path /q a"));
    assert_non_null(strstr(found(&f, "absent")->todo, "divvy forget --path /q a"));
    clear(&p, &f);
}

/* What is lacking while a member restarts is noted at first. It is a warning only once the plan has lasted. */
TEST(test_restart) {
    static const char *const checks[] = {"absent", "cap", "pin", "tag"};
    pool p;
    set_pool(&p, 2 * SECOND_MS);
    wish(&p, DV_WISH_PIN, "x", "a", "", 0);
    wish(&p, DV_WISH_NEED, "y", "ssd", "", 0);
    p.plan.memory.plan->members[1].cap = 1;
    send_away(&p);
    dv_findings f = judge(&p);
    for (size_t i = 0; i < 4; i++) assert_int_equal(found(&f, checks[i])->level, DV_DOCTOR_NOTE);
    dv_findings_clear(&f);
    p.scene.doctor.planned_ms = NOW_MS - 10 * SECOND_MS;
    f = judge(&p);
    for (size_t i = 0; i < 4; i++) assert_int_equal(found(&f, checks[i])->level, DV_DOCTOR_WARNING);
    dv_findings_clear(&f);
    p.plan.memory.plan->members[0].absent = 0; /* The plan does not know it yet. */
    f = judge(&p);
    assert_int_equal(found(&f, "absent")->level, DV_DOCTOR_NOTE);
    clear(&p, &f);
}

/* An item that the plan gives to nobody, because its owner leaves and no other takes items: likewise. */
TEST(test_restart_of_the_only_one) {
    pool p;
    set_pool(&p, 2 * SECOND_MS);
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "unowned", "the plan gives 1 item to nobody; the first is y"));
    dv_findings_clear(&f);
    p.scene.doctor.planned_ms = NOW_MS - 10 * SECOND_MS;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "unowned", "the plan gives 1 item to nobody; the first is y"));
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

/* Of two tags that no member has both are told: the second as why the plan gives an item to nobody. */
TEST(test_two_missing_tags) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish(&p, DV_WISH_NEED, "x", "ssd", "", 0);
    wish(&p, DV_WISH_NEED, "y", "gpu", "", 0);
    disown(&p, 0);
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "tag", "1 item needs the tag ssd, which no member has; the first is x"));
    assert_true(says(&f, DV_DOCTOR_WARNING, "unowned", "the plan gives 1 item to nobody; the first is y"));
    assert_string_equal(found(&f, "unowned")->why, "no member has the tag gpu");
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
