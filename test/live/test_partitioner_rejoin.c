/* A session that is lost, with DIVVY_REJOIN: the same partitioner goes on, on the next one.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows one session after the other with the native client, which opens a new handle for each. */
#include "lib/pool.h"

#include <stdint.h>
#include <string.h>

static dv_test_member *add(dv_test_pool *pool, dv_test_member_config config) {
    config.rejoins = config.proxied = true;
    return dv_test_pool_add(pool, &config);
}

/* The session is over, and the member, which answers no RELEASE, has heard of it. */
static void lose_session(dv_test_member *m) {
    int64_t session = divvy_client_session_id(m->client);
    dv_test_member_expire(m);
    DV_POOL_UNTIL(m->pool,
                  divvy_client_state(m->client) == DIVVY_CONNECTED && divvy_client_session_id(m->client) != session);
}

/* Nothing is owned nor shown, and each of the `count` items that were has been told as lost, with the reason. */
static void check_all_lost(dv_test_member *m, size_t count) {
    assert_int_equal(dv_test_member_load(m), 0);
    assert_string_equal(dv_test_member_share(m), "");
    dv_test_member_drain(m);
    assert_int_equal(dv_test_member_count(m, DV_TEST_LOST, -1), count);
    for (size_t i = 0; i < m->record_count; i++)
        if (m->records[i].kind == DV_TEST_LOST) assert_int_equal(m->records[i].reason, DIVVY_REASON_SESSION);
}

static int release(dv_test_member *m) {
    return divvy_partitioner_release_set(m->partitioner);
}

static void remember_tokens(dv_test_member *m, int64_t *tokens) {
    for (size_t i = 0; i < m->item_count; i++) tokens[i] = dv_test_member_token(m, i);
}

/* S3: an item that is owned again has a larger token than it had. */
static void check_tokens_grew(dv_test_member *m, const int64_t *tokens) {
    for (size_t i = 0; i < m->item_count; i++)
        if (dv_test_member_owns(m, i)) assert_true(dv_test_member_token(m, i) > tokens[i]);
}

/* ---- one member ---- */

/* Expired, a member is in RELEASE with all items lost, whatever session it has by then; it asks for nothing before the
 * user has released, and then gets all of them on the new session, with larger tokens. */
TEST_OF_POOL(test_expired) {
    int64_t tokens[10];
    dv_test_member *m = add(pool, (dv_test_member_config){.patient = true});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    remember_tokens(m, tokens);
    uint64_t id = divvy_partitioner_state_id(m->partitioner);
    lose_session(m);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_true(divvy_partitioner_state_id(m->partitioner) > id);
    check_all_lost(m, 10);
    dv_test_pool_step_for(pool, 300);
    assert_int_equal(dv_test_pool_nodes(pool), 0); /* not even in the party */
    assert_int_equal(dv_test_member_stats(m).ephemerals, 0);
    assert_int_equal(release(m), 0);
    assert_int_equal(dv_test_member_state(m), DIVVY_ALLOCATING);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(m), 10);
    check_tokens_grew(m, tokens);
    assert_int_equal(dv_test_pool_nodes(pool), 1 + 10);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
    assert_int_equal(dv_test_member_count(m, DV_TEST_WARNING, -1), 0);
}

/* Returns whether the member owns nothing. It must not own anything after the servers have dropped one of its nodes. */
static bool owns_nothing_in_time(dv_test_pool *pool, dv_test_member *m) {
    if (dv_test_pool_nodes(pool) < 1 + 10) assert_int_equal(dv_test_member_load(m), 0);
    return dv_test_member_load(m) == 0;
}

/* Cut off, it has lost its items by its own clock, before the servers drop its nodes; released without a link, it takes
 * part again when there is one, and does not take its own nodes of the old session for its new ones. */
TEST_OF_POOL(test_past_the_deadline) {
    int64_t tokens[10];
    dv_test_member *m =
        add(pool,
            (dv_test_member_config){.patient = true, .session_timeout_ms = 6000, .ensemble_tick_ms = DV_TEST_TICK_MS});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    remember_tokens(m, tokens);
    int64_t session = divvy_client_session_id(m->client);
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, owns_nothing_in_time(pool, m));
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    check_all_lost(m, 10);
    assert_int_equal(release(m), 0);
    assert_int_equal(dv_test_member_state(m), DIVVY_ALLOCATING);
    dv_test_proxy_restore(m->proxy);
    dv_test_pool_settle(pool);
    assert_int_not_equal(divvy_client_session_id(m->client), session);
    check_tokens_grew(m, tokens);
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 1 + 10);
    /* Its old self may have been in the party for a while yet: then it was ACQUIRED with a part before it had all. */
    assert_int_equal(dv_test_member_count(m, DV_TEST_STATE, DIVVY_RELEASE), 1);
    assert_int_equal(dv_test_member_count(m, DV_TEST_STATE, DIVVY_FAILURE), 0);
}

/* A member that waits for its last item goes through the same, and one in the middle of a RELEASE through another of a
 * new number, which the answer to the first does not acknowledge. */
TEST_OF_POOL(test_lost_in_other_states) {
    char *foreign = dv_test_pool_block(pool, "item-9");
    dv_test_member *m = add(pool, (dv_test_member_config){.patient = true, .silent = true, .func = dv_test_pool_func});
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 9);
    lose_session(m); /* in ALLOCATING */
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_string_equal(dv_test_member_share(m), "");
    assert_int_equal(release(m), 0);
    dv_test_pool_unblock(pool, foreign);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_set_target(pool, "1111100000");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    uint64_t id = divvy_partitioner_state_id(m->partitioner);
    lose_session(m);                            /* in RELEASE */
    assert_int_equal(release(m), DIVVY_ESTATE); /* Nobody was told that all are gone. */
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, id), DIVVY_ESTATE);
    assert_true(divvy_partitioner_state_id(m->partitioner) > id);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_string_equal(dv_test_member_share(m), "");
    assert_int_equal(release(m), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_load(m), 5);
    assert_int_equal(dv_test_pool_nodes(pool), 1 + 5);
}

/* Sessions may go one after the other: before the user has released, and while the new share is being acquired. */
TEST_OF_POOL(test_lost_again) {
    dv_test_member *m = add(pool, (dv_test_member_config){.patient = true});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    lose_session(m);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    uint64_t id = divvy_partitioner_state_id(m->partitioner);
    lose_session(m);
    assert_int_equal(divvy_partitioner_release_set_id(m->partitioner, id), DIVVY_ESTATE);
    check_all_lost(m, 10); /* each of them once */
    assert_int_equal(release(m), 0);
    for (size_t steps = 0; steps < 12; steps++) {
        for (size_t i = 0; i < steps; i++) {
            if (!dv_test_member_step(m)) dv_test_sleep_ms(1);
        }
        lose_session(m);
        DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
        assert_int_equal(release(m), 0);
    }
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_pool_nodes(pool), 1 + 10);
    assert_int_equal(dv_test_member_stats(m).ephemerals, 2 + 10); /* a note besides */
    assert_int_equal(dv_test_member_count(m, DV_TEST_WARNING, -1), 0);
}

/* A member of kazoo's kind that rejoins shows nothing of the new share before it is complete. */
TEST_OF_POOL(test_eager) {
    int64_t tokens[10];
    dv_test_member *m = add(pool, (dv_test_member_config){.patient = true, .kazoo = true});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    remember_tokens(m, tokens);
    dv_test_member_expire(m);
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_LOST, -1) == 10);
    m->config.patient = false; /* its policy answers each event of the session with a RELEASE */
    char *foreign = dv_test_pool_block(pool, "item-3");
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 1 + 10);
    dv_test_pool_step_for(pool, 100);
    assert_int_equal(dv_test_member_load(m), 0);
    dv_test_pool_unblock(pool, foreign);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(m), 10);
    check_tokens_grew(m, tokens);
}

/* finish() says that nodes were left to the servers to delete while that is so, and not when it takes part again. */
TEST_OF_POOL(test_finish) {
    for (int released = 0; released <= 1; released++) {
        dv_test_member *m = add(pool, (dv_test_member_config){.patient = true});
        DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
        lose_session(m);
        assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
        if (released) {
            assert_int_equal(release(m), 0);
            DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
            dv_test_member_finish(m);
        } else {
            assert_int_equal(divvy_partitioner_finish(m->partitioner, 0), DIVVY_ELOST);
            assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
            assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ECANCELED);
        }
        assert_int_equal(dv_test_pool_nodes(pool), 0);
        dv_test_member_destroy(m);
    }
}

/* finish() and destroy() end it at any point of the way to the next session, and leave nothing there. */
TEST_OF_POOL(test_ended_on_the_way) {
    for (size_t steps = 0; steps < 16; steps++) {
        dv_test_member *m = add(pool, (dv_test_member_config){.patient = steps % 4 == 0});
        DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
        dv_test_member_expire(m);
        for (size_t i = 0; i < steps; i++) {
            if (!dv_test_member_step(m)) dv_test_sleep_ms(1);
        }
        if (steps % 2) {
            int error = divvy_partitioner_finish(m->partitioner, 0);
            assert_true(error == 0 || error == DIVVY_ETIMEDOUT || error == DIVVY_ELOST);
            assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
            assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ECANCELED);
        }
        dv_test_member_destroy(m);
        DV_POOL_UNTIL(pool, atomic_load(&m->destroyed));
        DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_CONNECTED);
        DV_POOL_UNTIL(pool, dv_test_member_stats(m).ephemerals == 0);
        assert_int_equal(dv_test_pool_nodes(pool), 0);
    }
}

/* ---- several ---- */

/* While one has lost its session the others take over; when it has released it is given a share again. No item has two
 * owners at any time (the fixture looks in each step). */
TEST_OF_POOL(test_others_take_over) {
    int64_t tokens[10];
    dv_test_member *other = dv_test_pool_add(pool, &(dv_test_member_config){.identifier = "o", .boundary_ms = 50});
    dv_test_member *m = add(pool, (dv_test_member_config){.identifier = "m",
                                                          .patient = true,
                                                          .boundary_ms = 50,
                                                          .session_timeout_ms = 5000,
                                                          .ensemble_tick_ms = DV_TEST_TICK_MS});
    dv_test_pool_settle(pool);
    remember_tokens(m, tokens);
    dv_test_member_mark(other);
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, dv_test_member_load(other) == 10 && dv_test_member_state(other) == DIVVY_ACQUIRED);
    assert_int_equal(dv_test_member_kept(other), 5); /* what was its own has not stopped */
    dv_test_proxy_restore(m->proxy);
    DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_CONNECTED);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_int_equal(dv_test_member_load(other), 10);
    assert_int_equal(release(m), 0);
    dv_test_pool_settle(pool);
    assert_int_equal(dv_test_member_load(m), 5);
    check_tokens_grew(m, tokens);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
}

/* Members with threads of their own go on over session after session, and in no turn do two own one item. */
TEST_OF_POOL(test_threads) {
    enum { MEMBERS = 3 };
    dv_test_member *members[MEMBERS];
    dv_test_member_config config = {.threaded = true,
                                    .proxied = true,
                                    .rejoins = true,
                                    .boundary_ms = 20,
                                    .session_timeout_ms = 5000,
                                    .ensemble_tick_ms = DV_TEST_TICK_MS};
    dv_test_pool_add_many(pool, members, 0, MEMBERS, &config);
    dv_test_pool_settle(pool);
    for (size_t round = 0; round < MEMBERS; round++) {
        dv_test_member *m = members[round];
        int64_t session = divvy_client_session_id(m->client);
        dv_test_member_cut(m);
        DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_LOST, -1) > 0 && dv_test_member_load(m) == 0);
        dv_test_proxy_restore(m->proxy);
        DV_POOL_UNTIL(pool, divvy_client_session_id(m->client) != session);
        dv_test_pool_settle(pool);
    }
    for (size_t i = 0; i < MEMBERS; i++) {
        assert_true(dv_test_member_count(members[i], DV_TEST_STATE, DIVVY_RELEASE) >= 1);
        assert_int_equal(dv_test_member_count(members[i], DV_TEST_STATE, DIVVY_FAILURE), 0);
    }
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
