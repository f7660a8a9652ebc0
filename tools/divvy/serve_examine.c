/* The answers to what a page asks of ZooKeeper beyond what is followed. SPDX-License-Identifier: Apache-2.0 */
#include "serve_examine.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "connection.h"
#include "explain_json.h"
#include "history_json.h"
#include "serve.h"
#include "serve_doctor.h"
#include "table_json.h"

/* TIMEOUT_MS: no answer takes longer, whatever --timeout says. KEEP_MS: a session that nobody needs is kept so long. */
enum { TIMEOUT_MS = 10000, KEEP_MS = 60000 };
enum {
    FINDINGS_FRESH_MS = 2000,
    FINDINGS_FRESH_TIMES = 10,
    EXPLAIN_FRESH_MS = 1000,
    CHANGES_FRESH_MS = 2000,
    FAILED_FRESH_MS = 1000
};

struct dv_serve_examiner {
    struct dv_serve *serve;
    int stop_fd;
    dv_look_options options;
    dv_serve_doctor doctor;
    dv_look *look;                           /* NULL: nobody has asked lately */
    dv_pool_plan *plans[DV_SERVE_POOLS_MAX]; /* read by it; NULL: not yet */
    int error;                               /* of the last look */
};

dv_serve_examiner *dv_serve_examiner_new(struct dv_serve *serve, int stop_fd) {
    dv_serve_examiner *x = calloc(1, sizeof *x);
    if (!x) return NULL;
    *x = (dv_serve_examiner){.serve = serve, .stop_fd = stop_fd, .options = serve->options->look};
    x->options.verbose = 0; /* The log is set up already. */
    if (x->options.timeout_ms > TIMEOUT_MS) x->options.timeout_ms = TIMEOUT_MS;
    x->doctor = (dv_serve_doctor){.serve = serve, .options = &x->options, .stop_fd = stop_fd};
    return x;
}

/* Ends the session. Plans are what takes memory. */
static void leave(dv_serve_examiner *x) {
    dv_serve_doctor_forget(&x->doctor);
    dv_look_close(x->look);
    x->look = NULL;
    for (size_t i = 0; i < DV_SERVE_POOLS_MAX; i++) {
        if (x->plans[i]) dv_pool_plan_free(x->plans[i]);
        free(x->plans[i]);
        x->plans[i] = NULL;
    }
}

void dv_serve_examiner_free(dv_serve_examiner *x) {
    if (!x) return;
    leave(x);
    free(x);
}

void dv_serve_examiner_rest(dv_serve_examiner *x, int wake_fd) {
    struct pollfd fds[] = {{.fd = wake_fd, .events = POLLIN}, {.fd = x->stop_fd, .events = POLLIN}};
    bool woken = x->look ? dv_look_rest(x->look, KEEP_MS, wake_fd) == DIVVY_ECANCELED : poll(fds, 2, KEEP_MS) != 0;
    if (woken) return;
    leave(x);
    poll(fds, 2, -1);
}

/* ---- answers ---- */

static dv_serve_answer give_json(cJSON *json, int64_t fresh_ms) {
    char *text = dv_json_line(json, json != NULL);
    return (dv_serve_answer){MHD_HTTP_OK, text, text ? fresh_ms : 0};
}

/* Says in one line why there is no JSON. */
__attribute__((format(printf, 2, 3))) static dv_serve_answer give_reason(unsigned status, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = NULL;
    va_end(arguments);
    return (dv_serve_answer){status, text, FAILED_FRESH_MS};
}

/* Tells an error of a look as dv_look_failed() does. */
static dv_serve_answer give_error(const dv_serve_examiner *x, int error) {
    enum { STATUS = MHD_HTTP_SERVICE_UNAVAILABLE };
    const char *path = x->look ? dv_look_failed_path(x->look) : "";
    if (error == DIVVY_ECANCELED) return give_reason(STATUS, "divvy serve ends\n");
    if (error == DIVVY_ETIMEDOUT)
        return give_reason(STATUS, "the servers have not told all of it within %" PRId64 " ms\n",
                           x->options.timeout_ms);
    if (*path) return give_reason(STATUS, "%s cannot be read: %s\n", path, divvy_strerror(error));
    return give_reason(STATUS, "%s\n", divvy_strerror(error));
}

/* ---- questions ---- */

/* Opens the session if there is none, and the memory of the pool's plan. Returns 0 or an error. */
static int open_pool(dv_serve_examiner *x, size_t pool, const char *path) {
    if (!x->look && dv_look_open(&x->look, &x->options, dv_serve_name, x->stop_fd) != 0) return DIVVY_ENOMEM;
    if (x->plans[pool]) return 0;
    dv_pool_plan *plan = calloc(1, sizeof *plan);
    if (!plan || dv_pool_plan_init(plan, x->look, path) != 0) {
        free(plan);
        return DIVVY_ENOMEM;
    }
    x->plans[pool] = plan;
    return 0;
}

static dv_serve_answer explain(dv_serve_examiner *x, const dv_serve_question *q, const char *path) {
    const char *item = q->item;
    const dv_item_list list = {&item, 1};
    dv_status status = {.path = path, .expected = &list, .only_expected = true, .plan = x->plans[q->pool]};
    dv_explanation e = {.status = &status};
    char why[DV_EXPLAIN_BYTES];
    int error = x->error = dv_look_at(x->look, dv_explain_read, &e);
    dv_serve_answer answer = error                                  ? give_error(x, error)
                             : dv_explain_refuses(&e, q->item, why) ? give_reason(MHD_HTTP_NOT_FOUND, "%s\n", why)
                                                                    : give_json(dv_explain_json(&e), EXPLAIN_FRESH_MS);
    dv_explain_clear(&e);
    dv_status_pool_clear(&status);
    return answer;
}

static dv_serve_answer tell_changes(dv_serve_examiner *x, const dv_serve_question *q, const char *path) {
    dv_pool_history *h = calloc(1, sizeof *h);
    char why[DV_HISTORY_BYTES];
    if (!h) return give_error(x, DIVVY_ENOMEM);
    *h = (dv_pool_history){.path = path, .plan = x->plans[q->pool]};
    int error = x->error = dv_look_at(x->look, dv_pool_history_read, h);
    dv_serve_answer answer = error                        ? give_error(x, error)
                             : dv_history_refuses(h, why) ? give_reason(MHD_HTTP_NOT_FOUND, "%s\n", why)
                                                          : give_json(dv_history_json(h), CHANGES_FRESH_MS);
    free(h);
    return answer;
}

/* Tells the findings, and for longer where they took long: the desk is free for others most of the time. */
static dv_serve_answer find(dv_serve_examiner *x, size_t pool, const char *path) {
    int64_t began_ms = dv_session_now_ms();
    char *text = dv_serve_doctor_examine(&x->doctor, pool, path);
    int64_t fresh_ms = FINDINGS_FRESH_TIMES * (dv_session_now_ms() - began_ms);
    if (!text) return give_error(x, DIVVY_ENOMEM);
    return (dv_serve_answer){MHD_HTTP_OK, text, fresh_ms > FINDINGS_FRESH_MS ? fresh_ms : FINDINGS_FRESH_MS};
}

static dv_serve_answer ask_pool(dv_serve_examiner *x, const dv_serve_question *q, const char *path) {
    int error = open_pool(x, q->pool, path);
    if (error) return give_error(x, error);
    return q->subject == DV_SERVE_EXPLAIN ? explain(x, q, path) : tell_changes(x, q, path);
}

/* Returns the path of a pool, malloc'ed. */
static char *path_of(const dv_serve_examiner *x, size_t pool) {
    pthread_mutex_lock(&x->serve->lock);
    char *path = strdup(x->serve->pools[pool].path);
    pthread_mutex_unlock(&x->serve->lock);
    return path;
}

dv_serve_answer dv_serve_examine(dv_serve_examiner *x, const dv_serve_question *q) {
    char *path = path_of(x, q->pool);
    x->error = 0;
    dv_serve_answer answer = !path                             ? give_error(x, DIVVY_ENOMEM)
                             : q->subject == DV_SERVE_FINDINGS ? find(x, q->pool, path)
                                                               : ask_pool(x, q, path);
    /* An error that stays for this session may not for the next one. */
    if (x->error && !dv_look_may_recover(x->error)) leave(x);
    free(path);
    return answer;
}
