/* The options of `divvy elect`. SPDX-License-Identifier: Apache-2.0 */
#include "elect_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "lock_options.h"
#include "look.h"
#include "option_rows.h"
#include "run.h"

enum { PREFERENCE_MAX = 1000, STEP_DOWN_MS = 60000 };

static const char command[] = "elect";

#define OPTION_VALUES dv_elect_options

static const dv_option table[] = {
    DV_SESSION_OPTION_CONNECT(dv_elect_options, session),
    TEXT("data", "TEXT", data,
         "what others are told of this candidate, such as an address\n"
         "(default: its host and process)"),
    NUMBER("prefer", "N", preference, 0, PREFERENCE_MAX,
           "from 0 to 1000 (default: 0): ask a leader with a smaller number to step down,\n"
           "and lead next; after it was asked itself, a candidate stands once without"),
    FLAG("once", once,
         "end when the command has ended, or leadership was lost, instead of standing\n"
         "again"),
    DURATION("grace", grace_ms, 0, 1200000,
             "how long the command has between SIGTERM and SIGKILL when it must end; at\n"
             "most a third of the session timeout (default: a fifth of it, 3s at most)"),
    FLAG("watch", watch,
         "run no command; print who leads, now and each time that it changes: a line\n"
         "\"leader TOKEN DATA\", or \"nobody\""),
    FLAG("step-down", step_down, "run no command; ask the one that leads to step down, and wait for that"),
    DURATION("timeout", timeout_ms, 1, INT64_C(1000) * 3600 * 1000,
             "with --step-down: wait no longer than this, then exit with 4 (default: 1m)"),
    TEXT("root", "PATH", root,
         "the znode above the locks; the election is the lock PATH/locks/NAME\n"
         "(default: /divvy)"),
    DV_SESSION_OPTION_TIMEOUT(dv_elect_options, session,
                              "how long the servers wait for a silent leader before others can be elected\n"
                              "(default: 15s; 100ms to 1h, and servers have limits of their own)"),
    DV_SESSION_OPTION_TICK(dv_elect_options, session,
                           "tickTime of the servers' zoo.cfg, or more; required\n"
                           "(default: $DIVVY_ENSEMBLE_TICK_MS)"),
    DV_SESSION_OPTION_CONNECT_TIMEOUT(dv_elect_options, session,
                                      "exit with 3 when no server has answered after this long; 0: keep trying\n"
                                      "(default: 10s)"),
    DV_SESSION_OPTION_AUTH_FILE(dv_elect_options, session),
    DV_TLS_OPTIONS(dv_elect_options, session.tls),
    DV_SESSION_OPTION_ACL(dv_elect_options, session),
    DV_SESSION_OPTION_NO_DEATH_WATCH(dv_elect_options, session),
    DV_SESSION_OPTION_FAILOVER_DELAY(dv_elect_options, session),
    DV_SESSION_OPTION_METRICS(dv_elect_options, session),
    DV_SESSION_OPTION_VERBOSE(dv_elect_options, session, "write the library's log to standard error"),
    {.name = NULL},
};

void dv_elect_print_help(void) {
    printf("usage: divvy elect [OPTION ...] NAME COMMAND [ARGUMENT ...]\n"
           "       divvy elect [OPTION ...] --watch NAME\n"
           "       divvy elect [OPTION ...] --step-down NAME\n"
           "\n"
           "Stands in the election NAME, and runs COMMAND while it leads. Of all candidates on all\n"
           "machines one leads. When the command has ended, or leadership is lost, it stands again,\n"
           "at the end of the queue. Options stand before NAME.\n"
           "\n"
           "divvy ends the command, with all its processes, before another can lead: by SIGTERM,\n"
           "then SIGKILL. It does the same when somebody asks the leader to step down. The\n"
           "command's environment has DIVVY_ELECTION_NAME and DIVVY_ELECTION_TOKEN (a number that\n"
           "grows with each leader). The election NAME is the lock NAME of divvy lock, and\n"
           "`divvy locks NAME` shows who leads and who waits.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 SIGTERM, SIGHUP or SIGINT ended divvy, or the leader has stepped down; 2\n"
           "wrong usage; 3 no server answered within --connect-timeout; 4 the leader has not stepped\n"
           "down within --timeout, or nobody leads; 125 the servers refused, and standard error says\n"
           "why; 126 the command cannot be executed; 127 the command was not found. With --once:\n"
           "that of the command, or 128 and the signal's number if a signal ended it; 5 divvy lost\n"
           "leadership and ended the command.\n");
}

static const char *contradiction(const dv_elect_options *o) {
    bool looks = o->watch || o->step_down;
    if (o->watch && o->step_down) return "give --watch or --step-down, not both";
    if (!o->name) return "NAME is missing; it names the election, such as scheduler";
    if (!*o->name) return "NAME is empty";
    if (o->data && !*o->data) return "--data is empty";
    if (looks && o->arguments[0]) return "--watch and --step-down run no command";
    if (looks && (o->once || o->preference)) return "--once and --prefer are for candidates";
    if (o->timeout_ms >= 0 && !o->step_down) return "--timeout is for --step-down";
    if (!looks && !o->arguments[0]) return "COMMAND is missing; it is run while this candidate leads";
    return NULL;
}

static int check(dv_elect_options *o) {
    const char *wrong = contradiction(o);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    int code = dv_run_check_grace(command, o->session.session_timeout_ms, &o->grace_ms);
    return code ? code : dv_options_check_path(command, "root", o->root);
}

/* Rule G1: where the lock NAME is. */
static char *make_path(const dv_elect_options *o) {
    char *node = dv_look_node_of(o->name);
    char *path = node ? dv_look_deep_path(o->root, "locks", node) : NULL;
    free(node);
    return path;
}

int dv_elect_options_parse(dv_elect_options *o, int argc, char **argv) {
    *o = (dv_elect_options){
        .session = {.session_timeout_ms = 15000, .connect_timeout_ms = 10000, .acl = DIVVY_ACL_AUTO},
        .root = DV_OWN_ROOT,
        .timeout_ms = -1,
        .grace_ms = -1,
    };
    int rest = 0;
    int code = dv_options_parse_before(command, table, o, argc, argv, &rest);
    if (code != 0) return code;
    char **words = argv + rest;
    o->name = words[0];
    if (words[0]) words++;
    if (words[0] && strcmp(words[0], "--") == 0) words++;
    o->arguments = (const char *const *)words;
    code = check(o);
    if (code != 0) return code;
    if (o->timeout_ms < 0) o->timeout_ms = STEP_DOWN_MS;
    o->path = make_path(o);
    return o->path ? dv_session_options_finish(&o->session, command) : dv_command_out_of_memory();
}

void dv_elect_options_free(dv_elect_options *o) {
    free(o->path);
    dv_session_options_free(&o->session);
    *o = (dv_elect_options){0};
}
