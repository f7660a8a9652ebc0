/* Tests of the plan's step: the first plan, weights, options, zones and sets. SPDX-License-Identifier: Apache-2.0 */
#include "plan_step_fixture.h"

/* D10: what has to be read of nodes is asked for, and nothing is computed before. */
TEST(test_asks) {
    static_pool(2, 6);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    join(&w, "s0", 30000);
    dv_plan_node nodes[NODES_MAX];
    dv_plan_party party = party_of(&w, nodes, false);
    bool asks[NODES_MAX];
    dv_plan *next;
    for (size_t n = 0; n < w.count; n++) nodes[n].known = false;
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 3);
    assert_memory_equal(asks, ((bool[]){true, true, false, true}), 4); /* the third is known by its name */
    assert_int_equal(dv_plan_step(&next, w.plan, &party, NULL), DV_PLAN_ASK);
    assert_null(next);
    party = party_of(&w, nodes, false);
    nodes[0].czxid = nodes[1].czxid = nodes[3].czxid = 0;
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 2);
    assert_memory_equal(asks, ((bool[]){true, false, false, true}), 4);
    party = party_of(&w, nodes, false);
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 0);
    world_end(&w);
}

/* --- rule 3, the first plan --- */

/* Rule 3, D10: a plan for a later party is left as it is, unless it cannot have been written in this ensemble. */
TEST(test_rule_3_older_never_replaces_newer) {
    pool(3, 6);
    die(&w, 0);
    int64_t now = w.zxid;
    w.zxid = w.plan->header.pzxid - 1;
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    w.plan->mzxid = 0; /* of one's own, not written yet */
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    w.plan->mzxid = w.plan->header.pzxid; /* no honest one is as old as what it was made for */
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_LOSS);
    assert_int_equal(moves_of(w.before, w.plan), 0);
    assert_true(w.plan->header.pzxid < now);
    world_end(&w);
}

/* D10: the first plan begins with what its writer followed, and so moves no more than a join does. */
TEST(test_first_plan_keeps_what_was) {
    for (int generation_0 = 0; generation_0 < 2; generation_0++) {
        world_begin(&w, 12);
        for (int n = 0; n < 4; n++) join(&w, n == 2 ? "s" : NULL, n == 2 ? 1000 : -1);
        dv_plan_node nodes[NODES_MAX];
        dv_plan_party party = party_of(&w, nodes, false);
        const uint32_t owners[] = {2, 2, 1, 0, 1, 0, 2, 0, 1, 0, 2, UINT32_MAX};
        party.owners = owners;
        dv_plan *begun = dv_plan_make(dv_plan_set_make(NULL, 0)), *next;
        assert_non_null(begun);
        strcpy(begun->header.guid, "g0");
        strcpy(begun->header.epoch, "e0");
        assert_int_equal(dv_plan_step(&next, generation_0 ? begun : NULL, &party, NULL), DV_PLAN_NEXT);
        assert_string_equal(next->header.after, generation_0 ? "g0" : "");
        assert_string_equal(next->header.epoch, generation_0 ? "e0" : "");
        assert_int_equal(next->header.generation, 1);
        assert_int_equal(next->header.tag, w.set->crc);
        size_t kept = 0;
        for (size_t i = 0; i < 11; i++) {
            const dv_plan_member *owner = dv_plan_member_of(next, &party, owners[i]);
            assert_non_null(owner);
            kept += next->owners[i] == owner->slot;
        }
        assert_int_equal(kept, 9); /* 4, 4, 3 and 0 become 3 each, and one had no owner */
        assert_even(next);
        dv_plan_free(next);
        party.set = NULL; /* an administrator has nothing to begin with */
        assert_int_equal(dv_plan_step(&next, generation_0 ? begun : NULL, &party, NULL), DV_PLAN_NOTHING);
        dv_plan_free(begun);
        world_end(&w);
    }
}

/* --- weights, drains, options --- */

/* D15: a weight that is set stays over a restart of a static member; a drained one is emptied, and back with its
 * weight. */
TEST(test_weights_and_drains) {
    static_pool(4, 40);
    dv_plan_weight drain = {"s1", 0}, undo = {"s1", 1000}, heavy = {"s2", 2000};
    dv_plan_events events = {.weight = drain};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_DRAIN);
    assert_int_equal(load_named(w.plan, "s1"), 0);
    assert_int_equal(moves_of(w.before, w.plan), 10);
    die(&w, 1);
    join(&w, "s1", 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    events.weight = undo;
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_WEIGHT);
    assert_int_equal(moves_of(w.before, w.plan), 10);
    events.weight = heavy;
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s2"), 16);
    assert_int_equal(moves_of(w.before, w.plan), 6);
    assert_int_equal(step(&w, &events), DV_PLAN_NOTHING);
    events.weight.key = "nobody";
    assert_int_equal(step(&w, &events), DV_PLAN_NOTHING);
    world_end(&w);
}

/* D3: a static member that comes back with another rejoin_delay, or in another zone, has other options, and its weight
 * is what it was. */
TEST(test_other_options_of_a_member) {
    static_pool(3, 30);
    die(&w, 1);
    join(&w, "s1", 60000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_OPTIONS);
    die(&w, node_of(&w, "s1"));
    join(&w, "s1", 60000);
    w.live[w.count - 1].says.zone = "east";
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_OPTIONS);
    die(&w, node_of(&w, "s1"));
    join(&w, "s1", 30000);
    w.live[w.count - 1].says.zone = "east";
    w.live[w.count - 1].says.weight = 2000;
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_WEIGHT); /* the first of the two */
    world_end(&w);
}

/* D15: a drain of all moves no more than that of all but one. */
TEST(test_all_drained) {
    static_pool(2, 7);
    dv_plan_events events = {.weight = {"s0", 0}};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s1"), 7);
    events.weight.key = "s1";
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s1"), 7);
    world_end(&w);
}

/* Rule 13, D16: the options are the plan's; what a later writer is configured with changes nothing. */
TEST(test_rule_13_options) {
    pool(2, 8);
    w.options.max_moves = 1;
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.options.max_moves, 0);
    world_end(&w);
}

/* D19: a plan lists so many moved items and no more, however many may move. Readers refuse a longer list. */
TEST(test_most_moved) {
    dv_plan_node nodes[NODES_MAX];
    world_begin(&w, 2 * (DV_PLAN_MOVED_MAX + 2));
    w.options.max_moves = 2 * DV_PLAN_MOVED_MAX;
    for (size_t members = 1; members <= 2; members++) {
        join_dynamic(&w);
        const dv_plan_party party = party_of(&w, nodes, false);
        w.before = w.plan;
        assert_int_equal(dv_plan_step(&w.plan, w.before, &party, NULL), DV_PLAN_NEXT);
        seal(&w, w.plan);
    }
    assert_int_equal(moves_of(w.before, w.plan), DV_PLAN_MOVED_MAX + 2);
    assert_int_equal(w.plan->moved_count, DV_PLAN_MOVED_MAX);
    world_end(&w);
}

/* D18: a zone gets its share whatever the number of its members. */
TEST(test_zones) {
    pool(2, 8);
    const char *lonely = join_dynamic(&w);
    w.live[2].says.zone = "z";
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, lonely), 4);
    world_end(&w);
}

/* D12: a static member that comes back in another zone is dealt to as one of that zone. */
TEST(test_zone_after_restart) {
    static_pool(3, 12);
    die(&w, 0);
    join(&w, "s0", 30000);
    w.live[2].says.zone = "z";
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(load_named(w.plan, "s0"), 6);
    world_end(&w);
}

/* --- sets --- */

/* Rule 11, D17: a set that all carry and that was not adopted yet is; one that only some carry is not; and what
 * set_items made of it is not undone, as the tag is adopted already. */
TEST(test_rule_11_sets) {
    pool(3, 6);
    uint32_t old_tag = w.set->crc;
    dv_plan_set *old = w.set, *grown = numbered_set("i", 9), *other = numbered_set("j", 4);
    w.set = grown;
    for (size_t n = 0; n < 3; n++) {
        assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
        assert_int_equal(w.plan->header.tag, old_tag);
        die(&w, 0);
        join_dynamic(&w);
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        assert_int_equal(w.plan->set->count, n < 2 ? 6 : 9);
    }
    assert_int_equal(w.plan->header.reason, DV_PLAN_SET);
    assert_int_equal(w.plan->header.tag, grown->crc);
    assert_even(w.plan);
    dv_plan_events events = {.set = other};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_true(dv_plan_set_equal(w.plan->set, other));
    assert_int_equal(w.plan->header.tag, grown->crc);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    assert_int_equal(step(&w, &events), DV_PLAN_NOTHING);
    w.set = old; /* a writer of another set than all carry adopts nothing */
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    for (size_t n = 0; n < 3; n++) w.live[n].says.tag = old_tag;
    events.set = grown; /* asked for in the moment in which another is adopted: what is asked for it is */
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_true(dv_plan_set_equal(w.plan->set, grown));
    assert_int_equal(w.plan->header.tag, old_tag);
    dv_plan_set_unref(grown);
    dv_plan_set_unref(other);
    world_end(&w);
}

/* D17: items that stay keep their owner as far as balance lets them; removed ones go, added ones are dealt out. */
TEST(test_sets_keep_owners) {
    pool(3, 30);
    const char *names[31];
    size_t count = 0;
    for (size_t i = 0; i < 30; i++) {
        if (i % 10 != 3) names[count++] = w.plan->set->names[i];
    }
    names[count++] = "new-1";
    names[count++] = "new-2";
    dv_plan_events events = {.set = dv_plan_set_make(names, count)};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(w.plan->set->count, 29);
    assert_even(w.plan);
    size_t kept = 0;
    for (size_t i = 0, at = 0; i < 30; i++) {
        if (i % 10 != 3) kept += w.plan->owners[at++] == w.before->owners[i];
    }
    assert_in_range(kept, 26, 27); /* one who lost none of the three may have one too many */
    dv_plan_set_unref(events.set);
    world_end(&w);
}

/* D17, D19: while a round goes on another set comes. The items that are still to arrive are the same, and no others. */
TEST(test_sets_keep_round) {
    pool(3, 30);
    w.plan->header.options.max_moves = 3;
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->moved_count, 3);
    const char *names[31] = {"a"}; /* before all others: so each has another number now, the next one's of before */
    for (size_t i = 0; i < 30; i++) names[i + 1] = w.plan->set->names[i];
    dv_plan_events events = {.set = dv_plan_set_make(names, 31)};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(w.plan->moved_count, 3);
    for (size_t n = 0; n < 3; n++) assert_int_equal(w.plan->moved[n], w.before->moved[n] + 1);
    dv_plan_set_unref(events.set);
    world_end(&w);
}
