/* The table of items while it is replaced: seen by other threads, without memory, and large. SPDX-License-Identifier:
 * Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "divvy/divvy.h"
#include "divvy/testing.h"
#include "lib/test.h"
#include "partitioner/partitioner.h"
#include "scarce.h"
#include "wait.h"

/* ---- a member that has acquired what it is configured with ---- */

typedef struct {
    divvy_testing_ensemble *ensemble;
    divvy_client *client;
    divvy_partitioner *p;
} member;

static int join(void **state, bool threaded) {
    static member m;
    static const char *const items[] = {"here", "kept"};
    divvy_testing_config ensemble_config = DIVVY_TESTING_CONFIG_INIT;
    ensemble_config.real_clock = threaded;
    ensemble_config.servers = 1;
    assert_int_equal(divvy_testing_ensemble_create(&m.ensemble, &ensemble_config), 0);
    divvy_client_config client_config = DIVVY_CLIENT_CONFIG_INIT;
    client_config.manual = !threaded;
    client_config.session_timeout_ms = 40000;
    assert_int_equal(divvy_testing_client_open(&m.client, m.ensemble, &client_config), 0);
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = "/pool";
    config.items = items;
    config.item_count = sizeof items / sizeof *items;
    config.assign = DIVVY_ASSIGN_RENDEZVOUS;
    config.time_boundary_ms = 0;
    assert_int_equal(divvy_partitioner_create(&m.p, m.client, &config), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m.p, 60000), 0);
    *state = &m;
    return 0;
}

static int join_manually(void **state) {
    return join(state, false);
}

static int join_threaded(void **state) {
    return join(state, true);
}

static int leave(void **state) {
    member *m = *state;
    divvy_partitioner_destroy(m->p);
    divvy_client_close(m->client);
    divvy_testing_ensemble_destroy(m->ensemble);
    return 0;
}

static int deal(member *m, const char *const *names, size_t count, const uint8_t *mine) {
    dv_client_lock(m->client);
    dv_plan_set *set = dv_plan_set_make(names, count);
    assert_non_null(set);
    int error = dv_items_use(m->p, set);
    if (!error) error = dv_items_need(m->p, mine);
    if (!error) dv_state_target_settled(m->p, mine, DIVVY_REASON_MEMBERS, dv_client_now(m->client));
    dv_plan_set_unref(set);
    dv_client_unlock(m->client);
    return error;
}

/* ---- other threads ---- */

enum { LOOKERS = 8, ROUNDS = 300, PATIENCE_MS = 30000 };

typedef struct {
    const divvy_partitioner *p;
    atomic_bool stop;
    atomic_uint looks, kept_missed, strangers;
} watch;

static void *look(void *context) {
    watch *w = context;
    while (!atomic_load(&w->stop)) {
        if (!divvy_partitioner_owns(w->p, "kept")) atomic_fetch_add(&w->kept_missed, 1);
        divvy_partitioner_owns(w->p, "here");
        divvy_partitioner_owns(w->p, "new");
        if (divvy_partitioner_owns(w->p, "never")) atomic_fetch_add(&w->strangers, 1);
        atomic_fetch_add(&w->looks, 1);
    }
    return NULL;
}

static bool nothing_kept(const member *m) {
    dv_client_lock(m->client);
    bool nothing = !m->p->aging && !m->p->retired;
    dv_client_unlock(m->client);
    return nothing;
}

/* While sets are replaced under them, divvy_partitioner_owns() in other threads never misses what is kept, never says
 * yes to what was never ours, and touches no memory that is gone (ThreadSanitizer and AddressSanitizer look on). Soon
 * no table that was replaced is left, although they go on. */
TEST_IN(test_seen_by_threads, join_threaded, leave) {
    member *m = *state;
    watch w = {.p = m->p};
    pthread_t threads[LOOKERS];
    for (size_t i = 0; i < LOOKERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, look, &w), 0);
    static const char *const one[] = {"here", "kept", "never"}, *const two[] = {"a", "kept", "never", "new"};
    static const uint8_t mine_of_one[] = {1, 1, 0}, mine_of_two[] = {1, 1, 0, 1};
    for (int round = 0; round < ROUNDS; round++) {
        assert_int_equal(deal(m, two, 4, mine_of_two), 0);
        if (divvy_partitioner_state(m->p) == DIVVY_RELEASE) divvy_partitioner_release_set(m->p);
        assert_int_equal(deal(m, one, 3, mine_of_one), 0);
        if (divvy_partitioner_state(m->p) == DIVVY_RELEASE) divvy_partitioner_release_set(m->p);
    }
    while (atomic_load(&w.looks) < ROUNDS) {
    }
    assert_true(DV_WAIT(nothing_kept(m), PATIENCE_MS));
    atomic_store(&w.stop, true);
    for (size_t i = 0; i < LOOKERS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(w.kept_missed, 0);
    assert_int_equal(w.strangers, 0);
}

/* ---- without memory ---- */

typedef struct {
    member *m;
    dv_plan_set *set;
    const uint8_t *mine;
} replacement;

static int use(const replacement *r) {
    return dv_items_use(r->m->p, r->set);
}

static int need(const replacement *r) {
    return dv_items_need(r->m->p, r->mine);
}

/* Lets each allocation of the call fail in turn. Returns how many there are; the client is locked before and after. */
static int fail_each(const replacement *r, int (*call)(const replacement *r)) {
    member *m = r->m;
    const dv_item_table *table = dv_items_of(m->p);
    const dv_plan_set *dealt = m->p->dealt;
    size_t references = r->set->references;
    for (int failures = 0;; failures++) {
        scarce_after = failures;
        int error = call(r);
        scarce_after = -1;
        if (error == 0) return failures;
        assert_int_equal(error, DIVVY_ENOMEM);
        assert_ptr_equal(dv_items_of(m->p), table);
        assert_ptr_equal(m->p->dealt, dealt);
        assert_int_equal(m->p->totals.shown, 2);
        assert_int_equal(r->set->references, references);
        assert_int_equal(table->names->count, 2);
        for (size_t i = 0; i < 2; i++) {
            assert_int_equal(table->items[i]->index, i);
            assert_true(dv_item_shown(table->items[i]) && table->items[i]->refs == 2);
        }
        dv_client_unlock(m->client);
        assert_int_equal(divvy_partitioner_owns(m->p, "here"), 1);
        assert_int_equal(divvy_partitioner_owns(m->p, "a"), 0);
        dv_client_lock(m->client);
    }
}

/* Whichever allocation of a replacement fails, by another set or by another share, what was there is whole: the same
 * table, the same items in it, and nothing is leaked (AddressSanitizer looks on). With one more it succeeds. */
TEST(test_out_of_memory) {
    member *m = *state;
    static const char *const names[] = {"a", "b", "kept", "z"};
    static const uint8_t mine[] = {1, 1, 1, 1};
    dv_client_lock(m->client);
    dv_plan_set *set = dv_plan_set_make(names, 4);
    const replacement r = {m, set, mine};
    assert_true(fail_each(&r, use) >= 6); /* the draft, the table */
    assert_true(!dv_item_find(m->p, "here")->dealt && dv_item_find(m->p, "kept")->dealt);
    assert_null(dv_item_find(m->p, "a"));
    assert_true(dv_items_have(m->p, "a") && dv_items_have(m->p, "here") && !dv_items_have(m->p, "c"));
    assert_true(fail_each(&r, need) >= 9); /* and three items */
    assert_int_equal(dv_item_count(m->p), 5);
    for (size_t i = 0; i < 4; i++) assert_ptr_equal(dv_item_dealt(m->p, i), dv_item_find(m->p, names[i]));
    dv_state_target_settled(m->p, mine, DIVVY_REASON_MEMBERS, dv_client_now(m->client));
    dv_plan_set_unref(set);
    dv_client_unlock(m->client);
    assert_int_equal(divvy_partitioner_state(m->p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m->p), 0);
    assert_int_equal(divvy_partitioner_wait_for_acquire(m->p, 30000), 0);
    for (size_t i = 0; i < 4; i++) assert_int_equal(divvy_partitioner_owns(m->p, names[i]), 1);
}

/* A removed item that was given up, but for whose leaving the table there is no memory, stays in it until there is. */
TEST(test_out_of_memory_at_pruning) {
    member *m = *state;
    static const char *const names[] = {"kept"};
    static const uint8_t mine[] = {1};
    assert_int_equal(deal(m, names, 1, mine), 0);
    assert_int_equal(divvy_partitioner_state(m->p), DIVVY_RELEASE);
    dv_client_lock(m->client);
    dv_item *item = dv_item_find(m->p, "here");
    assert_int_equal(dv_state_release(m->p, m->p->state_id, dv_client_now(m->client)), 0);
    void (*run)(dv_event *, int64_t) = m->p->prune.run;
    assert_non_null(run);
    scarce_after = 0;
    run(&m->p->prune, dv_client_now(m->client)); /* as the loop will; its own turn finds nothing to do */
    scarce_after = -1;
    dv_object_ref(&m->p->object);
    m->p->prune.run = run;
    assert_ptr_equal(dv_item_find(m->p, "here"), item);
    dv_client_unlock(m->client);
    assert_true(divvy_testing_run(m->ensemble, 1000) > 0);
    assert_null(dv_item_find(m->p, "here"));
    assert_int_equal(divvy_partitioner_state(m->p), DIVVY_ACQUIRED);
}

/* ---- large ---- */

enum { MANY = 100000, NAME_BYTES = 16 };

static int64_t now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

/* With a share of 100,000 items a replacement that keeps most costs no more than a few walks over them: less than
 * making all of them, which is one walk with allocations, does several times over. When they are others' none is left.
 */
TEST(test_many) {
    member *m = *state;
    char(*texts)[NAME_BYTES] = calloc(MANY + 1, NAME_BYTES);
    const char **names = calloc(MANY + 1, sizeof *names);
    uint8_t *mine = malloc(MANY + 1);
    assert_true(texts && names && mine);
    memset(mine, 1, MANY + 1);
    for (size_t i = 0; i <= MANY; i++) {
        snprintf(texts[i], NAME_BYTES, "item-%06zu", i);
        names[i] = texts[i];
    }
    dv_client_lock(m->client);
    dv_plan_set *all = dv_plan_set_make(names, MANY), *next = dv_plan_set_make(names + 1, MANY);
    assert_true(all && next);
    int64_t began_us = now_us();
    assert_int_equal(dv_items_use(m->p, all), 0);
    assert_int_equal(dv_items_need(m->p, mine), 0);
    int64_t made_us = now_us() - began_us, kept_us = INT64_MAX;
    for (int round = 0; round < 4; round++) {
        began_us = now_us();
        assert_int_equal(dv_items_use(m->p, round % 2 ? all : next), 0);
        assert_int_equal(dv_items_need(m->p, mine), 0);
        int64_t took_us = now_us() - began_us;
        if (took_us < kept_us) kept_us = took_us;
    }
    print_message("100,000 items: made in %.1f ms; one replaced in %.1f ms\n", (double)made_us / 1000,
                  (double)kept_us / 1000);
    assert_true(kept_us < 4 * made_us + 20000);
    memset(mine, 0, MANY);
    dv_state_target_settled(m->p, mine, DIVVY_REASON_MEMBERS, dv_client_now(m->client));
    assert_int_equal(dv_item_count(m->p), MANY + 2); /* and the two that are shown yet */
    dv_plan_set_unref(all);
    dv_plan_set_unref(next);
    dv_client_unlock(m->client);
    assert_int_equal(divvy_partitioner_state(m->p), DIVVY_RELEASE);
    assert_int_equal(divvy_partitioner_release_set(m->p), 0);
    assert_true(divvy_testing_run(m->ensemble, 1000) > 0);
    assert_int_equal(dv_item_count(m->p), 0);
    free(texts);
    free(names);
    free(mine);
}

TEST_EACH(join_manually, leave);
