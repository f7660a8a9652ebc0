/* Tests of what each call of the library says of NULL, in the child of a fork, and of a timeout below -1.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"

/* One object of each kind; all of them may be NULL. */
typedef struct {
    divvy_client *client;
    divvy_lock *lock;
    divvy_semaphore *semaphore;
    divvy_election *election;
    divvy_party *party;
    divvy_registry *registry;
    divvy_partitioner *partitioner;
    divvy_workers *workers;
} objects;

static divvy_testing_ensemble *ensemble;
static objects real;
static cJSON *status;

/* ---- one call of each ---- */

/* Calls to make: all; those that have a timeout; of these, those that wait in the caller's thread. */
typedef enum { ALL, TIMED, WAITING } choice;

typedef struct {
    const char *call;
    int result;
} answer;

static answer answers[128];
static size_t answer_count;

#define ASK(call)                        \
    answers[answer_count++] = (answer) { \
#call, call                      \
    }

static void on_attempt(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)result, (void)user;
}

static void on_slot(divvy_semaphore *semaphore, int result, void *user) {
    (void)semaphore, (void)result, (void)user;
}

static void on_stored(divvy_registry *registry, int result, const cJSON *stored, void *user) {
    (void)registry, (void)result, (void)stored, (void)user;
}

static void on_change(divvy_registry *registry, int change, const cJSON *before, const cJSON *after, void *user) {
    (void)registry, (void)change, (void)before, (void)after, (void)user;
}

static int write_nothing(void *user, const char *text, size_t bytes) {
    (void)user, (void)text, (void)bytes;
    return 0;
}

static int work(divvy_job *job, void *user) {
    (void)job, (void)user;
    return 0;
}

/* Nothing may be left in what a call that fails writes to. */
static void *const untouched = &answers;

static void ask_client(const objects *o, int64_t timeout_ms, choice which) {
    divvy_stats stats;
    ASK(divvy_client_wait_connected(o->client, timeout_ms));
    if (which != WAITING) ASK(divvy_client_process(o->client, timeout_ms));
    if (which != ALL) return;
    ASK(divvy_client_stats(o->client, &stats, sizeof stats));
    ASK(divvy_metrics_write(o->client, write_nothing, NULL));
    ASK(divvy_metrics_write_prometheus(o->client, write_nothing, NULL));
}

static void ask_locks(const objects *o, int64_t timeout_ms, choice which) {
    divvy_strings *strings = untouched;
    divvy_holders *holders = untouched;
    ASK(divvy_lock_acquire(o->lock, timeout_ms));
    if (which != WAITING) ASK(divvy_lock_acquire_async(o->lock, timeout_ms, on_attempt, NULL));
    ASK(divvy_lock_wait_gone(o->lock, timeout_ms));
    ASK(divvy_lock_contenders(o->lock, &strings, timeout_ms));
    assert_null(strings);
    ASK(divvy_semaphore_acquire(o->semaphore, timeout_ms));
    if (which != WAITING) ASK(divvy_semaphore_acquire_async(o->semaphore, timeout_ms, on_slot, NULL));
    ASK(divvy_semaphore_wait_gone(o->semaphore, timeout_ms));
    ASK(divvy_semaphore_resize(o->semaphore, 2, timeout_ms));
    ASK(divvy_semaphore_holders(o->semaphore, &holders, timeout_ms));
    assert_null(holders);
    holders = untouched;
    ASK(divvy_semaphore_contenders(o->semaphore, &holders, timeout_ms));
    assert_null(holders);
    if (which != ALL) return;
    ASK(divvy_lock_try_acquire(o->lock));
    ASK(divvy_lock_release(o->lock));
    ASK(divvy_lock_cancel(o->lock, 1));
    ASK(divvy_semaphore_try_acquire(o->semaphore));
    ASK(divvy_semaphore_release(o->semaphore));
    ASK(divvy_semaphore_cancel(o->semaphore, 1));
}

static void ask_elections(const objects *o, int64_t timeout_ms, choice which) {
    divvy_leader *leader = untouched;
    divvy_strings *strings = untouched;
    ASK(divvy_election_leader(o->election, &leader, timeout_ms));
    assert_null(leader);
    ASK(divvy_election_candidates(o->election, &strings, timeout_ms));
    assert_null(strings);
    ASK(divvy_election_ask_step_down(o->election, timeout_ms));
    strings = untouched;
    ASK(divvy_party_members(o->party, &strings, timeout_ms));
    assert_null(strings);
    strings = untouched;
    ASK(divvy_party_list(o->client, "/party", DIVVY_PARTY, &strings, timeout_ms));
    assert_null(strings);
    ASK(divvy_party_leave(o->party, timeout_ms));
    if (which != ALL) return;
    ASK(divvy_election_stand(o->election));
    ASK(divvy_election_resign(o->election));
}

static void ask_registry(const objects *o, int64_t timeout_ms, choice which) {
    cJSON *entry = untouched;
    divvy_services *services = untouched;
    size_t purged = 1;
    ASK(divvy_registry_heartbeat(o->registry, status, &entry, timeout_ms));
    assert_null(entry);
    if (which != WAITING) ASK(divvy_registry_heartbeat_async(o->registry, status, timeout_ms, on_stored, NULL));
    ASK(divvy_registry_unregister(o->registry, "role", "id", timeout_ms));
    ASK(divvy_registry_services(o->registry, "role", &services, timeout_ms));
    assert_null(services);
    entry = untouched;
    ASK(divvy_registry_healthy_service(o->registry, "role", &entry, timeout_ms));
    assert_null(entry);
    entry = untouched;
    ASK(divvy_registry_healthy_services(o->registry, "role", &entry, timeout_ms));
    assert_null(entry);
    entry = untouched;
    ASK(divvy_registry_unique_service(o->registry, "role", status, &entry, timeout_ms));
    assert_null(entry);
    ASK(divvy_registry_purge_stale_services(o->registry, 1, &purged, timeout_ms));
    assert_int_equal(purged, 0);
    if (which != ALL) return;
    ASK(divvy_registry_watch(o->registry, "role", on_change, NULL));
    ASK(divvy_registry_unwatch(o->registry, "role"));
}

static void ask_pool(const objects *o, int64_t timeout_ms, choice which) {
    static const char *const items[] = {"b", "c"};
    divvy_pool_request request = DIVVY_POOL_REQUEST_INIT;
    request.timeout_ms = timeout_ms;
    ASK(divvy_partitioner_wait_change(o->partitioner, 0, timeout_ms));
    ASK(divvy_partitioner_wait_for_acquire(o->partitioner, timeout_ms));
    ASK(divvy_partitioner_leave(o->partitioner, 0, timeout_ms));
    ASK(divvy_partitioner_finish(o->partitioner, timeout_ms));
    ASK(divvy_pool_set_weight(o->client, "/pool", "member", 1, &request));
    ASK(divvy_pool_forget(o->client, "/pool", "member", &request));
    ASK(divvy_pool_pin(o->client, "/pool", "a", "member", &request));
    ASK(divvy_pool_unpin(o->client, "/pool", "a", &request));
    ASK(divvy_pool_move(o->client, "/pool", "a", "member", &request));
    ASK(divvy_pool_pause(o->client, "/pool", "a", &request));
    ASK(divvy_pool_resume(o->client, "/pool", "a", &request));
    ASK(divvy_pool_need(o->client, "/pool", "a", "tag", &request));
    ASK(divvy_pool_set_option(o->client, "/pool", "max-moves", "1", &request));
    if (which != ALL) return;
    ASK(divvy_partitioner_release_set(o->partitioner));
    ASK(divvy_partitioner_release_set_id(o->partitioner, 1));
    ASK(divvy_partitioner_prepared(o->partitioner, "a"));
    ASK(divvy_partitioner_set_items(o->partitioner, items, 2));
    ASK(divvy_partitioner_set_weight(o->partitioner, 2));
    ASK(divvy_partitioner_set_load(o->partitioner, "a", 1.0));
    ASK(divvy_partitioner_failure(o->partitioner, NULL, 0));
    ASK(divvy_workers_run(o->workers));
    ASK(divvy_workers_stop(o->workers));
}

static void ask_to_create(const objects *o) {
    static const char *const items[] = {"a"};
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    divvy_semaphore_config semaphore_config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_election_config election_config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_registry_config registry_config = DIVVY_REGISTRY_CONFIG_INIT;
    divvy_partitioner_config partitioner_config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_workers_config workers_config = DIVVY_WORKERS_CONFIG_INIT;
    lock_config.path = semaphore_config.path = election_config.path = partitioner_config.path = "/x";
    partitioner_config.items = items;
    partitioner_config.item_count = 1;
    workers_config.pool = &partitioner_config;
    workers_config.worker = work;
    objects made;
    memset(&made, 1, sizeof made);
    ASK(divvy_lock_create(&made.lock, o->client, &lock_config));
    ASK(divvy_semaphore_create(&made.semaphore, o->client, &semaphore_config));
    ASK(divvy_election_create(&made.election, o->client, &election_config));
    ASK(divvy_party_join(&made.party, o->client, "/party", "me", DIVVY_PARTY));
    ASK(divvy_registry_open(&made.registry, o->client, &registry_config));
    ASK(divvy_partitioner_create(&made.partitioner, o->client, &partitioner_config));
    ASK(divvy_workers_create(&made.workers, o->client, &workers_config));
    assert_null(made.lock);
    assert_null(made.semaphore);
    assert_null(made.election);
    assert_null(made.party);
    assert_null(made.registry);
    assert_null(made.partitioner);
    assert_null(made.workers);
}

static void ask(const objects *o, int64_t timeout_ms, choice which) {
    answer_count = 0;
    ask_client(o, timeout_ms, which);
    ask_locks(o, timeout_ms, which);
    ask_elections(o, timeout_ms, which);
    ask_registry(o, timeout_ms, which);
    ask_pool(o, timeout_ms, which);
    if (which == ALL) ask_to_create(o);
    assert_in_range(answer_count, 1, sizeof answers / sizeof answers[0]);
}

/* Prints each call that said something else. Returns how many did. */
static int count_others(int result) {
    int count = 0;
    for (size_t i = 0; i < answer_count; i++) {
        if (answers[i].result == result) continue;
        fprintf(stderr, "%s instead of %s: %s\n", divvy_errname(answers[i].result), divvy_errname(result),
                answers[i].call);
        count++;
    }
    return count;
}

/* ---- what only looks, and what ends ---- */

/* Prints each look that finds something. Returns how many do. */
static int look(const objects *o) {
    int found = 0;
    char path[64] = "x";
#define NOTHING(call) \
    if (call) found++, fprintf(stderr, "found: %s\n", #call)
    NOTHING(divvy_client_state(o->client) != DIVVY_CLOSED);
    NOTHING(divvy_client_time_left_ms(o->client));
    NOTHING(divvy_lock_attempt_id(o->lock));
    NOTHING(divvy_lock_held(o->lock));
    NOTHING(divvy_lock_token(o->lock));
    NOTHING(divvy_lock_node(o->lock, path, sizeof path) || path[0]);
    NOTHING(divvy_semaphore_attempt_id(o->semaphore));
    NOTHING(divvy_semaphore_held(o->semaphore));
    NOTHING(divvy_semaphore_token(o->semaphore));
    NOTHING(divvy_semaphore_slot(o->semaphore) != -1);
    NOTHING(divvy_semaphore_slot_at(o->semaphore, 0) != -1);
    NOTHING(divvy_election_leads(o->election));
    NOTHING(divvy_election_token(o->election));
    NOTHING(divvy_party_joined(o->party));
    NOTHING(divvy_party_node(o->party, path, sizeof path) || path[0]);
    NOTHING(divvy_registry_is_ours(o->registry, status));
    NOTHING(divvy_registry_malformed(o->registry));
    NOTHING(divvy_partitioner_state(o->partitioner) != DIVVY_FAILURE);
    NOTHING(divvy_partitioner_state_id(o->partitioner));
    NOTHING(divvy_partitioner_partition(o->partitioner));
    NOTHING(divvy_partitioner_to_prepare(o->partitioner));
    NOTHING(divvy_partitioner_owns(o->partitioner, "a"));
    NOTHING(divvy_partitioner_owns_token(o->partitioner, "a", 1));
    NOTHING(divvy_partitioner_is_replaced(o->partitioner));
    NOTHING(divvy_partitioner_joined(o->partitioner));
    NOTHING(divvy_partitioner_node(o->partitioner, path, sizeof path) || path[0]);
#undef NOTHING
    return found;
}

static void on_gone(void *user) {
    ++*(int *)user;
}

static void destroy_async(const objects *o, int *gone) {
    divvy_workers_destroy_async(o->workers, on_gone, gone);
    divvy_partitioner_destroy_async(o->partitioner, on_gone, gone);
    divvy_registry_close_async(o->registry, on_gone, gone);
    divvy_party_destroy_async(o->party, on_gone, gone);
    divvy_election_destroy_async(o->election, on_gone, gone);
    divvy_semaphore_destroy_async(o->semaphore, on_gone, gone);
    divvy_lock_destroy_async(o->lock, on_gone, gone);
}

static void destroy(const objects *o) {
    divvy_workers_destroy(o->workers);
    divvy_partitioner_destroy(o->partitioner);
    divvy_registry_close(o->registry);
    divvy_party_destroy(o->party);
    divvy_election_destroy(o->election);
    divvy_semaphore_destroy(o->semaphore);
    divvy_lock_destroy(o->lock);
    divvy_client_close(o->client);
}

static int set_up(void **state) {
    (void)state;
    static const char *const items[] = {"a", "b"};
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    divvy_semaphore_config semaphore_config = DIVVY_SEMAPHORE_CONFIG_INIT;
    divvy_election_config election_config = DIVVY_ELECTION_CONFIG_INIT;
    divvy_partitioner_config partitioner_config = DIVVY_PARTITIONER_CONFIG_INIT;
    divvy_workers_config workers_config = DIVVY_WORKERS_CONFIG_INIT;
    assert_int_equal(divvy_testing_ensemble_create(&ensemble, NULL), 0);
    config.manual = 1;
    assert_int_equal(divvy_testing_client_open(&real.client, ensemble, &config), 0);
    assert_int_equal(divvy_client_wait_connected(real.client, 30000), 0);
    lock_config.path = "/lock";
    semaphore_config.path = "/semaphore";
    election_config.path = "/election";
    partitioner_config.path = "/pool";
    partitioner_config.items = items;
    partitioner_config.item_count = 2;
    assert_int_equal(divvy_lock_create(&real.lock, real.client, &lock_config), 0);
    assert_int_equal(divvy_semaphore_create(&real.semaphore, real.client, &semaphore_config), 0);
    assert_int_equal(divvy_election_create(&real.election, real.client, &election_config), 0);
    assert_int_equal(divvy_party_join(&real.party, real.client, "/party", "me", DIVVY_PARTY), 0);
    assert_int_equal(divvy_registry_open(&real.registry, real.client, NULL), 0);
    assert_int_equal(divvy_partitioner_create(&real.partitioner, real.client, &partitioner_config), 0);
    partitioner_config.path = "/workers";
    workers_config.pool = &partitioner_config;
    workers_config.worker = work;
    assert_int_equal(divvy_workers_create(&real.workers, real.client, &workers_config), 0);
    status = cJSON_Parse("{\"role\":\"role\",\"id\":\"id\",\"heartbeat_interval\":10}");
    assert_non_null(status);
    assert_int_equal(divvy_lock_acquire(real.lock, 30000), 0);
    assert_int_equal(divvy_semaphore_acquire(real.semaphore, 30000), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(real.partitioner, 30000), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    cJSON_Delete(status);
    status = NULL;
    destroy(&real);
    divvy_testing_ensemble_destroy(ensemble);
    return 0;
}

/* Each call that can fail says DIVVY_EINVAL of a NULL object, and leaves NULL where it would have put something. What
 * only looks finds nothing, and what ends an object does nothing and tells nobody. */
TEST(test_null) {
    objects none = {0};
    int gone = 0;
    ask(&none, 0, ALL);
    assert_int_equal(count_others(DIVVY_EINVAL), 0);
    assert_int_equal(look(&none), 0);
    destroy_async(&none, &gone);
    destroy(&none);
    assert_int_equal(gone, 0);
}

/* A timeout below -1 is refused by each call that has one, whatever state its object is in. */
TEST_IN(test_timeout_below_minus_one, set_up, tear_down) {
    ask(&real, -2, TIMED);
    assert_int_equal(count_others(DIVVY_EINVAL), 0);
    assert_true(divvy_lock_held(real.lock));
    assert_int_equal(divvy_partitioner_state(real.partitioner), DIVVY_ACQUIRED);
}

/* In the child of a fork each call says DIVVY_EFORK, and what only looks finds nothing. What ends an object does
 * nothing, so the parent keeps all that it has. */
TEST_IN(test_fork, set_up, tear_down) {
    int64_t token = divvy_lock_token(real.lock);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int gone = 0;
        ask(&real, 0, ALL);
        int others = count_others(DIVVY_EFORK), found = look(&real);
        destroy_async(&real, &gone);
        destroy(&real);
        exit(others || found || gone ? 1 : 0);
    }
    int status_of_child = -1;
    assert_int_equal(waitpid(child, &status_of_child, 0), child);
    assert_int_equal(status_of_child, 0);
    assert_int_equal(divvy_lock_token(real.lock), token);
    assert_true(divvy_partitioner_owns(real.partitioner, "a"));
}

static void drop_answers(const char *part) {
    size_t kept = 0;
    for (size_t i = 0; i < answer_count; i++)
        if (!strstr(answers[i].call, part)) answers[kept++] = answers[i];
    assert_true(kept < answer_count);
    answer_count = kept;
}

static int others_in_callback = -1;

static void ask_in_callback(divvy_lock *lock, int result, void *user) {
    (void)lock, (void)user;
    assert_int_equal(result, 0);
    ask(&real, 1000, WAITING);
    drop_answers("wait_connected("); /* What these three wait for has come. */
    drop_answers("wait_change(");
    drop_answers("wait_for_acquire(");
    others_in_callback = count_others(DIVVY_EDEADLK);
}

/* Each call that waits says DIVVY_EDEADLK inside a callback, where it would wait for itself. */
TEST_IN(test_in_callback, set_up, tear_down) {
    assert_int_equal(divvy_lock_release(real.lock), 0);
    assert_int_equal(divvy_lock_acquire_async(real.lock, 1000, ask_in_callback, NULL), 0);
    divvy_testing_run(ensemble, 1000);
    assert_int_equal(others_in_callback, 0);
    assert_true(divvy_lock_held(real.lock));
}

/* After the client's end each call says DIVVY_ECLOSED of an object that is still there. Its nodes have gone. */
TEST_IN(test_closed, set_up, tear_down) {
    divvy_client *client = real.client;
    real.client = NULL;
    divvy_client_close(client);
    assert_int_equal(divvy_lock_wait_gone(real.lock, 1000), 0);
    assert_int_equal(divvy_semaphore_wait_gone(real.semaphore, 1000), 0);
    ask(&real, 1000, TIMED);
    drop_answers("_wait_gone(");
    drop_answers("(o->client"); /* Nobody may use that one. */
    assert_int_equal(count_others(DIVVY_ECLOSED), 0);
    assert_false(divvy_lock_held(real.lock));
    assert_int_equal(divvy_partitioner_state(real.partitioner), DIVVY_FAILURE);
}
