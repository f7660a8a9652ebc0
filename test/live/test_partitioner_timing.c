/* Boundaries, timeouts, the order of callbacks, and kazoo's suspend policy. SPDX-License-Identifier: Apache-2.0
 *
 * Times are asserted in one direction only: nothing happens too early. That it happens at all has the patience of a
 * loaded machine.
 *
 * Shows that nothing comes too early by the machine's clock, and waits of real threads. */
#include "lib/pool.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

static dv_test_member *add(dv_test_pool *pool, dv_test_member_config config) {
    config.identifier = "m";
    if (!config.assign) config.func = dv_test_pool_func;
    return dv_test_pool_add(pool, &config);
}

static const dv_test_record *last(dv_test_member *m, enum dv_test_kind kind, int to) {
    size_t i = dv_test_member_last(m, kind, to);
    assert_true(i != SIZE_MAX);
    return &m->records[i];
}

static int setup(void **state) {
    dv_test_pool_setup(state);
    dv_test_pool_set_items(*state, "%zu", 4);
    return 0;
}

/* ---- settling ---- */

/* A join counts when the party has stood still for the boundary, and not before. */
TEST_OF_POOL(test_boundary) {
    enum { BOUNDARY_MS = 300 };
    int64_t made_ms = dv_test_now_ms();
    dv_test_member *m = add(pool, (dv_test_member_config){.boundary_ms = BOUNDARY_MS});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_true(last(m, DV_TEST_STATE, DIVVY_ACQUIRED)->at_ms - made_ms >= BOUNDARY_MS);
    dv_test_pool_set_target(pool, "0011");
    dv_test_pool_step_for(pool, BOUNDARY_MS / 2);
    int64_t changed_ms = dv_test_now_ms();
    dv_test_pool_set_target(pool, "1100"); /* begins the boundary again */
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "0 1") == 0 && dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_true(last(m, DV_TEST_REVOKED, -1)->at_ms - changed_ms >= BOUNDARY_MS);
}

/* Reads that come by for another reason, as on a new connection, do not shorten the boundary. */
TEST_OF_POOL(test_boundary_over_a_blip) {
    enum { BOUNDARY_MS = 1500 };
    dv_test_member *m =
        add(pool, (dv_test_member_config){.boundary_ms = BOUNDARY_MS, .proxied = true, .session_timeout_ms = 12000});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    uint64_t reads = dv_test_member_stats(m).children;
    dv_test_pool_set_target(pool, "0011");
    int64_t changed_ms = dv_test_now_ms();
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).children > reads && dv_test_member_stats(m).in_flight == 0);
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_SUSPENDED);
    dv_test_proxy_restore(m->proxy);
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_REVOKED, -1) == 2);
    assert_true(last(m, DV_TEST_REVOKED, -1)->at_ms - changed_ms >= BOUNDARY_MS);
}

/* Where members only left, the leave boundary counts. */
TEST_OF_POOL(test_leave_boundary) {
    enum { JOIN_MS = 50, LEAVE_MS = 600 };
    dv_test_pool_join(pool, "leaver,a=f00000000-other", true);
    dv_test_member *m = add(pool, (dv_test_member_config){.boundary_ms = JOIN_MS, .leave_boundary_ms = LEAVE_MS});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_set_target(pool, "0111");
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "1 2 3") == 0);
    dv_test_pool_set_target(pool, "0110");
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "1 2") == 0);
    char *node = dv_test_member_party_node(m);
    free(node);
    /* The leaver's going changes no target here; what is measured is when it is looked at. */
    uint64_t reads = dv_test_member_stats(m).children;
    int64_t left_ms = dv_test_now_ms();
    dv_test_pool_leave(pool, "leaver,a=f00000000-other");
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).children >= reads + 2);
    assert_true(dv_test_now_ms() - left_ms >= LEAVE_MS);
}

/* Returns how often it has asked about the party: W1. */
static uint64_t asked_about_party(dv_test_member *m) {
    divvy_stats stats = dv_test_member_stats(m);
    return stats.children + stats.exists;
}

/* A party that never stands still settles by settle_max all the same, and is read no more often than each quarter of
 * the boundary, however often it changes. */
TEST_OF_POOL(test_churn_settles_by_settle_max) {
    enum { BOUNDARY_MS = 2000, SETTLE_MAX_MS = 5000 };
    dv_test_member *m = add(pool, (dv_test_member_config){.boundary_ms = BOUNDARY_MS, .settle_max_ms = SETTLE_MAX_MS});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    DV_POOL_UNTIL(pool, dv_test_member_stats(m).in_flight == 0);
    uint64_t asked = asked_about_party(m), listed = dv_test_member_stats(m).children;
    dv_test_pool_set_target(pool, "0011");
    int64_t began_ms = dv_test_now_ms(), changed_ms = began_ms;
    bool there = false;
    while (dv_test_member_count(m, DV_TEST_REVOKED, -1) == 0) {
        if (dv_test_now_ms() - began_ms > DV_TEST_PATIENCE_MS) dv_test_pool_fail(pool, "churn froze the pool");
        if (dv_test_now_ms() - changed_ms > BOUNDARY_MS / 40) {
            if (there) dv_test_pool_leave(pool, "churn,a=f00000000-churn");
            else dv_test_pool_join(pool, "churn,a=f00000000-churn", true);
            there = !there;
            changed_ms = dv_test_now_ms();
        }
        dv_test_pool_step(pool);
    }
    int64_t took_ms = dv_test_now_ms() - began_ms;
    assert_true(took_ms >= SETTLE_MAX_MS);
    /* P2: each list may show the node that comes and goes, which is looked at then. */
    uint64_t most = (uint64_t)took_ms / (BOUNDARY_MS / 4) + 2 + dv_test_member_stats(m).children - listed;
    assert_in_range(asked_about_party(m) - asked, 2, most);
    if (there) dv_test_pool_leave(pool, "churn,a=f00000000-churn");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
}

/* ---- timeouts ---- */

/* ALLOCATING for longer than allocate_timeout is FAILURE: the party and the queues are left at once, but what was
 * worked on stays locked until the user has stopped, which it says by destroying. */
TEST_OF_POOL(test_allocate_timeout) {
    char *foreign = dv_test_pool_block(pool, "3");
    int64_t timeout_ms = 200, made_ms;
    dv_test_member *m = NULL;
    do { /* until the time is enough for the three items that are free, on this machine */
        if (m) dv_test_member_drain(m);
        if (m) dv_test_member_destroy(m);
        timeout_ms *= 2;
        made_ms = dv_test_now_ms();
        m = add(pool, (dv_test_member_config){.allocate_timeout_ms = timeout_ms});
        DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    } while (dv_test_member_count(m, DV_TEST_GAINED, -1) < 3);
    assert_true(last(m, DV_TEST_STATE, DIVVY_FAILURE)->at_ms - made_ms >= timeout_ms);
    assert_int_equal(divvy_partitioner_failure(m->partitioner, NULL, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(last(m, DV_TEST_LOST, -1)->reason, DIVVY_REASON_TIMEOUT);
    assert_int_equal(dv_test_member_load(m), 0);
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 3);
    assert_null(dv_test_member_party_node(m));
    assert_int_equal(dv_test_pool_queue_length(pool, "0"), 1);
    assert_int_equal(dv_test_pool_queue_length(pool, "3"), 1); /* the foreign one */
    dv_test_member_drain(m);
    dv_test_member_destroy(m);
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 0);
    dv_test_pool_unblock(pool, foreign);
}

/* Whether the member comes to this state before its time in ALLOCATING is over. */
static bool comes_to(dv_test_pool *pool, dv_test_member *m, divvy_partition_state state) {
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == state || dv_test_member_state(m) == DIVVY_FAILURE);
    return dv_test_member_state(m) == state;
}

/* Takes four items, is asked for one, and releases it later than its timeout, if that is enough for what comes before
 * and after the RELEASE on this machine. */
static bool releases_late(dv_test_pool *pool, dv_test_member *m) {
    int64_t timeout_ms = m->config.allocate_timeout_ms;
    dv_test_pool_set_target(pool, "1111");
    if (!comes_to(pool, m, DIVVY_ACQUIRED)) return false;
    dv_test_pool_set_target(pool, "0111");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    dv_test_pool_step_for(pool, timeout_ms + 200);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    return comes_to(pool, m, DIVVY_ACQUIRED);
}

/* The timeout counts ALLOCATING alone, from each entry: a RELEASE may last as long as it likes. */
TEST_OF_POOL(test_allocate_timeout_begins_anew) {
    enum { LEAST_MS = 1000, MOST_MS = 32000 };
    int64_t timeout_ms = LEAST_MS;
    dv_test_member *m = NULL;
    while (true) {
        m = add(pool, (dv_test_member_config){.allocate_timeout_ms = timeout_ms, .patient = true});
        if (releases_late(pool, m)) break;
        dv_test_member_drain(m);
        dv_test_member_destroy(m);
        timeout_ms *= 2;
        assert_true(timeout_ms <= MOST_MS);
    }
    char *foreign = dv_test_pool_block(pool, "0");
    dv_test_pool_set_target(pool, "1111");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_FAILURE);
    int64_t began_ms = last(m, DV_TEST_STATE, DIVVY_ALLOCATING)->at_ms;
    assert_true(last(m, DV_TEST_STATE, DIVVY_FAILURE)->at_ms - began_ms >= timeout_ms / 2);
    dv_test_pool_unblock(pool, foreign);
}

/* A RELEASE that is not answered in time is warned of, and again when it has lasted twice as long; one that is answered
 * is not. */
TEST_OF_POOL(test_release_warning) {
    dv_test_member *m = add(pool, (dv_test_member_config){.release_warn_ms = 2000, .patient = true});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_set_target(pool, "0111");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_SLOW_RELEASE) >= 1);
    int64_t told_ms = last(m, DV_TEST_STATE, DIVVY_RELEASE)->at_ms;
    assert_true(last(m, DV_TEST_WARNING, DIVVY_WARN_SLOW_RELEASE)->at_ms - told_ms >= 1000);
    DV_POOL_UNTIL(pool, dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_SLOW_RELEASE) >= 2);
    assert_true(last(m, DV_TEST_WARNING, DIVVY_WARN_SLOW_RELEASE)->at_ms - told_ms >= 2000);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    size_t warnings = dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_SLOW_RELEASE);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    m->config.patient = false;
    dv_test_pool_set_target(pool, "0011");
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "2 3") == 0 && dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_step_for(pool, 2500);
    assert_int_equal(dv_test_member_count(m, DV_TEST_WARNING, DIVVY_WARN_SLOW_RELEASE), warnings);
}

/* wait_for_acquire() and wait_change() return what they say they do. */
TEST_OF_POOL(test_waits) {
    dv_test_member *m = add(pool, (dv_test_member_config){.patient = true});
    divvy_partitioner *p = m->partitioner;
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, DV_TEST_PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 0), 0);
    char *foreign = dv_test_pool_block(pool, "3");
    dv_test_pool_set_target(pool, "1110");
    assert_int_equal(divvy_partitioner_wait_change(p, divvy_partitioner_state_id(p), DV_TEST_PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, DV_TEST_PATIENCE_MS), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_release_set(p), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, DV_TEST_PATIENCE_MS), 0);
    uint64_t id = divvy_partitioner_state_id(p);
    dv_test_pool_set_target(pool, "1111");
    assert_int_equal(divvy_partitioner_wait_change(p, id, DV_TEST_PATIENCE_MS), 0);
    assert_int_equal(dv_test_member_state(m), DIVVY_ALLOCATING);
    id = divvy_partitioner_state_id(p);
    assert_int_equal(divvy_partitioner_wait_change(p, id, 100), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_partitioner_wait_change(p, id, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_partitioner_wait_change(p, id, -2), DIVVY_EINVAL);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, 0), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, -2), DIVVY_EINVAL);
    dv_test_pool_unblock(pool, foreign);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, -1), 0);
    assert_int_equal(divvy_partitioner_finish(p, DV_TEST_PATIENCE_MS), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(p, DV_TEST_PATIENCE_MS), DIVVY_ESTATE);
    assert_int_equal(divvy_partitioner_wait_change(p, id, -1), 0);
}

static atomic_bool churn_ends;

/* Wakes the loop of each that watches the party, until it is to end, or for the patience. */
static void *churn(void *pool) {
    int64_t end_ms = dv_test_now_ms() + DV_TEST_PATIENCE_MS;
    while (!atomic_load(&churn_ends) && dv_test_now_ms() < end_ms) {
        dv_test_pool_set_target(pool, "1111");
        dv_test_sleep_ms(100);
    }
    return NULL;
}

/* A timeout is a total, however often the loop is woken before it passes. */
TEST_OF_POOL(test_timeout_is_a_total) {
    char *foreign = dv_test_pool_block(pool, "3");
    dv_test_member *m = add(pool, (dv_test_member_config){0});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, churn, pool), 0);
    int64_t began_ms = dv_test_now_ms();
    int error = divvy_partitioner_wait_for_acquire(m->partitioner, 1000);
    int64_t took_ms = dv_test_now_ms() - began_ms;
    atomic_store(&churn_ends, true);
    pthread_join(thread, NULL);
    assert_int_equal(error, DIVVY_ETIMEDOUT);
    /* If each wake-up began it again, it would not end before the churn. */
    assert_in_range(took_ms, 1000, DV_TEST_PATIENCE_MS);
    dv_test_pool_unblock(pool, foreign);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, DV_TEST_PATIENCE_MS), 0);
}

/* ---- the order of callbacks ---- */

/* For each change on_items comes before on_state, and a gain that completes the share before ACQUIRED. */
TEST_OF_POOL(test_items_come_before_states) {
    dv_test_member *m = add(pool, (dv_test_member_config){.boundary_ms = 50});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_set_target(pool, "0011");
    DV_POOL_UNTIL(pool, strcmp(dv_test_member_share(m), "2 3") == 0 && dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_member_finish(m);
    dv_test_member_drain(m);
    char text[100] = "";
    for (size_t i = 0; i < m->record_count; i++) {
        const dv_test_record *record = &m->records[i];
        static const char letters[] = "?grl";
        size_t used = strlen(text);
        text[used] = record->kind == DV_TEST_STATE ? "LARF"[record->to] : letters[record->kind];
        text[used + 1] = '\0';
    }
    /* gained, ACQUIRED; revoked, RELEASE; lost, ALLOCATING, ACQUIRED; lost, FAILURE */
    assert_string_equal(text, "ggggArrRllLAllF");
    assert_int_equal(last(m, DV_TEST_LOST, -1)->reason, DIVVY_REASON_FINISH);
    assert_int_equal(last(m, DV_TEST_REVOKED, -1)->reason, DIVVY_REASON_MEMBERS);
}

/* ---- kazoo's suspend policy in incremental mode ---- */

static void expect_tokens(dv_test_member *m, const int64_t *tokens) {
    for (size_t i = 0; i < 4; i++) {
        int64_t czxid;
        assert_int_equal(dv_test_pool_owner(m->pool, m->items[i], &czxid), divvy_client_session_id(m->client));
        assert_int_equal(czxid, tokens[i]);
        assert_int_equal(dv_test_member_token(m, i), tokens[i]);
    }
}

/* Every session event revokes everything; released, the items come back with the nodes and tokens they had. */
TEST_OF_POOL(test_suspend_revokes_everything) {
    dv_test_member *m = add(pool, (dv_test_member_config){.suspends = true, .patient = true, .proxied = true});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    int64_t tokens[4];
    for (size_t i = 0; i < 4; i++) tokens[i] = dv_test_member_token(m, i);
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    assert_string_equal(dv_test_member_share(m), "0! 1! 2! 3!");
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    assert_int_equal(dv_test_member_state(m), DIVVY_ACQUIRED);
    dv_test_member_drain(m);
    assert_int_equal(last(m, DV_TEST_REVOKED, -1)->reason, DIVVY_REASON_SUSPEND);
    dv_test_proxy_restore(m->proxy);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    assert_int_equal(divvy_client_state(m->client), DIVVY_CONNECTED);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_member_drain(m);
    expect_tokens(m, tokens);
    assert_string_equal(dv_test_member_states(m),
                        "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
}

/* A session event in RELEASE is a RELEASE of its own after the first: of everything. */
TEST_OF_POOL(test_suspend_in_release) {
    dv_test_member *m = add(pool, (dv_test_member_config){.suspends = true, .patient = true, .proxied = true});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_set_target(pool, "0111");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    assert_string_equal(dv_test_member_share(m), "0! 1 2 3");
    dv_test_member_cut(m);
    DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_SUSPENDED);
    assert_string_equal(dv_test_member_share(m), "0! 1 2 3"); /* frozen */
    dv_test_proxy_restore(m->proxy);
    DV_POOL_UNTIL(pool, divvy_client_state(m->client) == DIVVY_CONNECTED);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    dv_test_member_drain(m);
    assert_int_equal(dv_test_member_state(m), DIVVY_RELEASE);
    assert_string_equal(dv_test_member_share(m), "1! 2! 3!");
    assert_int_equal(last(m, DV_TEST_REVOKED, -1)->reason, DIVVY_REASON_SUSPEND);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    assert_string_equal(dv_test_member_share(m), "1 2 3");
    assert_int_equal(dv_test_pool_queue_length(pool, "0"), 0);
    dv_test_member_drain(m);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED RELEASE RELEASE ALLOCATING ACQUIRED");
}

/* The first connection is no session event: a member made before it is ACQUIRED like any other. */
TEST_OF_POOL(test_first_connection_is_no_suspend) {
    dv_test_member *m = add(pool, (dv_test_member_config){.suspends = true, .patient = true, .unconnected = true});
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->partitioner, DV_TEST_PATIENCE_MS), 0);
    dv_test_member_drain(m);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED");
}

TEST_EACH(setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
