/* divvy doctor: what is wrong, and what to do about it. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "doctor_judge.h"
#include "look.h"
#include "znode/path.h"

static const char command[] = "doctor";

enum { SESSION_TIMEOUT_MS = 10000, SERVER_TIMEOUT_MS = 400 };

typedef struct {
    dv_look_options look;
    const char *path;
    dv_session_options session; /* its timeout and its tick; members have such ones */
    int64_t server_timeout_ms;
    int json;
} doctor_options;

static const dv_option table[] = {
    {.name = "path",
     .argument = "PATH",
     .kind = DV_OPTION_TEXT,
     .offset = offsetof(doctor_options, path),
     .help = "the pool, an absolute znode path such as /work_queues; without it, only\n"
             "servers and session are examined"},
    {.name = "server-timeout",
     .argument = "DURATION",
     .kind = DV_OPTION_DURATION,
     .offset = offsetof(doctor_options, server_timeout_ms),
     .help = "a server that has not answered after this long is called silent\n(default: 400ms)",
     .min_ms = 50,
     .max_ms = 60 * 1000},
    DV_SESSION_OPTION_TIMEOUT(doctor_options, session,
                              "the session timeout that members are started with (default: 10s)"),
    DV_SESSION_OPTION_TICK(doctor_options, session,
                           "the tick that members are told (default: $DIVVY_ENSEMBLE_TICK_MS)"),
    {.name = "json",
     .kind = DV_OPTION_FLAG,
     .offset = offsetof(doctor_options, json),
     .help = "print one JSON object on one line"},
    DV_LOOK_OPTIONS(doctor_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy doctor [--path PATH] [OPTION ...]\n"
           "\n"
           "Examines each server of --connect, the session that members would get, and the pool at\n"
           "PATH. Tells what is wrong, where, why, and what to do about it: the worst first, and what\n"
           "is well last. Changes nothing.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 nothing is wrong; 1 something is: there is a warning or an error, or\n"
           "divvy failed, and standard error says why; 2 wrong usage; 3 no server serves.\n");
}

/* ---- options ---- */

/* The tick of the environment, which members are told too; 0 where it has none. */
static int64_t environment_tick_ms(void) {
    const char *text = getenv("DIVVY_ENSEMBLE_TICK_MS");
    char *end = NULL;
    errno = 0;
    long long tick_ms = text && *text ? strtoll(text, &end, 10) : 0;
    return end && !*end && !errno && tick_ms > 0 && tick_ms <= 3600000 ? tick_ms : 0;
}

static int parse(doctor_options *o, int argc, char **argv) {
    const char *reason = NULL, *wrong = NULL;
    int outcome = dv_options_parse(command, table, o, argc, argv);
    if (outcome != DV_OPTIONS_PARSED) return outcome;
    if (o->path && *o->path != '/') wrong = "--path must begin with a slash, such as /work_queues";
    if (wrong) dv_command_misused(command, "%s", wrong);
    else if (o->path && dv_path_check(o->path, &reason) != 0)
        dv_command_misused(command, "--path: the path \"%.100s\" %s", o->path, reason);
    if (wrong || reason || dv_look_options_finish(&o->look, command) != 0) return DV_OPTIONS_WRONG;
    if (!o->session.ensemble_tick_ms) o->session.ensemble_tick_ms = environment_tick_ms();
    return DV_OPTIONS_PARSED;
}

/* ---- examining ---- */

static int out_of_memory(void) {
    dv_command_say("out of memory");
    return DV_EXIT_FAILED;
}

static void note_failure(dv_doctor *d, const dv_look *look, int error) {
    const char *path = look ? dv_look_failed_path(look) : "", *text = divvy_strerror(error);
    d->look_error = error;
    if (error == DIVVY_EAUTH && look) text = dv_session_why(dv_look_client(look), error);
    if (error == DIVVY_EAUTH) path = "";
    if (error == DIVVY_ETIMEDOUT) text = "the servers have not told all of it within --timeout";
    snprintf(d->failed_path, sizeof d->failed_path, "%s", path);
    snprintf(d->look_reason, sizeof d->look_reason, "%s", *text ? text : divvy_strerror(error));
}

/* Reads by a session to those servers that serve, so that no other one delays it. */
static int examine_pool(const doctor_options *o, dv_doctor *d, dv_pool_plan *plan, const char *connect) {
    dv_look_options options = o->look;
    dv_look *look = NULL;
    options.connect = connect;
    options.session_timeout_ms = o->session.session_timeout_ms;
    d->opened_ms = dv_look_wall_ms();
    int code = dv_look_open(&look, &options, command, -1);
    if (code == 0 && o->path && dv_pool_plan_init(plan, look, o->path) != 0) code = out_of_memory();
    d->status.plan = plan;
    int error = code == 0 ? dv_look_at(look, dv_doctor_read, d) : 0;
    if (error == DIVVY_ENOMEM) code = out_of_memory();
    else if (error) note_failure(d, look, error);
    if (code == 0 && dv_servers_ask_clients(&d->servers, &o->look.tls, o->server_timeout_ms) != 0)
        code = out_of_memory();
    dv_look_close(look);
    return code;
}

static int tell(const doctor_options *o, const dv_doctor *d, bool served) {
    dv_findings findings = {.list = NULL};
    dv_doctor_judge_servers(d, &findings);
    if (o->path && served && !d->look_error) {
        dv_doctor_judge_pool(d, &findings);
        dv_doctor_judge_members(d, &findings);
        dv_doctor_judge_items(d, &findings);
    }
    int code = dv_command_print(o->json ? dv_findings_json(&findings, o->path) : dv_findings_page(&findings));
    bool wrong = dv_findings_of(&findings, DV_DOCTOR_ERROR) + dv_findings_of(&findings, DV_DOCTOR_WARNING) > 0;
    bool unreachable = !served || (d->look_error == DIVVY_ETIMEDOUT && !d->looked);
    if (code == 0 && unreachable) code = DV_EXIT_UNREACHABLE;
    else if (code == 0 && wrong) code = DV_EXIT_FAILED;
    dv_findings_clear(&findings);
    return code;
}

static int examine(const doctor_options *o) {
    dv_doctor d = {
        .path = o->path, .session_timeout_ms = o->session.session_timeout_ms, .tick_ms = o->session.ensemble_tick_ms};
    dv_pool_plan plan = {.look = NULL};
    const char *reason = "";
    char *user = o->look.auth ? strndup(o->look.auth, strcspn(o->look.auth, ":")) : NULL;
    d.user = user;
    d.server_timeout_ms = o->server_timeout_ms;
    d.hides_names = o->look.tls.ca_file || o->look.tls.sasl_user || o->look.tls.sasl_mechanism;
    d.status = (dv_status){.path = o->path, .skip_denied = true, .owners_by_name = true};
    int error = dv_servers_ask(&d.servers, o->look.connect, &o->look.tls, o->server_timeout_ms, &reason);
    char *good = error ? NULL : dv_servers_good(&d.servers);
    int code = 0;
    if (error == DIVVY_EINVAL) code = dv_command_misused(command, "--connect: \"%.200s\" %s", o->look.connect, reason);
    else if (error || !good || (o->look.auth && !user)) code = out_of_memory();
    else code = *good ? examine_pool(o, &d, &plan, good) : 0;
    if (code == 0) code = tell(o, &d, good && *good);
    dv_doctor_clear(&d);
    dv_pool_plan_free(&plan);
    free(good);
    free(user);
    return code;
}

static int run(int argc, char **argv) {
    doctor_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS},
                        .session = {.session_timeout_ms = SESSION_TIMEOUT_MS},
                        .server_timeout_ms = SERVER_TIMEOUT_MS};
    int code = DV_EXIT_USAGE;
    int outcome = parse(&o, argc, argv);
    if (outcome == DV_OPTIONS_HELP) {
        print_help();
        code = dv_command_printed();
    } else if (outcome == DV_OPTIONS_PARSED) {
        code = examine(&o);
    }
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_doctor_command = {
    .name = command,
    .summary = "tell what is wrong with servers and a pool, and what to do",
    .run = run,
    .print_help = print_help,
};
