/* The options of `divvy lock`. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_LOCK_OPTIONS_H
#define DV_LOCK_OPTIONS_H

#include <stdint.h>

#include "connection.h"

#define DV_OWN_ROOT "/divvy" /* where nothing else is asked for */

typedef struct {
    dv_session_options session;
    const char *root;
    int no_wait;
    int64_t timeout_ms; /* -1: none */
    int shared;
    int64_t slots;       /* 0: a lock */
    int limit_policy;    /* DIVVY_LIMIT_*; -1: not given */
    int64_t grace_ms;    /* -1: as the session's timeout has it */
    int64_t max_run_ms;  /* 0: none */
    int64_t at_least_ms; /* 0: none */
    int64_t not_held_as; /* exit code */
    int hold;

    const char *name;
    const char *const *arguments; /* of the command, with a NULL at the end; points into argv */
    char *path;                   /* of the lock or the semaphore */
} dv_lock_options;

/*
 * Parses the command line, and reads the file that it names.
 *
 * Returns as dv_options_parse(). In each case release *options with dv_lock_options_free().
 */
int dv_lock_options_parse(dv_lock_options *options, int argc, char **argv);

void dv_lock_options_free(dv_lock_options *options);

void dv_lock_print_help(void);

#endif
