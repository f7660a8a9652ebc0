/* A template of --format: a line for each row of what --json prints. SPDX-License-Identifier: Apache-2.0
 *
 * {owner} stands for a field, {plan.owner} for one inside another. \t, \n and \\ are what they are in C; {{ and }}
 * are braces. */
#ifndef DV_FORMAT_H
#define DV_FORMAT_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *rows;          /* what its rows are; NULL ends a list */
    const char *const *fields; /* NULL ends them; "entry." stands for all that begin so */
} dv_format_kind;

typedef struct dv_format dv_format;

/* Reads what --format says. NULL: it was not given, and *out is NULL. The first kind has to have all fields that are
 * named, or else the second. `kinds` outlives *out. Returns 0, or the exit code when it was told what is wrong: also
 * that --json was given, too. */
int dv_format_parse(dv_format **out, const char *command, const char *text, bool json, const dv_format_kind *kinds);
void dv_format_free(dv_format *format);

/* Returns the kind that has all fields. */
const dv_format_kind *dv_format_kind_of(const dv_format *format);

/* Returns the lines of an array of rows, or of one row: to be freed; NULL when an allocation fails. What is null, empty
 * or not there is "-". Texts are readable (text.h). */
char *dv_format_print(const dv_format *format, const cJSON *rows);

/* The entry of a subcommand's option table. `rows` is what there is a line for, `example` a template. */
#define DV_FORMAT_OPTION(type, field, rows, example)                                                       \
    {                                                                                                      \
        .name = "format", .argument = "TEMPLATE", .kind = DV_OPTION_TEXT, .offset = offsetof(type, field), \
        .help = "print a line for each " rows ", with the fields of --json, as in\n'" example "'"          \
    }

#endif
