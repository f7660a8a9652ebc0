/* Locks on a real server. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_LOCK_FIXTURE_H
#define DV_TEST_LOCK_FIXTURE_H

#include <signal.h>
#include <sys/wait.h>

#include "one_server.h"
#include "test_client_witness.h"

/* The callbacks of a lock that came. */
typedef struct {
    atomic_int done, result, lost, wrong;
    bool releases;
} heard;

static inline void on_lost(divvy_lock *lock, void *user) {
    heard *h = user;
    if (divvy_lock_held(lock) || divvy_lock_acquire(lock, 0) != DIVVY_EDEADLK) atomic_fetch_add(&h->wrong, 1);
    atomic_fetch_add(&h->lost, 1);
}

static inline divvy_client *open_client(int64_t session_timeout_ms, int manual) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = hosts();
    config.session_timeout_ms = session_timeout_ms;
    config.ensemble_tick_ms = TICK_MS;
    config.manual = manual;
    return open_connected(&config);
}

static inline divvy_lock *make(divvy_client *client, const char *path, int mode, heard *h) {
    divvy_lock_config config = DIVVY_LOCK_CONFIG_INIT;
    divvy_lock *lock;
    config.path = path;
    config.mode = mode;
    config.on_lost = h ? on_lost : NULL;
    config.user = h;
    int error = divvy_lock_create(&lock, client, &config);
    if (error) fail_msg("create: %s", divvy_client_error(client));
    return lock;
}

static inline size_t nodes(const char *path) {
    return dv_test_zk_count(truth, path);
}

/* --- processes and sessions ------------------------------------------------------------------------------------- */

/* In another process: acquires, says so, and holds until it is killed. */
static inline int hold(const char *hosts, const char *path) {
    divvy_client *client;
    divvy_lock *lock;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    divvy_lock_config lock_config = DIVVY_LOCK_CONFIG_INIT;
    config.hosts = hosts;
    config.session_timeout_ms = 5000;
    config.ensemble_tick_ms = TICK_MS;
    lock_config.path = path;
    lock_config.identifier = "other process";
    if (divvy_client_open(&client, &config) || divvy_lock_create(&lock, client, &lock_config)) return 1;
    if (divvy_lock_acquire(lock, PATIENCE_MS) || write(STDOUT_FILENO, "h", 1) != 1) return 1;
    pause();
    return 1;
}

#endif
