/* The session clock of a client on the in-memory ensemble: docs/protocol.md, C3 to C5. SPDX-License-Identifier:
 * Apache-2.0 */
#include <limits.h>

#include "divvy/lock.h"
#include "test_ensemble.h"

enum { TICK_MS = 2000 };

static divvy_testing_ensemble *e;
static divvy_session_state states[64];
static int state_count, warnings;
static char last_warning[300];

static void on_state(divvy_client *client, divvy_session_state state, void *user) {
    (void)client, (void)user;
    assert_true(state_count < 64);
    states[state_count++] = state;
}

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client, (void)user;
    if (code == DIVVY_WARN_SESSION) warnings++;
    snprintf(last_warning, sizeof last_warning, "%s", message);
}

static int count_states(divvy_session_state state) {
    int count = 0;
    for (int i = 0; i < state_count; i++) count += states[i] == state;
    return count;
}

/* One server, messages that take no time, and any timeout between 100 ms and `most_ms`. */
static void open_server(int64_t tick_ms, int64_t most_ms) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.servers = 1;
    config.tick_ms = tick_ms;
    config.min_session_timeout_ms = 100;
    config.max_session_timeout_ms = most_ms;
    config.client_delay_max_ms = config.server_delay_max_ms = 0;
    e = open_ensemble(&config);
    state_count = warnings = 0;
}

static divvy_client *open_timed(int64_t timeout_ms) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = timeout_ms;
    config.on_session = on_state;
    config.on_warning = on_warning;
    return open_client_with(e, config, 0);
}

/* However long a server stands still: the session that is opened after that is not given up by the clock, which has
 * not been proven anything by then, and is believed in the end. */
TEST(test_new_session_stays) {
    for (int64_t stopped_ms = 2000; stopped_ms <= 12000; stopped_ms += 100) {
        open_server(TICK_MS, 4000);
        divvy_client *client = open_timed(4000);
        divvy_testing_run(e, 3000 + stopped_ms % 700);
        divvy_testing_pause_server(e, 0, 1);
        divvy_testing_run(e, stopped_ms);
        divvy_testing_pause_server(e, 0, 0);
        divvy_testing_run(e, 30000);
        assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
        assert_true(divvy_client_time_left_ms(client) > 0);
        assert_true(count_states(DIVVY_LOST) <= 1);
        divvy_client_close(client);
        divvy_testing_ensemble_destroy(e);
    }
}

/* A timeout that can hold nothing is refused, with the least that can. */
TEST(test_hopeless_is_refused) {
    open_server(TICK_MS, 60000);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_client *client;
    config.manual = 1;
    config.session_timeout_ms = 1000;
    assert_int_equal(divvy_testing_client_open(&client, e, &config), DIVVY_EINVAL);
    assert_null(client);
    assert_non_null(strstr(divvy_client_error(NULL), "ticks of 2000 ms"));
    const char *least = strstr(divvy_client_error(NULL), "the least that can is ");
    assert_non_null(least);
    config.session_timeout_ms = strtol(least + strlen("the least that can is "), NULL, 10);
    client = open_client_with(e, config, 0);
    divvy_testing_run(e, 30000);
    assert_true(divvy_client_time_left_ms(client) > 0);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(e);
}

/* Given by the servers it is warned of once, and the client stays on its one session, and owns nothing. */
TEST(test_hopeless_is_kept) {
    open_server(TICK_MS, 1000);
    divvy_client *client = open_timed(10000);
    int64_t session = divvy_client_session_id(client);
    for (int i = 0; i < 600; i++) {
        divvy_testing_run(e, 100);
        assert_int_equal(divvy_client_time_left_ms(client), 0);
    }
    assert_int_equal(divvy_client_session_id(client), session);
    assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
    assert_int_equal(state_count, 1);
    assert_int_equal(warnings, 2); /* and that it is another timeout than was asked for */
    assert_non_null(strstr(last_warning, "nothing will be owned"));
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(e);
}

/* A reconnect costs four writes at the most until the session is proven by the new connection, though messages take no
 * time, and the heartbeats that follow keep to their interval. */
TEST(test_reconnect_is_cheap) {
    open_server(100, 60000);
    divvy_client *client = open_timed(2000);
    divvy_testing_run(e, 5000);
    for (int i = 0; i < 10; i++) {
        divvy_stats before, after;
        int64_t session = divvy_client_session_id(client);
        divvy_testing_kill_server(e, 0);
        divvy_testing_run(e, 100);
        assert_int_equal(divvy_client_state(client), DIVVY_SUSPENDED);
        divvy_client_stats(client, &before, sizeof before);
        divvy_testing_start_server(e, 0);
        while (divvy_client_state(client) != DIVVY_CONNECTED) assert_int_equal(divvy_testing_step(e, INT64_MAX), 1);
        assert_int_equal(divvy_client_session_id(client), session);
        assert_false(client->clock.proven_here);
        int64_t at = e->now;
        while (!client->clock.proven_here) assert_int_equal(divvy_testing_step(e, INT64_MAX), 1);
        divvy_client_stats(client, &after, sizeof after);
        assert_true(e->now - at <= 400);
        assert_true(after.checks - before.checks <= 4);
        divvy_testing_run(e, 4000);
        divvy_client_stats(client, &before, sizeof before);
        assert_true(before.checks - after.checks <= 4000 / 200 + 1);
    }
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(e);
}

/* ---- a session that cannot be opened ---- */

static const dv_znode_backend *real;
static int refusals;

static int reopen(dv_znode *znode) {
    return refusals-- > 0 ? DIVVY_ESYSTEM : real->reopen(znode);
}

/* Ends the client's session. The backend opens the next one when it has been asked more often than `times`. */
static void end_session(divvy_client *client, dv_znode_backend *refusing, int times) {
    real = client->znode->backend;
    *refusing = *real;
    refusing->reopen = reopen;
    client->znode->backend = refusing;
    refusals = times;
    assert_int_equal(divvy_testing_expire(e, client), 0);
    while (refusals == times) assert_int_equal(divvy_testing_step(e, INT64_MAX), 1);
    assert_int_equal(divvy_client_state(client), DIVVY_LOST);
}

/* A new session that cannot be opened, as where no thread can be had, is tried again each second. */
TEST(test_opened_later) {
    dv_znode_backend refusing;
    open_server(TICK_MS, 4000);
    divvy_client *client = open_timed(4000);
    end_session(client, &refusing, 3);
    int64_t at = e->now;
    divvy_testing_run(e, 1900);
    assert_int_equal(refusals, 1);
    divvy_testing_run(e, 1000);
    assert_int_equal(divvy_client_state(client), DIVVY_LOST);
    while (divvy_client_state(client) != DIVVY_CONNECTED) assert_int_equal(divvy_testing_step(e, INT64_MAX), 1);
    assert_int_equal(e->now - at, 3000);
    assert_int_equal(count_states(DIVVY_LOST), 1);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(e);
}

static void on_done(divvy_lock *lock, int result, void *user) {
    (void)lock;
    *(int *)user = result;
}

/* A close in between ends an acquire that waits for the next session. */
TEST(test_closed_before) {
    dv_znode_backend refusing;
    open_server(TICK_MS, 4000);
    divvy_client *client = open_timed(4000);
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    int result = 1;
    config.path = "/lock";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    end_session(client, &refusing, INT_MAX);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, on_done, &result), 0);
    divvy_testing_run(e, 1900);
    assert_int_equal(result, 1);
    divvy_client_close(client);
    assert_int_equal(result, DIVVY_ECANCELED);
    divvy_lock_destroy(lock);
    divvy_testing_ensemble_destroy(e);
}
