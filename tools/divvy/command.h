/* Shared by the subcommands of divvy. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_COMMAND_H
#define DV_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes, the same for every subcommand. They are promised in the help texts and the man page. */
enum {
    DV_EXIT_DONE = 0,       /* what was asked for is done; ended by a signal after leaving cleanly */
    DV_EXIT_FAILED = 1,     /* it failed for good; stderr says why */
    DV_EXIT_USAGE = 2,      /* the call is wrong; nothing was begun */
    DV_EXIT_UNREACHABLE = 3 /* no server could be reached in the time that was given */
};

enum { DV_COMMAND_HELP = -1 }; /* stands for an exit code where --help was given */

/* Those of `divvy lock` besides: its code is that of the command that it runs, where none of these is due. The high
 * ones are what timeout(1), env(1) and shells use, so that they are not taken for the command's own. */
enum {
    DV_EXIT_NOT_HELD = 4,         /* somebody else has the lock, and we are not to wait, or not for longer */
    DV_EXIT_TIMED_OUT = 4,        /* likewise of an operator's command: what it waits for has not come in time */
    DV_EXIT_LOST = 5,             /* the lock was lost, and the command was ended */
    DV_EXIT_OVERRUN = 124,        /* the command took too long, and was ended */
    DV_EXIT_TROUBLE = 125,        /* what is DV_EXIT_FAILED elsewhere */
    DV_EXIT_NOT_EXECUTABLE = 126, /* there is such a command, but it cannot be executed */
    DV_EXIT_NOT_FOUND = 127,      /* there is none */
    DV_EXIT_SIGNAL = 128          /* and the number of the signal that ended the command */
};

typedef struct {
    const char *name;
    const char *summary; /* one line for the list of subcommands */
    /* argv[0] is the subcommand's name. Returns the exit code, or DV_COMMAND_HELP. */
    int (*run)(int argc, char **argv);
    void (*print_help)(void);
    bool needs_no_output; /* standard output may be closed: /dev/null then stands in for it */
} dv_command;

extern const dv_command dv_lock_command;
extern const dv_command dv_partition_command;
extern const dv_command dv_status_command;
extern const dv_command dv_explain_command;
extern const dv_command dv_history_command;
extern const dv_command dv_doctor_command;
extern const dv_command dv_locks_command;
extern const dv_command dv_elect_command;
extern const dv_command dv_services_command;
extern const dv_command dv_serve_command;
extern const dv_command dv_announce_command;
extern const dv_command dv_plan_command;
extern const dv_command dv_bucket_command;
extern const dv_command dv_drain_command;
extern const dv_command dv_pin_command;
extern const dv_command dv_unpin_command;
extern const dv_command dv_move_command;
extern const dv_command dv_pause_command;
extern const dv_command dv_resume_command;
extern const dv_command dv_need_command;
extern const dv_command dv_set_command;
extern const dv_command dv_forget_command;

/* One line on stderr, "divvy: " in front or as fields (log.h), in one write so that lines of several processes do not
 * mix. Bytes that would upset a terminal or a log are percent-encoded. It is an error, or a warning if it begins with
 * "warning: ". */
__attribute__((format(printf, 1, 2))) void dv_command_say(const char *format, ...);

/* The same with a level, DIVVY_LOG_*. */
__attribute__((format(printf, 2, 3))) void dv_command_tell(int level, const char *format, ...);

/* Tells a warning of the library, DIVVY_WARN_*, and a line of its log. */
void dv_command_warn(int code, const char *message);
void dv_command_log(int level, const char *message);

/* The same for wrong usage, with a hint to the help of `command` (NULL: of divvy). Returns DV_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int dv_command_misused(const char *command, const char *format, ...);

/* The same for what fails for good. Returns DV_EXIT_FAILED. */
__attribute__((format(printf, 1, 2))) int dv_command_failed(const char *format, ...);

/* Tells that an allocation has failed. Returns DV_EXIT_FAILED. */
int dv_command_out_of_memory(void);

/* Flushes stdio's stdout after help was printed: help that did not come out is a failure. Returns the exit code. */
int dv_command_printed(void);

/* Prints `text` on stdio's stdout and frees it; NULL: an allocation failed, which is told. Returns the exit code. */
int dv_command_print(char *text);

/* Returns whether a terminal controls this process. */
bool dv_command_has_terminal(void);

#endif
