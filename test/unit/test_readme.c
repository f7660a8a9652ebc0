/* The C of README.md, as it stands there, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0
 *
 * readme_worker.inc and readme_main.inc are the first block of C in README.md, up to its comment on main() and from
 * there. What it leaves to its reader is here. Workers are threads, so time is real. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { DEADLINE_MS = 20000 };

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"};
enum { QUEUES = sizeof queues / sizeof *queues };

static divvy_testing_ensemble *ensemble;
static divvy_client *other_client;
static _Atomic(divvy_partitioner *) other;
static atomic_int messages[QUEUES], at_work[QUEUES];
static _Atomic(int64_t) tokens[QUEUES];
static atomic_int complaints, twice, changed;

static int complain(const char *why) {
    print_error("%s\n", why);
    atomic_fetch_add(&complaints, 1);
    return 1;
}

static void handle_one_message(const char *queue, int64_t token) {
    for (size_t i = 0; i < QUEUES; i++) {
        if (strcmp(queues[i], queue) != 0) continue;
        if (atomic_fetch_add(&at_work[i], 1) > 0 || divvy_partitioner_owns(other, queue)) atomic_fetch_add(&twice, 1);
        if (atomic_exchange(&tokens[i], token) != token) atomic_fetch_add(&changed, 1);
        dv_test_sleep_ms(1);
        atomic_fetch_add(&messages[i], 1);
        atomic_fetch_sub(&at_work[i], 1);
    }
}

static int open_here(divvy_client **out, const divvy_client_config *config) {
    return divvy_testing_client_open(out, ensemble, config);
}

static divvy_partitioner_config pool_config(void) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/work_queues";
    config.items = queues;
    config.item_count = QUEUES;
    config.on_session_loss = DIVVY_REJOIN;
    config.time_boundary_ms = 50;
    return config;
}

static divvy_client_config client_config(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.ensemble_tick_ms = 100;
    config.session_timeout_ms = 2000;
    return config;
}

#include "readme_worker.inc"

#define divvy_client_open open_here
static int run_readme(void) {
    divvy_client_config servers = client_config();
    divvy_partitioner_config pool = pool_config();
    divvy_client *client;
    divvy_workers *workers;
#include "readme_main.inc"
    return error;
}
#undef divvy_client_open

static void *run_in_thread(void *result) {
    atomic_store((atomic_int *)result, run_readme());
    return NULL;
}

static void release(divvy_partitioner *member, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    (void)user;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(member);
}

/* Another member of the pool, which works on nothing. */
static void start_other(void) {
    divvy_client_config where = client_config();
    assert_int_equal(divvy_testing_client_open(&other_client, ensemble, &where), 0);
    divvy_partitioner_config config = pool_config();
    config.identifier = "other";
    config.on_state = release;
    divvy_partitioner *p;
    assert_int_equal(divvy_partitioner_create(&p, other_client, &config), 0);
    atomic_store(&other, p);
}

static size_t owned_by_other(void) {
    size_t owned = 0;
    for (size_t i = 0; i < QUEUES; i++) owned += (size_t)divvy_partitioner_owns(other, queues[i]);
    return owned;
}

static size_t worked_on(int since[QUEUES]) {
    size_t worked = 0;
    for (size_t i = 0; i < QUEUES; i++) worked += atomic_load(&messages[i]) > since[i] + 10;
    return worked;
}

static void look(int since[QUEUES]) {
    for (size_t i = 0; i < QUEUES; i++) since[i] = atomic_load(&messages[i]);
}

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.real_clock = 1;
    config.tick_ms = 100;
    config.max_session_timeout_ms = 5000;
    signal(SIGTERM, SIG_DFL);
    return divvy_testing_ensemble_create(&ensemble, &config);
}

static int tear_down(void **state) {
    (void)state;
    divvy_partitioner_destroy(other);
    divvy_client_close(other_client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* One alone works on all queues. When another joins it goes on with half of them, without a break, which only it owns.
 * SIGTERM ends it, and the other has all. */
TEST_IN(test_two_members, set_up, tear_down) {
    int since[QUEUES] = {0};
    atomic_int result = -1;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_in_thread, &result), 0);
    assert_true(DV_WAIT(worked_on(since) == QUEUES, DEADLINE_MS));
    start_other();
    assert_true(DV_WAIT(owned_by_other() == QUEUES / 2, DEADLINE_MS));
    look(since);
    assert_true(DV_WAIT(worked_on(since) == QUEUES / 2, DEADLINE_MS));
    kill(getpid(), SIGTERM);
    pthread_join(thread, NULL);
    assert_int_equal(result, 0);
    assert_true(DV_WAIT(owned_by_other() == QUEUES, DEADLINE_MS));
    assert_int_equal(complaints, 0);
    assert_int_equal(twice, 0);
    assert_int_equal(changed, QUEUES);
}
