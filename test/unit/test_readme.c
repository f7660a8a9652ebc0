/* The C of README.md, as it stands there, on the in-memory ensemble. SPDX-License-Identifier: Apache-2.0
 *
 * readme.inc is the first block of C in README.md. What it leaves to its reader is here. Time is virtual, so a turn of
 * its loop counts, and no machine is too slow. */
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

enum { JOINS_MS = 15000, LOOKS_MS = 25000, ENDS_MS = 40000, TURNS_MAX = 10000 };

static const char *const queues[] = {"alpha", "beta", "gamma", "delta"};
enum { QUEUES = sizeof queues / sizeof *queues };

static divvy_testing_ensemble *ensemble;
static divvy_client *client, *other_client;
static divvy_partitioner *p, *other;
static int64_t start_ms;
static size_t turns, alone[QUEUES], shared[QUEUES]; /* pieces of work, by queue: before, and after the other joined */

static int64_t now_ms(void) {
    return divvy_testing_now_ms(ensemble) - start_ms;
}

static int complain(const char *why) {
    fail_msg("%s", why);
    return 1;
}

static void work_on(const char *queue) {
    if (divvy_partitioner_owns(other, queue)) fail_msg("%s is worked on by two", queue);
    for (size_t i = 0; i < QUEUES; i++) {
        if (strcmp(queues[i], queue) != 0) continue;
        alone[i] += now_ms() < JOINS_MS;
        shared[i] += now_ms() >= LOOKS_MS;
    }
}

static divvy_partitioner_config pool(void) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/work_queues";
    config.items = queues;
    config.item_count = QUEUES;
    config.on_session_loss = DIVVY_REJOIN;
    return config;
}

static divvy_client_config servers(void) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.ensemble_tick_ms = 2000;
    config.manual = 1;
    return config;
}

static void release(divvy_partitioner *member, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)from;
    (void)user;
    if (to == DIVVY_RELEASE) divvy_partitioner_release_set(member);
}

/* Another member of the pool, which works on nothing. */
static void start_other(void) {
    divvy_client_config where = servers();
    assert_int_equal(divvy_testing_client_open(&other_client, ensemble, &where), 0);
    divvy_partitioner_config config = pool();
    config.identifier = "other";
    config.on_state = release;
    assert_int_equal(divvy_partitioner_create(&other, other_client, &config), 0);
}

static size_t owned_by_other(void) {
    size_t owned = 0;
    for (size_t i = 0; i < QUEUES; i++) owned += (size_t)divvy_partitioner_owns(other, queues[i]);
    return owned;
}

/* Stands where the loop asks whether to end: once a turn. */
static int end_of_turn(void) {
    if (++turns > TURNS_MAX) fail_msg("the loop spins: %d turns within %lld ms", TURNS_MAX, (long long)now_ms());
    if (!other && now_ms() >= JOINS_MS) start_other();
    if (now_ms() >= LOOKS_MS) assert_int_equal(owned_by_other(), QUEUES / 2);
    return now_ms() >= ENDS_MS;
}

static int open_here(divvy_client **out, const divvy_client_config *config) {
    return divvy_testing_client_open(out, ensemble, config);
}

#define stopping end_of_turn()
#define divvy_client_open open_here
static int run_readme(void) {
    divvy_client_config client_config = servers();
    divvy_partitioner_config config = pool();
#include "readme.inc"
    return 0;
}
#undef stopping
#undef divvy_client_open

static int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    int error = divvy_testing_ensemble_create(&ensemble, &config);
    if (!error) start_ms = divvy_testing_now_ms(ensemble);
    return error;
}

static int tear_down(void **state) {
    (void)state;
    divvy_partitioner_destroy(other);
    divvy_partitioner_destroy(p);
    divvy_client_close(other_client);
    divvy_client_close(client);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* One alone works on all queues. When another joins it goes on with half of them, which only it owns; the other gets
 * the rest at once, and all when it ends. It neither spins nor fails. */
TEST_IN(test_two_members, set_up, tear_down) {
    size_t kept = 0;
    assert_int_equal(run_readme(), 0);
    for (size_t i = 0; i < QUEUES; i++) {
        assert_true(alone[i] > 10);
        assert_true(shared[i] == 0 || shared[i] > 10);
        kept += shared[i] > 0;
    }
    assert_int_equal(kept, QUEUES / 2);
    divvy_testing_run(ensemble, 10000);
    assert_int_equal(owned_by_other(), QUEUES);
}
