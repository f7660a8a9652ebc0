/* The options of `divvy lock`. SPDX-License-Identifier: Apache-2.0 */
#include "lock_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "option_rows.h"
#include "run.h"
#include "znode/path.h"

enum { DAY_MS = 24 * 3600 * 1000 };

static const char command[] = "lock";

static const dv_choice policies[] = {
    {"error", DIVVY_LIMIT_ERROR}, {"stored", DIVVY_LIMIT_STORED}, {"provided", DIVVY_LIMIT_PROVIDED}, {NULL, 0}};

#define OPTION_VALUES dv_lock_options

static const dv_option table[] = {
    DV_SESSION_OPTION_CONNECT(dv_lock_options, session),
    FLAG("no-wait", no_wait, "do not wait for the lock: exit with 4 if somebody else has it"),
    DURATION("timeout", timeout_ms, 1, INT64_C(1000) * 3600 * 1000,
             "wait for the lock no longer than this, then exit with 4\n"
             "(default: wait for ever)"),
    OPTION("conflict-exit-code", "N", DV_OPTION_NUMBER, not_held_as,
           "exit with N instead of 4 if somebody else has the lock, also after --timeout", .max = 255, .letter = 'E'),
    FLAG("shared", shared,
         "take the lock as a reader: readers share it, and a writer waits until all\n"
         "of them have released it"),
    OPTION("slots", "SLOTS", DV_OPTION_NUMBER, slots,
           "take a slot of the semaphore NAME instead of a lock: at most SLOTS commands\n"
           "run at a time",
           .min = 1, .max = INT32_MAX, .letter = 'n'),
    CHOICE("limit-policy", "POLICY", limit_policy, policies,
           "what to do if the semaphore has another number of slots: error: fail\n"
           "(default); stored: go by its number; provided: set it to SLOTS"),
    DURATION("max-run", max_run_ms, 1, INT64_C(1000) * 3600 * 1000,
             "end the command after this long, and exit with 124 (default: never)"),
    DURATION("at-least", at_least_ms, 1, INT64_C(1000) * 3600 * 1000,
             "keep the lock for this long, even if the command ends sooner: for commands that\n"
             "clocks start on many machines, as one that is late would start it again"),
    DURATION("grace", grace_ms, 0, 1200000,
             "how long the command has between SIGTERM and SIGKILL when it must end; at\n"
             "most a third of the session timeout (default: a fifth of it, 3s at most)"),
    FLAG("hold", hold,
         "run no command; print \"held TOKEN SLOT\", then hold the lock until standard\n"
         "input ends; see divvy-lock.bash"),
    TEXT("root", "PATH", root,
         "the znode above the locks: PATH/locks/NAME, PATH/semaphores/NAME\n"
         "(default: /divvy)"),
    DV_SESSION_OPTION_TIMEOUT(dv_lock_options, session,
                              "how long the servers wait for a silent holder before they give the lock to\n"
                              "others (default: 15s; 100ms to 1h, and servers have limits of their own)"),
    DV_SESSION_OPTION_TICK(dv_lock_options, session,
                           "tickTime of the servers' zoo.cfg, or more; required\n"
                           "(default: $DIVVY_ENSEMBLE_TICK_MS)"),
    DV_SESSION_OPTION_CONNECT_TIMEOUT(dv_lock_options, session,
                                      "exit with 3 when no server has answered after this long; 0: keep trying\n"
                                      "(default: 10s)"),
    DV_SESSION_OPTION_AUTH_FILE(dv_lock_options, session),
    DV_TLS_OPTIONS(dv_lock_options, session.tls),
    DV_SESSION_OPTION_ACL(dv_lock_options, session),
    DV_SESSION_OPTION_NO_DEATH_WATCH(dv_lock_options, session),
    DV_SESSION_OPTION_FAILOVER_DELAY(dv_lock_options, session),
    DV_SESSION_OPTION_METRICS(dv_lock_options, session),
    DV_SESSION_OPTION_VERBOSE(dv_lock_options, session,
                              "write the library's log to standard error, with each request and each\n"
                              "answer; so does DEBUG=true in the environment"),
    {.name = NULL},
};

void dv_lock_print_help(void) {
    printf("usage: divvy lock [OPTION ...] NAME COMMAND [ARGUMENT ...]\n"
           "       divvy lock [OPTION ...] --hold NAME\n"
           "\n"
           "Runs COMMAND while it holds the lock NAME. Of all processes on all machines that use\n"
           "the same servers, one at a time has the lock. NAME is any string. Options stand\n"
           "before it.\n"
           "\n"
           "divvy ends the command, with all its processes, before anybody else can have the\n"
           "lock: by SIGTERM, then SIGKILL. That holds when divvy itself is killed, too. The\n"
           "command's environment has DIVVY_LOCK_NAME, DIVVY_LOCK_TOKEN (a number that grows with\n"
           "each holder) and DIVVY_LOCK_SLOT (from 0). divvy passes signals on to the command.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: that of the command, or 128 and the signal's number if a signal ended it.\n"
           "2 wrong usage; 3 no server answered within --connect-timeout or --timeout; 4 somebody else\n"
           "has the lock (with --no-wait), or had it for longer than --timeout, see -E; 5 divvy lost the\n"
           "lock and ended the command; 124 the command ran for longer than --max-run; 125 the\n"
           "servers refused, or divvy failed, and standard error says why; 126 the command cannot be\n"
           "executed; 127 the command was not found.\n");
}

/* ---- the path ---- */

/* Rule G1. The queue of semaphore X stands at X-__lock__, where a semaphore of that name would be: so its name is
 * written differently, and reads the same (docs/protocol.md, N4). */
static void keep_off_queues(char *node) {
    static const char tail[] = "-__lock__", other[] = "%2D__lock__";
    size_t bytes = strlen(node), tail_bytes = sizeof tail - 1;
    if (bytes >= tail_bytes && strcmp(node + bytes - tail_bytes, tail) == 0)
        memcpy(node + bytes - tail_bytes, other, sizeof other);
}

static char *make_path(const dv_lock_options *options) {
    enum { MORE = sizeof "%2D" };
    size_t bytes = dv_name_encode(options->name, NULL, 0) + 1;
    char *node = malloc(bytes + MORE);
    char *folder = dv_path_join(options->root, options->slots ? "semaphores" : "locks");
    char *path = NULL;
    if (node && folder) {
        dv_name_encode(options->name, node, bytes);
        if (options->slots) keep_off_queues(node);
        path = dv_path_join(folder, node);
    }
    free(node);
    free(folder);
    return path;
}

/* ---- the whole ---- */

static const char *contradiction(const dv_lock_options *options) {
    if (options->no_wait && options->timeout_ms >= 0) return "give --no-wait or --timeout, not both";
    if (options->shared && options->slots) return "give --shared or --slots, not both";
    if (options->limit_policy >= 0 && !options->slots) return "--limit-policy is for --slots";
    if (!options->name) return "NAME is missing; it names the lock, such as nightly-report";
    if (!*options->name) return "NAME is empty";
    if (options->hold && options->arguments[0]) return "--hold runs no command";
    if (options->hold && options->session.failover_delay_ms) return "--failover-delay is for a command, not for --hold";
    if (options->hold && options->at_least_ms) return "--at-least is for a command, not for --hold";
    if (!options->hold && !options->arguments[0]) return "COMMAND is missing; it is run while the lock is held";
    return NULL;
}

static int check(dv_lock_options *options) {
    const char *wrong = contradiction(options);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    int code = dv_run_check_grace(command, options->session.session_timeout_ms, &options->grace_ms);
    return code ? code : dv_options_check_path(command, "root", options->root);
}

static int is_debug(void) {
    const char *value = getenv("DEBUG");
    return value && *value && strcmp(value, "0") != 0 && strcmp(value, "false") != 0;
}

static void finish(dv_lock_options *o) {
    if (o->limit_policy < 0) o->limit_policy = DIVVY_LIMIT_ERROR;
    /* The wait for a server lasts no longer than the wait for the lock. */
    int64_t *connect_ms = &o->session.connect_timeout_ms;
    if (o->timeout_ms >= 0 && (*connect_ms == 0 || *connect_ms > o->timeout_ms)) *connect_ms = o->timeout_ms;
    if (is_debug()) o->session.verbose = 1;
    o->session.log_requests = o->session.verbose;
}

/* NAME, and the command with its arguments; a "--" between them is allowed. */
static void take_words(dv_lock_options *options, char **words) {
    options->name = words[0];
    if (words[0]) words++;
    if (words[0] && strcmp(words[0], "--") == 0) words++;
    options->arguments = (const char *const *)words;
}

int dv_lock_options_parse(dv_lock_options *options, int argc, char **argv) {
    *options = (dv_lock_options){
        .session = {.session_timeout_ms = 15000, .connect_timeout_ms = 10000, .acl = DIVVY_ACL_AUTO},
        .root = DV_OWN_ROOT,
        .timeout_ms = -1,
        .limit_policy = -1,
        .grace_ms = -1,
        .not_held_as = DV_EXIT_NOT_HELD,
    };
    int rest = 0;
    int code = dv_options_parse_before(command, table, options, argc, argv, &rest);
    if (code != 0) return code;
    take_words(options, argv + rest);
    code = check(options);
    if (code != 0) return code;
    finish(options);
    options->path = make_path(options);
    return options->path ? dv_session_options_finish(&options->session, command) : dv_command_out_of_memory();
}

void dv_lock_options_free(dv_lock_options *options) {
    free(options->path);
    dv_session_options_free(&options->session);
    *options = (dv_lock_options){0};
}
