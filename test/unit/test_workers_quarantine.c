/* Workers: a poisonous item is paused by the member that counted its failures. SPDX-License-Identifier: Apache-2.0 */
#include "divvy/pool.h"
#include "workers_fixture.h"

enum { LIMIT = 3, POISON = 1 }; /* the item b */

/* What on_quarantine was told. */
static atomic_int told, told_error;
static char told_why[512];

static void on_quarantine(divvy_workers *workers, const char *item, int error, const char *why, void *user) {
    const dv_member *m = user;
    assert_ptr_equal(workers, m->workers);
    assert_string_equal(item, items[POISON]);
    snprintf(told_why, sizeof told_why, "%s", why);
    atomic_store(&told_error, error);
    atomic_fetch_add(&told, 1);
}

static divvy_workers_config config_of(int number, divvy_partitioner_config *pool) {
    static const char *const names[MEMBERS] = {"anna", "bert"};
    *pool = pool_config(names[number]);
    divvy_workers_config config = workers_config(&members[number], pool);
    config.quarantine_failures = LIMIT;
    config.backoff_ms = config.backoff_max_ms = 10;
    config.on_quarantine = on_quarantine;
    return config;
}

static dv_member *start_member(int number) {
    divvy_partitioner_config pool;
    divvy_workers_config config = config_of(number, &pool);
    atomic_store(&members[number].returns[POISON], 7);
    return start_with(number, &config);
}

static int set_up_quarantine(void **state) {
    told = told_error = 0;
    return set_up(state);
}

static bool is_paused(const dv_member *m) {
    return atomic_load(&told) == 1 && !divvy_partitioner_owns(divvy_workers_partitioner(m->workers), items[POISON]);
}

/* The item is paused at the third failure, with the reason. No other member works on it, not even when the first one
 * has left; all else goes on. divvy_pool_resume() gives it back, and the count begins again. */
TEST(test_poison) {
    dv_member *anna = start_member(0);
    assert_true(DV_WAIT(is_paused(anna), DEADLINE_MS));
    assert_int_equal(told_error, 0);
    assert_string_equal(told_why, "failed 3 times in 10 min, last: result 7");
    assert_true(atomic_load(&anna->begun[POISON]) >= LIMIT);
    dv_member *bert = start_member(1);
    assert_true(DV_WAIT(sum(bert->working) + sum(anna->working) == ITEMS - 1 && sum(bert->working) > 0, DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
    assert_true(DV_WAIT(works_on(bert, ITEMS - 1), DEADLINE_MS));
    assert_int_equal(atomic_load(&bert->begun[POISON]), 0);
    atomic_store(&bert->returns[POISON], 0);
    assert_int_equal(divvy_pool_resume(bert->client, "/pool", items[POISON], NULL), 0);
    assert_true(DV_WAIT(works_on(bert, ITEMS), DEADLINE_MS));
    assert_int_equal(stop(bert), 0);
    assert_int_equal(told, 1);
}

/* So it is in manual mode, where the run makes the call itself. */
TEST(test_manual) {
    open_client(&members[0], 1);
    dv_member *anna = start_member(0);
    assert_true(DV_WAIT(is_paused(anna) && works_on(anna, ITEMS - 1), DEADLINE_MS));
    assert_int_equal(told_error, 0);
    assert_int_equal(stop(anna), 0);
}

/* A worker that returns 0, or was told to stop, has not failed. */
TEST(test_no_failure) {
    divvy_partitioner_config pool;
    divvy_workers_config config = config_of(0, &pool);
    config.quarantine_failures = 1;
    atomic_store(&members[0].returns[POISON], ENDS_WELL);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(atomic_load(&anna->ended[POISON]) >= 5, DEADLINE_MS));
    assert_int_equal(stop(anna), 0);
    assert_int_equal(told, 0);
}

/* A pause that cannot be written is told, and tried again at the next failure. */
TEST(test_cannot_be_paused) {
    divvy_partitioner_config pool;
    divvy_workers_config config = config_of(0, &pool);
    pool.assign = DIVVY_ASSIGN_RENDEZVOUS;
    config.backoff_max_ms = 100;
    atomic_store(&members[0].returns[POISON], 7);
    dv_member *anna = start_with(0, &config);
    assert_true(DV_WAIT(atomic_load(&told) >= 2, DEADLINE_MS));
    assert_int_equal(told_error, DIVVY_ESTATE);
    assert_non_null(strstr(told_why, "follows no plan"));
    assert_int_equal(stop(anna), 0);
}

/* Settings that make no sense are refused, with their own message. */
TEST(test_refused) {
    static const struct {
        size_t failures;
        int64_t window_ms;
        int failure_ends;
        const char *message;
    } rows[] = {{1001, 1000, 0, "quarantine_failures is 1001"},
                {1, -1, 0, "quarantine_window_ms is -1"},
                {1, 1000, 1, "with failure_ends no item is left to be quarantined"}};
    open_client(&members[0], 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        divvy_partitioner_config pool;
        divvy_workers_config config = config_of(0, &pool);
        config.quarantine_failures = rows[i].failures;
        config.quarantine_window_ms = rows[i].window_ms;
        config.failure_ends = rows[i].failure_ends;
        assert_int_equal(divvy_workers_create(&members[0].workers, members[0].client, &config), DIVVY_EINVAL);
        assert_non_null(strstr(divvy_client_error(members[0].client), rows[i].message));
    }
}

TEST_EACH(set_up_quarantine, tear_down);
