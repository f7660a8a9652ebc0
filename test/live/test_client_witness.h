/* The record of a client's callbacks, for the tests of clients. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TEST_CLIENT_WITNESS_H
#define DV_TEST_CLIENT_WITNESS_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "divvy/divvy.h"
#include "lib/partitioner_config.h"
#include "lib/test.h"
#include "lib/wait.h"

#define PATIENCE_MS 40000
#define STATES_MAX 16

typedef struct witness {
    pthread_mutex_t lock;
    divvy_session_state states[STATES_MAX];
    int64_t state_at_ms[STATES_MAX];
    size_t state_count;
    char *log; /* all lines, each with its level in front */
    size_t log_bytes;
    int warning; /* the code of the last one */
    char warning_text[1024];
    atomic_int wrong;      /* what witness_expect() noted */
    int running, overlaps; /* callbacks must not overlap */
    void (*on_session)(struct witness *w, divvy_client *client, divvy_session_state state); /* besides; NULL for none */
    void *user; /* of the test that sets it */
} witness;

static inline void witness_enter(witness *w) {
    pthread_mutex_lock(&w->lock);
    if (w->running++) w->overlaps++;
}

static inline void witness_leave(witness *w) {
    pthread_mutex_lock(&w->lock);
    w->running--;
    pthread_mutex_unlock(&w->lock);
}

/* An assertion for callbacks: cmocka's would leave the library's thread by a long jump. witness_end() fails on it. */
static inline void witness_expect_(witness *w, bool held, const char *what, const char *message) {
    if (held) return;
    fprintf(stderr, "in a callback: not true: %s; the message is \"%s\"\n", what, message);
    atomic_fetch_add(&w->wrong, 1);
}
#define witness_expect(w, condition, client) witness_expect_(w, condition, #condition, divvy_client_error(client))

static inline void witness_session(divvy_client *client, divvy_session_state state, void *user) {
    witness *w = user;
    witness_enter(w);
    if (w->state_count < STATES_MAX) {
        w->state_at_ms[w->state_count] = dv_test_now_ms();
        w->states[w->state_count++] = state;
    }
    void (*hook)(witness *, divvy_client *, divvy_session_state) = w->on_session;
    pthread_mutex_unlock(&w->lock);
    if (hook) hook(w, client, state);
    witness_leave(w);
}

static inline void witness_warning(divvy_client *client, int code, const char *message, void *user) {
    witness *w = user;
    (void)client;
    witness_enter(w);
    w->warning = code;
    snprintf(w->warning_text, sizeof w->warning_text, "%s", message);
    pthread_mutex_unlock(&w->lock);
    witness_leave(w);
}

static inline void witness_log(int level, const char *message, void *user) {
    witness *w = user;
    size_t bytes = strlen(message) + 4;
    witness_enter(w);
    w->log = realloc(w->log, w->log_bytes + bytes + 1);
    if (!w->log) dv_test_die("no memory");
    w->log_bytes += (size_t)sprintf(w->log + w->log_bytes, "%d %s\n", level, message);
    pthread_mutex_unlock(&w->lock);
    witness_leave(w);
}

/* A config whose callbacks speak to `w`, which is set up again. */
static inline divvy_client_config witness_config(witness *w, const char *hosts) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    *w = (witness){.lock = PTHREAD_MUTEX_INITIALIZER};
    config.hosts = hosts;
    config.ensemble_tick_ms = 100; /* as the servers of all who use this have it */
    config.session_timeout_ms = 30000;
    config.on_session = witness_session;
    config.on_warning = witness_warning;
    config.on_log = witness_log;
    config.user = w;
    return config;
}

/* After the client was closed: no callback was inside another. */
static inline void witness_end(witness *w) {
    assert_int_equal(w->running, 0);
    assert_int_equal(w->overlaps, 0);
    assert_int_equal(atomic_load(&w->wrong), 0);
    free(w->log);
    w->log = NULL;
}

/* The states told so far, by their letters: Connected, Suspended, Lost, Auth failed, and New for the opening of a new
 * session after a loss. */
static inline const char *witness_states(witness *w) {
    static char text[STATES_MAX + 1];
    static const char letters[] = "NCSLA?";
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->state_count; i++) text[i] = letters[w->states[i]];
    text[w->state_count] = '\0';
    pthread_mutex_unlock(&w->lock);
    return text;
}

static inline bool witness_told(witness *w, const char *states) {
    return strcmp(witness_states(w), states) == 0;
}

static inline bool witness_logged(witness *w, const char *text) {
    pthread_mutex_lock(&w->lock);
    bool found = w->log && strstr(w->log, text);
    pthread_mutex_unlock(&w->lock);
    return found;
}

static inline int witness_warned(witness *w) {
    pthread_mutex_lock(&w->lock);
    int code = w->warning;
    pthread_mutex_unlock(&w->lock);
    return code;
}

static inline divvy_client *open_with(const divvy_client_config *config) {
    divvy_client *client;
    int error = divvy_client_open(&client, config);
    if (error) fail_msg("open: %s: %s", divvy_errname(error), divvy_client_error(NULL));
    assert_non_null(client);
    return client;
}

static inline divvy_client *open_connected(const divvy_client_config *config) {
    divvy_client *client = open_with(config);
    int error = divvy_client_wait_connected(client, PATIENCE_MS);
    if (error) fail_msg("wait_connected: %s: %s", divvy_errname(error), divvy_client_error(client));
    return client;
}

/* An address of this host at which nobody listens, nor will while *fd is open: "127.0.0.1:PORT". */
static inline const char *dead_address(int *fd) {
    static char text[32];
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof own;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(*fd >= 0);
    assert_int_equal(bind(*fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(getsockname(*fd, (struct sockaddr *)&own, &bytes), 0);
    snprintf(text, sizeof text, "127.0.0.1:%u", (unsigned)ntohs(own.sin_port));
    return text;
}

/* Asserts that `call` returned `error`, and that its message, of `client`, is about `text`. */
#define ASSERT_FAILS(call, error, client, text)                                                        \
    do {                                                                                               \
        int got_ = (call);                                                                             \
        if (got_ != (error)) fail_msg("%s: %s instead of %s", #call, divvy_errname(got_), #error);     \
        if (!strstr(divvy_client_error(client), text) || !*divvy_client_error(client))                 \
            fail_msg("%s: the message \"%s\" has no \"%s\"", #call, divvy_client_error(client), text); \
    } while (0)

#endif
