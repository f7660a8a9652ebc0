/* Words of a command that some program runs as code. SPDX-License-Identifier: Apache-2.0
 *
 * The tables say how programs read their words, as far as it matters here: which option has code, which other options
 * have a value, and whether the first word that is no option is code. */
#include "code_word.h"

#include <stdbool.h>
#include <string.h>

typedef struct {
    const char *names;     /* each between spaces; a version behind it, as in python3.11, is no part of it */
    const char *code;      /* letters of options that have code */
    const char *values;    /* letters of options with another value */
    const char *files;     /* letters of options with a file of code, or a module */
    const char *long_code; /* long options that have code, each between spaces */
    bool code_is_first;    /* an option of `code` says that the first word that is no option is code */
    bool first_is_code;    /* that word is code, unless an option with code or with a file was given */
    bool rest_is_code;     /* all words behind it are */
    bool ends;             /* behind code, or a file, there are no options */
    size_t words;          /* so many words may stand in front of options */
    const char *instead;
} interpreter;

#define IN_QUOTES "\"$DIVVY_ITEM\" (with the double quotes)"

static const interpreter shell = {
    .names = " sh bash rbash dash ash zsh ksh rksh mksh lksh oksh pdksh yash posh hush csh tcsh ",
    .code = "c",
    .values = "oO",
    .code_is_first = true,
    .instead = IN_QUOTES};

static const interpreter others[] = {
    {.names = " fish ", .code = "cC", .values = "dofp", .long_code = " command init-command ", .instead = IN_QUOTES},
    {.names = " python pypy ",
     .code = "c",
     .values = "WXQ",
     .files = "m",
     .ends = true,
     .instead = "os.environ[\"DIVVY_ITEM\"]"},
    {.names = " perl ", .code = "eE", .values = "IMmF", .instead = "$ENV{DIVVY_ITEM}"},
    {.names = " ruby ", .code = "e", .values = "ICrEF", .instead = "ENV[\"DIVVY_ITEM\"]"},
    {.names = " node nodejs bun ",
     .code = "ep",
     .values = "rC",
     .long_code = " eval print ",
     .instead = "process.env.DIVVY_ITEM"},
    {.names = " php ", .code = "rBRE", .values = "dcfFSt", .long_code = " run ", .instead = "getenv(\"DIVVY_ITEM\")"},
    {.names = " lua luajit ", .code = "e", .values = "lj", .instead = "os.getenv(\"DIVVY_ITEM\")"},
    {.names = " R Rscript ", .code = "e", .values = "fg", .instead = "Sys.getenv(\"DIVVY_ITEM\")"},
    {.names = " expect ", .code = "c", .values = "fb", .instead = "$env(DIVVY_ITEM)"},
    {.names = " awk gawk mawk nawk original-awk ",
     .code = "e",
     .values = "Fvi",
     .files = "fE",
     .long_code = " source ",
     .first_is_code = true,
     .instead = "ENVIRON[\"DIVVY_ITEM\"]"},
    {.names = " sed gsed ",
     .code = "e",
     .values = "l",
     .files = "f",
     .long_code = " expression ",
     .first_is_code = true},
    {.names = " su ",
     .code = "c",
     .values = "gGswTU",
     .long_code = " command session-command ",
     .words = 2,
     .instead = IN_QUOTES},
    {.names = " runuser script flock ",
     .code = "c",
     .values = "gGuswEIOBTm",
     .long_code = " command session-command ",
     .words = 1,
     .instead = IN_QUOTES},
    {.names = " sg ", .rest_is_code = true, .instead = IN_QUOTES},
    {.names = " ssh ", .values = "BbcDEeFIiJLlmOopQRSWw", .rest_is_code = true},
};

/* Long options of theirs with a value in the next word: files of code, and others. */
static const char long_files[] = " file exec ";
static const char long_values[] = " rcfile init-file require import loader conditions env-file field-separator assign ";

/* Programs that run the command behind their own words: options with values, and how many words of their own follow. */
static const struct {
    const char *names, *values;
    size_t words;
} wrappers[] = {{" env ", "uC", 0},       {" nohup setsid busybox toybox ", "", 0},
                {" nice ", "n", 0},       {" timeout chrt taskset chroot ", "skTPD", 1},
                {" stdbuf ", "ioe", 0},   {" doas time ", "uCof", 0},
                {" ionice ", "cnpPu", 0}, {" sudo runuser ", "ugGpCDhRrtTU", 0},
                {" flock ", "wE", 1},     {" xargs ", "aEILnPsd", 0}};

/* Long options of theirs with a value in the next word. */
static const char wrapper_long_values[] =
    " signal kill-after adjustment input output error format unset chdir class classdata sched-runtime sched-period "
    "sched-deadline groups userspec user group supp-group shell whitelist-environment prompt host close-from "
    "command-timeout chroot role type other-user timeout wait conflict-exit-code arg-file delimiter max-args max-chars "
    "max-procs process-slot-var ";

static bool has(const char *set, char letter) {
    return set && letter && strchr(set, letter);
}

/* Returns whether `word` is in `list`, whose words stand between spaces. */
static bool is_listed(const char *list, const char *word, size_t bytes) {
    if (!list || bytes == 0) return false;
    for (const char *at = list; (at = strstr(at, " ")) != NULL; at++) {
        if (strncmp(at + 1, word, bytes) == 0 && at[1 + bytes] == ' ') return true;
    }
    return false;
}

/* Returns whether `word` is the program, by its path too, or one version of it. */
static bool is_program(const char *names, const char *word) {
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    size_t bytes = strlen(name);
    if (is_listed(names, name, bytes)) return true;
    while (bytes > 0 && (has("0123456789.", name[bytes - 1]) || (bytes > 1 && name[bytes - 1] == '-'))) bytes--;
    return is_listed(names, name, bytes);
}

static bool is_option(const char *word) {
    return (word[0] == '-' || word[0] == '+') && word[1];
}

/* ---- one interpreter's words ---- */

typedef struct {
    const char *const *words;
    const char *placeholder;
    const interpreter *reader;
    size_t i;          /* the word that is looked at */
    size_t words_seen; /* that are no options */
    bool code_follows; /* the first word that is no option is code */
    bool has_code;     /* or a file of it: an option has told */
    size_t found;      /* 0: none */
    size_t end;        /* the first word that is of no interest here */
} reading;

static void take_code(reading *r, size_t i) {
    r->has_code = true;
    if (!r->found && r->words[i] && strstr(r->words[i], r->placeholder)) r->found = i;
}

static void take_long(reading *r) {
    const char *name = r->words[r->i] + 2, *equals = strchr(name, '=');
    size_t bytes = equals ? (size_t)(equals - name) : strlen(name);
    bool code = is_listed(r->reader->long_code, name, bytes), file = is_listed(long_files, name, bytes);
    if (!code && !file && !is_listed(long_values, name, bytes)) return;
    if (!equals && r->words[r->i + 1]) r->i++;
    if (code) take_code(r, r->i);
    r->has_code = r->has_code || file;
}

/* Takes a shell's letters: the value of an option is the next word. */
static void take_shell_letters(reading *r) {
    const char *word = r->words[r->i];
    for (const char *letter = word + 1; *letter; letter++) {
        if (has(r->reader->code, *letter) && word[0] == '-') r->code_follows = true;
        if (has(r->reader->values, *letter) && r->words[r->i + 1]) r->i++;
    }
}

/* Letters behind a dash, one by one: a value of an option is the rest of the word, or else the next word. */
static void take_letters(reading *r) {
    const interpreter *reader = r->reader;
    for (const char *letter = r->words[r->i] + 1; *letter; letter++) {
        bool code = has(reader->code, *letter), file = has(reader->files, *letter);
        if (!code && !file && !has(reader->values, *letter)) continue;
        if (code && has(reader->code, letter[1])) continue; /* node -pe */
        if (!letter[1] && r->words[r->i + 1]) r->i++;
        if (code) take_code(r, r->i);
        r->has_code = r->has_code || file;
        return;
    }
}

/* Takes a word that is no option. Returns whether more are to be looked at. */
static bool take_word(reading *r) {
    const interpreter *reader = r->reader;
    if (r->code_follows || (reader->first_is_code && !r->has_code)) take_code(r, r->i);
    if (reader->rest_is_code) {
        for (size_t i = r->i + 1; r->words[i]; i++) take_code(r, i);
    }
    if (r->words_seen++ < reader->words) return true;
    /* Behind a shell's script stand its name and its arguments. */
    r->end = r->i + (r->code_follows && r->words[r->i + 1] ? 2 : 1);
    return false;
}

/* Reads the words of the interpreter at `at`, up to where its options and its code end. */
static reading read_words(const interpreter *reader, const char *const *words, size_t at, const char *placeholder) {
    reading r = {.words = words, .placeholder = placeholder, .reader = reader, .i = at + 1};
    bool options = true;
    for (; words[r.i] && !r.found; r.i++) {
        const char *word = words[r.i];
        if (options && reader->ends && r.has_code) break;
        if (options && (strcmp(word, "--") == 0 || (reader->code_is_first && strcmp(word, "-") == 0))) {
            options = false;
        } else if (!options || !is_option(word)) {
            if (!take_word(&r)) return r;
        } else if (word[0] == '-' && word[1] == '-') {
            take_long(&r);
        } else if (reader->code_is_first) {
            take_shell_letters(&r);
        } else {
            take_letters(&r);
        }
    }
    r.end = r.i;
    return r;
}

/* ---- the command as a whole ---- */

/* Returns whether an option of a wrapper's has its value in the next word: by the last of its letters, or its name. */
static bool takes_next_word(const char *option, const char *values) {
    if (option[1] == '-') return is_listed(wrapper_long_values, option + 2, strlen(option + 2));
    const char *letter = option + 1 + strcspn(option + 1, values);
    return letter[0] && !letter[1];
}

/* Returns the index of the command that the wrapper at `at` runs, or 0: it is none. An option of env's that splits a
 * text into words, with the placeholder in that, is `split`. */
static size_t behind_wrapper(const char *const *words, size_t at, const char *placeholder, size_t *split) {
    size_t count = sizeof wrappers / sizeof *wrappers, w = 0;
    while (w < count && !is_program(wrappers[w].names, words[at])) w++;
    if (w == count) return 0;
    size_t own = wrappers[w].words, i = at + 1;
    bool env = is_program(" env ", words[at]);
    for (; words[i]; i++) {
        const char *word = words[i];
        bool splits = env && (strncmp(word, "-S", 2) == 0 || strncmp(word, "--split-string", 14) == 0);
        size_t value = splits && !word[2] ? i + 1 : i;
        if (splits && words[value] && strstr(words[value], placeholder)) *split = value;
        if (is_option(word)) {
            if (takes_next_word(word, wrappers[w].values) && words[i + 1]) i++;
        } else if (!strchr(word, '=')) {
            if (own == 0) return i;
            own--;
        }
    }
    return 0;
}

static const interpreter *find_interpreter(const char *word, bool is_command) {
    if (is_program(shell.names, word)) return &shell;
    for (size_t i = 0; is_command && i < sizeof others / sizeof *others; i++) {
        if (is_program(others[i].names, word)) return &others[i];
    }
    return NULL;
}

dv_code_word dv_code_word_find(const char *const *arguments, const char *placeholder) {
    size_t command = 0, split = 0;
    for (size_t i = 0; arguments[i];) {
        bool is_command = i == command;
        const interpreter *reader = find_interpreter(arguments[i], is_command);
        size_t next = i + 1;
        if (reader) {
            reading r = read_words(reader, arguments, i, placeholder);
            if (r.found) return (dv_code_word){r.found, arguments[i], reader->instead};
            if (reader == &shell) next = r.end;
        }
        if (is_command) command = behind_wrapper(arguments, i, placeholder, &split);
        if (split) return (dv_code_word){split, arguments[i], NULL};
        i = next;
    }
    return (dv_code_word){0};
}
