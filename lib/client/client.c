/* The client's public face: open, look, wait, close. SPDX-License-Identifier: Apache-2.0 */
#include "client/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/threads.h"

enum { EPHEMERAL_BYTES_MAX = 1024 * 1024, WATCH_BYTES_MAX = 512 * 1024, CLOSE_WAIT_MS = 2000 };
enum { TICK_MAX_MS = 3600000 };

/* ---- open ---- */

/* Returns the tick of the environment, for those who are not told one. 0: it is not set; -1: it is none. */
static int64_t tick_of_environment(void) {
    const char *text = getenv("DIVVY_ENSEMBLE_TICK_MS");
    if (!text || !*text) return 0;
    char *end;
    errno = 0;
    long long tick_ms = strtoll(text, &end, 10);
    return *end || errno || tick_ms <= 0 ? -1 : tick_ms;
}

/* Returns 0 or 1, or -1: the environment has something else. */
static int tokens_of_environment(void) {
    const char *text = getenv("DIVVY_TOKENS_CHECKED");
    if (!text || !*text || strcmp(text, "0") == 0) return 0;
    return strcmp(text, "1") == 0 ? 1 : -1;
}

/* C3: without the tick nothing can be proven, and with too short a timeout nothing can be held. */
static int check_tick(const divvy_client_config *config) {
    int64_t timeout_ms = config->session_timeout_ms, tick_ms = config->ensemble_tick_ms;
    if (tick_ms < 0 || tick_ms > TICK_MAX_MS)
        return dv_fail(NULL, DIVVY_EINVAL, "open: ensemble_tick_ms is out of range; it may be 1 to %d", TICK_MAX_MS);
    if (tick_ms == 0)
        return dv_fail(NULL, DIVVY_EINVAL,
                       "open: the tick of the servers is not known, without which no session is safe to own anything; "
                       "set ensemble_tick_ms (--ensemble-tick of the command, or $DIVVY_ENSEMBLE_TICK_MS) to the "
                       "tickTime of their zoo.cfg, often 2000");
    if (!dv_clock_can_hold(&(dv_clock){.tick_ms = tick_ms, .timeout_ms = timeout_ms}))
        return dv_fail(NULL, DIVVY_EINVAL,
                       "open: a session timeout of %lld ms can hold nothing on ticks of %lld ms; the least that can "
                       "is %lld ms",
                       (long long)timeout_ms, (long long)tick_ms, (long long)dv_clock_least_timeout_ms(tick_ms));
    return 0;
}

static int check_times(divvy_client_config *config, bool looks) {
    if (config->session_timeout_ms < 100 || config->session_timeout_ms > 3600000)
        return dv_fail(NULL, DIVVY_EINVAL, "open: session_timeout_ms is %lld; it may be 100 to 3600000",
                       (long long)config->session_timeout_ms);
    if (looks) return 0;
    int64_t elsewhere_ms = config->ensemble_tick_ms ? 0 : tick_of_environment();
    if (elsewhere_ms < 0)
        return dv_fail(NULL, DIVVY_EINVAL,
                       "open: DIVVY_ENSEMBLE_TICK_MS is \"%.32s\", which is no number of milliseconds above 0",
                       getenv("DIVVY_ENSEMBLE_TICK_MS"));
    if (elsewhere_ms) config->ensemble_tick_ms = elsewhere_ms;
    return check_tick(config);
}

static int check_credentials(divvy_client_config *config) {
    bool given = config->auth != NULL;
    bool by_sasl = config->sasl_user || config->sasl_mechanism;
    bool known = given || by_sasl || config->tls_certificate_file; /* The servers have some identity for us. */
    if (given != (config->auth_scheme != NULL))
        return dv_fail(NULL, DIVVY_EINVAL, "open: auth_scheme and auth go together; one of them is NULL");
    if (given && strcmp(config->auth_scheme, "digest") != 0)
        return dv_fail(NULL, DIVVY_EUNSUPPORTED, "open: the scheme \"%.32s\" is not supported; \"digest\" is",
                       config->auth_scheme);
    if (given && (!strchr(config->auth, ':') || strlen(config->auth) > 4096))
        return dv_fail(NULL, DIVVY_EINVAL, "open: auth is not of the form user:password");
    if (config->acl < DIVVY_ACL_AUTO || config->acl > DIVVY_ACL_READABLE)
        return dv_fail(NULL, DIVVY_EINVAL, "open: acl is %d, which is none of DIVVY_ACL_*", config->acl);
    if (config->acl == DIVVY_ACL_AUTO) config->acl = given || by_sasl ? DIVVY_ACL_CREATOR : DIVVY_ACL_OPEN;
    if (config->acl != DIVVY_ACL_OPEN && !known)
        return dv_fail(NULL, DIVVY_EINVAL, "open: this acl is for those who authenticate; give auth_scheme and auth");
    return 0;
}

static int complete_config(divvy_client_config *to, const divvy_client_config *from, bool looks) {
    static const divvy_client_config defaults = DIVVY_CLIENT_CONFIG_INIT;
    int error = dv_config_copy(to, sizeof *to, &defaults, from ? from : &defaults);
    if (error) return dv_fail(NULL, error, "open: the config was not made with DIVVY_CLIENT_CONFIG_INIT");
    if (!to->hosts || !*to->hosts) to->hosts = getenv("DIVVY_CONNECT");
    if (!to->hosts || !*to->hosts) to->hosts = "127.0.0.1:2181";
    if (to->ephemeral_path_bytes == 0 || to->ephemeral_path_bytes > EPHEMERAL_BYTES_MAX)
        to->ephemeral_path_bytes = EPHEMERAL_BYTES_MAX;
    if (to->watch_path_bytes == 0 || to->watch_path_bytes > WATCH_BYTES_MAX) to->watch_path_bytes = WATCH_BYTES_MAX;
    if (to->tokens_checked < 0 || to->tokens_checked > 1)
        return dv_fail(NULL, DIVVY_EINVAL, "open: tokens_checked is %d; it may be 0 or 1", to->tokens_checked);
    if (looks) to->tokens_checked = 1; /* It owns nothing. */
    if (!to->tokens_checked) to->tokens_checked = tokens_of_environment();
    if (to->tokens_checked < 0)
        return dv_fail(NULL, DIVVY_EINVAL, "open: DIVVY_TOKENS_CHECKED is \"%.32s\"; it may be 0 or 1",
                       getenv("DIVVY_TOKENS_CHECKED"));
    if (to->death_watch < 0 || to->death_watch > 1)
        return dv_fail(NULL, DIVVY_EINVAL, "open: death_watch is %d; it may be 0 or 1", to->death_watch);
    if (to->failover_delay_ms < 0 || (to->failover_delay_ms > 0 && to->failover_delay_ms >= to->session_timeout_ms))
        return dv_fail(NULL, DIVVY_EINVAL,
                       "open: failover_delay_ms is %lld; it may be 0 to less than the session timeout, %lld, since the "
                       "session ends by then in any case",
                       (long long)to->failover_delay_ms, (long long)to->session_timeout_ms);
    error = check_times(to, looks);
    return error ? error : check_credentials(to);
}

static void on_log(void *context, int level, const char *message) {
    dv_client_log(context, level, "%s", message);
}

static void on_warning(void *context, int code, const char *message) {
    dv_client_warn(context, code, "%s", message);
}

static int open_backend(divvy_client *client, dv_backend_new_fn make, void *context) {
    dv_backend_config config = {
        .hosts = client->config.hosts,
        .session_timeout_ms = client->config.session_timeout_ms,
        .auth_scheme = client->config.auth_scheme,
        .auth = client->config.auth,
        .acl = client->config.acl,
        .sink = {dv_client_post, client},
        .on_session = dv_session_news_arrived,
        .on_answer = dv_session_answered,
        .on_tick = dv_session_tick_told,
        .on_log = on_log,
        .on_warning = on_warning,
        .logs = client->config.on_log != NULL,
        .traces = client->config.on_log && client->config.log_requests,
        .context = client,
    };
    const char *reason = NULL;
    int error = make(&client->znode, &config, &reason, context);
    if (error == DIVVY_EINVAL)
        return dv_fail(NULL, error, "open: the connect string \"%.200s\" %s", client->config.hosts, reason);
    if (error) return dv_fail_plainly(NULL, error);
    client->znode->round_trips.scale = DV_SCALE_ROUND_TRIP;
    error = dv_steps_begin(client);
    if (error) return error;
    dv_odd_answers_begin(client);
    client->chroot = strdup(client->znode->backend->chroot(client->znode));
    if (!client->chroot) return dv_fail_plainly(NULL, DIVVY_ENOMEM);
    error =
        client->znode->backend->random(client->znode, &client->guids.client_random, sizeof client->guids.client_random);
    return error ? dv_fail(NULL, error, "open: the system gives no random bytes") : 0;
}

static void *callback_thread(void *context) {
    divvy_client *client = context;
    dv_client_lock(client);
    while (client->life < DV_CLIENT_STOPPING && !client->close_in_callback) {
        if (!dv_callback_run_one(client)) pthread_cond_wait(&client->callback_ready, &client->lock);
    }
    bool close_here = dv_client_claim_close(client); /* Else another thread closes it. */
    dv_client_unlock(client);
    if (close_here) dv_client_shut_down(client);
    return NULL;
}

static int start_threads(divvy_client *client) {
    if (client->config.manual) return 0;
    client->loop_running = dv_thread_start(&client->loop_thread, dv_loop_thread, client);
    client->callbacks_running =
        client->loop_running && dv_thread_start(&client->callback_thread, callback_thread, client);
    return client->callbacks_running ? 0 : dv_fail(NULL, DIVVY_ESYSTEM, "open: no thread could be started");
}

/* C10. The backend has said that the hosts are good, and has not begun to connect. */
static int begin_watch(divvy_client *client, const divvy_client_config *config, int watch_fd) {
    if (watch_fd >= 0) return dv_death_watch_use(&client->death_watch, config, watch_fd);
    if (!config->death_watch) return 0;
    if (!client->znode->backend->password)
        return dv_fail(NULL, DIVVY_EUNSUPPORTED, "open: death_watch is for sessions on servers, and this has none");
    return dv_death_watch_start(&client->death_watch, config);
}

int dv_client_open_on(divvy_client **out, const divvy_client_config *config, dv_open_kind kind, dv_backend_new_fn make,
                      void *context) {
    if (!out) return dv_fail(NULL, DIVVY_EINVAL, "open: out is NULL");
    *out = NULL;
    divvy_client_config complete;
    int error = complete_config(&complete, config, kind.looks);
    if (error) return error;
    divvy_client *client = NULL;
    error = dv_client_new(&client, &complete);
    if (error) return error;
    dv_session_init(client);
    error = open_backend(client, make, context);
    if (!error) error = begin_watch(client, &complete, kind.watch_fd);
    /* The caller's strings were copied where they are needed. */
    client->config.hosts = client->config.auth = client->config.auth_scheme = NULL;
    client->config.tls_ca_file = client->config.tls_certificate_file = NULL;
    client->config.tls_key_file = client->config.tls_key_password_file = NULL;
    client->config.sasl_mechanism = client->config.sasl_user = client->config.sasl_password_file = NULL;
    client->config.sasl_service = client->config.sasl_host = NULL;
    if (!error) error = start_threads(client);
    if (!error) {
        dv_client_lock(client);
        error = client->znode->backend->start(client->znode);
        dv_client_unlock(client);
        if (error) dv_fail(NULL, error, "open: the native client could not be started");
    }
    if (error) {
        dv_client_shut_down(client);
        return error;
    }
    *out = client;
    return 0;
}

int divvy_private_client_open(divvy_client **out, const divvy_client_config *config, dv_backend_new_fn make,
                              void *context) {
    return dv_client_open_on(out, config, (dv_open_kind){.watch_fd = -1}, make, context);
}

/* ---- close ---- */

static bool all_left(void *context) {
    const divvy_client *client = context;
    return client->ephemeral_count == 0 || !dv_client_connected(client);
}

static void stop_threads(divvy_client *client) {
    dv_client_lock(client);
    dv_client_life_enter(client, DV_CLIENT_STOPPING);
    pthread_cond_signal(&client->callback_ready);
    dv_client_unlock(client);
    dv_client_wake(client);
    bool on_callback_thread = client->callbacks_running && pthread_equal(client->callback_thread, pthread_self());
    if (client->loop_running) dv_thread_join(client->loop_thread);
    if (on_callback_thread) pthread_detach(client->callback_thread);
    else if (client->callbacks_running) dv_thread_join(client->callback_thread);
    client->loop_running = client->callbacks_running = false;
}

static void end_backend(divvy_client *client) {
    dv_client_lock(client);
    if (client->znode) dv_client_abandon(client, DIVVY_ECANCELED, dv_client_now(client));
    dv_client_unlock(client);
    if (client->znode) client->znode->backend->close(client->znode);
    dv_client_lock(client);
    /* Without a connection the session was not closed: it lives on until its timeout, or the end of this process. */
    if (client->link_up) dv_death_watch_forget(client->death_watch);
    dv_loop_drain(client);
    dv_client_unlock(client);
}

void dv_client_end(divvy_client *client) {
    dv_client_lock(client);
    dv_client_claim_close(client); /* unless the caller had to do so earlier */
    pthread_cond_broadcast(&client->changed);
    while (client->config.manual && client->processing) { /* by another thread, which sees that it is over */
        dv_client_wake(client);
        pthread_cond_wait(&client->changed, &client->lock);
    }
    if (client->znode && !client->end_error) dv_tell_listeners(client, DV_SESSION_CLOSING, dv_client_now(client));
    if (client->znode) dv_client_wait(client, CLOSE_WAIT_MS, all_left, client);
    dv_client_unlock(client);
    stop_threads(client);
    end_backend(client);
    dv_client_lock(client);
    dv_client_life_enter(client, DV_CLIENT_CLOSED);
    dv_session_closed(client);
    if (client->znode) {
        dv_session_give_up_barriers(client, DIVVY_ECANCELED, dv_client_now(client));
        dv_tell_listeners(client, DV_SESSION_CLOSED, dv_client_now(client));
    }
    dv_callback_run_all(client);
    pthread_cond_broadcast(&client->changed);
    while (client->waiters) pthread_cond_wait(&client->changed, &client->lock);
    assert(!client->waiters && !client->loop_running && !client->callbacks_running);
    dv_client_unlock(client);
}

void dv_client_shut_down(divvy_client *client) {
    dv_client_end(client);
    dv_client_unref(client);
}

void divvy_client_close(divvy_client *client) {
    dv_message said;
    if (!dv_client_enter_quietly(client)) return;
    dv_message_begin(&said);
    bool inside = dv_client_in_callback(client);
    if (inside) client->close_in_callback = true;
    bool here = !inside && !client->close_in_callback && dv_client_claim_close(client);
    dv_client_unlock(client);
    if (here) dv_client_shut_down(client);
    dv_message_end(&said);
}

/* ---- look and wait ---- */

static bool session_decided(void *context) {
    const divvy_client *client = context;
    return dv_client_connected(client) || dv_client_end_error(client);
}

static int explain_timeout(divvy_client *client, int64_t timeout_ms) {
    int resolve_error;
    const char *servers = client->znode->backend->servers(client->znode, &resolve_error);
    if (resolve_error)
        return dv_fail(client, resolve_error, "wait_connected: no host name of %s could be resolved in %lld ms",
                       servers, (long long)timeout_ms);
    const char *(*ask)(const dv_znode *) = client->znode->backend->trouble;
    const char *trouble = ask ? ask(client->znode) : NULL;
    if (trouble)
        return dv_fail(client, DIVVY_ETIMEDOUT, "wait_connected: no ZooKeeper server could be used in %lld ms: %.*s",
                       (long long)timeout_ms, (int)strcspn(trouble, "\n"), trouble);
    return dv_fail(client, DIVVY_ETIMEDOUT, "wait_connected: no ZooKeeper server answered at %s in %lld ms", servers,
                   (long long)timeout_ms);
}

int divvy_client_wait_connected(divvy_client *client, int64_t timeout_ms) {
    int error = dv_client_enter(client);
    if (error) return error;
    if (timeout_ms < -1) error = dv_fail(client, DIVVY_EINVAL, "wait_connected: timeout_ms is below -1");
    if (!error) error = dv_client_wait(client, timeout_ms, session_decided, client);
    if (error == DIVVY_ETIMEDOUT) {
        error = explain_timeout(client, timeout_ms);
    } else if (error == 0 && !dv_client_connected(client)) {
        error = dv_client_end_error(client);
        dv_fail(client, error, "wait_connected: %s", error == DIVVY_ECLOSED ? "closed" : client->end_reason);
    } else if (error && error != DIVVY_EINVAL) {
        dv_fail_plainly(client, error);
    }
    dv_client_unlock(client);
    return error;
}

static divvy_client *mutable(const divvy_client *client) {
    return (divvy_client *)(uintptr_t)client;
}

divvy_session_state divvy_client_state(const divvy_client *c) {
    divvy_client *client = mutable(c);
    if (!dv_client_enter_quietly(client)) return DIVVY_CLOSED;
    divvy_session_state state = client->state;
    dv_client_unlock(client);
    return state;
}

int64_t divvy_client_time_left_ms(const divvy_client *c) {
    divvy_client *client = mutable(c);
    if (!dv_client_enter_quietly(client)) return 0;
    int64_t left_ms = dv_client_time_left_ms(client, dv_client_now(client));
    dv_client_unlock(client);
    return left_ms;
}

int64_t divvy_client_session_id(const divvy_client *client) {
    return client ? atomic_load(&mutable(client)->session_id) : 0;
}
