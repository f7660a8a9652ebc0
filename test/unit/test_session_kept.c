/* A session that its client gives up by its clock while work goes on under it: rules C5, G4. On the in-memory ensemble.
 * SPDX-License-Identifier: Apache-2.0 */
#include "test_ensemble.h"

enum { TIMEOUT_MS = 6000 };

static divvy_testing_ensemble *e;
static divvy_client *c;
static divvy_testing_transaction ended; /* the last session that did */

static void on_transaction(const divvy_testing_transaction *t, void *context) {
    (void)context;
    if (t->kind == DIVVY_TESTING_SESSION_END) ended = *t;
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.client_delay_max_ms = config.server_delay_max_ms = 0;
    config.on_transaction = on_transaction;
    ended = (divvy_testing_transaction){.zxid = 0};
    e = open_ensemble(&config);
    c = open_client(e, TIMEOUT_MS, -1);
    assert_int_equal(do_create(c, "/a", DV_EPHEMERAL), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(c);
    close_ensemble(e);
    return 0;
}

/* Nothing is proven until the deadline has passed, while the native client's pings keep the session alive. Returns the
 * moment. */
static int64_t give_up(void) {
    dv_timer_cancel(&c->beat_timer);
    divvy_testing_run(e, divvy_client_time_left_ms(c) - 1);
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
    assert_int_equal(ended.zxid, 0);
    divvy_testing_run(e, 1);
    return e->now;
}

static void assert_another(void) {
    assert_int_equal(divvy_client_state(c), DIVVY_CONNECTED);
    assert_int_not_equal(divvy_client_session_id(c), ended.session_id);
}

/* Without work it is closed at once, and its nodes are gone long before servers would have expired it. */
TEST(test_no_work) {
    int64_t at = give_up();
    divvy_testing_run(e, 100);
    assert_int_equal(ended.at_ms, at);
    assert_int_equal(ended.expired, 0);
    assert_false(divvy_testing_exists(e, "/a"));
    assert_another();
}

/* While work goes on its nodes stay, though nothing is believed. When the work has ended it is closed, and a new one
 * opened. */
TEST(test_work) {
    dv_client_keep_session(c, true);
    give_up();
    assert_int_equal(divvy_client_state(c), DIVVY_LOST);
    divvy_testing_run(e, TIMEOUT_MS - 1);
    assert_true(divvy_testing_exists(e, "/a"));
    assert_int_equal(divvy_client_state(c), DIVVY_LOST);
    int64_t at = e->now;
    dv_client_keep_session(c, false);
    divvy_testing_run(e, 100);
    assert_int_equal(ended.at_ms, at);
    assert_int_equal(ended.expired, 0);
    assert_false(divvy_testing_exists(e, "/a"));
    assert_another();
    int64_t id = divvy_client_session_id(c);
    divvy_testing_run(e, 10 * TIMEOUT_MS);
    assert_int_equal(divvy_client_session_id(c), id);
}

/* It is kept for another timeout at most. Work that ends later changes nothing about the next session. */
TEST(test_endless_work) {
    dv_client_keep_session(c, true);
    int64_t at = give_up();
    divvy_testing_run(e, TIMEOUT_MS + 100);
    assert_int_equal(ended.at_ms, at + TIMEOUT_MS);
    assert_false(divvy_testing_exists(e, "/a"));
    assert_another();
    int64_t id = divvy_client_session_id(c);
    dv_client_keep_session(c, false);
    divvy_testing_run(e, 10 * TIMEOUT_MS);
    assert_int_equal(divvy_client_session_id(c), id);
}

/* Work that has ended before does not count. */
TEST(test_work_is_over) {
    dv_client_keep_session(c, true);
    dv_client_keep_session(c, false);
    give_up();
    divvy_testing_run(e, 100);
    assert_false(divvy_testing_exists(e, "/a"));
    assert_another();
}

/* A session that servers have expired is over, whatever goes on: a new one follows at once. */
TEST(test_expired) {
    dv_client_keep_session(c, true);
    divvy_testing_expire(e, c);
    divvy_testing_run(e, 100);
    assert_int_equal(ended.expired, 1);
    assert_another();
}

/* A client that is closed closes what it keeps, too. */
TEST(test_closed) {
    dv_client_keep_session(c, true);
    int64_t at = give_up();
    divvy_client_close(c);
    divvy_testing_run(e, 100);
    assert_int_equal(ended.at_ms, at);
    assert_false(divvy_testing_exists(e, "/a"));
    c = open_client(e, TIMEOUT_MS, -1);
}

TEST_EACH(set_up, tear_down);
