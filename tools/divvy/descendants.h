/* The processes that come from this one. SPDX-License-Identifier: Apache-2.0 */
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

/* This process's descendants, by the parents that /proc knows. Returns 0, or -1 with errno set. */
int dv_descendants_find(dv_processes *out);

/* Sends it a signal, unless its number belongs to another process by now. */
void dv_process_signal(const dv_process *process, int number);

#endif
