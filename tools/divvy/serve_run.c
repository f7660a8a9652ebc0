/* Serving: looks at ZooKeeper again and again, and hands what differs to those who look at us.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The main thread reads ZooKeeper and alone changes what was read, with the lock held; a thread of libmicrohttpd's
 * answers. So a slow ensemble holds up no page, and a slow page no look. The desk, a third thread, reads what pages ask
 * for besides. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "dispositions.h"
#include "serve.h"
#include "serve_http.h"
#include "serve_overview.h"
#include "serve_pools.h"
#include "serve_show.h"
#include "znode/path.h"

/* READS_A_SECOND: of locks and of the registry, which are read as a whole; more of them are looked at less often. */
enum { REST_MS = 2000, READS_A_SECOND = 1000, BEAT_MS = 15000 };

typedef struct {
    dv_serve serve;
    dv_look *look;
    dv_serve_pools pools;
    char *services_path;
    dv_serve_http *http;
    int stop_fd; /* readable once a signal has come */
    int64_t locks_due_ms, services_due_ms, beat_due_ms;
    char *rest; /* as it was told last */
    int told_error;
    bool told_hidden;
} server;

static int64_t sooner(int64_t count) {
    int64_t ms = count * 1000 / READS_A_SECOND;
    return dv_session_now_ms() + (ms > REST_MS ? ms : REST_MS);
}

/* ---- looks ---- */

/* Tells once of locks or services that may not be read. */
static void tell_hidden(server *s, size_t count) {
    if (count && !s->told_hidden) dv_look_hidden(s->look, count);
    s->told_hidden = s->told_hidden || count;
}

/* Exchanges what was read for what was before. */
static void swap_locks(server *s, dv_locks *read) {
    pthread_mutex_lock(&s->serve.lock);
    dv_locks before = s->serve.locks;
    s->serve.locks = *read;
    pthread_mutex_unlock(&s->serve.lock);
    *read = before;
}

static int look_at_locks(server *s) {
    dv_locks read = {.root = s->serve.options->root, .holders = true};
    if (dv_session_now_ms() < s->locks_due_ms) return 0;
    int error = dv_look_at(s->look, dv_locks_read, &read);
    if (!error) tell_hidden(s, read.hidden);
    if (!error) swap_locks(s, &read);
    dv_locks_clear(&read);
    s->locks_due_ms = sooner(2 * (int64_t)(s->serve.locks.entry_count + s->serve.locks.hidden));
    return error;
}

static int look_at_services(server *s) {
    dv_services read = {.path = s->services_path};
    if (dv_session_now_ms() < s->services_due_ms) return 0;
    int error = dv_look_at(s->look, dv_services_read, &read);
    if (!error) tell_hidden(s, read.hidden);
    if (!error) {
        pthread_mutex_lock(&s->serve.lock);
        dv_services before = s->serve.services;
        s->serve.services = read;
        pthread_mutex_unlock(&s->serve.lock);
        read = before;
    }
    dv_services_clear(&read);
    s->services_due_ms = sooner((int64_t)(s->serve.services.node_count + s->serve.services.hidden));
    return error;
}

/* Tells of locks, the registry and trouble, if that differs from what was told last. */
static void tell_rest(server *s) {
    pthread_mutex_lock(&s->serve.lock);
    char *rest = dv_serve_show_rest(&s->serve);
    if (rest && (!s->rest || strcmp(rest, s->rest) != 0)) {
        dv_serve_stream_send(s->serve.stream, strdup(rest));
        free(s->rest);
        s->rest = rest;
        rest = NULL;
    }
    pthread_mutex_unlock(&s->serve.lock);
    free(rest);
}

/* By this pages that have gone are met, so that others get their places. */
static void beat(server *s) {
    if (dv_session_now_ms() < s->beat_due_ms) return;
    s->beat_due_ms = dv_session_now_ms() + BEAT_MS;
    dv_serve_stream_beat(s->serve.stream);
}

/* Tells the states that trouble changed, of pools that were read. */
static void tell_states(server *s) {
    pthread_mutex_lock(&s->serve.lock);
    for (size_t i = 0; i < s->serve.pool_count; i++) {
        dv_serve_pool *pool = &s->serve.pools[i];
        const char *state = dv_serve_pool_state(pool, s->serve.trouble);
        if (pool->read_at_ms == 0 || strcmp(state, pool->told_state) == 0) continue;
        dv_serve_stream_send(s->serve.stream, dv_serve_show_pool_state(&s->serve, i));
        pool->told_state = state;
    }
    pthread_mutex_unlock(&s->serve.lock);
}

/* Looks at all of it. Returns 0, or the exit code when there is no use in going on. */
static int look_once(server *s) {
    int error = dv_serve_pools_look(&s->pools);
    if (!error) error = look_at_locks(s);
    if (!error) error = look_at_services(s);
    if (error == DIVVY_ECANCELED) return 0;
    int code = error && error != s->told_error ? dv_look_failed(s->look, error) : 0;
    if (!error && s->told_error) dv_command_tell(DIVVY_LOG_INFO, "serve: the servers answer again");
    s->told_error = error;
    pthread_mutex_lock(&s->serve.lock);
    s->serve.looks++;
    s->serve.failed_looks += error != 0;
    s->serve.trouble = error ? divvy_strerror(error) : NULL;
    pthread_mutex_unlock(&s->serve.lock);
    tell_rest(s);
    tell_states(s);
    return s->pools.read_any && error != DIVVY_EAUTH ? 0 : code; /* No later look of this client is let in. */
}

/* ---- the loop ---- */

static bool asked_to_end(const server *s) {
    struct signalfd_siginfo info;
    return read(s->stop_fd, &info, sizeof info) == (ssize_t)sizeof info;
}

static void rest(server *s) {
    int64_t until_ms = dv_session_now_ms() + s->serve.options->interval_ms, left_ms;
    do {
        beat(s);
        left_ms = until_ms - dv_session_now_ms();
    } while (left_ms > 0 && dv_look_rest(s->look, left_ms < BEAT_MS ? left_ms : BEAT_MS, -1) == DIVVY_ETIMEDOUT);
}

static int serve_until_asked(server *s) {
    int code;
    while ((code = look_once(s)) == 0 && !asked_to_end(s)) {
        rest(s);
        if (asked_to_end(s)) break;
    }
    return code;
}

static int prepare(server *s, const dv_serve_options *o) {
    s->serve.stream = dv_serve_stream_new();
    s->services_path = strcmp(o->root, "/") == 0 ? strdup("/services") : dv_path_join(o->root, "services");
    int error = s->serve.stream && s->services_path ? dv_serve_pools_init(&s->pools, &s->serve, s->look) : DIVVY_ENOMEM;
    if (error) return dv_command_out_of_memory();
    s->serve.desk = dv_serve_desk_start(&s->serve);
    return s->serve.desk ? 0 : DV_EXIT_FAILED;
}

static void clear(server *s) {
    dv_serve_desk_free(s->serve.desk);
    dv_look_close(s->look);
    dv_serve_pools_free(&s->pools);
    dv_locks_clear(&s->serve.locks);
    dv_services_clear(&s->serve.services);
    dv_serve_stream_free(s->serve.stream);
    free(s->services_path);
    free(s->rest);
    pthread_mutex_destroy(&s->serve.lock);
    if (s->stop_fd >= 0) close(s->stop_fd);
}

int dv_serve_run(const dv_serve_options *options) {
    server s = {.serve = {.options = options, .started_ms = dv_look_wall_ms()},
                .stop_fd = dv_dispositions_receive_ends()};
    pthread_mutex_init(&s.serve.lock, NULL);
    int code = 0;
    if (s.stop_fd < 0) code = dv_command_failed("cannot receive signals: %s", strerror(errno));
    if (code == 0) code = dv_look_open(&s.look, &options->look, dv_serve_name, s.stop_fd);
    if (code == 0) code = prepare(&s, options);
    if (code == 0) code = dv_serve_http_start(&s.http, &s.serve);
    if (code == 0) code = serve_until_asked(&s);
    dv_serve_http_stop(s.http);
    clear(&s);
    return code;
}
