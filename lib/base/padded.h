/* A node's data as a text to be parsed. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_PADDED_H
#define DV_PADDED_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Returns a malloc'ed copy with NULs behind it, or NULL: cJSON before 1.7.18 looks past the end of broken text. */
static inline char *dv_padded_copy(const void *data, size_t data_bytes) {
    enum { ROOM = 16 };
    char *text = calloc(data_bytes + ROOM, 1);
    if (text && data_bytes) memcpy(text, data, data_bytes);
    return text;
}

/* Returns whether no value of a JSON text is nested deeper; of another text, as far as a parser gets with it. */
static inline bool dv_is_shallow(const char *data, size_t data_bytes, int depth_max) {
    int depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < data_bytes; i++) {
        if (data[i] == '"') in_string = !in_string;
        else if (in_string) i += data[i] == '\\';
        else if (data[i] == '{' || data[i] == '[') depth++;
        else if (data[i] == '}' || data[i] == ']') depth--;
        if (depth > depth_max) return false;
    }
    return true;
}

#endif
