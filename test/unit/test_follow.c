/* Tests of follow/follow.h without a partitioner: its host is the test. SPDX-License-Identifier: Apache-2.0 */
#include "follow_fixture.h"

/* ---- what is ours ---- */

/* Before a plan was read what names gave is kept; then the plan's items are ours, and it agrees. Nothing is written,
 * since the plan is what the party wants. */
TEST(test_target) {
    member_host h;
    open_pool(9, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    int32_t version = stat_of(ROOT).version;
    begin(&h, &users[1], member(1), "m1", false);
    assert_true(give_party(&h, true));
    assert_int_equal(h.targets, 1);
    assert_int_equal(h.source, DV_FOLLOW_KEEP);
    assert_true(h.is_settled);
    assert_false(dv_follow_agrees(h.f));
    STEP_UNTIL(h.generation > 0);
    assert_int_equal(h.source, DV_FOLLOW_PLAN);
    assert_int_equal(h.generation, 1);
    assert_int_equal(h.other_plans, 1);
    assert_int_equal(h.reason, DIVVY_REASON_MEMBERS);
    assert_false(h.is_settled);
    assert_string_equal(h.mine, items_of(users[0].memory.plan, member(1)));
    assert_int_equal(strlen(h.mine), 2 * 3);
    assert_true(dv_follow_agrees(h.f));
    assert_false(dv_follow_names_decide(h.f));
    assert_true(dv_follow_is_dynamic(h.f, member(2)));
    assert_true(give_party(&h, true));
    assert_int_equal(h.other_plans, 1);
    divvy_testing_run(ensemble, 10000);
    assert_int_equal(stat_of(ROOT).version, version);
    assert_int_equal(h.failures + h.lefts + h.no_plans, 0);
    end(&h);
    assert_int_equal(h.no_plans, 1);
    close_pool();
}

/* The owners of a target are the live nodes by the plan: the only member has the first item. */
TEST(test_owners) {
    member_host h;
    open_pool(4, 1);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    follow(&h, member(0), "m0");
    assert_true(h.has_owners);
    assert_string_equal(h.now, member(0));
    end(&h);
    close_pool();
}

/* D12: of two live nodes of a static member the one whose process came last has its items. A member that shows any of
 * these reads which one that is, and not what the plan says of others. */
TEST(test_next_owner) {
    member_host h;
    char single[64], first[64], second[64];
    open_pool(4, 1);
    snprintf(single, sizeof single, "00000000001000000000011,a=2,s=%08x-v", users[0].set->crc);
    snprintf(first, sizeof first, "00000000003000000000031,a=2,s=%08x-w", users[0].set->crc);
    snprintf(second, sizeof second, "00000000002000000000021,a=2,s=%08x-w", users[0].set->crc);
    join(single, STATIC_DATA);
    join(first, STATIC_DATA);
    join(second, STATIC_DATA);
    settle(&users[0]);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    users[0].events.weight = (dv_plan_weight){member(0), 0};
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    const dv_plan *plan = users[0].memory.plan;
    begin(&h, &users[1], member(0), "m0", false);
    while (plan->owners[h.at] != dv_plan_find(plan, true, "w")->slot) h.at++;
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation == 2);
    divvy_testing_run(ensemble, 1000);
    assert_string_equal(h.now, first); /* It is not read as long as we show nothing. */
    h.shows = true;
    assert_true(give_party(&h, true));
    STEP_UNTIL(strcmp(h.now, second) == 0);
    end(&h);
    close_pool();
}

/* Where there is no plan, the member of the party writes the first one, and is the first of its writers. */
TEST(test_first_plan) {
    member_host h;
    open_pool(4, 1);
    follow(&h, member(0), "m0");
    assert_string_equal(h.mine, "1 2 3 4 ");
    WITH_LOCK(assert_true(dv_follow_is_first_of(h.f, users[1].set)));
    assert_true(is_there(ROOT));
    end(&h);
    close_pool();
}

/* One that is stopped while it writes the first plan writes nothing more. */
TEST(test_stop_while_writing) {
    member_host h;
    open_pool(4, 1);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.under_way == 2); /* the reader, and the writer that has begun */
    assert_false(is_there(ROOT));
    end(&h);
    assert_false(is_there(ROOT));
    close_pool();
}

/* D10: a first plan leaves the items where names have put them. */
TEST(test_first_plan_after_names) {
    member_host h;
    open_pool(4, 2);
    begin(&h, &users[1], member(0), "m0", false);
    const char *const nodes[] = {member(0)};
    uint32_t *owners = calloc(4, sizeof *owners);
    owners[0] = owners[3] = 1; /* nobody whom the follower knows */
    assert_non_null(owners);
    WITH_LOCK(dv_follow_remember(h.f, nodes, 1, owners, users[1].set));
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_string_equal(h.mine, "2 3 ");
    end(&h);
    close_pool();
}

/* D38: a static member whose identifier a later process has is told so, has nothing, and does not agree. */
TEST(test_fenced) {
    member_host h;
    open_pool(4, 0);
    char first[64], second[64];
    snprintf(first, sizeof first, "00000000001000000000011,a=2,s=%08x-w", users[0].set->crc);
    snprintf(second, sizeof second, "00000000002000000000021,a=2,s=%08x-w", users[0].set->crc);
    join(first, STATIC_DATA);
    begin(&h, &users[1], first, "w", true);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_string_equal(h.mine, "1 2 3 4 ");
    assert_false(dv_follow_is_replaced(h.f));
    join(second, STATIC_DATA);
    h.pzxid = stat_of(PARTY).pzxid;
    assert_true(give_party(&h, true));
    STEP_UNTIL(dv_follow_is_replaced(h.f));
    assert_int_equal(h.source, DV_FOLLOW_PLAN); /* T9: it hands over by it */
    assert_string_equal(h.mine, "");
    assert_false(dv_follow_agrees(h.f));
    assert_int_equal(h.warnings[DIVVY_WARN_FENCED], 1);
    end(&h);
    close_pool();
}

/* D38: a member that cannot read what it needs to know whether it is fenced has nothing, and asks again. */
TEST(test_fence_asked_again) {
    member_host h;
    open_pool(4, 0);
    char first[64], second[64];
    snprintf(first, sizeof first, "00000000001000000000011,a=2,s=%08x-w", users[0].set->crc);
    snprintf(second, sizeof second, "00000000002000000000021,a=2,s=%08x-w", users[0].set->crc);
    join(first, STATIC_DATA);
    join(second, STATIC_DATA);
    begin(&h, &users[1], first, "w", true);
    STEP_UNTIL(h.under_way == 1 && dv_client_connected(h.client));
    divvy_testing_run(ensemble, 1000);
    assert_int_equal(divvy_testing_link_client(ensemble, h.client, DIVVY_TESTING_LINK_DOWN), 0);
    assert_true(give_party(&h, true));
    STEP_UNTIL(!dv_client_connected(h.client));
    assert_false(dv_follow_is_replaced(h.f));
    assert_int_equal(divvy_testing_link_client(ensemble, h.client, DIVVY_TESTING_LINK_UP), 0);
    STEP_UNTIL(dv_client_connected(h.client));
    WITH_LOCK(dv_follow_connected(h.f, dv_client_now(h.client)));
    STEP_UNTIL(dv_follow_is_replaced(h.f));
    end(&h);
    close_pool();
}

/* D38: where memory is short while that is asked, it is asked again, and then the member is told what is its own. */
TEST(test_fence_scarce) {
    member_host h;
    open_pool(4, 0);
    char node[64];
    snprintf(node, sizeof node, "00000000001000000000011,a=2,s=%08x-w", users[0].set->crc);
    join(node, STATIC_DATA);
    const char *nodes[] = {node};
    const dv_follow_party party = {nodes, 1, node, stat_of(PARTY).pzxid, true};
    bool failed = true;
    for (long failures = 0; failed; failures++) {
        begin(&h, &users[1], node, "w", true);
        assert_true(give_party(&h, true));
        STEP_UNTIL(h.generation > 0);
        size_t targets = h.targets;
        dv_client_lock(h.client);
        scarce_after = failures;
        dv_follow_settled(h.f, &party, dv_client_now(h.client));
        failed = scarce_after < 0;
        scarce_after = -1;
        dv_client_unlock(h.client);
        if (h.failures == 0) STEP_UNTIL(h.targets > targets);
        end(&h);
    }
    close_pool();
}

/* A plan of a later release gives nothing to anybody. */
TEST(test_newer) {
    member_host h;
    open_pool(4, 1);
    put_text(ROOT, "{\"v\":2,\"more\":[]}");
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.targets > 1);
    assert_int_equal(h.source, DV_FOLLOW_NOTHING);
    assert_int_equal(h.generation, 0);
    assert_false(dv_follow_agrees(h.f));
    end(&h);
    close_pool();
}

/* Nobody can follow a broken plan: names decide, until the follower has written a new one. */
TEST(test_broken) {
    member_host h;
    open_pool(4, 1);
    put_text(ROOT, "no plan");
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.targets > 1);
    assert_int_equal(h.source, DV_FOLLOW_NAMES);
    assert_true(dv_follow_agrees(h.f));
    STEP_UNTIL(h.source == DV_FOLLOW_PLAN);
    assert_string_equal(h.mine, "1 2 3 4 ");
    end(&h);
    close_pool();
}

/* ---- requests ---- */

/* A leave is fulfilled by a plan that has the mark of our node; a member that works on agrees with it. */
TEST(test_leave) {
    member_host h;
    open_pool(9, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    follow(&h, member(2), "m2");
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, true, dv_client_now(h.client))));
    assert_int_equal(h.lefts, 0);
    STEP_UNTIL(h.lefts > 0);
    assert_int_equal(h.left_error, 0);
    refresh(&users[0]);
    assert_string_equal(dv_plan_find(users[0].memory.plan, false, member(2))->leaving, member(2));
    STEP_UNTIL(h.generation == 2);
    assert_int_equal(h.reason, DIVVY_REASON_LEAVE);
    assert_string_equal(h.mine, "");
    assert_true(dv_follow_agrees(h.f));
    end(&h);
    assert_int_equal(h.lefts, 1);
    close_pool();
}

/* A leave whose plan may not be written ends with that error, and the user is warned. */
TEST(test_leave_denied) {
    enum { NOAUTH = -102 };
    member_host h;
    open_pool(9, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    follow(&h, member(2), "m2");
    assert_int_equal(divvy_testing_answer(ensemble, users[1].client, NOAUTH, 0, 0, 1000), 0);
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, true, dv_client_now(h.client))));
    STEP_UNTIL(h.lefts > 0);
    assert_int_equal(h.left_error, DIVVY_EACCES);
    assert_int_equal(h.warnings[DIVVY_WARN_PLAN], 1);
    assert_int_equal(divvy_testing_answer(ensemble, users[1].client, NOAUTH, 0, 0, 0), 0);
    end(&h);
    close_pool();
}

/* There is no place to give up before a party has settled; and none where names decide, which ends a leave, too. */
TEST(test_leave_without_plan) {
    member_host h;
    open_pool(4, 2);
    begin(&h, &users[1], member(0), "m0", false);
    WITH_LOCK(assert_false(dv_follow_request_leave(h.f, false, dv_client_now(h.client))));
    assert_true(give_party(&h, true));
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, false, dv_client_now(h.client))));
    assert_false(give_party(&h, false));
    assert_true(dv_follow_names_decide(h.f));
    assert_true(dv_follow_agrees(h.f));
    assert_int_equal(h.no_plans, 1);
    assert_int_equal(h.lefts, 1);
    assert_int_equal(h.left_error, DIVVY_ESTATE);
    end(&h);
    close_pool();
}

/* A weight that is requested is the plan's. */
TEST(test_weight) {
    member_host h;
    open_pool(9, 2);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    begin(&h, &users[1], member(1), "m1", false);
    assert_true(give_party(&h, true));
    WITH_LOCK(dv_follow_request_weight(h.f, 500, dv_client_now(h.client)));
    STEP_UNTIL(h.generation == 2);
    assert_int_equal(h.reason, DIVVY_REASON_WEIGHT);
    assert_int_equal(strlen(h.mine), 2 * 3);
    end(&h);
    close_pool();
}

/* The warning of other items names those that only the plan has, or only the member. */
TEST(test_items_differ) {
    static const size_t counts[] = {6, 3};
    static const char *const texts[] = {
        "/p: the pool divides 6 items, and m0 was configured with 4: 2 only in the pool (\"item-000005\", "
        "\"item-000006\"); 0 only configured. ",
        "/p: the pool divides 3 items, and m0 was configured with 4: 0 only in the pool; 1 only configured "
        "(\"item-000004\"). "};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        member_host h;
        open_pool(4, 1);
        dv_plan_set *set = numbered_set("item-", counts[i]);
        users[0].events.set = set;
        dv_roster_party(users[0].roster)->options.round_timeout_ms = 60000;
        assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
        begin(&h, &users[1], member(0), "m0", false);
        assert_true(give_party(&h, true));
        STEP_UNTIL(h.generation > 0);
        assert_int_equal(h.warnings[DIVVY_WARN_ITEMS_DIFFER], 1);
        assert_memory_equal(h.text, texts[i], strlen(texts[i]));
        end(&h);
        dv_plan_set_unref(set);
        close_pool();
    }
}

/* Other items that are requested are the plan's. They are not warned of, since our user knows them. */
TEST(test_set) {
    member_host h;
    open_pool(4, 1);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    dv_plan_set *set = numbered_set("item-", 6);
    WITH_LOCK(dv_follow_request_set(h.f, set, dv_client_now(h.client)));
    STEP_UNTIL(h.generation > 0 && strlen(h.mine) == 2 * 6);
    assert_int_equal(h.warnings[DIVVY_WARN_ITEMS_DIFFER], 0);
    end(&h);
    dv_plan_set_unref(set);
    close_pool();
}

/* ---- failures ---- */

/* Whatever allocation fails, no follower is made. */
TEST(test_scarce_new) {
    member_host h;
    int failures = 0;
    open_pool(4, 1);
    for (bool failed = true; failed; failures++) {
        scarce_after = failures;
        h.f = make(&h, &users[1], "m0", false);
        failed = scarce_after < 0;
        scarce_after = -1;
        assert_true(failed == !h.f);
    }
    assert_true(failures > 3);
    dv_follow_free(h.f);
    close_pool();
}

/* A plan that may not be read ends the member, with the path that it concerns. */
TEST(test_denied) {
    enum { NOAUTH = -102 };
    member_host h;
    open_pool(4, 1);
    assert_int_equal(divvy_testing_answer(ensemble, users[1].client, NOAUTH, 0, 0, 1000), 0);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.failures > 0);
    assert_int_equal(h.error, DIVVY_EACCES);
    assert_int_equal(h.failure_reason, DIVVY_REASON_DENIED);
    assert_non_null(strstr(h.text, "/p/plan cannot be read"));
    assert_int_equal(h.no_plans, 1);
    end(&h);
    assert_int_equal(h.failures, 1);
    assert_int_equal(divvy_testing_answer(ensemble, users[1].client, NOAUTH, 0, 0, 0), 0);
    close_pool();
}
