/* A command that tells the load. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ANNOUNCE_LOAD_H
#define DV_ANNOUNCE_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { DV_LOAD_BYTES = 128 };

/* One run of it, with a process group of its own. Zeroed: none is under way. */
typedef struct {
    pid_t process; /* 0: none */
    int output_fd; /* -1: it has ended its output */
    char output[DV_LOAD_BYTES];
    size_t bytes;
    int64_t deadline_ms; /* by dv_session_now_ms() */
} dv_load_probe;

typedef enum {
    DV_LOAD_RUNS,   /* nothing is known yet */
    DV_LOAD_TOLD,   /* it told the load */
    DV_LOAD_FAILED, /* what is wrong was told on stderr */
} dv_load_outcome;

/* Returns whether `text` is a load: a finite number, with white space around it. */
bool dv_load_parse(const char *text, double *load);

/* Starts it by the shell, with `timeout_ms` for all. 0, or -1 when what is wrong was told on stderr. */
int dv_load_begin(dv_load_probe *probe, const char *command, int64_t timeout_ms);

/* Looks how it is; once it is not DV_LOAD_RUNS, nothing of it is left. */
dv_load_outcome dv_load_look(dv_load_probe *probe, double *load);

/* For poll(2): readable when dv_load_look() has something to do; -1: nothing to wait for. */
int dv_load_fd(const dv_load_probe *probe);
/* When it is to be looked at by the clock: in so many ms; -1: none runs. */
int64_t dv_load_until_ms(const dv_load_probe *probe);

/* Kills one that runs. */
void dv_load_end(dv_load_probe *probe);

#endif
