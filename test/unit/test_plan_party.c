/* Tests of plan/roster.h, on a scripted backend. SPDX-License-Identifier: Apache-2.0 */
#include "plan_party_fixture.h"

/* --- the party -------------------------------------------------------------------------------------------------- */

/* The names alone tell who they are, which items they carry, and whether they know of loads, in the order of the names.
 */
TEST(test_names) {
    SETTLE(7, "b,a=2,s=0000000a-w-2", "a,a=2,x=1,s=1a2b3c4d-w1", "c,a=3-w3");
    const dv_plan_party *party = dv_roster_party(roster);
    assert_int_equal(party->count, 3);
    assert_int_equal(party->pzxid, 7);
    assert_string_equal(node_at(0)->node, "a,a=2,x=1,s=1a2b3c4d-w1");
    assert_string_equal(node_at(0)->identifier, "w1");
    assert_int_equal(node_at(0)->tag, 0x1a2b3c4d);
    assert_string_equal(node_at(1)->identifier, "w-2");
    assert_int_equal(node_at(1)->tag, 10);
    assert_int_equal(node_at(2)->tag, 0);
    for (size_t n = 0; n < 3; n++) {
        assert_false(node_at(n)->known);
        assert_int_equal(node_at(n)->can_balance, n == 2);
    }
    assert_int_equal(dv_roster_find(roster, "c,a=3-w3"), 2);
    assert_int_equal(dv_roster_find(roster, "d"), SIZE_MAX);
}

/* Nobody knows anybody before the first party, and a party may be empty. */
TEST(test_empty) {
    assert_int_equal(dv_roster_find(roster, "a"), SIZE_MAX);
    assert_int_equal(ask(), 0);
    assert_int_equal(settle(NULL, 0, 5), 0);
    assert_int_equal(ask(), 0);
    SETTLE(6, "a,a=2-w");
    assert_int_equal(settle(NULL, 0, 7), 0);
    assert_int_equal(dv_roster_party(roster)->count, 0);
    assert_int_equal(dv_roster_party(roster)->pzxid, 7);
}

/* D31: a name that would break a plan is nobody's; and one that a list has twice is one. */
TEST(test_odd_names) {
    char longest[DV_PLAN_KEY_BYTES_MAX + 1], longer[DV_PLAN_KEY_BYTES_MAX + 2];
    memset(longest, 'x', sizeof longest);
    memset(longer, 'x', sizeof longer);
    longest[sizeof longest - 1] = longer[sizeof longer - 1] = '\0';
    SETTLE(5, "n,a=2-\xff", longest, longer, "m,a=2-w", "m,a=2-w");
    assert_int_equal(dv_roster_party(roster)->count, 2);
    assert_string_equal(node_at(0)->node, "m,a=2-w");
    assert_string_equal(node_at(1)->node, longest);
    SETTLE(6, "m,a=2-w", "l,a=2-w", "m,a=2-w", "l,a=2-w");
    assert_int_equal(dv_roster_party(roster)->count, 2);
}

/* The caller's fields stay, but for the owners, whose numbers meant the nodes before. */
TEST(test_callers_fields) {
    SETTLE(5, "a,a=2-w");
    dv_plan_party *party = dv_roster_party(roster);
    uint32_t owners[1] = {0};
    dv_plan_set *set = numbered_set("i", 1);
    party->set = set;
    party->options.max_moves = 3;
    party->owners = owners;
    SETTLE(6, "b,a=2-w");
    assert_ptr_equal(dv_roster_party(roster), party);
    assert_ptr_equal(party->set, set);
    assert_int_equal(party->options.max_moves, 3);
    assert_null(party->owners);
    dv_plan_set_unref(set);
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

/* One get tells all about a node, its age too. A node that says nothing has the defaults. */
TEST(test_ask) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3");
    assert_int_equal(ask(), 3);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/b,a=2-w2, get /p/party/c,a=2-w3");
    answer(STATIC, 11);
    answer("nonsense", 12);
    assert_int_equal(told.done, 0);
    answer("", 13);
    assert_told(0);
    assert_true(node_at(0)->known && node_at(0)->is_static);
    assert_int_equal(node_at(0)->weight, 500);
    assert_string_equal(node_at(0)->zone, "z");
    assert_int_equal(node_at(0)->rejoin_delay_ms, 30000);
    assert_int_equal(node_at(0)->czxid, 11);
    for (size_t n = 1; n < 3; n++) {
        assert_true(node_at(n)->known && !node_at(n)->is_static);
        assert_int_equal(node_at(n)->weight, DV_WEIGHT);
        assert_string_equal(node_at(n)->zone, "");
        assert_int_equal(node_at(n)->czxid, 11 + (int64_t)n);
    }
    assert_int_equal(ask(), 0);
}

/* A member that the plan has by its node's name is not read; and after the answers a step finds nothing more to ask. */
TEST(test_ask_for_a_step) {
    SETTLE(5, "a,a=2,s=00000001-w1", "b,a=2,s=00000001-w2", "c,a=2,s=00000001-w2");
    dv_plan_party *party = dv_roster_party(roster);
    dv_plan_set *set = numbered_set("i", 6);
    party->set = set;
    dv_plan *previous = dv_plan_make(dv_plan_set_ref(set)), *next;
    previous->header = (dv_plan_header){.generation = 1, .guid = "g", .pzxid = 4, .options = party->options};
    previous->mzxid = 4;
    add_member(previous, (dv_plan_member){.key = "a,a=2,s=00000001-w1", .weight = 1000});
    assert_int_equal(ask_of(previous), 2);
    assert_pending("get /p/party/b,a=2,s=00000001-w2, get /p/party/c,a=2,s=00000001-w2");
    answer(STATIC, 21);
    assert_int_equal(dv_plan_step(&next, previous, party, NULL), DV_PLAN_ASK);
    answer(STATIC, 20);
    assert_told(0);
    assert_int_equal(ask_of(previous), 0);
    assert_int_equal(dv_plan_step(&next, previous, party, NULL), DV_PLAN_NEXT);
    assert_non_null(dv_plan_member_of(next, party, 1));
    assert_null(dv_plan_member_of(next, party, 2)); /* D12: the older one is fenced */
    dv_plan_free(next);
    dv_plan_free(previous);
    dv_plan_set_unref(set);
}

/* D31: a member cannot be static without an identifier, its key in the plan. And no age is asked for again and
 * again. */
TEST(test_odd_answers) {
    SETTLE(5, "a,a=2-", "b,a=2-w", "c,a=2-w");
    assert_int_equal(ask(), 3);
    answer(STATIC, 11);
    answer(STATIC, 0);
    answer(STATIC, 0);
    assert_told(0);
    assert_false(node_at(0)->is_static);
    assert_int_equal(ask(), 0);
}

/* The namesakes of a node are read, itself among them, and nobody else. */
TEST(test_namesakes) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w1");
    assert_int_equal(ask_namesakes("c,a=2-w1"), 2);
    assert_pending("get /p/party/a,a=2-w1, get /p/party/c,a=2-w1");
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    assert_int_equal(ask_namesakes("a,a=2-w1"), 0);
    assert_true(dv_plan_fenced(dv_roster_party(roster), 0));
    assert_false(dv_plan_fenced(dv_roster_party(roster), 2));
    SETTLE(6, "a,a=2-w1", "b,a=2-w2", "c,a=2-w1", "d,a=2-w1");
    assert_int_equal(ask_namesakes("a,a=2-w1"), 1);
    assert_pending("get /p/party/d,a=2-w1");
    answer(DYNAMIC, 13);
    assert_told(0);
    assert_false(dv_plan_fenced(dv_roster_party(roster), 2)); /* not by one that is not static */
}

/* --- what is kept ----------------------------------------------------------------------------------------------- */

/* A node that stays is not read again. One that goes is forgotten, and is a stranger when a node of that name comes
 * back. */
TEST(test_kept) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    ask();
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    SETTLE(6, "c,a=2-w3", "b,a=2-w2");
    assert_true(node_at(0)->known);
    assert_string_equal(node_at(0)->zone, "z");
    assert_int_equal(node_at(0)->czxid, 12);
    assert_int_equal(ask(), 1);
    assert_pending("get /p/party/c,a=2-w3");
    answer(DYNAMIC, 13);
    assert_told(0);
    SETTLE(7, "a,a=2-w1", "b,a=2-w2");
    assert_int_equal(ask(), 1);
    assert_pending("get /p/party/a,a=2-w1");
    answer(DYNAMIC, 14);
    assert_told(0);
    assert_false(node_at(0)->is_static);
}

/* Answers that come when another party has settled are good for those who are still there; who asked is told that it
 * asked about another party. */
TEST(test_late_answers) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3");
    ask();
    answer(STATIC, 11);
    SETTLE(6, "b,a=2-w2", "d,a=2-w4");
    answer(STATIC, 12);
    assert_int_equal(told.done, 0);
    answer(STATIC, 13);
    assert_told(DIVVY_ECANCELED);
    assert_true(node_at(0)->known && node_at(0)->is_static);
    assert_int_equal(node_at(0)->czxid, 12);
    assert_int_equal(ask(), 1);
    answer(DYNAMIC, 14);
    assert_told(0);
}

/* Two may ask at a time, and each is told by itself. */
TEST(test_two_ask) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w1");
    assert_int_equal(ask(), 2);
    assert_int_equal(ask_namesakes("a,a=2-w1"), 2);
    answer(STATIC, 11);
    answer(STATIC, 12);
    assert_told(0);
    answer(DYNAMIC, 98);
    answer(DYNAMIC, 99);
    assert_told(0);
    assert_true(node_at(0)->is_static);
    assert_int_equal(node_at(1)->czxid, 12);
}

/* --- errors ----------------------------------------------------------------------------------------------------- */

/* The first error is told, when all that is under way has ended; what was answered well is known. */
TEST(test_errors) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2", "c,a=2-w3");
    ask();
    answer_error(DIVVY_ENOENT);
    answer_error(DIVVY_EACCES);
    assert_int_equal(told.done, 0);
    answer(STATIC, 13);
    assert_told(DIVVY_ENOENT);
    assert_true(node_at(2)->known);
    assert_int_equal(ask(), 2);
    dv_fake_session(fake, DIVVY_SUSPENDED);
    dv_fake_run(fake);
    assert_told(DIVVY_ECONNECTION);
}

/* A roster that is freed with reads under way, asked twice, calls nobody. */
TEST(test_freed) {
    SETTLE(5, "a,a=2-w1", "b,a=2-w2");
    ask();
    ask_namesakes("b,a=2-w2");
    answer(STATIC, 11);
    dv_roster_free(roster);
    roster = NULL;
    answer(STATIC, 12);
    answer(STATIC, 13);
    assert_pending("");
    assert_int_equal(told.done, 0);
}

static void free_inside(void *context, int error, int64_t now) {
    on_done(context, error, now);
    dv_roster_free(roster);
    roster = NULL;
}

/* A node that is read and turns out to be persistent is nobody's: it is told of once, claims no place in a plan, and
 * fences nobody. */
TEST(test_ghost) {
    SETTLE(5, "a,a=2-w1", "g,a=2-w1");
    assert_int_equal(ask(), 2);
    answer(STATIC, 11);
    dv_fake_answer(fake, &(dv_reply){.data = STATIC, .data_bytes = strlen(STATIC), .stat = &(dv_stat){.czxid = 12}});
    assert_int_equal(told.ghosts, 1);
    assert_true(node_at(1)->is_ghost);
    assert_false(node_at(0)->is_ghost);
    assert_false(dv_plan_fenced(dv_roster_party(roster), 0));
    assert_int_equal(told.error, 0);
    assert_int_equal(ask(), 0);
}

/* A writer asks for all that was not read: that a plan has a member of a node's name does not make the node
 * ephemeral. */
TEST(test_writer_asks_all) {
    SETTLE(5, "a,a=2-w1", "g,a=2-w1");
    assert_int_equal(ask(), 2);
    answer("{}", 11);
    answer_error(DIVVY_ECONNECTION);
    assert_told(DIVVY_ECONNECTION);
    dv_plan_member member = {.key = "g,a=2-w1", .zone = "", .leaving = ""};
    dv_plan plan = {.members = &member, .member_count = 1};
    assert_int_equal(ask_of(&plan), 0);
    dv_client_lock(dv_fake_client(fake));
    int asked = dv_roster_ask(roster, &plan, DV_ROSTER_ALL, on_done, &told);
    dv_client_unlock(dv_fake_client(fake));
    assert_int_equal(asked, 1);
    dv_fake_answer(fake, &(dv_reply){.data = "", .stat = &(dv_stat){.czxid = 12}});
    assert_true(node_at(1)->is_ghost);
}

/* It may be freed by who is told. */
TEST(test_freed_inside) {
    SETTLE(5, "a,a=2-w1");
    dv_client_lock(dv_fake_client(fake));
    assert_int_equal(dv_roster_ask(roster, NULL, DV_ROSTER_NEEDED, free_inside, &told), 1);
    dv_client_unlock(dv_fake_client(fake));
    answer(STATIC, 11);
    assert_told(0);
}

TEST_EACH(set_up, tear_down);
