/* The HTTP side of divvy serve. SPDX-License-Identifier: Apache-2.0 */
#include "serve_http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>

#include "base/threads.h"
#include "command.h"
#include "serve_files.h"
#include "serve_guard.h"
#include "serve_metrics.h"
#include "serve_overview.h"
#include "serve_show.h"

/* HEADERS_BYTES: what a request may have, and what an answer is written with. */
enum { BACKLOG = 64, IDLE_S = 15, SWEEP_MS = 1000, HEADERS_BYTES = 32 * 1024, TEXT_BYTES_MAX = 4096 };

struct dv_serve_http {
    dv_serve *serve;
    struct MHD_Daemon *daemon;
    dv_serve_guard guard;
    pthread_t sweeper; /* ends connections whose time is over */
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool sweeps, ending;
};

/* ---- answers ---- */

/* The page's rights: its own files and streams, and nothing else from anywhere. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
     "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
    {"Cache-Control", "no-store"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
};

/* Sends the response, which it takes over; NULL ends the connection. */
static enum MHD_Result send_response(struct MHD_Connection *connection, unsigned status, const char *type,
                                     struct MHD_Response *response) {
    if (!response) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *why) {
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(why), (void *)(uintptr_t)why, MHD_RESPMEM_PERSISTENT);
    return send_response(connection, status, "text/plain; charset=utf-8", response);
}

static enum MHD_Result send_with(struct MHD_Connection *connection, unsigned status, const char *type, char *text) {
    if (!text) return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (!response) free(text);
    return send_response(connection, status, type, response);
}

/* Sends a text, which it takes over; NULL stands for a failed allocation. */
static enum MHD_Result send_text(struct MHD_Connection *connection, const char *type, char *text) {
    return send_with(connection, MHD_HTTP_OK, type, text);
}

static enum MHD_Result send_file(struct MHD_Connection *connection, const dv_serve_file *file) {
    void *bytes = (void *)(uintptr_t)file->bytes;
    return send_response(connection, MHD_HTTP_OK, file->type,
                         MHD_create_response_from_buffer(file->count, bytes, MHD_RESPMEM_PERSISTENT));
}

static const char json_type[] = "application/json";

static enum MHD_Result send_state(dv_serve_http *http, struct MHD_Connection *connection) {
    pthread_mutex_lock(&http->serve->lock);
    char *text = dv_serve_show_state(http->serve);
    pthread_mutex_unlock(&http->serve->lock);
    return send_text(connection, json_type, text);
}

static enum MHD_Result send_metrics(dv_serve_http *http, struct MHD_Connection *connection) {
    const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
    bool newer = accept && strstr(accept, "application/openmetrics-text");
    pthread_mutex_lock(&http->serve->lock);
    char *text = dv_serve_metrics(http->serve, newer ? DV_METRICS_OPENMETRICS : DV_METRICS_PROMETHEUS);
    pthread_mutex_unlock(&http->serve->lock);
    return send_text(connection,
                     newer ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                           : "text/plain; version=0.0.4; charset=utf-8",
                     text);
}

/* ---- samples and rows ---- */

static const char *argument(struct MHD_Connection *connection, const char *name) {
    const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    return value && *value ? value : NULL;
}

static bool number_argument(struct MHD_Connection *connection, const char *name, size_t most, size_t *out) {
    const char *text = argument(connection, name);
    if (!text) return true;
    size_t digits = strspn(text, "0123456789");
    if (text[digits] || digits > 9) return false;
    *out = strtoul(text, NULL, 10);
    return *out <= most;
}

/* Reads a time in milliseconds. */
static bool time_argument(struct MHD_Connection *connection, const char *name, int64_t *out) {
    const char *text = argument(connection, name);
    if (!text) return true;
    size_t digits = strspn(text, "0123456789");
    if (text[digits] || digits > 15) return false;
    *out = strtoll(text, NULL, 10);
    return true;
}

/* Reads two times; whatever is not given is open. */
static bool span_arguments(struct MHD_Connection *connection, int64_t *from_ms, int64_t *to_ms) {
    *from_ms = 0;
    *to_ms = INT64_MAX;
    return time_argument(connection, "from", from_ms) && time_argument(connection, "to", to_ms) && *from_ms <= *to_ms;
}

static bool table_argument(struct MHD_Connection *connection, dv_serve_table *out) {
    static const char *const names[] = {"items", "members", "timeline", "locks", "services", "pools", "holdups"};
    const char *text = argument(connection, "table");
    for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (dv_serve_table)i;
        return true;
    }
    return false;
}

/* Reads the number of a pool that there is. With the lock held, as pools may come. */
static bool pool_argument(const dv_serve *serve, struct MHD_Connection *connection, size_t *out) {
    return number_argument(connection, "pool", DV_SERVE_POOLS_MAX, out) && *out < serve->pool_count;
}

/* Returns whether a table has rows before there is a pool. */
static bool is_of_all(dv_serve_table table) {
    return table == DV_SERVE_POOLS || table == DV_SERVE_LOCKS || table == DV_SERVE_SERVICES;
}

static bool is_bounded(const char *text) {
    return !text || strlen(text) <= TEXT_BYTES_MAX;
}

/* With the lock held. */
static bool read_query(const dv_serve *serve, struct MHD_Connection *connection, dv_serve_query *q) {
    *q = (dv_serve_query){.text = argument(connection, "text"),
                          .exact = argument(connection, "exact"),
                          .owner = argument(connection, "owner"),
                          .state = argument(connection, "state"),
                          .limit = 100};
    const char *order = argument(connection, "order");
    q->newest = order && strcmp(order, "newest") == 0;
    return is_bounded(q->text) && is_bounded(q->exact) && is_bounded(q->owner) &&
           table_argument(connection, &q->table) &&
           (pool_argument(serve, connection, &q->pool) || (is_of_all(q->table) && q->pool == 0)) &&
           span_arguments(connection, &q->from_ms, &q->to_ms) && time_argument(connection, "at", &q->at_ms) &&
           number_argument(connection, "offset", SIZE_MAX, &q->offset) &&
           number_argument(connection, "limit", DV_SERVE_ROWS_MAX, &q->limit);
}

static enum MHD_Result send_rows(dv_serve_http *http, struct MHD_Connection *connection) {
    dv_serve_query query;
    pthread_mutex_lock(&http->serve->lock);
    bool good = read_query(http->serve, connection, &query);
    char *text = good ? dv_serve_show_rows(http->serve, &query) : NULL;
    pthread_mutex_unlock(&http->serve->lock);
    if (!good) return refuse(connection, MHD_HTTP_BAD_REQUEST, "this is no question that /rows answers\n");
    return send_text(connection, json_type, text);
}

static enum MHD_Result send_samples(dv_serve_http *http, struct MHD_Connection *connection) {
    size_t pool = 0;
    int64_t from_ms, to_ms;
    pthread_mutex_lock(&http->serve->lock);
    bool good = pool_argument(http->serve, connection, &pool) && span_arguments(connection, &from_ms, &to_ms);
    char *text = good ? dv_serve_show_samples(http->serve, pool, from_ms, to_ms) : NULL;
    pthread_mutex_unlock(&http->serve->lock);
    if (!good) return refuse(connection, MHD_HTTP_BAD_REQUEST, "this is no question that /samples answers\n");
    return send_text(connection, json_type, text);
}

static enum MHD_Result send_heat(dv_serve_http *http, struct MHD_Connection *connection) {
    size_t pool = 0;
    pthread_mutex_lock(&http->serve->lock);
    bool good = pool_argument(http->serve, connection, &pool);
    char *text = good ? dv_serve_show_heat(http->serve, pool) : NULL;
    pthread_mutex_unlock(&http->serve->lock);
    if (!good) return refuse(connection, MHD_HTTP_BAD_REQUEST, "this is no question that /heat answers\n");
    return send_text(connection, json_type, text);
}

/* ---- the desk ---- */

static bool desk_argument(dv_serve *serve, struct MHD_Connection *connection, dv_serve_question *q) {
    bool explains = q->subject == DV_SERVE_EXPLAIN;
    q->item = explains ? argument(connection, "item") : NULL;
    pthread_mutex_lock(&serve->lock);
    bool good = pool_argument(serve, connection, &q->pool);
    pthread_mutex_unlock(&serve->lock);
    return good && (!explains || (q->item && strlen(q->item) <= TEXT_BYTES_MAX));
}

/* Asks the desk. As long as it has no answer, the connection is suspended, and nothing is sent. */
static enum MHD_Result send_answer(dv_serve_http *http, struct MHD_Connection *connection, dv_serve_subject subject) {
    dv_serve_question question = {.subject = subject};
    dv_serve_answer answer;
    if (!desk_argument(http->serve, connection, &question))
        return refuse(connection, MHD_HTTP_BAD_REQUEST, "this is no question that divvy serve answers\n");
    if (!dv_serve_desk_ask(http->serve->desk, connection, &question, &answer)) return MHD_YES;
    dv_serve_guard_phase(&http->guard, connection, DV_SERVE_ANSWERED);
    return send_with(connection, answer.status, answer.status == MHD_HTTP_OK ? json_type : "text/plain; charset=utf-8",
                     answer.text);
}

/* ---- the stream ---- */

static enum MHD_Result send_stream(dv_serve_http *http, struct MHD_Connection *connection, bool head) {
    static const char type[] = "text/event-stream";
    if (head)
        return send_response(connection, MHD_HTTP_OK, type,
                             MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT));
    dv_serve_listener *listener = dv_serve_stream_listen(http->serve->stream, connection);
    if (!listener) return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "too many pages are open already\n");
    struct MHD_Response *response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, dv_serve_stream_read,
                                                                      listener, dv_serve_stream_leave);
    if (!response) dv_serve_stream_leave(listener);
    else dv_serve_guard_phase(&http->guard, connection, DV_SERVE_STREAMING);
    return send_response(connection, MHD_HTTP_OK, type, response);
}

/* ---- requests ---- */

static const char *reason_of(unsigned status) {
    switch (status) {
    case MHD_HTTP_METHOD_NOT_ALLOWED: return "divvy serve is only read: GET and HEAD\n";
    case MHD_HTTP_MISDIRECTED_REQUEST:
        return "divvy serve answers to localhost, 127.0.0.1 and [::1] here: ask by one of those names\n";
    case MHD_HTTP_FORBIDDEN: return "the page of another site asked\n";
    default: return "a request of divvy serve has no body\n";
    }
}

static enum MHD_Result answer(dv_serve_http *http, struct MHD_Connection *connection, const char *url, bool head) {
    for (const dv_serve_file *file = dv_serve_files; file->url; file++) {
        if (strcmp(url, file->url) == 0) return send_file(connection, file);
    }
    if (strcmp(url, "/metrics") == 0) return send_metrics(http, connection);
    if (strcmp(url, "/state") == 0) return send_state(http, connection);
    if (strcmp(url, "/samples") == 0) return send_samples(http, connection);
    if (strcmp(url, "/rows") == 0) return send_rows(http, connection);
    if (strcmp(url, "/heat") == 0) return send_heat(http, connection);
    if (strcmp(url, "/findings") == 0) return send_answer(http, connection, DV_SERVE_FINDINGS);
    if (strcmp(url, "/explain") == 0) return send_answer(http, connection, DV_SERVE_EXPLAIN);
    if (strcmp(url, "/changes") == 0) return send_answer(http, connection, DV_SERVE_CHANGES);
    if (strcmp(url, "/events") == 0) return send_stream(http, connection, head);
    return refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such page; divvy serve has / and /metrics\n");
}

/* Called twice for each request, and again when the desk has its answer. An answer to the first call ends the
 * connection, so only a refusal is one. */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *upload_bytes, void **context) {
    dv_serve_http *http = cls;
    (void)version;
    (void)upload;
    (void)upload_bytes;
    if (*context) return answer(http, connection, url, strcmp(method, MHD_HTTP_METHOD_HEAD) == 0);
    *context = http;
    dv_serve_guard_phase(&http->guard, connection, DV_SERVE_ANSWERED);
    unsigned status = dv_serve_guard_judge(connection, url, method, http->serve->options->loopback);
    return status ? refuse(connection, status, reason_of(status)) : MHD_YES;
}

/* The connection is kept for another request. */
static void on_completed(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_RequestTerminationCode code) {
    dv_serve_http *http = cls;
    (void)context;
    dv_serve_desk_leave(http->serve->desk, connection);
    if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) dv_serve_guard_phase(&http->guard, connection, DV_SERVE_ASKING);
}

/* ---- the daemon ---- */

static int listen_at(const dv_serve_options *o) {
    int one = 1, fd = socket(o->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 &&
        (o->address.ss_family != AF_INET6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) == 0) &&
        bind(fd, (const struct sockaddr *)&o->address, o->address_bytes) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static void tell_where(const dv_serve_options *o, int fd) {
    struct sockaddr_storage at = o->address;
    socklen_t bytes = sizeof at;
    char host[INET6_ADDRSTRLEN] = "?";
    getsockname(fd, (struct sockaddr *)&at, &bytes);
    bool v6 = at.ss_family == AF_INET6;
    const struct sockaddr_in *in = (const struct sockaddr_in *)&at;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&at;
    inet_ntop(at.ss_family, v6 ? (const void *)&in6->sin6_addr : (const void *)&in->sin_addr, host, sizeof host);
    dv_command_tell(o->loopback ? DIVVY_LOG_INFO : DIVVY_LOG_WARN, "serve: http://%s%s%s:%u/ %s", v6 ? "[" : "", host,
                    v6 ? "]" : "", ntohs(v6 ? in6->sin6_port : in->sin_port),
                    o->loopback ? "for this machine alone"
                                : "for everybody who reaches it, without a password and without encryption");
}

static struct MHD_Daemon *start_daemon(dv_serve_http *http, int fd) {
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME;
    if (http->serve->options->address.ss_family == AF_INET6) flags |= MHD_USE_IPv6;
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, http, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)DV_SERVE_CONNECTIONS_MAX,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)HEADERS_BYTES, MHD_OPTION_NOTIFY_CONNECTION, dv_serve_guard_notify, &http->guard,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, http, MHD_OPTION_END);
}

/* ---- the sweeper ---- */

/* A thread of its own: the main one may wait for ZooKeeper for long, and the daemon's wakes up only when somebody
 * sends. */
static void *sweep(void *context) {
    dv_serve_http *http = context;
    pthread_mutex_lock(&http->lock);
    while (!http->ending) {
        dv_condition_wait(&http->woken, &http->lock, dv_monotonic_ms() + SWEEP_MS);
        dv_serve_guard_sweep(&http->guard);
        dv_serve_desk_sweep(http->serve->desk);
    }
    pthread_mutex_unlock(&http->lock);
    return NULL;
}

static void stop_sweeper(dv_serve_http *http) {
    if (!http->sweeps) return;
    pthread_mutex_lock(&http->lock);
    http->ending = true;
    pthread_cond_signal(&http->woken);
    pthread_mutex_unlock(&http->lock);
    pthread_join(http->sweeper, NULL);
}

/* ---- the whole ---- */

static int start(dv_serve_http *http) {
    const dv_serve_options *o = http->serve->options;
    int fd = listen_at(o);
    if (fd < 0) return dv_command_failed("serve: cannot listen at %s: %s", o->listen, strerror(errno));
    http->sweeps = pthread_create(&http->sweeper, NULL, sweep, http) == 0;
    if (http->sweeps) http->daemon = start_daemon(http, fd);
    if (http->daemon) {
        tell_where(o, fd);
        return 0;
    }
    dv_command_say("serve: cannot serve at %s: a thread cannot be started", o->listen);
    close(fd);
    return DV_EXIT_FAILED;
}

int dv_serve_http_start(dv_serve_http **out, dv_serve *serve) {
    dv_serve_http *http = *out = calloc(1, sizeof *http);
    if (!http) return dv_command_out_of_memory();
    http->serve = serve;
    pthread_mutex_init(&http->lock, NULL);
    dv_condition_init(&http->woken);
    dv_serve_guard_init(&http->guard);
    return start(http);
}

void dv_serve_http_stop(dv_serve_http *http) {
    if (!http) return;
    dv_serve_stream_close(http->serve->stream);
    dv_serve_desk_close(http->serve->desk);
    if (http->daemon) MHD_stop_daemon(http->daemon);
    stop_sweeper(http);
    free(http);
}
