/* Tests of divvy/metrics.h: what a client's session, locks, semaphores and registries are shown as.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lib/scarce.h"
#include "metrics_fixture.h"
#include <cjson/cJSON.h>

TEST_EACH(set_up, tear_down);

/* ---- the session ---- */

/* The metrics of the session are those that the other functions of the client tell. */
TEST(test_session) {
    divvy_stats s;
    run_ms(20000);
    look(clients[0]);
    assert_int_equal(divvy_client_stats(clients[0], &s, sizeof s), 0);
    expect("divvy_build_info{version=\"" DIVVY_VERSION "\"}", 1);
    expect("divvy_session_state{state=\"connected\"}", 1);
    expect("divvy_session_state{state=\"connecting\"}", 0);
    expect("divvy_session_state{state=\"auth_failed\"}", 0);
    expect("divvy_session_time_left_seconds", (double)divvy_client_time_left_ms(clients[0]) / 1000);
    assert_true(divvy_client_time_left_ms(clients[0]) > 1000);
    expect("divvy_session_timeout_seconds", 10);
    expect("divvy_sessions_lost_total", 0);
    expect("divvy_connections_total", 1);
    expect("divvy_requests_total", (double)s.requests);
    expect("divvy_requests_failed_total", 0);
    expect("divvy_requests_in_flight", (double)s.in_flight);
    expect("divvy_operations_total{kind=\"check\"}", (double)s.checks);
    assert_true(s.checks > 5 && s.round_trips > 5);
    expect("divvy_round_trip_seconds_count", (double)s.round_trips);
    expect("divvy_round_trip_seconds_bucket{le=\"0.00025\"}", 0);
    expect("divvy_round_trip_seconds_bucket{le=\"+Inf\"}", (double)s.round_trips);
    expect("divvy_round_trip_seconds_sum", (double)s.round_trip_total_us / 1e6);
    expect("divvy_sent_bytes_total", (double)s.bytes_sent);
    expect("divvy_received_bytes_total", (double)s.bytes_received);
    expect("divvy_budget_limit_bytes{budget=\"ephemerals\"}", 1024 * 1024);
    expect("divvy_budget_limit_bytes{budget=\"watches\"}", 512 * 1024);
    expect("divvy_budget_used_bytes{budget=\"ephemerals\"}", 0);
    assert_null(strstr(text, "divvy_pool_"));
    assert_null(strstr(text, "divvy_lock_"));
    assert_null(strstr(text, "divvy_registry_"));
}

/* A round trip stands in the bucket of how long it took. */
TEST(test_round_trips) {
    look(clients[0]);
    double before = value("divvy_round_trip_seconds_bucket{le=\"0.25\"}");
    assert_int_equal(divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_UP), 0);
    for (unsigned s = 0; s < 3; s++) divvy_testing_lag_server(ensemble, s, 300);
    run_ms(9000);
    look(clients[0]);
    double slow = value("divvy_round_trip_seconds_count") - value("divvy_round_trip_seconds_bucket{le=\"0.25\"}");
    assert_true(slow > 2); /* heartbeats are writes, and cross from server to server */
    assert_true(value("divvy_round_trip_seconds_bucket{le=\"0.25\"}") >= before);
    expect_between("divvy_round_trip_seconds_sum", 0.3 * slow, 3 * slow + 1);
}

/* A session that the servers have expired counts as lost, the next one is another connection, and a closed link shows
 * as SUSPENDED, with less time left by the moment. */
TEST(test_session_lost) {
    assert_int_equal(divvy_testing_expire(ensemble, clients[0]), 0);
    run_ms(1500);
    assert_int_equal(divvy_client_wait_connected(clients[0], WAIT_MS), 0);
    look(clients[0]);
    expect("divvy_sessions_lost_total", 1);
    expect("divvy_connections_total", 2);
    run_ms(10000);
    assert_int_equal(divvy_testing_disconnect(ensemble, clients[0], DIVVY_TESTING_NOT_APPLIED, 0), 0);
    assert_int_equal(divvy_testing_link_client(ensemble, clients[0], DIVVY_TESTING_LINK_DOWN), 0);
    run_ms(1000);
    look(clients[0]);
    expect("divvy_session_state{state=\"suspended\"}", 1);
    expect("divvy_session_state{state=\"connected\"}", 0);
    double left = value("divvy_session_time_left_seconds");
    run_ms(2000);
    look(clients[0]);
    expect("divvy_session_time_left_seconds", left - 2);
    run_ms(20000);
    look(clients[0]);
    expect("divvy_sessions_lost_total", 2);
    expect("divvy_session_time_left_seconds", 0);
}

/* ---- locks and semaphores ---- */

static divvy_lock *new_lock(int client, const char *path, int mode) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = path;
    config.mode = mode;
    assert_int_equal(divvy_lock_create(&lock, clients[client], &config), 0);
    return lock;
}

static void on_done(divvy_lock *lock, int result, void *user) {
    (void)lock;
    *(int *)user = result;
}

/* Waits and holds are measured from the acquire to the grant, and from that to the release; what waits and is held is
 * counted, and what both cost of the budgets. */
TEST(test_lock) {
    divvy_lock *first = new_lock(0, "/l", DIVVY_EXCLUSIVE), *second = new_lock(1, "/l", DIVVY_EXCLUSIVE);
    int result = 1;
    assert_int_equal(divvy_lock_acquire(first, WAIT_MS), 0);
    assert_int_equal(divvy_lock_acquire_async(second, -1, on_done, &result), 0);
    run_ms(4000);
    look(clients[1]);
    expect("divvy_lock_waiting{recipe=\"lock\"}", 1);
    expect("divvy_lock_held{recipe=\"lock\"}", 0);
    expect("divvy_lock_wait_seconds_count{recipe=\"lock\"}", 0);
    expect("divvy_watches", 1);
    expect("divvy_ephemerals", 1);
    expect_between("divvy_budget_used_bytes{budget=\"ephemerals\"}", 40, 100);
    expect_between("divvy_budget_used_bytes{budget=\"watches\"}", 40, 200);
    look(clients[0]);
    expect("divvy_lock_held{recipe=\"lock\"}", 1);
    expect("divvy_lock_waiting{recipe=\"lock\"}", 0);
    expect("divvy_lock_wait_seconds_count{recipe=\"lock\"}", 1);
    expect("divvy_lock_hold_seconds_count{recipe=\"lock\"}", 0);
    assert_int_equal(divvy_lock_release(first), 0);
    run_ms(6000);
    assert_int_equal(result, 0);
    look(clients[0]);
    expect("divvy_lock_held{recipe=\"lock\"}", 0);
    expect("divvy_lock_hold_seconds_count{recipe=\"lock\"}", 1);
    expect("divvy_lock_hold_seconds_sum{recipe=\"lock\"}", 4);
    expect("divvy_lock_hold_seconds_bucket{recipe=\"lock\",le=\"2.5\"}", 0);
    expect("divvy_lock_hold_seconds_bucket{recipe=\"lock\",le=\"5.0\"}", 1);
    expect("divvy_lock_losses_total{recipe=\"lock\"}", 0);
    divvy_lock_destroy(second);
    look(clients[1]);
    expect_between("divvy_lock_wait_seconds_sum{recipe=\"lock\"}", 4, 4.1);
    expect_between("divvy_lock_hold_seconds_sum{recipe=\"lock\"}", 5.9, 6); /* a destroy releases; its metrics stay */
    expect("divvy_watch_events_total", 1);
    divvy_lock_destroy(first);
}

/* An acquire that ends with nothing is a failure, and a hold that the session takes along is a loss. */
TEST(test_lock_failures) {
    divvy_lock *first = new_lock(0, "/l", DIVVY_EXCLUSIVE), *second = new_lock(1, "/l", DIVVY_EXCLUSIVE);
    assert_int_equal(divvy_lock_acquire(first, WAIT_MS), 0);
    assert_int_equal(divvy_lock_try_acquire(second), DIVVY_EBUSY);
    assert_int_equal(divvy_lock_acquire(second, 2000), DIVVY_ETIMEDOUT);
    look(clients[1]);
    expect("divvy_lock_failures_total{recipe=\"lock\"}", 2);
    expect("divvy_lock_waiting{recipe=\"lock\"}", 0);
    expect("divvy_lock_wait_seconds_count{recipe=\"lock\"}", 0);
    assert_int_equal(divvy_testing_expire(ensemble, clients[0]), 0);
    run_ms(2000);
    look(clients[0]);
    expect("divvy_lock_losses_total{recipe=\"lock\"}", 1);
    expect("divvy_lock_held{recipe=\"lock\"}", 0);
    expect_between("divvy_lock_hold_seconds_sum{recipe=\"lock\"}", 2, 4.1);
    divvy_lock_destroy(first);
    divvy_lock_destroy(second);
}

/* All locks of one recipe are shown together, whatever their paths, and no recipe that was never used. */
TEST(test_recipes) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    divvy_lock *locks[6];
    char path[20];
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "/many/%d", i);
        locks[i] = new_lock(0, path, i < 4 ? DIVVY_READ : DIVVY_WRITE);
        assert_int_equal(divvy_lock_acquire(locks[i], WAIT_MS), 0);
    }
    config.path = "/s";
    config.limit = 5;
    config.count = 3;
    assert_int_equal(divvy_semaphore_create(&semaphore, clients[0], &config), 0);
    assert_int_equal(divvy_semaphore_acquire(semaphore, WAIT_MS), 0);
    look(clients[0]);
    expect("divvy_lock_held{recipe=\"read_lock\"}", 4);
    expect("divvy_lock_wait_seconds_count{recipe=\"read_lock\"}", 4);
    expect("divvy_lock_held{recipe=\"write_lock\"}", 2);
    expect("divvy_lock_held{recipe=\"semaphore\"}", 1); /* however many slots */
    assert_null(strstr(text, "recipe=\"lock\""));
    assert_null(strstr(text, "many"));
    divvy_semaphore_destroy(semaphore);
    for (int i = 0; i < 6; i++) divvy_lock_destroy(locks[i]);
    look(clients[0]);
    expect("divvy_lock_held{recipe=\"semaphore\"}", 0);
    expect("divvy_lock_hold_seconds_count{recipe=\"semaphore\"}", 1);
    expect("divvy_lock_hold_seconds_count{recipe=\"read_lock\"}", 4);
}

/* ---- registries ---- */

static void announce(divvy_registry *registry, const char *id) {
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", "web");
    cJSON_AddStringToObject(status, "id", id);
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", 1000);
    assert_int_equal(divvy_registry_heartbeat(registry, status, NULL, WAIT_MS), 0);
    cJSON_Delete(status);
}

/* Services that are announced, entries of live views, and entries that are none are counted; what was skipped stays
 * counted when the registry is closed. */
TEST(test_registry) {
    divvy_registry *registry, *other;
    assert_int_equal(divvy_registry_open(&registry, clients[0], NULL), 0);
    assert_int_equal(divvy_registry_open(&other, clients[1], NULL), 0);
    announce(registry, "a");
    announce(registry, "b");
    announce(other, "c");
    look(clients[0]);
    expect("divvy_registry_announced_services", 2);
    expect("divvy_registry_entries", 0);
    expect("divvy_registry_skipped_entries_total", 0);
    assert_int_equal(divvy_testing_put(ensemble, "/divvy/services/web/bad", "{", 1, DIVVY_TESTING_PERSISTENT), 0);
    assert_int_equal(divvy_registry_watch(registry, NULL, NULL, NULL), 0);
    run_ms(3000);
    look(clients[0]);
    expect("divvy_registry_entries", 3);
    expect("divvy_registry_skipped_entries_total", 1);
    assert_int_equal(divvy_registry_unregister(registry, "web", "a", WAIT_MS), 0);
    run_ms(3000);
    look(clients[0]);
    expect("divvy_registry_announced_services", 1);
    expect("divvy_registry_entries", 2);
    divvy_registry_close(registry);
    divvy_registry_close(other);
    look(clients[0]);
    expect("divvy_registry_announced_services", 0);
    expect("divvy_registry_entries", 0);
    expect("divvy_registry_skipped_entries_total", 1);
}

/* Of two on one client, each is counted until it is closed, in whatever order. */
TEST(test_two_registries) {
    for (int first = 0; first < 2; first++) {
        divvy_registry *both[2];
        for (int i = 0; i < 2; i++) assert_int_equal(divvy_registry_open(&both[i], clients[0], NULL), 0);
        announce(both[0], "a");
        announce(both[1], "b");
        look(clients[0]);
        expect("divvy_registry_announced_services", 2);
        divvy_registry_close(both[first]);
        look(clients[0]);
        expect("divvy_registry_announced_services", 1);
        divvy_registry_close(both[!first]);
        look(clients[0]);
        expect("divvy_registry_announced_services", 0);
    }
}

/* ---- the call ---- */

/* Wrong arguments are refused; an error of the receiver ends the text and is passed on. */
TEST(test_errors) {
    receiver to = {.client = clients[0]};
    assert_int_equal(divvy_metrics_write(NULL, receive, &to), DIVVY_EINVAL);
    assert_int_equal(divvy_metrics_write_prometheus(NULL, receive, &to), DIVVY_EINVAL);
    assert_int_equal(divvy_metrics_write(clients[0], NULL, NULL), DIVVY_EINVAL);
    assert_non_null(strstr(divvy_client_error(clients[0]), "write is NULL"));
    assert_int_equal(to.calls, 0);
    to.fails_at = 2;
    assert_int_equal(divvy_metrics_write(clients[0], receive, &to), -1234);
    assert_int_equal(to.calls, 2);
}

static char *copy_of(int (*call)(divvy_client *, int (*)(void *, const char *, size_t), void *)) {
    receiver to = {.client = clients[0]};
    assert_int_equal(call(clients[0], receive, &to), 0);
    char *copy = strdup(text);
    assert_non_null(copy);
    return copy;
}

/* The two formats have the same samples. */
TEST(test_formats) {
    divvy_lock *lock = new_lock(0, "/l", DIVVY_EXCLUSIVE);
    char *open = copy_of(divvy_metrics_write), *old = copy_of(divvy_metrics_write_prometheus);
    char *open_rest = NULL, *old_rest = NULL;
    const char *a = strtok_r(open, "\n", &open_rest), *b = strtok_r(old, "\n", &old_rest);
    size_t samples = 0;
    while (a || b) {
        while (a && *a == '#') a = strtok_r(NULL, "\n", &open_rest);
        while (b && *b == '#') b = strtok_r(NULL, "\n", &old_rest);
        if (!a && !b) break;
        assert_non_null(a);
        assert_non_null(b);
        assert_string_equal(a, b);
        samples++;
        a = strtok_r(NULL, "\n", &open_rest);
        b = strtok_r(NULL, "\n", &old_rest);
    }
    assert_true(samples > 80);
    free(open);
    free(old);
    divvy_lock_destroy(lock);
}

/* When an allocation fails nothing is written, and the next call succeeds. */
TEST(test_no_memory) {
    static const char *const items[] = {"one"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = 1;
    assert_int_equal(divvy_partitioner_create(&p, clients[0], &config), 0);
    int error = DIVVY_ENOMEM;
    long failures = 0;
    while (error == DIVVY_ENOMEM) {
        receiver to = {.client = clients[0]};
        scarce_after = failures;
        error = divvy_metrics_write(clients[0], receive, &to);
        scarce_after = -1;
        if (error == DIVVY_ENOMEM) assert_int_equal(to.calls, 0);
        if (error == DIVVY_ENOMEM) assert_string_equal(divvy_client_error(clients[0]), divvy_strerror(error));
        failures++;
    }
    assert_int_equal(error, 0);
    assert_int_equal(failures, 3); /* two allocations: the list of pools, and the path of one */
    divvy_partitioner_destroy(p);
}
