/* Several threads, several partitioners on one client, and what is left of all when they are gone.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shows threads on one object, and that no thread and no descriptor stays. */
#include "lib/pool.h"

#include <dirent.h>
#include <string.h>

/* ---- threads that share a partitioner ---- */

typedef struct {
    dv_test_member *member;
    atomic_bool *stop;
    unsigned released;
} sharer;

static void *poll_states(void *context) {
    sharer *s = context;
    divvy_partitioner *p = s->member->partitioner;
    uint64_t id = 0;
    while (!atomic_load(s->stop)) {
        int error = divvy_partitioner_wait_change(p, id, 20);
        if (error && error != DIVVY_ETIMEDOUT) dv_test_die("wait_change: %s", divvy_strerror(error));
        uint64_t now = divvy_partitioner_state_id(p);
        if (now < id) dv_test_die("the state's number went back");
        id = now;
    }
    return NULL;
}

static void *look_at_shares(void *context) {
    sharer *s = context;
    divvy_partitioner *p = s->member->partitioner;
    uint64_t generation = 0;
    while (!atomic_load(s->stop)) {
        divvy_partition *share = divvy_partitioner_partition(p);
        if (divvy_partition_generation(share) < generation) dv_test_die("the generation went back");
        generation = divvy_partition_generation(share);
        for (size_t i = 0; i < divvy_partition_count(share); i++)
            divvy_partitioner_owns(p, divvy_partition_item(share, i));
        divvy_partition_unref(share);
        divvy_stats stats;
        divvy_client_stats(s->member->client, &stats, sizeof stats);
        divvy_client_time_left_ms(s->member->client);
    }
    return NULL;
}

/* Releases by number: a RELEASE that another thread has released since is none of its business. */
static void *release_by_number(void *context) {
    sharer *s = context;
    divvy_partitioner *p = s->member->partitioner;
    while (!atomic_load(s->stop)) {
        uint64_t id = divvy_partitioner_state_id(p);
        if (divvy_partitioner_state(p) != DIVVY_RELEASE) {
            dv_test_sleep_ms(1);
            continue;
        }
        int error = divvy_partitioner_release_set_id(p, id);
        if (error == 0) s->released++;
        else if (error != DIVVY_ESTATE) dv_test_die("release_set_id: %s", divvy_strerror(error));
    }
    return NULL;
}

static void change_targets(dv_test_pool *pool, dv_test_member *m) {
    static const char *const targets[] = {"1111100000", "0000011111", "1010101010", "1111111111"};
    static const size_t loads[] = {5, 5, 5, 10};
    for (size_t i = 0; i < 20; i++) {
        dv_test_pool_set_target(pool, targets[i % 4]);
        DV_POOL_UNTIL(pool, dv_test_member_load(m) == loads[i % 4] && dv_test_member_state(m) == DIVVY_ACQUIRED);
    }
    dv_test_member_mark(m);
}

static void run_with_threads(dv_test_pool *pool, dv_test_member *m) {
    void *(*const runs[])(void *) = {poll_states, look_at_shares, release_by_number, release_by_number};
    enum { COUNT = sizeof runs / sizeof *runs };
    atomic_bool stop = false;
    sharer sharers[COUNT];
    pthread_t threads[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        sharers[i] = (sharer){m, &stop, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, runs[i], &sharers[i]), 0);
    }
    change_targets(pool, m);
    atomic_store(&stop, true);
    for (size_t i = 0; i < COUNT; i++) pthread_join(threads[i], NULL);
    /* P17: a RELEASE that a thread has answered before its callback began is not told. */
    assert_in_range(dv_test_member_count(m, DV_TEST_STATE, DIVVY_RELEASE), 1,
                    sharers[2].released + sharers[3].released);
    assert_int_equal(dv_test_member_kept(m), 10);
}

/* Threads may share a partitioner; each RELEASE is released by one of them. */
TEST_OF_POOL(test_threads_share_a_partitioner) {
    run_with_threads(pool, dv_test_pool_add(pool, &(dv_test_member_config){
                                                      .threaded = true, .patient = true, .func = dv_test_pool_func}));
}

/* A manual client's too, while one thread drives it. */
TEST_OF_POOL(test_threads_share_a_manual_partitioner) {
    run_with_threads(pool,
                     dv_test_pool_add(pool, &(dv_test_member_config){.patient = true, .func = dv_test_pool_func}));
}

static void *release_later(void *context) {
    sharer *s = context;
    dv_test_sleep_ms(100);
    s->released = divvy_partitioner_release_set(s->member->partitioner) == 0;
    return NULL;
}

/* A release in another thread wakes the thread that sleeps in divvy_client_process(): the deletes are sent at once. */
TEST_OF_POOL(test_release_wakes_process) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.patient = true, .func = dv_test_pool_func});
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_ACQUIRED);
    dv_test_pool_set_target(pool, "1111100000");
    DV_POOL_UNTIL(pool, dv_test_member_state(m) == DIVVY_RELEASE);
    dv_test_member_drain(m);
    sharer s = {m, NULL, 0};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, release_later, &s), 0);
    int64_t deadline_ms = dv_test_now_ms() + DV_TEST_PATIENCE_MS;
    while (!dv_test_member_count(m, DV_TEST_STATE, DIVVY_ALLOCATING)) {
        assert_true(dv_test_now_ms() < deadline_ms);
        divvy_client_process(m->client, 20000);
    }
    pthread_join(thread, NULL);
    assert_int_equal(s.released, 1);
    while (dv_test_member_state(m) != DIVVY_ACQUIRED) divvy_client_process(m->client, 20000);
    assert_true(dv_test_now_ms() < deadline_ms);
    assert_int_equal(dv_test_pool_nodes(pool), 6);
}

/* ---- several partitioners on one client ---- */

typedef struct {
    divvy_partitioner *p;
    unsigned destroyed;
} one;

static void count_destroyed(void *user) {
    ((one *)user)->destroyed++;
}

static void create(one *o, divvy_client *client, const char *path, const char *identifier, dv_test_pool *pool) {
    divvy_partitioner_config config = DIVVY_PARTITIONER_CONFIG_INIT;
    config.path = path;
    config.identifier = identifier;
    config.items = (const char *const *)pool->items;
    config.item_count = pool->item_count;
    config.time_boundary_ms = 50;
    config.on_destroyed = count_destroyed;
    config.user = o;
    o->destroyed = 0;
    assert_int_equal(divvy_partitioner_create(&o->p, client, &config), 0);
}

static size_t load(const one *o, dv_test_pool *pool) {
    size_t count = 0;
    for (size_t i = 0; i < pool->item_count; i++) count += (size_t)divvy_partitioner_owns(o->p, pool->items[i]);
    return count;
}

static bool is_settled(const one *o, size_t wanted, dv_test_pool *pool) {
    divvy_partition_state state = divvy_partitioner_state(o->p);
    if (state == DIVVY_RELEASE) divvy_partitioner_release_set(o->p);
    return state == DIVVY_ACQUIRED && load(o, pool) == wanted;
}

/* Partitioners of one pool may share a client, session and watches: they are members like any others; another pool on
 * the same client is not touched by it. */
TEST_OF_POOL(test_two_partitioners_on_one_client) {
    dv_test_member *m = dv_test_pool_add(pool, &(dv_test_member_config){.boundary_ms = 50});
    char path[100];
    snprintf(path, sizeof path, "%s/elsewhere", pool->path);
    one twin, stranger;
    create(&twin, m->client, pool->path, "twin", pool);
    create(&stranger, m->client, path, "twin", pool);
    DV_POOL_UNTIL(pool, is_settled(&twin, 5, pool) && is_settled(&stranger, 10, pool) && dv_test_member_load(m) == 5 &&
                            dv_test_member_state(m) == DIVVY_ACQUIRED);
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(divvy_partitioner_owns(twin.p, pool->items[i]) + dv_test_member_owns(m, i), 1);
    divvy_partitioner_destroy(twin.p);
    DV_POOL_UNTIL(pool, dv_test_member_load(m) == 10 && dv_test_member_state(m) == DIVVY_ACQUIRED && twin.destroyed);
    dv_test_pool_check_owners(pool, false);
    assert_int_equal(load(&stranger, pool), 10);
    divvy_partitioner_destroy(stranger.p);
    DV_POOL_UNTIL(pool, stranger.destroyed);
    assert_int_equal(twin.destroyed + stranger.destroyed, 2);
}

/* ---- nothing is left ---- */

static size_t count_entries(const char *path) {
    size_t count = 0;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    while (readdir(dir)) count++;
    closedir(dir);
    return count;
}

typedef struct {
    long ids[64];
    size_t count;
} thread_list;

static thread_list list_threads(void) {
    thread_list list = {.count = 0};
    DIR *dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        assert_true(list.count < sizeof list.ids / sizeof *list.ids);
        list.ids[list.count++] = strtol(entry->d_name, NULL, 10);
    }
    closedir(dir);
    return list;
}

/* Returns whether a thread is there that was not before. One that was joined may be listed for a moment more. */
static bool has_new_thread(const thread_list *before) {
    thread_list now = list_threads();
    for (size_t i = 0; i < now.count; i++) {
        size_t k = 0;
        while (k < before->count && before->ids[k] != now.ids[i]) k++;
        if (k == before->count) return true;
    }
    return false;
}

static void live_and_die(dv_test_pool *pool, const char *connect, bool manual, bool close_first) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = connect;
    config.ensemble_tick_ms = DV_TEST_TICK_MS;
    config.manual = manual;
    divvy_client *client;
    assert_int_equal(divvy_client_open(&client, &config), 0);
    one o;
    create(&o, client, pool->path, NULL, pool);
    if (strcmp(connect, pool->connect) == 0)
        assert_int_equal(divvy_partitioner_wait_for_acquire(o.p, DV_TEST_PATIENCE_MS), 0);
    if (close_first) divvy_client_close(client);
    divvy_partitioner_destroy(o.p);
    if (!close_first) divvy_client_close(client);
    assert_int_equal(o.destroyed, 1);
}

/* After close there is no thread and no descriptor more than before, in whatever mode and order, and whether a server
 * could be reached or not. */
TEST_OF_POOL(test_no_thread_or_descriptor_left) {
    live_and_die(pool, pool->connect, false, false); /* what the C library and the native one keep for good */
    thread_list threads = list_threads();
    size_t fds = count_entries("/proc/self/fd");
    for (unsigned i = 0; i < 8; i++)
        live_and_die(pool, i & 4 ? "127.0.0.1:1" : pool->connect, (i & 1) != 0, (i & 2) != 0);
    assert_true(DV_WAIT(!has_new_thread(&threads), DV_TEST_PATIENCE_MS));
    assert_int_equal(count_entries("/proc/self/fd"), fds);
    assert_int_equal(dv_test_pool_nodes(pool), 0);
}

TEST_EACH(dv_test_pool_setup, dv_test_pool_teardown);
TEST_GROUP(dv_test_pool_group_setup, dv_test_pool_group_teardown);
