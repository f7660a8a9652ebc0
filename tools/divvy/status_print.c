/* The display of a pool. SPDX-License-Identifier: Apache-2.0 */
#include "status_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "columns.h"
#include "pool/whom.h"
#include "status_plan.h"
#include "status_room.h"
#include "status_rules.h"
#include "table_json.h"
#include "text.h"

/* ---- for people ---- */

static const dv_column member_columns[] = {
    {"MEMBER", false, false}, {"KIND", false, false},  {"HOST", false, false},
    {"PID", true, false},     {"SINCE", false, false}, {"ITEMS", true, false},
};

static const dv_fit member_fits[] = {{.name = true}, {.dull = "divvy"}, {.name = true, .hide = 3},
                                     {.hide = 2},    {.hide = 1},       {.hide = 0}};

/* Where there is a plan. */
static const dv_column planned_columns[] = {
    {"MEMBER", false, false}, {"KIND", false, false},  {"HOST", false, false},   {"PID", true, false},
    {"SINCE", false, false},  {"ITEMS", true, false},  {"PLANNED", true, false}, {"WEIGHT", true, false},
    {"ZONE", false, false},   {"STATE", false, false},
};

static const dv_fit planned_fits[] = {
    {.name = true}, {.dull = "divvy", .hide = 5}, {.name = true, .hide = 3},   {.hide = 2},   {.hide = 1}, {.hide = 0},
    {.hide = 0},    {.dull = "1000", .hide = 4},  {.dull = "-", .name = true}, {.dull = "-"},
};

/* Where it has loads, wishes, tags or caps. */
static const dv_column ruled_columns[] = {
    {"MEMBER", false, false}, {"KIND", false, false},  {"HOST", false, false},   {"PID", true, false},
    {"SINCE", false, false},  {"ITEMS", true, false},  {"PLANNED", true, false}, {"WEIGHT", true, false},
    {"ZONE", false, false},   {"STATE", false, false}, {"SHARE", true, false},   {"TAGS", false, false},
    {"CAP", true, false},
};

static const dv_fit ruled_fits[] = {
    {.name = true},
    {.dull = "divvy", .hide = 5},
    {.name = true, .hide = 3},
    {.hide = 2},
    {.hide = 1},
    {.hide = 0},
    {.hide = 0},
    {.dull = "1000", .hide = 4},
    {.dull = "-", .name = true},
    {.dull = "-"},
    {.dull = "-", .rare = true},
    {.dull = "-", .name = true, .rare = true},
    {.dull = "-", .rare = true},
};

static const dv_column item_columns[] = {
    {"ITEM", false, false}, {"OWNER", false, false},  {"TOKEN", true, false},
    {"AGE", true, true},    {"WAITING", true, false},
};

static const dv_fit item_fits[] = {{.name = true}, {.name = true}, {.hide = 0}, {.hide = 0}, {.dull = "0"}};

/* Where there is a plan. */
static const dv_column planned_item_columns[] = {
    {"ITEM", false, false}, {"OWNER", false, false}, {"NEXT", false, false},
    {"TOKEN", true, false}, {"AGE", true, true},     {"WAITING", true, false},
};

static const dv_fit planned_item_fits[] = {{.name = true}, {.name = true}, {.dull = "-", .name = true},
                                           {.hide = 0},    {.hide = 0},    {.dull = "0"}};

/* Where it has loads, wishes, tags or caps. */
static const dv_column ruled_item_columns[] = {
    {"ITEM", false, false}, {"OWNER", false, false},  {"NEXT", false, false}, {"TOKEN", true, false},
    {"AGE", true, true},    {"WAITING", true, false}, {"WHY", false, false},
};

static const dv_fit ruled_item_fits[] = {{.name = true},
                                         {.name = true},
                                         {.dull = "-", .name = true},
                                         {.hide = 1},
                                         {.hide = 2},
                                         {.dull = "0"},
                                         {.dull = "-", .name = true, .sentence = true}};

/* The columns of both tables, by the kind of the page. */
static const struct {
    const dv_column *members, *items;
    size_t member_count, item_count;
    const dv_fit *member_fits, *item_fits;
} kinds[] = {
    {member_columns, item_columns, sizeof member_columns / sizeof *member_columns,
     sizeof item_columns / sizeof *item_columns, member_fits, item_fits},
    {planned_columns, planned_item_columns, sizeof planned_columns / sizeof *planned_columns,
     sizeof planned_item_columns / sizeof *planned_item_columns, planned_fits, planned_item_fits},
    {ruled_columns, ruled_item_columns, sizeof ruled_columns / sizeof *ruled_columns,
     sizeof ruled_item_columns / sizeof *ruled_item_columns, ruled_fits, ruled_item_fits},
};

static const char *kind_name(const dv_status_member *m) {
    return m->kazoo ? "kazoo" : "divvy";
}

static int add_row(dv_table *table, const dv_status *status, const dv_status_member *m, const dv_status_entry *e,
                   const char *identifier) {
    char pid[32] = "", items[32] = "", planned[32] = "", weight[32] = "", state[96], share[32] = "", cap[32] = "";
    const double *shares = status->rules.shares;
    if (e && shares) snprintf(share, sizeof share, "%.2f", shares[e->entry - status->rules.plan->members]);
    if (e && e->entry->cap) snprintf(cap, sizeof cap, "%" PRIu32, e->entry->cap);
    if (m && m->pid) snprintf(pid, sizeof pid, "%" PRId64, m->pid);
    if (m) snprintf(items, sizeof items, "%zu", m->item_count);
    if (e) snprintf(planned, sizeof planned, "%zu", e->item_count);
    if (e) snprintf(weight, sizeof weight, "%" PRIu32, e->entry->weight);
    dv_status_plan_describe(e, m, state, sizeof state);
    const char *cells[] = {identifier,
                           m ? kind_name(m) : "",
                           m ? m->host : "",
                           pid,
                           m ? m->since : "",
                           items,
                           planned,
                           weight,
                           e ? e->entry->zone : "",
                           state,
                           share,
                           e ? e->entry->tags : "",
                           cap};
    return dv_table_add(table, m ? m->node : e->entry->key, cells);
}

static int add_member(dv_table *table, const dv_status *status, const dv_status_member *m) {
    return add_row(table, status, m, m->entry, m->identifier);
}

/* Adds one that the plan has, and that is not there. */
static int add_absent(dv_table *table, const dv_status *status, const dv_status_entry *e) {
    return dv_status_plan_shows(status, e) ? add_row(table, status, NULL, e, dv_whom_identifier(e->entry)) : 0;
}

/* Returns whom the item goes to, where that is another than its owner, or NULL. */
static const char *next_owner(const dv_status_item *item) {
    bool there = !item->planned || (item->head && item->planned->member == item->member);
    return there ? NULL : dv_whom_identifier(item->planned->entry);
}

static int add_item(dv_table *table, const dv_status *status, const dv_status_item *item) {
    char token[32] = "", age[DV_AGE_BYTES] = "", waiting[32], *owner = NULL;
    snprintf(waiting, sizeof waiting, "%zu", item->waiting);
    if (item->head) snprintf(token, sizeof token, "%" PRId64, item->token);
    if (item->head) dv_age_text(status->read_at_ms - item->made_ms, age);
    const char *kind = "";
    if (item->head && item->member == DV_NO_MEMBER) kind = item->session ? " (not in the party)" : " (persistent)";
    const char *nobody = dv_status_rules_is_paused(status, item) ? "(paused)" : "(unowned)";
    if (asprintf(&owner, "%s%s", item->head ? item->owner : nobody, kind) < 0) return -1;
    char why[DV_RULE_BYTES];
    dv_status_rules_why(status, item->name, why);
    const char *planned[] = {item->name, owner, next_owner(item), token, age, waiting, why};
    const char *plain[] = {item->name, owner, token, age, waiting};
    int error = dv_table_add(table, item->node, dv_status_plan(status) ? planned : plain);
    free(owner);
    return error;
}

static int fill(const dv_status *status, dv_status_page *page, const dv_status_page *before) {
    page->kind = !dv_status_plan(status) ? DV_PAGE_PLAIN : status->rules.any ? DV_PAGE_RULED : DV_PAGE_PLANNED;
    page->members = dv_table_new(kinds[page->kind].members, kinds[page->kind].member_count);
    page->items = dv_table_new(kinds[page->kind].items, kinds[page->kind].item_count);
    int error = page->members && page->items ? 0 : -1;
    for (size_t i = 0; !error && i < status->member_count; i++)
        error = add_member(page->members, status, &status->members[i]);
    for (size_t i = 0; !error && i < status->entry_count; i++)
        error = add_absent(page->members, status, &status->entries[i]);
    for (size_t i = 0; !error && i < status->item_count; i++) error = add_item(page->items, status, &status->items[i]);
    /* Other columns are another table: what has changed is then not to be seen. */
    bool comparable = before->kind == page->kind;
    if (!error && before->members && comparable) error = dv_table_compare(page->members, before->members);
    if (!error && before->items && comparable) error = dv_table_compare(page->items, before->items);
    return error;
}

/* Counts what nobody holds. What is paused nobody is to hold. */
static size_t count_unowned(const dv_status *status) {
    size_t count = 0;
    for (size_t i = 0; i < status->item_count; i++)
        count += !status->items[i].head && !dv_status_rules_is_paused(status, &status->items[i]);
    return count;
}

static void print_summary(const dv_status *status, FILE *to) {
    char *path = dv_text_readable(status->path);
    if (!status->found) {
        fprintf(to, "%s: there is no pool yet\n", path ? path : "?");
        free(path);
        return;
    }
    fprintf(to, "%s: %zu member%s, %zu item%s", path ? path : "?", status->member_count,
            status->member_count == 1 ? "" : "s", status->item_count, status->item_count == 1 ? "" : "s");
    if (status->item_count > 0) fprintf(to, ", %zu unowned", count_unowned(status));
    if (status->member_count > 0)
        fprintf(to, ", %zu to %zu items each (imbalance %zu)", status->least_load, status->most_load,
                status->most_load - status->least_load);
    if (status->stray_count > 0)
        fprintf(to, ", %zu stray node%s in the party", status->stray_count, status->stray_count == 1 ? "" : "s");
    fputs("\n", to);
    free(path);
}

/* Prints what is said of the whole pool, a line each, wrapped. Returns 0, or -1 when an allocation fails. */
static int print_heading(const dv_status *status, size_t columns, FILE *to) {
    enum { INDENT = 4 };
    char *text = NULL;
    size_t bytes = 0;
    FILE *lines = open_memstream(&text, &bytes);
    if (!lines) return -1;
    print_summary(status, lines);
    dv_status_plan_print(status, lines);
    dv_status_room_print(status, lines);
    bool complete = !ferror(lines);
    complete = fclose(lines) == 0 && complete;
    char *rest = text;
    for (char *line; complete && (line = strsep(&rest, "\n")) && *line;) dv_text_wrap(line, 0, INDENT, columns, to);
    free(text);
    return complete ? 0 : -1;
}

/* Prints both tables. Returns whether they are whole. */
static bool print_tables(const dv_status *status, const dv_status_page *page, bool marks, size_t columns, FILE *to) {
    if (status->member_count || status->entry_count) fputs("\n", to);
    bool whole = dv_table_print_within(page->members, kinds[page->kind].member_fits, marks, columns, to);
    if (status->item_count) fputs("\n", to);
    return dv_table_print_within(page->items, kinds[page->kind].item_fits, marks, columns, to) && whole;
}

char *dv_status_page_print(const dv_status *status, dv_status_page *page, const dv_status_page *before, bool marks,
                           size_t columns) {
    char *text = NULL;
    size_t bytes = 0;
    dv_status_page_free(page);
    if (fill(status, page, before) != 0) return NULL;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) return NULL;
    bool complete = print_heading(status, columns, to) == 0;
    if (complete && !print_tables(status, page, marks, columns, to)) fprintf(to, "\n" DV_COLUMNS_NOTE, columns);
    complete = complete && !ferror(to);
    if (fclose(to) == 0 && complete) return text;
    free(text);
    return NULL;
}

void dv_status_page_free(dv_status_page *page) {
    dv_table_free(page->members);
    dv_table_free(page->items);
    *page = (dv_status_page){.members = NULL};
}

/* ---- JSON ---- */

static bool put_member(cJSON *array, const dv_status_member *m) {
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "identifier", m->identifier) && dv_json_text(json, "kind", kind_name(m)) &&
           dv_json_text_or_null(json, "host", m->host) && dv_json_number_or_null(json, "pid", m->pid) &&
           dv_json_text_or_null(json, "since", m->since) && dv_json_session(json, m->session) &&
           dv_json_number(json, "items", (int64_t)m->item_count) &&
           dv_json_number(json, "path_bytes", (int64_t)m->path_bytes) &&
           dv_json_number(json, "short", (int64_t)dv_status_room_short(m));
}

static bool put_item(cJSON *array, const dv_status *status, const dv_status_item *item) {
    cJSON *json = dv_json_add_object(array);
    bool good = json && dv_json_text(json, "item", item->name) && dv_json_text_or_null(json, "owner", item->owner);
    if (good && item->head) {
        good = dv_json_bool(json, "in_party", item->member != DV_NO_MEMBER) && dv_json_session(json, item->session) &&
               dv_json_token(json, item->token) && dv_json_age(json, status->read_at_ms - item->made_ms);
    }
    const char *planned = item->planned ? dv_whom_identifier(item->planned->entry) : NULL;
    good = good && dv_json_text_or_null(json, "planned_owner", planned) &&
           dv_json_number(json, "waiting", (int64_t)item->waiting);
    char why[DV_RULE_BYTES];
    const char *rule = good ? dv_status_rules_why(status, item->name, why) : NULL;
    return good && (!rule || (dv_json_text(json, "rule", rule) && dv_json_text(json, "why", why)));
}

static bool put(cJSON *json, const dv_status *status) {
    bool good = dv_json_text(json, "path", status->path) && dv_json_number(json, "time_ms", status->read_at_ms);
    cJSON *members = good ? cJSON_AddArrayToObject(json, "members") : NULL;
    good = members;
    for (size_t i = 0; good && i < status->member_count; i++) good = put_member(members, &status->members[i]);
    cJSON *items = good ? cJSON_AddArrayToObject(json, "items") : NULL;
    good = items;
    for (size_t i = 0; good && i < status->item_count; i++) good = put_item(items, status, &status->items[i]);
    good = good && dv_status_plan_json(json, status);
    return good && dv_json_number(json, "unowned", (int64_t)count_unowned(status)) &&
           dv_json_number(json, "strays", (int64_t)status->stray_count) &&
           dv_json_number(json, "least", (int64_t)status->least_load) &&
           dv_json_number(json, "most", (int64_t)status->most_load) &&
           dv_json_number(json, "imbalance", (int64_t)(status->most_load - status->least_load));
}

static cJSON *make_json(const dv_status *status) {
    cJSON *json = cJSON_CreateObject();
    if (json && put(json, status)) return json;
    cJSON_Delete(json);
    return NULL;
}

char *dv_status_page_json(const dv_status *status) {
    cJSON *json = make_json(status);
    return dv_json_line(json, json != NULL);
}

static const char *const item_fields[] = {"item",          "owner",   "in_party", "session", "token", "age_ms",
                                          "planned_owner", "waiting", "rule",     "why",     NULL};
static const char *const member_fields[] = {"identifier", "kind",  "host",       "pid",   "since",
                                            "session",    "items", "path_bytes", "short", NULL};
const dv_format_kind dv_status_formats[] = {{"items", item_fields}, {"members", member_fields}, {NULL, NULL}};

char *dv_status_page_format(const dv_status *status, const dv_format *format) {
    cJSON *json = make_json(status);
    const char *rows = dv_format_kind_of(format)->rows;
    char *text = json ? dv_format_print(format, cJSON_GetObjectItemCaseSensitive(json, rows)) : NULL;
    cJSON_Delete(json);
    return text;
}
