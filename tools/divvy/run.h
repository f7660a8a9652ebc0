/* A command under a lock: its guardian, its signals, its terminal. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_RUN_H
#define DV_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "guardian.h"

typedef struct {
    dv_guardians *guardians;
    dv_guardian *guardian; /* NULL: not started */
    int signal_fd;
    bool again;           /* there may be other commands after this one: dv_run_again() */
    int64_t end_grace_ms; /* 0 or more: SIGTERM and SIGHUP are not passed on, they end the command with this grace */
    bool holds;           /* the command is a stand-in: SIGINT and SIGQUIT end it so, too; it is told of stops alone */
    int asked;            /* the last signal that asked us to end, and was not passed on to a command; 0: none */
    uint32_t told;        /* those that ask for an end and were passed on: dv_run_bit() of each */
    int typed;            /* the last that the terminal sent to all of our group: SIGINT, SIGQUIT; 0: none */
    bool over;            /* the command has ended, with all its processes; why and how follows */
    int refused;          /* errno: it could not be executed */
    bool guardian_died;   /* it was killed, and the command with it */
    int status;           /* as of waitpid(2) */
    dv_guardian_why why;
} dv_run;

/* Returns the bit of a signal in `told`. */
static inline uint32_t dv_run_bit(int number) {
    return UINT32_C(1) << number;
}

/* To be called before there is any thread or connection. Returns 0, or -1 when it was told why not. Release with
 * dv_run_close() in each case. */
int dv_run_open(dv_run *run);

void dv_run_close(dv_run *run);

/* Starts the command; `config` but for the terminal, which is seen to. Returns 0, or -1 with errno set. */
int dv_run_start(dv_run *run, dv_guardian_config *config);

/* Rule G3: sets *grace_ms to its default where it is below 0. Returns 0, or the exit code when it was told that --grace
 * is too long for the session. */
int dv_run_check_grace(const char *command, int64_t session_timeout_ms, int64_t *grace_ms);

/* Rule G3: sets the config's times, for a lock that `left_ms` are left of. */
void dv_run_set_times(dv_guardian_config *config, int64_t session_timeout_ms, int64_t grace_ms, int64_t left_ms);

/* Returns whether the command was started, and may not be over. */
static inline bool dv_run_works(const dv_run *run) {
    return run->guardian && !run->over;
}

/* The command is over, and another may be started. */
void dv_run_again(dv_run *run);

/* Returns the exit code of a command that is over: its own, or that of what kept it from running or from ending by
 * itself, which is told. `name` is what messages call it. */
int dv_run_code(const dv_run *run, const char *name);

/* Where ^C or ^\\ was typed in a script, and led to exit code `code`: dies of the signal, as it would have without us,
 * so that the shell ends the script; the exit status that it sees is the same. Returns otherwise. To be called last. */
void dv_run_die_if_typed(int typed, int code);

/* For poll(2): readable when dv_run_step() has something to do. */
int dv_run_signal_fd(const dv_run *run);
int dv_run_guardian_fd(const dv_run *run);

/* Takes notice of signals and of what the guardian tells. Stops this process when the command was stopped, or when we
 * were asked to while there is none; returns when it goes on. */
void dv_run_step(dv_run *run);

#endif
