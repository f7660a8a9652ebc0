/* Workers: calls of a worker, one after the other, and what they lack. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workers/workers.h"
#include "workers_fixture.h"

/* ---- memory and threads that cannot be had, by the run and by create() ---- */

static _Thread_local bool in_run;
static _Thread_local bool armed;             /* inside the room of workers, and not in what it calls */
static _Thread_local long scarce_after = -1; /* how many allocations still succeed before one fails; below 0: all do */
static atomic_long run_scarce_after = -1;    /* that of the run */
static atomic_int threads_refused;           /* so many of the next ones that the run asks for */

static atomic_int refusals;

static bool is_refused(void) {
    bool refused = scarce_after >= 0 && scarce_after-- == 0;
    atomic_fetch_add(&refusals, refused);
    return refused;
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* Nothing comes about because the run looks every second. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    return __real_poll(fds, count, in_run && timeout_ms > 900 ? -1 : timeout_ms);
}

static atomic_int clock_ahead_s; /* the run's clock is so much ahead; not that of the client */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    int error = __real_clock_gettime(clock, now);
    if (in_run && clock == CLOCK_MONOTONIC) now->tv_sec += atomic_load(&clock_ahead_s);
    return error;
}

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes) {
    return armed && is_refused() ? NULL : __real_calloc(count, bytes);
}

int __real_divvy_partitioner_create(divvy_partitioner **out, divvy_client *client,
                                    const divvy_partitioner_config *config);
int __wrap_divvy_partitioner_create(divvy_partitioner **out, divvy_client *client,
                                    const divvy_partitioner_config *config);

int __wrap_divvy_partitioner_create(divvy_partitioner **out, divvy_client *client,
                                    const divvy_partitioner_config *config) {
    armed = false;
    return is_refused() ? DIVVY_ENOMEM : __real_divvy_partitioner_create(out, client, config);
}

divvy_partition *__real_divvy_partitioner_partition(divvy_partitioner *p);
divvy_partition *__wrap_divvy_partitioner_partition(divvy_partitioner *p);

divvy_partition *__wrap_divvy_partitioner_partition(divvy_partitioner *p) {
    return is_refused() ? NULL : __real_divvy_partitioner_partition(p);
}

void __real_dv_places_take(divvy_workers *w, const divvy_partition *mine);
void __wrap_dv_places_take(divvy_workers *w, const divvy_partition *mine);

void __wrap_dv_places_take(divvy_workers *w, const divvy_partition *mine) {
    armed = true;
    __real_dv_places_take(w, mine);
    armed = false;
}

int __real_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *context);

int __wrap_pthread_create(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    if (in_run && atomic_fetch_sub(&threads_refused, 1) > 0) return EAGAIN;
    return __real_pthread_create(out, attributes, run, context);
}

static void *run_refused(void *member) {
    in_run = true;
    return fixture_run(member);
}

/* Where no thread can be had the item waits, and is told; its worker is called when there is one. */
TEST_IN(test_no_thread, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.backoff_ms = 10;
    dv_member *anna = &members[0];
    open_client(anna, 0);
    assert_int_equal(divvy_workers_create(&anna->workers, anna->client, &config), 0);
    atomic_store(&threads_refused, 3);
    anna->runs = true;
    assert_int_equal(pthread_create(&anna->thread, NULL, run_refused, anna), 0);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    assert_int_equal(sum(anna->ended), 3);
    assert_int_equal(sum(anna->begun), ITEMS);
    for (int i = 0; i < ITEMS; i++)
        assert_true(!atomic_load(&anna->ended[i]) || atomic_load(&anna->end_result[i]) == DIVVY_ESYSTEM);
    assert_int_equal(stop(anna), 0);
}

/* A pool with more items than threads is refused. Items that come later wait until a thread is free. */
TEST_IN(test_max_threads, set_up, tear_down) {
    divvy_workers *none = NULL;
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    open_client(&members[0], 0);
    config.max_threads = ITEMS - 1;
    assert_int_equal(divvy_workers_create(&none, members[0].client, &config), DIVVY_E2BIG);
    assert_non_null(strstr(divvy_client_error(members[0].client), "max_threads"));
    assert_null(none);
    pool.item_count = ITEMS - 1;
    config.backoff_ms = config.backoff_max_ms = 10;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS - 1), DEADLINE_MS));
    assert_int_equal(divvy_partitioner_set_items(divvy_workers_partitioner(anna->workers), items, ITEMS), 0);
    assert_true(DV_WAIT(atomic_load(&anna->end_result[3]) == DIVVY_ELIMIT, DEADLINE_MS));
    assert_true(works_on(anna, ITEMS - 1));
    assert_int_equal(divvy_partitioner_set_items(divvy_workers_partitioner(anna->workers), items + 1, ITEMS - 1), 0);
    assert_true(DV_WAIT(atomic_load(&anna->begun[3]) == 1 && works_on(anna, ITEMS - 1), DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
}

/* ---- calls one after the other ---- */

static int64_t begun_ms[8];
static atomic_int begins;

static int fail_at_once(divvy_job *job, void *user) {
    dv_member *m = user;
    if (strcmp(divvy_job_item(job), "a") != 0) return fixture_work(job, user);
    int n = atomic_load(&begins);
    if (n < 8) begun_ms[n] = dv_test_now_ms();
    atomic_fetch_add(&begins, 1);
    return atomic_load(&m->returns[0]);
}

/* A worker that returns is called again after a pause, which doubles up to its most. */
TEST_IN(test_backoff, set_up, tear_down) {
    static const int pauses[] = {40, 80, 100, 100};
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.worker = fail_at_once;
    config.backoff_ms = 40;
    config.backoff_max_ms = 100;
    atomic_store(&begins, 0);
    atomic_store(&members[0].returns[0], 7);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(atomic_load(&begins) >= 5, DEADLINE_MS));
    for (int i = 0; i < 4; i++) assert_true(begun_ms[i + 1] - begun_ms[i] >= pauses[i]);
    assert_int_equal(atomic_load(&anna->end_result[0]), 7);
    assert_int_equal(atomic_load(&anna->restart_ms[0]), 100);
    assert_int_equal(sum(anna->begun), ITEMS - 1);
    atomic_store(&anna->returns[0], 0);
    int before = atomic_load(&begins);
    assert_true(DV_WAIT(atomic_load(&begins) > before + 2, DEADLINE_MS)); /* So is one that ends well. */
    assert_int_equal(stop(anna), 0);
}

static atomic_int may_fail; /* so many calls */

static int fail_when_told(divvy_job *job, void *user) {
    if (strcmp(divvy_job_item(job), "a") != 0) return fixture_work(job, user);
    int number = atomic_fetch_add(&begins, 1) + 1;
    while (!divvy_job_should_stop(job) && atomic_load(&may_fail) < number) dv_test_sleep_ms(1);
    return 7;
}

/* After a run of 5 s the pauses begin again, and not before. */
TEST_IN(test_backoff_begins_again, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.worker = fail_when_told;
    config.backoff_ms = 10;
    dv_member *anna = &members[0];
    open_client(anna, 0);
    assert_int_equal(divvy_workers_create(&anna->workers, anna->client, &config), 0);
    atomic_store(&begins, 0);
    atomic_store(&clock_ahead_s, 0);
    atomic_store(&may_fail, 3);
    anna->runs = true;
    assert_int_equal(pthread_create(&anna->thread, NULL, run_refused, anna), 0);
    assert_true(DV_WAIT(atomic_load(&begins) == 4, DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->restart_ms[0]), 40);
    atomic_store(&clock_ahead_s, 5);
    atomic_store(&may_fail, 4);
    assert_true(DV_WAIT(atomic_load(&anna->ended[0]) == 4, DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->restart_ms[0]), 10);
    atomic_store(&clock_ahead_s, 0);
    assert_int_equal(stop(anna), 0);
}

/* With DIVVY_RESTART_ON_FAILURE one that has returned 0 is finished with the item, until that leaves and comes back.
 * One that failed is called again. With DIVVY_RESTART_NEVER each is finished. */
TEST_IN(test_finished, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.restart = DIVVY_RESTART_ON_FAILURE;
    config.backoff_ms = 1;
    for (int i = 0; i < ITEMS; i++) atomic_store(&members[0].returns[i], ENDS_WELL);
    atomic_store(&members[0].returns[1], 5);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(atomic_load(&anna->begun[1]) >= 4, DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->begun[0]), 1);
    assert_int_equal(atomic_load(&anna->restart_ms[0]), -1);
    dv_member *bert = start(1);
    assert_true(DV_WAIT(works_on(bert, 2), DEADLINE_MS));
    int went = atomic_load(&bert->begun[0]) ? 0 : atomic_load(&bert->begun[2]) ? 2 : 3;
    assert_int_equal(atomic_load(&anna->begun[went]), 1);
    assert_int_equal(stop(bert), 0);
    assert_true(DV_WAIT(atomic_load(&anna->begun[went]) == 2, DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
    destroy(anna);
    memset(anna->begun, 0, sizeof anna->begun);
    anna->has_returned = false;
    config.restart = DIVVY_RESTART_NEVER;
    anna = start_with(0, &config);
    assert_true(DV_WAIT(sum(anna->begun) == ITEMS, DEADLINE_MS));
    assert_false(DV_WAIT(sum(anna->begun) > ITEMS, LOOK_MS));
    assert_int_equal(stop(anna), 0);
}

/* With failure_ends the run ends with what the worker has returned, when all others have. */
TEST_IN(test_failure_ends, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.failure_ends = 1;
    config.worker = fail_at_once;
    atomic_store(&members[0].returns[0], 7);
    atomic_store(&members[0].lingers, true);
    atomic_store(&begins, 0);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(atomic_load(&begins) == 1, DEADLINE_MS));
    assert_true(DV_WAIT(sum(anna->told) == sum(anna->begun), DEADLINE_MS));
    atomic_store(&anna->lingers, false);
    assert_int_equal(join(anna), 7);
    assert_non_null(strstr(anna->why, "worker of a has failed: 7"));
    assert_int_equal(atomic_load(&begins), 1);
    assert_int_equal(divvy_workers_run(anna->workers), DIVVY_ESTATE);
}

static int end_thread(divvy_job *job, void *user) {
    if (strcmp(divvy_job_item(job), "b") == 0) pthread_exit(NULL);
    return fixture_work(job, user);
}

/* A worker that ends its thread has returned. */
TEST_IN(test_ends_its_thread, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.worker = end_thread;
    config.restart = DIVVY_RESTART_NEVER;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS - 1) && atomic_load(&anna->ended[1]) == 1, DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->end_result[1]), DIVVY_ECANCELED);
    assert_int_equal(stop(anna), 0);
}

static int be_cancelled(divvy_job *job, void *user) {
    dv_member *m = user;
    if (strcmp(divvy_job_item(job), "b") == 0 && atomic_load(&m->ended[1]) == 0) {
        pthread_cancel(pthread_self());
        divvy_job_wait(job, -1);
    }
    return fixture_work(job, user);
}

/* So has one whose thread is cancelled while it waits; the next one waits as usual. */
TEST_IN(test_thread_is_cancelled, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.worker = be_cancelled;
    config.backoff_ms = 1;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    assert_int_equal(atomic_load(&anna->ended[1]), 1);
    assert_int_equal(atomic_load(&anna->end_result[1]), DIVVY_ECANCELED);
    assert_int_equal(stop(anna), 0);
}

static int wait_for_a_while(divvy_job *job, void *user) {
    dv_member *m = user;
    int64_t from = dv_test_now_ms();
    if (divvy_job_should_stop(job) || !divvy_job_owns(job) || divvy_job_wait(job, 0) != 0) return 1;
    if (divvy_job_wait(job, 50) != 0 || dv_test_now_ms() - from < 50) return 2;
    if (divvy_job_wait(job, -2) != DIVVY_EINVAL || divvy_job_prepared(job)) return 3;
    int result = fixture_work(job, m);
    if (!divvy_job_should_stop(job) || divvy_job_owns(job) || divvy_job_wait(job, 1000000) != 1) return 4;
    return result;
}

/* A wait ends when its time is over, or when the worker is told to stop. */
TEST_IN(test_wait, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    config.worker = wait_for_a_while;
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
    assert_int_equal(sum(anna->ended), ITEMS);
    assert_int_equal(sum(anna->end_result), 0);
}

/* ---- memory ---- */

static void *run_scarce(void *member) {
    in_run = true;
    scarce_after = atomic_load(&run_scarce_after);
    return fixture_run(member);
}

/* Lets the run make steps until something was refused. */
static bool was_refused(const dv_member *m) {
    dv_workers_wake(m->workers);
    return atomic_load(&refusals) > 0;
}

/* Each allocation of create() and of the run fails in turn, and each snapshot. create() says so and leaves nothing
 * behind; the run goes on a little later, and no job hears of it. What the partitioner allocates is left alone:
 * test/sweep has that. */
TEST_IN(test_scarce_memory, set_up, tear_down) {
    enum { FAILS = 2, RUNS = 12 };
    dv_member *anna = &members[0];
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(anna, &pool);
    config.hand_over = 0;
    open_client(anna, 0);
    for (scarce_after = 0; scarce_after < FAILS;) {
        long n = scarce_after;
        armed = true;
        assert_int_equal(divvy_workers_create(&anna->workers, anna->client, &config), DIVVY_ENOMEM);
        assert_null(anna->workers);
        armed = false;
        scarce_after = n + 1;
    }
    scarce_after = -1;
    for (long n = 0; n < RUNS; n++) {
        anna->has_returned = false;
        memset(anna->told, 0, sizeof anna->told);
        atomic_store(&refusals, 0);
        atomic_store(&run_scarce_after, n);
        assert_int_equal(divvy_workers_create(&anna->workers, anna->client, &config), 0);
        anna->runs = true;
        assert_int_equal(pthread_create(&anna->thread, NULL, run_scarce, anna), 0);
        assert_true(DV_WAIT(works_on(anna, ITEMS) && was_refused(anna), DEADLINE_MS));
        assert_int_equal(sum(anna->told), 0);
        assert_int_equal(stop(anna), 0);
        destroy(anna);
    }
}

/* ---- arguments ---- */

static int create(divvy_workers_config *config) {
    divvy_workers *workers = (divvy_workers *)(void *)config;
    int error = divvy_workers_create(&workers, members[0].client, config);
    assert_null(workers);
    assert_string_not_equal(divvy_client_error(members[0].client), "");
    return error;
}

#define REFUSED(expected, ...)                                            \
    do {                                                                  \
        divvy_partitioner_config pool = pool_config("anna");              \
        divvy_workers_config config = workers_config(&members[0], &pool); \
        __VA_ARGS__;                                                      \
        assert_int_equal(create(&config), expected);                      \
    } while (0)

static int no_prepare(void **prepared, const char *item, void *user) {
    (void)prepared, (void)item, (void)user;
    return 0;
}

/* A configuration that cannot work is refused, with a word on why. */
TEST_IN(test_arguments, set_up, tear_down) {
    open_client(&members[0], 0);
    REFUSED(DIVVY_EINVAL, config.size = 0);
    REFUSED(DIVVY_EINVAL, config.pool = NULL);
    REFUSED(DIVVY_EINVAL, config.worker = NULL);
    REFUSED(DIVVY_EINVAL, pool.size = 1);
    REFUSED(DIVVY_EINVAL, pool.path = "relative");
    REFUSED(DIVVY_EINVAL, pool.items = NULL);
    REFUSED(DIVVY_EINVAL, config.restart = 3);
    REFUSED(DIVVY_EINVAL, config.restart = -1);
    REFUSED(DIVVY_EINVAL, config.signals = 3);
    REFUSED(DIVVY_EINVAL, config.failure_ends = 2);
    REFUSED(DIVVY_EINVAL, config.hand_over = -1);
    REFUSED(DIVVY_EINVAL, config.backoff_ms = -1);
    REFUSED(DIVVY_EINVAL, config.backoff_max_ms = INT64_MAX);
    REFUSED(DIVVY_EINVAL, config.finish_timeout_ms = -1);
    REFUSED(DIVVY_E2BIG, config.max_threads = 0; pool.item_count = 1001);
    REFUSED(DIVVY_EINVAL, config.prepare = no_prepare);
    REFUSED(DIVVY_EINVAL, config.discard = fixture_discard);
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    divvy_workers *workers = NULL;
    assert_int_equal(divvy_workers_create(NULL, members[0].client, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_workers_create(&workers, NULL, &config), DIVVY_EINVAL);
    assert_int_equal(divvy_workers_create(&workers, members[0].client, NULL), DIVVY_EINVAL);
}

/* NULL is no object, and harms nobody. */
TEST(test_null) {
    assert_int_equal(divvy_workers_run(NULL), DIVVY_EINVAL);
    assert_int_equal(divvy_workers_stop(NULL), DIVVY_EINVAL);
    assert_null(divvy_workers_partitioner(NULL));
    divvy_workers_destroy(NULL);
    divvy_workers_destroy_async(NULL, NULL, NULL);
    assert_null(divvy_job_item(NULL));
    assert_int_equal(divvy_job_token(NULL), 0);
    assert_null(divvy_job_prepared(NULL));
    assert_int_equal(divvy_job_owns(NULL), 0);
    assert_int_equal(divvy_job_should_stop(NULL), 1);
    assert_int_equal(divvy_job_wait(NULL, 0), DIVVY_EINVAL);
}

static atomic_int inside;
static _Atomic(divvy_workers *) created;

static void run_inside(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    (void)p, (void)from;
    if (to != DIVVY_ACQUIRED || atomic_load(&inside)) return;
    while (!atomic_load(&created)) dv_test_sleep_ms(1);
    atomic_store((atomic_int *)user, divvy_workers_run(atomic_load(&created)));
}

/* In a callback, and in the child of a fork, no run begins; one that begins later is none the worse for it. The pool's
 * own callbacks are called with their own user. */
TEST_IN(test_cannot_wait, set_up, tear_down) {
    divvy_partitioner_config pool = pool_config("anna");
    divvy_workers_config config = workers_config(&members[0], &pool);
    pool.on_state = run_inside;
    pool.user = &inside;
    atomic_store(&inside, 0);
    atomic_store(&created, NULL);
    open_client(&members[0], 0);
    assert_int_equal(divvy_workers_create(&members[0].workers, members[0].client, &config), 0);
    atomic_store(&created, members[0].workers);
    assert_true(DV_WAIT(atomic_load(&inside) == DIVVY_EDEADLK, DEADLINE_MS));
    pid_t child = fork();
    if (child == 0) {
        divvy_workers *w = members[0].workers;
        bool refused = divvy_workers_run(w) == DIVVY_EFORK && divvy_workers_stop(w) == DIVVY_EFORK;
        divvy_workers_destroy(w);
        divvy_workers_destroy_async(w, NULL, NULL);
        _exit(!refused);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    run_thread(&members[0]);
    assert_true(DV_WAIT(works_on(&members[0], ITEMS), DEADLINE_MS));
    assert_int_equal(stop(&members[0]), 0);
}

static int first_takes_all(const char *identifier, const char *const *names, size_t name_count,
                           const char *const *all_items, size_t item_count, uint8_t *mine, void *user) {
    (void)name_count, (void)all_items;
    atomic_fetch_add((atomic_int *)user, 1);
    memset(mine, strcmp(identifier, names[0]) == 0, item_count);
    return 0;
}

/* So is its own rule of assignment. */
TEST_IN(test_own_rule, set_up, tear_down) {
    atomic_int calls = 0;
    divvy_partitioner_config pool = pool_config("anna");
    pool.assign = DIVVY_ASSIGN_FUNC;
    pool.func = first_takes_all;
    pool.user = &calls;
    divvy_workers_config config = workers_config(&members[0], &pool);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(works_on(anna, ITEMS), DEADLINE_MS));
    assert_true(atomic_load(&calls) > 0);
    assert_int_equal(stop(anna), 0);
}
