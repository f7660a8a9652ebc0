/* Requests and replies that are lost with a connection: no orphan, no second node, nothing believed too early.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The member is stepped by hand, so that it is known which request is under way when the connection goes.
 *
 * Shows which requests a real server has carried out when the native client loses their answers. */
#include "lib/pool.h"

#include <inttypes.h>
#include <string.h>

#include "client/client.h"
#include "znode/apache/apache.h"

/* The native client waits for a sixtieth of the timeout before it tries to reconnect. */
enum { TIMEOUT_MS = 18000 };

static dv_test_member *add(dv_test_pool *pool) {
    return dv_test_pool_add(
        pool, &(dv_test_member_config){
                  .identifier = "m", .func = dv_test_pool_func, .proxied = true, .session_timeout_ms = TIMEOUT_MS});
}

/* The member has heard all that it is going to, and owns what `bits` says. */
static void await_share(dv_test_member *m, size_t load) {
    DV_MEMBER_UNTIL(m, dv_test_member_load(m) == load && dv_test_member_state(m) == DIVVY_ACQUIRED);
    DV_MEMBER_UNTIL(m, dv_test_member_stats(m).in_flight == 0);
}

/* All that was asked for, a heartbeat perhaps among it, and the server's tick, is answered, and waits for the member's
 * next step. */
static bool all_answered(dv_test_member *m) {
    const dv_apache *apache = (const dv_apache *)(const void *)m->client->znode;
    uint64_t events = 0, asked = dv_test_member_stats(m).in_flight + (apache->tick_job != NULL);
    pthread_mutex_lock(&m->client->queue_mutex);
    for (const dv_event *event = m->client->events; event; event = event->next) events++;
    pthread_mutex_unlock(&m->client->queue_mutex);
    return events > 0 && events >= asked;
}

static void await_answers(dv_test_member *m) {
    assert_true(DV_WAIT(all_answered(m), DV_TEST_PATIENCE_MS));
}

/* One step in which nothing that it asks for can be answered, however slow the step is. */
static void step_unanswered(dv_test_member *m) {
    dv_test_proxy_freeze(m->proxy);
    bool worked = dv_test_member_step(m);
    dv_test_proxy_thaw(m->proxy);
    if (!worked) dv_test_sleep_ms(1);
}

/* Steps until the member has sent another read of a list of children, or another look at a node, and waits for the
 * answer. */
static void step_up_to_answer(dv_test_member *m, bool look) {
    divvy_stats before = dv_test_member_stats(m), now = before;
    int64_t deadline_ms = dv_test_now_ms() + DV_TEST_PATIENCE_MS;
    while (look ? now.exists == before.exists : now.children == before.children) {
        if (dv_test_now_ms() >= deadline_ms) dv_test_pool_fail(m->pool, "in vain: the next request");
        step_unanswered(m);
        now = dv_test_member_stats(m);
    }
    await_answers(m);
}

/* Steps until the read of the party that sees the newest change is answered, and then the look at the new name in it
 * (P2); the next step will settle, and send what follows from it. */
static void step_up_to_settling(dv_test_member *m) {
    step_up_to_answer(m, false);
    step_up_to_answer(m, true);
}

static void suspend_and_restore(dv_test_member *m) {
    dv_test_proxy_cut(m->proxy);
    DV_MEMBER_UNTIL(m, divvy_client_state(m->client) == DIVVY_SUSPENDED);
    dv_test_proxy_restore(m->proxy);
    DV_MEMBER_UNTIL(m, divvy_client_state(m->client) == DIVVY_CONNECTED);
}

/* Replies are lost from now until restored, and requests arrive. */
static void lose_replies(dv_test_member *m) {
    dv_test_proxy_drop_replies(m->proxy, true);
}

static void check_all(dv_test_pool *pool, dv_test_member *m) {
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED && dv_test_member_load(m) == pool->item_count);
    dv_test_member_drain(m);
    dv_test_pool_check_owners(pool, false);
    assert_int_equal(dv_test_pool_nodes(pool), 1 + pool->item_count);
    size_t notes = m->config.func ? 0 : 1; /* of members that follow plans */
    assert_int_equal(dv_test_member_stats(m).ephemerals, 1 + notes + pool->item_count);
}

/* Creates that were applied and whose answers were lost are found: one node an item, and that is the token. */
TEST_OF_POOL(test_lost_reply_of_creates) {
    dv_test_member *m = add(pool);
    await_share(m, 10);
    dv_test_pool_set_target(pool, "0000000001");
    await_share(m, 1);
    dv_test_pool_set_target(pool, "1111111111");
    step_up_to_settling(m);
    lose_replies(m);
    DV_MEMBER_UNTIL(m, dv_test_pool_nodes(pool) == 11);
    assert_int_equal(dv_test_member_load(m), 1); /* nothing is believed */
    suspend_and_restore(m);
    check_all(pool, m);
    assert_int_equal(dv_test_member_count(m, DV_TEST_GAINED, -1), 10 + 9);
}

/* One create that was lost, not a multi: the same. */
TEST_OF_POOL(test_lost_reply_of_one_create) {
    dv_test_member *m = add(pool);
    await_share(m, 10);
    dv_test_pool_set_target(pool, "1110111111");
    await_share(m, 9);
    dv_test_pool_set_target(pool, "1111111111");
    step_up_to_settling(m);
    lose_replies(m);
    DV_MEMBER_UNTIL(m, dv_test_pool_nodes(pool) == 11);
    suspend_and_restore(m);
    check_all(pool, m);
}

/* A create whose answer was lost and whose item the target lacks by the time the connection is back: its node goes. */
TEST_OF_POOL(test_lost_reply_and_no_longer_wanted) {
    dv_test_member *m = add(pool);
    await_share(m, 10);
    dv_test_pool_set_target(pool, "1111100000");
    await_share(m, 5);
    dv_test_pool_set_target(pool, "1111111111");
    step_up_to_settling(m);
    lose_replies(m);
    DV_MEMBER_UNTIL(m, dv_test_pool_nodes(pool) == 11);
    dv_test_pool_set_target(pool, "1111100000");
    suspend_and_restore(m);
    DV_POOL_UNTIL(pool, dv_test_pool_nodes(pool) == 6);
    await_share(m, 5);
    assert_int_equal(dv_test_member_stats(m).ephemerals, 6);
}

/* Requests that never arrived are sent again. */
TEST_OF_POOL(test_lost_requests) {
    dv_test_member *m = add(pool);
    await_share(m, 10);
    dv_test_pool_set_target(pool, "0000000001");
    await_share(m, 1);
    dv_test_pool_set_target(pool, "1111111111");
    step_up_to_settling(m);
    uint64_t creates = dv_test_member_stats(m).creates;
    dv_test_proxy_freeze(m->proxy);
    DV_MEMBER_UNTIL(m, dv_test_member_stats(m).creates > creates);
    assert_int_equal(dv_test_pool_nodes(pool), 2);
    suspend_and_restore(m);
    check_all(pool, m);
}

/* Deletes whose answers were lost are done, and not told as anything else. */
TEST_OF_POOL(test_lost_reply_of_deletes) {
    dv_test_member *m = add(pool);
    m->config.patient = true;
    await_share(m, 10);
    dv_test_pool_set_target(pool, "0000000001");
    DV_MEMBER_UNTIL(m, dv_test_member_state(m) == DIVVY_RELEASE);
    lose_replies(m);
    assert_int_equal(divvy_partitioner_release_set(m->partitioner), 0);
    DV_MEMBER_UNTIL(m, dv_test_pool_nodes(pool) == 2);
    assert_int_equal(dv_test_member_state(m), DIVVY_ALLOCATING); /* "deletes unacknowledged included" */
    suspend_and_restore(m);
    await_share(m, 1);
    dv_test_member_drain(m);
    assert_string_equal(dv_test_member_states(m), "ALLOCATING ACQUIRED RELEASE ALLOCATING ACQUIRED");
    assert_int_equal(dv_test_member_stats(m).ephemerals, 2);
}

/* The creation of our party node whose answer was lost: one node, not two. */
TEST_OF_POOL(test_lost_reply_of_joining) {
    /* By names: a member that follows a plan has another answer under way. */
    const int assign = DIVVY_ASSIGN_RENDEZVOUS;
    dv_test_member *other = dv_test_pool_add(pool, &(dv_test_member_config){.identifier = "o", .assign = assign});
    dv_test_pool_settle(pool);
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.identifier = "m",
                                                                        .assign = assign,
                                                                        .proxied = true,
                                                                        .session_timeout_ms = TIMEOUT_MS,
                                                                        .unconnected = true});
    DV_MEMBER_UNTIL(m, divvy_client_state(m->client) == DIVVY_CONNECTED);
    await_answers(m); /* that both paths are there */
    lose_replies(m);
    DV_MEMBER_UNTIL(m, dv_test_member_stats(m).creates == 1);
    char *node;
    DV_MEMBER_UNTIL(m, (node = dv_test_member_party_node(m)) != NULL);
    suspend_and_restore(m);
    dv_test_pool_settle(pool);
    char *after = dv_test_member_party_node(m); /* fails if there are two */
    assert_string_equal(node, after);
    free(node);
    free(after);
    assert_int_equal(dv_test_member_load(other), 5);
    assert_int_equal(dv_test_member_count(m, DV_TEST_WARNING, -1), 0);
}

/* finish() while the outcome of creates is unknown: nothing is left, whatever it was. */
TEST_OF_POOL(test_finish_with_lost_replies) {
    dv_test_member *m = add(pool);
    await_share(m, 10);
    dv_test_pool_set_target(pool, "0000000001");
    await_share(m, 1);
    dv_test_pool_set_target(pool, "1111111111");
    step_up_to_settling(m);
    lose_replies(m);
    DV_MEMBER_UNTIL(m, dv_test_pool_nodes(pool) == 11);
    assert_int_equal(divvy_partitioner_finish(m->partitioner, 200), DIVVY_ETIMEDOUT);
    assert_int_equal(dv_test_member_state(m), DIVVY_FAILURE);
    suspend_and_restore(m);
    dv_test_member_finish(m);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
    assert_int_equal(dv_test_member_stats(m).ephemerals, 0);
}

/* The target comes from the very party that settled: not from one read again, nor from what has changed since. */
TEST_OF_POOL(test_target_is_of_the_party_that_settled) {
    dv_test_member *m = add(pool);
    await_share(m, 10);
    dv_test_pool_set_target(pool, "1000000000");
    step_up_to_settling(m);
    uint64_t reads = dv_test_member_stats(m).children;
    dv_test_pool_set_target(pool, "0100000000"); /* before it has looked at the answer */
    m->config.patient = true;
    while (dv_test_member_state(m) == DIVVY_ACQUIRED) dv_test_member_step(m);
    assert_true(dv_test_member_stats(m).children <= reads + 1); /* the one for the change after this */
    assert_true(dv_test_member_owns(m, 0));
    assert_int_equal(dv_test_member_load(m), 1);
    m->config.patient = false;
    DV_POOL_UNTIL(pool, dv_test_member_owns(m, 1) && dv_test_member_state(m) == DIVVY_ACQUIRED);
}

/* The connection goes after so many steps of a new member: whatever was under way, in the end there is one party node
 * and one node for each item. `fault` is in force for the next few steps before. */
static void check_cut_at(dv_test_pool *pool, size_t steps, void (*fault)(dv_test_member *m)) {
    dv_test_member *m =
        dv_test_pool_add(pool, &(dv_test_member_config){.proxied = true, .session_timeout_ms = TIMEOUT_MS});
    for (size_t i = 0; i < steps; i++) {
        if (!dv_test_member_step(m)) dv_test_sleep_ms(1);
    }
    fault(m);
    for (size_t i = 0; i < 4; i++) {
        if (!dv_test_member_step(m)) dv_test_sleep_ms(1);
    }
    suspend_and_restore(m);
    check_all(pool, m);
    char *node = dv_test_member_party_node(m);
    assert_non_null(node);
    free(node);
    dv_test_member_finish(m);
    assert_int_equal(dv_test_pool_directories(pool), 0);
    dv_test_member_destroy(m);
    divvy_client_close(m->client);
    m->client = NULL;
}

static void freeze(dv_test_member *m) {
    dv_test_proxy_freeze(m->proxy);
}

/* Wherever replies are lost on the way from the first request to the last, they are made up for. */
TEST(test_lost_replies_at_any_step) {
    for (size_t steps = 0; steps < 12; steps++) check_cut_at(*state, steps, lose_replies);
}

/* And so are requests. */
TEST(test_lost_requests_at_any_step) {
    for (size_t steps = 0; steps < 12; steps++) check_cut_at(*state, steps, freeze);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
