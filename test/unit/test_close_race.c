/* A close whose wake the loop takes in just before it sleeps. SPDX-License-Identifier: Apache-2.0
 *
 * The linker puts our read() and pthread_join() into the library's place (test/CMakeLists.txt), so that the close comes
 * between the loop's look at whether it is to stop and its taking in of what woke it. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "client/client.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { DEADLINE_S = 30, SERVERS = 3 /* the default */ };

static divvy_client *client;
static atomic_int armed_fd = -1;
static atomic_int joined;
static sem_t may_close, has_woken; /* the closer may begin; it has sent the wake, and waits for the loop's thread */

static void deadline(struct timespec *at) {
    clock_gettime(CLOCK_REALTIME, at);
    at->tv_sec += DEADLINE_S;
}

static void wait_for(sem_t *semaphore) {
    struct timespec at;
    deadline(&at);
    assert_int_equal(sem_timedwait(semaphore, &at), 0);
}

ssize_t __real_read(int fd, void *bytes, size_t count);
ssize_t __wrap_read(int fd, void *bytes, size_t count);
ssize_t __wrap_read(int fd, void *bytes, size_t count) {
    int armed = fd;
    if (fd >= 0 && atomic_compare_exchange_strong(&armed_fd, &armed, -1)) {
        sem_post(&may_close);
        wait_for(&has_woken);
    }
    return __real_read(fd, bytes, count);
}

int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result) {
    atomic_fetch_add(&joined, 1);
    sem_post(&has_woken);
    return __real_pthread_join(thread, result);
}

static void *close_it(void *unused) {
    wait_for(&may_close);
    divvy_client_close(client);
    return unused;
}

/* The close ends, and both threads with it, though no timer or event wakes the loop after it: no server is there. */
TEST(test_close_at_the_brink_of_sleep) {
    divvy_testing_ensemble *ensemble;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.real_clock = 1;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (unsigned i = 0; i < SERVERS; i++) assert_int_equal(divvy_testing_kill_server(ensemble, i), 0);
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
    assert_int_equal(sem_init(&may_close, 0, 0) | sem_init(&has_woken, 0, 0), 0);
    atomic_store(&joined, 0);
    pthread_t closer;
    assert_int_equal(pthread_create(&closer, NULL, close_it, NULL), 0);
    atomic_store(&armed_fd, client->wake_fd);
    dv_client_wake(client);
    struct timespec at;
    deadline(&at);
    assert_int_equal(pthread_timedjoin_np(closer, NULL, &at), 0);
    assert_int_equal(atomic_load(&armed_fd), -1);
    assert_int_equal(atomic_load(&joined), 2);
    divvy_testing_ensemble_destroy(ensemble);
}

static void *process(void *result) {
    *(int *)result = divvy_client_process(client, -1);
    return NULL;
}

static bool someone_waits(void) {
    dv_client_lock(client);
    bool waits = client->waiters > 0;
    dv_client_unlock(client);
    return waits;
}

static void set_processing(bool processing) {
    dv_client_lock(client);
    client->processing = processing;
    pthread_cond_broadcast(&client->changed);
    dv_client_unlock(client);
}

static void join(pthread_t thread) {
    struct timespec at;
    deadline(&at);
    assert_int_equal(pthread_timedjoin_np(thread, NULL, &at), 0);
}

/* A process() that waits while another call drives the loop says that the client was closed, which waits for it. */
TEST(test_close_of_one_that_waits_to_drive) {
    divvy_testing_ensemble *ensemble;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    pthread_t processor, closer;
    int result = 0;
    config.real_clock = client_config.manual = 1;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
    assert_int_equal(sem_init(&may_close, 0, 1), 0);
    set_processing(true);
    assert_int_equal(pthread_create(&processor, NULL, process, &result), 0);
    assert_true(DV_WAIT(someone_waits(), 1000 * DEADLINE_S));
    assert_int_equal(pthread_create(&closer, NULL, close_it, NULL), 0);
    join(processor);
    assert_int_equal(result, DIVVY_ECLOSED);
    set_processing(false);
    join(closer);
    divvy_testing_ensemble_destroy(ensemble);
}

static bool is_closed(void) {
    dv_client_lock(client);
    bool closed = client->life == DV_CLIENT_CLOSED;
    dv_client_unlock(client);
    return closed;
}

static int ask(divvy_client *c, void *user) {
    (void)c, (void)user;
    sem_post(&may_close);
    return !DV_WAIT(is_closed(), 1000 * DEADLINE_S);
}

static void *wait_connected(void *result) {
    *(int *)result = divvy_client_wait_connected(client, -1);
    return NULL;
}

/* A close waits for a call that still asks its user whether to go on, and ends when that call does. */
TEST(test_close_of_one_that_asks) {
    divvy_testing_ensemble *ensemble;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    pthread_t waiter, closer;
    int result = 0;
    config.real_clock = 1;
    client_config.interrupted = ask;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, &config), 0);
    for (unsigned i = 0; i < SERVERS; i++) assert_int_equal(divvy_testing_kill_server(ensemble, i), 0);
    assert_int_equal(divvy_testing_client_open(&client, ensemble, &client_config), 0);
    assert_int_equal(sem_init(&may_close, 0, 0), 0);
    assert_int_equal(pthread_create(&waiter, NULL, wait_connected, &result), 0);
    assert_int_equal(pthread_create(&closer, NULL, close_it, NULL), 0);
    join(waiter);
    assert_int_equal(result, DIVVY_ECLOSED);
    join(closer);
    divvy_testing_ensemble_destroy(ensemble);
}
