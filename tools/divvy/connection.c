/* The session of a subcommand: its options, and what is told about it. SPDX-License-Identifier: Apache-2.0 */
#include "connection.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "auth_file.h"
#include "client/client.h"
#include "command.h"
#include "log.h"
#include "zookeeper/open.h"

enum { CONNECT_NOTICE_MS = 5000 };

const dv_choice dv_session_acls[] = {{"auto", DIVVY_ACL_AUTO},
                                     {"open", DIVVY_ACL_OPEN},
                                     {"creator", DIVVY_ACL_CREATOR},
                                     {"readable", DIVVY_ACL_READABLE},
                                     {NULL, 0}};

const char *dv_session_connect(const char *connect) {
    if (!connect || !*connect) connect = getenv("DIVVY_CONNECT");
    return connect && *connect ? connect : "127.0.0.1:2181";
}

int dv_session_options_finish(dv_session_options *options, const char *command) {
    if ((options->acl == DIVVY_ACL_CREATOR || options->acl == DIVVY_ACL_READABLE) && !options->auth_file &&
        !dv_tls_options_given(&options->tls))
        return dv_command_misused(command,
                                  "--acl creator and readable need credentials; give --auth-file, or use TLS or SASL");
    if (options->no_death_watch && options->failover_delay_ms)
        return dv_command_misused(command, "--failover-delay needs the death watch; leave --no-death-watch out");
    int code = dv_tls_options_finish(&options->tls, command);
    if (code == 0 && options->metrics) code = dv_metrics_file_check(options->metrics, command);
    options->connect = dv_session_connect(options->connect);
    if (code == 0 && options->auth_file) code = dv_auth_file_read(command, options->auth_file, &options->auth);
    return code;
}

void dv_session_options_free(dv_session_options *options) {
    dv_auth_file_forget(options->auth);
    options->auth = NULL;
}

int64_t dv_session_now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- what the library tells ---- */

/* A line of the log may come on a thread of the native client, so each callback says whose session it is. */

static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    dv_log_about(((const dv_session *)user)->member);
    dv_command_warn(code, message);
}

static void on_log(int level, const char *message, void *user) {
    dv_log_about(((const dv_session *)user)->member);
    dv_command_log(level, message);
}

static void on_session(divvy_client *client, divvy_session_state state, void *user) {
    dv_session *session = user;
    dv_log_about(session->member);
    if (state == DIVVY_SUSPENDED && !session->what_ends) {
        dv_command_say("warning: the connection to %s is down", session->options->connect);
        session->suspended = true;
    } else if (state == DIVVY_SUSPENDED) {
        dv_command_say("warning: the connection to %s is down; %s ends in %" PRId64 " ms unless it comes back",
                       session->options->connect, session->what_ends, divvy_client_time_left_ms(client));
        session->suspended = true;
    } else if (state == DIVVY_CONNECTED && session->suspended) {
        dv_command_tell(DIVVY_LOG_INFO, "the connection is back");
        session->suspended = false;
    }
}

/* ---- the beginning and the end ---- */

int dv_session_open(dv_session *session) {
    const dv_session_options *o = session->options;
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = o->connect;
    config.session_timeout_ms = o->session_timeout_ms;
    config.ensemble_tick_ms = o->ensemble_tick_ms;
    config.manual = 1;
    config.failover_delay_ms = o->failover_delay_ms;
    config.auth_scheme = o->auth ? "digest" : NULL;
    config.auth = o->auth;
    config.acl = o->acl;
    dv_tls_options_apply(&o->tls, &config);
    config.on_session = on_session;
    config.on_warning = on_warning;
    if (o->verbose) dv_log_all();
    config.on_log = dv_log_takes(DIVVY_LOG_DEBUG) ? on_log : NULL;
    config.log_requests = o->log_requests;
    config.user = session;
    session->started_ms = dv_session_now_ms();
    int watch_fd = session->watched_by && !o->no_death_watch ? dv_guardians_watch_fd(session->watched_by) : -1;
    int error = watch_fd < 0 ? divvy_client_open(&session->client, &config)
                             : dv_client_open_watched(&session->client, &config, watch_fd);
    if (error) return dv_session_refused(session, error);
    session->metrics.path = o->metrics;
    dv_session_write_metrics(session);
    return 0;
}

void dv_session_keep(dv_session *session, bool works) {
    dv_client_keep_session(session->client, works);
}

void dv_session_close(dv_session *session) {
    dv_metrics_file_end(&session->metrics, session->client);
    divvy_client_close(session->client);
    session->client = NULL;
}

int dv_session_end(dv_session *session, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(session->ending, sizeof session->ending, format, arguments);
    va_end(arguments);
    dv_command_say("%s", session->ending);
    return code;
}

const char *dv_session_why(divvy_client *client, int error) {
    dv_client_lock(client);
    const char *why = dv_client_why(client, error);
    dv_client_unlock(client);
    return why;
}

int dv_session_refused(const dv_session *session, int error) {
    const char *message = divvy_client_error(session->client);
    if (!*message) message = divvy_strerror(error);
    if (error == DIVVY_EINVAL || error == DIVVY_E2BIG || error == DIVVY_EUNSUPPORTED)
        return dv_command_misused(session->command, "%s", message);
    dv_command_say("%s", message);
    return session->failed;
}

/* ---- the first connection ---- */

int dv_session_check(dv_session *session) {
    if (session->connected) return 0;
    int error = divvy_client_wait_connected(session->client, 0);
    int64_t waited_ms = dv_session_now_ms() - session->started_ms, limit_ms = session->options->connect_timeout_ms;
    if (error == 0) {
        session->connected = true;
        if (session->wait_was_told) dv_command_tell(DIVVY_LOG_INFO, "connected after %.1f s", (double)waited_ms / 1000);
        return 0;
    }
    if (error != DIVVY_ETIMEDOUT && error != DIVVY_ERESOLVE)
        return dv_session_end(session, session->failed, "%s", divvy_client_error(session->client));
    const char *what =
        error == DIVVY_ERESOLVE ? "no host name could be resolved of" : "no ZooKeeper server answered at";
    const char *connect = session->options->connect;
    if (limit_ms && waited_ms >= limit_ms)
        return dv_session_end(session, session->unreachable, "%s %s within %" PRId64 " ms", what, connect, limit_ms);
    if (!session->wait_was_told && waited_ms >= CONNECT_NOTICE_MS) {
        dv_command_tell(DIVVY_LOG_WARN, "%s %s for %.1f s; still trying", what, connect, (double)waited_ms / 1000);
        session->wait_was_told = true;
    }
    return 0;
}

int64_t dv_session_until_check_ms(const dv_session *session) {
    if (session->connected) return -1;
    int64_t at_ms = session->wait_was_told ? INT64_MAX : CONNECT_NOTICE_MS;
    int64_t limit_ms = session->options->connect_timeout_ms;
    if (limit_ms && limit_ms < at_ms) at_ms = limit_ms;
    if (at_ms == INT64_MAX) return -1;
    int64_t left_ms = session->started_ms + at_ms - dv_session_now_ms();
    return left_ms > 0 ? left_ms : 0;
}
