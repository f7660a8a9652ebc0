/* What the subcommands of divvy share. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_COMMAND_H
#define DV_COMMAND_H

#include <stddef.h>

/* Exit codes, the same for every subcommand. They are promised in the help texts and the man page. */
enum {
    DV_EXIT_DONE = 0,       /* what was asked for is done; ended by a signal after leaving cleanly */
    DV_EXIT_FAILED = 1,     /* it failed for good; stderr says why */
    DV_EXIT_USAGE = 2,      /* the call is wrong; nothing was begun */
    DV_EXIT_UNREACHABLE = 3 /* no server could be reached in the time that was given */
};

typedef struct {
    const char *name;
    const char *summary; /* one line for the list of subcommands */
    /* argv[0] is the subcommand's name. Returns the exit code. */
    int (*run)(int argc, char **argv);
    void (*print_help)(void);
} dv_command;

extern const dv_command dv_partition_command;

/* One line on stderr, "divvy: " in front, in one write so that lines of several processes do not mix. Bytes that would
 * upset a terminal or a log are percent-encoded. */
__attribute__((format(printf, 1, 2))) void dv_command_say(const char *format, ...);

/* The same for wrong usage, with a hint to the help of `command` (NULL: of divvy). Returns DV_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int dv_command_misused(const char *command, const char *format, ...);

/* Flushes stdio's stdout after help was printed: help that did not come out is a failure. Returns the exit code. */
int dv_command_printed(void);

#endif
