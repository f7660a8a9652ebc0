/* A tick that is told wrong, and what the server says of it: docs/protocol.md, C3. SPDX-License-Identifier:
 * Apache-2.0
 *
 * Shows what a real server tells of its tick. */
#include "test_clock.h"
#include "znode/apache/tick.h"

enum { TICK_MS = 400, TIMEOUT_MS = 8000, DEADLINE_MS = 20000 };

static dv_test_server *server;

static int setup(void **state) {
    (void)state;
    server = dv_test_server_start(1, TICK_MS);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    dv_test_server_stop(server);
    return 0;
}

static divvy_client_config config_of(int64_t tick_ms) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = dv_test_server_address(server, 1);
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = tick_ms;
    return config;
}

/* A tick that is told smaller than the server's ends the session for good, and the reason names both. */
TEST(test_too_small) {
    divvy_client_config config = config_of(TICK_MS - 1);
    divvy_client *client;
    assert_int_equal(divvy_client_open(&client, &config), 0);
    int64_t until_ms = dv_test_now_ms() + DEADLINE_MS;
    while (divvy_client_state(client) != DIVVY_AUTH_FAILED && dv_test_now_ms() < until_ms) dv_test_sleep_ms(5);
    assert_int_equal(divvy_client_state(client), DIVVY_AUTH_FAILED);
    assert_int_equal(divvy_client_wait_connected(client, 1000), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(client), "is 399"));
    assert_non_null(strstr(divvy_client_error(client), "tickTime 400: set it to that"));
    assert_non_null(strstr(divvy_client_error(client), "$DIVVY_ENSEMBLE_TICK_MS"));
    divvy_client_close(client);
}

/* The server's own tick, and a larger one, are taken: the client owns something, long after the server has answered. */
TEST(test_right_or_larger) {
    static const int64_t ticks_ms[] = {TICK_MS, 2 * TICK_MS};
    for (size_t i = 0; i < sizeof ticks_ms / sizeof *ticks_ms; i++) {
        divvy_client_config config = config_of(ticks_ms[i]);
        divvy_client *client;
        divvy_lock *lock;
        divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
        lock_config.path = "/lock";
        assert_int_equal(divvy_client_open(&client, &config), 0);
        assert_int_equal(divvy_client_wait_connected(client, DEADLINE_MS), 0);
        assert_int_equal(divvy_lock_create(&lock, client, &lock_config), 0);
        for (int times = 0; times < 20; times++) {
            assert_int_equal(divvy_lock_acquire(lock, DEADLINE_MS), 0);
            assert_int_equal(divvy_lock_release(lock), 0);
        }
        assert_int_equal(divvy_client_state(client), DIVVY_CONNECTED);
        divvy_lock_destroy(lock);
        divvy_client_close(client);
    }
}

/* A server's tick is a whole number in range, on a line of its own, whatever else the server answers. */
TEST(test_answers) {
    static const struct {
        const char *text;
        int64_t tick_ms;
    } cases[] = {
        {"clientPort=2181\ntickTime=2000\nmaxClientCnxns=60\n", 2000},
        {"tickTime=1", 1},
        {"tickTime=3600000\r\n", 3600000},
        {"tickTime=3600001\n", 0},
        {"tickTime=99999999999999999999999\n", 0},
        {"tickTime=0\n", 0},
        {"tickTime=-5\n", 0},
        {"tickTime=20x\n", 0},
        {"tickTime=\n", 0},
        {"tickTime=", 0},
        {"my tickTime=7\n", 0},
        {"conf is not executed because it is not in the whitelist.\n", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(dv_tick_parse(cases[i].text), cases[i].tick_ms);
}

TEST_GROUP(setup, teardown);
