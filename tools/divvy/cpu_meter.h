/* The processor time of a process and of all that come from it. SPDX-License-Identifier: Apache-2.0
 *
 * The meter is looked at again and again, and says how much was used since the last look. It counts processes that have
 * begun and ended between two looks as well: the kernel adds the time of a child to its parent's when the parent waits
 * for it. No time is counted twice. The files here read nothing and know no clock. */
#ifndef DV_CPU_METER_H
#define DV_CPU_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One process, as /proc/PID/stat shows it. Times are in ticks of sysconf(_SC_CLK_TCK). */
typedef struct {
    pid_t pid;
    uint64_t started;  /* tells it from another that got its number */
    uint64_t own;      /* what it has used itself */
    uint64_t children; /* what those have used that it has waited for, with theirs */
    bool missed;       /* for the meter: it was there before the last look, and not then */
} dv_cpu_process;

/* Reads the text of /proc/PID/stat. Returns false when it is none. */
bool dv_cpu_parse(const char *text, dv_cpu_process *out);

/* Zeroed: nothing was looked at. */
typedef struct {
    dv_cpu_process *known; /* by the last look, sorted by pid and beginning */
    size_t count;
    uint64_t owed; /* the time of processes that the last look missed, and no parent had by then */
} dv_cpu_meter;

/*
 * Returns the ticks that were used since the last look, or before the first one.
 *
 * `processes` are those of now, in any order. Each was read after all those that it comes from: so time that moves to a
 * parent meanwhile is missed now, and found by the next look, and never seen at both. *ticks is the result.
 * Returns 0, or -1 when there is no memory; then the meter is as it was.
 */
int dv_cpu_meter_look(dv_cpu_meter *meter, const dv_cpu_process *processes, size_t count, uint64_t *ticks);

/* Forgets all that was seen. */
void dv_cpu_meter_reset(dv_cpu_meter *meter);

/* Returns the cores that `used_us` of processor time in elapsed_us are: finite, and from 0 to cores_max. */
double dv_cpu_cores(uint64_t used_us, int64_t elapsed_us, unsigned cores_max);

#endif
