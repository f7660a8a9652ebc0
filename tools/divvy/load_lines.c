/* Lines of the loads of items, as a command prints them. SPDX-License-Identifier: Apache-2.0 */
#include "load_lines.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_LOAD (-1.0)

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

/* ---- a number ---- */

dv_load_line_kind dv_load_number(const char *text, size_t bytes, double *load) {
    char copy[DV_LOAD_NUMBER_BYTES + 1], *end = copy;
    if (bytes > DV_LOAD_NUMBER_BYTES) return DV_LOAD_LINE_LONG;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    double number = strtod(copy, &end);
    /* strtod() skips white space that is no blank here, and stops at a NUL byte. */
    if (bytes == 0 || end != copy + bytes || memchr("\n\v\f", copy[0], 3)) return DV_LOAD_LINE_NO_NUMBER;
    if (!isfinite(number)) return DV_LOAD_LINE_INFINITE;
    if (number < 0) return DV_LOAD_LINE_NEGATIVE;
    *load = number + 0.0; /* "-0" is 0 */
    return DV_LOAD_LINE_GOOD;
}

/* ---- a line ---- */

/* Compares a name with `bytes` of a text, as strcmp() would. */
static int compare(const char *name, const char *text, size_t bytes) {
    size_t length = strlen(name);
    int order = memcmp(name, text, length < bytes ? length : bytes);
    return order ? order : (length > bytes) - (length < bytes);
}

/* Returns the item's index, or `asked->count`. */
static size_t find(const dv_item_list *asked, const char *text, size_t bytes) {
    size_t from = 0, to = asked->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int order = compare(asked->names[middle], text, bytes);
        if (order == 0) return middle;
        if (order < 0) from = middle + 1;
        else to = middle;
    }
    return asked->count;
}

static void note_bad(dv_load_lines *out, dv_load_line_kind kind, size_t item, const char *text, size_t bytes) {
    if (out->bad[kind].count++ > 0) return;
    size_t kept = bytes < DV_LOAD_NUMBER_BYTES ? bytes : DV_LOAD_NUMBER_BYTES;
    out->bad[kind].item = item;
    out->bad[kind].bytes = bytes;
    memcpy(out->bad[kind].number, text, kept);
    out->bad[kind].number[kept] = '\0';
}

/* Takes a line without its end. `seen` has a byte for each item. */
static void take(dv_load_lines *out, const dv_item_list *asked, char *seen, const char *line, size_t bytes) {
    while (bytes > 0 && is_blank(line[bytes - 1])) bytes--;
    size_t number = bytes;
    while (number > 0 && !is_blank(line[number - 1])) number--;
    /* An item may end in blanks, so that the shortest gap is tried first. */
    size_t name_bytes = number;
    size_t item = asked->count;
    while (item == asked->count && name_bytes > 0 && is_blank(line[name_bytes - 1]))
        item = find(asked, line, --name_bytes);
    if (item == asked->count) return;
    assert(item < asked->count);
    double load = NO_LOAD;
    dv_load_line_kind kind = dv_load_number(line + number, bytes - number, &load);
    if (kind == DV_LOAD_LINE_GOOD) out->loads[item] = load;
    else note_bad(out, kind, item, line + number, bytes - number);
    seen[item] = 1;
}

/* ---- all of them ---- */

static void count_missing(dv_load_lines *out, const char *seen, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!seen[i] && out->missing++ == 0) out->first_missing = i;
    }
}

int dv_load_lines_read(dv_load_lines *out, const dv_item_list *asked, const char *text, size_t bytes) {
    *out = (dv_load_lines){.loads = malloc((asked->count + 1) * sizeof *out->loads)};
    char *seen = calloc(asked->count + 1, 1);
    if (!out->loads || !seen) {
        free(seen);
        dv_load_lines_free(out);
        return -1;
    }
    for (size_t i = 0; i < asked->count; i++) out->loads[i] = NO_LOAD;
    for (const char *at = text, *end = text + bytes; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t line_bytes = (size_t)((line_end ? line_end : end) - at);
        take(out, asked, seen, at, line_bytes);
        at += line_bytes + 1;
    }
    count_missing(out, seen, asked->count);
    free(seen);
    return 0;
}

void dv_load_lines_free(dv_load_lines *lines) {
    free(lines->loads);
    *lines = (dv_load_lines){0};
}
