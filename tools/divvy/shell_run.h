/* One run of a command by the shell, with all that it prints. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SHELL_RUN_H
#define DV_SHELL_RUN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed: none is under way. */
typedef struct {
    pid_t process; /* 0: none */
    int output_fd; /* -1: it has ended its output */
    char *output;
    size_t bytes, room;
    int64_t deadline_ms; /* by dv_session_now_ms() */
    char why[96];        /* of DV_SHELL_RUN_FAILED: what it did, as "exited with 3" */
} dv_shell_run;

typedef enum {
    DV_SHELL_RUN_RUNS,
    DV_SHELL_RUN_DONE,  /* it exited with 0, and `output` is whole */
    DV_SHELL_RUN_FAILED /* `why` says what is wrong */
} dv_shell_run_outcome;

/* A run has so long, and may print so much: a command without end must not fill the memory. */
enum { DV_SHELL_RUN_TIMEOUT_MS = 60000, DV_SHELL_RUN_BYTES_MAX = 256 * 1024 * 1024 };

/* Starts it by the shell. Its standard input is `input_fd`, which stays the caller's; -1: /dev/null. Returns 0, or -1
 * with run->why set. */
int dv_shell_run_begin(dv_shell_run *run, const char *command, int input_fd);

/* Looks how it is. When it no longer runs, nothing is left of it but its output: see dv_shell_run_forget(). */
dv_shell_run_outcome dv_shell_run_look(dv_shell_run *run);

/* For poll(2): readable when dv_shell_run_look() has something to do; -1: nothing to wait for. */
int dv_shell_run_fd(const dv_shell_run *run);
/* When it is to be looked at by the clock: in so many ms; -1: none runs. */
int64_t dv_shell_run_until_ms(const dv_shell_run *run);

/* Releases the output, and kills a run that goes on. May be repeated. */
void dv_shell_run_forget(dv_shell_run *run);

#endif
