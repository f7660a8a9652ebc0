/* divvy, the command: finds the subcommand, and helps. SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "dispositions.h"
#include "log.h"
#include "nearest.h"
#include "output.h"

static const dv_command *const commands[] = {
    &dv_lock_command,     &dv_elect_command,  &dv_partition_command, &dv_status_command,   &dv_explain_command,
    &dv_history_command,  &dv_doctor_command, &dv_locks_command,     &dv_services_command, &dv_serve_command,
    &dv_announce_command, &dv_plan_command,   &dv_bucket_command,    &dv_drain_command,    &dv_pin_command,
    &dv_unpin_command,    &dv_move_command,   &dv_pause_command,     &dv_resume_command,   &dv_need_command,
    &dv_set_command,      &dv_forget_command};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands };

static const dv_command *find(const char *name) {
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    }
    return NULL;
}

/* Answers a word that is no page. */
static int misused(const char *what, const char *word) {
    static const char *const others[] = {"help", "--help", "--version"};
    dv_nearest nearest = dv_nearest_to(word, strlen(word));
    for (size_t i = 0; i < COMMAND_COUNT; i++) dv_nearest_try(&nearest, commands[i]->name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) dv_nearest_try(&nearest, others[i]);
    return dv_command_misused(NULL, "there is no %s \"%.100s\"%s", what, word, dv_nearest_question(&nearest, ""));
}

static void print_overview(FILE *to) {
    fprintf(to, "usage: divvy SUBCOMMAND [OPTION ...]\n"
                "\n"
                "Divides work among the members of a pool, on ZooKeeper.\n"
                "\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) fprintf(to, "  %-20s  %s\n", commands[i]->name, commands[i]->summary);
    fprintf(to, "  %-20s  %s\n", "help [SUBCOMMAND]", "print this, or the options of a subcommand");
    fprintf(to, "  %-20s  %s\n", "--version", "print the version");
    fprintf(to, "\nExamples:\n"
                "  divvy lock --connect zk1:2181 nightly-report ./report.sh\n"
                "  divvy partition --connect zk1:2181 --path /work_queues --items-from queues.txt\n");
}

static int help(int argc, char **argv) {
    if (argc > 2) return dv_command_misused(NULL, "help: \"%.100s\" is not expected here", argv[2]);
    if (argc == 2) {
        const dv_command *about = find(argv[1]);
        if (!about) return misused("subcommand", argv[1]);
        about->print_help();
    } else {
        print_overview(stdout);
    }
    return dv_command_printed();
}

static int version(int argc, char **argv) {
    if (argc > 1) return dv_command_misused(NULL, "--version: \"%.100s\" is not expected here", argv[1]);
    printf("divvy %s\n", divvy_version());
    return dv_command_printed();
}

int main(int argc, char **argv) {
    dv_dispositions_remember();
    signal(SIGCHLD, SIG_DFL); /* Ignored, as some callers leave it, it would keep the ends of our children from us. */
    bool output_open = dv_output_prepare();
    if (dv_log_open() != 0) return DV_EXIT_USAGE;
    const dv_command *command = argc < 2 ? NULL : find(argv[1]);
    if (!output_open && !(command && command->needs_no_output)) return dv_command_failed("standard output is closed");
    if (argc < 2) {
        print_overview(stderr);
        return DV_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 1, argv + 1);
    if (strcmp(name, "--version") == 0) return version(argc - 1, argv + 1);
    if (command) {
        dv_log_field("command", command->name);
        int code = command->run(argc - 1, argv + 1);
        if (code != DV_COMMAND_HELP) return code;
        command->print_help();
        return dv_command_printed();
    }
    return misused(*name == '-' ? "option" : "subcommand", name);
}
