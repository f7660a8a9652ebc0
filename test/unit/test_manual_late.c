/* Tests of DIVVY_WARN_LATE: manual mode, when divvy_client_process() does not come in time.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fake_znode.h"
#include "lib/test.h"

enum { TIMEOUT_MS = 4000, TICK_MS = 500 };

static dv_fake *fake;
static divvy_client *client;
static int late_warnings;
static char said[512];
static bool lost;

static void on_warning(divvy_client *c, int code, const char *message, void *user) {
    (void)c, (void)user;
    if (code != DIVVY_WARN_LATE) return;
    late_warnings++;
    snprintf(said, sizeof said, "%s", message);
}

static void on_session(divvy_client *c, divvy_session_state session_state, void *user) {
    (void)c, (void)user;
    lost = lost || session_state == DIVVY_LOST;
}

static int set_up(void **state) {
    (void)state;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = TIMEOUT_MS;
    config.ensemble_tick_ms = TICK_MS;
    config.on_warning = on_warning;
    config.on_session = on_session;
    late_warnings = 0;
    lost = false;
    fake = dv_fake_open(&config);
    client = dv_fake_client(fake);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    dv_fake_close(fake);
    return 0;
}

static int64_t interval_ms(void) {
    return dv_clock_heartbeat_ms(&client->clock);
}

static int64_t deadline_ms(void) {
    int64_t ms = divvy_client_next_deadline(client);
    assert_true(ms > 0);
    return ms;
}

/* Nobody drives the loop until so long after it is due. */
static void come_late(int64_t ms) {
    dv_fake_sleep(fake, deadline_ms() + ms);
    assert_true(divvy_client_process(client, 0) > 0);
}

static void on_timer(dv_timer *timer, int64_t now) {
    (void)timer, (void)now;
}

/* A timer counts as something that was done, though nothing came of it. */
TEST(test_timer_counts) {
    dv_timer timer = {.fire = on_timer};
    dv_client_lock(client);
    dv_timer_set(client, &timer, dv_client_now(client));
    dv_client_unlock(client);
    assert_int_equal(divvy_client_process(client, 0), 1);
    assert_int_equal(divvy_client_process(client, 0), 0);
}

/* In time all the time, and then for one interval too long: one warning, that says by how much. */
TEST(test_late) {
    dv_fake_session(fake, DIVVY_CONNECTED);
    for (int i = 0; i < 50; i++) come_late(0);
    come_late(interval_ms());
    assert_int_equal(late_warnings, 0);
    come_late(interval_ms() + 1);
    assert_int_equal(late_warnings, 1);
    char begin[100];
    snprintf(begin, sizeof begin, "divvy_client_process() came %lld ms late: ", (long long)interval_ms() + 1);
    assert_ptr_equal(strstr(said, begin), said);
    assert_non_null(strstr(said, "would have been lost"));
    assert_false(lost);
}

/* One who comes at the very moment at which the session ends has come too late. */
TEST(test_at_the_last_moment) {
    for (int64_t early_ms = 1; early_ms >= 0; early_ms--) {
        dv_fake_session(fake, DIVVY_CONNECTED);
        come_late(0);
        dv_fake_sleep(fake, atomic_load(&client->alive_until) - dv_fake_now(fake) - early_ms);
        divvy_client_process(client, 0);
        assert_non_null(strstr(said, early_ms ? "would have been lost 1 ms from now" : "that it held, is lost"));
        dv_fake_run(fake);
    }
}

/* Once for each episode: it ends with a call in time. */
TEST(test_once_for_each_episode) {
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_fake_advance(fake, TIMEOUT_MS);
    for (int i = 0; i < 5; i++) come_late(interval_ms() + 50);
    assert_int_equal(late_warnings, 1);
    come_late(0);
    come_late(interval_ms() + 50);
    assert_int_equal(late_warnings, 2);
}

/* The session that nobody drove is lost, and the warning says so; before the first connection nothing can be lost. */
TEST(test_too_late) {
    dv_fake_sleep(fake, 10 * TIMEOUT_MS);
    divvy_client_process(client, 0);
    assert_int_equal(late_warnings, 0);
    dv_fake_session(fake, DIVVY_CONNECTED);
    dv_fake_advance(fake, TIMEOUT_MS);
    come_late(TIMEOUT_MS);
    assert_int_equal(late_warnings, 1);
    assert_non_null(strstr(said, "is lost"));
    assert_true(lost);
}

TEST_EACH(set_up, tear_down);
