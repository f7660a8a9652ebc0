/* The talk with a worker that stands by. SPDX-License-Identifier: Apache-2.0
 *
 * A worker says READY=1 on a socket of its own, by the notify protocol of systemd. It is told to begin by one line on
 * a pipe: the token. The end of the pipe without a line tells it that it will not be needed. */
#ifndef DV_STANDBY_H
#define DV_STANDBY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The bytes of a socket's name as NOTIFY_SOCKET has it: "@divvy/" and 32 hexadecimal digits, with the NUL. */
enum { DV_STANDBY_NAME_BYTES = 40 };

/* One started worker's. */
typedef struct {
    int notify_fd; /* for poll(2); -1: there is none */
    int start_fd;  /* the pipe's end that we write to; -1: the worker was told */
    char name[DV_STANDBY_NAME_BYTES];
} dv_standby;

/* A dv_standby that is closed. */
#define DV_STANDBY_NONE ((dv_standby){.notify_fd = -1, .start_fd = -1})

/* Opens both. *worker_fd is the end of the pipe that the worker inherits; close it when the worker has been started.
 * Returns 0, or -1 with errno set; then *out is DV_STANDBY_NONE. */
int dv_standby_open(dv_standby *out, int *worker_fd);

/* Reads what has come on the socket. Returns whether the worker said that it is ready. Only processes of our user, of
 * root, and of the process group `group` count; 0: the group is not known yet. */
bool dv_standby_is_ready(const dv_standby *standby, pid_t group);

/* Tells the worker to begin. SIGPIPE must be ignored.
 * Returns 0, or -1 when it cannot be told: it has closed its end of the pipe. */
int dv_standby_begin(dv_standby *standby, int64_t token);

/* Tells the worker that it will not be needed, unless it has begun. */
void dv_standby_cancel(dv_standby *standby);

/* Closes both. May be repeated. */
void dv_standby_close(dv_standby *standby);

#endif
