/* divvy explain: why an item is where it is, and what comes next. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "columns.h"
#include "command.h"
#include "explain_json.h"
#include "format.h"
#include "log.h"
#include "look.h"
#include "option_rows.h"
#include "pool/whom.h"
#include "status_plan.h"
#include "table.h"
#include "table_json.h"
#include "text.h"

static const char command[] = "explain";

typedef struct {
    dv_look_options look;
    const char *path, *item;
    int json, wide;
    const char *format_text;
    dv_format *format;
} explain_options;

static const char *const fields[] = {"path",  "item", "state", "owner", "queue", "plan",
                                     "plan.", "now",  "next",  "rule",  "why",   NULL};
static const dv_format_kind formats[] = {{"items", fields}, {NULL, NULL}};

#define OPTION_VALUES explain_options

static const dv_option table[] = {
    TEXT("path", "PATH", path, "the pool, an absolute znode path such as /work_queues; required"),
    FLAG("json", json, "print one JSON object on one line"),
    DV_FORMAT_OPTION(explain_options, format_text, "item", "{state}\\t{now}"),
    DV_WIDE_OPTION(explain_options, wide),
    DV_LOOK_OPTIONS(explain_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy explain --path PATH [OPTION ...] ITEM\n"
           "\n"
           "Explains the item ITEM of the pool at PATH: who owns it, by which token, whom the plan\n"
           "gives it to and why, who waits for it, what it waits for, and what comes next. Reads\n"
           "this one item, however many there are. Changes nothing.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the item was explained; 1 there is no such pool or item, or divvy may not\n"
           "read it: standard error says why; 2 wrong usage; 3 no server answered within --timeout.\n");
}

/* ---- options ---- */

static int parse(explain_options *o, int argc, char **argv) {
    int rest = 0;
    int code = dv_options_parse_among(command, table, o, argc, argv, &rest);
    if (code == 0) code = dv_options_check_pool(command, o->path);
    if (code != 0) return code;
    o->item = argv[rest];
    if (!o->item || !*o->item) return dv_command_misused(command, "ITEM is missing; it is the item to explain");
    if (argv[rest + 1]) return dv_command_misused(command, "\"%.100s\" is not expected here", argv[rest + 1]);
    code = dv_look_options_finish(&o->look, command);
    return code ? code : dv_format_parse(&o->format, command, o->format_text, o->json, formats);
}

/* ---- for people ---- */

/* The page, as it is printed. */
typedef struct {
    FILE *to;
    size_t columns;
} page;

/* Prints a line of the page, or as many as it needs; what was read is made readable first. */
__attribute__((format(printf, 3, 4))) static void line(const page *p, const char *what, const char *format, ...) {
    enum { INDENT = 9 };
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int bytes = vasprintf(&text, format, arguments);
    va_end(arguments);
    char *readable = bytes >= 0 ? dv_text_readable(text) : NULL;
    if (bytes != 0) fprintf(p->to, "%-*s ", INDENT - 1, what);
    if (bytes != 0) dv_text_wrap(readable ? readable : "?", INDENT, INDENT, p->columns, p->to);
    free(readable);
    if (bytes >= 0) free(text);
}

static void print_place(const dv_explanation *e, const dv_explain_place *place, const char *what, const page *p) {
    char age[DV_AGE_BYTES], where[300] = "", token[64] = "";
    const dv_status_member *m = place->member == DV_NO_MEMBER ? NULL : &e->status->members[place->member];
    if (m && *m->host) snprintf(where, sizeof where, " on %.200s (pid %" PRId64 ")", m->host, m->pid);
    if (place == e->places) snprintf(token, sizeof token, ", token %" PRId64, place->token);
    const char *kind = m && m->kazoo ? ", of kazoo" : place->session == 0 ? ", persistent" : "";
    line(p, what, "%s%s%s%s, %sfor %s", place->name, where, kind, token, place == e->places ? "" : "in the queue ",
         dv_age_text(e->status->read_at_ms - place->made_ms, age));
}

static void print_plan(const dv_explanation *e, const page *p) {
    char age[DV_AGE_BYTES];
    const dv_plan *plan = dv_status_plan(e->status);
    if (!plan) return;
    const dv_status_entry *next = e->item->planned;
    line(p, "plan", "%" PRIu64 ", %s, %s ago%s%s", plan->header.generation, dv_plan_reason_text(plan->header.reason),
         dv_age_text(e->status->read_at_ms - e->planned_ms, age),
         !e->status->in_force ? ", not in force"
         : next               ? ": gives it to "
                              : ": gives it to nobody",
         next ? dv_whom_identifier(next->entry) : "");
}

static void print_load(const dv_explanation *e, const page *p) {
    const dv_pool_rules *r = &e->status->rules;
    size_t item = r->any ? dv_pool_rules_find(r, e->item->name) : SIZE_MAX;
    double load, part;
    if (item == SIZE_MAX || !dv_pool_rules_load(r, item, &load, &part)) return;
    line(p, "load", "%.3g %s by the plan, %.3g %% of all", load, r->plan->loads->unit, 100 * part);
}

static char *print_page(const dv_explanation *e, size_t columns) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    const page p = {to, columns};
    dv_explain_verdict verdict = dv_explain_judge(e);
    line(&p, "item", "%s of %s", e->item->name, e->status->path);
    line(&p, "state", "%s", verdict.state);
    if (e->place_count == 0) line(&p, "owner", "nobody");
    for (size_t i = 0; i < e->place_count; i++) print_place(e, &e->places[i], i ? "waits" : "owner", &p);
    print_plan(e, &p);
    print_load(e, &p);
    if (*verdict.now) line(&p, "now", "%s", verdict.now);
    if (*verdict.next) line(&p, "next", "%s", verdict.next);
    bool complete = !ferror(to);
    if (fclose(to) == 0 && complete) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static char *print_json(const dv_explanation *e) {
    cJSON *json = dv_explain_json(e);
    return dv_json_line(json, json != NULL);
}

static char *print_format(const dv_format *format, const dv_explanation *e) {
    cJSON *json = dv_explain_json(e);
    char *text = dv_format_print(format, json);
    cJSON_Delete(json);
    return text;
}

/* ---- the whole ---- */

static int tell(const explain_options *o, const dv_explanation *e) {
    char why[DV_EXPLAIN_BYTES];
    if (dv_explain_refuses(e, o->item, why)) return dv_command_failed("%s", why);
    return dv_command_print(o->json     ? print_json(e)
                            : o->format ? print_format(o->format, e)
                                        : print_page(e, dv_columns_of_output(o->wide)));
}

static int explain(explain_options *o) {
    dv_item_list list = {.names = &o->item, .count = 1};
    dv_status status = {.path = o->path, .expected = &list, .only_expected = true};
    dv_explanation e = {.status = &status};
    dv_pool_plan plan = {.look = NULL};
    dv_look *look = NULL;
    int code = dv_look_open(&look, &o->look, command, -1);
    if (code == 0 && dv_pool_plan_init(&plan, look, o->path) != 0) code = dv_command_out_of_memory();
    status.plan = &plan;
    int error = code == 0 ? dv_look_at(look, dv_explain_read, &e) : 0;
    if (error) code = dv_look_failed(look, error);
    else if (code == 0) code = tell(o, &e);
    dv_look_close(look);
    dv_explain_clear(&e);
    dv_status_pool_clear(&status);
    dv_pool_plan_free(&plan);
    return code;
}

static int run(int argc, char **argv) {
    explain_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}};
    int code = parse(&o, argc, argv);
    if (code == 0) {
        dv_log_field("pool", o.path);
        code = explain(&o);
    }
    dv_format_free(o.format);
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_explain_command = {
    .name = command,
    .summary = "tell why an item is where it is, and what it waits for",
    .run = run,
    .print_help = print_help,
};
