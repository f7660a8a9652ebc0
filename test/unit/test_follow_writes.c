/* Tests of when a follower writes, and of what it waits for. Its host is the test. SPDX-License-Identifier: Apache-2.0
 */
#include "follow/follower.h"
#include "follow_fixture.h"

static int32_t version(void) {
    return stat_of(ROOT).version;
}

static divvy_stats stats_of(const member_host *h) {
    divvy_stats stats;
    assert_int_equal(divvy_client_stats(h->client, &stats, sizeof stats), 0);
    return stats;
}

/* Opens a pool that has its first plan, and moves so many items at a time. */
static void open_slow_pool(size_t items, unsigned members, uint32_t max_moves) {
    open_pool(items, members);
    dv_roster_party(users[0].roster)->options = (dv_plan_options){.max_moves = max_moves, .round_timeout_ms = 60000};
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
}

/* ---- attempts ---- */

/* D23: where somebody has deleted a node of the plan, it is written again, though the party wants no other. */
TEST(test_plan_lacks_node) {
    member_host h;
    char epoch[256];
    open_pool(4, 1);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    follow(&h, member(0), "m0");
    int32_t before = version();
    snprintf(epoch, sizeof epoch, ROOT "/%s", users[0].memory.plan->header.epoch);
    put_away(epoch);
    divvy_testing_run(ensemble, 61000);
    assert_true(version() > before);
    assert_int_equal(child_count(), 1);
    end(&h);
    close_pool();
}

/* D37: a writer that finds another party than the one that settled waits for that to settle. */
TEST(test_unsettled) {
    member_host h;
    open_pool(4, 1);
    begin(&h, &users[1], member(0), "m0", false);
    join(member(1), "{}");
    assert_true(give_party(&h, true));
    divvy_testing_run(ensemble, 1000);
    assert_false(is_there(ROOT));
    divvy_stats before = stats_of(&h);
    divvy_testing_run(ensemble, 5000);
    assert_int_equal(stats_of(&h).reads, before.reads);
    h.pzxid = stat_of(PARTY).pzxid;
    assert_true(give_party(&h, true));
    assert_true(h.is_settled);
    STEP_UNTIL(h.generation > 0);
    assert_false(h.is_settled); /* Its own plan is a change as another's is. */
    end(&h);
    close_pool();
}

/* A leave that was refused while its plan was being written has ended, and the plan does not end it again. */
TEST(test_refused_while_writing) {
    member_host h;
    open_pool(9, 3);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    follow(&h, member(2), "m2");
    int32_t before = version();
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, true, dv_client_now(h.client))));
    assert_false(give_party(&h, false));
    assert_int_equal(h.lefts, 1);
    STEP_UNTIL(version() > before);
    divvy_testing_run(ensemble, 1000);
    assert_int_equal(h.lefts, 1);
    assert_int_equal(h.left_error, DIVVY_ESTATE);
    end(&h);
    close_pool();
}

/* Loads that are told before there is a plan wait for one: a root that only holds its place is none. */
TEST(test_loads_before_plan) {
    member_host h;
    dv_plan_text text;
    open_pool(4, 1);
    dv_plan *place = dv_plan_make(dv_plan_set_make(NULL, 0));
    strcpy(place->header.guid, "00000000001aaaaaaaaaaa7");
    strcpy(place->header.epoch, "00000000001aaaaaaaaaaa1");
    print_whole(&text, place);
    put_data(ROOT, text.bytes, text.count);
    begin(&h, &users[1], member(0), "m0", false);
    divvy_testing_run(ensemble, 1000);
    assert_true(give_party(&h, true));
    WITH_LOCK(dv_follow_report_loads(h.f, dv_client_now(h.client)));
    STEP_UNTIL(h.generation > 0);
    end(&h);
    free(text.bytes);
    dv_plan_free(place);
    close_pool();
}

/* ---- rounds ---- */

/* D42: of static members with two live nodes both are read, one member after the other, and nobody else. Until their
 * locks are seen the round goes on, for a minute. */
TEST(test_round_to_static_members) {
    member_host h;
    open_slow_pool(12, 2, 2);
    for (unsigned n = 0; n < 4; n++) {
        char node[64];
        snprintf(node, sizeof node, "0000000000%u0000000000%u1,a=2,s=%08x-w%u", n + 3, n + 3, users[0].set->crc, n / 2);
        join(node, STATIC_DATA);
    }
    settle(&users[0]);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(users[0].memory.plan->moved_count, 2);
    begin(&h, &users[1], member(0), "m0", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation == 2);
    int32_t before = version();
    divvy_stats then = stats_of(&h);
    divvy_testing_run(ensemble, 1000);
    divvy_stats now = stats_of(&h);
    assert_int_equal(now.gets - then.gets, 4);
    assert_int_equal(now.children - then.children, 1 + 2); /* once the first is known, and once both are */
    divvy_testing_run(ensemble, 58000);
    assert_int_equal(version(), before);
    STEP_UNTIL(h.generation == 3);
    end(&h);
    close_pool();
}

/* D37, D42: static members that have lost their place to another of their identifier do not watch rounds. However many
 * they are, those behind them do. */
TEST(test_round_of_fenced_members) {
    enum { NAMESAKES = 4 };
    member_host hosts[2];
    char last[64];
    open_slow_pool(12, 2, 2);
    for (unsigned n = 0; n < NAMESAKES; n++) {
        snprintf(last, sizeof last, "0000000000%u0000000000%u1,a=2,s=%08x-a", n + 3, n + 3, users[0].set->crc);
        join(last, STATIC_DATA);
    }
    settle(&users[0]);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    assert_int_equal(users[0].memory.plan->moved_count, 2);
    begin(&hosts[0], &users[0], last, "a", true);
    begin(&hosts[1], &users[1], member(0), "m0", false);
    for (size_t i = 0; i < 2; i++) assert_true(give_party(&hosts[i], true));
    STEP_UNTIL(hosts[0].generation == 2 && hosts[1].generation == 2);
    for (size_t i = 0; i < 2; i++) {
        member_host h = hosts[i];
        WITH_LOCK(assert_int_equal(dv_follow_rank_of(h.f), i));
    }
    divvy_testing_run(ensemble, 59000);
    STEP_UNTIL(hosts[0].generation == 3);
    for (size_t i = 0; i < 2; i++) end(&hosts[i]);
    close_pool();
}

static member_host *hears;

static void hear_again(dv_listener *listener, dv_session_event event, int64_t now) {
    (void)listener;
    if (event == DV_SESSION_AGAIN) dv_follow_connected(hears->f, now);
}

/* D42: a round ends in time also where memory was short as it was to be watched. */
TEST(test_round_scarce) {
    bool failed = true;
    for (long failures = 0; failed; failures++) {
        member_host h;
        dv_listener listener = {.hear = hear_again};
        open_slow_pool(9, 2, 1);
        join(member(2), "{}");
        settle(&users[0]);
        assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
        begin(&h, &users[1], member(1), "m1", false);
        assert_true(give_party(&h, true));
        STEP_UNTIL(h.generation == 2);
        assert_false(give_party(&h, false)); /* so that the round is not watched */
        hears = &h;
        WITH_LOCK(dv_listen(h.client, &listener));
        divvy_strings *names = divvy_testing_children(ensemble, PARTY);
        const char *nodes[8];
        for (size_t i = 0; i < divvy_strings_count(names); i++) nodes[i] = divvy_strings_get(names, i);
        const dv_follow_party party = {nodes, divvy_strings_count(names), h.node, h.pzxid, true};
        dv_client_lock(h.client);
        scarce_after = failures;
        dv_follow_settled(h.f, &party, dv_client_now(h.client));
        failed = scarce_after < 0;
        scarce_after = -1;
        dv_client_unlock(h.client);
        divvy_strings_free(names);
        divvy_testing_run(ensemble, 60000);
        if (h.failures == 0) STEP_UNTIL(h.generation == 3);
        WITH_LOCK(dv_unlisten(h.client, &listener));
        end(&h);
        close_pool();
    }
}

/* D13: an absence ends in time also where memory was short as it was noted. */
TEST(test_absence_scarce) {
    bool failed = true;
    for (long failures = 0; failed; failures++) {
        member_host h;
        dv_listener listener = {.hear = hear_again};
        char away[64];
        open_slow_pool(9, 1, 0);
        snprintf(away, sizeof away, "00000000003000000000031,a=2,s=%08x-a", users[0].set->crc);
        join(away, STATIC_DATA);
        settle(&users[0]);
        assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
        part(away);
        settle(&users[0]);
        assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
        follow(&h, member(0), "m0");
        hears = &h;
        dv_client_lock(h.client);
        dv_listen(h.client, &listener);
        int64_t now = dv_client_now(h.client);
        dv_follow_stop_absences(h.f);
        dv_follow_free_absences(h.f);
        h.f->absences = (dv_follow_absences){0};
        scarce_after = failures;
        dv_follow_note_absences(h.f, now);
        failed = scarce_after < 0;
        scarce_after = -1;
        dv_client_unlock(h.client);
        divvy_testing_run(ensemble, 29000);
        assert_int_equal(h.generation, 3);
        STEP_UNTIL(h.generation == 4);
        WITH_LOCK(dv_unlisten(h.client, &listener));
        end(&h);
        close_pool();
    }
}

/* D37: where a plan that is not ours has three members leave by the node of one, only that one is left out. */
TEST(test_rank_in_hostile_plan) {
    member_host h;
    dv_plan_text text;
    open_slow_pool(9, 3, 1);
    dv_plan *plan = users[0].memory.plan;
    for (size_t m = 0; m < plan->member_count; m++) {
        free(plan->members[m].leaving);
        plan->members[m].leaving = strdup(member(0));
    }
    print_whole(&text, plan);
    put_data(ROOT, text.bytes, text.count);
    begin(&h, &users[1], member(1), "m1", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation > 0);
    assert_string_equal(h.f->memory.plan->members[2].leaving, member(0));
    WITH_LOCK(assert_int_equal(dv_follow_rank_of(h.f), 0));
    end(&h);
    free(text.bytes);
    close_pool();
}

/* D37: the end of a round is an event of its own: the second in the row leaves the first one 100 ms, whatever it has
 * tried to write before. */
TEST(test_rank_after_round) {
    enum { NOAUTH = -102 };
    member_host h;
    open_slow_pool(9, 2, 1);
    join(member(2), "{}");
    settle(&users[0]);
    assert_int_equal(attempt(&users[0]), DV_PLAN_WRITTEN);
    begin(&h, &users[1], member(1), "m1", false);
    assert_true(give_party(&h, true));
    STEP_UNTIL(h.generation == 2);
    int64_t since = divvy_testing_now_ms(ensemble);
    int32_t before = version();
    assert_int_equal(divvy_testing_answer(ensemble, h.client, NOAUTH, 0, 0, 1000), 0);
    WITH_LOCK(assert_true(dv_follow_request_leave(h.f, true, dv_client_now(h.client))));
    STEP_UNTIL(h.lefts > 0);
    assert_int_equal(divvy_testing_answer(ensemble, h.client, NOAUTH, 0, 0, 0), 0);
    divvy_testing_run(ensemble, since + 60050 - divvy_testing_now_ms(ensemble));
    assert_int_equal(version(), before);
    divvy_testing_run(ensemble, 100);
    assert_true(version() > before);
    end(&h);
    close_pool();
}
