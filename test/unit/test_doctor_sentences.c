/* What `divvy doctor` says, word for word where one thing, several, or a thing without a name are told in other words.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "doctor_fixture.h"

static void wish_by(pool *p, dv_wish_kind kind, const char *name, const char *value, const char *by, const char *why,
                    int64_t age_ms) {
    dv_plan *plan = p->plan.memory.plan;
    const dv_wish_event event = {.wish = {kind, name, value, by, why, NOW_MS - age_ms}};
    dv_wishes *wishes;
    assert_int_equal(dv_wishes_change(&wishes, plan->wishes, &event), 0);
    dv_wishes_unref(plan->wishes);
    plan->wishes = wishes;
    plan->header.is_balanced = p->members[0].can_balance = p->members[1].can_balance = true;
}

static void disown(pool *p, size_t i) {
    p->items[i].head = p->items[i].owner = NULL;
    p->items[i].member = DV_NO_MEMBER;
}

static void give_to_nobody(pool *p, size_t i) {
    disown(p, i);
    p->plan.memory.plan->owners[i] = DV_PLAN_NO_SLOT;
}

/* ---- rules ---- */

/* Wishes of nobody we know the name of, and more than one item each. */
TEST(test_wishes_of_several_items) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish_by(&p, DV_WISH_PIN, "x", "m9", "", "", 0);
    wish_by(&p, DV_WISH_PIN, "y", "m9", "", "", 0);
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "pin")->what, "2 items are pinned to a member that is not there; the first is x");
    assert_string_equal(found(&f, "pin")->why,
                        "until that member is there, others have the first; somebody asked for the first");
    assert_non_null(strstr(found(&f, "pin")->todo, "divvy unpin --path /q x"));
    clear(&p, &f);

    set_pool(&p, 60 * SECOND_MS);
    wish_by(&p, DV_WISH_NEED, "x", "ssd", "", "", 0);
    wish_by(&p, DV_WISH_NEED, "y", "ssd", "", "", 0);
    give_to_nobody(&p, 0);
    give_to_nobody(&p, 1);
    f = judge(&p);
    assert_string_equal(found(&f, "tag")->what, "2 items need the tag ssd, which no member has; the first is x");
    assert_false(has(&f, "unowned"));
    clear(&p, &f);
}

/* Of quarantines the oldest is told. */
TEST(test_quarantines) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish_by(&p, DV_WISH_PAUSE, "x", "", "", "failed 5 times in 10 min, last: exit 1", 2 * SECOND_MS);
    wish_by(&p, DV_WISH_PAUSE, "y", "", "", "failed 9 times in 10 min, last: exit 1", 9 * SECOND_MS);
    give_to_nobody(&p, 0);
    give_to_nobody(&p, 1);
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "paused")->what,
                        "2 items are in quarantine, and nobody works on them; the first is y, for 9s now");
    assert_string_equal(found(&f, "paused")->why,
                        "it failed 9 times in 10 min, last: exit 1; its member then has paused it");
    clear(&p, &f);
}

/* A move is told as a move, and who has no name is somebody. */
TEST(test_move_that_overrides) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish_by(&p, DV_WISH_NEED, "x", "ssd", "anna", "", 0);
    wish_by(&p, DV_WISH_MOVE, "x", p.members[0].node, "", "", 0);
    dv_findings f = judge(&p);
    assert_true(
        says(&f, DV_DOCTOR_NOTE, "pin", "x is moved to a, and that overrides the tag ssd, which a does not have"));
    assert_string_equal(found(&f, "pin")->why, "a pin, and a move, beat tags and caps; somebody asked for it");
    clear(&p, &f);
}

/* A pin that fills its member beyond its cap is told with both numbers. */
TEST(test_pin_beyond_a_cap) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.plan.memory.plan->owners[1] = 0;
    p.plan.memory.plan->members[0].cap = 1;
    wish_by(&p, DV_WISH_PIN, "x", "a", "anna", "", 0);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "pin", "that overrides the cap of a, which has 2 items and takes 1"));
    clear(&p, &f);
}

/* What keeps wishes from being followed: a member of kazoo's, one with a rule of its own, or only the next plan. */
TEST(test_what_wishes_wait_for) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish_by(&p, DV_WISH_PAUSE, "x", "", "anna", "", 0);
    wish_by(&p, DV_WISH_PAUSE, "y", "", "anna", "", 0);
    p.plan.memory.plan->header.is_balanced = false;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "wishes", "wishes wait: they are in force with the next plan"));
    dv_findings_clear(&f);
    p.members[1].kazoo = true;
    p.members[1].follows = p.members[1].can_balance = false;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "wishes",
                     "wishes wait, and 2 paused items are worked on: the member b is kazoo's"));
    assert_string_equal(found(&f, "wishes")->why, "it would undo what they move; the items are dealt by names");
    assert_string_equal(found(&f, "wishes")->todo, "replace members of kazoo's by members of divvy");
    dv_findings_clear(&f);
    p.members[1].kazoo = false;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "wishes", "b is of an earlier release, or has a rule of its own"));
    clear(&p, &f);
}

/* Where nobody is in the pool, or it could not be read, nothing is said of its rules. */
TEST(test_rules_of_nobody) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    wish_by(&p, DV_WISH_PIN, "x", "m9", "anna", "", 0);
    p.scene.doctor.pool_error = DIVVY_EACCES;
    dv_findings f = judge(&p);
    assert_int_equal(f.count, 0);
    p.scene.doctor.pool_error = 0;
    p.scene.doctor.status.found = false;
    f = judge(&p);
    assert_false(has(&f, "pin"));
    dv_findings_clear(&f);
    p.scene.doctor.status.found = true;
    p.scene.doctor.status.member_count = 0;
    f = judge(&p);
    assert_false(has(&f, "pin"));
    assert_true(says(&f, DV_DOCTOR_ERROR, "members", "nobody is in the pool"));
    clear(&p, &f);
}

/* ---- members ---- */

/* A silent member of kazoo's tells no process. So its connection is named, and no process to be signalled. */
TEST(test_silent_without_process) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.scene.connections[0].silent_ms = 5000;
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "silent")->todo, "look at the process on host (pid 12): kill -CONT 12");
    dv_findings_clear(&f);
    p.members[0].host = text("");
    p.members[0].pid = 0;
    f = judge(&p);
    assert_string_equal(found(&f, "silent")->todo, "look at the process on 10.0.0.1:5");
    clear(&p, &f);
}

/* ---- items ---- */

/* An item whose tag only full members have is nobody's, and explain says more. */
TEST(test_unassigned_for_a_cap) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    dv_plan *plan = p.plan.memory.plan;
    wish_by(&p, DV_WISH_NEED, "y", "ssd", "anna", "", 0);
    free(plan->members[0].tags);
    plan->members[0].tags = strdup("ssd");
    plan->members[0].cap = 1;
    give_to_nobody(&p, 1);
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "unowned")->why, "all members with the tag ssd are at their cap");
    assert_string_equal(found(&f, "unowned")->todo, "divvy explain --path /q y");
    clear(&p, &f);
}

/* Items of one that is not in the party: with its connection, or until its session ends. */
TEST(test_strangers) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.items[0].member = DV_NO_MEMBER;
    p.items[0].session = 1;
    p.items[0].owner = text("who left");
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "stranger")->what, "1 item is held by one that is not in the party; the first is x");
    assert_string_equal(found(&f, "stranger")->why,
                        "it has left, and its session 0x1 is still connected, from 10.0.0.1:5");
    dv_findings_clear(&f);
    p.items[1].member = DV_NO_MEMBER;
    p.items[0].session = p.items[1].session = 0x77;
    f = judge(&p);
    assert_string_equal(found(&f, "stranger")->what,
                        "2 items are held by one that is not in the party; the first is x");
    assert_string_equal(found(&f, "stranger")->why, "it has died or is cut off; its place goes when session 0x77 ends");
    dv_findings_clear(&f);
    p.items[0].session = p.items[1].session = 0;
    f = judge(&p);
    assert_string_equal(found(&f, "persistent")->what,
                        "a persistent node stands first in the queues of 2 items; the first is x");
    assert_string_equal(found(&f, "persistent")->todo, "zkCli.sh delete /q/locks/x/g__lock__0000000001");
    clear(&p, &f);
}

/* A member of the plan that has gone: a note while the next plan is due, then a warning. */
TEST(test_gone) {
    pool p;
    set_pool(&p, 2 * SECOND_MS);
    p.scene.doctor.status.member_count = 1;
    disown(&p, 1);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "unowned", "it has gone, and the plan still gives it 1 item; the first is y"));
    assert_string_equal(found(&f, "unowned")->where, "b");
    dv_findings_clear(&f);
    p.scene.doctor.planned_ms = NOW_MS - 60 * SECOND_MS;
    p.plan.memory.plan->owners[0] = 1;
    disown(&p, 0);
    f = judge(&p);
    assert_true(
        says(&f, DV_DOCTOR_WARNING, "unowned", "it has gone, and the plan still gives it 2 items; the first is x"));
    clear(&p, &f);
}

/* An item that its owner was asked to release, where the plan gives it to nobody and the owner's host is not known. */
TEST(test_release_to_nobody) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.members[0].host = text("");
    p.plan.memory.plan->owners[0] = DV_PLAN_NO_SLOT;
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "release")->why,
                        "the plan gives it to nobody, and this one's program has not confirmed the RELEASE");
    assert_string_equal(found(&f, "release")->todo, "divvy explain --path /q x");
    clear(&p, &f);
}

/* Where names decide, an item without an owner is a note as long as the party is young. */
TEST(test_unowned_by_names) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.plan.memory.standing = DV_PLAN_MISSING;
    p.members[0].made_ms = NOW_MS - 3 * SECOND_MS;
    disown(&p, 0);
    disown(&p, 1);
    p.items[1].denied = true;
    p.scene.doctor.status.denied_count = 2;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "unowned", "nobody owns 1 item; the first is x"));
    assert_true(says(&f, DV_DOCTOR_WARNING, "items", "of 2 items we may not read who owns it"));
    dv_findings_clear(&f);
    p.members[0].made_ms = NOW_MS - 30 * SECOND_MS;
    p.items[1].denied = false;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "unowned", "nobody owns 2 items; the first is x"));
    p.plan.memory.standing = DV_PLAN_GOOD;
    clear(&p, &f);
}

/* ---- members ---- */

/* Where a member is: its host, or the address of its connection, or its session. */
TEST(test_places) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.members[0].host = p.members[1].host = text("");
    p.members[1].identifier = "a";
    p.members[0].is_static = true;
    p.scene.doctor.servers.connections[1].session = 99;
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "identifier")->what,
                        "two members go by this identifier: on 10.0.0.1:5, and on session 0x2");
    assert_int_equal(found(&f, "identifier")->level, DV_DOCTOR_WARNING);
    clear(&p, &f);
}

/* Nodes in the party that are no member's are counted, and one is named. */
TEST(test_strays) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.scene.doctor.status.stray_count = 1;
    p.scene.doctor.status.stray = text("backup");
    dv_findings f = judge(&p);
    assert_string_equal(found(&f, "stray")->what,
                        "1 node in the party is no member's: a name of another form, or not ephemeral");
    assert_string_equal(found(&f, "stray")->todo, "zkCli.sh delete /q/party/backup");
    dv_findings_clear(&f);
    p.scene.doctor.status.stray_count = 2;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "stray", "2 nodes in the party are no member's"));
    p.scene.doctor.status.stray = NULL;
    clear(&p, &f);
}

/* A member that follows no plan: whose it is says what to do. Another round timeout is another setting. */
TEST(test_members_without_a_plan) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.settings[0].round_timeout_ms = 5;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "settings", "a and b differ in --max-moves or in their round timeout"));
    dv_findings_clear(&f);
    p.members[1].follows = false;
    f = judge(&p);
    assert_false(has(&f, "settings"));
    assert_true(says(&f, DV_DOCTOR_NOTE, "plan", "it follows no plan (its release, its mode or its --assign)"));
    dv_findings_clear(&f);
    p.members[1].kazoo = true;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "plan", "it follows no plan (it is kazoo's)"));
    clear(&p, &f);
}

/* A member that dates its own start later than the server its node has a clock that is ahead. What is no time says
 * nothing. */
TEST(test_clocks_of_members) {
    static const struct {
        const char *since;
        bool told;
    } rows[] = {{"1970-01-12T13:45:10Z", true},
                {"1970-01-12T13:45:10.5Z", true},
                {"1970-01-12T13:45:10", false},
                {"1970-01-12T13:45:10+", false},
                {"once", false}};
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        p.members[0].since = text(rows[i].since);
        dv_findings f = judge(&p);
        assert_int_equal(says(&f, DV_DOCTOR_WARNING, "clock", "of a is 10 s ahead of that of the servers") || 0,
                         rows[i].told);
        dv_findings_clear(&f);
    }
    dv_findings none = {.list = NULL};
    clear(&p, &none);
}

/* A session whose timeout is not known cannot be called silent. */
TEST(test_silence_of_no_timeout) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.scene.connections[0].silent_ms = 9000;
    p.scene.connections[0].timeout_ms = 0;
    dv_findings f = judge(&p);
    assert_false(has(&f, "silent"));
    clear(&p, &f);
}

/* ---- nodes ---- */

static void with_acls(pool *p, dv_doctor_acl *acls, size_t count) {
    p->scene.doctor.acls = acls;
    p->scene.doctor.acl_count = count;
}

/* What is lacking has its word, what it leads to depends on the node, and the advice is the party's list. */
TEST(test_acls) {
    char *open[] = {text("cdrwa world:anyone")}, *few[] = {text("ra world:anyone"), text("c sasl:bob")};
    char *no_delete[] = {text("cra world:anyone")}, *bob[] = {text("cdrwa sasl:bob")};
    dv_doctor_acl acls[] = {{.path = text("/q"), .entries = open, .entry_count = 1},
                            {.path = text("/q/party"), .entries = bob, .entry_count = 1},
                            {.path = text("/q/locks/x"), .entries = few, .entry_count = 2, .is_directory = true},
                            {.path = text("/q/locks"), .entries = no_delete, .entry_count = 1}};
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    with_acls(&p, acls, 4);
    p.scene.doctor.hides_names = true; /* By TLS or SASL we may be bob. */
    dv_findings f = judge(&p);
    assert_true(
        says(&f, DV_DOCTOR_ERROR, "acl", "nobody may delete below it: the access list is ra world:anyone, c sasl:bob"));
    const dv_finding *first = found(&f, "acl");
    assert_string_equal(first->why, "members cannot stand in this item's queue");
    assert_string_equal(first->todo, "zkCli.sh setAcl /q/locks/x sasl:bob:cdrwa");
    assert_string_equal(first[1].why, "members cannot take part");
    dv_findings_clear(&f);
    p.scene.doctor.hides_names = false;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "acl", "others, and not we, may create below it"));
    clear(&p, &f);
}

/* Without a party to compare with, a list that is open to all lets all do all. */
TEST(test_acls_of_a_root_pool) {
    char *nobody[] = {text("odd")};
    dv_doctor_acl acls[] = {{.path = text("/"), .entries = nobody, .entry_count = 1},
                            {.path = text("/party"), .entries = nobody, .entry_count = 1}};
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    with_acls(&p, acls, 2);
    p.scene.doctor.path = p.scene.doctor.status.path = "/";
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_ERROR, "acl", "nobody may create below it: the access list is odd"));
    assert_string_equal(found(&f, "acl")->todo, "give the pool's members the permissions cdrwa there");
    dv_findings_clear(&f);
    nobody[0] = text("cr world:anyone");
    f = judge(&p);
    assert_string_equal(found(&f, "acl")->todo, "zkCli.sh setAcl /party world:anyone:cdrwa");
    dv_findings_clear(&f);
    acls[0].error = DIVVY_EACCES;
    f = judge(&p);
    assert_string_equal(found(&f, "acl")->why, "it is of other credentials, and we have none");
    clear(&p, &f);
}

/* A pool without a plan: a note while members are young, a warning when one has waited for long. */
TEST(test_missing_plan) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.plan.memory.standing = DV_PLAN_MISSING;
    p.members[0].made_ms = NOW_MS - 3 * SECOND_MS;
    p.members[1].made_ms = NOW_MS - 4 * SECOND_MS;
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "plan", "there is no plan"));
    dv_findings_clear(&f);
    p.members[1].made_ms = NOW_MS - 31 * SECOND_MS;
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_WARNING, "plan", "there is no plan"));
    dv_findings_clear(&f);
    p.members[0].follows = p.members[1].follows = false;
    f = judge(&p);
    assert_false(says(&f, DV_DOCTOR_WARNING, "plan", "there is no plan"));
    p.plan.memory.standing = DV_PLAN_GOOD;
    clear(&p, &f);
}

/* Directories of items that the pool no longer has, one or several. */
TEST(test_left_directories) {
    pool p;
    set_pool(&p, 60 * SECOND_MS);
    p.items[0].name = text("old");
    disown(&p, 0);
    dv_findings f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "left over", "1 directory is left of items that the pool no longer has"));
    assert_string_equal(found(&f, "left over")->todo, "zkCli.sh delete /q/locks/x");
    dv_findings_clear(&f);
    p.items[1].name = text("older");
    disown(&p, 1);
    f = judge(&p);
    assert_true(says(&f, DV_DOCTOR_NOTE, "left over", "2 directories are left of items that the pool no longer has"));
    clear(&p, &f);
}

/* ---- servers ---- */

/* A clock that is ahead, one that is behind, and a connection that no server dates. */
TEST(test_this_clock) {
    scene s;
    set_scene(&s);
    s.connections[0].established_ms = s.doctor.connected_ms + 5 * SECOND_MS;
    dv_findings f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "clock", "its clock is 5.0 s behind that of the servers"));
    dv_findings_clear(&f);
    s.connections[0].established_ms = s.doctor.opened_ms - 5 * SECOND_MS;
    f = judge_servers(&s);
    assert_true(says(&f, DV_DOCTOR_WARNING, "clock", "its clock is 5.0 s ahead of that of the servers"));
    dv_findings_clear(&f);
    s.connections[0].established_ms = 0;
    f = judge_servers(&s);
    assert_false(has(&f, "clock"));
    dv_findings_clear(&f);
}

/* What a session gets, as servers say that grant none: their bounds, and which setting to change. */
TEST(test_bounds) {
    scene s;
    set_scene(&s);
    s.doctor.looked = false;
    s.doctor.granted_ms = 0;
    s.doctor.session_timeout_ms = 60000;
    dv_findings f = judge_servers(&s);
    assert_string_equal(found(&f, "timeouts")->what, "a session that asks for 60000 ms gets 40000 ms");
    assert_string_equal(found(&f, "timeouts")->why, "the servers allow 4000 to 40000 ms");
    assert_string_equal(found(&f, "timeouts")->todo,
                        "set --session-timeout to 40000ms, or maxSessionTimeout in zoo.cfg to 60000");
    dv_findings_clear(&f);
    s.doctor.session_timeout_ms = 3000;
    f = judge_servers(&s);
    assert_string_equal(found(&f, "timeouts")->todo,
                        "set --session-timeout to 4000ms, or minSessionTimeout in zoo.cfg to 3000");
    dv_findings_clear(&f);
}
