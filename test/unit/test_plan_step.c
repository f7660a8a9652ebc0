/* The sticky plan's step: each of its rules but rule 12. SPDX-License-Identifier: Apache-2.0
 *
 * "Rule n" is one of the plan's thirteen; Dn is docs/protocol.md's. */
#include "plan_step_fixture.h"

/* --- joins, leaves, losses --- */

/* From balance a join moves floor(K/(M+1)) items, in one write (A8). */
TEST(test_join_is_exact) {
    for (size_t members = 1; members < 9; members++) {
        for (size_t items = 0; items < 40; items += 1 + items / 9) {
            pool(members, items);
            join_dynamic(&w);
            assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
            assert_int_equal(w.plan->header.reason, DV_PLAN_JOIN);
            assert_int_equal(moves_of(w.before, w.plan), items / (members + 1));
            assert_even(w.plan);
            assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
            world_end(&w);
        }
    }
}

/* A loss deals out the items of the dead and moves no other (A8). */
TEST(test_loss_is_exact) {
    for (size_t members = 2; members < 9; members++) {
        pool(members, 31);
        die(&w, members / 2);
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        assert_int_equal(w.plan->header.reason, DV_PLAN_LOSS);
        assert_int_equal(w.plan->member_count, members - 1);
        assert_int_equal(moves_of(w.before, w.plan), 0);
        assert_even(w.plan);
        world_end(&w);
    }
}

/* Rule 8, D14: the mark and the deal are one write; nobody adds the node again while it goes; that it has gone is no
 * write of its own, and the entry goes with the next. */
TEST(test_rule_8_leave) {
    pool(4, 20);
    char node[WORLD_NAME_BYTES];
    strcpy(node, w.live[1].node);
    dv_plan_events leave = {.leaving = node};
    assert_int_equal(step(&w, &leave), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_LEAVE);
    assert_string_equal(member_named(w.plan, node)->leaving, node);
    assert_int_equal(load_named(w.plan, node), 0);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    assert_even(w.plan);
    assert_int_equal(step(&w, &leave), DV_PLAN_NOTHING);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, node), 0);
    die(&w, 1);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    assert_non_null(member_named(w.plan, node));
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_null(member_named(w.plan, node));
    assert_int_equal(w.plan->header.reason, DV_PLAN_JOIN);
    world_end(&w);
}

/* Rule 8: a node that leaves before any plan knew it is marked too, lest others add it. */
TEST(test_rule_8_leave_of_a_stranger) {
    pool(2, 6);
    dv_plan_events leave = {.leaving = join_dynamic(&w)};
    assert_int_equal(step(&w, &leave), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, leave.leaving), 0);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    world_end(&w);
}

/* D14: when all leave, items have no owner, and wait for the next who comes. */
TEST(test_all_leave) {
    pool(2, 5);
    for (size_t n = 0; n < 2; n++) {
        dv_plan_events leave = {.leaving = w.live[n].node};
        assert_int_equal(step(&w, &leave), DV_PLAN_NEXT);
    }
    for (size_t i = 0; i < 5; i++) assert_int_equal(w.plan->owners[i], NONE);
    const char *heir = join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, heir), 5);
    world_end(&w);
}

/* Nobody at all is a party too: it adopts nothing, and its items wait. */
TEST(test_nobody) {
    pool(2, 5);
    uint32_t tag = w.set->crc;
    dv_plan_set_unref(w.set);
    w.set = numbered_set("j", 5);
    die(&w, 0);
    die(&w, 0);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->member_count, 0);
    assert_int_equal(w.plan->header.tag, tag);
    for (size_t i = 0; i < 5; i++) assert_int_equal(w.plan->owners[i], NONE);
    world_end(&w);
}

/* D11: slots are the lowest that are free, so that they stay below the number of members. */
TEST(test_slots_are_reused) {
    pool(4, 8);
    for (int round = 0; round < 50; round++) {
        die(&w, (size_t)round % 4);
        join_dynamic(&w);
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        for (uint32_t m = 0; m < 4; m++) assert_int_equal(w.plan->members[m].slot, m);
    }
    world_end(&w);
}

/* --- static members --- */

/* Rules 7 and 9, D12, D13, D18: over a rolling restart nothing moves, whatever the weights, and who is back within one
 * settling is not even written. */
TEST(test_rule_9_rolling_restart) {
    static const uint32_t unequal[] = {1000, 3000, 3000, 500, 700};
    static const char *const names[] = {"s0", "s1", "s2", "s3", "s4"};
    for (size_t n = 0; n < 2 * 60; n++) {
        world_begin(&w, n / 2);
        for (size_t m = 0; m < 5; m++) {
            join(&w, names[m], 30000);
            if (n % 2) w.live[m].says.weight = unequal[m];
        }
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        dv_plan *first = dv_plan_copy(w.plan);
        assert_non_null(first);
        for (size_t m = 0; m < 5; m++) {
            die(&w, node_of(&w, names[m]));
            assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
            assert_int_equal(w.plan->header.reason, DV_PLAN_ABSENCE);
            assert_int_equal(member_named(w.plan, names[m])->absent, w.plan->header.pzxid);
            assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
            join(&w, names[m], 30000);
            if (n % 2) w.live[w.count - 1].says.weight = unequal[m];
            assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
            assert_true(states_equal(first, w.plan));
            die(&w, node_of(&w, names[m]));
            join(&w, names[m], 30000);
            if (n % 2) w.live[w.count - 1].says.weight = unequal[m];
            assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
        }
        dv_plan_free(first);
        world_end(&w);
    }
}

/* D18: the restart of one member moves nothing between the others, though without it their shares are 7.9 and 1.1
 * rounded up, 8 and 2, and one of them has 9. */
TEST(test_rule_9_odd_shares) {
    world_begin(&w, 19);
    char name[] = "s0";
    for (size_t m = 0; m < 10; m++, name[1]++) {
        join(&w, name, 30000);
        w.live[m].says.weight = m == 0 ? 8290 : 1190;
    }
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s0"), 9);
    for (size_t m = 0; m < 10; m++) {
        strcpy(name, w.live[0].identifier);
        die(&w, 0);
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        assert_int_equal(moves_of(w.before, w.plan), 0);
        join(&w, name, 30000);
        w.live[w.count - 1].says.weight = m == 0 ? 8290 : 1190;
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        assert_int_equal(moves_of(w.before, w.plan), 0);
    }
    world_end(&w);
}

/* Rule 9: who is absent neither gives nor receives; the rest is balanced among those who are there. */
TEST(test_rule_9_absent_keep) {
    static_pool(3, 12);
    die(&w, 0);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s0"), 4);
    assert_int_equal(load_named(w.plan, "s1") + load_named(w.plan, "s2"), 6);
    assert_even(w.plan);
    join(&w, "s0", 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_ABSENCE);
    assert_even(w.plan);
    world_end(&w);
}

/* Rule 10, D13: a timer that ran for another absence than the one in the plan does nothing. */
TEST(test_rule_10_timers) {
    static_pool(3, 12);
    die(&w, 0);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    dv_plan_expiry first = {"s0", member_named(w.plan, "s0")->absent}, other = {"s1", first.absent};
    dv_plan_events late = {.expired = &first, .expired_count = 1}, wrong = {.expired = &other, .expired_count = 1};
    assert_int_equal(step(&w, &wrong), DV_PLAN_NOTHING);
    join(&w, "s0", 30000);
    assert_int_equal(step(&w, &late), DV_PLAN_NEXT); /* it is back */
    assert_int_equal(member_named(w.plan, "s0")->absent, 0);
    die(&w, w.count - 1);
    assert_int_equal(step(&w, &late), DV_PLAN_NEXT); /* and away again: that is another absence */
    dv_plan_expiry second = {"s0", member_named(w.plan, "s0")->absent};
    assert_true(second.absent > first.absent);
    assert_int_equal(step(&w, &late), DV_PLAN_NOTHING);
    dv_plan_events expired = {.expired = &second, .expired_count = 1};
    assert_int_equal(step(&w, &expired), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_LOSS);
    assert_null(member_named(w.plan, "s0"));
    assert_int_equal(moves_of(w.before, w.plan), 0);
    assert_even(w.plan);
    world_end(&w);
}

/* D13: a static member without a delay is lost like any other. */
TEST(test_static_without_delay) {
    world_begin(&w, 4);
    join(&w, "s0", 0);
    join(&w, "s1", 0);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    die(&w, 0);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_null(member_named(w.plan, "s0"));
    assert_int_equal(load_named(w.plan, "s1"), 4);
    world_end(&w);
}

/* D12: the last process is the member, whatever the order in which the nodes were made: by what they say of their first
 * nodes. One that says nothing, or a zxid above its own, as before the servers were wiped, came with this node. */
TEST(test_fencing_by_start) {
    enum { NODES = 3 };
    static const struct {
        int64_t czxid[NODES], first[NODES];
        size_t member;
    } cases[] = {
        {{10, 20, 30}, {0, 0, 0}, 2},     /* none of them came back */
        {{50, 20, 30}, {10, 0, 0}, 2},    /* the oldest did, */
        {{50, 60, 30}, {10, 20, 0}, 2},   /* and the second, */
        {{60, 50, 70}, {10, 20, 30}, 2},  /* and the last */
        {{50, 60, 30}, {1, 20, 0}, 2},    /* one does not know since when it is there */
        {{50, 20, 30}, {50, 0, 0}, 0},    /* not below its czxid */
        {{50, 20, 30}, {5000, 0, 0}, 0},  /* of servers that are no more */
        {{50, 60, 30}, {5000, 20, 0}, 0}, /* likewise */
        {{50, 60, 40}, {30, 30, 30}, 1},  /* copies: the youngest node */
        {{50, 50, 50}, {30, 30, 30}, 2},  /* and of equals the greater name */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dv_plan_node nodes[NODES] = {{.node = "a"}, {.node = "b"}, {.node = "c"}};
        for (size_t n = 0; n < NODES; n++) {
            nodes[n].identifier = nodes[n].zone = "s0";
            nodes[n].known = nodes[n].is_static = true;
            nodes[n].czxid = cases[i].czxid[n];
            nodes[n].first_czxid = cases[i].first[n];
        }
        const dv_plan_party party = {.nodes = nodes, .count = NODES};
        for (size_t n = 0; n < NODES; n++)
            assert_int_equal(dv_plan_successor(&party, n), n == cases[i].member ? SIZE_MAX : cases[i].member);
    }
}

/* Rule 7, D12: of two live static nodes of one identifier the newer is the member, and the other is fenced; equal
 * identifiers of members that are not static are two members. */
TEST(test_rule_7_fencing) {
    static_pool(2, 6);
    join(&w, "s0", 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    dv_plan_node nodes[NODES_MAX];
    dv_plan_party party = party_of(&w, nodes, false);
    assert_true(dv_plan_fenced(&party, 0));
    assert_null(dv_plan_member_of(w.plan, &party, 0));
    assert_false(dv_plan_fenced(&party, 1));
    assert_false(dv_plan_fenced(&party, 2));
    assert_ptr_equal(dv_plan_member_of(w.plan, &party, 2), member_named(w.plan, "s0"));
    const char *twin = join(&w, "s0", -1);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    party = party_of(&w, nodes, false);
    assert_int_equal(w.plan->member_count, 3);
    assert_ptr_equal(dv_plan_member_of(w.plan, &party, 3), member_named(w.plan, twin));
    assert_even(w.plan);
    world_end(&w);
}

/* D12: of two that one multi made, one is the member, and the other fenced; never both. */
TEST(test_fencing_of_equals) {
    world_begin(&w, 6);
    join(&w, "s0", 30000);
    join(&w, "s0", 30000);
    w.live[0].says.czxid = w.live[1].says.czxid;
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    dv_plan_node nodes[NODES_MAX];
    dv_plan_party party = party_of(&w, nodes, false);
    assert_int_equal(w.plan->member_count, 1);
    assert_true(dv_plan_fenced(&party, 0));
    assert_false(dv_plan_fenced(&party, 1));
    dv_plan_events leave = {.leaving = w.live[0].node}; /* the fenced one's leave is nothing to the member */
    assert_int_equal(step(&w, &leave), DV_PLAN_NOTHING);
    leave.leaving = w.live[1].node;
    assert_int_equal(step(&w, &leave), DV_PLAN_NEXT);
    world_end(&w);
}

/* Rules 7 and 8: the mark of a static member names a node; another node of the same identifier is not leaving. */
TEST(test_static_leave_and_return) {
    static_pool(3, 9);
    dv_plan_events leave = {.leaving = w.live[0].node};
    assert_int_equal(step(&w, &leave), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s0"), 0);
    die(&w, 0);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING); /* no absence: what it had is given up */
    join(&w, "s0", 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_string_equal(member_named(w.plan, "s0")->leaving, "");
    assert_int_equal(load_named(w.plan, "s0"), 3);
    world_end(&w);
}
