/* Tests of `interrupted` of the client's config: each call that waits ends by it. SPDX-License-Identifier: Apache-2.0
 */
#include <cjson/cJSON.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { MOST_MS = 50, AFTER_MS = 430, WAIT_MS = 60000 };

static divvy_testing_ensemble *ensemble;
static divvy_client *holder, *client;
static divvy_lock *held;
static int64_t interrupt_at, asked_at, longest_ms;
static int asks;

/* Says yes from some time on. Calls divvy, so that a lock that divvy held would be seen. */
static int interrupted(divvy_client *c, void *user) {
    assert_ptr_equal(user, &asks);
    divvy_client_state(c);
    divvy_lock_held(held);
    int64_t now = divvy_testing_now_ms(ensemble), since = now - asked_at;
    if (asks++ && since > longest_ms) longest_ms = since;
    asked_at = now;
    return interrupt_at && now >= interrupt_at;
}

static int open_client(divvy_client **out, bool asked) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.manual = 1;
    config.interrupted = asked ? interrupted : NULL;
    config.user = &asks;
    return divvy_testing_client_open(out, ensemble, &config);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_lock_config lock = DIVVY_LOCK_CONFIG_INIT;
    lock.path = "/l";
    interrupt_at = longest_ms = 0;
    asks = 0;
    if (divvy_testing_ensemble_create(&ensemble, &config) != 0) return -1;
    if (open_client(&holder, false) != 0 || open_client(&client, true) != 0) return -1;
    if (divvy_lock_create(&held, holder, &lock) != 0) return -1;
    return divvy_lock_acquire(held, WAIT_MS);
}

static int tear_down(void **state) {
    (void)state;
    divvy_lock_destroy(held);
    divvy_client_close(client);
    divvy_client_close(holder);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* The next wait is to be interrupted in a while. */
static void interrupt_later(void) {
    interrupt_at = divvy_testing_now_ms(ensemble) + AFTER_MS;
    longest_ms = 0;
    asks = 0;
}

/* It was, in time, and was asked all the while. */
static void check_interrupted(int error) {
    assert_int_equal(error, DIVVY_EINTERRUPTED);
    assert_non_null(strstr(divvy_client_error(client), divvy_strerror(DIVVY_EINTERRUPTED)));
    int64_t now = divvy_testing_now_ms(ensemble);
    assert_true(now >= interrupt_at && now <= interrupt_at + MOST_MS);
    assert_true(longest_ms <= MOST_MS);
    assert_true(asks >= AFTER_MS / MOST_MS);
    interrupt_at = 0;
}

/* An acquire gives its place up. The next one of the same object waits as if nothing had been. */
TEST(test_acquire) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/l";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    for (int i = 0; i < 2; i++) {
        interrupt_later();
        check_interrupted(divvy_lock_acquire(lock, i ? WAIT_MS : -1));
    }
    assert_int_equal(divvy_lock_release(held), 0);
    assert_int_equal(divvy_lock_acquire(lock, WAIT_MS), 0);
    divvy_strings *places = divvy_testing_children(ensemble, "/l");
    assert_int_equal(divvy_strings_count(places), 1);
    divvy_strings_free(places);
    divvy_lock_destroy(lock);
}

/* A call that waits for a shorter time than lies between two questions takes that time, and no longer. */
TEST(test_short_wait) {
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_DOWN);
    while (divvy_client_state(client) == DIVVY_CONNECTED) assert_true(divvy_client_process(client, 1000) >= 0);
    int64_t began = divvy_testing_now_ms(ensemble);
    assert_int_equal(divvy_client_wait_connected(client, 20), DIVVY_ETIMEDOUT);
    assert_int_equal(divvy_testing_now_ms(ensemble) - began, 20);
}

static void interrupt_heartbeat(divvy_registry *registry) {
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", "web");
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", 10);
    interrupt_later();
    check_interrupted(divvy_registry_heartbeat(registry, status, NULL, -1));
    cJSON_Delete(status);
}

static void interrupt_registry(void) {
    divvy_registry *registry;
    cJSON *found = NULL;
    assert_int_equal(divvy_registry_open(&registry, client, NULL), 0);
    interrupt_heartbeat(registry);
    interrupt_later();
    check_interrupted(divvy_registry_healthy_service(registry, "web", &found, -1));
    interrupt_later();
    check_interrupted(divvy_registry_unregister(registry, "web", "x", -1));
    interrupt_later();
    check_interrupted(divvy_registry_unique_service(registry, "one", NULL, &found, -1));
    interrupt_later();
    check_interrupted(divvy_registry_purge_stale_services(registry, 2, NULL, -1));
    divvy_registry_close(registry);
}

static void interrupt_semaphore(void) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    divvy_holders *holders = NULL;
    config.path = "/s";
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    interrupt_later();
    check_interrupted(divvy_semaphore_acquire(semaphore, -1));
    interrupt_later();
    check_interrupted(divvy_semaphore_holders(semaphore, &holders, -1));
    interrupt_later();
    check_interrupted(divvy_semaphore_resize(semaphore, 2, -1));
    divvy_semaphore_destroy(semaphore);
}

static void interrupt_election(void) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *election;
    divvy_strings *names = NULL;
    divvy_leader *leader = NULL;
    config.path = "/e";
    assert_int_equal(divvy_election_create(&election, client, &config), 0);
    interrupt_later();
    check_interrupted(divvy_election_leader(election, &leader, -1));
    interrupt_later();
    check_interrupted(divvy_election_candidates(election, &names, -1));
    interrupt_later();
    check_interrupted(divvy_election_ask_step_down(election, -1));
    divvy_election_destroy(election);
}

static void interrupt_partitioner(void) {
    static const char *const items[] = {"a"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = 1;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    interrupt_later();
    check_interrupted(divvy_partitioner_wait_change(p, divvy_partitioner_state_id(p), -1));
    interrupt_later();
    check_interrupted(divvy_partitioner_wait_for_acquire(p, -1));
    divvy_partitioner_destroy(p);
}

/* While no server answers, each call that asks one is interrupted. */
TEST(test_all_others) {
    divvy_party *party;
    divvy_strings *names = NULL;
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    divvy_testing_link_client(ensemble, client, DIVVY_TESTING_LINK_DOWN);
    while (divvy_client_state(client) == DIVVY_CONNECTED) assert_true(divvy_client_process(client, 1000) >= 0);
    interrupt_later();
    check_interrupted(divvy_client_wait_connected(client, -1));
    assert_int_equal(divvy_party_join(&party, client, "/p", NULL, DIVVY_PARTY), 0);
    interrupt_later();
    check_interrupted(divvy_party_members(party, &names, -1));
    divvy_party_destroy(party);
    interrupt_registry();
    interrupt_semaphore();
    interrupt_election();
    interrupt_partitioner();
}

/* What does not have to wait is not asked about, and neither are process() and close(). */
TEST(test_not_asked) {
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    interrupt_later();
    assert_int_equal(divvy_client_wait_connected(client, WAIT_MS), 0);
    assert_int_equal(divvy_client_wait_connected(client, 0), 0);
    for (int i = 0; i < 20; i++) assert_true(divvy_client_process(client, 10) >= 0);
    divvy_party *party;
    assert_int_equal(divvy_party_join(&party, client, "/p", NULL, DIVVY_PARTY), 0);
    for (int i = 0; i < 20; i++) assert_true(divvy_client_process(client, 10) >= 0);
    divvy_client_close(client);
    divvy_party_destroy(party);
    assert_int_equal(asks, 0);
    assert_int_equal(open_client(&client, true), 0);
}

static void free_threaded(divvy_client *c, divvy_lock *first, divvy_lock *second) {
    divvy_lock_destroy(first);
    divvy_lock_destroy(second);
    divvy_client_close(c);
}

static atomic_int signaled;
static atomic_int threaded_asks;

static void on_signal(int number) {
    (void)number;
    atomic_store(&signaled, 1);
}

static int interrupted_by_signal(divvy_client *c, void *user) {
    (void)c, (void)user;
    atomic_fetch_add(&threaded_asks, 1);
    return atomic_load(&signaled);
}

static void *acquire(void *lock) {
    return divvy_lock_acquire(lock, -1) == DIVVY_EINTERRUPTED ? lock : NULL;
}

/* In threaded mode a signal's handler ends the acquire of another thread. */
TEST(test_signal) {
    divvy_testing_config testing = DIVVY_TESTING_CONFIG_INIT;
    divvy_testing_ensemble *real;
    divvy_client *c;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *first, *second;
    pthread_t thread;
    void *ended = NULL;
    testing.real_clock = 1;
    config.interrupted = interrupted_by_signal;
    lock_config.path = "/l";
    assert_int_equal(divvy_testing_ensemble_create(&real, &testing), 0);
    assert_int_equal(divvy_testing_client_open(&c, real, &config), 0);
    assert_int_equal(divvy_lock_create(&first, c, &lock_config), 0);
    assert_int_equal(divvy_lock_create(&second, c, &lock_config), 0);
    assert_int_equal(divvy_lock_acquire(first, WAIT_MS), 0);
    signal(SIGUSR1, on_signal);
    atomic_store(&threaded_asks, 0);
    assert_int_equal(pthread_create(&thread, NULL, acquire, second), 0);
    while (atomic_load(&threaded_asks) < 2) sched_yield();
    raise(SIGUSR1);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_ptr_equal(ended, second);
    free_threaded(c, first, second);
    divvy_testing_ensemble_destroy(real);
}

TEST_EACH(set_up, tear_down);
