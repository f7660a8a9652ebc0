/* divvy drain: gives a member another weight in its pool's plan. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "held_wait.h"
#include "log.h"
#include "operator.h"
#include "operator_wait.h"
#include "pool/whom.h"

static const char command[] = "drain";

typedef struct {
    const dv_operator_options *options;
    const char *member;
    dv_look *look;
    dv_errand *errand; /* by which the weight was written */
    bool in_rounds;    /* that moves its items */
    dv_held_wait wait;
    dv_operator_wait own; /* of a member that is to have items */
    char *key;            /* of the member */
    bool is_static;
    char by[DV_OPERATOR_BY_BYTES];
} dv_drain;

static const dv_option table[] = {
    DV_OPERATOR_OPTION_PATH,
    DV_OPERATOR_OPTION_UNDO("give the member the weight that it was started with, and so its items"),
    {.name = "weight",
     .argument = "N",
     .kind = DV_OPTION_NUMBER,
     .offset = offsetof(dv_operator_options, weight),
     .help = "set the weight to N instead of 0; a member weighs 1000 by default",
     .min = 0,
     .max = UINT32_MAX},
    DV_OPERATOR_OPTIONS("return only when others hold all its items, or it holds those it is to have"),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy drain --path PATH [OPTION ...] MEMBER\n"
           "\n"
           "Takes all items from the member with the identifier MEMBER, and gives it none until\n"
           "--undo: its weight in the pool's plan becomes 0. Its items move as at any other change,\n"
           "in rounds if the plan limits moves. All members follow the plan by themselves. MEMBER\n"
           "keeps running, with nothing to do. A static member stays drained when it restarts; any\n"
           "other member is drained until it ends. The pool must follow a plan: none of its members\n"
           "uses kazoo or a release of divvy without plans.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the plan has the new weight, and with --wait items are where it wants them;\n"
           "1 divvy failed, and standard error says why: no member or several have that identifier,\n"
           "the pool follows no plan, divvy may not write it, no other member can take the items;\n"
           "2 wrong usage; 3 no server answered within --timeout; 4 --wait-timeout has passed.\n");
}

/* ---- options ---- */

static int check_member(const dv_operator_options *o, int argc, char **argv, int rest) {
    const char *wrong = NULL;
    if (rest == argc) wrong = "the member is missing; give its identifier";
    else if (!*argv[rest]) wrong = "the member's identifier is empty";
    else if (o->undo && o->weight >= 0) wrong = "give --undo or --weight, not both";
    if (wrong) return dv_command_misused(command, "%s", wrong);
    if (rest + 1 == argc) return 0;
    return dv_command_misused(command, "\"%.100s\" is one member too many", argv[rest + 1]);
}

/* ---- doing it ---- */

static int ask_weight(dv_drain *d, dv_errand **errand, const char *member, int64_t weight) {
    dv_ask ask = {.kind = DV_ASK_WEIGHT, .name = member, .weight = weight};
    dv_operator_sign(&ask, d->options, d->by);
    return dv_asking_run(errand, d->look, &d->options->look, d->options->path, &ask);
}

static int64_t weight_of(const dv_operator_options *o) {
    return o->undo ? DV_ASK_CONFIGURED_WEIGHT : o->weight > 0 ? o->weight : 0;
}

static int weigh(dv_drain *d) {
    dv_outcome outcome = {.plan = NULL};
    int code = ask_weight(d, &d->errand, d->member, weight_of(d->options));
    if (code) return code;
    code = dv_outcome_make(&outcome, d->errand) ? dv_command_out_of_memory() : 0;
    d->in_rounds = code == 0 && dv_outcome_has_rounds(&outcome, d->errand);
    if (code == 0) code = dv_command_print(dv_operator_text(command, d->errand, &outcome, d->options));
    dv_outcome_clear(&outcome);
    return code;
}

/* ---- waiting for the member to have its items ---- */

static int wait_for_own(dv_drain *d) {
    const dv_errand_result *r = &d->errand->result;
    const dv_ask again = {.kind = DV_ASK_WEIGHT, .name = r->key, .weight = weight_of(d->options)};
    const dv_plan_member *m = dv_plan_find(r->after, r->is_static, r->key);
    if (m && m->absent)
        return dv_command_failed("%s is absent, so there is nothing to wait for: it has items again when it is back",
                                 d->member);
    int error = dv_operator_wait_init(&d->own, d->look, d->options);
    d->own.weighed = d->errand;
    if (!error) error = dv_operator_wait_note(&d->own, d->errand);
    return error ? dv_command_out_of_memory() : dv_operator_wait_run(&d->own, &again);
}

/* ---- waiting for others to have them ---- */

/* Notes the items that the member had. If the plan gave it none, it may still hold any item. */
static int note_items(dv_drain *d) {
    const dv_errand_result *r = &d->errand->result;
    const dv_plan_member *m = dv_plan_find(r->before, r->is_static, r->key);
    int error = dv_held_wait_init(&d->wait, d->look, d->options->path);
    d->key = strdup(r->key);
    if (!d->key) error = DIVVY_ENOMEM;
    d->is_static = r->is_static;
    d->wait.away_from = d->key;
    d->wait.is_static = r->is_static;
    d->wait.lets_go = r->items_before == 0;
    for (size_t i = 0; !error && i < r->before->set->count; i++) {
        if (r->items_before > 0 && m && r->before->owners[i] != m->slot) continue;
        error = dv_held_wait_add(&d->wait, r->before->set->names[i]);
    }
    return error;
}

static size_t load(const dv_drain *d) {
    return dv_whom_load_of(d->wait.plan.memory.plan, d->is_static, d->key);
}

/* Gives the member its weight back, since it keeps its items: those that were to take them have gone. Returns the exit
 * code. */
static int give_back(dv_drain *d) {
    uint32_t weight = d->errand->result.weight_before;
    dv_errand *errand = NULL;
    int code = weight > 0 ? ask_weight(d, &errand, d->key, weight) : 0;
    dv_asking_drop(errand, d->look);
    if (code) return code;
    return dv_command_failed("%s keeps its %zu items: no member is left that weighs more than 0%s", d->member, load(d),
                             weight > 0 ? "; its weight is what it was" : "");
}

/* The first line told how many items the first round left. */
static int tell_end(const dv_drain *d) {
    char *line = NULL;
    if (!d->in_rounds || d->options->json) return 0;
    uint64_t generation = d->wait.plan.memory.plan->header.generation;
    if (asprintf(&line, "%s: others hold all its items; 0 items by plan %" PRIu64 "\n", d->member, generation) < 0)
        line = NULL;
    return dv_command_print(line);
}

static int wait_until_gone(dv_drain *d) {
    int64_t limit_ms = d->options->wait_timeout_ms, until_ms = dv_session_now_ms() + limit_ms;
    for (;;) {
        int error = dv_look_at(d->look, dv_held_wait_look, &d->wait);
        if (error && !dv_look_may_recover(error)) return dv_look_failed(d->look, error);
        bool known = !error && dv_held_wait_known(&d->wait);
        int code = known ? dv_operator_check_weight(d->errand, d->wait.plan.memory.plan) : 0;
        if (code) return code;
        if (known && d->wait.item_count == 0 && load(d) == 0) return tell_end(d);
        if (known && dv_whom_is_last(d->wait.plan.memory.plan, d->is_static, d->key)) return give_back(d);
        if (limit_ms > 0 && dv_session_now_ms() >= until_ms) {
            dv_command_say("others do not hold all items of %s within %" PRId64 " ms: by the plan it has %zu, and %zu "
                           "wait for their owners",
                           d->member, limit_ms, load(d), d->wait.item_count);
            return DV_EXIT_TIMED_OUT;
        }
        dv_look_pause(d->look, DV_OPERATOR_BETWEEN_LOOKS_MS, NULL);
    }
}

static int wait_for_others(dv_drain *d) {
    return note_items(d) == 0 ? wait_until_gone(d) : dv_command_out_of_memory();
}

static int run_drain(const dv_operator_options *o, const char *member) {
    dv_drain d = {.options = o, .member = member};
    int code = dv_look_open(&d.look, &o->look, command, -1);
    if (code == 0) code = weigh(&d);
    if (code == 0 && o->wait) code = o->undo || o->weight > 0 ? wait_for_own(&d) : wait_for_others(&d);
    dv_asking_drop(d.errand, d.look);
    dv_look_close(d.look);
    dv_held_wait_free(&d.wait);
    dv_operator_wait_free(&d.own);
    free(d.key);
    return code;
}

static int run(int argc, char **argv) {
    dv_operator_options o = DV_OPERATOR_DEFAULTS;
    int rest = argc;
    int code = dv_operator_parse(command, table, &o, argc, argv, &rest);
    if (code == 0) {
        dv_log_field("pool", o.path);
        code = check_member(&o, argc, argv, rest);
        if (code == 0) code = run_drain(&o, argv[rest]);
    }
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_drain_command = {
    .name = command,
    .summary = "take all items from a member of a pool, or give it some again",
    .run = run,
    .print_help = print_help,
};
