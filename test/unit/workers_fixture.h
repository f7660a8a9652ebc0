/* Members of a pool with workers, on the in-memory ensemble with the real clock, since workers are threads.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Each worker notes that it works, in one table for all members: so two workers on one item are seen at once. It works
 * until it is told to stop, or until what the test says of its item has it return. */
#ifndef DV_TEST_WORKERS_FIXTURE_H
#define DV_TEST_WORKERS_FIXTURE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "lib/wait.h"

enum { ITEMS = 4, MEMBERS = 2, DEADLINE_MS = 20000, TICK_MS = 100, SESSION_MS = 2000, BOUNDARY_MS = 50 };

/* For how long a test looks whether something happens that must not. A slow machine may miss it, and never fails. */
enum { LOOK_MS = 400 };

static const char *const items[ITEMS] = {"a", "b", "c", "d"};

typedef struct {
    const char *name;
    divvy_client *client;
    divvy_workers *workers;
    pthread_t thread;
    bool runs;
    int result;
    char why[512];
    atomic_bool has_returned;
    /* by item */
    atomic_int begun[ITEMS], told[ITEMS], working[ITEMS], ended[ITEMS], prepared[ITEMS], given[ITEMS], discarded[ITEMS];
    _Atomic(int64_t) token[ITEMS];
    _Atomic(int64_t) restart_ms[ITEMS];
    atomic_int end_result[ITEMS], end_told[ITEMS];
    atomic_bool lingers;       /* workers that are told to stop go on */
    atomic_bool prepare_lasts; /* so does prepare */
    atomic_int prepare_begun;
    atomic_bool end_lasts; /* and on_end, so the run looks at nothing */
    atomic_int prepare_result;
    atomic_int returns[ITEMS]; /* what the worker returns at once; 0: it works. ENDS_WELL: it returns 0 */
} dv_member;

enum { ENDS_WELL = 1000000 };

static divvy_testing_ensemble *ensemble;
static dv_member members[MEMBERS];
static atomic_int at_work[ITEMS]; /* in all members */
static _Atomic(int64_t) newest[ITEMS];
static atomic_int overlaps, old_tokens, unowned;

static inline int item_number(const char *item) {
    for (int i = 0; i < ITEMS; i++)
        if (strcmp(items[i], item) == 0) return i;
    return 0;
}

static inline int fixture_work(divvy_job *job, void *user) {
    dv_member *m = user;
    int i = item_number(divvy_job_item(job));
    int64_t token = divvy_job_token(job);
    if (atomic_fetch_add(&at_work[i], 1) > 0) atomic_fetch_add(&overlaps, 1);
    if (token < atomic_exchange(&newest[i], token)) atomic_fetch_add(&old_tokens, 1);
    if (divvy_job_prepared(job)) atomic_fetch_add(&m->given[i], 1);
    free(divvy_job_prepared(job));
    atomic_store(&m->token[i], token);
    atomic_fetch_add(&m->working[i], 1);
    atomic_fetch_add(&m->begun[i], 1);
    int result = atomic_load(&m->returns[i]);
    if (result == 0) {
        divvy_job_wait(job, -1);
        atomic_fetch_add(&m->told[i], 1);
        if (divvy_job_owns(job)) atomic_fetch_add(&unowned, 1); /* It is told, so it owns no longer. */
        while (atomic_load(&m->lingers)) dv_test_sleep_ms(1);
    }
    atomic_fetch_sub(&m->working[i], 1);
    atomic_fetch_sub(&at_work[i], 1);
    return result == ENDS_WELL ? 0 : result;
}

static inline int fixture_prepare(void **prepared, const char *item, void *user) {
    dv_member *m = user;
    atomic_fetch_add(&m->prepare_begun, 1);
    while (atomic_load(&m->prepare_lasts)) dv_test_sleep_ms(1);
    if (*prepared) abort();
    *prepared = strdup(item);
    atomic_fetch_add(&m->prepared[item_number(item)], 1);
    return atomic_load(&m->prepare_result);
}

static inline void fixture_discard(void *prepared, const char *item, void *user) {
    dv_member *m = user;
    if (strcmp(prepared, item) != 0) abort();
    atomic_fetch_add(&m->discarded[item_number(item)], 1);
    free(prepared);
}

static inline void fixture_on_end(divvy_workers *workers, const divvy_job_end *end, void *user) {
    dv_member *m = user;
    int i = item_number(end->item);
    (void)workers;
    atomic_store(&m->restart_ms[i], end->restart_ms);
    atomic_store(&m->end_result[i], end->result);
    atomic_store(&m->end_told[i], end->told_to_stop);
    atomic_fetch_add(&m->ended[i], 1);
    while (atomic_load(&m->end_lasts)) dv_test_sleep_ms(1);
}

static inline divvy_partitioner_config pool_config(const char *name) {
    divvy_partitioner_config pool = DIVVY_PARTITIONER_CONFIG_INIT;
    pool.path = "/pool";
    pool.items = items;
    pool.item_count = ITEMS;
    pool.identifier = name;
    pool.time_boundary_ms = BOUNDARY_MS;
    pool.on_session_loss = DIVVY_REJOIN;
    return pool;
}

static inline divvy_workers_config workers_config(dv_member *m, const divvy_partitioner_config *pool) {
    divvy_workers_config config = DIVVY_WORKERS_CONFIG_INIT;
    config.pool = pool;
    config.worker = fixture_work;
    config.on_end = fixture_on_end;
    config.user = m;
    config.signals = DIVVY_SIGNALS_LEAVE;
    return config;
}

static inline void open_client(dv_member *m, int manual) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.session_timeout_ms = SESSION_MS;
    config.ensemble_tick_ms = TICK_MS;
    config.manual = manual;
    assert_int_equal(divvy_testing_client_open(&m->client, ensemble, &config), 0);
}

static inline void *fixture_run(void *member) {
    dv_member *m = member;
    m->result = divvy_workers_run(m->workers);
    snprintf(m->why, sizeof m->why, "%s", divvy_client_error(m->client));
    atomic_store(&m->has_returned, true);
    return NULL;
}

static inline void run_thread(dv_member *m) {
    m->runs = true;
    assert_int_equal(pthread_create(&m->thread, NULL, fixture_run, m), 0);
}

/* Starts a member that is configured so. */
static inline dv_member *start_with(int number, const divvy_workers_config *config) {
    dv_member *m = &members[number];
    if (!m->client) open_client(m, 0);
    assert_int_equal(divvy_workers_create(&m->workers, m->client, config), 0);
    run_thread(m);
    return m;
}

static inline dv_member *start(int number) {
    static const char *const names[MEMBERS] = {"anna", "bert"};
    divvy_partitioner_config pool = pool_config(names[number]);
    divvy_workers_config config = workers_config(&members[number], &pool);
    return start_with(number, &config);
}

/* A standby: it prepares for what comes. */
static inline dv_member *start_preparing_with(int number, int64_t prepare_timeout_ms, int restart) {
    divvy_partitioner_config pool = pool_config("bert");
    pool.prepare_timeout_ms = prepare_timeout_ms;
    divvy_workers_config config = workers_config(&members[number], &pool);
    config.prepare = fixture_prepare;
    config.discard = fixture_discard;
    config.restart = restart;
    return start_with(number, &config);
}

static inline dv_member *start_preparing(int number, int64_t prepare_timeout_ms) {
    return start_preparing_with(number, prepare_timeout_ms, DIVVY_RESTART_ALWAYS);
}

static inline int sum(const atomic_int *numbers) {
    int all = 0;
    for (int i = 0; i < ITEMS; i++) all += atomic_load(&numbers[i]);
    return all;
}

static inline bool works_on(dv_member *m, int count) {
    return sum(m->working) == count;
}

/* Waits for the end of a run; returns what it returned. */
static inline int join(dv_member *m) {
    if (m->runs) {
        if (!DV_WAIT(atomic_load(&m->has_returned), DEADLINE_MS)) dv_test_die("the run does not end");
        pthread_join(m->thread, NULL);
    }
    m->runs = false;
    return m->result;
}

static inline int stop(dv_member *m) {
    assert_int_equal(divvy_workers_stop(m->workers), 0);
    return join(m);
}

static inline void destroy(dv_member *m) {
    divvy_workers_destroy(m->workers);
    m->workers = NULL;
}

static inline int set_up(void **state) {
    (void)state;
    divvy_testing_config config = DIVVY_TESTING_CONFIG_INIT;
    config.real_clock = 1;
    config.tick_ms = TICK_MS;
    config.max_session_timeout_ms = 5000;
    config.election_min_ms = 20;
    config.election_max_ms = 50;
    memset(members, 0, sizeof members);
    memset(at_work, 0, sizeof at_work);
    memset(newest, 0, sizeof newest);
    overlaps = old_tokens = unowned = 0;
    signal(SIGTERM, SIG_DFL); /* A shell that starts us in the background has SIGINT ignored. */
    signal(SIGINT, SIG_DFL);
    return divvy_testing_ensemble_create(&ensemble, &config);
}

/* Ends all, also after a test that has failed. Whatever a test does, no item has two workers, and tokens grow. */
static inline int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        dv_member *m = &members[i];
        atomic_store(&m->lingers, false);
        atomic_store(&m->prepare_lasts, false);
        atomic_store(&m->end_lasts, false);
        if (m->runs) {
            divvy_workers_stop(m->workers);
            divvy_workers_stop(m->workers);
            join(m);
        }
        divvy_workers_destroy(m->workers);
        divvy_client_close(m->client);
    }
    divvy_testing_ensemble_destroy(ensemble);
    if (overlaps || old_tokens || unowned || sum(at_work))
        print_error("%d items had two workers, %d old tokens, %d were told to stop and own, %d are at work\n",
                    (int)overlaps, (int)old_tokens, (int)unowned, sum(at_work));
    return overlaps || old_tokens || unowned || sum(at_work);
}

#endif
