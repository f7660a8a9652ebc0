/* divvy pin, unpin, move, pause, resume, need, set, forget: an operator's hand. SPDX-License-Identifier: Apache-2.0 */
#include "operator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "duration.h"
#include "log.h"
#include "operator_list.h"
#include "operator_wait.h"
#include "plan/tags.h"
#include "pool/wishes.h"

/* A command: what it asks, and in how many words. */
typedef struct {
    const char *name;
    dv_ask_kind kind;
    bool undo;
    const char *words[2]; /* that it takes, as help calls them; NULL: no more */
    bool many;            /* the last of them, as often as it is given */
    const char *about;
} operation;

#define WAIT_HELP "return only when items are where the plan wants them"

static const dv_option plain_table[] = {DV_OPERATOR_OPTION_PATH, DV_OPERATOR_OPTIONS(WAIT_HELP), {.name = NULL}};
static const dv_option undo_table[] = {DV_OPERATOR_OPTION_PATH,
                                       DV_OPERATOR_OPTION_UNDO("let the items need no tag again"),
                                       DV_OPERATOR_OPTIONS(WAIT_HELP),
                                       {.name = NULL}};

static const operation operations[] = {
    {"pin",
     DV_ASK_PIN,
     false,
     {"ITEM", "MEMBER"},
     false,
     "Gives ITEM to the member with the identifier MEMBER, and keeps it there until\n"
     "`divvy unpin`, also over restarts of the member. While no such member is there the item is\n"
     "dealt as any other, and a warning says so.\n"},
    {"unpin",
     DV_ASK_PIN,
     true,
     {"ITEM"},
     false,
     "Undoes `divvy pin` or `divvy move`: ITEM is dealt as any other. It may stay where it is.\n"},
    {"move",
     DV_ASK_MOVE,
     false,
     {"ITEM", "MEMBER"},
     false,
     "Gives ITEM to MEMBER, and keeps it there until that member ends, or until `divvy unpin`.\n"
     "MEMBER is an identifier or, where several have that, the name of a node in the party. A\n"
     "static member that is absent gets ITEM when it is back within its --rejoin-delay.\n"},
    {"pause",
     DV_ASK_PAUSE,
     false,
     {"ITEM"},
     true,
     "Has nobody work on ITEM until `divvy resume`: its owner releases it, and nobody else gets\n"
     "it. Of several items each is a line of the result; with an unknown one none is paused.\n"},
    {"resume",
     DV_ASK_PAUSE,
     true,
     {"ITEM"},
     true,
     "Undoes `divvy pause`: ITEM goes back to the member that had it, if that is there. There may\n"
     "be several items.\n"},
    {"need",
     DV_ASK_NEED,
     false,
     {"ITEM", "TAG"},
     false,
     "Lets only members that have the tag TAG (--tags of divvy partition) own ITEM. \"ITEM*\" means\n"
     "all items that begin so, also those to come. An item whose tag nobody has is without an\n"
     "owner. --undo takes no TAG. Without any word it lists what items need, and who set it.\n"},
    {"set",
     DV_ASK_OPTION,
     false,
     {"NAME=VALUE"},
     true,
     "Sets options of the pool, whatever its members were started with: max-moves (items that\n"
     "move in a round; 0: all at once), round-timeout (how long a round may take, a DURATION) and\n"
     "imbalance-max (how far above the mean a member may be before items move for their load,\n"
     "such as 0.2). NAME=default gives back what the members were started with. Without any word\n"
     "it lists the options in force, and who set them.\n"},
    {"forget",
     DV_ASK_FORGET,
     false,
     {"MEMBER"},
     false,
     "Has the pool no longer wait for the static member MEMBER, which is absent: others get its\n"
     "items now, and not when its --rejoin-delay has passed. When it comes back it is new.\n"},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

static const operation *find(const char *name) {
    size_t n = 0;
    while (n < OPERATIONS && strcmp(operations[n].name, name) != 0) n++;
    return n < OPERATIONS ? &operations[n] : NULL;
}

static const dv_option *table_of(const operation *op) {
    return op->kind == DV_ASK_NEED ? undo_table : plain_table;
}

static void print_help(const operation *op) {
    const char *second = op->words[1] ? op->words[1] : "";
    printf("usage: divvy %s --path PATH [OPTION ...] %s%s%s%s\n\n", op->name, op->words[0], *second ? " " : "", second,
           op->many ? " ..." : "");
    printf("%s"
           "All members follow the pool's plan by themselves. The pool must follow one: none of its\n"
           "members uses kazoo or an earlier release.\n\n",
           op->about);
    dv_options_print(table_of(op));
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the plan says so, also if it did before, and with --wait items are where it\n"
           "wants them; 1 divvy failed, and standard error says why: there is no such item or member,\n"
           "the pool follows no plan, divvy may not write it; 2 wrong usage; 3 no server answered\n"
           "within --timeout; 4 --wait-timeout has passed.\n");
}

/* ---- what is asked ---- */

typedef struct {
    const operation *op;
    dv_operator_options options;
    char **words;
    int word_count;
    dv_look *look;
    char by[DV_OPERATOR_BY_BYTES];
} call;

/* Returns how many words there have to be. */
static int words_of(const call *c) {
    return c->op->words[1] && !c->options.undo ? 2 : 1;
}

static int check_words(const call *c) {
    const char *command = c->op->name;
    int wanted = words_of(c);
    if (c->word_count < wanted) return dv_command_misused(command, "%s is missing", c->op->words[c->word_count]);
    if (c->word_count > wanted && !c->op->many)
        return dv_command_misused(command, "\"%.100s\" is one word too many", c->words[wanted]);
    for (int n = 0; n < (c->op->many ? c->word_count : wanted); n++) {
        if (!*c->words[n]) return dv_command_misused(command, "%s is empty", c->op->words[c->op->many ? 0 : n]);
    }
    if (c->op->kind == DV_ASK_NEED && wanted == 2 && !dv_is_tag(c->words[1], strlen(c->words[1])))
        return dv_command_misused(
            command, "\"%.100s\" is no tag: one has 1 to 64 of A-Z, a-z, 0-9, \"_\", \".\", \"-\"", c->words[1]);
    return 0;
}

/* Splits NAME=VALUE in place, and turns a duration into milliseconds. Returns 0, or the exit code. `number` is
 * room for a value that is written in another unit. */
static int read_option(dv_ask *ask, char *word, char number[24]) {
    static const char command[] = "set";
    char *equals = strchr(word, '=');
    if (!equals) return dv_command_misused(command, "\"%.100s\" is not NAME=VALUE", word);
    int64_t ms = 0;
    *equals = '\0';
    *ask = (dv_ask){.kind = DV_ASK_OPTION, .name = word, .value = equals + 1};
    ask->undo = strcmp(ask->value, "default") == 0;
    if (ask->undo) ask->value = NULL;
    if (ask->value && strcmp(word, "round-timeout") == 0) {
        if (dv_duration_parse(ask->value, &ms) != 0)
            return dv_command_misused(command, "round-timeout: \"%.100s\" is not " DV_DURATION_FORMS, ask->value);
        snprintf(number, 24, "%" PRId64, ms);
        ask->value = number;
    }
    const char *wrong = dv_pool_option_check(ask->name, ask->value);
    return wrong ? dv_command_misused(command, "the option \"%.100s\" %s", ask->name, wrong) : 0;
}

/* Before anything is written, so that of several options all are set or none is begun. */
static int check_options(const call *c) {
    int code = 0;
    for (int n = 0; code == 0 && n < c->word_count; n++) {
        char number[24], *copy = strdup(c->words[n]);
        dv_ask ask;
        code = copy ? read_option(&ask, copy, number) : dv_command_out_of_memory();
        free(copy);
    }
    return code;
}

/* ---- doing it ---- */

static int ask_once(const call *c, dv_ask *ask, dv_operator_wait *wait) {
    dv_errand *errand = NULL;
    dv_outcome outcome = {.plan = NULL};
    int code = dv_asking_run(&errand, c->look, &c->options.look, c->options.path, ask);
    if (code == 0 && dv_outcome_make(&outcome, errand) != 0) code = dv_command_out_of_memory();
    if (code == 0) code = dv_command_print(dv_operator_text(c->op->name, errand, &outcome, &c->options));
    if (code == 0) dv_operator_warn(errand, &outcome);
    if (code == 0 && c->options.wait && dv_operator_wait_note(wait, errand) != 0) code = dv_command_out_of_memory();
    dv_outcome_clear(&outcome);
    dv_asking_drop(errand, c->look);
    return code;
}

/* Before anything is written, so that of several items all are paused or resumed, or none. Returns the exit code. */
static int check_items(call *c) {
    int code = 0;
    for (int n = 0; code == 0 && n < c->word_count; n++) {
        dv_ask ask = {.kind = c->op->kind, .undo = c->op->undo, .name = c->words[n]};
        dv_errand *errand = NULL;
        dv_operator_sign(&ask, &c->options, c->by);
        ask.dry_run = true;
        code = dv_asking_run(&errand, c->look, &c->options.look, c->options.path, &ask);
        dv_asking_drop(errand, c->look);
    }
    return code;
}

static int ask_all(call *c, dv_operator_wait *wait) {
    int code = 0, asks = c->op->many ? c->word_count : 1;
    for (int n = 0; code == 0 && n < asks; n++) {
        char number[24];
        dv_ask ask = {.kind = c->op->kind, .name = c->words[c->op->many ? n : 0]};
        if (c->op->kind == DV_ASK_OPTION) code = read_option(&ask, c->words[n], number);
        else ask.undo = c->op->undo || c->options.undo;
        if (words_of(c) == 2) ask.value = c->words[1];
        dv_operator_sign(&ask, &c->options, c->by);
        if (code == 0) code = ask_once(c, &ask, wait);
    }
    return code;
}

static int run_call(call *c) {
    const dv_ask nothing = {.kind = DV_ASK_OPTION, .undo = true, .name = ""}; /* No option has that name. */
    dv_operator_wait wait = {.look = NULL};
    int code = dv_look_open(&c->look, &c->options.look, c->op->name, -1);
    if (code == 0 && dv_operator_wait_init(&wait, c->look, &c->options) != 0) code = dv_command_out_of_memory();
    if (code == 0 && c->op->kind == DV_ASK_PAUSE && c->word_count > 1) code = check_items(c);
    if (code == 0) code = ask_all(c, &wait);
    if (code == 0 && c->options.wait) code = dv_operator_wait_run(&wait, &nothing);
    dv_look_close(c->look);
    dv_operator_wait_free(&wait);
    return code;
}

/* Returns whether it only asks what stands: set and need without words. */
static bool is_question(const call *c) {
    const dv_operator_options *o = &c->options;
    bool lists = c->op->kind == DV_ASK_OPTION || c->op->kind == DV_ASK_NEED;
    return lists && c->word_count == 0 && !o->undo && !o->wait && !o->dry_run && !o->reason;
}

static int run(int argc, char **argv) {
    call c = {.op = find(argv[0]), .options = DV_OPERATOR_DEFAULTS};
    int rest = argc;
    int code = dv_operator_parse(argv[0], table_of(c.op), &c.options, argc, argv, &rest);
    c.words = argv + rest;
    c.word_count = argc - rest;
    if (code == 0 && is_question(&c)) {
        dv_log_field("pool", c.options.path);
        code = dv_operator_list(c.op->name, c.op->kind == DV_ASK_NEED, &c.options);
    } else if (code == 0) {
        code = check_words(&c);
        if (code == 0 && c.op->kind == DV_ASK_OPTION) code = check_options(&c);
        dv_log_field("pool", c.options.path);
        if (code == 0) code = run_call(&c);
    }
    dv_look_options_free(&c.options.look);
    return code;
}

/* A command for each operation, by its place in the table. */
#define OPERATION(number, variable, text)        \
    static void help_##variable(void) {          \
        print_help(&operations[number]);         \
    }                                            \
    const dv_command dv_##variable##_command = { \
        .name = #variable,                       \
        .summary = text,                         \
        .run = run,                              \
        .print_help = help_##variable,           \
    }

OPERATION(0, pin, "give an item to a member of a pool, and keep it there");
OPERATION(1, unpin, "undo a pin, or a move");
OPERATION(2, move, "give an item to a member until that ends");
OPERATION(3, pause, "have nobody work on an item");
OPERATION(4, resume, "undo a pause");
OPERATION(5, need, "let items need a tag of their owners");
OPERATION(6, set, "set options of a pool while it works");
OPERATION(7, forget, "stop waiting for a static member that is absent");
