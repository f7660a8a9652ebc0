/* The processes that come from this one. SPDX-License-Identifier: Apache-2.0
 *
 * This process must be a subreaper, and leave its dead children unreaped while a function here runs. */
#ifndef DV_DESCENDANTS_H
#define DV_DESCENDANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct {
    pid_t pid, parent, group, session;
    unsigned long long started; /* in ticks of the kernel: tells it from another that got its number */
    bool dead;                  /* waits to be reaped */
} dv_process;

typedef struct {
    dv_process *all; /* free() it */
    size_t count;
} dv_processes;

/* Some of the descendants. */
typedef struct {
    bool ours_only;      /* those of our own session */
    bool dead_too;       /* and those that wait to be reaped: dv_descendants_find() finds them as well */
    const pid_t *spared; /* not these processes, nor those that come from them */
    size_t spared_count;
} dv_descent;

/* Finds the living, each behind its parent. A process that exits may hide from us what it started.
 * Returns 0, or -1 with errno set. */
int dv_descendants_find(dv_processes *out, const dv_descent *which);

/* Sends a signal to all that dv_descendants_find() finds. */
void dv_descendants_signal(const dv_descent *which, int number);

/* Returns true only if none lives. Such an answer stays true. Returns false also when we could not look, or too many of
 * them die just now: ask again then. */
bool dv_descendants_are_gone(const dv_descent *which);

/* Reads /proc/PID/stat. Returns the bytes of the text, which a NUL follows; 0 when there is no such process, or none
 * that we may see; -1 with errno set. */
ssize_t dv_process_read_stat(pid_t pid, char *text, size_t room);

/* Sends it a signal, unless its number belongs to another process by now. */
void dv_process_signal(const dv_process *process, int number);

#endif
