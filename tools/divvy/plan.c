/* divvy plan: what would move when members join or leave. SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "command.h"
#include "log.h"
#include "option_rows.h"
#include "options.h"
#include "plan_call.h"

static const char command[] = "plan";

/* ---- options ---- */

static const dv_choice assigns[] = {{"plan", DV_BY_PLAN},
                                    {"rendezvous", DV_BY_RENDEZVOUS},
                                    {"round_robin", DV_BY_ROUND_ROBIN},
                                    {"round-robin", DV_BY_ROUND_ROBIN},
                                    {"sticky", DV_BY_STICKY},
                                    {NULL, 0}};

static const dv_choice orders[] = {{"bytes", DIVVY_ORDER_BYTES}, {"numeric", DIVVY_ORDER_NUMERIC}, {NULL, 0}};

#define OPTION_VALUES dv_plan_call

static const dv_option table[] = {
    TEXT("path", "PATH", path,
         "a live pool, an absolute znode path such as /work_queues: its members, items and\n"
         "plan are those to begin with, and nothing is changed there"),
    NUMBER("members", "N", members, 1, DV_PLAN_CALL_MEMBERS_MAX,
           "how many members there are before the change; required without --path"),
    NUMBER("join", "N", join, 0, DV_PLAN_CALL_MEMBERS_MAX, "how many join (default: 0)"),
    TEXTS("leave", "WHO", leave,
          "who leaves: with --path the identifier of a member, and the option can be repeated;\n"
          "without --path how many, of those that there are before (default: 0)"),
    TEXTS("drain", "MEMBER", drains, "a member that is drained, which is the weight 0; the option can be repeated"),
    TEXTS("weight", "WEIGHT", weights,
          "MEMBER=W: the member has the weight W from then on, where others have 1000; the\n"
          "option can be repeated; one that joins can be meant, too"),
    TEXT("zone", "ZONE", zone, "the zone of those that join; only with --path (default: none)"),
    TEXT("tags", "TAGS", tags, "the tags of those that join, with commas between; only with --path (default: none)"),
    NUMBER("cap", "N", cap, 1, DV_PLAN_CALL_MEMBERS_MAX,
           "the most items that one takes that joins; only with --path (default: no limit)"),
    TEXT("items-from", "FILE", items_from,
         "read the items from FILE (- is standard input), one a line; empty lines\n"
         "and lines that begin with # are skipped; only without --path"),
    TEXTS("item", "ITEM", items, "an item; repeat the option for each item; only without --path"),
    TEXT("loads", "FILE", loads_from,
         "read loads of items from FILE (- is standard input), lines ITEM NUMBER, of any unit;\n"
         "items without a line have the mean; only without --path, as a live pool's plan has\n"
         "the loads that its members tell"),
    CHOICE("assign", "HOW", assign, assigns,
           "plan: as pools do whose members all follow plans (default); rendezvous: by\n"
           "weights of names, a little more than must moves; round_robin: kazoo's way, most\n"
           "moves; sticky: one deal of the plan, without its rounds"),
    NUMBER("max-moves", "N", max_moves, 0, DV_PLAN_CALL_MEMBERS_MAX,
           "the most items that move at a time, by a plan; only without --path, as a live\n"
           "pool's plan says it (default: 0, no limit)"),
    CHOICE("items-order", "ORDER", items_order, orders,
           "in which order round_robin deals items out: bytes (default);\n"
           "numeric, as kazoo deals integers out"),
    FLAG("verbose", verbose, "list each item that moves, too"),
    FLAG("json", json, "print one JSON object on one line"),
    DV_LOOK_OPTIONS_BUT_VERBOSE(dv_plan_call, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy plan --members N (--items-from FILE | --item ITEM ...) [OPTION ...]\n"
           "       divvy plan --path PATH [OPTION ...]\n"
           "\n"
           "Computes how members divide items by the sticky plan, and what would move if some joined,\n"
           "left, or had another weight: all at once, to the end. Where there are loads it deals by\n"
           "these, and says how even they are before and after.\n"
           "\n"
           "Without --path it needs no server. The members are called member-1, member-2 and so on, and\n"
           "weigh 1000. The first ones leave, and new ones come after the last.\n"
           "\n"
           "With --path it reads the plan and the members of a live pool, with loads, tags, caps and what\n"
           "operators asked for, and changes nothing there. The pool must follow a plan: none of its members uses "
           "kazoo or a release of divvy without plans.\n"
           "Who joins is called new-1, new-2 and so on. Nobody waits for who leaves: it is as after the\n"
           "--rejoin-delay of a static member. A change that is under way is first carried to its end.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the result was shown; 1 divvy failed, and standard error says why: the pool\n"
           "follows no plan, it has no such member, nobody would be left; 2 wrong usage; 3 no server\n"
           "answered within --timeout.\n");
}

/* ---- what is wrong with them ---- */

static bool names_server(const dv_plan_call *o) {
    const dv_tls_options *t = &o->look.tls;
    return o->look.connect || o->look.auth_file || o->look.timeout_ms || t->ca_file || t->certificate_file ||
           t->key_file || t->key_password_file || t->sasl_user || t->sasl_password_file || t->sasl_mechanism;
}

static const char *wrong_with_path(const dv_plan_call *o) {
    if (o->members) return "give --path or --members, not both: the pool has its own members";
    if (o->items_from || o->items.count) return "give --path or items, not both: the pool's plan has its own items";
    if (o->assign != DV_BY_PLAN) return "--assign: a pool's members go by its plan; leave --path out for other rules";
    if (o->items_order >= 0) return "--items-order is for --assign round_robin, without --path";
    if (o->max_moves >= 0) return "--max-moves: the pool's plan says it; leave it out with --path";
    if (o->zone && !*o->zone) return "--zone: the zone is empty; without the option there is none";
    if (o->zone && o->join == 0) return "--zone is of those that join; give --join, too";
    if (o->tags && o->join == 0) return "--tags are of those that join; give --join, too";
    if (o->cap && o->join == 0) return "--cap is of those that join; give --join, too";
    if (o->loads_from) return "--loads: the pool's plan has its own loads; leave it out with --path";
    return NULL;
}

static const char *wrong_without_path(const dv_plan_call *o) {
    if (!o->members) return "--members is missing; it says how many there are before the change, or give --path";
    if (!o->items_from && o->items.count == 0)
        return "the items are missing; give --items-from FILE, or --item for each";
    if (o->items_from && o->items.count > 0) return "give --items-from or --item, not both";
    if (o->zone) return "--zone is for a live pool; give --path, too";
    if (o->tags || o->cap) return "--tags and --cap are for a live pool; give --path, too";
    if (o->loads_from && o->assign != DV_BY_PLAN) return "--loads: only a plan heeds loads; leave --assign out";
    if (o->loads_from && o->items_from && strcmp(o->loads_from, "-") == 0 && strcmp(o->items_from, "-") == 0)
        return "--loads and --items-from cannot both be standard input";
    if (names_server(o)) return "without --path no server is asked; --connect and the like are for --path";
    if (o->leave_count > o->members) return "--leave: more cannot leave than there are by --members";
    if (o->leave_count == o->members && o->join == 0) return "--leave: nobody would be left to own the items";
    if (o->max_moves >= 0 && o->assign != DV_BY_PLAN) return "--max-moves is for --assign plan, which is the default";
    if (o->wish_count && o->assign != DV_BY_PLAN && o->assign != DV_BY_STICKY)
        return "--weight and --drain: only plan and sticky heed weights";
    return NULL;
}

/* Reads a number of at most `most`. Returns whether it is one. */
static bool read_number(const char *text, int64_t most, int64_t *number) {
    size_t digits = strspn(text, "0123456789");
    *number = digits > 0 && digits < 12 && !text[digits] ? strtoll(text, NULL, 10) : -1;
    return *number >= 0 && *number <= most;
}

/* Without --path. Returns 0, or the exit code. */
static int read_leave_count(dv_plan_call *o) {
    if (o->path || o->leave.count == 0) return 0;
    if (o->leave.count > 1)
        return dv_command_misused(command, "--leave is given twice; without --path it says how many leave");
    if (read_number(o->leave.texts[0], DV_PLAN_CALL_MEMBERS_MAX, &o->leave_count)) return 0;
    return dv_command_misused(command,
                              "--leave: \"%.100s\" is not a number from 0 to %d; it names members with --path only",
                              o->leave.texts[0], DV_PLAN_CALL_MEMBERS_MAX);
}

/* Adds a wish; `equals` is where its member's name ends. Returns 0, or the exit code. */
static int add_wish(dv_plan_call *o, const char *option, const char *text, const char *equals, int64_t weight) {
    dv_plan_wish *wish = &o->wishes[o->wish_count];
    *wish = (dv_plan_wish){option, strndup(text, (size_t)(equals - text)), (uint32_t)weight};
    if (!wish->member) return dv_command_out_of_memory();
    o->wish_count++;
    if (!*wish->member) return dv_command_misused(command, "--%s: the member's name is empty", option);
    for (size_t n = 0; n + 1 < o->wish_count; n++) {
        if (strcmp(o->wishes[n].member, wish->member) == 0)
            return dv_command_misused(command, "--%s: the weight of \"%.100s\" is given twice", option, wish->member);
    }
    return 0;
}

/* Returns 0, or the exit code. */
static int read_wishes(dv_plan_call *o) {
    o->wishes = calloc(o->drains.count + o->weights.count + 1, sizeof *o->wishes);
    int code = o->wishes ? 0 : dv_command_out_of_memory();
    for (size_t n = 0; code == 0 && n < o->drains.count; n++)
        code = add_wish(o, "drain", o->drains.texts[n], strchr(o->drains.texts[n], '\0'), 0);
    for (size_t n = 0; code == 0 && n < o->weights.count; n++) {
        const char *text = o->weights.texts[n], *equals = strrchr(text, '=');
        int64_t weight;
        if (!equals || !read_number(equals + 1, UINT32_MAX, &weight))
            return dv_command_misused(command, "--weight: \"%.100s\" is not MEMBER=W, with W from 0 to %u", text,
                                      UINT32_MAX);
        code = add_wish(o, "weight", text, equals, weight);
    }
    return code;
}

static int finish_with_path(dv_plan_call *o) {
    const char *wrong = dv_tags_make(o->tags_made, o->tags);
    if (wrong) return dv_command_misused(command, "--tags: a tag of \"%.100s\" %s", o->tags, wrong);
    if (!o->look.timeout_ms) o->look.timeout_ms = DV_LOOK_TIMEOUT_MS;
    return dv_look_options_finish(&o->look, command);
}

static int parse(dv_plan_call *o, int argc, char **argv) {
    int code = dv_options_parse(command, table, o, argc, argv);
    if (code == 0 && o->path) code = dv_options_check_pool(command, o->path);
    if (code == 0) code = read_leave_count(o);
    if (code == 0) code = read_wishes(o);
    if (code != 0) return code;
    const char *wrong = o->path ? wrong_with_path(o) : wrong_without_path(o);
    if (wrong) return dv_command_misused(command, "%s", wrong);
    if (o->path) return finish_with_path(o);
    code = o->items_from ? dv_item_list_read(&o->list, o->items_from) : dv_item_list_copy(&o->list, &o->items);
    return code || !o->loads_from ? code : dv_plan_loads_read(&o->loads, o->loads_from, &o->list);
}

/* ---- doing it ---- */

static int run_plan(const dv_plan_call *o) {
    dv_forecast forecast = {0};
    dv_plan_pool *pool = NULL;
    int code = o->path ? dv_plan_pool_forecast(o, &pool, &forecast) : dv_plan_model(o, &forecast);
    char *text = NULL;
    if (!code) text = o->json ? dv_forecast_json(&forecast, o->verbose) : dv_forecast_print(&forecast, o->verbose);
    dv_forecast_free(&forecast);
    dv_plan_pool_free(pool);
    return code ? code : dv_command_print(text);
}

static void free_call(dv_plan_call *o) {
    for (size_t n = 0; n < o->wish_count; n++) free(o->wishes[n].member);
    free(o->wishes);
    free(o->loads);
    dv_item_list_free(&o->list);
    dv_look_options_free(&o->look);
    free((void *)(uintptr_t)o->items.texts);
    free((void *)(uintptr_t)o->leave.texts);
    free((void *)(uintptr_t)o->drains.texts);
    free((void *)(uintptr_t)o->weights.texts);
}

static int run(int argc, char **argv) {
    dv_plan_call o = {.max_moves = -1, .items_order = -1};
    int code = parse(&o, argc, argv);
    if (code == 0) {
        if (o.path) dv_log_field("pool", o.path);
        code = run_plan(&o);
    }
    free_call(&o);
    return code;
}

const dv_command dv_plan_command = {
    .name = command,
    .summary = "compute what would move if members joined or left",
    .run = run,
    .print_help = print_help,
};
