/* divvy history: the last changes of a pool. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <divvy/divvy.h>

#include "columns.h"
#include "command.h"
#include "format.h"
#include "history_json.h"
#include "look.h"
#include "option_rows.h"
#include "table.h"
#include "table_json.h"
#include "text.h"

static const char command[] = "history";

typedef struct {
    dv_look_options look;
    const char *path;
    int json, wide;
    const char *format_text;
    dv_format *format;
} history_options;

static const char *const fields[] = {"generation", "reason",  "at",   "age_ms", "under_way", "took_ms", "moved",
                                     "joined",     "joined.", "left", "left.",  "told",      NULL};
static const dv_format_kind formats[] = {{"changes", fields}, {NULL, NULL}};

#define OPTION_VALUES history_options

static const dv_option table[] = {
    TEXT("path", "PATH", path, "the pool, an absolute znode path such as /work_queues; required"),
    FLAG("json", json, "print one JSON object on one line"),
    DV_FORMAT_OPTION(history_options, format_text, "change", "{at}\\t{reason}\\t{moved}"),
    DV_WIDE_OPTION(history_options, wide),
    DV_LOOK_OPTIONS(history_options, look),
    {.name = NULL},
};

static void print_help(void) {
    printf("usage: divvy history --path PATH [OPTION ...]\n"
           "\n"
           "Shows the last 64 changes of the pool at PATH, the newest last: when a member wrote each\n"
           "plan and why, how many items moved, how long that took, and who joined or left. A member\n"
           "whose death watch ended its session has died, so long before. Below stands what\n"
           "operators asked for, and why, and what loads moved. Changes nothing.\n"
           "\n");
    dv_options_print(table);
    printf("\n"
           "A DURATION is 300ms, 4s, 1.5m or 1h; a bare number is seconds.\n"
           "\n"
           "Exit codes: 0 the changes were shown; 1 there is no such pool, it has no plan, or divvy\n"
           "may not read it: standard error says why; 2 wrong usage; 3 no server answered within\n"
           "--timeout.\n");
}

/* ---- options ---- */

static int parse(history_options *o, int argc, char **argv) {
    int code = dv_options_parse(command, table, o, argc, argv);
    if (code == 0) code = dv_options_check_pool(command, o->path);
    if (code == 0) code = dv_look_options_finish(&o->look, command);
    return code ? code : dv_format_parse(&o->format, command, o->format_text, o->json, formats);
}

/* ---- for people ---- */

enum { LABEL_BYTES = DV_PLAN_NAME_BYTES_MAX + DV_AGE_BYTES + 16 };
enum { NAMES_BYTES = DV_PLAN_NAMED_MAX * (LABEL_BYTES + 2) + 40 };

/* Returns how many columns a name takes as the table prints it. */
static size_t width_of(const char *name) {
    char *readable = dv_text_readable(name);
    size_t width = readable ? dv_text_width(readable) : 0;
    free(readable);
    return width;
}

/* Names one that left, and says whether it died. */
static const char *label_of(const dv_pool_history *h, const dv_plan_change *c, const char *name,
                            char out[LABEL_BYTES]) {
    char seen[DV_AGE_BYTES];
    const dv_plan_death *death = dv_history_death(h, c, name);
    if (!death) return name;
    snprintf(out, LABEL_BYTES, "%s (died, %s)", name, dv_duration_text(death->seen_ms, seen));
    return out;
}

/* Returns how many columns the names of one cell may take on a screen of so many; SIZE_MAX for DV_COLUMNS_ALL. */
static size_t names_columns(size_t columns) {
    enum { OTHERS = 42 }; /* without WHEN, which gives way first */
    return columns == DV_COLUMNS_ALL ? SIZE_MAX : (columns - OTHERS) / 2;
}

/* Names as many as fit, at least one, and counts the rest. */
static const char *names_text(const dv_pool_history *h, const dv_plan_change *c, const dv_plan_named *who,
                              size_t columns, char out[NAMES_BYTES]) {
    size_t at = 0, shown = 0, used = 0, room = names_columns(columns);
    out[0] = '\0';
    for (; shown < who->named; shown++) {
        char label[LABEL_BYTES];
        const char *name = who == &c->left ? label_of(h, c, who->names[shown], label) : who->names[shown];
        size_t left = who->count - shown - 1, rest = left ? (size_t)snprintf(NULL, 0, " +%zu", left) : 0;
        size_t width = width_of(name) + (shown > 0 ? 2 : 0);
        if (shown > 0 && used + width + rest > room) break;
        at += (size_t)sprintf(out + at, "%s%s", shown > 0 ? ", " : "", name);
        used += width;
    }
    if (who->count > shown) snprintf(out + at, NAMES_BYTES - at, at ? " +%zu" : "%zu", who->count - shown);
    return out;
}

static const char *took_text(const dv_pool_history *h, bool is_plan, int64_t ms, char out[DV_AGE_BYTES]) {
    return is_plan && h->under_way ? "under way" : ms < 0 ? "" : dv_duration_text(ms, out);
}

static int add_change(dv_table *to, const dv_pool_history *h, const dv_plan_change *c, bool is_plan, size_t columns) {
    char generation[32], moved[32], age[DV_AGE_BYTES], took[DV_AGE_BYTES], joined[NAMES_BYTES], left[NAMES_BYTES];
    char when[DV_UTC_BYTES];
    snprintf(generation, sizeof generation, "%" PRIu64, c->generation);
    snprintf(moved, sizeof moved, "%" PRIu32, c->moved);
    const char *const cells[] = {generation,
                                 dv_look_utc(c->at_ms, when),
                                 c->at_ms ? dv_age_text(h->read_at_ms - c->at_ms, age) : "",
                                 c->reason,
                                 moved,
                                 took_text(h, is_plan, c->took_ms, took),
                                 names_text(h, c, &c->joined, columns, joined),
                                 names_text(h, c, &c->left, columns, left)};
    return dv_table_add(to, generation, cells);
}

static int add_hole(dv_table *to, const dv_pool_history *h, size_t i) {
    uint64_t first, last;
    char generations[64];
    if (!dv_history_hole(h, i, &first, &last)) return 0;
    if (first == last) snprintf(generations, sizeof generations, "%" PRIu64, first);
    else snprintf(generations, sizeof generations, "%" PRIu64 "-%" PRIu64, first, last);
    const char *const cells[] = {generations, "", "", "not written down", "", "", "", ""};
    return dv_table_add(to, generations, cells);
}

/* The plan, when its writer told nothing. */
static int add_plan(dv_table *to, const dv_pool_history *h) {
    const dv_plan *plan = dv_pool_history_plan(h);
    char generation[32], age[DV_AGE_BYTES], took[DV_AGE_BYTES], when[DV_UTC_BYTES];
    snprintf(generation, sizeof generation, "%" PRIu64, plan->header.generation);
    const char *const cells[] = {generation,
                                 dv_look_utc(h->planned_ms, when),
                                 dv_age_text(h->read_at_ms - h->planned_ms, age),
                                 dv_plan_reason_text(plan->header.reason),
                                 "?",
                                 took_text(h, true, h->took_ms, took),
                                 "?",
                                 "?"};
    return dv_table_add(to, generation, cells);
}

/* Returns NULL when an allocation fails. */
static dv_table *make_table(const dv_pool_history *h, size_t columns) {
    static const dv_column heads[] = {{.head = "PLAN", .right = true},
                                      {.head = "WHEN"},
                                      {.head = "AGE", .right = true},
                                      {.head = "REASON"},
                                      {.head = "MOVED", .right = true},
                                      {.head = "TOOK", .right = true},
                                      {.head = "JOINED"},
                                      {.head = "LEFT"}};
    dv_table *rows = dv_table_new(heads, sizeof heads / sizeof *heads);
    int error = rows ? 0 : -1;
    for (size_t i = 0; !error && i < h->told.count; i++) {
        error = add_hole(rows, h, i);
        bool is_plan = h->ends_with_it && i + 1 == h->told.count;
        if (!error) error = add_change(rows, h, &h->told.changes[i], is_plan, columns);
    }
    if (!error && !h->ends_with_it) error = add_hole(rows, h, h->told.count);
    if (!error && !h->ends_with_it) error = add_plan(rows, h);
    if (!error) return rows;
    dv_table_free(rows);
    return NULL;
}

/* Prints what operators asked for and what loads did, a sentence for each plan that has one. */
static void print_told(const dv_pool_history *h, size_t columns, FILE *to) {
    enum { INDENT = 4 };
    bool begun = false;
    for (size_t i = 0; i < h->told.count; i++) {
        const dv_plan_change *c = &h->told.changes[i];
        char line[DV_PLAN_TOLD_BYTES + 32];
        if (!*c->told) continue;
        if (!begun) fputs("\n", to);
        begun = true;
        snprintf(line, sizeof line, "%" PRIu64 ": %s", c->generation, c->told);
        char *readable = dv_text_readable(line);
        dv_text_wrap(readable ? readable : "?", 0, INDENT, columns, to);
        free(readable);
    }
}

static char *print_page(const dv_pool_history *h, size_t columns) {
    static const dv_fit fits[] = {{0}, {.hide = 1}, {0}, {0}, {0}, {0}, {.name = true}, {.name = true, .dull = "-"}};
    char *text = NULL;
    size_t bytes = 0;
    dv_table *rows = make_table(h, columns);
    FILE *to = open_memstream(&text, &bytes);
    bool complete = rows && to;
    bool whole = complete && dv_table_print_within(rows, fits, false, columns, to);
    if (complete) print_told(h, columns, to);
    if (complete && !whole) fprintf(to, "\n" DV_COLUMNS_NOTE, columns);
    dv_table_free(rows);
    if (to && (ferror(to) || fclose(to) != 0)) complete = false;
    if (complete) return text;
    free(text);
    return NULL;
}

static char *print(const history_options *o, const dv_pool_history *h) {
    if (!o->json && !o->format) return print_page(h, dv_columns_of_output(o->wide));
    cJSON *json = dv_history_json(h);
    if (o->json) return dv_json_line(json, json != NULL);
    char *text = json ? dv_format_print(o->format, cJSON_GetObjectItemCaseSensitive(json, "changes")) : NULL;
    cJSON_Delete(json);
    return text;
}

/* ---- the whole ---- */

static int tell(const history_options *o, const dv_pool_history *h) {
    char why[DV_HISTORY_BYTES];
    if (dv_history_refuses(h, why)) return dv_command_failed("%s", why);
    if (h->unreadable)
        dv_command_say("the history beside the plan of %s cannot be read; the next change puts another in its place",
                       o->path);
    return dv_command_print(print(o, h));
}

static int show(history_options *o) {
    dv_pool_plan plan = {.look = NULL};
    dv_pool_history *h = calloc(1, sizeof *h);
    dv_look *look = NULL;
    int code = dv_look_open(&look, &o->look, command, -1);
    if (code == 0 && (!h || dv_pool_plan_init(&plan, look, o->path) != 0)) code = dv_command_out_of_memory();
    if (h) *h = (dv_pool_history){.path = o->path, .plan = &plan};
    int error = code == 0 ? dv_look_at(look, dv_pool_history_read, h) : 0;
    if (error) code = dv_look_failed(look, error);
    else if (code == 0) code = tell(o, h);
    dv_look_close(look);
    dv_pool_plan_free(&plan);
    free(h);
    return code;
}

static int run(int argc, char **argv) {
    history_options o = {.look = {.timeout_ms = DV_LOOK_TIMEOUT_MS}};
    int code = parse(&o, argc, argv);
    if (code == 0) code = show(&o);
    dv_format_free(o.format);
    dv_look_options_free(&o.look);
    return code;
}

const dv_command dv_history_command = {
    .name = command,
    .summary = "show the last changes of a pool: when, why, who, how long",
    .run = run,
    .print_help = print_help,
};
