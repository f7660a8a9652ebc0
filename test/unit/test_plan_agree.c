/* A plan takes up the configuration that all live members share: docs/protocol.md, D16, D17.
 * SPDX-License-Identifier: Apache-2.0 */
#include "plan_world.h"

static world w;

static void configure(size_t n, uint32_t max_moves, int64_t round_timeout_ms) {
    w.live[n].says.has_options = true;
    w.live[n].says.options.max_moves = max_moves;
    w.live[n].says.options.round_timeout_ms = round_timeout_ms;
}

static void begin(size_t members) {
    world_begin(&w, 12);
    w.options.round_timeout_ms = 60000;
    for (size_t n = 0; n < members; n++) {
        join_dynamic(&w);
        configure(n, 0, 60000);
    }
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
}

/* The member at 0 goes, and another one comes. */
static void replace_first(void) {
    die(&w, 0);
    join_dynamic(&w);
    configure(w.count - 1, 0, 60000);
}

/* D16: options count once all live members carry them; one that differs, or does not say, stands in the way. */
TEST(test_options) {
    begin(3);
    configure(0, 1, 5000);
    configure(1, 1, 5000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    configure(2, 1, 60000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    configure(2, 1, 5000);
    w.live[2].says.has_options = false;
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    configure(2, 1, 5000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_OPTIONS);
    assert_int_equal(w.plan->header.options.max_moves, 1);
    assert_int_equal(w.plan->header.options.round_timeout_ms, 5000);
    join_dynamic(&w);
    configure(3, 0, 60000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT); /* The options that it brings do not count yet: one item moves. */
    assert_int_equal(w.plan->header.options.max_moves, 1);
    assert_int_equal(w.plan->moved_count, 1);
    world_end(&w);
}

static dv_plan_set *ask_for(size_t count) {
    dv_plan_set *asked = numbered_set("i", count);
    dv_plan_events events = {.set = asked};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(w.plan->set->count, count);
    assert_int_equal(w.plan->header.tag, w.set->crc);
    assert_true(w.plan->header.asked > 0);
    return asked;
}

/* D17: items that were asked for stay as long as one member lives that was there before; then all that live were
 * started later, with the items of the tag, and these are divided again. */
TEST(test_items_go_back) {
    begin(3);
    dv_plan_set_unref(ask_for(14));
    for (size_t n = 0; n < 3; n++) {
        assert_int_equal(w.plan->set->count, 14);
        replace_first();
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    }
    assert_int_equal(w.plan->set->count, 12);
    assert_int_equal(w.plan->header.reason, DV_PLAN_SET);
    assert_int_equal(w.plan->header.asked, 0);
    world_end(&w);
}

/* D17: a node that is not its member's first tells how old the first is, and counts as that. */
TEST(test_later_nodes) {
    begin(2);
    int64_t first = w.live[0].says.czxid;
    dv_plan_set_unref(ask_for(14));
    for (size_t n = 0; n < 2; n++) {
        replace_first();
        w.live[1].says.first_czxid = first;
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        assert_int_equal(w.plan->set->count, 14);
    }
    w.live[0].says.first_czxid = w.live[1].says.first_czxid = w.zxid;
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->set->count, 12);
    world_end(&w);
}

/* D17: asked for once more in the very step in which they would go, they stay. */
TEST(test_asked_again) {
    begin(2);
    dv_plan_set *asked = ask_for(14);
    for (size_t n = 0; n < 2; n++) {
        replace_first();
        dv_plan_events events = {.set = asked};
        assert_int_equal(step(&w, n == 1 ? &events : NULL), DV_PLAN_NEXT);
    }
    assert_int_equal(w.plan->set->count, 14);
    assert_int_equal(w.plan->header.asked, w.plan->header.pzxid);
    dv_plan_set_unref(asked);
    world_end(&w);
}

/* D17: a plan that an older release wrote does not say since when; it was before that plan. */
TEST(test_older_release) {
    begin(2);
    dv_plan_set_unref(ask_for(14));
    w.plan->header.asked = 0;
    replace_first();
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_true(w.plan->header.asked > 0 && w.plan->header.asked < w.plan->header.pzxid);
    replace_first();
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->set->count, 12);
    world_end(&w);
}

/* The static member "s" comes back, configured with this weight. */
static void restart(uint32_t weight) {
    die(&w, node_of(&w, "s"));
    join(&w, "s", 30000);
    w.live[w.count - 1].says.weight = weight;
}

static uint32_t weight_of_s(void) {
    return dv_plan_find(w.plan, true, "s")->weight;
}

/* D15: the configured weight of a static member counts when it has changed. While it is the same, a weight that was set
 * stays, a drain too. */
TEST(test_weights) {
    world_begin(&w, 12);
    join(&w, "s", 30000);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    dv_plan_events events = {.weight = {.key = "s", .weight = 0}};
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    restart(1000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    assert_int_equal(weight_of_s(), 0);
    restart(3000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(w.plan->header.reason, DV_PLAN_WEIGHT);
    assert_int_equal(weight_of_s(), 3000);
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    restart(2000);
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT); /* Set in the same step, it is that. */
    assert_int_equal(weight_of_s(), 0);
    restart(2000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    world_end(&w);
}

/* D15, D36: a plan of an older release does not say what a member was configured with, and a node that only such a plan
 * has told of says nothing either. Then the weight stays, and the next plan says it. */
TEST(test_weights_unsaid) {
    world_begin(&w, 12);
    join(&w, "s", 30000);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    dv_plan_find(w.plan, true, "s")->says_configured = false;
    restart(3000);
    w.live[w.count - 1].says.weight_unknown = true;
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    w.live[w.count - 1].says.weight_unknown = false;
    assert_int_equal(step(&w, NULL), DV_PLAN_NOTHING);
    join_dynamic(&w);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(weight_of_s(), 1000);
    restart(4000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    assert_int_equal(weight_of_s(), 4000);
    world_end(&w);
}

/* D8: the sum leaves out what older releases do not know, so that they come to it too. */
TEST(test_sum) {
    world_begin(&w, 12);
    join(&w, "s", 30000);
    assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
    uint32_t with, without;
    dv_plan_text base;
    assert_int_equal(dv_plan_sum(&with, w.plan), 0);
    assert_int_equal(dv_plan_print_base(&base, w.plan), 0);
    assert_non_null(memmem(base.bytes, base.count, "\"configured\":1000", 17));
    free(base.bytes);
    dv_plan_find(w.plan, true, "s")->says_configured = false;
    assert_int_equal(dv_plan_sum(&without, w.plan), 0);
    assert_int_equal(with, without);
    world_end(&w);
}

/* D10: nodes are read for that only where items that were asked for may go, and not if one is known to be older. */
TEST(test_asks) {
    begin(3);
    dv_plan_node nodes[NODES_MAX];
    bool asks[NODES_MAX];
    dv_plan *next;
    dv_plan_party party = party_of(&w, nodes, false);
    for (size_t n = 0; n < 3; n++) nodes[n].czxid = 0;
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 0);
    dv_plan_set_unref(ask_for(14));
    party = party_of(&w, nodes, false);
    nodes[0].czxid = nodes[2].czxid = 0;
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 0);
    nodes[1].czxid = 0;
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 3);
    assert_int_equal(dv_plan_step(&next, w.plan, &party, NULL), DV_PLAN_ASK);
    nodes[0].tag++;
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 0);
    nodes[0].tag--;
    party.set = NULL; /* an administrator's command, which has no items of its own */
    assert_int_equal(dv_plan_ask(w.plan, &party, asks), 0);
    world_end(&w);
}

/* A writer takes a new configuration into the plan once all live members have it, and not before. */
TEST(test_differs) {
    begin(3);
    dv_plan_node nodes[NODES_MAX];
    dv_plan_party party = party_of(&w, nodes, false);
    assert_false(dv_plan_agree_differs(w.plan, &party));
    dv_plan_set *other = numbered_set("j", 12);
    party.set = other;
    for (size_t n = 0; n < 3; n++) {
        assert_false(dv_plan_agree_differs(w.plan, &party));
        nodes[n].tag = other->crc;
    }
    assert_true(dv_plan_agree_differs(w.plan, &party));
    party.set = NULL; /* an administrator's command */
    assert_false(dv_plan_agree_differs(w.plan, &party));
    for (size_t n = 0; n < 3; n++) {
        assert_false(dv_plan_agree_differs(w.plan, &party));
        nodes[n].options.max_moves = 1;
    }
    assert_true(dv_plan_agree_differs(w.plan, &party));
    dv_plan_set_unref(other);
    world_end(&w);
}

/* D17: the same once nothing else is to be written: a writer that is configured with other items has written of the
 * new party. The request is renewed. */
TEST(test_asked_again_later) {
    begin(2);
    dv_plan_set *asked = ask_for(14), *own = w.set, *other = numbered_set("x", 3);
    const dv_plan_events events = {.set = asked};
    for (size_t n = 0; n < 2; n++) {
        replace_first();
        w.set = other;
        assert_int_equal(step(&w, NULL), DV_PLAN_NEXT);
        w.set = own;
    }
    assert_int_equal(w.plan->set->count, 14);
    assert_int_equal(step(&w, &events), DV_PLAN_NEXT);
    assert_int_equal(w.plan->set->count, 14);
    assert_int_equal(w.plan->header.asked, w.plan->header.pzxid);
    dv_plan_set_unref(asked);
    dv_plan_set_unref(other);
    world_end(&w);
}

/* D17: a plan whose party is not older than its node comes from another ensemble. There the request counts from now. */
TEST(test_asked_in_another_ensemble) {
    dv_plan_node nodes[NODES_MAX];
    begin(2);
    dv_plan_set_unref(ask_for(20));
    join_dynamic(&w);
    const dv_plan_party party = party_of(&w, nodes, false);
    assert_true(party.pzxid > w.plan->header.asked);
    w.plan->mzxid = w.plan->header.pzxid + 1;
    assert_int_equal(dv_plan_asked_at(w.plan, &party), w.plan->header.asked);
    w.plan->mzxid = w.plan->header.pzxid;
    assert_int_equal(dv_plan_asked_at(w.plan, &party), party.pzxid);
    world_end(&w);
}
