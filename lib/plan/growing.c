/* A text that grows while it is printed. SPDX-License-Identifier: Apache-2.0 */
#include "plan/growing.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "divvy/error.h"
#include "znode/path.h"

char *dv_grow_room(dv_growing *g, size_t more) {
    if (g->failed) return NULL;
    if (g->room - g->count < more) {
        size_t room = (g->count + more) + (g->count + more) / 2 + 256;
        char *bytes = realloc(g->bytes, room);
        if (bytes == NULL) {
            g->failed = true;
            return NULL;
        }
        g->bytes = bytes;
        g->room = room;
    }
    return g->bytes + g->count;
}

void dv_grow(dv_growing *g, const char *bytes, size_t count) {
    char *to = dv_grow_room(g, count);
    if (to == NULL) return;
    memcpy(to, bytes, count);
    g->count += count;
}

void dv_grow_text(dv_growing *g, const char *text) {
    dv_grow(g, text, strlen(text));
}

void dv_grow_format(dv_growing *g, const char *format, ...) {
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    assert(bytes >= 0 && (size_t)bytes < sizeof text);
    dv_grow(g, text, (size_t)bytes);
}

void dv_grow_string(dv_growing *g, const char *text) {
    dv_grow(g, "\"", 1);
    for (const char *at = text; *at != '\0';) {
        size_t plain = 0;
        while ((unsigned char)at[plain] >= 0x20 && at[plain] != '"' && at[plain] != '\\') plain++;
        dv_grow(g, at, plain);
        at += plain;
        if (*at == '\0') break;
        if (*at == '"' || *at == '\\') dv_grow_format(g, "\\%c", *at);
        else dv_grow_format(g, "\\u%04x", (unsigned)(unsigned char)*at);
        at++;
    }
    dv_grow(g, "\"", 1);
}

void dv_grow_item(dv_growing *g, const char *name) {
    if (dv_name_is_plain(name)) {
        dv_grow_string(g, name);
        return;
    }
    size_t bytes = dv_name_encode(name, NULL, 0) + 1;
    char *node = malloc(bytes);
    if (node == NULL) {
        g->failed = true;
        return;
    }
    dv_name_encode(name, node, bytes);
    dv_grow_string(g, node);
    free(node);
}

int dv_grown(dv_plan_text *out, dv_growing *g) {
    *out = (dv_plan_text){0};
    if (dv_grow_room(g, 1) == NULL) {
        free(g->bytes);
        return DIVVY_ENOMEM;
    }
    *out = (dv_plan_text){.bytes = g->bytes, .count = g->count};
    return 0;
}
