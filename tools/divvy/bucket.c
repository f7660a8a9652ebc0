/* divvy bucket: which bucket a key belongs to. SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "option_rows.h"
#include "options.h"

static const char command[] = "bucket";

typedef struct {
    const char *keys_from; /* NULL: the keys stand in the command line */
    uint32_t count;
} bucket_options;

#define OPTION_VALUES bucket_options

static const dv_option table[] = {
    TEXT("keys-from", "FILE", keys_from,
         "read the keys from FILE (- is standard input), one a line; each line is a\n"
         "key as it stands, also an empty one, or one with blanks or a CR at its end"),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy bucket COUNT KEY ...\n"
           "       divvy bucket COUNT --keys-from FILE\n"
           "\n"
           "Prints the bucket that each key belongs to, a line for each: a number from 0 to COUNT - 1.\n"
           "So a million keys need no million items: the items of a pool are the buckets, and a member\n"
           "works on the keys of those that it owns. It asks no server.\n"
           "\n"
           "A key has the same bucket in every release, in C (divvy_bucket()) and in Python\n"
           "(divvy.bucket()). Keys spread evenly. Where COUNT grows, a key stays in its bucket or goes to\n"
           "a new one. All who work on the keys must use one COUNT.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "Examples:\n"
           "  seq 0 1023 | divvy partition --path /tenants --items-from - -- ./work-on-bucket {item}\n"
           "  divvy bucket 1024 tenant-4711\n"
           "  divvy bucket 1024 --keys-from tenants.txt | paste - tenants.txt\n"
           "\n"
           "Exit codes: 0 the buckets were printed; 1 the keys could not be read to the end, or the\n"
           "output could not be written; 2 wrong usage.\n");
}

/* Returns whether `text` is a number of buckets. */
static bool read_count(const char *text, uint32_t *count) {
    size_t digits = strspn(text, "0123456789");
    unsigned long long number = digits > 0 && digits < 12 && !text[digits] ? strtoull(text, NULL, 10) : 0;
    *count = number <= UINT32_MAX ? (uint32_t)number : 0;
    return *count > 0;
}

/* As dv_options_parse(); *rest is where the keys begin in argv. */
static int parse(bucket_options *o, int argc, char **argv, int *rest) {
    int code = dv_options_parse_among(command, table, o, argc, argv, rest);
    if (code != 0) return code;
    if (*rest == argc) return dv_command_misused(command, "COUNT is missing; it says how many buckets there are");
    if (!read_count(argv[*rest], &o->count))
        return dv_command_misused(command, "\"%.100s\" is no COUNT; the number of buckets comes first, from 1 to %u",
                                  argv[*rest], UINT32_MAX);
    if (++*rest == argc && !o->keys_from)
        return dv_command_misused(command, "the keys are missing; give each as a word, or give --keys-from FILE");
    return *rest < argc && o->keys_from ? dv_command_misused(command, "give keys or --keys-from, not both") : 0;
}

/* Returns whether standard output takes more; if not, errno says why. */
static bool print_bucket(const bucket_options *o, const char *key, size_t bytes) {
    return printf("%u\n", (unsigned)divvy_bucket(key, bytes, o->count)) > 0;
}

/* Returns the exit code of an output that takes no more. A reader that has seen enough, as head(1), is no failure. */
static int output_ended(int error) {
    if (error == EPIPE) return DV_EXIT_DONE;
    return dv_command_failed("cannot write to standard output: %s", strerror(error));
}

/* Prints the bucket of each line. Returns the exit code. */
static int print_lines(const bucket_options *o, FILE *file, const char *shown) {
    char *line = NULL;
    size_t room = 0;
    ssize_t bytes;
    bool printed = true;
    errno = 0;
    while (printed && (bytes = getline(&line, &room, file)) > 0)
        printed = print_bucket(o, line, (size_t)bytes - (line[bytes - 1] == '\n'));
    int error = errno;
    free(line);
    if (!printed) return output_ended(error);
    if (feof(file)) return dv_command_printed();
    return dv_command_failed("%s: cannot be read: %s", shown, strerror(error));
}

static int print_file(const bucket_options *o) {
    if (strcmp(o->keys_from, "-") == 0) return print_lines(o, stdin, "standard input");
    FILE *file = fopen(o->keys_from, "re");
    if (!file) {
        dv_command_say("%s: cannot be opened: %s", o->keys_from, strerror(errno));
        return DV_EXIT_USAGE;
    }
    int code = print_lines(o, file, o->keys_from);
    fclose(file);
    return code;
}

static int run(int argc, char **argv) {
    bucket_options o = {0};
    int rest = argc;
    int code = parse(&o, argc, argv, &rest);
    if (code != 0) return code;
    if (o.keys_from) return print_file(&o);
    for (; rest < argc; rest++) {
        if (!print_bucket(&o, argv[rest], strlen(argv[rest]))) return output_ended(errno);
    }
    return dv_command_printed();
}

const dv_command dv_bucket_command = {
    .name = command,
    .summary = "print which of a fixed number of items a key belongs to",
    .run = run,
    .print_help = print_help,
};
