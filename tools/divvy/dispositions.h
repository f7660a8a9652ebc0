/* Signals and the limit of open files, as they were when we were started. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_DISPOSITIONS_H
#define DV_DISPOSITIONS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Notes the signal mask, and which signals are ignored. Call it first, before anything is changed. */
void dv_dispositions_remember(void);

/* Returns whether the signal was ignored at the start, as nohup(1) does with SIGHUP. The caller means it then. */
bool dv_dispositions_ignored(int number);

/* Blocks the signals. Returns a descriptor that tells of them, as signalfd(2) does, or -1 with errno set. */
int dv_dispositions_receive(const sigset_t *signals);

/* The same of those that ask a process to end: SIGTERM, SIGINT and SIGHUP. */
int dv_dispositions_receive_ends(void);

/* Lets this process open as many files as the hard limit allows. */
void dv_dispositions_open_more(void);

/* Gives the process the limit that this one had before; 0: this one. */
void dv_dispositions_restore_files(pid_t process);

/* Makes all of them so again, for a program that is executed next. The mask comes last, so that what is pending by then
 * meets the right disposition. */
void dv_dispositions_restore(void);

#endif
