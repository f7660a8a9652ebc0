/* The options of `divvy announce`. SPDX-License-Identifier: Apache-2.0 */
#include "announce_options.h"

#include <stdio.h>
#include <string.h>

#include <divvy/divvy.h>

#include "announce_load.h"
#include "base/utf8.h"
#include "command.h"
#include "option_rows.h"
#include "recipe/record.h"

static const char command[] = "announce";

#define OPTION_VALUES dv_announce_options

static const dv_option table[] = {
    TEXT("role", "ROLE", role, "the role of the service, by which others look it up; required"),
    TEXT("load", "NUMBER", load_text, "its load, on any scale: others find the least loaded service first"),
    TEXT("load-command", "COMMAND", load_command,
         "a shell command that prints the load, run again before each heartbeat"),
    DURATION("ttl", ttl_ms, 300, 24 * 3600 * 1000,
             "how long it counts as healthy after a heartbeat; one comes every third\n"
             "of it (default: 30s)"),
    TEXT("id", "ID", id, "its name among the services of its role (default: a random one)"),
    TEXT("address", "ADDRESS", address, "the address of the service (default: this machine's name)"),
    NUMBER("port", "PORT", port, 1, 65535, "the port of the service (default: none)"),
    TEXT("root", "PATH", root, "the registry is PATH/services (default: /divvy)"),
    DV_SESSION_OPTION_CONNECT(dv_announce_options, session),
    DV_SESSION_OPTION_TIMEOUT(dv_announce_options, session,
                              "how long the servers keep the entry of a silent process\n"
                              "(default: 10s; 100ms to 1h, and servers have limits of their own)"),
    DV_SESSION_OPTION_TICK(dv_announce_options, session,
                           "tickTime of the servers' zoo.cfg, or more; required\n"
                           "(default: $DIVVY_ENSEMBLE_TICK_MS)"),
    DV_SESSION_OPTION_CONNECT_TIMEOUT(dv_announce_options, session,
                                      "exit with 3 when no server has answered after this long; 0: keep trying\n"
                                      "(default: 10s)"),
    DV_SESSION_OPTION_AUTH_FILE(dv_announce_options, session),
    DV_TLS_OPTIONS(dv_announce_options, session.tls),
    DV_SESSION_OPTION_ACL(dv_announce_options, session),
    DV_SESSION_OPTION_METRICS(dv_announce_options, session),
    DV_SESSION_OPTION_VERBOSE(dv_announce_options, session, "write the library's log to standard error"),
    {.name = NULL},
};

void dv_announce_print_help(void) {
    printf("usage: divvy announce --role ROLE (--load NUMBER | --load-command COMMAND) [OPTION ...]\n"
           "                      [-- COMMAND [ARGUMENT ...]]\n"
           "\n"
           "Announces a service in the registry while COMMAND runs. divvy starts COMMAND as soon as\n"
           "the registry has the entry, and ends it when divvy itself ends. Without COMMAND the\n"
           "entry stays until SIGTERM, SIGINT or SIGHUP. The command's environment has\n"
           "DIVVY_SERVICE_ROLE and DIVVY_SERVICE_ID. divvy passes signals on to the command, which\n"
           "goes on while no server can be reached.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: that of the command, or 128 and the signal's number if a signal ended it.\n"
           "Without a command: 0 divvy was told to end; 1 it failed. 2 wrong usage; 3 no server\n"
           "answered within --connect-timeout; 125 divvy failed, and standard error says why; 126\n"
           "the command cannot be executed; 127 the command was not found.\n");
}

/* The entry is JSON, and its names are ids there and nodes here. */
static const char *wrong_text(const dv_announce_options *o) {
    if (!*o->role) return "--role cannot be empty";
    if (!dv_is_utf8(o->role)) return "--role is not UTF-8";
    if (o->id && !*o->id) return "--id cannot be empty";
    if (o->id && !dv_is_utf8(o->id)) return "--id is not UTF-8";
    if (o->address && (!*o->address || !dv_is_utf8(o->address))) return "--address is empty or not UTF-8";
    return NULL;
}

static const char *missing(dv_announce_options *o) {
    if (!o->role) return "--role is missing; it says what the service is, such as web";
    if (!o->load_text && !o->load_command) return "the load is missing; give --load, or --load-command";
    if (o->load_text && o->load_command) return "give --load or --load-command, not both";
    return wrong_text(o);
}

static int check(dv_announce_options *o) {
    const char *wrong = missing(o);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    if (o->load_text && !dv_load_parse(o->load_text, &o->load))
        return dv_command_misused(command, "--load: \"%.100s\" is not a number", o->load_text);
    int code = dv_options_check_path(command, "root", o->root);
    return code ? code : dv_session_options_finish(&o->session, command);
}

int dv_announce_options_parse(dv_announce_options *options, int argc, char **argv) {
    *options = (dv_announce_options){
        .session = {.session_timeout_ms = 10000, .connect_timeout_ms = 10000, .acl = DIVVY_ACL_AUTO},
        .root = "/divvy",
        .ttl_ms = 30000,
    };
    int rest = argc;
    int code = dv_options_parse_before(command, table, options, argc, argv, &rest);
    if (code != 0) return code;
    if (rest < argc && strcmp(argv[rest - 1], "--") != 0)
        return dv_command_misused(command, "\"%.100s\" is not expected here; a command stands behind --", argv[rest]);
    if (rest < argc) options->arguments = (const char *const *)&argv[rest];
    return check(options);
}

void dv_announce_options_free(dv_announce_options *options) {
    dv_session_options_free(&options->session);
}
