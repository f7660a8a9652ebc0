/* Options of a subcommand. SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "duration.h"
#include "nearest.h"
#include "znode/path.h"

enum { OPTIONS_MAX = 64, CODES = 256, HELP_COLUMN = 28 };

static void *place(const dv_option *option, void *values) {
    return (char *)values + option->offset;
}

static int take_choice(const char *command, const dv_option *option, void *values, const char *value) {
    char known[256] = "";
    dv_nearest nearest = dv_nearest_to(value, strlen(value));
    for (const dv_choice *choice = option->choices; choice->name; choice++) {
        if (strcmp(choice->name, value) == 0) {
            *(int *)place(option, values) = choice->value;
            return 0;
        }
        dv_nearest_try(&nearest, choice->name);
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", choice->name);
    }
    return dv_command_misused(command, "--%s: \"%.100s\" is not one of %s%s", option->name, value, known,
                              dv_nearest_question(&nearest, ""));
}

static int take_duration(const char *command, const dv_option *option, void *values, const char *value) {
    int64_t ms = 0;
    int error = dv_duration_parse(value, &ms);
    if (error == -1)
        return dv_command_misused(command, "--%s: \"%.100s\" is not a duration; give " DV_DURATION_FORMS, option->name,
                                  value);
    bool in_hours = option->max_ms % 3600000 == 0;
    if (error || ms < option->min_ms || ms > option->max_ms)
        return dv_command_misused(command, "--%s: \"%.100s\" is out of range; it may be %lldms to %lld%c", option->name,
                                  value, (long long)option->min_ms,
                                  (long long)(option->max_ms / (in_hours ? 3600000 : 60000)), in_hours ? 'h' : 'm');
    *(int64_t *)place(option, values) = ms;
    return 0;
}

static int take_number(const char *command, const dv_option *option, void *values, const char *value) {
    char *end = NULL;
    errno = 0;
    long long number = *value >= '0' && *value <= '9' ? strtoll(value, &end, 10) : 0;
    if (!end || *end != '\0' || errno || number < option->min || number > option->max)
        return dv_command_misused(command, "--%s: \"%.100s\" is not a number from %" PRId64 " to %" PRId64,
                                  option->name, value, option->min, option->max);
    *(int64_t *)place(option, values) = number;
    return 0;
}

static int take_one_of_many(dv_texts *list, const char *value) {
    const char **texts =
        (const char **)(uintptr_t)realloc((void *)(uintptr_t)list->texts, (list->count + 1) * sizeof *texts);
    if (!texts) return dv_command_out_of_memory();
    list->texts = texts;
    list->texts[list->count++] = value;
    return 0;
}

static int take(const char *command, const dv_option *option, void *values, const char *value) {
    switch (option->kind) {
    case DV_OPTION_FLAG: *(int *)place(option, values) = 1; break;
    case DV_OPTION_TEXT: *(const char **)place(option, values) = value; break;
    case DV_OPTION_TEXTS: return take_one_of_many(place(option, values), value);
    case DV_OPTION_DURATION: return take_duration(command, option, values, value);
    case DV_OPTION_NUMBER: return take_number(command, option, values, value);
    case DV_OPTION_CHOICE: return take_choice(command, option, values, value);
    }
    return 0;
}

/* The options in getopt_long()'s form. A long option's code is CODES plus its index, so that no letter is like it. */
typedef struct {
    struct option names[OPTIONS_MAX + 2];
    char letters[2 * OPTIONS_MAX + 8];
} translation;

static void translate(const dv_option *options, const char *manner, translation *out) {
    int count = 0;
    size_t used = (size_t)snprintf(out->letters, sizeof out->letters, "%s:h", manner);
    for (; count < OPTIONS_MAX && options[count].name; count++) {
        const dv_option *o = &options[count];
        out->names[count] =
            (struct option){o->name, o->argument ? required_argument : no_argument, NULL, CODES + count};
        if (!o->letter) continue;
        out->letters[used++] = o->letter;
        if (o->argument) out->letters[used++] = ':';
        out->letters[used] = '\0';
    }
    out->names[count] = (struct option){"help", no_argument, NULL, 'h'};
    out->names[count + 1] = (struct option){0};
}

static int complain_of_unknown(const char *command, const char *word, const dv_option *options) {
    size_t dashes = strspn(word, "-");
    dv_nearest nearest = dv_nearest_to(word + dashes, strcspn(word + dashes, "="));
    for (const dv_option *o = options; o->name; o++) dv_nearest_try(&nearest, o->name);
    dv_nearest_try(&nearest, "help");
    return dv_command_misused(command, "there is no option %.100s, or it is short for several%s", word,
                              dv_nearest_question(&nearest, "--"));
}

static int complain(const char *command, int code, char **argv, const dv_option *options) {
    /* getopt does not tell an unknown long option from an ambiguous or a needlessly valued one. */
    const char *word = argv[optind - 1];
    if (code == ':' && optopt < CODES) return dv_command_misused(command, "-%c needs a value", optopt);
    if (code == ':') return dv_command_misused(command, "%.100s needs a value", word);
    if (optopt >= CODES) return dv_command_misused(command, "--%s takes no value", options[optopt - CODES].name);
    if (optopt == 'h' && word[1] == '-') return dv_command_misused(command, "--help takes no value");
    if (optopt > 0) return dv_command_misused(command, "there is no option -%c", optopt);
    return complain_of_unknown(command, word, options);
}

static int find_index(const dv_option *options, int code) {
    if (code >= CODES) return code - CODES;
    int index = 0;
    while (options[index].letter != (char)code) index++;
    return index;
}

/* `manner` is how getopt treats words that are no options: "" as if they stood last, "+" as the end. */
static int parse(const char *command, const dv_option *options, void *values, int argc, char **argv,
                 const char *manner) {
    translation translated;
    bool given[OPTIONS_MAX] = {false};
    translate(options, manner, &translated);
    opterr = 0;
    optind = 0; /* GNU: start again, whatever was parsed before. */
    for (int code; (code = getopt_long(argc, argv, translated.letters, translated.names, NULL)) != -1;) {
        if (code == '?' || code == ':') return complain(command, code, argv, options);
        if (code == 'h') return DV_COMMAND_HELP;
        int index = find_index(options, code);
        const dv_option *option = &options[index];
        if (given[index] && option->kind != DV_OPTION_TEXTS && option->kind != DV_OPTION_FLAG)
            return dv_command_misused(command, "--%s is given twice", option->name);
        given[index] = true;
        int outcome = take(command, option, values, optarg);
        if (outcome != 0) return outcome;
    }
    return 0;
}

int dv_options_parse(const char *command, const dv_option *options, void *values, int argc, char **argv) {
    int outcome = parse(command, options, values, argc, argv, "");
    if (outcome != 0 || optind >= argc) return outcome;
    return dv_command_misused(command, "\"%.100s\" is not expected here", argv[optind]);
}

int dv_options_parse_among(const char *command, const dv_option *options, void *values, int argc, char **argv,
                           int *rest) {
    int outcome = parse(command, options, values, argc, argv, "");
    *rest = optind;
    return outcome;
}

int dv_options_parse_before(const char *command, const dv_option *options, void *values, int argc, char **argv,
                            int *rest) {
    int outcome = parse(command, options, values, argc, argv, "+");
    *rest = optind;
    return outcome;
}

int dv_options_check_path(const char *command, const char *option, const char *path) {
    const char *reason = NULL;
    if (dv_path_check(path, &reason) == 0) return 0;
    return dv_command_misused(command, "--%s: the path \"%.100s\" %s", option, path, reason);
}

int dv_options_check_pool(const char *command, const char *path) {
    if (!path) return dv_command_misused(command, "--path is missing; it names the pool, such as /work_queues");
    if (*path == '/') return dv_options_check_path(command, "path", path);
    return dv_command_misused(command, "--path must begin with a slash, such as /work_queues");
}

static void print_one(const dv_option *option) {
    int used = option->letter ? printf("  -%c, --%s", option->letter, option->name) : printf("  --%s", option->name);
    if (option->argument) used += printf(" %s", option->argument);
    if (used >= HELP_COLUMN - 1) {
        printf("\n");
        used = 0;
    }
    for (const char *line = option->help; line; used = 0) {
        const char *end = strchr(line, '\n');
        size_t bytes = end ? (size_t)(end - line) : strlen(line);
        printf("%*s%.*s\n", HELP_COLUMN - used, "", (int)bytes, line);
        line = end ? end + 1 : NULL;
    }
}

void dv_options_print(const dv_option *options) {
    for (const dv_option *o = options; o->name; o++) print_one(o);
    print_one(&(dv_option){.name = "help", .help = "print this and exit"});
}
