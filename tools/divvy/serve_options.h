/* The options of divvy serve. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_OPTIONS_H
#define DV_SERVE_OPTIONS_H

#include <sys/socket.h>

#include "look.h"

enum { DV_SERVE_PORT = 9741, DV_SERVE_POOLS_MAX = 64 };

typedef struct {
    dv_look_options look;
    dv_texts paths; /* of the pools */
    dv_texts below; /* all pools below these are served, too */
    const char *root;
    const char *listen;
    int public;
    int64_t interval_ms;

    struct sockaddr_storage address;
    socklen_t address_bytes;
    bool loopback; /* `address` is this machine's alone */
} dv_serve_options;

extern const char dv_serve_name[];

/* As dv_options_parse(). */
int dv_serve_options_parse(dv_serve_options *options, int argc, char **argv);
void dv_serve_options_help(void);
void dv_serve_options_free(dv_serve_options *options);

#endif
