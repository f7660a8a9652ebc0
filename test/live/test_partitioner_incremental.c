/* Incremental pools: what need not move is never interrupted. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the requests, watches and nodes of a pool as a real server has them when members come and go. */
#include "lib/pool.h"

#include <string.h>

#define BOUNDARY_MS 100

static const dv_test_member_config plain = {.boundary_ms = BOUNDARY_MS};

static int setup_sixty(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "tenant:%zu", 60);
    return 0;
}

/* Returns how many of their items the marked members have had all the while; all of them, or the test fails. */
static size_t count_kept(dv_test_member **members, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) kept += dv_test_member_kept(members[i]);
    return kept;
}

static void mark(dv_test_member **members, size_t count) {
    for (size_t i = 0; i < count; i++) dv_test_member_mark(members[i]);
}

/* Heartbeats come by the clock, and not by what happens to items. */
static divvy_stats stats_without_beats(dv_test_member *m) {
    divvy_stats stats = dv_test_member_stats(m);
    stats.requests -= stats.checks;
    stats.writes -= stats.checks;
    return stats;
}

static uint64_t total_writes(dv_test_member **members, size_t count) {
    uint64_t writes = 0;
    for (size_t i = 0; i < count; i++) writes += stats_without_beats(members[i]).writes;
    return writes;
}

/* A join moves what the newcomer is to have and little else; what stays is in every snapshot with its token, and costs
 * not one write. */
TEST_OF_POOL(test_join_moves_little) {
    enum { BEFORE = 3, SHARE = 15 };
    dv_test_member *members[BEFORE + 1];
    dv_test_pool_add_many(pool, members, 0, BEFORE, &plain);
    dv_test_pool_settle(pool);
    mark(members, BEFORE);
    uint64_t writes = total_writes(members, BEFORE);
    dv_test_pool_add_many(pool, members + BEFORE, BEFORE, 1, &plain);
    dv_test_pool_settle(pool);
    size_t kept = count_kept(members, BEFORE), moved = 60 - kept;
    assert_in_range(moved, SHARE, SHARE * 13 / 10 + 3);
    /* Each item that moved was deleted once by its old owner, and created once by its new one. */
    uint64_t entered = stats_without_beats(members[BEFORE]).writes;
    assert_true(entered >= SHARE + 1);
    assert_true(total_writes(members, BEFORE) - writes <= 2 * moved);
    for (size_t i = 0; i < BEFORE; i++) {
        assert_int_equal(dv_test_member_count(members[i], DV_TEST_STATE, DIVVY_RELEASE), 1);
        assert_int_equal(dv_test_member_load(members[i]), SHARE);
    }
}

/* A leave gives the leaver's items to the others, who keep all of theirs but for what balance demands. */
TEST_OF_POOL(test_leave_moves_only_the_leavers) {
    dv_test_member *members[4];
    dv_test_pool_add_many(pool, members, 0, 4, &plain);
    dv_test_pool_settle(pool);
    mark(members, 3);
    dv_test_member_finish(members[3]);
    dv_test_pool_settle(pool);
    assert_true(count_kept(members, 3) >= 40);
    for (size_t i = 0; i < 3; i++) assert_int_equal(dv_test_member_load(members[i]), 20);
}

/* A member that is killed is replaced likewise, as soon as its session is over; nobody waits for it. */
TEST_OF_POOL(test_crash) {
    dv_test_member *members[4];
    dv_test_pool_add_many(pool, members, 0, 3, &plain);
    dv_test_pool_add_many(pool, members + 3, 3, 1,
                          &(dv_test_member_config){.boundary_ms = BOUNDARY_MS, .proxied = true});
    dv_test_pool_settle(pool);
    mark(members, 3);
    dv_test_member_kill(members[3]);
    dv_test_pool_settle(pool);
    assert_true(count_kept(members, 3) >= 40);
}

/* One that is cut off stops by its own deadline before the servers give its items to others: in no step of ours do two
 * own one item, though nobody has told it anything. */
TEST_OF_POOL(test_cut_off_member_stops_in_time) {
    dv_test_member *members[2];
    dv_test_pool_add_many(pool, members, 0, 1, &plain);
    dv_test_pool_add_many(
        pool, members + 1, 1, 1,
        &(dv_test_member_config){.boundary_ms = BOUNDARY_MS, .proxied = true, .session_timeout_ms = 6000});
    dv_test_pool_settle(pool);
    int64_t cut_ms = dv_test_now_ms(), left_ms = divvy_client_time_left_ms(members[1]->client);
    assert_in_range(left_ms, 1, 6000 - 50); /* docs/protocol.md, C2 */
    dv_test_member_cut(members[1]);
    DV_POOL_UNTIL(pool, dv_test_member_load(members[1]) == 0);
    assert_true(dv_test_now_ms() - cut_ms >= left_ms); /* not sooner than it must */
    DV_POOL_UNTIL(pool, dv_test_member_state(members[1]) == DIVVY_FAILURE);
    assert_int_equal(dv_test_member_load(members[1]), 0);
    assert_string_equal(dv_test_member_share(members[1]), "");
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(members[0]), 60);
}

/* A blip of the connection, shorter than the deadline, loses nothing: no event, no write, the same tokens. */
TEST_OF_POOL(test_blip) {
    dv_test_member *members[2];
    dv_test_pool_add_many(pool, members, 0, 2, &(dv_test_member_config){.boundary_ms = BOUNDARY_MS, .proxied = true});
    dv_test_pool_settle(pool);
    mark(members, 2);
    uint64_t creates = dv_test_member_stats(members[0]).creates, deletes = dv_test_member_stats(members[0]).deletes;
    size_t records = members[0]->record_count;
    dv_test_member_cut(members[0]);
    DV_POOL_UNTIL(pool, divvy_client_state(members[0]->client) == DIVVY_SUSPENDED);
    assert_int_equal(dv_test_member_state(members[0]), DIVVY_ACQUIRED);
    dv_test_proxy_restore(members[0]->proxy);
    DV_POOL_UNTIL(pool, divvy_client_state(members[0]->client) == DIVVY_CONNECTED);
    DV_POOL_UNTIL(pool, dv_test_member_stats(members[0]).in_flight == 0);
    dv_test_pool_settle(pool);
    assert_int_equal(count_kept(members, 2), 60);
    assert_int_equal(members[0]->record_count, records);
    assert_int_equal(dv_test_member_stats(members[0]).creates, creates);
    assert_int_equal(dv_test_member_stats(members[0]).deletes, deletes);
}

/* A change of the party during a blip is seen after it, though the watch's event was lost with the connection. */
TEST_OF_POOL(test_join_during_a_blip) {
    dv_test_member *members[2];
    dv_test_pool_add_many(pool, members, 0, 1, &(dv_test_member_config){.boundary_ms = BOUNDARY_MS, .proxied = true});
    dv_test_pool_settle(pool);
    dv_test_member_cut(members[0]);
    DV_POOL_UNTIL(pool, divvy_client_state(members[0]->client) == DIVVY_SUSPENDED);
    dv_test_pool_add_many(pool, members + 1, 1, 1, &plain);
    DV_POOL_UNTIL(pool,
                  dv_test_member_stats(members[1]).ephemerals == 32); /* it has its note and its places, and waits */
    assert_int_equal(dv_test_member_load(members[0]), 60);
    dv_test_proxy_restore(members[0]->proxy);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(members[1]), 30);
}

/* An old member that does not answer RELEASE keeps its items, and the newcomer has what was given up by others. */
TEST_OF_POOL(test_slow_release_holds_up_only_its_own) {
    dv_test_member *members[3];
    dv_test_member_config patient = plain;
    patient.patient = true;
    dv_test_pool_add_many(pool, members, 0, 1, &plain);
    dv_test_pool_add_many(pool, members + 1, 1, 1, &patient);
    dv_test_pool_settle(pool);
    dv_test_pool_add_many(pool, members + 2, 2, 1, &plain);
    DV_POOL_UNTIL(pool, dv_test_member_state(members[1]) == DIVVY_RELEASE);
    size_t stuck = dv_test_member_count(members[1], DV_TEST_REVOKED, -1);
    assert_in_range(stuck, 1, 19);
    DV_POOL_UNTIL(pool,
                  dv_test_member_load(members[2]) == 20 - stuck && dv_test_member_state(members[0]) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_state(members[2]), DIVVY_ALLOCATING);
    assert_int_equal(dv_test_pool_nodes(pool), 3 + 60 + stuck);
    members[1]->config.patient = false;
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(members[2]), 20);
}

/* A change costs requests for what moves and a few for the party; a pool at rest costs nothing but
 * heartbeats, which are not counted here. */
TEST_OF_POOL(test_requests_are_bounded) {
    enum { PARTY_REQUESTS = 20 };
    dv_test_member *members[3];
    dv_test_pool_add_many(pool, members, 0, 1, &plain);
    dv_test_pool_settle(pool);
    divvy_stats alone = stats_without_beats(members[0]);
    /* Fresh paths: a directory, a place and a list for each item. */
    assert_in_range(alone.creates, 121, 121 + PARTY_REQUESTS);
    assert_true(alone.reads <= 60 + PARTY_REQUESTS);
    dv_test_pool_step_for(pool, 300);
    assert_int_equal(stats_without_beats(members[0]).requests, alone.requests);
    dv_test_pool_add_many(pool, members + 1, 1, 1, &plain);
    dv_test_pool_settle(pool);
    divvy_stats old = stats_without_beats(members[0]), fresh = stats_without_beats(members[1]);
    assert_int_equal(old.deletes - alone.deletes, 30);
    assert_int_equal(old.creates, alone.creates);
    assert_true(old.reads - alone.reads <= PARTY_REQUESTS);
    /* Known paths: one write and at most two reads for an item that is free; here each had to be waited for, which
     * takes a read of the one before us and a second list. */
    assert_in_range(fresh.writes, 31, 31 + PARTY_REQUESTS);
    assert_true(fresh.reads <= 3 * 30 + PARTY_REQUESTS);
    dv_test_member_finish(members[1]);
    dv_test_pool_settle(pool);
    divvy_stats again = stats_without_beats(members[0]);
    /* Nobody has come, and an owner has gone: the directory is made again with the place, and not listed (Q11). */
    assert_int_equal(again.creates - old.creates, 2 * 30);
    assert_true(again.reads - old.reads <= PARTY_REQUESTS);
}

/* Fifty joins and leaves leave no watch, no node and no request behind. */
TEST_OF_POOL(test_watches_do_not_pile_up) {
    dv_test_member *stays = dv_test_pool_add(pool, &(dv_test_member_config){.identifier = "stays"});
    dv_test_pool_settle(pool);
    divvy_stats before = dv_test_member_stats(stays);
    for (int i = 0; i < 50; i++) {
        dv_test_pool_join(pool, "guest,a=1-guest", true);
        DV_POOL_UNTIL(pool, dv_test_member_load(stays) == 30 && dv_test_member_state(stays) == DIVVY_ACQUIRED);
        dv_test_pool_leave(pool, "guest,a=1-guest");
        DV_POOL_UNTIL(pool, dv_test_member_load(stays) == 60 && dv_test_member_state(stays) == DIVVY_ACQUIRED);
    }
    DV_POOL_UNTIL(pool, dv_test_member_stats(stays).in_flight == 0);
    divvy_stats after = dv_test_member_stats(stays);
    assert_int_equal(after.ephemerals, before.ephemerals);
    assert_true(after.ephemeral_path_bytes <= before.ephemeral_path_bytes + 3 * 61); /* longer counters in names */
    assert_true(after.watches <= before.watches);
    assert_true(after.watch_path_bytes <= before.watch_path_bytes);
}

/* Watches on places that were waited for are gone too, however the waiting ended. */
TEST_OF_POOL(test_watches_of_waiting_places) {
    dv_test_member *stays = dv_test_pool_add(pool, &(dv_test_member_config){.identifier = "stays"});
    dv_test_pool_settle(pool);
    uint64_t watches = dv_test_member_stats(stays).watches;
    for (size_t i = 0; i < 8; i++) {
        dv_test_pool_join(pool, "guest,a=1-guest", true);
        DV_POOL_UNTIL(pool, dv_test_member_load(stays) == 30 && dv_test_member_state(stays) == DIVVY_ACQUIRED);
        size_t free_item = 0;
        while (dv_test_member_owns(stays, free_item)) free_item++;
        char *guest_lock = dv_test_pool_block(pool, pool->items[free_item]);
        dv_test_pool_leave(pool, "guest,a=1-guest");
        DV_POOL_UNTIL(pool, dv_test_member_load(stays) == 59);
        if (i % 2) { /* given up before it came */
            dv_test_pool_join(pool, "guest,a=1-guest", true);
            DV_POOL_UNTIL(pool, dv_test_member_load(stays) == 30 && dv_test_member_state(stays) == DIVVY_ACQUIRED);
            dv_test_pool_leave(pool, "guest,a=1-guest");
        }
        dv_test_pool_unblock(pool, guest_lock);
        DV_POOL_UNTIL(pool, dv_test_member_load(stays) == 60 && dv_test_member_state(stays) == DIVVY_ACQUIRED);
    }
    DV_POOL_UNTIL(pool, dv_test_member_stats(stays).in_flight == 0);
    assert_int_equal(dv_test_member_stats(stays).watches, watches);
}

/* Joins and leaves in any order, one after another without waiting, end in a pool that is whole. */
TEST_OF_POOL(test_churn_of_real_members) {
    dv_test_member *members[8];
    dv_test_pool_add_many(pool, members, 0, 2, &plain);
    for (size_t i = 2; i < 8; i++) {
        dv_test_pool_add_many(pool, members + i, i, 1, &plain);
        dv_test_pool_step_for(pool, 60);
        if (i % 2) dv_test_member_destroy(members[i - 2]);
        dv_test_pool_step_for(pool, 60);
    }
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_pool_nodes(pool), 60 + 5);
}

/* The last member to finish removes the lock directories; one before it removes none that is in use. */
TEST_OF_POOL(test_last_leaver_tidies) {
    dv_test_member *members[3];
    dv_test_pool_add_many(pool, members, 0, 3, &plain);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_pool_directories(pool), 60);
    dv_test_member_finish(members[0]);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_pool_directories(pool), 60);
    /* Both at once: neither has taken over what the other leaves. */
    divvy_partitioner_finish(members[1]->partitioner, 0);
    dv_test_member_finish(members[2]);
    dv_test_member_finish(members[1]);
    DV_POOL_UNTIL(pool, dv_test_pool_directories(pool) == 0);
    /* And members that come then find no obstacle. */
    dv_test_pool_add_many(pool, members, 9, 1, &plain);
    dv_test_pool_settle(pool);
}

/* A directory in which somebody else has a node is left alone. */
TEST_OF_POOL(test_tidying_spares_what_is_not_ours) {
    dv_test_member *m = dv_test_pool_add(pool, &plain);
    dv_test_pool_settle(pool);
    char *foreign = dv_test_pool_block(pool, "tenant:7");
    dv_test_member_finish(m);
    DV_POOL_UNTIL(pool, dv_test_pool_directories(pool) == 1);
    assert_int_equal(dv_test_pool_queue_length(pool, "tenant:7"), 1);
    dv_test_pool_unblock(pool, foreign);
}

TEST_EACH(setup_sixty, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
