/* divvy locks: who holds locks and semaphores, and who waits. SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "format.h"
#include "locks_print.h"
#include "look.h"
#include "option_rows.h"
#include "output.h"

static const char command[] = "locks";

typedef struct {
    dv_look_options look;
    const char *root;
    const char *name; /* NULL: all */
    int json;
    const char *format_text;
    dv_format *format;
} locks_options;

#define OPTION_VALUES locks_options

static const dv_option table[] = {
    TEXT("root", "PATH", root, "where the locks and semaphores of divvy lock stand (default: /divvy)"),
    FLAG("json", json, "print one JSON object on one line"),
    DV_FORMAT_OPTION(locks_options, format_text, "lock, or with NAME for each place in its queue", "{name}\\t{held}"),
    DV_LOOK_OPTIONS(locks_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy locks [NAME] [OPTION ...]\n"
           "\n"
           "Shows the holder of the lock NAME and those that wait for it, in the order of the queue.\n"
           "Does the same for the semaphore NAME. Without NAME it lists all locks and semaphores.\n"
           "Changes nothing.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 it was shown; 1 nothing has that name, or divvy may not read it: standard\n"
           "error says why; 2 wrong usage; 3 no server answered within --timeout.\n");
}

static int parse(locks_options *o, int argc, char **argv) {
    int rest = 0;
    int code = dv_options_parse_among(command, table, o, argc, argv, &rest);
    if (code == 0) code = dv_options_check_path(command, "root", o->root);
    if (code != 0) return code;
    if (rest < argc) o->name = argv[rest];
    if (argc - rest > 1) return dv_command_misused(command, "\"%.100s\" is not expected here", argv[rest + 1]);
    if (o->name && !*o->name) return dv_command_misused(command, "NAME cannot be empty");
    const dv_format_kind *formats = o->name ? dv_lock_formats : dv_locks_formats;
    code = dv_format_parse(&o->format, command, o->format_text, o->json, formats);
    return code ? code : dv_look_options_finish(&o->look, command);
}

static int show(const locks_options *o, const dv_locks *locks) {
    bool found = !o->name;
    for (size_t i = 0; i < locks->entry_count; i++) found = found || locks->entries[i].there;
    if (!found)
        return dv_command_failed("there is neither a lock nor a semaphore \"%.200s\" below %s", o->name, o->root);
    return dv_command_print(o->json     ? dv_locks_json(locks)
                            : o->format ? dv_locks_format(locks, o->format)
                                        : dv_locks_print(locks));
}

static int run_locks(const locks_options *o) {
    dv_locks locks = {.root = o->root, .name = o->name};
    dv_look *look;
    int code = dv_look_open(&look, &o->look, command, -1);
    if (code) return code;
    int error = dv_look_at(look, dv_locks_read, &locks);
    code = error ? dv_look_failed(look, error) : show(o, &locks);
    if (code == 0 && locks.hidden) {
        dv_look_hidden(look, locks.hidden);
        code = DV_EXIT_FAILED;
    }
    dv_look_close(look);
    dv_locks_clear(&locks);
    return code;
}

static int run(int argc, char **argv) {
    locks_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}, .root = "/divvy"};
    int code = parse(&o, argc, argv);
    if (code == 0) code = run_locks(&o);
    dv_format_free(o.format);
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_locks_command = {
    .name = command,
    .summary = "show who holds a lock, and who waits for it",
    .run = run,
    .print_help = print_help,
};
