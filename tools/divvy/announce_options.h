/* The options of `divvy announce`. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_ANNOUNCE_OPTIONS_H
#define DV_ANNOUNCE_OPTIONS_H

#include <stdint.h>

#include "connection.h"

typedef struct {
    dv_session_options session;
    const char *root;
    const char *role;
    const char *id;           /* NULL: one is made up */
    const char *load_text;    /* NULL: by load_command */
    const char *load_command; /* NULL: load counts */
    const char *address;      /* NULL: this machine's name */
    int64_t port;             /* 0: none */
    int64_t ttl_ms;
    double load;
    const char *const *arguments; /* of the command, in argv; NULL: there is none */
} dv_announce_options;

/* As dv_options_parse(). Release with dv_announce_options_free() in each case. */
int dv_announce_options_parse(dv_announce_options *options, int argc, char **argv);

void dv_announce_options_free(dv_announce_options *options);

void dv_announce_print_help(void);

#endif
