/* Tests of the log lines that wait while a callback of the user's does not return. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { FLOOD = 5000 };

static divvy_testing_ensemble *ensemble;
static divvy_client *client;
static int lines_told, last_line, reports, warnings_told;
static unsigned long long said_dropped;
static char last_state[200];
static bool out_of_order, to_flood, to_log_on;

/* Other threads make the library log and warn at the same time. */
static void flood(void) {
    dv_client_lock(client);
    for (int i = 1; i <= FLOOD; i++) {
        dv_client_log(client, DIVVY_LOG_DEBUG, "line %d", i);
        if (i % 5 == 0) dv_client_warn(client, DIVVY_WARN_STRAY, "warning %d", i);
    }
    assert_true(client->log_lines <= DV_LOG_LINES_MAX);
    dv_client_unlock(client);
}

static void on_log(int level, const char *message, void *user) {
    (void)user;
    int line;
    if (strstr(message, ": member ") && strstr(message, " -> ")) snprintf(last_state, sizeof last_state, "%s", message);
    unsigned long long dropped;
    if (sscanf(message, "line %d", &line) == 1) {
        lines_told++;
        out_of_order = out_of_order || line <= last_line;
        last_line = line;
        if (!to_log_on) return;
        dv_client_lock(client);
        for (int i = 0; i < 2; i++) dv_client_log(client, DIVVY_LOG_DEBUG, "more");
        dv_client_unlock(client);
    } else if (sscanf(message, "%llu log lines were dropped", &dropped) == 1) {
        assert_int_equal(level, DIVVY_LOG_WARN);
        reports++;
        said_dropped += dropped;
    }
}

static void on_warning(divvy_client *c, int code, const char *message, void *user) {
    (void)c, (void)message, (void)user;
    warnings_told += code == DIVVY_WARN_STRAY;
}

static void on_session(divvy_client *c, divvy_session_state session_state, void *user) {
    (void)c, (void)user;
    if (session_state == DIVVY_CONNECTED && to_flood) flood();
}

static int open_client(void **state) {
    (void)state;
    divvy_testing_config world = DIVVY_TESTING_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &world), 0);
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.ensemble_tick_ms = world.tick_ms;
    config.on_log = on_log;
    config.on_warning = on_warning;
    config.on_session = on_session;
    lines_told = last_line = reports = warnings_told = 0;
    said_dropped = 0;
    out_of_order = to_flood = to_log_on = false;
    return divvy_testing_client_open(&client, ensemble, &config);
}

static int close_client(void **state) {
    (void)state;
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static void run(void) {
    assert_true(divvy_testing_run(ensemble, 2000) >= 0);
    assert_null(client->callbacks);
    assert_int_equal(client->log_lines, 0);
}

/* The oldest lines are kept in order, the others are counted and reported once; warnings all come. */
TEST(test_bounded) {
    to_flood = true;
    run();
    assert_false(out_of_order);
    assert_int_equal(reports, 1);
    assert_in_range(lines_told, DV_LOG_LINES_MAX - 10, DV_LOG_LINES_MAX); /* the client's own are among them */
    assert_true(said_dropped >= (unsigned long long)(FLOOD - lines_told));
    assert_true(said_dropped < (unsigned long long)(FLOOD - lines_told) + 10);
    assert_int_equal(warnings_told, FLOOD / 5);
    /* Afterwards all is as before. */
    int before = lines_told;
    last_line = 0;
    dv_client_lock(client);
    for (int i = 1; i <= 100; i++) dv_client_log(client, DIVVY_LOG_DEBUG, "line %d", i);
    dv_client_unlock(client);
    run();
    assert_int_equal(lines_told, before + 100);
    assert_int_equal(reports, 1);
}

/* A log that is faster than its callback all the time has a report now and then, not at each line. */
TEST(test_always_too_fast) {
    to_flood = to_log_on = true;
    run();
    assert_in_range(reports, 1, 10);
    assert_int_equal(warnings_told, FLOOD / 5);
}

/* Makes a member, lets it end, and returns the last line about its state. */
static const char *end_of_member(int64_t allocate_timeout_ms, bool finishes) {
    const char *items[] = {"a"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.identifier = "m";
    config.items = items;
    config.item_count = 1;
    config.allocate_timeout_ms = allocate_timeout_ms;
    divvy_partitioner *member;
    assert_int_equal(divvy_partitioner_create(&member, client, &config), 0);
    run();
    if (finishes) assert_int_equal(divvy_partitioner_finish(member, 10000), 0);
    run();
    assert_int_equal(divvy_partitioner_state(member), DIVVY_FAILURE);
    divvy_partitioner_destroy(member);
    run();
    return last_state;
}

/* A finish is its user's request, and the log does not call it a failure. What fails is called so, with the reason. */
TEST(test_ends) {
    assert_string_equal(end_of_member(0, true), "/pool: member m: ACQUIRED -> finished");
    assert_string_equal(end_of_member(1, false), "/pool: member m: ALLOCATING -> FAILURE: the share was not complete "
                                                 "after allocate_timeout_ms, 1 ms");
}

TEST_EACH(open_client, close_client);
