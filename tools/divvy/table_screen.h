/* Showing the same page again and again. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_TABLE_SCREEN_H
#define DV_TABLE_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "output.h"

typedef struct {
    dv_output *output;
    bool in_place; /* stdout is a terminal that can do it */
    bool begun;
} dv_screen;

void dv_screen_init(dv_screen *screen, dv_output *output);

/* Shows `page`, lines of text. On a terminal in the place of the one before, cut to what fits, with the lines that
 * begin with a mark (of dv_table_compare) in bold; else behind it, with a line of dashes in between. 0, or -1 when
 * an allocation fails. */
int dv_screen_show(dv_screen *screen, const char *page);

#endif
