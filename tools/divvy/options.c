/* Options of a subcommand. SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "duration.h"

enum { OPTIONS_MAX = 64, HELP_CODE = OPTIONS_MAX, HELP_COLUMN = 28 };

static void *place(const dv_option *option, void *values) {
    return (char *)values + option->offset;
}

static int take_choice(const char *command, const dv_option *option, void *values, const char *value) {
    char known[256] = "";
    for (const dv_choice *choice = option->choices; choice->name; choice++) {
        if (strcmp(choice->name, value) == 0) {
            *(int *)place(option, values) = choice->value;
            return DV_OPTIONS_PARSED;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", choice->name);
    }
    dv_command_misused(command, "--%s: \"%.100s\" is not one of %s", option->name, value, known);
    return DV_OPTIONS_WRONG;
}

static int take_duration(const char *command, const dv_option *option, void *values, const char *value) {
    int64_t ms = 0;
    int error = dv_duration_parse(value, &ms);
    if (error == -1) {
        dv_command_misused(command, "--%s: \"%.100s\" is not a duration; give " DV_DURATION_FORMS, option->name, value);
    } else if (error || ms < option->min_ms || ms > option->max_ms) {
        dv_command_misused(command, "--%s: \"%.100s\" is out of range; it may be %lldms to %lldh", option->name, value,
                           (long long)option->min_ms, (long long)(option->max_ms / 3600000));
        error = -2;
    }
    if (error) return DV_OPTIONS_WRONG;
    *(int64_t *)place(option, values) = ms;
    return DV_OPTIONS_PARSED;
}

static int take_one_of_many(dv_texts *list, const char *value) {
    const char **texts =
        (const char **)(uintptr_t)realloc((void *)(uintptr_t)list->texts, (list->count + 1) * sizeof *texts);
    if (!texts) {
        dv_command_say("out of memory");
        return DV_OPTIONS_WRONG;
    }
    list->texts = texts;
    list->texts[list->count++] = value;
    return DV_OPTIONS_PARSED;
}

static int take(const char *command, const dv_option *option, void *values, const char *value) {
    switch (option->kind) {
    case DV_OPTION_FLAG: *(int *)place(option, values) = 1; break;
    case DV_OPTION_TEXT: *(const char **)place(option, values) = value; break;
    case DV_OPTION_TEXTS: return take_one_of_many(place(option, values), value);
    case DV_OPTION_DURATION: return take_duration(command, option, values, value);
    case DV_OPTION_CHOICE: return take_choice(command, option, values, value);
    }
    return DV_OPTIONS_PARSED;
}

/* getopt_long's table. An option's code is its index. */
static void translate(const dv_option *options, struct option out[OPTIONS_MAX + 2]) {
    int count = 0;
    for (; options[count].name && count < OPTIONS_MAX; count++) {
        const dv_option *o = &options[count];
        out[count] = (struct option){o->name, o->argument ? required_argument : no_argument, NULL, count + 1};
    }
    out[count] = (struct option){"help", no_argument, NULL, HELP_CODE + 1};
    out[count + 1] = (struct option){0};
}

static int complain(const char *command, int code, char **argv, const struct option *table) {
    /* getopt does not tell an unknown long option from an ambiguous or a needlessly valued one. */
    const char *word = argv[optind - 1];
    if (code == ':') dv_command_misused(command, "%.100s needs a value", word);
    else if (optopt > OPTIONS_MAX + 1) dv_command_misused(command, "there is no option -%c", optopt);
    else if (optopt > 0) dv_command_misused(command, "--%s takes no value", table[optopt - 1].name);
    else dv_command_misused(command, "there is no option %.100s, or it is short for several", word);
    return DV_OPTIONS_WRONG;
}

int dv_options_parse(const char *command, const dv_option *options, void *values, int argc, char **argv) {
    struct option table[OPTIONS_MAX + 2];
    bool given[OPTIONS_MAX] = {false};
    translate(options, table);
    opterr = 0;
    optind = 0; /* GNU: begin anew, whatever was parsed before. */
    for (int code; (code = getopt_long(argc, argv, ":h", table, NULL)) != -1;) {
        if (code == 'h' || code == HELP_CODE + 1) return DV_OPTIONS_HELP;
        if (code == '?' || code == ':') return complain(command, code, argv, table);
        const dv_option *option = &options[code - 1];
        if (given[code - 1] && option->kind != DV_OPTION_TEXTS && option->kind != DV_OPTION_FLAG) {
            dv_command_misused(command, "--%s is given twice", option->name);
            return DV_OPTIONS_WRONG;
        }
        given[code - 1] = true;
        int outcome = take(command, option, values, optarg);
        if (outcome != DV_OPTIONS_PARSED) return outcome;
    }
    if (optind < argc) {
        dv_command_misused(command, "\"%.100s\" is not expected here", argv[optind]);
        return DV_OPTIONS_WRONG;
    }
    return DV_OPTIONS_PARSED;
}

static void print_one(const char *name, const char *argument, const char *help) {
    int used = printf("  --%s%s%s", name, argument ? " " : "", argument ? argument : "");
    if (used >= HELP_COLUMN - 1) {
        printf("\n");
        used = 0;
    }
    for (const char *line = help; line; used = 0) {
        const char *end = strchr(line, '\n');
        size_t bytes = end ? (size_t)(end - line) : strlen(line);
        printf("%*s%.*s\n", HELP_COLUMN - used, "", (int)bytes, line);
        line = end ? end + 1 : NULL;
    }
}

void dv_options_print(const dv_option *options) {
    for (const dv_option *o = options; o->name; o++) print_one(o->name, o->argument, o->help);
    print_one("help", NULL, "print this and exit");
}
