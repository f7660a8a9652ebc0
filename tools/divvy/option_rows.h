/* Rows of a table of options, by which OPTION_VALUES, a struct, is set. SPDX-License-Identifier: Apache-2.0 */
#ifndef DV_OPTION_ROWS_H
#define DV_OPTION_ROWS_H

#include "options.h"

#define OPTION(option_name, value_name, option_kind, field, help_text, ...)                                         \
    {                                                                                                               \
        .name = option_name, .argument = value_name, .kind = option_kind, .offset = offsetof(OPTION_VALUES, field), \
        .help = help_text, __VA_ARGS__                                                                              \
    }
#define TEXT(name, argument, field, help) OPTION(name, argument, DV_OPTION_TEXT, field, help, )
#define TEXTS(name, argument, field, help) OPTION(name, argument, DV_OPTION_TEXTS, field, help, )
#define FLAG(name, field, help) OPTION(name, NULL, DV_OPTION_FLAG, field, help, )
#define CHOICE(name, argument, field, values, help) \
    OPTION(name, argument, DV_OPTION_CHOICE, field, help, .choices = values)
#define NUMBER(name, argument, field, least, most, help) \
    OPTION(name, argument, DV_OPTION_NUMBER, field, help, .min = least, .max = most)
#define DURATION(name, field, least_ms, most_ms, help) \
    OPTION(name, "DURATION", DV_OPTION_DURATION, field, help, .min_ms = least_ms, .max_ms = most_ms)

#endif
