/* divvy announce: a service stands in the registry while a command runs. SPDX-License-Identifier: Apache-2.0
 *
 * Everything happens on one thread, as in lock.c. The command is looked up; the process that will guard it is forked,
 * while we have no connection; the load is asked for, and the first heartbeat sent; when the entry stands the command
 * is started. From then on there is a heartbeat every third of the ttl, whatever becomes of the connection: it is the
 * servers' business to forget us, and the command's to go on. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <divvy/divvy.h>
#include <divvy/registry.h>

#include "announce_load.h"
#include "announce_options.h"
#include "command.h"
#include "connection.h"
#include "log.h"
#include "program.h"
#include "run.h"
#include "znode/path.h"

/* The command holds nothing that has a deadline. */
#define NO_DEADLINE_MS (INT64_MAX / 4)

enum { GRACE_MS = 3000, KILL_MS = 500 };

typedef struct {
    dv_announce_options options;
    dv_session session;
    dv_run run;
    char *program;
    divvy_registry *registry;
    dv_load_probe probe;
    double load;
    char *id; /* as it was made up with the first heartbeat */
    bool registered;
    bool beating; /* a heartbeat is under way */
    bool leaving; /* the entry is taken out, though the command runs on */
    int failed;   /* the exit code when it cannot go on; 0 otherwise */
    int64_t next_ms;
} announcer;

static int64_t interval_ms(const announcer *a) {
    return a->options.ttl_ms / 3;
}

/* ---- heartbeats ---- */

static cJSON *make_status(const announcer *a) {
    const dv_announce_options *o = &a->options;
    cJSON *status = cJSON_CreateObject();
    bool complete = status && cJSON_AddStringToObject(status, "role", o->role) &&
                    cJSON_AddNumberToObject(status, "load", a->load) &&
                    cJSON_AddNumberToObject(status, "ttl", (double)o->ttl_ms / 1000) &&
                    (!a->id || cJSON_AddStringToObject(status, "id", a->id)) &&
                    (!o->address || cJSON_AddStringToObject(status, "address", o->address)) &&
                    (!o->port || cJSON_AddNumberToObject(status, "port", (double)o->port));
    if (complete) return status;
    cJSON_Delete(status);
    return NULL;
}

/* The first one that fails is the end: nothing has been begun yet. Later ones are followed by others. */
static void on_beaten(divvy_registry *registry, int result, const cJSON *stored, void *user) {
    announcer *a = user;
    (void)registry;
    a->beating = false;
    if (result == 0) {
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(stored, "id");
        if (!a->id && cJSON_IsString(id)) a->id = strdup(id->valuestring);
        a->registered = true;
    } else if (result != DIVVY_ECANCELED) {
        dv_command_say("%s%s/services/%s: %s",
                       a->registered ? "warning: no heartbeat: " : "cannot register: ", a->options.root,
                       a->options.role, dv_session_why(a->session.client, result));
        if (!a->registered) a->failed = a->session.failed;
    }
}

static void beat(announcer *a) {
    cJSON *status = make_status(a);
    /* One that does not come through in time is overtaken by the next. */
    int64_t timeout_ms = a->registered ? interval_ms(a) : -1;
    int error = status ? divvy_registry_heartbeat_async(a->registry, status, timeout_ms, on_beaten, a) : DIVVY_ENOMEM;
    cJSON_Delete(status);
    a->beating = error == 0;
    if (!error) return;
    int code = dv_session_refused(&a->session, error);
    if (!a->registered) a->failed = code;
}

static void look_at_load(announcer *a) {
    dv_load_outcome outcome = a->probe.process ? dv_load_look(&a->probe, &a->load) : DV_LOAD_RUNS;
    if (outcome == DV_LOAD_RUNS) return;
    if (outcome == DV_LOAD_FAILED && !a->registered) a->failed = a->session.failed;
    else if (!a->beating) beat(a);
}

/* Asks for the load, where there is somebody to ask, and then sends a heartbeat. */
static void begin_beat(announcer *a) {
    if (!a->session.connected || a->leaving || a->beating || a->probe.process) return;
    if (dv_session_now_ms() < a->next_ms) return;
    a->next_ms = dv_session_now_ms() + interval_ms(a);
    if (!a->options.load_command) beat(a);
    else if (dv_load_begin(&a->probe, a->options.load_command, interval_ms(a)) != 0 && !a->registered)
        a->failed = a->session.failed;
}

static int64_t until_beat_ms(const announcer *a) {
    int64_t left_ms = a->next_ms - dv_session_now_ms();
    if (!a->session.connected || a->leaving || a->beating || a->probe.process) return -1;
    return left_ms > 0 ? left_ms : 0;
}

/* Takes the entry away once the command was told to end, so that nobody finds it while it finishes. */
static void leave_if_due(announcer *a) {
    if (a->leaving || !(a->run.told & dv_run_bit(SIGTERM))) return;
    a->leaving = true;
    dv_load_end(&a->probe);
    /* Our node is deleted even if no time is given for it. */
    divvy_registry_unregister(a->registry, a->options.role, a->id, 0);
}

/* ---- the loop ---- */

static void step(announcer *a) {
    int64_t wait_ms = dv_session_sooner(until_beat_ms(a), dv_session_until_check_ms(&a->session));
    wait_ms = dv_session_sooner(wait_ms, dv_load_until_ms(&a->probe));
    wait_ms = dv_session_sooner(wait_ms, dv_session_until_metrics_ms(&a->session));
    wait_ms = dv_session_sooner(wait_ms, divvy_client_next_deadline(a->session.client));
    struct pollfd fds[] = {{.fd = divvy_client_fd(a->session.client), .events = POLLIN},
                           {.fd = dv_run_signal_fd(&a->run), .events = POLLIN},
                           {.fd = dv_run_guardian_fd(&a->run), .events = POLLIN},
                           {.fd = dv_load_fd(&a->probe), .events = POLLIN}};
    poll(fds, 4, wait_ms > INT_MAX ? INT_MAX : (int)wait_ms);
    divvy_client_process(a->session.client, 0);
    dv_session_write_metrics(&a->session);
    dv_run_step(&a->run);
    leave_if_due(a);
    look_at_load(a);
}

/* Returns 0 while it can go on, else the exit code. */
static int go_on(announcer *a) {
    int code = dv_session_check(&a->session);
    if (code == 0) begin_beat(a);
    if (code == 0) code = a->failed;
    if (code == 0) step(a);
    return code ? code : a->failed;
}

/* ---- the command ---- */

static int start(announcer *a) {
    char *role = NULL, *id = NULL;
    if (asprintf(&role, "DIVVY_SERVICE_ROLE=%s", a->options.role) < 0) role = NULL;
    if (asprintf(&id, "DIVVY_SERVICE_ID=%s", a->id ? a->id : "") < 0) id = NULL;
    const char *environment[] = {role, id, NULL};
    dv_guardian_config config = {.program = a->program,
                                 .arguments = a->options.arguments,
                                 .environment = environment,
                                 .grace_ms = GRACE_MS,
                                 .kill_ms = KILL_MS};
    errno = ENOMEM;
    int outcome = role && id ? dv_run_start(&a->run, &config) : -1;
    if (outcome != 0) dv_command_say("cannot start the command: %s", strerror(errno));
    free(role);
    free(id);
    return outcome == 0 ? 0 : DV_EXIT_TROUBLE;
}

/* ---- the whole ---- */

static int open_registry(announcer *a) {
    char *path = dv_path_join(a->options.root, "services");
    divvy_registry_config config = DIVVY_REGISTRY_CONFIG_INIT;
    config.path = path;
    int error = path ? divvy_registry_open(&a->registry, a->session.client, &config) : DIVVY_ENOMEM;
    free(path);
    return error ? dv_session_refused(&a->session, error) : 0;
}

static int announce(announcer *a) {
    int code = dv_session_open(&a->session);
    if (code == 0) code = open_registry(a);
    while (code == 0 && !a->registered && !a->run.asked) code = go_on(a);
    if (code == 0 && a->run.asked) return a->program ? DV_EXIT_SIGNAL + a->run.asked : DV_EXIT_DONE;
    dv_guardians_set_deadline(a->run.guardians, NO_DEADLINE_MS);
    if (code == 0 && a->program) code = start(a);
    if (code != 0) return code;
    while (!a->run.over && !(a->run.asked && !a->program)) {
        code = go_on(a);
        if (code != 0) return code;
    }
    return a->program ? dv_run_code(&a->run, a->options.arguments[0]) : DV_EXIT_DONE;
}

static int prepare_and_announce(announcer *a) {
    const char *name = a->options.arguments ? a->options.arguments[0] : NULL;
    int code = name ? dv_program_find(name, &a->program) : 0;
    if (code != 0) return code;
    if (a->options.id && !(a->id = strdup(a->options.id))) {
        dv_command_out_of_memory();
        return a->session.failed;
    }
    if (dv_run_open(&a->run) != 0) return a->session.failed;
    a->load = a->options.load;
    return announce(a);
}

static int run(int argc, char **argv) {
    announcer a = {.run = {.signal_fd = -1}};
    int code = dv_announce_options_parse(&a.options, argc, argv);
    a.session = (dv_session){.command = "announce",
                             .what_ends = "the entry",
                             .failed = a.options.arguments ? DV_EXIT_TROUBLE : DV_EXIT_FAILED,
                             .unreachable = DV_EXIT_UNREACHABLE,
                             .options = &a.options.session};
    if (code == DV_EXIT_FAILED) code = a.session.failed;
    if (code == 0) {
        dv_log_field("role", a.options.role);
        code = prepare_and_announce(&a);
    }
    dv_load_end(&a.probe);
    divvy_registry_close(a.registry);
    dv_session_close(&a.session);
    int typed = a.run.typed;
    dv_run_close(&a.run);
    free(a.program);
    free(a.id);
    dv_announce_options_free(&a.options);
    dv_run_die_if_typed(typed, code);
    return code;
}

const dv_command dv_announce_command = {
    .name = "announce",
    .summary = "register a service while a command runs",
    .run = run,
    .print_help = dv_announce_print_help,
};
