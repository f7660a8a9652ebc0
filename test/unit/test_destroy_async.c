/* Tests of destroys that never wait, and of `gone`, the last callback. SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { WAIT_MS = 60000, DEADLINE_S = 30 };

static divvy_testing_ensemble *ensemble;
static divvy_client *client;

/* A callback that stands still until it may go on, and what was told. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stands, may_go_on, has_gone, gave_up;
static int gone_calls, calls_after_gone, dones, last_result;

/* With the mutex held. Returns false when the time is over. */
static bool wait_for(const bool *flag) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += DEADLINE_S;
    while (!*flag) {
        if (pthread_cond_timedwait(&changed, &mutex, &until) != 0) return *flag;
    }
    return true;
}

static void stand_still(void) {
    pthread_mutex_lock(&mutex);
    stands = true;
    pthread_cond_broadcast(&changed);
    if (!wait_for(&may_go_on)) gave_up = true;
    calls_after_gone += gone_calls;
    pthread_mutex_unlock(&mutex);
}

static void on_gone(void *user) {
    pthread_mutex_lock(&mutex);
    assert_ptr_equal(user, &gone_calls);
    gone_calls++;
    has_gone = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void reset(void) {
    stands = may_go_on = has_gone = gave_up = false;
    gone_calls = calls_after_gone = dones = 0;
    last_result = 1000;
}

/* ---- objects whose callback stands still ---- */

typedef struct {
    const char *name;
    void *(*make)(void);
    void (*destroy)(void *object, void (*gone)(void *user), void *user);
} kind;

static void on_lock_done(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)result, (void)user;
    stand_still();
}

static void *make_lock(void) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/l";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, on_lock_done, NULL), 0);
    return lock;
}

static void destroy_lock(void *object, void (*gone)(void *user), void *user) {
    divvy_lock_destroy_async(object, gone, user);
}

static void on_slots_done(divvy_semaphore *semaphore, int result, void *user) {
    (void)semaphore, (void)result, (void)user;
    stand_still();
}

static void *make_semaphore(void) {
    divvy_semaphore_config config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_semaphore *semaphore;
    config.path = "/s";
    assert_int_equal(divvy_semaphore_create(&semaphore, client, &config), 0);
    assert_int_equal(divvy_semaphore_acquire_async(semaphore, -1, on_slots_done, NULL), 0);
    return semaphore;
}

static void destroy_semaphore(void *object, void (*gone)(void *user), void *user) {
    divvy_semaphore_destroy_async(object, gone, user);
}

static void on_elected(divvy_election *election, int64_t token, void *user) {
    (void)election, (void)token, (void)user;
    stand_still();
}

static void *make_election(void) {
    divvy_election_config config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_election *election;
    config.path = "/e";
    config.on_elected = on_elected;
    assert_int_equal(divvy_election_create(&election, client, &config), 0);
    assert_int_equal(divvy_election_stand(election), 0);
    return election;
}

static void destroy_election(void *object, void (*gone)(void *user), void *user) {
    divvy_election_destroy_async(object, gone, user);
}

static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user) {
    (void)registry, (void)change, (void)before, (void)after, (void)user;
    stand_still();
}

static void *make_registry(void) {
    divvy_registry *registry;
    cJSON *status = cJSON_CreateObject();
    cJSON_AddStringToObject(status, "role", "web");
    cJSON_AddNumberToObject(status, "load", 1);
    cJSON_AddNumberToObject(status, "ttl", 10);
    assert_int_equal(divvy_registry_open(&registry, client, NULL), 0);
    assert_int_equal(divvy_registry_heartbeat(registry, status, NULL, WAIT_MS), 0);
    assert_int_equal(divvy_registry_watch(registry, NULL, on_change, NULL), 0);
    cJSON_Delete(status);
    return registry;
}

static void close_registry(void *object, void (*gone)(void *user), void *user) {
    divvy_registry_close_async(object, gone, user);
}

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p, (void)from, (void)to, (void)user;
    stand_still();
}

static void on_destroyed(void *user) {
    (void)user;
    calls_after_gone++;
}

static void *make_partitioner(void) {
    static const char *const items[] = {"a", "b"};
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_partitioner *p;
    config.path = "/pool";
    config.items = items;
    config.item_count = 2;
    config.on_state = on_state;
    config.on_destroyed = on_destroyed;
    assert_int_equal(divvy_partitioner_create(&p, client, &config), 0);
    return p;
}

static void destroy_partitioner(void *object, void (*gone)(void *user), void *user) {
    divvy_partitioner_destroy_async(object, gone, user);
}

static const kind kinds[] = {
    {"lock", make_lock, destroy_lock},
    {"semaphore", make_semaphore, destroy_semaphore},
    {"election", make_election, destroy_election},
    {"registry", make_registry, close_registry},
    {"partitioner", make_partitioner, destroy_partitioner},
};

static void open_ensemble(int real_clock, int manual) {
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    config.real_clock = real_clock;
    client_config.manual = manual;
    reset();
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
}

/* While a callback of the object stands still its destroy returns, and `gone` comes after that callback, once and
 * last. */
TEST(test_while_a_callback_runs) {
    open_ensemble(1, 0);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        reset();
        void *object = kinds[i].make();
        pthread_mutex_lock(&mutex);
        if (!wait_for(&stands)) fail_msg("no callback of the %s came", kinds[i].name);
        pthread_mutex_unlock(&mutex);
        kinds[i].destroy(object, on_gone, &gone_calls);
        pthread_mutex_lock(&mutex);
        assert_int_equal(gone_calls, 0);
        may_go_on = true;
        pthread_cond_broadcast(&changed);
        if (!wait_for(&has_gone)) fail_msg("the %s never went", kinds[i].name);
        assert_int_equal(gone_calls, 1);
        pthread_mutex_unlock(&mutex);
        assert_false(gave_up);
    }
    divvy_client_close(client);
    assert_int_equal(gone_calls, 1);
    assert_int_equal(calls_after_gone, 0);
    divvy_testing_ensemble_destroy(ensemble);
}

/* ---- the order, and a close, in manual mode ---- */

static void on_end(divvy_lock *lock, int result, void *user) {
    (void)lock;
    if (user) assert_int_equal(gone_calls, 0);
    dones++;
    last_result = result;
}

/* `first`: its `done` is to come before any `gone`. */
static divvy_lock *make_waiting(bool first) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/l";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, on_end, first ? &dones : NULL), 0);
    return lock;
}

static void process_some(void) {
    for (int i = 0; i < 50; i++) assert_true(divvy_client_process(client, 100) >= 0);
}

/* Nothing is called inside the call. The `done` that is due comes first, then `gone`, once. */
TEST(test_after_what_is_due) {
    open_ensemble(0, 1);
    divvy_lock *lock = make_waiting(true);
    divvy_lock_destroy_async(lock, on_gone, &gone_calls);
    assert_int_equal(dones + gone_calls, 0);
    process_some();
    assert_int_equal(dones, 1);
    assert_int_equal(last_result, DIVVY_ECANCELED);
    assert_int_equal(gone_calls, 1);
    divvy_party *party;
    assert_int_equal(divvy_party_join(&party, client, "/p", NULL, DIVVY_PARTY), 0);
    process_some();
    divvy_party_destroy_async(party, on_gone, &gone_calls);
    process_some();
    assert_int_equal(gone_calls, 2);
    divvy_client_close(client);
    assert_int_equal(gone_calls, 2);
    divvy_testing_ensemble_destroy(ensemble);
}

/* Without `gone` the rest is the same; NULL objects are passed over. */
TEST(test_without_gone) {
    open_ensemble(0, 1);
    divvy_lock_destroy_async(make_waiting(true), NULL, NULL);
    process_some();
    assert_int_equal(dones, 1);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) kinds[i].destroy(NULL, on_gone, &gone_calls);
    divvy_party_destroy_async(NULL, on_gone, &gone_calls);
    divvy_client_close(client);
    assert_int_equal(gone_calls, 0);
    divvy_testing_ensemble_destroy(ensemble);
}

/* A client that closes before anybody runs callbacks calls `gone` as well, after the `done`. After that it is called
 * inside the destroy. */
TEST(test_close) {
    open_ensemble(0, 1);
    divvy_lock *late = make_waiting(false);
    divvy_lock_destroy_async(make_waiting(true), on_gone, &gone_calls);
    assert_int_equal(dones + gone_calls, 0);
    divvy_client_close(client);
    assert_int_equal(gone_calls, 1);
    assert_int_equal(dones, 2);
    divvy_lock_destroy_async(late, on_gone, &gone_calls);
    assert_int_equal(gone_calls, 2);
    divvy_testing_ensemble_destroy(ensemble);
}

static int wait_result;

static void close_inside(divvy_lock *lock, int result, void *user) {
    on_end(lock, result, NULL);
    divvy_client_close(client);
    wait_result = divvy_lock_acquire(user, -1);
}

/* A destroy in manual mode runs the `done` that is due. When that closes the client, the destroy does so before it
 * returns, and tells what else is due. A call that waits in such a callback is refused. */
TEST(test_close_in_done_of_destroy) {
    open_ensemble(1, 1);
    divvy_lock *other = make_waiting(false), *lock;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    lock_config.path = "/l";
    assert_int_equal(divvy_lock_create(&lock, client, &lock_config), 0);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, close_inside, other), 0);
    divvy_lock_destroy(lock);
    assert_int_equal(dones, 2);
    assert_int_equal(wait_result, DIVVY_EDEADLK);
    assert_int_equal(divvy_lock_acquire(other, 0), DIVVY_ECLOSED);
    divvy_lock_destroy(other);
    divvy_testing_ensemble_destroy(ensemble);
}

static void destroy_inside(divvy_lock *lock, int result, void *user) {
    (void)user;
    assert_int_equal(result, 0);
    divvy_lock_destroy_async(lock, on_gone, &gone_calls);
    assert_int_equal(gone_calls, 0);
    dones++;
}

/* Inside a callback of the object, too. */
TEST(test_inside_a_callback) {
    open_ensemble(0, 1);
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = "/l";
    assert_int_equal(divvy_lock_create(&lock, client, &config), 0);
    assert_int_equal(divvy_lock_acquire_async(lock, -1, destroy_inside, NULL), 0);
    process_some();
    assert_int_equal(dones, 1);
    assert_int_equal(gone_calls, 1);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
}
