/* What `divvy partition` was asked for. SPDX-License-Identifier: Apache-2.0 */
#include "partition_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "duration.h"

enum { AUTH_BYTES_MAX = 4096, DAY_MS = 24 * 3600 * 1000 };

static const char command[] = "partition";

static const dv_choice modes[] = {{"incremental", DIVVY_INCREMENTAL}, {"eager", DIVVY_EAGER}, {NULL, 0}};

static const dv_choice assigns[] = {{"auto", DIVVY_ASSIGN_AUTO},
                                    {"round_robin", DIVVY_ASSIGN_ROUND_ROBIN},
                                    {"rendezvous", DIVVY_ASSIGN_RENDEZVOUS},
                                    {NULL, 0}};

static const dv_choice acls[] = {{"auto", DIVVY_ACL_AUTO},
                                 {"open", DIVVY_ACL_OPEN},
                                 {"creator", DIVVY_ACL_CREATOR},
                                 {"readable", DIVVY_ACL_READABLE},
                                 {NULL, 0}};

#define PLACE(field) offsetof(dv_partition_options, field)
#define TEXT(name, argument, field, help) \
    { name, argument, DV_OPTION_TEXT, PLACE(field), help, NULL, 0, 0 }
#define FLAG(name, field, help) \
    { name, NULL, DV_OPTION_FLAG, PLACE(field), help, NULL, 0, 0 }
#define CHOICE(name, argument, field, choices, help) \
    { name, argument, DV_OPTION_CHOICE, PLACE(field), help, choices, 0, 0 }
#define DURATION(name, field, min_ms, max_ms, help) \
    { name, "DURATION", DV_OPTION_DURATION, PLACE(field), help, NULL, min_ms, max_ms }

static const dv_option table[] = {
    TEXT("connect", "HOSTS", connect,
         "ZooKeeper's servers, as in h1:2181,h2:2181/chroot\n"
         "(default: $DIVVY_CONNECT, else 127.0.0.1:2181)"),
    TEXT("path", "PATH", path, "the pool, an absolute znode path such as /work_queues; required"),
    TEXT("items-from", "FILE", items_from,
         "read the items from FILE (- is standard input), one a line; empty lines\n"
         "and lines that begin with # are skipped"),
    {"item", "ITEM", DV_OPTION_TEXTS, PLACE(items), "an item; give it as often as there are items", NULL, 0, 0},
    TEXT("identifier", "ID", identifier, "the name of this member (default: host-pid-number)"),
    DURATION("time-boundary", time_boundary_ms, 0, DAY_MS,
             "for how long the pool must stand still before a change counts\n"
             "(default: 1s)"),
    DURATION("leave-boundary", leave_boundary_ms, 0, DAY_MS,
             "the same where members only left (default: as --time-boundary)"),
    DURATION("session-timeout", session_timeout_ms, 100, 3600000,
             "after how long the servers take a silent member for dead\n"
             "(default: 10s; 100ms to 1h, and servers have limits of their own)"),
    DURATION("ensemble-tick", ensemble_tick_ms, 0, DAY_MS,
             "tickTime of the servers; items are kept over longer breaks when it is\n"
             "known (default: 0, unknown)"),
    DURATION("allocate-timeout", allocate_timeout_ms, 0, DAY_MS,
             "fail when the share is not complete after this long (default: 0, never)"),
    DURATION("connect-timeout", connect_timeout_ms, 0, DAY_MS,
             "exit with 3 when no server has answered after this long\n"
             "(default: 0, keep trying)"),
    CHOICE("mode", "MODE", mode, modes,
           "incremental: only what must move is revoked (default);\n"
           "eager: every change revokes everything, as in kazoo"),
    CHOICE("assign", "HOW", assign, assigns,
           "auto: the best that all members can (default);\n"
           "round_robin: kazoo's way; rendezvous: few moves on a change"),
    TEXT("auth-file", "FILE", auth_file, "credentials, user:password on one line; they travel in clear text"),
    CHOICE("acl", "ACL", acl, acls,
           "who may touch the nodes that are made: open (anyone), creator (whoever has\n"
           "the same credentials), readable (creator, and anyone may read), or\n"
           "auto: creator with --auth-file, else open (default)"),
    FLAG("json", json, "print one JSON object a line"),
    FLAG("timestamps", timestamps, "tell the time of each line; with --json as time_ms, since 1970"),
    FLAG("verbose", verbose, "write the library's log to standard error"),
    {NULL, NULL, DV_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

void dv_partition_print_help(void) {
    printf("usage: divvy partition --path PATH (--items-from FILE | --item ITEM ...) [OPTION ...]\n"
           "\n"
           "Joins the pool at PATH, whose members divide the items: each item has one owner.\n"
           "Prints a line for each change of what this member owns, and of its state. An item\n"
           "that is revoked is released as soon as the line is written.\n"
           "\n"
           "SIGTERM, SIGINT and SIGHUP make it leave the pool, and so does the end of whoever\n"
           "reads its output.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 it was told to end, and has left the pool; 1 it failed, standard error\n"
           "says why; 2 wrong usage; 3 no server answered within --connect-timeout.\n");
}

/* ---- credentials ---- */

/* Reads the only line of the file into *out, without its end. */
static int read_auth(FILE *file, const char *path, char **out) {
    char text[AUTH_BYTES_MAX + 2];
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    const char *wrong = NULL;
    if (ferror(file)) wrong = strerror(errno);
    if (bytes > 0 && text[bytes - 1] == '\n') bytes--;
    if (bytes > 0 && text[bytes - 1] == '\r') bytes--;
    text[bytes] = '\0';
    if (!wrong && bytes > AUTH_BYTES_MAX) wrong = "it is longer than 4096 bytes";
    if (!wrong && (strlen(text) != bytes || strpbrk(text, "\r\n"))) wrong = "it has more than one line";
    if (!wrong && (!strchr(text, ':') || *text == ':')) wrong = "it is not of the form user:password";
    if (!wrong && !(*out = strdup(text))) wrong = "out of memory";
    explicit_bzero(text, sizeof text);
    if (!wrong) return 0;
    dv_command_misused(command, "--auth-file %s: %s", path, wrong);
    return -1;
}

static int load_auth(dv_partition_options *options) {
    FILE *file = fopen(options->auth_file, "re");
    if (!file) {
        dv_command_misused(command, "--auth-file %s: %s", options->auth_file, strerror(errno));
        return -1;
    }
    /* Without a buffer of its own, so that the secret is in ours only. */
    setvbuf(file, NULL, _IONBF, 0);
    int outcome = read_auth(file, options->auth_file, &options->auth);
    fclose(file);
    return outcome;
}

/* ---- the whole ---- */

static const char *missing(const dv_partition_options *options) {
    if (!options->path) return "--path is missing; it names the pool, such as /work_queues";
    if (*options->path != '/') return "--path must begin with a slash, such as /work_queues";
    if (!options->items_from && options->items.count == 0)
        return "the items are missing; give --items-from FILE, or --item for each";
    if (options->items_from && options->items.count > 0) return "give --items-from or --item, not both";
    if ((options->acl == DIVVY_ACL_CREATOR || options->acl == DIVVY_ACL_READABLE) && !options->auth_file)
        return "--acl creator and readable need credentials; give --auth-file";
    return NULL;
}

static void set_defaults(dv_partition_options *options) {
    *options = (dv_partition_options){
        .time_boundary_ms = 1000,
        .leave_boundary_ms = -1,
        .session_timeout_ms = 10000,
        .mode = DIVVY_INCREMENTAL,
        .assign = DIVVY_ASSIGN_AUTO,
        .acl = DIVVY_ACL_AUTO,
    };
}

int dv_partition_options_parse(dv_partition_options *options, int argc, char **argv) {
    set_defaults(options);
    int outcome = dv_options_parse(command, table, options, argc, argv);
    if (outcome != DV_OPTIONS_PARSED) return outcome;
    const char *wrong = missing(options);
    if (wrong) {
        dv_command_misused(command, "%s", wrong);
        return DV_OPTIONS_WRONG;
    }
    if (!options->connect || !*options->connect) options->connect = getenv("DIVVY_CONNECT");
    if (!options->connect || !*options->connect) options->connect = "127.0.0.1:2181";
    if (options->auth_file && load_auth(options) != 0) return DV_OPTIONS_WRONG;
    int error = options->items_from ? dv_item_list_read(&options->list, options->items_from)
                                    : dv_item_list_copy(&options->list, &options->items);
    return error ? DV_OPTIONS_WRONG : DV_OPTIONS_PARSED;
}

void dv_partition_options_free(dv_partition_options *options) {
    dv_item_list_free(&options->list);
    free((void *)(uintptr_t)options->items.texts);
    if (options->auth) explicit_bzero(options->auth, strlen(options->auth));
    free(options->auth);
    *options = (dv_partition_options){0};
}
