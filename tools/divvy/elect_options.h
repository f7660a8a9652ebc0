/* The options of `divvy elect`. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ELECT_OPTIONS_H
#define DV_ELECT_OPTIONS_H

#include <stdint.h>

#include "connection.h"

typedef struct {
    dv_session_options session;
    const char *root, *data;
    int64_t preference;
    int once, watch, step_down;
    int64_t timeout_ms; /* of --step-down */
    int64_t grace_ms;   /* -1: as the session's timeout has it */

    const char *name;
    const char *const *arguments; /* of the command, with a NULL at the end; points into argv */
    char *path;                   /* of the election */
} dv_elect_options;

/* Parses the command line, as dv_lock_options_parse(). In each case release *options with dv_elect_options_free(). */
int dv_elect_options_parse(dv_elect_options *options, int argc, char **argv);

void dv_elect_options_free(dv_elect_options *options);

void dv_elect_print_help(void);

#endif
