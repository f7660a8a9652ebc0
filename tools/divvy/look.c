/* Look: reading ZooKeeper without changing anything in it. SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <divvy/divvy.h>

#include "client/client.h"
#include "command.h"
#include "connection.h"
#include "log.h"
#include "znode/path.h"
#include "zookeeper/open.h"

enum { UNDER_WAY_MAX = 256, PATH_SHOWN_BYTES = 256 };

struct dv_look {
    const dv_look_options *options;
    divvy_client *client;
    char *hosts; /* without the chroot, which a client would make */
    const char *chroot;
    int stop_fd;
    bool connected; /* at least once */
    int64_t deadline_ms;
    char failed_path[PATH_SHOWN_BYTES]; /* of the read that ended the last look */
};

typedef struct {
    unsigned refs;
    dv_look *look;
    const dv_reads *reads;
    size_t *hidden; /* or NULL */
    size_t asked, answered;
    bool abandoned;
    int error;
} reading;

typedef struct {
    reading *reading;
    size_t index;
    char *path;
} request;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t dv_look_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

char *dv_look_path(const dv_look *look, const char *path) {
    if (!*look->chroot) return strdup(path);
    return strcmp(path, "/") == 0 ? strdup(look->chroot) : dv_path_join(look->chroot, path + 1);
}

/* ---- many reads ---- */

static void drop(reading *r) {
    if (--r->refs == 0) free(r);
}

static void ask_more(reading *r);

void dv_look_blame(dv_look *look, const char *path) {
    snprintf(look->failed_path, sizeof look->failed_path, "%s", path);
}

static void on_reply(void *context, const dv_reply *reply, int64_t now) {
    (void)now;
    request *q = context;
    reading *r = q->reading;
    int error = reply->error == DIVVY_ENOENT || reply->error == DIVVY_EACCES ? 0 : reply->error;
    r->answered++;
    if (!r->abandoned && !r->error) {
        bool hidden = reply->error == DIVVY_EACCES && r->hidden;
        bool is_first = hidden && (*r->hidden)++ == 0;
        if (!error && !hidden) error = r->reads->take(r->reads->context, q->index, reply);
        if (error || is_first) dv_look_blame(r->look, q->path);
        r->error = error;
        ask_more(r);
    }
    free(q->path);
    free(q);
    drop(r);
}

static int ask_one(reading *r) {
    divvy_client *client = r->look->client;
    request *q = calloc(1, sizeof *q);
    if (!q) return DIVVY_ENOMEM;
    *q = (request){r, r->asked, r->reads->path(r->reads->context, r->asked)};
    dv_op op = {.kind = r->reads->kind, .path = q->path};
    if (q->path && dv_znode_submit(client->znode, &op, NULL, on_reply, q) == 0) {
        r->refs++;
        r->asked++;
        return 0;
    }
    free(q->path);
    free(q);
    return DIVVY_ENOMEM;
}

static void ask_more(reading *r) {
    while (!r->error && r->asked < r->reads->count && r->asked - r->answered < UNDER_WAY_MAX) r->error = ask_one(r);
}

/* Lets the client work until there may be something new, or `deadline_ms` has passed. `output` may be NULL, and
 * `wake_fd` -1. */
static int step_until(dv_look *look, int64_t deadline_ms, dv_output *output, int wake_fd) {
    int64_t left_ms = deadline_ms - now_ms(), due_ms = divvy_client_next_deadline(look->client);
    if (left_ms <= 0) return DIVVY_ETIMEDOUT;
    if (due_ms < 0 || due_ms > left_ms) due_ms = left_ms;
    struct pollfd fds[] = {{.fd = divvy_client_fd(look->client), .events = POLLIN},
                           {.fd = look->stop_fd, .events = POLLIN},
                           {.fd = output ? dv_output_fd(output) : -1},
                           {.fd = wake_fd, .events = POLLIN}};
    poll(fds, 4, due_ms > INT32_MAX ? INT32_MAX : (int)due_ms);
    if (output) dv_output_heard(output, fds[2].revents);
    if (fds[1].revents || fds[3].revents || (output && output->ended)) return DIVVY_ECANCELED;
    int error = divvy_client_process(look->client, 0);
    return error < 0 ? error : 0;
}

static int step(dv_look *look) {
    return step_until(look, look->deadline_ms, NULL, -1);
}

divvy_client *dv_look_client(const dv_look *look) {
    return look->client;
}

int dv_look_step(dv_look *look) {
    return step(look);
}

void dv_look_pause(dv_look *look, int64_t ms, dv_output *output) {
    int64_t deadline_ms = now_ms() + ms;
    while (step_until(look, deadline_ms, output, -1) == 0) continue;
}

int dv_look_rest(dv_look *look, int64_t ms, int wake_fd) {
    int64_t deadline_ms = now_ms() + ms;
    int error;
    while ((error = step_until(look, deadline_ms, NULL, wake_fd)) == 0) continue;
    return error;
}

int dv_look_read(dv_look *look, const dv_reads *reads) {
    return dv_look_read_shown(look, reads, NULL);
}

int dv_look_read_shown(dv_look *look, const dv_reads *reads, size_t *hidden) {
    reading *r = calloc(1, sizeof *r);
    if (!r) return DIVVY_ENOMEM;
    *r = (reading){.refs = 1, .look = look, .reads = reads, .hidden = hidden};
    int error = dv_client_enter(look->client);
    if (!error) {
        ask_more(r);
        dv_client_unlock(look->client);
    }
    while (!error && !r->error && r->answered < reads->count) error = step(look);
    if (!error) error = r->error;
    r->abandoned = true; /* Answers that are still to come have nobody who takes them. */
    drop(r);
    return error;
}

/* ---- a look ---- */

static int wait_connected(dv_look *look) {
    int error, waited;
    while ((error = divvy_client_wait_connected(look->client, 0)) == DIVVY_ETIMEDOUT || error == DIVVY_ERESOLVE) {
        waited = step(look);
        if (waited) return waited == DIVVY_ETIMEDOUT ? error : waited;
    }
    if (!error) look->connected = true;
    return error;
}

int dv_look_at(dv_look *look, int (*ask)(dv_look *look, void *context), void *context) {
    int error;
    look->deadline_ms = now_ms() + look->options->timeout_ms;
    do {
        *look->failed_path = '\0';
        error = wait_connected(look);
        if (!error) error = ask(look, context);
        if (error == DIVVY_ELOST) error = DIVVY_ECONNECTION; /* There will be another session. */
    } while (error == DIVVY_ECONNECTION && now_ms() < look->deadline_ms);
    return error == DIVVY_ECONNECTION ? DIVVY_ETIMEDOUT : error;
}

bool dv_look_may_recover(int error) {
    return error == DIVVY_ETIMEDOUT || error == DIVVY_ERESOLVE;
}

const char *dv_look_failed_path(const dv_look *look) {
    return look->failed_path;
}

int dv_look_failed(const dv_look *look, int error) {
    const dv_look_options *o = look->options;
    if (error == DIVVY_ERESOLVE) {
        dv_command_say("no host name could be resolved of %s within %" PRId64 " ms", o->connect, o->timeout_ms);
        return DV_EXIT_UNREACHABLE;
    }
    if (error == DIVVY_ETIMEDOUT) {
        dv_command_say(look->connected ? "the servers at %s have not told all of it within %" PRId64 " ms"
                                       : "no ZooKeeper server answered at %s within %" PRId64 " ms",
                       o->connect, o->timeout_ms);
        return DV_EXIT_UNREACHABLE;
    }
    if (error == DIVVY_EAUTH) dv_command_say("%s", dv_session_why(look->client, error));
    else if (*look->failed_path) dv_command_say("%s cannot be read: %s", look->failed_path, divvy_strerror(error));
    else dv_command_say("%s", divvy_strerror(error));
    return DV_EXIT_FAILED;
}

void dv_look_hidden(const dv_look *look, size_t count) {
    const char *more = count == 1 ? "" : ", and others like it";
    dv_command_say("%s cannot be read%s: %s", look->failed_path, more, divvy_strerror(DIVVY_EACCES));
}

/* ---- the connection ---- */

static void on_log(int level, const char *message, void *user) {
    (void)user;
    dv_command_log(level, message);
}

/* Our own session holds nothing, so that a warning about it is nobody's business. */
static void on_warning(divvy_client *client, int code, const char *message, void *user) {
    (void)client;
    (void)code;
    (void)message;
    (void)user;
}

/* Takes the chroot off the hosts, and looks whether it is one. */
static int split_chroot(dv_look *look, const char *command) {
    char *slash = strchr(look->hosts, '/');
    const char *reason;
    look->chroot = look->options->connect + (slash ? slash - look->hosts : (ptrdiff_t)strlen(look->hosts));
    if (strcmp(look->chroot, "/") == 0) look->chroot = "";
    if (slash) *slash = '\0';
    if (dv_chroot_check(look->chroot, &reason) == 0) return 0;
    return dv_command_misused(command, "--connect: \"%.200s\" %s", look->options->connect, reason);
}

static int open_client(dv_look *look, const char *command) {
    divvy_client_config config = DIVVY_CLIENT_CONFIG_INIT;
    config.hosts = look->hosts;
    config.manual = 1;
    if (look->options->session_timeout_ms) config.session_timeout_ms = look->options->session_timeout_ms;
    config.auth_scheme = look->options->auth ? "digest" : NULL;
    config.auth = look->options->auth;
    config.acl = look->options->acl;
    dv_tls_options_apply(&look->options->tls, &config);
    config.on_warning = on_warning;
    if (look->options->verbose) dv_log_all();
    config.on_log = dv_log_takes(DIVVY_LOG_DEBUG) ? on_log : NULL;
    int error = dv_client_open_to_look(&look->client, &config);
    if (error == DIVVY_EINVAL) return dv_command_misused(command, "%s", divvy_client_error(NULL));
    if (error) dv_command_say("%s", divvy_client_error(NULL));
    return error ? DV_EXIT_FAILED : 0;
}

int dv_look_open(dv_look **out, const dv_look_options *options, const char *command, int stop_fd) {
    *out = NULL;
    dv_look *look = calloc(1, sizeof *look);
    char *hosts = strdup(options->connect);
    if (!look || !hosts) {
        free(look);
        free(hosts);
        return dv_command_out_of_memory();
    }
    *look = (dv_look){.options = options, .hosts = hosts, .stop_fd = stop_fd};
    int code = split_chroot(look, command);
    if (code == 0) code = open_client(look, command);
    if (code == 0) *out = look;
    else dv_look_close(look);
    return code;
}

void dv_look_close(dv_look *look) {
    if (!look) return;
    divvy_client_close(look->client);
    free(look->hosts);
    free(look);
}
