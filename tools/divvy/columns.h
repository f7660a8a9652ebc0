/* How much of a screen text takes, and how it is made to fit. SPDX-License-Identifier: Apache-2.0
 *
 * Texts are encoded as dv_text_readable() does. */
#ifndef DV_COLUMNS_H
#define DV_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

/* The width of pages for people where no other is known; no limit at all. */
enum { DV_COLUMNS = 80, DV_COLUMNS_ALL = 0 };

/* Option --wide; its place in the struct of values is an int. */
#define DV_WIDE_OPTION(type, member)                                                        \
    {                                                                                       \
        .name = "wide", .kind = DV_OPTION_FLAG, .offset = offsetof(type, member),           \
        .help = "print all columns, and whole names, however long the lines become; else\n" \
                "they fit the terminal, or 80 columns"                                      \
    }

/* The line below a table that is not whole. */
#define DV_COLUMNS_NOTE "Shortened to %zu columns: --wide and --json show all.\n"

/* Returns the width for a page on standard output: that of the terminal; elsewhere $COLUMNS; else DV_COLUMNS. A screen
 * too narrow for a table counts as one of 60 columns. DV_COLUMNS_ALL if `wide`. */
size_t dv_columns_of_output(int wide);

/* Returns how many columns a character of so many bytes takes, or a text. */
size_t dv_character_width(const char *character, size_t bytes);
size_t dv_text_width(const char *text);

/* Shortens a text to at most so many columns, with "..." in its middle: of names of one kind, both ends tell something.
 * " (remark)" and " +7" behind a name are kept, where there is room. Returns text to free(), NULL when an
 * allocation fails. */
char *dv_text_shorten(const char *text, size_t columns);

/* The same with "..." at its end: a sentence says the most at its beginning. */
char *dv_text_clip(const char *text, size_t columns);

/* Prints a paragraph on lines of at most `columns` columns, all but the first behind `indent` spaces. A word that needs
 * more is continued on the next line. Its first line has `used` columns already. DV_COLUMNS_ALL: on one line. */
void dv_text_wrap(const char *text, size_t used, size_t indent, size_t columns, FILE *to);

#endif
