/* The log of requests and answers, on a real server. SPDX-License-Identifier: Apache-2.0
 *
 * Shows the lines of the native client's requests, with nothing secret in them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_client_witness.h"

#include "lib/server.h"
#include "lib/wait.h"

enum { LINES_MAX = 4000, LINE_BYTES = 1200, SERVER_TICK_MS = 200 };

static dv_test_server *server;

/* The lines of one client; written by its callbacks. */
static char lines[LINES_MAX][LINE_BYTES];
static size_t line_count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void on_log(int level, const char *message, void *user) {
    (void)user;
    pthread_mutex_lock(&mutex);
    if (line_count < LINES_MAX) snprintf(lines[line_count++], LINE_BYTES, "%d %s", level, message);
    pthread_mutex_unlock(&mutex);
}

static size_t count_lines(const char *wanted) {
    size_t count = 0;
    pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < line_count; i++) count += strstr(lines[i], wanted) != NULL;
    pthread_mutex_unlock(&mutex);
    return count;
}

static divvy_client *open_client(int log_requests) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    line_count = 0;
    config.hosts = dv_test_server_connect(server);
    config.ensemble_tick_ms = SERVER_TICK_MS;
    config.session_timeout_ms = 10000;
    config.auth_scheme = "digest";
    config.auth = "somebody:s3cret";
    config.on_log = on_log;
    config.log_requests = log_requests;
    return open_connected(&config);
}

static void lock_and_unlock(divvy_client *client) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/traced";
    config.identifier = "the-data-of-a-node";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire(lock, 10000), 0);
    assert_int_equal(divvy_lock_release(lock), 0);
    divvy_lock_destroy(lock);
}

/* Each request is a line, its answer another with the same number, and neither shows data or credentials. */
TEST(test_requests_and_answers) {
    divvy_client *client = open_client(1);
    lock_and_unlock(client);
    /* A release is not waited for, and after the close nothing is told. */
    assert_true(
        DV_WAIT(count_lines("delete /traced/") == 1 && count_lines("4 request ") == count_lines("4 answer "), 10000));
    divvy_client_close(client);
    size_t requests = count_lines("4 request "), answers = count_lines("4 answer ");
    assert_true(requests >= 3); /* create, list, delete at the least */
    assert_int_equal(requests, answers);
    for (size_t number = 1; number <= requests; number++) {
        char request[40], answer[40];
        snprintf(request, sizeof request, "4 request %zu: ", number);
        snprintf(answer, sizeof answer, "4 answer %zu: ", number);
        assert_int_equal(count_lines(request), 1);
        assert_int_equal(count_lines(answer), 1);
    }
    assert_true(count_lines("create /traced/") >= 1);
    assert_true(count_lines("children /traced") >= 1);
    assert_true(count_lines("delete /traced/") >= 1);
    assert_int_equal(count_lines("s3cret"), 0);
    assert_int_equal(count_lines("the-data-of-a-node"), 0);
}

/* Nobody is shown them who has not asked. */
TEST(test_not_asked_for) {
    divvy_client *client = open_client(0);
    lock_and_unlock(client);
    divvy_client_close(client);
    assert_int_equal(count_lines("request "), 0);
    assert_int_equal(count_lines("answer "), 0);
}

static int start(void **state) {
    (void)state;
    server = dv_test_server_start(1, SERVER_TICK_MS);
    return 0;
}

static int stop(void **state) {
    (void)state;
    dv_test_server_stop(server);
    return 0;
}

TEST_GROUP(start, stop);
