/* Tests of what divvy_client_error() tells: after which calls, and in callbacks. SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { WAIT_MS = 60000 };

static divvy_testing_ensemble *ensemble;
static divvy_client *client;
static const char kept[] = "lock: path is NULL";

/* What a callback found said when it began, and how the call ended. */
static char heard[512];
static int result, calls;

static void fail_otherwise(void) {
    assert_int_equal(divvy_lock_release(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_client_process(client, 0), DIVVY_EDEADLK);
    assert_non_null(strstr(divvy_client_error(client), "called in a callback"));
}

static void hear(int how) {
    snprintf(heard, sizeof heard, "%s", divvy_client_error(client));
    result = how;
    calls++;
    fail_otherwise();
}

static void on_lock_done(divvy_lock *lock, int how, void *user) {
    (void)lock, (void)user;
    hear(how);
}

static void on_slots_done(divvy_semaphore *semaphore, int how, void *user) {
    (void)semaphore, (void)user;
    hear(how);
}

static void on_stored(divvy_registry *registry, int how, const cJSON *stored, void *user) {
    (void)registry, (void)stored, (void)user;
    hear(how);
}

static void on_failed(divvy_election *election, int error, void *user) {
    (void)election, (void)user;
    hear(error);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = 1;
    client_config.ephemeral_path_bytes = 400;
    result = 1000;
    calls = 0;
    heard[0] = '\0';
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) return -1;
    return divvy_testing_client_open(&client, ensemble, &client_config);
}

static int tear_down(void **state) {
    (void)state;
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

static divvy_lock *make_lock(void) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/l";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    return lock;
}

static divvy_semaphore *make_semaphore(void) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = "/s";
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    return semaphore;
}

static divvy_election *make_election(const char *path) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *election;
    config.path = path;
    config.on_failed = on_failed;
    assert_int_equal(divvy_election_create(&election, client, &config), 0);
    return election;
}

static divvy_registry *make_registry(void) {
    divvy_registry *registry;
    assert_int_equal(divvy_registry_open(&registry, client, NULL), 0);
    return registry;
}

static void beat(divvy_registry *registry, int64_t timeout_ms) {
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", "web");
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", 10);
    assert_int_equal(divvy_registry_heartbeat_async(registry, status, timeout_ms, on_stored, NULL), 0);
    cJSON_Delete(status);
}

/* A call that fails, and whose message is to be kept. */
static void fail_and_keep(void) {
    divvy_lock *lock;
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    assert_int_equal(divvy_lock_create(&lock, client, &config), DIVVY_EINVAL);
    assert_string_equal(divvy_client_error(client), kept);
}

static void process_until(int enough) {
    while (calls < enough) assert_true(divvy_client_process(client, 1000) >= 0);
}

/* A destroy changes no message, although it runs callbacks, which make calls that fail. */
TEST(test_destroys_keep_it) {
    divvy_lock *lock = make_lock();
    divvy_semaphore *semaphore = make_semaphore();
    divvy_election *election = make_election("/e");
    divvy_registry *registry = make_registry();
    divvy_party *party;
    assert_int_equal(divvy_party_join(&party, client, "/p", NULL, DIVVY_PARTY), 0);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, on_lock_done, NULL), 0);
    assert_int_equal(divvy_semaphore_acquire_async(semaphore, -1, on_slots_done, NULL), 0);
    assert_int_equal(divvy_election_stand(election), 0);
    beat(registry, -1);
    fail_and_keep();
    divvy_lock_destroy(lock);
    divvy_semaphore_destroy(semaphore);
    divvy_election_destroy(election);
    divvy_registry_close(registry);
    divvy_party_destroy(party);
    assert_string_equal(divvy_client_error(client), kept);
    assert_int_equal(calls, 3);
    assert_int_equal(result, DIVVY_ECANCELED);
}

/* Nor does a close, whose waiting runs the loop and the callbacks of what is left. */
TEST(test_close_keeps_it) {
    divvy_client *second;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&second, ensemble, &config), 0);
    divvy_client *first = client;
    client = second;
    divvy_lock *lock = make_lock();
    assert_int_equal(divvy_lock_acquire_async(lock, -1, on_lock_done, NULL), 0);
    fail_and_keep();
    divvy_client_close(second);
    assert_int_equal(calls, 1);
    assert_string_equal(divvy_client_error(second), kept);
    divvy_lock_destroy(lock);
    assert_string_equal(divvy_client_error(second), kept);
    client = first;
}

/* What only returns a value, or releases something, changes none either, for NULL too. */
TEST(test_getters_keep_it) {
    divvy_lock *lock = make_lock();
    fail_and_keep();
    divvy_client_state(NULL), divvy_client_time_left_ms(NULL), divvy_client_next_deadline(NULL);
    divvy_client_session_id(NULL), divvy_client_fd(NULL);
    divvy_partitioner_state(NULL), divvy_partitioner_state_id(NULL), divvy_partitioner_is_replaced(NULL);
    divvy_partitioner_partition(NULL), divvy_partitioner_to_prepare(NULL), divvy_partitioner_identifier(NULL);
    divvy_partitioner_owns(NULL, "a"), divvy_partitioner_failure(NULL, NULL, 0);
    divvy_semaphore_slot(NULL), divvy_semaphore_slot_at(NULL, 0), divvy_semaphore_token(NULL);
    divvy_lock_held(NULL), divvy_lock_token(NULL), divvy_election_leads(NULL), divvy_registry_malformed(NULL);
    divvy_registry_is_ours(NULL, NULL), divvy_partition_count(NULL), divvy_holders_count(NULL);
    divvy_strings_free(NULL), divvy_holders_free(NULL), divvy_leader_free(NULL), divvy_partition_unref(NULL);
    divvy_lock_destroy(NULL), divvy_semaphore_destroy(NULL), divvy_party_destroy(NULL), divvy_client_close(NULL);
    divvy_partitioner_destroy(NULL), divvy_registry_close(NULL), divvy_election_destroy(NULL);
    divvy_client_state(client), divvy_client_time_left_ms(client), divvy_client_next_deadline(client);
    divvy_lock_held(lock), divvy_lock_token(lock);
    assert_string_equal(divvy_client_error(client), kept);
    assert_string_equal(divvy_client_error(NULL), "");
    divvy_lock_destroy(lock);
}

/* In `done` the message tells why the acquire failed; afterwards the thread's own stands again. */
TEST(test_done_of_an_acquire) {
    divvy_lock *holder = make_lock(), *other = make_lock();
    assert_int_equal(divvy_lock_acquire(holder, WAIT_MS), 0);
    fail_and_keep();
    assert_int_equal(divvy_lock_acquire_async(other, 0, on_lock_done, NULL), 0);
    process_until(1);
    assert_int_equal(result, DIVVY_EBUSY);
    assert_string_equal(heard, "lock /l: held by another");
    assert_string_equal(divvy_client_error(client), kept);
    assert_int_equal(divvy_lock_release(holder), 0);
    assert_int_equal(divvy_lock_acquire_async(other, -1, on_lock_done, NULL), 0);
    process_until(2);
    assert_int_equal(result, 0);
    assert_string_equal(heard, "");
    divvy_lock_destroy(holder);
    divvy_lock_destroy(other);
}

/* In that of a heartbeat, why that was not stored. */
TEST(test_done_of_a_heartbeat) {
    divvy_registry *registry = make_registry();
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_DOWN);
    beat(registry, 500);
    process_until(1);
    assert_int_equal(result, DIVVY_ETIMEDOUT);
    assert_string_equal(heard, "heartbeat: /divvy/services: timed out");
    divvy_registry_close(registry);
}

/* In on_failed, why the candidate can stand no longer: the path of its node does not fit the budget. */
TEST(test_on_failed) {
    char path[600];
    snprintf(path, sizeof path, "/%0*d", 380, 0);
    divvy_election *election = make_election(path);
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    assert_int_equal(divvy_election_stand(election), DIVVY_ELIMIT);
    divvy_election_destroy(election);
    election = make_election("/e");
    divvy_testing_put(ensemble, "/e", "", 0, DIVVY_TESTING_PERSISTENT);
    divvy_testing_run(ensemble, 1000);
    assert_int_equal(divvy_testing_set_sequence(ensemble, "/e", INT32_MAX - 1), 0);
    assert_int_equal(divvy_election_stand(election), 0);
    process_until(1);
    char expected[100];
    snprintf(expected, sizeof expected, "election /e: %s", divvy_strerror(result));
    assert_string_equal(heard, expected);
    divvy_election_destroy(election);
}

TEST_EACH(set_up, tear_down);
