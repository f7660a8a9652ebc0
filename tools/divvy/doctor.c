/* divvy doctor: what is wrong, and what to do about it. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "connection.h"
#include "doctor_examine.h"
#include "look.h"
#include "option_rows.h"

static const char command[] = "doctor";

enum { SESSION_TIMEOUT_MS = 10000, SERVER_TIMEOUT_MS = 400 };

typedef struct {
    dv_look_options look;
    const char *path;
    dv_session_options session; /* its timeout and its tick; members have such ones */
    int64_t server_timeout_ms;
    int json;
} doctor_options;

#define OPTION_VALUES doctor_options

static const dv_option table[] = {
    TEXT("path", "PATH", path,
         "the pool, an absolute znode path such as /work_queues; without it, only\n"
         "servers and session are examined"),
    DURATION("server-timeout", server_timeout_ms, 50, 60 * 1000,
             "a server that has not answered after this long is called silent\n(default: 400ms)"),
    DV_SESSION_OPTION_TIMEOUT(doctor_options, session,
                              "the session timeout that members are started with (default: 10s)"),
    DV_SESSION_OPTION_TICK(doctor_options, session,
                           "the tick that members are told (default: $DIVVY_ENSEMBLE_TICK_MS)"),
    FLAG("json", json, "print one JSON object on one line"),
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

static int parse(doctor_options *o, int argc, char **argv) {
    int code = dv_options_parse(command, table, o, argc, argv);
    if (code == 0 && o->path) code = dv_options_check_pool(command, o->path);
    if (code != 0) return code;
    if (!o->session.ensemble_tick_ms) o->session.ensemble_tick_ms = dv_doctor_environment_tick_ms();
    return dv_look_options_finish(&o->look, command);
}

/* ---- examining ---- */

static int tell(const doctor_options *o, const dv_doctor *d) {
    dv_findings findings = {.list = NULL};
    dv_doctor_judge(d, &findings);
    int code = dv_command_print(o->json ? dv_findings_json(&findings, o->path) : dv_findings_page(&findings));
    bool wrong = dv_findings_of(&findings, DV_DOCTOR_ERROR) + dv_findings_of(&findings, DV_DOCTOR_WARNING) > 0;
    bool unreachable = !d->is_served || (d->look_error == DIVVY_ETIMEDOUT && !d->looked);
    if (code == 0 && unreachable) code = DV_EXIT_UNREACHABLE;
    else if (code == 0 && wrong) code = DV_EXIT_FAILED;
    dv_findings_clear(&findings);
    return code;
}

static int examine(const doctor_options *o) {
    char *user = o->look.auth ? strndup(o->look.auth, strcspn(o->look.auth, ":")) : NULL;
    dv_doctor d = {.path = o->path,
                   .user = user,
                   .session_timeout_ms = o->session.session_timeout_ms,
                   .tick_ms = o->session.ensemble_tick_ms,
                   .server_timeout_ms = o->server_timeout_ms};
    dv_pool_plan plan = {.look = NULL};
    int code = o->look.auth && !user ? dv_command_out_of_memory() : dv_doctor_examine(&d, &o->look, &plan, command, -1);
    if (code == 0) code = tell(o, &d);
    dv_doctor_clear(&d);
    dv_pool_plan_free(&plan);
    free(user);
    return code;
}

static int run(int argc, char **argv) {
    doctor_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS},
                        .session = {.session_timeout_ms = SESSION_TIMEOUT_MS},
                        .server_timeout_ms = SERVER_TIMEOUT_MS};
    int code = parse(&o, argc, argv);
    if (code == 0) code = examine(&o);
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_doctor_command = {
    .name = command,
    .summary = "tell what is wrong with servers and a pool, and what to do",
    .run = run,
    .print_help = print_help,
};
