/* A command that the shell runs for us, and whose output we read. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SHELL_H
#define DV_SHELL_H

#include <sys/types.h>

/*
 * Starts `sh -c command`, in a process group of its own. It has `input_fd` for standard input (-1: /dev/null), our
 * standard error, and no other descriptor or credential of ours. input_fd stays the caller's.
 *
 * Returns 0 with the process in *process, for dv_shell_wait(), and the end of a pipe in *output_fd, to be closed:
 * reading from it does not block. Or returns an errno; then *process is 0 and *output_fd -1.
 */
int dv_shell_start(pid_t *process, int *output_fd, const char *command, int input_fd);

/* Waits for such a process, as waitpid(2) does; call it until it has ended. Then it reaps, too, what such commands have
 * left in the background and has ended. */
pid_t dv_shell_wait(pid_t process, int *status, int options);

#endif
