/* Tests of the roster: what a plan has told it, failed allocations, and many members. SPDX-License-Identifier:
 * Apache-2.0 */
#include "plan_party_fixture.h"

/* --- what a plan tells ------------------------------------------------------------------------------------------- */

static dv_plan *plan_of(const char *dynamic, int64_t absent) {
    dv_plan *plan = dv_plan_make(numbered_set("i", 1));
    assert_non_null(plan);
    plan->header = (dv_plan_header){.generation = 1, .guid = "g", .pzxid = 5};
    plan->mzxid = 6;
    add_member(plan, (dv_plan_member){.slot = 0, .is_static = true, .key = "w3", .weight = 1000});
    add_member(plan, (dv_plan_member){.slot = 1, .key = (char *)(uintptr_t)dynamic, .weight = 1000});
    add_member(plan, (dv_plan_member){.slot = 2,
                                      .is_static = true,
                                      .key = "w1",
                                      .weight = 700,
                                      .zone = "z",
                                      .rejoin_delay_ms = 5,
                                      .absent = absent});
    return plan;
}

/* D36: who follows a plan for its party need not read who its static members are; but for those with a namesake. */
TEST(test_learn) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3", "d,a=2-w3");
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    dv_roster_learn(roster, plan);
    assert_true(node_at(0)->known && node_at(0)->is_static);
    assert_int_equal(node_at(0)->weight, 700);
    assert_true(node_at(0)->weight_unknown); /* An older release wrote the plan: D15 */
    assert_string_equal(node_at(0)->zone, "z");
    assert_int_equal(node_at(0)->rejoin_delay_ms, 5);
    assert_int_equal(node_at(0)->czxid, 0);
    for (size_t n = 1; n < 4; n++) assert_false(node_at(n)->known);
    assert_int_equal(ask_namesakes("a,a=2-w1"), 0);
    assert_int_equal(ask_of(plan), 2);
    assert_pending("get /p/party/c,a=2-w3, get /p/party/d,a=2-w3");
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    dv_roster_learn(roster, plan);
    assert_int_equal(node_at(2)->czxid, 11); /* A node's own data count more than what a plan says of it. */
    dv_plan_free(plan);
}

/* When a namesake comes it is asked how old both are, and what the node itself says counts from then on. */
TEST(test_learnt_and_doubled) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    dv_roster_learn(roster, plan);
    SETTLE(7, "a,a=2-w1", "b,a=2-w2", "e,a=2-w1");
    dv_roster_learn(roster, plan);
    assert_int_equal(ask_namesakes("e,a=2-w1"), 2);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/e,a=2-w1");
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    assert_int_equal(node_at(0)->czxid, 11);
    assert_int_equal(node_at(0)->rejoin_delay_ms, 30000);
    assert_true(dv_plan_fenced(dv_roster_party(roster), 0));
    assert_int_equal(ask_of(plan), 0);
    dv_plan_free(plan);
}

/* One round of reads is enough for a step, though only its answers tell that there are two of a member. */
TEST(test_learnt_and_asked) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "f,a=2-w4");
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    dv_plan_party *party = dv_roster_party(roster);
    dv_plan *next;
    party->set = plan->set;
    dv_roster_learn(roster, plan);
    SETTLE(7, "a,a=2-w1", "b,a=2-w2", "e,a=2-w1", "f,a=2-w4");
    assert_int_equal(ask_of(plan), 3);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/e,a=2-w1, get /p/party/f,a=2-w4");
    for (int n = 0; n < 3; n++) answer(STATIC, 11 + n);
    assert_told(0);
    assert_int_equal(ask_of(plan), 0);
    assert_int_equal(dv_plan_step(&next, plan, party, NULL), DV_PLAN_NEXT);
    dv_plan_free(next);
    dv_plan_free(plan);
}

/* Nothing is read of members that are not static, in whatever slots the plan has them. */
TEST(test_dynamic_in_any_slots) {
    static const char *const keys[] = {"c,a=2-w3", "a,a=2-w1", "b,a=2-w2"};
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3", "d,a=2-w4");
    dv_plan *plan = dv_plan_make(numbered_set("i", 1));
    assert_non_null(plan);
    for (uint32_t slot = 0; slot < COUNT(keys); slot++)
        add_member(plan, (dv_plan_member){.slot = slot, .key = (char *)(uintptr_t)keys[slot], .weight = 1000});
    assert_int_equal(ask_of(plan), 1);
    assert_pending("get /p/party/d,a=2-w4");
    answer(DYNAMIC, 11);
    assert_told(0);
    dv_plan_free(plan);
}

/* A node that only has the identifier of an absent member is not that member. */
TEST(test_absent_namesake) {
    SETTLE(5, "a,a=2-w1");
    dv_plan *plan = plan_of("a,a=2-w1", 4);
    dv_roster_learn(roster, plan);
    assert_false(node_at(0)->known);
    dv_plan_free(plan);
}

/* Without memory it stays unknown, and is read. */
TEST(test_scarce_learn) {
    dv_plan *plan = plan_of("b,a=2-w2", 0);
    int failures = 0;
    for (bool learnt = false; !learnt; failures++) {
        SETTLE(5 + failures, "x,a=2-w9");
        SETTLE(50 + failures, "a,a=2-w1");
        scarce_after = failures;
        dv_roster_learn(roster, plan);
        scarce_after = -1;
        learnt = node_at(0)->known;
    }
    assert_int_equal(failures, 5); /* two tables, the zone, the tags, and once nothing */
    dv_plan_free(plan);
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

/* A settle changes nothing when an allocation fails, whichever it is. */
TEST(test_scarce_settle) {
    static const char *const others[] = {"e,a=2-w5", "b,a=2-w2", "d,a=2-w4", "e,a=2-w5"};
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    ask();
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    int error = DIVVY_ENOMEM, failures = 0;
    for (; error == DIVVY_ENOMEM; failures++) {
        assert_int_equal(dv_roster_party(roster)->count, 2);
        assert_int_equal(dv_roster_party(roster)->pzxid, 5);
        assert_int_equal(ask(), 0);
        scarce_after = failures;
        error = settle(others, COUNT(others), 6);
        scarce_after = -1;
    }
    assert_int_equal(error, 0);
    assert_int_equal(failures, 7); /* two tables and four names, and once nothing */
    assert_int_equal(dv_roster_party(roster)->count, 3);
    assert_true(node_at(0)->known);
}

/* A call asks nothing when an allocation fails, also when not even the first read can be sent. */
TEST(test_scarce_ask) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    int asked = DIVVY_ENOMEM, failures = 0;
    for (; asked == DIVVY_ENOMEM; failures++) {
        scarce_after = failures;
        asked = ask();
        scarce_after = -1;
        if (asked == 2 && sent == 1) { /* There was no memory to send the second: the first is answered. */
            answer(STATIC, 11);
            assert_told(DIVVY_ENOMEM);
            SETTLE(5, "e,a=2-w1", "f,a=2-w2");
            sent = 0;
            asked = DIVVY_ENOMEM;
        }
        assert_int_equal(sent, asked == DIVVY_ENOMEM ? 0 : 2);
    }
    assert_int_equal(asked, 2);
    assert_true(failures > 5);
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    SETTLE(6, "c,a=2-w3", "d,a=2-w4");
    refused_after = sent;
    assert_int_equal(ask(), DIVVY_ENOMEM);
    refused_after = sent + 1;
    assert_int_equal(ask(), 2);
    answer(STATIC, 13);
    assert_told(DIVVY_ENOMEM);
    refused_after = SIZE_MAX;
    assert_int_equal(ask(), 1);
    answer(STATIC, 14);
    assert_told(0);
}

/* Nobody is created without memory. */
TEST(test_scarce_new) {
    scarce_after = 0;
    assert_null(dv_roster_new(dv_fake_client(fake), PARTY, on_ghost, &told));
    scarce_after = -1;
}

/* --- many ------------------------------------------------------------------------------------------------------- */

enum { MANY = 1000, AT_ONCE = 200 };

static size_t under_way(void) {
    size_t count = 0;
    for (const dv_fake_request *q = dv_fake_oldest(fake); q != NULL; q = q->next) count++;
    return count;
}

/* 1,000 members are read 200 at a time, and of the next party only who is new; also an error ends the sending. */
TEST(test_many) {
    static char texts[MANY + 1][32];
    const char *names[MANY + 1];
    for (size_t n = 0; n <= MANY; n++) {
        snprintf(texts[n], sizeof texts[n], "n%06zu,a=2-w%zu", n * 7919 % 10007, n);
        names[n] = texts[n];
    }
    assert_int_equal(settle(names, MANY, 5), 0);
    assert_int_equal(ask(), MANY);
    size_t answered = 0;
    for (; under_way() > 0; answered++) {
        size_t left = MANY - answered;
        assert_int_equal(under_way(), left < AT_ONCE ? left : AT_ONCE);
        answer(DYNAMIC, 10 + (int64_t)answered);
    }
    assert_int_equal(answered, MANY);
    assert_told(0);
    assert_int_equal(settle(names + 1, MANY, 6), 0);
    assert_int_equal(ask(), 1);
    answer(DYNAMIC, 5000);
    assert_told(0);
    assert_int_equal(settle(NULL, 0, 7), 0);
    assert_int_equal(settle(names, MANY, 8), 0);
    assert_int_equal(ask(), MANY);
    answer_error(DIVVY_ENOENT);
    assert_int_equal(under_way(), AT_ONCE - 1);
    for (size_t n = 1; n < AT_ONCE; n++) answer(DYNAMIC, 1);
    assert_told(DIVVY_ENOENT);
    assert_int_equal(under_way(), 0);
}

TEST_EACH(set_up, tear_down);
