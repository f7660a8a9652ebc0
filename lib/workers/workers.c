/* Workers: a member with a thread for each item. SPDX-License-Identifier: Apache-2.0
 *
 * Here are its beginning and its end, and what others tell the runner. run.c has the run. */
#include "workers/workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/config.h"
#include "base/threads.h"
#include "client/error.h"

/* ---- what the partitioner tells ---- */

static void on_state(divvy_partitioner *p, divvy_partition_state from, divvy_partition_state to, void *user) {
    divvy_workers *w = user;
    if (w->pool.on_state) w->pool.on_state(p, from, to, w->pool.user);
    dv_workers_wake(w);
}

static void on_items(divvy_partitioner *p, const divvy_items_event *event, void *user) {
    divvy_workers *w = user;
    if (w->pool.on_items) w->pool.on_items(p, event, w->pool.user);
    dv_places_note_lost(w, event->lost, event->lost_count);
    dv_workers_wake(w);
}

static int assign(const char *identifier, const char *const *members, size_t member_count, const char *const *items,
                  size_t item_count, uint8_t *mine, void *user) {
    const divvy_workers *w = user;
    return w->pool.func(identifier, members, member_count, items, item_count, mine, w->pool.user);
}

static void free_workers(divvy_workers *w) {
    dv_workers_end_quarantine(w);
    dv_places_free(w);
    free(w->path);
    close(w->wake_fd);
    pthread_cond_destroy(&w->ended);
    pthread_mutex_destroy(&w->mutex);
    free(w);
}

static void on_destroyed(void *user) {
    divvy_workers *w = user;
    void (*told)(void *) = w->pool.on_destroyed, *told_user = w->pool.user;
    void (*gone)(void *) = w->gone, *gone_user = w->gone_user;
    free_workers(w);
    if (told) told(told_user);
    if (gone) gone(gone_user);
}

/* ---- the configuration ---- */

static int check_choices(const divvy_client *client, const divvy_workers_config *c) {
    if (c->restart < DIVVY_RESTART_ALWAYS || c->restart > DIVVY_RESTART_NEVER)
        return dv_fail(client, DIVVY_EINVAL, "workers: unknown restart %d", c->restart);
    if (c->signals < DIVVY_SIGNALS_UNHANDLED || c->signals > DIVVY_SIGNALS_LEAVE)
        return dv_fail(client, DIVVY_EINVAL, "workers: unknown signals %d", c->signals);
    if (c->failure_ends != 0 && c->failure_ends != 1)
        return dv_fail(client, DIVVY_EINVAL, "workers: failure_ends is %d, and not 0 or 1", c->failure_ends);
    if (c->quarantine_failures > DV_FAILURES_MAX)
        return dv_fail(client, DIVVY_EINVAL, "workers: quarantine_failures is %zu, and not up to %d",
                       c->quarantine_failures, DV_FAILURES_MAX);
    if (c->quarantine_failures && c->failure_ends)
        return dv_fail(client, DIVVY_EINVAL, "workers: with failure_ends no item is left to be quarantined");
    if (c->hand_over != 0 && c->hand_over != 1)
        return dv_fail(client, DIVVY_EINVAL, "workers: hand_over is %d, and not 0 or 1", c->hand_over);
    return 0;
}

static int check_time(const divvy_client *client, const char *name, int64_t ms) {
    if (ms >= 0 && ms <= DV_TIME_MAX_MS) return 0;
    return dv_fail(client, DIVVY_EINVAL, "workers: %s is %lld", name, (long long)ms);
}

static int check_times(const divvy_client *client, const divvy_workers_config *c) {
    int error = check_time(client, "backoff_ms", c->backoff_ms);
    if (!error) error = check_time(client, "backoff_max_ms", c->backoff_max_ms);
    if (!error) error = check_time(client, "finish_timeout_ms", c->finish_timeout_ms);
    if (!error) error = check_time(client, "quarantine_window_ms", c->quarantine_window_ms);
    return error;
}

static int check_pool(const divvy_client *client, const divvy_workers_config *c, const divvy_partitioner_config *pool) {
    if (c->prepare && pool->prepare_timeout_ms == 0)
        return dv_fail(client, DIVVY_EINVAL,
                       "workers: prepare needs prepare_timeout_ms of the pool: how long it may take");
    if (pool->item_count > c->max_threads)
        return dv_fail(client, DIVVY_E2BIG,
                       "workers: one member may come to own all %zu items, each with a thread, and max_threads is %zu: "
                       "allow more, or work on many items in a loop of your own, as partitioner.h says",
                       pool->item_count, c->max_threads);
    return 0;
}

/* Copies and checks both configurations. */
static int configure(divvy_workers *w, const divvy_workers_config *config) {
    static const divvy_workers_config defaults = DIVVY_WORKERS_CONFIG_INIT;
    static const divvy_partitioner_config pool_defaults = DIVVY_PARTITIONER_CONFIG_INIT;
    if (dv_config_copy(&w->config, sizeof w->config, &defaults, config))
        return dv_fail(w->client, DIVVY_EINVAL, "workers: the config is not of DIVVY_WORKERS_CONFIG_INIT");
    const divvy_workers_config *c = &w->config;
    if (c->max_threads == 0) w->config.max_threads = defaults.max_threads;
    if (c->quarantine_window_ms == 0) w->config.quarantine_window_ms = defaults.quarantine_window_ms;
    if (!c->pool || !c->worker) return dv_fail(w->client, DIVVY_EINVAL, "workers: no %s", c->pool ? "worker" : "pool");
    if (c->discard && !c->prepare) return dv_fail(w->client, DIVVY_EINVAL, "workers: discard without prepare");
    if (dv_config_copy(&w->pool, sizeof w->pool, &pool_defaults, c->pool))
        return dv_fail(w->client, DIVVY_EINVAL, "workers: the pool is not of DIVVY_PARTITIONER_CONFIG_INIT");
    int error = check_choices(w->client, c);
    if (!error) error = check_times(w->client, c);
    if (!error) error = check_pool(w->client, c, &w->pool);
    if (error) return error;
    w->failures = (dv_failures){.limit = c->quarantine_failures, .window_ms = c->quarantine_window_ms};
    if (w->pool.path) w->path = strdup(w->pool.path);
    return w->pool.path && !w->path ? dv_fail_plainly(w->client, DIVVY_ENOMEM) : 0;
}

/* ---- beginning and end ---- */

static int join_pool(divvy_workers *w) {
    divvy_partitioner_config pool = w->pool;
    pool.size = sizeof pool;
    pool.on_state = on_state;
    pool.on_items = on_items;
    pool.on_destroyed = on_destroyed;
    pool.func = w->pool.func ? assign : NULL;
    pool.user = w;
    return divvy_partitioner_create(&w->partitioner, w->client, &pool);
}

int divvy_workers_create(divvy_workers **out, divvy_client *client, const divvy_workers_config *config) {
    if (out) *out = NULL;
    if (!out || !client || !config)
        return dv_fail(client, DIVVY_EINVAL, "workers: %s is NULL", !out ? "out" : !client ? "client" : "config");
    divvy_workers *w = calloc(1, sizeof *w);
    if (!w) return dv_fail_plainly(client, DIVVY_ENOMEM);
    w->client = client;
    w->pid = getpid();
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->ended, NULL);
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = configure(w, config);
    if (!error && w->wake_fd < 0) error = dv_fail(client, DIVVY_ESYSTEM, "workers: no eventfd: errno %d", errno);
    if (!error) error = join_pool(w);
    if (error) free_workers(w);
    else *out = w;
    return error;
}

divvy_partitioner *divvy_workers_partitioner(const divvy_workers *w) {
    return w ? w->partitioner : NULL;
}

static void stop_at_once(divvy_workers *w) {
    divvy_workers_stop(w);
    divvy_workers_stop(w);
}

void divvy_workers_destroy(divvy_workers *w) {
    if (!w || w->pid != getpid()) return;
    pthread_mutex_lock(&w->mutex);
    if (w->running) stop_at_once(w);
    w->destroy_after = w->running && pthread_equal(w->runner, pthread_self());
    bool after = w->destroy_after;
    while (w->running && !after) pthread_cond_wait(&w->ended, &w->mutex);
    pthread_mutex_unlock(&w->mutex);
    if (!after) divvy_partitioner_destroy(w->partitioner);
}

void divvy_workers_destroy_async(divvy_workers *w, void (*gone)(void *user), void *user) {
    if (!w || w->pid != getpid()) return;
    pthread_mutex_lock(&w->mutex);
    w->gone = gone;
    w->gone_user = user;
    w->destroy_after = w->running;
    bool after = w->running;
    if (after) stop_at_once(w);
    pthread_mutex_unlock(&w->mutex);
    if (!after) divvy_partitioner_destroy_async(w->partitioner, on_destroyed, w);
}
