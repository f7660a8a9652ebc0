/* A node's data as a text to be parsed. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PADDED_H
#define DV_PADDED_H

#include <stdlib.h>
#include <string.h>

/* A copy with NUL bytes behind it, malloc'ed; NULL when memory is out. cJSON before 1.7.18, unless patched, looks past
 * the end of what breaks off. */
static inline char *dv_padded_copy(const void *data, size_t data_bytes) {
    enum { ROOM = 16 };
    char *text = calloc(data_bytes + ROOM, 1);
    if (text && data_bytes) memcpy(text, data, data_bytes);
    return text;
}

#endif
