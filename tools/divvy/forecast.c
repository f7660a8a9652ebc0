/* A forecast of the items that a change of members would move. SPDX-License-Identifier: Apache-2.0 */
#include "forecast.h"

#include <stdio.h>
#include <stdlib.h>

#include "table.h"
#include "table_json.h"

static const dv_column member_columns[] = {
    {"MEMBER", false, false}, {"BEFORE", true, false}, {"AFTER", true, false},
    {"GAINS", true, false},   {"LOSES", true, false},
};

static const dv_column item_columns[] = {{"ITEM", false, false}, {"FROM", false, false}, {"TO", false, false}};

enum { MEMBER_COLUMNS = 5, ITEM_COLUMNS = 3, NUMBER_BYTES = 32 };

static const char *number(size_t value, char out[NUMBER_BYTES]) {
    snprintf(out, NUMBER_BYTES, "%zu", value);
    return out;
}

static int add_member(dv_table *table, const dv_forecast *plan, size_t i) {
    char before[NUMBER_BYTES], after[NUMBER_BYTES], gains[NUMBER_BYTES], loses[NUMBER_BYTES];
    const dv_forecast_load *load = &plan->loads[i];
    const char *name = plan->members[i].identifier;
    const char *cells[MEMBER_COLUMNS] = {
        name,
        dv_forecast_joins(plan, i) ? "joins" : number(load->before, before),
        dv_forecast_leaves(plan, i) ? "leaves" : number(load->after, after),
        number(load->gains, gains),
        number(load->loses, loses),
    };
    return dv_table_add(table, name, cells);
}

static int add_move(dv_table *table, const dv_forecast *plan, size_t i) {
    const char *cells[ITEM_COLUMNS] = {plan->items->names[i], plan->members[plan->before[i]].identifier,
                                       plan->members[plan->after[i]].identifier};
    return dv_table_add(table, cells[0], cells);
}

static int print_moves(const dv_forecast *plan, FILE *to) {
    dv_table *table = dv_table_new(item_columns, ITEM_COLUMNS);
    int error = table ? 0 : -1;
    for (size_t i = 0; !error && i < plan->items->count; i++) {
        if (plan->before[i] != plan->after[i]) error = add_move(table, plan, i);
    }
    if (!error && plan->moves) {
        fputs("\n", to);
        dv_table_print(table, false, to);
    }
    dv_table_free(table);
    return error;
}

static void print_summary(const dv_forecast *plan, FILE *to) {
    size_t before = plan->member_count - plan->join_count, after = plan->member_count - plan->leave_count;
    fprintf(to, "%zu item%s by %s: from %zu to %zu member%s\n", plan->items->count, plan->items->count == 1 ? "" : "s",
            plan->assign, before, after, after == 1 ? "" : "s");
    fprintf(to, "%zu item%s (%.1f %%); the least that can be is %zu\n\n", plan->moves,
            plan->moves == 1 ? " moves" : "s move", 100.0 * (double)plan->moves / (double)plan->items->count,
            plan->floor);
}

char *dv_forecast_print(const dv_forecast *plan, bool list) {
    char *text = NULL;
    size_t bytes = 0;
    dv_table *table = dv_table_new(member_columns, MEMBER_COLUMNS);
    FILE *to = open_memstream(&text, &bytes);
    int error = table && to ? 0 : -1;
    for (size_t i = 0; !error && i < plan->member_count; i++) error = add_member(table, plan, i);
    if (!error) {
        print_summary(plan, to);
        dv_table_print(table, false, to);
    }
    if (!error && list) error = print_moves(plan, to);
    dv_table_free(table);
    if (to && ferror(to)) error = -1;
    if (to && fclose(to) == 0 && !error) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static bool put_member(cJSON *array, const dv_forecast *plan, size_t i) {
    const dv_forecast_load *load = &plan->loads[i];
    cJSON *json = dv_json_add_object(array);
    return json && dv_json_text(json, "identifier", plan->members[i].identifier) &&
           (dv_forecast_joins(plan, i) ? cJSON_AddNullToObject(json, "before") != NULL
                                       : dv_json_number(json, "before", (int64_t)load->before)) &&
           (dv_forecast_leaves(plan, i) ? cJSON_AddNullToObject(json, "after") != NULL
                                        : dv_json_number(json, "after", (int64_t)load->after)) &&
           dv_json_number(json, "gains", (int64_t)load->gains) && dv_json_number(json, "loses", (int64_t)load->loses);
}

static bool put_moves(cJSON *json, const dv_forecast *plan) {
    cJSON *array = cJSON_AddArrayToObject(json, "moved");
    bool good = array;
    for (size_t i = 0; good && i < plan->items->count; i++) {
        if (plan->before[i] == plan->after[i]) continue;
        cJSON *move = dv_json_add_object(array);
        good = move && dv_json_text(move, "item", plan->items->names[i]) &&
               dv_json_text(move, "from", plan->members[plan->before[i]].identifier) &&
               dv_json_text(move, "to", plan->members[plan->after[i]].identifier);
    }
    return good;
}

char *dv_forecast_json(const dv_forecast *plan, bool list) {
    cJSON *json = cJSON_CreateObject();
    bool good = json && dv_json_text(json, "assign", plan->assign) &&
                dv_json_number(json, "items", (int64_t)plan->items->count) &&
                dv_json_number(json, "moves", (int64_t)plan->moves) &&
                dv_json_number(json, "floor", (int64_t)plan->floor);
    cJSON *members = good ? cJSON_AddArrayToObject(json, "members") : NULL;
    good = members;
    for (size_t i = 0; good && i < plan->member_count; i++) good = put_member(members, plan, i);
    return dv_json_line(json, good && (!list || put_moves(json, plan)));
}
