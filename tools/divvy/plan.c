/* divvy plan: what would move when members join or leave. SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "forecast.h"
#include "item_list.h"
#include "options.h"

enum { MEMBERS_MAX = 10000, MEMBER_NAME_BYTES = 32 };

static const char command[] = "plan";

typedef struct {
    int64_t members, join, leave; /* members 0: not given */
    const char *items_from;
    dv_texts items;
    int assign;      /* an index of `rules` */
    int items_order; /* DIVVY_ORDER_* */
    int json, verbose;

    dv_item_list list;
} plan_options;

/* ---- the rules ---- */

/* `previous` is what each item's owner was, of these members; UINT32_MAX: none. Items come in their order (A1). */
typedef int (*rule_fn)(const divvy_member *members, size_t member_count, const dv_item_list *items,
                       const uint32_t *previous, int items_order, uint32_t *owners);

static int by_rendezvous(const divvy_member *members, size_t member_count, const dv_item_list *items,
                         const uint32_t *previous, int items_order, uint32_t *owners) {
    (void)previous, (void)items_order;
    return divvy_assign_rendezvous(members, member_count, items->names, items->count, owners);
}

static int by_round_robin(const divvy_member *members, size_t member_count, const dv_item_list *items,
                          const uint32_t *previous, int items_order, uint32_t *owners) {
    (void)previous;
    return divvy_assign_round_robin_ordered(members, member_count, items->names, items->count, items_order, owners);
}

static int by_sticky(const divvy_member *members, size_t member_count, const dv_item_list *items,
                     const uint32_t *previous, int items_order, uint32_t *owners) {
    (void)items_order;
    return divvy_assign_sticky(members, member_count, items->names, items->count, previous, NULL, owners);
}

static const struct {
    const char *name;
    rule_fn assign;
} rules[] = {{"rendezvous", by_rendezvous}, {"round_robin", by_round_robin}, {"sticky", by_sticky}};

static const dv_choice assigns[] = {
    {"rendezvous", 0}, {"round_robin", 1}, {"round-robin", 1}, {"sticky", 2}, {NULL, 0}};

static const dv_choice orders[] = {{"bytes", DIVVY_ORDER_BYTES}, {"numeric", DIVVY_ORDER_NUMERIC}, {NULL, 0}};

/* ---- options ---- */

#define NUMBER(option_name, field, least, help_text)                                                             \
    {                                                                                                            \
        .name = option_name, .argument = "N", .kind = DV_OPTION_NUMBER, .offset = offsetof(plan_options, field), \
        .help = help_text, .min = least, .max = MEMBERS_MAX                                                      \
    }

static const dv_option table[] = {
    NUMBER("members", members, 1, "how many members there are before the change; required"),
    NUMBER("join", join, 0, "how many join (default: 0)"),
    NUMBER("leave", leave, 0, "how many leave, of those that there are before (default: 0)"),
    {.name = "items-from",
     .argument = "FILE",
     .kind = DV_OPTION_TEXT,
     .offset = offsetof(plan_options, items_from),
     .help = "read the items from FILE (- is standard input), one a line; empty lines\n"
             "and lines that begin with # are skipped"},
    {.name = "item",
     .argument = "ITEM",
     .kind = DV_OPTION_TEXTS,
     .offset = offsetof(plan_options, items),
     .help = "an item; repeat the option for each item"},
    {.name = "assign",
     .argument = "HOW",
     .kind = DV_OPTION_CHOICE,
     .offset = offsetof(plan_options, assign),
     .help = "rendezvous: by weights of names, a little more than must moves (default);\n"
             "round_robin: kazoo's way, most moves; sticky: only what must moves",
     .choices = assigns},
    {.name = "items-order",
     .argument = "ORDER",
     .kind = DV_OPTION_CHOICE,
     .offset = offsetof(plan_options, items_order),
     .help = "in which order round_robin deals items out: bytes (default);\n"
             "numeric, as kazoo deals integers out",
     .choices = orders},
    {.name = "verbose",
     .kind = DV_OPTION_FLAG,
     .offset = offsetof(plan_options, verbose),
     .help = "list each item that moves, too"},
    {.name = "json",
     .kind = DV_OPTION_FLAG,
     .offset = offsetof(plan_options, json),
     .help = "print one JSON object on one line"},
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy plan --members N (--items-from FILE | --item ITEM ...) [OPTION ...]\n"
           "\n"
           "Computes how members divide the items, and what would move if some joined or left.\n"
           "Needs no server. The members are called member-1, member-2 and so on. The first ones\n"
           "leave, and new ones come after the last.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "Exit codes: 0 the result was shown; 1 divvy failed, and standard error says why; 2 wrong\n"
           "usage.\n");
}

static const char *missing(const plan_options *o) {
    if (!o->members) return "--members is missing; it says how many there are before the change";
    if (!o->items_from && o->items.count == 0)
        return "the items are missing; give --items-from FILE, or --item for each";
    if (o->items_from && o->items.count > 0) return "give --items-from or --item, not both";
    if (o->leave > o->members) return "--leave: more cannot leave than there are by --members";
    if (o->leave == o->members && o->join == 0) return "--leave: nobody would be left to own the items";
    return NULL;
}

static int parse(plan_options *o, int argc, char **argv) {
    int outcome = dv_options_parse(command, table, o, argc, argv);
    if (outcome != DV_OPTIONS_PARSED) return outcome;
    const char *wrong = missing(o);
    if (wrong) {
        dv_command_misused(command, "%s", wrong);
        return DV_OPTIONS_WRONG;
    }
    int error = o->items_from ? dv_item_list_read(&o->list, o->items_from) : dv_item_list_copy(&o->list, &o->items);
    return error ? DV_OPTIONS_WRONG : DV_OPTIONS_PARSED;
}

/* ---- the plan ---- */

static int name_members(dv_forecast *plan) {
    for (size_t i = 0; i < plan->member_count; i++) {
        char *name = NULL;
        if (asprintf(&name, "member-%zu", i + 1) < 0) return DIVVY_ENOMEM;
        plan->members[i] = (divvy_member){.identifier = name, .weight = 1000};
    }
    return 0;
}

/* Both assignments; indexes of owners are among all members, as the first of those after the change is not the first of
 * all. */
static int assign(dv_forecast *plan, rule_fn rule, int items_order) {
    size_t old_count = plan->member_count - plan->join_count, leave = plan->leave_count;
    int error = rule(plan->members, old_count, plan->items, NULL, items_order, plan->before);
    uint32_t *previous = calloc(plan->items->count, sizeof *previous);
    if (!previous) return DIVVY_ENOMEM;
    for (size_t i = 0; !error && i < plan->items->count; i++)
        previous[i] = plan->before[i] < leave ? UINT32_MAX : plan->before[i] - (uint32_t)leave;
    if (!error)
        error =
            rule(plan->members + leave, plan->member_count - leave, plan->items, previous, items_order, plan->after);
    for (size_t i = 0; !error && i < plan->items->count; i++) plan->after[i] += (uint32_t)leave;
    free(previous);
    return error;
}

static void count(dv_forecast *plan) {
    for (size_t i = 0; i < plan->items->count; i++) {
        dv_forecast_load *from = &plan->loads[plan->before[i]], *to = &plan->loads[plan->after[i]];
        from->before++;
        to->after++;
        if (from == to) continue;
        from->loses++;
        to->gains++;
        plan->moves++;
    }
}

/* Returns the least number of moves: the items of leavers must move, and those that stayers have beyond their room.
 * A stayer has room for K // M items. K mod M stayers have room for one more, and are best chosen among the full
 * ones. */
static size_t floor_of(const dv_forecast *plan) {
    size_t after_count = plan->member_count - plan->leave_count;
    size_t base = plan->items->count / after_count, extras = plan->items->count % after_count, moves = 0;
    for (size_t i = 0; i < plan->member_count; i++) {
        size_t load = plan->loads[i].before;
        bool leaves = dv_forecast_leaves(plan, i);
        size_t room = leaves ? 0 : base;
        if (!leaves && load > base && extras > 0) {
            room++;
            extras--;
        }
        if (load > room) moves += load - room;
    }
    return moves;
}

static int make_plan(dv_forecast *plan, rule_fn rule, int items_order) {
    plan->members = calloc(plan->member_count, sizeof *plan->members);
    plan->loads = calloc(plan->member_count, sizeof *plan->loads);
    plan->before = calloc(plan->items->count, sizeof *plan->before);
    plan->after = calloc(plan->items->count, sizeof *plan->after);
    if (!plan->members || !plan->loads || !plan->before || !plan->after) return DIVVY_ENOMEM;
    int error = name_members(plan);
    if (!error) error = assign(plan, rule, items_order);
    if (error) return error;
    count(plan);
    plan->floor = floor_of(plan);
    return 0;
}

static void free_plan(dv_forecast *plan) {
    for (size_t i = 0; plan->members && i < plan->member_count; i++)
        free((char *)(uintptr_t)plan->members[i].identifier);
    free(plan->members);
    free(plan->loads);
    free(plan->before);
    free(plan->after);
}

static int run_plan(const plan_options *o) {
    dv_forecast plan = {.assign = rules[o->assign].name,
                        .items = &o->list,
                        .member_count = (size_t)(o->members + o->join),
                        .leave_count = (size_t)o->leave,
                        .join_count = (size_t)o->join};
    int error = make_plan(&plan, rules[o->assign].assign, o->items_order);
    char *text = NULL;
    if (!error) text = o->json ? dv_forecast_json(&plan, o->verbose) : dv_forecast_print(&plan, o->verbose);
    free_plan(&plan);
    if (error && error != DIVVY_ENOMEM) {
        bool of_order = error == DIVVY_EINVAL && o->items_order == DIVVY_ORDER_NUMERIC;
        dv_command_say("%s",
                       of_order ? "--items-order numeric: not all items are decimal numbers" : divvy_strerror(error));
        return DV_EXIT_FAILED;
    }
    return dv_command_print(text);
}

static int run(int argc, char **argv) {
    plan_options o = {.members = 0};
    int code = DV_EXIT_USAGE;
    int outcome = parse(&o, argc, argv);
    if (outcome == DV_OPTIONS_HELP) {
        print_help();
        code = dv_command_printed();
    } else if (outcome == DV_OPTIONS_PARSED) {
        code = run_plan(&o);
    }
    dv_item_list_free(&o.list);
    free((void *)(uintptr_t)o.items.texts);
    return code;
}

const dv_command dv_plan_command = {
    .name = command,
    .summary = "compute what would move if members joined or left",
    .run = run,
    .print_help = print_help,
};
