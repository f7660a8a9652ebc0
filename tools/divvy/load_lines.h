/* Lines of the loads of items, as a command prints them. SPDX-License-Identifier: Apache-2.0
 *
 * A line is `ITEM NUMBER`. Its last word is the number, and the rest is the item. Lines of items that nobody asked for
 * are passed over: so a command may print the loads of all items there are, and a heading. Pure. */
#ifndef DV_LOAD_LINES_H
#define DV_LOAD_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "item_list.h"

/* The longest text of a number. */
enum { DV_LOAD_NUMBER_BYTES = 64 };

typedef enum {
    DV_LOAD_LINE_GOOD,
    DV_LOAD_LINE_NO_NUMBER,
    DV_LOAD_LINE_NEGATIVE,
    DV_LOAD_LINE_INFINITE, /* or "nan" */
    DV_LOAD_LINE_LONG,     /* the number has too many bytes */
    DV_LOAD_LINE_KINDS
} dv_load_line_kind;

/* Reads a number that is a load. */
dv_load_line_kind dv_load_number(const char *text, size_t bytes, double *load);

/* The lines of one run. */
typedef struct {
    double *loads;  /* by index of the items that were asked for; -1: no good line. Of two lines the later one counts */
    size_t missing; /* how many have no line, good or bad */
    size_t first_missing; /* the first of them */
    struct {
        size_t count;
        size_t item;                           /* the first one's */
        size_t bytes;                          /* of its number's text */
        char number[DV_LOAD_NUMBER_BYTES + 1]; /* as much of it as there is room for */
    } bad[DV_LOAD_LINE_KINDS];
} dv_load_lines;

/* Reads `text` for the items of `asked`. It may hold anything. Returns 0, or -1 when there is no memory. Release *out
 * with dv_load_lines_free(). */
int dv_load_lines_read(dv_load_lines *out, const dv_item_list *asked, const char *text, size_t bytes);

void dv_load_lines_free(dv_load_lines *lines);

#endif
