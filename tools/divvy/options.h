/* Options of a subcommand: one table that is parsed by, and that help is printed from. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef DV_OPTIONS_H
#define DV_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    DV_OPTION_TEXT,     /* const char *, points into argv */
    DV_OPTION_TEXTS,    /* dv_texts, may be given many times */
    DV_OPTION_FLAG,     /* int, becomes 1 */
    DV_OPTION_DURATION, /* int64_t, in milliseconds */
    DV_OPTION_NUMBER,   /* int64_t */
    DV_OPTION_CHOICE    /* int, the value of a dv_choice */
} dv_option_kind;

typedef struct {
    const char **texts; /* free() it; they themselves are in argv */
    size_t count;
} dv_texts;

typedef struct {
    const char *name; /* NULL ends a list */
    int value;
} dv_choice;

typedef struct {
    const char *name;     /* without the dashes; NULL ends a table */
    const char *argument; /* what help calls the value; NULL for a flag */
    dv_option_kind kind;
    size_t offset;            /* of its place in the struct of values */
    const char *help;         /* lines of at most 90 bytes, separated by newlines */
    const dv_choice *choices; /* of DV_OPTION_CHOICE */
    int64_t min_ms, max_ms;   /* of DV_OPTION_DURATION, both legal */
    int64_t min, max;         /* of DV_OPTION_NUMBER, likewise */
    char letter;              /* its short form, as n in -n; 0: none */
} dv_option;

/*
 * Sets in `values` what argv[1] and on say; what is not given stays as it is. An option other than DV_OPTION_TEXTS is
 * taken once: of two values one would be lost without a word.
 *
 * Returns 0; DV_COMMAND_HELP when --help was met; or the exit code when it was told on stderr what is wrong:
 * DV_EXIT_USAGE of the call, DV_EXIT_FAILED of us.
 */
int dv_options_parse(const char *command, const dv_option *options, void *values, int argc, char **argv);

/* The same where other words are expected too, before, between and behind the options: they come to stand last in argv,
 * *rest being the index of the first. */
int dv_options_parse_among(const char *command, const dv_option *options, void *values, int argc, char **argv,
                           int *rest);

/* The same where a command follows, whose options are not ours: parsing ends at the first word that is no option, or
 * behind "--". *rest is the index of what follows in argv. */
int dv_options_parse_before(const char *command, const dv_option *options, void *values, int argc, char **argv,
                            int *rest);

/* Checks the path of a znode that was given as --`option`. Returns 0, or the exit code when it was told why not. */
int dv_options_check_path(const char *command, const char *option, const char *path);

/* The same of --path, which names a pool; NULL: it was not given. */
int dv_options_check_pool(const char *command, const char *path);

/* The options' part of a help text, on stdout. */
void dv_options_print(const dv_option *options);

#endif
