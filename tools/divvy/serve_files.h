/* The files of divvy serve's page, which the build puts in. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_SERVE_FILES_H
#define DV_SERVE_FILES_H

#include <stddef.h>

typedef struct {
    const char *url, *type;
    const unsigned char *bytes;
    size_t count;
} dv_serve_file;

/* Ends with a NULL url. Made by serve_files.cmake from tools/divvy/serve. */
extern const dv_serve_file dv_serve_files[];

#endif
